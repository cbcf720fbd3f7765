"""Total capacity against the accuracy on a task, over the settings of a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .._check import one_of
from ..tasks import CapacityAccuracy
from ._style import COLOURS, axes

MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def capacity_accuracy(
    relation: CapacityAccuracy, ax: Axes | None = None, *, against: str | None = None
) -> Axes:
    """Accuracy over total capacity, one point a setting, with error bars, the correlation and the linear model.

    With `against`, the name of a setting such as ``"power_dbm"``, both are drawn over that setting as in the paper:
    accuracy on the axes returned, total capacity on a second axis at the right. Settings that differ otherwise
    become curves of their own.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> def make(n_readouts):
    ...     return infocap.systems.RandomFeatures(2, n_readouts, gain=3.0, noise=0.01)
    >>> sweep = infocap.sweep(make, {"n_readouts": [2, 4, 8, 12]}, basis, 128, seed=1, progress=False)
    >>> task = infocap.tasks.two_spirals(n_points=200)
    >>> scores = [infocap.tasks.accuracy(make(**point), task) for point in sweep.points]
    >>> relation = infocap.tasks.capacity_accuracy(sweep, scores)
    >>> ax = infocap.plot.capacity_accuracy(relation)
    >>> ax.get_xlabel()
    'total capacity'
    >>> plt.close(ax.figure)
    """
    names = list(relation.settings)
    if against is not None:
        one_of("against", against, names)
    along = against or max(names, key=lambda name: len(relation.settings[name]))
    x = np.array(relation.settings[along]) if against else relation.total
    with axes(ax) as ax:
        second = ax.twinx() if against else None
        for number, (label, rows) in enumerate(_curves(relation, along).items()):
            style: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
                "markersize": 4,
            }
            ax.errorbar(
                x if against else x[rows],
                relation.accuracy[rows],
                relation.accuracy_standard_error[rows],
                None if against else _errors(relation, rows),
                label=label,
                linewidth=1.2 if against else 0.6,
                elinewidth=0.8,
                capsize=2,
                **style,
            )
            if second is not None:
                second.errorbar(
                    x, relation.total[rows], _errors(relation, rows), linestyle=":", markerfacecolor="white",
                    linewidth=1.0, elinewidth=0.8, capsize=2, **style,
                )  # fmt: skip
        ax.axhline(relation.linear, color="0.5", linewidth=0.8, linestyle="--")
        ax.annotate(
            "linear model",
            (1.0, relation.linear),
            (-2, -2),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="top",
            color="0.4",
        )
        low, high = relation.interval()
        said = f"r = {relation.correlation:.2f}  [{low:.2f}, {high:.2f}]"
        ax.set_title(f"{relation.task}: {said}", loc="left")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0))
        ax.set_xlabel(_named(along) if against else "total capacity")
        ax.set_ylabel("accuracy")
        ax.margins(y=0.14)
        if second is not None:
            second.spines["right"].set_visible(True)
            second.set_ylabel("total capacity (dotted)")
            second.margins(y=0.12)
        if len(names) > 1:
            ax.legend(loc="best", handlelength=1.6)
    return ax


def _curves(relation: CapacityAccuracy, along: str) -> dict[str, np.ndarray]:
    """The rows of each curve: settings that differ in nothing but `along`."""
    names, shape = list(relation.settings), [len(values) for values in relation.settings.values()]
    rows = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), names.index(along), -1)
    others = [name for name in names if name != along]
    curves = {}
    for place in np.ndindex(rows.shape[:-1]):
        said = [
            _valued(name, relation.settings[name][position])
            for name, position in zip(others, place, strict=True)
        ]
        curves[", ".join(said) or relation.task] = rows[place]
    return curves


def _errors(relation: CapacityAccuracy, rows: np.ndarray) -> np.ndarray | None:
    return None if relation.total_standard_error is None else relation.total_standard_error[rows]


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


def _named(name: str) -> str:
    """A parameter with its unit apart: ``power_dbm`` is "power (dBm)"."""
    words, _, unit = name.rpartition("_")
    return f"{words.replace('_', ' ')} ({UNITS[unit]})" if words and unit in UNITS else name.replace("_", " ")


def _valued(name: str, value: Any) -> str:
    """One value of a parameter: ``length_m``, 40 is "40 m"."""
    words, _, unit = name.rpartition("_")
    said = f"{value:g}" if isinstance(value, float | int) else str(value)
    return f"{said} {UNITS[unit]}" if words and unit in UNITS else f"{name.replace('_', ' ')} {said}"
