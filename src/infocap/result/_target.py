"""The capacity for a user's own function, from what was measured for the basis functions."""

from typing import TYPE_CHECKING

import numpy as np

from .._formatting import exceeds, with_error
from .._validation import require_function_of
from ..basis import ProductBasis
from ..designs import draw
from ..errors import DataError, warn
from ..kernels import (
    SMALLEST_DIVISOR,
    jackknife_error_of_groups,
    jackknife_error_of_stretches,
)
from ..typing import Booleans, Floats, Integers, Target

if TYPE_CHECKING:
    from ._capacity_result import CapacityResult

# Functions up to which coefficients are fitted: least squares costs L² memory; for larger bases
# they are averages.
MAX_FUNCTIONS_FOR_FIT = 3000
# Points of the fit: so many for each function, and at least so many.
FIT_POINTS_PER_FUNCTION = 4
MIN_FIT_POINTS = 4096
# Further points that correct the fit and give the power outside the basis.
CHECK_POINTS = 2**17
# Fraction of a target's power outside the basis from which on it is worth a warning.
MAX_FRACTION_OUTSIDE = 0.01


class Capacity(float):
    """A capacity, or a sum of capacities: a number with an attribute `standard_error`.

    The standard error is None where it is not known.

    >>> Capacity(0.91234, 0.0123), Capacity(0.5) + 0.1, Capacity(12.3, 0.2, maximum=20)
    (0.912 ± 0.012, 0.6, 12.30 ± 0.20)
    >>> Capacity(0.3, 347.0, maximum=20)
    cannot be told
    """

    standard_error: float | None
    maximum: float

    def __new__(
        cls,
        value: float,
        standard_error: float | None = None,
        maximum: float = 1.0,
        lowest: float = 0.0,
    ) -> "Capacity":
        """Keep the value within [lowest, maximum]; a single capacity is at most 1."""
        capacity = super().__new__(cls, min(max(value, lowest), maximum))
        capacity.standard_error = standard_error
        capacity.maximum = maximum
        return capacity

    @property
    def can_be_told(self) -> bool:
        """Whether the standard error is within the range that the capacity may have."""
        return self.standard_error is None or not exceeds(self.standard_error, self.maximum)

    def __repr__(self) -> str:
        if np.isnan(self):
            return "cannot be had"
        return with_error(float(self), self.standard_error, self.maximum)


def sum_over(result: "CapacityResult", chosen: Booleans | Integers) -> Capacity:
    """Return the sum of the unbiased capacities of chosen functions, with its standard error.

    They are chosen by a mask or by their numbers.

    Stretches or groups of samples that were left out tell how far the sum scatters. A few groups
    tell it roughly, so the error is at least that of independent functions. What the total's error
    holds beyond its jackknife, such as a bias that is left, is shared out as the squared errors of
    functions are. Without groups the errors of the degrees are shared out like that, or all of the
    total's error.
    """
    capacities = result.capacity if result.unbiased is None else result.unbiased
    if result.recorded_law is not None:
        # Functions that cannot be told apart add nothing.
        value = float(np.nansum(capacities[chosen]))
        if result.without_stretches is None:  # as from a table
            return Capacity(value, _from_degree_errors(result, chosen), result.rank)
        # What neighbouring stretches share is in these numbers.
        sums = np.nansum(result.without_stretches[:, chosen], axis=1)
        return Capacity(value, jackknife_error_of_groups(sums), result.rank)
    value = float(capacities[chosen].sum())
    if result.without_stretches is not None:
        error = jackknife_error_of_stretches(result.without_stretches[:, chosen].sum(axis=1))
        return Capacity(value, error, result.rank)
    if result.standard_error is None:
        return Capacity(value, None, result.rank)
    if result.without_groups is None and result.degree_errors is not None:
        return Capacity(value, _from_degree_errors(result, chosen), result.rank)
    if result.total_standard_error is None:
        # A method of the user's own, which says nothing about correlations.
        return Capacity(value, float(np.linalg.norm(result.standard_error[chosen])), result.rank)
    error_of_all = max(float(np.linalg.norm(result.standard_error)), SMALLEST_DIVISOR)
    error_of_chosen = float(np.linalg.norm(result.standard_error[chosen]))
    fraction = error_of_chosen / error_of_all
    if result.without_groups is None:
        return Capacity(value, fraction * result.total_standard_error, result.rank)
    jackknife = jackknife_error_of_groups(result.without_groups[:, chosen].sum(axis=1))
    jackknife_of_all = jackknife_error_of_groups(result.without_groups.sum(axis=1))
    beyond = np.sqrt(max(result.total_standard_error**2 - jackknife_of_all**2, 0.0))
    error = float(np.hypot(max(jackknife, error_of_chosen), fraction * beyond))
    return Capacity(value, error, result.rank)


def _from_degree_errors(result: "CapacityResult", chosen: Booleans | Integers) -> float | None:
    """Return the standard error of a sum from the known errors of whole degrees.

    The squared error of a degree is shared out as the squared errors of its functions are.
    """
    if result.degree_errors is None or result.standard_error is None:
        return None
    degrees = result.basis.degrees
    squares = np.nan_to_num(result.standard_error) ** 2
    of_degree = np.bincount(degrees, squares)
    of_chosen = np.bincount(degrees[chosen], squares[chosen], len(of_degree))
    shares = of_chosen / np.maximum(of_degree, SMALLEST_DIVISOR)
    n_degrees = min(len(shares), len(result.degree_errors))
    known = np.nan_to_num(result.degree_errors[:n_degrees])
    return float(np.sqrt(np.sum(shares[:n_degrees] * known**2)))


def sums_over_degrees(result: "CapacityResult") -> list[Capacity]:
    """Return the sum of the unbiased capacities of each degree from 0 on.

    A sum is at most the number of its functions, which is its `maximum`.
    """
    degrees = result.basis.degrees
    n_told_apart = np.bincount(degrees, result.told_apart, result.basis.max_degree + 1)
    sums = []
    for degree, size in enumerate(n_told_apart):
        one = sum_over(result, degrees == degree)
        one.maximum = float(min(size, result.rank))
        sums.append(one)
    return sums


def untold_degrees(result: "CapacityResult") -> list[int]:
    """Return the degrees whose sum has an error larger than its range, so that it is not shown."""
    sums = sums_over_degrees(result)
    return [degree for degree, one in enumerate(sums) if not one.can_be_told]


def known_sums_by_degree(result: "CapacityResult") -> Floats:
    """Return the capacity of each degree as pictures show it, 0 where it cannot be told."""
    sums = result.sums_by_degree()
    sums[untold_degrees(result)] = 0.0
    return sums


def errors_by_degree(result: "CapacityResult") -> Floats | None:
    """Return the standard error of the sum of each degree; None where the method gives none."""
    if result.standard_error is None:
        return None
    # An error of None becomes NaN.
    return np.array([one.standard_error for one in sums_over_degrees(result)], dtype=float)


def expand(target: Target, basis: ProductBasis) -> tuple[Floats, float]:
    """Return a target's coefficients in the basis, (terms,), and its mean square.

    A least-squares fit is exact for what lies in the basis, but may fit the rest too well. So its
    residual is averaged over many further points, which corrects the coefficients and gives the
    power outside the basis.
    """
    coefficients = np.zeros(len(basis))
    if len(basis) <= MAX_FUNCTIONS_FOR_FIT:
        n_points = max(FIT_POINTS_PER_FUNCTION * len(basis), MIN_FIT_POINTS)
        next_power_of_two = 2 ** int(np.ceil(np.log2(n_points)))
        u = _drawn_inputs(basis, next_power_of_two, seed=0)
        values = _values(target, u)[basis.memory :]
        coefficients = np.linalg.lstsq(basis(u), values, rcond=None)[0]
    u = _drawn_inputs(basis, CHECK_POINTS, seed=1)
    values = _values(target, u)[basis.memory :]
    residual = values - basis.combine(u, coefficients)
    coefficients += basis.sum_over_samples(u, residual) / len(values)
    power_outside = float(np.mean((values - basis.combine(u, coefficients)) ** 2))
    power = float(np.sum(coefficients**2)) + power_outside
    if not (np.isfinite(power) and power > 0):
        raise DataError(f"the target's mean square is {power}; it must be finite and not zero.")
    if power_outside > MAX_FRACTION_OUTSIDE * power:
        warn(
            f"{power_outside / power:.1%} of the target's power lies outside the basis; raise the "
            "degree to see more of it."
        )
    return coefficients, power


def bias_corrected(
    coefficients: Floats,
    *,
    coordinates: Floats,
    noise: Floats,
    unbiased: Floats,
    standard_error: Floats,
    n_samples: int,
) -> Capacity:
    """Return the capacity of a target without its bias, and its standard error.

    A target's coefficients are sums of those of the functions, so its bias is a sum over pairs of
    functions. Only that of each function with itself was measured; bias and variance of the others
    are those of normal residuals (docs/theory.md), scaled so that every single function has what
    was measured for it.

    Parameters
    ----------
    coefficients
        What the target holds of every function, (terms,), for a target of mean square 1.
    coordinates
        The coefficients of the functions along directions of the readouts in which G = 1, (rank,
        terms).
    noise
        The covariance, along the same directions, of what the fit leaves of the readouts, (rank,
        rank).
    unbiased, standard_error
        The capacities that were measured for the functions, without bias, and their standard
        errors, (terms,).
    n_samples
        The number of samples.
    """
    projection = coordinates @ coefficients
    squares = coefficients**2
    bias, variance = _bias_and_variance(projection[:, None], np.sum(squares), noise, n_samples)
    bias_of_each, variance_of_each = _bias_and_variance(coordinates, 1.0, noise, n_samples)
    measured_bias_of_each = np.sum(coordinates**2, axis=0) - unbiased
    correction = squares @ (measured_bias_of_each - bias_of_each)
    widening = (squares @ standard_error**2) / max(squares @ variance_of_each, SMALLEST_DIVISOR)
    value = float(projection @ projection - bias[0] - correction)
    return Capacity(value, float(np.sqrt(variance[0] * widening)))


def _bias_and_variance(
    projection: Floats, power: float, noise: Floats, n_samples: int
) -> tuple[Floats, Floats]:
    """Return bias and variance of |projection|² for functions of mean square `power`.

    The residuals are taken to be normal.

    `projection` (rank, functions) are the functions' coefficients on the readouts.
    """
    rank = len(noise)
    trace = float(np.trace(noise))
    unseen_power = power - np.sum(projection**2, axis=0)
    noisy_power = np.einsum("ij,ij->j", projection, noise @ projection)
    bias = (trace * unseen_power + (rank - trace) * noisy_power) / n_samples
    first_order = np.maximum(4 * unseen_power * noisy_power - 2 * noisy_power**2, 0.0) / n_samples
    trace_of_square = np.sum(noise**2)
    second_order = 2 * np.abs(bias) * trace_of_square / (max(trace, SMALLEST_DIVISOR) * n_samples)
    return bias, first_order + second_order


def _drawn_inputs(basis: ProductBasis, n_points: int, seed: int) -> Floats:
    """Return inputs for a mean over so many points, in a single net, which is the most even.

    Where slow time is one more input, it is the last column.
    """
    blocks = None if basis.of_sequences else 1
    u = draw(basis, n_points + basis.memory, seed=seed, blocks=blocks)
    n_times = len(basis.column_families) - u.shape[1]
    generator = np.random.default_rng([seed, 1])
    times = generator.uniform(-1, 1, (len(u), n_times))
    return np.hstack([u, times])


def _values(target: Target, u: Floats) -> Floats:
    """Return the values of a target at the inputs, checked."""
    if not callable(target):
        raise DataError(
            f"the target {target!r} is no function; give one of inputs u, lambda u: np.sin(3 * "
            "u[:, 0])."
        )
    require_function_of("target", target, "inputs")
    values = np.asarray(target(u))
    if values.shape != (len(u),) or values.dtype.kind not in "fiub":
        raise DataError(
            f"the target gave {values.dtype} {values.shape}; give ({len(u)},) real numbers, one "
            "per input."
        )
    return values.astype(float)
