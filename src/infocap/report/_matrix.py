"""The capacity matrix of two inputs: one cell a function."""

from __future__ import annotations

import numpy as np

from ..result import CapacityResult
from ._axes import drawing, figure
from ._colours import STEPS, viridis
from ._html import Markup, element

LEFT, TOP, SIDE = 54.0, 8.0, 322.0
BAR, GAP = 14.0, 18.0  # of the scale of colours


def matrix(result: CapacityResult) -> Markup:
    """Capacities by the degree in u1 (to the right) and in u2 (upwards), as `plot.capacity_matrix` shows them."""
    indices = result.basis.indices
    size = int(indices.max()) + 1
    cell = SIDE / size
    line = min(0.8, 0.08 * cell)
    cells = [
        element(
            "rect",
            x=LEFT + cell * column + line / 2,
            y=TOP + SIDE - cell * (row + 1) + line / 2,
            width=cell - line,
            height=cell - line,
            fill=viridis(capacity),
            class_="mark",
            data_function=number,
        )
        for number, ((column, row), capacity) in enumerate(
            zip(indices.tolist(), result.capacity.tolist(), strict=True)
        )
    ]
    names = ["degree" if family.count(1) == 2 else "number of function" for family in result.basis.families]
    bottom, middle = TOP + SIDE, LEFT + SIDE / 2
    step = 1 + (size - 1) // 12
    ticks = []
    for k in range(0, size, step):
        place = cell * (k + 0.5)
        ticks.append(element("text", k, x=LEFT + place, y=bottom + 16, text_anchor="middle", class_="tick"))
        ticks.append(element("text", k, x=LEFT - 7, y=bottom - place + 4, text_anchor="end", class_="tick"))
    across, up = f"translate(13 {TOP + SIDE / 2:.0f}) rotate(-90)", bottom + 37
    picture = drawing(
        _words(result),
        element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, class_="outside-basis"),
        *cells,
        *ticks,
        element("text", f"{names[0]} in u", _lowered("1"), x=middle, y=up, text_anchor="middle"),
        element("text", f"{names[1]} in u", _lowered("2"), transform=across, text_anchor="middle"),
        _scale(),
        height=TOP + SIDE + 46,
    )
    return figure(
        "Capacity of each function",
        picture,
        "Each cell is one product of a function of u₁ and one of u₂; its colour is how well a weighted sum of the "
        "readouts reproduces it, from 0 to 1. Grey cells are not in the basis.",
    )


def _words(result: CapacityResult) -> str:
    best = np.argsort(-result.capacity, kind="stable")[:3]
    named = ", ".join(f"{result.basis.label(one)} {result.capacity[one]:.2f}" for one in best)
    return f"Capacity matrix of {len(result.basis)} functions of two inputs; the largest: {named}"


def _scale() -> Markup:
    """The scale of colours."""
    x = LEFT + SIDE + GAP
    stops = [
        element("stop", offset=f"{100 * k / STEPS:.2f}%", stop_color=viridis(k / STEPS))
        for k in range(STEPS + 1)
    ]
    gradient = element("linearGradient", *stops, id="viridis", x1="0", x2="0", y1="1", y2="0")
    ticks = [
        element("text", name, x=x + BAR + 5, y=TOP + SIDE * (1 - value) + 4 + shift, class_="tick")
        for value, name, shift in ((0, "0", -4), (0.5, "0.5", 0), (1, "1", 5))
    ]
    bar = element("rect", x=x, y=TOP, width=BAR, height=SIDE, fill="url(#viridis)")
    turned = f"translate({x + BAR + 22:.0f} {TOP + SIDE / 4:.0f}) rotate(90)"
    name = element("text", "capacity", transform=turned, text_anchor="middle", class_="tick")
    return element("g", element("defs", gradient), bar, *ticks, name)


def _lowered(text: str) -> Markup:
    return element("tspan", text, dy="3", font_size="9.5")
