"""calibrate: the parameters with which a simulated system comes closest to measured capacities."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy

from .._formatting import counted
from .._validation import (
    checks_arguments,
    require_number,
    require_numbers,
    require_positive,
    require_whole_number,
)
from ..errors import DataError, warn
from ..typing import ArrayLike, Floats

# Step of the logarithms of the parameters for derivatives: noisy simulations do not resolve a
# smaller one.
LOG_STEP = 0.1
# Relative change of parameters and of chi² below which the fit ends, a small share of any error
# worth having.
TOLERANCE = 3e-3
# Minima whose chi² exceeds the best by at most this are kept: the data prefer the best of two by
# no more than exp(6 / 2) = 20 to 1.
MAX_EXCESS = 6.0
# Where chi² is a parabola, it is higher by MAX_EXCESS at so many standard errors from its minimum.
# Fits that end nearer to each other are one minimum.
MAX_ERRORS_APART = MAX_EXCESS**0.5


@dataclass(frozen=True, eq=False)
class Minimum:
    """Parameters for which chi² has a local minimum.

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
    """

    parameters: dict[str, float]
    standard_error: dict[str, float]
    correlation: Floats
    chi2: float

    def __str__(self) -> str:
        values = []
        for name, value in self.parameters.items():
            values.append(f"{name} = {value:.3g} ± {self.standard_error[name]:.2g}")
        return f"chi² {self.chi2:.4g} at {', '.join(values)}"


@dataclass(frozen=True, eq=False)
class Calibration:
    """Fitted parameters of a simulated system, from several starts; `calibrate` makes one.

    Attributes
    ----------
    minima
        Every minimum that was found within 6 of the best chi², the best first. Where there are
        several, the measured values do not tell which is right: predict with each of them, and give
        the spread of the predictions.
    chi2_of_starts
        Where the fit from each start ended, the best first, (starts,).
    degrees_of_freedom
        The number of values less the number of parameters.
    """

    minima: tuple[Minimum, ...]
    chi2_of_starts: Floats
    degrees_of_freedom: int

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the best minimum."""
        return self.minima[0].parameters

    @property
    def standard_error(self) -> dict[str, float]:
        """Their standard errors, which know of this minimum alone."""
        return self.minima[0].standard_error

    @property
    def correlation(self) -> Floats:
        """The correlations between the logarithms of the parameters at the best minimum."""
        return self.minima[0].correlation

    @property
    def chi2(self) -> float:
        """The smallest chi²."""
        return self.minima[0].chi2

    def __str__(self) -> str:
        starts = counted(len(self.chi2_of_starts), "start")
        degrees = counted(self.degrees_of_freedom, "degree")
        lines = [f"{len(self.minima)} of the minima found from {starts}, {degrees} of freedom:"]
        return "\n".join(lines + [f"  {minimum}" for minimum in self.minima])


@checks_arguments
def calibrate(
    predict: Callable[..., ArrayLike],
    start: Mapping[str, float],
    measured: ArrayLike,
    errors: ArrayLike,
    *,
    n_starts: int = 8,
    within: float = 3.0,
) -> Calibration:
    """Fit positive parameters of a simulated system to measured capacities, from several starts.

    The differences are weighted with the standard errors of the measured values. A fit from one
    start finds one local minimum, which need not be the best, nor the only good one. A warning says
    when several minima are about equally good.

    Parameters
    ----------
    predict
        A function that takes the parameters by name, simulates the system, best always with the
        same seed, and gives as many numbers as are in `measured`.
    start
        The values of the parameters from which the first fit starts.
    measured, errors
        Measured values and their standard errors. Values without an error, such as the constant's
        capacity, are left out.
    n_starts
        How many fits are made. All but the first start from Sobol points around `start`.
    within
        The factor by which these points differ from `start` at most, in each parameter.

    Returns
    -------
    Calibration
        The parameters with their standard errors and correlations, chi², and all good minima.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> system = lambda noise: infocap.systems.RandomFeatures(2, 10, noise=noise, seed=3)
    >>> measured = infocap.probe(system(0.02), basis, 1024, seed=7)
    >>> predict = lambda noise: infocap.probe(system(noise), basis, 1024, seed=1).unbiased
    >>> errors = np.sqrt(2) * measured.standard_error
    >>> found = calibrate(predict, {"noise": 0.1}, measured.unbiased, errors, n_starts=3)
    >>> bool(abs(found.parameters["noise"] - 0.02) < 3 * found.standard_error["noise"])
    True
    >>> len(found.minima)
    1
    """
    values = require_numbers("measured", measured, finite=False)
    standard_errors = require_numbers("errors", errors, finite=False)
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

    fits = []
    for logarithms in _log_starts(start, n_starts, within):
        fit = scipy.optimize.least_squares(
            lambda logarithms: residuals(*logarithms),
            logarithms,
            derivatives,
            xtol=TOLERANCE,
            ftol=TOLERANCE,
        )
        fits.append(fit)
    # The cost of a fit is half its chi².
    fits.sort(key=lambda fit: fit.cost)
    if np.linalg.matrix_rank(fits[0].jac) < len(names):
        raise DataError(
            f"the values predicted do not tell {names} apart; leave out a parameter that has no "
            "effect."
        )
    minima = _good_minima(fits, names, degrees_of_freedom)
    calibration = Calibration(
        minima=minima,
        chi2_of_starts=np.array([2 * fit.cost for fit in fits]),
        degrees_of_freedom=degrees_of_freedom,
    )
    if len(minima) > 1:
        listed = "; ".join(str(minimum) for minimum in minima)
        warn(
            f"{len(minima)} minima are about equally good: {listed}. The measured values do not "
            "tell which is right; predict with each of `minima`, or measure more."
        )
    return calibration


def _log_starts(start: Mapping[str, float], n_starts: int, within: float) -> Floats:
    """Return the logarithms of the starting values, (starts, parameters), `start` first.

    Of the unshuffled Sobol points the first is the corner 0, which is left out, and the second the
    centre.
    """
    require_whole_number("n_starts", n_starts, minimum=1)
    require_number("within", within, minimum=1.0)
    centre = np.log([require_positive(name, value) for name, value in start.items()])
    sampler = scipy.stats.qmc.Sobol(len(centre), scramble=False)
    unit = sampler.random_base2(n_starts.bit_length())[1 : n_starts + 1]
    return centre + np.log(within) * (2 * unit - 1)


def _good_minima(fits: list[Any], names: list[str], degrees_of_freedom: int) -> tuple[Minimum, ...]:
    """Return the minima within MAX_EXCESS of the best chi², from fits sorted by chi²."""
    minima: list[Minimum] = []
    for fit in fits:
        chi2 = 2 * float(fit.cost)
        is_good = chi2 <= 2 * fits[0].cost + MAX_EXCESS
        if not is_good or np.linalg.matrix_rank(fit.jac) < len(names):
            continue
        inflation = max(1.0, chi2 / degrees_of_freedom)
        covariance = np.linalg.inv(fit.jac.T @ fit.jac) * inflation
        deviation = np.sqrt(np.diag(covariance))
        parameters = np.exp(fit.x)
        # The error of a logarithm is a relative error.
        errors_of_parameters = parameters * deviation
        minimum = Minimum(
            parameters=dict(zip(names, parameters.tolist(), strict=True)),
            standard_error=dict(zip(names, errors_of_parameters.tolist(), strict=True)),
            correlation=covariance / np.outer(deviation, deviation),
            chi2=chi2,
        )
        if not any(_same(minimum, other) for other in minima):
            minima.append(minimum)
    return tuple(minima)


def _same(minimum: Minimum, other: Minimum) -> bool:
    """Whether two fits ended at one minimum: near each other in units of the other's errors."""
    for name, value in other.parameters.items():
        relative_error = other.standard_error[name] / value
        distance = abs(np.log(minimum.parameters[name] / value))
        if distance > MAX_ERRORS_APART * relative_error:
            return False
    return True
