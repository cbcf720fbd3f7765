"""A result as the terminal shows it."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from .._words import decimals
from ..errors import ParameterError
from ..result import CapacityResult
from ._terminal import say_checks

BAR = 30  # characters of the longest bar
ALL_DEGREES = 24  # up to here degrees without capacity are shown too


def summary(result: CapacityResult, top: int = 10, degree: int | None = None) -> list[str]:
    """Lines: the total in words, capacity by degree, the strongest functions."""
    lines = [
        total_in_words(result),
        f"  {result.n_samples} samples, {len(result.basis)} {result.basis.family_name} functions of "
        f"{_count(result.basis.n_inputs, 'input')} up to degree {result.basis.max_degree}, method "
        f"{result.method}",
        *_limits(result),
        "",
        *_by_degree(result),
    ]
    strongest = _strongest(result, top, degree)
    return [*lines, "", *strongest] if strongest else lines


def show_found(result: CapacityResult, written: list[Path], warned: list[str], quiet: bool) -> None:
    """What a command found, what it warns of, and which files it wrote; only the warnings when quiet."""
    if not quiet:
        click.echo("\n".join(["", *summary(result), ""]))
    say_checks(warned, [] if quiet else list(result.notes))
    if written and not quiet:
        click.echo(f"wrote {', '.join(map(str, written))}")


def total_in_words(result: CapacityResult) -> str:
    """The total with its interval."""
    error = result.total_standard_error
    if error is None:
        return (
            f"Total capacity {result.total:.3f} of at most {result.maximum} (no error bar from this method)"
        )
    digits = decimals(error)
    low, high = result.total_interval()
    return (
        f"Total capacity {result.total:.{digits}f} of at most {result.maximum}; "
        f"with 95 % confidence between {low:.{digits}f} and {high:.{digits}f}"
    )


def _limits(result: CapacityResult) -> list[str]:
    """What noise allows and how many factors there are, when they were measured."""
    lines = []
    if result.noise_limited_total is not None:
        lines.append(
            f"  noise allows at most {result.noise_limited_total:.2f} ± {result.noise_limited_standard_error:.2f} "
            "over all functions, also those outside the basis"
        )
    factors = result.metadata.get("factors", {}).get("n_factors")
    if factors is not None:
        lines.append(f"  factor analysis finds {factors} independent factors in the readouts")
    return lines


def _by_degree(result: CapacityResult) -> list[str]:
    table = result.by_degree()
    sums = table.sum(axis=1).to_numpy()
    longest = max(float(sums.max(initial=0.0)), 1e-12)
    head = f"  {'degree':>6}  {'capacity':>8}  {'1 input':>8}  {'2 inputs':>8}  {'more':>8}"
    lines = [head]
    for degree, row in zip(table.index, table.to_numpy(), strict=True):
        if row.sum() > 0 or len(table) <= ALL_DEGREES:
            parts = "  ".join(f"{value:8.3f}" if value else f"{'.':>8}" for value in row)
            bar = "=" * round(BAR * row.sum() / longest)
            lines.append(f"  {degree:6d}  {row.sum():8.3f}  {parts}  {bar}".rstrip())
    return lines


def _strongest(result: CapacityResult, top: int, degree: int | None) -> list[str]:
    """The largest capacities, the constant function aside."""
    basis = result.basis
    if degree is not None and not 0 <= degree <= basis.max_degree:
        raise ParameterError(f"degree={degree} is not in the basis, which goes from 0 to {basis.max_degree}.")
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
        reach = "" if intervals is None else f"  ({intervals[k, 0]:.3f} to {intervals[k, 1]:.3f})"
        lines.append(f"    {basis.labels[k]:<{width}}  {result.capacity[k]:.3f}{reach}")
    return lines


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
