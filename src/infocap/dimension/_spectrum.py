"""Effective dimensions that look at the spectrum of the readouts alone, for comparison.

Neither knows what is noise and what is signal, and both change with the units of the readouts, as capacities
do not. The mean of each readout is subtracted first; otherwise a large offset counts as the only dimension.
"""

from __future__ import annotations

import numpy as np

from ..errors import DataError
from ..typing import ArrayLike, Floats
from ._read import readouts


def participation_ratio(x: ArrayLike) -> float:
    """(sum of the eigenvalues)² / sum of their squares, of the covariance of the readouts (samples, readouts).

    >>> x = np.random.default_rng(0).standard_normal((10_000, 4))
    >>> round(participation_ratio(x * [1, 1, 1, 0.01]), 1)
    3.0
    """
    variances = _singular_values(x) ** 2
    return float(variances.sum() ** 2 / np.sum(variances**2))


def effective_rank(x: ArrayLike) -> float:
    """exp of the entropy of the singular values of the centred readouts, scaled to sum 1 (Roy, Vetterli 2007).

    >>> x = np.random.default_rng(0).standard_normal((10_000, 4))
    >>> round(effective_rank(x), 1)
    4.0
    """
    values = _singular_values(x)
    share = values[values > 0] / values.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def _singular_values(x: ArrayLike) -> Floats:
    """Of the centred readouts, relative to the largest."""
    values, _ = readouts(x, "x")
    values = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    values = values - values[0]
    singular = np.linalg.svd(values - values.mean(axis=0), compute_uv=False)
    if singular.max() == 0:
        raise DataError("x has no channel that changes from sample to sample; there is no spectrum.")
    return singular / singular[0]
