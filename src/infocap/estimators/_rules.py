"""The paper's two algorithms and two older rules that set capacities to zero.

Their errors come from a jackknife.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import scipy

from .._validation import require_one_of, require_probability, require_whole_number
from ..errors import Check, DataError, ParameterError
from ..kernels import Summary, combine, sum_of_squares
from ..samples import Samples, Table
from ..typing import Floats
from ._evidence import Evidence, row_blocks, square_sums, summarise_between
from ._method import Estimate

# The rule of Dambre et al. doubles the quantile of the chi-squared distribution for safety.
CHI2_SAFETY_FACTOR = 2.0
# Excess over 1 of a threshold that is more than rounding.
THRESHOLD_ROUNDING = 1e-9
# Relative excess over the largest surrogate that is more than rounding: a shuffle does not change
# the constant function, whose capacity is then equal to its threshold.
SURROGATE_ROUNDING = 1e-12
# Blocks below which a jackknife says nothing: two in each half of the samples.
MIN_JACKKNIFE_BLOCKS = 4
# Arrays of one number per sample that shuffling takes: inputs (8 of them, as a bound for the usual
# number) before and after, and the order.
N_SURROGATE_ARRAYS = 17

# Capacities before any is set to zero, as a function of the evidence of all samples or of a part.
CapacitiesOf = Callable[[Evidence], Floats]


def raw(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """Return C_N without any correction.

    It is normalised by the exact E[y²] = 1, so that single values may exceed 1. It is biased
    upwards by about rank / N for every function.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    jackknife
        The number of blocks for error bars, such as 16; 0 for none.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    estimate = Estimate(evidence.raw)
    return _with_jackknife(estimate, evidence, _raw_capacities, jackknife)


def threshold_richardson(
    evidence: Evidence, *, bound: str = "cauchy-schwarz", jackknife: int = 0
) -> Estimate:
    """Run Algorithm 1: capacities above their zero-capacity bound, extrapolated to infinite N.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    bound
        ``"cauchy-schwarz"`` is the paper's, sqrt(S_N E[y^4]) / N. ``"data"`` is the quantity that
        it bounds, mean(leverage y²) / N, estimated from the data: for heavy-tailed inputs, where
        the paper's bound exceeds 1, it is the one that can be used.
    jackknife
        The number of blocks for error bars, such as 16; 0 for none.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="threshold-richardson").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    require_one_of("bound", bound, ("cauchy-schwarz", "data"))
    if bound == "data":
        threshold = evidence.leverage_bound
        further_remedy = ""
    else:
        threshold = evidence.zero_capacity_bound
        further_remedy = (
            ", or pass `method_options=dict(bound='data')` for the bound mean(leverage·y²)/N"
        )
    is_zero = evidence.raw <= threshold
    capacity = np.where(is_zero, 0.0, np.maximum(evidence.extrapolated, 0.0))
    checks = _check_thresholds(threshold, further_remedy)
    estimate = Estimate(capacity, threshold, checks=checks)
    return _with_jackknife(estimate, evidence, _extrapolated_capacities, jackknife)


def richardson_threshold(
    evidence: Evidence, *, refined: bool = False, jackknife: int = 0
) -> Estimate:
    """Run Algorithm 2: extrapolated capacities, those below minus the smallest of all set to zero.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    refined
        Use all negative values instead of the smallest, a single number that fluctuates. They are
        taken for the lower half of a normal distribution, whose width in units of sqrt(E[y^4]) is
        that of all functions without capacity. The threshold is what the largest of so many
        reaches on average.
    jackknife
        The number of blocks for error bars, such as 16; 0 for none.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="richardson-threshold").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    extrapolated = evidence.extrapolated
    if refined:
        scale = np.sqrt(evidence.fourth_moments)
        negative = (extrapolated / scale)[extrapolated < 0]
        width = np.sqrt(np.mean(negative**2)) if len(negative) else 0.0
        # About as many functions without capacity have positive values as have negative ones.
        n_zero = max(2 * len(negative), 2)
        threshold = width * np.sqrt(2 * np.log(n_zero)) * scale
    else:
        threshold = np.full_like(extrapolated, -np.min(extrapolated))
    capacity = np.where(extrapolated < threshold, 0.0, extrapolated)
    estimate = Estimate(capacity, threshold, checks=_check_thresholds(threshold))
    return _with_jackknife(estimate, evidence, _extrapolated_capacities, jackknife)


def chi2(evidence: Evidence, *, p: float = 1e-4, jackknife: int = 0) -> Estimate:
    """Return capacities above twice the (1 - p) quantile of chi²(rank) / N, zero below.

    N C_N of a function independent of the readouts is about chi-squared with as many degrees of
    freedom as there are readouts; the authors double the quantile for safety. They use the
    empirical mean of y². The bias is not corrected.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    p
        The level of the rule.
    jackknife
        The number of blocks for error bars, such as 16; 0 for none.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="chi2").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    require_probability("p", p)
    normalised = evidence.raw / evidence.mean_squares
    quantile = float(scipy.special.chdtri(evidence.rank, p))
    level = CHI2_SAFETY_FACTOR * quantile / evidence.n_samples
    threshold = np.full_like(normalised, level)
    capacity = np.where(normalised > threshold, normalised, 0.0)
    estimate = Estimate(capacity, threshold, checks=_check_thresholds(threshold))
    return _with_jackknife(estimate, evidence, _raw_capacities, jackknife, divide_by_power=True)


def surrogate(
    evidence: Evidence, *, n_surrogates: int = 200, seed: int | None = 0, jackknife: int = 0
) -> Estimate:
    """Return capacities above the largest of many shuffles of the samples, zero below.

    Both use the empirical mean of y², as the authors do, so no capacity exceeds 1. The constant
    function is the same after any shuffle and therefore always comes out as zero. The bias is not
    corrected.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    n_surrogates
        The number of shuffles.
    seed
        Seed of the shuffles.
    jackknife
        The number of blocks for error bars, such as 16; 0 for none.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="surrogate").capacity.round(2)
    array([0.  , 0.84, 0.  , 0.16, 0.  ])
    """
    n_surrogates = require_whole_number("n_surrogates", n_surrogates, 1)
    if evidence.samples.sqrt_sample_weight is not None:
        raise ParameterError(
            "method 'surrogate' shuffles samples and takes no weights; use another method."
        )
    largest = _largest_of_surrogates(evidence, n_surrogates, seed)
    normalised = evidence.raw / evidence.mean_squares
    threshold = largest / evidence.mean_squares
    is_above = normalised > threshold * (1 + SURROGATE_ROUNDING)
    capacity = np.where(is_above, normalised, 0.0)
    estimate = Estimate(capacity, threshold, checks=_check_thresholds(threshold))
    return _with_jackknife(estimate, evidence, _raw_capacities, jackknife, divide_by_power=True)


def surrogate_bytes(n_samples: int, n_columns: int, n_terms: int, n_threads: int) -> float:
    """Return the memory that shuffled inputs take."""
    return 8.0 * n_samples * N_SURROGATE_ARRAYS


def _raw_capacities(evidence: Evidence) -> Floats:
    return evidence.raw


def _extrapolated_capacities(evidence: Evidence) -> Floats:
    return evidence.extrapolated


def _check_thresholds(threshold: Floats, further_remedy: str = "") -> tuple[Check, ...]:
    """Return a warning where a threshold exceeds 1, which no true capacity can pass."""
    n_above = int(np.sum(threshold > 1 + THRESHOLD_ROUNDING))
    if n_above == 0:
        return ()
    text = (
        f"the zero-capacity threshold exceeds 1 for {n_above} of {len(threshold)} functions: no "
        f"true capacity can pass it; lower the degree or take more samples{further_remedy}."
    )
    return (Check(text, functions=n_above),)


def _largest_of_surrogates(evidence: Evidence, n_surrogates: int, seed: int | None) -> Floats:
    """Return the largest raw capacity of every function over random pairings of the samples."""
    inputs = evidence.samples.u
    u = inputs.read(0, inputs.shape[0], on_host=True)
    generator = np.random.default_rng(seed)
    largest = np.zeros_like(evidence.raw)
    for _ in range(n_surrogates):
        # Inputs are fewer numbers than readouts and are shuffled in their place.
        shuffled = np.empty_like(u)
        shuffled[generator.permutation(len(u))] = u
        samples = replace(evidence.samples, u=Table(shuffled, "u"))
        products = evidence.engine.fold(samples, partial(_products, **evidence.whitener))
        np.maximum(largest, sum_of_squares(products.T / evidence.n_samples), out=largest)
    return largest


def _products(samples: Samples, start: int, stop: int, **whitener: Any) -> Any:
    """Return the sums of y z over some rows, (terms, rank)."""
    return samples.basis.project(
        (samples.inputs(*rows), samples.readouts(*rows, **whitener))
        for rows in row_blocks(samples, start, stop)
    )


def _with_jackknife(
    estimate: Estimate,
    evidence: Evidence,
    capacities_of: CapacitiesOf,
    n_blocks: int,
    *,
    divide_by_power: bool = False,
) -> Estimate:
    """Add standard errors from a jackknife over blocks of samples; none where `n_blocks` is 0.

    `capacities_of` returns the capacities before any is set to zero; with `divide_by_power` the
    method divides them by the sample mean of y². Blocks are consecutive rows, half of them in each
    half of the samples, so that the extrapolation still compares two halves. On low-discrepancy
    points the error bars are too long, because a design without one of its blocks is less even.
    """
    if require_whole_number("jackknife", n_blocks, 0) == 0:
        return estimate
    edges = _block_edges(evidence, n_blocks)
    without_block = np.array(
        [capacities_of(rest) for rest in _evidence_without_blocks(evidence, edges)]
    )
    unbiased = capacities_of(evidence)
    if divide_by_power:
        # Sums of y² over each block give the mean of y² over the samples without it.
        powers = np.array(evidence.engine.fold(evidence.samples, square_sums, edges=edges))
        n_without = evidence.n_samples - np.diff(edges)
        without_block *= n_without[:, None] / (powers.sum(axis=0) - powers)
        unbiased = unbiased / evidence.mean_squares
    totals = without_block[:, estimate.capacity > 0].sum(axis=1)
    return replace(
        estimate,
        unbiased=unbiased,
        standard_error=_jackknife_error(without_block),
        total_standard_error=float(_jackknife_error(totals)),
    )


def _block_edges(evidence: Evidence, n_blocks: int) -> list[int]:
    """Return the rows where blocks begin, and the number of samples; half lie in each half."""
    if n_blocks < MIN_JACKKNIFE_BLOCKS or n_blocks % 2:
        raise ParameterError(
            f"`jackknife={n_blocks}` must be 0, or an even number of blocks from "
            f"{MIN_JACKKNIFE_BLOCKS} on."
        )
    n = evidence.n_samples
    middle = n // 2
    n_per_half = n_blocks // 2
    edges = [middle * block // n_per_half for block in range(n_per_half)]
    edges += [middle + (n - middle) * block // n_per_half for block in range(n_per_half + 1)]
    if min(np.diff(edges)) < evidence.rank:
        raise DataError(
            f"`jackknife={n_blocks}` blocks of {n} samples hold fewer than the {evidence.rank} "
            "independent readouts; take fewer blocks, or more samples."
        )
    return edges


def _evidence_without_blocks(evidence: Evidence, edges: list[int]) -> Iterator[Evidence]:
    """Yield the evidence without each block, in which one half is shorter by that block."""
    *blocks, _ = summarise_between(
        evidence.samples, evidence.engine, evidence.preconditioner, edges
    )
    n_per_half = len(blocks) // 2
    first_half, second_half = evidence.halves
    pairs = [(shorter, second_half) for shorter in _all_but_one(blocks[:n_per_half])]
    pairs += [(first_half, shorter) for shorter in _all_but_one(blocks[n_per_half:])]
    for halves in pairs:
        yield replace(evidence, whole=combine(*halves), halves=halves)


def _all_but_one(blocks: list[Summary]) -> list[Summary]:
    """Return, for each block, the summary of all other blocks.

    It combines the blocks in front of that block with the blocks after it.
    """
    beginnings = list(accumulate(blocks[:-1], combine))  # blocks 0, 0 to 1, ...
    backwards = accumulate(reversed(blocks[1:]), lambda end, block: combine(block, end))
    ends = list(backwards)[::-1]  # blocks 1 to the last, 2 to the last, ...
    without_one = [ends[0]]
    for beginning, end in zip(beginnings[:-1], ends[1:], strict=True):
        without_one.append(combine(beginning, end))
    return [*without_one, beginnings[-1]]


def _jackknife_error(without_block: Floats) -> Floats:
    """Return the jackknife's standard error from values without each block, (blocks, ...)."""
    n_blocks = len(without_block)
    deviations = without_block - without_block.mean(axis=0)
    return np.sqrt((n_blocks - 1) / n_blocks * np.sum(deviations**2, axis=0))
