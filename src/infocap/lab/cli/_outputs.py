"""What the commands say of a result or a recording, and the files they write, never over something else's."""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..._formatting import counted, decimals, listed, with_error
from ..._validation import positive
from ...errors import Check, DataError, ParameterError
from ...recording._recording import Recording
from ...recording._save import WRITERS
from ...result._capacity_result import CapacityResult
from ...result._files import is_result
from ..experiment._plan import Plan
from ._terminal import FILE, check_lines, echo, option, say

PICTURES = (".png", ".pdf", ".svg")
PAGE = b'name="generator" content="infocap'
MILLIMETRES = {"mm": 1.0, "cm": 10.0, "in": 25.4}
BAR = (
    30  # The longest bar has so many characters, which leaves room for the numbers on a line of 80.
)
ALL_DEGREES = 24  # A table of more degrees than fit on a screen leaves out those without capacity.
# Readouts, and files and things left out, that are shown one by one, so that all fits on a screen.
MOST_SHOWN, MOST_LEFT = 8, 20
# Seconds since 1970 that are fewer would be of 1973: smaller numbers are seconds of the run, or count its rows.
EARLIEST_S = 1e8


def _millimetres(_: click.Context, param: click.Parameter, given: str | None) -> float | None:
    """Return a width such as 89mm, 18.3cm or 3.5in in millimetres."""
    if given is None:
        return None
    with suppress(KeyError, ValueError):
        return positive("width", float(given[:-2]) * MILLIMETRES[given[-2:]])
    raise click.BadParameter(
        f"{given!r} is not a width such as 89mm, 18.3cm or 3.5in.", param=param
    )


WIDTH: Any = {
    "callback": _millimetres,
    "help": "Width of pictures, such as 89mm.  [default: one column or two]",
}
PICTURE: Any = {"type": FILE, "multiple": True, "metavar": "FILE"}
FITTING = (
    "The matrix for 2 inputs, the memory function of a sequence, else bars; .png, .pdf or .svg"
)


@dataclass(frozen=True)
class Out:
    """Where a result and pictures of it go, and how much is said about it."""

    output: tuple[Path, ...] = option(
        "-o", "--output", type=FILE, multiple=True, help="Result, .nc or .csv"
    )
    plot: tuple[Path, ...] = option("--plot", **PICTURE, help=FITTING)
    bars: tuple[Path, ...] = option("--bars", **PICTURE, help="Capacity by total degree.")
    width: float | None = option("--width", **WIDTH)
    strict: bool = option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")
    quiet: bool = option("--quiet", is_flag=True, help="Show warnings only.")

    @property
    def files(self) -> list[Path]:
        """All of them, in the order in which they are written."""
        return [*self.output, *self.plot, *self.bars]

    def check(self) -> None:
        """Refuse places where the files cannot go."""
        for path in self.output:
            check_place(path, (".nc", ".csv"), is_result(path), "an infocap result")
        check_pictures([*self.plot, *self.bars], self.files)

    def finish(self, result: CapacityResult, lines: Iterable[str]) -> None:
        """Write the files that are wanted, and say what was found."""
        fitting = "capacity_matrix" if result.basis.n_inputs == 2 else "capacity_bars"
        fitting = "memory_function" if result.basis.memory else fitting
        for path in self.output:
            result.save(path)
        for kind, paths in ((fitting, self.plot), ("capacity_bars", self.bars)):
            for path in paths:
                save_picture(kind, result, path, self.width)
        self.tell(lines, result.checks)

    def tell(self, lines: Iterable[str], checks: Iterable[str]) -> None:
        """Say what was found, as much of it as is wanted, and end with 1 if that is wanted for warnings."""
        warned = [one for one in checks if not isinstance(one, Check) or one.kind == "warning"]
        if not self.quiet:
            say(lines, checks, self.files)
        elif warned:
            echo("\n".join(check_lines(warned)))
        if self.strict and warned:
            click.get_current_context().exit(1)


def summary(result: CapacityResult, top: int = 10) -> list[str]:
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
        lines.append(
            f"  noise allows about {limit} over all functions, also those outside the basis"
        )
    if result.factors is not None and result.factors.n_factors is not None:
        n_factors = result.factors.n_factors
        lines.append(f"  factor analysis finds {n_factors} independent factors in the readouts")
    each = "delay" if basis.of_sequences else "input"  # of products: one factor per delayed input
    lines += [
        "",
        f"  {'degree':>6}  {'capacity':>8}  {f'1 {each}':>8}  {f'2 {each}s':>8}  {'more':>8}",
    ]
    table = result.by_degree()
    longest = max(float(table.sum(axis=1).max()), 1e-12)
    for one, row in zip(table.index, table.to_numpy(), strict=True):
        if row.sum() > 0 or len(table) <= ALL_DEGREES:
            named = [
                f"{row[0]:8.3f}" if one else "constant",
                *(f"{value:8.3f}" for value in row[1:]),
            ]
            parts = "  ".join(
                part if value else f"{'.':>8}" for part, value in zip(named, row, strict=True)
            )
            bar = "=" * round(BAR * row.sum() / longest)
            lines.append(f"  {one:6d}  {row.sum():8.3f}  {parts}  {bar}".rstrip())
    return [*lines, *_strongest(result, top)]


def _strongest(result: CapacityResult, top: int) -> list[str]:
    """Return the largest capacities of all functions but the constant one."""
    basis, capacity = result.basis, result.capacity
    order = [
        k for k in np.argsort(-capacity, kind="stable") if basis.degrees[k] and capacity[k] > 0
    ]
    shown = order[:top]
    if not shown:
        return []
    width = max(len(basis.labels[k]) for k in shown)
    lines = [f"    {basis.labels[k]:<{width}}  {capacity[k]:.3f}" for k in shown]
    said = f"  strongest functions, {len(shown)} of {len(order)} that are not zero"
    if result.standard_error is not None:
        said += " (95 % interval)"
        between = [f"({low:.3f} to {high:.3f})" for low, high in result.interval()[shown]]
        lines = [f"{line}  {interval}" for line, interval in zip(lines, between, strict=True)]
    return ["", said, *lines]


def describe(recording: Recording) -> list[str]:
    """Return what a recording holds and where it comes from, one line per thing: its role, its name, its range."""
    u, x = np.asarray(recording.inputs), np.asarray(recording.readouts)
    metadata = dict(recording.metadata)
    choices = metadata.pop("read_from", [])
    lines = [f"{one['file']}: {one['as']}" for one in choices[:MOST_LEFT]]
    lines.append(
        f"Recording of {len(u)} samples, {counted(u.shape[1], 'input')}, {counted(x.shape[1], 'readout')}"
    )
    columns: list[tuple[str, str, str]] = []
    for role, names, values, unit in (
        (
            "input",
            recording.input_names or [f"u{k + 1}" for k in range(u.shape[1])],
            u,
            recording.input_unit,
        ),
        (
            "readout",
            recording.channel or [f"x{k + 1}" for k in range(x.shape[1])],
            x,
            recording.readout_unit,
        ),
    ):
        columns += [
            (role, name, f"{_span(values[:, k])} {unit}")
            for k, name in enumerate(names[:MOST_SHOWN])
        ]
        if len(names) > MOST_SHOWN:  # one range for all of them
            rest = f"... {names[-1]}, {len(names) - MOST_SHOWN} more"
            columns.append((role, rest, f"{_span(values[:, MOST_SHOWN:])} {unit}"))
    width = max(len(name) for _, name, _ in columns)
    lines += [f"  {role:<9} {name:<{width}}  {span}".rstrip() for role, name, span in columns]
    facts: list[tuple[str, str]] = []
    bad = int((~(np.isfinite(u).all(axis=1) & np.isfinite(x).all(axis=1))).sum())
    if bad:
        facts.append(("missing", f"NaN or infinite values in {counted(bad, 'sample')}"))
    if recording.time is not None and len(u):
        as_designed = np.all(np.diff(np.asarray(recording.time)) >= 0)
        order = "the order of the rows" if as_designed else "another order than that of the rows"
        name = "".join(f"{name}: " for one in choices for name in one.get("time", []))
        facts.append(("time", f"{name}{_span(np.asarray(recording.time))}, acquired in {order}"))
    if recording.repeats is not None:
        twice = np.isfinite(recording.repeats).all(axis=1).sum()
        facts.append(("repeats", f"{twice} samples were measured twice"))
    if recording.noise is not None:
        facts.append(
            ("noise", f"{len(recording.noise)} measurements of the noise, each at a constant input")
        )
    if recording.reference is not None:
        facts.append(
            (
                "reference",
                f"{len(recording.reference)} of the drift reference, each at a constant input",
            )
        )
    if recording.extra is not None:
        facts.append(("extra", listed(recording.extra_names, 4)))
    left = [f"{name}: {why}" for one in choices for name, why in one.get("left out", {}).items()]
    left[MOST_LEFT:] = [f"{len(left) - MOST_LEFT} more"] if len(left) > MOST_LEFT else []
    facts += [("left out", one) for one in left]
    for name, value in metadata.items():
        text = re.sub(r"[][{}']", "", str(value))
        text = text if len(text) <= 60 else text[:57] + "..."
        if name == "plan":
            try:
                text = Plan.from_dict(value).in_words()
            except ValueError as problem:
                text = f"cannot be used: {problem}"
        facts.append((name.replace("_", " "), text))
    width = max([9, *(len(name) for name, _ in facts)])
    return lines + [f"  {name:<{width}} {text}" for name, text in facts]


def _span(values: np.ndarray) -> str:
    """Return the smallest and the largest value, as dates where they are such times, and whether they count rows."""
    sizes = np.abs(values) if values.dtype.kind == "c" else values
    if not np.isfinite(sizes).any():
        return "no numbers"
    ends = [np.nanmin(sizes), np.nanmax(sizes)]
    if ends[0] > EARLIEST_S and values.ndim == 1:
        return " to ".join(str(np.datetime64(int(one), "s")).replace("T", " ") for one in ends)
    counts = values.ndim == 1 and len(values) > 2 and (np.diff(sizes) == 1).all()
    return f"{ends[0]:.5g} to {ends[1]:.5g}{', counts the rows' if counts else ''}"


def check_pictures(pictures: Iterable[Path], written: Iterable[Path]) -> None:
    """Refuse places where no picture can go, and the same name for two of the files that will be written."""
    for path in pictures:
        check_place(path, PICTURES)
    for path, times in Counter(one.resolve() for one in written).items():
        if times > 1:
            raise ParameterError(f"{path} is named twice; give each file its own name.")


def check_place(path: Path, suffixes: Iterable[str], ours: bool = True, what: str = "") -> None:
    """Refuse another suffix, a folder that is not there, and a file that is not `ours`, which is of another kind."""
    if path.suffix not in suffixes:
        raise ParameterError(
            f"{path}: {path.suffix!r} is not one of {', '.join(map(repr, suffixes))}."
        )
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists() and path.stat().st_size and not ours:
        raise ParameterError(f"{path} is there already and is not {what}; give another name.")


def refuse_existing(path: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """Refuse to write over data that are there already, unless the user wants them replaced."""
    check_place(path.with_suffix(path.suffix.lower()), suffixes)
    if path.exists() and not force:
        raise ParameterError(
            f"{path} is there already; give another name, or --force to replace it."
        )


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
