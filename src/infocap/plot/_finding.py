"""The small picture of a finding."""

import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .._validation import checks_arguments
from ..errors import Check, ParameterError
from ..typing import Floats
from ._style import COLOURS, COMPARISON_COLOUR, UNRELIABLE_COLOUR, axes_in_style

# What is usual, what was found, and what is expected: a law, a fit, the level of chance.
ROLE_COLOURS = {"usual": COLOURS[0], "found": UNRELIABLE_COLOUR, "expected": COMPARISON_COLOUR}
# The stretches that a finding is about.
MARKED: Any = {"color": UNRELIABLE_COLOUR, "alpha": 0.13, "linewidth": 0}
# Curves with few points have markers.
MAX_MARKERS = 64
# Colours of a map, where the misfit is so many times the usual; three levels are a factor of two.
MAP_COLOURS = {2: COLOURS[0], 4: COLOURS[1], 8: UNRELIABLE_COLOUR}
LEVELS_PER_OCTAVE = 3
# Channels whose names fit beside a map, and ticks at whole numbers.
MAX_NAMES = 12
MAX_WHOLE_TICKS = 8
# The largest distance of bars that stand for whole numbers: a lag of 0 may be missing.
MAX_WHOLE_DISTANCE = 2
LEGEND_ABOVE: Any = {
    "loc": "lower center",
    "bbox_to_anchor": (0.5, 1.0),
    "ncols": 3,
    "handlelength": 1.2,
    "columnspacing": 1.2,
    "handletextpad": 0.4,
}


@checks_arguments
def finding(check: Check, ax: Axes | None = None) -> Axes:
    """Draw the picture of a finding: what was found in red, what is expected dashed.

    Parameters
    ----------
    check
        A warning about the data, of `estimate` or `diagnose`. Its picture is a dictionary of
        numbers, ``check.found["picture"]``, with a caption.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> u = infocap.draw(basis, 1024, seed=1)
    >>> x = infocap.systems.RandomFeatures(2, 5, noise=0.01)(u, seed=1)
    >>> late = infocap.Recording(u, np.roll(x, 1, axis=0), np.arange(1024))
    >>> check = infocap.diagnose(late, basis=basis).checks[0]
    >>> infocap.plot.finding(check).get_ylabel()
    'capacity'
    """
    picture = check.found.get("picture")
    if not isinstance(picture, dict):
        raise ParameterError(
            f"the check {str(check)!r:.60} has no picture; only warnings about the data have one."
        )
    with axes_in_style(ax) as ax:
        if picture["kind"] == "map":
            _draw_map(ax, picture)
        else:
            _draw_series(ax, picture)
        for start, stop in picture["marked"]:
            ax.axvspan(start, stop, **MARKED)
        ax.set(xlabel=picture["x_label"], ylabel=picture["y_label"])
    return ax


def _draw_series(ax: Axes, picture: dict[str, Any]) -> None:
    """Draw curves, points or bars; the usual ones first, so that what was found lies on top."""
    kind = picture["kind"]
    for one in sorted(picture["series"], key=lambda one: one["role"], reverse=True):
        x = np.array(one["x"])
        y = np.array(one["y"])
        role = one["role"]
        style: dict[str, Any] = {"color": ROLE_COLOURS[role], "label": one["name"] or None}
        if role == "expected":
            ax.plot(x, y, "--", linewidth=1.1, zorder=1.5, **style)
        elif kind == "histogram":
            ax.bar(x, y, width=_bar_width(picture), linewidth=0, **style)
        elif kind == "points":
            ax.plot(x, y, ".", markersize=6 if role == "found" else 3.5, alpha=0.8, **style)
        else:
            marker = "o" if len(x) <= MAX_MARKERS else ""
            ax.plot(x, y, marker=marker, markersize=3, **style)
    if _has_whole_places(picture):
        ax.xaxis.set_major_locator(MaxNLocator(MAX_WHOLE_TICKS, integer=True))
        ax.margins(x=0.1)
    if "x" in picture.get("log", ""):
        ax.set_xscale("log")
    if "y" in picture.get("log", ""):
        ax.set_yscale("log")
        if kind == "histogram":
            ax.set_ylim(bottom=0.5)
    if any(one["name"] for one in picture["series"]):
        ax.legend(**LEGEND_ABOVE)


def _places_of_bars(picture: dict[str, Any]) -> Floats:
    bars = [one["x"] for one in picture["series"] if one["role"] != "expected"]
    return np.unique(np.concatenate(bars))


def _has_whole_places(picture: dict[str, Any]) -> bool:
    """Return whether points stand for single things, such as lags, and not for values."""
    places = _places_of_bars(picture)
    return bool(np.all(places % 1 == 0) and np.all(np.diff(places) <= MAX_WHOLE_DISTANCE))


def _bar_width(picture: dict[str, Any]) -> float:
    """Return the width of bars, with a space between those of single things."""
    distances = np.diff(_places_of_bars(picture))
    distance = float(distances.min()) if len(distances) else 1.0
    return 0.7 * distance if _has_whole_places(picture) else distance


def _draw_map(ax: Axes, picture: dict[str, Any]) -> None:
    """Draw how much readouts misfit, by channel and moment: rectangles where it is unusual."""
    levels = picture["levels"]
    channels = picture["channels"]
    first, stop = picture["extent"]
    width = (stop - first) / len(levels[0])
    for octave, (ratio, colour) in enumerate(MAP_COLOURS.items(), start=1):
        lowest = octave * LEVELS_PER_OCTAVE
        highest = 9 if octave == len(MAP_COLOURS) else lowest + LEVELS_PER_OCTAVE - 1
        rectangles = [
            Rectangle((first + run.start() * width, row - 0.5), len(run[0]) * width, 1.0)
            for row, line in enumerate(levels)
            for run in re.finditer(f"[{lowest}-{highest}]+", line)
        ]
        if rectangles:
            ax.add_collection(PatchCollection(rectangles, facecolor=colour, linewidth=0))
            ax.plot([], [], "s", color=colour, label=f"{ratio}× the usual")
    ax.set(xlim=(first, stop), ylim=(len(levels) - 0.5, -0.5))
    if len(channels) <= MAX_NAMES:
        ax.set_yticks(range(len(channels)), channels)
    else:
        ax.yaxis.set_major_locator(MaxNLocator(MAX_WHOLE_TICKS, integer=True))
    ax.grid(visible=False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(**LEGEND_ABOVE)
