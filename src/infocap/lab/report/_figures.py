"""The pictures of the page, with tooltips; curves are those of `infocap.plot` in the page's colours."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import StringIO
from math import hypot
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, to_hex
from matplotlib.figure import Figure

from ..._formatting import counted, percent, rounded, short
from ...plot import _run, capacity_by_delay, memory_function
from ...plot._capacity import capacity_bars, capacity_matrix, errors_by_degree, stacks
from ...result._capacity_result import CapacityResult
from ._html import Markup, asset, element, filled, minus, plain, together, with_error

RING: Any = {"cx": 100, "cy": 100, "r": 88, "pathLength": 100, "fill": "none", "stroke_width": 10}
NOTHING = 5e-3  # A share of the maximum below half a hundredth would be written as 0.0.
Share = tuple[
    str, float, str, str
]  # A part of the maximum: its colour, size, the size in words, and what it is.
WIDTH, HEIGHT = 440, 300  # The size of most drawings, in which letters are 12.5 high.
LARGEST_MATRIX = 20_000  # Cells of a matrix of more functions would be smaller than a pixel.
SQUARE = 366  # The height of the matrix.
MOST_POINTS = (
    200  # Points of a curve with a tooltip: more are closer than a pixel and make the page slow.
)
LIGHT = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}),", asset("page.css")))
VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT.items())} | {
    "#000000": "var(--ink)"
}
LOOK: Any = {
    **mpl.rc_params_from_file(
        Path(__file__).with_name("page.mplstyle"), use_default_template=False
    ),
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], LIGHT["soft"]),
    "grid.color": LIGHT["grid"],
}
OWN_SIZE = str(
    LOOK["font.size"]
)  # The size of letters that the style sheet gives, larger ones on a small screen.


def circle(result: CapacityResult) -> Markup:
    """Total over maximum, as the paper shows it, in a ring: what was found (strong), what noise allows (faint)."""
    most, total, colour = max(result.maximum, 1), minus(short(result.total, result.maximum)), "one"
    if result.unreliable:
        total, colour = f"≈{rounded(result.total, result.total_standard_error)}", "warn-edge"
    rings = []
    for name, opacity, found in (
        ("outside", 0.45, result.noise_limited_total),
        (colour, None, result.total),
    ):
        if found is not None:  # a part of the ring, clockwise from the top
            dash = f"{100 * min(max(found / most, 0.0), 1.0):.2f} 100"
            look = {
                "stroke": f"var(--{name})",
                "opacity": opacity,
                "transform": "rotate(-90 100 100)",
            }
            rings.append(element("circle", **RING, stroke_dasharray=dash, **look))
    size = min(46.0, 200.0 / max(len(total), len(str(most))))
    words = f"Total capacity {result.qualified_total or total} of at most {most}"
    parts = {
        "rings": together(rings),
        "total": total,
        "most": most,
        "size": size,
        "below": 110 + 0.78 * size,
    }
    return filled("circle.svg", words=words, **parts)


def shares(result: CapacityResult) -> list[Share]:
    """Where the maximum capacity went: found, outside the basis, lost to noise, dependent readouts."""
    total, error, limit = result.total, result.total_standard_error, result.noise_limited_total
    parts = [("one", total, error, "found among the functions of this basis")]
    if limit is None:
        words = "not found: lost to noise, or in functions outside this basis. Measuring some inputs twice tells which."
        parts.append(("lost", result.rank - total, error, words))
    else:
        both = hypot(result.noise_limited_standard_error or 0.0, error or 0.0) or None
        within = limit - total < 2 * (both or 0.0) and not result.unreliable
        chance = ": no more than chance explains" if within else ""
        words = f"in functions of the inputs outside this basis{chance}"
        parts.append(("outside", limit - total, both, words))
        words = "lost to noise, as repeated measurements show"
        parts.append(("lost", result.rank - limit, result.noise_limited_standard_error, words))
    shown = [
        (f"var(--{colour})", size, _amount(result, size, error), words)
        for colour, size, error, words in parts
        if size > NOTHING or colour in ("one", "outside")
    ]
    dependent = result.maximum - result.rank
    if dependent > 0:
        words = f"{counted(dependent, 'readout')} that {'is' if dependent == 1 else 'are'} a linear mix of the others"
        shown.append(("var(--dependent)", dependent, str(dependent), words))
    return shown


def budget(result: CapacityResult) -> Markup:
    """A bar as long as the maximum capacity, and what its parts are."""
    shown = shares(result)
    name = f"Of {result.maximum}: " + "; ".join(f"{said} {words}" for _, _, said, words in shown)
    whole = max(result.maximum, sum(max(size, 0.0) for _, size, _, _ in shown))
    lines = [
        element("li", swatch(colour), element("strong", said), element("span", words))
        for colour, _, said, words in shown
    ]
    return element(
        "div",
        stacked(shown, whole, name),
        element("ul", *lines, class_="budget-list"),
        class_="budget",
    )


def stacked(parts: Iterable[Share], whole: float, name: str) -> Markup:
    """Parts one after the other in a bar that stands for the `whole`, each with its tooltip."""
    rects, begin = [element("rect", width="100%", height="100%", fill="var(--grid)")], 0.0
    for colour, size, said, words in parts:
        length = 100 * max(size, 0.0) / max(whole, 1e-9)
        where = {"x": f"{begin:.3f}%", "width": f"{length:.3f}%", "height": "100%", "fill": colour}
        rects.append(element("rect", **where, class_="mark", data_tip=f"{said}\n{words}"))
        begin += length
    return element("svg", *rects, role="img", aria_label=name, class_="stacked")


def swatch(colour: str, words: str = "") -> Markup:
    """A small square of a colour for a legend, and what it stands for."""
    square = element("rect", width="100%", height="100%", rx=3, fill=colour)
    return together([element("svg", square, class_="swatch"), words])


def _amount(result: CapacityResult, size: float, error: float | None) -> str:
    """A part of the maximum with its error; rounded where the total is unreliable."""
    if result.unreliable:
        return minus(f"about {rounded(size, error)}")
    return minus(short(size)) if error is None else with_error(size, error)


def matrix(result: CapacityResult) -> Markup:
    """Capacities by the degrees in two inputs, as `plot.capacity_matrix` shows them; nothing for other numbers."""
    if result.basis.n_inputs != 2 or len(result.basis) > LARGEST_MATRIX or result.basis.memory:
        return Markup()

    def cells(ax: Axes) -> Iterator[Markup]:
        for number, (column, row) in enumerate(result.basis.indices.tolist()):
            yield _box(ax, column - 0.5, row - 0.5, 1.0, 1.0, data_function=number)

    first, second = result.basis.names
    said = (
        f"Each cell is one product of a function of {first} and one of {second}; its colour is how well a weighted sum "
        "of the readouts reproduces it, from 0 to 1. Grey cells are not in the basis."
    )
    return _figure(
        "Capacity of each function",
        said,
        partial(capacity_matrix, total=False),
        result,
        cells,
        SQUARE,
    )


def bars(result: CapacityResult) -> Markup:
    """Capacity by total degree, stacked by the number of interacting variables, as `plot.capacity_bars` shows it."""
    table, errors = stacks(result), errors_by_degree(result)

    def parts(ax: Axes) -> Iterator[Markup]:
        for degree, values in zip(table.index, table.to_numpy(), strict=True):
            # A column as high as the axes comes first, so that short bars can be pointed at.
            yield _box(
                ax, degree - 0.39, 0.0, 0.78, ax.get_ylim()[1], "mark column", data_degree=degree
            )
            for kind, value, base in zip(table, values, np.cumsum(values) - values, strict=True):
                if value > 0:
                    yield _box(
                        ax, degree - 0.39, base, 0.78, value, data_degree=degree, data_kind=kind
                    )

    joins = (
        "delayed inputs" if result.basis.memory else "inputs" if result.basis.n_inputs > 1 else ""
    )
    joined = joins and f"; colours say how many {joins} a function has"
    barred = "" if errors is None else " Error bars are standard errors."
    said = f"Capacities of all functions of one degree, added up{joined}.{barred}"
    return _figure("Capacity by degree", said, partial(capacity_bars, total=False), result, parts)


def _box(
    ax: Axes, x: float, y: float, width: float, height: float, class_: str = "mark", **data: Any
) -> Markup:
    """A rectangle that can be pointed at, from the units of the axes to those of the drawing."""
    (left, low), (right, high) = ax.transData.transform([(x, y), (x + width, y + height)])
    place = {
        "x": left,
        "y": ax.figure.bbox.height - high,
        "width": right - left,
        "height": high - low,
    }
    return element("rect", **place, class_=class_, **data)


def delays(result: CapacityResult) -> Markup:
    """What a device with memory remembers, and how long; nothing for others."""
    if not result.basis.memory:
        return Markup()
    basis, parts = result.basis, []
    for k in np.unique(basis.indices[basis.degrees == 1, 0]).tolist():
        title, own = "Memory function", ""
        if basis.n_inputs > 1:
            title = f"Memory function of {basis.names[k]}"
            own = f"{plain(result.memory_function(input=k + 1)['capacity'].sum())} of "
        said = f"Capacity {own}{result.memory_capacity!r} of degree 1 in all; bands are two standard errors."
        parts.append(_figure(title, said, partial(memory_function, input=k + 1), result))
    said = "Capacity of all functions by their largest delay, stacked by degree."
    return together([*parts, _figure("Capacity by delay", said, capacity_by_delay, result)])


def growth(result: CapacityResult) -> Markup:
    """The total against the number of samples; nothing where fewer than two numbers of samples are known."""
    if result.growth is None or len(result.growth.n_samples) < 2:
        return Markup()
    said = "The total that fewer samples would have given; at the right end it should have settled."
    return _figure("Growth with the number of samples", said, _run.growth, result)


def factors(result: CapacityResult) -> Markup:
    """Malinowski's indicator function, or why there is none; nothing where no noise was measured."""
    found, title = result.factors, "Factor analysis"
    if found is None:
        return Markup()
    if found.problem is not None:
        return element(
            "figure", element("h3", title), element("p", f"No number of factors: {found.problem}")
        )
    minimum = f"its minimum at {found.n_factors} factors: so many independent signals stand clearly out of the noise"
    if found.n_factors is None:
        minimum = "no minimum, so it names no number of factors"
    said = f"Malinowski's indicator function has {minimum}. The noise was measured by {found.n_repeats} repeats."
    return _figure(title, said, _run.indicator, result)


def drift(result: CapacityResult) -> Markup:
    """How far the reference moved during the run; nothing where none was measured."""
    if result.drift is None:
        return Markup()
    said = (
        f"The reference moved by {percent(result.drift.size)} of the readouts' spread (root mean square, noise taken "
        "off). The curve is its distance from the first measurement; the dashed line is what noise alone would show."
    )
    return _figure("Drift of the reference", said, _run.drift, result)


def misfit(result: CapacityResult) -> Markup:
    """Where the readouts do not fit their inputs, by channel and time, if a check found some such place."""
    found = next(
        (one for one in result.warnings if isinstance(one.found.get("picture"), dict)), None
    )
    if found is None:
        return Markup()
    picture, named = found.found["picture"], set(found.found.get("channels", ()))
    levels, names, first = picture["levels"], picture["channels"], picture["first"]
    step = (picture["last"] + 1 - first) / max(map(len, levels))  # measurements of a column
    colours = [LIGHT["panel"], *map(to_hex, colormaps["viridis"](np.linspace(0.2, 1.0, 9)))]
    doubted = [k for k, name in enumerate(names) if name in named]

    def misfits(_: CapacityResult, ax: Axes) -> Axes:
        ax.set_yticks(doubted, ["▸"] * len(doubted))
        ax.set(
            xlim=(first, picture["last"] + 1), ylim=(len(levels) - 0.5, -1.5), facecolor=colours[0]
        )
        ax.set(xlabel="measurement", ylabel=counted(len(levels), "channel"))
        ax.grid(visible=False)
        scale = ScalarMappable(BoundaryNorm(np.arange(11) / 3, 10), ListedColormap(colours))
        bar: Any = ax.figure.colorbar(
            scale, ax=ax, label="misfit, 1 is usual", pad=0.03, fraction=0.046
        )
        bar.set_ticks([0, 1, 2, 3], labels=["1", "2", "4", "8"])
        bar.solids.set(rasterized=False, edgecolor="face")
        return ax

    def places(ax: Axes) -> Iterator[Markup]:
        for k, line in enumerate(levels):
            for run in re.finditer(r"([1-9])\1*", line):
                tip = f"{names[k]}\nmisfit {2 ** (int(run[1]) / 3):.1f} times the usual"
                size = (len(run[0]) * step, -1.0)
                fill = colours[int(run[1])]
                yield _box(ax, first + run.start() * step, k + 0.5, *size, fill=fill, data_tip=tip)
        for moment in picture["marked"]:
            yield _box(ax, first + moment * step, -0.7, step, -0.6, "doubt")

    said = "How far each readout is from what the inputs of its row predict, in units of its usual distance."
    said += (
        " The bar at the top marks the measurements that the warning is about."
        if picture["marked"]
        else ""
    )
    said += " Arrows at the left mark the channels that the warning is about." if doubted else ""
    return _figure("Where readouts do not fit their inputs", said, misfits, result, places)


def _spots(ax: Axes) -> Iterator[Markup]:
    """A spot that can be pointed at on every point of the first curve, or on top of all bars where there is none."""
    if ax.lines:
        points = np.asarray(ax.lines[0].get_xydata())
    else:
        tops = [(bar.get_center()[0], bar.get_y() + bar.get_height()) for bar in ax.containers[-1]]
        points = np.array(tops)
    places, last = ax.transData.transform(points), len(points) - 1
    for k in sorted({*range(0, last, 1 + last // MOST_POINTS), last}):
        if 0 <= places[k, 1] <= HEIGHT:  # zero has no place on a logarithmic axis
            place = {"cx": places[k, 0], "cy": HEIGHT - places[k, 1]}
            tip = f"{ax.get_xlabel()}: {points[k, 0]:.5g}\n{ax.get_ylabel()}: {points[k, 1]:.3g}"
            yield element("circle", **place, r=6, class_="mark spot", data_tip=tip)


def _figure(
    title: str,
    said: str,
    draw: Callable[..., Axes],
    result: CapacityResult,
    marks: Callable[[Axes], Iterable[Markup]] = _spots,
    height: int = HEIGHT,
) -> Markup:
    """A figure of `infocap.plot` under its title, with words below."""
    picture = drawn(draw, result, f"{title}. {said}", marks, height)
    return element("figure", element("h3", title), picture, element("figcaption", said))


def drawn(
    draw: Callable[..., Axes],
    shown: Any,
    words: str,
    marks: Callable[[Axes], Iterable[Markup]] = lambda _: (),
    height: int = HEIGHT,
) -> Markup:
    """A figure of `infocap.plot` as a part of the page, with marks on it that can be pointed at.

    Ids in it begin with the name of the function that draws it.
    """
    with matplotlib.style.context(["default", LOOK]):
        canvas = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")
        ax = draw(shown, ax=canvas.subplots())
        file = StringIO()
        canvas.savefig(file, format="svg")
    name = getattr(draw, "func", draw).__name__
    look = {
        "viewBox": f"0 0 {WIDTH} {height}",
        "role": "img",
        "aria_label": words,
        "class_": "drawing",
    }
    return element("svg", _inline(file.getvalue(), name), *marks(ax), **look)


def _inline(svg: str, name: str) -> Markup:
    """What matplotlib drew, without what a page must not have twice or at all: header, style sheet, bare ids.

    Colours that the page's style sheet knows become its variables, so that they follow light and dark; the font is
    the page's, and so is its size but for letters that matplotlib made smaller. Styles become attributes: the page's
    policy forbids styles within elements.
    """

    def attributes(style: re.Match[str]) -> str:
        pairs = [one.strip().split(": ", 1) for one in style[1].split(";") if ":" in one]
        sizes = [
            ("font-size", found)
            for found in re.findall(r"font[^;]*?([\d.]+)px", style[1])
            if found != OWN_SIZE
        ]
        kept = [
            (key, VARIABLES.get(value, value)) for key, value in pairs if not key.startswith("font")
        ]
        return " ".join(f'{key}="{value}"' for key, value in kept + sizes)

    inside = svg[svg.index('<g id="figure_1">') : svg.rindex("</svg>")].replace(
        "xlink:href", "href"
    )
    inside = re.sub(r'(id="|href="#|url\(#)', rf"\1{name}-", inside)
    inside = re.sub(r"(\.\d\d)\d+", r"\1", inside)  # a hundredth of a pixel is enough
    return Markup(re.sub(r'style="([^"]*)"', attributes, inside))
