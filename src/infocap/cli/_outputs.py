"""Files that the commands write: looked at before anything is computed, never over something else's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .._check import one_of
from .._files import replaced
from ..errors import DataError, ParameterError
from ..recording import WRITERS
from ..result import CapacityResult, is_result

PICTURES = (".png", ".pdf", ".svg")
BEGINNINGS = {".png": (b"\x89PNG",), ".pdf": (b"%PDF",), ".svg": (b"<?xml", b"<svg")}
ARCHIVE = (b"PK\x03\x04",)
PAGE = b'name="generator" content="infocap'
FILE = click.Path(dir_okay=False, path_type=Path)


def plot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that ask for pictures."""
    for name, help_text in (
        ("growth", "Total against the number of samples."),
        ("bars", "Capacity by total degree."),
        ("matrix", "Capacity matrix, for 2 inputs."),
        ("plot", "Picture, .png, .pdf or .svg: the matrix for 2 inputs, else bars."),
    ):
        command = click.option(f"--{name}", type=FILE, multiple=True, metavar="FILE", help=help_text)(command)
    return command


def check_results(paths: Iterable[Path]) -> None:
    """Refuse a place where no result can go."""
    for path in paths:
        one_of("output suffix", path.suffix, (".nc", ".csv"))
        _check_place(path, is_result(path), "an infocap result")


def check_part(path: Path) -> None:
    """Refuse a place where no summary of a part can go."""
    one_of("output suffix", path.suffix, (".sum",))
    _check_place(path, _begins(path, ARCHIVE), "a summary of infocap")


def check_frame(path: Path) -> None:
    """Refuse a place where no frame can go."""
    one_of("output suffix", path.suffix, (".frame",))
    _check_place(path, _begins(path, ARCHIVE), "a frame of infocap")


def check_pictures(paths: Iterable[Path]) -> None:
    """Refuse a place where no picture can go."""
    for path in paths:
        one_of("picture suffix", path.suffix, PICTURES)
        _check_place(path, _begins(path, BEGINNINGS[path.suffix]), f"a {path.suffix[1:].upper()} picture")


def check_table(path: Path, beginning: str) -> None:
    """Refuse a place where no table that begins like this can go."""
    one_of("output suffix", path.suffix, (".csv",))
    _check_place(path, _begins(path, (beginning.encode(),)), "a table of infocap")


def check_page(path: Path) -> None:
    """Refuse a place where no page can go."""
    one_of("output suffix", path.suffix, (".html", ".htm"))
    _check_place(path, path.is_file() and PAGE in path.read_bytes()[:2000], "a report of infocap")


def refuse_existing(path: Path, force: bool, suffixes: Iterable[str] = WRITERS) -> None:
    """An error if data are there already, unless the user wants them replaced, or if they cannot be written so."""
    one_of("output suffix", path.suffix.lower(), suffixes)
    if path.exists() and not force:
        raise ParameterError(f"{path} is there already; give another name, or --force to replace it.")


def check_distinct(*paths: Path) -> None:
    """Refuse the same name for two things."""
    places = [path.resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise ParameterError(f"{path} is named twice; give each file its own name.")


def draw(
    result: CapacityResult,
    plot: Iterable[Path] = (),
    matrix: Iterable[Path] = (),
    bars: Iterable[Path] = (),
    growth: Iterable[Path] = (),
) -> list[Path]:
    """Write the pictures asked for; the names of those written."""
    wanted = [("plot", path) for path in plot] + [("matrix", path) for path in matrix]
    wanted += [("bars", path) for path in bars] + [("growth", path) for path in growth]
    if not wanted:
        return []
    plots = figures()
    kinds: dict[str, Callable[[CapacityResult], Any]] = {
        "plot": plots.capacity_matrix if result.basis.n_inputs == 2 else plots.capacity_bars,
        "matrix": plots.capacity_matrix,
        "bars": plots.capacity_bars,
        "growth": plots.growth,
    }
    for kind, path in wanted:
        save_figure(kinds[kind](result), path)
    return [path for _, path in wanted]


def figures() -> Any:
    """`infocap.plot`, drawing into files: no screen is needed."""
    import matplotlib

    matplotlib.use("Agg")
    return import_module("infocap.plot")


def save_figure(ax: Any, path: Path) -> None:
    """Write the figure of some axes and close it."""
    import matplotlib.pyplot as plt

    with replaced(path) as beside:
        ax.figure.savefig(beside, format=path.suffix[1:])
    plt.close(ax.figure)


def _check_place(path: Path, ours: bool, what: str) -> None:
    if not path.parent.is_dir():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists() and path.stat().st_size and not ours:
        raise ParameterError(f"{path} is there already and is not {what}; give another name.")


def _begins(path: Path, beginnings: tuple[bytes, ...]) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).startswith(beginnings)
