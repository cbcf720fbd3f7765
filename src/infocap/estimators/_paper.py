"""The paper's methods: the raw capacity, Algorithm 1 and Algorithm 2, to the letter."""

from __future__ import annotations

import numpy as np

from .._check import one_of
from ._evidence import Evidence
from ._jackknife import with_jackknife
from ._method import Estimate, above_one

BOUNDS = ("cauchy-schwarz", "data")


def raw(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """C_N as it is, with the exact normalisation E[y²] = 1, so single values may exceed 1.

    It is biased upwards by about rank / N for every function.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    return with_jackknife(evidence, Estimate(evidence.raw), lambda part: part.raw, jackknife)


def threshold_richardson(
    evidence: Evidence, *, bound: str = "cauchy-schwarz", jackknife: int = 0
) -> Estimate:
    """Algorithm 1: capacities above their own zero-capacity bound, extrapolated to infinite N.

    ``bound="cauchy-schwarz"`` is the paper's, sqrt(S_N E[y^4]) / N. ``bound="data"`` is the quantity it
    bounds, mean(leverage y²) / N, estimated from the data: for heavy-tailed inputs, where the paper's bound
    exceeds 1, it is the one that can be used. `jackknife` blocks, such as 16, give error bars.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="threshold-richardson").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    one_of("bound", bound, BOUNDS)
    data = bound == "data"
    threshold = evidence.leverage_bound if data else evidence.zero_capacity_bound
    capacity = np.where(evidence.raw <= threshold, 0.0, np.maximum(evidence.extrapolated, 0.0))
    remedy = "" if data else ", or pass `bound='data'` for the bound mean(leverage·y²)/N"
    estimate = Estimate(capacity, threshold, checks=above_one(threshold, remedy))
    return with_jackknife(evidence, estimate, lambda part: part.extrapolated, jackknife)


def richardson_threshold(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """Algorithm 2: extrapolated capacities, those below minus the smallest of all set to zero.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="richardson-threshold").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    extrapolated = evidence.extrapolated
    threshold = np.full_like(extrapolated, -np.min(extrapolated))
    capacity = np.where(extrapolated < threshold, 0.0, extrapolated)
    estimate = Estimate(capacity, threshold, checks=above_one(threshold))
    return with_jackknife(evidence, estimate, lambda part: part.extrapolated, jackknife)
