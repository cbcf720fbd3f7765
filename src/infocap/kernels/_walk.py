"""A walk over the samples: reads inputs and readouts in blocks, prepares them, and summarises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice, pairwise
from operator import add
from typing import Any

import numpy as np

from .._array import Table, array_namespace, as_like, contiguous, on_host, to_numpy
from .._parallel import all_cores, parallel_map
from ..basis import ProductBasis
from ..typing import Floats, Integers
from ._factor import triangle_of_gram
from ._moments import Finish, Frame, Moments, finish_of, frame_of, moments, projections
from ._summary import Summary, combine, summarise

READOUT_BYTES = 4_000_000  # of readouts at a time; small enough to share out among cores

FEW_READOUTS = 256  # whose small matrices the processor handles faster than a graphics card
SHARE_BYTES = 32_000_000  # of sums, above which there is only one set a core


def row_blocks(start: int, stop: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Consecutive pieces of the rows start to stop, equal, sized to memory and much taller than wide."""
    most = max(READOUT_BYTES // (8 * n_columns), 32 * n_columns)
    count = -(-(stop - start) // most)
    return _shares(start, stop, count)


def _shares(start: int, stop: int, count: int) -> Iterator[tuple[int, int]]:
    """So many equal stretches of the rows start to stop."""
    return pairwise(start + (stop - start) * piece // count for piece in range(count + 1))


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
    sample: Floats | None = None  # some rows of the readouts, prepared, from all over the data

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
        return self._weighed(self.prepared(block), start)

    def _weighed(self, block: Floats, start: int) -> Floats:
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
        return u if self.u.on_device else as_like(u, self.x.source)

    def all_targets(self) -> Iterator[tuple[Floats, slice]]:
        """Those of all samples, block by block, with the rows they belong to."""
        row = 0
        for piece in self.pieces(0, self.n_samples):
            for y in self.targets(*piece):
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
            found = self._by_moments(edges)
            if found is not None:
                return found
        stretches = [list(self.pieces(start, stop)) for start, stop in pairwise(edges)]
        parts = iter(parallel_map(self._summarise, [piece for stretch in stretches for piece in stretch]))
        separate = [combine(*islice(parts, len(stretch))) for stretch in stretches]
        return [*separate, combine(*separate)]

    def _summarise(self, rows: tuple[int, int]) -> Summary:
        return summarise(self.readouts(*rows), self.targets(*rows), self.constant, self.basis.row_of)

    def _by_moments(self, edges: tuple[int, ...]) -> list[Summary] | None:
        """The same from sums of products; None where some readouts are nearly dependent."""
        if self.x.on_device:
            return self._by_moments_there(edges)
        frame = self._frame
        if frame is None:
            return None
        tasks = [list(_shares(*pair, self._n_shares(edges))) for pair in pairwise(edges)]
        sums = iter(parallel_map(self._moments, [share for task in tasks for share in task]))
        parts = [reduce(add, islice(sums, len(task))) for task in tasks]
        parts.append(reduce(add, parts))
        finishes = [finish_of(part.gram, frame) for part in parts]
        return self._finished(parts, finishes)

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

    def _n_shares(self, edges: tuple[int, ...]) -> int:
        """Into how many parts to cut each stretch: enough for all cores, few if each part's sums are large."""
        with all_cores() as cores:
            small = 8 * self.n_readouts * len(self.basis) < SHARE_BYTES
            return -(-(4 if small else 1) * cores // (len(edges) - 1))

    def _moments(self, rows: tuple[int, int]) -> Moments:
        """Sums of products over some rows, block by block."""
        frame = self._frame
        assert frame is not None

        def blocks() -> Iterator[tuple[Floats, Floats, Any]]:
            for first, last in self.pieces(*rows):
                x, u = self.x.read(first, last), to_numpy(self.u.read(first, last))
                for start in range(first, last, self.basis.tile_samples):
                    some = slice(start - first, start - first + self.basis.tile_samples)
                    z = self._weighed(self.prepared(x[some]), start)
                    z = z if frame.matrix is None else z @ frame.matrix
                    yield z, self._weighed(z, start), self.basis.tiles(u[some])

        return moments(blocks())

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
