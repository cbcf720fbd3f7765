"""A comparison as a person wants to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._words import HALF_WIDTH_95, decimals, with_error, without_minus_zero

if TYPE_CHECKING:
    import pandas as pd

    from ._compare import Comparison

SHOWN = 5  # functions that differ most, for each device


def as_text(comparison: Comparison) -> str:
    """Totals, degrees, and the functions that differ most."""
    basis, names = comparison.basis, comparison.names
    lines = [
        f"Comparison of {len(names)} results over {len(basis)} {basis.family_name} functions of "
        f"{basis.n_inputs} inputs; ± reaches over the 95 % interval, * is a difference beyond it",
        "",
        *_totals(comparison),
        "",
        *_degrees(comparison),
    ]
    for name in names[1:]:
        lines += ["", *_functions(comparison, name)]
    lines += [f"  check: {check}" for check in comparison.checks]
    return "\n".join(lines)


def _totals(comparison: Comparison) -> list[str]:
    first = comparison.names[0]
    rows = [["", "total", "of", f"minus {first}"]]
    table = comparison.totals()
    for (_, row), result in zip(table.iterrows(), comparison.results, strict=True):
        rows.append([row.device, _value(row), str(result.maximum), _difference(row)])
    return _columns(rows)


def _degrees(comparison: Comparison) -> list[str]:
    names = comparison.names
    rows = [["degree", *names, *(f"{name} - {names[0]}" for name in names[1:])]]
    for degree, part in comparison.by_degree().groupby("name", sort=False):
        if comparison.basis.max_degree <= 20 or part.capacity.max() >= 0.0005:
            lines = [row for _, row in part.iterrows()]
            rows.append(
                [
                    str(degree),
                    *(f"{without_minus_zero(row.capacity, 3):.3f}" for row in lines),
                    *(_difference(row, digits=3) for row in lines[1:]),
                ]
            )
    return _columns(rows)


def _functions(comparison: Comparison, name: str) -> list[str]:
    table = comparison.functions()
    ours = table[table.device == name].reset_index(drop=True)
    clear = ours[ours.significant]
    head = f"  {len(clear)} of {len(ours)} functions differ between {comparison.names[0]} and {name}"
    if not np.isfinite(ours.difference_standard_error).any():
        return ["  no error bars, so no saying which functions differ"]
    if not len(clear):
        return [head]
    largest = clear.reindex(clear.difference.abs().sort_values(ascending=False, kind="stable").index)[:SHOWN]
    rows = [[f"  {row['name']}", _difference(row, mark=False)] for _, row in largest.iterrows()]
    return [f"{head} (at most 5 % of these by chance); the most:", *_columns(rows)]


def _value(row: pd.Series) -> str:
    """A capacity and how far its interval reaches."""
    if not np.isfinite(row.standard_error):
        return with_error(row.capacity, None)
    digits = decimals(row.standard_error)
    shown = without_minus_zero(row.capacity, digits)
    return f"{shown:.{digits}f} ± {HALF_WIDTH_95 * row.standard_error:.{digits}f}"


def _difference(row: pd.Series, *, mark: bool = True, digits: int | None = None) -> str:
    """A difference, how far its interval reaches, and a star where that leaves out zero."""
    if np.isnan(row.difference):
        return ""
    if not np.isfinite(row.difference_standard_error):
        return f"{without_minus_zero(row.difference, 3):+.3f}"
    digits = decimals(row.difference_standard_error) if digits is None else digits
    beyond = row.difference_low > 0 or row.difference_high < 0
    star = " *" if mark and beyond and abs(row.difference) > 1e-7 else "  " if mark else ""
    reach = (row.difference_high - row.difference_low) / 2
    return f"{without_minus_zero(row.difference, digits):+.{digits}f} ± {reach:.{digits}f}{star}"


def _columns(rows: list[list[Any]]) -> list[str]:
    """A table: the first column to the left, the others to the right."""
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(rows[0]))]
    return [
        "  "
        + "   ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(map(str, row), widths, strict=True))
        ).rstrip()
        for row in rows
    ]
