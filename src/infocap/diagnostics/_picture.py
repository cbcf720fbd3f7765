"""A picture of a finding as plain numbers, and what all pictures need to make one.

A picture is stored in a result file and drawn later, by `infocap.plot.finding`. So it holds few
numbers of few digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._formatting import join_names
from ..typing import Floats, Integers
from ._excerpt import Excerpt

# Parts of the run, bins and points of a picture: more cannot be told apart in a small one.
N_PARTS = 48
N_BINS = 60
MAX_POINTS = 300
# Significant digits of the numbers.
N_DIGITS = 4


@dataclass(frozen=True)
class Series:
    """Points of a picture that have the same role and are drawn in the same colour."""

    role: str  # "usual", "found" (what the finding is about) or "expected" (a law, a fit, chance)
    x: list[float]
    y: list[float]
    name: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture as plain numbers."""

    kind: str  # "curve", "points", "histogram" or "map"
    x_label: str
    y_label: str
    caption: str
    series: Sequence[Series] = ()
    marked: Sequence[tuple[float, float]] = ()  # stretches of x that the finding is about
    log: str = ""  # the axes that are logarithmic: "", "x", "y" or "xy"
    levels: Sequence[str] = ()  # of a map: a digit for each moment, a text for each channel
    channels: Sequence[str] = ()  # of a map
    extent: Sequence[float] = ()  # of a map: the first measurement, and the one after the last

    def to_dict(self) -> dict[str, Any]:
        """Return the picture as plain data, without what is empty."""
        data = {name: value for name, value in asdict(self).items() if len(value)}
        return data | {"marked": [list(stretch) for stretch in self.marked]}


def series(role: str, x: Any, y: Any, name: str = "") -> Series:
    """Return points with few digits, without those that are not finite."""
    points = np.column_stack([np.asarray(x, float), np.asarray(y, float)])
    points = points[np.isfinite(points).all(axis=1)]
    digits = [[float(f"{value:.{N_DIGITS}g}") for value in column] for column in points.T]
    return Series(role, digits[0], digits[1], name)


def by_role(
    x: Floats, y: Floats, is_found: Floats, names: tuple[str, str] = ("", "")
) -> list[Series]:
    """Return points as two series, the usual ones and those that were found; no empty one."""
    parts = [
        series("usual", x[~is_found], y[~is_found], names[0]),
        series("found", x[is_found], y[is_found], names[1]),
    ]
    return [part for part in parts if part.x]


def histogram(
    values: Floats,
    is_found: Floats,
    x_label: str,
    caption: str,
    n_bins: int = N_BINS,
    log: str = "",
) -> Picture:
    """Return the histogram of values, with those that were found as bars of their own."""
    edges = np.linspace(values.min(), values.max(), n_bins + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    parts = []
    for role, chosen in (("usual", ~is_found), ("found", is_found)):
        counts, _ = np.histogram(values[chosen], edges)
        parts.append(series(role, middles, counts))
    return Picture(
        kind="histogram",
        x_label=x_label,
        y_label="rows",
        caption=caption,
        series=[part for part in parts if any(part.y)],
        log=log,
    )


def evenly_spaced(n: int, n_chosen: int = MAX_POINTS) -> Integers:
    """Return at most `n_chosen` of the numbers below n, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, n_chosen)).round().astype(int))


# Parts of the run.


def edges_of_parts(excerpt: Excerpt) -> Integers:
    """Return where the parts of the run begin, and where the last one ends, in rows."""
    return np.linspace(0, excerpt.n, min(N_PARTS, excerpt.n) + 1).astype(int)


def middles_of_parts(excerpt: Excerpt) -> Floats:
    """Return the middle of each part of the run, in measurements."""
    edges = edges_of_parts(excerpt)
    return (excerpt.positions[edges[:-1]] + excerpt.positions[edges[1:] - 1]) / 2


def means_of_parts(excerpt: Excerpt, values: Floats) -> Floats:
    """Return the means of values, (rows, ...), over consecutive parts."""
    edges = edges_of_parts(excerpt)
    lengths = np.diff(edges).reshape(-1, *[1] * (values.ndim - 1))
    return np.add.reduceat(values, edges[:-1], axis=0) / lengths


# Channels and inputs.


def residuals_in_widths(excerpt: Excerpt) -> Floats:
    """Return the residuals of channels in units of their usual range, (rows, channels)."""
    residuals = excerpt.residuals
    return residuals.channel_residuals() * residuals.fit.channel_scale


def channel_names(excerpt: Excerpt) -> list[str]:
    """Return the names of all channels."""
    return excerpt.names(range(excerpt.x.shape[1]))


def name_of_channel(excerpt: Excerpt, channel: int) -> str:
    """Return the name of one channel."""
    return excerpt.names([channel])[0]


def channel_to_show(excerpt: Excerpt, found: dict[str, Any]) -> int:
    """Return the channel, among those a finding names, in which its rows have large residuals.

    Without rows it is the first channel that the finding names.
    """
    names = channel_names(excerpt)
    is_found = np.isin(excerpt.rows, found.get("rows", ()))
    candidates: Iterable[int] = range(len(names))
    if found.get("channels"):
        candidates = [names.index(name) for name in found["channels"] if name in names] or [0]
    if not is_found.any():
        return next(iter(candidates))
    residuals = excerpt.residuals.channel_residuals(np.flatnonzero(is_found))
    mean_size = np.abs(residuals).mean(axis=0)
    return max(candidates, key=lambda channel: float(mean_size[channel]))


def input_names(found: dict[str, Any]) -> str:
    """Return the names of the inputs that a finding is about."""
    return join_names([f"u{k + 1}" for k in found["inputs"]])
