"""The capacity for a user's own function, from what was measured for the basis functions."""

from __future__ import annotations

import numpy as np

from .._sampling import draw
from ..basis import ProductBasis
from ..errors import DataError, ParameterError, warn
from ..typing import Floats, Target

MOST_TERMS = 3000  # of a least-squares fit; beyond, coefficients are plain averages
OUTSIDE = 0.01  # share of a target outside the basis that is worth a warning


def capacity_of(target: Target, basis: ProductBasis, coordinates: tuple[Floats, ...]) -> float:
    """C(y) = |P_X y|² / |y|², where y = sum_l c_l y_l and the data give the coordinates of every P_X y_l."""
    if not coordinates:
        raise ParameterError(
            "this result does not hold the coordinates of its functions (a CSV file or a very large basis); "
            "save to NetCDF, or estimate with fewer functions."
        )
    coefficients, power = expand(target, basis)
    inside = float(np.sum(coefficients**2)) / power
    if inside < 1 - OUTSIDE:
        warn(
            f"{1 - inside:.1%} of the target's power lies outside the basis and counts as not computed; "
            "raise the degree to see more of it."
        )
    whole, first, second = (float(np.sum((part @ coefficients) ** 2)) / power for part in coordinates)
    return float(np.clip(2 * whole - (first + second) / 2, 0.0, 1.0))


def expand(target: Target, basis: ProductBasis) -> tuple[Floats, float]:
    """Coefficients of a function in the basis, and its mean square, both under the input distribution."""
    n = 2 ** int(np.ceil(np.log2(max(4 * min(len(basis), MOST_TERMS), 4096))))
    u = draw(basis, n, seed=0)
    values = np.asarray(target(u), dtype=float)
    if values.shape != (n,):
        raise DataError(f"the target gave shape {values.shape} for {n} inputs; it must give ({n},).")
    power = float(np.mean(values**2))
    if not (np.isfinite(power) and power > 0):
        raise DataError(f"the target's mean square is {power}; it must be finite and not zero.")
    if len(basis) <= MOST_TERMS:
        y = basis(u)
        coefficients = np.linalg.lstsq(y, values, rcond=None)[0]
        rest = values - y @ coefficients
        return coefficients, float(np.sum(coefficients**2) + np.mean(rest**2))
    return basis.sum_over(u, values) / n, power
