"""What functions of its own inputs leave of each row's readouts: the residuals that all tests of order use.

Given the inputs of its own row (with memory: of its own past) a readout knows nothing else, neither
the inputs of other rows nor the time. So the residuals of a good data set are uncorrelated with
every function of these. The fit need not be good for that: a misfit is a function of the row's own
inputs, too, and rows in random order carry it to no other row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..basis import ProductBasis, delayed_basis, lowest_degrees
from ..typing import Floats

if TYPE_CHECKING:
    from ._excerpt import Excerpt

# Rows for each function of the fit, and the most functions. More functions leave less, but the time
# of the fit grows with their square.
MIN_ROWS_PER_FUNCTION = 8
MAX_FIT_FUNCTIONS = 64
# The same for functions of the past, which are more.
MAX_DELAYED_FIT_FUNCTIONS = 160
# Directions of the readouts that are looked at: those that functions predict best, and those that
# vary most.
N_PREDICTED_DIRECTIONS = 16
N_PRINCIPAL_DIRECTIONS = 8
# Readouts count up to so many widths beyond their usual range, which holds 90 % of the values.
MAX_WIDTHS_OUTSIDE = 2.0
# Position of the usual range among the ordered values of a channel.
USUAL_RANGE = (0.05, 0.95)
# Relative variance of a direction below which it is rounding.
MIN_RELATIVE_VARIANCE = 1e-10
# Rounds of Huber's fit. In each, residuals beyond so many robust standard deviations count as that.
N_HUBER_ROUNDS = 2
HUBER_LIMIT = 2.5
# Where no residual of some rows is beyond so many standard deviations, there is no outlier to care for.
NO_OUTLIER = 5.0
# Residuals that the tests use end at so many robust standard deviations: no single row decides.
MAX_RESIDUAL = 4.0
# Median absolute deviation of a normal distribution, in standard deviations.
NORMAL_MEDIAN_DEVIATION = 0.6745
# Residuals of a row in the logarithm of its misfit: no larger, and not zero.
MAX_MISFIT_RESIDUAL = 30.0
SMALLEST_MISFIT = 1e-3


@dataclass(frozen=True, eq=False)
class Residuals:
    """Readouts of consecutive rows, their fit by functions of their own inputs, and what it leaves."""

    h: Floats  # functions of low degree of each row's own inputs, mean 0, variance 1, (rows, functions)
    orthonormal: Floats  # all functions of the fit, orthonormal on these rows, (rows, functions)
    channels: (
        Floats  # readouts in widths of their usual range, extremes cut, mean 0, (rows, channels)
    )
    a: Floats  # directions of the whitened readouts, (rows, directions)
    fitted: Floats  # their fit, (rows, directions)
    scale: Floats  # robust standard deviation of what it leaves, (directions,)
    e: Floats  # uncorrelated combinations of what it leaves, variance 1, (rows, combinations)
    # Rows times the sum of squared correlations of all whitened readouts and all functions of the
    # fit. The directions `a` were chosen by their correlations, so they cannot tell whether there
    # is one.
    own_power: float
    own_degrees_of_freedom: int
    whitening: Floats  # makes the channels uncorrelated, (channels, rank)
    rank: int  # of the readouts
    power_of_functions: Floats  # the same for each of the functions h, (functions,)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.a)

    @cached_property
    def whitened(self) -> Floats:
        """All whitened readouts, (rows, rank): what capacities are computed from."""
        return self.channels @ self.whitening

    @cached_property
    def held_capacity(self) -> float:
        """The capacity of the functions of the fit in the directions, without its bias."""
        coefficients = self.orthonormal.T @ self.a
        held = float(np.sum(coefficients**2)) - coefficients.size
        return max(held / self.n_rows, 0.0)

    @cached_property
    def standardised(self) -> Floats:
        """What the fit leaves of each direction, in robust standard deviations, (rows, directions)."""
        return (self.a - self.fitted) / self.scale

    @cached_property
    def log_misfit(self) -> Floats:
        """Logarithm of the mean square of each row's standardised residuals, (rows,)."""
        limited = self.standardised.clip(-MAX_MISFIT_RESIDUAL, MAX_MISFIT_RESIDUAL)
        mean_square = np.einsum("ij,ij->i", limited, limited) / limited.shape[1]
        return np.log(mean_square + SMALLEST_MISFIT)

    @cached_property
    def fitted_channels(self) -> Floats:
        """The fit of each channel by least squares, (rows, channels)."""
        return self.orthonormal @ (self.orthonormal.T @ self.channels)

    @cached_property
    def channel_residuals(self) -> Floats:
        """What the fit leaves of each channel, mean square 1, (rows, channels)."""
        residuals = self.channels - self.fitted_channels
        return residuals / _root_mean_square(residuals)

    @cached_property
    def gains(self) -> Floats:
        """Products of what the fit leaves with the fit itself: by how much each gain is off."""
        return self.channel_residuals * self.fitted_channels


def residuals_of(excerpt: Excerpt) -> Residuals:
    """Fit the readouts of an excerpt by functions of their own inputs, and return what is left."""
    channels = _in_widths(excerpt)
    whitening = _whitening(channels)
    orthonormal = _orthonormal_functions(excerpt)
    correlations = (orthonormal.T @ channels) @ whitening
    a = channels @ (whitening @ _directions(correlations, whitening.shape[1]))
    fitted, scale = _huber_fit(orthonormal, a, excerpt.some)
    e = (a - fitted) / scale
    np.clip(e, -MAX_RESIDUAL, MAX_RESIDUAL, out=e)
    e -= orthonormal @ (orthonormal.T @ e)
    h = np.ascontiguousarray(excerpt.y.T)
    return Residuals(
        h=h,
        orthonormal=orthonormal,
        channels=channels,
        a=a,
        fitted=fitted,
        scale=scale,
        e=uncorrelated(e),
        own_power=float(np.sum(correlations**2)),
        own_degrees_of_freedom=(orthonormal.shape[1] - 1) * whitening.shape[1],
        rank=whitening.shape[1],
        whitening=whitening,
        power_of_functions=np.sum((h.T @ channels @ whitening) ** 2, axis=1) / len(h),
    )


def _in_widths(excerpt: Excerpt) -> Floats:
    """Return the channels in widths of their usual range, with extreme values cut."""
    n_sorted = excerpt.sorted.shape[1]
    low = excerpt.sorted[:, int(USUAL_RANGE[0] * n_sorted)]
    middle = excerpt.sorted[:, n_sorted // 2]
    high = excerpt.sorted[:, int(USUAL_RANGE[1] * n_sorted)]
    width = high - low
    # A channel that seldom moves has no usual range; then its whole range counts.
    whole_range = excerpt.ends[1] - excerpt.ends[0]
    width = np.where(width > 0, width, whole_range)
    width = np.where(width > 0, width, 1.0)
    # The difference is taken in double precision, because a channel may have a large offset.
    in_widths = np.empty(excerpt.x.shape, np.float32)
    np.subtract(excerpt.x, middle, out=in_widths, casting="same_kind")
    in_widths *= (1 / width).astype(np.float32)
    lowest = ((low - middle) / width - MAX_WIDTHS_OUTSIDE).astype(np.float32)
    highest = ((high - middle) / width + MAX_WIDTHS_OUTSIDE).astype(np.float32)
    np.clip(in_widths, lowest, highest, out=in_widths)
    in_widths -= in_widths.mean(axis=0)
    return in_widths


def _whitening(channels: Floats) -> Floats:
    """Return the matrix that makes the channels uncorrelated, the largest component first."""
    gram = (channels.T @ channels).astype(float) / len(channels)
    variance, vectors = np.linalg.eigh(gram)
    kept = variance > MIN_RELATIVE_VARIANCE * variance[-1]
    whitening = vectors[:, kept] / np.sqrt(variance[kept])
    return np.ascontiguousarray(whitening[:, ::-1]).astype(np.float32)


def _directions(correlations: Floats, rank: int) -> Floats:
    """Return directions of the whitened readouts in columns: the best predicted, and the first ones."""
    best = np.linalg.svd(correlations.astype(float), full_matrices=False)[2]
    predicted = best[:N_PREDICTED_DIRECTIONS].T
    principal = np.eye(rank)[:, :N_PRINCIPAL_DIRECTIONS]
    joined = np.concatenate([predicted, principal], axis=1)
    directions, triangle = np.linalg.qr(joined)
    independent = np.abs(np.diag(triangle)) > np.sqrt(MIN_RELATIVE_VARIANCE)
    return directions[:, : len(independent)][:, independent].astype(np.float32)


def _orthonormal_functions(excerpt: Excerpt) -> Floats:
    """Return the constant and functions of each row's own inputs, orthonormal on these rows."""
    values = _function_values(excerpt)
    gram = (values @ values.T).astype(float)
    scale = 1 / np.sqrt(np.diag(gram).clip(np.finfo(np.float32).tiny))
    correlation = gram * scale * scale[:, None]
    # Functions may be dependent on these rows, as where an input takes few values.
    variance, vectors = np.linalg.eigh(correlation)
    kept = variance > 1e-6 * variance[-1]
    combination = (vectors[:, kept] / np.sqrt(variance[kept])) * scale[:, None]
    return values.T @ combination.astype(np.float32)


def _function_values(excerpt: Excerpt) -> Floats:
    """Return values of the functions of the fit, with the constant, (functions, rows)."""
    basis = fit_functions(excerpt.samples.basis, excerpt.n)
    if basis.of_sequences:
        values = basis.values(excerpt.past_inputs(basis.memory))
        return np.asarray(values).astype(np.float32)
    constant = np.ones((1, excerpt.n), np.float32)
    return np.concatenate([constant, products_of_values(basis, excerpt.u)])


def products_of_values(basis: ProductBasis, u: Floats) -> Floats:
    """Return values of the functions but the constant, in single precision, (functions, rows).

    For these few functions, products made here take a seventh of the time of ``basis.values``.
    """
    values = []
    for k, family in enumerate(basis.families):
        n_values = int(basis.indices[:, k].max()) + 1
        values.append(family.values(family.standard(u[:, k]), n_values).astype(np.float32))
    products = np.empty((len(basis) - 1, len(u)), np.float32)
    for product, index in zip(products, basis.indices[1:], strict=True):
        factors = [values[k][index[k]] for k in np.flatnonzero(index)]
        product[:] = factors[0]
        for factor in factors[1:]:
            product *= factor
    return products


def fit_functions(basis: ProductBasis, n_rows: int) -> ProductBasis:
    """Return the functions by which so many rows of readouts are fitted."""
    if not basis.of_sequences:
        n_functions = min(n_rows // MIN_ROWS_PER_FUNCTION, MAX_FIT_FUNCTIONS)
        return lowest_degrees(basis, max(n_functions, 1))
    max_functions = min(n_rows // MIN_ROWS_PER_FUNCTION, MAX_DELAYED_FIT_FUNCTIONS)
    q = basis.n_inputs
    # Half of the functions are linear, the others products of two recent inputs.
    n_linear = min(basis.memory, max_functions // (2 * q) - 1)
    n_quadratic = min(n_linear, int(np.sqrt(max_functions)) // q - 1)
    max_delay = {1: max(n_linear, 0)}
    if n_quadratic >= 0:
        max_delay[2] = n_quadratic
    return delayed_basis(basis.families, max_delay=max_delay)


def _huber_fit(orthonormal: Floats, a: Floats, sample: Floats) -> tuple[Floats, Floats]:
    """Return Huber's fit of each column, and the robust standard deviation of what it leaves.

    Outliers count as values at the limit (pseudo-values), so the functions stay orthonormal and
    every round is two products. The deviation is that of a random `sample` of rows.
    """
    n_rows, n_functions = orthonormal.shape
    widening = np.float32(1 / np.sqrt(1 - n_functions / n_rows))
    fitted = orthonormal @ (orthonormal.T @ a)
    scale = _robust_deviation(a, fitted, sample) * widening
    for _ in range(N_HUBER_ROUNDS):
        largest = np.abs(a[sample] - fitted[sample]).max(axis=0)
        if np.all(largest < NO_OUTLIER * scale):
            break
        limit = np.float32(HUBER_LIMIT) * scale
        residuals = a - fitted
        np.clip(residuals, -limit, limit, out=residuals)
        residuals += fitted
        fitted = orthonormal @ (orthonormal.T @ residuals)
        scale = _robust_deviation(a, fitted, sample) * widening
    return fitted, scale


def _robust_deviation(a: Floats, fitted: Floats, sample: Floats) -> Floats:
    """Return the median absolute deviation of each column, as a standard deviation."""
    deviation = np.median(np.abs(a[sample] - fitted[sample]), axis=0) / NORMAL_MEDIAN_DEVIATION
    # Whitened readouts have variance 1; below this single precision sees no residual.
    return np.maximum(deviation, 1e-5).astype(np.float32)


def uncorrelated(e: Floats) -> Floats:
    """Return uncorrelated combinations of variance 1 of the columns."""
    gram = (e.T @ e).astype(float) / len(e)
    variance, vectors = np.linalg.eigh(gram)
    kept = variance > 1e-6 * max(variance[-1], np.finfo(float).tiny)
    return e @ (vectors[:, kept] / np.sqrt(variance[kept])).astype(np.float32)


def _root_mean_square(values: Floats) -> Floats:
    """Return the root mean square of each column, never zero."""
    mean_square = np.einsum("ij,ij->j", values, values) / len(values)
    return np.sqrt(mean_square).clip(np.finfo(np.float32).tiny)
