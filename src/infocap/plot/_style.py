"""The look of all figures: sizes for print, and colours for colour-blind readers, too."""

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

from .._files import write_whole
from .._validation import checks_arguments, require_one_of, require_positive
from ..errors import DataError
from ..result import CapacityResult
from ..typing import Floats, Integers

MM_PER_INCH = 25.4
POINTS_PER_INCH = 72
# Widths of one column and of two columns of a journal.
SINGLE_MM = 89.0
DOUBLE_MM = 183.0
# Journals refuse smaller letters, which cannot be read in print.
MIN_FONT_SIZE = 5.0  # points
# Height of a figure over its width, unless the function that draws it needs another one.
DEFAULT_ASPECT = 0.72
# Steps between ticks, so that their numbers are round.
ROUND_STEPS = (1, 2, 5, 10, 20, 50)

# The palette of Okabe and Ito.
COLOURS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # purple
    "#56B4E9",  # light blue
    "#D55E00",  # red
    "#000000",
)
# Numbers that are unreliable.
UNRELIABLE_COLOUR = COLOURS[5]
# The constant function, which any device with an offset computes, has none of the colours.
CONSTANT_COLOUR = "#8e979f"
# The part of the colour map viridis that bars by degree take: its ends are too dark on a dark page
# and too light on white.
RANGE_OF_DEGREE_COLOURS = (0.2, 0.9)
# Fewer degrees take the dark colours alone.
MIN_DEGREE_COLOURS = 3
# Distance from the first and the last degree to the ends of their axis, in degrees.
DEGREE_AXIS_MARGIN = 0.6
# Cells of a matrix that are not in the basis.
GREY = "#d0d0d0"
# Lines with which others are compared.
COMPARISON_COLOUR = "#565f69"
# Standard errors on bars.
ERROR_BARS: Any = {"fmt": "none", "ecolor": "black", "elinewidth": 0.8, "capsize": 2}

# Width of new figures in millimetres, within `width`; None is the width of a journal's column.
_FIGURE_WIDTH_MM: ContextVar[float | None] = ContextVar("_FIGURE_WIDTH_MM", default=None)
STYLE: Any = dict(
    mpl.rc_params_from_file(
        Path(__file__).with_name("journal.mplstyle"), use_default_template=False
    )
)


# Journals refuse fonts of type 3, matplotlib's default, and text as curves cannot be edited. These
# settings count when a figure is written, so they hold for a user's own `savefig`, too.
FONT_SETTINGS = ("pdf.fonttype", "ps.fonttype", "svg.fonttype")


def _as_left_by_the_user(name: str) -> bool:
    """Return whether a setting of matplotlib still has its default value."""
    settings: Any = mpl.rcParams
    defaults: Any = mpl.rcParamsDefault
    return bool(settings[name] == defaults[name])


def _set_fonts() -> None:
    """Set the kinds of fonts in files, but for those that the user has chosen already."""
    settings: Any = mpl.rcParams
    for name in FONT_SETTINGS:
        if _as_left_by_the_user(name):
            settings[name] = STYLE[name]


_set_fonts()


@contextmanager
def package_style() -> Iterator[None]:
    """Make figures in the look of this package within the context.

    Settings that the user has changed in ``matplotlib.rcParams`` stay as they are.
    """
    style = {name: value for name, value in STYLE.items() if _as_left_by_the_user(name)}
    with mpl.rc_context(style):
        yield
        interactive = mpl.is_interactive()
    # The first figure loads the backend of a notebook, which then switches pictures on. Leaving the
    # context undoes that, and the notebook would show the first figure and no other.
    mpl.interactive(interactive)


@contextmanager
@checks_arguments
def width(width_mm: float) -> Iterator[None]:
    """Give new figures another width than a journal's column, with letters of the same size.

    Labels are placed for that width, which is why it must be known before a figure is drawn.

    Parameters
    ----------
    width_mm
        The width in millimetres.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with infocap.plot.width(60):
    ...     ax = infocap.plot.capacity_bars(result)
    >>> round(ax.figure.get_figwidth() * 25.4)
    60
    """
    token = _FIGURE_WIDTH_MM.set(require_positive("width_mm", width_mm))
    try:
        yield
    finally:
        _FIGURE_WIDTH_MM.reset(token)


@checks_arguments
def save(ax: Axes, path: str | Path) -> Path:
    """Write the figure of some axes as journals want it.

    Parameters
    ----------
    ax
        Axes that a function of `infocap.plot` returned.
    path
        A ``.pdf`` or ``.svg`` file, which holds text as text, or a ``.png`` file with 300 dots per
        inch.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     infocap.plot.save(infocap.plot.capacity_bars(result), f"{folder}/bars.pdf").name
    'bars.pdf'
    """
    path = Path(path)
    require_one_of("path suffix", path.suffix, (".png", ".pdf", ".svg"))
    figure: Any = ax.get_figure(root=True)
    with package_style(), write_whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:])
    return path


@contextmanager
def axes_in_style(
    ax: Axes | None, aspect: float = DEFAULT_ASPECT, width_mm: float = SINGLE_MM
) -> Iterator[Axes]:
    """Yield the given axes as they are, or new ones in the look of this package."""
    if ax is not None:
        yield ax
        return
    with package_style():
        width_inches = figure_width_mm(width_mm) / MM_PER_INCH
        figure_size = (width_inches, aspect * width_inches)
        _, new_axes = plt.subplots(figsize=figure_size, layout="constrained")
        yield new_axes


def figure_width_mm(default: float) -> float:
    """Return the width that a new figure will have."""
    return _FIGURE_WIDTH_MM.get() or default


def draw_errors(ax: Axes, places: Any, estimates: Floats, errors: Floats, style: Any) -> None:
    """Draw estimates ± one standard error, as far as these bars lie above zero.

    An estimate may lie below zero, where no bar of a capacity reaches.
    """
    known = np.isfinite(estimates) & np.isfinite(errors) & (estimates + errors > 0)
    centres = np.maximum(estimates[known], 0.0)
    below = np.clip(centres - (estimates[known] - errors[known]), 0.0, centres)
    above = np.maximum(estimates[known] + errors[known] - centres, 0.0)
    if known.any():
        ax.errorbar(np.asarray(places)[known], centres, [below, above], **style)


def unreliable_total(ax: Axes, result: CapacityResult) -> str:
    """Return an unreliable total with the reason, broken into lines that fit above the axes."""
    axes_width, _ = size_in_points(ax)
    mean_letter_width = 0.55 * mpl.rcParams["font.size"]
    n_letters = max(int(axes_width / mean_letter_width), 20)
    total_and_reason = f"total {result.qualified_total}".replace("$", r"\$")
    return textwrap.fill(total_and_reason, n_letters)


def require_numbers(result: CapacityResult) -> None:
    """Refuse a result of which no capacity can be had or told; the error says why."""
    if result.nothing_to_show:
        raise DataError(result.nothing_to_show)


def lay_out(ax: Axes) -> None:
    """Lay out a figure of one picture, so that its axes have their final size."""
    figure: Any = ax.get_figure(root=True)
    if len(figure.axes) <= 2:  # one picture, perhaps with its colour bar
        figure.draw_without_rendering()


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in points, the unit of font sizes."""
    box = ax.get_window_extent()
    points_per_pixel = POINTS_PER_INCH / ax.figure.dpi
    return points_per_pixel * box.width, points_per_pixel * box.height


def tick_step(ax: Axes, count: int) -> int:
    """Return the step from tick to tick at which numbers of two digits fit under `count` places."""
    axes_width, _ = size_in_points(ax)
    number_width = 2.0 * mpl.rcParams["font.size"]
    min_step = number_width * count / axes_width
    for step in ROUND_STEPS:
        if step >= min_step or step == count:
            return step
    return count


def stacked_bars(ax: Axes, table: pd.DataFrame, colours: Sequence[str], width: float) -> Floats:
    """Draw the columns of a table as stacked bars over its rows; return the sums of the rows."""
    sums = np.zeros(len(table))
    for name, colour in zip(table.columns, cycle(colours), strict=False):
        heights = table[name].to_numpy()
        label = str(name) if heights.any() else None  # an empty column is not in the legend
        ax.bar(table.index, heights, width, bottom=sums, color=colour, label=label, linewidth=0)
        sums = sums + heights
    return sums


def degree_colours(max_degree: int) -> list[Any]:
    """Return the colours of degrees 1 to the largest, from dark to light.

    They keep their order for colour-blind readers and in print without colours.
    """
    n_colours = max(max_degree, MIN_DEGREE_COLOURS)
    shades = np.linspace(*RANGE_OF_DEGREE_COLOURS, n_colours)
    colours = mpl.colormaps["viridis"](shades)
    return [tuple(colour) for colour in colours[:max_degree]]


def degree_axis_length(n_degrees: int) -> float:
    """Return the length of the axis of so many degrees, in distances from degree to degree."""
    return n_degrees - 1 + 2 * DEGREE_AXIS_MARGIN


def degree_axis(ax: Axes, degrees: Integers) -> None:
    """Write the total degrees under groups of bars, as many as fit."""
    ticks = degrees[degrees % tick_step(ax, len(degrees)) == 0]
    limits = (degrees[0] - DEGREE_AXIS_MARGIN, degrees[-1] + DEGREE_AXIS_MARGIN)
    ax.set(xticks=ticks, xlim=limits, xlabel="total degree")
    ax.tick_params(axis="x", length=0)
