"""What functions of its own inputs leave of each row's readouts: the residuals.

All tests of order use them. Given the inputs of its own row (with memory: of its own past) a
readout knows nothing else, neither the inputs of other rows nor the time. So the residuals of a
good data set are uncorrelated with every function of these. The fit need not be good for that: a
misfit is a function of the row's own inputs, too, and rows in random order carry it to no other
row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from ..basis import ProductBasis, delayed_basis, lowest_degrees
from ..typing import Floats, Integers
from ._chance import chi_squared_tail

if TYPE_CHECKING:
    from ._excerpt import Excerpt

# Rows for each function of the fit, and the most functions. More functions leave less, but the time
# of the fit grows with their square.
MIN_ROWS_PER_FUNCTION = 8
MAX_FIT_FUNCTIONS = 64
# The same for functions of the past, which are more.
MAX_DELAYED_FIT_FUNCTIONS = 200
# Which part of these may have each degree. Cubes of recent inputs halve what is left of saturating
# devices and more: 0.04 becomes 0.01 of the variance, 0.16 becomes 0.05.
SHARES_OF_DEGREES = {1: 0.4, 2: 0.25, 3: 0.25, 4: 0.1}
# Directions of the readouts that are looked at: those that functions predict best, and those that
# vary most.
N_PREDICTED_DIRECTIONS = 12
N_PRINCIPAL_DIRECTIONS = 4
# Smallest part of a function that those before it do not give: with less they are dependent.
MIN_INDEPENDENT_PART = 0.01
# Readouts count up to so many widths beyond their usual range, which holds 90 % of the values.
MAX_WIDTHS_OUTSIDE = 2.0
# Position of the usual range among the ordered values of a channel.
USUAL_RANGE = (0.05, 0.95)
# Relative variance of a direction below which it is rounding.
MIN_RELATIVE_VARIANCE = 1e-10
# Values of functions of one input end here: those of inputs in another unit have no squares in
# single precision.
MAX_FACTOR = 1e4
# Functions of the row's own inputs whose gain is followed from row to row.
N_GAIN_FUNCTIONS = 2
# Rows for each component of the readouts that is kept.
MIN_ROWS_PER_COMPONENT = 4
# Rows and channels from which on the largest components are found from random mixtures of the
# channels, and no more of them than this are kept. Eigenvectors of larger matrices take longer than
# all checks together. More components also follow the rows of the fit so closely that these differ
# from the others: as they come at equal distances, clean data of 900 channels seemed periodic.
MIN_SIZE_FOR_MIXTURES = 512
MAX_COMPONENTS_FROM_MIXTURES = 256
# Rounds of Huber's fit. In each, residuals beyond so many robust standard deviations count as that.
N_HUBER_ROUNDS = 2
HUBER_LIMIT = 2.5
# Where no residual of some rows is beyond so many standard deviations, there are no outliers.
NO_OUTLIER = 5.0
# Residuals that the tests use end at so many robust standard deviations: no single row decides.
MAX_RESIDUAL = 4.0
# Median absolute deviation of a normal distribution, in standard deviations.
NORMAL_MEDIAN_DEVIATION = 0.6745
# Whitened readouts have variance 1; below this scale single precision sees no residual.
SMALLEST_SCALE = 1e-5
# Residuals of a row in the logarithm of its misfit: no larger, and not zero.
MAX_MISFIT_RESIDUAL = 30.0
SMALLEST_MISFIT = 1e-3
# Rows from which the fit is made, chosen at random: so many, and so many for each channel and each
# function. With more of them the fit changes by a few per cent of its residuals.
MIN_FIT_ROWS = 2048
FIT_ROWS_PER_COLUMN = 16
# Rows of these whose residuals tell the robust standard deviation.
N_DEVIATION_ROWS = 512
# Rows of a tile, at least: the numbers of a tile stay in the cache of a core.
MIN_TILE_ROWS = 256
# Parts into which the rows are cut where a slow change is looked for. Each has so many rows, at
# least; for a sequence so many times its memory, so that parts are independent.
N_TIME_PARTS = 128
MIN_ROWS_PER_PART = 8
MEMORIES_PER_PART = 4
# Parts below which there is no spectrum to compare with.
MIN_TIME_PARTS = 24


@dataclass(frozen=True, eq=False)
class UsualRange:
    """The middle and the width of the values that each channel usually takes.

    The shape is (1, channels), or (rows, channels) with equal rows: NumPy subtracts a row from
    each of many rows several times more slowly than an array of their shape.
    """

    middle: Floats
    inverse_width: Floats
    lowest: Floats  # values in widths end here
    highest: Floats

    def repeated(self, n_rows: int) -> UsualRange:
        """Return the same with so many equal rows."""
        rows = [np.repeat(values, n_rows, axis=0) for values in vars(self).values()]
        return UsualRange(*rows)

    def in_widths(self, x: Floats) -> Floats:
        """Return readouts in widths of their usual range, extreme values cut."""
        n = len(x)
        # The difference is taken in double precision, because a channel may have a large offset.
        with np.errstate(over="ignore"):  # codes are very large; they end at the limits
            channels = (x - self.middle[:n]).astype(np.float32)
            channels *= self.inverse_width[:n]
        np.maximum(channels, self.lowest[:n], out=channels)
        np.minimum(channels, self.highest[:n], out=channels)
        return channels

    def centred(self, mean: Floats) -> UsualRange:
        """Return the same with the middle where the values in widths have mean zero."""
        return UsualRange(
            self.middle + mean / self.inverse_width,
            self.inverse_width,
            self.lowest - mean,
            self.highest - mean,
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """The robust fit of the readouts by functions of their own inputs, made on some of the rows.

    Of a long data set there is one fit for all excerpts, made on rows of its overview. Otherwise
    each excerpt makes its own.
    """

    functions: ProductBasis
    usual_range: UsualRange
    whitening: Floats  # makes the channels uncorrelated, (channels, rank)
    directions: Floats  # of the readouts that are looked at, (channels, directions)
    coefficients: Floats  # of the fit of the directions, (functions, directions)
    channel_coefficients: Floats  # of the channels, by least squares, (functions, channels)
    channel_scale: Floats  # root mean square of what this leaves, (channels,)
    scale: Floats  # robust standard deviation of what is left of the directions, (directions,)
    # The p-value of readouts that hold no function in any direction, on the rows of the fit and of
    # the chi-squared distribution. The directions were chosen by their correlations, so they
    # cannot tell whether there is one.
    p_value: float

    @property
    def rank(self) -> int:
        """Number of readouts that are linearly independent."""
        return self.whitening.shape[1]


class Residuals:
    """Readouts of an excerpt, their fit by functions of their own inputs, and what it leaves.

    The rows are gone through once, in tiles, and what concerns single channels is summed at once.
    The arrays of all rows and channels are made only where a test has found something.
    """

    def __init__(self, excerpt: Excerpt, fit: Fit) -> None:
        self.fit = fit
        self._x = excerpt.x
        # Values of the functions of the fit, (functions, rows).
        self.values = excerpt.function_values
        # Functions of low degree of each row's own inputs, mean 0, variance 1, (rows, functions).
        self.h = excerpt.y.T
        # Robust standard deviation of what the fit leaves of the directions, (directions,).
        self.scale = fit.scale
        n_channels, n_directions = fit.directions.shape
        # Directions of the whitened readouts, and their fit, (rows, directions).
        self.projections = np.empty((excerpt.n, n_directions), np.float32)
        self.fitted = np.empty((excerpt.n, n_directions), np.float32)
        # Sums of the residuals of each channel over parts of the run, (parts, channels), and of
        # their products with the fit, which tell by how much each gain is off.
        self.n_parts = number_of_parts(excerpt)
        self.channel_sums = np.zeros((self.n_parts, n_channels), np.float32)
        self.gain_sums = np.zeros((self.n_parts, n_channels), np.float32)
        # These products summed over the channels, (rows,), and each channel's largest residual.
        self.gain = np.empty(excerpt.n, np.float32)
        self.largest = np.zeros(n_channels, np.float32)

        self._correlations = np.zeros((self.h.shape[1], n_channels), np.float32)
        rows_per_part = excerpt.n // max(self.n_parts, 1)
        parts_per_tile = -(-MIN_TILE_ROWS // rows_per_part)  # rounded up
        tile_rows = parts_per_tile * rows_per_part
        self._usual_range = fit.usual_range.repeated(tile_rows)
        for k, start in enumerate(range(0, excerpt.n, tile_rows)):
            rows = slice(start, min(start + tile_rows, excerpt.n))
            parts = slice(k * parts_per_tile, (k + 1) * parts_per_tile)
            self._go_through_tile(rows, parts, rows_per_part)

    def _go_through_tile(self, rows: slice, parts: slice, rows_per_part: int) -> None:
        """Fill in the directions and the sums of some rows, which are those of some parts."""
        channels = self._usual_range.in_widths(self._x[rows])
        self._correlations += self.h[rows].T @ channels
        fitted = self.values[:, rows].T @ self.fit.channel_coefficients
        np.matmul(channels, self.fit.directions, out=self.projections[rows])
        np.matmul(self.values[:, rows].T, self.fit.coefficients, out=self.fitted[rows])
        residuals = channels
        residuals -= fitted
        residuals /= self.fit.channel_scale
        np.maximum(self.largest, residuals.max(axis=0), out=self.largest)
        np.maximum(self.largest, -residuals.min(axis=0), out=self.largest)
        gains = fitted
        gains *= residuals
        np.matmul(gains, np.ones(gains.shape[1], np.float32), out=self.gain[rows])
        # Rows behind the last whole part are in no sum.
        in_parts = (len(self.channel_sums[parts]), rows_per_part, -1)
        n_rows = in_parts[0] * rows_per_part
        if n_rows:
            ones = np.ones(rows_per_part, np.float32)
            np.matmul(ones, residuals[:n_rows].reshape(in_parts), out=self.channel_sums[parts])
            np.matmul(ones, gains[:n_rows].reshape(in_parts), out=self.gain_sums[parts])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.projections)

    @property
    def rank(self) -> int:
        """Number of readouts that are linearly independent."""
        return self.fit.rank

    @cached_property
    def channels(self) -> Floats:
        """Readouts in widths of their usual range, extremes cut, mean 0, (rows, channels)."""
        channels = self.fit.usual_range.in_widths(self._x)
        channels -= _column_means(channels)
        return channels

    def channel_residuals(self, rows: slice | Integers = slice(None)) -> Floats:
        """Return what the fit leaves of channels in some rows, mean square 1, (rows, channels)."""
        residuals = self.fit.usual_range.in_widths(self._x[rows])
        values = self.values[:, rows] if isinstance(rows, slice) else self.values.take(rows, axis=1)
        residuals -= values.T @ self.fit.channel_coefficients
        residuals /= self.fit.channel_scale
        return residuals

    @cached_property
    def standardised(self) -> Floats:
        """What the fit leaves of directions, in robust standard deviations, (rows, directions)."""
        return (self.projections - self.fitted) / self.scale

    @cached_property
    def e(self) -> Floats:
        """Uncorrelated combinations of what the fit leaves, no row extreme, mean 0, variance 1."""
        limited = np.clip(self.standardised, -MAX_RESIDUAL, MAX_RESIDUAL)
        limited -= _column_means(limited)
        return uncorrelated(limited)

    @cached_property
    def whitened(self) -> Floats:
        """All readouts, uncorrelated on these rows, (rows, rank): capacities are made from them."""
        return self.channels @ _whitening(self.channels)

    @cached_property
    def orthonormal(self) -> Floats:
        """Functions of the fit, orthonormal on these rows, (rows, functions)."""
        return self.values.T @ _orthonormalisation(self.values)

    @cached_property
    def power_of_functions(self) -> Floats:
        """Rows times the sum of squared correlations of all readouts with each function of h."""
        correlations = self._correlations @ self.fit.whitening
        return np.sum(correlations**2, axis=1) / self.n_rows

    @cached_property
    def held_capacity(self) -> float:
        """The capacity of the functions of the fit in the directions, without its bias."""
        coefficients = self.orthonormal.T @ self.projections
        held = float(np.sum(coefficients**2)) - coefficients.size
        return max(held / self.n_rows, 0.0)

    @cached_property
    def log_misfit(self) -> Floats:
        """Logarithm of the mean square of each row's standardised residuals, (rows,)."""
        has_residual = self.scale > 2 * SMALLEST_SCALE  # of the others, it is rounding
        if not has_residual.any():
            return np.zeros(self.n_rows, np.float32)
        limited = self.standardised[:, has_residual]
        limited = np.clip(limited, -MAX_MISFIT_RESIDUAL, MAX_MISFIT_RESIDUAL)
        mean_square = np.einsum("ij,ij->i", limited, limited) / limited.shape[1]
        return np.log(mean_square + SMALLEST_MISFIT)

    def capacity_of_calm_rows(self, functions: Floats) -> float:
        """Return how much more would be held if all rows were as good as their better half.

        Even rows tell by their misfit which half that is, as a combination of functions, (rows,
        functions). Odd rows tell how well it fits, so that chance does not make it look better.
        """
        combination = functions[::2].T @ self.log_misfit[::2]
        expected_misfit = functions[1::2] @ combination
        is_calm = expected_misfit <= np.median(expected_misfit)
        limited = self.standardised[1::2].clip(-MAX_MISFIT_RESIDUAL, MAX_MISFIT_RESIDUAL)
        squares = limited**2
        unexplained = squares.mean(axis=0) * self.scale**2
        unexplained_if_calm = squares[is_calm].mean(axis=0) * self.scale**2
        held = (1 - unexplained).clip(0)
        held_if_calm = held / (held + unexplained_if_calm)
        return float(np.sum(held_if_calm - held))

    @cached_property
    def size_score(self) -> Floats:
        """How badly each row fits its inputs, mean 0, variance 1, (rows, 1)."""
        return _as_scores(self.log_misfit[:, None])

    @cached_property
    def gain_scores(self) -> Floats:
        """By how much each row follows functions of its inputs too well or too little.

        The scores are products of residuals and functions, mean 0, variance 1, (rows, scores).
        """
        functions = np.clip(self.h[:, :N_GAIN_FUNCTIONS].T, -MAX_RESIDUAL, MAX_RESIDUAL)
        products = [self.e * function[:, None] for function in functions]
        scores = np.concatenate(products, axis=1)
        scores -= _column_means(scores)
        scores /= _root_mean_square(scores)
        return scores


def _as_scores(values: Floats) -> Floats:
    """Return columns with mean 0 and variance 1, no row extreme."""
    centred = values - np.median(values[:N_DEVIATION_ROWS], axis=0)
    scores = np.clip(centred / _robust_deviation(centred), -MAX_RESIDUAL, MAX_RESIDUAL)
    scores -= _column_means(scores)
    return scores / _root_mean_square(scores)


def fit_readouts(excerpt: Excerpt) -> Fit:
    """Fit the readouts of an excerpt by functions of their own inputs, robustly."""
    functions = excerpt.fit_functions
    n_columns = max(excerpt.x.shape[1], len(functions))
    n_fit_rows = max(MIN_FIT_ROWS, FIT_ROWS_PER_COLUMN * n_columns)
    rows = np.random.default_rng(1).permutation(excerpt.n)[:n_fit_rows]
    values = np.take(excerpt.function_values, rows, axis=1)
    orthonormalisation = _orthonormalisation(values)
    orthonormal = values.T @ orthonormalisation

    usual_range = _usual_range(excerpt)
    channels = usual_range.in_widths(excerpt.x[rows])
    mean = _column_means(channels)
    channels -= mean
    whitening = _whitening(channels)
    in_channels = orthonormal.T @ channels
    correlations = in_channels @ whitening
    directions = whitening @ _directions(correlations, whitening.shape[1])
    in_directions, scale = _huber_fit(orthonormal, channels @ directions)
    return Fit(
        functions=functions,
        usual_range=usual_range.centred(mean),
        whitening=whitening,
        directions=directions,
        coefficients=orthonormalisation @ in_directions,
        channel_coefficients=orthonormalisation @ in_channels,
        channel_scale=_root_mean_square(channels - orthonormal @ in_channels),
        scale=scale,
        p_value=_p_value_of_correlations(correlations),
    )


def _p_value_of_correlations(correlations: Floats) -> float:
    """Return the p-value that functions have nothing to do with readouts, (functions, rank)."""
    of_all, of_one = sum_and_largest_power(correlations)
    n_functions = len(correlations) - 1  # less the constant
    rank = correlations.shape[1]
    p_value_of_all = chi_squared_tail(of_all, n_functions * rank)
    p_value_of_one = chi_squared_tail(of_one, rank) * n_functions
    return 2 * float(min(p_value_of_all, p_value_of_one))


def sum_and_largest_power(correlations: Floats) -> tuple[float, float]:
    """Return the sum of squared correlations of functions with readouts, and the largest of one.

    Both are times the number of rows. Many functions may be seen a little each, or one of them
    clearly.
    """
    power = np.sum(correlations**2, axis=1)
    return float(power.sum()), float(power.max())


def number_of_parts(excerpt: Excerpt) -> int:
    """Return into how many parts the rows are cut; 0 where slow changes cannot be told."""
    min_rows = max(MIN_ROWS_PER_PART, MEMORIES_PER_PART * excerpt.samples.basis.memory)
    n_parts = min(N_TIME_PARTS, excerpt.n // min_rows)
    return n_parts if n_parts >= MIN_TIME_PARTS else 0


def _usual_range(excerpt: Excerpt) -> UsualRange:
    """Return the middle and the width of the values that each channel usually takes."""
    n_sorted = excerpt.sorted.shape[1]
    low = excerpt.sorted[:, int(USUAL_RANGE[0] * n_sorted)]
    middle = excerpt.sorted[:, n_sorted // 2]
    high = excerpt.sorted[:, int(USUAL_RANGE[1] * n_sorted)]
    width = high - low
    # A channel that seldom moves has no usual range; then its whole range counts.
    whole_range = excerpt.ends[1] - excerpt.ends[0]
    width = np.where(width > 0, width, whole_range)
    width = np.where(width > 0, width, 1.0)
    # Beside 1e300 in a cell all other values are too small for single precision, and end as zero.
    width = np.maximum(width, np.finfo(np.float32).tiny)
    lowest = ((low - middle) / width - MAX_WIDTHS_OUTSIDE).astype(np.float32)
    highest = ((high - middle) / width + MAX_WIDTHS_OUTSIDE).astype(np.float32)
    inverse_width = (1 / width).astype(np.float32)
    return UsualRange(middle[None], inverse_width[None], lowest[None], highest[None])


def _whitening(channels: Floats) -> Floats:
    """Return the matrix that makes the channels uncorrelated, the largest component first.

    Of many channels in few rows the largest components are kept, so many that each has several
    rows: any function would be seen in more of them by chance.
    """
    n_rows, n_channels = channels.shape
    max_components = max(n_rows // MIN_ROWS_PER_COMPONENT, 1)
    if min(n_rows, n_channels) >= MIN_SIZE_FOR_MIXTURES:
        max_components = min(max_components, MAX_COMPONENTS_FROM_MIXTURES)
        mixtures = _largest_mixtures(channels, max_components)
        variance, combinations = _principal_components(channels @ mixtures)
        vectors = mixtures @ combinations
    elif n_channels <= n_rows:
        variance, vectors = _principal_components(channels)
    else:
        gram = (channels @ channels.T).astype(float) / n_rows
        variance, rows = np.linalg.eigh(gram)
        length = np.sqrt(np.maximum(variance, np.finfo(float).tiny) * n_rows)
        vectors = channels.T @ (rows / length)
    kept = variance > MIN_RELATIVE_VARIANCE * variance[-1]
    kept[:-max_components] = False
    whitening = vectors[:, kept] / np.sqrt(variance[kept])
    return np.ascontiguousarray(whitening[:, ::-1]).astype(np.float32)


def _principal_components(values: Floats) -> tuple[Floats, Floats]:
    """Return the variances of the principal components of columns, in order, and the components."""
    gram = (values.T @ values).astype(float) / len(values)
    return np.linalg.eigh(gram)


def _largest_mixtures(channels: Floats, count: int) -> Floats:
    """Return orthonormal mixtures of channels that span nearly the space of the largest components.

    Random mixtures hold most of the components that vary most, and the more so after they were
    multiplied by the Gram matrix (Halko, Martinsson and Tropp, SIAM Review 53, 217, 2011).
    """
    n_channels = channels.shape[1]
    mixtures = np.random.default_rng(0).standard_normal((n_channels, count), dtype=np.float32)
    mixtures = channels.T @ (channels @ mixtures)
    return np.linalg.qr(mixtures)[0].astype(channels.dtype)


def _directions(correlations: Floats, rank: int) -> Floats:
    """Return directions of the whitened readouts: the best predicted, and the first ones."""
    in_double = correlations.astype(float)
    if len(in_double) < rank:
        # Left singular vectors of the shorter side give the right ones faster than all of them.
        best = np.linalg.eigh(in_double @ in_double.T)[1][:, ::-1][:, :N_PREDICTED_DIRECTIONS]
        predicted = in_double.T @ best
        predicted /= np.maximum(np.linalg.norm(predicted, axis=0), np.finfo(float).tiny)
    else:
        best = np.linalg.eigh(in_double.T @ in_double)[1][:, ::-1]
        predicted = best[:, :N_PREDICTED_DIRECTIONS]
    principal = np.eye(rank)[:, :N_PRINCIPAL_DIRECTIONS]
    joined = np.concatenate([predicted, principal], axis=1)
    directions, triangle = np.linalg.qr(joined)
    independent = np.abs(np.diag(triangle)) > np.sqrt(MIN_RELATIVE_VARIANCE)
    return directions[:, : len(independent)][:, independent].astype(np.float32)


def _orthonormalisation(values: Floats) -> Floats:
    """Return combinations that are orthonormal on some rows, (functions, combinations)."""
    gram = (values @ values.T).astype(float)
    scale = 1 / np.sqrt(np.diag(gram).clip(np.finfo(np.float32).tiny))
    correlation = gram * scale * scale[:, None]
    combinations = _gram_schmidt(correlation)
    if combinations is None:
        # Functions are dependent on these rows, as where an input takes few values.
        variance, vectors = np.linalg.eigh(correlation)
        kept = variance > 1e-6 * variance[-1]
        combinations = vectors[:, kept] / np.sqrt(variance[kept])
    return (combinations * scale[:, None]).astype(np.float32)


def _gram_schmidt(correlation: Floats) -> Floats | None:
    """Return orthonormal combinations, each of a function and those before; None if dependent.

    A single function that readouts hold is then seen in a single combination.
    """
    try:
        triangle = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return None
    if np.diag(triangle).min() < MIN_INDEPENDENT_PART:
        return None
    inverse: Floats = np.linalg.inv(triangle)
    return inverse.T


def products_of_values(basis: ProductBasis, u: Floats) -> Floats:
    """Return values of the functions, the constant first, in single precision, (functions, rows).

    For these few functions, products made here take a seventh of the time of ``basis.values``.
    """
    values = []
    for k, family in enumerate(basis.families):
        n_values = int(basis.indices[:, k].max()) + 1
        factors = family.values(family.standard(u[:, k]), n_values)
        values.append(factors.clip(-MAX_FACTOR, MAX_FACTOR).astype(np.float32))
    products = np.ones((len(basis), len(u)), np.float32)
    for product, index in zip(products[1:], basis.indices[1:], strict=True):
        factors = [values[k][index[k]] for k in np.flatnonzero(index)]
        product[:] = factors[0]
        for factor in factors[1:]:
            product *= factor
    return products


def functions_of_fit(basis: ProductBasis, n_rows: int) -> ProductBasis:
    """Return the functions by which so many rows of readouts are fitted."""
    if not basis.of_sequences:
        n_functions = min(n_rows // MIN_ROWS_PER_FUNCTION, MAX_FIT_FUNCTIONS)
        return lowest_degrees(basis, max(n_functions, 1))
    max_functions = min(n_rows // MIN_ROWS_PER_FUNCTION, MAX_DELAYED_FIT_FUNCTIONS)
    max_delay = {}
    for degree, share in SHARES_OF_DEGREES.items():
        n_factors = _most_factors(degree, share * max_functions)
        n_delays = min(n_factors // basis.n_inputs, basis.memory + 1)
        if n_delays > 0 or degree == 1:
            max_delay[degree] = max(n_delays - 1, 0)
    return delayed_basis(basis.families, max_delay=max_delay)


def _most_factors(degree: int, n_functions: float) -> int:
    """Return how many inputs have at most so many products of a degree."""
    n_factors = 0
    while comb(n_factors + degree, degree) <= n_functions:
        n_factors += 1
    return n_factors


def _huber_fit(orthonormal: Floats, a: Floats) -> tuple[Floats, Floats]:
    """Return coefficients of Huber's fit of each column, and the deviation of what it leaves.

    Outliers count as values at the limit (pseudo-values), so the functions stay orthonormal and
    every round is two products. The deviation is that of the first rows, which are random ones.
    """
    n_rows, n_functions = orthonormal.shape
    widening = np.float32(1 / np.sqrt(1 - n_functions / n_rows))
    coefficients = orthonormal.T @ a
    for _ in range(N_HUBER_ROUNDS):
        residuals = a - orthonormal @ coefficients
        scale = _robust_deviation(residuals) * widening
        if np.all(np.abs(residuals[:N_DEVIATION_ROWS]).max(axis=0) < NO_OUTLIER * scale):
            break
        # The fit of the pseudo-values differs by that of what the limit takes from the residuals.
        limit = np.float32(HUBER_LIMIT) * scale
        beyond = residuals - np.maximum(np.minimum(residuals, limit), -limit)
        coefficients -= orthonormal.T @ beyond
    return coefficients, _robust_deviation(a - orthonormal @ coefficients) * widening


def _robust_deviation(residuals: Floats) -> Floats:
    """Return the median absolute deviation of each column, as a standard deviation."""
    sizes = np.abs(residuals[:N_DEVIATION_ROWS])
    deviation = np.median(sizes, axis=0) / NORMAL_MEDIAN_DEVIATION
    return np.maximum(deviation, SMALLEST_SCALE).astype(np.float32)


def uncorrelated(e: Floats) -> Floats:
    """Return uncorrelated combinations of variance 1 of the columns."""
    gram = (e.T @ e).astype(float) / len(e)
    variance, vectors = np.linalg.eigh(gram)
    kept = variance > 1e-6 * max(variance[-1], np.finfo(float).tiny)
    return e @ (vectors[:, kept] / np.sqrt(variance[kept])).astype(np.float32)


def _column_means(values: Floats) -> Floats:
    """Return the mean of each column, by a product, which is faster than a sum."""
    n_rows = len(values)
    return np.full(n_rows, 1 / n_rows, values.dtype) @ values


def _root_mean_square(values: Floats) -> Floats:
    """Return the root mean square of each column, never zero."""
    mean_square = np.einsum("ij,ij->j", values, values) / len(values)
    return np.sqrt(mean_square).clip(np.finfo(np.float32).tiny)
