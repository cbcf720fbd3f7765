"""Statistics of capacities: the bound for zero, false discoveries, errors from stretches."""

from __future__ import annotations

import numpy as np

from .._formatting import HALF_WIDTH_95
from .._validation import checks_arguments, require_number, require_numbers, require_whole_number
from ..typing import ArrayLike, Floats

# What a divisor is at least; it would be zero where there is no noise at all.
SMALLEST_DIVISOR = 1e-300


@checks_arguments
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
    moments = require_numbers("fourth_moments", fourth_moments)
    n_samples = require_whole_number("n_samples", n_samples, 1)
    return np.sqrt(require_number("leverage_power", leverage_power, 0.0) * moments) / n_samples


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


def effective_directions(covariance: Floats) -> float:
    """Return the effective number of directions of a covariance (Satterthwaite), at most its rank.

    A sum of squares of so many independent normal numbers of equal variance scatters, relative to
    its mean, as that of numbers with this covariance.
    """
    trace = float(np.trace(covariance))
    return trace**2 / max(float(np.sum(covariance**2)), SMALLEST_DIVISOR)


def normal_fourth_power_ratio(n_directions: float) -> float:
    """Return E|e|⁸ / (E|e|⁴)² of normal numbers e with so many independent directions.

    (Σ|e|⁴)² / Σ|e|⁸ times this counts the samples that carry the noise: all, if it is normal.

    Examples
    --------
    >>> normal_fourth_power_ratio(2.0)
    6.0
    """
    rest = (n_directions + 4) * (n_directions + 6)
    return rest / max(n_directions * (n_directions + 2), SMALLEST_DIVISOR)


def student_widening(n_groups: int) -> float:
    """Return the factor for a standard error that is known from the scatter of a few groups.

    With it `HALF_WIDTH_95` standard errors make a 95 % interval of Student's distribution.
    """
    from scipy.special import stdtrit

    # A 95 % interval leaves 2.5 % on either side.
    student_half_width = float(stdtrit(n_groups - 1, 0.975))
    return student_half_width / HALF_WIDTH_95


def jackknife_error_of_groups(without: Floats) -> float:
    """Return the jackknife's standard error of a number, from groups of independent samples.

    Parameters
    ----------
    without
        The number without each of the groups.
    """
    n_groups = len(without)
    return float(student_widening(n_groups) * np.sqrt(n_groups - 1) * np.std(without))


def jackknife_error_of_stretches(without: Floats) -> float:
    """Return the jackknife's standard error of a number, from stretches of a sequence.

    Neighbouring stretches that vary together count for less than their number.

    Parameters
    ----------
    without
        The number without each of the stretches.
    """
    n_stretches = len(without)
    deviation = without - without.mean()
    power = max(float(deviation @ deviation), SMALLEST_DIVISOR)
    autocorrelation = max(float(deviation[1:] @ deviation[:-1]) / power, 0.0)
    variance = (n_stretches - 1) / n_stretches * power * (1 + 2 * autocorrelation)
    return float(student_widening(n_stretches) * np.sqrt(variance))


def squared_mean_from_stretches(products: Floats, fractions: Floats) -> tuple[float, float]:
    """Estimate the squared length of a mean vector without the noise's share, and its error.

    Products of sums over different stretches of a sequence hold no noise on average, whatever its
    colour, as long as it does not reach from one stretch to the next. With no mean at all, the sum
    of P over all pairs of stretches has the variance 2 sum P². The jackknife counts this part
    twice and that of first order once, so it is subtracted from the jackknife once.

    Parameters
    ----------
    products
        Inner products of the sums over each two stretches, divided by the squared number of
        samples, (stretches, stretches).
    fractions
        The fraction of all samples that is in each stretch, (stretches,).

    Examples
    --------
    >>> sums = 0.25 * np.array([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0], [3.0, 4.0]])
    >>> squared_mean_from_stretches(sums @ sums.T, np.full(4, 0.25))[0]
    25.0
    """
    pairs = products - np.diag(np.diag(products))
    weights = np.outer(fractions, fractions)
    np.fill_diagonal(weights, 0.0)
    n_stretches = len(fractions)
    total_weight = float(weights.sum())
    second_order = 2 * float(np.sum(pairs**2)) / total_weight**2

    variance = second_order
    if n_stretches > 2:  # without one of two, no pair is left
        without = (pairs.sum() - 2 * pairs.sum(axis=1)) / (weights.sum() - 2 * weights.sum(axis=1))
        deviation = without - without.mean()
        jackknife = (n_stretches - 1) / n_stretches * float(deviation @ deviation)
        variance = max(jackknife - second_order, second_order)
    return float(pairs.sum()) / total_weight, float(np.sqrt(variance))
