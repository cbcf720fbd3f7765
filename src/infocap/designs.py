"""Designs: where to measure. Low-discrepancy or random points, through the quantile of the input measure."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ._check import one_of, whole_number
from .basis._family import DiscreteFamily
from .basis._product import ProductBasis
from .errors import ParameterError, renamed, warn
from .typing import Floats

# The outermost cells of a wider density have this probability: no sample falls beyond them.
TAIL = 1e-12
# Points keep this distance from 0 and 1, where the quantile of a normal input is infinite.
EDGE = 2.0**-32


def draw(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str = "sobol",
    seed: int | None = None,
    blocks: int = 1,
    method: str | None = None,
) -> Floats:
    """Inputs to measure at: (samples, inputs), distributed as the basis assumes.

    Parameters
    ----------
    design
        ``"sobol"`` (scrambled, balanced in powers of two), ``"random"``, ``"halton"`` or ``"lhs"`` (Latin
        hypercube). The first N points of all but the Latin hypercube stay the same when more are drawn.
    seed
        The same seed gives the same points; None gives fresh ones.
    blocks
        Independent designs of n_samples / blocks points, one after the other. With fewer than about four samples per
        function, four blocks of Sobol points are better than one: points that avoid each other mislead estimates that
        leave samples out.
    method
        The former name of `design`.

    Examples
    --------
    >>> from infocap import product_basis
    >>> draw(product_basis("legendre", 2, 3), 1024, seed=1).shape
    (1024, 2)
    """
    points = _points(basis.n_inputs, n_samples, design, seed, blocks, method)
    pairs = zip(basis.families, points.T, strict=True)
    return np.column_stack([family.quantile(column) for family, column in pairs])


def draw_weighted(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str = "sobol",
    seed: int | None = None,
    blocks: int = 1,
    method: str | None = None,
) -> tuple[Floats, Floats]:
    """Inputs drawn more densely where the functions are large, and their weights (samples,).

    Polynomials of high degree are largest at the edge of the inputs, where few samples fall and then decide every mean.
    Here each input is drawn from the density p(u) mean_i y_i(u)² over its functions (Cohen and Migliorati, SMAI J.
    Comput. Math. 3, 181, 2017; the arcsine density for Legendre polynomials of high degree), and weights p / density
    give back the capacities under p: pass them on as ``estimate(u, x, basis, weights=weights)``. Worth it for smooth,
    stationary systems with little noise, such as simulations, and for normal inputs beyond degree 4.

    >>> from infocap import product_basis
    >>> u, weights = draw_weighted(product_basis("hermite", 2, 8), 1024, seed=1)
    >>> bool(abs(weights.mean() - 1) < 0.1)
    True
    """
    points = _points(basis.n_inputs, n_samples, design, seed, blocks, method)
    weights = np.ones(len(points))
    columns = []
    for family, indices, column in zip(basis.families, basis.indices.T, points.T, strict=True):
        if isinstance(family, DiscreteFamily):  # a few levels: drawn as they are
            edges, density = np.array([0.0, 1.0]), np.ones(1)
        else:
            tail = np.geomspace(TAIL, 0.01, 300)
            edges = np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, 801)[1:-1], 1 - tail[::-1], [1.0]])
            middle = np.clip((edges[1:] + edges[:-1]) / 2, TAIL / 2, 1 - TAIL / 2)
            values = family.values(family.standard(family.quantile(middle)), int(indices.max()) + 1)
            density = np.mean(values**2, axis=0)
        cumulative = np.append(0.0, np.cumsum(density * np.diff(edges)))
        cumulative /= cumulative[-1]
        cell = np.clip(np.searchsorted(cumulative, column, side="right") - 1, 0, len(density) - 1)
        width, mass = np.diff(edges)[cell], np.diff(cumulative)[cell]
        inside = edges[cell] + (column - cumulative[cell]) / mass * width
        columns.append(family.quantile(np.clip(inside, EDGE**2, 1 - 2.0**-53)))
        weights *= width / mass  # exactly one over the density drawn from
    return np.column_stack(columns), weights


def _points(q: int, n_samples: int, design: str, seed: int | None, blocks: int, method: str | None) -> Floats:
    """Points in the unit cube of q inputs, none at its edge."""
    if method is not None:
        design = renamed("method", "design", method)
    n_samples, blocks = whole_number("n_samples", n_samples, 1), whole_number("blocks", blocks, 1)
    one_of("design", design, DESIGNS)
    if n_samples % blocks:
        raise ParameterError(
            f"`n_samples={n_samples}` cannot be shared out evenly among {blocks} blocks; take a multiple of {blocks}."
        )
    seeds = [seed] if blocks == 1 else np.random.SeedSequence(seed).generate_state(blocks).tolist()
    points = np.vstack([DESIGNS[design](q, n_samples // blocks, one) for one in seeds])
    return np.clip(points, EDGE, 1 - EDGE)


def _scrambled(sampler: str, n_inputs: int, n_samples: int, seed: int | None) -> Floats:
    from scipy.stats import qmc

    n_drawn = n_samples
    if sampler == "Sobol" and n_samples & (n_samples - 1):
        n_drawn = 2 ** n_samples.bit_length()
        balanced = "Sobol points are balanced only in powers of two"
        warn(f"{balanced}; `n_samples={n_samples}` can be {n_drawn // 2} or {n_drawn}.")
    return getattr(qmc, sampler)(n_inputs, scramble=True, rng=seed).random(n_drawn)[:n_samples]


DESIGNS: dict[str, Callable[[int, int, int | None], Floats]] = {
    "sobol": partial(_scrambled, "Sobol"),
    "random": lambda n_inputs, n_samples, seed: np.random.default_rng(seed).random((n_samples, n_inputs)),
    "halton": partial(_scrambled, "Halton"),
    "lhs": partial(_scrambled, "LatinHypercube"),
}
