"""A first look at the data, before any mathematics: what cannot be used, and what the readouts look like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._check import one_of
from .._passes import Job, Passes
from .._table import Table
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import in_order, row_blocks
from ..typing import ArrayLike, Floats, Integers
from ._look import Look, Looking, Survey
from ._refuse import refuse_bad_values

TYPICAL_ROWS = 63  # odd, so that the median of a constant channel is exactly that constant


def tables(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    complex_as: str | None,
    nan: str,
    passes: Passes | None = None,
) -> tuple[Table, Table, Integers | None]:
    """Inputs and readouts as tables of equally many rows; and the rows kept, if some are dropped."""
    if not isinstance(basis, ProductBasis):
        raise ParameterError(f"basis={basis!r} must come from product_basis(...).")
    one_of("complex_as", complex_as, (None, "abs2", "split"))
    one_of("nan", nan, ("raise", "drop"))
    inputs, readouts = Table(u, "u"), Table(x, "x", complex_as)
    if inputs.on_device and not _together(u, x):
        inputs = inputs.on_host()  # from there they go where the readouts are
    (n_u, q), (n_x, k) = inputs.shape, readouts.shape
    if n_u != n_x:
        flip = "x.T" if k == n_u else "u.T" if q == n_x else None
        hint = f"; the lengths agree with {flip}" if flip else "; give one row for each sample"
        raise DataError(
            f"u has shape {(n_u, q)} and x has shape {(n_x, k)}: unequal numbers of samples{hint}."
        )
    if q != basis.n_inputs:
        raise DataError(
            f"u has {q} columns, but the basis has {basis.n_inputs} inputs; give as many columns."
        )
    if nan == "raise":
        return inputs, readouts, None
    kept = _good_rows(inputs, readouts, passes or Passes())
    return inputs.only(kept), readouts.only(kept), kept


def _together(u: ArrayLike, x: ArrayLike) -> bool:
    """Whether both are of one library and on one device."""
    return type(u) is type(x) and u.device == x.device


def survey(
    u: Table, x: Table, basis: ProductBasis, epochs: Integers | None, passes: Passes | None = None
) -> Survey:
    """Read everything once; raise on values that have no meaning.

    `epochs` gives the stretch of the acquisition that each row belongs to; None means in the order of the rows.
    """
    typical, look = looks(u, x, basis, epochs, passes or Passes())
    return look.survey(typical, x.shape[0])


def looks(
    u: Table, x: Table, basis: ProductBasis, epochs: Integers | None, passes: Passes
) -> tuple[Floats, Look]:
    """A typical value of each channel, and what all rows show."""
    n_rows = x.shape[0]
    typical = np.median(x.read_on_host(0, min(TYPICAL_ROWS, n_rows - (n_rows + 1) % 2)), axis=0)
    (look,) = passes.fold(Looking(u, x, basis, typical, epochs, (0, n_rows)), (0, n_rows))
    for table, bad in ((u, look.bad_inputs), (x, look.bad_readouts)):
        refuse_bad_values(table, bad)
    return typical, look


def _good_rows(u: Table, x: Table, passes: Passes) -> Integers:
    """The numbers of the rows that are finite in both tables."""
    (good,) = passes.fold(_Sifting(u, x), (0, x.shape[0]))
    rows = np.flatnonzero(in_order(good))
    if not len(rows):
        raise DataError("every row of u and x has a NaN or infinite value; there is nothing left to use.")
    return rows


@dataclass(frozen=True, eq=False)
class _Sifting(Job):
    """Which rows are finite, as a job for a pass: a list of first rows and arrays of truth values."""

    u: Table
    x: Table
    first: int = 0

    @property
    def tables(self) -> tuple[Table, Table]:
        """Inputs and readouts."""
        return self.u, self.x

    def part(self, start: int, stop: int) -> Self:
        """The job for these rows alone."""
        return replace(self, u=self.u.part(start, stop), x=self.x.part(start, stop), first=self.first + start)

    def held(self) -> Self:
        """The job with its rows in memory."""
        return replace(self, u=self.u.held(), x=self.x.held())

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows."""
        return row_blocks(start, stop, self.x.shape[1])

    def run(self, rows: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
        """Those of one block."""
        both = np.hstack([table.read_on_host(*rows) for table in self.tables])
        return [(self.first + rows[0], np.asarray(np.isfinite(both).all(axis=1)))]

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        """Both lists."""
        return a + b
