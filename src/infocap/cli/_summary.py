"""A result as the terminal shows it."""

from __future__ import annotations

import numpy as np

from .._words import decimals, with_error
from ..errors import ParameterError
from ..result import CapacityResult
from ._terminal import counted

BAR = 30  # The longest bar has so many characters, which leaves room for the numbers on a line of 80.
ALL_DEGREES = 24  # A table of more degrees than fit on a screen leaves out those without capacity.


def summary(result: CapacityResult, top: int = 10, degree: int | None = None) -> list[str]:
    """Return lines: the total in words, capacity by degree, the strongest functions."""
    lines = [
        _total(result),
        f"  {result.n_samples} samples, {len(result.basis)} {result.basis.family_name} functions of "
        f"{counted(result.basis.n_inputs, 'input')} up to degree {result.basis.max_degree}, method "
        f"{result.method}",
    ]
    if result.noise_limited_total is not None:
        limit = with_error(result.noise_limited_total, result.noise_limited_standard_error)
        lines.append(f"  noise allows at most {limit} over all functions, also those outside the basis")
    if result.factors is not None and result.factors.n_factors is not None:
        lines.append(
            f"  factor analysis finds {result.factors.n_factors} independent factors in the readouts"
        )
    strongest = _strongest(result, top, degree)
    return [*lines, "", *_by_degree(result), *([""] if strongest else []), *strongest]


def _total(result: CapacityResult) -> str:
    """Return the total with its interval, in words."""
    error, most = result.total_standard_error, f"of at most {result.maximum} ({result.readouts_in_words})"
    if error is None:
        return f"Total capacity {result.total:.3f} {most} (no error bar from this method)"
    digits = decimals(error)
    low, high = result.total_interval()
    return (
        f"Total capacity {result.total:.{digits}f} {most}; "
        f"with 95 % confidence between {low:.{digits}f} and {high:.{digits}f}"
    )


def _by_degree(result: CapacityResult) -> list[str]:
    table = result.by_degree()
    longest = max(float(table.sum(axis=1).max()), 1e-12)
    lines = [f"  {'degree':>6}  {'capacity':>8}  {'1 input':>8}  {'2 inputs':>8}  {'more':>8}"]
    for degree, row in zip(table.index, table.to_numpy(), strict=True):
        if row.sum() > 0 or len(table) <= ALL_DEGREES:
            parts = "  ".join(f"{value:8.3f}" if value else f"{'.':>8}" for value in row)
            bar = "=" * round(BAR * row.sum() / longest)
            lines.append(f"  {degree:6d}  {row.sum():8.3f}  {parts}  {bar}".rstrip())
    return lines


def _strongest(result: CapacityResult, top: int, degree: int | None) -> list[str]:
    """Return the largest capacities, of one degree or of all but the constant function."""
    basis = result.basis
    if degree is not None and degree > basis.max_degree:
        raise ParameterError(
            f"--degree {degree} is not in the basis, which goes from 0 to {basis.max_degree}."
        )
    wanted = basis.degrees > 0 if degree is None else basis.degrees == degree
    order = [k for k in np.argsort(-result.capacity, kind="stable") if wanted[k] and result.capacity[k] > 0]
    shown = order[:top]
    if not shown:
        return []
    where = "" if degree is None else f" of degree {degree}"
    intervals = None if result.standard_error is None else result.interval()
    width = max(len(basis.labels[k]) for k in shown)
    lines = [
        f"  strongest functions{where}, {len(shown)} of {len(order)} that are not zero"
        + ("" if intervals is None else " (95 % interval)")
    ]
    for k in shown:
        interval = "" if intervals is None else f"  ({intervals[k, 0]:.3f} to {intervals[k, 1]:.3f})"
        lines.append(f"    {basis.labels[k]:<{width}}  {result.capacity[k]:.3f}{interval}")
    return lines
