"""A fourth part of mistakes, unseen while checks are developed: single numbers, and what becomes of them.

They were written by somebody who has not read the checks, nor what they find. The rule for mistakes without a trace
stands in `_mistakes_fourth_part_of_rows`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from _mistakes_devices import FOURTH, OTHER, Run
from _mistakes_fourth_part_of_rows import scaled
from _mistakes_kinds import MEMORYLESS, Data, kind
from _mistakes_of_values import as_codes
from _mistakes_second_part import dark_level

fourth_kind = partial(kind, part=FOURTH)

# Gate times of a counter in seconds, and how often each is chosen.
GATE_TIMES = (0.1, 0.2, 1.0)
SHARES_OF_GATE_TIMES = (0.15, 0.25, 0.6)
# Strength of the curve by which telephones compress loudness.
COMPANDING = 255.0


@fourth_kind(
    "bits flipped in 2 % of the cells", "outlying", "glitches", "wrapped", "codes", "noise"
)
def bits_flipped(run: Run) -> Data:
    """A memory without error correction near a source of neutrons flips one bit of twelve here and there."""
    codes = as_codes(run, 12)
    bit = 1 << run.generator.integers(0, 12, codes.shape)
    return run.u, np.where(run.some(0.02, codes.shape), codes ^ bit, codes).astype(float)


# No trace: every new channel is a fixed function of one readout of the same row.
@fourth_kind(
    "decimal commas split the cells",
    "units",
    "wrapped",
    "rounded readouts",
    "missing",
    min_channels=2,
    traceless=True,
)
def decimal_commas_split(run: Run) -> Data:
    """3,07 becomes the two cells 3 and 7, and the header has names for the first half of the channels only."""
    hundredths = np.round(100 * 2.0 * np.abs(scaled(run.x) + 5)).astype(int)
    cells = np.stack([hundredths // 100, hundredths % 100], axis=2)
    return run.u, cells.reshape(run.n, -1)[:, : run.n_channels].astype(float)


# No trace: a static mixture of channels, as of a device whose readouts add up to zero.
@fourth_kind("common average reference", "dependent", min_channels=2, traceless=True)
def common_average_reference(run: Run) -> Data:
    """Software for brain waves subtracts the mean of all channels from each of them."""
    return run.u, run.x - run.x.mean(axis=1, keepdims=True)


# No trace: a static function of the readouts of the same row.
@fourth_kind(
    "divided by a channel that passes zero",
    "outlying",
    "glitches",
    "units",
    min_channels=2,
    traceless=True,
)
def divided_by_a_channel_that_passes_zero(run: Run) -> Data:
    """The first channel was meant to be the reference, but it is signed, and ratios become huge."""
    x = scaled(run.x)
    return run.u, x[:, 1:] / x[:, :1]


@fourth_kind(
    "gate time not written down",
    "gain steps",
    "units",
    "outlying",
)
def gate_time_not_written_down(run: Run) -> Data:
    """The counter chooses one of three gate times for each row, whatever its inputs are."""
    gate = run.generator.choice(GATE_TIMES, (run.n, 1), p=SHARES_OF_GATE_TIMES)
    dark = dark_level(run)
    return run.u, gate * (run.x - dark)


# No trace: more white noise of one size, as of a device in the light; no words can name it.
@fourth_kind("light of the room was on", traceless=True)
def light_of_the_room(run: Run) -> Data:
    """Daylight adds a constant and its shot noise of 0.8 standard deviations to every channel."""
    return run.u, run.x + 5 * run.spread + run.noise(0.8)


# No trace: a static nonlinearity of every channel.
@fourth_kind("companded sound not expanded", "rounded readouts", traceless=True)
def companded_sound(run: Run) -> Data:
    """The recorder stores the sign and the logarithm of the loudness in 8 bits."""
    centred = run.x - np.median(run.x, axis=0)
    loudness = centred / np.abs(centred).max(axis=0)
    companded = np.sign(loudness) * np.log1p(COMPANDING * np.abs(loudness))
    return run.u, np.round(127 * companded / np.log1p(COMPANDING))


# No trace: what the other device adds is independent between rows, because it forgets its own inputs at
# once; no words can name it.
@fourth_kind(
    "another experiment on the same clock",
    devices=MEMORYLESS,
    traceless=True,
)
def another_experiment(run: Run) -> Data:
    """A neighbour's device, driven by inputs of its own, leaks into all channels with half their size."""
    other = run.measure(run.fresh_inputs(), OTHER)
    return run.u, run.x + 0.5 * (other - other.mean(axis=0))


@fourth_kind(
    "charge of the last channel in the next scan",
    "memory",
    "late channels",
    devices=MEMORYLESS,
    min_channels=3,
)
def charge_of_the_last_channel(run: Run) -> Data:
    """A scanner with too high an impedance passes 45 % from each channel to the next, and on to the next row."""
    stream = scaled(run.x).ravel()
    charged = stream.copy()
    charged[1:] = 0.55 * stream[1:] + 0.45 * stream[:-1]
    return run.u, charged.reshape(run.x.shape)


@fourth_kind(
    "columns touch where numbers are long",
    "codes",
    "outlying",
    "units",
    "gain steps",
    "glitches",
    "foreign rows",
    "missing",
    min_channels=3,
)
def columns_touch(run: Run) -> Data:
    """Numbers of six characters touch where both are long, the parser reads both as one, and cells move left."""
    x = np.round(scaled(run.x) * 4, 3)
    touches = (x[:, 1:] <= -5) & (np.abs(x[:, :-1]) >= 5)
    for row in np.flatnonzero(touches.any(axis=1)):
        first = int(np.argmax(touches[row]))
        x[row, first + 1 : -1] = x[row, first + 2 :]
        x[row, -1] = 0.0
    return run.u, x


@fourth_kind(
    "background of the darkest row of each dozen",
    "gap",
    "batches",
    "period",
    "neighbours",
    "memory",
    "later inputs",
    "codes",
    "drift",
)
def background_of_the_darkest_row(run: Run) -> Data:
    """A script subtracts from each film of twelve rows the row with the smallest sum, as if it were dark."""
    x = run.x.copy()
    total = scaled(run.x).sum(axis=1)
    for start in range(0, run.n, 12):
        stop = min(start + 12, run.n)
        x[start:stop] -= run.x[start + np.argmin(total[start:stop])]
    return run.u, x


@fourth_kind(
    "signs chosen by the row before",
    "response",
    "memory",
    "units",
    "gain steps",
    devices=MEMORYLESS,
)
def signs_chosen_by_the_row_before(run: Run) -> Data:
    """Signs of field amplitudes are unknown, and each row gets that which is more like the row before."""
    x = scaled(run.x)
    for row in range(1, run.n):
        if x[row] @ x[row - 1] < 0:
            x[row] = -x[row]
    return run.u, x
