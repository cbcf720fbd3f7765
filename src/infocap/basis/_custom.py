"""Families for any distribution of the input: a density, a table of levels, or recorded inputs.

The recurrence of a density is found by the discretised Stieltjes procedure: the density becomes
many nodes with masses (double-exponential quadrature), and the coefficients are sums over the
nodes.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .._validation import checks_arguments, require_limits, require_numbers
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Limits
from ._family import Family, discrete_family
from ._registry import built_in

Density = Callable[[Floats], ArrayLike]
Numbers = Sequence[float]

# Nodes per piece of the tabulated distribution function: quantiles are right to 1e-6, in far tails
# to 1e-4.
N_TABLE_NODES = 8192
# Numbers of nodes per piece that are tried one after the other, until the recurrence coefficients
# no longer change.
NODE_COUNTS = tuple(2**exponent for exponent in range(9, 17))
# The largest change that counts as none, relative to the largest coefficient.
RECURRENCE_TOLERANCE = 1e-13
# How far the double-exponential rule reaches in its own variable t. At ± 3.2 the nodes of a finite
# piece are as near to its ends as 64-bit numbers tell apart; unbounded pieces go out to exp(43) =
# 4e18.
REACH_OF_FINITE_PIECE = 3.2
REACH_OF_INFINITE_PIECE = 4.0


@built_in
@checks_arguments
def table(levels: ArrayLike, weights: ArrayLike | None = None) -> Family:
    """Return the family of an input that takes a few known levels.

    Parameters
    ----------
    levels
        The values that the input takes, in any order.
    weights
        How likely each level is, not necessarily normalised; equally likely by default.

    Examples
    --------
    >>> table([0, 1, 2, 3]).quantile(np.array([0.1, 0.9]))
    array([0., 3.])
    """
    levels = require_numbers("levels", levels, finite=False).ravel()
    if weights is None:
        weights = np.ones(len(levels))
    weights = require_numbers("weights", weights, finite=False).ravel()
    if len(levels) == 0 or len(levels) != len(weights):
        raise DataError(
            f"there are {len(levels)} levels and {len(weights)} weights; give one weight per level."
        )
    finite = np.isfinite(levels).all() and np.isfinite(weights).all()
    if not finite or not (weights > 0).all():
        raise DataError(
            "levels must be finite and not NaN, weights positive; leave out impossible levels."
        )
    distinct_levels, level_of_entry = np.unique(levels, return_inverse=True)
    total_weights = np.bincount(level_of_entry, weights=weights)
    return discrete_family(
        distinct_levels,
        total_weights / total_weights.sum(),
        canonical=_canonical_interval(distinct_levels),
        name="table",
        symbol="p",
        distribution=f"{len(distinct_levels)} levels",
        parameters=(
            ("levels", tuple(distinct_levels.tolist())),
            ("weights", tuple(total_weights.tolist())),
        ),
    )


@checks_arguments
def samples(recorded: ArrayLike) -> Family:
    """Return the family of an input whose distribution is that of recorded values.

    Its functions are orthonormal on exactly those values.

    Parameters
    ----------
    recorded
        The values, in any order.

    Examples
    --------
    >>> samples([0.1, 0.1, 0.7, 0.9]).quantile(np.array([0.4, 0.6, 0.9]))
    array([0.1, 0.7, 0.9])
    """
    return table(recorded)


@checks_arguments
def density(
    function: Density,
    support: Limits,
    *,
    breakpoints: Numbers = (),
    max_degree: int = 60,
) -> Family:
    """Return the family of an input with a given probability density.

    Parameters
    ----------
    function
        The density, not necessarily normalised: it takes an array of inputs.
    support
        Where it is not zero; either end may be infinite. With an infinite support, `domain` stands
        for the mean ± one standard deviation.
    breakpoints
        The kinks and jumps of the density inside its support.
    max_degree
        The highest degree. Recurrence coefficients are computed once, for twice that degree, which
        E[y^4] needs.

    Examples
    --------
    >>> triangle = density(lambda u: 1 - abs(u), (-1, 1), breakpoints=[0])
    >>> round(float(triangle.quantile(np.array([0.125]))[0]), 6)
    -0.5
    """
    start, stop = require_limits("support", support)
    edges = [float(edge) for edge in (start, *sorted(breakpoints), stop)]
    if not all(low < high for low, high in pairwise(edges)):
        raise ParameterError(
            f"support={tuple(support)}, breakpoints={list(breakpoints)} must be increasing."
        )
    coefficients = _converged_recurrence(function, edges, 2 * max_degree + 2)
    nodes, mass = _discretise(function, edges, N_TABLE_NODES)
    lowest = edges[0] if np.isfinite(edges[0]) else float(nodes[0])
    highest = edges[-1] if np.isfinite(edges[-1]) else float(nodes[-1])
    cumulative = np.cumsum(mass) - mass / 2  # at each node, half of its own mass
    a, b = coefficients.tolist()
    return tabulated(
        a=a,
        b=b,
        grid=[lowest, *nodes.tolist(), highest],
        cdf=[0.0, *cumulative.tolist(), 1.0],
        support=[edges[0], edges[-1]],
    )


@built_in
def tabulated(*, a: Numbers, b: Numbers, grid: Numbers, cdf: Numbers, support: Numbers) -> Family:
    """Return the family of a density, from the numbers that files hold.

    These are its recurrence coefficients a and b, its distribution function `cdf` at the points of
    `grid`, and the interval outside which it is zero.
    """
    diagonal = np.array(a, dtype=float)
    off_diagonal = np.array(b, dtype=float)
    points = np.array(grid, dtype=float)
    cumulative = np.array(cdf, dtype=float)
    mean = float(diagonal[0])
    deviation = float(off_diagonal[0])
    bounded = np.isfinite(support).all()
    canonical = _canonical_interval(points) if bounded else (mean - deviation, mean + deviation)
    return Family(
        name="tabulated",
        symbol="p",
        recurrence=lambda count: (diagonal[:count], off_diagonal[:count]),
        canonical_quantile=lambda p: np.interp(p, cumulative, points),
        distribution="custom density",
        parameters=(
            ("a", tuple(a)),
            ("b", tuple(b)),
            ("grid", tuple(grid)),
            ("cdf", tuple(cdf)),
            ("support", tuple(support)),
        ),
        canonical=canonical,
        support=(float(support[0]), float(support[1])),
        domain=canonical,
        largest_degree=len(diagonal) // 2 - 1,  # E[y^4] needs twice as many coefficients
    )


def _canonical_interval(points: Floats) -> tuple[float, float]:
    """Return the range of the points, onto which `domain` is mapped.

    A single point gets the width 1.
    """
    low = float(points[0])
    high = float(points[-1])
    return low, high if high > low else low + 1.0


def _converged_recurrence(function: Density, edges: list[float], count: int) -> Floats:
    """Return `count` recurrence coefficients a and b of a density, (2, count).

    The number of nodes is doubled until the coefficients no longer change.
    """
    coefficients = np.full((2, count), np.inf)
    change = np.inf
    for n_nodes in NODE_COUNTS:
        previous = coefficients
        nodes, mass = _discretise(function, edges, n_nodes)
        coefficients = np.array(_stieltjes(nodes, mass, count))
        change = np.max(np.abs(coefficients - previous))
        if change < RECURRENCE_TOLERANCE * np.max(np.abs(coefficients)):
            return coefficients
    raise DataError(
        f"the density's recurrence coefficients still change by {change:.1e} at {NODE_COUNTS[-1]} "
        "nodes per piece; name its kinks and jumps in breakpoints=, give a narrower "
        "support=, outside which it is almost zero, or lower max_degree."
    )


def _stieltjes(nodes: Floats, mass: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the recurrence coefficients of a finely discretised density.

    Each node follows the recurrence by itself, so tails of mass 1e-100 keep all their digits and
    high degrees see them; orthogonalising would bury them in rounding errors of the bulk. This is
    safe only while the nodes far outnumber the degrees, which is why tables of a few levels are
    orthogonalised instead.
    """
    a = np.zeros(count)
    b = np.zeros(count)
    previous = np.zeros(len(nodes))
    current = np.ones(len(nodes))
    last_b = 0.0
    for k in range(count):
        a[k] = mass @ (nodes * current**2)
        following = (nodes - a[k]) * current - last_b * previous
        last_b = np.sqrt(mass @ following**2)
        b[k] = last_b
        previous = current
        current = following / last_b
    return a, b


def _discretise(function: Density, edges: list[float], n_nodes: int) -> tuple[Floats, Floats]:
    """Return nodes on all pieces between the edges and their masses, which sum to 1.

    The double-exponential rule has its nodes inside the pieces, so singularities at their ends do
    no harm.
    """
    nodes_of_pieces = []
    weights_of_pieces = []
    for low, high in pairwise(edges):
        nodes, weights_of_nodes = _double_exponential(low, high, n_nodes)
        nodes_of_pieces.append(nodes)
        weights_of_pieces.append(weights_of_nodes)
    x = np.concatenate(nodes_of_pieces)
    weights = np.concatenate(weights_of_pieces)
    with np.errstate(over="ignore"):  # far out, where a density is zero, its formula may overflow
        values = np.asarray(function(x), dtype=float)
    if values.shape != x.shape or not np.all(values >= 0):
        raise DataError(
            "the density must take an array and return one value per entry, none negative or NaN."
        )
    mass = weights * values
    usable = (mass > 0) & np.isfinite(mass)
    total = mass[usable].sum()
    if not total > 0:
        raise DataError(f"the density is zero everywhere on [{edges[0]:g}, {edges[-1]:g}].")
    return x[usable], mass[usable] / total


def _double_exponential(low: float, high: float, n_nodes: int) -> tuple[Floats, Floats]:
    """Return nodes inside (low, high) and their weights, by the rule of Takahasi and Mori.

    Either end may be infinite.
    """
    if np.isinf(low) and np.isfinite(high):  # the mirror image of a piece that is infinite upwards
        x, weights = _double_exponential(-high, -low, n_nodes)
        return -x[::-1], weights[::-1]
    reach = REACH_OF_FINITE_PIECE if np.isfinite(high) else REACH_OF_INFINITE_PIECE
    t, step = np.linspace(-reach, reach, n_nodes, retstep=True)
    y = np.pi / 2 * np.sinh(t)
    if np.isfinite(high):
        half = (high - low) / 2
        # Counted from the nearer end, so that nodes next to an end keep their distance from it.
        gap = half * 2 / (1 + np.exp(2 * np.abs(y)))
        x = np.where(y < 0, low + gap, high - gap)
        slope = half / np.cosh(y) ** 2
    elif np.isfinite(low):
        x = low + np.exp(y)
        slope = np.exp(y)
    else:
        x = np.sinh(y)
        slope = np.cosh(y)
    weights = np.pi / 2 * np.cosh(t) * slope * step
    inside = (x > low) & (x < high)
    return x[inside], weights[inside]
