"""Factor analysis: Malinowski's indicator function and its minimum."""

from __future__ import annotations

from ._axes import (
    BOTTOM,
    LEFT,
    MOST_POINTS,
    RIGHT,
    TOP,
    Axis,
    decade_ticks,
    drawing,
    even_ticks,
    figure,
    frame,
    path,
    point,
)
from ._html import Markup, element
from ._measured import Factors

TITLE = "Factor analysis"


def factors(found: Factors) -> Markup:
    """The curve, or why there is none."""
    if found.problem is not None:
        return element("figure", element("h3", TITLE), element("p", f"No number of factors: {found.problem}"))
    x = Axis(0.0, len(found.values) + 1.0, LEFT, RIGHT)
    y = Axis(min(found.values) / 1.4, max(found.values) * 1.4, BOTTOM, TOP, log=True)
    line = [(x.at(k), y.at(value)) for k, value in enumerate(found.values, start=1)]
    step = 1 + (len(line) - 1) // MOST_POINTS
    points = [point(*line[k], _tip(found, k + 1), "small", r=2.6) for k in range(0, len(line), step)]
    said = _words(found)
    picture = drawing(
        f"Malinowski's indicator function. {said}",
        frame(x, y, even_ticks(0, x.high), decade_ticks(y.low, y.high), "number of factors", "IND"),
        element("path", d=path(line), class_="curve"),
        *points,
        *_minimum(found, line),
    )
    return figure(TITLE, picture, said)


def _minimum(found: Factors, line: list[tuple[float, float]]) -> list[Markup]:
    """A mark at the minimum, named at the top, where the curve is not."""
    if found.n_factors is None:
        return []
    x, y = line[found.n_factors - 1]
    right = x < (LEFT + RIGHT) / 2
    name = f"minimum: {found.n_factors} factors"
    side = {"x": x + (8 if right else -8), "text_anchor": "start" if right else "end"}
    return [
        element("line", x1=x, x2=x, y1=TOP, y2=BOTTOM, class_="level"),
        point(x, y, f"Minimum\n{_tip(found, found.n_factors)}", "least", r=5),
        element("text", name, y=TOP + 11, class_="strong", **side),
    ]


def _tip(found: Factors, number: int) -> str:
    return f"{number} factors\nIND = {found.values[number - 1]:.3g}"


def _words(found: Factors) -> str:
    repeats = "" if found.n_repeats is None else f" from {found.n_repeats} repeats at one input"
    if found.n_factors is None:
        return (
            "The indicator function has no minimum, so it names no number of factors. "
            f"The noise was measured{repeats}."
        )
    return (
        f"The indicator function has its minimum at {found.n_factors} factors: so many independent signals stand "
        f"clearly out of the noise, measured{repeats}."
    )
