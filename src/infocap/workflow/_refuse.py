"""Values that no estimation can use, and what to do about them."""

from __future__ import annotations

import numpy as np

from .._table import Table
from ..basis import DiscreteFamily, Family, ProductBasis
from ..errors import DataError
from ..typing import Floats

OUTSIDE = 1e-9  # of the domain's width: how far an input may lie outside
OTHER_FAMILY = "if it is normally distributed, take `family='hermite'`"
COMMON_DOMAINS = ((-1.0, 1.0), (0.0, 1.0), (0.0, 2 * np.pi), (-np.pi, np.pi))


def refuse_bad_values(table: Table, bad: tuple[int, str]) -> None:
    """Name the first bad cell and count them all."""
    count, first = bad
    if count:
        raise DataError(
            f"{table.name} has {count} NaN or infinite values, the first {first}; "
            "repair the data, or pass `nan='drop'` to leave such rows out."
        )


def refuse_outside(
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
        return f"make the basis with `domain={fitting}`, or rescale u; {OTHER_FAMILY}."
    return (
        f"here u runs from {low:g} to {high:g}: make the basis with its true interval, `domain=(low, high)`; "
        f"{OTHER_FAMILY}."
    )


def fitting_domain(low: float, high: float, current: tuple[float, float]) -> str | None:
    """A common interval, other than the current one, that the inputs fill."""
    names = ("(-1, 1)", "(0, 1)", "(0, 2*np.pi)", "(-np.pi, np.pi)")
    for name, (start, stop) in zip(names, COMMON_DOMAINS, strict=True):
        width = stop - start
        fits = start - OUTSIDE <= low and high <= stop + OUTSIDE and high - low > 0.9 * width
        if fits and not np.allclose((start, stop), current):
            return name
    return None
