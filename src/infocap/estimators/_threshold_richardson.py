"""Algorithm 1 of the paper: drop what noise alone explains, then extrapolate."""

from __future__ import annotations

import numpy as np

from .._check import one_of
from ..kernels import Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife

BOUNDS = ("cauchy-schwarz", "data")


def threshold_richardson(
    evidence: Evidence, *, bound: str = "cauchy-schwarz", jackknife: int = 0
) -> Estimate:
    """Capacities above their own zero-capacity bound, extrapolated to infinite N.

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
    c = evidence.raw
    threshold = evidence.leverage_bound if bound == "data" else evidence.zero_capacity_bound
    capacity = np.where(c <= threshold, 0.0, np.maximum(evidence.extrapolated, 0.0))
    return with_jackknife(evidence, Estimate(capacity, threshold), lambda part: part.extrapolated, jackknife)
