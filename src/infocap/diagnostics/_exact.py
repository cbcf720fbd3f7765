"""Exact tests: relations that hold to rounding in measured data only by mistake.

No noisy readout lies exactly on the line between its neighbours, equals another row's, or has a
mean of exactly zero over every batch. So these tests need no p-value. Each begins with a quick look
at few numbers and goes on where these agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._rows import capacity_of_rows

# Relative size of rounding errors.
ROUNDING = 1e-7
# Rows that a finding needs, and their least part of all rows.
MIN_EXACT_ROWS = 4
MIN_SHARE_OF_ROWS = 1e-3
# A row lies on the line between others where its squared distance from it, relative to the size of
# its values, is less than this, and where it is no end of the line: so far along it, as a part.
MAX_SQUARED_DISTANCE = 1e-16
MIN_PART_OF_LINE = 1e-3
# A value lies halfway between others where it differs from their mean by less, relative to them.
MAX_DISTANCE_FROM_MEAN = 1e-12
# Rows away that tell how many rows lie on a line by chance, and how many times as many are needed.
FAR_ROWS = 7
MIN_RATIO_TO_CHANCE = 4
# Squared distance of inputs, relative to the typical one, from which rows have other inputs. So
# many times as many rows must be copies at other inputs as at near ones.
OTHER_INPUTS = 0.1
MIN_RATIO_TO_NEAR_INPUTS = 4
# Part of the copies that are of the row before, from which they are a stale buffer.
MIN_SHARE_OF_STALE_ROWS = 0.5
# Logarithm of the number of rows that equal another one by chance, above which equal rows are no
# copies.
MAX_LOG_CHANCE_OF_EQUAL_ROWS = -7.0
# Part of the values of a channel that equal others far away, for a channel of measured numbers.
MAX_SHARE_OF_REPEATS = 0.01
# A channel equals an input where the squared correlation differs from 1 by less than this.
EXACT_CORRELATION = 1e-12
# Correlations below this are rounding: by chance they are one over the root of the rows.
MAX_CORRELATION_OF_COMPONENTS = 1e-9
# Channels in which filled values are looked for at first.
N_FIRST_CHANNELS = 8
# Batches that have to show the same, and the least share of all batches.
MIN_BATCHES = 3
MIN_SHARE_OF_BATCHES = 0.8


def interpolated_rows(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows lie exactly on the line between their neighbours.

    Readouts of a noiseless device with few degrees of freedom lie on such lines by chance. So the
    number of rows is compared with that of rows between two far ones.
    """
    n_channels = excerpt.x.shape[1]
    if n_channels < 3 or excerpt.n < 4 * FAR_ROWS:
        return
    middle = excerpt.sorted[:, excerpt.sorted.shape[1] // 2]
    n_needed = max(MIN_EXACT_ROWS, MIN_SHARE_OF_ROWS * excerpt.n)
    # In the plane of two channels already, few rows of most data lie on such a line.
    two_channels = [0, n_channels - 1]
    if _n_on_line_in_plane(excerpt.x[:, two_channels] - middle[two_channels]) < n_needed:
        return
    rows = np.arange(1, excerpt.n - 1)
    x = excerpt.x - middle
    rows = _on_line(x, rows, 1)
    by_chance = _on_line(x, np.arange(FAR_ROWS, excerpt.n - FAR_ROWS), FAR_ROWS)
    if len(rows) < n_needed + MIN_RATIO_TO_CHANCE * len(by_chance):
        return
    yield finding(
        f"{len(rows)} of {excerpt.n} rows lie exactly on the line between their neighbours (rows "
        f"{numbers(excerpt.rows[rows])}): they were interpolated and not measured",
        cause="interpolated",
        next_step="leave them out, or give the rows as measured",
        in_short="interpolated rows",
        capacity=capacity_of_rows(excerpt.residuals, len(rows)),
        rows=excerpt.rows[rows],
    )


def _n_on_line_in_plane(x: Floats) -> int:
    """Return how many rows of two columns lie on a straight line with the rows before and after."""
    step = x[1:-1] - x[:-2]
    line = x[2:] - x[:-2]
    areas = step[:, 0] * line[:, 1], step[:, 1] * line[:, 0]
    rounding = np.abs(areas[0]) + np.abs(areas[1])
    return int(np.count_nonzero(np.abs(areas[0] - areas[1]) <= ROUNDING * rounding))


def _on_line(x: Floats, rows: Integers, distance: int) -> Integers:
    """Return those rows that lie on the straight line between the rows so far before and after."""
    before = x[rows - distance]
    step = x[rows] - before
    line = x[rows + distance] - before
    length = np.einsum("ij,ij->i", line, line)
    along = np.einsum("ij,ij->i", step, line) / np.maximum(length, np.finfo(float).tiny)
    off = step - along[:, None] * line
    size = np.einsum("ij,ij->i", x[rows], x[rows]) + np.einsum("ij,ij->i", step, step)
    size = np.maximum(size, np.finfo(float).tiny)
    is_exact = np.einsum("ij,ij->i", off, off) < MAX_SQUARED_DISTANCE * size
    is_between = (along > MIN_PART_OF_LINE) & (along < 1 - MIN_PART_OF_LINE)
    moves = np.sum((line != 0) & (step != 0), axis=1) > 2
    return rows[is_exact & is_between & moves]


def filled_cells(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where single values repeat the row before, or lie halfway between neighbours.

    Values that hardly ever repeat do neither by chance.
    """
    if excerpt.n < 4 * FAR_ROWS or excerpt.related_inputs is not None:
        return
    first = slice(None, None, -(-excerpt.x.shape[1] // N_FIRST_CHANNELS))
    if not any(_is_filled(excerpt.x[:, first], 1).sum(axis=0) >= MIN_EXACT_ROWS):
        return
    is_filled = _is_filled(excerpt.x, 1)
    n_filled = is_filled.sum(axis=0)
    by_chance = _is_filled(excerpt.x, FAR_ROWS).sum(axis=0)
    is_clear = n_filled >= MIN_EXACT_ROWS + MIN_RATIO_TO_CHANCE * by_chance
    channels = [k for k in np.flatnonzero(is_clear) if _hardly_repeats(excerpt.x[:, k])]
    if not channels:
        return
    is_filled = is_filled[:, channels]
    # Rows that are filled in all channels are told by other tests.
    is_whole_row = is_filled.all(axis=1) & (len(channels) > 1)
    rows = np.flatnonzero(is_filled.any(axis=1) & ~is_whole_row) + 1
    if len(rows) < MIN_EXACT_ROWS:
        return
    n_cells = int(is_filled.sum())
    names = excerpt.names(channels)
    yield finding(
        f"{n_cells} values in {join_names(names)} equal the row before, or lie exactly halfway "
        f"between their neighbours (rows {numbers(excerpt.rows[rows])}): missing values that were "
        "filled in",
        cause="filled cells",
        next_step="give them as missing",
        in_short="values that were filled in",
        capacity=capacity_of_rows(excerpt.residuals, n_cells / excerpt.x.shape[1]),
        rows=excerpt.rows[rows],
        channels=names,
    )


def _is_filled(x: Floats, distance: int) -> Any:
    """Return which inner values equal the one so far before, or lie halfway to the one after."""
    before = x[: len(x) - 2 * distance]
    value = x[distance : len(x) - distance]
    after = x[2 * distance :]
    off_line = np.abs(2 * value - before - after)
    rounding = MAX_DISTANCE_FROM_MEAN * (np.abs(before) + np.abs(after))
    is_halfway = (off_line <= rounding) & (before != after)
    return is_halfway | (value == before)


def _hardly_repeats(column: Floats) -> bool:
    """Return whether values repeat those of other rows hardly more often than their neighbours."""
    n_beside = np.count_nonzero(column[1:] == column[:-1])
    n_equal = len(column) - len(np.unique(column))
    return bool(n_equal <= n_beside + MAX_SHARE_OF_REPEATS * len(column))


def equal_readouts(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows are exact copies of other rows' readouts, at other inputs."""
    first, second = equal_rows(excerpt.x)
    if not MIN_EXACT_ROWS <= len(first) <= excerpt.n / 2:
        return  # With more of them it is a device of few states.
    deviation = np.maximum(excerpt.u.std(axis=0), np.finfo(float).tiny)
    inputs = excerpt.u / deviation
    distance = np.sum((inputs[first] - inputs[second]) ** 2, axis=1)
    shuffled = inputs[np.random.default_rng(0).permutation(excerpt.n)]
    typical = float(np.median(np.sum((inputs - shuffled) ** 2, axis=1)))
    is_other = distance > OTHER_INPUTS * typical
    n_close = int(np.sum((distance > 0) & ~is_other))
    n_other = int(is_other.sum())
    # A device of few states, or behind a coarse converter, repeats readouts at near inputs, too.
    n_needed = max(MIN_EXACT_ROWS, MIN_SHARE_OF_ROWS * excerpt.n)
    if n_other < max(n_needed, MIN_RATIO_TO_NEAR_INPUTS * n_close):
        return
    if _log_chance_of_equal_rows(excerpt.x, first[is_other]) > MAX_LOG_CHANCE_OF_EQUAL_ROWS:
        return  # Readouts of few values, as of a detector in the dark.
    rows = np.sort(second[is_other])
    is_next = np.abs(first - second)[is_other] == 1
    if np.mean(is_next) > MIN_SHARE_OF_STALE_ROWS:
        return  # A stale buffer, which `stale` finds in single channels, too.
    capacity = capacity_of_rows(excerpt.residuals, len(rows))
    where = f"(rows {numbers(excerpt.rows[rows])})"
    is_code = np.all(excerpt.x[rows] == excerpt.x[rows[0]])
    if is_code:
        yield finding(
            f"{len(rows) + 1} of {excerpt.n} rows hold the same readouts to the last digit, "
            f"whatever their inputs {where}: dark shots, or a code in place of numbers",
            cause="codes",
            next_step="leave them out",
            in_short="rows without readouts",
            capacity=capacity,
            rows=sorted({*excerpt.rows[rows].tolist(), int(excerpt.rows[first[is_other][0]])}),
        )
        return
    yield finding(
        f"{len(rows)} of {excerpt.n} rows are exact copies of other rows' readouts at other inputs "
        f"{where}: gaps that were filled, a wrong index, or a code in place of numbers",
        cause="copied rows",
        next_step="leave them out",
        in_short="copied readouts",
        capacity=capacity,
        rows=excerpt.rows[rows],
    )


def _log_chance_of_equal_rows(x: Floats, rows: Integers) -> float:
    """Return the logarithm of how many rows equal one of these by chance, in the median.

    Its channels take their values as often as they do in all rows, independently of each other.
    """
    log_chance = np.full(len(rows), np.log(len(x)))
    for column in x.T:
        in_order = np.sort(column)
        values = column[rows]
        count = np.searchsorted(in_order, values, "right") - np.searchsorted(in_order, values)
        log_chance += np.log(count / len(x))
    return float(np.median(log_chance))


def equal_rows(x: Floats) -> tuple[Integers, Integers]:
    """Return pairs of rows that are equal in all columns."""
    weights = np.random.default_rng(0).standard_normal(x.shape[1])
    mixed = x @ weights
    if np.all(np.diff(np.sort(mixed)) != 0):  # much faster than the order
        return np.arange(0), np.arange(0)
    order = np.argsort(mixed, kind="stable")
    same = np.flatnonzero(np.diff(mixed[order]) == 0)
    first = order[same]
    second = order[same + 1]
    is_equal = np.all(x[first] == x[second], axis=1)
    return first[is_equal], second[is_equal]


def batches(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where the means over batches are zero to rounding."""
    x = excerpt.x
    if x.shape[1] < 2:
        return
    ends = _where_sums_agree(x)
    # Designs of a few levels return to their mean, and the readouts with them.
    if len(ends) < MIN_BATCHES or _sums_agree(excerpt.u - excerpt.u.mean(axis=0), ends):
        return
    length = int(ends[1] - ends[0])
    if length < 2 or len(ends) < MIN_SHARE_OF_BATCHES * (excerpt.n // length - 1):
        return
    yield finding(
        f"means over every {length} rows are zero to the last digit: readouts were normalised in "
        "batches, so that each depends on the inputs of its whole batch",
        cause="batches",
        next_step="use the readouts as measured",
        in_short="readouts normalised in batches",
        capacity=x.shape[1] / length,
        period=length,
    )


def _where_sums_agree(x: Floats) -> Integers:
    """Return the rows at equal distances, if any, up to which the sums of each column are equal.

    Between two of them every mean is zero. The first row may lie inside a batch.
    """
    sums = _sums(x[:, 0])
    limit = ROUNDING * np.sqrt(len(x))
    is_equal = np.diff(np.sort(sums)) < limit
    if not np.any(is_equal[1:] & is_equal[:-1]):  # by chance, two are, and not three
        return np.arange(0)
    order = np.argsort(sums, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(sums[order]) >= limit) + 1)
    rows = np.sort(max(groups, key=len))
    if len(rows) < MIN_BATCHES:
        return np.arange(0)
    # Other rows may be among them: the last one of all, and chance.
    length = int(np.argmax(np.bincount(np.diff(rows))))
    phase = int(np.argmax(np.bincount(rows % length)))
    ends = rows[rows % length == phase]
    return ends if len(ends) >= MIN_BATCHES and _sums_agree(x, ends) else np.arange(0)


def _sums_agree(values: Floats, ends: Integers) -> bool:
    """Return whether the sums of all columns up to some rows are equal to rounding."""
    sums = _sums(values)[ends]
    return bool(np.max(np.ptp(sums, axis=0)) < ROUNDING * np.sqrt(len(values)))


def _sums(values: Floats) -> Floats:
    """Return the sums of columns up to each row, in their standard deviations."""
    size = np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)  # squares could overflow
    in_size = values / size
    return np.cumsum(in_size, axis=0) / np.maximum(in_size.std(axis=0), ROUNDING)


def copies_of_inputs(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a note where a channel equals an input, as a monitor does, or the device itself."""
    some = _squared_correlations(excerpt.u[excerpt.some], excerpt.x[excerpt.some])
    if some.max() < 1 - EXACT_CORRELATION:
        return
    is_copy = _squared_correlations(excerpt.u, excerpt.x) > 1 - EXACT_CORRELATION
    copies = np.flatnonzero(is_copy.any(axis=0))
    if not 0 < len(copies) < excerpt.x.shape[1]:
        return  # A device of nothing but its inputs is a simulation.
    channels = excerpt.names(copies)
    inputs = np.flatnonzero(is_copy.any(axis=1)).tolist()
    names = join_names([f"u{k + 1}" for k in inputs])
    yield finding(
        f"{join_names(channels)} equal the inputs {names} to rounding, and hold up to "
        f"{len(copies)} of the total as readouts",
        cause="monitor",
        next_step="if they are monitors of the inputs, name the readouts without them, by `x`",
        is_note=True,
        channels=channels,
        inputs=inputs,
    )


def _squared_correlations(u: Floats, x: Floats) -> Floats:
    """Return the squared correlation of every input with every channel."""
    inputs = u - u.mean(axis=0)
    readouts = x - x.mean(axis=0)
    sizes = np.sum(inputs**2, axis=0)[:, None] * np.sum(readouts**2, axis=0)
    return (inputs.T @ readouts) ** 2 / np.maximum(sizes, np.finfo(float).tiny)


def principal_components(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where channels are uncorrelated to rounding."""
    is_whole = excerpt.n == excerpt.samples.n_samples
    n_channels = excerpt.x.shape[1]
    if not is_whole or n_channels < 3 or excerpt.samples.history:
        return
    if not _uncorrelated_to_rounding(excerpt.x[:, :2]) or not _uncorrelated_to_rounding(excerpt.x):
        return
    yield finding(
        f"all {n_channels} channels are uncorrelated to the last digit: they are principal "
        "components and not readouts as measured, and the total is that of the components that "
        "were kept",
        cause="uncorrelated",
        next_step="give the readouts as measured, and `n_components` if they are too many",
        in_short="principal components in place of readouts",
    )


def _uncorrelated_to_rounding(x: Floats) -> bool:
    """Return whether no two columns have a correlation beyond rounding."""
    centred = np.ascontiguousarray(x.T)
    centred -= centred.mean(axis=1, keepdims=True)
    size = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    if np.any(size == 0):
        return False
    correlation = centred @ centred.T / size / size[:, None]
    np.fill_diagonal(correlation, 0.0)
    return bool(np.abs(correlation).max() < MAX_CORRELATION_OF_COMPONENTS)
