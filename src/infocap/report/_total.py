"""The total: a ring that is as full as the device, and where the rest of the maximum capacity went."""

from __future__ import annotations

from math import hypot

from ..result import CapacityResult
from ._html import Markup, element
from ._words import count, plain, with_error

RING = {"cx": 100, "cy": 100, "r": 88, "pathLength": 100}
NOTHING = 5e-3  # A share of the maximum below half a hundredth would be written as 0.0.


def circle(result: CapacityResult) -> Markup:
    """Total over maximum, as the paper shows it, in a ring: what was found (strong), what noise allows (faint)."""
    most, total = max(result.maximum, 1), plain(result.total, 1)
    allowed = result.noise_limited_total
    size = min(46.0, 200.0 / max(len(total), len(str(most))))
    middle = {"x": 100, "text_anchor": "middle", "font_size": size}
    return element(
        "svg",
        element("circle", **RING, class_="ring"),
        "" if allowed is None else _arc(allowed / most, "ring allowed"),
        _arc(result.total / most, "ring found"),
        element("text", total, y=88.0, class_="numerator", **middle),
        element("line", x1=52, x2=148, y1=101, y2=101, class_="fraction"),
        element("text", most, y=110 + 0.78 * size, **middle),
        viewBox="0 0 200 200",
        role="img",
        aria_label=f"Total capacity {total} of at most {most}",
        class_="circle",
    )


def _arc(share: float, class_: str) -> Markup:
    """A part of the ring, from the top, clockwise."""
    dash = f"{100 * min(max(share, 0.0), 1.0):.2f} 100"
    return element("circle", **RING, class_=class_, stroke_dasharray=dash, transform="rotate(-90 100 100)")


def shares(result: CapacityResult) -> list[tuple[str, float, str, str]]:
    """The parts of the maximum capacity in order: kind, size, size with the digits that are known, words."""
    total, error, limit = result.total, result.total_standard_error, result.noise_limited_total
    parts = [("found", total, error, "found among the functions of this basis")]
    if limit is None:
        words = "not found: lost to noise, or in functions outside this basis. Measuring some inputs twice tells which."
        parts.append(("unknown", result.rank - total, error, words))
    else:
        both = hypot(result.noise_limited_standard_error or 0.0, error or 0.0) or None
        chance = ": no more than chance explains" if limit - total < 2 * (both or 0.0) else ""
        parts.append(
            ("outside", limit - total, both, f"in functions of the inputs outside this basis{chance}")
        )
        words = "lost to noise, as repeated measurements show"
        parts.append(("noise", result.rank - limit, result.noise_limited_standard_error, words))
    shown = [
        (kind, size, plain(size, 1) if error is None else with_error(size, error), words)
        for kind, size, error, words in parts
        if size > NOTHING or kind in ("found", "outside")
    ]
    dependent = result.maximum - result.rank
    if dependent > 0:
        words = f"{count(dependent, 'readout')} that {'is' if dependent == 1 else 'are'} a linear mix of the others"
        shown.append(("dependent", dependent, str(dependent), words))
    return shown


def budget(result: CapacityResult) -> Markup:
    """A bar as long as the maximum capacity, and what its parts are."""
    parts = shares(result)
    most = max(result.maximum, sum(max(size, 0.0) for _, size, _, _ in parts), 1e-9)
    bars, lines, begin = [], [], 0.0
    for kind, size, shown, words in parts:
        length = 100 * max(size, 0.0) / most
        place = {"x": f"{begin:.3f}%", "width": f"{length:.3f}%", "height": "100%"}
        bars.append(element("rect", **place, class_=f"mark part {kind}", data_tip=f"{shown}\n{words}"))
        swatch = element("span", class_=f"swatch {kind}")
        lines.append(element("li", swatch, element("strong", shown), element("span", words)))
        begin += length
    name = f"Of {result.maximum}: " + "; ".join(f"{shown} {words}" for _, _, shown, words in parts)
    return element(
        "div",
        element("svg", *bars, role="img", aria_label=name, class_="budget-bar", height="20"),
        element("ul", *lines, class_="budget-list"),
        class_="budget",
    )
