"""A fourth part of mistakes, unseen while checks are developed: what does not stay as it is along the run.

They were written by somebody who has not read the checks, nor what they find. The rule for mistakes without a trace
stands in `_mistakes_fourth_part_of_rows`; none of these kinds is without one, because the law of their readouts
changes along the run, or readouts depend on the readouts before.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.signal import lfilter

from _mistakes_devices import FOURTH, Array, Run
from _mistakes_kinds import MEMORYLESS, Data, before, changed, kind
from _mistakes_second_part import dark_level, random_telegraph

fourth_kind = partial(kind, part=FOURTH)

# Rows per cycle of a vacuum pump, which runs for the first third of it.
PUMP_ROWS = 90
# Rows within which the mark of a particle on the sensor fades to 1/e.
FADING_ROWS = 8.0


@fourth_kind("door opened three times", "response", "drift", "noise", "gain steps")
def door_opened(run: Run) -> Data:
    """Cold air takes a third of the gain, which comes back within a twelfth of the run."""
    fallen = np.zeros((run.n, 1))
    for start in (0.18, 0.46, 0.71):
        since = run.time() - start
        fallen += np.where(since >= 0, np.exp(-np.maximum(since, 0) / 0.08), 0)
    dark = dark_level(run)
    return run.u, dark + (1 - 0.35 * fallen) * (run.x - dark)


@fourth_kind(
    "bubbles in the channels",
    "response",
    "noise",
    "gain steps",
    "drift",
)
def bubbles(run: Run) -> Data:
    """A third of the channels loses three quarters of its signal whenever a bubble sits before its window."""
    dark = dark_level(run)
    x = run.x.copy()
    for channel in range(0, run.n_channels, 3):
        has_bubble = random_telegraph(run, 60)
        signal = run.x[has_bubble, channel] - dark[channel]
        x[has_bubble, channel] = dark[channel] + 0.25 * signal
    return run.u, x


@fourth_kind(
    "electrodes foul",
    "response",
    "drift",
    "clipped",
)
def electrodes_foul(run: Run) -> Data:
    """A film grows on the electrodes, behind which large signals are cut ever more softly."""
    steepness = 0.2 + 2.5 * run.time()
    centred = (run.x - run.x.mean(axis=0)) / run.spread
    return run.u, np.tanh(steepness * centred) / np.tanh(steepness)


@fourth_kind(
    "stage loses steps",
    "response",
    "drift",
    "other inputs",
)
def stage_loses_steps(run: Run) -> Data:
    """In one row of 60 the motor of the last input misses some steps, so its zero wanders."""
    low, high = run.input_range
    lost = run.some(1 / 60) * run.generator.standard_normal(run.n)
    offset = 0.06 * (high - low) * np.cumsum(lost)
    sent = run.u.copy()
    sent[:, -1] += np.clip(offset, -0.4 * (high - low), 0.4 * (high - low))
    return run.u, run.measure(sent)


@fourth_kind(
    "flicker noise of the amplifier",
    "drift",
    "noise",
)
def flicker_noise(run: Run) -> Data:
    """Noise whose power grows as one over the frequency, of 0.6 standard deviations."""
    spectrum = np.fft.rfft(run.generator.standard_normal(run.x.shape), axis=0)
    frequency = np.fft.rfftfreq(run.n)[:, None]
    frequency[0] = np.inf
    noise = np.fft.irfft(spectrum / np.sqrt(frequency), run.n, axis=0)
    return run.u, run.x + 0.6 * run.spread * noise / noise.std(axis=0)


@fourth_kind("brown-outs", "response", "gap", "noise", "other inputs", "glitches", "drift")
def brown_outs(run: Run) -> Data:
    """The mains fail a little: for eight to twenty rows of every 150 or so, the source has less amplitude."""
    amplitude = np.ones((run.n, 1))
    for start in np.flatnonzero(run.some(1 / 150)):
        amplitude[start : start + int(run.generator.integers(8, 21))] = 0.4
    return run.u, run.measure(run.driven_by(amplitude))


@fourth_kind(
    "pump runs a third of the time",
    "noise",
    "period",
)
def pump_runs(run: Run) -> Data:
    """While the pump runs, readouts are noisier by 1.2 standard deviations."""
    runs = (np.arange(run.n) % PUMP_ROWS < PUMP_ROWS // 3)[:, None]
    return run.u, run.x + runs * run.noise(1.2)


@fourth_kind(
    "hits that fade",
    "glitches",
    "outlying",
    "drift",
    "noise",
    "gap",
)
def hits_that_fade(run: Run) -> Data:
    """Particles leave marks in some channels, which fade over eight rows."""
    hits = run.some(0.004, run.x.shape) * run.generator.exponential(8.0, run.x.shape)
    return run.u, run.x + run.spread * lfilter([1], [1, -np.exp(-1 / FADING_ROWS)], hits, axis=0)


@fourth_kind(
    "battery of the sensor dies",
    "response",
    "drift",
    "noise",
    "gap",
)
def battery_dies(run: Run) -> Data:
    """In the last sixth of the run readouts fade away into noise."""
    left = np.clip((1 - run.time()) / 0.16, 0, 1) ** 2
    return run.u, left * run.x + (1 - left) * run.noise(0.05)


@fourth_kind(
    "tracker exchanges two particles now and then",
    "response",
    "drift",
    "noise",
    min_channels=4,
)
def tracker_exchanges_particles(run: Run) -> Data:
    """Channels are positions of particles, and each pair has changed its names for stretches of some 50 rows."""
    x = run.x.copy()
    for first in range(0, run.n_channels - 1, 2):
        exchanged = random_telegraph(run, 50)
        x[exchanged, first] = run.x[exchanged, first + 1]
        x[exchanged, first + 1] = run.x[exchanged, first]
    return run.u, x


@fourth_kind(
    "beams stick after large deflections",
    "frozen",
    "memory",
    "stale",
    "filled cells",
    "copied rows",
    "clipped",
    "gap",
    "noise",
)
def beams_stick(run: Run) -> Data:
    """What is beyond the highest 3 % of a channel touches the wall and stays there for nine more rows."""
    limit = np.quantile(run.x, 0.97, axis=0)
    is_beyond = run.x > limit
    x = run.x.copy()
    for channel in range(run.n_channels):
        free_from = 0
        for row in np.flatnonzero(is_beyond[:, channel]):
            if row >= free_from:
                free_from = row + 10
                x[row:free_from, channel] = limit[channel]
    return run.u, x


@fourth_kind(
    "clock burnt into the picture",
    "frozen",
    "clock",
    "period",
    "drift",
    "codes",
    min_channels=4,
)
def clock_burnt_into_the_picture(run: Run) -> Data:
    """A third of the pixels lies beneath the digits of a frame counter, bright or dark."""
    x = run.x.copy()
    bright = run.x.max(axis=0)
    dark = run.x.min(axis=0)
    frame = np.arange(run.n)
    for number, channel in enumerate(range(0, run.n_channels, 3)):
        digit = frame // 10 ** (number % 4) % 10
        is_bright = (digit * (2 * number + 3)) % 7 < 3
        x[:, channel] = np.where(is_bright, bright[channel], dark[channel])
    return run.u, x


@fourth_kind(
    "cells get stuck one after the other",
    "frozen",
    "noise",
    "response",
    "gap",
    "drift",
    min_channels=3,
)
def cells_get_stuck(run: Run) -> Data:
    """Cells wear out at random times, half of them before the end, and stay at their highest value."""
    x = run.x.copy()
    worn_out = run.generator.exponential(1.4, run.n_channels)
    worn_out[0] = 0.5
    for channel in np.flatnonzero(worn_out < 1):
        rows = run.rows(worn_out[channel], 1)
        x[rows, channel] = run.x[:, channel].max() + 0.01 * run.noise(1.0)[rows, channel]
    return run.u, x


def exposed(signal: Array, wanted: float) -> Array:
    """Return frames of a camera that sets its exposure by the brightness of the frame before."""
    brightness = signal.mean(axis=1, keepdims=True)
    return signal * wanted / before(brightness)


@fourth_kind("exposure set by the frame before", "memory", devices=MEMORYLESS)
def exposure_set_by_the_frame_before(run: Run) -> Data:
    """The camera is in its automatic mode, and nobody writes its exposure down."""
    signal = 1 + 0.3 * (run.x - run.x.mean(axis=0)) / run.spread
    return run.u, exposed(np.maximum(signal, 0.05), 1.0)


@fourth_kind("reaction not waited for when it is cold", "memory", devices=MEMORYLESS)
def reaction_not_waited_for(run: Run) -> Data:
    """Where the first input is low the reaction is slow, and a part of the row before is still there."""
    low, high = run.input_range
    warmth = np.clip((run.u[:, 0] - low) / (high - low), 0, 1)
    rate = 0.7 + 4 * warmth
    x = run.x.copy()
    for row in range(1, run.n):
        x[row] = run.x[row] + np.exp(-rate[row]) * (x[row - 1] - run.x[row])
    return run.u, x


@fourth_kind(
    "relays stick for a while",
    "other inputs",
    "gap",
    "foreign rows",
    "response",
    "memory",
)
def relays_stick(run: Run) -> Data:
    """Now and then a relay of the last input does not answer for 15 to 30 rows, and keeps what it had."""
    sent = run.u.copy()
    for start in np.flatnonzero(run.some(1 / 250)):
        stop = start + int(run.generator.integers(15, 31))
        sent[start:stop, -1] = run.u[start, -1]
    return run.u, run.measure(sent)


@fourth_kind(
    "one gain of four converters differs",
    "period",
    "response",
    "gain steps",
    "interleaved",
    "noise",
)
def one_of_four_converters_differs(run: Run) -> Data:
    """Four converters take turns along the rows, and the third has a weaker reference and an offset."""
    rows = slice(2, None, 4)
    return run.u, changed(run.x, rows, 0.75 * run.x[rows] + 0.1 * run.spread)
