"""The capacity for a user's own function, from what was measured for the basis functions."""

import numpy as np

from ..basis._product import ProductBasis
from ..designs import draw
from ..errors import DataError, ParameterError, warn
from ..typing import Floats, Target

MOST_TERMS = 3000  # least squares costs L² memory; in larger bases coefficients are plain averages
FIT_POINTS, CHECK_POINTS = 4, 2**17  # points of the fit for each function, and points that correct it
UNSEEN = 0.01  # the share of a target outside the basis that is worth a warning


def capacity_of(target: Target, basis: ProductBasis, coordinates: tuple[Floats, ...]) -> float:
    """C(y) = |P_X y|² / |y|², where y = sum_l c_l y_l and the data give the coordinates of every P_X y_l.

    A least-squares fit of the c_l is exact for what lies in the basis, but may fit the rest too well. So its residual
    is averaged over many further points, which corrects the c_l and gives the power outside the basis.
    """
    if not coordinates:
        raise ParameterError(
            "this result does not hold the coordinates of its functions (a CSV file or a very large basis); "
            "save to NetCDF, or estimate with fewer functions."
        )
    coefficients = np.zeros(len(basis))
    if len(basis) <= MOST_TERMS:
        u = draw(basis, 2 ** int(np.ceil(np.log2(max(FIT_POINTS * len(basis), 4096)))), seed=0, blocks=1)
        coefficients = np.linalg.lstsq(basis(u), _values(target, u), rcond=None)[0]
    u = draw(basis, CHECK_POINTS, seed=1, blocks=1)  # one net: the most even points for an average
    values = _values(target, u)
    coefficients += basis.sum_over(u, values - basis.combine(u, coefficients)) / len(u)
    outside = float(np.mean((values - basis.combine(u, coefficients)) ** 2))
    power = float(np.sum(coefficients**2)) + outside
    if not (np.isfinite(power) and power > 0):
        raise DataError(f"the target's mean square is {power}; it must be finite and not zero.")
    if outside > UNSEEN * power:
        warn(
            f"{outside / power:.1%} of the target's power lies outside the basis and counts as not computed; "
            "raise the degree to see more of it."
        )
    whole, first, second = (float(np.sum((part @ coefficients) ** 2)) / power for part in coordinates)
    return float(np.clip(2 * whole - (first + second) / 2, 0.0, 1.0))


def _values(target: Target, u: Floats) -> Floats:
    values = np.asarray(target(u), dtype=float)
    if values.shape != (len(u),):
        raise DataError(
            f"the target gave shape {values.shape}; it must give ({len(u)},), one value an input."
        )
    return values
