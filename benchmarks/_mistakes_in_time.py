"""Mistakes in which the device, the source or the electronics do not stay as they are along the run."""

from __future__ import annotations

import numpy as np

from _mistakes_devices import OTHER, SIMILAR, Array, Run
from _mistakes_kinds import BOTH, MEMORYLESS, WITH_MEMORY, Data, changed, kind

# The response changes.


def gain_changed(run: Run, start: float, stop: float, factor: float) -> Data:
    rows = run.rows(start, stop)
    return run.u, changed(run.x, rows, factor * run.x[rows])


@kind("gain changes by 5 % in the middle", "response", "drift", "gain steps")
def gain_changes_a_little(run: Run) -> Data:
    return gain_changed(run, 0.5, 1, 1.05)


@kind("two tables joined, gain 1.3", "response", "drift", "gain steps", "units")
def tables_joined(run: Run) -> Data:
    return gain_changed(run, 0.6, 1, 1.3)


@kind("gain range x2 part-way", "response", "drift", "gain steps", "units")
def range_switched_by_two(run: Run) -> Data:
    return gain_changed(run, 0.35, 0.8, 2)


@kind("gain range x10 for a tenth", "response", "drift", "gain steps", "units")
def range_switched_by_ten(run: Run) -> Data:
    return gain_changed(run, 0.3, 0.4, 10)


@kind("gain range x100 in 3 % of the rows", "gain steps", "units", "glitches")
def range_switched_by_a_hundred(run: Run) -> Data:
    rows = run.some(0.03)
    return run.u, changed(run.x, rows, 100 * run.x[rows])


@kind("gain of some channels drifts", "response", min_channels=4)
def gain_of_some_channels_drifts(run: Run) -> Data:
    gain = 1 + 0.5 * run.time() * (np.arange(run.n_channels) % 4 == 0)
    middle = run.x.mean(axis=0)
    return run.u, middle + gain * (run.x - middle)


@kind("polarity flipped halfway", "response")
def polarity_flipped(run: Run) -> Data:
    sent = 2 * run.input_middle - run.u
    return run.u, changed(run.measure(sent), run.rows(0, 0.5), run.x[run.rows(0, 0.5)])


@kind("channels swapped halfway", "response", "drift", min_channels=2)
def channels_swapped(run: Run) -> Data:
    x = run.x.copy()
    rows = run.rows(0.5, 1)
    x[rows, :2] = run.x[rows, 1::-1]
    return run.u, x


@kind("plugs of all channels moved by one", "response", "drift", min_channels=2)
def plugs_moved(run: Run) -> Data:
    rows = run.rows(0.7, 1)
    return run.u, changed(run.x, rows, np.roll(run.x, 1, axis=1)[rows])


@kind("two inputs exchanged halfway", "response", "swapped rows", min_inputs=2)
def inputs_exchanged(run: Run) -> Data:
    rows = run.rows(0.5, 1)
    return run.u, changed(run.x, rows, run.measure(run.u[:, ::-1])[rows])


@kind("working point drifts", "response", "drift")
def working_point_drifts(run: Run) -> Data:
    low, high = run.input_range
    return run.u, run.measure(run.u + 0.25 * (high - low) * (run.time() - 0.5))


@kind("mode hop", "response", "drift")
def mode_hop(run: Run) -> Data:
    rows = run.rows(0.4, 0.6)
    return run.u, changed(run.x, rows, run.measure(run.u, 3 * SIMILAR)[rows])


@kind("device exchanged for a similar one", "response", "drift")
def device_exchanged(run: Run) -> Data:
    rows = run.rows(0.55, 1)
    return run.u, changed(run.x, rows, run.measure(run.u, 2 * SIMILAR)[rows])


@kind("device exchanged for another", "response", "drift", "foreign rows", "gap")
def device_exchanged_for_another(run: Run) -> Data:
    rows = run.rows(0.8, 1)
    return run.u, changed(run.x, rows, run.measure(run.u, OTHER)[rows])


@kind("two devices take turns", "period", "response", "interleaved")
def devices_take_turns(run: Run) -> Data:
    rows = slice(1, None, 2)
    return run.u, changed(run.x, rows, run.measure(run.u, 2 * SIMILAR)[rows])


@kind("a device ages", "response", "drift")
def device_ages(run: Run) -> Data:
    share = run.time()
    return run.u, (1 - share) * run.x + share * run.measure(run.u, 2 * SIMILAR)


@kind("temperature cycles", "response", "drift", "period")
def temperature_cycles(run: Run) -> Data:
    low, high = run.input_range
    wave = np.sin(2 * np.pi * 3 * run.time())
    return run.u, run.measure(run.u + 0.1 * (high - low) * wave)


@kind("source dimmed from the middle", "response", "drift")
def source_dimmed(run: Run) -> Data:
    rows = run.rows(0.5, 1)
    return run.u, changed(run.x, rows, run.measure(run.driven_by(0.7))[rows])


@kind("inputs scaled wrongly from a row on", "response", "domain", "shape of inputs")
def inputs_scaled_wrongly(run: Run) -> Data:
    rows = run.rows(0.65, 1)
    return changed(run.u, rows, run.driven_by(0.75)[rows]), run.x


# The offset changes.


@kind("baseline drift", "drift")
def baseline_drift(run: Run) -> Data:
    walk = np.cumsum(run.generator.standard_normal(run.x.shape), axis=0) / np.sqrt(run.n)
    return run.u, run.x + 1.5 * run.spread * walk


@kind("linear drift, all channels alike", "drift")
def linear_drift(run: Run) -> Data:
    return run.u, run.x + run.spread.mean() * run.time()


@kind("warm-up transient", "drift", "response", "noise", with_memory=("washout",))
def warm_up_transient(run: Run) -> Data:
    size = run.generator.standard_normal(run.n_channels)
    return run.u, run.x + 4 * run.spread * size * np.exp(-run.time() / 0.04)


@kind("offset of every file", "drift", "period", "batches")
def offset_of_every_file(run: Run) -> Data:
    file = np.arange(run.n) // 128
    offsets = run.generator.standard_normal((file[-1] + 1, run.n_channels))
    return run.u, run.x + 0.5 * run.spread * offsets[file]


@kind("baseline jumps", "drift")
def baseline_jumps(run: Run) -> Data:
    rows = run.rows(0.45, 0.7)
    jump = run.spread * run.generator.uniform(0.5, 1.5, run.n_channels)
    return run.u, changed(run.x, rows, run.x[rows] + jump)


@kind(
    "drift, then sorted by an input",
    "drift",
    "order of inputs",
    "response",
    with_memory=("shuffled", "inputs depend"),
    traceless=True,
    devices=MEMORYLESS,
)
def drift_then_sorted(run: Run) -> Data:
    _, x = baseline_drift(run)
    order = np.argsort(run.u[:, 0])
    return run.u[order], x[order]


@kind("swept with drift", "order of inputs", "drift", devices=MEMORYLESS, traceless=True)
def swept_with_drift(run: Run) -> Data:
    u = run.u[np.argsort(run.u[:, 0])]
    return u, run.measure(u) + run.spread * run.time()


# The noise changes.


@kind("noisy fifth of the run", "noise")
def noisy_fifth(run: Run) -> Data:
    rows = run.rows(0.7, 0.9)
    return run.u, changed(run.x, rows, (run.x + run.noise(0.7))[rows])


@kind("noise grows", "noise")
def noise_grows(run: Run) -> Data:
    return run.u, run.x + run.noise(0.6) * run.time() ** 2


@kind("noise in bursts", "noise", "glitches", "gap")
def noise_in_bursts(run: Run) -> Data:
    starts = np.flatnonzero(run.some(0.004))
    rows = np.minimum((starts[:, None] + np.arange(20)).ravel(), run.n - 1)
    return run.u, changed(run.x, rows, (run.x + run.noise(2))[rows])


# Periods.


def hum(run: Run, size: float, frequency: float) -> Array:
    phases = 2 * np.pi * run.generator.random(run.n_channels)
    return size * np.sin(2 * np.pi * frequency * np.arange(run.n)[:, None] + phases)


@kind("hum of 1 %", "period")
def hum_of_one_percent(run: Run) -> Data:
    return run.u, run.x + run.x.std() * hum(run, 0.01, 0.0517)


@kind("hum of 30 %", "period")
def strong_hum(run: Run) -> Data:
    return run.u, run.x + run.spread * hum(run, 0.3, 0.1321)


@kind("alternate rows offset", "period")
def alternate_rows_offset(run: Run) -> Data:
    sign = np.where(np.arange(run.n) % 2, 1, -1)[:, None]
    return run.u, run.x + 0.25 * run.spread * sign


@kind("ripple of the gain", "period", "response")
def ripple_of_the_gain(run: Run) -> Data:
    middle = run.x.mean(axis=0)
    ripple = 0.3 * np.sin(2 * np.pi * 0.0871 * np.arange(run.n)[:, None])
    return run.u, middle + (1 + ripple) * (run.x - middle)


@kind("batches z-scored", "batches", "period")
def batches_z_scored(run: Run) -> Data:
    x = run.x.copy()
    for start in range(0, run.n, 32):
        batch = x[start : start + 32]
        x[start : start + 32] = (batch - batch.mean(axis=0)) / (batch.std(axis=0) + 1e-12)
    return run.u, x


@kind("mean of every 20 rows subtracted", "batches", "period", "neighbours")
def batch_means_subtracted(run: Run) -> Data:
    x = run.x.copy()
    for start in range(0, run.n, 20):
        x[start : start + 20] -= x[start : start + 20].mean(axis=0)
    return run.u, x


# Parts of the run without signal.


@kind("source off for a while", "gap")
def source_off(run: Run) -> Data:
    sent = changed(run.u, run.rows(0.4, 0.5), run.u.mean(axis=0))
    return run.u, run.measure(sent)


@kind("source drops out, 8 % of the rows", "gap", "other inputs", "glitches")
def source_drops_out(run: Run) -> Data:
    return run.u, run.measure(changed(run.u, run.some(0.08), run.input_middle))


@kind("shutter closed for a while", "gap", "frozen", "codes")
def shutter_closed(run: Run) -> Data:
    rows = run.rows(0.2, 0.32)
    dark = run.x.min(axis=0) - run.spread
    return run.u, changed(run.x, rows, (dark + run.noise(0.01))[rows])


@kind("a channel frozen", "frozen", "noise", "gap", "response", min_channels=3)
def channel_frozen(run: Run) -> Data:
    x = run.x.copy()
    rows = run.rows(0.3, 0.75)
    x[rows, 2] = x[rows.start, 2]
    return run.u, x


@kind(
    "a quarter of the channels frozen at the end",
    "frozen",
    "noise",
    "gap",
    "response",
    min_channels=4,
)
def channels_frozen_at_the_end(run: Run) -> Data:
    x = run.x.copy()
    rows = run.rows(0.88, 1)
    x[rows, ::4] = x[rows.start, ::4]
    return run.u, x


@kind("a plug is loose", "noise", "response", "gap", "drift", min_channels=4, devices=BOTH)
def plug_is_loose(run: Run) -> Data:
    x = run.x.copy()
    rows = run.rows(0.5, 0.7)
    x[rows, :2] = run.x[:, :2].mean(axis=0) + run.noise(0.3)[rows, :2]
    return run.u, x


# Columns that are no readouts.


@kind("a counter", "clock", "drift")
def counter(run: Run) -> Data:
    return run.u, np.column_stack([run.x, np.arange(run.n)])


@kind("a temperature", "clock", "drift")
def temperature(run: Run) -> Data:
    celsius = 20 + 0.01 * np.cumsum(run.generator.standard_normal(run.n))
    return run.u, np.column_stack([run.x, celsius])


@kind("reset every 50 rows", "period", "washout", "response", "gap", "noise", devices=WITH_MEMORY)
def reset_every_fifty_rows(run: Run) -> Data:
    x = run.x.copy()
    for start in range(0, run.n, 50):
        x[start : start + 50] = run.measure(run.u[start : start + 50])
    return run.u, x
