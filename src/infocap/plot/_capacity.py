"""Capacities in pictures: the matrix of two inputs, and bars by degree for any number."""

import textwrap
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from .._formatting import above_zero, name_and_unit, rounded, short
from ..result._capacity_result import CapacityResult
from ..result._target import sum_over
from ..typing import Floats
from . import _style
from ._style import (
    COLOURS,
    CONSTANT,
    DOUBT,
    GREY,
    LEAST_POINTS,
    axes,
    degree_axis,
    every,
    in_points,
    settle,
    stack,
)

KINDS = {"0": "constant", "1": "one variable", "2": "two variables", ">2": "more than two"}
LETTER = 0.62  # The width of a digit in units of the size of its font, of those fonts that the style names.
# The size of the total in its circle, in units of the font's; what matplotlib makes of it in a fraction; and the space
# around it, in units of its size.
TOTAL_SIZE, SHRINK, PAD = 1.9, 0.7, 0.25
LONGEST_LINE = 44  # Letters that fit along a matrix of one column's width.
SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
STEPS = 64  # Colours of the scale beside a matrix: more cannot be told apart, and make large files.


def capacity_matrix(
    result: CapacityResult, ax: Axes | None = None, *, colourbar: bool = True, total: bool = True
) -> Axes:
    """Capacities by the degree in the first input (x axis) and in the second (y axis); grey cells are not in the basis.

    For a phase (Fourier) the axis counts functions: 0, cos1, sin1, cos2, ... Matrices side by side can share
    one scale: draw them without a `colourbar`, and one for all from ``ax.collections[0]``. The circle with the `total`
    can be left out.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_matrix(result)
    >>> ax.collections[0].get_array().shape
    (4, 4)
    """
    values = result.matrix()[
        np.ix_(*(np.arange(most + 1) for most in result.basis.indices.max(axis=0)))
    ]
    columns, rows = map(np.arange, values.shape)
    with axes(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"]
        cells: Any = {
            "cmap": colours,
            "vmin": 0.0,
            "vmax": 1.0,
            "edgecolors": "white",
            "linewidth": 0.3,
        }
        mesh = ax.pcolormesh(columns, rows, np.ma.masked_invalid(values.T), **cells)
        ax.set_facecolor(GREY)
        ax.grid(visible=False)
        first, second = index_names(result)
        ax.set(box_aspect=1, xlabel=first, ylabel=second)
        ax.tick_params(length=2)
        ax.spines[:].set_visible(False)
        if colourbar:
            scale = ScalarMappable(mesh.norm, colours.resampled(STEPS))
            marks = [0, 0.25, 0.5, 0.75, 1]
            bar: Any = ax.figure.colorbar(
                scale, ax=ax, label="capacity", ticks=marks, pad=0.03, fraction=0.046
            )
            bar.solids.set(rasterized=False, edgecolor="face")
        settle(ax)
        ax.set(xticks=columns[:: every(ax, len(columns))], yticks=rows[:: every(ax, len(rows))])
        if total:
            _fraction_in_circle(ax, result)
    return ax


def index_names(result: CapacityResult) -> list[str]:
    """What the index of a function counts, degrees or functions, of which input, with its range and unit."""
    said = []
    for number, family in enumerate(result.basis.families, 1):
        name, unit = name_and_unit(family.variable)
        low, high = family.bounds
        told = f", {low:g} to {high:g} {unit}" if np.isfinite([low, high]).all() else f" ({unit})"
        counted = "degree" if family.count(1) == 2 else "number of function"
        text = f"{counted} in {name or f'u{number}'.translate(SMALL)}{told if unit else ''}"
        said.append(textwrap.fill(text.replace("$", r"\$"), LONGEST_LINE))
    return said


def capacity_bars(result: CapacityResult, ax: Axes | None = None, *, total: bool = True) -> Axes:
    """Capacity by total degree, stacked by the number of interacting variables, the sum above each bar.

    The constant function has a colour of its own. Results with standard errors get error bars: the root of the sum of
    squares over a degree. The circle with the `total` can be left out.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_bars(result)
    >>> ax.get_xlabel()
    'total degree'
    """
    table, errors = stacks(result), errors_by_degree(result)
    with axes(ax) as ax:
        degrees, sums = (
            table.index.to_numpy(),
            stack(ax, table.rename(columns=KINDS), (CONSTANT, *COLOURS), 0.78),
        )
        tops = sums if errors is None else sums + np.nan_to_num(errors)
        if errors is not None:
            ax.errorbar(
                degrees, sums, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2
            )
        shown = ax.get_legend_handles_labels()[1]
        letters = sum(len(name) + 6 for name in shown)  # and the space that a swatch takes
        in_one_row = (
            LETTER * mpl.rcParams["font.size"] * letters < 1.2 * in_points(ax)[0]
        )  # a legend may be wider
        columns = len(shown) if in_one_row else 2
        if shown:
            above: Any = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns}
            ax.legend(**above, handlelength=1.0, handletextpad=0.5, borderaxespad=0.2)
        ax.set(xlabel="total degree", ylabel="capacity")
        settle(ax)
        degree_axis(ax, degrees)
        room = _sums_above(ax, sums, tops)
        highest = tops + room * tops.max() / (1 - room)
        if total:
            circle = _fraction_in_circle(
                ax, result, corner=True, above=16.0 if in_one_row else 28.0
            )
            wide, high = in_points(ax)
            under = degrees > degrees[-1] - circle * (len(degrees) + 0.2) / wide
            highest = np.append(highest, tops[under] / max(1 - room - circle / high, 0.1))
        ax.set_ylim(0, max(float(highest.max()), 1e-3))
    return ax


def _sums_above(ax: Axes, sums: Floats, tops: Floats) -> float:
    """Write each sum above its bar, upright where it would touch the next; return the share of the height needed."""
    said = [above_zero(one, 2) if one else "0" for one in sums]
    (wide, high), size = in_points(ax), 0.85 * mpl.rcParams["font.size"]
    slot = wide / (len(sums) + 0.2)
    length = LETTER * max(map(len, said))
    upright = length * size > 0.95 * slot
    size = min(size, slot / 1.2) if upright else size
    if size < LEAST_POINTS:
        return 0.04
    small: Any = {
        "ha": "center",
        "va": "bottom",
        "fontsize": size,
        "rotation": 90 if upright else 0,
    }
    for degree, (one, top) in enumerate(zip(said, tops, strict=True)):
        ax.annotate(one, (degree, top), (0, 2), textcoords="offset points", **small)
    return min((4 + size * (length if upright else 1.2)) / high, 0.4)


def stacks(result: CapacityResult) -> pd.DataFrame:
    """Capacity by total degree and kind of function: the constant ("0"), of one variable, of two, of more."""
    table = result.by_degree()
    table.insert(0, "0", 0.0)
    table.loc[0, ["0", "1"]] = [table.loc[0, "1"], 0.0]
    return table


def errors_by_degree(result: CapacityResult) -> Floats | None:
    """Standard error of the capacity of each degree, for independent functions; None where the method gives none.

    Functions of a sequence are not independent: stretches that were left out tell.
    """
    error, basis = result.standard_error, result.basis
    if error is not None and basis.memory:
        sums = [sum_over(result, basis.degrees == degree) for degree in range(basis.max_degree + 1)]
        return np.array([one.standard_error for one in sums])
    return (
        None
        if error is None
        else np.sqrt(np.bincount(basis.degrees, error**2, basis.max_degree + 1))
    )


def _fraction_in_circle(
    ax: Axes, result: CapacityResult, corner: bool = False, above: float = 6.0
) -> float:
    """Write total over maximum capacity as the paper does, near the upper right `corner` or in it.

    Why a total is unreliable stands so many points `above` the axes. Return the diameter of the circle in points.
    """
    circle: Any = {"boxstyle": f"circle,pad={PAD}", "fc": "white", "ec": "black", "lw": 0.8}
    place: Any = {
        "xycoords": "axes fraction",
        "textcoords": "offset points",
        "ha": "center",
        "va": "center",
    }
    size, total = mpl.rcParams["font.size"], short(result.total, result.maximum)
    if result.unreliable:
        total = f"≈{rounded(result.total, result.total_standard_error)}"
        circle |= {"ec": DOUBT, "ls": "--", "lw": 1.2}
        ax.set_title(_style.unreliable_total(ax, result), color=DOUBT, fontsize=size, pad=above)
    letters = max(len(total), len(str(result.maximum)))
    radius = TOTAL_SIZE * size * (0.5 * SHRINK * LETTER * letters + PAD) + 1
    where, moved = ((1.0, 1.0), -radius) if corner else ((0.79, 0.79), 0.0)
    said = rf"$\frac{{{total}}}{{{result.maximum}}}$"
    ax.annotate(
        said, where, (moved, moved), fontsize=TOTAL_SIZE * size, bbox=circle, zorder=5, **place
    )
    return 2 * (radius + 1)
