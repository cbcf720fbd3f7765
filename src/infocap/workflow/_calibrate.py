"""calibrate: the parameters with which a simulated system comes closest to measured capacities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from .._formatting import counted
from .._validation import answers_unknown_parameters, require_positive
from ..errors import DataError
from ..typing import ArrayLike, Floats

# Step of the logarithms of the parameters for derivatives: noisy simulations do not resolve a
# smaller one.
LOG_STEP = 0.1
# Relative change of parameters and of chi² below which the fit ends, a small share of any error
# worth having.
TOLERANCE = 3e-3


@dataclass(frozen=True, eq=False)
class Calibration:
    """Fitted parameters of a simulated system, with their standard errors; `calibrate` makes one.

    Attributes
    ----------
    parameters, standard_error
        The value and the standard error of each parameter. Where the following factor exceeds 1,
        errors are longer by it::

            sqrt(chi2 / degrees_of_freedom)
    correlation
        The correlations between the logarithms of the parameters, (parameters, parameters).
    chi2
        The sum of squared differences from the measured values, in units of their standard errors.
    degrees_of_freedom
        The number of values less the number of parameters.
    """

    parameters: dict[str, float]
    standard_error: dict[str, float]
    correlation: Floats
    chi2: float
    degrees_of_freedom: int


@answers_unknown_parameters
def calibrate(
    predict: Callable[..., ArrayLike],
    start: Mapping[str, float],
    measured: ArrayLike,
    errors: ArrayLike,
) -> Calibration:
    """Fit positive parameters of a simulated system to measured capacities.

    The differences are weighted with the standard errors of the measured values.

    Parameters
    ----------
    predict
        A function that takes the parameters by name, simulates the system, best always with the
        same seed, and gives as many numbers as are in `measured`.
    start
        The values of the parameters from which the fit starts.
    measured, errors
        Measured values and their standard errors. Values without an error, such as the constant's
        capacity, are left out.

    Returns
    -------
    Calibration
        The parameters with their standard errors and correlations, and chi².

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> system = lambda noise: infocap.systems.RandomFeatures(2, 10, noise=noise, seed=3)
    >>> measured = infocap.probe(system(0.02), basis, 1024, seed=7)
    >>> predict = lambda noise: infocap.probe(system(noise), basis, 1024, seed=1).unbiased
    >>> errors = np.sqrt(2) * measured.standard_error
    >>> found = calibrate(predict, {"noise": 0.1}, measured.unbiased, errors)
    >>> bool(abs(found.parameters["noise"] - 0.02) < 3 * found.standard_error["noise"])
    True
    """
    values = np.asarray(measured, dtype=float)
    standard_errors = np.asarray(errors, dtype=float)
    if values.shape != standard_errors.shape:
        raise DataError(
            f"measured has shape {values.shape} and errors {standard_errors.shape}; give one error "
            "for each value."
        )
    names = list(start)
    used = (standard_errors > 0) & np.isfinite(standard_errors)
    n_values = int(np.sum(used))
    degrees_of_freedom = n_values - len(names)
    if degrees_of_freedom < 1 or not names:
        raise DataError(
            f"{counted(n_values, 'value')} with an error cannot determine "
            f"{counted(len(names), 'parameter')}; give at least one parameter, and more values "
            "than parameters."
        )

    @cache
    def residuals(*logarithms: float) -> Floats:
        point = dict(zip(names, np.exp(logarithms).tolist(), strict=True))
        predicted = np.asarray(predict(**point), dtype=float)
        if predicted.shape != values.shape or not np.isfinite((predicted - values)[used]).all():
            raise DataError(
                f"predict gave shape {predicted.shape} for {point} and measured has "
                f"{values.shape}; give equally many values in both, and finite ones wherever there "
                "is an error."
            )
        return (predicted - values)[used] / standard_errors[used]

    def derivatives(logarithms: Floats) -> Floats:
        residuals_here = residuals(*logarithms)
        columns = []
        for step in LOG_STEP * np.eye(len(names)):
            change = residuals(*(logarithms + step)) - residuals_here
            columns.append(change / LOG_STEP)
        return np.column_stack(columns)

    fit = scipy.optimize.least_squares(
        lambda logarithms: residuals(*logarithms),
        np.log([require_positive(name, start[name]) for name in names]),
        derivatives,
        xtol=TOLERANCE,
        ftol=TOLERANCE,
    )
    if np.linalg.matrix_rank(fit.jac) < len(names):
        raise DataError(
            f"the values predicted do not tell {names} apart; leave out a parameter that has no "
            "effect."
        )
    chi2 = 2 * float(fit.cost)
    covariance = np.linalg.inv(fit.jac.T @ fit.jac) * max(1.0, chi2 / degrees_of_freedom)
    deviation = np.sqrt(np.diag(covariance))
    parameters = np.exp(fit.x)
    # The error of a logarithm is a relative error.
    errors_of_parameters = parameters * deviation
    return Calibration(
        parameters=dict(zip(names, parameters.tolist(), strict=True)),
        standard_error=dict(zip(names, errors_of_parameters.tolist(), strict=True)),
        correlation=covariance / np.outer(deviation, deviation),
        chi2=chi2,
        degrees_of_freedom=degrees_of_freedom,
    )
