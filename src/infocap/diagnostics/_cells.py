"""Tests of single values: one value too often, codes that never come, cells far from their fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import binom, poisson

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import chi_squared_tail
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._order import level
from ._residuals import NORMAL_MEDIAN_DEVIATION
from ._rows import capacity_of_rows, nearest_rows

# Values that a channel takes, at least, to be more than a device of a few states.
MIN_VALUES = 32
# A value comes too often where it comes so many times, and so many times as often as any of the
# values beside it, of which so many on each side are looked at.
MIN_COUNT = 5
FREQUENCY_RATIO = 4.0
N_VALUES_BESIDE = 4
# Frequent values of one channel beyond which it has levels of its own.
MAX_FREQUENT_VALUES = 3
# Part of the cells with a frequent value that follow each other, from which the channel is frozen.
MIN_SHARE_IN_RUNS = 0.7
MIN_FROZEN_ROWS = 9
# Runs of equal values among some sorted rows from which a channel is looked at as a whole.
MIN_EQUAL_IN_SAMPLE = 3
# A hole of codes: so many steps long, with so many values on each side of it, and so unlikely by
# the density of the codes beside it.
MIN_MISSING_CODES = 8
MIN_VALUES_BESIDE_HOLE = 12
N_VALUES_FOR_DENSITY = 16
MAX_CHANCE_OF_HOLE = 1e-9
DENSITY_MARGIN = 0.3
# Cells lie far out beyond so many robust standard deviations of their channel's residuals.
FAR_CELL = 16.0
# Thresholds beyond which cells are counted: a tail, even one of index 2, has at most a quarter of
# its values beyond twice a threshold.
TAIL_THRESHOLDS = (8.0, 16.0, 32.0)
MAX_SHARE_OF_TAIL = 0.25
MIN_FAR_CELLS = 4
# Channels in which values lie far out, so many and such a part of all: sharp resonances do the same
# in a few.
MIN_OUTLYING_CHANNELS = 4
MIN_SHARE_OF_CHANNELS = 0.25
MAX_SHARE_OF_FAR_ROWS = 0.4
MAX_LOOKED_AT_CHANNELS = 60
MAX_LOOKED_AT_ROWS = 400
# Chance of the means of functions over far cells, below which they belong to some inputs.
MIN_CHANCE_OF_INPUTS = 0.02


def frequent_values(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where one value comes far more often than the values beside it."""
    codes = []
    frozen = []
    rows_of_codes: list[Integers] = []
    for channel in _channels_with_equal_values(excerpt):
        rows = _rows_of_frequent_value(excerpt.x[:, channel], excerpt.x.shape[1])
        if not len(rows):
            continue
        in_runs = np.mean(np.diff(rows) == 1)
        if in_runs > MIN_SHARE_IN_RUNS and len(rows) >= MIN_FROZEN_ROWS:
            if excerpt.related_inputs is None:  # readouts of a sweep may stay for a while
                frozen.append(channel)
        else:
            codes.append(channel)
            rows_of_codes.append(rows)
    if codes:
        rows = np.unique(np.concatenate(rows_of_codes))
        names = excerpt.names(codes)
        yield finding(
            f"{len(names)} channels hold one value far too often, among values that hardly repeat "
            f"({join_names(names)}; rows {numbers(excerpt.rows[rows])}): a code, zero or mean in place of numbers that "
            "are missing",
            cause="codes",
            next_step="leave these rows out",
            in_short="codes among the readouts",
            capacity=capacity_of_rows(excerpt.residuals, len(rows)),
            rows=excerpt.rows[rows],
            channels=names,
        )
    if frozen:
        names = excerpt.names(frozen)
        yield finding(
            f"{len(names)} channels stay at one value for a while ({join_names(names)}): a plug that was loose, or a "
            "detector that hung",
            cause="frozen",
            next_step="leave these channels or rows out",
            in_short="channels that are frozen for a while",
            channels=names,
        )


def _channels_with_equal_values(excerpt: Excerpt) -> Integers:
    """Return the channels with equal values among some rows, more than a few of which are different."""
    is_equal = np.diff(excerpt.sorted, axis=1) == 0
    # So many equal values in a row are as many steps, less one, that are zero.
    in_a_row = np.lib.stride_tricks.sliding_window_view(is_equal, MIN_EQUAL_IN_SAMPLE - 1, axis=1)
    n_values = is_equal.shape[1] + 1 - is_equal.sum(axis=1)
    repeats = np.any(np.all(in_a_row, axis=2), axis=1)
    return np.flatnonzero(repeats & (n_values >= MIN_VALUES))


def _rows_of_frequent_value(column: Floats, n_channels: int) -> Integers:
    """Return the rows that hold a value inside the range which comes too often; none if there is none."""
    none = np.arange(0)
    values, counts = np.unique(column, return_counts=True)
    if len(values) < MIN_VALUES or not (np.median(counts) == 1 or _on_equal_steps(values)):
        return none
    beside = _largest_count_beside(counts)
    is_frequent = (counts >= MIN_COUNT) & (counts > FREQUENCY_RATIO * beside)
    if not 0 < is_frequent.sum() <= MAX_FREQUENT_VALUES:
        return none
    top = int(np.argmax(np.where(is_frequent, counts - 3 * beside, -np.inf)))
    chance = poisson.sf(counts[top] - 1, 2 * beside[top] + 0.5) * len(values) * n_channels
    is_end = top in (0, len(values) - 1)  # of a clipped channel, or of a dark one
    if chance > MAX_CHANCE_OF_HOLE or is_end:
        return none
    return np.flatnonzero(column == values[top])


def _largest_count_beside(counts: Integers) -> Floats:
    """Return the largest count among the values on both sides of each value."""
    padded = np.pad(counts.astype(float), N_VALUES_BESIDE)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * N_VALUES_BESIDE + 1)
    left = windows[:, :N_VALUES_BESIDE].max(axis=1)
    right = windows[:, N_VALUES_BESIDE + 1 :].max(axis=1)
    return np.maximum(left, right)


def missing_codes(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where a converter never gives a range of codes between full ones."""
    if excerpt.related_inputs is not None:
        return  # A sweep may leave out what lies between its inputs.
    channels = [k for k in _channels_on_steps(excerpt) if _has_hole(excerpt.x[:, k])]
    if not channels:
        return
    names = excerpt.names(channels)
    yield finding(
        f"{len(names)} channels never take a whole range of codes between codes that they often take "
        f"({join_names(names)}): a bit of the converter is stuck, or its codes wrap around",
        cause="missing codes",
        next_step="repair the converter, and measure again",
        in_short="codes that never come",
        channels=names,
    )


def _channels_on_steps(excerpt: Excerpt) -> Integers:
    """Return the channels that repeat values among some rows, as behind a converter."""
    gaps = np.diff(excerpt.sorted, axis=1)
    n_values = np.sum(gaps > 0, axis=1) + 1
    return np.flatnonzero(
        (np.mean(gaps == 0, axis=1) > 0.05) & (n_values >= 2 * MIN_VALUES_BESIDE_HOLE)
    )


def _has_hole(column: Floats) -> bool:
    """Return whether codes on equal steps have a hole that the counts beside it do not allow."""
    values, counts = np.unique(column, return_counts=True)
    if not _on_equal_steps(values):
        return False
    gaps = np.diff(values)
    step = gaps.min()
    in_steps = gaps / step
    for k in np.flatnonzero(in_steps > MIN_MISSING_CODES):
        n_left = k + 1
        n_right = len(values) - n_left
        if min(n_left, n_right) < MIN_VALUES_BESIDE_HOLE:
            continue
        left = slice(max(0, n_left - N_VALUES_FOR_DENSITY), n_left)
        right = slice(n_left, n_left + N_VALUES_FOR_DENSITY)
        densities = [_counts_per_code(values[s], counts[s], step) for s in (left, right)]
        if min(counts[left].sum(), counts[right].sum()) < N_VALUES_FOR_DENSITY:
            continue
        expected = DENSITY_MARGIN * min(densities) * (round(in_steps[k]) - 1)
        if np.exp(-expected) < MAX_CHANCE_OF_HOLE:
            return True
    return False


def _on_equal_steps(values: Floats) -> bool:
    """Return whether values are codes of a converter: whole multiples of a step, most of them one."""
    gaps = np.diff(values)
    in_steps = gaps / gaps.min()
    is_whole = np.abs(in_steps - np.round(in_steps)) < 1e-6 * in_steps
    return bool(np.mean(is_whole) > 0.999 and np.median(in_steps) < 1.5)


def _counts_per_code(values: Floats, counts: Integers, step: float) -> float:
    """Return how often each code comes on average between the first and the last of these."""
    return float(counts.sum() / ((values[-1] - values[0]) / step + 1))


def outlying_cells(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where single values lie far from their fit, whatever the inputs."""
    if excerpt.related_inputs is not None:
        return
    residuals = excerpt.residuals
    some = np.abs(residuals.channel_residuals(excerpt.some))
    deviation = np.median(some, axis=0) / NORMAL_MEDIAN_DEVIATION
    far_limit = (FAR_CELL * np.maximum(deviation, np.finfo(np.float32).tiny)).astype(np.float32)
    n_channels = len(deviation)
    n_needed = min(max(MIN_OUTLYING_CHANNELS, MIN_SHARE_OF_CHANNELS * n_channels), n_channels)
    if np.sum(residuals.largest > far_limit) < n_needed:
        return
    left = np.abs(residuals.channel_residuals())
    n_far = np.sum(left > far_limit, axis=0)
    channels = np.flatnonzero(n_far >= 3)
    if n_far.sum() < MIN_FAR_CELLS or not len(channels):
        return
    sizes = (left[:, channels] / deviation[channels]).ravel()
    if _p_value_of_second_population(sizes) > level(excerpt):
        return
    is_far = left > far_limit
    if np.count_nonzero(is_far.any(axis=1)) > MAX_SHARE_OF_FAR_ROWS * excerpt.n:
        return
    channels = channels[:MAX_LOOKED_AT_CHANNELS]
    outlying = [k for k in channels if not _belong_to_inputs(excerpt, np.flatnonzero(is_far[:, k]))]
    if len(outlying) <= len(channels) / 2 or len(outlying) < n_needed:
        return
    rows = np.flatnonzero(is_far[:, outlying].any(axis=1))
    n_cells = int(is_far[:, outlying].sum())
    names = excerpt.names(outlying)
    yield finding(
        f"{n_cells} values in {len(names)} channels ({join_names(names)}; rows "
        f"{numbers(excerpt.rows[rows])}) lie more than {FAR_CELL:.0f} standard deviations from the fit "
        "by their inputs, at any inputs: spikes, codes, a lost decimal point, another range or sign",
        cause="outlying",
        next_step="look there, and leave them out if they are no measurements",
        in_short="values far from their fit",
        capacity=_capacity_of_cells(excerpt, is_far),
        rows=excerpt.rows[rows],
        channels=names,
    )


def _capacity_of_cells(excerpt: Excerpt, is_far: Floats) -> float:
    """Return the capacity that is lost where far cells take a part of the channels' variance."""
    squares = (excerpt.x - np.median(excerpt.x, axis=0)) ** 2
    share = np.sum(squares * is_far, axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    return excerpt.residuals.held_capacity * float(share.mean())


def _p_value_of_second_population(sizes: Floats) -> float:
    """Return the p-value that sizes are one population with a tail of index 2 or more."""
    p_value = 1.0
    for threshold in TAIL_THRESHOLDS:
        n_beyond = int(np.sum(sizes > threshold))
        n_far = int(np.sum(sizes > 2 * threshold))
        if n_far:
            tail = float(binom.sf(n_far - 1, n_beyond, MAX_SHARE_OF_TAIL))
            p_value = min(p_value, len(TAIL_THRESHOLDS) * tail)
    return p_value


def _belong_to_inputs(excerpt: Excerpt, rows: Integers) -> bool:
    """Return whether far cells lie at some inputs more than at others, as a resonance does."""
    rows = rows[:MAX_LOOKED_AT_ROWS]
    h = excerpt.residuals.h[:, :12]
    means = h[rows].mean(axis=0)
    if chi_squared_tail(len(rows) * np.sum(means**2), h.shape[1]) < MIN_CHANCE_OF_INPUTS:
        return True
    if excerpt.of_sequence:
        return False
    are_neighbours = np.mean(np.isin(nearest_rows(excerpt.scaled_inputs, rows), rows))
    return bool(are_neighbours > 3 * len(rows) / excerpt.n + 0.1)
