"""Designs: where to measure. Low-discrepancy or random points, through the quantile of the input measure."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
import scipy

from ._validation import made_by, one_of, whole_number
from .basis._family import DiscreteFamily, Family
from .basis._product import ProductBasis
from .errors import ParameterError, renamed, warn
from .typing import Floats

# Eight blocks tell by their differences how far a total scatters; more would be less even each. Points of a block of
# fewer than 64 are hardly more even than random ones.
BLOCKS, LEAST_POINTS = (8, 4, 2), 64
# Sets the random numbers of a design apart from those that count from 0: noise and systems with the same seed.
DESIGN_KEY = 0x50B01
# The outermost cells of a wider density have this probability: no sample falls beyond them.
TAIL = 1e-12
# Points keep this distance from 0 and 1, where the quantile of a normal input is infinite.
EDGE = 2.0**-32


def draw(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str | None = None,
    seed: int | None = None,
    blocks: int | None = None,
    method: str | None = None,
) -> Floats:
    """Inputs to measure at: (samples, inputs), distributed as the basis assumes.

    For a basis of delayed inputs, a sequence: windows of neighbouring values have to be independent, which the points
    of other designs than ``"random"`` and ``"de-bruijn"`` are not.

    Parameters
    ----------
    design
        ``"sobol"`` (scrambled, balanced in powers of two), ``"random"``, ``"halton"`` or ``"lhs"`` (Latin hypercube);
        for sequences ``"random"``, or ``"de-bruijn"`` for one binary input: in each period of 2^k values, the largest
        within n_samples, every window of k values occurs once. By default Sobol, and random for sequences.
    seed
        The same seed gives the same points; None gives fresh ones.
    blocks
        Independent designs of n_samples / blocks points, one after the other, each in a random order. By default eight;
        four, two or one where a block would have fewer than 64 points, or than discrete inputs have states (2^q for q
        binary inputs). Algorithm 1 wants two or more, because half of one is not even. Twice the blocks with twice the
        samples begin with the same points. Random points have none: their first N stay when more are drawn.
    method
        The former name of `design`.

    Examples
    --------
    >>> from infocap import product_basis
    >>> basis = product_basis("legendre", 2, 3)
    >>> u = draw(basis, 1024, seed=1)
    >>> u.shape
    (1024, 2)
    >>> bool((draw(basis, 2048, blocks=16, seed=1)[:1024] == u).all())
    True
    """
    made_by("basis", basis, ProductBasis, "product_basis(...)")
    if basis.memory:
        return _inputs(basis, _sequence(basis, n_samples, design or "random", seed, blocks))
    return _inputs(basis, _points(basis, n_samples, design or "sobol", seed, blocks, method))


def _sequence(
    basis: ProductBasis, n_samples: int, design: str, seed: int | None, blocks: int | None
) -> Floats:
    """Points in the unit cube, one after the other in time: independent, or a de Bruijn sequence from a random place.

    A maximal-length shift register has all windows of k bits but that of zeros, which one more zero adds.
    """
    one_of("design", design, ("random", "de-bruijn"))
    if blocks is not None:
        raise ParameterError(f"`blocks={blocks}` has no meaning for a sequence; leave it out.")
    if design == "random":
        return _points(basis, n_samples, design, seed, None, None)
    levels = [getattr(family, "mass", np.empty(0)) for family in basis.families]
    if (
        len(levels) != 1
        or len(levels[0]) != 2
        or abs(levels[0][0] - levels[0][1]) > 1e-12
        or n_samples < 8
    ):
        raise ParameterError(
            "a de Bruijn sequence has 8 samples or more of one input with two equally likely levels."
        )
    order, rng = int(np.log2(n_samples)), np.random.default_rng(seed)
    bits = scipy.signal.max_len_seq(order)[0]
    twice = "".join(map(str, [*bits.tolist(), *bits.tolist()]))
    bits = np.insert(bits, (twice.index("0" * (order - 1))) % len(bits), 0)
    return 0.25 + 0.5 * np.resize(np.roll(bits, int(rng.integers(len(bits)))), n_samples)[:, None]


def draw_weighted(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str = "sobol",
    seed: int | None = None,
    blocks: int | None = None,
    method: str | None = None,
) -> tuple[Floats, Floats]:
    """Inputs drawn more densely where the functions are large, and their weights (samples,).

    Polynomials of high degree are largest at the edge of the inputs, where few samples fall and then decide every mean.
    Here each input is drawn from the density p(u) mean_i y_i(u)² over its functions (Cohen and Migliorati, SMAI J.
    Comput. Math. 3, 181, 2017; the arcsine density for Legendre polynomials of high degree), and weights p / density
    give back the capacities under p: pass them on as ``estimate(u, x, basis, sample_weight=weights)``. Worth it for smooth,
    stationary systems with little noise, such as simulations, and for normal inputs beyond degree 4. The arguments are
    those of `draw`.

    >>> from infocap import product_basis
    >>> u, weights = draw_weighted(product_basis("hermite", 2, 8), 1024, seed=1)
    >>> bool(abs(weights.mean() - 1) < 0.1)
    True
    """
    made_by("basis", basis, ProductBasis, "product_basis(...)")
    if basis.of_sequences:
        raise ParameterError(
            "a sequence has no weights, for its inputs are in time; use draw(basis, n_samples)."
        )
    points = _points(basis, n_samples, design, seed, blocks, method)
    for family, indices, column in zip(basis.families, basis.indices.T, points.T, strict=True):
        edges, cumulative = _denser(family, int(indices.max()))
        column[:] = np.clip(np.interp(column, cumulative, edges), EDGE**2, 1 - 2.0**-53)
    u = _inputs(basis, points)
    return u, weights_at(basis, u)


def weights_at(basis: ProductBasis, u: Floats) -> Floats:
    """The weights (samples,) of inputs that `draw_weighted` drew for this basis: one over the density drawn from."""
    weights = np.ones(len(u))
    for family, indices, column in zip(basis.families, basis.indices.T, u.T, strict=True):
        edges, cumulative = _denser(family, int(indices.max()))
        if len(edges) > 2:
            cell = np.searchsorted(family.quantile(edges[1:-1]), column, side="right")
            weights *= (np.diff(edges) / np.diff(cumulative))[cell]
    return weights


def planned_inputs(basis: ProductBasis, plan: Mapping[str, Any]) -> Floats:
    """The inputs that a plan describes, (samples, inputs); of a sequence all time steps of all its runs."""
    n_samples = plan["n_samples"]
    if runs := plan.get("runs"):
        steps_per_run = plan.get("washout", 0) + -(-n_samples // runs)
        return draw(basis, runs * steps_per_run, seed=plan["seed"])
    settings: dict[str, Any] = {
        "design": plan.get("design", "sobol"),
        "seed": plan["seed"],
        "blocks": plan.get("blocks"),
    }
    if plan.get("weighted"):
        return draw_weighted(basis, n_samples, **settings)[0]
    if not plan.get("shuffled", True):
        return former_draw(
            basis, n_samples, settings["design"], settings["seed"], settings["blocks"] or 1
        )
    return draw(basis, n_samples, **settings)


def needs_weights(basis: ProductBasis, n_samples: int) -> bool:
    """Whether some function is so large at the edge that few of the samples would decide: E[y^4] > 0.1 N.

    For normal inputs, degree 8 and 512 samples, errors of 0.13 become 0.014 with weights.
    """
    return float(basis.fourth_moments.max()) > 0.1 * whole_number("n_samples", n_samples, 1)


def block_count(basis: ProductBasis, n_samples: int, design: str, blocks: int | None) -> int:
    """The number of blocks of a design: the one given, or the largest of 8, 4, 2 and 1 with blocks that are even.

    Latin hypercubes have blocks like the others: one alone could not be extended, nor tell how far it scatters.
    """
    one_of("design", design, DESIGNS)
    if blocks is not None:
        blocks = whole_number("blocks", blocks, 1)
    if design == "random":
        return 1
    if blocks is None:
        least = max(LEAST_POINTS, _states(basis))
        fitting = (
            count for count in BLOCKS if n_samples % count == 0 and n_samples // count >= least
        )
        return next(fitting, 1)
    if n_samples % blocks:
        raise ParameterError(
            f"`n_samples={n_samples}` cannot be shared out evenly among {blocks} blocks; take a multiple of {blocks}."
        )
    return blocks


def design_fingerprint(plan: Mapping[str, Any]) -> str:
    """Twelve letters that are the same for plans with the same inputs, whatever else they say.

    Files that tell the same design may be put together; inputs of one and readouts of another may not.

    >>> plan = {"family": "legendre", "n_inputs": 2, "design": "sobol", "seed": 1, "n_samples": 64, "blocks": 1}
    >>> design_fingerprint(plan) == design_fingerprint(plan | {"seed": 2})
    False
    """
    names = [
        "family",
        "n_inputs",
        "domain",
        "design",
        "seed",
        "n_samples",
        "blocks",
        "shuffled",
        "weighted",
    ]
    if plan.get("weighted"):  # inputs are then denser where the functions are large
        names += ["max_degree", "index_set", "max_interactions"]
    told = json.dumps({name: plan.get(name) for name in names}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def former_draw(basis: ProductBasis, n_samples: int, design: str, seed: int, blocks: int) -> Floats:
    """The inputs that infocap drew before blocks were shuffled, for plans that were begun then."""
    seeds = [seed] if blocks == 1 else np.random.SeedSequence(seed).generate_state(blocks).tolist()
    points = [DESIGNS[design](basis.n_inputs, n_samples // blocks, one) for one in seeds]
    return _inputs(basis, np.clip(np.vstack(points), EDGE, 1 - EDGE))


def _states(basis: ProductBasis) -> int:
    """The number of states of all discrete inputs together; those with many levels are as good as continuous."""
    discrete = [family for family in basis.families if isinstance(family, DiscreteFamily)]
    return prod(len(family.levels) for family in discrete if len(family.levels) <= LEAST_POINTS)


def _points(
    basis: ProductBasis,
    n_samples: int,
    design: str,
    seed: int | None,
    blocks: int | None,
    method: str | None,
) -> Floats:
    """Points in the unit cube of all inputs, none at its edge; block i depends on the seed, i and its size alone.

    The order inside a block is random. In Sobol order points of two seeds are images of each other, and neighbours are
    related: inputs of a wrong seed, or off by one row, would give a plausible profile.
    """
    if method is not None:
        design = renamed("method", "design", method)
    n_samples = whole_number("n_samples", n_samples, 1)
    seed = None if seed is None else whole_number("seed", seed, 0)
    blocks = block_count(basis, n_samples, design, blocks)
    size, make = n_samples // blocks, DESIGNS[design]
    if design == "random":
        return np.clip(make(basis.n_inputs, n_samples, seed), EDGE, 1 - EDGE)
    if design == "sobol" and size & (size - 1):
        low = blocks << (size.bit_length() - 1)
        warn(
            f"Sobol points are balanced only in powers of two, and {blocks} x {size} points are not; "
            f"`n_samples={n_samples}` can be {low} or {2 * low}."
        )
    if blocks > 1 and size < _states(basis):
        warn(
            f"`blocks={blocks}` makes blocks of {size} points, fewer than the {_states(basis)} states of the discrete "
            "inputs: some functions are then the same on a whole block; leave `blocks` out, or take more samples."
        )
    entropy = np.random.SeedSequence(seed).entropy
    keys = [
        np.random.SeedSequence(entropy, spawn_key=(DESIGN_KEY, number)) for number in range(blocks)
    ]
    points = [
        rng.permutation(make(basis.n_inputs, size, rng)) for rng in map(np.random.default_rng, keys)
    ]
    return np.clip(np.vstack(points), EDGE, 1 - EDGE)


def _inputs(basis: ProductBasis, points: Floats) -> Floats:
    pairs = zip(basis.families, points.T, strict=True)
    return np.column_stack([family.quantile(column) for family, column in pairs])


def _denser(family: Family, degree: int) -> tuple[Floats, Floats]:
    """The density of `draw_weighted` along one input: edges of cells of probability, and the share below each."""
    if isinstance(family, DiscreteFamily):  # a few levels: drawn as they are
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    tail = np.geomspace(TAIL, 0.01, 300)
    edges = np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, 801)[1:-1], 1 - tail[::-1], [1.0]])
    middle = np.clip((edges[1:] + edges[:-1]) / 2, TAIL / 2, 1 - TAIL / 2)
    values = family.values(family.standard(family.quantile(middle)), degree + 1)
    cumulative = np.append(0.0, np.cumsum(np.mean(values**2, axis=0) * np.diff(edges)))
    return edges, cumulative / cumulative[-1]


def _scrambled(sampler: str, n_inputs: int, n_samples: int, seed: Any) -> Floats:
    # The first of a larger net, because SciPy warns of Sobol points that are not a power of two in its own words.
    n_drawn = 1 << (n_samples - 1).bit_length() if sampler == "Sobol" else n_samples
    return getattr(scipy.stats.qmc, sampler)(n_inputs, scramble=True, rng=seed).random(n_drawn)[
        :n_samples
    ]


DESIGNS: dict[str, Callable[[int, int, Any], Floats]] = {
    "sobol": partial(_scrambled, "Sobol"),
    "random": lambda n_inputs, n_samples, seed: np.random.default_rng(seed).random(
        (n_samples, n_inputs)
    ),
    "halton": partial(_scrambled, "Halton"),
    "lhs": partial(_scrambled, "LatinHypercube"),
}
