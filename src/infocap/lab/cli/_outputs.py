"""The files that commands write, never over something else's, and the pictures among them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..._formatting import join_names
from ..._validation import did_you_mean, require_positive
from ...errors import Check, DataError, ParameterError
from ...recording import WRITERS, Recording
from ...result import CapacityResult, is_result, load_result
from ._terminal import FILE, check_lines, echo, exit_with_warnings, is_warning, option, say

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
WRITTEN_SUFFIXES = (".nc", ".csv")
# The bytes in the head of every page that infocap wrote, and how far into the file they are looked
# for.
PAGE_MARK = b'name="generator" content="infocap'
PAGE_HEAD_BYTES = 2000
MILLIMETRES = {"mm": 1.0, "cm": 10.0, "in": 25.4}

# Settings of options that take the name of a picture.
PICTURE: Any = {"type": FILE, "multiple": True, "metavar": "FILE"}


def _in_millimetres(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return a width such as 89mm, 18.3cm or 3.5in in millimetres."""
    if text is None:
        return None
    number = text[:-2]
    unit = text[-2:]
    with suppress(KeyError, ValueError):
        return require_positive("width", float(number) * MILLIMETRES[unit])
    raise click.BadParameter(
        f"{text!r} is not a width such as 89mm, 18.3cm or 3.5in.", param=parameter
    )


@dataclass(frozen=True)
class ResultOutput:
    """Where a result and a picture of it go."""

    output: tuple[Path, ...] = option(
        "-o", "--output", type=FILE, multiple=True, help="Result, .nc or .csv"
    )
    plot: tuple[Path, ...] = option(
        "--plot",
        **PICTURE,
        help="Picture, .png, .pdf or .svg: the matrix of 2 inputs, the memory function of a "
        "sequence, else bars.",
    )
    strict: bool = option("--strict", is_flag=True, help="Exit with 1 when there are warnings.")

    @property
    def pictures(self) -> list[Path]:
        """The pictures, in the order in which they are written."""
        return list(self.plot)

    @property
    def files(self) -> list[Path]:
        """All files, in the order in which they are written."""
        return [*self.output, *self.pictures]

    def check(self) -> None:
        """Refuse places where the files cannot go."""
        for path in self.output:
            refuse_other_file(path, WRITTEN_SUFFIXES, is_result(path), "an infocap result")
        refuse_pictures(self.pictures, self.files)

    def finish(self, result: CapacityResult, lines: Iterable[str]) -> None:
        """Write the files that are wanted, and print what was found."""
        for path in self.output:
            result.save(path)
        self.draw(result)
        self.tell(lines, result.checks)

    def draw(self, result: CapacityResult) -> None:
        """Write the pictures."""
        for path in self.plot:
            save_picture(_fitting_plot(result), result, path)

    def tell(self, lines: Iterable[str], checks: Iterable[Check]) -> None:
        """Print what was found; end with exit code 1 where --strict asks for it."""
        say(lines, checks, self.files)
        if self.strict and any(map(is_warning, checks)):
            exit_with_warnings()


@dataclass(frozen=True)
class EstimateOutput(ResultOutput):
    """Where a new result and a picture of it go, and how much is printed."""

    quiet: bool = option("--quiet", is_flag=True, help="Show warnings only.")
    force: bool = option("--force", is_flag=True, help="Replace a result of other data.")

    def check_data(self, recording: Recording) -> None:
        """Refuse to write over the result of other data, unless the user wants it replaced."""
        for path in self.output:
            if self.force or not is_result(path):
                continue
            former = load_result(path).metadata.get("provenance", {})
            if _source(former) != _source(recording.metadata):
                raise ParameterError(
                    f"{path} is the result of other data{_files_in_words(former)}; give another "
                    "name, or --force to replace it."
                )

    def tell(self, lines: Iterable[str], checks: Iterable[Check]) -> None:
        """Print what was found, or under --quiet the warnings alone."""
        if not self.quiet:
            super().tell(lines, checks)
            return
        warned = [check for check in checks if is_warning(check)]
        if warned:
            echo("\n".join(check_lines(warned)))
        if self.strict and warned:
            exit_with_warnings()


@dataclass(frozen=True)
class ShowOutput(ResultOutput):
    """Where a result goes in another format, and all pictures of it."""

    bars: tuple[Path, ...] = option(
        "--bars", **PICTURE, help="Picture of capacity by total degree."
    )
    width: float | None = option(
        "--width",
        callback=_in_millimetres,
        help="Width of pictures, such as 89mm.  [default: one column or two]",
    )

    @property
    def pictures(self) -> list[Path]:
        """The pictures, in the order in which they are written."""
        return [*self.plot, *self.bars]

    def draw(self, result: CapacityResult) -> None:
        """Write the pictures."""
        for path in self.plot:
            save_picture(_fitting_plot(result), result, path, self.width)
        for path in self.bars:
            save_picture("capacity_bars", result, path, self.width)


def _fitting_plot(result: CapacityResult) -> str:
    """Return the name of the plot that shows most of a result."""
    if result.basis.memory:
        return "memory_function"
    if result.basis.n_inputs == 2:
        return "capacity_matrix"
    return "capacity_bars"


def save_picture(plot_name: str, subject: Any, path: Path, width_mm: float | None = None) -> None:
    """Write what a function of `infocap.plot` draws of a subject; no screen is needed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from ... import plot

    # The width must be known while the plot is made, because legends are arranged to fit it.
    with nullcontext() if width_mm is None else plot.width(width_mm):
        ax = getattr(plot, plot_name)(subject)
    plot.save(ax, path)
    plt.close(ax.figure)


# Places where files cannot go.


def refuse_pictures(pictures: Iterable[Path], written: Iterable[Path]) -> None:
    """Refuse places where no picture can go, and one name for two of the files to be written."""
    for path in pictures:
        refuse_place(path, PICTURE_SUFFIXES)
    for path, times in Counter(path.resolve() for path in written).items():
        if times > 1:
            raise ParameterError(f"{path} is named twice; give each file its own name.")


def refuse_place(path: Path, suffixes: Iterable[str]) -> None:
    """Refuse a suffix that is not among `suffixes`, and a folder that is not there."""
    suffixes = tuple(suffixes)
    if path.suffix not in suffixes:
        names = ", ".join(map(repr, suffixes))
        raise ParameterError(
            f"{path}: {path.suffix!r} is not one of {names}{did_you_mean(path.suffix, suffixes)}"
        )
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")


def _source(metadata: Mapping[str, Any]) -> tuple[list[str], Any]:
    """Return what tells the data of one device from those of another: files, seed of the plan."""
    return _file_names(metadata), metadata.get("plan", {}).get("seed")


def _file_names(metadata: Mapping[str, Any]) -> list[str]:
    return [Path(str(entry.get("file"))).name for entry in metadata.get("read_from", ())]


def _files_in_words(metadata: Mapping[str, Any]) -> str:
    names = _file_names(metadata)
    return f", of {join_names(names)}" if names else ""


def refuse_other_file(path: Path, suffixes: Iterable[str], is_ours: bool, kind: str) -> None:
    """Refuse a place where no file can go, and one where a file of another kind is."""
    refuse_place(path, suffixes)
    if path.exists() and path.stat().st_size and not is_ours:
        raise ParameterError(f"{path} is there already and is not {kind}; give another name.")


def refuse_other_page(path: Path, suffixes: Iterable[str]) -> None:
    """Refuse to write a page over anything that is neither a page of infocap nor a result."""
    is_ours = False
    if path.is_file():
        with path.open("rb") as file:
            is_ours = PAGE_MARK in file.read(PAGE_HEAD_BYTES) or is_result(path)
    refuse_other_file(path, suffixes, is_ours, "a page of infocap")


def refuse_existing(path: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """Refuse to write over data that are there already, unless the user wants them replaced."""
    refuse_place(path.with_suffix(path.suffix.lower()), suffixes)
    if path.exists() and not force:
        raise ParameterError(
            f"{path} is there already; give another name, or --force to replace it."
        )
