"""Which capacities are not zero: p-values, and the Benjamini-Hochberg rule."""

from __future__ import annotations

import numpy as np

from ..typing import Floats
from ._second_order import SecondOrder

ENOUGH_FUNCTIONS = 100  # to see from the functions themselves how those of capacity zero scatter
AGREEMENT = 0.1
MOST_WIDER = 1.5  # more is not the scatter of zeros but capacity


def p_values(found: SecondOrder) -> Floats:
    """The probability that a function of zero capacity comes out as large as it did.

    N C is then a sum of squares of normal variables with the eigenvalues of `spread` as weights, close to a
    chi-squared variable with nu = tr² / tr(spread²) degrees of freedom (Satterthwaite).
    """
    from scipy.special import chdtrc

    power = found.unexplained
    if power <= 0 or not np.any(found.null_mean > 0):
        return (found.plain <= 1e-14).astype(float)
    nu = _freedom(found)
    ratio = found.plain / np.maximum(found.null_mean, 1e-300)
    if len(ratio) >= ENOUGH_FUNCTIONS:
        # Where zeros scatter more than they should, the lower part of all functions shows by how much, if its
        # shape is that of zeros.
        low, middle = null_scale(found, 0.1), null_scale(found, 0.4)
        if 1 < middle < MOST_WIDER and abs(low / middle - 1) < AGREEMENT:
            ratio = ratio / middle
    return chdtrc(nu, nu * ratio)


def null_scale(found: SecondOrder, p: float) -> float:
    """The p-quantile of all functions, relative to where it would be if all were zeros; capacity only raises it."""
    from scipy.special import chdtri

    nu = _freedom(found)
    ratio = found.plain / np.maximum(found.null_mean, 1e-300)
    return float(np.quantile(ratio, p)) * nu / float(chdtri(nu, 1 - p))


def _freedom(found: SecondOrder) -> float:
    return found.unexplained**2 / max(float(np.sum(found.spread**2)), 1e-300)


def benjamini_hochberg(p: Floats, rate: float) -> Floats:
    """True where a function is declared not zero, with at most this share of false declarations on average.

    >>> benjamini_hochberg(np.array([0.001, 0.03, 0.9, 0.02]), rate=0.05).tolist()
    [True, True, False, True]
    """
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    out = np.zeros(len(p), dtype=bool)
    if len(passed):
        out[order[: passed[-1] + 1]] = True
    return out
