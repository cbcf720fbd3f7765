"""Devices side by side: capacity by degree, with intervals."""

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from .._formatting import digits_of_column, with_error
from .._validation import checks_arguments
from ..result import untold_degrees
from ..workflow import Comparison
from ..workflow import compare as compare_results
from ._style import (
    COLOURS,
    DOUBLE_MM,
    MM_PER_INCH,
    POINTS_PER_INCH,
    STYLE,
    axes_in_style,
    degree_axis,
    draw_errors,
    figure_width_mm,
    require_numbers,
    size_in_points,
)

# Longer lines of the legend are broken: they would leave no room for the bars beside them.
MAX_LEGEND_LINE_LENGTH = 48
# A figure, or given axes, of fewer font sizes across has its legend below, because beside the axes
# no room would be left for bars: two columns of a journal are 74 across, one column is 36.
MIN_WIDTH_WITH_LEGEND_BESIDE = 55.0
# Where the legend below begins, in heights of the axes: under the numbers and the label.
LEGEND_BELOW_AXES = -0.2
# Share of the distance between two degrees that the bars of all devices take.
GROUP_WIDTH = 0.84
# Share of its place that a bar takes.
BAR_SHARE = 0.92
# Errors on bars that stand close together.
THIN_ERROR_BARS: Any = {"fmt": "none", "ecolor": "black", "elinewidth": 0.7, "capsize": 1.5}


@checks_arguments
def compare(*results: Any, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw capacity by total degree in groups of bars ± one standard error, with totals.

    The legend with the totals is below narrow axes, such as those of a figure of one column, and
    beside wider ones.

    Parameters
    ----------
    *results
        The `Comparison` that `infocap.compare` returned, or the results themselves.
    names
        The names of the devices, where results are given.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> results = [infocap.probe(lambda u: u**power, basis, 256, seed=1) for power in (1, 2)]
    >>> ax = infocap.plot.compare(*results, names=["linear", "square"])
    >>> ax.get_ylabel()
    'capacity'
    """
    if len(results) == 1 and isinstance(results[0], Comparison):
        comparison = results[0]
    else:
        comparison = compare_results(*results, names=names)
    for result in comparison.results:
        require_numbers(result)
    table = comparison.by_degree()
    digits = digits_of_column(comparison.totals().standard_error)
    n_devices = len(comparison.names)
    width = GROUP_WIDTH / n_devices
    is_narrow = _is_narrow(ax)
    with axes_in_style(ax, aspect=0.8 if is_narrow else 0.4, width_mm=DOUBLE_MM) as ax:
        for number, name in enumerate(comparison.names):
            result = comparison.results[number]
            rows = table[table.device == name]
            # Unbiased estimates may lie below zero, and a bar cannot.
            estimates = rows.capacity.to_numpy(copy=True)
            estimates[untold_degrees(result)] = np.nan
            capacities = np.maximum(np.nan_to_num(estimates), 0.0)
            offset = (number - (n_devices - 1) / 2) * width
            places = np.arange(len(capacities)) + offset
            error = result.total_standard_error
            total = result.qualified_total or with_error(result.total, error, digits=digits)
            label = f"{name}: {result.short_claim(total)}"
            ax.bar(
                places,
                capacities,
                width=BAR_SHARE * width,
                color=COLOURS[number % len(COLOURS)],
                hatch=None if number < len(COLOURS) else "///",
                label=textwrap.fill(label, MAX_LEGEND_LINE_LENGTH),
            )
            draw_errors(ax, places, estimates, rows.standard_error.to_numpy(), THIN_ERROR_BARS)
        degree_axis(ax, np.arange(comparison.basis.max_degree + 1))
        ax.set(ylim=(0, None), ylabel="capacity")
        below: Any = {"loc": "upper left", "bbox_to_anchor": (0.0, LEGEND_BELOW_AXES)}
        beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(
            title="total capacity ± standard error",
            alignment="left",
            handlelength=1.0,
            **(below if is_narrow else beside),
        )
    return ax


def _is_narrow(ax: Axes | None) -> bool:
    """Return whether a new figure, or the given axes, are too narrow for a legend beside them."""
    if ax is None:
        width = figure_width_mm(DOUBLE_MM) / MM_PER_INCH * POINTS_PER_INCH
        return bool(width / STYLE["font.size"] < MIN_WIDTH_WITH_LEGEND_BESIDE)
    width, _ = size_in_points(ax)
    return bool(width / mpl.rcParams["font.size"] < MIN_WIDTH_WITH_LEGEND_BESIDE)
