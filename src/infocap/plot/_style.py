"""One look for all figures: sizes for print, colours that colour-blind readers can tell apart."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .._files import replaced
from .._validation import one_of, positive
from ..result._capacity_result import CapacityResult
from ..typing import Floats, Integers

SINGLE_MM, DOUBLE_MM = 89.0, 183.0  # widths of one and of two columns of a journal
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
)  # Okabe and Ito
DOUBT = COLOURS[5]  # what cannot be trusted
CONSTANT = "#8e979f"  # The constant function, which any device with an offset computes, is not one of the colours.
GREY, SOFT = "#d0d0d0", "#565f69"  # cells outside a basis; lines that others are compared with
LEAST_POINTS = 5.0  # Smaller letters are refused by journals, and cannot be read in print.
OWN_WIDTH: ContextVar[float | None] = ContextVar(
    "OWN_WIDTH", default=None
)  # of new figures, in millimetres
STYLE: Any = dict(
    mpl.rc_params_from_file(
        Path(__file__).with_name("journal.mplstyle"), use_default_template=False
    )
)


@contextmanager
def own_look() -> Iterator[None]:
    """The settings of this package, for figures made within."""
    with mpl.rc_context(STYLE):
        yield
        interactive = mpl.is_interactive()
    # A notebook's backend is loaded by the first figure and then switches pictures on. Leaving the settings undoes
    # that, and the notebook would show the first figure and no other.
    mpl.interactive(interactive)


@contextmanager
def width(width_mm: float) -> Iterator[None]:
    """Give new figures another width than a journal's column, with letters of the same size.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with infocap.plot.width(60):
    ...     ax = infocap.plot.capacity_bars(result)
    >>> round(ax.figure.get_figwidth() * 25.4)
    60
    """
    before = OWN_WIDTH.set(positive("width_mm", width_mm))
    try:
        yield
    finally:
        OWN_WIDTH.reset(before)


def save(ax: Axes, path: str | Path) -> Path:
    """Write the figure of some axes as journals want it: text as text in ``.pdf`` and ``.svg``, 300 dpi in ``.png``.

    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     infocap.plot.save(infocap.plot.capacity_bars(result), f"{folder}/bars.pdf").name
    'bars.pdf'
    """
    path = Path(path)
    one_of("path suffix", path.suffix, (".png", ".pdf", ".svg"))
    figure: Any = ax.get_figure(root=True)
    with own_look(), replaced(path) as beside:
        figure.savefig(beside, format=path.suffix[1:])
    return path


@contextmanager
def axes(ax: Axes | None, aspect: float = 0.72, width_mm: float = SINGLE_MM) -> Iterator[Axes]:
    """The axes given, as they are; or new ones, one column wide, in the look of this package."""
    if ax is not None:
        yield ax
        return
    with own_look():
        inches = (OWN_WIDTH.get() or width_mm) / 25.4
        _, new = plt.subplots(figsize=(inches, aspect * inches), layout="constrained")
        yield new


def unreliable_total(ax: Axes, result: CapacityResult) -> str:
    """Return what to say above the axes of a total that cannot be trusted, in lines as long as they are wide."""
    letters = int(in_points(ax)[0] / (0.55 * mpl.rcParams["font.size"]))  # of a usual width
    return textwrap.fill(f"total {result.qualified_total}".replace("$", r"\$"), max(letters, 20))


def settle(ax: Axes) -> None:
    """Lay out a figure of one picture, so that its axes have the size that they will have in the end."""
    figure: Any = ax.get_figure(root=True)
    if len(figure.axes) <= 2:  # one picture, perhaps with its colour bar
        figure.draw_without_rendering()


def in_points(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of the axes in points, of which an inch has 72, as letters are measured."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return 72 * box.width / dpi, 72 * box.height / dpi


def every(ax: Axes, count: int) -> int:
    """Return 1, or how many of so many places on the x axis must share a number of two digits for it to fit."""
    needed = 2.0 * mpl.rcParams["font.size"] * count / in_points(ax)[0]
    return next(step for step in (1, 2, 5, 10, 20, 50, count) if step >= needed or step == count)


def stack(ax: Axes, table: pd.DataFrame, colours: Sequence[str], width: float) -> Floats:
    """Draw the columns of a table as bars over its rows, on top of each other; return the heights of all together."""
    base = np.zeros(len(table))
    for (name, column), colour in zip(table.items(), cycle(colours), strict=False):
        label = str(name) if column.any() else None
        ax.bar(table.index, column, width, bottom=base, color=colour, label=label, linewidth=0)
        base = base + column.to_numpy()
    return base


def degree_axis(ax: Axes, degrees: Integers) -> None:
    """Name the total degrees under groups of bars, as many as fit."""
    ticks = degrees[degrees % every(ax, len(degrees)) == 0]
    ax.set(xticks=ticks, xlim=(degrees[0] - 0.6, degrees[-1] + 0.6), xlabel="total degree")
    ax.tick_params(axis="x", length=0)
