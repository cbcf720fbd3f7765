"""How to build all products with as few and as large multiplications as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._array import as_like
from ..typing import Floats, Integers
from ._family import Family
from ._index_sets import sort_rows, total_degrees


class Run(NamedTuple):
    """Neighbouring functions that are neighbouring parents times one and the same factor."""

    start: int
    stop: int
    parent: int
    variable: int
    function: int


class Chain:
    """Products of a few inputs, each one a "parent" times one more factor.

    The parent of a function lacks its first input. In the common order the children of neighbouring parents
    are neighbours too, so most multiplications run over several functions at once. Parents that were not
    asked for are computed as well; `position` says where a function stands.
    """

    def __init__(self, rows: Integers, families: Sequence[Family]) -> None:
        complete = _with_parents(rows)
        self.rows = sort_rows(complete, total_degrees(families, complete))
        self.position = {row.tobytes(): number for number, row in enumerate(self.rows)}
        self.runs: list[Run] = []
        first = np.argmax(self.rows > 0, axis=1) if rows.shape[1] else np.zeros(1, int)
        for number, row in enumerate(self.rows[1:], start=1):
            variable = int(first[number])
            function = int(row[variable])
            parent = row.copy()
            parent[variable] = 0
            self._add(number, self.position[parent.tobytes()], variable, function)

    def _add(self, number: int, parent: int, variable: int, function: int) -> None:
        """Lengthen the last run, or start a new one."""
        last = self.runs[-1] if self.runs else None
        if (
            last is not None
            and (last.variable, last.function) == (variable, function)
            and last.parent + last.stop - last.start == parent < last.start
        ):
            self.runs[-1] = last._replace(stop=number + 1)
        else:
            self.runs.append(Run(number, number + 1, parent, variable, function))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def halves(self) -> Halves:
        """The same products made in another way, by a few multiplications of everything."""
        return Halves(self.rows)

    def fill(self, factors: Sequence[Floats], columns: slice, out: Floats) -> None:
        """Values of all functions at some samples, into out (functions, samples)."""
        out[0] = 1.0
        for run in self.runs:
            parents = out[run.parent : run.parent + run.stop - run.start]
            factor = factors[run.variable][run.function, columns]
            np.multiply(parents, factor, out=out[run.start : run.stop])


class Halves:
    """Products of a few inputs as products of two: of those of the first inputs and of those of the others.

    Where a multiplication of many functions costs no more than one of a few, on a graphics card, this is the way:
    the depth is the logarithm of the number of inputs.
    """

    def __init__(self, rows: Integers) -> None:
        middle = rows.shape[1] // 2
        self.inputs = [slice(0, middle), slice(middle, rows.shape[1])] if middle else [slice(0, 1)]
        self.inner: list[Halves | None] = []
        self._rows: list[Integers] = []
        self._there: tuple[Any, list[Any]] | None = None
        for inputs in self.inputs:
            some = rows[:, inputs]
            if some.shape[1] == 1:
                self.inner.append(None)
                self._rows.append(some[:, 0].astype(np.int64))
            else:
                distinct, places = np.unique(some, axis=0, return_inverse=True)
                self.inner.append(Halves(distinct))
                self._rows.append(places.reshape(-1).astype(np.int64))

    def rows_like(self, array: Any) -> list[Any]:
        """Which functions of the two the products have, in the array's library and on its device."""
        if self._there is None or self._there[0] != (type(array), array.device):
            self._there = (type(array), array.device), [as_like(rows, array) for rows in self._rows]
        return self._there[1]


class Tile(NamedTuple):
    """All products of some functions of the left inputs with some of the right inputs."""

    left: Any  # a slice where they are neighbours, else an array of positions
    right: Any
    shape: tuple[int, int]
    start: int


class Batch(NamedTuple):
    """Neighbouring tiles, and the rows that they fill."""

    tiles: list[Tile]
    start: int
    stop: int

    def fill(self, sides: tuple[Floats, Floats], out: Floats) -> None:
        """Values of the functions, from those of both sides, into out (functions, samples)."""
        for tile in self.tiles:
            n_left, n_right = tile.shape
            where = out[tile.start - self.start : tile.start - self.start + n_left * n_right]
            np.multiply(
                sides[0][tile.left][:, None, :],
                sides[1][tile.right][None, :, :],
                out=where.reshape(n_left, n_right, where.shape[1]),
            )


class Plan:
    """A basis as products of functions of the first inputs with functions of the rest.

    Functions of the left inputs that go with the same functions of the right inputs form one tile, a single
    large multiplication: with the total-degree set there is one tile a degree. Both sides are short chains
    that stay in cache. The tiles come out in an order of their own; `row_of` says where each function is.
    """

    def __init__(self, rows: Integers, families: Sequence[Family]) -> None:
        self.split = _best_split(rows)
        self.left = Chain(rows[:, : self.split], families[: self.split])
        self.right = Chain(rows[:, self.split :], families[self.split :])
        here = [self.left.position[row.tobytes()] for row in np.ascontiguousarray(rows[:, : self.split])]
        there = [self.right.position[row.tobytes()] for row in np.ascontiguousarray(rows[:, self.split :])]
        self._batches: dict[int, list[Batch]] = {}
        self.tiles, self.row_of = _tiles(np.array(here), np.array(there))

    def fill_sides(self, factors: Sequence[Floats], columns: slice, sides: tuple[Floats, Floats]) -> None:
        """Values of the functions of both sides at some samples, into two arrays (functions, samples)."""
        self.left.fill(factors[: self.split], columns, sides[0])
        self.right.fill(factors[self.split :], columns, sides[1])

    def batches(self, most: int) -> list[Batch]:
        """All tiles in order, cut and grouped so that none has more than `most` functions."""
        if most in self._batches:
            return self._batches[most]
        out = self._batches[most] = []
        for tile in (part for whole in self.tiles for part in _cut(whole, most)):
            size = tile.shape[0] * tile.shape[1]
            if out and out[-1].stop - out[-1].start + size <= most:
                out[-1] = Batch([*out[-1].tiles, tile], out[-1].start, tile.start + size)
            else:
                out.append(Batch([tile], tile.start, tile.start + size))
        return out


def _cut(tile: Tile, most: int) -> Iterator[Tile]:
    """A tile in parts of at most `most` functions, in the same order."""
    n_left, n_right = tile.shape
    for left in range(0, n_left, max(most // n_right, 1)):
        some_left = min(max(most // n_right, 1), n_left - left)
        for right in range(0, n_right, most):
            some_right = min(most, n_right - right)
            yield Tile(
                _part(tile.left, left, some_left),
                _part(tile.right, right, some_right),
                (some_left, some_right),
                tile.start + left * n_right + right,
            )


def _part(chosen: slice | Integers, start: int, size: int) -> Any:
    if isinstance(chosen, slice):
        return slice(chosen.start + start, chosen.start + start + size)
    return chosen[start : start + size]


def _tiles(here: Integers, there: Integers) -> tuple[list[Tile], Integers]:
    """Group equal right-hand sides; and the place of every function among the tiles."""
    partners: dict[int, list[int]] = {}
    for left, right in zip(here.tolist(), there.tolist(), strict=True):
        partners.setdefault(left, []).append(right)
    groups: dict[tuple[int, ...], list[int]] = {}
    for left in sorted(partners):
        groups.setdefault(tuple(sorted(partners[left])), []).append(left)
    tiles, place, start = [], {}, 0
    for rights, lefts in groups.items():
        tiles.append(Tile(_selector(lefts), _selector(rights), (len(lefts), len(rights)), start))
        for left in lefts:
            for right in rights:
                place[left, right] = start
                start += 1
    return tiles, np.array([place[pair] for pair in zip(here.tolist(), there.tolist(), strict=True)])


def _selector(positions: Sequence[int]) -> Any:
    """A slice if the positions are consecutive: it copies nothing."""
    if list(positions) == list(range(positions[0], positions[0] + len(positions))):
        return slice(positions[0], positions[0] + len(positions))
    return np.array(positions)


def _best_split(rows: Integers) -> int:
    """Where to cut the inputs in two, so that both sides together have the fewest functions."""

    def size(split: int) -> int:
        return len(np.unique(rows[:, :split], axis=0)) + len(np.unique(rows[:, split:], axis=0))

    n_inputs = rows.shape[1]
    return min(range(1, n_inputs), key=size) if n_inputs > 1 else 0


def _with_parents(rows: Integers) -> Integers:
    """Distinct indices and all their parents."""
    if rows.shape[1] == 0:
        return rows[:1]
    known = {row.tobytes(): row for row in np.ascontiguousarray(rows)}
    waiting = list(known.values())
    while waiting:
        row = waiting.pop().copy()
        row[np.argmax(row > 0)] = 0
        if row.tobytes() not in known:
            known[row.tobytes()] = row
            waiting.append(row)
    return np.array(list(known.values()))
