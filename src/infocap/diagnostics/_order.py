"""Tests of order: do readouts hold inputs of other rows than their own?

The test asks one question after the other: are the rows' own inputs seen at all, is the order of
the rows random, are the rows of a sequence in order, did rows slip (`_slips`), and are inputs of
neighbouring rows seen beside the own ones (`_lags`)? The first that finds something ends it. The
size of a finding is the capacity of the forbidden functions in the whitened readouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft

from .._formatting import counted, join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import chi_squared_tail, gamma_tail, level
from ._excerpt import Excerpt
from ._finding import MIN_CAPACITY_OF_WARNING, finding
from ._lags import (
    MAX_LAG,
    MAX_LAG_OF_GAIN,
    MAX_SCANNED_LAG,
    Lags,
    independent_shifts,
    lagged_capacity,
    lagged_correlations,
    lagged_power,
    power_by_chance,
    scan_lags,
    scanned_functions,
)
from ._residuals import Residuals, sum_and_largest_power, uncorrelated
from ._slips import SHIFT_RATIO, align, alignment_checks

# Readouts hold their own inputs without doubt where the fit has a p-value below this.
CLEAR_P_VALUE = 1e-12
# Otherwise they hold them where a permutation test has a p-value below this, with so many orders.
MAX_P_VALUE_OF_OWN = 0.01
N_RANDOM_ORDERS_OF_ALL = 50
# Functions that are looked for at every shift of the whole table, and the fewest rows that both
# tables must have in common then.
N_FUNCTIONS_OF_FAR_SHIFTS = 6
MIN_COMMON_ROWS = 64
# Whether the rows of a sequence are in order is seen from the delays at which these functions have
# power: at most and at least so many delays are looked at.
N_PROFILE_FUNCTIONS = 4
MAX_PROFILE_DELAY = 24
MIN_PROFILE_DELAY = 3
# Delays with a common divisor that show that runs are interleaved.
MIN_SEEN_DELAYS = 3
# Rows of a sequence are shuffled where no earlier inputs have this share of the power of the own.
MAX_SHARE_OF_EARLIER_INPUTS = 0.02
# An input is late where at its own row it has less than this share of its capacity at the lag.
MAX_OWN_SHARE_OF_LATE_INPUT = 0.1
# Directions of the readouts, predicted best, whose products with the inputs of another row show
# that these change the gain.
N_DIRECTIONS_OF_PRODUCTS = 4
# Standard deviations by which their capacity must exceed what chance gives.
MIN_DEVIATIONS_OF_PRODUCTS = 4.0
# A channel is late where at its own row inputs have less than this share of their power at the lag,
# plus so many times the power by chance.
MAX_OWN_SHARE_OF_LATE_CHANNEL = 0.1
TIMES_OF_CHANCE = 3


def inputs_of_other_rows(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where readouts hold inputs of other rows than their own."""
    residuals = excerpt.residuals
    if residuals.fit.p_value >= CLEAR_P_VALUE:
        shift = _shift_of_all_rows(excerpt, residuals)
        is_shifted = shift.p_value < level(excerpt)
        if not _holds_own_inputs(excerpt, residuals):
            if not is_shifted:
                yield _nothing_check()
            elif excerpt.related_inputs is None:
                # Sorted inputs and smooth readouts are correlated at many shifts.
                yield _check_of_shift(excerpt, shift)
            return
        if is_shifted and shift.is_clearly_better and excerpt.related_inputs is None:
            yield _check_of_shift(excerpt, shift)
            return
    if excerpt.related_inputs is not None:
        yield _note_about_order(*excerpt.related_inputs)
        return
    if excerpt.of_sequence:
        disorder = list(_disorder_of_sequence(excerpt, residuals))
        if disorder:
            yield from disorder
            return
    alignment = align(excerpt, residuals)
    if alignment.gaps or alignment.shift.any():
        yield from alignment_checks(excerpt, alignment)
        return
    yield from _other_inputs(excerpt, residuals)


def _disorder_of_sequence(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check where rows of a sequence were shuffled, or those of several runs take turns."""
    memory = min(excerpt.samples.basis.memory, MAX_PROFILE_DELAY)
    if memory < MIN_PROFILE_DELAY:
        return
    h = residuals.h[:, :N_PROFILE_FUNCTIONS]
    draws = power_by_chance(residuals.projections, h, independent_shifts(excerpt))
    powers = [lagged_power(residuals.projections, h, -delay) for delay in range(memory + 1)]
    p_values = [gamma_tail(power, draws) * len(powers) for power in powers]
    seen = [delay for delay, p_value in enumerate(p_values) if p_value < level(excerpt)]
    by_chance = float(draws.mean())
    earlier = max(powers[1:]) - by_chance
    if seen == [0] and earlier < MAX_SHARE_OF_EARLIER_INPUTS * (powers[0] - by_chance):
        yield finding(
            "readouts hold the inputs of their own step and of no earlier one: the rows were "
            "shuffled, or the device has no memory",
            cause="shuffled",
            next_step="put the rows into the order of time, or use product_basis",
            in_short="rows out of order",
            p_value=p_values[0],
        )
        return
    period = int(np.gcd.reduce(seen)) if seen else 1
    if period > 1 and len(seen) >= MIN_SEEN_DELAYS:
        yield finding(
            f"readouts hold inputs at delays {join_names([str(delay) for delay in seen], 4)} "
            f"only: rows of {period} runs take turns, or the device has a loop of {period} steps",
            cause="interleaved",
            next_step="give each run by itself, if there are several",
            in_short="runs that take turns, or a loop",
            p_value=max(p_values[delay] for delay in seen),
            period=period,
            delays=seen,
        )


# Readouts without their own inputs.


def _holds_own_inputs(excerpt: Excerpt, residuals: Residuals) -> bool:
    """Return whether readouts hold functions of the inputs of their own row, or of one nearby."""
    if _p_value_of_own_inputs(excerpt, slice(None)) < MAX_P_VALUE_OF_OWN:
        return True
    # A response that turned round in the middle of the run cancels in all rows, not in a third.
    third = excerpt.n // 3
    for rows in (slice(third), slice(-third, None)):
        if _p_value_of_own_inputs(excerpt, rows) < level(excerpt):
            return True
    h = residuals.h[:, scanned_functions(excerpt)]
    lags = [lag for lag in range(-MAX_LAG, MAX_LAG + 1) if lag]
    power = [lagged_power(residuals.projections, h, lag) for lag in lags]
    nearby = chi_squared_tail(max(power), residuals.projections.shape[1] * h.shape[1]) * len(lags)
    return bool(nearby < level(excerpt))


def _p_value_of_own_inputs(excerpt: Excerpt, rows: slice) -> float:
    """Return the p-value, in random orders, that some rows hold no function of their own inputs.

    Many functions may be seen a little each, or one of them clearly: both are tested.
    """
    # Within these rows, so that the mean of readouts that drift tells nothing.
    orthonormal = excerpt.residuals.orthonormal[rows]
    orthonormal = orthonormal - orthonormal.mean(axis=0)
    whitened = excerpt.residuals.whitened
    readouts = whitened[rows]
    far_shifts = independent_shifts(excerpt)
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(N_RANDOM_ORDERS_OF_ALL):
        if far_shifts is None:
            other = readouts[generator.permutation(len(readouts))]
        else:
            other = np.roll(whitened, int(generator.integers(*far_shifts)), axis=0)[rows]
        draws.append(sum_and_largest_power(orthonormal.T @ other))
    observed = sum_and_largest_power(orthonormal.T @ readouts)
    p_values = [
        gamma_tail(power, np.array(powers))
        for power, powers in zip(observed, zip(*draws, strict=True), strict=True)
    ]
    return 2 * min(p_values)


@dataclass(frozen=True)
class _TableShift:
    """The shift of the whole table of readouts at which they agree best with the inputs."""

    shift: int  # by how many rows the readouts come later than their inputs
    is_reversed: bool  # whether they agree with the inputs in reverse order
    p_value: float
    is_clearly_better: bool  # than at their own row, and than at all neighbouring rows


def _shift_of_all_rows(excerpt: Excerpt, residuals: Residuals) -> _TableShift:
    """Return the shift by any number of rows, in either order, at which readouts agree best."""
    functions = scanned_functions(excerpt)[:N_FUNCTIONS_OF_FAR_SHIFTS]
    h = residuals.h[:, functions]
    memory = excerpt.samples.basis.memory if excerpt.of_sequence else 0
    best_power = -1.0
    power_nearby = 0.0
    for in_reverse in (False, True):
        lags, power = _power_at_all_lags(residuals.projections, h[::-1] if in_reverse else h)
        if not in_reverse:
            power_nearby = float(power[(lags <= MAX_LAG) & (lags >= -max(memory, MAX_LAG))].max())
            # The projections were chosen to agree with the rows' own inputs, if only by chance.
            power[(lags <= 0) & (lags >= -memory)] = 0.0
        best = int(np.argmax(power))
        if power[best] > best_power:
            best_power = float(power[best])
            best_lag = int(lags[best])
            is_reversed = in_reverse
    degrees_of_freedom = residuals.projections.shape[1] * len(functions)
    return _TableShift(
        shift=-best_lag,
        is_reversed=is_reversed,
        p_value=float(chi_squared_tail(best_power, degrees_of_freedom)) * 2 * len(lags),
        is_clearly_better=best_power > SHIFT_RATIO * power_nearby,
    )


def _check_of_shift(excerpt: Excerpt, shift: _TableShift) -> Check:
    """Return the check of readouts that are shifted by any number of rows, or reversed."""
    how = f"shifted by {shift.shift:+d} samples"
    if shift.is_reversed:
        # The best lag of a device with memory is a delay of its own rather than a shift.
        is_shifted = shift.shift != 0 and not excerpt.of_sequence
        how = f"reversed and {how}" if is_shifted else "reversed"
    return finding(
        f"readouts look {how} against the inputs throughout: no row shows the inputs that were "
        "recorded with it",
        cause="shift",
        next_step="check the trigger and the order of both tables, then realign the rows "
        "(infocap diagnose --fix)",
        in_short="readouts shifted against the inputs",
        p_value=shift.p_value,
        rows=[],
        lag=-shift.shift,
        reversed=shift.is_reversed,
        shifts=[[excerpt.first, excerpt.first + excerpt.n, shift.shift]],
    )


def _nothing_check() -> Check:
    """Return the check of readouts that do not hold the inputs at any shift."""
    return finding(
        "nothing of the inputs is seen in the readouts, at any shift and in either order",
        cause="nothing",
        next_step="check that these are the inputs that were sent (not those of another seed or "
        "run), and that the source was connected",
        in_short="nothing of the inputs is seen",
    )


def _power_at_all_lags(a: Floats, h: Floats) -> tuple[Integers, Floats]:
    """Return all lags at which enough rows overlap, and the power at each of them.

    The rows that overlap may vary more or less than all of them, as in a sorted file.
    """
    n = len(a)
    spectrum = np.conj(scipy.fft.rfft(a, 2 * n, axis=0))
    total = np.zeros((2 * n, a.shape[1]))
    for k in range(h.shape[1]):
        correlations = scipy.fft.irfft(spectrum * scipy.fft.rfft(h[:, [k]], 2 * n, axis=0), axis=0)
        total += correlations**2
    lags = np.concatenate([np.arange(n), np.arange(-n, 0)])
    n_common = n - np.abs(lags)
    enough = n_common >= max(MIN_COMMON_ROWS, n // 8)
    # The first rows overlap at positive lags, the last ones at negative lags.
    squares = np.zeros((n + 1, a.shape[1]))
    np.cumsum(a**2, axis=0, out=squares[1:])
    stops = np.where(lags >= 0, n_common, n)
    starts = np.where(lags >= 0, 0, n - n_common)
    energy = np.maximum(squares[stops] - squares[starts], np.finfo(float).tiny)
    return lags[enough], np.sum(total / energy, axis=1)[enough]


def _note_about_order(lag: int, correlation: float) -> Check:
    """Return the note that the order of the rows is not random."""
    return finding(
        f"inputs of neighbouring rows are related (most at a distance of {counted(lag, 'row')}, "
        f"where squared correlations of functions of low degree add up to {correlation:.2g}): a "
        "sweep, a sorted file, a low-discrepancy design in its own order, or a filtered source. "
        "Such an order hides shifts, memory, drift and periods, so they were not looked for",
        cause="order of inputs",
        next_step="measure in random order, or give the times of the rows",
        is_note=True,
        lag=lag,
    )


# Readouts that hold other inputs beside their own.


def _other_inputs(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check where readouts, their gain or their noise hold the inputs of other rows."""
    scan = scan_lags(excerpt, residuals.e, MAX_SCANNED_LAG)
    found = scan.found(level(excerpt))
    if len(found):
        yield from _lag_checks(excerpt, residuals, scan, found)
        return
    of_gain = scan_lags(excerpt, residuals.gain_scores, MAX_LAG_OF_GAIN)
    found = of_gain.found(level(excerpt))
    if len(found):
        capacities = {int(lag): _capacity_of_products(excerpt, residuals, lag) for lag in found}
        what = "the response to the row's own inputs"
        yield _check_of_scores(what, "gain of rows", of_gain, capacities)
        return
    of_noise = scan_lags(excerpt, residuals.size_score, MAX_LAG_OF_GAIN)
    found = of_noise.found(level(excerpt))
    if len(found):
        capacities = {int(lag): _capacity_of_calm_rows(excerpt, residuals, lag) for lag in found}
        what = "how well a row fits its own inputs"
        yield _check_of_scores(what, "noise of rows", of_noise, capacities)


def _capacity_of_products(excerpt: Excerpt, residuals: Residuals, lag: int) -> float:
    """Return the capacity of what a row should hold times functions of the inputs at a lag.

    It is zero where chance alone may give it.
    """
    expected = residuals.fitted[:, :N_DIRECTIONS_OF_PRODUCTS]
    other = np.roll(residuals.h[:, scanned_functions(excerpt)], -lag, axis=0)
    products = (expected[:, :, None] * other[:, None, :]).reshape(excerpt.n, -1)
    products = uncorrelated(products - products.mean(axis=0))
    capacity = lagged_capacity(residuals.whitened, products, 0)
    by_chance = np.sqrt(2 * products.shape[1] * residuals.rank) / excerpt.n
    return capacity if capacity > MIN_DEVIATIONS_OF_PRODUCTS * by_chance else 0.0


def _capacity_of_calm_rows(excerpt: Excerpt, residuals: Residuals, lag: int) -> float:
    """Return what would be held if all rows were as good as the better half for these inputs."""
    other = np.roll(residuals.h[:, scanned_functions(excerpt)], -lag, axis=0)
    return residuals.capacity_of_calm_rows(other)


def _check_of_scores(what: str, shown_as: str, scan: Lags, capacities: dict[int, float]) -> Check:
    """Return the check of a gain, or of noise, that depends on the inputs of other rows."""
    p_values = {lag: float(scan.p_value[scan.lags == lag][0]) for lag in capacities}
    lag = max(capacities, key=lambda k: (capacities[k], -p_values[k]))
    values: dict[str, Any] = {
        "lag": lag,
        "p_value": p_values[lag],
        "capacity": capacities[lag],
        "shown_as": shown_as,
    }
    are_all_earlier = all(lag < 0 for lag in capacities)
    are_all_later = all(lag > 0 for lag in capacities)
    if are_all_earlier:
        return finding(
            f"{what} depends on the inputs of {counted(-lag, 'row')} before: the device, its "
            "source or a detector has not settled",
            cause="memory",
            next_step="use delayed_basis, or wait longer between measurements",
            in_short="a device with memory",
            **values,
        )
    return finding(
        f"{what} depends on the inputs of {counted(abs(lag), 'row')} "
        f"{'after' if lag > 0 else 'before'}: rows were scaled together, averaged or swapped",
        cause="later inputs" if are_all_later else "neighbours",
        next_step="use the rows as they were measured",
        in_short="rows that are mixed with their neighbours",
        **values,
    )


def _lag_checks(
    excerpt: Excerpt, residuals: Residuals, scan: Lags, found: Integers
) -> Iterator[Check]:
    """Yield a check that says what the inputs at these lags mean: who is early or late."""
    h = residuals.h[:, scanned_functions(excerpt)]
    capacities = {int(lag): lagged_capacity(residuals.whitened, h, int(lag)) for lag in found}
    lag = max(capacities, key=lambda k: capacities[k])
    # Rows that were scaled together hold the other inputs times their own ones rather than alone.
    of_products = _capacity_of_products(excerpt, residuals, lag)
    values: dict[str, Any] = {
        "lag": lag,
        "p_value": float(scan.p_value[scan.lags == lag][0]),
        "capacity": sum(capacities.values()) + of_products,
    }
    if excerpt.of_sequence:
        own = lagged_capacity(residuals.whitened, h, 0)
        yield _leak_check(values) if own > capacities[lag] else _early_check(values)
        return
    late_inputs = _inputs_of_another_row(excerpt, residuals, lag)
    if late_inputs:
        yield _late_input_check(late_inputs, values)
        return
    late_channels = _channels_of_another_row(excerpt, residuals, lag)
    if len(late_channels):
        yield _late_channels_check(excerpt, late_channels, values)
        return
    yield _neighbour_check(found, values)


def _early_check(values: dict[str, Any]) -> Check:
    """Return the check of a sequence whose readouts hold later inputs."""
    lag = values["lag"]
    return finding(
        f"readouts hold inputs that come later, u[t+{lag}]: x is {counted(lag, 'sample')} early, "
        "or was filtered forwards and backwards",
        cause="later inputs",
        next_step=f"leave out the last {counted(lag, 'row')} of x and the first {lag} of u",
        in_short="readouts ahead of the inputs",
        **values,
    )


def _leak_check(values: dict[str, Any]) -> Check:
    """Return the check of a sequence whose readouts hold later inputs beside their own."""
    return finding(
        f"readouts also hold inputs that come later, u[t+{values['lag']}], beside those of their "
        "own step: later rows leak into earlier ones, or x was filtered forwards and backwards",
        cause="later inputs",
        next_step="use the rows as they were measured",
        in_short="readouts that hold later inputs",
        **values,
    )


def _late_input_check(inputs: list[int], values: dict[str, Any]) -> Check:
    """Return the check of an input whose column is not in step with the others."""
    lag = values["lag"]
    names = join_names([f"u{k + 1}" for k in inputs])
    direction = "before" if lag < 0 else "after"
    return finding(
        f"readouts depend on {names} of {counted(abs(lag), 'row')} {direction}, and not on that of "
        "their own row: this source is out of step with the others",
        cause="late input",
        next_step="move its column by so many rows",
        in_short="an input out of step",
        inputs=inputs,
        **values,
    )


def _late_channels_check(excerpt: Excerpt, channels: Integers, values: dict[str, Any]) -> Check:
    """Return the check of channels that come later than the others."""
    lag = values["lag"]
    names = excerpt.names(channels)
    return finding(
        f"{len(names)} of {excerpt.x.shape[1]} channels ({join_names(names)}) are shifted by "
        f"{-lag:+d} samples against the inputs and the other channels, as on a card with its own "
        "trigger",
        cause="late channels",
        next_step="move their columns by so many rows",
        in_short="channels shifted against each other",
        channels=names,
        **values,
    )


def _neighbour_check(found: Integers, values: dict[str, Any]) -> Check:
    """Return the check of readouts that also hold inputs of neighbouring rows."""
    lag = values["lag"]
    if np.any(found > 0) and np.any(found < 0):
        return finding(
            f"readouts also hold the inputs of rows before and after, most at lag {lag:+d}: rows "
            "were averaged, interpolated, swapped, or normalised in batches",
            cause="neighbours",
            next_step="use the rows as they were measured",
            in_short="rows that are mixed with their neighbours",
            **values,
        )
    if np.any(found > 0):
        return finding(
            f"readouts also hold inputs of later rows, most at lag {lag:+d}: they are early, or "
            "were interpolated between rows",
            cause="later inputs",
            next_step="check the trigger",
            in_short="readouts that hold later inputs",
            **values,
        )
    delays = sorted((-found).tolist())
    name = "delay" if len(delays) == 1 else "delays"
    span = f"{name} {join_names([str(delay) for delay in delays], 4)}"
    return finding(
        f"readouts also hold earlier inputs, at {span}: the device has memory, or a detector is "
        "slow",
        cause="memory",
        next_step="use delayed_basis, or wait longer between measurements",
        in_short="a device with memory",
        delays=delays,
        **values,
    )


def _inputs_of_another_row(excerpt: Excerpt, residuals: Residuals, lag: int) -> list[int]:
    """Return the inputs, but not all, that readouts hold at a lag and hardly at their own row."""
    indices = excerpt.low.indices[1:][scanned_functions(excerpt)]
    h = residuals.h[:, scanned_functions(excerpt)]
    n_inputs = indices.shape[1]
    late = []
    for k in range(n_inputs):
        alone = (indices[:, k] > 0) & (np.sum(indices > 0, axis=1) == 1)
        there = lagged_capacity(residuals.whitened, h[:, alone], lag)
        own = lagged_capacity(residuals.whitened, h[:, alone], 0)
        if there > MIN_CAPACITY_OF_WARNING and own < MAX_OWN_SHARE_OF_LATE_INPUT * there:
            late.append(k)
    return late if len(late) < n_inputs else []


def _channels_of_another_row(excerpt: Excerpt, residuals: Residuals, lag: int) -> Integers:
    """Return the channels that fit at a lag and not at their own row, if the others do not."""
    h = residuals.h[:, scanned_functions(excerpt)]
    scale = np.maximum(residuals.channels.std(axis=0), np.finfo(np.float32).tiny)
    standardised = residuals.channels / scale
    n = excerpt.n - abs(lag)
    at_lag = n * np.sum(lagged_correlations(standardised, h, lag) ** 2, axis=1)
    at_own = n * np.sum(lagged_correlations(standardised, h, 0) ** 2, axis=1)
    p_value = chi_squared_tail(at_lag, h.shape[1]) * len(at_lag)
    fits_there = p_value < level(excerpt)
    by_chance = TIMES_OF_CHANCE * h.shape[1]
    is_late = fits_there & (at_own < MAX_OWN_SHARE_OF_LATE_CHANNEL * at_lag + by_chance)
    if np.any(fits_there & ~is_late) or is_late.all():
        return np.arange(0)
    return np.flatnonzero(is_late)
