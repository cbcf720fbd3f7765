"""The chi-squared rule (Dambre et al. 2012): keep what noise that ignores the inputs would not reach."""

from __future__ import annotations

import numpy as np

from .._check import probability
from ..kernels import Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife


def chi2(evidence: Evidence, *, p: float = 1e-4, factor: float = 2.0, jackknife: int = 0) -> Estimate:
    """Capacities above `factor` times the (1 - p) quantile of chi²(rank) / N, zero below; no bias correction.

    N C_N of a target independent of the readouts is about chi-squared with as many degrees of freedom as
    there are readouts; the authors take p = 1e-4 and double it for safety. They use the empirical mean of y².

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="chi2").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    probability("p", p)
    from scipy.special import chdtri

    c = evidence.raw / evidence.target_power
    threshold = factor * float(chdtri(evidence.rank, p)) / evidence.n_samples
    estimate = Estimate(np.where(c > threshold, c, 0.0), np.full_like(c, threshold))
    return with_jackknife(evidence, estimate, lambda part: part.raw, jackknife, normalised=True)
