"""Mistakes in single numbers: codes, converters, units, and what was done with the readouts afterwards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import infocap
from _mistakes_devices import Array, Run
from _mistakes_kinds import MEMORYLESS, Data, changed, kind

# Codes, glitches and fillings.


def cells(run: Run, share: float, value: float) -> Data:
    return run.u, np.where(run.some(share, run.x.shape), value, run.x)


@kind("a cell of 9.91E37", "codes", "outlying", "units", min_channels=3)
def cell_of_overflow(run: Run) -> Data:
    return run.u, changed(run.x, (run.n // 3, 2), 9.91e37)


@kind("-9999 in 0.1 % of the cells", "codes", "outlying")
def code_of_missing_values(run: Run) -> Data:
    return cells(run, 1e-3, -9999.0)


@kind("65535 in 0.1 % of the cells", "codes", "outlying")
def code_of_full_scale(run: Run) -> Data:
    return cells(run, 1e-3, 65535.0)


@kind("-777 in 0.1 % of the cells", "codes", "glitches", "outlying")
def code_of_nobody(run: Run) -> Data:
    return cells(run, 1e-3, -777.0)


def ten_rows(run: Run) -> Array:
    return run.generator.choice(run.n, 10, replace=False)


@kind("ten glitched shots", "glitches", "gap", "outlying")
def glitched_shots(run: Run) -> Data:
    rows = ten_rows(run)
    return run.u, changed(
        run.x, rows, run.x[rows] + (run.x.std() / run.spread * run.noise(1))[rows]
    )


@kind("ten dark shots", "glitches", "gap", "codes")
def dark_shots(run: Run) -> Data:
    return run.u, changed(run.x, ten_rows(run), -run.x.std())


@kind("x100 in 1 % of the cells", "outlying", "units", "gain steps", "glitches")
def cells_times_hundred(run: Run) -> Data:
    return run.u, np.where(run.some(0.01, run.x.shape), 100 * run.x, run.x)


@kind("spikes in 0.3 % of the cells", "outlying", "glitches")
def spikes(run: Run) -> Data:
    spike = 8 * run.spread * run.generator.standard_t(2, run.x.shape)
    return run.u, np.where(run.some(0.003, run.x.shape), run.x + spike, run.x)


@kind("cosmic rays in 2 % of the rows", "glitches", "outlying")
def cosmic_rays(run: Run) -> Data:
    rows = np.flatnonzero(run.some(0.02))
    channels = run.generator.integers(0, run.n_channels, len(rows))
    size = run.generator.exponential(10, len(rows)) * run.spread[channels]
    return run.u, changed(run.x, (rows, channels), run.x[rows, channels] + size)


@kind("missing cells filled with zero", "codes", "outlying", "gap")
def filled_with_zero(run: Run) -> Data:
    return cells(run, 0.03, 0.0)


@kind("missing rows filled with zero", "codes", "gap", "glitches", "copied rows")
def rows_filled_with_zero(run: Run) -> Data:
    return run.u, changed(run.x, run.some(0.05), 0.0)


@kind("missing cells filled with the mean", "codes", "gap", "outlying")
def filled_with_the_mean(run: Run) -> Data:
    return run.u, np.where(run.some(0.06, run.x.shape), run.x.mean(axis=0), run.x)


@kind("missing rows filled with the mean", "codes", "gap", "copied rows")
def rows_filled_with_the_mean(run: Run) -> Data:
    return run.u, changed(run.x, run.some(0.06), run.x.mean(axis=0))


@kind("missing cells left as NaN", "missing")
def cells_left_as_nan(run: Run) -> Data:
    return cells(run, 0.01, np.nan)


@kind(
    "sign of some channels at random", "outlying", "units", "glitches", "gain steps", min_channels=4
)
def sign_at_random(run: Run) -> Data:
    flipped = run.some(0.3, run.x.shape) & (np.arange(run.n_channels) % 4 == 0)
    return run.u, np.where(flipped, -run.x, run.x)


# Converters.


@kind("clipped, then noise", "clipped")
def clipped_then_noise(run: Run) -> Data:
    low, high = np.quantile(run.x, [0.1, 0.85])
    clipped = np.clip(run.x, low, high)
    return run.u, clipped + 1e-4 * run.generator.standard_normal(run.x.shape)


@kind("clipped at the top", "clipped")
def clipped_at_the_top(run: Run) -> Data:
    return run.u, np.minimum(run.x, np.quantile(run.x, 0.8, axis=0))


@kind("two channels saturate softly", "clipped", min_channels=4, traceless=True)
def saturating_softly(run: Run) -> Data:
    x = run.x.copy()
    scaled = (x[:, :2] - x[:, :2].mean(axis=0)) / run.spread[:2]
    x[:, :2] += run.spread[:2] * (np.tanh(2 * scaled) / 2 - scaled)
    return run.u, x


@kind("converter wraps around", "wrapped", "outlying")
def wraps_around(run: Run) -> Data:
    high = np.quantile(run.x, 0.985, axis=0)
    span = high - run.x.min(axis=0)
    return run.u, np.where(run.x > high, run.x - span, run.x)


@kind("8-bit integers flow over", "wrapped", "outlying")
def integers_flow_over(run: Run) -> Data:
    middle = np.median(run.x, axis=0)
    step = np.quantile(np.abs(run.x - middle), 0.97, axis=0) / 127
    codes = np.round((run.x - middle) / step)
    return run.u, (codes + 128) % 256 - 128


def as_codes(run: Run, n_bits: int) -> Array:
    """Return the codes of a converter whose range is that of each channel."""
    low = run.x.min(axis=0)
    return np.round((run.x - low) / np.ptp(run.x, axis=0) * (2**n_bits - 1)).astype(int)


@kind("bit 5 stuck at zero", "missing codes", "rounded readouts")
def bit_stuck(run: Run) -> Data:
    return run.u, (as_codes(run, 8) & ~32).astype(float)


@kind("bit 6 of one channel stuck at one", "missing codes", "rounded readouts")
def bit_of_one_channel_stuck(run: Run) -> Data:
    x = as_codes(run, 10)
    x[:, 1] |= 64
    return run.u, x.astype(float)


@kind("converter of 6 bits", "rounded readouts")
def converter_of_six_bits(run: Run) -> Data:
    step = np.ptp(run.x) / 64
    return run.u, np.round(run.x / step) * step


@kind("converter of 3 bits", "rounded readouts")
def converter_of_three_bits(run: Run) -> Data:
    return run.u, as_codes(run, 3).astype(float)


@kind("8 bits, nearly linear", "rounded readouts", devices=MEMORYLESS)
def nearly_linear(run: Run) -> Data:
    generator = np.random.default_rng(2)
    mixed = run.u @ generator.standard_normal((run.n_inputs, 12))
    x = mixed + 0.01 * np.tanh(2 * mixed) + 1e-5 * generator.standard_normal(mixed.shape)
    step = np.ptp(x) / 256
    return run.u, np.round(x / step) * step


@kind("stored as float16", "rounded readouts")
def stored_as_float16(run: Run) -> Data:
    return run.u, run.x.astype(np.float16).astype(float)


@kind("two significant digits", "rounded readouts")
def two_significant_digits(run: Run) -> Data:
    exponent = np.floor(np.log10(np.abs(run.x) + 1e-300))
    unit = 10.0 ** (exponent - 1)
    return run.u, np.round(run.x / unit) * unit


@kind("range of single readings not written down", "units", "gain steps", "outlying", "wrapped")
def autoranging(run: Run) -> Data:
    return run.u, np.where(np.abs(run.x) < 0.15 * np.abs(run.x).max(axis=0), 10 * run.x, run.x)


# Units and tables.


@kind("mV for V", "units", "gain steps")
def millivolts(run: Run) -> Data:
    return run.u, np.where(run.some(0.2, run.x.shape), 1000 * run.x, run.x)


@kind("logarithm of half of the rows", "units", "response", "drift", "gain steps")
def logarithm_of_half_of_the_rows(run: Run) -> Data:
    positive = run.x - run.x.min(axis=0) + 0.05 * np.ptp(run.x, axis=0)
    rows = run.rows(0.5, 1)
    return run.u, changed(positive, rows, 10 * np.log10(positive[rows]))


@kind("thousands separators", "units")
def thousands_separators(run: Run) -> Data:
    """Counts written as "1,234" beside "987", in a table with semicolons, read with a decimal comma."""
    scaled = (run.x - run.x.min()) / np.ptp(run.x)
    counts = np.round(300 + 2500 * scaled).astype(int)
    names = [f"u{k + 1}" for k in range(run.n_inputs)]
    names += [f"x{k + 1}" for k in range(run.n_channels)]
    lines = [";".join(names)]
    for inputs, readouts in zip(run.u, counts, strict=True):
        cells = [f"{value:.9f}".replace(".", ",") for value in inputs]
        cells += [f"{value:,}" for value in readouts]
        lines.append(";".join(cells))
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.csv")
        path.write_text("\n".join(lines), encoding="utf-8")
        recording = infocap.read(path)
    return recording.inputs, recording.readouts


# What was done with the readouts afterwards.


@kind("readouts normalised per row", "computed", "dependent", traceless=True)
def normalised_per_row(run: Run) -> Data:
    return run.u, run.x / np.linalg.norm(run.x, axis=1, keepdims=True)


@kind("largest principal components", "uncorrelated", "dependent", min_channels=4, debatable=True)
def principal_components(run: Run) -> Data:
    centred = run.x - run.x.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return run.u, centred @ directions[: run.n_channels // 2].T


@kind("a channel is an input", "monitor", "computed", debatable=True)
def channel_is_an_input(run: Run) -> Data:
    return run.u, np.column_stack([run.x, run.u[:, 0]])


@kind("the target among the readouts", "computed", "monitor", debatable=True)
def target_among_the_readouts(run: Run) -> Data:
    return run.u, np.column_stack([run.x, (run.u**3).sum(axis=1)])


@kind("magnitude in place of the value", "computed", "clipped", traceless=True)
def magnitude(run: Run) -> Data:
    return run.u, np.abs(run.x - np.median(run.x, axis=0))
