"""A walk over the samples: reads inputs and readouts in blocks, prepares them, and summarises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from .._array import Table, array_namespace, as_like, on_host, to_numpy
from .._passes import Passes
from ..basis import ProductBasis
from ..typing import Floats, Integers
from ._summary import Summary, combine, summarise

READOUT_BYTES = 4_000_000  # of readouts at a time; small enough to share out among cores


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

    def __getstate__(self) -> dict[str, Any]:
        """Who makes the passes stays behind: executors do not travel."""
        return vars(self) | {"passes": Passes()}

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
        out = np.empty((len(block), self.n_readouts))
        out[:, : self.constant] = 1.0
        self.shifted(block, out=out[:, self.constant :])
        if self.root_weights is not None:
            out *= self.root_weights[start:stop, None]
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
        u = self.u.read(start, stop)
        if self.x.on_device and not self.u.on_device:
            u = as_like(u, self.x.source)
        blocks = self.basis.blocks(u if self.x.on_device else to_numpy(u))
        return blocks if self.root_weights is None else self._weighted(blocks, start)

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
        return self.passes.fold(Summaries(self), edges)

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
class WalkJob:
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


class SquareSums(WalkJob):
    """The sum of y² of every target, (terms,)."""

    def run(self, rows: tuple[int, int]) -> Floats:
        """That of one block."""
        u, weights = self.walk.u.read(*rows), self.walk.weights(*rows)
        return self.walk.basis.sum_over(u, weights, power=2)
