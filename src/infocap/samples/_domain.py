"""Inputs that the declared distribution cannot produce: refused, with advice on the domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..basis import DiscreteFamily, Family, ProductBasis
from ..errors import DataError
from ._table import Table

# Fraction of the domain's width by which an input may lie outside: rounding of a unit conversion.
MAX_RELATIVE_EXCESS = 1e-9
# Distance from a level, relative to the smallest gap between levels, that counts as rounding.
MAX_RELATIVE_DISTANCE_FROM_LEVEL = 1e-6
# Domains that messages propose, by how to write them.
COMMON_DOMAINS = {
    "(-1, 1)": (-1.0, 1.0),
    "(0, 1)": (0.0, 1.0),
    "(0, 2*np.pi)": (0.0, 2 * np.pi),
    "(-np.pi, np.pi)": (-np.pi, np.pi),
}
# Fraction of a common domain that inputs must fill for it to be proposed.
MIN_FRACTION_OF_DOMAIN = 0.9


def check_domain(
    u: Table, rows: tuple[int, int], lowest: Any, highest: Any, basis: ProductBasis
) -> None:
    """Refuse inputs that the declared distribution cannot produce, beyond rounding.

    Parameters
    ----------
    u
        The inputs. They are read again only to name the culprit, or to compare with levels.
    rows
        Range of the rows to check.
    lowest, highest
        The smallest and largest value of each input in these rows.
    basis
        Its families declare the distributions.
    """
    for k, family in enumerate(basis.families):
        rounding = u.rounding * max(abs(lowest[k]), abs(highest[k]))
        width = family.domain[1] - family.domain[0]
        slack = MAX_RELATIVE_EXCESS * width + rounding
        low, high = family.bounds
        if lowest[k] < low - slack or highest[k] > high + slack:
            raise _outside_domain(u, rows, k, slack, basis)
        if isinstance(family, DiscreteFamily):
            _refuse_off_levels(u, rows, k, family, rounding)


def _outside_domain(
    u: Table, rows: tuple[int, int], k: int, slack: float, basis: ProductBasis
) -> DataError:
    family = basis.families[k]
    low, high = family.bounds
    values = u.read(*rows, on_host=True)[:, k]
    row = int(np.argmax((values < low - slack) | (values > high + slack)))
    smallest = float(values.min())
    largest = float(values.max())
    return DataError(
        f"u is {_exact(values[row], low, high)} at {u.describe_cell(rows[0] + row, k)}, outside "
        f"the domain [{low:g}, {high:g}] of the {family.name} basis; here u runs from "
        f"{smallest:g} to {largest:g}: {suggest_domain(smallest, largest, family, basis)}; if it "
        "is normally distributed, take the family 'hermite', and if its distribution is not known, "
        "the family 'recorded'."
    )


def _refuse_off_levels(
    u: Table, rows: tuple[int, int], k: int, family: DiscreteFamily, rounding: float
) -> None:
    values = u.read(*rows, on_host=True)[:, k]
    levels = family.natural(family.levels)
    nearest_level = levels[family.nearest(family.standard(values))]
    gap = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
    tolerance = MAX_RELATIVE_DISTANCE_FROM_LEVEL * gap + rounding
    is_off = np.abs(values - nearest_level) > tolerance
    if not is_off.any():
        return
    row = int(np.argmax(is_off))
    raise DataError(
        f"u is {_exact(values[row], *levels)} at {u.describe_cell(rows[0] + row, k)}, which is not "
        f"one of the {len(levels)} levels of the {family.name} basis; round it or change the "
        "family."
    )


def _exact(value: float, *others: float) -> str:
    """Return a number with as many digits as it takes to distinguish it from the others."""
    short = f"{value:g}"
    if short in {f"{other:g}" for other in others}:
        return f"{value:.17g}"
    return short


def suggest_domain(low: float, high: float, family: Family, basis: ProductBasis) -> str:
    """Return which domain to pass for inputs from `low` to `high`.

    That is a common interval which they fill, other than the family's, if there is one.
    """
    maker = "delayed_basis" if basis.of_sequences else "product_basis"
    for text, (start, stop) in COMMON_DOMAINS.items():
        is_inside = start - MAX_RELATIVE_EXCESS <= low and high <= stop + MAX_RELATIVE_EXCESS
        is_filled = high - low > MIN_FRACTION_OF_DOMAIN * (stop - start)
        is_other = not np.allclose((start, stop), family.domain)
        if is_inside and is_filled and is_other:
            return f"pass `domain={text}` to {maker}"
    return f"pass its true interval as `domain` to {maker}, or check gain and offset of the source"
