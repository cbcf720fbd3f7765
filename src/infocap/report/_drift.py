"""Drift: how far the reference moved during the run."""

from __future__ import annotations

from math import sqrt

from ._axes import (
    BOTTOM,
    LEFT,
    MOST_POINTS,
    RIGHT,
    TOP,
    Axis,
    drawing,
    even_ticks,
    figure,
    frame,
    path,
    point,
)
from ._html import Markup, element
from ._measured import Drift

UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))  # the first of which the run lasts more than two


def drift(found: Drift) -> Markup:
    """The distance of the reference from its first measurement, in per cent of the readouts' spread."""
    times, unit = _clock(found)
    step = 1 + (len(times) - 1) // MOST_POINTS
    chosen = sorted({*range(0, len(times), step), len(times) - 1})
    percent = [100 * value for value in found.moved]
    noise = 100 * sqrt(2) * found.noise
    first, last = min(times), max(times)
    x = Axis(first, last if last > first else first + 1, LEFT, RIGHT - 6)
    y = Axis(0.0, 1.12 * max(*percent, noise, 1e-6), BOTTOM, TOP)
    line = [(x.at(times[k]), y.at(percent[k])) for k in chosen]
    points = [
        point(*place, f"{times[k]:.4g} {unit}\nmoved by {percent[k]:.3g} %", "small", r=2.6)
        for k, place in zip(chosen, line, strict=True)
    ]
    said = (
        f"The reference moved by {100 * found.size:.2g} % of the readouts' spread (root mean square, noise taken off). "
        "The curve is its distance from the first measurement; the dashed line is what noise alone would show."
    ) + (f" One point in {step} is drawn." if step > 1 else "")
    label = "number of measurement" if unit == "in order" else f"time ({unit})"
    picture = drawing(
        f"Drift of the reference. {said}",
        frame(x, y, even_ticks(x.low, x.high), even_ticks(0, y.high), label, "moved by (% of spread)"),
        element("line", x1=LEFT, x2=RIGHT, y1=y.at(noise), y2=y.at(noise), class_="level"),
        element("path", d=path(line), class_="curve"),
        *points,
    )
    return figure("Drift of the reference", picture, said)


def _clock(found: Drift) -> tuple[list[float], str]:
    """Times since the first, in a fitting unit, or the order if no times are known."""
    if not found.seconds:
        return found.time, "in order"
    since = [time - found.time[0] for time in found.time]
    size, name = next((unit for unit in UNITS if max(since) > 2 * unit[0]), UNITS[-1])
    return [time / size for time in since], name
