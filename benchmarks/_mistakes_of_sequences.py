"""Mistakes that only devices with memory suffer from."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from _mistakes_devices import Run
from _mistakes_kinds import WITH_MEMORY, Array, Data, after, before, kind


@kind("readouts one row early", "later inputs", "shift", devices=WITH_MEMORY)
def one_row_early(run: Run) -> Data:
    return run.u, after(run.x)


@kind("readouts three rows early", "later inputs", "shift", devices=WITH_MEMORY)
def three_rows_early(run: Run) -> Data:
    return run.u, after(run.x, 3)


@kind("readouts two rows late", "shift", "washout", devices=WITH_MEMORY, traceless=True)
def two_rows_late(run: Run) -> Data:
    return run.u, before(run.x, 2)


@kind("washout too short", "washout", "drift", "response", "noise", "outlying", devices=WITH_MEMORY)
def washout_too_short(run: Run) -> Data:
    start = run.spread * run.generator.uniform(5, 9, run.n_channels)
    steps = np.arange(run.n)[:, None]
    return run.u, run.x + start * np.exp(-steps / (3 * run.device.basis.memory))


def in_order(run: Run, order: Array) -> Data:
    return run.u[order], run.x[order]


@kind("rows shuffled", "shuffled", "nothing", devices=WITH_MEMORY)
def rows_shuffled(run: Run) -> Data:
    return in_order(run, run.generator.permutation(run.n))


@kind("blocks of eight rows shuffled", "shuffled", devices=WITH_MEMORY)
def blocks_shuffled(run: Run) -> Data:
    blocks = run.generator.permutation(-(-run.n // 8))
    order = (8 * blocks[:, None] + np.arange(8)).ravel()
    return in_order(run, order[order < run.n])


@kind("rows in the order of their names", "shuffled", devices=WITH_MEMORY)
def rows_in_the_order_of_their_names(run: Run) -> Data:
    return in_order(run, np.array(sorted(range(run.n), key=str)))


@kind(
    "rows of 5 % out of order",
    "shuffled",
    "swapped rows",
    "foreign rows",
    "gap",
    devices=WITH_MEMORY,
)
def some_rows_out_of_order(run: Run) -> Data:
    rows = np.flatnonzero(run.some(0.05))
    order = np.arange(run.n)
    order[rows] = run.generator.permutation(rows)
    return in_order(run, order)


@kind("two runs interleaved", "interleaved", "shuffled", devices=WITH_MEMORY)
def runs_interleaved(run: Run) -> Data:
    first, second = np.array_split(np.arange(run.n // 2 * 2), 2)
    return in_order(run, np.column_stack([first, second]).ravel())


@kind("three runs interleaved", "interleaved", "shuffled", devices=WITH_MEMORY)
def three_runs_interleaved(run: Run) -> Data:
    parts = np.array_split(np.arange(run.n // 3 * 3), 3)
    return in_order(run, np.column_stack(parts).ravel())


@kind("every second row kept", "missing", "shuffled", devices=WITH_MEMORY, traceless=True)
def every_second_row_kept(run: Run) -> Data:
    return in_order(run, np.arange(0, run.n, 2))


@kind("rows missing, 10 %", "missing", "shuffled", "gap", devices=WITH_MEMORY)
def rows_missing(run: Run) -> Data:
    return in_order(run, np.flatnonzero(~run.some(0.1)))


@kind("rows duplicated, 10 %", "copied rows", "stale", "stacked", "repeats", devices=WITH_MEMORY)
def rows_duplicated(run: Run) -> Data:
    return in_order(run, np.repeat(np.arange(run.n), 1 + run.some(0.1)))


@kind("time reversed", "later inputs", "shift", "shuffled", devices=WITH_MEMORY)
def time_reversed(run: Run) -> Data:
    return in_order(run, np.arange(run.n)[::-1])


def autocorrelated(run: Run, correlation: float) -> Array:
    """Return inputs of the right distribution that depend on earlier ones."""
    white = run.generator.standard_normal(run.u.shape) * np.sqrt(1 - correlation**2)
    return run.device.inputs_at(ndtr(lfilter([1], [1, -correlation], white, axis=0)))


@kind("inputs autocorrelated", "inputs depend", "order of inputs", devices=WITH_MEMORY)
def inputs_autocorrelated(run: Run) -> Data:
    u = autocorrelated(run, 0.6)
    return u, run.measure(u)


@kind(
    "inputs held for three steps",
    "inputs depend",
    "order of inputs",
    "repeats",
    "copied rows",
    devices=WITH_MEMORY,
)
def inputs_held(run: Run) -> Data:
    u = run.u[np.arange(run.n) // 3]
    return u, run.measure(u)


@kind(
    "inputs of a short period",
    "repeats",
    "period",
    "inputs depend",
    "stacked",
    "copied rows",
    devices=WITH_MEMORY,
)
def inputs_of_a_short_period(run: Run) -> Data:
    u = run.u[np.arange(run.n) % 127]
    return u, run.measure(u)


def low_passed(run: Run) -> Array:
    centred = run.u - run.input_middle
    return run.input_middle + 0.5 * centred + 0.5 * before(centred)


@kind(
    "inputs filtered before the device",
    "memory",
    "inputs depend",
    devices=WITH_MEMORY,
    traceless=True,
)
def inputs_filtered(run: Run) -> Data:
    return run.u, run.measure(low_passed(run))


@kind(
    "inputs written down behind a filter",
    "inputs depend",
    "shape of inputs",
    "domain",
    devices=WITH_MEMORY,
)
def inputs_written_down_behind_a_filter(run: Run) -> Data:
    return low_passed(run), run.x


@kind("readouts filtered by both sides", "later inputs", "neighbours", devices=WITH_MEMORY)
def filtered_by_both_sides(run: Run) -> Data:
    low = lfilter([0.5], [1, -0.5], run.x, axis=0)
    return run.u, lfilter([0.5], [1, -0.5], low[::-1], axis=0)[::-1].copy()


@kind(
    "readouts at half the rate",
    "stale",
    "copied rows",
    "period",
    devices=WITH_MEMORY,
)
def readouts_at_half_the_rate(run: Run) -> Data:
    """The converter keeps each even row's readout for the row after, and averages both."""
    pairs = run.x[: run.n // 2 * 2].reshape(-1, 2, run.n_channels).mean(axis=1)
    return run.u[: 2 * len(pairs)], np.repeat(pairs, 2, axis=0)


@kind(
    "inputs of another seed from the middle on", "gap", "nothing", "response", devices=WITH_MEMORY
)
def another_seed_from_the_middle_on(run: Run) -> Data:
    half = run.n // 2
    return np.vstack([run.u[:half], run.fresh_inputs()[half:]]), run.x
