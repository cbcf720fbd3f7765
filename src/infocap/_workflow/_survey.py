"""A first look at the data, before any mathematics: what cannot be used, and what the readouts look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._array import Table, array_namespace, as_like, to_numpy
from .._check import one_of
from .._parallel import parallel_map
from ..basis import DiscreteFamily, Family, ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import row_blocks
from ..typing import ArrayLike, Floats, Integers

OUTSIDE = 1e-9  # of the domain's width: how far an input may lie outside
DEAD = 32 * np.finfo(float).eps  # relative range below which a channel is rounding around a constant
TYPICAL_ROWS = 63  # odd, so that the median of a constant channel is exactly that constant
LOOK_BYTES = 500_000  # of readouts looked at together
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
    sample: Floats | None  # some rows of the readouts, chosen at random; None where they are on a device

    @property
    def dead(self) -> np.ndarray:
        """Channels that do not change."""
        return self.high / 2 - self.low / 2 <= DEAD * np.maximum(np.abs(self.low), np.abs(self.high))


def tables(
    u: ArrayLike, x: ArrayLike, basis: ProductBasis, complex_as: str | None, nan: str
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
    kept = _good_rows(inputs, readouts)
    return inputs.only(kept), readouts.only(kept), kept


def survey(u: Table, x: Table, basis: ProductBasis, epochs: Integers) -> Survey:
    """Read everything once; raise on values that have no meaning.

    `epochs` gives the stretch of the acquisition that each row belongs to.
    """
    n_rows, n_channels = x.shape
    typical = np.median(x.read_on_host(0, min(TYPICAL_ROWS, n_rows - (n_rows + 1) % 2)), axis=0)
    if x.on_device:
        looks = [_look_there(u, x, basis, epochs, typical)]
    else:
        pieces = list(row_blocks(0, n_rows, n_channels))
        looks = parallel_map(lambda rows: _look(u, x, basis, rows, epochs[slice(*rows)], typical), pieces)
    low, at_low = _extreme([look.low for look in looks], [look.at_low for look in looks], np.min)
    high, at_high = _extreme([look.high for look in looks], [look.at_high for look in looks], np.max)
    sizes = np.sum([look.epoch_sizes for look in looks], axis=0)
    return Survey(
        typical,
        low,
        high,
        np.maximum(at_low, at_high) / n_rows,
        np.min([look.input_low for look in looks], axis=0),
        np.max([look.input_high for look in looks], axis=0),
        sizes,
        np.sum([look.epoch_sums for look in looks], axis=0) / np.maximum(sizes, 1)[:, None],
        None if x.on_device else np.vstack([look.sample for look in looks]),  # type: ignore[misc]
    )


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
    sample: Floats | None


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
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are found in the extremes
        input_low, input_high = inputs.min(axis=0), inputs.max(axis=0)
        extremes = _extremes_in_parts(readouts)
        _refuse_not_finite(u, input_low, input_high)
        _refuse_not_finite(x, *extremes[:2])
        sums = _by_epoch(epochs, readouts, typical)
    _refuse_outside(u, rows, input_low, input_high, basis)
    return Look(*extremes, input_low, input_high, *sums, _some(readouts, rows[0], x.shape[0]))


def _look_there(u: Table, x: Table, basis: ProductBasis, epochs: Integers, typical: Floats) -> Look:
    """The same for all rows of readouts on a device: everything is fetched from there at once."""
    rows, k, q = (0, x.shape[0]), x.shape[1], u.shape[1]
    inputs, readouts = u.read(*rows), x.read(*rows)
    inputs = inputs if u.on_device else as_like(inputs, readouts)
    xp, sizes = array_namespace(readouts), np.bincount(epochs, minlength=EPOCHS)
    epoch = xp.arange(EPOCHS, device=readouts.device)[:, None] == as_like(epochs, readouts)[None, :]
    sums = xp.astype(epoch, xp.float64) @ (readouts - as_like(typical, readouts))
    parts = [*_extremes(readouts), xp.min(inputs, axis=0), xp.max(inputs, axis=0), xp.reshape(sums, (-1,))]
    found = to_numpy(xp.concat(parts))
    low, high, at_low, at_high, input_low, input_high, flat = np.split(
        found, np.cumsum([k, k, k, k, q, q]).tolist()
    )
    _refuse_not_finite(u, input_low, input_high)
    _refuse_not_finite(x, low, high)
    _refuse_outside(u, rows, input_low, input_high, basis)
    counts = at_low.astype(int), at_high.astype(int)
    return Look(low, high, *counts, input_low, input_high, sizes, flat.reshape(EPOCHS, k), None)


def _extremes(block: Any) -> tuple[Any, Any, Any, Any]:
    """The lowest and highest value of each channel, and how many rows sit on them."""
    xp = array_namespace(block)
    low, high = xp.min(block, axis=0), xp.max(block, axis=0)
    at_low, at_high = (_count(xp, block == edge) for edge in (low, high))
    return low, high, at_low, at_high


def _count(xp: Any, true: Any) -> Any:
    """How many rows are true, for each column."""
    if xp is np:
        return np.add.reduce(true.view(np.int8), axis=0, dtype=np.int16 if len(true) < 2**15 else np.int64)
    return xp.sum(xp.astype(true, xp.float64), axis=0)


def _extremes_in_parts(block: Floats) -> tuple[Floats, Floats, Integers, Integers]:
    """The same, a few rows at a time that stay in cache."""
    step = _cached_rows(block)
    parts = [_extremes(block[start : start + step]) for start in range(0, len(block), step)]
    lows, highs, at_lows, at_highs = (list(column) for column in zip(*parts, strict=True))
    low, at_low = _extreme(lows, at_lows, np.min)
    high, at_high = _extreme(highs, at_highs, np.max)
    return low, high, at_low, at_high


def _some(block: Floats, start: int, n_rows: int) -> Floats:
    """Rows of a block chosen at random; of all blocks together, several times as many as there are channels."""
    wanted = max(4 * (block.shape[1] + 1), 256) * len(block) / n_rows
    generator = np.random.default_rng(start)  # every n-th would do, but not on Sobol points
    return block[generator.choice(len(block), min(int(wanted) + 1, len(block)), replace=False)]


def _cached_rows(block: Floats) -> int:
    """How many rows stay in cache while they are looked at in several ways."""
    return max(LOOK_BYTES // (8 * block.shape[1]), 1)


def _extreme(values: list[Floats], counts: list[Integers], choose: Any) -> tuple[Floats, Integers]:
    """The extreme of each channel over all blocks, and how many rows sit on it."""
    extreme = choose(values, axis=0)
    return extreme, np.sum(np.where(np.array(values) == extreme, counts, 0), axis=0)


def _by_epoch(epochs: Integers, block: Floats, typical: Floats) -> tuple[Integers, Floats]:
    """How many rows each epoch has, and the sums of what they differ by from the typical row."""
    sizes = np.bincount(epochs, minlength=EPOCHS)
    if np.any(epochs[1:] < epochs[:-1]):
        order = np.argsort(epochs, kind="stable")
        epochs, block = epochs[order], block[order]
    sums, stops = np.zeros((EPOCHS, block.shape[1])), np.cumsum(sizes)
    step = _cached_rows(block)
    for epoch in np.flatnonzero(sizes):
        for start in range(stops[epoch] - sizes[epoch], stops[epoch], step):
            rows = block[start : min(start + step, stops[epoch])]
            sums[epoch] += np.sum(rows - typical, axis=0)  # the difference first, so that no digits are lost
    return sizes, sums


def _good_rows(u: Table, x: Table) -> Integers:
    """The numbers of the rows that are finite in both tables."""
    good = [
        np.isfinite(u.read_on_host(start, stop)).all(axis=1)
        & np.isfinite(x.read_on_host(start, stop)).all(axis=1)
        for start, stop in row_blocks(0, x.shape[0], x.shape[1])
    ]
    rows = np.flatnonzero(np.concatenate(good))
    if not len(rows):
        raise DataError("every row of u and x has a NaN or infinite value; there is nothing left to use.")
    return rows


def _refuse_not_finite(table: Table, low: Floats, high: Floats) -> None:
    """NaN and infinity show in the extremes."""
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        _refuse_bad_values(table)


def _refuse_bad_values(table: Table) -> None:
    """Name the first bad cell and count them all."""
    count, first = 0, ""
    for start, stop in row_blocks(0, table.shape[0], table.shape[1]):
        block = table.read_on_host(start, stop)
        rows, columns = np.nonzero(~np.isfinite(block))
        count += len(rows)
        if len(rows) and not first:
            first = f"{block[rows[0], columns[0]]} at {table.place(start + int(rows[0]), int(columns[0]))}"
    raise DataError(
        f"{table.name} has {count} NaN or infinite values, the first {first}; "
        "repair the data, or pass nan='drop' to leave such rows out."
    )


def _refuse_outside(
    u: Table, rows: tuple[int, int], lowest: Floats, highest: Floats, basis: ProductBasis
) -> None:
    """Inputs the declared distribution cannot produce, beyond the rounding of the type they came in.

    The lowest and highest of each input tell; the rows are read again only to name the culprit, or to compare
    with levels.
    """
    start = rows[0]
    for k, family in enumerate(basis.families):
        low, high = family.bounds
        rounding = u.rounding * max(abs(lowest[k]), abs(highest[k]))
        slack = OUTSIDE * (family.domain[1] - family.domain[0]) + rounding
        if lowest[k] < low - slack or highest[k] > high + slack:
            column = u.read_on_host(*rows)[:, k]
            row = int(np.argmax((column < low - slack) | (column > high + slack)))
            raise DataError(
                f"u is {_exact(column[row], low, high)} at {u.place(start + row, k)}, outside the domain "
                f"[{low:g}, {high:g}] of the {family.name} basis; {_domain_hint(column, family)}"
            )
        if isinstance(family, DiscreteFamily):
            column = u.read_on_host(*rows)[:, k]
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
