"""Pictures of tasks: what a task needs beside what a device computes, and accuracy over capacity."""

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .._validation import one_of
from ..errors import ParameterError
from ..plot._style import COLOURS, DOUBT, axes, degree_axis
from ..result._capacity_result import CapacityResult

BAR = 0.4


RING: Any = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 9,
    "color": DOUBT,
    "markerfacecolor": "none",
}


MARKERS = ("o", "s", "^", "D", "v", "P", "X")


UNITS = {one.lower(): one for one in ("dBm", "m", "mW", "W", "nm", "ps", "GHz", "THz", "km")}


def demand_supply(demand: Any, result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Demand, as `infocap.tasks.demand` gives it, and supply by total degree, both between 0 and 1.

    Demand is the share of the target's variance that a degree adds; supply is the capacity of a degree over
    its number of functions, the share of that degree that the device computes.

    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> needs = infocap.tasks.demand(infocap.tasks.two_spirals(n_points=200), basis)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.tasks.plot.demand_supply(needs, result)
    >>> ax.get_xlabel()
    'total degree'
    """
    if demand.basis.n_inputs != result.basis.n_inputs:
        there = (
            f"the task has {demand.basis.n_inputs} inputs and the device {result.basis.n_inputs}"
        )
        raise ParameterError(f"{there}; compare results with the same number of inputs.")
    functions = np.bincount(result.basis.degrees)
    supply = np.bincount(result.basis.degrees, result.capacity) / np.maximum(functions, 1)
    with axes(ax) as ax:
        for place, values, colour, label in (
            (-BAR / 2, supply, COLOURS[0], "supply: share of the functions computed"),
            (BAR / 2, demand.share, COLOURS[5], "demand: share of the target's variance"),
        ):
            ax.bar(
                np.arange(1, len(values)) + place, values[1:], width=BAR, color=colour, label=label
            )
        degree_axis(ax, np.arange(1, max(demand.basis.max_degree, result.basis.max_degree) + 1))
        ax.set(ylim=(0, 1.28), yticks=[0, 0.25, 0.5, 0.75, 1], ylabel="share")
        ax.legend(loc="upper right", handlelength=1.0, handletextpad=0.5, borderaxespad=0.1)
        explained = f"explain {1 - demand.unexplained:.0%} of the target"
        said = f"{demand.task}: degrees up to {demand.basis.max_degree}\n{explained}"
        ax.text(0.99, 0.74, said, transform=ax.transAxes, ha="right", va="top", color="0.35")
    return ax


def capacity_accuracy(relation: Any, ax: Axes | None = None, *, against: str | None = None) -> Axes:
    """Accuracy over total capacity, one point per setting, with error bars, the correlation and the linear model.

    Takes what `infocap.tasks.capacity_accuracy` gave. With `against`, the name of a setting such as
    ``"power_dbm"``, both are drawn over that setting as in the paper: accuracy on the axes returned, total
    capacity on a second axis at the right. Settings that differ otherwise become curves of their own. A ring
    marks totals that are unreliable; they have no error bar.

    >>> basis, task = infocap.product_basis("legendre", 2, max_degree=3), infocap.tasks.two_spirals(200)
    >>> devices = [infocap.systems.RandomFeatures(2, n, gain=3.0, noise=0.1) for n in (2, 4, 8, 12)]
    >>> results = [infocap.probe(device, basis, 1024, seed=1) for device in devices]
    >>> scores = [infocap.tasks.accuracy(device, task) for device in devices]
    >>> relation = infocap.tasks.capacity_accuracy(results, scores)
    >>> ax = infocap.tasks.plot.capacity_accuracy(relation)
    >>> ax.get_xlabel()
    'total capacity'
    """
    names, errors = list(relation.settings), relation.total_standard_error
    if against is not None:
        one_of("against", against, names)
    along = against or max(names, key=lambda name: len(relation.settings[name]))
    curves: dict[str, list[int]] = {}  # rows of the settings that differ in nothing but `along`
    for row, point in enumerate(product(*relation.settings.values())):
        others = [
            _setting(name, value) for name, value in zip(names, point, strict=True) if name != along
        ]
        curves.setdefault(", ".join(others) or relation.task, []).append(row)
    with axes(ax) as ax:
        right = None if against is None else ax.twinx()
        for number, (label, rows) in enumerate(curves.items()):
            y, y_error = relation.accuracy[rows], relation.accuracy_standard_error[rows]
            total, doubtful = relation.total[rows], relation.doubtful[rows]
            error = None if errors is None else np.where(doubtful, np.nan, errors[rows])
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            look: Any = {
                "color": colour,
                "marker": marker,
                "markersize": 4,
                "elinewidth": 0.8,
                "capsize": 2,
            }
            if right is None:
                ax.errorbar(total, y, y_error, error, label=label, linewidth=0.6, **look)
                ax.plot(total[doubtful], y[doubtful], **RING)
            else:
                x = np.array(relation.settings[along])
                ax.errorbar(x, y, y_error, label=label, linewidth=1.2, **look)
                right.errorbar(
                    x, total, error, linestyle=":", markerfacecolor="white", linewidth=1.0, **look
                )
                right.plot(x[doubtful], total[doubtful], **RING)
        if right is not None:
            right.spines["right"].set_visible(True)
            right.set_ylabel("total capacity (dotted)")
            right.margins(y=0.12)
        ax.axhline(
            relation.linear, color="0.5", linewidth=0.8, linestyle="--"
        )  # without any device
        where: Any = {
            "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points",
            "color": "0.4",
        }
        ax.annotate("linear model", (1.0, relation.linear), (-2, -2), ha="right", va="top", **where)
        low, high = relation.interval()
        ax.set_title(
            f"{relation.task}: r = {relation.correlation:.2f}  [{low:.2f}, {high:.2f}]", loc="left"
        )
        ax.set(
            xlabel="total capacity" if right is None else _setting(along), ylabel=relation.measure
        )
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.margins(y=0.14)
        if relation.doubtful.any():
            ax.plot([], [], label="unreliable total", **RING)
        if len(names) > 1 or relation.doubtful.any():
            ax.legend(loc="best", handlelength=1.6)
    return ax


def _setting(name: str, value: Any = None) -> str:
    """A parameter as people write it: ``power_dbm`` is "power (dBm)", and "6.6 dBm" with its value; "n layers 3"."""
    words, _, suffix = name.rpartition("_")
    unit = UNITS.get(suffix, "") if words else ""
    words = (words if unit else name).replace("_", " ")
    if value is None:
        return f"{words} ({unit})" if unit else words
    shown = f"{value:g}" if isinstance(value, float | int) else str(value)
    return f"{shown} {unit}" if unit else f"{words} {shown}"
