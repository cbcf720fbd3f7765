"""Files that the commands write: looked at before anything is computed, never over something else's."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .._files import replaced
from ..errors import DataError, ParameterError
from ..recording import WRITERS
from ..result import CapacityResult, is_result
from ._options import FILE, option

PICTURES = {".png": (b"\x89PNG",), ".pdf": (b"%PDF",), ".svg": (b"<?xml", b"<svg")}  # and how they begin
PAGE = b'name="generator" content="infocap'


def _picture(name: str, text: str) -> Any:
    return option(name, type=FILE, multiple=True, metavar="FILE", help=text)


@dataclass(frozen=True)
class Pictures:
    """The pictures of a result that are wanted."""

    plot: tuple[Path, ...] = _picture("--plot", "The matrix for 2 inputs, else bars; .png, .pdf or .svg")
    matrix: tuple[Path, ...] = _picture("--matrix", "Capacity matrix, for 2 inputs.")
    bars: tuple[Path, ...] = _picture("--bars", "Capacity by total degree.")
    growth: tuple[Path, ...] = _picture("--growth", "Total against the number of samples.")

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
        wanted = [(fitting, self.plot), ("capacity_matrix", self.matrix), ("capacity_bars", self.bars)]
        for kind, paths in (*wanted, ("growth", self.growth)):
            for path in paths:
                save_picture(kind, result, path)
        return self.pictures


@dataclass(frozen=True)
class Out(Pictures):
    """Where a result goes, and how much is said about it."""

    output: tuple[Path, ...] = option(
        "-o", "--output", type=FILE, multiple=True, help="Result, .nc or .csv; may be given again."
    )
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
    check_suffix(path, suffixes)
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists() and path.stat().st_size and not ours:
        raise ParameterError(f"{path} is there already and is not {what}; give another name.")


def check_suffix(path: Path, suffixes: Iterable[str]) -> None:
    if path.suffix not in suffixes:
        raise ParameterError(f"{path}: {path.suffix!r} is not one of {', '.join(map(repr, suffixes))}.")


def refuse_existing(path: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """Refuse to write over data that are there already, unless the user wants them replaced."""
    check_suffix(path.with_suffix(path.suffix.lower()), suffixes)
    if path.exists() and not force:
        raise ParameterError(f"{path} is there already; give another name, or --force to replace it.")


def begins(path: Path, beginnings: tuple[bytes, ...]) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).startswith(beginnings)


def save_picture(kind: str, shown: Any, path: Path) -> None:
    """Write what a function of `infocap.plot` draws; no screen is needed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = getattr(import_module("infocap.plot"), kind)(shown)
    with replaced(path) as beside:
        ax.figure.savefig(beside, format=path.suffix[1:])
    plt.close(ax.figure)
