"""Growth of the total with the number of samples: what an earlier stop would have given."""

from __future__ import annotations

from ..result import CapacityResult
from ._axes import BOTTOM, LEFT, RIGHT, TOP, Axis, Tick, drawing, even_ticks, figure, frame, path, point
from ._html import Markup, element
from ._measured import Growth
from ._numbers import plain, with_error

REACH = 1.96  # standard errors of a 95 % interval
APART = 38.0  # at least, between two ticks


def growth(found: Growth, result: CapacityResult) -> Markup:
    """The total against the number of samples, with its 95 % interval."""
    sizes, totals = found.n_samples, found.total
    lows, highs = _interval(found, result.maximum)
    x = Axis(min(sizes) / 1.15, max(sizes) * 1.15, LEFT, RIGHT, log=True)
    y = _around([*lows, *highs, *totals])
    line = [(x.at(n), y.at(total)) for n, total in zip(sizes, totals, strict=True)]
    upper = [(x.at(n), y.at(high)) for n, high in zip(sizes, highs, strict=True)]
    lower = [(x.at(n), y.at(low)) for n, low in zip(sizes, lows, strict=True)]
    final = y.at(totals[-1])
    words = ", ".join(f"{n:.0f} samples {plain(total, 1)}" for n, total in zip(sizes, totals, strict=True))
    picture = drawing(
        f"Total capacity against the number of samples: {words}",
        frame(x, y, _ticks(sizes, x), even_ticks(y.low, y.high), "number of samples N", "total capacity"),
        element("path", d=path([*upper, *reversed(lower)]) + "Z", class_="band")
        if found.standard_error
        else "",
        element("line", x1=LEFT, x2=RIGHT, y1=final, y2=final, class_="level"),
        element("path", d=path(line), class_="curve"),
        *(point(*place, _tip(found, k)) for k, place in enumerate(line)),
    )
    band = " The band is the 95 % interval;" if found.standard_error else ""
    said = f"What an earlier stop would have given.{band or ' Here'} the dashed line is the final total."
    return figure("Growth with the number of samples", picture, said)


def _tip(found: Growth, k: int) -> str:
    error = None if found.standard_error is None else found.standard_error[k]
    return f"{found.n_samples[k]:.0f} samples\ntotal {with_error(found.total[k], error)}"


def _interval(found: Growth, most: int) -> tuple[list[float], list[float]]:
    """Its two ends, between 0 and the maximum."""
    reach = [REACH * error for error in found.standard_error or [0.0] * len(found.total)]
    lows = [max(total - one, min(total, 0.0)) for total, one in zip(found.total, reach, strict=True)]
    highs = [min(total + one, max(total, most)) for total, one in zip(found.total, reach, strict=True)]
    return lows, highs


def _around(values: list[float]) -> Axis:
    """An axis that holds these values with some room, from 0 if they come near it."""
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    low = 0.0 if 0 <= low < 0.35 * high else low - room
    return Axis(low, high + room, BOTTOM, TOP)


def _ticks(sizes: list[float], axis: Axis) -> list[Tick]:
    """The sizes themselves, the largest first, as many as fit."""
    ticks: list[Tick] = []
    for size in sorted(sizes, reverse=True):
        if not ticks or axis.at(ticks[-1][0]) - axis.at(size) >= APART:
            ticks.append((size, f"{size:.0f}"))
    return ticks
