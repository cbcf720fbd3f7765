"""How to evaluate all products of a basis with few and large multiplications, on the processor or a device."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import imul
from typing import Any, NamedTuple

import numpy as np

from .._arrays import array_namespace, as_like, contiguous, multiplier, on_host, take_rows
from ..typing import Integers
from ._family import Family


class Sizes(NamedTuple):
    """How much to evaluate at a time: numbers, functions and samples per tile."""

    numbers: int
    functions: int
    least_samples: int
    most_samples: int
    equal: bool

    def height(self, functions: int) -> int:
        """How many of so many functions to take at a time; in the processor's memory all tiles have equal heights."""
        return (
            -(-functions // -(-functions // self.functions))
            if self.equal
            else min(functions, self.functions)
        )

    def samples(self, functions: int) -> int:
        """How many samples of so many functions to take at a time, in multiples of the least number."""
        samples = self.numbers // functions
        return min(
            max(samples - samples % self.least_samples, self.least_samples), self.most_samples
        )


# A tile of 6 MB stays in the processor's cache until it is multiplied; 1000 to 1500 functions at 500 to 750 samples are
# among the fastest shapes of those timed on two kinds of processor, for 72 and 201 readouts.
HOST = Sizes(numbers=750_000, functions=1464, least_samples=64, most_samples=4096, equal=True)
# To start a multiplication on a graphics card costs more than thousands of numbers, so tiles take up to 2.3 GB there;
# 8448 functions are a multiple of what the 132 processors of an H200 multiply in one go.
DEVICE = Sizes(
    numbers=287_500_000, functions=8448, least_samples=64, most_samples=262_144, equal=False
)
# Numbers per block of a tile on a device up to which two gathers and one product take less time than a call per block.
FEW_NUMBERS = 1_000_000
ROUND = 64  # Matrix products on a graphics card are fastest with a round number of functions.


# Fresh memory from the system is slow to touch, so what up to 16 threads used is kept for the next pass.
_SPARE: deque[Any] = deque(maxlen=16)


@dataclass
class Room:
    """Memory in which arrays are made one after the other, next to the array `like`."""

    like: Any
    space: Any
    used: int = 0

    def array(self, rows: int, columns: int) -> Any:
        """The next array of this shape, with whatever is in it."""
        xp, start = array_namespace(self.like), self.used
        self.used += rows * columns
        if self.used > self.space.shape[0]:  # what was made before stays where it is
            self.space = xp.empty((self.used,), dtype=xp.float64, device=self.like.device)
        return xp.reshape(self.space[start : self.used], (rows, columns))


class Places:
    """Numbers of rows of a table, sent to each device once: every transfer would be waited for."""

    def __init__(self, rows: Integers) -> None:
        self.rows = rows
        self._sent: dict[Any, Any] = {}

    def of(self, table: Any) -> Any:
        """These rows of a table, in its library and on its device."""
        place = type(table), str(table.device)
        if place not in self._sent:
            self._sent[place] = as_like(self.rows, table)
        return take_rows(table, self._sent[place])


class Side:
    """Products of functions of some inputs, each one of the first half of these inputs times one of the other half.

    Row k of the values belongs to the indices `rows[k]`; `numbers[input, function]` says where each one-dimensional
    function stands in the table of them.
    """

    def __init__(self, rows: Integers, numbers: Integers) -> None:
        self.parts: list[tuple[Side | None, Places]] = []
        for inputs, distinct, places in _halves(rows):
            if len(inputs) == 1:
                self.parts.append((None, Places(numbers[inputs[0], rows[:, inputs[0]]])))
            else:
                self.parts.append((Side(distinct, numbers[inputs]), Places(places)))

    def values(self, singles: Any, room: Room) -> Any:
        """Values of all products, (rows, samples), from those of the one-dimensional functions."""
        found = []
        for side, places in self.parts:
            table = singles if side is None else side.values(singles, room)
            if on_host(table):  # all places exist: `clip` only spares a copy
                out = room.array(len(places.rows), table.shape[1])
                found.append(np.take(table, places.rows, axis=0, out=out, mode="clip"))
            else:
                found.append(places.of(table))
        return reduce(imul, found)


class Plan:
    """A basis as products of functions of the first inputs with functions of the other inputs.

    On both sides functions with equally many partners stand together, so that one multiplication makes a block of many
    products: with the total-degree set there is one block per degree. Hence tiles come in an order of their own, in
    which function l of the basis is number `row_of[l]`, and number k is function `order[k]`.
    """

    def __init__(self, families: Sequence[Family], rows: Integers, sizes: Sizes) -> None:
        self.n_terms, self.sizes = len(rows), sizes
        # Inputs of one family are evaluated together: each family, its inputs, and how many functions they need.
        alike: dict[Family, list[int]] = {}
        for k, family in enumerate(families):
            alike.setdefault(family, []).append(k)
        self._alike = [
            (family, inputs, int(rows[:, inputs].max()) + 1) for family, inputs in alike.items()
        ]
        numbers, start = np.zeros((len(families), int(rows.max()) + 1), dtype=int), 0
        for _, inputs, count in self._alike:
            numbers[inputs, :count] = start + np.arange(count * len(inputs)).reshape(count, -1).T
            start += count * len(inputs)
        if len(families) == 1:  # then the left side is the constant function alone
            rows, numbers = np.hstack([np.zeros_like(rows), rows]), np.vstack([numbers, numbers])
        halves = (
            (Side(distinct, numbers[inputs]), places) for inputs, distinct, places in _halves(rows)
        )
        (self.left, left), (self.right, right) = halves
        self.order = order = np.lexsort((right, left))
        self.row_of = Places(np.argsort(order))
        # Neighbouring functions, the places of their factors on both sides, and the blocks that they are made in.
        self.height, self.batches = sizes.height(self.n_terms), []
        self.samples = sizes.samples(self.height)
        for start, stop in pairwise([*range(0, self.n_terms, self.height), self.n_terms]):
            a, b = left[order[start:stop]], right[order[start:stop]]
            self.batches.append((slice(start, stop), Places(a), Places(b), _blocks(a, b)))

    def _singles(self, u: Any) -> Any:
        """The one-dimensional functions of all inputs: (functions, samples)."""
        parts = []
        for family, inputs, count in self._alike:
            some = (
                u.T if len(inputs) == u.shape[1] else take_rows(u.T, as_like(np.array(inputs), u))
            )
            some = np.ascontiguousarray(some) if on_host(some) else contiguous(some)
            values = family.values(family.standard(some), count)
            parts.append(array_namespace(u).reshape(values, (count * len(inputs), -1)))
        return parts[0] if len(parts) == 1 else array_namespace(u).concat(parts, axis=0)

    def tiles(self, u: Any) -> Iterator[tuple[slice, slice, Any]]:
        """Which functions, which samples, and their values (functions, samples).

        The functions are numbered as in `row_of`. Each tile is overwritten by the next: use it, do not keep it. On a
        device there may be more rows of values than functions; what is in those has no meaning.
        """
        n_samples, here, space = u.shape[0], on_host(u), u[:0, 0]
        at_once = max(min(self.samples, n_samples), 1)
        few = not here and self.n_terms * at_once < FEW_NUMBERS * sum(
            len(blocks) for *_, blocks in self.batches
        )
        multiply = np.multiply if here else None if few else multiplier(u)
        with suppress(IndexError):
            space = _SPARE.pop() if here else space
        room = Room(u, space)
        for start, stop in pairwise([*range(0, n_samples, at_once), n_samples]):
            singles, samples, room.used = self._singles(u[start:stop, :]), slice(start, stop), 0
            left, right = self.left.values(singles, room), self.right.values(singles, room)
            if multiply is None:  # a call costs as much as thousands of numbers there, so few calls
                for functions, lefts, rights, _ in self.batches:
                    yield functions, samples, reduce(imul, (lefts.of(left), rights.of(right)))
                continue
            space = room.array(-(-self.height // ROUND) * ROUND, stop - start)
            for functions, _, _, blocks in self.batches:
                count = functions.stop - functions.start
                values = space[: count if here else -(-count // ROUND) * ROUND, :]
                for rows, ours, theirs in blocks:
                    a, b = left[ours, None, :], right[None, theirs, :]
                    multiply(a, b, out=values[rows, :].reshape(a.shape[0], b.shape[1], -1))
                yield functions, samples, values
        if here:
            _SPARE.append(room.space)


def _halves(rows: Integers) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Of each half of the inputs: which, their distinct indices, the most frequent first, and the place of each row."""
    for inputs in filter(len, np.split(np.arange(rows.shape[1]), [rows.shape[1] // 2])):
        distinct, places, counts = np.unique(
            rows[:, inputs], axis=0, return_inverse=True, return_counts=True
        )
        order = np.argsort(-counts, kind="stable")
        yield inputs, distinct[order], np.argsort(order)[places.reshape(-1)]


def _blocks(left: Integers, right: Integers) -> list[tuple[slice, slice, slice]]:
    """Cut products, given by the places of their factors, into blocks: rows, places on the left and on the right."""
    starts = np.flatnonzero((np.diff(left, prepend=-1) != 0) | (np.diff(right, prepend=-2) != 1))
    lengths = np.diff(starts, append=len(left))
    runs = np.column_stack(
        [starts, left[starts], right[starts], lengths]
    )  # one function times neighbours on the right
    new = np.flatnonzero(np.any(np.diff(runs[:, 1:], axis=0) != (1, 0, 0), axis=1)) + 1
    out = []
    for first, stop in pairwise([0, *new.tolist(), len(runs)]):
        (start, here, there, length), count = runs[first].tolist(), stop - first
        out.append(
            (
                slice(start, start + count * length),
                slice(here, here + count),
                slice(there, there + length),
            )
        )
    return out
