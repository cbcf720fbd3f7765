"""The field's two older rules for zeros: the chi-squared quantile, and shuffled surrogates."""

from __future__ import annotations

import numpy as np

from .._check import probability, whole_number
from ..errors import ParameterError
from ._evidence import SHUFFLE_BYTES, Evidence
from ._jackknife import with_jackknife
from ._method import Estimate, above_one


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
    threshold = np.full_like(c, factor * float(chdtri(evidence.rank, p)) / evidence.n_samples)
    estimate = Estimate(np.where(c > threshold, c, 0.0), threshold, checks=above_one(threshold))
    return with_jackknife(evidence, estimate, lambda part: part.raw, jackknife, normalised=True)


def surrogate(
    evidence: Evidence, *, n_surrogates: int = 200, shuffle_seed: int | None = 0, jackknife: int = 0
) -> Estimate:
    """Capacities above the largest of `n_surrogates` shuffles, zero below; no bias correction.

    Both use the empirical mean of y², as the authors do, so no capacity exceeds 1. The constant function is
    the same after any shuffle and therefore always comes out as zero.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="surrogate").capacity.round(2)
    array([0.  , 0.84, 0.  , 0.16, 0.  ])
    """
    n_surrogates = whole_number("n_surrogates", n_surrogates, 1)
    if evidence.samples.root_weights is not None:
        raise ParameterError("method 'surrogate' shuffles samples and takes no weights; use another method.")
    largest = np.zeros_like(evidence.raw)
    for shuffle in evidence.shuffled(n_surrogates, shuffle_seed):
        np.maximum(largest, shuffle, out=largest)
    c, threshold = evidence.raw / evidence.target_power, largest / evidence.target_power
    capacity = np.where(c > threshold * (1 + 1e-12), c, 0.0)
    estimate = Estimate(capacity, threshold, checks=above_one(threshold))
    return with_jackknife(evidence, estimate, lambda part: part.raw, jackknife, normalised=True)


def surrogate_bytes(n_samples: int, n_columns: int, terms: int, **options: object) -> float:
    """Memory that shuffles take: all readouts, one shuffle of them at least, and an order."""
    return 8.0 * n_samples * (3 * n_columns + 2) + SHUFFLE_BYTES
