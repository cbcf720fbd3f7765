"""A first look at the data, before any mathematics: what cannot be used, and what the readouts look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._array import Table
from .._check import one_of
from .._parallel import parallel_map
from ..basis import Family, ProductBasis
from ..basis._family import DiscreteFamily
from ..errors import DataError
from ..kernels import row_blocks
from ..typing import ArrayLike, Floats, Integers

OUTSIDE = 1e-9  # of the domain's width: how far an input may lie outside
DEAD = 32 * np.finfo(float).eps  # relative range below which a channel is rounding around a constant
TYPICAL_ROWS = 63  # odd, so that the median of a constant channel is exactly that constant
SATURATION_ROWS = 2048  # at least so many, evenly spaced, are compared with the extremes
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
    epoch_means: Floats  # (epochs, channels), in acquisition order
    n_dropped: int

    @property
    def dead(self) -> np.ndarray:
        """Channels that do not change."""
        return self.high - self.low <= DEAD * np.maximum(np.abs(self.low), np.abs(self.high))


def tables(u: ArrayLike, x: ArrayLike, basis: ProductBasis, complex_as: str | None) -> tuple[Table, Table]:
    """Inputs and readouts as tables of equally many rows."""
    one_of("complex_as", complex_as, (None, "abs2", "split"))  # type: ignore[arg-type]
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
    return inputs, readouts


def survey(u: Table, x: Table, basis: ProductBasis, nan: str, epochs: Integers) -> Survey:
    """Read everything once; raise on values that have no meaning.

    `epochs` gives the stretch of the acquisition that each row belongs to.
    """
    one_of("nan", nan, ("raise", "drop"))
    n_total = u.shape[0]
    if nan == "drop":
        epochs = epochs[_drop_bad_rows(u, x)]
    n_rows, n_channels = x.shape
    typical = np.median(x.read(0, min(TYPICAL_ROWS, n_rows - (n_rows + 1) % 2)), axis=0)
    step = max(1, n_rows // SATURATION_ROWS)
    looks = parallel_map(
        lambda rows: _look(u, x, basis, rows, step, epochs[slice(*rows)]),
        list(row_blocks(0, n_rows, n_channels)),
    )
    low, at_low = _extreme([look.low for look in looks], [look.at_low for look in looks], np.min)
    high, at_high = _extreme([look.high for look in looks], [look.at_high for look in looks], np.max)
    sizes = np.sum([look.epoch_sizes for look in looks], axis=0)
    return Survey(
        typical,
        low,
        high,
        np.maximum(at_low, at_high) / sum(look.n_compared for look in looks),
        np.min([look.input_low for look in looks], axis=0),
        np.max([look.input_high for look in looks], axis=0),
        sizes,
        np.sum([look.epoch_sums for look in looks], axis=0) / np.maximum(sizes, 1)[:, None],
        n_total - n_rows,
    )


class Look(NamedTuple):
    """What one block of rows shows."""

    low: Floats
    high: Floats
    at_low: Integers  # of the rows compared, those at the lowest value of the block
    at_high: Integers
    n_compared: int
    input_low: Floats
    input_high: Floats
    epoch_sizes: Integers
    epoch_sums: Floats


def _look(
    u: Table, x: Table, basis: ProductBasis, rows: tuple[int, int], step: int, epochs: Integers
) -> Look:
    """Check and describe one block of rows; every `step`-th is compared with the extremes."""
    inputs, readouts = u.read(*rows), x.read(*rows)
    for table, block in ((u, inputs), (x, readouts)):
        if not np.isfinite(block.sum()) and not np.isfinite(block).all():
            _refuse_bad_values(table)
    _refuse_outside(u, inputs, rows[0], basis)
    low, high, some = readouts.min(axis=0), readouts.max(axis=0), readouts[::step]
    return Look(
        low,
        high,
        np.count_nonzero(some == low, axis=0),
        np.count_nonzero(some == high, axis=0),
        len(some),
        inputs.min(axis=0),
        inputs.max(axis=0),
        *_by_epoch(epochs, readouts),
    )


def _extreme(values: list[Floats], counts: list[Integers], choose: Any) -> tuple[Floats, Integers]:
    """The extreme of each channel over all blocks, and how many of the rows compared sit on it."""
    extreme = choose(values, axis=0)
    return extreme, np.sum(np.where(np.array(values) == extreme, counts, 0), axis=0)


def _by_epoch(epochs: Integers, block: Floats) -> tuple[Integers, Floats]:
    """How many rows each epoch has, and their sums."""
    if np.any(epochs[1:] < epochs[:-1]):
        order = np.argsort(epochs, kind="stable")
        epochs, block = epochs[order], block[order]
    sizes = np.bincount(epochs, minlength=EPOCHS)
    present = np.flatnonzero(sizes)
    sums = np.zeros((EPOCHS, block.shape[1]))
    sums[present] = np.add.reduceat(block, (np.cumsum(sizes) - sizes)[present], axis=0)
    return sizes, sums


def _drop_bad_rows(u: Table, x: Table) -> Integers:
    """Keep the rows that are finite in both tables; their numbers."""
    good = [
        np.isfinite(u.read(start, stop)).all(axis=1) & np.isfinite(x.read(start, stop)).all(axis=1)
        for start, stop in row_blocks(0, x.shape[0], x.shape[1])
    ]
    kept = np.flatnonzero(np.concatenate(good))
    if not len(kept):
        raise DataError("every row of u and x has a NaN or infinite value; there is nothing left to use.")
    u.kept = x.kept = kept
    return kept


def _refuse_bad_values(table: Table) -> None:
    """Name the first bad cell and count them all."""
    count, first = 0, ""
    for start, stop in row_blocks(0, table.shape[0], table.shape[1]):
        block = table.read(start, stop)
        rows, columns = np.nonzero(~np.isfinite(block))
        count += len(rows)
        if len(rows) and not first:
            first = f"{block[rows[0], columns[0]]} at {table.place(start + int(rows[0]), int(columns[0]))}"
    raise DataError(
        f"{table.name} has {count} NaN or infinite values, the first {first}; "
        "repair the data, or pass nan='drop' to leave such rows out."
    )


def _refuse_outside(u: Table, block: Floats, start: int, basis: ProductBasis) -> None:
    """Inputs the declared distribution cannot produce."""
    for k, family in enumerate(basis.families):
        low, high = family.bounds
        slack = OUTSIDE * (family.domain[1] - family.domain[0])
        column = block[:, k]
        if column.min() < low - slack or column.max() > high + slack:
            outside = (column < low - slack) | (column > high + slack)
            row = int(np.argmax(outside))
            raise DataError(
                f"u is {column[row]:g} at {u.place(start + row, k)}, outside the domain [{low:g}, {high:g}] "
                f"of the {family.name} basis; {_domain_hint(column, family)}"
            )
        if isinstance(family, DiscreteFamily):
            levels = family.natural(family.levels)
            off = np.abs(column - levels[family.nearest(family.standard(column))]) > slack
            if off.any():
                row = int(np.argmax(off))
                raise DataError(
                    f"u is {column[row]:g} at {u.place(start + row, k)}, which is not one of the "
                    f"{len(levels)} levels of the {family.name} basis; round it or change the family."
                )


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
