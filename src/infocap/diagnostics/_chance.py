"""What chance alone gives: tails of distributions, and the level at which a test speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtrc, gammainc, gammaincc, ndtri

from .._validation import checks_arguments, shown
from ..errors import ParameterError
from ..typing import Floats

if TYPE_CHECKING:
    from ._excerpt import Excerpt

# Probability that chance alone raises a warning on a whole data set, and the number of tests that
# share it: the level of one test is their ratio (Bonferroni).
FALSE_ALARM_PER_DATA_SET = 1e-3
N_TESTS = 27
# A first p-value below this is computed again from random orders. Heavy tails make first p-values
# too small, never a hundred times too large.
P_VALUE_TO_LOOK_AGAIN = 1e-3
# Random orders, or far rows, from which a p-value is computed. A gamma distribution with their mean
# and variance gives its tail.
N_RANDOM_ORDERS = 200


@checks_arguments
def level(excerpt: Excerpt) -> float:
    """Return the level of a test of this excerpt: it reports what has a smaller p-value.

    One probability of a false alarm is shared among all tests and all excerpts of a data set.

    Parameters
    ----------
    excerpt
        What a test of the data is given.

    Examples
    --------
    >>> found = []
    >>> def my_test(excerpt):
    ...     found.append(infocap.diagnostics.level(excerpt))
    ...     yield from ()
    >>> infocap.diagnostics.DATA["nothing in particular"] = my_test
    >>> u = infocap.draw(infocap.product_basis("legendre", 1, 3), 64, seed=1)
    >>> found_in_data = infocap.diagnose(u, u**2)
    >>> del infocap.diagnostics.DATA["nothing in particular"]
    >>> 0 < found[0] < 1e-3
    True
    """
    if not hasattr(excerpt, "share"):
        raise ParameterError(f"`excerpt={shown(excerpt)}` must be what a test is given.")
    return FALSE_ALARM_PER_DATA_SET / N_TESTS * excerpt.share


def chi_squared_tail(value: Any, degrees_of_freedom: Any) -> Any:
    """Return the probability of a chi-squared number above a value."""
    return gammaincc(np.asarray(degrees_of_freedom) / 2, np.asarray(value) / 2)


# The tails of `scipy.stats` are the same numbers, but to load it takes longer than an estimation.


def poisson_tail(count: Any, mean: Any) -> Any:
    """Return the probability that a Poisson number is at least `count`.

    >>> bool(poisson_tail(0, 2.0) == 1.0), round(float(poisson_tail(1, 2.0)), 4)
    (True, 0.8647)
    """
    return gammainc(count, mean)


def binomial_tail(count: int, n_trials: int, chance: float) -> float:
    """Return the probability that at least `count` of so many trials succeed.

    >>> binomial_tail(0, 4, 0.5), binomial_tail(4, 4, 0.5)
    (1.0, 0.0625)
    """
    return float(bdtrc(count - 1, n_trials, chance))


def gamma_tail(value: float, draws: Floats) -> float:
    """Return the tail above a value of the gamma distribution with mean and variance of draws."""
    mean = float(np.mean(draws))
    variance = float(np.var(draws))
    if variance <= 0:
        return 1.0 if value <= mean else 0.0
    return float(gammaincc(mean**2 / variance, value * mean / variance))


def normal_scores(series: Floats) -> Floats:
    """Replace the values of each column by quantiles of a normal distribution, in their order."""
    ranks = np.argsort(np.argsort(series, axis=0), axis=0)
    return ndtri((ranks + 0.5) / len(series))
