"""Capacities in pictures: the matrix of two inputs, and bars by degree for any number."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from .._words import above_zero, rounded, short
from ..result._capacity_result import CapacityResult
from ..typing import Floats
from ._style import COLOURS, CONSTANT, DOUBT, GREY, LEAST_POINTS, axes, degree_axis, every, in_points, settle
from ._style import unreliable_total as unreliable

KINDS = {"0": "constant", "1": "one variable", "2": "two variables", ">2": "more than two"}
LETTER = 0.62  # The width of a digit in units of the size of its font, of those fonts that the style names.
# The size of the total in its circle, in units of the font's; what matplotlib makes of it in a fraction; and the space
# around it, in units of its size.
TOTAL_SIZE, SHRINK, PAD = 1.9, 0.7, 0.25
SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
STEPS = 64  # Colours of the scale beside a matrix: more cannot be told apart, and make large files.


def capacity_matrix(
    result: CapacityResult, ax: Axes | None = None, *, colourbar: bool = True, total: bool = True
) -> Axes:
    """Capacities by the degree in u1 (x axis) and in u2 (y axis); cells outside the basis are grey.

    For a phase (Fourier) the axis counts functions: 0, cos1, sin1, cos2, ... Matrices side by side can share
    one scale: draw them without a `colourbar`, and one for all from ``ax.collections[0]``. The circle with the `total`
    can be left out.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_matrix(result)
    >>> ax.collections[0].get_array().shape
    (4, 4)
    """
    values = result.matrix()
    places = np.arange(len(values))
    with axes(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"]
        cells: Any = {"cmap": colours, "vmin": 0.0, "vmax": 1.0, "edgecolors": "white", "linewidth": 0.3}
        mesh = ax.pcolormesh(places, places, np.ma.masked_invalid(values.T), **cells)
        ax.set_facecolor(GREY)
        ax.grid(visible=False)
        first, second = index_names(result)
        ax.set(aspect="equal", xlabel=first, ylabel=second)
        ax.tick_params(length=2)
        ax.spines[:].set_visible(False)
        if colourbar:
            scale = ScalarMappable(mesh.norm, colours.resampled(STEPS))
            marks = [0, 0.25, 0.5, 0.75, 1]
            bar: Any = ax.figure.colorbar(scale, ax=ax, label="capacity", ticks=marks, pad=0.03, fraction=0.046)
            bar.solids.set(rasterized=False, edgecolor="face")
        settle(ax)
        ticks = places[:: every(ax, len(places))]
        ax.set(xticks=ticks, yticks=ticks)
        if total:
            _fraction_in_circle(ax, result, 0.79, 0.79, inside=0.0, above=6.0)
    return ax


def index_names(result: CapacityResult) -> list[str]:
    """What the index of a function counts for each input: degrees, or functions where a degree has two."""
    counted = ("degree" if family.count(1) == 2 else "number of function" for family in result.basis.families)
    return [f"{what} in u{str(k).translate(SMALL)}" for k, what in enumerate(counted, 1)]


def capacity_bars(result: CapacityResult, ax: Axes | None = None, *, total: bool = True) -> Axes:
    """Capacity by total degree, stacked by the number of interacting variables, the sum above each bar.

    The constant function has a colour of its own. Results with standard errors get error bars: the root of the sum of
    squares over a degree. The circle with the `total` can be left out.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_bars(result)
    >>> ax.get_xlabel()
    'total degree'
    """
    table, errors = stacks(result), errors_by_degree(result)
    degrees, sums = table.index.to_numpy(), table.sum(axis=1).to_numpy()
    tops = sums if errors is None else sums + np.nan_to_num(errors)
    with axes(ax) as ax:
        base = np.zeros(len(degrees))
        for colour, (kind, column) in zip((CONSTANT, *COLOURS), table.items(), strict=False):
            if column.sum() > 0:
                ax.bar(degrees, column, bottom=base, width=0.78, color=colour, label=KINDS[str(kind)])
            base = base + column.to_numpy()
        if errors is not None:
            ax.errorbar(degrees, sums, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        shown = [KINDS[str(kind)] for kind, column in table.items() if column.sum() > 0]
        letters = sum(len(name) + 6 for name in shown)  # and the space that a swatch takes
        in_one_row = LETTER * mpl.rcParams["font.size"] * letters < in_points(ax)[0]
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
            inside, (wide, high) = _radius(result) + 1, in_points(ax)
            under = degrees > degrees[-1] - 2 * (inside + 1) * (len(degrees) + 0.2) / wide
            free = max(1 - room - 2 * (inside + 1) / high, 0.1)
            highest = np.append(highest, tops[under] / free)
            _fraction_in_circle(ax, result, 1.0, 1.0, inside, above=16.0 if in_one_row else 28.0)
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
    small: Any = {"ha": "center", "va": "bottom", "fontsize": size, "rotation": 90 if upright else 0}
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
    """Standard error of the capacity of each degree, for independent functions; None where the method gives none."""
    error, basis = result.standard_error, result.basis
    return None if error is None else np.sqrt(np.bincount(basis.degrees, error**2, basis.max_degree + 1))


def _radius(result: CapacityResult) -> float:
    """The radius in points of the circle around total over maximum."""
    letters = max(len(_total(result)), len(str(result.maximum)))
    return TOTAL_SIZE * mpl.rcParams["font.size"] * (0.5 * SHRINK * LETTER * letters + PAD)


def _total(result: CapacityResult) -> str:
    """The total as the circle shows it."""
    if result.unreliable:
        return f"≈{rounded(result.total, result.total_standard_error)}"
    return short(result.total, result.maximum)


def _fraction_in_circle(ax: Axes, result: CapacityResult, x: float, y: float, inside: float, above: float) -> None:
    """Write total over maximum capacity as the paper does; x and y are fractions of the axes.

    The centre is moved so many points to the lower left, `inside` the axes; why a total is unreliable stands so many
    points `above` them.
    """
    circle: Any = {"boxstyle": f"circle,pad={PAD}", "fc": "white", "ec": "black", "lw": 0.8}
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "center", "va": "center"}
    size = mpl.rcParams["font.size"]
    if result.unreliable:
        circle |= {"ec": DOUBT, "ls": "--", "lw": 1.2}
        ax.set_title(unreliable(ax, result), color=DOUBT, fontsize=size, pad=above)
    said = rf"$\frac{{{_total(result)}}}{{{result.maximum}}}$"
    ax.annotate(said, (x, y), (-inside, -inside), fontsize=TOTAL_SIZE * size, bbox=circle, zorder=5, **place)
