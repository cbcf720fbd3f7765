"""calibrate: the parameters of a simulated system for which its capacities come closest to measured ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._check import positive
from ..errors import DataError, ParameterError
from ..result._capacity_result import CapacityResult
from ..typing import ArrayLike, Floats
from ._estimate import probe

# Relative steps of the parameters for derivatives: capacities of a noisy simulation do not resolve smaller ones.
STEP = 0.1
# Relative change of the parameters below which they have settled, a small part of any error worth having.
SETTLED = 3e-3


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Fitted parameters with their standard errors, and how well the system then agrees with the measurement.

    `chi2` is the sum of squared differences in units of their errors. Where it exceeds `degrees_of_freedom`, the
    standard errors of the parameters are longer by the root of the ratio.
    """

    parameters: dict[str, float]
    standard_error: dict[str, float]
    correlation: Floats  # (parameters, parameters), of their logarithms
    chi2: float
    degrees_of_freedom: int
    predicted: Floats  # what the system gives, in the shape of the measured values

    def __repr__(self) -> str:
        lines = [f"Calibration: chi² {self.chi2:.1f} for {self.degrees_of_freedom} degrees of freedom"]
        errors = self.standard_error
        return "\n".join(
            [*lines, *(f"  {name} = {one:.3g} ± {errors[name]:.2g}" for name, one in self.parameters.items())]
        )


def calibrate(
    make_system: Callable[..., Any],
    start: Mapping[str, float],
    measured: CapacityResult | tuple[ArrayLike, ArrayLike],
    *,
    predict: Callable[[Any], ArrayLike] | None = None,
    seed: int | None = 1,
) -> Calibration:
    """Fit positive parameters of a simulated system to a measured profile of capacities, by least squares.

    Parameters
    ----------
    make_system
        A function of the parameters, by name, that makes the system, as for `sweep`.
    start
        The parameters with their values to start from, all above zero: they are varied by factors.
    measured
        A result with error bars, whose capacities are compared one by one; or values and their errors, with `predict`.
    predict
        A function of the system that gives the numbers to compare. By default it is `probe` with the basis, method and
        number of samples of the measured result and always the same `seed`, so that chance is the same at each step.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> make = lambda noise: infocap.systems.RandomFeatures(2, 10, noise=noise, seed=3)
    >>> measured = infocap.probe(make(0.02), basis, 1024, seed=7)
    >>> found = calibrate(make, {"noise": 0.1}, measured)
    >>> bool(abs(found.parameters["noise"] - 0.02) < 3 * found.standard_error["noise"])
    True
    """
    from scipy.optimize import least_squares

    values, errors, compared = _compared(measured, predict, seed)
    names = list(start)
    first = np.log([positive(name, start[name]) for name in names])
    if len(values) <= len(names):
        raise DataError(f"{len(values)} measured values cannot tell {len(names)} parameters; fit fewer.")

    def named(logarithms: ArrayLike) -> dict[str, float]:
        return dict(zip(names, np.exp(logarithms).tolist(), strict=True))

    @cache
    def residuals(*logarithms: float) -> Floats:
        return (np.asarray(compared(make_system(**named(logarithms))), dtype=float) - values) / errors

    def slopes(logarithms: Floats) -> Floats:
        here, steps = residuals(*logarithms), STEP * np.eye(len(names))
        return np.column_stack([(residuals(*(logarithms + step)) - here) / STEP for step in steps])

    found = least_squares(lambda logarithms: residuals(*logarithms), first, slopes, xtol=SETTLED, ftol=SETTLED)
    chi2, freedom = 2 * float(found.cost), len(values) - len(names)
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * max(1.0, chi2 / freedom)
    deviation = np.sqrt(np.diag(covariance))
    parameters = named(found.x)
    return Calibration(
        parameters,
        {name: parameters[name] * float(one) for name, one in zip(names, deviation, strict=True)},
        covariance / np.maximum(np.outer(deviation, deviation), 1e-300),
        chi2,
        freedom,
        values + errors * found.fun,
    )


def _compared(
    measured: CapacityResult | tuple[ArrayLike, ArrayLike], predict: Callable[[Any], ArrayLike] | None, seed: int | None
) -> tuple[Floats, Floats, Callable[[Any], ArrayLike]]:
    """Measured values, the errors of their differences from the simulated ones, and what simulates them."""
    if not isinstance(measured, CapacityResult):
        if predict is None:
            raise ParameterError("values and errors alone do not say how to simulate them; give `predict` too.")
        values, errors = (np.asarray(one, dtype=float) for one in measured)
        if values.ndim != 1 or values.shape != errors.shape or not np.all(errors > 0):
            raise DataError(f"measured has shapes {values.shape} and {errors.shape}; give as many errors, all above 0.")
        return values, errors, predict
    if measured.unbiased is None or measured.standard_error is None:
        raise ParameterError(
            f"method {measured.method!r} gives no error bars to weigh capacities; use control-variate."
        )
    told = measured.standard_error > 0  # the constant has no error, and nothing to say

    def simulated(system: Any) -> Floats:
        found = probe(system, measured.basis, measured.n_samples, seed=seed, method=measured.method)
        return (found.capacity if found.unbiased is None else found.unbiased)[told]

    return measured.unbiased[told], np.sqrt(2) * measured.standard_error[told], simulated
