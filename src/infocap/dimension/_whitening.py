"""Whitened readouts of repeated measurements: centred, scaled and decorrelated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..kernels import span, summarise
from ..samples import MAX_RELATIVE_RANGE_OF_CONSTANT
from ..typing import Floats, Integers


@dataclass(frozen=True, eq=False)
class Whitened:
    """Whitened readouts z of every shot, times the root of the weight of its input.

    So means of products are weighted means. The mean of z z' over the shots of an input, then over
    the inputs, is 1.
    """

    repeated: Floats  # (inputs, repeats, directions)
    single: Floats  # shots of inputs that were measured once, (inputs, 1, directions)
    # (inputs,), those measured once last; the mean over the repeated ones is 1
    sample_weight: Floats
    scaled_readout_weights: Floats  # (readouts, directions), zero for dead channels
    exponent: Integers  # (readouts,): powers of two by which the readouts were divided
    mean: Floats  # (readouts,)
    is_live: np.ndarray  # which channels change, (readouts,)


def whiten(
    repeated: Floats, single: Floats, constant: bool, sample_weight: Floats | None = None
) -> Whitened:
    """Whiten repeated shots (inputs, repeats, readouts) and single shots (inputs, readouts).

    The shots are centred and scaled before the rank is decided. Without the constant readout,
    centring would change the space that the readouts span, so only scales are removed then.
    """
    n_repeated, n_repeats, n_readouts = repeated.shape
    if sample_weight is None:
        sample_weight = np.ones(n_repeated + len(single))
    else:
        sample_weight = sample_weight / sample_weight[:n_repeated].mean()

    # Powers of two divide without rounding, and keep squares in the range of floating-point
    # numbers.
    shots = np.vstack([repeated.reshape(-1, n_readouts), single])
    exponent = np.frexp(np.abs(shots).max(axis=0))[1]
    shots = np.ldexp(shots, -exponent)
    shift = shots[0] * constant
    shots -= shift
    min_range = MAX_RELATIVE_RANGE_OF_CONSTANT if constant else 0.0
    is_live = np.abs(shots).max(axis=0) > min_range
    if not is_live.any():
        raise DataError(
            "x1 has no channel that changes from input to input; check that the device was on."
        )

    # Every input counts by its weight, however often it was measured.
    weights_of_repeated = np.repeat(sample_weight[:n_repeated] / n_repeats, n_repeats)
    weights_of_shots = np.concatenate([weights_of_repeated, sample_weight[n_repeated:]])
    columns = shots[:, is_live]
    if constant:
        columns = np.column_stack([np.ones(len(shots)), columns])
    no_functions = np.empty((len(shots), 0))
    weighted_columns = columns * np.sqrt(weights_of_shots)[:, None]
    space = span(summarise(weighted_columns, no_functions, constant))

    # Nearly dependent readouts lose digits on the way; the second round, well conditioned, gets
    # them back.
    z = (shots[:, is_live] - space.mean) @ space.whitening
    covariance = (z.T * weights_of_shots) @ z / sample_weight.sum()
    second_round = np.linalg.inv(np.linalg.cholesky(covariance)).T
    z = z @ second_round
    scaled_readout_weights = np.zeros((n_readouts, z.shape[1]))
    scaled_readout_weights[is_live] = space.whitening @ second_round
    shift[is_live] = shift[is_live] + space.mean

    n_shots = n_repeated * n_repeats
    root_weights = np.sqrt(sample_weight)[:, None, None]
    return Whitened(
        repeated=root_weights[:n_repeated] * z[:n_shots].reshape(n_repeated, n_repeats, -1),
        single=root_weights[n_repeated:] * z[n_shots:, None],
        sample_weight=sample_weight,
        scaled_readout_weights=scaled_readout_weights,
        exponent=exponent,
        mean=np.ldexp(shift, exponent),
        is_live=is_live,
    )


def noise_covariance(repeated: Floats) -> Floats:
    """Return the unbiased covariance of shots around the mean of their input.

    The shots are (inputs, repeats, directions).
    """
    n_inputs, n_repeats, n_directions = repeated.shape
    deviations = repeated - repeated.mean(axis=1, keepdims=True)
    flat = deviations.reshape(-1, n_directions)
    return flat.T @ flat / (n_inputs * (n_repeats - 1))
