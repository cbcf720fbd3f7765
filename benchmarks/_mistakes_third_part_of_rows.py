"""A third part of mistakes, unseen while checks are developed: rows, files, streams and sequences.

They were written by somebody who has not read the checks, nor what they find.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from _mistakes_devices import THIRD, Array, Run
from _mistakes_kinds import WITH_MEMORY, Data, after, before, changed, kind
from _mistakes_second_part import dark_level, parts_of

third_kind = partial(kind, part=THIRD)

# Rows of a device with memory that are often thrown away because they remember the start.
CUSTOMARY_WASHOUT = 100
# Length to which sequences of unequal length are padded.
PADDED_LENGTH = 64
# Wells of one row of a plate, which are measured one after the other.
WELLS_PER_ROW = 12


# ---------------------------------------------------------------------------------------------
# Files and streams
# ---------------------------------------------------------------------------------------------


@third_kind(
    "ring buffer of every file begins elsewhere",
    "shift",
    "slip",
    "swapped rows",
    "foreign rows",
    "nothing",
    "gap",
    with_memory=("shuffled", "response"),
)
def ring_buffers(run: Run) -> Data:
    """Files of 256 rows are copied from a ring buffer without regard to where its oldest row is."""
    x = run.x.copy()
    for part in parts_of(run, 256):
        oldest = int(run.generator.integers(0, part.stop - part.start))
        x[part] = np.roll(run.x[part], oldest, axis=0)
    return run.u, x


@third_kind(
    "clock set back, readouts sorted by time",
    "swapped rows",
    "shift",
    "slip",
    "gap",
    "nothing",
    "foreign rows",
    "interleaved",
    with_memory=("shuffled", "response"),
)
def clock_set_back(run: Run) -> Data:
    """In autumn an hour comes twice: a tenth of the run and the next tenth have the same times."""
    start = int(0.4 * run.n)
    n_hour = int(0.1 * run.n)
    hours = np.arange(start, start + 2 * n_hour).reshape(2, n_hour)
    x = changed(run.x, slice(start, start + 2 * n_hour), run.x[hours.T.ravel()])
    return run.u, x


@third_kind(
    "one value lost in the stream",
    "response",
    "drift",
    "late channels",
    "later inputs",
    "units",
    min_channels=2,
)
def value_lost_in_the_stream(run: Run) -> Data:
    """From then on every channel holds the next one, and the last holds the first of the next row."""
    lost = int(0.4 * run.n) * run.n_channels + run.n_channels // 2
    stream = np.delete(run.x.ravel(), lost)
    return run.u, np.append(stream, stream[-1]).reshape(run.x.shape)


@third_kind(
    "a cell missing in 4 % of the lines",
    "glitches",
    "foreign rows",
    "outlying",
    "units",
    "codes",
    "gap",
    "noise",
    min_channels=3,
)
def cell_missing_in_some_lines(run: Run) -> Data:
    """The cells behind the missing one move to the left, and the last becomes zero."""
    x = run.x.copy()
    for row in np.flatnonzero(run.some(0.04)):
        missing = int(run.generator.integers(0, run.n_channels - 1))
        x[row, missing:-1] = run.x[row, missing + 1 :]
        x[row, -1] = 0.0
    return run.u, x


@third_kind(
    "torn frames, 15 %",
    "late channels",
    "stale",
    "filled cells",
    "copied rows",
    "foreign rows",
    "memory",
    "shift",
    "gap",
    "noise",
    "glitches",
    min_channels=4,
)
def torn_frames(run: Run) -> Data:
    """The buffer is read while it is written: channels from a random one on are of the row before."""
    x = run.x.copy()
    for row in np.flatnonzero(run.some(0.15))[1:]:
        tear = int(run.generator.integers(1, run.n_channels))
        x[row, tear:] = run.x[row - 1, tear:]
    return run.u, x


@third_kind(
    "charges of two shots in one",
    "glitches",
    "outlying",
    "gap",
    "codes",
    "memory",
    "neighbours",
    "copied rows",
)
def charges_of_two_shots(run: Run) -> Data:
    """A camera that is not read in time adds the light of two shots; one row is dark."""
    rows = np.flatnonzero(run.some(0.06))[1:]
    dark = dark_level(run)
    x = changed(run.x, rows - 1, dark + run.noise(0.01)[rows - 1])
    x[rows] = run.x[rows] + run.x[rows - 1] - dark
    return run.u, x


@third_kind(
    "failed shots kept beside their repetitions",
    "glitches",
    "gap",
    "repeats",
    "codes",
    "copied rows",
    "foreign rows",
    with_memory=("inputs depend", "shuffled", "missing"),
)
def failed_shots_kept(run: Run) -> Data:
    """A script repeats shots that failed, and writes both down; the failed one is dark."""
    has_failed = run.some(0.06)
    rows = np.repeat(np.arange(run.n), 1 + has_failed)
    first_of_two = np.flatnonzero(rows[1:] == rows[:-1])
    dark = dark_level(run) + run.noise(0.01)
    x = changed(run.x[rows], first_of_two, dark[: len(first_of_two)])
    return run.u[rows], x


@third_kind(
    "sequences padded with zeros",
    "gap",
    "codes",
    "copied rows",
    "repeats",
    "stale",
    "glitches",
    "shape of inputs",
    "rounded inputs",
    "domain",
    with_memory=("washout", "inputs depend", "order of inputs", "missing"),
)
def padded_with_zeros(run: Run) -> Data:
    """Sequences of 45 to 64 rows are filled up to equal length for a library that needs it."""
    lengths = run.generator.integers(45, PADDED_LENGTH + 1, run.n // 45)
    ends = np.cumsum(lengths)
    is_inside = ends < run.n
    padding = np.repeat(ends[is_inside], PADDED_LENGTH - lengths[is_inside])
    return np.insert(run.u, padding, 0.0, axis=0), np.insert(run.x, padding, 0.0, axis=0)


@third_kind(
    "peak detect mode",
    "neighbours",
    "memory",
    "later inputs",
    "swapped rows",
    "shift",
    "period",
    "interleaved",
)
def peak_detect_mode(run: Run) -> Data:
    """The oscilloscope stores smallest and largest value of every two rows instead of both in order."""
    pairs = run.x[: run.n // 2 * 2].reshape(-1, 2, run.n_channels)
    x = np.sort(pairs, axis=1).reshape(-1, run.n_channels)
    return run.u[: len(x)], x


@third_kind(
    "wells of a plate light each other",
    "memory",
    "later inputs",
    "neighbours",
    "shift",
)
def wells_light_each_other(run: Run) -> Data:
    """Light leaks from the wells above and below, which are measured twelve rows before and after."""
    leak = 0.3 * (before(run.x, WELLS_PER_ROW) + after(run.x, WELLS_PER_ROW))
    return run.u, run.x + leak


# ---------------------------------------------------------------------------------------------
# Sequences of devices with memory
# ---------------------------------------------------------------------------------------------


@third_kind(
    "delay embedding with the wrong sign",
    "later inputs",
    "late channels",
    "shift",
    "neighbours",
    devices=WITH_MEMORY,
)
def delay_embedding_with_the_wrong_sign(run: Run) -> Data:
    """The readouts of the next row, in place of the last row, are put beside those of each row."""
    return run.u, np.column_stack([run.x, after(run.x)])


@third_kind(
    "washout cut from the readouts only",
    "shift",
    "later inputs",
    "nothing",
    devices=WITH_MEMORY,
)
def washout_cut_from_the_readouts_only(run: Run) -> Data:
    """The rows of the washout are cut from the readouts, and as many from the end of the inputs."""
    return run.u[:-CUSTOMARY_WASHOUT], run.x[CUSTOMARY_WASHOUT:]


@third_kind(
    "a twentieth of the inputs sent twice",
    "gap",
    "other inputs",
    "missing",
    "memory",
    "noise",
    "response",
    "shuffled",
    "foreign rows",
    "glitches",
    devices=WITH_MEMORY,
)
def some_inputs_sent_twice(run: Run) -> Data:
    """The driver sends again what was not confirmed in time; only the last readouts are kept."""
    times_sent = 1 + run.some(0.05)
    last_of_each = np.cumsum(times_sent) - 1
    return run.u, run.measure(np.repeat(run.u, times_sent, axis=0))[last_of_each]


def measured_with_pauses(run: Run, pauses: Array, n_steps: int) -> Array:
    """Return readouts of a device that sees the middle of the inputs for some steps before some rows."""
    steps = np.repeat(pauses, n_steps)
    sent = np.insert(run.u, steps, run.input_middle, axis=0)
    is_written_down = np.insert(np.ones(run.n, dtype=bool), steps, False)
    return run.measure(sent)[is_written_down]


@third_kind(
    "device relaxes while the computer saves",
    "gap",
    "missing",
    "washout",
    "noise",
    "response",
    "shuffled",
    "foreign rows",
    "glitches",
    "other inputs",
    devices=WITH_MEMORY,
)
def device_relaxes_in_pauses(run: Run) -> Data:
    """Before one row of 25 the computer pauses for twelve steps, which nobody writes down."""
    return run.u, measured_with_pauses(run, np.flatnonzero(run.some(0.04)), 12)


@third_kind("symbol rate halved from the middle", "response", "noise", devices=WITH_MEMORY)
def symbol_rate_halved(run: Run) -> Data:
    """From the middle on each input lasts twice as long, so the device forgets twice as fast per row."""
    rows = run.rows(0.5, 1)
    slow = run.measure(np.repeat(run.u, 2, axis=0))[1::2]
    return run.u, changed(run.x, rows, slow[rows])
