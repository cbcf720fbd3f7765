"""Correlations of readouts with functions of the inputs of other rows, by lag.

Each statistic is a sum of squares of correlations between scores of a row, such as its residuals,
and functions that they must not know. Its first p-value is that of a chi-squared number. Residuals
have heavy tails in small data sets, so a small p-value is computed once more from random orders of
the same rows (with memory: from inputs of far rows), and only that one counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft

from ..typing import Floats, Integers
from ._chance import N_RANDOM_ORDERS, P_VALUE_TO_LOOK_AGAIN, chi_squared_tail, gamma_tail, level
from ._excerpt import Excerpt
from ._residuals import uncorrelated

# The largest lag, in rows, by which rows are realigned, and that pictures show.
MAX_LAG = 8
# The largest lag at which inputs of other rows are looked for: an echo, or a neighbour on a plate,
# may be far away. Of short data sets, the largest part of their rows.
MAX_SCANNED_LAG = 128
MAX_SCANNED_SHARE = 0.125
# The same for gain and noise, of which there are more series: an apparatus that settles, or rows
# that were scaled together, show between neighbours.
MAX_LAG_OF_GAIN = 3
# Lags from which on blocks of rows are Fourier-transformed, which is then faster than products; and
# columns that are transformed together, whose numbers stay in the cache of a core.
MIN_LAGS_FOR_BLOCKS = 16
COLUMNS_PER_TRANSFORM = 8
# Functions of low degree whose values in other rows are looked for.
N_SCANNED_FUNCTIONS = 12
MAX_SCANNED_DEGREE = 3
# Values of functions, and predictions of them, are cut at so many standard deviations.
MAX_VALUE = 3.0
# Rows below which nothing is said about their order.
MIN_ROWS_OF_ORDER = 128
# The largest lag at which inputs are compared with each other.
MAX_LAG_OF_INPUTS = 32
# Functions of the inputs that are compared with those of other rows, at least, and the sum of
# their squared correlations from which inputs count as related: the order is not random then.
N_RELATED_FUNCTIONS = 8
MIN_RELATION_OF_INPUTS = 0.005
# The same sum, from which the inputs count as sorted.
MIN_RELATION_OF_SORTED_INPUTS = 0.3
# Parts of the run whose means are subtracted, where the distribution of the inputs may change.
N_PARTS_OF_INPUTS = 16


def lagged_correlations(a: Floats, h: Floats, lag: int) -> Floats:
    """Return the means of a(t) h(t + lag), (columns of a, columns of h)."""
    n = len(a) - abs(lag)
    if lag >= 0:
        return a[:n].T @ h[lag:] / n
    return a[-lag:].T @ h[:n] / n


def lagged_power(a: Floats, h: Floats, lag: int) -> float:
    """Return the number of rows times the sum of squared correlations at a lag."""
    return (len(a) - abs(lag)) * float(np.sum(lagged_correlations(a, h, lag) ** 2))


def lagged_capacity(a: Floats, h: Floats, lag: int) -> float:
    """Return the capacity that functions of inputs `lag` rows later hold, without its bias."""
    n = len(a) - abs(lag)
    bias = a.shape[1] * h.shape[1] / n
    return float(np.sum(lagged_correlations(a, h, lag) ** 2)) - bias


def scanned_functions(excerpt: Excerpt) -> Integers:
    """Return which of the low functions are looked for in other rows."""
    degrees = excerpt.low.degrees[1:]
    return np.flatnonzero(degrees <= MAX_SCANNED_DEGREE)[:N_SCANNED_FUNCTIONS]


# By chance.


def independent_shifts(excerpt: Excerpt) -> tuple[int, int] | None:
    """Return the range of shifts that make a sequence's inputs independent of its residuals.

    They are larger than its memory and than all lags that are looked at. None for rows without
    memory, whose order may be permuted instead.
    """
    if not excerpt.of_sequence:
        return None
    first = excerpt.samples.basis.memory + max(largest_scanned_lag(excerpt), MAX_LAG)
    return first, max(excerpt.n - first, first + 1)


def power_by_chance(e: Floats, h: Floats, far_shifts: tuple[int, int] | None = None) -> Floats:
    """Return draws of the power at a lag in which rows of `e` are independent of those of `h`.

    Each draw puts the rows of `h` in a random order, or shifts them far in the case of a sequence.
    """
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(N_RANDOM_ORDERS):
        if far_shifts is None:
            other = h[generator.permutation(len(h))]
        else:
            other = np.roll(h, int(generator.integers(*far_shifts)), axis=0)
        draws.append(lagged_power(e, other, 0))
    return np.array(draws)


# Readouts that hold inputs of other rows, and inputs that are related to those of other rows.


@dataclass(frozen=True)
class Lags:
    """How clearly scores of the rows hold inputs of other rows, by lag; earlier ones negative."""

    lags: Integers
    p_value: Floats  # of each lag, times the number of lags that were tested

    def found(self, highest_p_value: float) -> Integers:
        """Return the lags at which they are held."""
        return self.lags[self.p_value < highest_p_value]


def largest_scanned_lag(excerpt: Excerpt) -> int:
    """Return the largest lag at which inputs of other rows are looked for."""
    far_shifts = excerpt.n - 2 * excerpt.samples.basis.memory
    return min(MAX_SCANNED_LAG, int(MAX_SCANNED_SHARE * max(far_shifts, 0)))


def scan_lags(excerpt: Excerpt, scores: Floats, max_lag: int) -> Lags:
    """Test whether scores of the rows, (rows, scores), hold functions of other rows' inputs.

    The scores have mean 0 and variance 1. Of a sequence, the inputs of later rows are looked at.
    """
    h = excerpt.residuals.h[:, scanned_functions(excerpt)].clip(-MAX_VALUE, MAX_VALUE)
    lags = np.arange(1, min(max_lag, largest_scanned_lag(excerpt)) + 1)
    if not excerpt.of_sequence:
        lags = np.concatenate([-lags[::-1], lags])
    power = power_by_lag(scores, h, lags)
    p_value = chi_squared_tail(power, scores.shape[1] * h.shape[1]) * len(lags)
    if p_value.min() < P_VALUE_TO_LOOK_AGAIN:
        # Where the distribution of the inputs and the scores both change along the run, they are
        # correlated at every lag. So the means of parts are subtracted.
        h = h - means_of_parts(h)
        power = power_by_lag(scores, h, lags)
        draws = power_by_chance(scores, h, independent_shifts(excerpt))
        p_value = np.array([gamma_tail(value, draws) for value in power]) * len(lags)
    return Lags(lags, p_value)


def power_by_lag(a: Floats, h: Floats, lags: Integers) -> Floats:
    """Return the number of rows times the sum of squared correlations at each lag."""
    if len(lags) < MIN_LAGS_FOR_BLOCKS:
        return np.array([lagged_power(a, h, int(lag)) for lag in lags])
    max_lag = int(np.abs(lags).max())
    sums = sums_by_lag(a, h, max_lag)[lags + max_lag]
    power: Floats = np.sum(sums**2, axis=(1, 2)) / (len(a) - np.abs(lags))
    return power


def sums_by_lag(a: Floats, h: Floats, max_lag: int) -> Floats:
    """Return sums of a(t) h(t + lag) over the rows, (lags, columns of a, columns of h).

    The lags run from -max_lag to max_lag. Blocks of rows are Fourier-transformed, those of `a` with
    those of `h` that are at most so many rows away.
    """
    n_rows = 2 * max_lag
    n_blocks = -(-len(a) // n_rows)  # rounded up
    padded_a = np.zeros((a.shape[1], n_blocks * n_rows), a.dtype)
    padded_a[:, : len(a)] = a.T
    padded_h = np.zeros((h.shape[1], (n_blocks + 1) * n_rows), h.dtype)
    padded_h[:, max_lag : max_lag + len(h)] = h.T
    windows = np.lib.stride_tricks.sliding_window_view(padded_h, 2 * n_rows, axis=1)
    spectrum_of_h = scipy.fft.rfft(windows[:, ::n_rows], axis=2).transpose(2, 1, 0)
    sums = []
    for first in range(0, a.shape[1], COLUMNS_PER_TRANSFORM):
        columns = padded_a[first : first + COLUMNS_PER_TRANSFORM]
        blocks = columns.reshape(len(columns), n_blocks, n_rows)
        spectrum = scipy.fft.rfft(blocks, 2 * n_rows, axis=2).conj().transpose(2, 0, 1)
        products = np.matmul(spectrum, spectrum_of_h)
        sums.append(scipy.fft.irfft(products, axis=0)[: n_rows + 1])
    return np.concatenate(sums, axis=1)


def find_related_inputs(excerpt: Excerpt) -> tuple[int, float] | None:
    """Return lag and size of the relation between inputs of neighbouring rows; None if unrelated.

    The size is the sum of squared correlations of functions of low degree.

    Rows of a sorted file, a sweep or a filtered source are not in random order, so tests of order
    say nothing there.
    """
    if excerpt.n < MIN_ROWS_OF_ORDER or not len(excerpt.y):
        return None
    h = excerpt.y[_related_functions(excerpt)].T.clip(-MAX_VALUE, MAX_VALUE)
    if lagged_power(h, h, 1) < MIN_RELATION_OF_SORTED_INPUTS * excerpt.n:
        # Inputs whose distribution changes along the run are in random order all the same, so the
        # mean of each part is subtracted. Sorted inputs of few levels would vanish with it.
        h = h - means_of_parts(h)
    h = uncorrelated(h - h.mean(axis=0))
    lags = np.arange(1, MAX_LAG_OF_INPUTS + 1)
    power = np.array([lagged_power(h, h, int(lag)) for lag in lags])
    lag = int(lags[np.argmax(power)])
    relation = float(power.max() / (len(h) - lag))
    p_value = float(chi_squared_tail(power.max(), h.shape[1] ** 2)) * len(lags)
    if p_value < P_VALUE_TO_LOOK_AGAIN:
        p_value = gamma_tail(power.max(), power_by_chance(h, h)) * len(lags)
    if p_value < level(excerpt) and relation > MIN_RELATION_OF_INPUTS:
        return lag, relation
    return None


def _related_functions(excerpt: Excerpt) -> Integers:
    """Return which functions are compared with those of other rows: at least each input itself."""
    degrees = excerpt.low.degrees[1:]
    by_degree = np.argsort(degrees, kind="stable")
    n_functions = max(N_RELATED_FUNCTIONS, np.count_nonzero(degrees == degrees.min()))
    return by_degree[:n_functions]


def means_of_parts(values: Floats) -> Floats:
    """Return in each row the mean of its part of the rows."""
    edges = np.linspace(0, len(values), N_PARTS_OF_INPUTS + 1).astype(int)
    n_rows = np.diff(edges)
    means = np.add.reduceat(values, edges[:-1], axis=0) / n_rows[:, None]
    return np.repeat(means, n_rows, axis=0).astype(values.dtype)
