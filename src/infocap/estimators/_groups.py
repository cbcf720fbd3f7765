"""Groups of samples that are left out one at a time (jackknife), and the order of the rows.

Groups are stretches of the rows. The blocks of a design need not be known: what a fit leaves of the
readouts scatters like independent samples whatever the design, and sixteen stretches gave the same
error bars as the eight blocks of the default design (docs/estimators.md). Only where the rows are
sorted by the inputs is a stretch no fair sample of them; then every row belongs to a random group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from .._arrays import to_numpy
from ..basis import DiscreteFamily, ProductBasis, lowest_degrees
from ..kernels import SMALLEST_DIVISOR, AddableSums
from ..samples import Engine, Samples
from ..typing import Floats, Integers

# Groups of samples: enough to know their scatter to a fifth.
N_GROUPS = 16
# Samples that a group has at least.
MIN_SAMPLES_PER_GROUP = 4
# Stretches, the groups of a sequence, which are left out one at a time: with 24 of them 95 %
# intervals of totals held in 88 % and more of the data sets of benchmarks/sequences.py, and each is
# still long against the memory.
N_STRETCHES = 24

# Functions of low degree whose sums over parts of the rows tell in which order the inputs come.
N_LOW_FUNCTIONS = 24
# Parts of the rows in each group whose sums are compared.
PARTS_PER_GROUP = 2
# Scatter of the sum of any of these functions between groups, relative to independent samples,
# above which the rows are sorted by the inputs. Independent samples scatter by 0.94 ± 0.34 and
# exceed 3 in one of 40,000 cases; rows sorted by an input scatter by the samples in a group.
MAX_SCATTER_OF_UNSORTED = 3.0
# Samples per function from which on it does not matter whether the inputs are a single net.
MAX_SAMPLES_PER_FUNCTION_OF_NET = 5

# Rows, at equal distances, whose inputs make up the fingerprint of a data set.
N_FINGERPRINT_ROWS = 16_384
# The multipliers and shifts of the hash splitmix64, which turns a number into a random one.
SPLITMIX_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
SPLITMIX_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
SPLITMIX_LAST_SHIFT = np.uint64(31)


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group of the samples each row belongs to."""

    # Where the groups begin, and the number of samples, (groups + 1,). Half of the groups are the
    # first half of the samples.
    edges: Integers
    # The group of each row where groups are random, (samples,). None: they are stretches.
    of_row: Integers | None = None

    def label(self, samples: Samples) -> Samples:
        """Return the same samples, which know the random groups of their rows."""
        return replace(samples, group_of_row=self.of_row)


@dataclass(frozen=True)
class InputOrder:
    """What the inputs tell about the order of the rows."""

    is_sorted: bool  # by the inputs, so that a stretch of rows is no fair sample of them
    # The rows are one Sobol net or Latin hypercube, not several blocks. False from
    # `MAX_SAMPLES_PER_FUNCTION_OF_NET` on.
    is_single_net: bool
    fingerprint: str  # the same for the same inputs in the same order


def choose_groups(samples: Samples, order: InputOrder | None) -> Groups:
    """Cut the rows into stretches, or into random groups where they are sorted by the inputs.

    The random groups depend on the number of samples alone, so they are the same for two devices
    that were measured at the same inputs. Rows of sequences have no `order`.
    """
    edges = cut_into_groups(samples, count_groups(samples))
    if order is None or not order.is_sorted:
        return Groups(edges)
    of_row = np.repeat(np.arange(len(edges) - 1, dtype=np.int8), np.diff(edges))
    np.random.default_rng(0).shuffle(of_row)
    return Groups(edges, of_row)


def count_groups(samples: Samples) -> int:
    """Return the number of groups: 16, or 24 stretches of a sequence; fewer for few samples."""
    n_groups = N_STRETCHES if samples.basis.of_sequences else N_GROUPS
    return min(n_groups, max(samples.n_samples // MIN_SAMPLES_PER_GROUP, 2))


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


def find_input_order(samples: Samples, engine: Engine) -> InputOrder:
    """Go once through the inputs, and tell in which order they come."""
    n = samples.n_samples
    n_parts = min(PARTS_PER_GROUP * count_groups(samples), n)
    low_functions = lowest_degrees(samples.basis, N_LOW_FUNCTIONS)
    sum_parts = partial(
        _sum_parts,
        edges=n * np.arange(n_parts + 1) // n_parts,
        low_functions=low_functions,
        cells=_cells_of_a_net(samples),
    )
    sums: _InputSums = engine.fold(samples, sum_parts)
    fingerprint = f"{n}-{int(sums.hashes[0]):016x}"
    is_single_net = len(sums.rows_in_cells) > 0 and bool(np.all(sums.rows_in_cells == 1))
    if len(low_functions) < 2:  # the constant alone tells nothing
        return InputOrder(is_sorted=False, is_single_net=is_single_net, fingerprint=fingerprint)
    power = np.maximum(sums.squares[:, 1:].sum(axis=0), SMALLEST_DIVISOR)
    relative_sums = sums.values[:, 1:] / np.sqrt(power)
    return InputOrder(_is_sorted(relative_sums), is_single_net, fingerprint)


@dataclass(frozen=True, eq=False)
class _Cells:
    """N cells of equal probability along an input. A net of N points has one point in each."""

    input_number: int
    inner_edges: Floats  # (N - 1,)


def _cells_of_a_net(samples: Samples) -> list[_Cells]:
    """Return the cells of all continuous inputs, which tell whether the inputs are a single net.

    None are returned where that does not matter.
    """
    n = samples.n_samples
    is_weighted = samples.sqrt_sample_weight is not None
    if is_weighted or n >= MAX_SAMPLES_PER_FUNCTION_OF_NET * len(samples.basis):
        return []
    probabilities = np.arange(1, n) / n
    cells = []
    for number, family in enumerate(samples.basis.families):
        if not isinstance(family, DiscreteFamily):
            cells.append(_Cells(number, family.quantile(probabilities)))
    return cells


def _is_sorted(relative_sums: Floats) -> bool:
    """Whether a sum of low functions (parts, functions) scatters too much between groups of rows.

    The sums are relative to those over all rows of independent samples.
    """
    first_parts = np.arange(0, len(relative_sums), PARTS_PER_GROUP)
    of_groups = np.add.reduceat(relative_sums, first_parts)
    deviations = of_groups - of_groups.mean(axis=0)
    return float(np.max(np.sum(deviations**2, axis=0))) > MAX_SCATTER_OF_UNSORTED


@dataclass(frozen=True, eq=False)
class _InputSums(AddableSums):
    """Sums of low functions over parts of the rows, and the sum of hashes of inputs."""

    values: Floats  # of w y, with the weights w of samples, (parts, functions)
    squares: Floats  # of w² y², (parts, functions)
    hashes: Integers  # modulo 2^64, (1,)
    rows_in_cells: Integers  # how many rows lie in each cell of each input, (all cells,)


def _sum_parts(
    samples: Samples,
    start: int,
    stop: int,
    *,
    edges: Integers,
    low_functions: ProductBasis,
    cells: list[_Cells],
) -> _InputSums:
    """Return the sums over some rows, by the part of the data set that they are in."""
    u = samples.inputs(start, stop)
    weights = samples.sample_weight(start, stop)
    squared_weights = None if weights is None else weights**2
    values = np.zeros((len(edges) - 1, len(low_functions)))
    squares = np.zeros_like(values)
    cuts = np.clip(edges - samples.first_row - start, 0, stop - start).tolist()
    for part, (first, last) in enumerate(pairwise(cuts)):
        if first == last:
            continue
        rows = slice(first, last)
        part_of_weights = None if weights is None else weights[rows]
        part_of_squares = None if squared_weights is None else squared_weights[rows]
        values[part] = low_functions.sum_over_samples(u[rows, :], part_of_weights)
        squares[part] = low_functions.sum_over_samples(u[rows, :], part_of_squares, power=2)
    hashes = _sum_of_hashes(u, samples.first_row + start, edges[-1])
    return _InputSums(values, squares, hashes, _rows_in_cells(u, cells))


def _rows_in_cells(u: Floats, cells: list[_Cells]) -> Integers:
    """Return how many rows lie in each cell of each input, (all cells,)."""
    counts = [np.zeros(0, dtype=np.int64)]
    for of_input in cells:
        column = to_numpy(u[:, of_input.input_number])
        cell_of_row = np.searchsorted(of_input.inner_edges, column)
        counts.append(np.bincount(cell_of_row, minlength=len(of_input.inner_edges) + 1))
    return np.concatenate(counts)


def _sum_of_hashes(u: Floats, first_row: int, n_samples: int) -> Integers:
    """Return the sum of hashes of inputs and row numbers, modulo 2^64, over chosen rows.

    A sum does not depend on how the rows are shared out among workers.
    """
    distance = max(int(n_samples) // N_FINGERPRINT_ROWS, 1)
    first = -first_row % distance
    inputs = np.ascontiguousarray(to_numpy(u[first::distance, :]))
    rows = first_row + first + distance * np.arange(len(inputs), dtype=np.uint64)
    hashes = _splitmix(rows)
    for column in (inputs + 0.0).T:  # -0.0 becomes 0.0
        hashes = _splitmix(hashes ^ np.ascontiguousarray(column).view(np.uint64))
    return hashes.sum(keepdims=True, dtype=np.uint64)


def _splitmix(numbers: Integers) -> Integers:
    """Return a random number of 64 bits for each number (Steele, Lea and Flood, OOPSLA 2014)."""
    hashes = numbers + SPLITMIX_INCREMENT
    for shift, multiplier in SPLITMIX_STEPS:
        hashes = (hashes ^ (hashes >> shift)) * multiplier
    return np.asarray(hashes ^ (hashes >> SPLITMIX_LAST_SHIFT))
