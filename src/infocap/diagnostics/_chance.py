"""Tails of the distributions that statistics have by chance."""

from typing import Any

import numpy as np
from scipy.special import gammaincc, ndtri

from ..typing import Floats


def chi_squared_tail(value: Any, degrees_of_freedom: Any) -> Any:
    """Return the probability of a chi-squared number above a value."""
    return gammaincc(np.asarray(degrees_of_freedom) / 2, np.asarray(value) / 2)


def gamma_tail(value: float, draws: Floats) -> float:
    """Return the probability above a value of the gamma distribution with the moments of draws."""
    mean = float(np.mean(draws))
    variance = float(np.var(draws))
    if variance <= 0:
        return 1.0 if value <= mean else 0.0
    return float(gammaincc(mean**2 / variance, value * mean / variance))


def normal_scores(series: Floats) -> Floats:
    """Return numbers of a normal distribution in the order of each column."""
    ranks = np.argsort(np.argsort(series, axis=0), axis=0)
    return ndtri((ranks + 0.5) / len(series))
