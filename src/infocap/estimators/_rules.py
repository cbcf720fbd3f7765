"""The paper's methods, the field's two older rules for zeros, and error bars for all of them by the jackknife."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import scipy

from .._validation import one_of, probability, whole_number
from ..errors import Check, DataError, ParameterError
from ..kernels._summary import Summary, combine, squares
from ..samples._samples import Samples, row_shares
from ..samples._table import Table
from ..typing import Floats
from ._evidence import Evidence, square_sums, summaries
from ._method import Estimate


def raw(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """C_N as it is, with the exact normalisation E[y²] = 1, so single values may exceed 1.

    It is biased upwards by about rank / N for every function.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    return _estimated(evidence, evidence.raw, None, lambda part: part.raw, jackknife)


def threshold_richardson(
    evidence: Evidence, *, bound: str = "cauchy-schwarz", jackknife: int = 0
) -> Estimate:
    """Algorithm 1: capacities above their own zero-capacity bound, extrapolated to infinite N.

    ``bound="cauchy-schwarz"`` is the paper's, sqrt(S_N E[y^4]) / N. ``bound="data"`` is the quantity it
    bounds, mean(leverage y²) / N, estimated from the data: for heavy-tailed inputs, where the paper's bound
    exceeds 1, it is the one that can be used. `jackknife` blocks, such as 16, give error bars.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="threshold-richardson").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    one_of("bound", bound, ("cauchy-schwarz", "data"))
    data = bound == "data"
    threshold = evidence.leverage_bound if data else evidence.zero_capacity_bound
    capacity = np.where(evidence.raw <= threshold, 0.0, np.maximum(evidence.extrapolated, 0.0))
    remedy = "" if data else ", or pass `bound='data'` for the bound mean(leverage·y²)/N"
    return _estimated(
        evidence, capacity, threshold, lambda part: part.extrapolated, jackknife, remedy=remedy
    )


def richardson_threshold(
    evidence: Evidence, *, refined: bool = False, jackknife: int = 0
) -> Estimate:
    """Algorithm 2: extrapolated capacities, those below minus the smallest of all set to zero.

    The smallest is a single number and fluctuates. The paper suggests to look at all negative values instead:
    with `refined`, they are taken for the lower half of a normal distribution, whose width in units of sqrt(E[y^4]) is
    that of all functions without capacity; the threshold is what the largest of so many reaches on average.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="richardson-threshold").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    extrapolated = evidence.extrapolated
    threshold = np.full_like(extrapolated, -np.min(extrapolated))
    if refined:
        each = np.sqrt(evidence.fourth_moments)
        below = (extrapolated / each)[extrapolated < 0]
        width = np.sqrt(np.mean(below**2)) if len(below) else 0.0
        threshold = width * np.sqrt(2 * np.log(max(2 * len(below), 2))) * each
    capacity = np.where(extrapolated < threshold, 0.0, extrapolated)
    return _estimated(evidence, capacity, threshold, lambda part: part.extrapolated, jackknife)


def chi2(
    evidence: Evidence, *, p: float = 1e-4, factor: float = 2.0, jackknife: int = 0
) -> Estimate:
    """Capacities above `factor` times the (1 - p) quantile of chi²(rank) / N, zero below; no bias correction.

    N C_N of a target independent of the readouts is about chi-squared with as many degrees of freedom as
    there are readouts; the authors take p = 1e-4 and double it for safety. They use the empirical mean of y².

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="chi2").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    probability("p", p)
    c = evidence.raw / evidence.target_power
    threshold = np.full_like(
        c, factor * float(scipy.special.chdtri(evidence.rank, p)) / evidence.n_samples
    )
    capacity = np.where(c > threshold, c, 0.0)
    return _estimated(
        evidence, capacity, threshold, lambda part: part.raw, jackknife, normalised=True
    )


def surrogate(
    evidence: Evidence, *, n_surrogates: int = 200, shuffle_seed: int | None = 0, jackknife: int = 0
) -> Estimate:
    """Capacities above the largest of `n_surrogates` shuffles, zero below; no bias correction.

    Both use the empirical mean of y², as the authors do, so no capacity exceeds 1. The constant function is
    the same after any shuffle and therefore always comes out as zero.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="surrogate").capacity.round(2)
    array([0.  , 0.84, 0.  , 0.16, 0.  ])
    """
    n_surrogates = whole_number("n_surrogates", n_surrogates, 1)
    if evidence.samples.root_weights is not None:
        raise ParameterError(
            "method 'surrogate' shuffles samples and takes no weights; use another method."
        )
    largest, table, generator = (
        np.zeros_like(evidence.raw),
        evidence.samples.u,
        np.random.default_rng(shuffle_seed),
    )
    u = table.read(0, table.shape[0], on_host=True)
    for _ in range(
        n_surrogates
    ):  # inputs are fewer numbers than readouts, and shuffled in their place
        moved = np.empty_like(u)
        moved[generator.permutation(len(u))] = u
        samples = replace(evidence.samples, u=Table(moved, "u"))
        sums = evidence.engine.fold(samples, partial(_products, **evidence.whitener))
        np.maximum(largest, squares(sums.T / evidence.n_samples), out=largest)
    c, threshold = evidence.raw / evidence.target_power, largest / evidence.target_power
    capacity = np.where(c > threshold * (1 + 1e-12), c, 0.0)
    return _estimated(
        evidence, capacity, threshold, lambda part: part.raw, jackknife, normalised=True
    )


def _products(samples: Samples, start: int, stop: int, **frame: Any) -> Any:
    """The sums of y z over some rows, (terms, rank)."""
    rows = [(start, stop)] if samples.x.on_device else row_shares(start, stop, samples.n_columns)
    return samples.basis.project(
        (samples.inputs(*part), samples.readouts(*part, **frame)) for part in rows
    )


def _estimated(
    evidence: Evidence,
    capacity: Floats,
    threshold: Floats | None,
    values: Callable[[Evidence], Floats],
    jackknife: int,
    *,
    normalised: bool = False,
    remedy: str = "",
) -> Estimate:
    """The estimate, a check of its thresholds, and standard errors from `jackknife` blocks; none where that is 0.

    `values` are the capacities before any are set to zero. Blocks are stretches of the rows, half of them in
    each half of the data, so that extrapolation from halves stays what it is. On low-discrepancy points
    the error bars are too long: a sequence with a gap is no longer even. Where the method divides by the
    sample mean of y² (`normalised`), so do the values.
    """
    estimate = Estimate(capacity, threshold)
    if threshold is not None and (above := int(np.sum(threshold > 1 + 1e-9))):  # not by rounding
        text = (
            f"the zero-capacity threshold exceeds 1 for {above} of {len(threshold)} functions: no true "
            f"capacity can pass it; lower the degree or take more samples{remedy}."
        )
        estimate = replace(estimate, checks=(Check(text, functions=above),))
    if whole_number("jackknife", jackknife, 0) == 0:
        return estimate
    if jackknife < 4 or jackknife % 2:
        raise ParameterError(
            f"`jackknife={jackknife}` must be 0, or an even number of blocks from 4 on."
        )
    n, middle = evidence.n_samples, evidence.n_samples // 2
    each = jackknife // 2
    edges = [middle * b // each for b in range(each)] + [
        middle + (n - middle) * b // each for b in range(each + 1)
    ]
    if min(np.diff(edges)) < evidence.rank:
        raise DataError(
            f"`jackknife={jackknife}` blocks of {n} samples hold fewer than the {evidence.rank} independent readouts; "
            "take fewer blocks, or more samples."
        )
    *parts, _ = summaries(evidence.samples, evidence.engine, evidence.frame, edges)
    first, second = parts[:each], parts[each:]
    left_out = [(part, evidence.halves[1]) for part in _all_but_one(first)]
    left_out += [(evidence.halves[0], part) for part in _all_but_one(second)]
    found = np.array(
        [values(replace(evidence, whole=combine(*halves), halves=halves)) for halves in left_out]
    )
    whole = values(evidence)
    if normalised:
        powers = np.array(evidence.engine.fold(evidence.samples, square_sums, edges=edges))
        left = n - np.diff(edges)
        found *= left[:, None] / (powers.sum(axis=0) - powers)
        whole = whole / evidence.target_power
    return replace(
        estimate,
        unbiased=whole,
        standard_error=_standard_error(found),
        total_standard_error=float(_standard_error(found[:, capacity > 0].sum(axis=1))),
    )


def _all_but_one(parts: list[Summary]) -> list[Summary]:
    """The summaries of all parts but each one, from those of beginnings and ends."""
    beginnings = [None, *accumulate(parts[:-1], combine)]
    ends = [*list(accumulate(parts[:0:-1], lambda a, b: combine(b, a)))[::-1], None]
    return [
        combine(*(part for part in pair if part is not None))
        for pair in zip(beginnings, ends, strict=True)
    ]


def _standard_error(values: Floats) -> Floats:
    """The jackknife's standard error from values without each block."""
    count = len(values)
    return np.sqrt((count - 1) / count * np.sum((values - values.mean(axis=0)) ** 2, axis=0))
