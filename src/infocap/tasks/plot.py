"""Figures of tasks: what a task needs and what a device computes, and accuracy over capacity."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .._validation import checks_arguments, require_one_of
from ..errors import ParameterError
from ..plot import COLOURS, UNRELIABLE_COLOUR, axes_in_style, degree_axis
from ..result import CapacityResult
from ._accuracy import CapacityAccuracy
from ._demand import Demand

# Demand and supply of a degree stand side by side.
SHARE_BAR_WIDTH = 0.4
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# A ring around the point of an unreliable total.
RING_OF_UNRELIABLE: Any = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 9,
    "color": UNRELIABLE_COLOUR,
    "markerfacecolor": "none",
}
# Units that the names of parameters end with, such as `power_dbm`, by their lower-case form.
UNITS = {
    "dbm": "dBm",
    "m": "m",
    "mw": "mW",
    "w": "W",
    "nm": "nm",
    "ps": "ps",
    "ghz": "GHz",
    "thz": "THz",
    "km": "km",
}


@checks_arguments
def demand_supply(demand: Demand, result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Draw what a task needs and what a device computes, both by total degree.

    Demand is the share of the target's variance that a degree adds. Supply is the capacity of a
    degree over its number of functions, the share of that degree that the device computes.

    Parameters
    ----------
    demand
        What `infocap.tasks.demand` returned.
    result
        The capacities of a device with the same number of inputs.
    ax
        Where to draw; by default on new axes.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> needs = infocap.tasks.demand(infocap.tasks.two_spirals(n_points=200), basis)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.tasks.plot.demand_supply(needs, result)
    >>> ax.get_xlabel()
    'total degree'
    """
    if demand.basis.n_inputs != result.basis.n_inputs:
        raise ParameterError(
            f"the task has {demand.basis.n_inputs} inputs and the device {result.basis.n_inputs}; "
            "compare results with the same number of inputs."
        )
    n_functions = np.bincount(result.basis.degrees)
    supply = result.sums_by_degree() / np.maximum(n_functions, 1)
    with axes_in_style(ax) as ax:
        supply_label = "supply: share of the functions computed"
        demand_label = "demand: share of the target's variance"
        _draw_shares(ax, supply, -SHARE_BAR_WIDTH / 2, color=COLOURS[0], label=supply_label)
        _draw_shares(ax, demand.share, SHARE_BAR_WIDTH / 2, color=COLOURS[5], label=demand_label)
        max_degree = max(demand.basis.max_degree, result.basis.max_degree)
        degree_axis(ax, np.arange(1, max_degree + 1))
        ax.set(ylim=(0, 1.28), ylabel="share")
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ax.legend(loc="upper right", handlelength=1.0, handletextpad=0.5, borderaxespad=0.1)
        text = (
            f"{demand.task}: degrees up to {demand.basis.max_degree}\n"
            f"explain {1 - demand.unexplained:.0%} of the target"
        )
        ax.text(0.99, 0.74, text, transform=ax.transAxes, ha="right", va="top", color="0.35")
    return ax


def _draw_shares(ax: Axes, shares: np.ndarray, offset: float, **style: Any) -> None:
    """Draw the shares of the degrees from 1 on as bars."""
    places = np.arange(1, len(shares)) + offset
    ax.bar(places, shares[1:], width=SHARE_BAR_WIDTH, **style)


@checks_arguments
def capacity_accuracy(
    relation: CapacityAccuracy, ax: Axes | None = None, *, against: str | None = None
) -> Axes:
    """Draw accuracy over total capacity, one point per setting, with the correlation.

    Error bars are standard errors. A dashed line is the accuracy of the linear model. A ring marks
    totals that are unreliable; they have no error bar.

    Parameters
    ----------
    relation
        What `infocap.tasks.capacity_accuracy` returned.
    ax
        Where to draw; by default on new axes.
    against
        The name of a setting such as ``"power_dbm"``: accuracy is drawn over it on the axes
        returned, and total capacity on a second axis at the right, as in the paper. Settings that
        differ otherwise become curves of their own.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 2, max_degree=3)
    >>> task = infocap.tasks.two_spirals(200)
    >>> devices = [infocap.systems.RandomFeatures(2, n, noise=0.1) for n in (2, 4, 8, 12)]
    >>> results = [infocap.probe(device, basis, 1024, seed=1) for device in devices]
    >>> scores = [infocap.tasks.accuracy(device, task) for device in devices]
    >>> relation = infocap.tasks.capacity_accuracy(results, scores)
    >>> ax = infocap.tasks.plot.capacity_accuracy(relation)
    >>> ax.get_xlabel()
    'total capacity'
    """
    names = list(relation.settings)
    if against is not None:
        require_one_of("against", against, names)
    along = against or max(names, key=lambda name: len(relation.settings[name]))
    curves = _curves(relation, along)
    with axes_in_style(ax) as ax:
        if against is None:
            for curve in curves:
                _draw_over_capacity(ax, curve)
            ax.set_xlabel("total capacity")
        else:
            right = ax.twinx()
            for curve in curves:
                _draw_over_setting(ax, right, curve)
            right.spines["right"].set_visible(True)
            right.set_ylabel("total capacity (dotted)")
            right.margins(y=0.12)
            ax.set_xlabel(_setting_in_words(along))
        _draw_linear_model(ax, relation)
        low, high = relation.interval()
        title = f"{relation.task}: r = {relation.correlation:.2f}  [{low:.2f}, {high:.2f}]"
        ax.set_title(title, loc="left")
        ax.set_ylabel(relation.measure)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.margins(y=0.14)
        if relation.is_unreliable.any():
            ax.plot([], [], label="unreliable total", **RING_OF_UNRELIABLE)
        if len(names) > 1 or relation.is_unreliable.any():
            ax.legend(loc="best", handlelength=1.6)
    return ax


@dataclass(frozen=True, eq=False)
class _Curve:
    """Totals and accuracies of settings that differ in one parameter alone, and how they look."""

    label: str  # what the settings have in common
    setting: np.ndarray  # the values of the parameter that differs
    total: np.ndarray
    total_error: np.ndarray | None  # NaN where a total is unreliable
    accuracy: np.ndarray
    accuracy_error: np.ndarray
    is_unreliable: np.ndarray  # whether each total is unreliable
    style: dict[str, Any]


def _curves(relation: Any, along: str) -> list[_Curve]:
    """Return one curve for the settings that differ in nothing but `along`."""
    rows_by_label: dict[str, list[int]] = {}
    for row, values in enumerate(product(*relation.settings.values())):
        in_common = []
        for name, value in zip(relation.settings, values, strict=True):
            if name != along:
                in_common.append(_setting_in_words(name, value))
        label = ", ".join(in_common) or relation.task
        rows_by_label.setdefault(label, []).append(row)
    curves = []
    for number, (label, rows) in enumerate(rows_by_label.items()):
        total_error = None
        if relation.total_standard_error is not None:
            known_errors = relation.total_standard_error[rows]
            total_error = np.where(relation.is_unreliable[rows], np.nan, known_errors)
        curve = _Curve(
            label=label,
            setting=np.array(relation.settings[along]),
            total=relation.total[rows],
            total_error=total_error,
            accuracy=relation.accuracy[rows],
            accuracy_error=relation.accuracy_standard_error[rows],
            is_unreliable=relation.is_unreliable[rows],
            style=_style_of_curve(number),
        )
        curves.append(curve)
    return curves


def _style_of_curve(number: int) -> dict[str, Any]:
    """Return the style of the points of a curve."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
        "elinewidth": 0.8,
        "capsize": 2,
    }


def _draw_over_capacity(ax: Axes, curve: _Curve) -> None:
    ax.errorbar(
        curve.total,
        curve.accuracy,
        yerr=curve.accuracy_error,
        xerr=curve.total_error,
        label=curve.label,
        linewidth=0.6,
        **curve.style,
    )
    ringed = curve.is_unreliable
    ax.plot(curve.total[ringed], curve.accuracy[ringed], **RING_OF_UNRELIABLE)


def _draw_over_setting(ax: Axes, right: Axes, curve: _Curve) -> None:
    ax.errorbar(
        curve.setting,
        curve.accuracy,
        curve.accuracy_error,
        label=curve.label,
        linewidth=1.2,
        **curve.style,
    )
    style = curve.style | {"linestyle": ":", "markerfacecolor": "white", "linewidth": 1.0}
    right.errorbar(curve.setting, curve.total, curve.total_error, **style)
    ringed = curve.is_unreliable
    right.plot(curve.setting[ringed], curve.total[ringed], **RING_OF_UNRELIABLE)


def _draw_linear_model(ax: Axes, relation: Any) -> None:
    """Draw the accuracy without any device as a line with its name at the right end."""
    ax.axhline(relation.linear, color="0.5", linewidth=0.8, linestyle="--")
    ax.annotate(
        "linear model",
        xy=(1.0, relation.linear),
        xycoords=("axes fraction", "data"),
        xytext=(-2, -2),
        textcoords="offset points",
        ha="right",
        va="top",
        color="0.4",
    )


def _setting_in_words(name: str, value: Any = None) -> str:
    """Return a parameter as people write it.

    ``power_dbm`` is "power (dBm)", and "6.6 dBm" with its value; ``n_layers`` with its value is
    "n layers 3".
    """
    quantity, _, suffix = name.rpartition("_")
    unit = UNITS.get(suffix, "") if quantity else ""
    words = (quantity if unit else name).replace("_", " ")
    if value is None:
        return f"{words} ({unit})" if unit else words
    value_text = f"{value:g}" if isinstance(value, float | int) else str(value)
    return f"{value_text} {unit}" if unit else f"{words} {value_text}"
