"""A fourth part of mistakes, unseen while checks are developed: rows, tables, files, and filters along the rows.

They were written by somebody who has not read the checks, nor what they find. For all modules of the fourth part one
rule, fixed before any check had run on them, decides whether a mistake leaves a trace:

    A mistake is `traceless` on a device if the faulty data (u, x) could, in every joint distribution of rows, be those
    of another well-working device of that sort: readouts are a fixed function of the row's own inputs (memoryless), or
    of its own and earlier inputs (with memory), plus noise that is independent between rows and of one fixed law given
    the inputs; and inputs have the declared law.

A causal dependence on the row before is therefore a trace on a memoryless device, and none on a device with memory;
`traceless_with_memory` marks kinds for which only that holds. Static nonlinearities, static mixtures of channels,
static rounding, and errors in the written inputs that keep their law and are independent between rows leave no trace.
A filter of readouts leaves one on every device, because it makes their noise depend on earlier noise, and so do a few
rows that are wholly wrong, because no device that works well has two sorts of rows. In doubt, a mistake counts as one
with a trace. Each kind that is marked has its reason beside it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.ndimage import minimum_filter1d
from scipy.signal import hilbert, iirnotch, lfilter
from scipy.spatial import cKDTree

from _mistakes_devices import FOURTH, Array, Run
from _mistakes_kinds import MEMORYLESS, WITH_MEMORY, Data, after, changed, kind
from _mistakes_second_part import parts_of

fourth_kind = partial(kind, part=FOURTH)

# Rows that a worker measures at a time, and by how many such jobs the times until they are done differ.
ROWS_PER_JOB = 8
JOBS_OF_DELAY = 3.0
# Repetitions of every input, which are averaged.
N_REPEATS = 4
# Rows of a block of the Fourier transform of a filter.
FILTER_BLOCK = 64
# Rows of a window of training data, and rows after which the next begins.
WINDOW_ROWS = 30
WINDOW_STRIDE = 10


def scaled(x: Array) -> Array:
    """Return readouts with mean zero and standard deviation one."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


# ---------------------------------------------------------------------------------------------
# Tables and files
# ---------------------------------------------------------------------------------------------


@fourth_kind(
    "joined by the nearest time",
    "copied rows",
    "stale",
    "shift",
    "slip",
    "swapped rows",
    "neighbours",
    "memory",
    "later inputs",
    "foreign rows",
    "gap",
    with_memory=("shuffled",),
)
def joined_by_the_nearest_time(run: Run) -> Data:
    """Each input gets the readouts nearest in time, but the times of the readouts jitter by a third of a row."""
    rows = np.arange(run.n)
    time_of_readouts = np.sort(rows + 0.35 * run.generator.standard_normal(run.n))
    right = np.clip(np.searchsorted(time_of_readouts, rows), 1, run.n - 1)
    is_left_nearer = rows - time_of_readouts[right - 1] < time_of_readouts[right] - rows
    return run.u, run.x[right - is_left_nearer]


@fourth_kind(
    "results in the order of completion",
    "swapped rows",
    "shift",
    "slip",
    "foreign rows",
    "gap",
    "nothing",
    with_memory=("shuffled", "later inputs", "response"),
)
def results_in_the_order_of_completion(run: Run) -> Data:
    """Workers return jobs of eight rows when they are done, and the script appends what comes first."""
    job = np.arange(run.n) // ROWS_PER_JOB
    n_jobs = job[-1] + 1
    done = np.arange(n_jobs) + run.generator.exponential(JOBS_OF_DELAY, n_jobs)
    return run.u, run.x[np.argsort(done[job], kind="stable")]


@fourth_kind(
    "clock of the second card runs slow",
    "late channels",
    "slip",
    "shift",
    "response",
    "memory",
    "later inputs",
    "drift",
    "noise",
    min_channels=2,
)
def clock_of_the_second_card_runs_slow(run: Run) -> Data:
    """Half of the channels come from a card that is three rows behind the first at the end of the run."""
    rows = np.arange(run.n)
    late_rows = np.maximum(rows - np.round(3 * rows / run.n).astype(int), 0)
    x = run.x.copy()
    x[:, run.n_channels // 2 :] = run.x[late_rows, run.n_channels // 2 :]
    return run.u, x


@fourth_kind(
    "buffer runs empty once per file",
    "slip",
    "shift",
    "codes",
    "gap",
    "glitches",
    "copied rows",
    "nothing",
    "period",
    with_memory=("response",),
)
def buffer_runs_empty(run: Run) -> Data:
    """Somewhere in each file a row of zeros is inserted, later rows move down, and the last one is lost."""
    x = run.x.copy()
    for part in parts_of(run, 256):
        empty = int(run.generator.integers(part.start, part.stop))
        x[empty + 1 : part.stop] = run.x[empty : part.stop - 1]
        x[empty] = 0.0
    return run.u, x


@fourth_kind(
    "repeats averaged over the wrong axis",
    "nothing",
    "foreign rows",
    "swapped rows",
    with_memory=("shuffled",),
)
def averaged_over_the_wrong_axis(run: Run) -> Data:
    """The whole list was measured four times, and four rows in turn are averaged as if they were repeats."""
    repeats = np.vstack([run.x] + [run.measure(run.u) for _ in range(N_REPEATS - 1)])
    return run.u, repeats.reshape(run.n, N_REPEATS, run.n_channels).mean(axis=1)


@fourth_kind(
    "tables joined many to many",
    "foreign rows",
    "copied rows",
    "repeats",
    "stacked",
    "swapped rows",
    "gap",
    devices=MEMORYLESS,
)
def joined_many_to_many(run: Run) -> Data:
    """A key occurs three times in a fifth of the tables, and each of its inputs meets each of its readouts."""
    inputs = []
    readouts = []
    for start in range(0, run.n - 2, 3):
        rows = np.arange(start, start + 3)
        if run.generator.random() < 0.2:
            inputs.append(np.repeat(rows, 3))
            readouts.append(np.tile(rows, 3))
        else:
            inputs.append(rows)
            readouts.append(rows)
    return run.u[np.concatenate(inputs)], run.x[np.concatenate(readouts)]


@fourth_kind(
    "columns behind an empty one not sorted along",
    "nothing",
    "foreign rows",
    "swapped rows",
    "shift",
    "order of inputs",
    "late channels",
    with_memory=("shuffled", "inputs depend"),
    min_channels=2,
)
def some_columns_not_sorted_along(run: Run) -> Data:
    """A spreadsheet sorts the table by its first input, up to an empty column in the middle of the readouts."""
    order = np.argsort(run.u[:, 0])
    half = run.n_channels // 2
    return run.u[order], np.column_stack([run.x[order, :half], run.x[:, half:]])


@fourth_kind(
    "a second program drives every other row",
    "period",
    "interleaved",
    "foreign rows",
    "gap",
    "other inputs",
    "nothing",
    "noise",
    "response",
)
def second_program_drives_every_other_row(run: Run) -> Data:
    """Two windows of the program were open; odd rows show what the other one sent."""
    rows = slice(1, None, 2)
    return run.u, run.measure(changed(run.u, rows, run.fresh_inputs()[rows]))


@fourth_kind(
    "failed rows filled from the nearest inputs",
    "copied rows",
    "foreign rows",
    "gap",
    devices=MEMORYLESS,
)
def filled_from_the_nearest_inputs(run: Run) -> Data:
    """Two fifths of the rows have failed and get the readouts of that good row whose inputs are most alike."""
    has_failed = run.some(0.4)
    scaled_inputs = run.u / run.u.std(axis=0)
    good = np.flatnonzero(~has_failed)
    _, nearest = cKDTree(scaled_inputs[good]).query(scaled_inputs[has_failed])
    return run.u, changed(run.x, has_failed, run.x[good[nearest]])


@fourth_kind(
    "differences lost in a log of differences",
    "drift",
)
def differences_lost(run: Run) -> Data:
    """The log stores differences of rows; half a per cent of its lines are lost, and it is summed up again."""
    differences = np.diff(run.x, axis=0, prepend=0)
    lost = run.some(0.005)
    lost[0] = False
    return run.u, np.cumsum(changed(differences, lost, 0.0), axis=0)


@fourth_kind(
    "overlapping windows laid end to end",
    "stacked",
    "copied rows",
    "repeats",
    "shuffled",
    "inputs depend",
    devices=WITH_MEMORY,
)
def overlapping_windows(run: Run) -> Data:
    """Windows of 30 rows that begin every ten rows were made for a neural network, and saved as a table."""
    starts = np.arange(0, run.n - WINDOW_ROWS + 1, WINDOW_STRIDE)
    rows = (starts[:, None] + np.arange(WINDOW_ROWS)).ravel()
    return run.u[rows], run.x[rows]


@fourth_kind(
    "table sorted by an input",
    "shuffled",
    "order of inputs",
    "inputs depend",
    "nothing",
    devices=WITH_MEMORY,
)
def table_sorted_by_an_input(run: Run) -> Data:
    """Somebody sorted inputs and readouts together by the first input, for a plot."""
    order = np.argsort(run.u[:, 0])
    return run.u[order], run.x[order]


@fourth_kind(
    "rows that fit badly thrown away",
    "missing",
    "shape of inputs",
    "correlated inputs",
    "domain",
    devices=MEMORYLESS,
)
def badly_fitting_rows_thrown_away(run: Run) -> Data:
    """A seventh of the rows is far from a plane through the readouts, and taken for measurements that failed."""
    design = np.column_stack([np.ones(run.n), run.u])
    coefficients, *_ = np.linalg.lstsq(design, run.x, rcond=None)
    distance = np.linalg.norm((run.x - design @ coefficients) / run.spread, axis=1)
    kept = distance < np.quantile(distance, 0.85)
    return run.u[kept], run.x[kept]


@fourth_kind(
    "missing eighth filled by a model",
    "noise",
    "gap",
    "response",
    "foreign rows",
    "computed",
)
def missing_rows_filled_by_a_model(run: Run) -> Data:
    """The disk was full for an eighth of the run, and a linear fit of the other rows stands in its place."""
    rows = run.rows(0.55, 0.675)
    design = np.column_stack([np.ones(run.n), run.u])
    measured = np.ones(run.n, dtype=bool)
    measured[rows] = False
    coefficients, *_ = np.linalg.lstsq(design[measured], run.x[measured], rcond=None)
    return run.u, changed(run.x, rows, (design @ coefficients)[rows])


@fourth_kind(
    "every channel moved to its best correlation",
    "later inputs",
    "late channels",
    "shift",
    devices=WITH_MEMORY,
)
def moved_to_the_best_correlation(run: Run) -> Data:
    """A script takes the memory for a delay of the cables and moves each channel to where it follows the input."""
    u = scaled(run.u)[:, 0]
    x = run.x.copy()
    for channel in range(run.n_channels):
        readout = scaled(run.x[:, channel : channel + 1])[:, 0]
        correlations = [abs(np.mean(u * np.roll(readout, -lag))) for lag in range(7)]
        best = int(np.argmax(correlations[1:])) + 1
        x[:, channel] = np.roll(run.x[:, channel], -best)
    return run.u, x


# ---------------------------------------------------------------------------------------------
# Filters along the rows
# ---------------------------------------------------------------------------------------------


@fourth_kind(
    "Hampel filter",
    "neighbours",
    "memory",
    "later inputs",
    "filled cells",
    "clipped",
)
def hampel_filter(run: Run) -> Data:
    """What is far from the median of seven rows is taken for an outlier and replaced by that median."""
    window = np.stack([after(run.x, lag) for lag in range(-3, 4)])
    median = np.median(window, axis=0)
    deviation = 1.4826 * np.median(np.abs(window - median), axis=0)
    return run.u, np.where(np.abs(run.x - median) > 1.5 * deviation, median, run.x)


@fourth_kind("envelope along the rows", "neighbours", "memory", "later inputs")
def envelope_along_the_rows(run: Run) -> Data:
    """A script for oscillations takes the magnitude of the analytic signal of every channel."""
    return run.u, np.abs(hilbert(run.x - run.x.mean(axis=0), axis=0))


@fourth_kind(
    "wavelets denoised along the rows",
    "filled cells",
    "neighbours",
    "memory",
    "later inputs",
    "period",
    "batches",
)
def wavelets_denoised(run: Run) -> Data:
    """Differences in pairs of rows are made smaller by 0.7 standard deviations, and small ones vanish."""
    n_pairs = run.n // 2
    pairs = run.x[: 2 * n_pairs].reshape(n_pairs, 2, -1)
    mean = pairs.mean(axis=1)
    difference = (pairs[:, 1] - pairs[:, 0]) / 2
    kept = np.sign(difference) * np.maximum(np.abs(difference) - 0.5 * run.spread, 0)
    x = np.stack([mean - kept, mean + kept], axis=1).reshape(2 * n_pairs, -1)
    return run.u[: 2 * n_pairs], x


@fourth_kind("notch filter against hum", "memory", devices=MEMORYLESS)
def notch_filter(run: Run) -> Data:
    """A notch at a fifth of the sampling rate, which is broad, runs along the rows of the table."""
    numerator, denominator = iirnotch(0.4, 1.0)
    centre = run.x.mean(axis=0)
    return run.u, centre + lfilter(numerator, denominator, run.x - centre, axis=0)


@fourth_kind(
    "rolling minimum subtracted",
    "neighbours",
    "memory",
    "later inputs",
    "codes",
    "clipped",
)
def rolling_minimum_subtracted(run: Run) -> Data:
    """A baseline for chromatograms, the smallest of nine rows, is subtracted from rows that have none."""
    return run.u, run.x - minimum_filter1d(run.x, 9, axis=0)


@fourth_kind(
    "filter in blocks that wrap around",
    "memory",
    "later inputs",
    "neighbours",
    "period",
    "batches",
)
def filter_in_blocks(run: Run) -> Data:
    """A filter of 16 taps is made by Fourier transforms of 64 rows, whose ends nobody overlaps."""
    taps = np.exp(-np.arange(16) / 3)
    response = np.fft.rfft(taps / taps.sum(), FILTER_BLOCK)[:, None]
    x = run.x.copy()
    for start in range(0, run.n - FILTER_BLOCK + 1, FILTER_BLOCK):
        block = run.x[start : start + FILTER_BLOCK]
        filtered = np.fft.irfft(np.fft.rfft(block, axis=0) * response, FILTER_BLOCK, axis=0)
        x[start : start + FILTER_BLOCK] = filtered
    return run.u, x


@fourth_kind("fit of a row stops on its way from the row before", "memory", devices=MEMORYLESS)
def fit_stops_on_its_way(run: Run) -> Data:
    """Readouts are parameters of fits that start from those of the row before, and do not always arrive."""
    size = np.sqrt(run.n_channels)
    x = scaled(run.x)
    for row in range(1, run.n):
        step = x[row] - x[row - 1]
        length = np.linalg.norm(step) / size
        x[row] = x[row - 1] + step * min(1.0, 1.2 / (length + 1e-12))
    return run.u, x


@fourth_kind(
    "swept, and the drift removed with the response",
    "order of inputs",
    "drift",
    "neighbours",
    "memory",
    "later inputs",
    "no effect",
    "nothing",
    "inputs depend",
    devices=MEMORYLESS,
)
def drift_removed_with_the_response(run: Run) -> Data:
    """The first input goes up once, and the mean of the 41 rows around each row is subtracted as drift."""
    u = run.u[np.argsort(run.u[:, 0])]
    x = run.measure(u)
    padded = np.pad(x, ((20, 20), (0, 0)), mode="edge")
    total = np.cumsum(np.vstack([np.zeros((1, run.n_channels)), padded]), axis=0)
    return u, x - (total[41:] - total[:-41]) / 41
