"""calibrate: the parameters of a simulated system for which its capacities come closest to measured ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from .._validation import positive
from ..errors import DataError
from ..typing import ArrayLike, Floats

# Step of the logarithms of the parameters for derivatives: noisy simulations do not resolve a smaller one.
STEP = 0.1
# Relative change of parameters and of chi² below which the fit ends, a small part of any error worth having.
SETTLED = 3e-3


@dataclass(frozen=True, eq=False)
class Calibration:
    """Fitted parameters and their standard errors, longer by sqrt(chi2 / degrees_of_freedom) where that exceeds 1."""

    parameters: dict[str, float]
    standard_error: dict[str, float]
    correlation: Floats  # (parameters, parameters), of their logarithms
    chi2: float
    degrees_of_freedom: int


def calibrate(
    predict: Callable[..., ArrayLike],
    start: Mapping[str, float],
    measured: ArrayLike,
    errors: ArrayLike,
) -> Calibration:
    """Fit positive parameters of a simulated system to measured capacities, weighted with their errors.

    `predict` takes the parameters by name, simulates the system, best always with the same seed, and gives as many
    numbers as are in `measured`; values without an error, such as the constant's capacity, are left out.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> system = lambda noise: infocap.systems.RandomFeatures(2, 10, noise=noise, seed=3)
    >>> measured = infocap.probe(system(0.02), basis, 1024, seed=7)
    >>> predict = lambda noise: infocap.probe(system(noise), basis, 1024, seed=1).unbiased
    >>> found = calibrate(predict, {"noise": 0.1}, measured.unbiased, np.sqrt(2) * measured.standard_error)
    >>> bool(abs(found.parameters["noise"] - 0.02) < 3 * found.standard_error["noise"])
    True
    """
    values, widths, names = (
        np.asarray(measured, dtype=float),
        np.asarray(errors, dtype=float),
        list(start),
    )
    told = (widths > 0) & np.isfinite(widths)
    freedom = int(np.sum(told)) - len(names)
    if values.shape != widths.shape or freedom < 1 or not names:
        raise DataError(
            f"{widths.size} errors of {values.size} values cannot tell {len(names)} parameters; give more."
        )

    @cache
    def residuals(*logarithms: float) -> Floats:
        point = dict(zip(names, np.exp(logarithms).tolist(), strict=True))
        found = np.asarray(predict(**point), dtype=float)
        if found.shape != values.shape or not np.isfinite((found - values)[told]).all():
            said = f"predict gave shape {found.shape} for {point} and measured has {values.shape}"
            raise DataError(
                f"{said}; give equally many values in both, and finite ones wherever there is an error."
            )
        return (found - values)[told] / widths[told]

    def slopes(logarithms: Floats) -> Floats:
        here, steps = residuals(*logarithms), STEP * np.eye(len(names))
        return np.column_stack([(residuals(*(logarithms + step)) - here) / STEP for step in steps])

    first = np.log([positive(name, start[name]) for name in names])
    found = scipy.optimize.least_squares(
        lambda logarithms: residuals(*logarithms), first, slopes, xtol=SETTLED, ftol=SETTLED
    )
    chi2 = 2 * float(found.cost)
    if np.linalg.matrix_rank(found.jac) < len(names):
        raise DataError(
            f"the values predicted do not tell {names} apart; leave out a parameter that has no effect."
        )
    covariance = np.linalg.inv(found.jac.T @ found.jac) * max(1.0, chi2 / freedom)
    deviation, best = np.sqrt(np.diag(covariance)), np.exp(found.x)
    parameters, error = (
        dict(zip(names, one.tolist(), strict=True)) for one in (best, best * deviation)
    )
    return Calibration(
        parameters, error, covariance / np.outer(deviation, deviation), chi2, freedom
    )
