"""How to build all products with as few and as large multiplications as possible."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
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
        if most not in self._batches:
            groups: list[list[Tile]] = [[]]
            free = most
            for tile in self.tiles:
                rest = [tile]
                while rest:
                    piece = rest.pop()
                    if free < most and piece.shape[1] > free:  # not one row fits
                        groups.append([])
                        free = most
                    fitting, remaining = _cut(piece, free)
                    groups[-1].append(fitting)
                    free -= fitting.shape[0] * fitting.shape[1]
                    rest.extend(reversed(remaining))
            self._batches[most] = [
                Batch(group, group[0].start, group[-1].start + prod(group[-1].shape)) for group in groups
            ]
        return self._batches[most]


def _cut(tile: Tile, free: int) -> tuple[Tile, list[Tile]]:
    """As many functions of a tile as there is room for, whole rows of it if one fits; and the rest in order."""
    (n_left, n_right), start = tile.shape, tile.start
    if n_right > free:  # only where a single row is longer than anything allowed
        first = Tile(_part(tile.left, 0, 1), _part(tile.right, 0, free), (1, free), start)
        rest = [Tile(first.left, _part(tile.right, free, n_right - free), (1, n_right - free), start + free)]
        taken = 1
    else:
        taken = min(free // n_right, n_left)
        first = Tile(_part(tile.left, 0, taken), tile.right, (taken, n_right), start)
        rest = []
    if taken < n_left:
        others = _part(tile.left, taken, n_left - taken)
        rest.append(Tile(others, tile.right, (n_left - taken, n_right), start + taken * n_right))
    return first, rest


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
