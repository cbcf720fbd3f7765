"""Families for any input measure: a density (discretised Stieltjes), a table of levels, recorded inputs."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats
from ._family import Family, built_in, discrete

Density = Callable[[Floats], ArrayLike]
Numbers = Sequence[float]
# So many nodes tabulate a distribution function: quantiles are right to 1e-6, in far tails to 1e-4.
TABLE_NODES = 8192
# Numbers of nodes tried one after the other, until the recurrence coefficients change no more than CONVERGED,
# relative to the largest.
NODES = tuple(2**m for m in range(9, 17))
CONVERGED = 1e-13


@built_in
def table(levels: ArrayLike, weights: ArrayLike | None = None) -> Family:
    """An input that takes a few known levels, equally likely unless `weights` says otherwise.

    >>> table([0, 1, 2, 3]).quantile(np.array([0.1, 0.9]))
    array([0., 3.])
    """
    levels = np.asarray(levels, dtype=float).ravel()
    weights = np.ones(len(levels)) if weights is None else np.asarray(weights, dtype=float).ravel()
    if len(levels) == 0 or len(levels) != len(weights):
        raise DataError(
            f"there are {len(levels)} levels and {len(weights)} weights; give one weight per level."
        )
    if not (np.isfinite(levels).all() and np.isfinite(weights).all() and (weights > 0).all()):
        raise DataError(
            "levels must be finite and not NaN, weights positive; leave out impossible levels."
        )
    nodes, where = np.unique(levels, return_inverse=True)
    counts = np.bincount(where, weights=weights)
    mass = counts / counts.sum()
    given = {"levels": tuple(nodes.tolist()), "weights": tuple(counts.tolist())}
    return discrete(("table", "p", f"{len(nodes)} levels"), nodes, mass, _ruler(nodes), given)


def samples(recorded: ArrayLike) -> Family:
    """An input whose distribution is that of recorded values: orthonormal on exactly those values.

    >>> samples([0.1, 0.1, 0.7, 0.9]).quantile(np.array([0.4, 0.6, 0.9]))
    array([0.1, 0.7, 0.9])
    """
    return table(recorded)


def density(
    function: Density,
    support: tuple[float, float],
    *,
    breakpoints: Numbers = (),
    max_degree: int = 60,
) -> Family:
    """An input with a given probability density, not necessarily normalised.

    `function` takes an array of inputs; `support` may be infinite; `breakpoints` are the kinks and jumps
    inside it. With an infinite support `domain` stands for mean ± one standard deviation. Recurrence
    coefficients are computed once, up to `max_degree` (twice that for E[y^4]).

    >>> triangle = density(lambda u: 1 - abs(u), (-1, 1), breakpoints=[0])
    >>> round(float(triangle.quantile(np.array([0.125]))[0]), 6)
    -0.5
    """
    pieces = [float(edge) for edge in (support[0], *sorted(breakpoints), support[1])]
    if not all(low < high for low, high in pairwise(pieces)):
        raise ParameterError(
            f"support={tuple(support)}, breakpoints={list(breakpoints)} must be increasing."
        )
    found = np.full((2, 2 * max_degree + 2), np.inf)
    for count in NODES:
        previous, found = (
            found,
            np.array(_stieltjes(*_discretise(function, pieces, count), found.shape[1])),
        )
        change = np.max(np.abs(found - previous))
        if change < CONVERGED * np.max(np.abs(found)):
            break
    else:
        raise DataError(
            f"the density's recurrence coefficients still change by {change:.1e} at {NODES[-1]} nodes per piece; "
            "name its kinks and jumps in breakpoints=, give a support closer to where it lives, or lower max_degree."
        )
    nodes, mass = _discretise(function, pieces, TABLE_NODES)
    ends = np.array([pieces[0], pieces[-1]])
    low, high = np.where(np.isfinite(ends), ends, nodes[[0, -1]]).tolist()
    cdf = [0.0, *(np.cumsum(mass) - mass / 2).tolist(), 1.0]
    a, b = found.tolist()
    return tabulated(a, b, [low, *nodes.tolist(), high], cdf, ends.tolist())


@built_in
def tabulated(a: Numbers, b: Numbers, grid: Numbers, cdf: Numbers, support: Numbers) -> Family:
    """A family from its recurrence coefficients and its tabulated distribution function: what files hold."""
    diagonal, off_diagonal = np.array(a, dtype=float), np.array(b, dtype=float)
    points, cumulative = np.array(grid, dtype=float), np.array(cdf, dtype=float)
    mean, deviation = float(diagonal[0]), float(off_diagonal[0])
    given = {"a": a, "b": b, "grid": grid, "cdf": cdf, "support": support}
    ruler = _ruler(points) if np.isfinite(support).all() else (mean - deviation, mean + deviation)
    return Family(
        "tabulated",
        "p",
        lambda count: (diagonal[:count], off_diagonal[:count]),
        lambda p: np.interp(p, cumulative, points),
        "custom density",
        tuple((name, tuple(values)) for name, values in given.items()),
        canonical=ruler,
        support=(float(support[0]), float(support[1])),
        domain=ruler,
        largest_degree=len(diagonal) // 2 - 1,  # E[y^4] needs twice as many coefficients
    )


def _ruler(points: Floats) -> tuple[float, float]:
    """The interval a measure given in its own units is mapped from; a single level gets a width of 1."""
    low, high = float(points[0]), float(points[-1])
    return low, high if high > low else low + 1.0


def _stieltjes(nodes: Floats, mass: Floats, count: int) -> tuple[Floats, Floats]:
    """Recurrence coefficients of a finely discretised density.

    Each point follows the recurrence on its own, so tails of mass 1e-100 keep all their digits and high
    degrees see them; orthogonalising would bury them in rounding errors of the bulk. Safe only while the
    points far outnumber the degrees, which is why tables of a few levels do orthogonalise.
    """
    a, b = np.zeros(count), np.zeros(count)
    previous, current, last = np.zeros(len(nodes)), np.ones(len(nodes)), 0.0
    for k in range(count):
        a[k] = mass @ (nodes * current**2)
        new = (nodes - a[k]) * current - last * previous
        b[k] = last = np.sqrt(mass @ new**2)
        previous, current = current, new / last
    return a, b


def _discretise(function: Density, pieces: list[float], nodes: int) -> tuple[Floats, Floats]:
    """Nodes and masses of the double-exponential rule on each piece; endpoint singularities do no harm."""
    parts = [_double_exponential(low, high, nodes) for low, high in pairwise(pieces)]
    x = np.concatenate([points for points, _ in parts])
    with np.errstate(
        over="ignore"
    ):  # far out, where the density is zero, its formula may well overflow
        values = np.asarray(function(x), dtype=float)
    if values.shape != x.shape or np.isnan(values).any() or (values < 0).any():
        raise DataError(
            "the density must take an array and return one value per entry, none negative or NaN."
        )
    mass = np.concatenate([weights for _, weights in parts]) * values
    keep = (mass > 0) & np.isfinite(mass)
    total = mass[keep].sum()
    if not total > 0:
        raise DataError(f"the density is zero everywhere on [{pieces[0]:g}, {pieces[-1]:g}].")
    return x[keep], mass[keep] / total


def _double_exponential(low: float, high: float, nodes: int) -> tuple[Floats, Floats]:
    """Nodes inside (low, high), either end possibly infinite, and their weights (Takahasi and Mori)."""
    if np.isinf(low) and np.isfinite(high):
        x, weights = _double_exponential(-high, -low, nodes)
        return -x[::-1], weights[::-1]
    reach = 3.2 if np.isfinite(high) else 4.0
    t, step = np.linspace(-reach, reach, nodes, retstep=True)
    y = np.pi / 2 * np.sinh(t)
    if np.isfinite(high):
        half = (high - low) / 2
        # from the nearer end, so that points next to an end keep their distance from it
        gap = half * 2 / (1 + np.exp(2 * np.abs(y)))
        x = np.where(y < 0, low + gap, high - gap)
        slope = half / np.cosh(y) ** 2
    elif np.isfinite(low):
        x, slope = low + np.exp(y), np.exp(y)
    else:
        x, slope = np.sinh(y), np.cosh(y)
    inside = (x > low) & (x < high)
    return x[inside], (np.pi / 2 * np.cosh(t) * slope * step)[inside]
