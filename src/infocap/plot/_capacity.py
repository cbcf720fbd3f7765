"""Capacities in pictures: the matrix of two inputs, and bars by degree for any number."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from .._words import rounded
from ..result._capacity_result import CapacityResult
from ..result._target import sum_over
from ..typing import Floats
from ._style import COLOURS, DOUBT, GREY, axes, degree_axis, unreliable_total

KINDS = {"1": "one variable", "2": "two variables", ">2": "more than two"}
MOST_TICKS = 10  # Larger matrices name every second degree: their numbers would touch at one column's width.


def capacity_matrix(result: CapacityResult, ax: Axes | None = None, *, colourbar: bool = True) -> Axes:
    """Capacities by the degree in u1 (x axis) and in u2 (y axis); cells outside the basis are grey.

    For a phase (Fourier) the axis counts functions: 0, cos1, sin1, cos2, ... Matrices side by side can share
    one scale: draw them without a `colourbar`, and one for all from ``ax.images[0]``.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_matrix(result)
    >>> ax.images[0].get_array().shape
    (4, 4)
    """
    values = result.matrix()
    size = len(values)
    with axes(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"].with_extremes(bad=GREY)
        image = ax.imshow(values.T, origin="lower", cmap=colours, vmin=0.0, vmax=1.0)
        for lines in (ax.hlines, ax.vlines):
            lines(np.arange(size + 1) - 0.5, -0.5, size - 0.5, color="white", linewidth=0.3)
        ticks = np.arange(0, size, 1 if size <= MOST_TICKS else 2)
        first, second = index_names(result)
        ax.set(xticks=ticks, yticks=ticks, xlabel=f"{first} in $u_1$", ylabel=f"{second} in $u_2$")
        ax.tick_params(length=2)
        ax.spines[:].set_visible(False)
        if colourbar:
            scale = [0, 0.25, 0.5, 0.75, 1]
            ax.figure.colorbar(image, ax=ax, label="capacity", ticks=scale, pad=0.03, fraction=0.046)
        _fraction_in_circle(ax, result, 0.79, 0.79)
    return ax


def index_names(result: CapacityResult) -> list[str]:
    """What the index of a function counts for each input: degrees, or functions where a degree has two."""
    return ["degree" if family.count(1) == 2 else "number of function" for family in result.basis.families]


def capacity_bars(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Capacity by total degree, stacked by the number of interacting variables, the sum above each bar.

    Results with standard errors get error bars: the root of the sum of squares over a degree.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_bars(result)
    >>> ax.get_xlabel()
    'total degree'
    """
    table, errors = result.by_degree(), errors_by_degree(result)
    degrees, sums = table.index.to_numpy(), table.sum(axis=1).to_numpy()
    tops = sums if errors is None else sums + errors
    with axes(ax) as ax:
        base = np.zeros(len(degrees))
        for colour, (kind, column) in zip(COLOURS, table.items(), strict=False):
            if column.sum() > 0:
                ax.bar(degrees, column, bottom=base, width=0.78, color=colour, label=KINDS[str(kind)])
            base = base + column.to_numpy()
        if errors is not None:
            ax.errorbar(degrees, sums, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        small = {"ha": "center", "va": "bottom", "fontsize": 0.85 * mpl.rcParams["font.size"]}
        for degree, value, top in zip(degrees, sums, tops, strict=True):
            said = f"{value:.2f}" if value else "0"
            ax.annotate(said, (degree, top), (0, 2), textcoords="offset points", **small)
        degree_axis(ax, degrees)
        ax.set(ylim=(0, 1.32 * float(tops.max(initial=1.0))), ylabel="capacity")
        if result.capacity.any():
            ax.legend(loc="upper left", handlelength=1.0, handletextpad=0.5, borderaxespad=0.2)
        _fraction_in_circle(ax, result, 0.91, 0.86)
    return ax


def errors_by_degree(result: CapacityResult) -> Floats | None:
    """Standard error of the capacity of each degree, for independent functions; None where the method gives none.

    Functions of a sequence are not independent: stretches that were left out tell.
    """
    error, basis = result.standard_error, result.basis
    if error is not None and basis.memory:
        sums = [sum_over(result, basis.degrees == degree) for degree in range(basis.max_degree + 1)]
        return np.array([one.standard_error for one in sums])
    return None if error is None else np.sqrt(np.bincount(basis.degrees, error**2, basis.max_degree + 1))


def _fraction_in_circle(ax: Axes, result: CapacityResult, x: float, y: float) -> None:
    """Write total over maximum capacity as the paper does; x and y are fractions of the axes."""
    circle: Any = {"boxstyle": "circle,pad=0.25", "fc": "white", "ec": "black", "lw": 0.8}
    place: Any = {"transform": ax.transAxes, "ha": "center", "va": "center", "zorder": 5}
    total = f"{result.total:.1f}"
    if result.unreliable:
        total = rf"\approx{rounded(result.total, result.total_standard_error)}"
        circle |= {"ec": DOUBT, "ls": "--", "lw": 1.2}
        ax.set_title(unreliable_total(ax, result), color=DOUBT, fontsize=mpl.rcParams["font.size"])
    said = rf"$\frac{{{total}}}{{{result.maximum}}}$"
    ax.text(x, y, said, fontsize=1.9 * mpl.rcParams["font.size"], bbox=circle, **place)
