"""Tests of what lies far from its fit: single cells and whole rows, whatever their inputs.

A device may respond sharply at some inputs, and its noise may have a heavy tail. So far values
count only where they are a population of their own, which no tail of index 2 gives, and where they
lie at no inputs more than at others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import binomial_tail, chi_squared_tail, level
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._residuals import NORMAL_MEDIAN_DEVIATION
from ._rows import nearest_rows

# Cells lie far out beyond so many robust standard deviations of their channel's residuals.
FAR_CELL = 16.0
# Smallest deviation that is told from zero.
SMALLEST_DEVIATION = np.finfo(np.float32).tiny
# Index of the heaviest tail that noise may have: with less its variance would be infinite.
TAIL_INDEX = 2.0
# Cells and rows are counted beyond a first threshold, twice and four times it: of a tail, at most a
# quarter lies beyond twice each.
DOUBLINGS = np.array([1.0, 2.0, 4.0])
FIRST_THRESHOLD_OF_CELLS = 8.0
MAX_SHARE_OF_TAIL = 2.0**-TAIL_INDEX
# Far cells that a finding needs, in all and in a channel.
MIN_FAR_CELLS = 4
MIN_FAR_CELLS_OF_CHANNEL = 3
# Channels in which values lie far out, so many and such a part of all: sharp resonances do the same
# in a few.
MIN_OUTLYING_CHANNELS = 4
MIN_SHARE_OF_CHANNELS = 0.25
MAX_LOOKED_AT_CHANNELS = 60
# Part of the rows with far cells, beyond which they are no outliers.
MAX_SHARE_OF_FAR_ROWS = 0.4
# Rows are far where half of their channels lie so far out, in robust standard deviations. Those of
# them beyond a gap that no tail has are glitched.
FAR_ROW = 4.0
# Glitched rows that a finding needs, and their largest part of all.
MIN_GLITCHED_ROWS = 5
MAX_SHARE_OF_GLITCHED_ROWS = 0.1
# Times that functions of the inputs explain more of the misfit than by chance, from which noise is
# larger at some inputs.
MIN_RATIO_TO_CHANCE = 3.0
QUANTILE_OF_ORDINARY_ROWS = 0.95
# Rows are looked at whose directions are, on average, this far out.
FAR_MISFIT = 3.0
# Chance of the means of functions over far cells, below which they belong to some inputs.
MIN_CHANCE_OF_INPUTS = 0.02
# Functions, and far cells, that are looked at for that; fewer cells tell nothing.
N_FUNCTIONS_OF_INPUTS = 12
MAX_LOOKED_AT_ROWS = 400
MIN_ROWS_OF_INPUTS = 3
# Part of the far rows whose nearest rows by inputs are far, too, beyond chance.
MAX_NEIGHBOURS_BEYOND_CHANCE = 0.1
MAX_RATIO_OF_NEIGHBOURS = 3.0


def far_values(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows, or single values, lie far from their fit, whatever the inputs."""
    if excerpt.related_inputs is not None:
        return  # Neighbours of a sweep lie far out together.
    some = np.abs(excerpt.residuals.channel_residuals(excerpt.some).T)
    middle = some.shape[1] // 2
    deviation = np.partition(some, middle)[:, middle]
    deviation = np.maximum(deviation / np.float32(NORMAL_MEDIAN_DEVIATION), SMALLEST_DEVIATION)
    glitches = list(_glitched_rows(excerpt, deviation))
    yield from glitches
    # Most data have few far cells, which the largest residuals of the channels tell.
    n_far_channels = np.count_nonzero(excerpt.residuals.largest > FAR_CELL * deviation)
    if not glitches and n_far_channels >= _n_needed_channels(len(deviation)):
        yield from _outlying_cells(excerpt, deviation)


def _n_needed_channels(n_channels: int) -> float:
    """Return in how many channels far values are no resonances."""
    return min(max(MIN_OUTLYING_CHANNELS, MIN_SHARE_OF_CHANNELS * n_channels), n_channels)


def _glitched_rows(excerpt: Excerpt, deviation: Floats) -> Iterator[Check]:
    """Yield a check where rows lie far out in half of their channels."""
    candidates = np.flatnonzero(excerpt.residuals.log_misfit > 2 * np.log(FAR_MISFIT))
    if len(candidates) < MIN_GLITCHED_ROWS:
        return
    size = np.abs(excerpt.residuals.channel_residuals(candidates))
    sizes = np.median(size / deviation, axis=1)
    rows = _rows_of_another_population(excerpt, candidates, sizes)
    if not len(rows):
        return
    yield finding(
        f"{len(rows)} of {excerpt.n} rows lie far outside the others, up to {sizes.max():.0f} "
        "standard deviations in half of their channels and whatever their inputs (rows "
        f"{numbers(excerpt.rows[rows])}): glitched shots",
        cause="glitches",
        next_step="look at them, and leave out those that are no measurements",
        in_short="glitched rows",
        capacity=capacity_of_cells(excerpt, *_all_cells(rows, excerpt.x.shape[1])),
        rows=excerpt.rows[rows],
    )


def _all_cells(rows: Integers, n_channels: int) -> tuple[Integers, Integers]:
    """Return row and channel of all cells of some rows."""
    return np.repeat(rows, n_channels), np.tile(np.arange(n_channels), len(rows))


def _rows_of_another_population(excerpt: Excerpt, candidates: Integers, sizes: Floats) -> Integers:
    """Return rows that no tail gives, whatever their inputs: those beyond a gap, or all far ones.

    They must be far for their inputs, too, where residuals are larger at some of these.
    """
    for find in (_rows_beyond_gap, _rows_of_heavy_tail):
        rows, p_value = find(excerpt, candidates, sizes)
        if p_value > level(excerpt) / 2:
            continue
        relative_sizes = sizes / _expected_size(excerpt)[candidates]
        rows, p_value = find(excerpt, candidates, relative_sizes)
        if p_value <= level(excerpt) / 2 and not belong_to_inputs(excerpt, rows):
            return rows
    return np.arange(0)


def _rows_beyond_gap(
    excerpt: Excerpt, candidates: Integers, sizes: Floats
) -> tuple[Integers, float]:
    """Return the rows beyond a gap in the tail of sizes, and the p-value of that gap."""
    candidates, sizes = _far_rows(excerpt, candidates, sizes)
    if not len(candidates):
        return candidates, 1.0
    n_glitched, p_value = _gap_in_tail(sizes)
    return np.sort(candidates[np.argsort(-sizes)[:n_glitched]]), p_value


def _rows_of_heavy_tail(
    excerpt: Excerpt, candidates: Integers, sizes: Floats
) -> tuple[Integers, float]:
    """Return the far rows, and the p-value that their sizes are a tail of index 2 or more."""
    candidates, sizes = _far_rows(excerpt, candidates, sizes)
    return candidates, _p_value_of_second_population(sizes, FAR_ROW * DOUBLINGS)


def _far_rows(excerpt: Excerpt, candidates: Integers, sizes: Floats) -> tuple[Integers, Floats]:
    """Return the rows that are far, and their sizes; none if they are too few or too many."""
    is_far = sizes > FAR_ROW
    n_far = np.count_nonzero(is_far)
    if not MIN_GLITCHED_ROWS <= n_far <= MAX_SHARE_OF_GLITCHED_ROWS * excerpt.n:
        is_far = np.zeros(len(sizes), dtype=bool)
    return candidates[is_far], sizes[is_far]


def _expected_size(excerpt: Excerpt) -> Floats:
    """Return how large residuals are at each row's inputs, relative to the usual size, (rows,).

    Noise may be larger at some inputs than at others. Glitches count no more than the largest
    residuals of ordinary rows do.
    """
    h = excerpt.residuals.h
    logarithm = excerpt.residuals.log_misfit
    logarithm = np.minimum(logarithm, np.quantile(logarithm, QUANTILE_OF_ORDINARY_ROWS))
    logarithm = logarithm - logarithm.mean()
    fitted = h @ np.linalg.lstsq(h, logarithm, rcond=None)[0]
    by_chance = np.var(logarithm) * h.shape[1] / excerpt.n
    if np.var(fitted) < MIN_RATIO_TO_CHANCE * by_chance:
        return np.ones(excerpt.n)
    return np.exp(0.5 * np.maximum(fitted, 0.0))


def _gap_in_tail(sizes: Floats) -> tuple[int, float]:
    """Return how many sizes lie beyond a gap that no tail gives, and the p-value of that gap.

    Of a tail of index a, k times the logarithm of the ratio of the k-th and the next largest value
    is exponential with mean 1/a (Rényi's representation). What lies below FAR_ROW counts as that.
    """
    descending = np.append(np.sort(sizes)[::-1], FAR_ROW)
    k = np.arange(1, len(descending))
    ratio = descending[:-1] / descending[1:]
    p_values = ratio ** (-TAIL_INDEX * k) * len(k)
    p_values[: MIN_GLITCHED_ROWS - 1] = 1.0
    best = int(np.argmin(p_values))
    return best + 1, float(p_values[best])


def _outlying_cells(excerpt: Excerpt, deviation: Floats) -> Iterator[Check]:
    """Yield a check where single values lie far out in many channels."""
    size = np.abs(excerpt.residuals.channel_residuals())
    cells = np.flatnonzero(size > FIRST_THRESHOLD_OF_CELLS * deviation)
    rows, columns = np.divmod(cells, size.shape[1])
    sizes = size[rows, columns] / deviation[columns]
    is_far = sizes > FAR_CELL
    n_far = np.bincount(columns[is_far], minlength=size.shape[1])
    channels = np.flatnonzero(n_far >= MIN_FAR_CELLS_OF_CHANNEL)
    if n_far.sum() < MIN_FAR_CELLS or not len(channels):
        return
    sizes_in_channels = sizes[np.isin(columns, channels)]
    thresholds = FIRST_THRESHOLD_OF_CELLS * DOUBLINGS
    if _p_value_of_second_population(sizes_in_channels, thresholds) > level(excerpt):
        return
    rows = rows[is_far]
    columns = columns[is_far]
    if len(np.unique(rows)) > MAX_SHARE_OF_FAR_ROWS * excerpt.n:
        return
    channels = channels[:MAX_LOOKED_AT_CHANNELS]
    outlying = [k for k in channels if not belong_to_inputs(excerpt, rows[columns == k])]
    if len(outlying) <= len(channels) / 2 or len(outlying) < _n_needed_channels(size.shape[1]):
        return
    is_outlying = np.isin(columns, outlying)
    rows = rows[is_outlying]
    columns = columns[is_outlying]
    n_cells = len(rows)
    names = excerpt.names(outlying)
    yield finding(
        f"{n_cells} values in {len(names)} channels ({join_names(names)}; rows "
        f"{numbers(excerpt.rows[np.unique(rows)])}) lie more than {FAR_CELL:.0f} standard "
        "deviations from the fit by their inputs, at any inputs: spikes, codes, a lost decimal "
        "point, another range or sign",
        cause="outlying",
        next_step="look there, and leave them out if they are no measurements",
        in_short="values far from their fit",
        capacity=capacity_of_cells(excerpt, rows, columns),
        rows=excerpt.rows[np.unique(rows)],
        channels=names,
    )


def capacity_of_cells(excerpt: Excerpt, rows: Integers, columns: Integers) -> float:
    """Return the capacity that is lost where cells take a part of the channels' variance.

    Of many channels a few directions are looked at. A channel that is lost costs at most what one
    of these holds on average.
    """
    share = _sum_of_shares(excerpt, rows, columns) / excerpt.residuals.projections.shape[1]
    return excerpt.residuals.held_capacity * min(share, 1.0)


def _sum_of_shares(excerpt: Excerpt, rows: Integers, columns: Integers) -> float:
    """Return the part of its channel's variance that each cell takes, summed over the cells."""
    deviation = np.abs(excerpt.x - np.median(excerpt.x, axis=0))
    # In units of the largest, because squares of codes could overflow.
    squares = (deviation / np.maximum(deviation.max(axis=0), np.finfo(float).tiny)) ** 2
    variance = np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    return float(np.sum(squares[rows, columns] / variance[columns]))


def _p_value_of_second_population(sizes: Floats, thresholds: Floats) -> float:
    """Return the p-value that sizes are one population with a tail of index 2 or more."""
    p_value = 1.0
    for threshold in thresholds:
        n_beyond = int(np.count_nonzero(sizes > threshold))
        n_far = int(np.count_nonzero(sizes > 2 * threshold))
        if n_far:
            tail = binomial_tail(n_far, n_beyond, MAX_SHARE_OF_TAIL)
            p_value = min(p_value, len(thresholds) * tail)
    return p_value


def belong_to_inputs(excerpt: Excerpt, rows: Integers) -> bool:
    """Return whether rows lie at some inputs more than at others, as a resonance does."""
    if len(rows) < MIN_ROWS_OF_INPUTS:
        return False
    rows = rows[:MAX_LOOKED_AT_ROWS]
    h = excerpt.residuals.h[:, :N_FUNCTIONS_OF_INPUTS]
    means = h[rows].mean(axis=0)
    if chi_squared_tail(len(rows) * np.sum(means**2), h.shape[1]) < MIN_CHANCE_OF_INPUTS:
        return True
    if excerpt.of_sequence:
        return False
    are_neighbours = np.mean(np.isin(nearest_rows(excerpt.scaled_inputs, rows), rows))
    by_chance = MAX_RATIO_OF_NEIGHBOURS * len(rows) / excerpt.n
    return bool(are_neighbours > by_chance + MAX_NEIGHBOURS_BEYOND_CHANCE)
