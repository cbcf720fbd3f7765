"""A fourth part of mistakes, unseen while checks are developed: what was sent, and what was written down of it.

They were written by somebody who has not read the checks, nor what they find. The rule for mistakes without a trace
stands in `_mistakes_fourth_part_of_rows`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.signal import lfilter
from scipy.stats import qmc

from _mistakes_devices import FOURTH, Array, Run
from _mistakes_kinds import WITH_MEMORY, Data, before, changed, kind
from _mistakes_second_part import parts_of

fourth_kind = partial(kind, part=FOURTH)

# Probabilities of inputs keep this distance from 0 and 1, where a normal input is infinite.
SMALLEST_PROBABILITY = 1e-6


def inputs_at(run: Run, probability: Array) -> Array:
    """Return the inputs whose cumulative probabilities are given."""
    inside = np.clip(probability, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
    return run.device.inputs_at(inside)


# ---------------------------------------------------------------------------------------------
# The source remembers
# ---------------------------------------------------------------------------------------------


# No trace with memory: a fixed function of this and the last input is added to the readouts, without noise.
@fourth_kind(
    "converter of the source glitches when its top bit changes",
    "memory",
    "glitches",
    "other inputs",
    traceless_with_memory=True,
)
def top_bit_glitches(run: Run) -> Data:
    """Where the first input crosses its middle, a spike of the converter reaches all readouts."""
    is_high = run.u[:, 0] > run.input_middle
    crossed = is_high != before(is_high)
    crossed[0] = False
    spike = 1.2 * run.spread * run.generator.standard_normal(run.n_channels)
    return run.u, changed(run.x, crossed, run.x[crossed] + spike)


# No trace with memory: the device sees a fixed function of this and earlier inputs, like one with a filter before it.
@fourth_kind(
    "source behind a capacitor",
    "memory",
    "other inputs",
    traceless_with_memory=True,
)
def source_behind_a_capacitor(run: Run) -> Data:
    """The cable of the source is coupled by a capacitor, which takes a mean of some five rows away."""
    centred = run.u - run.input_middle
    return run.u, run.measure(run.input_middle + lfilter([0.9, -0.9], [1, -0.8], centred, axis=0))


# No trace with memory: the device sees a fixed function of this and earlier inputs, which it forgets.
@fourth_kind(
    "liquid crystal falls more slowly than it rises",
    "memory",
    "other inputs",
    "late input",
    traceless_with_memory=True,
)
def falls_more_slowly(run: Run) -> Data:
    """Rising inputs arrive wholly, but of falling ones only a half of the step."""
    sent = run.u.copy()
    for row in range(1, run.n):
        step = run.u[row] - sent[row - 1]
        sent[row] = sent[row - 1] + np.where(step > 0, step, 0.5 * step)
    return run.u, run.measure(sent)


# ---------------------------------------------------------------------------------------------
# What was written down
# ---------------------------------------------------------------------------------------------


# No trace: inputs of one law that are named in another order are those of a device with other sockets.
@fourth_kind(
    "sockets of the sources in another order",
    "other inputs",
    min_inputs=2,
    traceless=True,
)
def sockets_in_another_order(run: Run) -> Data:
    """Columns of the inputs are named by the software's sockets, which are numbered from the other end."""
    return run.u[:, ::-1].copy(), run.x


@fourth_kind(
    "inputs scaled to their range in every dozen",
    "domain",
    "shape of inputs",
    "batches",
    "period",
    "other inputs",
    "noise",
    with_memory=("inputs depend",),
)
def inputs_scaled_in_every_dozen(run: Run) -> Data:
    """A preprocessing step maps smallest and largest input of twelve rows to the ends of the range."""
    low, high = run.input_range
    u = run.u.copy()
    for part in parts_of(run, 12):
        smallest = u[part].min(axis=0)
        width = np.ptp(u[part], axis=0) + 1e-12
        u[part] = low + (high - low) * (u[part] - smallest) / width
    return u, run.x


@fourth_kind(
    "messages lost leave zeros in the inputs",
    "gap",
    "other inputs",
    "codes",
    "shape of inputs",
    "repeats",
    "domain",
    "foreign rows",
    "correlated inputs",
)
def zeros_in_the_inputs(run: Run) -> Data:
    """The monitor of the source did not answer in 6 % of the rows, and an empty cell became zero."""
    return changed(run.u, run.some(0.06), 0.0), run.x


@fourth_kind(
    "inputs logged every fourth row",
    "other inputs",
    "interpolated",
    "shape of inputs",
    "period",
    "foreign rows",
    "gap",
    "order of inputs",
    "noise",
    "domain",
    with_memory=("inputs depend",),
)
def inputs_logged_every_fourth_row(run: Run) -> Data:
    """The log of the source is slow, and straight lines between its entries fill the table of inputs."""
    logged = np.arange(0, run.n, 4)
    rows = np.arange(run.n)
    columns = [np.interp(rows, logged, column[logged]) for column in run.u.T]
    return np.column_stack(columns), run.x


@fourth_kind(
    "a column of inputs holds a part of another",
    "correlated inputs",
    "shape of inputs",
    "other inputs",
    "domain",
    min_inputs=2,
)
def a_column_holds_a_part_of_another(run: Run) -> Data:
    """The last column of the inputs is that of a meter behind a coupler, which sees a quarter of the first source."""
    u = run.u.copy()
    u[:, -1] = 0.25 * u[:, 0] + 0.75 * u[:, -1]
    return u, run.x


@fourth_kind(
    "inputs ride on a slow swell",
    "shape of inputs",
    "domain",
    "inputs depend",
    "order of inputs",
    "correlated inputs",
    "period",
)
def inputs_ride_on_a_swell(run: Run) -> Data:
    """A generator that somebody forgot is added to the source; what was sent in sum is written down."""
    low, high = run.input_range
    swell = np.sin(2 * np.pi * np.arange(run.n) / 61.3)[:, None]
    u = run.driven_by(0.84) + 0.08 * (high - low) * swell
    return u, run.measure(u)


@fourth_kind(
    "two inputs from digits of one number",
    "correlated inputs",
    "inputs depend",
    min_inputs=2,
)
def digits_of_one_number(run: Run) -> Data:
    """The last input is made of the later digits of the number that made the first, so one follows from the other."""
    probability = run.generator.random(run.u.shape)
    probability[:, -1] = 3 * probability[:, 0] % 1
    u = inputs_at(run, probability)
    return u, run.measure(u)


@fourth_kind(
    "heater drags the supply down",
    "period",
    "other inputs",
    "clipped",
    "response",
    "noise",
)
def supply_sags(run: Run) -> Data:
    """Every 30 rows a heater switches on for ten, and the supply cuts the inputs to three fifths of their range."""
    low, high = run.input_range
    margin = 0.2 * (high - low)
    is_heating = np.arange(run.n) % 30 < 10
    cut = np.clip(run.u, low + margin, high - margin)
    return run.u, run.measure(changed(run.u, is_heating, cut[is_heating]))


# ---------------------------------------------------------------------------------------------
# Sequences of devices with memory
# ---------------------------------------------------------------------------------------------


@fourth_kind(
    "one generator for two sources, a row apart",
    "inputs depend",
    "correlated inputs",
    "order of inputs",
    devices=WITH_MEMORY,
    min_inputs=2,
)
def one_generator_a_row_apart(run: Run) -> Data:
    """The last source gets the numbers of the first a row later, through a cable that is too long."""
    u = run.u.copy()
    u[:, -1] = before(u[:, 0])
    return u, run.measure(u)


@fourth_kind("Sobol points as a sequence", "inputs depend", "order of inputs", devices=WITH_MEMORY)
def sobol_points_as_a_sequence(run: Run) -> Data:
    """Points that fill the cube evenly are sent in their own order to a device that remembers."""
    power = int(np.ceil(np.log2(run.n)))
    points = qmc.Sobol(run.n_inputs, rng=run.generator).random_base2(power)[: run.n]
    u = inputs_at(run, points)
    return u, run.measure(u)


@fourth_kind(
    "chaotic circuit as a source of random numbers",
    "inputs depend",
    "order of inputs",
    devices=WITH_MEMORY,
)
def chaotic_source(run: Run) -> Data:
    """The logistic map has the right distribution after a transformation, but each number gives the next."""
    state = run.generator.uniform(0.1, 0.9, run.n_inputs)
    probability = np.empty(run.u.shape)
    for row in range(run.n):
        state = np.clip(4 * state * (1 - state), 1e-9, 1 - 1e-9)
        probability[row] = 2 / np.pi * np.arcsin(np.sqrt(state))
    u = inputs_at(run, probability)
    return u, run.measure(u)


@fourth_kind(
    "every three inputs cover the range once",
    "inputs depend",
    "order of inputs",
    devices=WITH_MEMORY,
)
def every_three_inputs_cover_the_range(run: Run) -> Data:
    """The plan was stratified in batches of three, so that the last of a batch follows from the others."""
    n_batches = -(-run.n // 3)
    order = run.generator.random((n_batches, 3, run.n_inputs)).argsort(axis=1)
    strata = order.reshape(-1, run.n_inputs)[: run.n]
    u = inputs_at(run, (strata + run.generator.random(run.u.shape)) / 3)
    return u, run.measure(u)
