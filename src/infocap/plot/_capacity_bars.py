"""The capacity bar plot: any number of inputs, one bar a total degree."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from ..result import CapacityResult
from ._style import COLOURS, axes, fraction_in_circle

NAMES = {"1": "one variable", "2": "two variables", ">2": "more than two"}


def capacity_bars(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Capacity by total degree, stacked by the number of interacting variables, the sum above each bar.

    Results with standard errors get error bars: the root of the sum of squares over a degree.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> result = infocap.probe(infocap.systems.RandomFeatures(2, 5, noise=0.01), basis, 256, seed=1)
    >>> ax = infocap.plot.capacity_bars(result)
    >>> ax.get_xlabel()
    'total degree'
    >>> plt.close(ax.figure)
    """
    table = result.by_degree()
    degrees, sums = table.index.to_numpy(), table.sum(axis=1).to_numpy()
    errors = np.zeros(len(sums))
    if result.standard_error is not None:
        squares = np.bincount(result.basis.degrees, result.standard_error**2, minlength=len(sums))
        errors = np.sqrt(squares)
    top = float((sums + errors).max(initial=1.0))
    with axes(ax) as ax:
        base = np.zeros(len(degrees))
        for colour, (name, column) in zip(COLOURS, table.items(), strict=False):
            if column.sum() > 0:
                ax.bar(degrees, column, bottom=base, width=0.78, color=colour, label=NAMES[str(name)])
            base = base + column.to_numpy()
        if result.standard_error is not None:
            ax.errorbar(degrees, sums, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        for degree, value, error in zip(degrees, sums, errors, strict=True):
            ax.annotate(
                f"{value:.2f}" if value else "0",
                (degree, value + error),
                (0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=0.85 * mpl.rcParams["font.size"],
            )
        ax.set_xticks(degrees)
        ax.tick_params(axis="x", length=0)
        ax.set_ylim(0, 1.32 * top)
        ax.set_xlim(degrees[0] - 0.6, degrees[-1] + 0.6)
        ax.set_xlabel("total degree")
        ax.set_ylabel("capacity")
        if result.capacity.any():
            ax.legend(loc="upper left", handlelength=1.0, handletextpad=0.5, borderaxespad=0.2)
        fraction_in_circle(ax, result.total, result.maximum, 0.91, 0.86)
    return ax
