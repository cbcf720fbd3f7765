"""A third part of mistakes, unseen while checks are developed: single numbers, and what scripts make of them.

They were written by somebody who has not read the checks, nor what they find.
"""

from __future__ import annotations

from datetime import date
from functools import partial

import numpy as np
from scipy.fft import dct, idct

from _mistakes_devices import THIRD, Array, Run
from _mistakes_kinds import Data, before, changed, kind
from _mistakes_of_values import as_codes
from _mistakes_second_part import dark_level, parts_of

third_kind = partial(kind, part=THIRD)

# Day 0 of the dates of spreadsheets, as an ordinal of Python.
SPREADSHEET_EPOCH = date(1899, 12, 30).toordinal()


def scaled(run: Run) -> Array:
    """Return readouts with mean zero and standard deviation one."""
    return (run.x - run.x.mean(axis=0)) / run.spread


# ---------------------------------------------------------------------------------------------
# Spreadsheets
# ---------------------------------------------------------------------------------------------


@third_kind("a file with cells turned into dates", "units", "outlying", "codes", "glitches")
def cells_turned_into_dates(run: Run) -> Data:
    """A file was opened in a spreadsheet, and 10.05 became the tenth of May, which is day 46152."""
    celsius = np.round(10 + 3 * scaled(run), 2)
    x = celsius.copy()
    rows = run.rows(0.3, 0.36)
    for row in range(rows.start, rows.stop):
        for channel, value in enumerate(celsius[row]):
            day = int(value)
            month = round(100 * (value - day))
            if 1 <= day <= 28 and 1 <= month <= 12:
                x[row, channel] = date(2026, month, day).toordinal() - SPREADSHEET_EPOCH
    return run.u, x


@third_kind(
    "spreadsheet continues a series",
    "gap",
    "other inputs",
    "foreign rows",
    "order of inputs",
    "inputs depend",
    "noise",
    "response",
    "shape of inputs",
)
def spreadsheet_continues_a_series(run: Run) -> Data:
    """A tenth of a column of inputs was filled with equal steps when somebody pulled at its corner."""
    rows = run.rows(0.6, 0.7)
    u = run.u.copy()
    u[rows, 0] = np.linspace(u[rows.start, 0], u[rows.stop - 1, 0], rows.stop - rows.start)
    return u, run.x


@third_kind("divided by the reference of the row before", "period", "drift", "memory", "neighbours")
def divided_by_the_wrong_reference(run: Run) -> Data:
    """The power varies by 15 % from row to row, and a formula takes it from the row above."""
    power = run.generator.lognormal(sigma=0.15, size=(run.n, 1))
    dark = dark_level(run)
    return run.u, dark + (run.x - dark) * power / before(power)


# ---------------------------------------------------------------------------------------------
# Instruments
# ---------------------------------------------------------------------------------------------


@third_kind("phase of the lock-in wanders", "response", "drift", min_channels=2)
def phase_of_the_lock_in_wanders(run: Run) -> Data:
    """Pairs of channels are the two quadratures of an amplifier whose reference is not locked."""
    n_pairs = run.n_channels // 2
    walk = np.cumsum(run.generator.standard_normal((run.n, 1)), axis=0) / np.sqrt(run.n)
    x = scaled(run)
    first = x[:, : 2 * n_pairs : 2]
    second = x[:, 1 : 2 * n_pairs : 2]
    rotated = (first + 1j * second) * np.exp(1.5j * walk)
    x[:, : 2 * n_pairs : 2] = rotated.real
    x[:, 1 : 2 * n_pairs : 2] = rotated.imag
    return run.u, x


@third_kind(
    "autozero in place of every 16th reading",
    "period",
    "gap",
    "glitches",
    "codes",
    "outlying",
    "copied rows",
)
def autozero_in_place_of_readings(run: Run) -> Data:
    """The voltmeter shorts its input every 16th time, and the script takes what it shows."""
    rows = slice(7, None, 16)
    zero = dark_level(run) + run.noise(0.01)
    return run.u, changed(run.x, rows, zero[rows])


@third_kind("fewer digits from 60 % on", "noise", "rounded readouts", "response")
def fewer_digits_from_a_row_on(run: Run) -> Data:
    """Somebody set the multimeter to its fast mode, which has steps of 0.8 standard deviations."""
    step = 0.8 * run.spread
    rows = run.rows(0.6, 1)
    return run.u, changed(run.x, rows, (np.round(run.x / step) * step)[rows])


@third_kind(
    "serial interface slips by a bit",
    "gain steps",
    "units",
    "wrapped",
    "response",
    "outlying",
    "glitches",
    "noise",
    "foreign rows",
    "gap",
)
def serial_interface_slips(run: Run) -> Data:
    """For 30 rows after each spike on the clock line, codes of 12 bits arrive one bit to the left."""
    starts = np.flatnonzero(run.some(0.003))
    rows = np.unique(np.minimum((starts[:, None] + np.arange(30)).ravel(), run.n - 1))
    codes = as_codes(run, 12)
    return run.u, changed(codes, rows, codes[rows] * 2 % 4096)


@third_kind("Gray code read as binary", "wrapped", "units", "outlying", traceless=True)
def gray_code_read_as_binary(run: Run) -> Data:
    """Every channel is a function of the right one that jumps, like that of another device."""
    codes = as_codes(run, 10)
    return run.u, (codes ^ (codes >> 1)).astype(float)


@third_kind(
    "historian with a dead band",
    "filled cells",
    "stale",
    "copied rows",
    "memory",
    "frozen",
    "rounded readouts",
)
def historian_with_a_dead_band(run: Run) -> Data:
    """A plant's database keeps a readout until it changes by 0.6 standard deviations."""
    x = run.x.copy()
    for row in range(1, run.n):
        is_small = np.abs(run.x[row] - x[row - 1]) < 0.6 * run.spread
        x[row, is_small] = x[row - 1, is_small]
    return run.u, x


@third_kind("pictures saved as JPEG", "rounded readouts", "noise", min_channels=8, traceless=True)
def pictures_saved_as_jpeg(run: Run) -> Data:
    """Cosine transforms along the channels are rounded, the higher the coarser: another noise."""
    steps = 0.4 * (1 + np.arange(run.n_channels) / 4)
    coefficients = dct(scaled(run), axis=1, norm="ortho")
    return run.u, idct(np.round(coefficients / steps) * steps, axis=1, norm="ortho")


@third_kind(
    "high byte of the row before, 10 % of the cells",
    "glitches",
    "outlying",
    "memory",
    "wrapped",
    "filled cells",
    "stale",
    "units",
)
def high_byte_of_the_row_before(run: Run) -> Data:
    """The two registers of a readout are read while the instrument writes them."""
    codes = as_codes(run, 12)
    torn = (before(codes) & ~255) | (codes & 255)
    return run.u, np.where(run.some(0.1, run.x.shape), torn, codes).astype(float)


@third_kind("full pixels spill into their neighbours", "clipped", min_channels=3)
def full_pixels_spill(run: Run) -> Data:
    """What exceeds the full well of a pixel goes to the next one, which may be full, too."""
    x = scaled(run)
    full = np.quantile(x, 0.8, axis=0)
    excess = np.maximum(x - full, 0)
    return run.u, np.minimum(np.minimum(x, full) + np.roll(excess, 1, axis=1), full)


@third_kind("zero suppression", "codes", "clipped", "missing codes", "outlying", "gap")
def zero_suppression(run: Run) -> Data:
    """The data acquisition sets what is within 0.7 standard deviations of the pedestal to zero."""
    signal = run.x - np.median(run.x, axis=0)
    return run.u, np.where(np.abs(signal) < 0.7 * run.spread, 0.0, signal)


@third_kind("averaged since the beginning", "memory", "nothing", "drift", "noise", "response")
def averaged_since_the_beginning(run: Run) -> Data:
    """The mean of the measuring program is never cleared."""
    count = np.arange(1, run.n + 1)[:, None]
    return run.u, np.cumsum(run.x, axis=0) / count


@third_kind(
    "peak hold, cleared every eight rows",
    "memory",
    "period",
    "stale",
    "filled cells",
    "copied rows",
    "frozen",
    "batches",
    "clipped",
    "response",
)
def peak_hold(run: Run) -> Data:
    """The meter shows the largest value since it was cleared."""
    x = run.x.copy()
    for part in parts_of(run, 8):
        x[part] = np.maximum.accumulate(run.x[part], axis=0)
    return run.u, x


# ---------------------------------------------------------------------------------------------
# Scripts and simulations
# ---------------------------------------------------------------------------------------------


@third_kind(
    "denoised by few singular vectors",
    "dependent",
    "uncorrelated",
    min_channels=8,
    debatable=True,
)
def denoised_by_few_singular_vectors(run: Run) -> Data:
    """A quarter of the directions of the readouts was kept, in all channels."""
    mean = run.x.mean(axis=0)
    left, sizes, right = np.linalg.svd(run.x - mean, full_matrices=False)
    rank = max(run.n_channels // 4, 2)
    return run.u, mean + left[:, :rank] * sizes[:rank] @ right[:rank]


@third_kind(
    "argsort in place of the values",
    "dependent",
    "rounded readouts",
    "computed",
    min_channels=5,
    traceless=True,
)
def argsort_in_place_of_the_values(run: Run) -> Data:
    """Each row holds the numbers of its channels by size, like a device that compares them."""
    return run.u, scaled(run).argsort(axis=1).astype(float)


@third_kind("channels of every row sorted", min_channels=3, traceless=True)
def channels_of_every_row_sorted(run: Run) -> Data:
    """The default axis of the sort is the last: a device with kinks, whose mistake no words can name."""
    return run.u, np.sort(run.x, axis=1)


@third_kind(
    "missing cells imputed from other channels, 30 %",
    "filled cells",
    "dependent",
    "missing",
    "outlying",
    "noise",
    min_channels=3,
)
def cells_imputed_from_other_channels(run: Run) -> Data:
    """A library predicts missing cells linearly from the other cells of their row."""
    x = scaled(run)
    precision = np.linalg.pinv(np.cov(x.T), hermitian=True)
    predicted = x - x @ precision / np.diag(precision)
    return run.u, np.where(run.some(0.3, x.shape), predicted, x)


@third_kind(
    "principal components of every file",
    "response",
    "batches",
    "uncorrelated",
    "gain steps",
    "drift",
    "period",
    "units",
    "noise",
    "gap",
    min_channels=2,
)
def principal_components_of_every_file(run: Run) -> Data:
    """Each of six files has its own directions, with signs and an order of their own."""
    x = run.x.copy()
    for rows in np.array_split(np.arange(run.n), 6):
        centred = run.x[rows] - run.x[rows].mean(axis=0)
        _, directions = np.linalg.eigh(centred.T @ centred)
        x[rows] = centred @ directions
    return run.u, x


@third_kind("rounding grows along the run", "noise", "rounded readouts", "response")
def rounding_grows_along_the_run(run: Run) -> Data:
    """Readouts are differences of totals in single precision, whose steps double as totals grow."""
    doublings = np.floor(6 * run.time())
    step = run.spread * 2.0 ** (doublings - 6)
    return run.u, np.round(run.x / step) * step


@third_kind("noise seeded anew every 64 rows", "period", "batches")
def noise_seeded_anew(run: Run) -> Data:
    """A simulation adds the same noise to each batch."""
    noise = run.noise(0.5)
    return run.u, run.x + noise[np.arange(run.n) % 64]
