"""Rows lost or read twice: parts of the run whose readouts belong to the inputs of other rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import Check
from ..typing import Floats, Integers
from ._chance import chi_squared_tail, level
from ._excerpt import Excerpt
from ._finding import finding
from ._lags import (
    MAX_LAG,
    MAX_VALUE,
    lagged_capacity,
    lagged_correlations,
    lagged_power,
    scanned_functions,
)
from ._residuals import Residuals

# Rows count as shifted where inputs at another lag have so many times the power of their own.
SHIFT_RATIO = 5.0
# Stands in place of a lag for a part that agrees with the inputs at no lag, as with the source off.
NO_LAG = MAX_LAG + 1
# Rows per component of the readouts below which those that hold a function do so by chance.
MIN_ROWS_PER_COMPONENT = 16
# Functions whose agreement with the readouts is added up from row to row: those held best.
N_FOLLOWED_FUNCTIONS = 4
# The largest rise of a random walk with drift -m and variance v per step exceeds r with probability
# exp(-2 m r / v) if its steps are normal. They are not, so rises must be larger by this factor.
SAFETY_OF_RISES = 1.5
# A part counts as slipped where its agreement with its own inputs is less than the first share of
# the usual agreement, and that with the other inputs more than the second.
MAX_AGREEMENT_WITH_OWN = 0.25
MIN_AGREEMENT_WITH_OTHER = 0.45


@dataclass(frozen=True, order=True)
class _Part:
    """Consecutive rows that agree with the inputs at another lag than the usual one."""

    rise: float  # of the random walk, by which overlapping parts are compared
    start: int
    stop: int
    lag: int  # or NO_LAG

    def overlaps(self, other: _Part) -> bool:
        """Return whether both parts have rows in common."""
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True)
class Alignment:
    """Which inputs the readouts of each row agree with."""

    shift: Integers  # by how many rows the readouts come later than their inputs, (rows,)
    gaps: list[tuple[int, int]]  # start and stop of parts that agree with no inputs nearby


def align(excerpt: Excerpt, residuals: Residuals) -> Alignment:
    """Find the rows whose readouts agree with inputs at another lag than the usual one.

    The readouts predict functions of the inputs linearly. The agreement of a row with the inputs at
    a lag is the product of prediction and function, summed over functions. The agreement at another
    lag less that at the usual one, added up from row to row, is a random walk: it falls where rows
    are in order, and rises where they slipped (a CUSUM test).
    """
    functions = scanned_functions(excerpt)
    readouts = residuals.projections
    if excerpt.n < MIN_ROWS_PER_COMPONENT * residuals.rank:
        # Of so many readouts the projections are those that hold functions of their own row by
        # chance, so all of them are looked at.
        readouts = residuals.whitened
    usual = _usual_lag(excerpt, readouts, residuals.h[:, functions])
    if usual is None:
        return Alignment(np.zeros(excerpt.n, dtype=int), [])
    if usual == 0:
        readouts = residuals.projections
    correlations = lagged_correlations(readouts, residuals.h[:, functions], usual)
    best = np.argsort(-np.sum(correlations**2, axis=0))[:N_FOLLOWED_FUNCTIONS]
    h = residuals.h[:, functions[best]]
    prediction = (readouts @ correlations[:, best]).clip(-MAX_VALUE, MAX_VALUE)
    parts = _slipped_parts(excerpt, prediction, h, usual)

    # The usual delay of a device with memory is no shift.
    expected = usual if excerpt.of_sequence else 0
    shift = np.full(excerpt.n, expected - usual)
    gaps = []
    for part in parts:
        if part.lag == NO_LAG:
            gaps.append((part.start, part.stop))
            continue
        # No agreement is computed within MAX_LAG rows of the ends, so a part that begins or stops
        # near an end is taken to reach it.
        start = part.start if part.start > 2 * MAX_LAG else 0
        stop = part.stop if part.stop < excerpt.n - 2 * MAX_LAG else excerpt.n
        shift[start:stop] = expected - part.lag
    return Alignment(shift, gaps)


def _usual_lag(excerpt: Excerpt, a: Floats, h: Floats) -> int | None:
    """Return the lag at which readouts agree best with the inputs; None if they agree at none.

    Of rows without memory this is 0, unless another lag has SHIFT_RATIO times the power: the device
    may have some memory. Of a sequence it is the delay with the largest power.
    """
    by_chance = a.shape[1] * h.shape[1]
    own = lagged_power(a, h, 0) - by_chance
    if not excerpt.of_sequence and own > excerpt.n * h.shape[1] / SHIFT_RATIO:
        return 0  # No other lag can be clearly better.
    lags = range(-MAX_LAG, 1 if excerpt.of_sequence else MAX_LAG + 1)
    powers = [lagged_power(a, h, lag) for lag in lags]
    if chi_squared_tail(max(powers), by_chance) * len(lags) > level(excerpt):
        return None
    if not excerpt.of_sequence and own > (max(powers) - by_chance) / SHIFT_RATIO:
        return 0
    return lags[int(np.argmax(powers))]


def _agreement(prediction: Floats, h: Floats, lag: int) -> Floats:
    """Return the agreement of predictions with functions `lag` rows later, (inner rows,)."""
    stop = len(prediction) - MAX_LAG
    return np.einsum("ij,ij->i", prediction[MAX_LAG:stop], h[MAX_LAG + lag : stop + lag])


def _slipped_parts(excerpt: Excerpt, prediction: Floats, h: Floats, usual: int) -> list[_Part]:
    """Return the parts that agree with the inputs at another lag, at most one for each lag."""
    own = _agreement(prediction, h, usual)
    mean_agreement = float(np.mean(own))
    # The walk may begin to rise in any row, and as many walks are looked at as there are lags.
    log_chance = np.log(excerpt.n * (2 * MAX_LAG + 2) / level(excerpt))
    parts: list[_Part] = []
    for lag in (NO_LAG, *range(-MAX_LAG, MAX_LAG + 1)):
        if lag == usual:
            continue
        # A part that agrees with no inputs is compared with half of the usual agreement.
        other = mean_agreement / 2 if lag == NO_LAG else _agreement(prediction, h, lag)
        gain = other - own
        walk = np.concatenate([[0.0], np.cumsum(gain, dtype=float)])
        rise = walk - np.minimum.accumulate(walk)
        stop = int(np.argmax(rise))
        start = int(np.argmin(walk[: stop + 1]))
        least_rise = SAFETY_OF_RISES * log_chance * float(np.var(gain)) / (2 * mean_agreement)
        if lag == NO_LAG and rise[stop] < least_rise / 2:
            return []  # Slipped rows agree with their own inputs no longer, so there are none.
        if rise[stop] < least_rise:
            continue
        agreement_with_own = float(np.mean(own[start:stop]))
        gain_per_row = rise[stop] / (stop - start)
        leaves_own = agreement_with_own < MAX_AGREEMENT_WITH_OWN * mean_agreement
        least_gain = MIN_AGREEMENT_WITH_OTHER * mean_agreement - agreement_with_own
        if leaves_own and gain_per_row > least_gain:
            parts.append(_Part(float(rise[stop]), start + MAX_LAG, stop + MAX_LAG, lag))
    return _without_overlap(parts)


def _without_overlap(parts: list[_Part]) -> list[_Part]:
    """Return parts in their order, of overlapping ones that with the largest rise."""
    kept: list[_Part] = []
    for part in sorted(parts, reverse=True):
        if not any(part.overlaps(other) for other in kept):
            kept.append(part)
    return sorted(kept, key=lambda part: part.start)


def alignment_checks(excerpt: Excerpt, alignment: Alignment) -> Iterator[Check]:
    """Yield the checks of parts without their inputs, and of parts that slipped."""
    residuals = excerpt.residuals
    held = lagged_capacity(residuals.whitened, residuals.h[:, scanned_functions(excerpt)], 0)
    for start, stop in alignment.gaps:
        yield finding(
            f"measurements {excerpt.first + start} to {excerpt.first + stop - 1} show nothing of "
            "their inputs, though others do: the source was off, or many triggers were lost",
            cause="gap",
            next_step="leave them out",
            in_short="readouts without their inputs",
            capacity=held * (stop - start) / excerpt.n,
            rows=excerpt.rows[start:stop],
        )
    shift = alignment.shift
    if not shift.any():
        return
    edges = [0, *(np.flatnonzero(np.diff(shift)) + 1).tolist(), excerpt.n]
    shifts = []
    for start, stop in pairwise(edges):
        if shift[start]:
            shifts.append([excerpt.first + start, excerpt.first + stop, int(shift[start])])
    throughout = bool(np.all(shift == shift[0]))
    next_step = "check the trigger, then realign the rows (infocap diagnose --fix)"
    if excerpt.of_sequence:
        next_step = "check the trigger, then give the parts before and after as two runs"
    first_start, first_stop, first_lag = shifts[0]
    where = "throughout" if throughout else f"in measurements {first_start} to {first_stop - 1}"
    for start, stop, lag in shifts[1:4]:
        where += f", by {lag:+d} in {start} to {stop - 1}"
    yield finding(
        f"readouts look shifted by {first_lag:+d} samples against the inputs {where} (+ is late): "
        "they fit the inputs of other measurements and not their own",
        cause="shift" if throughout else "slip",
        next_step=next_step,
        in_short="readouts shifted against the inputs",
        capacity=_capacity_of_shift(excerpt, shift),
        rows=excerpt.rows[shift != 0],
        lag=-first_lag,
        shifts=shifts,
    )


def _capacity_of_shift(excerpt: Excerpt, shift: Integers) -> float:
    """Return how much more capacity there is when each readout is put to its inputs.

    Of a device with memory it is that at the delay where it grows most.
    """
    residuals = excerpt.residuals
    h = residuals.h[:, scanned_functions(excerpt)]
    realigned = h[np.clip(np.arange(excerpt.n) - shift, 0, excerpt.n - 1)]
    lags = range(-MAX_LAG, 1) if excerpt.of_sequence else [0]
    gains = []
    for lag in lags:
        before = lagged_capacity(residuals.whitened, h, lag)
        gains.append(lagged_capacity(residuals.whitened, realigned, lag) - before)
    return max(gains)
