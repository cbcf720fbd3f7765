"""The plain empirical capacity C_N: biased upwards by about rank / N for every function."""

from __future__ import annotations

from ..kernels import Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife


def raw(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """C_N as it is, with the exact normalisation E[y²] = 1, so single values may exceed 1.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="raw").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    return with_jackknife(evidence, Estimate(evidence.raw), lambda part: part.raw, jackknife)
