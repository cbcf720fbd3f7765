"""Repeated readouts in coordinates whose single-shot covariance is 1, and the share of noise in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..kernels import span, summarise
from ..typing import Floats, Integers

DEAD = 32 * np.finfo(float).eps  # A channel whose relative range is below this is rounding around a constant.
ALONE = 1e-9  # Keeps the inverse finite when a direction exists at one input only.


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
    inputs = z[:cut].reshape(len(repeated), n_repeats, -1)
    return Whitened(inputs, z[cut:, None], weights, exponent, np.ldexp(shift, exponent), live)


def noise_covariance(z: Floats) -> Floats:
    """Covariance of single shots (inputs, repeats, directions) around the mean of their input, unbiased."""
    rest = (z - z.mean(axis=1, keepdims=True)).reshape(-1, z.shape[2])
    return rest.T @ rest / (len(z) * (z.shape[1] - 1))


def noise_share(data: Whitened, noise: Floats, constant: bool) -> tuple[float, float]:
    """tr(G⁻¹V), the noise share, corrected for its bias, and its standard error, by leaving out each input in turn.

    In whitened coordinates G_N = 1, so the plain estimate is tr V_N. The leave-one-out values tell its bias b/N. For
    Gaussian readouts bias is a geometric series in 1/N, which dividing by 1 + bias/T sums where subtracting, as
    the jackknife does, stops after the first term; it also keeps the share positive (docs/repeats.md).
    """
    plain = float(np.trace(noise))
    if plain == 0:
        return 0.0, 0.0
    n = data.n_inputs
    without = leave_one_out(data, noise, constant)
    # At least 1 / n, because no trace falls below its share.
    inflation = 1 + (n - 1) * (without.mean() - plain) / plain
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return plain / inflation, float(error) / inflation


def leave_one_out(data: Whitened, noise: Floats, constant: bool) -> Floats:
    """tr(G⁻¹V) without each of the inputs, those measured once last.

    With g = a'a / R for the shots a (repeats, directions) of an input, the inverse of N - g is
    (1 + a'(N R - a a')⁻¹ a) / N. Centring is part of G: the constant is one more direction, without noise.
    """
    n, n_repeated, repeats = data.n_inputs, len(data.repeated), data.repeated.shape[1]
    plain = np.trace(noise)
    inner, gain, seen = _products(data.repeated, noise, n, constant)
    centring = (np.eye(repeats) - 1 / repeats) / (repeats - 1)
    own = np.sum(inner * centring, axis=(1, 2))
    seen = n_repeated * seen - inner @ centring @ inner
    repeated = (n_repeated * plain - own + np.sum(gain * seen, axis=(1, 2))) / (n_repeated - 1)
    _, gain, seen = _products(data.once, noise, n, constant)
    once = plain + np.sum(gain * seen, axis=(1, 2))
    return (n - 1) / n * np.concatenate([repeated, once])


def _products(z: Floats, noise: Floats, n_inputs: int, constant: bool) -> tuple[Floats, Floats, Floats]:
    """a a', (N R - a a')⁻¹ and a V a' of each input, (inputs, repeats, repeats)."""
    repeats, turned = z.shape[1], z.transpose(0, 2, 1)
    inner = z @ turned + float(constant)
    gain = np.linalg.inv(n_inputs * repeats * (1 + ALONE) * np.eye(repeats) - inner)
    return inner, gain, (z @ noise) @ turned
