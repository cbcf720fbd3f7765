"""Axes of the drawings: from numbers to places, ticks, frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from ._html import Markup, element, together
from ._numbers import minus, power_of_ten

WIDTH, HEIGHT = 440.0, 300.0  # of a drawing, in its own units; letters are 12.5 high
LEFT, RIGHT, TOP, BOTTOM = 54.0, 428.0, 16.0, 256.0  # of the space between the axes
MOST_POINTS = 200  # of a curve that can be pointed at
Tick = tuple[float, str]


@dataclass(frozen=True)
class Axis:
    """Numbers from `low` to `high` lie between `start` and `stop` on the page."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where a number lies."""
        low, high, value = (log10(one) if self.log else one for one in (self.low, self.high, value))
        return self.start + (self.stop - self.start) * (value - low) / (high - low)


def even_ticks(low: float, high: float, about: int = 5) -> list[Tick]:
    """Round numbers between two others.

    >>> even_ticks(0, 7.3)
    [(0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6')]
    """
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = power * next(one for one in (1, 2, 5, 10) if one * power >= raw * 0.999)
    decimals = max(0, -floor(log10(step) + 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [(k * step, minus(f"{k * step:.{decimals}f}")) for k in range(first, last + 1)]


def decade_ticks(low: float, high: float) -> list[Tick]:
    """Powers of ten; where there are not two of them, round numbers."""
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    if last <= first:
        return [(value, f"{value:.3g}") for value, _ in even_ticks(low, high, 4) if value > 0]
    step = 1 + (last - first) // 6
    return [(10.0**k, power_of_ten(k)) for k in range(first, last + 1, step)]


def frame(
    x: Axis, y: Axis, x_ticks: Iterable[Tick], y_ticks: Iterable[Tick], x_label: str, y_label: str
) -> Markup:
    """Grid lines, ticks and names of two axes."""
    parts = []
    y_ticks = list(y_ticks)
    longest = max((len(name) for _, name in y_ticks), default=0)
    beside = min(13.0, x.start - 16 - 6.6 * longest)
    for value, name in y_ticks:
        place = y.at(value)
        parts.append(element("line", x1=x.start, x2=x.stop, y1=place, y2=place, class_="grid"))
        parts.append(element("text", name, x=x.start - 7, y=place + 4, text_anchor="end", class_="tick"))
    parts.append(element("line", x1=x.start, x2=x.stop, y1=y.start, y2=y.start, class_="axis"))
    parts += [
        element("text", name, x=x.at(value), y=y.start + 17, text_anchor="middle", class_="tick")
        for value, name in x_ticks
    ]
    middle, height = (x.start + x.stop) / 2, (y.start + y.stop) / 2
    parts.append(element("text", x_label, x=middle, y=y.start + 38, text_anchor="middle"))
    parts.append(
        element(
            "text",
            y_label,
            transform=f"translate({beside:.0f} {height:.0f}) rotate(-90)",
            text_anchor="middle",
        )
    )
    return together(parts)


def drawing(name: str, *children: object, height: float = HEIGHT) -> Markup:
    """An SVG of the usual width, with what it shows in words for those who cannot see it."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_label=name,
        class_="drawing",
    )


def path(points: Sequence[tuple[float, float]]) -> str:
    """Straight lines from point to point."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def point(x: float, y: float, tip: str, class_: str = "point", r: float = 3.5) -> Markup:
    """A dot that shows `tip`, one line a line."""
    return element("circle", cx=x, cy=y, r=r, class_=f"mark {class_}", data_tip=tip)


def figure(title: str, picture: Markup, *caption: object) -> Markup:
    """A drawing under its title, with words below."""
    words = element("figcaption", *caption) if caption else ""
    return element("figure", element("h3", title), picture, words)
