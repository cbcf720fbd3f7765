"""Growth, factors and drift as `infocap.plot` draws them, in the colours of the page and with its tooltips."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plot
from ..plot._run import clock
from ..result import CapacityResult
from ..typing import ArrayLike
from ._html import Markup, asset, drawing, element, figure
from ._words import with_error

WIDTH, HEIGHT = 440, 300  # The size of the page's own drawings, in which letters are 12.5 high.
MOST_POINTS = 200  # Points of a curve with a tooltip: more are closer than a pixel and make the page slow.
LIGHT = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}),", asset("page.css")))
VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT.items())}
LOOK: Any = {
    "font.size": 12.5,
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], LIGHT["soft"]),
    "grid.color": LIGHT["grid"],
    "axes.grid": True,
    "axes.grid.axis": "y",
    **dict.fromkeys(["axes.spines.left", "axes.spines.right", "axes.spines.top"], False),
    **dict.fromkeys(["ytick.major.size", "ytick.minor.size"], 0),
    **dict.fromkeys(["figure.facecolor", "axes.facecolor"], "none"),
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "axes.labelpad": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "infocap",
}


def growth(result: CapacityResult) -> Markup:
    """The total against the number of samples; nothing where fewer than two numbers of samples are known."""
    found = result.growth
    if found is None or len(found.n_samples) < 2:
        return Markup()
    errors = found.standard_error or [None] * len(found.total)
    known = zip(found.n_samples, found.total, errors, strict=True)
    tips = [f"{n} samples\ntotal {with_error(total, error)}" for n, total, error in known]
    words = "Total capacity against the number of samples: " + ", ".join(tips).replace("\n", ", ")
    picture = _drawn(plot.growth, result, words, found.n_samples, found.total, tips)
    said = "What an earlier stop would have given; at the right end it should have settled."
    return figure("Growth with the number of samples", picture, said)


def factors(result: CapacityResult) -> Markup:
    """Malinowski's indicator function, or why there is none; nothing where no noise was measured."""
    found, title = result.factors, "Factor analysis"
    if found is None:
        return Markup()
    if found.problem is not None:
        return element("figure", element("h3", title), element("p", f"No number of factors: {found.problem}"))
    said = (
        "The indicator function has no minimum, so it names no number of factors. The noise was "
        if found.n_factors is None
        else f"The indicator function has its minimum at {found.n_factors} factors: so many independent signals "
        "stand clearly out of the noise, "
    ) + f"measured from {found.n_repeats} repeats at one input."
    numbers = range(1, len(found.values) + 1)
    tips = [f"{k} factors\nIND = {value:.3g}" for k, value in zip(numbers, found.values, strict=True)]
    words = f"Malinowski's indicator function. {said}"
    return figure(title, _drawn(plot.indicator, result, words, numbers, found.values, tips), said)


def drift(result: CapacityResult) -> Markup:
    """How far the reference moved during the run; nothing where none was measured."""
    found, title = result.drift, "Drift of the reference"
    if found is None:
        return Markup()
    time, unit = clock(found)
    percent = 100 * np.array(found.moved)
    tips = [f"{t:.4g} {unit or 'in order'}\nmoved by {p:.3g} %" for t, p in zip(time, percent, strict=True)]
    size = f"{100 * found.size:.0f}" if found.size >= 0.1 else f"{100 * found.size:.2g}"
    said = (
        f"The reference moved by {size} % of the readouts' spread (root mean square, noise taken off). "
        "The curve is its distance from the first measurement; the dashed line is what noise alone would show."
    )
    return figure(title, _drawn(plot.drift, result, f"{title}. {said}", time, percent, tips), said)


def _drawn(
    draw: Callable[..., Axes], result: CapacityResult, words: str, x: ArrayLike, y: ArrayLike, tips: list[str]
) -> Markup:
    """A figure of `infocap.plot` as a part of the page, with a spot that can be pointed at on every point."""
    with matplotlib.style.context(["default", LOOK]):
        canvas = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72, layout="constrained")
        ax = draw(result, canvas.subplots())
        file = StringIO()
        canvas.savefig(file, format="svg")
    places = ax.transData.transform(np.column_stack([x, y]))
    places[:, 1] = HEIGHT - places[:, 1]
    last = len(tips) - 1
    spots = [
        element("circle", cx=places[k, 0], cy=places[k, 1], r=6, class_="mark spot", data_tip=tips[k])
        for k in sorted({*range(0, last, 1 + last // MOST_POINTS), last})
        if 0 <= places[k, 1] <= HEIGHT  # zero has no place on a logarithmic axis
    ]
    return drawing(words, _inline(file.getvalue(), draw.__name__), *spots, height=HEIGHT)


def _inline(svg: str, name: str) -> Markup:
    """What matplotlib drew, without what a page must not have twice or at all: header, style sheet, bare ids.

    Colours that the page's style sheet knows become its variables, so that they follow light and dark; the font is
    the page's. Styles become attributes: the page's policy forbids styles within elements.
    """

    def attributes(style: re.Match[str]) -> str:
        pairs = [one.strip().split(": ", 1) for one in style[1].split(";") if ":" in one]
        kept = [(key, VARIABLES.get(value, value)) for key, value in pairs if not key.startswith("font")]
        return " ".join(f'{key}="{value}"' for key, value in kept)

    inside = svg[svg.index('<g id="figure_1">') : svg.rindex("</svg>")].replace("xlink:href", "href")
    inside = re.sub(r'(id="|href="#|url\(#)', rf"\1{name}-", inside)
    return Markup(re.sub(r'style="([^"]*)"', attributes, inside))
