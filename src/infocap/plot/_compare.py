"""Devices side by side: capacity by degree, with intervals."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._formatting import HALF_WIDTH_95, with_error
from .._validation import checks_arguments
from ..workflow import Comparison
from ..workflow import compare as compare_results
from ._style import COLOURS, DOUBLE_MM, axes_in_style, degree_axis

# Longer lines of the legend are broken: they would leave no room for the bars beside them.
MAX_LEGEND_LINE_LENGTH = 48
# Share of the distance between two degrees that the bars of all devices take.
GROUP_WIDTH = 0.84
# Share of its place that a bar takes.
BAR_SHARE = 0.92
# Intervals on bars that stand close together.
THIN_ERROR_BARS: Any = {"fmt": "none", "ecolor": "black", "elinewidth": 0.7, "capsize": 1.5}


@checks_arguments
def compare(*results: Any, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw capacity by total degree in groups of bars, with 95 % intervals; the legend has totals.

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
    table = comparison.by_degree()
    n_devices = len(comparison.names)
    width = GROUP_WIDTH / n_devices
    with axes_in_style(ax, aspect=0.4, width_mm=DOUBLE_MM) as ax:
        for number, name in enumerate(comparison.names):
            result = comparison.results[number]
            rows = table[table.device == name]
            # Unbiased estimates may lie below zero, and a bar cannot.
            capacities = np.maximum(rows.capacity.to_numpy(), 0.0)
            offset = (number - (n_devices - 1) / 2) * width
            places = np.arange(len(capacities)) + offset
            error = result.total_standard_error
            total = result.qualified_total or with_error(result.total, error, HALF_WIDTH_95)
            label = f"{name}: {result.short_claim(total)}"
            ax.bar(
                places,
                capacities,
                width=BAR_SHARE * width,
                color=COLOURS[number % len(COLOURS)],
                hatch=None if number < len(COLOURS) else "///",
                label=textwrap.fill(label, MAX_LEGEND_LINE_LENGTH),
            )
            # Degrees whose capacity cannot be told stay empty.
            capacities[rows.standard_error > result.rank] = 0.0
            if np.isfinite(rows.standard_error).all():
                below = np.maximum(capacities - rows.low, 0.0)
                above = np.maximum(rows.high - capacities, 0.0)
                below[rows.standard_error > result.rank] = 0.0
                above[rows.standard_error > result.rank] = 0.0
                ax.errorbar(places, capacities, [below, above], **THIN_ERROR_BARS)
        degree_axis(ax, np.arange(comparison.basis.max_degree + 1))
        ax.set(ylim=(0, None), ylabel="capacity")
        ax.legend(
            title="total capacity, 95 % interval",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            alignment="left",
            handlelength=1.0,
        )
    return ax
