"""A first look at the data, before any mathematics: what cannot be used, and what the readouts look like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._array import Table, array_namespace, as_like, on_host, to_numpy
from .._check import one_of
from .._passes import Passes
from ..basis import DiscreteFamily, Family, ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import in_order, row_blocks
from ..typing import ArrayLike, Floats, Integers

OUTSIDE = 1e-9  # of the domain's width: how far an input may lie outside
DEAD = 32 * np.finfo(float).eps  # relative range below which a channel is rounding around a constant
TYPICAL_ROWS = 63  # odd, so that the median of a constant channel is exactly that constant
EPOCHS = 32  # stretches of the acquisition whose means are compared to find drift
COMMON_DOMAINS = ((-1.0, 1.0), (0.0, 1.0), (0.0, 2 * np.pi), (-np.pi, np.pi))


@dataclass(frozen=True, eq=False)
class Survey:
    """What one look at all samples found."""

    typical: Floats  # a value each channel really takes, robust to outliers
    low: Floats
    high: Floats
    at_extreme: Floats  # share of the samples at the channel's lowest or highest value
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_means: Floats  # (epochs, channels), in acquisition order, minus `typical`

    @property
    def dead(self) -> np.ndarray:
        """Channels that do not change."""
        return self.high / 2 - self.low / 2 <= DEAD * np.maximum(np.abs(self.low), np.abs(self.high))


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
    (look,) = passes.fold(_Looking(u, x, basis, typical, epochs, (0, n_rows)), (0, n_rows))
    for table, bad in ((u, look.bad_inputs), (x, look.bad_readouts)):
        _refuse_bad_values(table, bad)
    return typical, look


class Look(NamedTuple):
    """What one block of rows shows."""

    low: Floats
    high: Floats
    at_low: Integers  # rows at the lowest value of the block
    at_high: Integers
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_sums: Floats
    bad_inputs: tuple[int, str]  # how many are NaN or infinite, and the first of them in words
    bad_readouts: tuple[int, str]

    def merged(self, other: Look) -> Look:
        """What both show together."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Look(
            low,
            high,
            np.where(self.low == low, self.at_low, 0) + np.where(other.low == low, other.at_low, 0),
            np.where(self.high == high, self.at_high, 0) + np.where(other.high == high, other.at_high, 0),
            np.minimum(self.input_low, other.input_low),
            np.maximum(self.input_high, other.input_high),
            self.epoch_sizes + other.epoch_sizes,
            self.epoch_sums + other.epoch_sums,
            (self.bad_inputs[0] + other.bad_inputs[0], self.bad_inputs[1] or other.bad_inputs[1]),
            (self.bad_readouts[0] + other.bad_readouts[0], self.bad_readouts[1] or other.bad_readouts[1]),
        )

    def survey(self, typical: Floats, n_rows: int) -> Survey:
        """The same as shares and means, once all rows were looked at."""
        return Survey(
            typical,
            self.low,
            self.high,
            np.maximum(self.at_low, self.at_high) / n_rows,
            self.input_low,
            self.input_high,
            self.epoch_sizes,
            self.epoch_sums / np.maximum(self.epoch_sizes, 1)[:, None],
        )


@dataclass(frozen=True, eq=False)
class _Looking:
    """The look at all rows as a job for a pass; see `_passes.Job`."""

    u: Table
    x: Table
    basis: ProductBasis
    typical: Floats
    epochs: Integers | None
    place: tuple[int, int]  # the first row's number, and how many rows there are in all

    @property
    def tables(self) -> tuple[Table, Table]:
        """Inputs and readouts."""
        return self.u, self.x

    def part(self, start: int, stop: int) -> Self:
        """The job for these rows alone."""
        first, total = self.place
        return replace(
            self,
            u=self.u.part(start, stop),
            x=self.x.part(start, stop),
            epochs=None if self.epochs is None else self.epochs[start:stop],
            place=(first + start, total),
        )

    def held(self) -> Self:
        """The job with its rows in memory."""
        return replace(self, u=self.u.held(), x=self.x.held())

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows."""
        return iter([(start, stop)]) if self.x.on_device else row_blocks(start, stop, self.x.shape[1])

    def run(self, rows: tuple[int, int]) -> Look:
        """Check and describe one block of rows."""
        if self.epochs is not None:
            epochs = self.epochs[slice(*rows)]
        else:
            first, total = self.place
            epochs = np.arange(first + rows[0], first + rows[1]) * EPOCHS // total
        return _look(self.u, self.x, self.basis, rows, epochs, self.typical)

    def merge(self, a: Look, b: Look) -> Look:
        """What two blocks show together."""
        return a.merged(b)


def _look(
    u: Table,
    x: Table,
    basis: ProductBasis,
    rows: tuple[int, int],
    epochs: Integers,
    typical: Floats,
) -> Look:
    """Check and describe one block of rows."""
    inputs, readouts = u.read_on_host(*rows), x.read(*rows)
    xp = array_namespace(readouts)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that overflows is looked at again
        bad_inputs, bad_readouts = _bad_values(u, inputs, rows[0]), _bad_values(x, readouts, rows[0])
        sums = _by_epoch(epochs, readouts - as_like(typical, readouts))
    if not bad_inputs[0]:
        _refuse_outside(u, inputs, rows[0], basis)
    low, high = xp.min(readouts, axis=0), xp.max(readouts, axis=0)
    return Look(
        to_numpy(low),
        to_numpy(high),
        to_numpy(xp.count_nonzero(readouts == low, axis=0)),
        to_numpy(xp.count_nonzero(readouts == high, axis=0)),
        inputs.min(axis=0),
        inputs.max(axis=0),
        *sums,
        bad_inputs,
        bad_readouts,
    )


def _bad_values(table: Table, block: Any, start: int) -> tuple[int, str]:
    """How many values of a block are NaN or infinite, and the first of them in words."""
    xp = array_namespace(block)
    if xp.isfinite(block.sum() if on_host(block) else xp.sum(block)) or bool(xp.all(xp.isfinite(block))):
        return 0, ""
    block = to_numpy(block)
    rows, columns = np.nonzero(~np.isfinite(block))
    place = table.place(start + int(rows[0]), int(columns[0]))
    return len(rows), f"{block[rows[0], columns[0]]} at {place}"


def _by_epoch(epochs: Integers, block: Any) -> tuple[Integers, Floats]:
    """How many rows each epoch has, and their sums."""
    if not on_host(block):
        member = np.arange(EPOCHS)[:, None] == epochs
        return member.sum(axis=1), to_numpy(as_like(member.astype(float), block) @ block)
    if np.any(epochs[1:] < epochs[:-1]):
        order = np.argsort(epochs, kind="stable")
        epochs, block = epochs[order], block[order]
    sizes = np.bincount(epochs, minlength=EPOCHS)
    present = np.flatnonzero(sizes)
    sums = np.zeros((EPOCHS, block.shape[1]))
    sums[present] = np.add.reduceat(block, (np.cumsum(sizes) - sizes)[present], axis=0)
    return sizes, sums


def _good_rows(u: Table, x: Table, passes: Passes) -> Integers:
    """The numbers of the rows that are finite in both tables."""
    (good,) = passes.fold(_Sifting(u, x), (0, x.shape[0]))
    rows = np.flatnonzero(in_order(good))
    if not len(rows):
        raise DataError("every row of u and x has a NaN or infinite value; there is nothing left to use.")
    return rows


@dataclass(frozen=True, eq=False)
class _Sifting:
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


def _refuse_bad_values(table: Table, bad: tuple[int, str]) -> None:
    """Name the first bad cell and count them all."""
    count, first = bad
    if count:
        raise DataError(
            f"{table.name} has {count} NaN or infinite values, the first {first}; "
            "repair the data, or pass nan='drop' to leave such rows out."
        )


def _refuse_outside(u: Table, block: Floats, start: int, basis: ProductBasis) -> None:
    """Inputs the declared distribution cannot produce, beyond the rounding of the type they came in."""
    for k, family in enumerate(basis.families):
        low, high = family.bounds
        column = block[:, k]
        rounding = u.rounding * float(np.abs(column).max())
        slack = OUTSIDE * (family.domain[1] - family.domain[0]) + rounding
        if column.min() < low - slack or column.max() > high + slack:
            row = int(np.argmax((column < low - slack) | (column > high + slack)))
            raise DataError(
                f"u is {_exact(column[row], low, high)} at {u.place(start + row, k)}, outside the domain "
                f"[{low:g}, {high:g}] of the {family.name} basis; {_domain_hint(column, family)}"
            )
        if isinstance(family, DiscreteFamily):
            levels = family.natural(family.levels)
            gap = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
            off = np.abs(column - levels[family.nearest(family.standard(column))]) > 1e-6 * gap + rounding
            if off.any():
                row = int(np.argmax(off))
                raise DataError(
                    f"u is {_exact(column[row], *levels)} at {u.place(start + row, k)}, which is not one of the "
                    f"{len(levels)} levels of the {family.name} basis; round it or change the family."
                )


def _exact(value: float, *others: float) -> str:
    """A number with as many digits as it takes to tell it from the others."""
    short = f"{value:g}"
    return f"{value:.17g}" if short in {f"{other:g}" for other in others} else short


def _domain_hint(column: Floats, family: Family) -> str:
    low, high = float(column.min()), float(column.max())
    fitting = fitting_domain(low, high, family.domain)
    if fitting:
        return f"pass domain={fitting} to product_basis, or rescale u."
    return f"here u runs from {low:g} to {high:g}: pass its true interval as domain= to product_basis."


def fitting_domain(low: float, high: float, current: tuple[float, float]) -> str | None:
    """A common interval, other than the current one, that the inputs fill."""
    names = ("(-1, 1)", "(0, 1)", "(0, 2*np.pi)", "(-np.pi, np.pi)")
    for name, (start, stop) in zip(names, COMMON_DOMAINS, strict=True):
        width = stop - start
        fits = start - OUTSIDE <= low and high <= stop + OUTSIDE and high - low > 0.9 * width
        if fits and not np.allclose((start, stop), current):
            return name
    return None
