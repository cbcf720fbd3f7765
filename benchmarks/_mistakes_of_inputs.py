"""Mistakes in what was sent: its range, its distribution, its digits, and what was written down of it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from _mistakes_devices import Run
from _mistakes_kinds import MEMORYLESS, Data, before, changed, kind


@kind("inputs with one decimal", "rounded inputs", "repeats")
def inputs_with_one_decimal(run: Run) -> Data:
    return np.round(run.u, 1), run.x


@kind("inputs with a gain of 0.92", "domain", "shape of inputs")
def inputs_with_a_gain(run: Run) -> Data:
    return run.driven_by(0.92), run.x


@kind("half of the domain", "domain", "shape of inputs")
def half_of_the_domain(run: Run) -> Data:
    return run.driven_by(0.5), run.x


@kind("inputs in another unit", "domain", "units")
def inputs_in_another_unit(run: Run) -> Data:
    return 1000 * run.u, run.x


@kind("inputs with an offset", "domain", "shape of inputs")
def inputs_with_an_offset(run: Run) -> Data:
    low, high = run.input_range
    return run.driven_by(0.95) + 0.02 * (high - low), run.x


@kind("Beta inputs", "shape of inputs", "domain")
def beta_inputs(run: Run) -> Data:
    low, high = run.input_range
    u = low + (high - low) * run.generator.beta(1.6, 1.6, run.u.shape)
    return u, run.measure(u)


@kind("normal inputs, cut at the ends", "shape of inputs", "clipped", "domain", "rounded inputs")
def normal_inputs(run: Run) -> Data:
    low, high = run.input_range
    u = run.input_middle + (high - low) / 3 * run.generator.standard_normal(run.u.shape)
    u = np.clip(u, low, high)
    return u, run.measure(u)


@kind("correlated inputs", "correlated inputs", min_inputs=2)
def correlated_inputs(run: Run) -> Data:
    copied = run.some(0.3)
    u = run.u.copy()
    u[copied, -1] = u[copied, 0]
    return u, run.measure(u)


@kind("a source follows another", "correlated inputs", "other inputs", min_inputs=2, traceless=True)
def source_follows_another(run: Run) -> Data:
    sent = run.u.copy()
    sent[:, -1] = 0.5 * sent[:, -1] + 0.5 * sent[:, 0]
    return run.u, run.measure(sent)


@kind("a source not connected", "no effect", min_inputs=2)
def source_not_connected(run: Run) -> Data:
    u = run.u.copy()
    u[:, -1] = u[:, -1].mean()
    return run.u, run.measure(u)


@kind("all sources not connected", "nothing", "no effect")
def all_sources_not_connected(run: Run) -> Data:
    return run.u, run.measure(np.full_like(run.u, run.input_middle))


@kind("inputs from a table of 64", "repeats", "copied rows", "few samples", "shape of inputs")
def inputs_from_a_small_table(run: Run) -> Data:
    u = run.u[run.generator.integers(0, 64, run.n)]
    return u, run.measure(u)


@kind("inputs swept", "order of inputs", "inputs depend", "memory", devices=MEMORYLESS)
def inputs_swept_with_memory(run: Run) -> Data:
    u = run.u[np.argsort(run.u[:, 0])]
    x = run.measure(u)
    return u, 0.6 * x + 0.4 * before(x, 5)


# Others were sent than were written down.


@kind("source clipped", "other inputs", "clipped", debatable=True)
def source_clipped(run: Run) -> Data:
    low, high = run.input_range
    margin = 0.12 * (high - low)
    return run.u, run.measure(np.clip(run.u, low + margin, high - margin))


@kind("converter of the source has 3 bits", "other inputs", "rounded inputs", debatable=True)
def source_of_three_bits(run: Run) -> Data:
    low, high = run.input_range
    step = (high - low) / 7
    return run.u, run.measure(low + np.round((run.u - low) / step) * step)


@kind(
    "inputs written down with dropouts",
    "gap",
    "other inputs",
    "shift",
    "copied rows",
    "stale",
    "repeats",
    "foreign rows",
    with_memory=("inputs depend", "later inputs"),
)
def inputs_written_down_with_dropouts(run: Run) -> Data:
    u = run.u.copy()
    for row in np.flatnonzero(run.some(0.06))[1:]:
        u[row] = u[row - 1]
    return u, run.x


@kind("a dead spot of the source", "gap", "other inputs", "glitches")
def dead_spot_of_the_source(run: Run) -> Data:
    """Where the value of the first input ends in certain digits, the source sends its middle."""
    digits = np.floor(run.u[:, 0] * 1e4).astype(int) % 16
    return run.u, run.measure(changed(run.u, digits == 7, run.input_middle))


@kind("noise on what is sent", "other inputs", "noise", traceless=True)
def noise_on_what_is_sent(run: Run) -> Data:
    low, high = run.input_range
    noise = 0.04 * (high - low) * run.generator.standard_normal(run.u.shape)
    return run.u, run.measure(run.u + noise)


@kind("inputs after a nonlinear amplifier", "shape of inputs", "other inputs", traceless=True)
def nonlinear_amplifier(run: Run) -> Data:
    """The amplifier of the source is nonlinear: this cannot be told from the device."""
    low, high = run.input_range
    centred = (run.u - run.input_middle) / (high - low)
    return run.u, run.measure(low + (high - low) * ndtr(4 * centred))


@kind(
    "foreign values in the table of inputs, 4 %",
    "foreign rows",
    "gap",
    "other inputs",
)
def foreign_inputs(run: Run) -> Data:
    rows = run.some(0.04)
    return changed(run.u, rows, run.fresh_inputs()[rows]), run.x
