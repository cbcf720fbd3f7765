"""Values of two kinds in a channel: some are a factor, a sign or a full range away from the others.

A meter that changes its range, a lost prefix of a unit, a wrong sign, a converter that overflows:
each leaves some values at x and the others at x/s or x + c, with s and c known exactly. These are
called the branches of the channel. The mistake is undone on trial: each value is moved to the
branch that lies nearer to the fit by the inputs, and the fit is made again. Its gain is the ratio
of the unexplained variances before and after. Noise has a gain of 1, and smooth channels that bend
more than their fit up to 3. Rare steps of the device itself have more, but then the values that
were moved belong to similar inputs, or do not follow their inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._excerpt import Excerpt
from ._finding import finding
from ._outliers import belong_to_inputs
from ._residuals import NORMAL_MEDIAN_DEVIATION
from ._rows import capacity_of_rows

# Factors between the branches: a sign, ranges of meters and amplifiers, prefixes of units.
FACTORS = (-1.0, 2.0, 4.0, 10.0, 100.0, 1000.0)
# Stands in place of a factor where the branches differ by the full range of the channel.
FULL_RANGE = 1.0
# What a full turn is in degrees, radians and turns, and the part of it at each end that the values
# of an angle may leave empty.
TURNS = (360.0, 2 * np.pi, 1.0)
MAX_UNFILLED_TURN = 0.01
# Factors from this on are those of units; smaller ones, of ranges and signs.
MIN_FACTOR_OF_UNITS = 100.0
# The smallest gain of a finding. Mistakes have gains of 20 and more; bistable devices, which have
# both signs by themselves, have up to 11.
MIN_GAIN = 15.0
# The same, by factor, for the first look, which moves values once and does not fit again. These
# factors show the others, too. Clean channels have gains up to 1.7 by a sign, 1.8 by a factor of 2,
# and 1.4 by others.
MIN_GAIN_OF_FIRST_LOOK = {-1.0: 1.75, 2.0: 2.2, 4.0: 1.8, 10.0: 1.6}
# Share of a channel's variance that must be unexplained: with less a mistake costs next to nothing.
MIN_UNEXPLAINED = 0.01
# The smallest gain where a full range is undone: clean channels hardly have jumps of that size.
MIN_GAIN_OF_RANGE = 7.0
# Values that were moved must be near the fit. By a factor: their median distance from it is at most
# so many times that of all values. By the full range: so large a share of them is nearer to it than
# that part of the range.
MAX_RATIO_OF_MOVED = 6.0
MAX_DISTANCE_OF_MOVED = 0.2
MIN_SHARE_NEAR_FIT = 0.8
# Part of the moved values that may be one value: with more it is a code.
MAX_SHARE_OF_ONE_VALUE = 0.3
# Gain in some rows after two rounds, below which nothing more is tried.
MIN_GAIN_AT_FIRST = 1.5
# A factor is reported in place of a full range if its gain is larger by this ratio.
MIN_RATIO_OF_GAINS = 2.0
# Part of the variance of each branch that its inputs must explain in the end.
MIN_EXPLAINED_OF_OTHERS = 0.5
MIN_EXPLAINED_OF_MOVED = 0.3
# Share of moved values below which they are few. A fit comes near to some of any few spikes, so
# more of their variance must be explained; few values at one end of the range need not be.
FEW_MOVED = 0.03
MIN_EXPLAINED_OF_FEW_MOVED = 0.65
# Values on the smaller branch that a finding needs. Those count which moved by more than so many
# standard deviations of what the fit leaves: near zero, branches meet.
MIN_MOVED = 8
MIN_DISTANCE_OF_BRANCHES = 4.0
# Channels that must show the same, and their part of those that are looked at; one is enough if
# there are no more.
MIN_CHANNELS = 2
MIN_SHARE_OF_CHANNELS = 0.25
# The most channels and rows that are looked at. Each channel takes some five milliseconds, so the
# search ends once enough channels show the same, or so many show nothing.
MAX_CHANNELS = 12
MAX_CHANNELS_OF_FIRST_LOOK = 24
ENOUGH_CHANNELS = 4
MAX_CHANNELS_IN_VAIN = 6
MAX_ROWS = 2048
MIN_FIRST_ROWS = 512
# Rows for each function of the fit, and in all.
MIN_ROWS_PER_FUNCTION = 8
MIN_ROWS = 256
# A device of fewer levels has branches of its own.
MIN_LEVELS = 32
# Steps of this part of the range, in so many of some rows, are those of a converter that overflows.
LARGE_STEP = 0.45
MIN_LARGE_STEPS = 4
# Part of the values below a hundredth of the range, from which there may be two units.
SMALL_VALUE = 0.01
MIN_SMALL_VALUES = 0.06
# Parts of the values, in order of size, that are moved at first: a mistake may move all large ones.
FIRST_MOVED = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
# Rounds of fitting and moving, from all beginnings in some rows, and from the best in more.
N_FIRST_ROUNDS = 2
N_LAST_ROUNDS = 6


@dataclass(frozen=True)
class Branches:
    """How a channel is explained when each value may be moved to another branch."""

    factor: float  # between the branches
    gain: float  # ratio of the unexplained variances before and after
    is_moved: Floats  # whether each of the rows that were looked at was moved

    @property
    def share(self) -> float:
        """Part of the values that were moved."""
        return float(np.mean(self.is_moved))


@dataclass(frozen=True)
class Functions:
    """Functions of the inputs, orthonormal on some rows and on the first of these."""

    rows: Integers
    all: Floats
    first: Floats


@dataclass(frozen=True)
class MovedColumn:
    """A channel whose values were moved to the branches that are explained best."""

    column: Floats
    fitted: Floats
    is_moved: Floats  # which values lie on another branch than most
    gain: float  # ratio of the unexplained variances before and after

    def explained(self, rows: Floats) -> float:
        """Return which part of the variance of some values is explained."""
        return 1 - float(_unexplained((self.column - self.fitted)[rows], self.column[rows]))


def other_branches(excerpt: Excerpt) -> Iterator[Check]:
    """Yield checks of channels whose values lie on two branches."""
    if excerpt.of_sequence and excerpt.related_inputs is not None:
        return  # Functions of related inputs fit almost anything.
    channels = _suspicious_channels(excerpt)
    if not len(channels):
        return
    functions = _functions_of_some_rows(excerpt)
    if len(functions.rows) < max(MIN_ROWS, MIN_ROWS_PER_FUNCTION * functions.all.shape[1]):
        return
    found: dict[float, dict[int, Branches]] = {}
    n_looked_at = 0
    for k in channels:
        most = max(map(len, found.values()), default=0)
        if most >= ENOUGH_CHANNELS or (n_looked_at >= MAX_CHANNELS_IN_VAIN and not most):
            break
        n_looked_at += 1
        branches = _best_branches(functions, excerpt.x[functions.rows, k])
        if branches is not None and not _is_rare_step(excerpt, functions.rows, branches):
            found.setdefault(branches.factor, {})[int(k)] = branches
    if not found:
        return
    alike = max(found.values(), key=len)
    n_needed = max(MIN_CHANNELS, MIN_SHARE_OF_CHANNELS * n_looked_at)
    if len(alike) >= min(n_needed, excerpt.x.shape[1]):
        yield _check(excerpt, alike, functions.rows)


def _is_rare_step(excerpt: Excerpt, rows: Integers, branches: Branches) -> bool:
    """Return whether few values were moved, at inputs where the device itself may jump."""
    if branches.factor == FULL_RANGE or branches.share >= FEW_MOVED:
        return False
    return belong_to_inputs(excerpt, rows[branches.is_moved])


def _check(excerpt: Excerpt, found: dict[int, Branches], rows: Integers) -> Check:
    """Return what was found, the channel that gains most first, and its rows that were moved."""
    channels = sorted(found, key=lambda channel: -found[channel].gain)
    best = found[channels[0]]
    names = excerpt.names(channels)
    if best.factor == FULL_RANGE:
        cause = "wrapped"
        in_short = "values that wrap around"
        what = (
            "jump by their full range where the fit by their inputs does not (a converter that "
            "overflows)"
        )
    elif best.factor < 0:
        cause = "gain steps"
        in_short = "values of both signs"
        what = "hold values of the right sign and values of the opposite one (a plug or a polarity)"
    else:
        cause = "units" if best.factor >= MIN_FACTOR_OF_UNITS else "gain steps"
        in_short = "values in mixed units"
        what = (
            f"hold values of two kinds, of which one is {best.factor:g} times too large beside the "
            'other (autorange, V and mV, or "1,234" read as 1.234)'
        )
    if best.factor == FULL_RANGE and _are_angles(excerpt, channels):
        return finding(
            f"at least {len(names)} channels ({join_names(names)}) jump by a full turn where the "
            "fit by their inputs does not: they are angles",
            cause="wrapped",
            next_step="give the sine and the cosine of each, which do not jump",
            is_note=True,
            channels=names,
        )
    return finding(
        f"at least {len(names)} channels ({join_names(names)}) {what}. With {best.share:.1%} of "
        f"the values corrected, the fit by the inputs leaves {best.gain:.0f} times less variance",
        cause=cause,
        next_step="correct these values in the file, and read it again",
        in_short=in_short,
        capacity=capacity_of_rows(excerpt.residuals, best.share * excerpt.n),
        channels=names,
        rows=np.sort(excerpt.rows[rows[best.is_moved]]),
        factor=best.factor,
        share=best.share,
    )


def _are_angles(excerpt: Excerpt, channels: list[int]) -> bool:
    """Return whether channels fill a full turn, in degrees, radians or turns."""
    low, high = excerpt.ends[:, channels] / excerpt.scale[channels]
    for turn in TURNS:
        for start in (0.0, -turn / 2):
            margin = MAX_UNFILLED_TURN * turn
            begins = (low >= start) & (low < start + margin)
            ends = (high <= start + turn) & (high > start + turn - margin)
            if np.all(begins & ends):
                return True
    return False


def _suspicious_channels(excerpt: Excerpt) -> Integers:
    """Return channels that a quick look at some rows finds on two branches, not more than a few."""
    fit = excerpt.residuals.fit
    in_widths = excerpt.residuals.values[:, excerpt.some].T @ fit.channel_coefficients
    channels = _unexplained_channels(excerpt, in_widths)
    if not len(channels):
        return channels
    x = excerpt.x[np.ix_(excerpt.some, channels)]
    fitted = in_widths[:, channels] / fit.usual_range.inverse_width[0, channels]
    fitted = fitted + fit.usual_range.middle[0, channels]
    distance = np.abs(x - fitted)
    span = excerpt.ends[1] - excerpt.ends[0]
    n_large_steps = np.count_nonzero(distance > LARGE_STEP * span[channels], axis=0)
    is_suspicious = n_large_steps >= MIN_LARGE_STEPS
    is_suspicious |= _share_of_small_values(excerpt.sorted[channels]) > MIN_SMALL_VALUES
    variance = _variance(x)
    left = np.einsum("ij,ij->j", distance, distance)
    for factor, min_gain in MIN_GAIN_OF_FIRST_LOOK.items():
        moved = x / factor
        moved_distance = np.abs(moved - fitted)
        is_nearer = moved_distance < distance
        moved = np.where(is_nearer, moved, x)
        moved_distance = np.minimum(moved_distance, distance)
        moved_left = np.einsum("ij,ij->j", moved_distance, moved_distance)
        is_suspicious |= left * _variance(moved) > min_gain * moved_left * variance
    if np.count_nonzero(is_suspicious) < min(MIN_CHANNELS, excerpt.x.shape[1]):
        return np.arange(0)
    return _spread(channels[is_suspicious], MAX_CHANNELS)


def _variance(x: Floats) -> Floats:
    """Return the variance of columns: fast, and exact enough for a first look."""
    return np.einsum("ij,ij->j", x, x) / len(x) - x.mean(axis=0) ** 2


def _unexplained_channels(excerpt: Excerpt, fitted: Floats) -> Integers:
    """Return channels that are more than two states and not quite explained, not more than some."""
    left = excerpt.residuals.fit.channel_scale**2
    is_unexplained = left > MIN_UNEXPLAINED * (left + fitted.var(axis=0))
    n_levels = np.count_nonzero(np.diff(excerpt.sorted, axis=1), axis=1) + 1
    channels = np.flatnonzero(is_unexplained & (n_levels >= MIN_LEVELS))
    return _spread(channels, MAX_CHANNELS_OF_FIRST_LOOK)


def _spread(channels: Integers, n_most: int) -> Integers:
    """Return some channels, not more than so many, evenly spread."""
    chosen = np.linspace(0, len(channels) - 1, min(len(channels), n_most))
    return channels[chosen.round().astype(int)]


def _share_of_small_values(in_order: Floats) -> Floats:
    """Return which part of each row of sorted values is below a hundredth of the largest."""
    n_outer = in_order.shape[1] // 50
    usual = np.abs(in_order[:, [n_outer, -1 - n_outer]]).max(axis=1)
    return np.mean(np.abs(in_order) < SMALL_VALUE * usual[:, None], axis=1)


def _unexplained(left: Floats, x: Floats) -> Floats:
    """Return which part of the variance of columns is left."""
    return left.var(axis=0) / np.maximum(x.var(axis=0), np.finfo(np.float32).tiny)


def _functions_of_some_rows(excerpt: Excerpt) -> Functions:
    """Return functions of the inputs, orthonormal on some rows and on the first of these."""
    rows = np.random.default_rng(0).permutation(excerpt.n)[:MAX_ROWS]
    values = excerpt.residuals.orthonormal[rows].astype(float)
    n_first = max(MIN_FIRST_ROWS, MIN_ROWS_PER_FUNCTION * values.shape[1])
    return Functions(rows, np.linalg.qr(values)[0], np.linalg.qr(values[:n_first])[0])


def _best_branches(functions: Functions, x: Floats) -> Branches | None:
    """Return the branches that explain a channel many times better than one; None if none do."""
    ranges = _two_ranges(functions, x)
    found = [_two_scales(functions, x, factor) for factor in FACTORS]
    scales = [branches for branches in found if branches is not None]
    best = max(scales, key=lambda branches: branches.gain, default=None)
    if best is None or ranges is None:
        return best or ranges
    return best if best.gain > MIN_RATIO_OF_GAINS * ranges.gain else ranges


def _two_scales(functions: Functions, x: Floats, factor: float) -> Branches | None:
    """Return what is gained where values may be divided by a factor; None if too little."""
    beginnings = [x]
    if factor > 0:
        size = np.abs(x)
        edges = np.append(np.quantile(size, FIRST_MOVED), _edge_of_gap(size))
        beginnings += [np.where(size > edge, x / factor, x) for edge in edges]
    moved = _fit_and_move(functions, np.stack([x, x / factor]), beginnings)
    if moved is None or moved.is_moved.sum() < MIN_MOVED:
        return None
    if moved.gain < MIN_GAIN:
        return None
    # Dividing large values by much hides them, whatever they are.
    share = float(np.mean(moved.is_moved))
    min_explained = MIN_EXPLAINED_OF_FEW_MOVED if share < FEW_MOVED else MIN_EXPLAINED_OF_MOVED
    if moved.explained(moved.is_moved) < min_explained:
        return None
    if moved.explained(~moved.is_moved) < MIN_EXPLAINED_OF_OTHERS:
        return None
    distance = np.abs(moved.column - moved.fitted)
    if np.median(distance[moved.is_moved]) > MAX_RATIO_OF_MOVED * np.median(distance):
        return None
    counts = np.unique(x[moved.is_moved], return_counts=True)[1]
    if counts.max() > MAX_SHARE_OF_ONE_VALUE * counts.sum():
        return None
    return Branches(factor, moved.gain, moved.is_moved)


def _edge_of_gap(size: Floats) -> float:
    """Return the value below the largest gap of the logarithms of values, the smallest left out."""
    in_order = np.sort(size[size > 0])[MIN_MOVED:]
    if len(in_order) < 2:
        return 0.0
    return float(in_order[np.argmax(np.diff(np.log(in_order)))])


def _two_ranges(functions: Functions, x: Floats) -> Branches | None:
    """Return what is gained where values may be moved by the full range; None if too little."""
    span = np.ptp(x)
    edges = np.quantile(x, FIRST_MOVED)
    beginnings = [x] + [np.where(x < edge, x + span, x) for edge in edges]
    moved = _fit_and_move(functions, np.stack([x, x + span, x - span]), beginnings)
    if moved is None or moved.is_moved.sum() < MIN_MOVED or moved.gain < MIN_GAIN_OF_RANGE:
        return None
    if moved.explained(~moved.is_moved) < MIN_EXPLAINED_OF_OTHERS:
        return None
    share = float(np.mean(moved.is_moved))
    is_explained = moved.explained(moved.is_moved) > MIN_EXPLAINED_OF_MOVED
    if not is_explained and share > FEW_MOVED:
        return None
    distance = np.abs(moved.column - moved.fitted)[moved.is_moved]
    if np.mean(distance < MAX_DISTANCE_OF_MOVED * span) < MIN_SHARE_NEAR_FIT:
        return None
    return Branches(FULL_RANGE, moved.gain, moved.is_moved)


def _is_moved(alternatives: Floats, column: Floats, fitted: Floats) -> Floats:
    """Return which values lie on another branch than most, where the branches are well apart."""
    is_moved = column != alternatives[0]
    if np.mean(is_moved) > 0.5:
        is_moved = ~is_moved
    deviation = np.median(np.abs(column - fitted)) / NORMAL_MEDIAN_DEVIATION
    distance = np.ptp(alternatives, axis=0)
    return is_moved & (distance > MIN_DISTANCE_OF_BRANCHES * deviation)


def _fit_and_move(
    functions: Functions, alternatives: Floats, beginnings: list[Floats]
) -> MovedColumn | None:
    """Return a channel with its values on the branches that are explained best; None if in vain.

    Each round fits a column and moves every value to the alternative nearest to the fit.
    """
    x = alternatives[0]
    columns = np.stack(beginnings, axis=1)
    n_first = len(functions.first)
    first = columns[:n_first]
    for _ in range(N_FIRST_ROUNDS):
        first = _moved(functions.first, alternatives[:, :n_first], first)
    unexplained = _unexplained(first - functions.first @ (functions.first.T @ first), first)
    best = int(np.argmin(unexplained))
    before = x[:n_first] - functions.first @ (functions.first.T @ x[:n_first])
    if _unexplained(before, x[:n_first]) < MIN_GAIN_AT_FIRST * unexplained[best]:
        return None
    column = columns[:, [best]]
    for _ in range(N_LAST_ROUNDS):
        column = _moved(functions.all, alternatives, column)
    fitted = functions.all @ (functions.all.T @ column)
    before = _unexplained(x - functions.all @ (functions.all.T @ x), x)
    after = _unexplained(column - fitted, column)[0]
    gain = float(before / max(after, np.finfo(float).tiny))
    is_moved = _is_moved(alternatives, column[:, 0], fitted[:, 0])
    return MovedColumn(column[:, 0], fitted[:, 0], is_moved, gain)


def _moved(functions: Floats, alternatives: Floats, columns: Floats) -> Floats:
    """Return each value of the columns at the alternative nearest to their fit."""
    fitted = functions @ (functions.T @ columns)
    nearest = np.broadcast_to(alternatives[0][:, None], columns.shape)
    for values in alternatives[1:, :, None]:
        nearest = np.where(np.abs(values - fitted) < np.abs(nearest - fitted), values, nearest)
    return nearest
