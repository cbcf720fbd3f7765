"""Statistics of capacities: the bound for zero, false discoveries, errors from stretches."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, to_numpy
from ..typing import ArrayLike, Floats

# What a divisor is at least; it would be zero where there is no noise at all.
SMALLEST_DIVISOR = 1e-300


def zero_capacity_bound(fourth_moments: ArrayLike, leverage_power: float, n_samples: int) -> Floats:
    """Bound the mean C_N of functions whose capacity is zero: sqrt(S E[y^4]) / N.

    This is proposition 5.3 of the paper.

    Parameters
    ----------
    fourth_moments
        E[y^4] of each function.
    leverage_power
        S = E[(sum_i X~_i²)²], at least the square of the number of readouts.
    n_samples
        N.

    Examples
    --------
    >>> zero_capacity_bound([1.8], leverage_power=100.0, n_samples=1000)
    array([0.01341641])
    """
    return np.sqrt(leverage_power * np.asarray(fourth_moments, dtype=float)) / n_samples


def benjamini_hochberg(p: Floats, rate: float) -> Floats:
    """Return which null hypotheses to reject at a false discovery rate (Benjamini and Hochberg).

    The result equals ``scipy.stats.false_discovery_control(p) <= rate``. It is written here because
    importing scipy.stats, which nothing else in an estimation needs, takes longer than a usual
    estimation does.

    Parameters
    ----------
    p
        The p-value of each hypothesis.
    rate
        Largest mean share of false rejections among all rejections.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.001, 0.03, 0.9, 0.02]), rate=0.05).tolist()
    [True, True, False, True]
    """
    order = np.argsort(p)
    limits = rate * np.arange(1, len(p) + 1) / len(p)
    below_limit = np.flatnonzero(p[order] <= limits)
    rejected = np.zeros(len(p), dtype=bool)
    if len(below_limit):
        n_rejected = below_limit[-1] + 1
        rejected[order[:n_rejected]] = True
    return rejected


def serial_sums(
    weights: Any, root: Any, every: Any, groups: list[Any], parts: list[Any]
) -> tuple[Floats, Floats]:
    """Return bias and variance of capacities of a sequence, from how its stretches differ.

    Neighbouring samples of a sequence are not independent, so the scatter of single samples says
    too little; sums over stretches that are long against the memory are nearly independent.

    Parameters
    ----------
    weights
        Readout weights W of each function, (functions, rank).
    root
        The metric's root G^-1/2, (rank, rank).
    every, groups
        Sums over all samples and over each stretch, with `count` and `mixed`.
    parts
        The sum y e' of each stretch, (functions, rank).
    """
    xp = array_namespace(weights)
    total = sum(parts)
    squares: Any = 0.0
    influence: Any = 0.0
    for part, group in zip(parts, groups, strict=True):
        share = group.count / every.count
        # By how much the stretch adds more than its share to y e', and to W times the mixed sums.
        excess = part - total * share
        excess_of_fit = weights @ (group.mixed - every.mixed * share)
        squares = squares + xp.sum(((excess - excess_of_fit) @ root) ** 2, axis=1)
        change_of_capacity = xp.sum((2 * excess - excess_of_fit) * weights, axis=1)
        influence = influence + change_of_capacity**2
    scale = len(groups) / (len(groups) - 1) / every.count**2
    return scale * to_numpy(squares), scale * to_numpy(influence)


def jackknife_error_of_stretches(without: Floats) -> float:
    """Return the jackknife's standard error of a number, from stretches of a sequence.

    Neighbouring stretches that vary together count for less than their number. With few stretches
    the error is widened so that 1.96 of it make a 95 % interval of Student's distribution.

    Parameters
    ----------
    without
        The number without each of the stretches.
    """
    from scipy.special import stdtrit

    n_stretches = len(without)
    deviation = without - without.mean()
    power = max(float(deviation @ deviation), SMALLEST_DIVISOR)
    autocorrelation = max(float(deviation[1:] @ deviation[:-1]) / power, 0.0)
    variance = (n_stretches - 1) / n_stretches * power * (1 + 2 * autocorrelation)
    student_factor = stdtrit(n_stretches - 1, 0.975) / 1.96
    return float(student_factor * np.sqrt(variance))
