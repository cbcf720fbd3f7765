"""How to evaluate all products of a basis with few and large multiplications.

The paper's basis has 1287 functions of 5 inputs, each a product of up to 5 one-dimensional
functions. Multiplying them out one by one would read and write memory 5 times per function. Instead
the inputs are cut into two halves, and every function is *one* product: a left factor, which
depends on the first 2 inputs, times a right factor, which depends on the other 3. There
are only a few distinct factors (45 on the left and 165 on the right), made in the same way by
cutting each half again, down to single inputs:

    u (samples, inputs) -> one-dimensional functions (functions, samples)  `_one_dimensional`
                        -> left factors, right factors (factors, samples)  `FactorTable.values`
                        -> products (terms, samples)                       `ProductEvaluator.tiles`

The functions are then sorted by their left and right factors. Wherever some neighbouring left
factors all meet the same range of neighbouring right factors, the products are one broadcast
multiplication, (lefts, 1, samples) x (1, rights, samples): such pairs are called a rectangle. With
the total-degree set there is one per degree on the left. So tiles come in an order of their own,
and whoever uses them puts the results back into the order of the basis.

A tile holds some functions at some samples. On the processor it is small enough to stay in cache
until it has been multiplied with the readouts; on a graphics card it is as large as fits.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import ceil
from operator import imul
from typing import Any, NamedTuple

import numpy as np

from .._arrays import (
    array_namespace,
    contiguous,
    is_on_host,
    multiply_function,
    take_rows,
    to_library_of,
)
from ..typing import Integers
from ._family import Family


@dataclass(frozen=True)
class TileSizes:
    """How much to evaluate at a time."""

    max_numbers: int  # functions times samples of a tile
    max_functions: int
    min_samples: int  # the numbers of samples are multiples of this
    max_samples: int
    equal_heights: bool  # whether all tiles have about equally many functions

    def height(self, n_functions: int) -> int:
        """Return how many of so many functions to take at a time."""
        if not self.equal_heights:
            return min(n_functions, self.max_functions)
        n_tiles = ceil(n_functions / self.max_functions)
        return ceil(n_functions / n_tiles)

    def samples(self, n_functions: int) -> int:
        """Return how many samples of so many functions to take at a time."""
        n_samples = self.max_numbers // n_functions
        n_samples -= n_samples % self.min_samples
        return min(max(n_samples, self.min_samples), self.max_samples)


# A tile of 6 MB stays in the processor's cache until it is multiplied. 1000 to 1500 functions at
# 500 to 750 samples are among the fastest shapes of those timed on two kinds of processor, for 72
# and 201 readouts.
HOST_TILES = TileSizes(
    max_numbers=750_000,
    max_functions=1464,
    min_samples=64,
    max_samples=4096,
    equal_heights=True,
)
# To start a multiplication on a graphics card costs more than thousands of numbers, so tiles take
# up to 2.3 GB there; 8448 functions are a multiple of what the 132 processors of an H200 multiply
# in one go.
DEVICE_TILES = TileSizes(
    max_numbers=287_500_000,
    max_functions=8448,
    min_samples=64,
    max_samples=262_144,
    equal_heights=False,
)
# Numbers per rectangle on a device, up to which two gathers and one product per tile take less time
# than one call per rectangle.
MAX_NUMBERS_PER_SMALL_RECTANGLE = 1_000_000
# Matrix products on a graphics card are fastest with a round number of functions: multiples of
# this.
DEVICE_ROW_MULTIPLE = 64

# Buffers that earlier passes have used: fresh memory from the system is slow to touch. One is kept
# for each of up to 16 threads.
_SPARE_BUFFERS: deque[Any] = deque(maxlen=16)


def slices(total: int, step: int) -> Iterator[slice]:
    """Cut the numbers from 0 to `total` into slices of `step`; the last may be shorter."""
    for start, stop in pairwise([*range(0, total, step), total]):
        yield slice(start, stop)


class Tile(NamedTuple):
    """The values of some functions at some samples."""

    functions: slice  # numbered in the order of the tiles
    samples: slice
    # (rows, samples). On a device there may be more rows than functions, because a round number of
    # them is multiplied faster; what is in the last rows has no meaning.
    rows: Any

    @property
    def n_functions(self) -> int:
        """How many functions there are."""
        return int(self.functions.stop - self.functions.start)

    @property
    def values(self) -> Any:
        """The values of the functions alone, (functions, samples)."""
        return self.rows[: self.n_functions, :]


class Workspace:
    """One buffer, from which arrays are cut one after the other.

    It is used again for every chunk of samples.
    """

    def __init__(self, like: Any) -> None:
        self._like = like  # an array, whose library and device the buffer has
        self._buffer = like[:0, 0]
        self._used = 0
        if is_on_host(like):
            with suppress(IndexError):
                self._buffer = _SPARE_BUFFERS.pop()

    def empty(self, rows: int, columns: int) -> Any:
        """Return the next array of this shape; it holds whatever was there before."""
        xp = array_namespace(self._like)
        start = self._used
        self._used += rows * columns
        if self._used > self._buffer.shape[0]:
            # Arrays that were cut from the smaller buffer keep it alive until they are dropped.
            self._buffer = xp.empty((self._used,), dtype=xp.float64, device=self._like.device)
        return xp.reshape(self._buffer[start : self._used], (rows, columns))

    def reset(self) -> None:
        """Let the next array overwrite all those returned so far."""
        self._used = 0

    def keep_for_later(self) -> None:
        """Offer the buffer to later passes; nothing that was cut from it may be used any more."""
        if is_on_host(self._like):
            _SPARE_BUFFERS.append(self._buffer)


class RowNumbers:
    """Numbers of rows of a table.

    They are sent to each device once, because every transfer would be waited for.
    """

    def __init__(self, rows: Integers) -> None:
        self.rows = rows
        self._on_devices: dict[Any, Any] = {}

    def take_from(self, table: Any) -> Any:
        """Return these rows of a table, in its library and on its device."""
        place = type(table), str(table.device)
        if place not in self._on_devices:
            self._on_devices[place] = to_library_of(self.rows, table)
        return take_rows(table, self._on_devices[place])


class _Half(NamedTuple):
    """One half of the inputs, and the distinct indices that the functions have in these inputs."""

    inputs: Integers
    factors: Integers  # distinct rows of indices, the most frequent first, (factors, inputs)
    factor_of_row: Integers  # which of these each function has


def _halves(rows: Integers) -> list[_Half]:
    """Cut the inputs of indices (terms, inputs) into two halves; a single input is one half."""
    n_inputs = rows.shape[1]
    halves = []
    for inputs in np.split(np.arange(n_inputs), [n_inputs // 2]):
        if len(inputs) == 0:
            continue
        factors, factor_of_row, frequencies = np.unique(
            rows[:, inputs], axis=0, return_inverse=True, return_counts=True
        )
        by_frequency = np.argsort(-frequencies, kind="stable")
        rank = np.argsort(by_frequency)
        halves.append(_Half(inputs, factors[by_frequency], rank[factor_of_row.ravel()]))
    return halves


class _Side(NamedTuple):
    """The left or the right factors of some products."""

    factors: "FactorTable | None"  # None for one-dimensional functions
    factor_of_product: RowNumbers  # which row of the values of the factors each product has


class FactorTable:
    """How to evaluate products of functions of some inputs.

    They are left times right factors, which are again such products, down to single inputs.

    Row k of the values is the product with the indices `rows[k]`. `numbers[input, index]` is the
    row of each one-dimensional function in the table of all of them.
    """

    def __init__(self, rows: Integers, numbers: Integers) -> None:
        self._sides: list[_Side] = []
        for half in _halves(rows):
            if len(half.inputs) == 1:
                only_input = half.inputs[0]
                functions = numbers[only_input, rows[:, only_input]]
                self._sides.append(_Side(None, RowNumbers(functions)))
            else:
                factors = FactorTable(half.factors, numbers[half.inputs])
                self._sides.append(_Side(factors, RowNumbers(half.factor_of_row)))

    def values(self, one_dimensional: Any, workspace: Workspace) -> Any:
        """Return the values of all products, (rows, samples).

        `one_dimensional` holds the values of the one-dimensional functions.
        """
        factors_of_products = []
        for side in self._sides:
            factors = one_dimensional
            if side.factors is not None:
                factors = side.factors.values(one_dimensional, workspace)
            if is_on_host(factors):
                rows = side.factor_of_product.rows
                values = workspace.empty(len(rows), factors.shape[1])
                # All rows exist; `clip` only spares a copy, which `np.take` makes to be able to
                # fail.
                np.take(factors, rows, axis=0, out=values, mode="clip")
                factors_of_products.append(values)
            else:
                factors_of_products.append(side.factor_of_product.take_from(factors))
        return reduce(imul, factors_of_products)


class _Rectangle(NamedTuple):
    """All products of neighbouring left factors with neighbouring right factors."""

    rows: slice  # of the tile that they fill
    left: slice
    right: slice


def _cut_into_rectangles(left: Integers, right: Integers) -> list[_Rectangle]:
    """Cut sorted products, given by the numbers of their left and right factors, into rectangles.

    A stripe is one left factor that meets consecutive right factors. Consecutive left factors whose
    stripes cover the same right factors make a rectangle.
    """
    new_left = np.diff(left, prepend=-1) != 0
    gap_on_right = np.diff(right, prepend=-2) != 1
    stripe_start = np.flatnonzero(new_left | gap_on_right)
    stripe_length = np.diff(stripe_start, append=len(left))
    stripe_left = left[stripe_start]
    stripe_right = right[stripe_start]

    next_left = np.diff(stripe_left) == 1
    same_right = (np.diff(stripe_right) == 0) & (np.diff(stripe_length) == 0)
    rectangle_start = np.flatnonzero(~(next_left & same_right)) + 1
    rectangles = []
    for first, stop in pairwise([0, *rectangle_start.tolist(), len(stripe_start)]):
        n_left = stop - first
        n_right = int(stripe_length[first])
        row = int(stripe_start[first])
        left_factor = int(stripe_left[first])
        right_factor = int(stripe_right[first])
        rectangle = _Rectangle(
            rows=slice(row, row + n_left * n_right),
            left=slice(left_factor, left_factor + n_left),
            right=slice(right_factor, right_factor + n_right),
        )
        rectangles.append(rectangle)
    return rectangles


class _Batch(NamedTuple):
    """The functions of a tile, and how to make them: by gathering factors, or by rectangles."""

    functions: slice  # numbered in the order of the tiles
    left: RowNumbers
    right: RowNumbers
    rectangles: list[_Rectangle]


class _SharedFamily(NamedTuple):
    """Inputs of one family, whose one-dimensional functions are evaluated together."""

    family: Family
    inputs: list[int]
    n_functions: int  # the most that one of these inputs needs


class ProductEvaluator:
    """A basis as products of left and right factors; the idea stands at the top of this file.

    Tiles come in an order of their own: number k in this order is function `order[k]` of the basis,
    and function l of the basis is number `row_of.rows[l]`.
    """

    def __init__(self, families: Sequence[Family], rows: Integers, sizes: TileSizes) -> None:
        self.sizes = sizes
        self.n_terms = len(rows)
        self._shared_families = _group_inputs(families, rows)
        numbers = self._number_functions(len(families), int(rows.max()) + 1)
        if len(families) == 1:  # then the left factor is the constant
            rows = np.hstack([np.zeros_like(rows), rows])
            numbers = np.vstack([numbers, numbers])
        left_half, right_half = _halves(rows)
        self._left = FactorTable(left_half.factors, numbers[left_half.inputs])
        self._right = FactorTable(right_half.factors, numbers[right_half.inputs])

        self.order = np.lexsort((right_half.factor_of_row, left_half.factor_of_row))
        self.row_of = RowNumbers(np.argsort(self.order))
        self._height = sizes.height(self.n_terms)
        self._max_samples = sizes.samples(self._height)
        self._batches = []
        for functions in slices(self.n_terms, self._height):
            left = left_half.factor_of_row[self.order[functions]]
            right = right_half.factor_of_row[self.order[functions]]
            batch = _Batch(
                functions=functions,
                left=RowNumbers(left),
                right=RowNumbers(right),
                rectangles=_cut_into_rectangles(left, right),
            )
            self._batches.append(batch)

    def tiles(self, u: Any) -> Iterator[Tile]:
        """Yield the values of all functions, tile by tile.

        Each tile is overwritten by the next: use it, do not keep it.
        """
        n_samples = u.shape[0]
        chunk = max(min(self._max_samples, n_samples), 1)
        by_gathering = self._is_gathering_faster(u, chunk)
        workspace = Workspace(u)
        for samples in slices(n_samples, chunk):
            workspace.reset()
            one_dimensional = self._one_dimensional(u[samples, :])
            left = self._left.values(one_dimensional, workspace)
            right = self._right.values(one_dimensional, workspace)
            if by_gathering:
                yield from self._gathered_tiles(samples, left, right)
            else:
                yield from self._tiles_of_rectangles(samples, left, right, workspace)
        workspace.keep_for_later()

    def _is_gathering_faster(self, u: Any, chunk: int) -> bool:
        """Return whether to gather and multiply whole tiles rather than to make them by rectangles.

        On a device a call takes as long as the arithmetic of many numbers, so few calls are better
        for small rectangles; and some libraries cannot write into a rectangle of an array.
        """
        if is_on_host(u):
            return False
        n_rectangles = sum(len(batch.rectangles) for batch in self._batches)
        if self.n_terms * chunk < MAX_NUMBERS_PER_SMALL_RECTANGLE * n_rectangles:
            return True
        return multiply_function(u) is None

    def _gathered_tiles(self, samples: slice, left: Any, right: Any) -> Iterator[Tile]:
        """Yield the functions of each batch: left factors times right factors, row by row."""
        for batch in self._batches:
            values = batch.left.take_from(left)
            values *= batch.right.take_from(right)
            yield Tile(batch.functions, samples, values)

    def _tiles_of_rectangles(
        self, samples: slice, left: Any, right: Any, workspace: Workspace
    ) -> Iterator[Tile]:
        """Yield the functions of each batch, made rectangle by rectangle."""
        multiply = np.multiply if is_on_host(left) else multiply_function(left)
        assert multiply is not None  # see _is_gathering_faster
        row_multiple = 1 if is_on_host(left) else DEVICE_ROW_MULTIPLE
        n_samples = left.shape[1]
        space = workspace.empty(_round_up(self._height, row_multiple), n_samples)
        for batch in self._batches:
            n_functions = batch.functions.stop - batch.functions.start
            rows = space[: _round_up(n_functions, row_multiple), :]
            for rectangle in batch.rectangles:
                left_factors = left[rectangle.left, None, :]
                right_factors = right[None, rectangle.right, :]
                shape = (left_factors.shape[0], right_factors.shape[1], -1)
                multiply(left_factors, right_factors, out=rows[rectangle.rows, :].reshape(shape))
            yield Tile(batch.functions, samples, rows)

    def _number_functions(self, n_inputs: int, n_functions: int) -> Integers:
        """Return the row of each one-dimensional function in the table of all, (inputs, functions).

        The table lists the families one after the other; of each family, function 0 of all its
        inputs, then function 1 of all its inputs, and so on.
        """
        numbers = np.zeros((n_inputs, n_functions), dtype=int)
        first_row = 0
        for shared in self._shared_families:
            count = shared.n_functions
            n_sharing = len(shared.inputs)
            rows = first_row + np.arange(count * n_sharing).reshape(count, n_sharing)
            numbers[shared.inputs, :count] = rows.T
            first_row += count * n_sharing
        return numbers

    def _one_dimensional(self, u: Any) -> Any:
        """Return the one-dimensional functions of all inputs: (functions, samples)."""
        xp = array_namespace(u)
        tables = []
        for family, inputs, n_functions in self._shared_families:
            columns = u.T
            if len(inputs) < u.shape[1]:
                columns = take_rows(columns, to_library_of(np.array(inputs), u))
            columns = np.ascontiguousarray(columns) if is_on_host(columns) else contiguous(columns)
            values = family.values(family.standard(columns), n_functions)
            tables.append(xp.reshape(values, (n_functions * len(inputs), -1)))
        return tables[0] if len(tables) == 1 else xp.concat(tables, axis=0)


def _group_inputs(families: Sequence[Family], rows: Integers) -> list[_SharedFamily]:
    """Return which inputs share a family, and how many of its functions they need."""
    inputs_of_family: dict[Family, list[int]] = {}
    for number, family in enumerate(families):
        inputs_of_family.setdefault(family, []).append(number)
    groups = []
    for family, inputs in inputs_of_family.items():
        highest_index = int(rows[:, inputs].max())
        groups.append(_SharedFamily(family, inputs, highest_index + 1))
    return groups


def _round_up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return ceil(number / multiple) * multiple
