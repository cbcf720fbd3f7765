"""Designs: where to measure.

Points are spread over the unit cube, (samples, inputs), and go through the quantile function of
each input. Points of a low-discrepancy design are more even than random ones. They are drawn in a
few independent blocks, because the differences between blocks tell how far a total scatters, and
because a design is extended block by block.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import scipy

from ._validation import (
    checks_arguments,
    require_number,
    require_one_of,
    require_type,
    require_whole_number,
    shown,
)
from .basis import DiscreteFamily, Family, ProductBasis
from .errors import ParameterError, warn
from .typing import Floats

# Numbers of blocks that are tried by default, one after the other. More blocks would be less even
# each.
BLOCK_COUNTS = (8, 4, 2)
# Points of a block: fewer are hardly more even than random ones.
MIN_POINTS_PER_BLOCK = 64
# Most levels of an input that counts as discrete; with more it is as good as continuous.
MAX_LEVELS_OF_DISCRETE_INPUT = 64
# A number in the seed of every design. It keeps the random numbers of a design apart from those of
# a system and of its noise, which count from 0 with the same seed.
DESIGN_KEY = 0x50B01
# Points keep this distance from 0 and 1, where the quantile of a normal input is infinite.
MIN_DISTANCE_FROM_EDGE = 2.0**-32
# Points of weighted designs may come nearer to 0, where their density is high; 1 is as near as
# 64-bit numbers can tell.
LOWEST_WEIGHTED_POINT = MIN_DISTANCE_FROM_EDGE**2
HIGHEST_WEIGHTED_POINT = 1 - 2.0**-53
# The cells of the density of a weighted design, in probability: many small ones in both tails and
# equal ones between. The outermost have the probability OUTERMOST_CELL, and no sample falls beyond
# them.
OUTERMOST_CELL = 1e-12
TAIL_PROBABILITY = 0.01
N_TAIL_EDGES = 300
N_MIDDLE_EDGES = 801
# The part of the points of a weighted design that follows the functions; the others follow the
# distribution of the inputs. All of them (1) make the errors of some noisy devices larger, and 0.3
# makes nearly all smaller (benchmarks/choosing.py, table "Designs").
WEIGHTED_SHARE = 0.3
# The share of plans and results that do not name theirs, which were made before there was a choice.
UNNAMED_SHARE = 1.0
# Fourth moments E[y^4] / N from which on a few samples at the edge decide a mean.
MAX_FOURTH_MOMENT_PER_SAMPLE = 0.1
# The entries of a plan that decide its inputs, and those that do so only for weighted inputs, which
# are denser where the functions are large.
DESIGN_ENTRIES = (
    "family", "n_inputs", "domain", "design", "seed", "n_samples", "blocks", "weighted",
)  # fmt: skip
WEIGHTED_DESIGN_ENTRIES = ("max_degree", "index_set", "max_interactions")


@checks_arguments
def draw(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str | None = None,
    seed: int | None = None,
    blocks: int | None = None,
) -> Floats:
    """Return inputs to measure at, (samples, inputs), distributed as the basis assumes.

    Parameters
    ----------
    basis
        The functions that will be estimated. Of delayed inputs, the answer is a sequence.
    n_samples
        How many inputs, or time steps of a sequence.
    design
        ``"sobol"`` (scrambled, balanced in powers of two; the default), ``"random"``, ``"halton"``
        or ``"lhs"`` (Latin hypercube). Sequences are ``"random"``, because windows of neighbouring
        values have to be independent, which the points of other designs are not.
    seed
        The same seed gives the same points; None gives fresh ones.
    blocks
        Independent designs of n_samples / blocks points, one after the other. By default eight;
        four, two or one where a block would have fewer than 64 points, or than discrete inputs have
        states (2^q for q binary inputs). Each half of a block keeps its points, in a random order:
        half of a Sobol net is a net, so that the halves of the samples, which Algorithm 1 compares,
        are even for any number of blocks. Twice the blocks with twice the samples begin with the
        same points. Random points have none: their first N stay when more are drawn.

    Returns
    -------
    Floats
        The inputs, (samples, inputs).

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
    require_type("basis", basis, ProductBasis, "product_basis(...)")
    if basis.of_sequences:
        design = "random" if design is None else design
        require_one_of("design", design, ("random",))
        if blocks is not None:
            raise ParameterError(f"`blocks={blocks}` has no meaning for a sequence; leave it out.")
    points = _points(basis, n_samples, design=design or "sobol", seed=seed, blocks=blocks)
    return _to_inputs(basis, points)


@checks_arguments
def draw_weighted(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str = "sobol",
    seed: int | None = None,
    blocks: int | None = None,
    share: float = WEIGHTED_SHARE,
) -> tuple[Floats, Floats]:
    """Return inputs drawn more densely where the functions are large, and their weights (samples,).

    Polynomials of high degree are largest at the edge of the inputs, where few samples fall and
    then decide every mean. Here each input is drawn from a mixture of its own density p and the
    density p(u) mean_i y_i(u)² over its functions (Cohen and Migliorati, SMAI J. Comput. Math. 3,
    181, 2017; the arcsine density for Legendre polynomials of high degree). Weights, p over the
    density drawn from, give back the capacities under p: pass them on as
    ``estimate(u, x, basis, sample_weight=weights)``. The weight of an input is at most
    1 / (1 - share).

    Parameters
    ----------
    basis
        The functions that will be estimated; their inputs have no order in time.
    n_samples
        How many inputs.
    design, seed, blocks
        As for `draw`.
    share
        The part of the mixture that follows the functions, from 0 (inputs as distributed) to 1.

    Returns
    -------
    tuple
        The inputs (samples, inputs) and their weights (samples,).

    Examples
    --------
    >>> from infocap import product_basis
    >>> u, weights = draw_weighted(product_basis("hermite", 2, 8), 1024, seed=1)
    >>> bool(abs(weights.mean() - 1) < 0.1)
    True
    """
    require_type("basis", basis, ProductBasis, "product_basis(...)")
    if basis.of_sequences:
        raise ParameterError(
            "inputs of a sequence cannot be drawn with weights; use draw(basis, n_samples)."
        )
    share = require_share(share)
    points = _points(basis, n_samples, design=design, seed=seed, blocks=blocks)
    for family, indices, column in zip(basis.families, basis.indices.T, points.T, strict=True):
        cells = _weighted_cells(family, int(indices.max()), share)
        weighted_points = np.interp(column, cells.share_below, cells.edges)
        column[:] = np.clip(weighted_points, LOWEST_WEIGHTED_POINT, HIGHEST_WEIGHTED_POINT)
    u = _to_inputs(basis, points)
    return u, weights_at(basis, u, share)


def weights_at(basis: ProductBasis, u: Floats, share: float) -> Floats:
    """Return the weights (samples,) of inputs that `draw_weighted` drew for a basis and a share."""
    weights = np.ones(len(u))
    for family, indices, column in zip(basis.families, basis.indices.T, u.T, strict=True):
        cells = _weighted_cells(family, int(indices.max()), share)
        if len(cells.edges) > 2:
            inner_edges = family.quantile(cells.edges[1:-1])
            cell_of_input = np.searchsorted(inner_edges, column, side="right")
            density_ratio = np.diff(cells.edges) / np.diff(cells.share_below)
            weights *= density_ratio[cell_of_input]
    return weights


def require_share(share: Any) -> float:
    """Return the share of a weighted design; refuse what is not a number from 0 to 1."""
    share = require_number("share", share, 0.0)
    if share > 1:
        raise ParameterError(f"`share={shown(share)}` is a part of a mixture; give 0 to 1.")
    return share


def weighted_share(plan: Mapping[str, Any]) -> float:
    """Return the share of the weighted inputs of a plan; `UNNAMED_SHARE` where it names none."""
    share = plan.get("share")
    return UNNAMED_SHARE if share is None else share


def planned_inputs(basis: ProductBasis, plan: Mapping[str, Any]) -> Floats:
    """Return the inputs that a plan describes, (samples, inputs).

    Those of a sequence are all time steps of all its runs.

    Parameters
    ----------
    basis
        The basis of the plan.
    plan
        The plan as plain data, as the metadata of a recording hold it.
    """
    n_samples = plan["n_samples"]
    runs = plan.get("runs")
    if runs:
        n_steps = runs * steps_per_run(n_samples, runs, plan.get("washout", 0))
        return draw(basis, n_steps, seed=plan["seed"])
    settings: dict[str, Any] = {
        "design": plan.get("design", "sobol"),
        "seed": plan["seed"],
        "blocks": plan.get("blocks"),
    }
    if plan.get("weighted"):
        u, _ = draw_weighted(basis, n_samples, share=weighted_share(plan), **settings)
        return u
    return draw(basis, n_samples, **settings)


def steps_per_run(n_samples: int, runs: int, washout: int) -> int:
    """Return the time steps of one run of a sequence: its washout and its share of the samples.

    >>> steps_per_run(1000, runs=3, washout=50)
    384
    """
    samples_per_run = -(-n_samples // runs)  # rounded up
    return washout + samples_per_run


def needs_weights(basis: ProductBasis, n_samples: int) -> bool:
    """Return whether few samples at the edge would decide the mean of some function.

    That is so where E[y^4] > 0.1 N. For normal inputs, degree 8 and 512 samples, errors of 0.13
    become 0.014 with weights.
    """
    n_samples = require_whole_number("n_samples", n_samples, 1)
    return float(basis.fourth_moments.max()) > MAX_FOURTH_MOMENT_PER_SAMPLE * n_samples


def block_count(basis: ProductBasis, n_samples: int, design: str, blocks: int | None) -> int:
    """Return the number of blocks of a design.

    It is that of the user, or the largest of 8, 4, 2 and 1 with blocks that are even. Latin
    hypercubes have blocks like the others: one alone could not be extended, nor tell how far it
    scatters.

    Parameters
    ----------
    basis, n_samples, design
        The functions, the number of inputs and the name of the design.
    blocks
        The number that the user gave, or None.
    """
    require_one_of("design", design, DESIGNS)
    if blocks is not None:
        blocks = require_whole_number("blocks", blocks, 1)
    if design == "random":
        return 1
    if blocks is None:
        min_size = max(MIN_POINTS_PER_BLOCK, _n_states(basis))
        for count in BLOCK_COUNTS:
            if n_samples % count == 0 and n_samples // count >= min_size:
                return count
        return 1
    if n_samples % blocks:
        raise ParameterError(
            f"`n_samples={n_samples}` cannot be shared out evenly among {blocks} blocks; take a "
            f"multiple of {blocks}."
        )
    return blocks


def design_fingerprint(plan: Mapping[str, Any]) -> str:
    """Return twelve letters that are the same for plans with the same inputs.

    Files of the same design may be put together; inputs of one design and readouts of another may
    not.

    >>> plan = {"family": "legendre", "n_inputs": 2, "seed": 1, "n_samples": 64, "blocks": 1}
    >>> design_fingerprint(plan) == design_fingerprint(plan | {"seed": 2})
    False
    """
    names = list(DESIGN_ENTRIES)
    if plan.get("weighted"):
        names += WEIGHTED_DESIGN_ENTRIES
    entries = {name: plan.get(name) for name in names}
    # Left out where it is the one of plans that name none: their designs keep their fingerprints.
    if plan.get("weighted") and weighted_share(plan) != UNNAMED_SHARE:
        entries["share"] = weighted_share(plan)
    as_json = json.dumps(entries, sort_keys=True)
    return hashlib.sha256(as_json.encode()).hexdigest()[:12]


def _n_states(basis: ProductBasis) -> int:
    """Return the number of states of all discrete inputs together.

    Inputs of many levels are as good as continuous and do not count.
    """
    numbers_of_levels = [1]
    for family in basis.families:
        if not isinstance(family, DiscreteFamily):
            continue
        if len(family.levels) <= MAX_LEVELS_OF_DISCRETE_INPUT:
            numbers_of_levels.append(len(family.levels))
    return prod(numbers_of_levels)


def _points(
    basis: ProductBasis,
    n_samples: int,
    *,
    design: str,
    seed: int | None,
    blocks: int | None,
) -> Floats:
    """Return points in the unit cube of all inputs, none at its edge.

    Block i depends on the seed, on i and on its size alone, so that a design can be extended. The
    order inside each half of a block is random: in Sobol order points of two seeds are images of
    each other, and neighbours are related, so inputs of a wrong seed, or off by one row, would give
    a plausible profile. Points do not change halves, because consecutive points of a Sobol sequence
    are a net and points taken from all over a net are not.
    """
    n_samples = require_whole_number("n_samples", n_samples, 1)
    if seed is not None:
        seed = require_whole_number("seed", seed, 0)
    blocks = block_count(basis, n_samples, design, blocks)
    make_points = DESIGNS[design]
    if design == "random":
        return _off_the_edge(make_points(basis.n_inputs, n_samples, seed))
    size = n_samples // blocks
    _warn_of_uneven_blocks(basis, n_samples, design, blocks)
    entropy = np.random.SeedSequence(seed).entropy  # None becomes a fresh number
    points = []
    for number in range(blocks):
        key = np.random.SeedSequence(entropy, spawn_key=(DESIGN_KEY, number))
        generator = np.random.default_rng(key)
        block = make_points(basis.n_inputs, size, generator)
        for half in np.split(block, [size // 2]):
            points.append(generator.permutation(half))
    return _off_the_edge(np.vstack(points))


def _warn_of_uneven_blocks(basis: ProductBasis, n_samples: int, design: str, blocks: int) -> None:
    """Warn where blocks have a size at which their points are not even."""
    size = n_samples // blocks
    is_power_of_two = size & (size - 1) == 0
    if design == "sobol" and not is_power_of_two:
        lower = blocks << (size.bit_length() - 1)
        warn(
            f"Sobol points are balanced only in powers of two, and {blocks} x {size} points are "
            f"not; `n_samples={n_samples}` can be {lower} or {2 * lower}."
        )
    n_states = _n_states(basis)
    if blocks > 1 and size < n_states:
        warn(
            f"`blocks={blocks}` makes blocks of {size} points, fewer than the {n_states} states of "
            "the discrete inputs: some functions are then the same on a whole block; leave "
            "`blocks` out, or take more samples."
        )


def _off_the_edge(points: Floats) -> Floats:
    """Return points of the unit cube that keep their distance from its edge."""
    return np.clip(points, MIN_DISTANCE_FROM_EDGE, 1 - MIN_DISTANCE_FROM_EDGE)


def _to_inputs(basis: ProductBasis, points: Floats) -> Floats:
    """Return points of the unit cube as inputs, by the quantile function of each family."""
    columns = []
    for family, column in zip(basis.families, points.T, strict=True):
        columns.append(family.quantile(column))
    return np.column_stack(columns)


class _WeightedCells(NamedTuple):
    """The density of `draw_weighted` along one input, which is constant in each of many cells."""

    edges: Floats  # of the cells, in probability, from 0 to 1
    share_below: Floats  # the share of samples below each edge


def _weighted_cells(family: Family, highest_index: int, share: float) -> _WeightedCells:
    """Return the density of `draw_weighted` along one input, for its functions up to an index.

    An input of few levels is drawn as it is, in a single cell.
    """
    if isinstance(family, DiscreteFamily):
        return _WeightedCells(edges=np.array([0.0, 1.0]), share_below=np.array([0.0, 1.0]))
    tail = np.geomspace(OUTERMOST_CELL, TAIL_PROBABILITY, N_TAIL_EDGES)
    middle = np.linspace(TAIL_PROBABILITY, 1 - TAIL_PROBABILITY, N_MIDDLE_EDGES)[1:-1]
    upper_tail = 1 - tail[::-1]
    edges = np.concatenate([[0.0], tail, middle, upper_tail, [1.0]])
    centres = (edges[1:] + edges[:-1]) / 2
    centres = np.clip(centres, OUTERMOST_CELL / 2, 1 - OUTERMOST_CELL / 2)
    values = family.values(family.standard(family.quantile(centres)), highest_index + 1)
    mean_square = np.mean(values**2, axis=0)
    cumulative = np.append(0.0, np.cumsum(mean_square * np.diff(edges)))
    by_functions = cumulative / cumulative[-1]
    return _WeightedCells(edges, share * by_functions + (1 - share) * edges)


def _sobol(n_inputs: int, n_samples: int, seed: Any) -> Floats:
    """Return the first points of a scrambled Sobol net, (samples, inputs).

    A whole net is drawn, because SciPy warns of numbers that are not a power of two in its own
    words.
    """
    sampler = scipy.stats.qmc.Sobol(n_inputs, scramble=True, rng=seed)
    size_of_net = 1 << (n_samples - 1).bit_length()
    return sampler.random(size_of_net)[:n_samples]


def _random(n_inputs: int, n_samples: int, seed: Any) -> Floats:
    """Return independent uniform points."""
    return np.random.default_rng(seed).random((n_samples, n_inputs))


def _halton(n_inputs: int, n_samples: int, seed: Any) -> Floats:
    """Return the first points of a scrambled Halton sequence."""
    return scipy.stats.qmc.Halton(n_inputs, scramble=True, rng=seed).random(n_samples)


def _latin_hypercube(n_inputs: int, n_samples: int, seed: Any) -> Floats:
    """Return points of which every input's range of 1 / n_samples holds one."""
    return scipy.stats.qmc.LatinHypercube(n_inputs, scramble=True, rng=seed).random(n_samples)


# Each design makes points of the unit cube from (n_inputs, n_samples, seed or generator): (samples,
# inputs).
DESIGNS: dict[str, Callable[[int, int, Any], Floats]] = {
    "sobol": _sobol,
    "random": _random,
    "halton": _halton,
    "lhs": _latin_hypercube,
}
