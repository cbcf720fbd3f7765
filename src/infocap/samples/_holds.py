"""Held inputs: for how many rows each value of an input is held, found from the inputs alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import gcd

import numpy as np
import scipy

from ..typing import Floats, Integers

# Rows of inputs that are looked at for holds: they are fetched fast from a file or a cluster, and
# hold dozens of changes of an input that is held for hundreds of rows.
MAX_ROWS_FOR_HOLDS = 1 << 13
# Of held inputs more than this fraction of the differences between neighbouring rows is noise,
# because only one row in `rows_per_step` brings a new value.
NOISE_QUANTILE = 0.25
# The quantile of the size of normal noise at this probability, in standard deviations.
NOISE_QUANTILE_OF_NORMAL = 0.31863936
# Standard deviations of the differences beyond which one is a change of the input.
CHANGE_IN_DEVIATIONS = 6.0
# Steps of a converter that are no change, where it has at least so many levels: with fewer, a
# single step is a change like any other.
MAX_CONVERTER_STEPS_OF_NOISE = 2.5
MIN_LEVELS_OF_CONVERTER = 100
# Jumps beyond one step between neighbouring levels that inputs need among their changes. A slow
# ramp with few digits has none: it stays on each level for as long, and nothing holds it.
MIN_SHARE_OF_JUMPS = 0.05
ONE_LEVEL = 1.5
# Share of the stretches between two changes in which inputs must stay where they are.
MIN_SHARE_OF_STAYING = 0.9
# Share of the gaps between changes that must be whole multiples of the hold: a slip of the clock
# spoils one.
MIN_SHARE_OF_MULTIPLES = 0.9
# Probability that changes at random rows look like this.
FALSE_ALARM_OF_HOLDS = 1e-6
# Most frequent gaps whose common divisors are tried.
N_FREQUENT_GAPS = 6


@dataclass(frozen=True, eq=False)
class _Changes:
    """The rows in which inputs change, and whether they stay where they are in between."""

    rows: Integers
    stay: bool
    have_two_levels: bool = False


@dataclass(frozen=True)
class Hold:
    """For how many rows inputs are held, and the first row at which a step may begin.

    Parameters
    ----------
    rows_per_step
        Rows of each step.
    offset
        Rows before the first whole step, fewer than `rows_per_step`.
    p_value
        The probability that changes at random rows are as regular.
    """

    rows_per_step: int
    offset: int
    p_value: float


def find_hold(u: Floats) -> Hold | None:
    """Return for how many rows the inputs (rows, inputs) are held; None where they are not.

    Changes of held inputs are whole steps apart. Equal consecutive values leave changes out, and a
    slip moves all that follow, so nearly all *gaps* between changes must be multiples of the hold.
    Changes at random rows, such as those of a telegraph signal, are multiples of n once in n times
    at most, which gives a p-value.

    >>> u = np.random.default_rng(1).uniform(-1, 1, (200, 1))
    >>> hold = find_hold(np.repeat(u, 24, axis=0)[5:])
    >>> hold.rows_per_step, hold.offset
    (24, 19)
    >>> find_hold(u) is None
    True
    """
    changes = _find_changes(u)
    gaps = np.diff(changes.rows)
    if len(gaps) < 2 or not changes.stay:
        return None
    if changes.have_two_levels and np.all(gaps == gaps[0]):
        return None  # A square wave changes each time; bits that are held do so half of the times.
    best: Hold | None = None
    candidates = _candidates(gaps)
    for rows_per_step in candidates:
        n_multiples = int(np.count_nonzero(gaps % rows_per_step == 0))
        if n_multiples < MIN_SHARE_OF_MULTIPLES * len(gaps):
            continue
        chance = float(scipy.special.bdtrc(n_multiples - 1, len(gaps), 1 / rows_per_step))
        p_value = chance * len(candidates)
        if p_value > FALSE_ALARM_OF_HOLDS:
            continue
        if best is None or rows_per_step > best.rows_per_step:
            # The first change decides, because a slip moves only what follows it.
            best = Hold(rows_per_step, int(changes.rows[0]) % rows_per_step, p_value)
    return best


def _candidates(gaps: Integers) -> list[int]:
    """Return the holds to try: frequent gaps and their common divisors, from 2 rows on."""
    values, counts = np.unique(gaps, return_counts=True)
    frequent = values[np.argsort(-counts, kind="stable")[:N_FREQUENT_GAPS]].tolist()
    divisors = {gcd(first, second) for first, second in combinations(frequent, 2)}
    return sorted({*frequent, *divisors} - {1})


def _find_changes(u: Floats) -> _Changes:
    """Return the rows in which any input differs from the row before by more than its noise."""
    n_differences = max(len(u) - 1, 0)
    is_change = np.zeros(n_differences, dtype=bool)
    is_jump = np.zeros(n_differences, dtype=bool)
    tolerances = []
    for column in u.T:
        sizes = np.abs(np.diff(column))
        tolerance = CHANGE_IN_DEVIATIONS / NOISE_QUANTILE_OF_NORMAL * _low_quantile(sizes)
        if np.all(sizes <= tolerance):
            if sizes.any():  # It moves from row to row, as most inputs do.
                return _Changes(np.arange(0), stay=False)
            tolerances.append(0.0)
            continue
        levels = _levels(column)
        if levels.number >= MIN_LEVELS_OF_CONVERTER:
            tolerance = max(tolerance, MAX_CONVERTER_STEPS_OF_NOISE * levels.step)
        tolerances.append(tolerance)
        is_change |= ~(sizes <= tolerance)  # next to a missing value there is a change
        is_far = sizes > ONE_LEVEL * levels.step
        is_jump |= (sizes > tolerance) & (is_far | (levels.number == 2))
    rows = np.flatnonzero(is_change) + 1
    is_slow_ramp = np.count_nonzero(is_jump) < MIN_SHARE_OF_JUMPS * len(rows)
    # From the first to the last row between two changes, where a sweep goes on.
    movement = np.abs(u[rows[1:] - 1] - u[rows[:-1]])
    stays = np.all(movement <= np.array(tolerances), axis=1)
    share_staying = np.mean(stays) if len(stays) else 0.0
    return _Changes(
        rows,
        stay=bool(share_staying >= MIN_SHARE_OF_STAYING and not is_slow_ramp),
        have_two_levels=u.shape[1] == 1 and len(np.unique(u)) == 2,
    )


def _low_quantile(sizes: Floats) -> float:
    finite = sizes[np.isfinite(sizes)]
    return float(np.quantile(finite, NOISE_QUANTILE)) if len(finite) else 0.0


@dataclass(frozen=True)
class _Levels:
    """The smallest difference of two values, and how many levels the range has at that distance."""

    step: float
    number: float


def _levels(column: Floats) -> _Levels:
    values = np.unique(column[np.isfinite(column)])
    if len(values) < 2:
        return _Levels(step=0.0, number=1.0)
    step = float(np.diff(values).min())
    return _Levels(step, number=float(np.round((values[-1] - values[0]) / step)) + 1)
