"""The pictures of the page, with tooltips; curves are those of `infocap.plot` in the page's colours."""

import re
from collections.abc import Callable
from io import StringIO
from math import hypot
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._words import counted, rounded
from ..plot import _run, _sequences
from ..plot._capacity import KINDS, errors_by_degree, index_names
from ..result._capacity_result import CapacityResult
from ..typing import ArrayLike
from ._html import Markup, asset, drawing, element, figure, minus, plain, together, with_error

RING = {"cx": 100, "cy": 100, "r": 88, "pathLength": 100}
NOTHING = 5e-3  # A share of the maximum below half a hundredth would be written as 0.0.
LEFT, TOP = 54.0, 8.0  # of the space between the axes, in units of the drawing; letters are 12.5 high
SIDE = 322.0  # of the matrix
RIGHT, BOTTOM = 428.0, 256.0  # of the bars
CLASSES = {"1": "one", "2": "two", ">2": "more"}
MOST_TICKS = 12  # Larger matrices name every second or third degree: the numbers would touch.
ROOMY, LABELLED = 12, 17  # Numbers above more bars than these are small, and would touch.
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


def circle(result: CapacityResult) -> Markup:
    """Total over maximum, as the paper shows it, in a ring: what was found (strong), what noise allows (faint)."""
    most, total, ring = max(result.maximum, 1), plain(result.total, 1), "ring found"
    if result.unreliable:
        total, ring = f"≈{rounded(result.total, result.total_standard_error)}", "ring found doubtful"
    rings = [element("circle", **RING, class_="ring")]
    for class_, found in (("ring allowed", result.noise_limited_total), (ring, result.total)):
        if found is not None:  # a part of the ring, clockwise from the top
            dash = f"{100 * min(max(found / most, 0.0), 1.0):.2f} 100"
            part = {"class_": class_, "stroke_dasharray": dash, "transform": "rotate(-90 100 100)"}
            rings.append(element("circle", **RING, **part))
    size = min(46.0, 200.0 / max(len(total), len(str(most))))
    middle = {"x": 100, "text_anchor": "middle", "font_size": size}
    return element(
        "svg",
        *rings,
        element("text", total, y=88.0, class_="numerator", **middle),
        element("line", x1=52, x2=148, y1=101, y2=101, class_="fraction"),
        element("text", most, y=110 + 0.78 * size, **middle),
        viewBox="0 0 200 200",
        role="img",
        aria_label=f"Total capacity {result.qualified_total or total} of at most {most}",
        class_="circle",
    )


def budget(result: CapacityResult) -> Markup:
    """A bar as long as the maximum capacity, and what its parts are."""
    total, error, limit = result.total, result.total_standard_error, result.noise_limited_total
    parts = [("found", total, error, "found among the functions of this basis")]
    if limit is None:
        words = "not found: lost to noise, or in functions outside this basis. Measuring some inputs twice tells which."
        parts.append(("unknown", result.rank - total, error, words))
    else:
        both = hypot(result.noise_limited_standard_error or 0.0, error or 0.0) or None
        within = limit - total < 2 * (both or 0.0) and not result.unreliable
        chance = ": no more than chance explains" if within else ""
        words = f"in functions of the inputs outside this basis{chance}"
        parts.append(("outside", limit - total, both, words))
        words = "lost to noise, as repeated measurements show"
        parts.append(("noise", result.rank - limit, result.noise_limited_standard_error, words))
    shown = [
        (kind, size, _amount(result, size, error), words)
        for kind, size, error, words in parts
        if size > NOTHING or kind in ("found", "outside")
    ]
    dependent = result.maximum - result.rank
    if dependent > 0:
        words = f"{counted(dependent, 'readout')} that {'is' if dependent == 1 else 'are'} a linear mix of the others"
        shown.append(("dependent", dependent, str(dependent), words))
    most = max(result.maximum, sum(max(size, 0.0) for _, size, _, _ in shown), 1e-9)
    bars, lines, begin = [], [], 0.0
    for kind, size, said, words in shown:
        length = 100 * max(size, 0.0) / most
        place = {"x": f"{begin:.3f}%", "width": f"{length:.3f}%", "height": "100%"}
        bars.append(element("rect", **place, class_=f"mark part {kind}", data_tip=f"{said}\n{words}"))
        swatch = element("span", class_=f"swatch {kind}")
        lines.append(element("li", swatch, element("strong", said), element("span", words)))
        begin += length
    name = f"Of {result.maximum}: " + "; ".join(f"{said} {words}" for _, _, said, words in shown)
    bar = element("svg", *bars, role="img", aria_label=name, class_="budget-bar", height="20")
    return element("div", bar, element("ul", *lines, class_="budget-list"), class_="budget")


def _amount(result: CapacityResult, size: float, error: float | None) -> str:
    """A part of the maximum with its error; rounded where the total is unreliable."""
    if result.unreliable:
        return minus(f"about {rounded(size, error)}")
    return plain(size, 1) if error is None else with_error(size, error)


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
    x = LEFT + SIDE + 18
    stops = [element("stop", offset=f"{100 * one:.2f}%", stop_color=viridis(one)) for one in np.linspace(0, 1, 17)]
    gradient = element("linearGradient", *stops, id="viridis", x1="0", x2="0", y1="1", y2="0")
    scale = [element("defs", gradient), element("rect", x=x, y=TOP, width=14, height=SIDE, fill="url(#viridis)")]
    for y, name in ((bottom, "0"), (bottom - SIDE / 2 + 4, "0.5"), (TOP + 9, "1")):
        scale.append(_text(name, x + 19, y, "tick", anchor="start"))
    scale.append(_text("capacity", x + 36, TOP + SIDE / 4, "tick", turned=90))
    best = np.argsort(-result.capacity, kind="stable")[:3]
    named = ", ".join(f"{result.basis.label(one)} {result.capacity[one]:.2f}" for one in best)
    words = f"Capacity matrix of {len(result.basis)} functions of two inputs; the largest: {named}"
    return figure(
        "Capacity of each function",
        drawing(words, *parts, element("g", *scale), height=TOP + SIDE + 46),
        "Each cell is one product of a function of u₁ and one of u₂; its colour is how well a weighted sum of the "
        "readouts reproduces it, from 0 to 1. Grey cells are not in the basis.",
    )


def viridis(value: float) -> str:
    """The colour of a capacity between 0 and 1, the same as in `infocap.plot`."""
    return to_hex(mpl.colormaps["viridis"](float(value)))


def bars(result: CapacityResult) -> Markup:
    """Capacity by total degree, stacked by the number of interacting variables, for any number of inputs."""
    table, errors = result.by_degree(), errors_by_degree(result)
    sums = table.sum(axis=1).to_numpy()
    reach = np.zeros(len(sums)) if errors is None else np.nan_to_num(errors)
    highest = 1.12 * max(float((sums + reach).max(initial=0.0)), 1e-3)
    unit, slot = (BOTTOM - TOP) / highest, (RIGHT - LEFT) / (len(sums) + 0.2)
    parts = []
    for value in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0, highest):
        if value <= highest:
            y = BOTTOM - unit * value
            parts.append(element("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="grid"))
            parts.append(_text(minus(f"{value:g}"), LEFT - 7, y + 4, "tick", anchor="end"))
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis"))
    parts.append(_text("total degree", (LEFT + RIGHT) / 2, BOTTOM + 38))
    parts.append(_text("capacity", 13, (TOP + BOTTOM) / 2, turned=-90))
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
    entries = [element("li", element("span", class_=f"swatch {CLASSES[kind]}"), KINDS[kind]) for kind in present]
    return figure(
        "Capacity by degree",
        drawing(f"Capacity by total degree: {words}", *parts),
        element("ul", *entries, class_="legend") if len(present) > 1 else "",
        f"Capacities of all functions of one degree, added up{joined}.{barred}",
    )


def _bar(degree: int, values: dict[str, float], error: float, middle: float, slot: float, unit: float) -> list[Markup]:
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


def delays(result: CapacityResult) -> Markup:
    """What a device with memory remembers, and how long; nothing for others."""
    if not result.basis.memory:
        return Markup()
    table = result.by_delay()
    sums, parts = table.sum(axis=1), []
    known = result.basis.degrees == 1
    if known.any() and (result.basis.indices[known, 0] == 0).any():
        memory = result.memory_function()
        tips = [f"delay {k}\ncapacity {plain(one)}" for k, one in memory["capacity"].items()]
        words = f"Memory function: capacity {result.memory_capacity!r} of degree 1 in all"
        picture = _drawn(_sequences.memory_function, result, words, memory.index, memory["capacity"], tips)
        parts.append(figure("Memory function", picture, f"{words}; bands are two standard errors."))
    tips = [f"largest delay {k}\ncapacity {plain(one)}" for k, one in sums.items()]
    words = "Capacity of all functions by their largest delay, stacked by degree"
    picture = _drawn(_sequences.capacity_by_delay, result, words, table.index, sums, tips)
    return together([*parts, figure("Capacity by delay", picture, f"{words}.")])


def growth(result: CapacityResult) -> Markup:
    """The total against the number of samples; nothing where fewer than two numbers of samples are known."""
    found = result.growth
    if found is None or len(found.n_samples) < 2:
        return Markup()
    errors = (not result.unreliable and found.standard_error) or [None] * len(found.total)
    known = zip(found.n_samples, found.total, errors, strict=True)
    tips = [f"{n} samples\ntotal {with_error(total, error)}" for n, total, error in known]
    words = "Total capacity against the number of samples: " + ", ".join(tips).replace("\n", ", ")
    picture = _drawn(_run.growth, result, words, found.n_samples, found.total, tips)
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
    return figure(title, _drawn(_run.indicator, result, words, numbers, found.values, tips), said)


def drift(result: CapacityResult) -> Markup:
    """How far the reference moved during the run; nothing where none was measured."""
    found, title = result.drift, "Drift of the reference"
    if found is None:
        return Markup()
    time, unit = _run.clock(found)
    percent = 100 * np.array(found.moved)
    tips = [f"{t:.4g} {unit or 'in order'}\nmoved by {p:.3g} %" for t, p in zip(time, percent, strict=True)]
    size = f"{100 * found.size:.0f}" if found.size >= 0.1 else f"{100 * found.size:.2g}"
    said = (
        f"The reference moved by {size} % of the readouts' spread (root mean square, noise taken off). "
        "The curve is its distance from the first measurement; the dashed line is what noise alone would show."
    )
    return figure(title, _drawn(_run.drift, result, f"{title}. {said}", time, percent, tips), said)


def misfit(result: CapacityResult) -> Markup:
    """Where the readouts do not fit their inputs, by channel and time, if a check found some such place."""
    found = next((one for one in result.warnings if isinstance(one.found.get("picture"), dict)), None)
    if found is None:
        return Markup()
    picture, named = found.found["picture"], set(found.found.get("channels", ()))
    levels, names = picture["levels"], picture["channels"]
    width, height = (RIGHT - LEFT) / max(map(len, levels)), (BOTTOM - TOP - 10) / len(levels)
    parts = [element("rect", x=LEFT, y=TOP + 10, width=RIGHT - LEFT, height=BOTTOM - TOP - 10, class_="outside-basis")]
    for k, line in enumerate(levels):
        y = TOP + 10 + k * height
        for run in re.finditer(r"([1-9])\1*", line):
            place = {"x": LEFT + run.start() * width, "y": y, "width": len(run[0]) * width, "height": height}
            tip = f"{names[k]}\nmisfit {2 ** (int(run[1]) / 3):.1f} times the usual"
            parts.append(element("rect", **place, fill=viridis(0.1 + int(run[1]) / 10), class_="mark", data_tip=tip))
        if names[k] in named:
            parts.append(_text("▸", LEFT - 6, y + height / 2 + 4, "doubt", anchor="end"))
    for moment in picture["marked"]:
        parts.append(element("rect", x=LEFT + moment * width, y=TOP, width=width, height=6.0, class_="doubt"))
    for end, number, anchor in ((LEFT, picture["first"], "start"), (RIGHT, picture["last"], "end")):
        parts.append(_text(number, end, BOTTOM + 17, "tick", anchor=anchor))
    parts.append(_text("measurement", (LEFT + RIGHT) / 2, BOTTOM + 17))
    parts.append(_text(f"{len(levels)} channels", 13, (TOP + BOTTOM) / 2, turned=-90))
    said = "How far readouts are from what their inputs give, by channel and time; bright is far. "
    said += "Marks above are rows, and marks at the left channels, that the first such warning is about."
    return figure("Where readouts do not fit their inputs", drawing(f"{said} {found}", *parts), said)


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
    return drawing(words, _inline(file.getvalue(), draw.__name__), *spots)


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
