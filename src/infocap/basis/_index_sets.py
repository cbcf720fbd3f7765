"""Index sets: which products of one-dimensional functions a basis holds.

Function number i of input 1, times function j of input 2, and so on, has the index (i, j, ...). A
set is an array of such rows, (terms, inputs). Two kinds of set are built in: "total" limits the sum
of the degrees of the factors, "hyperbolic" the product of degree + 1 (the hyperbolic cross). Both
limit a quantity that starts from the constant and only grows when a further input joins; here it is
called the size of an index. So a set is made input by input, and an incomplete index that has
become too large is dropped at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._validation import require_one_of
from ..errors import ParameterError
from ..typing import ArrayLike, Integers

# Functions of a basis. An estimate with 30 readouts keeps about 1.5 kB per function: 7.5 GB for so
# many.
MAX_BASIS_FUNCTIONS = 5_000_000
# Candidates that are listed in order to choose a few thousand further functions from them.
MAX_CANDIDATES = 200_000
# Sizes of indices (the total degree, or the product of degree + 1): counting takes one array of
# this length.
MAX_INDEX_SIZE = 1_000_000
# Counting stops here, because it is of no interest how many more functions there would be.
MAX_COUNT = 10**12
# Indices are kept as 16-bit numbers.
MAX_INDEX = 32_767


@dataclass(frozen=True)
class _SizeLimit:
    """How the size of an index grows from input to input, and how large it may become."""

    join: np.ufunc  # of the size so far and the size of a factor: add or multiply
    start: int  # the size of the constant function
    factor_sizes: list[Integers]  # of each input: the sizes of its functions, ascending
    max_size: int

    @property
    def is_sum(self) -> bool:
        return self.join is np.add

    def room(self, sizes: Integers) -> Integers:
        """Return the largest size that a further factor may have, for indices of these sizes."""
        if self.is_sum:
            return self.max_size - sizes
        return self.max_size // sizes


def indices_of(
    families: Sequence[Any],
    max_degree: int,
    index_set: str = "total",
    max_interactions: int | None = None,
    *,
    limit: int = MAX_BASIS_FUNCTIONS,
) -> Integers:
    """Return the indices (terms, inputs) of a set, by total degree and then lexicographically.

    Row 0 is the constant. The set is counted first and refused if it has more than `limit`
    functions.
    """
    count = count_indices(families, max_degree, index_set, max_interactions)
    remedy = "lower `max_degree`, or cut with `max_interactions` or `index_set='hyperbolic'`"
    refuse_too_many(count, remedy, limit)
    degrees = [family.degrees_up_to(max_degree) for family in families]
    size_limit = _size_limit(degrees, max_degree, index_set)
    return sort_rows(families, _list_indices(degrees, size_limit, max_interactions))


def count_indices(
    families: Sequence[Any],
    max_degree: int,
    index_set: str = "total",
    max_interactions: int | None = None,
) -> int:
    """Return how many indices a set has, without making it.

    Where it has more than MAX_COUNT, the answer is some number above that.
    """
    require_one_of("index_set", index_set, ("total", "hyperbolic"))
    degrees = [family.degrees_up_to(max_degree) for family in families]
    size_limit = _size_limit(degrees, max_degree, index_set)
    return int(_count_by_size(degrees, size_limit, max_interactions).sum())


def counts_by_degree(
    families: Sequence[Any], max_degree: int, max_interactions: int | None = None
) -> Integers:
    """Return how many products of functions have total degree 0, 1, ..., `max_degree`."""
    degrees = [family.degrees_up_to(max_degree) for family in families]
    size_limit = _SizeLimit(np.add, 0, degrees, max_degree)
    return _count_by_size(degrees, size_limit, max_interactions)


def refuse_too_many(count: int, remedy: str, limit: int = MAX_BASIS_FUNCTIONS) -> None:
    """Refuse a basis of more functions than can be worked with."""
    if count <= limit:
        return
    number = f"{count:,}" if count < MAX_COUNT else f"more than {MAX_COUNT:,}"
    raise ParameterError(
        f"the basis would hold {number} functions (the limit is {limit:,}); {remedy}."
    )


def explicit_set(families: Sequence[Any], indices: ArrayLike) -> Integers:
    """Check a user's own list of indices, and return it with the constant, sorted."""
    rows = np.asarray(indices)
    is_table = rows.ndim == 2 and rows.shape[1] == len(families)
    if not is_table or not np.issubdtype(rows.dtype, np.integer):
        raise ParameterError(
            f"indices must be whole numbers (terms, {len(families)}); got {rows.dtype} "
            f"{rows.shape}."
        )
    lowest = rows.min(initial=0)
    highest = rows.max(initial=0)
    if lowest < 0 or highest > MAX_INDEX:
        raise ParameterError(
            f"indices run from {lowest} to {highest}; degrees are between 0 and {MAX_INDEX}."
        )
    constant = np.zeros((1, len(families)), int)
    rows = np.unique(np.vstack([constant, rows]), axis=0)
    for family, column in zip(families, rows.T, strict=True):
        degrees = family.degrees(int(column.max()) + 1)
        # This refuses degrees that the family does not have.
        family.degrees_up_to(int(degrees[-1]), strict=True)
    return sort_rows(families, rows.astype(np.int16))


def total_degrees(families: Sequence[Any], rows: Integers) -> Integers:
    """Return the total degree of each row of indices."""
    total = np.zeros(len(rows), dtype=int)
    for family, column in zip(families, rows.T, strict=True):
        degree_of_function = family.degrees(int(column.max(initial=0)) + 1)
        total += degree_of_function[column]
    return total


def sort_rows(families: Sequence[Any], rows: Integers) -> Integers:
    """Return the rows by total degree, then lexicographically with the first input leading."""
    order = np.lexsort((*rows.T[::-1], total_degrees(families, rows)))
    return np.ascontiguousarray(rows[order])


def _size_limit(degrees: list[Integers], max_degree: int, index_set: str) -> _SizeLimit:
    """Return what a kind of set limits.

    `degrees` holds for each input the degrees of its functions.
    """
    if index_set == "total":
        largest_possible = sum(int(of_input[-1]) for of_input in degrees)
        size_limit = _SizeLimit(np.add, 0, degrees, min(max_degree, largest_possible))
    else:
        factor_sizes = [of_input + 1 for of_input in degrees]
        largest_possible = prod(int(sizes[-1]) for sizes in factor_sizes)
        max_size = min(max_degree + 1, largest_possible)
        size_limit = _SizeLimit(np.multiply, 1, factor_sizes, max_size)
    if size_limit.max_size > MAX_INDEX_SIZE:
        raise ParameterError(
            f"`max_degree={max_degree}` is too large; give less than {MAX_INDEX_SIZE:,}."
        )
    return size_limit


def _list_indices(
    degrees: list[Integers], size_limit: _SizeLimit, max_interactions: int | None
) -> Integers:
    """Return all indices (terms, inputs) within the limits, in the order in which they are made.

    The incomplete indices of the first k inputs are kept as a tree: each is an incomplete index of
    k - 1 inputs and one more number. So memory grows as the set does and not as the full tensor
    product of all functions.
    """
    n_inputs = len(degrees)
    most_joined = n_inputs if max_interactions is None else max_interactions
    sizes = np.full(1, size_limit.start)
    interactions = np.zeros(1, int)
    parents_of_inputs: list[Integers] = []  # the incomplete index that is continued
    numbers_of_inputs: list[Integers] = []  # the function of this input that continues it
    for degrees_of_input, factor_sizes in zip(degrees, size_limit.factor_sizes, strict=True):
        # The sizes of an input's functions ascend, so those that still fit are the first ones.
        n_fitting = np.searchsorted(factor_sizes, size_limit.room(sizes), side="right")
        n_children = np.where(interactions == most_joined, 1, n_fitting)
        parent = np.repeat(np.arange(len(sizes)), n_children)
        first_child = np.cumsum(n_children) - n_children
        number = np.arange(len(parent)) - np.repeat(first_child, n_children)
        parents_of_inputs.append(parent.astype(np.int32))
        numbers_of_inputs.append(number.astype(np.int16))
        sizes = size_limit.join(sizes[parent], factor_sizes[number])
        interactions = interactions[parent] + (degrees_of_input[number] > 0)
    rows = np.empty((len(sizes), n_inputs), np.int16)
    node = np.arange(len(sizes))
    for column in reversed(range(n_inputs)):  # from the leaves back to the root
        rows[:, column] = numbers_of_inputs[column][node]
        node = parents_of_inputs[column][node]
    return rows


def _count_by_size(
    degrees: list[Integers], size_limit: _SizeLimit, max_interactions: int | None
) -> Integers:
    """Return how many indices of each size there are.

    Where all together are more than MAX_COUNT, the answer is MAX_COUNT of each.

    Incomplete indices are counted by interactions (rows; a single row where these have no limit)
    and by size (columns). Each input has equally many functions of every degree from 1 to its
    highest.
    """
    most_joined = len(degrees) if max_interactions is None else max_interactions
    limited = most_joined < len(degrees)
    n_sizes = size_limit.max_size + 1
    counts = np.zeros((most_joined + 1 if limited else 1, n_sizes), dtype=np.int64)
    counts[0, size_limit.start] = 1
    for degrees_of_input, factor_sizes in zip(degrees, size_limit.factor_sizes, strict=True):
        largest = int(factor_sizes[-1])
        joined = np.zeros_like(counts)  # indices in which this input takes part
        if size_limit.is_sum:
            # A further factor adds 1 to `largest`, so joined[s] = counts[s - largest] + ... +
            # counts[s - 1], a difference of two running sums.
            running = np.cumsum(counts, axis=1)
            joined[:, 1:] = running[:, :-1]
            joined[:, largest + 1 :] -= running[:, : size_limit.max_size - largest]
        else:
            # A further factor multiplies the size by 2 to `largest`.
            for size in range(2, largest + 1):
                n_multiples = -(-n_sizes // size)
                joined[:, ::size] += counts[:, :n_multiples]
        joined *= np.count_nonzero(degrees_of_input == 1)
        if limited:
            counts[1:] += joined[:-1]
        else:
            counts += joined
        if counts.sum() > MAX_COUNT:
            return np.full(n_sizes, MAX_COUNT)
    return counts.sum(axis=0)
