"""A walk over the samples: reads inputs and readouts in blocks, prepares them, and summarises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._array import Table
from ..basis import ProductBasis
from ..typing import Floats, Integers
from ._summary import Summary, combine, summarise

BLOCK_BYTES = 16_000_000  # of readouts at a time; the factorisation needs a few times as much


def row_blocks(start: int, stop: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Consecutive pieces of the rows start to stop, sized to memory and much taller than wide."""
    rows = max(BLOCK_BYTES // (8 * n_columns), 16 * n_columns)
    for begin in range(start, stop, rows):
        yield begin, min(begin + rows, stop)


@dataclass(frozen=True, eq=False)
class Walk:
    """Inputs, readouts and targets of one data set, ready to be read in blocks.

    `channels` are the columns of `x` in use. They are shifted by a typical value, so that a large offset
    costs no digits, and scaled by a power of two, which costs none either; with `constant` a column of
    ones goes first and absorbs what the shift leaves.
    """

    u: Table
    x: Table
    basis: ProductBasis
    channels: Integers
    shift: Floats
    scale: Floats
    constant: bool

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
        return row_blocks(start, stop, self.n_readouts)

    def readouts(self, start: int, stop: int) -> Floats:
        """Prepared readouts of the rows start to stop: (samples, readouts), the constant first."""
        return self.prepare(self.x.read(start, stop))

    def prepare(self, block: Floats) -> Floats:
        """Rows of the table of readouts as the mathematics wants them."""
        if len(self.channels) < block.shape[1]:
            block = block[:, self.channels]
        out = np.empty((len(block), self.n_readouts))
        out[:, : self.constant] = 1.0
        own = out[:, self.constant :]
        np.subtract(block, self.shift, out=own)
        np.multiply(own, self.scale, out=own)
        return out

    def targets(self, start: int, stop: int) -> Iterator[Floats]:
        """Values of the basis in blocks of (terms, samples); each overwrites the one before."""
        return self.basis.blocks(self.u.read(start, stop))

    def summary(self, start: int, stop: int) -> Summary:
        """The summary of the rows start to stop."""
        return combine(
            *(
                summarise(self.readouts(begin, end), self.targets(begin, end), self.constant)
                for begin, end in self.pieces(start, stop)
            )
        )
