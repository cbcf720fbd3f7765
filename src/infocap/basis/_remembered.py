"""A product basis that remembers its values at one design, for many data sets measured at the same inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..typing import Floats
from ._product import LONGEST_BLOCK, ProductBasis, Values


class RememberedBasis(ProductBasis):
    """The same functions; rows of the design itself are looked up, any other inputs evaluated as usual.

    A row of the design is known by its place in memory, so `design` must be the very array, in C order, that is
    read in slices. The values take 8 bytes a function and sample.
    """

    def __init__(self, basis: ProductBasis, design: Floats) -> None:
        super().__init__(basis.families, np.array(basis.indices))
        self.plain = basis
        self._design = np.ascontiguousarray(design, dtype=float)
        assert self._design is design
        self._values = np.empty((len(basis), len(design)))
        start = 0
        for block in basis.blocks(design):
            self._values[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        self._values.setflags(write=False)

    def blocks(self, u: Floats) -> Iterator[Floats]:
        """As `ProductBasis.blocks`; what is looked up cannot be written to."""
        first = self._first_row(u)
        if first is None:
            yield from super().blocks(u)
            return
        for start in range(first, first + len(u), self.block_rows):
            yield self._values[:, start : min(start + self.block_rows, first + len(u))]

    def tiles(self, u: Floats) -> Iterator[Values]:
        """As `ProductBasis.tiles`: all functions together, since their values are there already."""
        first = self._first_row(u)
        if first is None:
            yield from super().tiles(u)
            return
        for start in range(0, len(u), LONGEST_BLOCK):
            samples = slice(start, min(start + LONGEST_BLOCK, len(u)))
            yield Values(slice(0, len(self)), samples, self._values[:, first + start : first + samples.stop])

    def _first_row(self, u: Floats) -> int | None:
        """Which row of the design `u` begins with, if it is a slice of it."""
        same = u.dtype == float and u.ndim == 2 and u.shape[1] == self.n_inputs and u.flags.c_contiguous
        if not same:
            return None
        row, rest = divmod(u.ctypes.data - self._design.ctypes.data, self._design.strides[0])
        return row if rest == 0 and 0 <= row <= len(self._design) - len(u) else None

    def __reduce__(self) -> Any:
        """Pickled as the plain basis: places in memory do not travel."""
        return ProductBasis, (self.families, np.array(self.indices))
