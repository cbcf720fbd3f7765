"""Shuffled surrogates (Kubota et al. 2021): keep what beats every random pairing of inputs and readouts."""

from __future__ import annotations

import numpy as np

from .._check import whole_number
from ..errors import ParameterError
from ..kernels import SHUFFLE_BYTES, Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife


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
    if evidence.walk.root_weights is not None:
        raise ParameterError("method 'surrogate' shuffles samples and takes no weights; use another method.")
    largest = np.zeros_like(evidence.raw)
    for shuffle in evidence.shuffled(n_surrogates, shuffle_seed):
        np.maximum(largest, shuffle, out=largest)
    c, threshold = evidence.raw / evidence.target_power, largest / evidence.target_power
    estimate = Estimate(np.where(c > threshold * (1 + 1e-12), c, 0.0), threshold)
    return with_jackknife(evidence, estimate, lambda part: part.raw, jackknife, normalised=True)


def surrogate_bytes(n_samples: int, n_readouts: int) -> float:
    """Memory that shuffles take: all readouts, one shuffle of them at least, and an order."""
    return 8.0 * n_samples * (3 * n_readouts + 2) + SHUFFLE_BYTES
