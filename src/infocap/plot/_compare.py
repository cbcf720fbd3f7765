"""Devices side by side: capacity by degree, with intervals."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._formatting import HALF_WIDTH_95, with_error
from ..workflow._compare import Comparison
from ..workflow._compare import compare as compare_results
from ._style import COLOURS, DOUBLE_MM, axes, degree_axis

LETTERS = (
    48  # Longer lines of a legend are broken: they would leave no room for the bars beside them.
)


def compare(*results: Any, names: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Capacity by total degree in groups of bars, with 95 % intervals; the legend holds the totals.

    Takes the `Comparison` that `infocap.compare` gave, or the results themselves and their `names`.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> results = [infocap.probe(lambda u: u**power, basis, 256, seed=1) for power in (1, 2)]
    >>> ax = infocap.plot.compare(*results, names=["linear", "square"])
    >>> ax.get_ylabel()
    'capacity'
    """
    given = len(results) == 1 and isinstance(results[0], Comparison)
    whole = results[0] if given else compare_results(*results, names=names)
    table = whole.by_degree()
    width = 0.84 / len(whole.names)
    with axes(ax, aspect=0.4, width_mm=DOUBLE_MM) as ax:
        for number, (name, result) in enumerate(zip(whole.names, whole.results, strict=True)):
            ours = table[table.device == name]
            values = np.maximum(ours.capacity.to_numpy(), 0.0)  # unbiased ones may lie below zero
            place = np.arange(len(values)) + (number - (len(whole.names) - 1) / 2) * width
            hatch = None if number < len(COLOURS) else "///"
            error = result.total_standard_error
            total = result.qualified_total or with_error(result.total, error, HALF_WIDTH_95)
            label = textwrap.fill(f"{name}: {total} of {result.maximum}", LETTERS)
            colour = COLOURS[number % len(COLOURS)]
            ax.bar(place, values, width=0.92 * width, color=colour, hatch=hatch, label=label)
            if np.isfinite(ours.standard_error).all():
                reach = np.maximum([values - ours.low, ours.high - values], 0.0)
                ax.errorbar(
                    place, values, reach, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5
                )
        degree_axis(ax, np.arange(whole.basis.max_degree + 1))
        ax.set(ylim=(0, None), ylabel="capacity")
        beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "alignment": "left"}
        ax.legend(title="total capacity, 95 % interval", handlelength=1.0, **beside)
    return ax
