"""How recorded inputs go on: how long they stay correlated, whether they drift, and their period.

Inputs are few numbers per row, so these functions read them in this process.
"""

from __future__ import annotations

import numpy as np
import scipy

from ..kernels import SMALLEST_DIVISOR
from ..samples import Samples
from ..typing import Floats

# Rows at the beginning in which correlation times and periods are looked for.
MAX_ROWS_FOR_TIMES = 262_144
# Autocorrelation below which the sum that makes up the correlation time ends.
END_OF_CORRELATION = 0.05
# Part of the rows that is the longest lag of an autocorrelation.
MAX_LAG_OF_ROWS = 0.25
# Rounds in which the correlation time and the bias of autocorrelations are made to agree, and the
# part of the time by which it may still change in the last one.
MAX_ROUNDS_FOR_TIME = 50
MAX_CHANGE_OF_TIME = 0.01
# Half waves over the recording that are its slow part: one and two. The strength of the others up
# to the twelfth is what the drive has at low frequencies anyway.
SLOW_HALF_WAVES = slice(1, 3)
OTHER_HALF_WAVES = slice(3, 13)
# Times that the mean power of the slow part has to be the median power of the others. Of 300
# recordings each, 0 to 1.3 % of drives that do not drift are above, and all of a drive with an
# offset of twice the recording's length (benchmarks/_drives.py, "three sines, slow beat", 10
# samples per function).
MIN_RATIO_OF_SLOW_PART = 25.0
# Inputs of a period repeat to this part of their range.
MAX_RELATIVE_CHANGE_OF_PERIOD = 1e-9
# Rows that are compared first where a period is looked for.
ROWS_FIRST_COMPARED = 16
# Mean square of the change after a period, relative to that of two independent rows, up to which
# inputs nearly repeat; and what it must have exceeded at shorter lags. A sine that was measured
# with three digits has 1e-3 and less.
MAX_CHANGE_AFTER_PERIOD = 0.01
MIN_CHANGE_WITHIN_PERIOD = 0.5


def first_inputs(samples: Samples) -> Floats:
    """Return inputs of neighbouring rows from the beginning on, (rows, inputs)."""
    n_rows = min(samples.u.shape[0], MAX_ROWS_FOR_TIMES)
    return np.asarray(samples.u.read(0, n_rows, on_host=True), dtype=float)


def correlation_time(u: Floats) -> float:
    """Return 1 + 2 sum of the autocorrelations of inputs (rows, inputs), the largest of all inputs.

    The sum ends at the first autocorrelation below 0.05. Autocorrelations about the mean of the
    recording, of N rows, are too small: the recorded r is on average (rho - b) / (1 - b) with b =
    time / N. So rho = r (1 - b) + b is what is added up.
    """
    longest = 1.0
    n = len(u)
    n_lags = max(int(MAX_LAG_OF_ROWS * n), 1)
    for column in u.T:
        if column.min() == column.max():
            continue
        recorded = _autocorrelations(column, n_lags)
        time = 1.0
        for _ in range(MAX_ROUNDS_FOR_TIME):
            bias = min(time / n, 1.0)
            correlations = recorded * (1 - bias) + bias
            is_small = correlations < END_OF_CORRELATION
            end = int(np.argmax(is_small)) if is_small.any() else n_lags
            previous = time
            time = 1 + 2 * float(correlations[1:end].sum())
            if abs(time - previous) < MAX_CHANGE_OF_TIME * time:
                break
        longest = max(longest, time)
    return longest


def _autocorrelations(column: Floats, n_lags: int) -> Floats:
    """Return the autocorrelations of a column at the lags from 0 on."""
    n_padded = scipy.fft.next_fast_len(len(column) + n_lags, real=True)
    spectrum = np.abs(scipy.fft.rfft(column - column.mean(), n_padded)) ** 2
    products: Floats = scipy.fft.irfft(spectrum, n_padded)[:n_lags]
    return products / products[0]


def slow_part(u: Floats) -> float:
    """Return the part of an input's variance that changes more slowly than the recording.

    It is that of the input with the largest one, and 0 where no input stands out at the lowest
    frequencies. The law beyond such a recording cannot be known from it.
    """
    largest = 0.0
    if len(u) < 2 * OTHER_HALF_WAVES.stop:
        return largest
    for column in u.T:
        power = scipy.fft.dct(column - column.mean(), norm="ortho") ** 2
        usual_power = float(np.median(power[OTHER_HALF_WAVES]))
        slow_power = power[SLOW_HALF_WAVES]
        if slow_power.mean() > MIN_RATIO_OF_SLOW_PART * usual_power:
            total = max(float(power.sum()), SMALLEST_DIVISOR)
            largest = max(largest, float(slow_power.sum()) / total)
    return largest


def period_of(u: Floats) -> int | None:
    """Return after how many rows inputs (rows, inputs) repeat exactly; None if they do not."""
    n = len(u)
    tolerance = MAX_RELATIVE_CHANGE_OF_PERIOD * np.ptp(u, axis=0)
    n_first = min(ROWS_FIRST_COMPARED, n // 2)
    may_be = np.ones(max(n // 2 - 1, 0), dtype=bool)  # for the periods from 1 on
    for row in range(n_first):
        later = u[row + 1 : row + 1 + len(may_be)]
        may_be &= np.all(np.abs(later - u[row]) <= tolerance, axis=1)
    for period in (np.flatnonzero(may_be) + 1).tolist():
        if np.all(np.abs(u[period:] - u[:-period]) <= tolerance):
            return period
    return None


def near_period_of(u: Floats) -> tuple[int, float] | None:
    """Return after how many rows inputs nearly repeat, and the part of their variance they change.

    A period that was recorded with noise is such a case. None where inputs do not nearly repeat,
    all of them after the same number of rows, at least three times.
    """
    n = len(u)
    n_lags = n // 3
    if n_lags < 2:
        return None
    change = np.zeros(n_lags)
    for column in u.T:
        if column.min() < column.max():
            change = np.maximum(change, _relative_change(column, n_lags))
    has_moved = np.maximum.accumulate(change) > MIN_CHANGE_WITHIN_PERIOD
    is_back = has_moved & (change < MAX_CHANGE_AFTER_PERIOD)
    if not is_back.any():
        return None
    first = int(np.argmax(is_back))
    until_away = np.flatnonzero(~is_back[first:])
    end = first + int(until_away[0]) if len(until_away) else n_lags
    period = first + int(np.argmin(change[first:end]))
    return period, float(change[period])


def _relative_change(column: Floats, n_lags: int) -> Floats:
    """Return the mean square change after each lag over that of independent rows, (lags,)."""
    n = len(column)
    centred = column - column.mean()
    products = _autocorrelations(column, n_lags) * float(centred @ centred)
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    lags = np.arange(n_lags)
    # The sums of squares of all rows that have a partner, earlier and later ones.
    sums = squares[n - lags] + squares[n] - squares[lags]
    n_pairs = n - lags
    changes: Floats = (sums - 2 * products) / n_pairs
    return np.maximum(changes, 0.0) / max(2 * float(np.mean(centred**2)), SMALLEST_DIVISOR)
