"""The drawings of the page, with tooltips: figures of `infocap.plot` in the colours of the page."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import StringIO
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from ..._formatting import CANNOT_BE_TOLD, counted, exceeds, percent, rounded, short
from ...errors import Check
from ...plot import (
    DEGREE_BAR_WIDTH,
    capacity_bars,
    capacity_by_delay,
    capacity_by_kind,
    capacity_matrix,
    memory_function,
)
from ...plot import drift as plot_drift
from ...plot import finding as plot_finding
from ...plot import growth as plot_growth
from ...plot import indicator as plot_indicator
from ...result import CapacityResult, errors_by_degree
from ._html import (
    Markup,
    element,
    fill_template,
    fixed,
    join,
    read_asset,
    with_error,
    with_minus,
)

# Size of most drawings in pixels; letters in them are 12.5 pixels high.
WIDTH = 440
HEIGHT = 300
# Height of the small pictures of findings.
FINDING_HEIGHT = 270
# Height of the matrix, which is square.
MATRIX_HEIGHT = 366
# With more functions the cells of a matrix would be smaller than a pixel.
MAX_MATRIX_CELLS = 20_000
# Points of a curve with a tooltip; more are closer than a pixel and make the page slow.
MAX_TOOLTIPS_PER_CURVE = 200
# Radius in pixels around the point of a curve within which its tooltip is shown.
TOOLTIP_RADIUS = 6
# Smaller parts of the maximum, in functions, cannot be seen in the bar and are not listed.
MIN_SHOWN_PART = 5e-3
# A part that lies within this many standard errors of zero may be chance.
CHANCE_IN_STANDARD_ERRORS = 2.0
# The ring around the total; a share of its path is as many hundredths of its length.
RING_SHAPE: Any = {
    "cx": 100,
    "cy": 100,
    "r": 88,
    "pathLength": 100,
    "fill": "none",
    "stroke_width": 10,
}
MAX_FONT_SIZE_IN_CIRCLE = 46.0
# Colours of the style sheet in light mode by name, and the variable of the style sheet by colour.
LIGHT_COLOURS = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}),", read_asset("page.css")))
# Reversed, so that of two variables with one colour the first one counts.
COLOUR_VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT_COLOURS.items())}
COLOUR_VARIABLES["#000000"] = "var(--ink)"
PAGE_STYLE: Any = {
    **mpl.rc_params_from_file(
        Path(__file__).with_name("page.mplstyle"), use_default_template=False
    ),
    **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], LIGHT_COLOURS["soft"]),
    "grid.color": LIGHT_COLOURS["grid"],
}
# Letters of this size get it from the style sheet, which makes them larger on a small screen.
DEFAULT_FONT_SIZE = str(PAGE_STYLE["font.size"])


class Part(NamedTuple):
    """A part of a bar: its colour, its size, the size as text, and what it stands for."""

    colour: str
    size: float
    size_text: str
    meaning: str


Marks = Callable[[Axes], Iterable[Markup]]  # elements with tooltips for the axes of a drawing


def circle(result: CapacityResult) -> Markup:
    """Return total over maximum in a ring: what was found, and faintly what noise allows."""
    maximum = max(result.maximum, 1)
    total = with_minus(result.short_total)
    colour = "warn-edge" if result.unreliable else "one"
    if result.components is not None:
        return fill_template(
            "bound.svg",
            words=f"Total capacity at least {result.qualified_total or total}",
            colour=colour,
            total=total,
            size=min(MAX_FONT_SIZE_IN_CIRCLE, 200.0 / len(total)),
            channels=result.components.n_channels,
        )
    rings = []
    if result.noise_limited_total is not None:
        rings.append(_ring("outside", result.noise_limited_total / maximum, opacity=0.45))
    rings.append(_ring(colour, result.total / maximum))
    n_letters = max(len(total), len(str(maximum)))
    font_size = min(MAX_FONT_SIZE_IN_CIRCLE, 200.0 / n_letters)
    return fill_template(
        "circle.svg",
        words=f"Total capacity {result.qualified_total or total} of at most {maximum}",
        rings=join(rings),
        total=total,
        most=maximum,
        size=font_size,
        below=110 + 0.78 * font_size,
    )


def _ring(colour: str, share: float, opacity: float | None = None) -> Markup:
    """Return a share of the ring, clockwise from the top."""
    percentage = 100 * min(max(share, 0.0), 1.0)
    return element(
        "circle",
        **RING_SHAPE,
        stroke_dasharray=f"{percentage:.2f} 100",
        stroke=f"var(--{colour})",
        opacity=opacity,
        transform="rotate(-90 100 100)",
    )


def parts_of_maximum(result: CapacityResult) -> list[Part]:
    """Return where the maximum capacity went; of components, what was found.

    The parts are what was found, what lies outside the basis, what is lost to noise, and what
    readouts lack that depend on each other.
    """
    total_text = _size_text(result, result.total, result.total_standard_error)
    meaning = "found among the functions of this basis"
    parts = [Part("var(--one)", result.total, total_text, meaning)]
    if result.components is not None:
        return parts  # How much more the channels hold is not known.
    if result.noise_limited_total is None:
        unknown = result.rank - result.total
        if unknown > MIN_SHOWN_PART:
            text = _size_text(result, unknown, result.total_standard_error)
            meaning = (
                "not found: lost to noise, or in functions outside this basis. "
                "Measuring some inputs twice tells which."
            )
            parts.append(Part("var(--lost)", unknown, text, meaning))
    else:
        parts += _parts_with_known_noise(result)
    n_dependent = result.maximum - result.rank
    if n_dependent > 0:
        verb = "is" if n_dependent == 1 else "are"
        meaning = f"{counted(n_dependent, 'readout')} that {verb} a linear mix of the others"
        parts.append(Part("var(--dependent)", n_dependent, str(n_dependent), meaning))
    return parts


def _parts_with_known_noise(result: CapacityResult) -> list[Part]:
    """Return what lies outside the basis and what is lost, where inputs were measured twice."""
    limit: Any = result.noise_limited_total
    limit_error = result.noise_limited_standard_error
    outside = limit - result.total
    # Without either error, or with two errors of zero, the difference has none.
    error = hypot(limit_error or 0.0, result.total_standard_error or 0.0) or None
    meaning = "in functions of the inputs outside this basis"
    if outside < CHANCE_IN_STANDARD_ERRORS * (error or 0.0) and not result.unreliable:
        meaning += ": no more than chance explains"
    parts = [Part("var(--outside)", outside, _size_text(result, outside, error), meaning)]
    lost = result.rank - limit
    if lost > MIN_SHOWN_PART:
        text = _size_text(result, lost, limit_error)
        meaning = "lost to noise, as repeated measurements show"
        parts.append(Part("var(--lost)", lost, text, meaning))
    return parts


def _size_text(result: CapacityResult, size: float, error: float | None) -> str:
    """Return a part of the maximum with its error, rounded where the total is unreliable."""
    if error is not None and exceeds(error, result.rank):
        return CANNOT_BE_TOLD
    if result.unreliable:
        return with_minus(f"about {rounded(size, error)}")
    if error is None:
        return with_minus(short(size))
    return with_error(size, error)


def budget(result: CapacityResult) -> Markup:
    """Return a bar as long as the maximum capacity, with a list of its parts.

    There is none for components, because the maximum of all channels is not known.
    """
    if result.components is not None:
        return Markup("")
    parts = parts_of_maximum(result)
    descriptions = [f"{part.size_text} {part.meaning}" for part in parts]
    label = f"Of {result.maximum}: " + "; ".join(descriptions)
    length = max(result.maximum, sum(max(part.size, 0.0) for part in parts))
    lines = []
    for part in parts:
        size = element("strong", part.size_text)
        lines.append(element("li", swatch(part.colour), size, element("span", part.meaning)))
    bar = stacked_bar(parts, length, label)
    return element("div", bar, element("ul", *lines, class_="budget-list"), class_="budget")


def stacked_bar(parts: Iterable[Part], length: float, label: str) -> Markup:
    """Return parts one after the other in a bar that stands for `length`, each with a tooltip."""
    rectangles = [element("rect", width="100%", height="100%", fill="var(--grid)")]
    begin = 0.0
    for part in parts:
        percentage = 100 * max(part.size, 0.0) / max(length, 1e-9)
        rectangle = element(
            "rect",
            x=f"{begin:.3f}%",
            width=f"{percentage:.3f}%",
            height="100%",
            fill=part.colour,
            class_="mark",
            data_tip=f"{part.size_text}\n{part.meaning}",
        )
        rectangles.append(rectangle)
        begin += percentage
    return element("svg", *rectangles, role="img", aria_label=label, class_="stacked")


def swatch(colour: str, words: str = "") -> Markup:
    """Return a small square of a colour for a legend, and what it stands for."""
    square = element("rect", width="100%", height="100%", rx=3, fill=colour)
    return join([element("svg", square, class_="swatch"), words])


def matrix(result: CapacityResult) -> Markup:
    """Return capacities by the degrees in two inputs; nothing for other numbers of inputs."""
    basis = result.basis
    if basis.n_inputs != 2 or basis.memory or len(basis) > MAX_MATRIX_CELLS:
        return Markup()

    def cells(ax: Axes) -> Iterator[Markup]:
        for number, (column, row) in enumerate(basis.indices.tolist()):
            x = column - 0.5
            y = row - 0.5
            yield _rectangle(ax, x=x, y=y, width=1.0, height=1.0, data_function=number)

    first, second = basis.names
    caption = (
        f"Each cell is one product of a function of {first} and one of {second}; its colour is "
        "how well a weighted sum of the readouts reproduces it, from 0 to 1. Grey cells are not "
        "in the basis."
    )
    draw = partial(capacity_matrix, total=False)
    title = "Capacity of each function"
    return _figure(title, caption, draw, result, marks=cells, height=MATRIX_HEIGHT)


def bars(result: CapacityResult) -> Markup:
    """Return capacity by total degree, stacked by the number of interacting variables."""
    table = capacity_by_kind(result)

    def columns_and_parts(ax: Axes) -> Iterator[Markup]:
        for degree, capacities in zip(table.index, table.to_numpy(), strict=True):
            rectangle = partial(
                _rectangle,
                ax,
                x=degree - DEGREE_BAR_WIDTH / 2,
                width=DEGREE_BAR_WIDTH,
                data_degree=degree,
            )
            # A column as high as the axes comes first, so that short bars can be pointed at.
            yield rectangle(y=0.0, height=ax.get_ylim()[1], class_="mark column")
            bottoms = np.cumsum(capacities) - capacities
            for kind, capacity, bottom in zip(table, capacities, bottoms, strict=True):
                if capacity > 0:
                    yield rectangle(y=bottom, height=capacity, data_kind=kind)

    caption = "Capacities of all functions of one degree, added up"
    if result.basis.memory:
        caption += "; colours say how many delayed inputs a function has"
    elif result.basis.n_inputs > 1:
        caption += "; colours say how many inputs a function has"
    caption += "."
    if errors_by_degree(result) is not None:
        caption += " Error bars are standard errors."
    draw = partial(capacity_bars, total=False)
    return _figure("Capacity by degree", caption, draw, result, marks=columns_and_parts)


def _rectangle(
    ax: Axes,
    *,
    x: float,
    y: float,
    width: float,
    height: float,
    class_: str = "mark",
    **attributes: Any,
) -> Markup:
    """Return a rectangle that can be pointed at, converted from the axes' units to pixels."""
    corners = ax.transData.transform([(x, y), (x + width, y + height)])
    (left, bottom), (right, top) = corners
    return element(
        "rect",
        x=left,
        y=ax.figure.bbox.height - top,
        width=right - left,
        height=top - bottom,
        class_=class_,
        **attributes,
    )


def delays(result: CapacityResult) -> Markup:
    """Return what a device with memory remembers, and how long; nothing for other devices."""
    basis = result.basis
    if not basis.memory:
        return Markup()
    figures = []
    for input_index in np.unique(basis.indices[basis.degrees == 1, 0]).tolist():
        title = "Memory function"
        capacity_of_input = ""
        if basis.n_inputs > 1:
            title = f"Memory function of {basis.names[input_index]}"
            capacities = result.memory_function(input=input_index + 1)["capacity"]
            capacity_of_input = f"{fixed(capacities.sum())} of "
        caption = (
            f"Capacity {capacity_of_input}{result.memory_capacity!r} of degree 1 in all; "
            "bands are one standard error."
        )
        if result.law == "recorded":
            caption += " The dotted line is R² of each delayed input itself."
        draw = partial(memory_function, input=input_index + 1)
        figures.append(_figure(title, caption, draw, result))
    caption = "Capacity of all functions by their largest delay, stacked by degree."
    if result.law == "recorded":
        caption = (
            "What each delay adds to all functions of later inputs, stacked by degree, powers of "
            "the present input up to degree 10 among them; bars are one standard error."
        )
    figures.append(_figure("Capacity by delay", caption, capacity_by_delay, result))
    return join(figures)


def growth(result: CapacityResult) -> Markup:
    """Return the total against the number of samples; nothing where fewer than two are known."""
    if result.growth is None or len(result.growth.n_samples) < 2:
        return Markup()
    caption = (
        "The total that fewer samples would have given; at the right end it should have settled."
    )
    return _figure("Growth with the number of samples", caption, plot_growth, result)


def factors(result: CapacityResult) -> Markup:
    """Return Malinowski's indicator function, or why there is none; nothing without noise data."""
    analysis = result.factors
    title = "Factor analysis"
    if analysis is None:
        return Markup()
    if analysis.problem is not None:
        reason = element("p", f"No number of factors: {analysis.problem}")
        return element("figure", element("h3", title), reason)
    if analysis.n_factors is None:
        minimum = "no minimum, so it names no number of factors"
    else:
        minimum = (
            f"its minimum at {analysis.n_factors} factors: so many independent signals stand "
            "clearly out of the noise"
        )
    caption = (
        f"Malinowski's indicator function has {minimum}. "
        f"The noise was measured by {analysis.n_repeats} repeats."
    )
    return _figure(title, caption, plot_indicator, result)


def drift(result: CapacityResult) -> Markup:
    """Return how far the reference moved during the run; nothing where none was measured."""
    if result.drift is None:
        return Markup()
    caption = (
        f"The reference moved by {percent(result.drift.size)} of the readouts' spread (root mean "
        "square, noise taken off). The curve is its distance from the first measurement; the "
        "dashed line is what noise alone would show."
    )
    return _figure("Drift of the reference", caption, plot_drift, result)


def findings(result: CapacityResult) -> Markup:
    """Return a small picture of each warning about the data that has one."""
    figures = []
    for number, check in enumerate(result.warnings):
        picture = check.found.get("picture")
        if isinstance(picture, dict):
            title = _title_of_finding(check)
            draw = partial(_draw_finding, check=check)
            description = f"{title}. {picture['caption']}"
            name = f"finding{number}"
            drawn = drawing(draw, result, description, name=name, height=FINDING_HEIGHT)
            caption = element("figcaption", picture["caption"])
            figures.append(element("figure", element("h3", title), drawn, caption))
    return join(figures)


def _title_of_finding(check: Check) -> str:
    """Return a finding in a few words: what stands in place of the error bar, or its cause."""
    words = next(
        check.found[name] for name in ("in_short", "unreliable", "cause") if check.found.get(name)
    )
    return words[:1].upper() + words[1:]


def _draw_finding(_: CapacityResult, check: Check, ax: Axes) -> Axes:
    return plot_finding(check, ax=ax)


def _point_marks(ax: Axes) -> Iterator[Markup]:
    """Yield a spot with a tooltip for every point of the first curve or the top of every bar."""
    if ax.lines:
        points = np.asarray(ax.lines[0].get_xydata())
    else:
        uppermost = [bars for bars in ax.containers if isinstance(bars, BarContainer)][-1]
        centres = [bar.get_center()[0] for bar in uppermost]
        tops = [bar.get_y() + bar.get_height() for bar in uppermost]
        points = np.column_stack([centres, tops])
    pixels = ax.transData.transform(points)
    last = len(points) - 1
    step = 1 + last // MAX_TOOLTIPS_PER_CURVE
    for k in sorted({*range(0, last, step), last}):
        x, y = pixels[k]
        if 0 <= y <= HEIGHT:  # Zero has no place on a logarithmic axis.
            tooltip = (
                f"{ax.get_xlabel()}: {points[k, 0]:.5g}\n{ax.get_ylabel()}: {points[k, 1]:.3g}"
            )
            yield element(
                "circle",
                cx=x,
                cy=HEIGHT - y,
                r=TOOLTIP_RADIUS,
                class_="mark spot",
                data_tip=tooltip,
            )


def _no_marks(_: Axes) -> Iterable[Markup]:
    return ()


def _figure(
    title: str,
    caption: str,
    draw: Callable[..., Axes],
    result: CapacityResult,
    *,
    marks: Marks = _point_marks,
    height: int = HEIGHT,
) -> Markup:
    """Return a drawing under its title, with its caption below."""
    picture = drawing(draw, result, f"{title}. {caption}", marks=marks, height=height)
    return element("figure", element("h3", title), picture, element("figcaption", caption))


def drawing(
    draw: Callable[..., Axes],
    subject: Any,
    description: str,
    *,
    marks: Marks = _no_marks,
    height: int = HEIGHT,
    name: str = "",
) -> Markup:
    """Return what a function of `infocap.plot` draws of a subject, as an SVG element.

    Parameters
    ----------
    draw
        The function; identifiers in the drawing begin with its name.
    subject
        The result or comparison that it draws.
    description
        What a screen reader says in place of the drawing.
    marks
        Elements with tooltips to lay over the drawing.
    height
        The height of the drawing in pixels.
    name
        What identifiers in the drawing begin with in place of the function's name.
    """
    with matplotlib.style.context(["default", PAGE_STYLE]):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, layout="constrained")
        ax = draw(subject, ax=figure.subplots())
        file = StringIO()
        figure.savefig(file, format="svg")
    name = name or getattr(draw, "func", draw).__name__
    return element(
        "svg",
        _adapt_svg(file.getvalue(), name),
        *marks(ax),
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=description,
        class_="drawing",
    )


def _adapt_svg(svg: str, name: str) -> Markup:
    """Return the inner part of matplotlib's SVG, adapted to the page.

    The header and the style sheet are left out. Identifiers begin with `name`, because they must be
    unique in the page. Coordinates keep two decimals: a hundredth of a pixel is enough. Styles
    become attributes, because the page's security policy forbids styles within elements.
    """
    inner = svg[svg.index('<g id="figure_1">') : svg.rindex("</svg>")]
    inner = inner.replace("xlink:href", "href")
    inner = re.sub(r'(id="|href="#|url\(#)', rf"\1{name}-", inner)
    # Numbers outside the tags are text, and keep their digits.
    inner = re.sub(r"<[^>]*>", _with_short_coordinates, inner)
    return Markup(re.sub(r'style="([^"]*)"', _style_as_attributes, inner))


def _with_short_coordinates(tag: re.Match[str]) -> str:
    """Return a tag whose numbers have at most two decimals."""
    return re.sub(r"(\.\d\d)\d+", r"\1", tag[0])


def _style_as_attributes(style: re.Match[str]) -> str:
    """Return an element's style as attributes, with the colours of the page's style sheet.

    Its variables follow the light and the dark mode. The font is that of the page, and so is its
    size, except for letters that matplotlib made smaller.
    """
    attributes = []
    for declaration in style[1].split(";"):
        if ":" in declaration:
            key, value = declaration.strip().split(": ", 1)
            if not key.startswith("font"):
                attributes.append(f'{key}="{COLOUR_VARIABLES.get(value, value)}"')
    for font_size in re.findall(r"font[^;]*?([\d.]+)px", style[1]):
        if font_size != DEFAULT_FONT_SIZE:
            attributes.append(f'font-size="{font_size}"')
    return " ".join(attributes)
