"""Groups of samples that are independent of each other, for jackknives.

The samples of a random design are independent; those of a low-discrepancy design are not, but its
blocks are. Which of the two the inputs are is read off the inputs themselves.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._arrays import to_numpy
from ..basis import DiscreteFamily, ProductBasis, lowest_degrees
from ..samples import Engine, Samples
from ..typing import Floats, Integers

# Groups of independent samples: enough to know their scatter to a fifth.
N_GROUPS = 16
# Samples that a group has at least.
MIN_SAMPLES_PER_GROUP = 4
# Groups where all inputs have a few levels only, so that blocks cannot be recognised.
N_GROUPS_OF_LEVELS = 8
# The largest number of blocks of a design that is looked for.
MAX_BLOCKS = 32
# Samples that a block has at least.
MIN_SAMPLES_PER_BLOCK = 16
# Blocks below which no error bar can be made of them.
MIN_BLOCKS = 4
# Stretches, the groups of a sequence, which are left out one at a time: with 24 of them 95 %
# intervals of totals held in 88 % and more of the data sets of benchmarks/sequences.py, and each is
# still long against the memory.
N_STRETCHES = 24

# Functions of low degree whose sample means tell independent points from low-discrepancy ones.
N_LOW_FUNCTIONS = 24
# Mean square of those means, relative to independent points, below which a design is of low
# discrepancy: Sobol and Halton points stay below 0.1, independent ones scatter around 1 by 0.3.
MAX_LOW_DISCREPANCY_POWER = 0.3
# Points that are sorted by one input to find the blocks of a design.
N_SORTED_POINTS = 16_384
# Variance of the steps from one point of a block to the next in that order, relative to their mean
# squared: at most 0.26 for blocks, with a few rows missing or not, and at least 0.28 for parts of
# blocks and for independent points (1256 designs).
MAX_STEP_VARIANCE = 0.27
# The same, with a margin, for parts of so few samples as blocks have at least: they pass where rows
# come in the order of the design, and not where that order is random.
MAX_STEP_VARIANCE_IN_DESIGN_ORDER = 2 * MAX_STEP_VARIANCE


def count_independent_groups(samples: Samples, engine: Engine) -> int:
    """Return into how many groups of consecutive samples, independent of each other, to cut them.

    That is 16 for independent points, and the number of blocks for a design of independent blocks.
    It is 0 for a single low-discrepancy design, and for fewer than four blocks.
    """
    n = samples.n_samples
    max_groups = max(n // MIN_SAMPLES_PER_GROUP, 2)
    if samples.basis.of_sequences:
        return min(N_STRETCHES, max_groups)
    column = _first_continuous_input(samples.basis)
    if column is None or n < MIN_BLOCKS * MIN_SAMPLES_PER_BLOCK:
        return min(N_GROUPS_OF_LEVELS, max_groups)
    n_blocks = _count_blocks(_rows_sorted_by(column, samples, engine), n)
    if n_blocks:
        return n_blocks if n_blocks >= MIN_BLOCKS else 0
    return 0 if _is_low_discrepancy(samples, engine) else N_GROUPS


def _count_blocks(rows: Integers, n: int) -> int:
    """Return of how many low-discrepancy blocks a design consists; 0 where it has none.

    `rows` are in the order of one input. In it every one of B blocks has one point among about B
    neighbours, so the steps from one point of a block to the next vary little. Several counts can
    pass this test. Where rows come in the order of the design, parts of a block are of low
    discrepancy, too, so the smallest count is the number of blocks. Where their order is random,
    parts of a block are not of low discrepancy, and the largest count is the number of blocks.
    """
    candidates = range(2, min(MAX_BLOCKS, n // MIN_SAMPLES_PER_BLOCK) + 1)
    even_counts = []
    for count in candidates:
        if _step_variance(rows, n, count) < MAX_STEP_VARIANCE:
            even_counts.append(count)
    if not even_counts:
        return 0
    n_short_parts = len(rows) // MIN_SAMPLES_PER_BLOCK
    in_design_order = _step_variance(rows, n, n_short_parts) < MAX_STEP_VARIANCE_IN_DESIGN_ORDER
    return min(even_counts) if in_design_order else max(even_counts)


def cut_into_groups(samples: Samples, n_groups: int) -> Integers:
    """Return the rows at which about `n_groups` groups begin, and the number of samples.

    Half of the groups are one half of the samples. They do not cross from one run to the next,
    unless there are so many runs that several make a group.
    """
    n = samples.n_samples
    run_starts = [0] if samples.runs is None else samples.runs.tolist()
    if len(run_starts) >= n_groups:
        first_runs = [len(run_starts) * group // n_groups for group in range(n_groups)]
        return np.array([*(run_starts[run] for run in first_runs), n])
    edges = list[int]()
    for start, stop in pairwise([*run_starts, n]):
        length = stop - start
        n_cuts = max(round(n_groups * length / n), 1)
        edges += [start + length * cut // n_cuts for cut in range(n_cuts)]
    return np.array([*edges, n])


def _first_continuous_input(basis: ProductBasis) -> int | None:
    """Return the number of the first input that takes more than a few levels; None without one."""
    for column, family in enumerate(basis.families):
        if not isinstance(family, DiscreteFamily):
            return column
    return None


def _rows_sorted_by(column: int, samples: Samples, engine: Engine) -> Integers:
    """Return the rows with the smallest values of one input, in the order of those values."""
    fraction = min(N_SORTED_POINTS / samples.n_samples, 1.0)
    largest = float(samples.basis.families[column].quantile(np.array([fraction]))[0])
    small_values = engine.fold(samples, partial(_rows_below, column=column, largest=largest))
    rows = np.concatenate([part.rows for part in small_values])
    values = np.concatenate([part.values for part in small_values])
    return np.asarray(rows[np.argsort(values)])


class _SmallValues(NamedTuple):
    """The rows in which one input is small, and its values there."""

    rows: Integers
    values: Floats


def _rows_below(
    samples: Samples, start: int, stop: int, *, column: int, largest: float
) -> list[_SmallValues]:
    """Return which of some rows have a small value of one input, as a list of one item."""
    u = to_numpy(samples.u.read(start, stop)[:, column])
    rows = np.flatnonzero(u <= largest)
    return [_SmallValues(rows + samples.first_row + start, u[rows])]


def _step_variance(rows: Integers, n: int, n_groups: int) -> float:
    """Return the variance of the steps between points of one group, relative to their mean².

    `rows` are in the order of an input; the steps are counted in points of all groups.
    """
    group = (rows * n_groups // n).astype(np.int16)  # short numbers are sorted many times as fast
    order = np.argsort(group, kind="stable")
    within_group = np.diff(group[order]) == 0
    steps = np.diff(order)[within_group]
    return float(np.var(steps)) / n_groups**2


def _is_low_discrepancy(samples: Samples, engine: Engine) -> bool:
    """Whether means of low-degree functions are too small for independent points."""
    low_functions = lowest_degrees(samples.basis, N_LOW_FUNCTIONS)
    sums, powers = engine.fold(samples, partial(_low_sums, basis=low_functions))
    if len(low_functions) <= 1:
        return False
    relative_power = float(np.mean(sums[1:] ** 2 / powers[1:]))
    return relative_power < MAX_LOW_DISCREPANCY_POWER


def _low_sums(samples: Samples, start: int, stop: int, *, basis: ProductBasis) -> Floats:
    """Return the sums of y and of y² over some rows, with weights w and w²: (2, terms)."""
    u = samples.inputs(start, stop)
    weights = samples.sample_weight(start, stop)
    squared_weights = None if weights is None else weights**2
    sums = basis.sum_over_samples(u, weights)
    powers = basis.sum_over_samples(u, squared_weights, power=2)
    return np.array([sums, powers])
