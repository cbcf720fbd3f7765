"""A walk over the samples: reads inputs and readouts in blocks, prepares them, and summarises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any, Self

import numpy as np

from .._array import array_namespace, as_like, contiguous, on_host, to_numpy
from .._passes import Job, Passes
from .._table import Table
from ..basis import ProductBasis
from ..typing import Floats, Integers
from ._factor import triangle_of_gram
from ._moments import Finish, Frame, Moments, finish_of, frame_of, moments, projections
from ._summary import Summary, combine, summarise

READOUT_BYTES = 4_000_000  # of readouts at a time; small enough to share out among cores

FEW_READOUTS = 256  # whose small matrices the processor handles faster than a graphics card


def block_bytes(n_columns: int) -> int:
    """Bytes of the largest block of rows that is worked on at a time."""
    return 8 * n_columns * max(READOUT_BYTES // (8 * n_columns), 32 * n_columns)


def row_blocks(start: int, stop: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Consecutive pieces of the rows start to stop, equal, sized to memory and much taller than wide."""
    most = block_bytes(n_columns) // (8 * n_columns)
    count = -(-(stop - start) // most)
    return pairwise(start + (stop - start) * piece // count for piece in range(count + 1))


def in_order(blocks: list[tuple[int, Any]]) -> Any:
    """Blocks with the number of their first row as one array: workers need not finish in the order of the rows."""
    return np.concatenate([block for _, block in sorted(blocks, key=lambda block: block[0])])


@dataclass(frozen=True, eq=False)
class Walk:
    """Inputs, readouts and targets of one data set, ready to be read in blocks.

    `channels` are the columns of `x` in use. They are shifted by a typical value, so that a large offset
    costs no digits; with `constant` a column of ones goes first and absorbs what the shift leaves. `scale`
    is 1 unless squares of the readouts would leave the range of floating-point numbers. Samples drawn from
    another density than that of the basis have weights, the ratio of the two; readouts and targets are then
    multiplied by `root_weights`, so that every mean of a product is a weighted mean.
    """

    u: Table
    x: Table
    basis: ProductBasis
    channels: Integers
    shift: Floats
    scale: Floats
    constant: bool
    root_weights: Floats | None = None
    passes: Passes = field(default_factory=Passes)
    sample: Floats | None = None  # some rows of the readouts, prepared, from all over the data

    def __getstate__(self) -> dict[str, Any]:
        """Who makes the passes stays behind, executors do not travel; so does what only serves to plan them."""
        left = {"passes": Passes(), "sample": None, "_frame": None}
        return vars(self) | {name: value for name, value in left.items() if name in vars(self)}

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return self.x.shape[0]

    @property
    def n_readouts(self) -> int:
        """Number of readouts K with the constant: the maximum capacity."""
        return len(self.channels) + self.constant

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The rows start to stop in blocks that fit in memory."""
        return iter([(start, stop)]) if self.x.on_device else row_blocks(start, stop, self.n_readouts)

    def readouts(self, start: int, stop: int) -> Floats:
        """Prepared readouts of the rows start to stop: (samples, readouts), the constant first."""
        block = self.x.read(start, stop)
        if not on_host(block):
            return self._readouts_there(block, start, stop)
        return self.weighed(self.prepared(block), start)

    def weighed(self, block: Floats, start: int) -> Floats:
        """Rows from `start` on, times the roots of their weights."""
        return (
            block
            if self.root_weights is None
            else block * self.root_weights[start : start + len(block), None]
        )

    def prepared(self, block: Floats) -> Floats:
        """Rows of the table of readouts, shifted and scaled, with the constant first, without weights."""
        out = np.empty((len(block), self.n_readouts))
        out[:, : self.constant] = 1.0
        self.shifted(block, out=out[:, self.constant :])
        return out

    def _readouts_there(self, block: Any, start: int, stop: int) -> Any:
        """The same in the array library of the readouts."""
        xp, shifted = array_namespace(block), self.shifted(block)
        if self.constant:
            shifted = xp.concat([xp.ones_like(shifted[:, :1]), shifted], axis=1)
        if self.root_weights is not None:
            shifted = shifted * as_like(self.root_weights[start:stop, None], block)
        return shifted

    def shifted(self, block: Any, less: Floats | float = 0.0, out: Floats | None = None) -> Any:
        """The channels in use, shifted and scaled, minus `less` (in the scaled units)."""
        if not on_host(block):
            if len(self.channels) < block.shape[1]:
                block = array_namespace(block).take(block, as_like(self.channels, block), axis=1)
            if np.any(self.scale != 1):
                block = block * as_like(self.scale, block)
            return block - as_like(self.shift * self.scale + less, block)
        block = block[:, self.channels] if len(self.channels) < block.shape[1] else block
        if np.all(self.scale == 1):
            return np.subtract(block, self.shift + less, out=out)
        return np.subtract(block * self.scale, self.shift * self.scale + less, out=out)

    def targets(self, start: int, stop: int) -> Iterator[Floats]:
        """Values of the basis in blocks of (terms, samples); function l is in row `basis.row_of[l]`."""
        blocks = self.basis.blocks(
            self._inputs_there(start, stop) if self.x.on_device else to_numpy(self.u.read(start, stop))
        )
        return blocks if self.root_weights is None else self._weighted(blocks, start)

    def _inputs_there(self, start: int, stop: int) -> Any:
        """Inputs on the device of the readouts."""
        u = self.u.read(start, stop)
        return u if self.u.on_device else as_like(u, self.x.read(0, 1))

    def all_targets(self) -> Iterator[tuple[Floats, slice]]:
        """Those of all samples, block by block, with the rows they belong to."""
        row = 0
        for part in self.slabs():
            for piece in part.pieces(0, part.n_samples):
                for y in part.targets(*piece):
                    yield y, slice(row, row + y.shape[1])
                    row += y.shape[1]

    def _weighted(self, blocks: Iterator[Floats], row: int) -> Iterator[Floats]:
        assert self.root_weights is not None
        for y in blocks:
            yield y * as_like(self.root_weights[row : row + y.shape[1]], y)
            row += y.shape[1]

    def values(self, basis: ProductBasis) -> Floats:
        """Values of another basis of the same inputs at all samples: (samples, terms)."""
        values = basis(self.u.read_on_host(0, self.n_samples))
        return values if self.root_weights is None else values * self.root_weights[:, None]

    def weights(self, start: int, stop: int) -> Floats | None:
        """The weights of the rows start to stop; None when all are 1."""
        return None if self.root_weights is None else self.root_weights[start:stop] ** 2

    def summaries(self, *edges: int) -> list[Summary]:
        """The summaries of the rows between consecutive edges."""
        *parts, _ = self.summaries_and_whole(*edges)
        return parts

    def summaries_and_whole(self, *edges: int) -> list[Summary]:
        """The same, and last the summary of all rows from the first edge to the last."""
        if min(stop - start for start, stop in pairwise(edges)) >= 2 * self.n_readouts:
            found = self._by_moments_there(edges) if self.x.on_device else self._by_moments(edges)
            if found is not None:
                return found
        parts = self.passes.fold(Summaries(self), edges)
        return [*parts, combine(*parts)]

    def _by_moments(self, edges: tuple[int, ...]) -> list[Summary] | None:
        """The same from sums of products; None where some readouts are nearly dependent."""
        if self._frame is None:
            return None
        parts = self.passes.fold(MomentSums(self, self._frame), edges)
        parts.append(parts[0] if len(parts) == 1 else reduce(add, parts))
        return self._finished(parts, [finish_of(part.gram, self._frame) for part in parts])

    def _finished(self, parts: list[Moments], finishes: list[Finish | None]) -> list[Summary] | None:
        summaries = [
            part.summary(finish, self.constant, self.basis.row_of)
            for part, finish in zip(parts, finishes, strict=True)
            if finish is not None
        ]
        return summaries if len(summaries) == len(parts) else None

    @cached_property
    def _frame(self) -> Frame | None:
        """Coordinates in which the readouts are nearly uncorrelated, as far as some of the rows tell."""
        if self.sample is None or len(self.sample) < 2 * self.n_readouts:
            return None
        return frame_of(np.asarray(np.linalg.qr(self.sample, mode="r")))

    def _by_moments_there(self, edges: tuple[int, ...]) -> list[Summary] | None:
        """The same where the data are; there the frame comes from all samples, at the price of one product.

        All that is small is done before the long work is started: nothing is fetched while that goes on.
        """
        start, stop = edges[0], edges[-1]
        x = self.readouts(start, stop)
        small: Callable[[Any], Any] = to_numpy if self.n_readouts < FEW_READOUTS else lambda array: array
        frame = frame_of(triangle_of_gram(small(x.T @ x)))
        if frame is None:
            return None
        wide = contiguous(x.T) if frame.matrix is None else as_like(frame.matrix.T, x) @ x.T
        stretches = [slice(first - start, last - start) for first, last in pairwise(edges)]
        together = small(array_namespace(x).stack([wide[:, part] @ wide[:, part].T for part in stretches]))
        grams = [together[number, ...] for number in range(len(stretches))]
        grams.append(reduce(add, grams))
        finishes = [finish_of(gram, frame) for gram in grams]
        if None in finishes:
            return None
        root = self.root_weights
        weighted = wide if root is None else wide * as_like(root[start:stop], wide)
        tiles = self.basis.tiles(self._inputs_there(start, stop))
        found = projections(weighted, tiles, [edge - start for edge in edges])
        sizes = [*(last - first for first, last in pairwise(edges)), stop - start]
        parts = list(map(Moments, grams, [*found, reduce(add, found)], sizes))
        return self._finished(parts, finishes)

    def square_sums(self, *edges: int) -> list[Floats]:
        """The sums of y² of every target over the rows between consecutive edges."""
        return self.passes.fold(SquareSums(self), edges)

    def slabs(self) -> Iterator[Walk]:
        """Walks over consecutive stretches of the rows, each in memory, the next one read meanwhile."""
        return (job.walk for job in self.passes.slabs(WalkJob(self)))

    def part(self, start: int, stop: int) -> Walk:
        """A walk over these rows alone, numbered from 0."""
        root = None if self.root_weights is None else self.root_weights[start:stop]
        return replace(self, u=self.u.part(start, stop), x=self.x.part(start, stop), root_weights=root)

    def held(self) -> Walk:
        """The same walk with its rows in memory."""
        return replace(self, u=self.u.held(), x=self.x.held())

    def _summarise(self, rows: tuple[int, int]) -> Summary:
        return summarise(self.readouts(*rows), self.targets(*rows), self.constant, self.basis.row_of)


@dataclass(frozen=True, eq=False)
class WalkJob(Job):
    """Something that a walk adds up over its rows; see `_passes.Job`. Sums are what most of them add."""

    walk: Walk

    @property
    def tables(self) -> tuple[Table, Table]:
        """Inputs and readouts."""
        return self.walk.u, self.walk.x

    def part(self, start: int, stop: int) -> Self:
        """The job for these rows alone."""
        return replace(self, walk=self.walk.part(start, stop))

    def held(self) -> Self:
        """The job with its rows in memory."""
        return replace(self, walk=self.walk.held())

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows."""
        return self.walk.pieces(start, stop)

    def run(self, rows: tuple[int, int]) -> Any:
        """What one block adds."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """The sum of two outcomes."""
        return a + b


class Summaries(WalkJob):
    """The summary of readouts and targets."""

    def run(self, rows: tuple[int, int]) -> Summary:
        """That of one block."""
        return self.walk._summarise(rows)

    def merge(self, a: Summary, b: Summary) -> Summary:
        """That of both together."""
        return combine(a, b)


@dataclass(frozen=True, eq=False)
class MomentSums(WalkJob):
    """Sums of products in a frame of the readouts."""

    frame: Frame

    def run(self, rows: tuple[int, int]) -> Moments:
        """Those of one block."""
        return self.total([rows])

    def total(self, blocks: list[tuple[int, int]]) -> Moments:
        """Those of several blocks, added up in place."""
        parts = (part for rows in blocks for part in self._parts(rows))
        return moments(parts, len(self.walk.basis))

    def _parts(self, rows: tuple[int, int]) -> Iterator[tuple[Floats, Floats, Any]]:
        """Rows that stay in cache: their readouts in the frame, the same with their weights, and their targets."""
        walk, matrix = self.walk, self.frame.matrix
        x, u = walk.x.read(*rows), to_numpy(walk.u.read(*rows))
        for first in range(0, len(x), walk.basis.tile_samples):
            some, start = slice(first, first + walk.basis.tile_samples), rows[0] + first
            z = walk.weighed(walk.prepared(x[some]), start)
            z = z if matrix is None else z @ matrix
            yield z, walk.weighed(z, start), walk.basis.tiles(u[some])

    def merge(self, a: Moments, b: Moments) -> Moments:
        """The sum, in place of the first."""
        a.add(b)
        return a


class SquareSums(WalkJob):
    """The sum of y² of every target, (terms,)."""

    def run(self, rows: tuple[int, int]) -> Floats:
        """That of one block."""
        u, weights = self.walk.u.read(*rows), self.walk.weights(*rows)
        return self.walk.basis.sum_over(u, weights, power=2)
