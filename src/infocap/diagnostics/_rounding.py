"""Rounding: values on the steps of a converter, or with few digits, and the capacity this takes.

Rounding adds an error that is uniform over a step, and whose variance is therefore the squared step
over 12. That is a fact where all values are whole steps. Whitened readouts tell which part of the
variance of each combination of channels the errors are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._formatting import join_names, short
from ..errors import Check
from ..typing import Floats
from ._excerpt import Excerpt
from ._finding import MIN_CAPACITY_IN_WORDS, finding

# Part of the sorted values that equal the one before, from which a channel may hold rounded values;
# and how far, relative to them, its values or distances may be from whole steps.
MIN_SHARE_OF_EQUAL = 0.01
MAX_DISTANCE_FROM_STEPS = 1e-3
# Distances above so many times the smallest one are more than one step.
MAX_USUAL_STEPS = 1.5
# Levels of a channel below which it is a device of a few states rather than one behind a converter,
# and above which rounding is that of numbers themselves.
MIN_LEVELS = 4
MAX_LEVELS = 1e9
# Significant digits that are looked for; more of them are no coarse rounding.
FEW_DIGITS = (1, 2, 3)
# Rows for each channel from which the variances of all combinations are known, and relative
# variance of a combination below which it is none.
MIN_ROWS_PER_CHANNEL = 4
MIN_RELATIVE_VARIANCE = 1e-10
# Part of a combination's variance that is rounding, above which its channels hold numbers whose
# sums are exact, such as frequencies that add up to one, and no independent errors.
MAX_SHARE_OF_ROUNDING = 2.0
# Part of a combination's variance from which a step is no small one: counts have larger variances.
MIN_SHARE_OF_ROUNDING = 0.1
# Levels and share from which it is a converter's rounding that limits the answer, rather than a
# device that takes few values.
MIN_LEVELS_OF_WARNING = 24
SHARE_OF_WARNING = 0.5


@dataclass(frozen=True)
class RoundingCost:
    """What rounding takes from the readouts."""

    share: float  # the largest part of the variance of a combination of channels that it is
    at_least: float  # capacity of the functions of the fit
    at_most: float  # capacity of all functions


def rounded(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where readouts lie on steps that take a part of their capacity."""
    variance = _rounding_variance(excerpt.sorted)
    channels = np.flatnonzero(variance)
    if len(channels) < 2 or excerpt.n < MIN_ROWS_PER_CHANNEL * excerpt.x.shape[1]:
        return
    cost = _cost_of_rounding(excerpt, variance)
    if cost.share < MIN_SHARE_OF_ROUNDING:
        return
    in_order = excerpt.sorted[channels]
    n_levels = np.median(np.count_nonzero(np.diff(in_order, axis=1), axis=1)) + 1
    is_converter = n_levels >= MIN_LEVELS_OF_WARNING and cost.share > SHARE_OF_WARNING
    names = excerpt.names(channels)
    at_least = ""
    if cost.at_least > MIN_CAPACITY_IN_WORDS:
        at_least = f", and takes {short(cost.at_least)} or more from functions of low degree"
    yield finding(
        f"{len(channels)} channels hold whole steps, or numbers of few digits "
        f"({join_names(names)}; some {n_levels:.0f} values each): rounding is up to "
        f"{min(cost.share, 1.0):.0%} of the variance of a sum of them{at_least}",
        cause="rounded readouts",
        next_step="use more bits, more digits, or a smaller range, unless these are counts",
        in_short="coarse converter",
        capacity=cost.at_most,
        is_note=not is_converter,
        channels=names,
        share=cost.share,
        at_least=cost.at_least,
    )


def _rounding_variance(in_order: Floats) -> Floats:
    """Return the variance of the rounding of each row of sorted values, 0 where there is none."""
    variance = np.zeros(len(in_order))
    is_equal = np.diff(in_order, axis=1) == 0
    for k in np.flatnonzero(np.mean(is_equal, axis=1) > MIN_SHARE_OF_EQUAL):
        squared_step = max(_step_of_converter(in_order[k]) ** 2, squared_unit(in_order[k]))
        variance[k] = squared_step / 12
    return variance


def _step_of_converter(values: Floats) -> float:
    """Return the step of which all distances of sorted values are multiples, or 0."""
    gaps = np.diff(values)
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return 0.0
    step = float(np.median(gaps[gaps < MAX_USUAL_STEPS * gaps.min()]))
    in_steps = gaps / step
    n_levels = in_steps.sum() + 1
    return step if MIN_LEVELS <= n_levels < MAX_LEVELS and _are_whole(in_steps) else 0.0


def squared_unit(values: Floats) -> float:
    """Return the mean square of the last digit's unit where values have few digits, or 0."""
    size = np.abs(values[values != 0])
    if not len(size):
        return 0.0
    exponent = np.floor(np.log10(size) + np.finfo(np.float32).eps)
    for n_digits in FEW_DIGITS:
        unit = 10.0 ** (exponent - n_digits + 1)
        if _are_whole(size / unit):
            return float(np.sum(unit**2)) / len(values)
    return 0.0


def _are_whole(in_steps: Floats) -> bool:
    distance = np.abs(in_steps - np.round(in_steps))
    return bool(np.all(distance < MAX_DISTANCE_FROM_STEPS * np.maximum(in_steps, 1)))


def _cost_of_rounding(excerpt: Excerpt, variance: Floats) -> RoundingCost:
    """Return what errors of these variances take, independent of each other and of all else.

    Of a combination of channels with variance 1 that holds the capacity s, an error of variance d
    has taken s d / (1 - d), which is between s d and d. Of s only the part is known that functions
    of the fit explain.
    """
    deviation = np.maximum(excerpt.x.std(axis=0), np.finfo(float).tiny)
    x = (excerpt.x - excerpt.x.mean(axis=0)) / deviation
    n_rows, n_channels = x.shape
    variances, vectors = np.linalg.eigh(x.T @ x / n_rows)
    is_kept = variances > MIN_RELATIVE_VARIANCE * variances[-1]
    whitening = vectors[:, is_kept] / np.sqrt(variances[is_kept])
    errors = (whitening.T * (variance / deviation**2)) @ whitening
    shares, combinations = np.linalg.eigh(errors)
    # The smallest variances of a sample are smaller than true ones (Marchenko and Pastur).
    shares = shares * (1 - np.sqrt(n_channels / n_rows)) ** 2
    is_error = (shares > 0) & (shares < MAX_SHARE_OF_ROUNDING)
    shares = np.minimum(shares[is_error], 1.0)
    if not len(shares):
        return RoundingCost(0.0, 0.0, 0.0)
    readouts = x @ (whitening @ combinations[:, is_error])
    coefficients = excerpt.residuals.orthonormal.T @ readouts
    held = (np.sum(coefficients**2, axis=0) - len(coefficients)) / n_rows
    return RoundingCost(
        share=float(shares.max()),
        at_least=max(float(np.sum(shares * held)), 0.0),
        at_most=float(np.sum(shares)),
    )
