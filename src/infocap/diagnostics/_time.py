"""Tests of time: readouts that drift, a response that changes, parts that fit worse, and periods.

Sums over consecutive parts of the rows are Fourier-transformed. Where rows are exchangeable given
their inputs, every frequency has the same power. What comes and goes within a part, at no steady
frequency, is seen by residuals that resemble those of earlier rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from scipy.special import fdtrc

from .._formatting import join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import (
    N_RANDOM_ORDERS,
    P_VALUE_TO_LOOK_AGAIN,
    chi_squared_tail,
    gamma_tail,
    level,
    normal_scores,
)
from ._excerpt import Excerpt
from ._finding import costs_enough, finding
from ._lags import lagged_capacity, lagged_correlations, lagged_power
from ._residuals import NORMAL_MEDIAN_DEVIATION, Residuals

# Functions whose products with time show that the response changes.
N_RESPONSE_FUNCTIONS = 8
# Frequencies, in cycles per excerpt, up to which the three bands reach that are looked at.
BANDS = (2, 8, 24)
# A frequency above the bands is a line where it stands out from so many on each side of it.
N_NEIGHBOUR_FREQUENCIES = 12
# The frequencies beyond a band with which it is compared in a sequence, in widths of the band.
N_BANDS_BEYOND = 3
# A cause outside a device with memory (a temperature, a source) moves its readouts by one time
# course, which holds so much of the slow power, or it moves most of them by so much of their
# variance. Less is a slow state of the device itself.
MIN_SHARE_OF_ONE_COURSE = 0.8
MIN_MOVED_VARIANCE = 0.02
# The same for what changes in the response to the latest input, beyond what noise makes of many
# series.
MIN_SHARE_OF_ONE_RESPONSE = 0.5
# Parts of the run whose misfit is compared, and how far it lies above the usual one in those told.
N_MISFIT_PARTS = 32
MIN_DEVIATIONS_OF_MISFIT = 5.0
MIN_SPREAD_OF_MISFIT = 0.05


@dataclass(frozen=True)
class SlowChange:
    """The band of low frequencies in which a group of series has most power beyond chance."""

    p_value: float
    n_cycles: int  # the highest frequency of the band, in cycles per excerpt


def part_sums(excerpt: Excerpt, series: Floats, factors: Floats | None = None) -> Floats:
    """Return sums over consecutive parts of series, or of all products of series and factors.

    The shape is (parts, series) or (parts, series times factors). Rows behind the last whole part
    are left out.
    """
    n_parts = excerpt.residuals.n_parts
    n_rows = excerpt.n // n_parts
    in_parts = series[: n_parts * n_rows].reshape(n_parts, n_rows, -1)
    if factors is None:
        return in_parts.sum(axis=1)
    factors_in_parts = factors[: n_parts * n_rows].reshape(n_parts, n_rows, -1)
    products = np.matmul(in_parts.transpose(0, 2, 1), factors_in_parts)
    return products.reshape(n_parts, -1)


def slow_change(sums: Floats, together: bool, of_sequence: bool) -> SlowChange:
    """Test sums over parts for power at low frequencies.

    `together` adds the power of all series; otherwise each is tested alone. The sums are scaled
    here, so that their variance between parts is one. The power is compared with that of random
    orders of the parts. Parts of a sequence, whose memory may be longer than its basis, are
    not independent, and there it is compared with the power of the next frequencies.
    """
    standardised = _standardised(sums)
    best = SlowChange(1.0, BANDS[0])
    best_series = 0
    for n_cycles in _bands(len(sums)):
        if of_sequence:
            p_values = _p_values_beside(standardised, n_cycles, together)
        else:
            power = _band_power(standardised, 0, n_cycles)
            degrees_of_freedom = 2 * n_cycles
            if together:
                power = power.sum(keepdims=True)
                degrees_of_freedom *= sums.shape[1]
            p_values = chi_squared_tail(2 * power, degrees_of_freedom) * len(power)
        p_values = p_values * len(BANDS)
        series = int(np.argmin(p_values))
        if p_values[series] < best.p_value:
            best = SlowChange(float(p_values[series]), n_cycles)
            best_series = series
    if best.p_value > P_VALUE_TO_LOOK_AGAIN or of_sequence:
        return best

    shown = standardised if together else standardised[:, [best_series]]
    observed = float(_band_power(shown, 0, best.n_cycles).sum())
    generator = np.random.default_rng(0)
    draws = []
    for _ in range(N_RANDOM_ORDERS):
        shuffled = shown[generator.permutation(len(shown))]
        draws.append(float(_band_power(shuffled, 0, best.n_cycles).sum()))
    n_tested = len(BANDS) * (1 if together else sums.shape[1])
    return SlowChange(gamma_tail(observed, np.array(draws)) * n_tested, best.n_cycles)


def _p_values_beside(series: Floats, n_cycles: int, together: bool) -> Floats:
    """Return p-values of the power of a band relative to the frequencies beyond it.

    The power of many series may be that of one alone, so they count as one.
    """
    n_beyond = min(N_BANDS_BEYOND * n_cycles, len(series) // 2 - n_cycles)
    power = _band_power(series, 0, n_cycles)
    beyond = _band_power(series, n_cycles, n_cycles + n_beyond)
    if together:
        power = power.sum(keepdims=True)
        beyond = beyond.sum(keepdims=True)
    ratio = (power / n_cycles) / np.maximum(beyond / n_beyond, np.finfo(float).tiny)
    return fdtrc(2 * n_cycles, 2 * n_beyond, ratio) * len(power)


def _bands(n_parts: int) -> list[int]:
    return [n_cycles for n_cycles in BANDS if n_cycles < n_parts // 2]


def _standardised(sums: Floats) -> Floats:
    """Return series of mean 0 and variance 1 between the parts."""
    centred = sums - sums.mean(axis=0)
    return centred / np.maximum(centred.std(axis=0), np.finfo(np.float32).tiny)


def _band_power(series: Floats, first: int, last: int) -> Floats:
    """Return the power of each series above `first` up to `last` cycles, one for each of noise."""
    spectrum = scipy.fft.rfft(series, axis=0)[first + 1 : last + 1]
    return np.sum(np.abs(spectrum) ** 2, axis=0) / len(series)


def _waves(n_rows: int, frequencies: Floats) -> Floats:
    """Return cosines and sines of frequencies in cycles per excerpt, (rows, waves).

    Their mean square is 1.
    """
    angle = 2 * np.pi / n_rows * np.outer(np.arange(n_rows), frequencies)
    waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    return np.sqrt(2) * waves.astype(np.float32)


def capacity_of_waves(a: Floats, h: Floats | None, frequencies: Floats) -> float:
    """Return the capacity of waves, or of functions times waves, without bias.

    The frequencies are in cycles per excerpt.
    """
    n = len(a)
    waves = _waves(n, frequencies)
    total = 0.0
    n_functions = 1 if h is None else h.shape[1]
    for k in range(n_functions):
        product = waves if h is None else waves * h[:, [k]]
        total += float(np.sum((product.T @ a / n) ** 2))
    return total - a.shape[1] * waves.shape[1] * n_functions / n


def _capacity_of_slow_waves(a: Floats, h: Floats | None, n_cycles: int) -> float:
    """Return the largest capacity of the bands up to so many cycles: wide ones have more noise."""
    bands = [n for n in BANDS if n <= n_cycles]
    return max(capacity_of_waves(a, h, np.arange(1, n + 1)) for n in bands)


def changes_with_time(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where the response, the offset or the misfit changes along the run."""
    if excerpt.related_inputs is not None or not excerpt.residuals.n_parts:
        return
    residuals = excerpt.residuals
    response_sums = part_sums(excerpt, residuals.e, _own_functions(residuals))
    offset_sums = part_sums(excerpt, residuals.e)
    misfit_sums = part_sums(excerpt, residuals.log_misfit[:, None])

    def test(sums: Floats, together: bool) -> SlowChange:
        return slow_change(sums, together, excerpt.of_sequence)

    response = min(
        _change_of_response(excerpt, response_sums), test(residuals.gain_sums, False), key=_p_value
    )
    offset = min(test(offset_sums, True), test(residuals.channel_sums, False), key=_p_value)
    misfit = test(misfit_sums, True)
    if response.p_value < level(excerpt):
        yield _response_check(excerpt, response)
    elif offset.p_value < level(excerpt):
        yield _drift_check(excerpt, offset)
    if misfit.p_value < level(excerpt):
        yield _misfit_check(excerpt, misfit)


def _change_of_response(excerpt: Excerpt, sums: Floats) -> SlowChange:
    """Test sums of residuals times functions for a slow change.

    What the latest input does to a device with memory is as random as that input, so parts of a
    run may be put in random orders there, too. Only the device's own slow states make it change,
    each in its own way, where a cause outside changes all of it together.
    """
    if not sums.size:  # inputs that never change have no function to respond to
        return SlowChange(p_value=1.0, n_cycles=1)
    if excerpt.of_sequence and _share_of_one_course(sums) < MIN_SHARE_OF_ONE_RESPONSE:
        return slow_change(sums, together=True, of_sequence=True)
    return slow_change(sums, together=True, of_sequence=False)


def _share_of_one_course(sums: Floats) -> float:
    """Return which part of the slow power of many series, beyond noise, has one time course."""
    standardised = _standardised(sums)
    n_cycles = min(BANDS[1], len(sums) // 2 - 1)
    spectrum = scipy.fft.rfft(standardised, axis=0)[1 : n_cycles + 1] * np.sqrt(2 / len(sums))
    amplitudes = np.concatenate([spectrum.real, spectrum.imag])  # of noise, variance 1
    largest = float(np.linalg.svd(amplitudes, compute_uv=False)[0]) ** 2
    largest_of_noise = sum(np.sqrt(amplitudes.shape)) ** 2
    beyond_noise = max(float(np.sum(amplitudes**2)) - amplitudes.size, largest - largest_of_noise)
    return (largest - largest_of_noise) / max(beyond_noise, 1.0)


def _own_functions(residuals: Residuals) -> Floats:
    """Return the functions whose products with time show that the response changes."""
    return residuals.h[:, :N_RESPONSE_FUNCTIONS]


def _p_value(change: SlowChange) -> float:
    return change.p_value


def _response_check(excerpt: Excerpt, change: SlowChange) -> Check:
    """Return the check of a response that changes with time, which moves the offsets, too."""
    whitened = excerpt.residuals.whitened
    own_functions = _own_functions(excerpt.residuals)
    capacity = max(
        _capacity_of_slow_waves(whitened, own_functions, change.n_cycles),
        _capacity_of_slow_waves(whitened, None, change.n_cycles),
    )
    return finding(
        "the response to the inputs changes along the run: a gain, a polarity, a working point "
        "or the power drifts or jumps",
        cause="response",
        next_step="keep them steady, or use the steady part",
        in_short="a response that changes",
        capacity=capacity,
        p_value=change.p_value,
        **_stretches_of_misfit(excerpt, excerpt.residuals),
    )


def _drift_check(excerpt: Excerpt, change: SlowChange) -> Check:
    """Return the check of readouts that change with time, whatever their inputs."""
    capacity = _capacity_of_slow_waves(excerpt.residuals.whitened, None, change.n_cycles)
    if excerpt.of_sequence and _may_be_slow_state(excerpt.residuals):
        memory = excerpt.samples.basis.memory
        return finding(
            "readouts change slowly along the run, each in a way of its own and most of them "
            f"little: the device has slow states, which remember for longer than {memory} steps, "
            "or it drifts",
            cause="drift",
            next_step="compare the capacities of both halves of the run if this matters",
            capacity=capacity,
            is_note=True,
            p_value=change.p_value,
        )
    return finding(
        "readouts drift along the run, whatever their inputs",
        cause="drift",
        next_step="keep the device steady, or measure a reference in between and subtract it",
        in_short="readouts that drift",
        capacity=capacity,
        p_value=change.p_value,
    )


def _may_be_slow_state(residuals: Residuals) -> bool:
    """Return whether slow changes may be those of a device whose memory is longer than its basis.

    A cause outside the device moves all readouts together, or most of them by much.
    """
    waves = _waves(residuals.n_rows, np.arange(1, BANDS[1] + 1))
    left = residuals.channel_residuals()
    course = np.linalg.svd(waves.T @ (left - left.mean(axis=0)), compute_uv=False) ** 2
    if course[0] > MIN_SHARE_OF_ONE_COURSE * course.sum():
        return False
    amplitudes = waves.T @ residuals.channels / residuals.n_rows
    moved = np.sum(amplitudes**2, axis=0) / np.mean(residuals.channels**2, axis=0)
    by_chance = waves.shape[1] / residuals.n_rows
    return bool(np.median(moved) - by_chance < MIN_MOVED_VARIANCE)


def _misfit_check(excerpt: Excerpt, change: SlowChange) -> Check:
    """Return the check of parts of the run that fit their inputs worse than others."""
    residuals = excerpt.residuals
    found = _stretches_of_misfit(excerpt, residuals)
    waves = _waves(excerpt.n, np.arange(1, change.n_cycles + 1))
    places = [f"{start} to {stop - 1}" for start, stop in found.get("stretches", [])]
    where = f" (measurements {join_names(places, 4)})" if places else ""
    return finding(
        f"parts of the run fit their inputs worse than others{where}: more noise, a source that "
        "was off, a warm-up, or rows of another table",
        cause="noise",
        next_step="look there, and leave them out if they are no measurements",
        in_short="parts of the run that fit worse",
        capacity=residuals.capacity_of_calm_rows(waves),
        p_value=change.p_value,
        **found,
    )


def _stretches_of_misfit(excerpt: Excerpt, residuals: Residuals) -> dict[str, Any]:
    """Return start and stop of the parts of the run whose misfit is larger than usual."""
    edges = np.linspace(0, excerpt.n, N_MISFIT_PARTS + 1).astype(int)
    means = np.add.reduceat(residuals.log_misfit, edges[:-1]) / np.diff(edges)
    usual = float(np.median(means))
    spread = float(np.median(np.abs(means - usual))) / NORMAL_MEDIAN_DEVIATION
    deviation = spread + MIN_SPREAD_OF_MISFIT
    is_worse = means > usual + MIN_DEVIATIONS_OF_MISFIT * deviation
    parts: list[list[int]] = []
    for k in np.flatnonzero(is_worse).tolist():
        start = int(excerpt.positions[edges[k]])
        stop = int(excerpt.positions[edges[k + 1] - 1]) + 1
        if k > 0 and is_worse[k - 1]:
            parts[-1][1] = stop
        else:
            parts.append([start, stop])
    return {"stretches": parts} if parts else {}


# Periods.

# A sequence whose memory is a larger part of the excerpt has resonances as narrow as a line.
MIN_MEMORIES_FOR_LINES = 32
# Frequencies next to a line that hold some of its power, on each side.
N_SIDE_FREQUENCIES = 3


def periods(excerpt: Excerpt) -> Iterator[Check]:
    """Yield a check where readouts oscillate, alternate rows differ, or offsets come and go."""
    if excerpt.related_inputs is not None or not excerpt.residuals.n_parts:
        return
    if excerpt.of_sequence and excerpt.n < MIN_MEMORIES_FOR_LINES * excerpt.samples.basis.memory:
        return
    residuals = excerpt.residuals
    p_value = _p_value_of_alternate_rows(residuals, excerpt.of_sequence)
    if p_value < level(excerpt):
        capacity = _capacity_of_alternate_rows(residuals)
        yield finding(
            "alternate rows answer their inputs differently: two devices, channels or buffers "
            "take turns",
            cause="period",
            next_step="separate them, and estimate each",
            in_short="alternate rows that differ",
            capacity=capacity,
            p_value=p_value,
            period=2.0,
        )
        return
    lines = list(_line_checks(excerpt, residuals))
    yield from lines
    if not lines:
        yield from _lasting_offset(excerpt, residuals)


def _p_value_of_alternate_rows(residuals: Residuals, of_sequence: bool) -> float:
    """Return the p-value that readouts change with the parity of the row, alone or with functions.

    The power at half the sampling frequency is compared with that of random signs; of a sequence,
    whose readouts have a spectrum of their own, with that of the frequencies beside it.
    """
    n = residuals.n_rows
    factors = _constant_and_functions(residuals)
    mean_square = (residuals.e**2).T @ factors**2

    def power(wave: Floats) -> float:
        sums = (residuals.e * wave[:, None]).T @ factors
        return float(np.sum(sums**2 / mean_square))

    alternating = _alternating_signs(n)
    observed = power(alternating)
    p_value = float(chi_squared_tail(observed, mean_square.size))
    if p_value > P_VALUE_TO_LOOK_AGAIN:
        return p_value
    generator = np.random.default_rng(0)
    draws = []
    for k in range(N_RANDOM_ORDERS):
        if of_sequence:
            angle = np.pi * (1 - 2 * (k + 1) / n) * np.arange(n) + generator.uniform(0, 2 * np.pi)
            wave = (np.sqrt(2) * np.cos(angle)).astype(np.float32)
        else:
            wave = generator.permutation(alternating)
        draws.append(power(wave))
    return gamma_tail(observed, np.array(draws))


def _constant_and_functions(residuals: Residuals) -> Floats:
    """Return the constant and functions that show changes of the response, (rows, functions)."""
    constant = np.ones((residuals.n_rows, 1), np.float32)
    return np.concatenate([constant, _own_functions(residuals)], axis=1)


def _alternating_signs(n_rows: int) -> Floats:
    """Return +1 in even rows and -1 in odd ones."""
    return np.where(np.arange(n_rows) % 2, -1.0, 1.0).astype(np.float32)


def _capacity_of_alternate_rows(residuals: Residuals) -> float:
    """Return the capacity of the parity of the row, alone and times functions, without its bias."""
    n = residuals.n_rows
    sign = _alternating_signs(n)
    factors = _constant_and_functions(residuals)
    correlations = (factors * sign[:, None]).T @ residuals.whitened / n
    return float(np.sum(correlations**2)) - correlations.size / n


def _line_checks(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check of the costliest period that readouts, their gain or their misfit have."""
    # A few of the last rows are left out, because the transform of some lengths is slow.
    n = scipy.fft.prev_fast_len(excerpt.n, real=True)
    misfit = residuals.log_misfit[:n] - residuals.log_misfit[:n].mean()
    groups = {
        "readouts oscillate": residuals.e[:n],
        "the gain oscillates": residuals.gain[:n, None],
        "rows fit worse": misfit[:, None],
    }
    checks = []
    for what, series in groups.items():
        if excerpt.of_sequence and series.shape[1] == 1:
            series = normal_scores(series)  # heavy tails, which no random order calibrates
        known = _frequencies_of_basis(excerpt, n)
        frequency, p_value = _line(series, excerpt.of_sequence, known)
        if p_value >= level(excerpt):
            continue
        capacity = _capacity_of_line(residuals, n, frequency)
        if excerpt.of_sequence and not costs_enough(capacity):
            continue  # The readouts of a device with memory have a spectrum of their own.
        period = n / frequency
        next_step = "find its source, or subtract it"
        if excerpt.of_sequence:
            # A device with memory may oscillate by itself.
            next_step = (
                "find its source; if the device itself oscillates, count it as a function of time, "
                f"with `period={period:.4g}` and `time_degree=1` of delayed_basis"
            )
        check = finding(
            f"{what} with a period of {period:.4g} measurements: hum of the mains, a beat of two "
            "clocks, or batches",
            cause="period",
            next_step=next_step,
            in_short="a period in the readouts",
            capacity=capacity,
            p_value=p_value,
            period=period,
        )
        checks.append(check)
    if checks:
        yield max(checks, key=lambda check: float(check.found["capacity"]))


def _capacity_of_line(residuals: Residuals, n_rows: int, frequency: int) -> float:
    """Return the capacity of waves around a frequency, alone or times functions, in first rows."""
    around = np.arange(frequency - N_SIDE_FREQUENCIES, frequency + N_SIDE_FREQUENCIES + 1)
    whitened = residuals.whitened[:n_rows]
    own_functions = _own_functions(residuals)[:n_rows]
    alone = capacity_of_waves(whitened, None, around)
    with_functions = capacity_of_waves(whitened, own_functions, around)
    return max(alone, with_functions)


def _frequencies_of_basis(excerpt: Excerpt, n_rows: int) -> Integers:
    """Return the frequencies of the waves that a basis with a period counts as functions."""
    period = excerpt.samples.basis.period
    if period is None:
        return np.empty(0, int)
    harmonics = np.arange(1, int(period / 2) + 1)
    around = np.arange(-N_SIDE_FREQUENCIES, N_SIDE_FREQUENCIES + 1)
    return (np.round(harmonics * n_rows / period).astype(int)[:, None] + around).ravel()


def _line(series: Floats, of_sequence: bool, known: Integers) -> tuple[int, float]:
    """Return the clearest frequency of series and its p-value, in random orders of the rows.

    The `known` frequencies are left out.
    """
    ratio = _power_over_neighbours(series)
    ratio[known[known < len(ratio)]] = 0.0
    frequency = int(np.argmax(ratio))
    # Readouts with memory have a spectrum of their own, which may be that of one direction alone.
    degrees = 2 if of_sequence else 2 * series.shape[1]
    degrees_beside = degrees * 2 * N_NEIGHBOUR_FREQUENCIES
    p_value = float(fdtrc(degrees, degrees_beside, ratio[frequency])) * np.count_nonzero(ratio)
    if p_value > P_VALUE_TO_LOOK_AGAIN or of_sequence:
        return frequency, p_value
    generator = np.random.default_rng(0)
    largest = []
    for _ in range(N_RANDOM_ORDERS):
        shuffled = series[generator.permutation(len(series))]
        largest.append(float(_power_over_neighbours(shuffled).max()))
    return frequency, max(p_value, gamma_tail(float(ratio[frequency]), np.array(largest)))


def _power_over_neighbours(series: Floats) -> Floats:
    """Return the power of each frequency relative to those beside it.

    Frequencies of the slow bands, and those without neighbours on both sides, have none.
    """
    spectrum = scipy.fft.rfft(np.ascontiguousarray(series.T))
    power = np.sum(spectrum.real**2 + spectrum.imag**2, axis=0) / len(series)
    side = np.ones(N_NEIGHBOUR_FREQUENCIES)
    kernel = np.concatenate([side, np.zeros(2 * N_SIDE_FREQUENCIES + 1), side]) / (2 * len(side))
    beside = np.convolve(power, kernel, "same")
    ratio = power / np.maximum(beside, np.finfo(float).tiny)
    ratio[: max(BANDS[-1], len(kernel))] = 0.0
    ratio[len(ratio) - len(kernel) :] = 0.0
    return ratio


# Offsets that come and go.

# How many rows beyond the memory of the device residuals are compared: what comes and goes within
# a few rows, and within some ten.
ROWS_BEYOND_MEMORY = (1, 2, 4, 8)
# Delays beyond the memory of the basis at which a slow state of the device may hold inputs, far
# shifts that tell what it holds by chance, and by how many standard deviations it may hold more
# than is seen.
MAX_DELAY_BEYOND_MEMORY = 60
N_FAR_SHIFTS = 20
MAX_DEVIATIONS_OF_HELD = 2.0
# The least part of what a slow state holds of earlier inputs that functions of single inputs hold:
# half of it, in elements that switch at rare inputs.
MIN_SHARE_OF_SINGLE_INPUTS = 0.5
# Standard errors by which the kurtosis and the autocorrelation of slow noise may differ from those
# of normal numbers that forget, the largest kurtosis of its steps from row to row, and the
# autocorrelation below which it oscillates. Slow noise keeps within these; states that switch, hot
# pixels, cross-talk and hum do not.
MAX_DEVIATIONS_OF_NOISE = 4.0
MAX_KURTOSIS_OF_STEPS = 4.0
MIN_AUTOCORRELATION_OF_NOISE = -0.3
# Autocorrelation at which slow noise has forgotten.
END_OF_CORRELATION = 0.05


def _lasting_offset(excerpt: Excerpt, residuals: Residuals) -> Iterator[Check]:
    """Yield a check where residuals resemble those of rows that share no inputs with them."""
    memory = excerpt.samples.basis.memory
    lags = [memory + n_rows for n_rows in ROWS_BEYOND_MEMORY]
    e = residuals.e

    def power(other: Floats) -> float:
        return sum(lagged_power(e, other, -lag) for lag in lags)

    observed = power(e)
    p_value = float(chi_squared_tail(observed, len(lags) * e.shape[1] ** 2))
    if p_value > P_VALUE_TO_LOOK_AGAIN:
        return
    generator = np.random.default_rng(0)
    draws = [power(_with_random_signs(e, residuals, generator)) for _ in range(N_RANDOM_ORDERS)]
    p_value = gamma_tail(observed, np.array(draws))
    capacity = max(lagged_capacity(residuals.whitened, e, -lag) for lag in lags)
    if p_value >= level(excerpt) or not costs_enough(capacity):
        return
    lasting = _lasting_combination(residuals, lags)
    is_little = False
    if excerpt.of_sequence:
        if _may_hold_earlier_inputs(excerpt, residuals, lasting, lags):
            return
        if _changes_slowly(lasting.series[:, 0], lags[0]) and _may_be_slow_state(residuals):
            return  # The test of drift tells of it, and that the device may have slow states.
        is_little = bool(_lasting_variance(residuals, lags).max() < MIN_MOVED_VARIANCE)
        if _is_slow_noise(lasting.series[:, 0], lags[0]):
            yield _slow_noise_note(memory, capacity, p_value)
            return
    how_long = f"more than {memory} steps" if excerpt.of_sequence else "some rows"
    or_memory = ", or a memory longer than that of the basis" if excerpt.of_sequence else ""
    yield finding(
        f"readouts keep an offset for {how_long}, whatever their inputs, and then another one: a "
        "state that switches, a hot pixel, hum at no steady frequency, cross-talk of another "
        f"experiment{or_memory}",
        cause="drift",
        next_step="find its source, or measure a reference in between and subtract it",
        in_short="offsets that come and go",
        comes_and_goes=True,  # What drifts along the whole run also does so.
        capacity=capacity,
        is_note=is_little,  # The device itself may have slow states.
        p_value=p_value,
    )


def _slow_noise_note(memory: int, capacity: float, p_value: float) -> Check:
    return finding(
        f"the noise of the readouts lasts for more than {memory} steps",
        cause="drift",
        next_step="leave it if the device itself is slow; otherwise find its source, or measure a "
        "reference in between and subtract it",
        in_short="slow noise",
        capacity=capacity,
        is_note=True,
        p_value=p_value,
    )


class _Lasting(NamedTuple):
    """The combination of residuals that lasts best."""

    series: Floats  # (rows, 1)
    correlation: float  # with itself, at the lag where residuals last most


def _lasting_combination(residuals: Residuals, lags: list[int]) -> _Lasting:
    """Return the combination of residuals that is most alike so many rows later."""
    at_lags = [lagged_correlations(residuals.e, residuals.e, -lag) for lag in lags]
    strongest = max(at_lags, key=np.linalg.norm)
    correlations, combinations = np.linalg.eigh((strongest + strongest.T) / 2)
    best = int(np.argmax(np.abs(correlations)))
    series = residuals.e @ combinations[:, [best]].astype(np.float32)
    return _Lasting(series, float(correlations[best]))


def _is_slow_noise(series: Floats, n_rows: int) -> bool:
    """Return whether a series looks like normal noise of slow decay, smoothed over so many rows.

    It is then no offset that jumps, and no oscillation.
    """
    if _kurtosis(np.diff(series)) > MAX_KURTOSIS_OF_STEPS:
        return False
    smooth = _smoothed(series, n_rows)
    autocorrelation = _autocorrelation(smooth)
    n_correlated = _rows_until_forgotten(autocorrelation)
    n_independent = _number_of_independent_rows(autocorrelation, n_correlated)

    by_chance = -MAX_DEVIATIONS_OF_NOISE / np.sqrt(n_independent)
    lowest = autocorrelation[: 4 * n_correlated].min()
    oscillates = lowest < min(MIN_AUTOCORRELATION_OF_NOISE, by_chance)

    standard_error = np.sqrt(24 / n_independent)  # of the kurtosis of normal numbers
    is_normal = abs(_kurtosis(smooth) - 3) < MAX_DEVIATIONS_OF_NOISE * standard_error
    return bool(is_normal and not oscillates)


def _changes_slowly(series: Floats, n_rows: int) -> bool:
    """Return whether a series, smoothed over so many rows, changes so slowly that it is drift."""
    autocorrelation = _autocorrelation(_smoothed(series, n_rows))
    n_correlated = _rows_until_forgotten(autocorrelation)
    return _number_of_independent_rows(autocorrelation, n_correlated) < 2 * BANDS[-1]


def _smoothed(series: Floats, n_rows: int) -> Floats:
    """Return the means of so many consecutive rows."""
    return np.convolve(series, np.ones(n_rows) / n_rows, "valid").astype(float)


def _rows_until_forgotten(autocorrelation: Floats) -> int:
    """Return the first lag at which the autocorrelation is small."""
    is_small = np.flatnonzero(autocorrelation < END_OF_CORRELATION)
    return int(is_small[0]) if len(is_small) else len(autocorrelation)


def _number_of_independent_rows(autocorrelation: Floats, n_correlated: int) -> float:
    """Return the effective number of rows, n / (1 + 2 Σρ); the autocorrelation has n/2 lags."""
    return 2 * len(autocorrelation) / (1 + 2 * float(autocorrelation[1:n_correlated].sum()))


def _autocorrelation(series: Floats) -> Floats:
    """Return the autocorrelation of a series, up to half of its length."""
    n = len(series)
    spectrum = scipy.fft.rfft(series - series.mean(), 2 * n)
    products: Floats = scipy.fft.irfft(np.abs(spectrum) ** 2)[: n // 2]
    return products / max(float(products[0]), np.finfo(float).tiny)


def _kurtosis(series: Floats) -> float:
    """Return the fourth moment over the squared variance: 3 for normal numbers."""
    centred = series.astype(float) - float(series.mean())
    return float(np.mean(centred**4) / max(np.mean(centred**2) ** 2, np.finfo(float).tiny))


def _lasting_variance(residuals: Residuals, lags: list[int]) -> Floats:
    """Return which part of the variance of each channel lasts for so many rows."""
    left = residuals.channel_residuals() * residuals.fit.channel_scale
    covariances = [np.mean(left[lag:] * left[:-lag], axis=0) for lag in lags]
    variance = np.mean(residuals.channels**2, axis=0)
    return np.abs(covariances).max(axis=0) / np.maximum(variance, np.finfo(np.float32).tiny)


def _with_random_signs(e: Floats, residuals: Residuals, generator: np.random.Generator) -> Floats:
    """Return residuals with a random sign in each part of the run, which is longer than memory.

    What chance makes of them keeps its size, also where parts of the run are noisier than others.
    """
    n_rows = len(e) // residuals.n_parts
    n_parts = -(-len(e) // n_rows)  # rounded up
    signs = generator.choice(np.array([-1, 1], np.float32), n_parts)
    return e * np.repeat(signs, n_rows)[: len(e), None]


def _may_hold_earlier_inputs(
    excerpt: Excerpt, residuals: Residuals, lasting: _Lasting, lags: list[int]
) -> bool:
    """Return whether residuals may last because the device remembers for longer than its basis.

    Residuals that consist of earlier inputs resemble those so many rows before by the inputs that
    both hold. So the squared correlation is no larger than the capacity of all functions of these
    inputs. Those of single inputs are looked at, in the combination of residuals that lasts best.
    """
    series = lasting.series
    h = _own_functions(residuals)

    def held(series: Floats) -> float:
        delays = range(lags[0], lags[0] + MAX_DELAY_BEYOND_MEMORY)
        return sum(lagged_capacity(series, h, -delay) for delay in delays)

    # What lasts varies slowly, and so chance makes it resemble inputs more than white noise does.
    generator = np.random.default_rng(0)
    nearest_far_shift = lags[-1] + MAX_DELAY_BEYOND_MEMORY
    if excerpt.n <= 2 * nearest_far_shift:
        return True
    shifts = generator.integers(nearest_far_shift, excerpt.n - nearest_far_shift, N_FAR_SHIFTS)
    by_chance = np.array([held(np.roll(series, shift, axis=0)) for shift in shifts.tolist()])
    most_held = held(series) - by_chance.mean() + MAX_DEVIATIONS_OF_HELD * by_chance.std()
    return bool(MIN_SHARE_OF_SINGLE_INPUTS * lasting.correlation**2 < most_held)
