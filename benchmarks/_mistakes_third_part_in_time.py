"""A third part of mistakes, unseen while checks are developed: what changes along the run, and what was sent.

They were written by somebody who has not read the checks, nor what they find.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.signal import lfilter

from _mistakes_devices import THIRD, Run
from _mistakes_kinds import MEMORYLESS, WITH_MEMORY, Data, before, changed, kind
from _mistakes_second_part import dark_level, parts_of

third_kind = partial(kind, part=THIRD)

# Bits of the register of a source that makes random numbers.
REGISTER_BITS = 20
# Rows between two strokes of a cold head.
ROWS_PER_STROKE = 37
# A plate has this many rows of wells and wells in each; the outer ones dry out.
PLATE = (8, 12)


# ---------------------------------------------------------------------------------------------
# What changes along the run
# ---------------------------------------------------------------------------------------------


@third_kind("strokes of a cold head", "period", "glitches", "outlying", "gap")
def strokes_of_a_cold_head(run: Run) -> Data:
    """Every 37th row gets a kick, and the three rows after it ever weaker ones in other directions."""
    phase = np.arange(run.n) % ROWS_PER_STROKE
    kicks = np.zeros((ROWS_PER_STROKE, run.n_channels))
    kicks[:4] = run.generator.standard_normal((4, run.n_channels))
    kicks[:4] *= np.array([[4.0], [3.0], [2.0], [1.0]])
    return run.u, run.x + run.spread * kicks[phase]


@third_kind("power wanders", "response", "drift", "gain steps")
def power_wanders(run: Run) -> Data:
    """The power of the laser is a random walk."""
    walk = np.cumsum(run.generator.standard_normal((run.n, 1)), axis=0) / np.sqrt(run.n)
    dark = dark_level(run)
    return run.u, dark + (run.x - dark) * np.exp(0.5 * walk)


@third_kind(
    "pixels binned from the middle on", "response", "noise", "drift", "dependent", min_channels=2
)
def pixels_binned_from_the_middle_on(run: Run) -> Data:
    """From then on, both channels of each pair hold the mean of the two."""
    x = run.x.copy()
    rows = run.rows(0.5, 1)
    n_paired = run.n_channels // 2 * 2
    pairs = run.x[rows, :n_paired].reshape(-1, n_paired // 2, 2)
    x[rows, :n_paired] = np.repeat(pairs.mean(axis=2), 2, axis=1)
    return run.u, x


@third_kind(
    "test pattern at first",
    "gap",
    "frozen",
    "codes",
    "copied rows",
    "response",
    "drift",
    "noise",
    "period",
    "foreign rows",
    "glitches",
    "batches",
)
def test_pattern_at_first(run: Run) -> Data:
    """The camera shows its moving ramp until somebody switches it off at 7 % of the run."""
    rows = run.rows(0, 0.07)
    ramp = np.linspace(0, 1, run.n_channels) + (np.arange(run.n) % 16)[:, None] / 16
    pattern = run.x.min(axis=0) + 3 * run.spread * (ramp % 1)
    return run.u, changed(run.x, rows, pattern[rows])


@third_kind(
    "mock driver for a while",
    "gap",
    "noise",
    "foreign rows",
    "response",
    "drift",
    "units",
    "glitches",
    "outlying",
)
def mock_driver_for_a_while(run: Run) -> Data:
    """After a restart the program fell back to a driver that returns random numbers from 0 to 1."""
    rows = run.rows(0.45, 0.52)
    return run.u, changed(run.x, rows, run.generator.random(run.x.shape)[rows])


@third_kind(
    "outer wells of a plate dry out",
    "period",
    "response",
    "gain steps",
    "drift",
    "noise",
    "batches",
    "glitches",
    "units",
)
def outer_wells_dry_out(run: Run) -> Data:
    """36 of 96 wells are more concentrated by 40 %."""
    n_rows, n_columns = PLATE
    well = np.arange(run.n) % (n_rows * n_columns)
    is_outer_row = np.isin(well // n_columns, [0, n_rows - 1])
    is_outer_column = np.isin(well % n_columns, [0, n_columns - 1])
    concentration = np.where(is_outer_row | is_outer_column, 1.4, 1.0)[:, None]
    dark = dark_level(run)
    return run.u, dark + concentration * (run.x - dark)


# ---------------------------------------------------------------------------------------------
# Memory of the apparatus around a device that has none
# ---------------------------------------------------------------------------------------------


@third_kind("the device heats itself", "memory", "drift", "response", devices=MEMORYLESS)
def device_heats_itself(run: Run) -> Data:
    """The power of some thirty earlier inputs moves the working point."""
    low, high = run.input_range
    power = ((run.u - run.input_middle) ** 2).mean(axis=1)
    heat = lfilter([0.03], [1, -0.97], power - power.mean())
    shift = 0.1 * (high - low) * heat / (heat.std() + 1e-12)
    return run.u, run.measure(run.u + shift[:, None])


@third_kind("echo of the input 23 rows later", "memory", devices=MEMORYLESS)
def echo_of_the_input(run: Run) -> Data:
    """A reflection comes back from the far end of a long cable."""
    echo = before(run.u, 23) - run.input_middle
    return run.u, run.measure(run.u + 0.3 * echo)


@third_kind(
    "stabiliser acts on the next row", "memory", "response", "other inputs", devices=MEMORYLESS
)
def stabiliser_acts_on_the_next_row(run: Run) -> Data:
    """A control loop takes the first readout for a change of the power and corrects the next input."""
    error = np.tanh((run.x[:, :1] - run.x[:, 0].mean()) / run.spread[0])
    return run.u, run.measure(run.driven_by(1 - 0.35 * before(error)))


@third_kind(
    "stage vibrates after long moves", "memory", "noise", "glitches", "outlying", devices=MEMORYLESS
)
def stage_vibrates_after_long_moves(run: Run) -> Data:
    """The noise of a row is proportional to the step from the input before."""
    low, high = run.input_range
    step = np.abs(run.u - before(run.u)).max(axis=1, keepdims=True) / (high - low)
    return run.u, run.x + run.noise(1.0) * step


@third_kind(
    "laser keeps one of two modes", "memory", "drift", "noise", "response", devices=MEMORYLESS
)
def laser_keeps_one_of_two_modes(run: Run) -> Data:
    """A large first input switches to the upper mode, which has other gains, and a small one back."""
    low, high = run.input_range
    position = (run.u[:, 0] - low) / (high - low)
    modes = np.empty(run.n)
    mode = 0.0
    for row, value in enumerate(position):
        if value > 0.75:
            mode = 1.0
        elif value < 0.25:
            mode = 0.0
        modes[row] = mode
    difference = 0.5 * run.generator.standard_normal(run.n_channels)
    middle = run.x.mean(axis=0)
    return run.u, middle + (1 + difference * modes[:, None]) * (run.x - middle)


# ---------------------------------------------------------------------------------------------
# What was sent, and what was written down of it
# ---------------------------------------------------------------------------------------------


@third_kind("bias controller dithers the input", "period", "other inputs", "response", "noise")
def bias_controller_dithers(run: Run) -> Data:
    """A pilot tone of a few per cent of the range is added to what is sent."""
    low, high = run.input_range
    tone = np.sin(2 * np.pi * 0.0731 * np.arange(run.n))[:, None]
    return run.u, run.measure(run.u + 0.08 * (high - low) * tone)


@third_kind(
    "driver scales every six inputs to full range",
    "other inputs",
    "batches",
    "period",
    "neighbours",
    "memory",
    "later inputs",
    "noise",
    "response",
)
def driver_scales_every_six_inputs(run: Run) -> Data:
    """The waveform generator stretches each segment so that its largest value is full scale."""
    low, high = run.input_range
    sent = run.u - run.input_middle
    for part in parts_of(run, 6):
        sent[part] *= (high - low) / 2 / (np.abs(sent[part]).max(axis=0) + 1e-12)
    return run.u, run.measure(run.input_middle + sent)


@third_kind(
    "inputs read back by a noisy meter",
    "domain",
    "shape of inputs",
    "clipped",
    "other inputs",
    "noise",
    "rounded inputs",
    "repeats",
)
def inputs_read_back_by_a_noisy_meter(run: Run) -> Data:
    """The table holds what a meter with noise of 5 % showed, cut at the ends of the range."""
    low, high = run.input_range
    noise = 0.05 * (high - low) * run.generator.standard_normal(run.u.shape)
    return np.clip(run.u + noise, low, high), run.x


@third_kind("inputs z-scored", "domain", "units", "shape of inputs")
def inputs_z_scored(run: Run) -> Data:
    """A script saves the inputs with mean zero and standard deviation one."""
    return (run.u - run.u.mean(axis=0)) / run.u.std(axis=0), run.x


@third_kind(
    "amplitude of the inputs grows",
    "domain",
    "shape of inputs",
    "order of inputs",
    "inputs depend",
    "response",
)
def amplitude_of_the_inputs_grows(run: Run) -> Data:
    """Somebody was careful at first; what was sent is written down."""
    u = run.driven_by(0.2 + 0.8 * run.time())
    return u, run.measure(u)


@third_kind("same seed for two sources", "correlated inputs", min_inputs=2)
def same_seed_for_two_sources(run: Run) -> Data:
    """The last input is always equal to the first."""
    u = run.u.copy()
    u[:, -1] = u[:, 0]
    return u, run.measure(u)


@third_kind(
    "polarity alternates from row to row",
    "period",
    "response",
    "interleaved",
    "nothing",
    "no effect",
)
def polarity_alternates(run: Run) -> Data:
    """The driver of a liquid crystal changes the sign of its voltage every time."""
    sign = np.where(np.arange(run.n) % 2, -1.0, 1.0)[:, None]
    return run.u, run.measure(run.driven_by(sign))


@third_kind(
    "interlock trips at large inputs",
    "gap",
    "memory",
    "other inputs",
    "glitches",
    "foreign rows",
    "noise",
    devices=MEMORYLESS,
)
def interlock_trips(run: Run) -> Data:
    """After an input in the highest 3 % of the range the source is off for six rows."""
    low, high = run.input_range
    has_tripped = run.u[:, 0] > high - 0.03 * (high - low)
    trips_within_six_rows = lfilter(np.ones(6), [1], has_tripped.astype(float))
    is_off = before(trips_within_six_rows) > 0.5
    return run.u, run.measure(changed(run.u, is_off, run.input_middle))


@third_kind(
    "register of the source clocked once per value",
    "inputs depend",
    "order of inputs",
    devices=WITH_MEMORY,
)
def register_clocked_once_per_value(run: Run) -> Data:
    """Each random number is half of the last one plus a new bit: uniform, but not independent."""
    bits = run.generator.integers(0, 2, (run.n + REGISTER_BITS, run.n_inputs))
    powers = 0.5 ** np.arange(1, REGISTER_BITS + 1)
    probability = lfilter(powers, [1], bits, axis=0)[REGISTER_BITS:]
    u = run.device.inputs_at(np.clip(probability, 1e-6, 1 - 1e-6))
    return u, run.measure(u)


@third_kind(
    "large inputs after small ones",
    "inputs depend",
    "order of inputs",
    "response",
    "drift",
    devices=WITH_MEMORY,
)
def large_inputs_after_small_ones(run: Run) -> Data:
    """The source was set to the lower half of its range first, and then to the upper half."""
    u = run.u[np.argsort(run.u[:, 0] > run.input_middle, kind="stable")]
    return u, run.measure(u)
