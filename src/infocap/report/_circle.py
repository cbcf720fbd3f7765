"""The total in its circle: total over maximum capacity, as the paper shows it, in a ring that is as full."""

from __future__ import annotations

from math import isfinite, pi

from ..result import CapacityResult
from ._html import Markup, element
from ._numbers import plain

RADIUS = 88.0


def circle(result: CapacityResult) -> Markup:
    """The fraction, and around it what was found (strong) and what noise allows (faint)."""
    most = max(result.maximum, 1)
    total = plain(result.total, 1)
    allowed = result.noise_limited_total
    size = min(46.0, 200.0 / max(len(total), len(str(most)), 1))
    name = f"Total capacity {total} of at most {most}"
    return element(
        "svg",
        element("circle", cx=100, cy=100, r=RADIUS, class_="ring"),
        "" if allowed is None else _arc(allowed / most, "ring allowed"),
        _arc(result.total / most, "ring found"),
        element("text", total, x=100, y=88.0, text_anchor="middle", class_="numerator", font_size=size),
        element("line", x1=52, x2=148, y1=101, y2=101, class_="fraction"),
        element("text", most, x=100, y=110 + 0.78 * size, text_anchor="middle", font_size=size),
        viewBox="0 0 200 200",
        role="img",
        aria_label=name,
        class_="circle",
    )


def _arc(share: float, class_: str) -> Markup:
    """A part of the ring, from the top, clockwise."""
    length = 2 * pi * RADIUS
    part = length * min(max(share, 0.0), 1.0) if isfinite(share) else 0.0
    return element(
        "circle",
        cx=100,
        cy=100,
        r=RADIUS,
        class_=class_,
        stroke_dasharray=f"{part:.1f} {length:.1f}",
        transform="rotate(-90 100 100)",
    )
