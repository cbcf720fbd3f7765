"""Mistakes in which readouts stand in the row of other inputs: slips, memory, exchanged and foreign rows."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter
from scipy.stats import qmc

from _mistakes_devices import OTHER, Array, Run
from _mistakes_kinds import MEMORYLESS, Data, after, before, changed, kind

# Memory of the electronics around a device that has none.


def with_earlier_inputs(run: Run, share: float) -> Data:
    return run.u, run.measure(run.u + share * (before(run.u) - run.input_middle))


@kind("memory: u + 0.1 u before", "memory", devices=MEMORYLESS)
def weak_memory(run: Run) -> Data:
    return with_earlier_inputs(run, 0.1)


@kind("memory: u + 0.3 u before", "memory", devices=MEMORYLESS)
def strong_memory(run: Run) -> Data:
    return with_earlier_inputs(run, 0.3)


@kind("echo-state network", "memory", devices=MEMORYLESS)
def echo_state_network(run: Run) -> Data:
    generator = np.random.default_rng(1)
    recurrent = generator.standard_normal((30, 30)) * 0.9 / np.sqrt(30)
    weights = generator.standard_normal((run.n_inputs, 30))
    driven = 0.5 * (run.u - run.u.mean(axis=0)) / run.u.std(axis=0) @ weights
    state = np.zeros(30)
    states = np.empty((run.n, 30))
    for row, drive in enumerate(driven):
        state = np.tanh(state @ recurrent + drive)
        states[row] = state
    return run.u, states + 1e-3 * run.generator.standard_normal(states.shape)


@kind("30 % of the shot before", "memory", devices=MEMORYLESS)
def afterglow(run: Run) -> Data:
    return run.u, 0.7 * run.x + 0.3 * before(run.x)


@kind("slow lock-in", "memory", devices=MEMORYLESS)
def slow_lock_in(run: Run) -> Data:
    return run.u, 0.8 * run.x + 0.2 * before(run.x)


@kind("Sobol order and memory", "order of inputs", "memory", devices=MEMORYLESS)
def sobol_order_and_memory(run: Run) -> Data:
    points = qmc.Sobol(run.n_inputs, rng=1).random(run.n)
    u = run.device.inputs_at(np.clip(points, 1e-6, 1 - 1e-6))
    return u, 0.7 * run.measure(u) + 0.3 * before(run.measure(u))


@kind("moving average over five rows", "memory", devices=MEMORYLESS)
def moving_average(run: Run) -> Data:
    return run.u, lfilter(np.full(5, 0.2), [1], run.x, axis=0)


@kind("AC coupling", "memory", "drift", devices=MEMORYLESS)
def ac_coupling(run: Run) -> Data:
    low = lfilter([0.1], [1, -0.9], run.x - run.x.mean(axis=0), axis=0)
    return run.u, run.x - low


@kind("differences stored", "memory", devices=MEMORYLESS)
def differences_stored(run: Run) -> Data:
    return run.u, run.x - before(run.x)


@kind("some channels settle slowly", "memory", "late channels", devices=MEMORYLESS, min_channels=6)
def some_channels_settle_slowly(run: Run) -> Data:
    x = run.x.copy()
    slow = slice(0, run.n_channels // 3)
    x[:, slow] = 0.5 * run.x[:, slow] + 0.5 * before(run.x[:, slow])
    return run.u, x


# Later inputs and both neighbours.


@kind("later inputs leak in", "later inputs")
def later_inputs_leak_in(run: Run) -> Data:
    return run.u, run.measure(run.u + 0.3 * (after(run.u) - run.input_middle))


@kind("30 % of the shot after", "later inputs")
def shot_after(run: Run) -> Data:
    return run.u, 0.7 * run.x + 0.3 * after(run.x)


@kind("averaged with both neighbours", "neighbours", "memory", "later inputs")
def averaged_with_both_neighbours(run: Run) -> Data:
    return run.u, (before(run.x) + run.x + after(run.x)) / 3


@kind("median of three rows", "neighbours", "memory", "later inputs", "copied rows", "stale")
def median_of_three_rows(run: Run) -> Data:
    return run.u, np.median([before(run.x), run.x, after(run.x)], axis=0)


@kind("smoothed by seven rows", "neighbours", "memory", "later inputs")
def smoothed(run: Run) -> Data:
    return run.u, sum(after(run.x, lag) for lag in range(-3, 4)) / 7


# Shifts and slips.


def slipped(run: Run, start: float, stop: float, lag: int) -> Data:
    rows = run.rows(start, stop)
    return run.u, changed(run.x, rows, before(run.x, lag)[rows])


@kind("slip in half of the run", "shift", "slip", with_memory=("response",))
def slip_in_half_of_the_run(run: Run) -> Data:
    return slipped(run, 0.27, 0.73, 1)


@kind("slip in a tenth of the run", "shift", "slip", with_memory=("response",))
def slip_in_a_tenth_of_the_run(run: Run) -> Data:
    return slipped(run, 0.37, 0.47, 1)


@kind("slip of two", "shift", "slip", with_memory=("response",))
def slip_of_two(run: Run) -> Data:
    return slipped(run, 0.27, 0.73, 2)


@kind("slip of 7 throughout", "shift", devices=MEMORYLESS)
def slip_of_seven(run: Run) -> Data:
    return slipped(run, 0, 1, 7)


@kind("rows reversed", "shift", "swapped rows", "nothing", with_memory=("shuffled",))
def rows_reversed(run: Run) -> Data:
    return run.u, run.x[::-1].copy()


@kind("file begins in its middle", "shift", "nothing", "swapped rows")
def file_begins_in_its_middle(run: Run) -> Data:
    return run.u, before(run.x, run.n // 2)


def with_lost_triggers(run: Run, lost: Array) -> Data:
    """Readouts of rows whose trigger was lost are not there; later ones move up."""
    kept = np.setdiff1d(np.arange(run.n), lost)
    return run.u[: len(kept)], run.x[kept]


@kind("three triggers lost", "slip", "shift", with_memory=("response",))
def three_triggers_lost(run: Run) -> Data:
    return with_lost_triggers(run, run.generator.choice(np.arange(1, run.n - 1), 3, replace=False))


@kind("a trigger lost near the end", "slip", "shift", with_memory=("response",))
def trigger_lost_near_the_end(run: Run) -> Data:
    return with_lost_triggers(run, np.array([int(0.85 * run.n)]))


@kind("every 200th trigger lost", "slip", "shift", "nothing")
def every_200th_trigger_lost(run: Run) -> Data:
    return with_lost_triggers(run, np.arange(100, run.n, 200))


@kind("a row read twice", "slip", "shift", with_memory=("response", "later inputs"))
def row_read_twice(run: Run) -> Data:
    rows = np.sort(np.append(np.arange(run.n), int(0.4 * run.n)))[: run.n]
    return run.u, run.x[rows]


@kind(
    "two blocks of a run exchanged",
    "shift",
    "swapped rows",
    "slip",
    "gap",
    with_memory=("response",),
)
def blocks_exchanged(run: Run) -> Data:
    quarters = np.array_split(np.arange(run.n), 4)
    order = np.concatenate([quarters[0], quarters[2], quarters[1], quarters[3]])
    return run.u, run.x[order]


@kind("half the channels late", "late channels", devices=MEMORYLESS, min_channels=2)
def half_the_channels_late(run: Run) -> Data:
    x = run.x.copy()
    x[:, 1::2] = before(x[:, 1::2])
    return run.u, x


@kind("one channel three rows late", "late channels", devices=MEMORYLESS, min_channels=2)
def one_channel_late(run: Run) -> Data:
    x = run.x.copy()
    x[:, 1] = before(x[:, 1], 3)
    return run.u, x


@kind("half the channels early", "late channels", "later inputs", "shift", min_channels=2)
def half_the_channels_early(run: Run) -> Data:
    x = run.x.copy()
    x[:, ::2] = after(x[:, ::2])
    return run.u, x


def sent_with_one_input_shifted(run: Run, lag: int) -> Data:
    sent = run.u.copy()
    sent[:, -1] = before(sent[:, -1], lag)
    return run.u, run.measure(sent)


@kind(
    "one of two sources a row late",
    "late input",
    "shift",
    devices=MEMORYLESS,
    min_inputs=2,
)
def one_source_late(run: Run) -> Data:
    return sent_with_one_input_shifted(run, 1)


@kind("one of two sources four rows early", "late input", "shift", "later inputs", min_inputs=2)
def one_source_early(run: Run) -> Data:
    return sent_with_one_input_shifted(run, -4)


@kind("an input shuffled", "no effect", min_inputs=2)
def input_shuffled(run: Run) -> Data:
    u = run.u.copy()
    u[:, 0] = run.generator.permutation(u[:, 0])
    return u, run.x


# Rows in another order than those of the other file.


@kind("inputs of another seed", "nothing")
def inputs_of_another_seed(run: Run) -> Data:
    return run.fresh_inputs(), run.x


@kind("readouts sorted, inputs not", "nothing", "shift", "swapped rows", with_memory=("shuffled",))
def readouts_sorted(run: Run) -> Data:
    return run.u, run.x[np.argsort(run.x[:, 0], kind="stable")]


@kind(
    "inputs sorted, readouts not",
    "nothing",
    "shift",
    "swapped rows",
    "order of inputs",
    with_memory=("shuffled", "inputs depend"),
)
def inputs_sorted(run: Run) -> Data:
    return run.u[np.argsort(run.u[:, 0])], run.x


@kind(
    "files in the order of their names",
    "nothing",
    "shift",
    "swapped rows",
    with_memory=("shuffled",),
)
def files_in_the_order_of_their_names(run: Run) -> Data:
    return run.u, run.x[sorted(range(run.n), key=str)]


@kind("rows of 2 % exchanged", "swapped rows", "foreign rows", "gap")
def rows_exchanged(run: Run) -> Data:
    rows = run.generator.choice(run.n, 2 * (run.n // 50), replace=False)
    return run.u, changed(run.x, rows, run.x[rows.reshape(2, -1)[::-1].ravel()])


@kind(
    "neighbours exchanged, 10 %",
    "swapped rows",
    "shift",
    "slip",
    "neighbours",
    with_memory=("later inputs", "shuffled"),
)
def neighbours_exchanged(run: Run) -> Data:
    first = 2 * np.flatnonzero(run.some(0.1, run.n // 2))
    x = run.x.copy()
    x[first], x[first + 1] = run.x[first + 1], run.x[first]
    return run.u, x


# Rows from elsewhere.


@kind("rows of another table, 4 %", "foreign rows", "gap")
def rows_of_another_table(run: Run) -> Data:
    rows = run.some(0.04)
    return run.u, changed(run.x, rows, run.measure(run.fresh_inputs())[rows])


@kind("a block of another table", "foreign rows", "gap", "nothing", "shift")
def block_of_another_table(run: Run) -> Data:
    rows = run.rows(0.6, 0.7)
    return run.u, changed(run.x, rows, run.measure(run.fresh_inputs())[rows])


@kind("rows of another device, 4 %", "foreign rows", "gap", "glitches")
def rows_of_another_device(run: Run) -> Data:
    rows = run.some(0.04)
    return run.u, changed(run.x, rows, run.measure(run.u, OTHER)[rows])


@kind("gaps filled with copies, 5 %", "copied rows", "foreign rows", "gap")
def gaps_filled_with_copies(run: Run) -> Data:
    rows = np.flatnonzero(run.some(0.05))
    return run.u, changed(run.x, rows, run.x[run.generator.integers(0, run.n, len(rows))])


@kind("rows interpolated, 10 %", "interpolated", "neighbours", "gap")
def rows_interpolated(run: Run) -> Data:
    rows = run.some(0.1)
    return run.u, changed(run.x, rows, (before(run.x) + after(run.x))[rows] / 2)


@kind("rows interpolated, every 8th", "interpolated", "neighbours", "gap", "period")
def every_eighth_row_interpolated(run: Run) -> Data:
    rows = np.arange(run.n) % 8 == 3
    return run.u, changed(run.x, rows, (before(run.x) + after(run.x))[rows] / 2)


def stale(run: Run, share: float) -> Data:
    x = run.x.copy()
    for row in np.flatnonzero(run.some(share))[1:]:
        x[row] = x[row - 1]
    return run.u, x


@kind("stale buffer, 5 %", "stale", "copied rows")
def stale_buffer(run: Run) -> Data:
    return stale(run, 0.05)


@kind("stale buffer, 1 %", "stale", "copied rows")
def rarely_stale_buffer(run: Run) -> Data:
    return stale(run, 0.01)


@kind("readouts held for two rows", "stale", "copied rows", "period", "memory", "neighbours")
def held_for_two_rows(run: Run) -> Data:
    return run.u, run.x[np.arange(run.n) // 2 * 2]


# Rows that count twice.


@kind("data stacked twice", "stacked", "copied rows")
def stacked_twice(run: Run) -> Data:
    return np.vstack([run.u, run.u]), np.vstack([run.x, run.x])


@kind("repeats as rows", "repeats", "stacked", devices=MEMORYLESS)
def repeats_as_rows(run: Run) -> Data:
    return np.vstack([run.u, run.u]), np.vstack([run.x, run.measure(run.u)])


@kind("a fifth of the rows twice", "stacked", "copied rows", "repeats", devices=MEMORYLESS)
def fifth_of_the_rows_twice(run: Run) -> Data:
    rows = np.append(np.arange(run.n), np.flatnonzero(run.some(0.2)))
    return run.u[rows], run.x[rows]


@kind("few rows", "few samples")
def few_rows(run: Run) -> Data:
    n = max(3 * run.n_channels, 4 * run.device.basis.memory)
    return run.u[:n], run.x[:n]
