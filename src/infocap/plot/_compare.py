"""Devices side by side: capacity by degree, one colour a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..result import CapacityResult
from ..workflow import Comparison
from ..workflow import compare as make_comparison
from ._style import COLOURS, DOUBLE_MM, axes


def compare(
    *results: CapacityResult | Comparison, names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Capacity by total degree in groups of bars, with 95 % intervals; the legend holds the totals.

    Takes what `infocap.compare` gave, or the results themselves.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(infocap.systems.RandomFeatures(2, 5, noise=0.01), basis, 256, seed=1)
    >>> other = infocap.probe(infocap.systems.RandomFeatures(2, 8, noise=0.01), basis, 256, seed=2)
    >>> ax = infocap.plot.compare(result, other, names=["five", "eight"])
    >>> ax.get_ylabel()
    'capacity'
    >>> plt.close(ax.figure)
    """
    first = results[0] if results else None
    whole = first if isinstance(first, Comparison) else make_comparison(*results, names=names)  # type: ignore[arg-type]
    table, totals = whole.by_degree(), whole.totals()
    degrees = np.arange(whole.basis.max_degree + 1)
    width = 0.84 / len(whole.names)
    with axes(ax, aspect=0.4, width_mm=DOUBLE_MM) as ax:
        for number, (name, result) in enumerate(zip(whole.names, whole.results, strict=True)):
            ours = table[table.device == name]
            values = np.maximum(ours.capacity.to_numpy(), 0.0)  # unbiased ones may lie below zero
            place = degrees + (number - (len(whole.names) - 1) / 2) * width
            ax.bar(
                place,
                values,
                width=0.92 * width,
                color=COLOURS[number % len(COLOURS)],
                hatch=None if number < len(COLOURS) else "///",
                label=f"{name}: {_total(totals[totals.device == name].iloc[0])} of {result.maximum}",
            )
            if np.isfinite(ours.standard_error).all():
                reach = np.maximum([values - ours.low, ours.high - values], 0.0)
                ax.errorbar(place, values, reach, fmt="none", ecolor="black", elinewidth=0.7, capsize=1.5)
        ax.set_xticks(degrees)
        ax.tick_params(axis="x", length=0)
        ax.set_xlim(-0.6, degrees[-1] + 0.6)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("total degree")
        ax.set_ylabel("capacity")
        ax.legend(
            title="total capacity, 95 % interval",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            handlelength=1.0,
            alignment="left",
        )
    return ax


def _total(row: Any) -> str:
    """A total with its interval."""
    found = f"{row.capacity:.2f}"
    error = row.standard_error
    return found if not np.isfinite(error) else f"{found} ± {1.96 * error:.2f}"
