"""Capacity by total degree, stacked by the number of interacting variables: any number of inputs."""

from __future__ import annotations

import numpy as np

from ..result import CapacityResult
from ..typing import Floats
from ._axes import BOTTOM, LEFT, RIGHT, TOP, Axis, drawing, even_ticks, figure, frame
from ._html import Markup, element
from ._numbers import plain

KINDS = {"1": "one variable", "2": "two variables", ">2": "more than two"}
CLASSES = {"1": "one", "2": "two", ">2": "more"}
ROOMY = 12  # bars: with more, numbers above them are smaller
LABELLED = 17  # bars: with more, numbers above them would touch


def errors_by_degree(result: CapacityResult) -> Floats | None:
    """Standard error of the sum over each degree: the root of the sum of squares."""
    if result.standard_error is None:
        return None
    squares = np.bincount(
        result.basis.degrees, result.standard_error**2, minlength=result.basis.max_degree + 1
    )
    return np.sqrt(squares)


def bars(result: CapacityResult) -> Markup:
    """One bar a total degree, the sum above it."""
    table = result.by_degree()
    sums, errors = table.sum(axis=1).to_numpy(), errors_by_degree(result)
    tops = sums if errors is None else sums + np.nan_to_num(errors)
    x = Axis(-0.6, len(sums) - 0.4, LEFT, RIGHT)
    y = Axis(0.0, 1.12 * max(float(np.nan_to_num(tops).max(initial=0.0)), 1e-3), BOTTOM, TOP)
    size = "value" if len(sums) <= ROOMY else "value tight"
    parts = []
    for degree in np.unique(result.basis.degrees).tolist():
        parts += _bar(degree, table.loc[degree].to_dict(), x, y)
        parts += _top(x.at(degree), y, float(sums[degree]), None if errors is None else float(errors[degree]))
        if len(sums) <= LABELLED:
            above = y.at(float(np.nan_to_num(tops[degree]))) - 5
            text = plain(float(sums[degree]), 2)
            parts.append(element("text", text, x=x.at(degree), y=above, text_anchor="middle", class_=size))
    step = 1 + (len(sums) - 1) // LABELLED
    degrees = [(float(k), str(k)) for k in range(0, len(sums), step)]
    words = ", ".join(f"degree {k} {plain(float(value))}" for k, value in enumerate(sums) if value)
    picture = drawing(
        f"Capacity by total degree: {words}",
        frame(x, y, degrees, even_ticks(0, y.high), "total degree", "capacity"),
        *parts,
    )
    present = [kind for kind in KINDS if table[kind].sum() > 0]
    return figure("Capacity by degree", picture, _legend(present), _caption(result))


def _bar(degree: int, values: dict[str, float], x: Axis, y: Axis) -> list[Markup]:
    """The parts of one bar, in front of a column as high as the axes, so that short bars can be pointed at."""
    left, width = x.at(degree - 0.39), x.at(0.39) - x.at(-0.39)
    parts = [
        element(
            "rect",
            x=left,
            y=TOP,
            width=width,
            height=BOTTOM - TOP,
            class_="mark column",
            data_degree=degree,
        )
    ]
    base = 0.0
    for kind, value in values.items():
        if value > 0:
            upper, lower = y.at(base + value), y.at(base)
            parts.append(
                element(
                    "rect",
                    x=left,
                    y=upper,
                    width=width,
                    height=max(lower - upper, 0.0),
                    class_=f"mark {CLASSES[kind]}",
                    data_degree=degree,
                    data_kind=kind,
                )
            )
            base += value
    return parts


def _top(x: float, y: Axis, value: float, error: float | None) -> list[Markup]:
    """The error bar, when it can be seen."""
    if error is None or not error > 0 or y.at(value - error) - y.at(value + error) < 1.5:
        return []
    low, high = y.at(max(value - error, 0.0)), y.at(value + error)
    return [element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {high:.1f}h6", class_="error")]


def _legend(present: list[str]) -> Markup | str:
    if len(present) < 2:
        return ""
    entries = [
        element("li", element("span", class_=f"swatch {CLASSES[kind]}"), KINDS[kind]) for kind in present
    ]
    return element("ul", *entries, class_="legend")


def _caption(result: CapacityResult) -> str:
    said = "Capacities of all functions of one degree, added up"
    if result.basis.n_inputs > 1:
        said += "; colours say how many inputs a function joins"
    return said + ("." if result.standard_error is None else ". Error bars are standard errors.")
