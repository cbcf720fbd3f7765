"""The page's own pictures, every mark of which tells what is behind it: capacity matrix and capacity by degree."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator

from ..plot._capacity import KINDS, errors_by_degree, index_names
from ..result import CapacityResult
from ._html import Markup, drawing, element, figure
from ._words import minus, plain

LEFT, TOP = 54.0, 8.0  # of the space between the axes, in units of the drawing; letters are 12.5 high
SIDE = 322.0  # of the matrix
RIGHT, BOTTOM = 428.0, 256.0  # of the bars
CLASSES = {"1": "one", "2": "two", ">2": "more"}
MOST_TICKS = 12  # Larger matrices name every second or third degree: the numbers would touch.
ROOMY, LABELLED = 12, 17  # Numbers above more bars than these are small, and would touch.


def matrix(result: CapacityResult) -> Markup:
    """Capacities by the degree in u1 (to the right) and in u2 (upwards), as `plot.capacity_matrix` shows them."""
    indices, bottom = result.basis.indices, TOP + SIDE
    size = int(indices.max()) + 1
    cell = SIDE / size
    line = min(0.8, 0.08 * cell)  # between two cells
    side = cell - line
    parts = [element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, class_="outside-basis")]
    for number, (column, row) in enumerate(indices.tolist()):
        x, y = LEFT + cell * column + line / 2, bottom - cell * (row + 1) + line / 2
        own = {"fill": viridis(result.capacity[number]), "class_": "mark", "data_function": number}
        parts.append(element("rect", x=x, y=y, width=side, height=side, **own))
    for k in range(0, size, 1 + (size - 1) // MOST_TICKS):
        place = cell * (k + 0.5)
        parts.append(_text(k, LEFT + place, bottom + 16, "tick"))
        parts.append(_text(k, LEFT - 7, bottom - place + 4, "tick", anchor="end"))
    first, second = index_names(result)
    parts.append(_text(f"{first} in u₁", LEFT + SIDE / 2, bottom + 37))
    parts.append(_text(f"{second} in u₂", 13, TOP + SIDE / 2, turned=-90))
    best = np.argsort(-result.capacity, kind="stable")[:3]
    named = ", ".join(f"{result.basis.label(one)} {result.capacity[one]:.2f}" for one in best)
    words = f"Capacity matrix of {len(result.basis)} functions of two inputs; the largest: {named}"
    return figure(
        "Capacity of each function",
        drawing(words, *parts, _scale(), height=TOP + SIDE + 46),
        "Each cell is one product of a function of u₁ and one of u₂; its colour is how well a weighted sum of the "
        "readouts reproduces it, from 0 to 1. Grey cells are not in the basis.",
    )


def viridis(value: float) -> str:
    """The colour of a capacity between 0 and 1, the same as in `infocap.plot`."""
    return to_hex(mpl.colormaps["viridis"](min(max(float(value), 0.0), 1.0)))


def _scale() -> Markup:
    """The scale of colours beside the matrix."""
    x, bottom = LEFT + SIDE + 18, TOP + SIDE
    stops = [
        element("stop", offset=f"{100 * one:.2f}%", stop_color=viridis(one)) for one in np.linspace(0, 1, 17)
    ]
    gradient = element("linearGradient", *stops, id="viridis", x1="0", x2="0", y1="1", y2="0")
    bar = element("rect", x=x, y=TOP, width=14, height=SIDE, fill="url(#viridis)")
    places = ((bottom, "0"), (bottom - SIDE / 2 + 4, "0.5"), (TOP + 9, "1"))
    ticks = [_text(name, x + 19, y, "tick", anchor="start") for y, name in places]
    name = _text("capacity", x + 36, TOP + SIDE / 4, "tick", turned=90)
    return element("g", element("defs", gradient), bar, *ticks, name)


def bars(result: CapacityResult) -> Markup:
    """Capacity by total degree, stacked by the number of interacting variables, for any number of inputs."""
    table, errors = result.by_degree(), errors_by_degree(result)
    sums = table.sum(axis=1).to_numpy()
    reach = np.zeros(len(sums)) if errors is None else np.nan_to_num(errors)
    highest = 1.12 * max(float((sums + reach).max(initial=0.0)), 1e-3)
    unit, slot = (BOTTOM - TOP) / highest, (RIGHT - LEFT) / (len(sums) + 0.2)
    parts = _frame(highest)
    for degree in np.unique(result.basis.degrees).tolist():
        middle, top = LEFT + slot * (degree + 0.6), BOTTOM - unit * (sums[degree] + reach[degree])
        parts += _bar(degree, table.loc[degree].to_dict(), reach[degree], middle, slot, unit)
        if len(sums) <= LABELLED:
            class_ = "value" if len(sums) <= ROOMY else "value tight"
            parts.append(_text(plain(sums[degree]), middle, top - 5, class_))
        if degree % (1 + (len(sums) - 1) // LABELLED) == 0:
            parts.append(_text(degree, middle, BOTTOM + 17, "tick"))
    words = ", ".join(f"degree {k} {plain(float(value))}" for k, value in enumerate(sums) if value)
    joined = "; colours say how many inputs a function joins" if result.basis.n_inputs > 1 else ""
    barred = "" if errors is None else " Error bars are standard errors."
    present = [kind for kind in KINDS if table[kind].sum() > 0]
    entries = [
        element("li", element("span", class_=f"swatch {CLASSES[kind]}"), KINDS[kind]) for kind in present
    ]
    return figure(
        "Capacity by degree",
        drawing(f"Capacity by total degree: {words}", *parts),
        element("ul", *entries, class_="legend") if len(present) > 1 else "",
        f"Capacities of all functions of one degree, added up{joined}.{barred}",
    )


def _frame(highest: float) -> list[Markup]:
    """The axes of the bars, with a line across at every tick of the capacity."""
    parts = []
    for value in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0, highest):
        if value <= highest:
            y = BOTTOM - (BOTTOM - TOP) * value / highest
            parts.append(element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="grid"))
            parts.append(_text(minus(f"{value:g}"), LEFT - 7, y + 4, "tick", anchor="end"))
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis"))
    parts.append(_text("total degree", (LEFT + RIGHT) / 2, BOTTOM + 38))
    return [*parts, _text("capacity", 13, (TOP + BOTTOM) / 2, turned=-90)]


def _bar(
    degree: int, values: dict[str, float], error: float, middle: float, slot: float, unit: float
) -> list[Markup]:
    """The parts of one bar, in front of a column as high as the axes, so that short bars can be pointed at."""
    place = {"x": middle - 0.39 * slot, "width": 0.78 * slot}
    column = {"y": TOP, "height": BOTTOM - TOP, "class_": "mark column", "data_degree": degree}
    parts = [element("rect", **place, **column)]
    top = BOTTOM
    for kind, value in values.items():
        if value > 0:
            top -= unit * value
            own = {"class_": f"mark {CLASSES[kind]}", "data_degree": degree, "data_kind": kind}
            parts.append(element("rect", **place, y=top, height=unit * value, **own))
    if 2 * unit * error >= 1.5:  # shorter error bars cannot be seen
        value = sum(values.values())
        low, high = BOTTOM - unit * max(value - error, 0.0), BOTTOM - unit * (value + error)
        line = f"M{middle:.1f} {low:.1f}V{high:.1f}M{middle - 3:.1f} {high:.1f}h6"
        parts.append(element("path", d=line, class_="error"))
    return parts


def _text(
    name: object, x: float, y: float, class_: str | None = None, anchor: str = "middle", turned: int = 0
) -> Markup:
    """Letters at a place, perhaps turned by so many degrees around it."""
    place = f"translate({x:.2f} {y:.2f})" + (f" rotate({turned})" if turned else "")
    return element("text", name, transform=place, text_anchor=anchor, class_=class_)
