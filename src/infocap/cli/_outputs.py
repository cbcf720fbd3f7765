"""What the commands say of a result, and the files they write, never over something else's."""

from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._check import positive
from .._words import counted, decimals, with_error
from ..errors import DataError, ParameterError
from ..recording._own_file import WRITERS
from ..result._capacity_result import CapacityResult
from ..result._files import is_result
from ._terminal import FILE, option

PICTURES = {".png": (b"\x89PNG",), ".pdf": (b"%PDF",), ".svg": (b"<?xml", b"<svg")}  # and how they begin
PAGE = b'name="generator" content="infocap'
MILLIMETRES = {"mm": 1.0, "cm": 10.0, "in": 25.4}
BAR = 30  # The longest bar has so many characters, which leaves room for the numbers on a line of 80.
ALL_DEGREES = 24  # A table of more degrees than fit on a screen leaves out those without capacity.


def _picture(name: str, text: str) -> Any:
    return option(name, type=FILE, multiple=True, metavar="FILE", help=text)


def _millimetres(_: click.Context, param: click.Parameter, given: str | None) -> float | None:
    """Return a width such as 89mm, 18.3cm or 3.5in in millimetres."""
    if given is None:
        return None
    with suppress(KeyError, ValueError):
        return positive("width", float(given[:-2]) * MILLIMETRES[given[-2:]])
    raise click.BadParameter(f"{given!r} is not a width such as 89mm, 18.3cm or 3.5in.", param=param)


WIDTH: Any = {"callback": _millimetres, "help": "Width of pictures, such as 89mm.  [default: one column or two]"}


@dataclass(frozen=True)
class Pictures:
    """The pictures of a result that are wanted."""

    plot: tuple[Path, ...] = _picture(
        "--plot", "The matrix for 2 inputs, the memory function of a sequence, else bars; .png, .pdf or .svg"
    )
    matrix: tuple[Path, ...] = _picture("--matrix", "Capacity matrix, for 2 inputs.")
    bars: tuple[Path, ...] = _picture("--bars", "Capacity by total degree.")
    growth: tuple[Path, ...] = _picture("--growth", "Total against the number of samples.")

    width: float | None = option("--width", **WIDTH)

    @property
    def pictures(self) -> list[Path]:
        """All of them, in the order in which they are drawn."""
        return [*self.plot, *self.matrix, *self.bars, *self.growth]

    def check(self) -> None:
        """Refuse places where the files cannot go."""
        check_pictures(self.pictures, self.pictures)

    def write(self, result: CapacityResult) -> list[Path]:
        """Draw the pictures; return their names."""
        fitting = "capacity_matrix" if result.basis.n_inputs == 2 else "capacity_bars"
        fitting = "memory_function" if result.basis.memory else fitting
        kinds = (fitting, "capacity_matrix", "capacity_bars", "growth")
        for kind, paths in zip(kinds, (self.plot, self.matrix, self.bars, self.growth), strict=True):
            for path in paths:
                save_picture(kind, result, path, self.width)
        return self.pictures


@dataclass(frozen=True)
class Out(Pictures):
    """Where a result goes, and how much is said about it."""

    output: tuple[Path, ...] = option("-o", "--output", type=FILE, multiple=True, help="Result, .nc or .csv")
    strict: bool = option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
    quiet: bool = option("--quiet", is_flag=True, help="Show warnings only.")

    def check(self) -> None:
        """Refuse places where the files cannot go."""
        for path in self.output:
            check_place(path, (".nc", ".csv"), is_result(path), "an infocap result")
        check_pictures(self.pictures, [*self.output, *self.pictures])

    def write(self, result: CapacityResult) -> list[Path]:
        """Save the result and draw its pictures; return the names of all files."""
        return [result.save(path) for path in self.output] + super().write(result)


def summary(result: CapacityResult, top: int = 10, degree: int | None = None) -> list[str]:
    """Return lines: the total in words, capacity by degree, the strongest functions."""
    basis, error = result.basis, result.total_standard_error
    digits, interval = 3, " (no error bar from this method)"
    if result.unreliable:
        interval = ""
    elif error is not None:
        digits, (low, high) = decimals(error), result.total_interval()
        interval = f"; with 95 % confidence between {low:.{digits}f} and {high:.{digits}f}"
    lines = [
        f"Total capacity {result.qualified_total or f'{result.total:.{digits}f}'} of at most {result.maximum} "
        f"({result.readouts_in_words}){interval}",
        f"  {result.n_samples} samples, {len(basis)} {basis.family_name} functions of "
        f"{counted(basis.n_inputs, 'input')} up to degree {basis.max_degree}, method {result.method}",
    ]
    lines += [f"  {one}" for one in result.for_reservoirs]
    if result.noise_limited_total is not None:
        limit = with_error(result.noise_limited_total, result.noise_limited_standard_error)
        lines.append(f"  noise allows about {limit} over all functions, also those outside the basis")
    if result.factors is not None and result.factors.n_factors is not None:
        n_factors = result.factors.n_factors
        lines.append(f"  factor analysis finds {n_factors} independent factors in the readouts")
    each = "delay" if basis.of_sequences else "input"  # of products: one factor per delayed input
    lines += ["", f"  {'degree':>6}  {'capacity':>8}  {f'1 {each}':>8}  {f'2 {each}s':>8}  {'more':>8}"]
    table = result.by_degree()
    longest = max(float(table.sum(axis=1).max()), 1e-12)
    for one, row in zip(table.index, table.to_numpy(), strict=True):
        if row.sum() > 0 or len(table) <= ALL_DEGREES:
            named = [f"{row[0]:8.3f}" if one else "constant", *(f"{value:8.3f}" for value in row[1:])]
            parts = "  ".join(part if value else f"{'.':>8}" for part, value in zip(named, row, strict=True))
            bar = "=" * round(BAR * row.sum() / longest)
            lines.append(f"  {one:6d}  {row.sum():8.3f}  {parts}  {bar}".rstrip())
    return [*lines, *_strongest(result, top, degree)]


def _strongest(result: CapacityResult, top: int, degree: int | None) -> list[str]:
    """Return the largest capacities, of one degree or of all but the constant function."""
    basis, capacity = result.basis, result.capacity
    between = None if result.standard_error is None else result.interval()
    if degree is not None and degree > basis.max_degree:
        raise ParameterError(f"--degree {degree} is not in the basis, which ends at {basis.max_degree}.")
    wanted = basis.degrees > 0 if degree is None else basis.degrees == degree
    order = [k for k in np.argsort(-capacity, kind="stable") if wanted[k] and capacity[k] > 0]
    shown = order[:top]
    if not shown:
        return []
    where = "" if degree is None else f" of degree {degree}"
    said = f"  strongest functions{where}, {len(shown)} of {len(order)} that are not zero"
    lines = ["", said + ("" if between is None else " (95 % interval)")]
    width = max(len(basis.labels[k]) for k in shown)
    for k in shown:
        lines.append(f"    {basis.labels[k]:<{width}}  {capacity[k]:.3f}")
        if between is not None:
            low, high = between[k]
            lines[-1] += f"  ({low:.3f} to {high:.3f})"
    return lines


def check_pictures(pictures: Iterable[Path], written: Iterable[Path]) -> None:
    """Refuse places where no picture can go, and the same name for two of the files that will be written."""
    for path in pictures:
        ours = begins(path, PICTURES.get(path.suffix, ()))
        check_place(path, PICTURES, ours, f"a {path.suffix[1:].upper()} picture")
    for path, times in Counter(one.resolve() for one in written).items():
        if times > 1:
            raise ParameterError(f"{path} is named twice; give each file its own name.")


def check_place(path: Path, suffixes: Iterable[str], ours: bool, what: str) -> None:
    """Refuse another suffix, a folder that is not there, and a file that is not `ours`, which is of another kind."""
    check_name(path, suffixes)
    if path.exists() and path.stat().st_size and not ours:
        raise ParameterError(f"{path} is there already and is not {what}; give another name.")


def check_name(path: Path, suffixes: Iterable[str]) -> None:
    if path.suffix not in suffixes:
        raise ParameterError(f"{path}: {path.suffix!r} is not one of {', '.join(map(repr, suffixes))}.")
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")


def refuse_existing(path: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """Refuse to write over data that are there already, unless the user wants them replaced."""
    check_name(path.with_suffix(path.suffix.lower()), suffixes)
    if path.exists() and not force:
        raise ParameterError(f"{path} is there already; give another name, or --force to replace it.")


def begins(path: Path, beginnings: tuple[bytes, ...]) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).startswith(beginnings)


def save_picture(kind: str, shown: Any, path: Path, width_mm: float | None = None) -> None:
    """Write what a function of `infocap.plot` draws, perhaps so wide; no screen is needed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plot = import_module("infocap.plot")
    with nullcontext() if width_mm is None else plot.width(width_mm):
        ax = getattr(plot, kind)(shown)
    plot.save(ax, path)
    plt.close(ax.figure)
