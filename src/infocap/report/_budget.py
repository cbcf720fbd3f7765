"""Where the readouts' capacity goes: found, outside the basis, lost to noise."""

from __future__ import annotations

from math import hypot
from typing import NamedTuple

from ..result import CapacityResult
from ._html import Markup, element
from ._numbers import count, plain, with_error

NOTHING = 5e-3  # a rest below it is not worth a word


class Share(NamedTuple):
    """One part of the maximum capacity."""

    kind: str
    size: float
    error: float | None
    words: str


def shares(result: CapacityResult) -> list[Share]:
    """The parts of the maximum capacity, in order; what repeats did not measure stays together."""
    found = Share(
        "found", result.total, result.total_standard_error, "found among the functions of this basis"
    )
    dependent = result.maximum - result.rank
    limit, error = result.noise_limited_total, result.noise_limited_standard_error
    if limit is None:
        rest = [
            Share(
                "unknown",
                result.rank - result.total,
                result.total_standard_error,
                "not found: lost to noise, or in functions outside this basis. "
                "Measuring some inputs twice tells which.",
            )
        ]
    else:
        both = hypot(error or 0.0, result.total_standard_error or 0.0) or None
        outside = limit - result.total
        words = "in functions of the inputs outside this basis"
        if outside < 2 * (both or 0.0):
            words += ": no more than chance explains"
        rest = [
            Share("outside", outside, both, words),
            Share("noise", result.rank - limit, error, "lost to noise, as repeated measurements show"),
        ]
    if dependent:
        said = f"{count(dependent, 'readout')} that {'is' if dependent == 1 else 'are'} a linear mix of the others"
        rest.append(Share("dependent", float(dependent), None, said))
    return [found, *(share for share in rest if share.size > NOTHING or share.kind == "outside")]


def budget(result: CapacityResult) -> Markup:
    """A bar as long as the maximum capacity, and what its parts are."""
    parts = shares(result)
    most = max(result.maximum, sum(max(part.size, 0.0) for part in parts), 1e-9)
    bars, begin = [], 0.0
    for part in parts:
        length = 100 * max(part.size, 0.0) / most
        bars.append(
            element(
                "rect",
                x=f"{begin:.3f}%",
                width=f"{length:.3f}%",
                height="100%",
                class_=f"mark part {part.kind}",
                data_tip=f"{_size(part)}\n{part.words}",
            )
        )
        begin += length
    lines = [
        element(
            "li",
            element("span", class_=f"swatch {part.kind}"),
            element("strong", _size(part)),
            element("span", part.words),
        )
        for part in parts
    ]
    names = "; ".join(f"{_size(part)} {part.words}" for part in parts)
    return element(
        "div",
        element(
            "svg",
            *bars,
            role="img",
            aria_label=f"Of {result.maximum}: {names}",
            class_="budget-bar",
            height="20",
        ),
        element("ul", *lines, class_="budget-list"),
        class_="budget",
    )


def _size(part: Share) -> str:
    if part.kind == "dependent":
        return str(round(part.size))
    if part.error is None:
        return plain(part.size, 1)
    return with_error(part.size, part.error, 3)
