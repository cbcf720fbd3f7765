"""Algorithm 2 of the paper: extrapolate, then drop what is no larger than the most negative value."""

from __future__ import annotations

import numpy as np

from ..kernels import Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife


def richardson_threshold(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """Extrapolated capacities, those below minus the smallest of all set to zero.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="richardson-threshold").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    extrapolated = evidence.extrapolated
    threshold = -np.min(extrapolated)
    capacity = np.where(extrapolated < threshold, 0.0, extrapolated)
    estimate = Estimate(capacity, np.full_like(extrapolated, threshold))
    return with_jackknife(evidence, estimate, lambda part: part.extrapolated, jackknife)
