"""Further mistakes, which stay unseen while checks of the data are developed.

They were written by somebody who has not read the checks, and before any check had run on them: which readouts
belong to which inputs, what changes along the run, single numbers, and what was sent.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.signal import detrend, lfilter, resample, savgol_filter

from _mistakes_devices import HELD_OUT, OTHER, SIMILAR, Array, Run
from _mistakes_kinds import MEMORYLESS, WITH_MEMORY, Data, after, before, changed, kind

unseen_kind = partial(kind, part=HELD_OUT)


def file_of_row(run: Run, n_rows: int) -> Array:
    """Return the number of the file of every row, if files have this many rows."""
    return np.arange(run.n) // n_rows


def parts_of(run: Run, n_rows: int) -> list[slice]:
    """Return the rows of every file, if files have this many rows."""
    return [slice(start, min(start + n_rows, run.n)) for start in range(0, run.n, n_rows)]


def random_telegraph(run: Run, mean_dwell: float) -> Array:
    """Return False or True for every row, which changes at random after this many rows on average."""
    return np.cumsum(run.some(1 / mean_dwell)) % 2 == 1


# ---------------------------------------------------------------------------------------------
# Which readouts belong to which inputs
# ---------------------------------------------------------------------------------------------


@unseen_kind("trigger jitters", "neighbours", "memory", "later inputs")
def trigger_jitters(run: Run) -> Data:
    """A third of the rows are sampled while the device goes from one state to the next."""
    share = run.some(0.35)[:, None] * run.generator.random((run.n, 1))
    neighbour = np.where(run.some(0.5)[:, None], before(run.x), after(run.x))
    return run.u, (1 - share) * run.x + share * neighbour


@unseen_kind("odd files a row late", "shift", "slip", "period", "memory", with_memory=("response",))
def odd_files_late(run: Run) -> Data:
    is_odd = file_of_row(run, 200) % 2 == 1
    return run.u, changed(run.x, is_odd, before(run.x)[is_odd])


@unseen_kind(
    "tiles of 4 x 4 rows read by columns",
    "swapped rows",
    "shift",
    "period",
    "foreign rows",
    "gap",
    with_memory=("shuffled", "later inputs"),
)
def tiles_transposed(run: Run) -> Data:
    n_tiles = run.n // 16
    order = np.arange(16 * n_tiles).reshape(n_tiles, 4, 4)
    rows = order.transpose(0, 2, 1).ravel()
    return run.u, changed(run.x, slice(0, len(rows)), run.x[rows])


@unseen_kind(
    "table reshaped by columns",
    "nothing",
    "foreign rows",
    "swapped rows",
    "shift",
    with_memory=("shuffled",),
)
def table_reshaped_by_columns(run: Run) -> Data:
    return run.u, run.x.ravel().reshape(run.x.shape, order="F")


@unseen_kind(
    "files of readouts overlap",
    "slip",
    "shift",
    "copied rows",
    "nothing",
    "gap",
    with_memory=("response",),
)
def files_of_readouts_overlap(run: Run) -> Data:
    """Every file of readouts but the first begins with the last two rows of the one before."""
    n_new_rows = 400
    rows = []
    for part in parts_of(run, n_new_rows):
        rows.append(np.arange(max(part.start - 2, 0), part.stop))
    kept = np.concatenate(rows)[: run.n]
    return run.u, run.x[kept]


@unseen_kind("list of files not emptied", "stacked", "copied rows", "repeats")
def list_of_files_not_emptied(run: Run) -> Data:
    """The first file was saved with every later one, the second with every one after it, and so on."""
    parts = np.array_split(np.arange(run.n), 12)
    rows = np.concatenate([np.concatenate(parts[: last + 1]) for last in range(12)])
    return run.u[rows], run.x[rows]


@unseen_kind("rows drawn with replacement", "copied rows", "stacked", "repeats", devices=MEMORYLESS)
def drawn_with_replacement(run: Run) -> Data:
    rows = np.sort(run.generator.integers(0, run.n, run.n))
    return run.u[rows], run.x[rows]


@unseen_kind(
    "half the channels of a quarter from another run",
    "foreign rows",
    "gap",
    "noise",
    "response",
    min_channels=2,
)
def channels_of_another_run(run: Run) -> Data:
    x = run.x.copy()
    rows = run.rows(0.5, 0.75)
    x[rows, ::2] = run.measure(run.fresh_inputs())[rows, ::2]
    return run.u, x


@unseen_kind(
    "half the channels from another run",
    "foreign rows",
    "nothing",
    min_channels=4,
    traceless=True,
)
def half_the_channels_of_another_run(run: Run) -> Data:
    """These channels see nothing of the inputs, like channels that only have noise."""
    x = run.x.copy()
    x[:, ::2] = run.measure(run.fresh_inputs())[:, ::2]
    return run.u, x


@unseen_kind(
    "joined by the rounded first input",
    "copied rows",
    "foreign rows",
    "repeats",
    "no effect",
    "nothing",
    "gap",
    "rounded inputs",
    "other inputs",
    with_memory=("shuffled",),
)
def joined_by_the_rounded_first_input(run: Run) -> Data:
    """Every row gets the readouts of the first row whose first input agrees to 2 % of the range."""
    low, high = run.input_range
    keys = np.round((run.u[:, 0] - low) / (high - low) * 50)
    _, first_rows, key_of_row = np.unique(keys, return_index=True, return_inverse=True)
    return run.u, run.x[first_rows[key_of_row]]


def at_positions(x: Array, positions: Array) -> Array:
    """Return readouts between rows, by linear interpolation."""
    lower = np.clip(np.floor(positions).astype(int), 0, len(x) - 2)
    share = np.clip(positions - lower, 0, 1)[:, None]
    return (1 - share) * x[lower] + share * x[lower + 1]


@unseen_kind(
    "interpolated to a clock that runs slow",
    "slip",
    "shift",
    "later inputs",
    "memory",
    "neighbours",
    "interpolated",
    "response",
)
def interpolated_to_another_clock(run: Run) -> Data:
    positions = np.arange(run.n) * (1 + 2.0 / run.n)
    return run.u, at_positions(run.x, positions)


@unseen_kind(
    "four of five readouts spread over five rows",
    "stale",
    "copied rows",
    "period",
    "memory",
    "shift",
)
def spread_over_five_rows(run: Run) -> Data:
    number = np.floor(np.arange(run.n) * 0.8)
    rows = np.floor(number / 0.8).astype(int)
    return run.u, run.x[rows]


@unseen_kind("resampled down and up again", "neighbours", "memory", "later inputs")
def resampled_down_and_up(run: Run) -> Data:
    fewer = resample(run.x, int(0.85 * run.n), axis=0)
    return run.u, resample(fewer, run.n, axis=0)


@unseen_kind("Savitzky-Golay filter along the rows", "neighbours", "memory", "later inputs")
def savitzky_golay(run: Run) -> Data:
    return run.u, savgol_filter(run.x, 7, 3, axis=0)


@unseen_kind("delayed by 0.4 rows", "neighbours", "memory", "later inputs", "shift")
def delayed_by_part_of_a_row(run: Run) -> Data:
    frequency = np.fft.rfftfreq(run.n)[:, None]
    spectrum = np.fft.rfft(run.x, axis=0) * np.exp(-2j * np.pi * frequency * 0.4)
    return run.u, np.fft.irfft(spectrum, run.n, axis=0)


@unseen_kind("averaging switched on halfway", "memory", "response")
def averaging_switched_on(run: Run) -> Data:
    averaged = lfilter([0.6], [1, -0.4], run.x, axis=0)
    rows = run.rows(0.5, 1)
    return run.u, changed(run.x, rows, averaged[rows])


@unseen_kind(
    "packets replaced by the one before",
    "copied rows",
    "stale",
    "foreign rows",
    "shift",
    "slip",
    "gap",
)
def packets_replaced(run: Run) -> Data:
    x = run.x.copy()
    is_lost = run.generator.random(-(-run.n // 16)) < 0.08
    for number in np.flatnonzero(is_lost[:-1]):
        if number > 0:
            start = 16 * number
            x[start : start + 16] = x[start - 16 : start]
    return run.u, x


@unseen_kind(
    "packets received twice",
    "slip",
    "shift",
    "copied rows",
    "nothing",
    "gap",
    with_memory=("response",),
)
def packets_received_twice(run: Run) -> Data:
    packets = np.arange(run.n // 16 * 16).reshape(-1, 16)
    twice = run.generator.choice(np.arange(len(packets) // 3, len(packets)), 3, replace=False)
    times = np.ones(len(packets), dtype=int)
    times[twice] = 2
    rows = np.repeat(packets, times, axis=0).ravel()[: packets.size]
    return run.u[: packets.size], run.x[rows]


@unseen_kind(
    "packets overtake each other",
    "swapped rows",
    "shift",
    "slip",
    "gap",
    "foreign rows",
    with_memory=("shuffled", "response", "later inputs"),
)
def packets_overtake(run: Run) -> Data:
    packets = np.arange(run.n // 24 * 24).reshape(-1, 2, 12)
    exchanged = run.generator.random(len(packets)) < 0.2
    packets[exchanged] = packets[exchanged, ::-1]
    rows = packets.ravel()
    return run.u, changed(run.x, slice(0, len(rows)), run.x[rows])


def order_with_odd_files_reversed(run: Run, n_rows: int) -> Array:
    order = np.arange(run.n)
    for part in parts_of(run, n_rows)[1::2]:
        order[part] = order[part][::-1]
    return order


@unseen_kind(
    "readouts of every second sweep backwards",
    "swapped rows",
    "shift",
    "gap",
    "nothing",
    "period",
    "foreign rows",
    devices=MEMORYLESS,
)
def readouts_of_sweeps_backwards(run: Run) -> Data:
    return run.u, run.x[order_with_odd_files_reversed(run, 150)]


@unseen_kind(
    "every second file backwards",
    "later inputs",
    "shuffled",
    "shift",
    "response",
    "period",
    "gap",
    devices=WITH_MEMORY,
)
def files_backwards(run: Run) -> Data:
    order = order_with_odd_files_reversed(run, 150)
    return run.u[order], run.x[order]


@unseen_kind(
    "cables of different length",
    "late channels",
    "later inputs",
    "shift",
    "neighbours",
    "memory",
    min_channels=3,
)
def cables_of_different_length(run: Run) -> Data:
    """Channels are up to two rows late or early."""
    x = run.x.copy()
    lags = run.generator.integers(-2, 3, run.n_channels)
    lags[:2] = (-1, 1)
    for channel, lag in enumerate(lags):
        x[:, channel] = np.roll(x[:, channel], lag)
    return run.u, x


@unseen_kind(
    "multiplexer too slow", "late channels", "later inputs", "neighbours", "shift", min_channels=3
)
def multiplexer_too_slow(run: Run) -> Data:
    """Channels are read one after the other, and the source begins to move on meanwhile."""
    share = np.linspace(0, 0.6, run.n_channels)
    return run.u, (1 - share) * run.x + share * after(run.x)


@unseen_kind(
    "inputs written down at twice the rate",
    "nothing",
    "shift",
    "slip",
    "foreign rows",
    with_memory=("missing", "shuffled"),
)
def inputs_at_twice_the_rate(run: Run) -> Data:
    x = run.x[::2]
    return run.u[: len(x)], x


@unseen_kind(
    "every channel sorted by itself", "nothing", "drift", "clock", "swapped rows", "order of inputs"
)
def every_channel_sorted(run: Run) -> Data:
    return run.u, np.sort(run.x, axis=0)


@unseen_kind(
    "seed set for every file, inputs written down without it",
    "nothing",
    "gap",
    "foreign rows",
    "other inputs",
    "repeats",
    "response",
    "period",
)
def seed_set_for_every_file(run: Run) -> Data:
    """The source sends the inputs of the first quarter four times."""
    sent = run.u[np.arange(run.n) % (run.n // 4)]
    return run.u, run.measure(sent)


@unseen_kind(
    "columns of inputs exchanged in 15 % of the rows",
    "swapped rows",
    "foreign rows",
    "gap",
    "other inputs",
    min_inputs=2,
)
def columns_exchanged(run: Run) -> Data:
    rows = run.some(0.15)
    return changed(run.u, rows, run.u[rows, ::-1]), run.x


@unseen_kind(
    "rows with large readouts thrown away",
    "shape of inputs",
    "domain",
    "correlated inputs",
    "missing",
    with_memory=("shuffled", "inputs depend"),
)
def large_readouts_thrown_away(run: Run) -> Data:
    kept = run.x[:, 0] < np.quantile(run.x[:, 0], 0.8)
    return run.u[kept], run.x[kept]


@unseen_kind("pairs of rows averaged", "shape of inputs", "domain", "rounded inputs")
def pairs_averaged(run: Run) -> Data:
    """Two rows with different inputs become one, of inputs and of readouts."""
    n_pairs = run.n // 2
    u = run.u[: 2 * n_pairs].reshape(n_pairs, 2, -1).mean(axis=1)
    x = run.x[: 2 * n_pairs].reshape(n_pairs, 2, -1).mean(axis=1)
    return u, x


@unseen_kind(
    "two sweeps averaged, one a row early", "later inputs", "neighbours", "shift", "memory"
)
def sweeps_averaged_out_of_step(run: Run) -> Data:
    return run.u, (run.x + after(run.measure(run.u))) / 2


@unseen_kind(
    "times with full seconds only",
    "shuffled",
    "swapped rows",
    "later inputs",
    "neighbours",
    devices=WITH_MEMORY,
)
def times_with_full_seconds(run: Run) -> Data:
    """Five rows have the same time, and the table was sorted by time and then by an input."""
    order = np.lexsort((run.u[:, 0], file_of_row(run, 5)))
    return run.u[order], run.x[order]


@unseen_kind(
    "runs of unequal length joined",
    "washout",
    "gap",
    "shuffled",
    "missing",
    "response",
    "noise",
    "foreign rows",
    devices=WITH_MEMORY,
)
def runs_of_unequal_length_joined(run: Run) -> Data:
    x = run.x.copy()
    start = 0
    while start < run.n:
        stop = start + int(run.generator.integers(8, 40))
        x[start:stop] = run.measure(run.u[start:stop])
        start = stop
    return run.u, x


@unseen_kind(
    "source misses beats, 8 %",
    "gap",
    "other inputs",
    "foreign rows",
    "late input",
    "memory",
    "shift",
)
def source_misses_beats(run: Run) -> Data:
    missed = run.some(0.08)
    return run.u, run.measure(changed(run.u, missed, before(run.u)[missed]))


# ---------------------------------------------------------------------------------------------
# What changes along the run
# ---------------------------------------------------------------------------------------------


@unseen_kind(
    "detrended in pieces of 24 rows", "batches", "period", "neighbours", "memory", "later inputs"
)
def detrended_in_pieces(run: Run) -> Data:
    return run.u, detrend(run.x, axis=0, bp=np.arange(0, run.n, 24))


@unseen_kind(
    "every file scaled to 0 ... 1", "batches", "response", "drift", "period", "gain steps", "units"
)
def files_scaled(run: Run) -> Data:
    x = run.x.copy()
    for part in parts_of(run, 40):
        low = x[part].min(axis=0)
        x[part] = (x[part] - low) / (np.ptp(x[part], axis=0) + 1e-12)
    return run.u, x


@unseen_kind("ranks within files of 30 rows", "batches", "rounded readouts", "period", "neighbours")
def ranks_within_files(run: Run) -> Data:
    x = run.x.copy()
    for part in parts_of(run, 30):
        x[part] = x[part].argsort(axis=0).argsort(axis=0)
    return run.u, x


@unseen_kind("divided by the mean of six rows", "memory", devices=MEMORYLESS)
def divided_by_the_mean_of_rows(run: Run) -> Data:
    """Power is normalised by its mean over this and five earlier rows, as if only the laser varied."""
    dark = run.x.min(axis=0) - 0.1 * run.spread
    signal = (run.x - dark) / run.spread
    power = lfilter(np.full(6, 1 / 6), [1], signal.mean(axis=1))
    power[:5] = power[5]
    return run.u, signal / power[:, None]


@unseen_kind("mean of both neighbours subtracted", "neighbours", "memory", "later inputs")
def neighbours_subtracted(run: Run) -> Data:
    return run.u, run.x - 0.25 * (before(run.x) + after(run.x))


@unseen_kind("compressor goes on and off", "drift")
def compressor(run: Run) -> Data:
    is_on = random_telegraph(run, 70)[:, None]
    size = run.generator.standard_normal(run.n_channels)
    return run.u, run.x + 0.7 * run.spread * size * is_on


@unseen_kind("mode hops back and forth", "response", "drift", "noise", "foreign rows")
def mode_hops_back_and_forth(run: Run) -> Data:
    rows = random_telegraph(run, 90)
    return run.u, changed(run.x, rows, run.measure(run.u, 3 * SIMILAR)[rows])


@unseen_kind(
    "three devices measured file by file",
    "response",
    "period",
    "drift",
    "gap",
    "foreign rows",
    "interleaved",
)
def three_devices_file_by_file(run: Run) -> Data:
    number = file_of_row(run, 64) % 3
    x = run.x.copy()
    x[number == 1] = run.measure(run.u, 2 * SIMILAR)[number == 1]
    x[number == 2] = run.measure(run.u, OTHER)[number == 2]
    return run.u, x


def dark_level(run: Run) -> Array:
    return run.x.min(axis=0) - 0.2 * run.spread


@unseen_kind("shutter opens late", "glitches", "outlying", "gap")
def shutter_opens_late(run: Run) -> Data:
    """In some rows only a part of the light is seen."""
    dark = dark_level(run)
    late = run.some(0.07)[:, None]
    share = np.where(late, run.generator.uniform(0.1, 0.9, (run.n, 1)), 1)
    return run.u, dark + share * (run.x - dark)


@unseen_kind("lamp ages and is replaced", "response", "drift", "gain steps")
def lamp_ages(run: Run) -> Data:
    dark = dark_level(run)
    hours = np.where(run.time() < 0.7, run.time(), run.time() - 0.7)
    return run.u, dark + np.exp(-0.8 * hours) * (run.x - dark)


@unseen_kind("preamplifier is overloaded", "memory", "glitches", "outlying", devices=MEMORYLESS)
def preamplifier_overloaded(run: Run) -> Data:
    """After a row with a large value the gain is lower for two rows."""
    overloaded = run.x > np.quantile(run.x, 0.9, axis=0)
    gain = np.where(before(overloaded), 0.5, np.where(before(overloaded, 2), 0.75, 1.0))
    middle = np.median(run.x, axis=0)
    return run.u, middle + gain * (run.x - middle)


@unseen_kind(
    "source warms up", "response", "noise", "drift", "other inputs", with_memory=("washout",)
)
def source_warms_up(run: Run) -> Data:
    amplitude = 1 - 0.8 * np.exp(-run.time() / 0.15)
    return run.u, run.measure(run.driven_by(amplitude))


@unseen_kind("fatigue, and rest between sessions", "response", "drift", "period")
def fatigue(run: Run) -> Data:
    tired = (np.arange(run.n) % 350)[:, None] / 350
    return run.u, run.measure(run.driven_by(1 - 0.6 * tired))


@unseen_kind(
    "tared at the beginning of every file",
    "drift",
    "batches",
    "period",
    "memory",
    "codes",
    "gap",
    "copied rows",
)
def tared(run: Run) -> Data:
    first_row = file_of_row(run, 40) * 40
    return run.u, run.x - run.x[first_row]


@unseen_kind("totals in place of counts", "memory", "period", "batches", "drift", "response")
def totals_in_place_of_counts(run: Run) -> Data:
    """The counter is set to zero every ten rows only."""
    dark = dark_level(run)
    x = run.x - dark
    for part in parts_of(run, 10):
        x[part] = np.cumsum(x[part], axis=0)
    return run.u, x


@unseen_kind("limiter on at first", "response", "other inputs", "clipped", "noise")
def limiter_on_at_first(run: Run) -> Data:
    low, high = run.input_range
    margin = 0.25 * (high - low)
    rows = run.rows(0, 0.45)
    sent = np.clip(run.u, low + margin, high - margin)
    return run.u, changed(run.x, rows, run.measure(sent)[rows])


@unseen_kind("one source dims slowly", "response")
def one_source_dims(run: Run) -> Data:
    sent = run.u.copy()
    sent[:, -1] = run.driven_by(1 - 0.6 * run.time())[:, -1]
    return run.u, run.measure(sent)


@unseen_kind("polarity of some files", "response", "drift", "gain steps")
def polarity_of_some_files(run: Run) -> Data:
    file = file_of_row(run, 150)
    is_reversed = run.generator.random(file[-1] + 1) < 0.35
    is_reversed[1] = True
    sign = np.where(is_reversed[file], -1, 1)[:, None]
    middle = np.median(run.x, axis=0)
    return run.u, middle + sign * (run.x - middle)


@unseen_kind("phases unwrapped along the rows", "wrapped", "drift", "memory")
def phases_unwrapped(run: Run) -> Data:
    phase = 1.6 * (run.x - run.x.mean(axis=0)) / run.spread
    measured = np.angle(np.exp(1j * phase))
    return run.u, np.unwrap(measured, axis=0)


@unseen_kind("picture wanders over the pixels", "response", "drift", min_channels=3)
def picture_wanders(run: Run) -> Data:
    scaled = (run.x - run.x.mean(axis=0)) / run.spread
    walk = np.cumsum(run.generator.standard_normal((run.n, 1))) / np.sqrt(run.n)
    share = np.abs(np.sin(3 * walk))[:, None]
    return run.u, (1 - share) * scaled + share * np.roll(scaled, 1, axis=1)


@unseen_kind("cross-talk of a slower experiment", "drift", "period", "batches")
def cross_talk(run: Run) -> Data:
    step = file_of_row(run, 25)
    signal = run.generator.uniform(-1, 1, step[-1] + 1)
    coupling = 0.7 * run.spread * run.generator.standard_normal(run.n_channels)
    return run.u, run.x + coupling * signal[step][:, None]


@unseen_kind("hum of a frequency that wanders", "period", "drift")
def hum_that_wanders(run: Run) -> Data:
    frequency = 0.11 + 0.004 * np.cumsum(run.generator.standard_normal(run.n)) / np.sqrt(run.n)
    phase = 2 * np.pi * np.cumsum(frequency)
    coupling = 0.5 * run.spread * run.generator.standard_normal(run.n_channels)
    return run.u, run.x + coupling * np.sin(phase)[:, None]


@unseen_kind("hot pixels blink", "drift", "noise", min_channels=3)
def hot_pixels_blink(run: Run) -> Data:
    x = run.x.copy()
    for channel in range(0, run.n_channels, 4):
        x[:, channel] += 4 * run.spread[channel] * random_telegraph(run, 40)
    return run.u, x


# ---------------------------------------------------------------------------------------------
# Single numbers
# ---------------------------------------------------------------------------------------------


@unseen_kind(
    "zeros after the point lost",
    "units",
    "outlying",
    "glitches",
    "gain steps",
    "wrapped",
    "missing codes",
)
def zeros_after_the_point_lost(run: Run) -> Data:
    """The microcontroller prints whole part, point and thousandths as integers: 1.042 becomes 1.42."""
    scaled = 2 * run.x / run.spread
    thousandths = np.round(1000 * np.abs(scaled)).astype(int)
    whole = thousandths // 1000
    fraction = thousandths % 1000
    n_digits = np.where(fraction < 10, 1, np.where(fraction < 100, 2, 3))
    return run.u, np.sign(scaled) * (whole + fraction / 10.0**n_digits)


@unseen_kind("negative codes read as unsigned", "wrapped", "outlying", "units", "glitches")
def negative_codes_read_as_unsigned(run: Run) -> Data:
    """A third of the channels has a bias, so that few of their codes are negative."""
    x = run.x.copy()
    for channel in range(0, run.n_channels, 3):
        zero = np.quantile(x[:, channel], 0.06)
        codes = np.round((x[:, channel] - zero) / run.spread[channel] * 400).astype(int)
        x[:, channel] = codes % 4096
    return run.u, x


@unseen_kind(
    "bytes exchanged in 3 % of the rows",
    "units",
    "glitches",
    "outlying",
    "gap",
    "foreign rows",
    "wrapped",
    "codes",
    "noise",
    "gain steps",
)
def bytes_exchanged(run: Run) -> Data:
    codes = np.round((run.x - run.x.mean(axis=0)) / run.spread * 3000)
    codes = np.clip(codes, -32768, 32767).astype(np.int16)
    rows = run.some(0.03)
    return run.u, changed(codes, rows, codes[rows].byteswap())


@unseen_kind("integer division", "rounded readouts")
def integer_division(run: Run) -> Data:
    return run.u, run.x // (0.7 * run.spread)


@unseen_kind(
    "missing cells filled from the row before",
    "filled cells",
    "stale",
    "copied rows",
    "memory",
    "outlying",
    "noise",
    "frozen",
)
def cells_filled_from_the_row_before(run: Run) -> Data:
    x = run.x.copy()
    missing = run.some(0.1, run.x.shape)
    for row in range(1, run.n):
        x[row, missing[row]] = x[row - 1, missing[row]]
    return run.u, x


@unseen_kind(
    "missing cells interpolated",
    "filled cells",
    "interpolated",
    "neighbours",
    "memory",
    "later inputs",
    "outlying",
)
def cells_interpolated(run: Run) -> Data:
    missing = run.some(0.15, run.x.shape)
    return run.u, np.where(missing, (before(run.x) + after(run.x)) / 2, run.x)


@unseen_kind(
    "range written down a row late", "units", "gain steps", "outlying", "memory", "glitches"
)
def range_written_down_late(run: Run) -> Data:
    size = np.linalg.norm((run.x - run.x.mean(axis=0)) / run.spread, axis=1)
    gain = np.where(size > np.quantile(size, 0.85), 2.0, 1.0)[:, None]
    return run.u, run.x * before(gain) / gain


@unseen_kind("readouts beyond 1.5 sigma set to the mean", "codes", "clipped", "outlying")
def beyond_sigma_set_to_the_mean(run: Run) -> Data:
    middle = run.x.mean(axis=0)
    is_far = np.abs(run.x - middle) > 1.5 * run.spread
    return run.u, np.where(is_far, middle, run.x)


@unseen_kind(
    "logarithm of what was left of the dark level", "codes", "clipped", "outlying", "glitches"
)
def logarithm_of_what_was_left(run: Run) -> Data:
    """The dark level was taken too high, and what is negative becomes 1e-6."""
    signal = (run.x - np.quantile(run.x, 0.12, axis=0)) / run.spread
    return run.u, np.log10(np.maximum(signal, 1e-6))


@unseen_kind("fit saved in place of the data", "computed", "dependent")
def fit_in_place_of_the_data(run: Run) -> Data:
    """The readouts are those of a polynomial of this and three earlier inputs."""
    scaled = (run.u - run.u.mean(axis=0)) / run.u.std(axis=0)
    delays = range(4) if run.device.has_memory else range(1)
    columns = [np.ones((run.n, 1))]
    for delay in delays:
        earlier = before(scaled, delay)
        columns += [earlier, earlier**2, earlier**3]
    design = np.hstack(columns)
    coefficients, *_ = np.linalg.lstsq(design, run.x, rcond=None)
    return run.u, design @ coefficients


@unseen_kind("a third of the plugs in one socket", "dependent", min_channels=6)
def plugs_in_one_socket(run: Run) -> Data:
    x = run.x.copy()
    x[:, ::3] = run.x[:, :1]
    return run.u, x


# ---------------------------------------------------------------------------------------------
# What was sent, and what was written down of it
# ---------------------------------------------------------------------------------------------


@unseen_kind(
    "exponents of inputs cut off",
    "domain",
    "units",
    "outlying",
    "other inputs",
    "shape of inputs",
    "gap",
)
def exponents_cut_off(run: Run) -> Data:
    """A column of fixed width loses e-02 and smaller exponents, but not e-01."""
    exponent = np.floor(np.log10(np.abs(run.u) + 1e-300))
    return np.where(exponent <= -2, run.u / 10.0**exponent, run.u), run.x


@unseen_kind(
    "sign of the inputs lost in a file",
    "response",
    "shape of inputs",
    "domain",
    "gap",
    "other inputs",
    "foreign rows",
    "noise",
)
def sign_of_inputs_lost(run: Run) -> Data:
    rows = run.rows(0.35, 0.55)
    return changed(run.u, rows, np.abs(run.u[rows])), run.x


@unseen_kind(
    "log with a dead band",
    "other inputs",
    "stale",
    "copied rows",
    "repeats",
    "rounded inputs",
    "gap",
    "foreign rows",
    "later inputs",
    "shift",
    with_memory=("inputs depend",),
)
def log_with_a_dead_band(run: Run) -> Data:
    """An input is written down only if it differs from the last one written by a tenth of the range."""
    low, high = run.input_range
    u = run.u.copy()
    for row in range(1, run.n):
        is_small = np.abs(u[row] - u[row - 1]) < 0.1 * (high - low)
        u[row, is_small] = u[row - 1, is_small]
    return u, run.x


@unseen_kind("bit of the source stuck", "other inputs", "rounded inputs", "gap", debatable=True)
def bit_of_the_source_stuck(run: Run) -> Data:
    """Debatable, because a function of the inputs that is not one to one may be part of the device."""
    low, high = run.input_range
    codes = np.clip(np.round((run.u - low) / (high - low) * 255), 0, 255).astype(int)
    return run.u, run.measure(low + (codes | 32) / 255 * (high - low))


@unseen_kind("stage has backlash", "memory", "other inputs", "late input", devices=MEMORYLESS)
def stage_has_backlash(run: Run) -> Data:
    low, high = run.input_range
    play = 0.06 * (high - low)
    sent = run.u.copy()
    for row in range(1, run.n):
        sent[row] = np.clip(sent[row - 1], run.u[row] - play, run.u[row] + play)
    return run.u, run.measure(sent)


@unseen_kind("source is slew-limited", "memory", "other inputs", "late input", devices=MEMORYLESS)
def source_is_slew_limited(run: Run) -> Data:
    low, high = run.input_range
    sent = run.u.copy()
    for row in range(1, run.n):
        step = run.u[row] - sent[row - 1]
        sent[row] = sent[row - 1] + np.clip(step, -0.6 * (high - low), 0.6 * (high - low))
    return run.u, run.measure(sent)


@unseen_kind(
    "triangle with noise as input",
    "inputs depend",
    "order of inputs",
    "period",
    devices=WITH_MEMORY,
)
def triangle_with_noise(run: Run) -> Data:
    turns = np.arange(run.n)[:, None] / 41.7 + 0.15 * run.generator.random(run.u.shape)
    u = run.device.inputs_at(np.clip(np.abs(2 * (turns % 1) - 1), 1e-6, 1 - 1e-6))
    return u, run.measure(u)


@unseen_kind(
    "every input followed by its opposite", "inputs depend", "order of inputs", devices=WITH_MEMORY
)
def followed_by_its_opposite(run: Run) -> Data:
    probability = run.generator.random((-(-run.n // 2), run.n_inputs))
    pairs = np.stack([probability, 1 - probability], axis=1)
    u = run.device.inputs_at(pairs.reshape(-1, run.n_inputs)[: run.n])
    return u, run.measure(u)


@unseen_kind(
    "every input sent twice",
    "other inputs",
    "missing",
    "memory",
    devices=WITH_MEMORY,
    traceless=True,
)
def every_input_sent_twice(run: Run) -> Data:
    """Only the second row of each pair is kept: another device, which forgets twice as fast."""
    return run.u, run.measure(np.repeat(run.u, 2, axis=0))[1::2]
