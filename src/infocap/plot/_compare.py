"""Devices side by side: capacity by degree, one colour per device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .._words import HALF_WIDTH_95
from ..result import CapacityResult
from ..workflow import Comparison
from ..workflow import compare as make_comparison
from ._style import COLOURS, DOUBLE_MM, axes, degree_axis


def compare(
    *results: CapacityResult | Comparison, names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Capacity by total degree in groups of bars, with 95 % intervals; the legend holds the totals.

    Takes what `infocap.compare` gave, or the results themselves.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(infocap.systems.RandomFeatures(2, 5, noise=0.01), basis, 256, seed=1)
    >>> other = infocap.probe(infocap.systems.RandomFeatures(2, 8, noise=0.01), basis, 256, seed=2)
    >>> ax = infocap.plot.compare(result, other, names=["five", "eight"])
    >>> ax.get_ylabel()
    'capacity'
    """
    first = results[0] if results else None
    whole = first if isinstance(first, Comparison) else make_comparison(*results, names=names)  # type: ignore[arg-type]
    table = whole.by_degree()
    width = 0.84 / len(whole.names)
    with axes(ax, aspect=0.4, width_mm=DOUBLE_MM) as ax:
        for number, (name, result) in enumerate(zip(whole.names, whole.results, strict=True)):
            ours = table[table.device == name]
            values = np.maximum(ours.capacity.to_numpy(), 0.0)  # unbiased ones may lie below zero
            place = np.arange(len(values)) + (number - (len(whole.names) - 1) / 2) * width
            hatch = None if number < len(COLOURS) else "///"
            colour, label = COLOURS[number % len(COLOURS)], f"{name}: {_total(result)} of {result.maximum}"
            ax.bar(place, values, width=0.92 * width, color=colour, hatch=hatch, label=label)
            if np.isfinite(ours.standard_error).all():
                reach = np.maximum([values - ours.low, ours.high - values], 0.0)
                ax.errorbar(place, values, reach, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5)
        degree_axis(ax, np.arange(whole.basis.max_degree + 1))
        ax.set(ylim=(0, None), ylabel="capacity")
        beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "alignment": "left"}
        ax.legend(title="total capacity, 95 % interval", handlelength=1.0, **beside)
    return ax


def _total(result: CapacityResult) -> str:
    """Write a total with the half-width of its 95 % interval, where it has one."""
    error = result.total_standard_error
    if error is None or not np.isfinite(error):
        return f"{result.total:.2f}"
    return f"{result.total:.2f} ± {HALF_WIDTH_95 * error:.2f}"
