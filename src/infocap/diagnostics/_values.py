"""Values that no device gives: codes, stale or frozen readouts, clipping, and clocks.

Each test rests on an exact fact about the values of a channel, such as one that comes far more
often than the values beside it. Each begins with a quick look at a few sorted rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._formatting import join_names
from ..basis import DiscreteFamily
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import poisson_tail
from ._excerpt import Excerpt, numbers
from ._finding import finding
from ._outliers import belong_to_inputs, capacity_of_cells
from ._rounding import squared_unit
from ._rows import capacity_of_rows, nearest_rows

# What instruments write in place of a number: SCPI's not-a-number and infinities, and nines.
CODES_OF_INSTRUMENTS = (9.91e37, 9.9e37, -9.9e37, -9999.0, 9999.0, 99999.0, -99999.0, -999.0, 999.0)
# Ends of the range of converters with 16 and 32 bits.
ENDS_OF_CONVERTERS = (32767.0, -32768.0, 65535.0, 2147483647.0, -2147483648.0, 4294967295.0)
CODES = (*CODES_OF_INSTRUMENTS, *ENDS_OF_CONVERTERS)
# Part of the values at each end that the width of a channel leaves out.
OUTER_SHARE = 0.02
# Widths outside, from which a known code is one, and from which any other value is no measurement.
CODE_WIDTHS = 0.5
FAR_WIDTHS = 20.0
# No noise, however heavy its tail, reaches so many widths outside.
IMPOSSIBLE_WIDTHS = 1e9
# No noisy readout takes a far value exactly thrice; and a value that comes in more rows is a state.
MIN_EQUAL_FAR_CELLS = 3
MAX_SHARE_OF_CODE = 0.03
# Values that a channel takes, at least, to be more than a device of a few states.
MIN_VALUES = 32
# Equal values among some sorted rows from which a channel is looked at as a whole.
MIN_EQUAL_IN_SAMPLE = 3
# A value comes too often where it comes so many times, and so many times as often as any of the
# values beside it, of which so many on each side are looked at.
MIN_COUNT = 5
FREQUENCY_RATIO = 4.0
N_VALUES_BESIDE = 4
# A frequent value that belongs to some inputs is no state of the device where nothing is so near to
# it, in standard deviations of the others, and such a part of these lies on each side. Or it is
# none where rows of nearly the same readouts hold values so many times as far away as usual.
MIN_WIDTH_OF_HOLE = 0.2
MIN_SHARE_OF_SIDE = 0.05
MIN_RATIO_OF_DISTANCES = 1.25
MAX_COMPARED_ROWS = 100
# Frequent values of one channel beyond which it has levels of its own.
MAX_FREQUENT_VALUES = 3
# Chance below which a frequent value, or a hole of codes, is none.
MAX_CHANCE = 1e-9
# Part of the cells with a frequent value that follow each other, from which the channel is frozen.
MIN_SHARE_IN_RUNS = 0.7
MIN_FROZEN_ROWS = 9
# Equal neighbours among sorted rows, from which a channel may be behind a converter.
MIN_SHARE_OF_EQUAL = 0.05
# A hole of codes: so many steps long, with so many values on each side of it.
MIN_MISSING_CODES = 8
MIN_VALUES_BESIDE_HOLE = 12
# Values that tell how dense codes are beside a hole, and how much less dense they may be inside.
N_VALUES_FOR_DENSITY = 16
DENSITY_MARGIN = 0.3
# Values are codes where so many of their distances are whole steps, and the usual one is a single
# step.
MIN_SHARE_OF_WHOLE_STEPS = 0.999
MAX_USUAL_STEPS = 1.5
WHOLE_STEP = 1e-6
# Channels in which equal neighbours are looked for at first.
N_FIRST_CHANNELS = 4
# Equal neighbours that a finding needs, and by how many standard deviations they are more than at
# other lags.
MIN_STALE_ROWS = 4
STALE_STANDARD_DEVIATIONS = 8.0
OTHER_LAGS = (2, 3, 4, 5, 6, 8)
# A channel that repeats itself in more rows hardly moves.
MAX_SHARE_OF_STALE_ROWS = 0.5
# A slow readout behind a converter repeats its value; a stale buffer does so in several channels.
MIN_STALE_CHANNELS_OF_SEQUENCE = 3
# Combinations of levels of the inputs below which a pile may be one of them: a pile is 2 %.
MIN_INPUT_STATES = 256
# Times that values are denser in a pile at the end of a range than next to it.
PILE_DENSITY = 20.0
# How much denser they may be next to the pile than farther inside: a smooth saturation gets denser
# towards its end. And how much wider the inner half of a pile may be than its outer one.
MAX_RISE_OF_DENSITY = 2.5
MAX_RATIO_OF_HALVES = 4.0
# Largest width of a pile relative to the range, beyond which noise hides its edge.
MAX_WIDTH_OF_PILE = 0.01
# Largest gap between values next to a pile, relative to all of them: states have gaps between them.
MAX_GAP_BESIDE_PILE = 0.15
# A dark detector, at less than this part of the range from zero, is not clipped.
MAX_DARK_VALUE = 0.05
# Part of the values that lie in the middle of the range, less than so far from its centre relative
# to its width: a device of two states has none.
MIN_SHARE_INSIDE = 0.2
HALF_WIDTH_INSIDE = 0.4
# Numbers of values in a pile that are tried, and that are looked at next to it and farther inside.
MIN_SHARE_OF_PILE = 0.02
MIN_VALUES_OF_PILE = 24
SHARE_BESIDE_PILE = 0.02
SHARE_INSIDE_PILE = 0.05
# Rows that tell whether a channel changes as slowly as a clock.
N_ROWS_OF_CLOCK = 512
# Mean square of the steps over twice the variance: of a clock, and of channels that follow inputs.
MAX_STEPS_OF_CLOCK = 0.1
MIN_STEPS_OF_OTHERS = 0.8
# Part of the variance of a clock that functions of the inputs may explain, beside chance.
MAX_EXPLAINED_OF_CLOCK = 0.1


def codes(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where cells hold an instrument's code, or one value far outside the others."""
    n_outer = int(OUTER_SHARE * excerpt.sorted.shape[1])
    low = excerpt.sorted[:, n_outer]
    high = excerpt.sorted[:, -1 - n_outer]
    width = high - low
    outside = np.maximum(excerpt.ends[1] - high, low - excerpt.ends[0])
    has_code = np.isin(excerpt.ends / excerpt.scale, CODES).any(axis=0)
    has_code &= outside > CODE_WIDTHS * width
    channels = np.flatnonzero((has_code | (outside > FAR_WIDTHS * width)) & (width > 0))
    if not len(channels):
        return
    x = excerpt.x[:, channels]
    with np.errstate(over="ignore"):  # so many widths are impossible in any case
        distance = np.maximum(x - high[channels], low[channels] - x) / width[channels]
    is_impossible = distance > IMPOSSIBLE_WIDTHS
    as_measured = x / excerpt.scale[channels]
    is_code = np.isin(as_measured, CODES) & (distance > CODE_WIDTHS)
    is_known = bool(is_code.any())
    if not is_known:
        is_code = is_impossible
    if not is_code.any():
        is_code = _equal_far_cells(x, distance)
        rows = np.flatnonzero(is_code.any(axis=1))
        if is_code.mean(axis=0).max() > MAX_SHARE_OF_CODE or belong_to_inputs(excerpt, rows):
            return
    rows, columns = np.nonzero(is_code)
    if not len(rows):
        return
    told_rows = excerpt.rows[np.unique(rows)]
    names = excerpt.names(channels[is_code.any(axis=0)])
    where = (
        f"{as_measured[is_code][0]:.6g} stands in {len(rows)} cells of {len(told_rows)} rows (rows "
        f"{numbers(told_rows)}; {join_names(names)})"
    )
    values: dict[str, Any] = {"rows": told_rows, "channels": names}
    if not is_impossible.any():  # beside such a number nothing else is seen, and nothing is held
        values["capacity"] = capacity_of_cells(excerpt, rows, channels[columns])
    if is_known:
        yield finding(
            f"{where}: instruments write it for no number",
            cause="codes",
            next_step="set these cells to missing (infocap diagnose --fix)",
            in_short="codes among the readouts",
            **values,
        )
    else:
        yield finding(
            f"{where}: it lies far outside the others, where noise neither reaches nor repeats",
            cause="codes",
            next_step="leave these rows out",
            in_short="codes among the readouts",
            **values,
        )


def _equal_far_cells(x: Floats, distance: Floats) -> Floats:
    """Return which cells hold the most frequent of the values that lie far outside."""
    is_far = distance > FAR_WIDTHS
    values, counts = np.unique(x[is_far], return_counts=True)
    if not len(values) or counts.max() < MIN_EQUAL_FAR_CELLS:
        return np.zeros(x.shape, dtype=bool)
    return is_far & (x == values[np.argmax(counts)])


def frequent_values(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where one value comes far more often than the values beside it."""
    with_codes = {}
    frozen = []
    for channel in _channels_with_equal_values(excerpt):
        rows = _rows_of_frequent_value(excerpt.x[:, channel], excerpt.x.shape[1])
        if not len(rows):
            continue
        if len(rows) >= MIN_FROZEN_ROWS and np.mean(np.diff(rows) == 1) > MIN_SHARE_IN_RUNS:
            frozen.append(channel)
        elif _was_written_in(excerpt, channel, rows):
            with_codes[channel] = rows
    if with_codes:
        rows = np.unique(np.concatenate(list(with_codes.values())))
        names = excerpt.names(with_codes)
        yield finding(
            f"{len(names)} channels hold one value far too often, among values that hardly "
            f"repeat ({join_names(names)}; rows {numbers(excerpt.rows[rows])}): a code, zero or "
            "mean in place of numbers that are missing",
            cause="codes",
            next_step="leave these rows out",
            in_short="codes among the readouts",
            capacity=capacity_of_rows(excerpt.residuals, len(rows)),
            rows=excerpt.rows[rows],
            channels=names,
        )
    if frozen and excerpt.related_inputs is None:  # readouts of a sweep may stay for a while
        names = excerpt.names(frozen)
        yield finding(
            f"{len(names)} channels stay at one value for a while ({join_names(names)}): a plug "
            "that was loose, or a detector that hung",
            cause="frozen",
            next_step="leave these channels or rows out",
            in_short="channels that are frozen for a while",
            channels=names,
        )


def _was_written_in(excerpt: Excerpt, channel: int, rows: Integers) -> bool:
    """Return whether a value was put in by a program: its rows belong to no state of the device.

    A state of the device belongs to some inputs, and next to it the channel has values nearby. What
    a program writes comes at any inputs, in place of values far away, or where nothing is near.
    """
    if not belong_to_inputs(excerpt, rows):
        return True
    column = excerpt.x[:, channel]
    others = np.delete(column, rows)
    return _is_alone(others, column[rows[0]]) or _replaces_far_values(excerpt, column, rows)


def _is_alone(others: Floats, value: float) -> bool:
    """Return whether many values lie on both sides of one, and none near it."""
    above = others[others > value]
    below = others[others < value]
    if min(len(above), len(below)) < MIN_SHARE_OF_SIDE * len(others):
        return False
    nearest = min(above.min() - value, value - below.max())
    return bool(nearest > MIN_WIDTH_OF_HOLE * others.std())


def _replaces_far_values(excerpt: Excerpt, column: Floats, rows: Integers) -> bool:
    """Return whether rows with nearly the same readouts hold values far from the frequent one."""
    is_frequent = np.zeros(excerpt.n, dtype=bool)
    is_frequent[rows] = True
    other_rows = np.flatnonzero(~is_frequent)
    generator = np.random.default_rng(0)
    compared = generator.permutation(rows)[:MAX_COMPARED_ROWS]
    readouts = excerpt.residuals.projections
    points = np.concatenate([readouts[other_rows], readouts[compared]])
    places = np.arange(len(other_rows), len(points))
    nearest = nearest_rows(points, places, among=len(other_rows))
    value = column[rows[0]]
    distance = np.median(np.abs(column[other_rows[nearest]] - value))
    usual = np.median(np.abs(column[other_rows] - value))
    return bool(distance > MIN_RATIO_OF_DISTANCES * usual)


def _channels_with_equal_values(excerpt: Excerpt) -> Integers:
    """Return the channels with equal values among some rows, but not only a few values."""
    apart = MIN_EQUAL_IN_SAMPLE - 1
    has_equal = np.any(excerpt.sorted[:, apart:] == excerpt.sorted[:, :-apart], axis=1)
    n_values = _numbers_of_values(excerpt.sorted)
    return np.flatnonzero(has_equal & (n_values >= MIN_VALUES))


def _numbers_of_values(in_order: Floats) -> Integers:
    """Return how many values each row of sorted ones takes."""
    return np.count_nonzero(np.diff(in_order, axis=1), axis=1) + 1


def _rows_of_frequent_value(column: Floats, n_channels: int) -> Integers:
    """Return the rows that hold a value inside the range which comes too often."""
    none = np.arange(0)
    values, counts = np.unique(column, return_counts=True)
    if len(values) < MIN_VALUES or not (np.median(counts) == 1 or _on_equal_steps(values)):
        return none
    beside = largest_count_beside(counts)
    is_frequent = (counts >= MIN_COUNT) & (counts > FREQUENCY_RATIO * beside)
    if not 0 < is_frequent.sum() <= MAX_FREQUENT_VALUES:
        return none
    top = int(np.argmax(np.where(is_frequent, counts - 3 * beside, -np.inf)))
    chance = poisson_tail(counts[top], 2 * beside[top] + 0.5) * len(values) * n_channels
    is_end = top in (0, len(values) - 1)  # of a clipped channel, or of a dark one
    if chance > MAX_CHANCE or is_end:
        return none
    return np.flatnonzero(column == values[top])


def largest_count_beside(counts: Integers) -> Floats:
    """Return the largest count among the values on both sides of each value."""
    padded = np.pad(counts.astype(float), N_VALUES_BESIDE)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * N_VALUES_BESIDE + 1)
    left = windows[:, :N_VALUES_BESIDE].max(axis=1)
    right = windows[:, N_VALUES_BESIDE + 1 :].max(axis=1)
    return np.maximum(left, right)


def missing_codes(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where a converter never gives a range of codes between full ones."""
    is_equal = np.diff(excerpt.sorted, axis=1) == 0
    n_values = np.count_nonzero(~is_equal, axis=1) + 1
    on_steps = (is_equal.mean(axis=1) > MIN_SHARE_OF_EQUAL) & (
        n_values >= 2 * MIN_VALUES_BESIDE_HOLE
    )
    if not on_steps.any() or excerpt.related_inputs is not None:
        return  # A sweep may leave out what lies between its inputs.
    channels = [k for k in np.flatnonzero(on_steps) if _has_hole(excerpt.x[:, k])]
    if not channels:
        return
    names = excerpt.names(channels)
    yield finding(
        f"{len(names)} channels never take a whole range of codes between codes that they often "
        f"take ({join_names(names)}): a bit of the converter is stuck, or its codes wrap around",
        cause="missing codes",
        next_step="repair the converter, and measure again",
        in_short="codes that never come",
        channels=names,
    )


def _has_hole(column: Floats) -> bool:
    """Return whether codes on equal steps have a hole that the counts beside it do not allow."""
    values, counts = np.unique(column, return_counts=True)
    if not _on_equal_steps(values):
        return False
    gaps = np.diff(values)
    step = gaps.min()
    if squared_unit(values) > step**2:
        return False  # Numbers of few digits are farther apart where they are larger.
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
        if np.exp(-expected) < MAX_CHANCE:
            return True
    return False


def _on_equal_steps(values: Floats) -> bool:
    """Return whether values are codes of a converter: whole steps apart, most of them one."""
    gaps = np.diff(values)
    in_steps = gaps / gaps.min()
    is_whole = np.abs(in_steps - np.round(in_steps)) < WHOLE_STEP * in_steps
    is_usual = np.median(in_steps) < MAX_USUAL_STEPS
    return bool(np.mean(is_whole) > MIN_SHARE_OF_WHOLE_STEPS and is_usual)


def _counts_per_code(values: Floats, counts: Integers, step: float) -> float:
    """Return how often each code comes on average between the first and the last of these."""
    return float(counts.sum() / ((values[-1] - values[0]) / step + 1))


def stale(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where rows repeat the readouts before, though the inputs changed."""
    step = -(-excerpt.x.shape[1] // N_FIRST_CHANNELS)
    first = np.ascontiguousarray(excerpt.x[:, ::step].T)
    if np.count_nonzero(first[:, 1:] == first[:, :-1], axis=1).max() < MIN_STALE_ROWS:
        return
    if excerpt.related_inputs is not None:
        return  # Near inputs may give equal readouts.
    inputs_change = np.any(excerpt.u[1:] != excerpt.u[:-1], axis=1)
    is_equal = (excerpt.x[1:] == excerpt.x[:-1]) & inputs_change[:, None]
    n_equal = np.count_nonzero(is_equal, axis=0)
    if excerpt.of_sequence:  # A slow channel of few values repeats them by itself.
        n_equal[_numbers_of_values(excerpt.sorted) < MIN_VALUES] = 0
    channels = np.flatnonzero(n_equal >= MIN_STALE_ROWS)
    if not len(channels):
        return
    # Converters give equal values by chance, as often two and more rows apart. Rows that repeat the
    # one before in all these channels are left out, or they would count there, too.
    repeats_row = np.append(False, np.all(is_equal[:, channels], axis=1))
    if np.mean(repeats_row) > MAX_SHARE_OF_STALE_ROWS:
        return
    has_few_values = _numbers_of_values(excerpt.sorted[channels]) < MIN_VALUES
    # Of few values many rows repeat the one before by chance, and none may be left out.
    fresh = excerpt.x if has_few_values.any() else excerpt.x[~repeats_row]
    by_chance = np.max(
        [_equal_at_lag(fresh[:, channels], k).sum(axis=0) for k in OTHER_LAGS], axis=0
    )
    channels = channels[_is_more_than(n_equal[channels], by_chance)]
    n_needed = MIN_STALE_CHANNELS_OF_SEQUENCE if excerpt.of_sequence else 1
    if len(channels) < min(n_needed, excerpt.x.shape[1]):
        return
    rows = np.flatnonzero(np.all(is_equal[:, channels], axis=1)) + 1
    fresh = fresh[:, channels]
    rows_by_chance = max(np.all(_equal_at_lag(fresh, k), axis=1).sum() for k in OTHER_LAGS)
    if not _is_more_than(len(rows), rows_by_chance):
        return
    names = excerpt.names(channels)
    who = "all channels" if len(channels) == excerpt.x.shape[1] else join_names(names)
    yield finding(
        f"{len(rows)} of {excerpt.n} measurements repeat the readout before to the last digit, "
        f"though the inputs changed ({who}; rows {numbers(excerpt.rows[rows])}): a stale buffer",
        cause="stale",
        next_step="leave them out",
        in_short="stale readouts",
        rows=excerpt.rows[rows],
        channels=names,
        capacity=capacity_of_rows(excerpt.residuals, len(rows)),
    )


def _equal_at_lag(x: Floats, lag: int) -> Floats:
    """Return which values equal those so many rows before."""
    return x[lag:] == x[:-lag]


def _is_more_than(count: Floats | int, by_chance: Floats | int) -> Floats:
    """Return whether counts are more than those that chance gives."""
    limit = by_chance + STALE_STANDARD_DEVIATIONS * np.sqrt(np.asarray(by_chance) + 0.25)
    return count > limit


def clipped(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where values pile up at an end of their range, with noise after it or not."""
    if _n_input_states(excerpt) < MIN_INPUT_STATES:
        return
    in_order = excerpt.sorted
    ends_repeat = (in_order[:, 0] == in_order[:, 1]) | (in_order[:, -2] == in_order[:, -1])
    channels = np.flatnonzero(ends_repeat | (_shares_in_piles(in_order) > 0))
    if not len(channels):
        return
    shares = _shares_in_piles(np.sort(excerpt.x[:, channels].T, axis=1))  # all rows tell
    channels = channels[shares > 0]
    shares = shares[shares > 0]
    if not len(channels):
        return
    names = excerpt.names(channels)
    low, high = in_order[channels[0], [0, -1]] / excerpt.scale[channels[0]]
    yield finding(
        f"{len(channels)} of {excerpt.x.shape[1]} channels look saturated or clipped "
        f"({join_names(names)}): up to {shares.max():.0%} of their values pile up at an end of "
        f"the range ({low:.3g} to {high:.3g}), which adds functions of the inputs that the "
        "device does not compute",
        cause="clipped",
        next_step="lower the gain",
        channels=names,
        share=shares.tolist(),
    )


def _n_input_states(excerpt: Excerpt) -> float:
    """Return how many combinations of levels the inputs have."""
    n_states = 1.0
    for family in excerpt.low.families:
        n_states *= len(family.levels) if isinstance(family, DiscreteFamily) else np.inf
    return n_states


def _shares_in_piles(in_order: Floats) -> Floats:
    """Return the largest share of each row of sorted values that piles up at one of its ends."""
    return np.maximum(_shares_in_upper_piles(in_order), _shares_in_upper_piles(-in_order[:, ::-1]))


def _shares_in_upper_piles(in_order: Floats) -> Floats:
    """Return the largest share of each row of sorted values that piles up at its upper end.

    All sizes of a pile are tried. Its edge is where values are much less dense next to it.
    """
    n = in_order.shape[1]
    first_size = max(int(MIN_SHARE_OF_PILE * n), MIN_VALUES_OF_PILE)
    sizes = np.arange(first_size, n // 2, n // 100)
    n_beside = int(SHARE_BESIDE_PILE * n)
    shares = np.zeros(len(in_order))
    # A first look at the densities alone.
    width = in_order[:, -1:] - in_order[:, -1 - sizes]
    width_beside = in_order[:, -1 - sizes] - in_order[:, -1 - sizes - n_beside]
    has_edge = np.any(width_beside / n_beside > PILE_DENSITY * width / sizes, axis=1)
    for channel in np.flatnonzero(has_edge):
        piles = [size for size in sizes if _is_pile(in_order[channel], size)]
        shares[channel] = max(piles, default=0) / n
    return shares


def _is_pile(values: Floats, size: int) -> bool:
    """Return whether the largest of sorted values are a pile with an edge inside the range."""
    n = len(values)
    n_beside = int(SHARE_BESIDE_PILE * n)
    n_inside = int(SHARE_INSIDE_PILE * n)
    top = values[-1]
    middle = values[-1 - size // 2]
    outer = values[-1 - size // 8]
    edge = values[-1 - size]
    beside = values[-1 - size - n_beside]
    inside = values[-1 - size - n_beside - n_inside]
    span = top - values[0]
    gaps = np.diff(values)
    step = gaps[gaps > 0].min(initial=np.inf)  # of a converter
    if np.abs(top) <= MAX_DARK_VALUE * span or top - edge + step >= MAX_WIDTH_OF_PILE * span:
        return False
    # Densities are numbers of values over widths, of which any may be zero.
    if (edge - beside) * size <= PILE_DENSITY * n_beside * (top - edge + step):
        return False
    if (beside - inside) * n_beside >= MAX_RISE_OF_DENSITY * n_inside * (edge - beside):
        return False
    if middle - edge + step >= MAX_RATIO_OF_HALVES * (outer - middle + step):
        return False
    distance_from_middle = np.abs(values - values[0] - span / 2)
    if np.mean(distance_from_middle < HALF_WIDTH_INSIDE * span) <= MIN_SHARE_INSIDE:
        return False
    zone = gaps[n - 1 - size - n_beside - n_inside : n - 1 - size]
    return bool(zone.max() < MAX_GAP_BESIDE_PILE * zone.sum())


def clocks(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where a channel is a counter, a time stamp or a temperature."""
    x = excerpt.x[:N_ROWS_OF_CLOCK]
    steps = np.diff(x, axis=0)
    only_rises = np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0)
    variance = np.maximum(np.var(x, axis=0), np.finfo(float).tiny)
    relative_steps = np.mean(steps**2, axis=0) / (2 * variance)
    is_odd = (only_rises | (relative_steps < MAX_STEPS_OF_CLOCK)) & np.any(steps != 0, axis=0)
    if not is_odd.any() or excerpt.related_inputs is not None or not len(excerpt.y):
        return  # Readouts of a sweep change as slowly as its inputs.
    channels = np.flatnonzero(is_odd)
    channels = channels[_explained(excerpt, channels) < MAX_EXPLAINED_OF_CLOCK]
    if not len(channels):
        return
    all_rise = only_rises[channels].all()
    if not all_rise and np.median(relative_steps) <= MIN_STEPS_OF_OTHERS:
        return  # All channels drift.
    names = excerpt.names(channels)
    yield finding(
        f"{join_names(names)} {'only rises or falls' if all_rise else 'changes slowly'} and does "
        "not follow the inputs, like a counter, a time stamp or a temperature",
        cause="clock",
        next_step="name the readouts without it, by `x`",
        in_short="a column that is no readout",
        channels=names,
    )


def _explained(excerpt: Excerpt, channels: Integers) -> Floats:
    """Return which part of each channel functions of low degree explain beyond chance."""
    x = excerpt.residuals.channels[:, channels]
    correlations = (
        excerpt.y @ x / (excerpt.n * np.maximum(x.std(axis=0), np.finfo(np.float32).tiny))
    )
    return np.sum(correlations**2, axis=0) - len(excerpt.y) / excerpt.n
