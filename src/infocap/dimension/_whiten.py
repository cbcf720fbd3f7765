"""Repeated readouts in coordinates whose single-shot covariance is 1: no unit, offset or mixing matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..kernels import span, summarise
from ..typing import Floats, Integers

DEAD = 32 * np.finfo(float).eps  # relative range below which a channel is rounding around a constant


@dataclass(frozen=True, eq=False)
class Whitened:
    """Coordinates z of every shot; the mean of z z' over the shots of an input, then over the inputs, is 1."""

    repeated: Floats  # (inputs, repeats, directions)
    once: Floats  # (inputs, 1, directions)
    scaled_weights: Floats  # (readouts, directions), zero for dead channels
    exponent: Integers  # (readouts,): powers of two by which the readouts were divided
    mean: Floats  # (readouts,)
    live: np.ndarray  # which channels change

    @property
    def n_inputs(self) -> int:
        """Inputs in all, whether repeated or not."""
        return len(self.repeated) + len(self.once)

    def weights(self, directions: Floats) -> Floats:
        """(x - mean) @ weights are the coordinates of readouts x along these directions (directions, wanted)."""
        with np.errstate(over="ignore"):  # readouts below 1e-300 have no finite weights
            return np.ldexp(self.scaled_weights @ directions, -self.exponent[:, None])


def whiten(repeated: Floats, once: Floats, constant: bool) -> Whitened:
    """Centre, then scale, then decide the rank: repeated (inputs, repeats, readouts), once (inputs, readouts).

    Without the constant readout centring would change the space the readouts span, so only scales are removed.
    """
    n_repeats, n_readouts = repeated.shape[1:]
    cut, n_inputs = len(repeated) * n_repeats, len(repeated) + len(once)
    shots = np.vstack([repeated.reshape(cut, n_readouts), once])
    exponent = np.frexp(np.abs(shots).max(axis=0))[1]
    shots = np.ldexp(shots, -exponent)  # exact, and squares stay in range
    shift = shots[0] * constant
    shots -= shift
    live = np.abs(shots).max(axis=0) > (DEAD if constant else 0.0)
    if not live.any():
        raise DataError("x1 has no channel that changes from input to input; check that the device was on.")
    share = np.ones(len(shots))  # every input counts once, however often it was measured
    share[:cut] = 1 / n_repeats
    columns = np.column_stack([np.ones(len(shots)), shots[:, live]]) if constant else shots[:, live]
    columns = columns * np.sqrt(share)[:, None]
    space = span(summarise(columns, np.empty((len(shots), 0)), constant))
    # Nearly dependent readouts lose digits on the way; the second round, well conditioned, gets them back.
    z = (shots[:, live] - space.mean) @ space.whitening
    finish = np.linalg.inv(np.linalg.cholesky((z.T * share) @ z / n_inputs)).T
    z, weights = z @ finish, np.zeros((n_readouts, len(finish)))
    weights[live], shift[live] = space.whitening @ finish, shift[live] + space.mean
    return Whitened(
        z[:cut].reshape(len(repeated), n_repeats, -1),
        z[cut:, None],
        weights,
        exponent,
        np.ldexp(shift, exponent),
        live,
    )
