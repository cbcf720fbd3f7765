"""Algorithm 2 of the paper: extrapolate, then drop what is no larger than the most negative value."""

from __future__ import annotations

import numpy as np

from ..kernels import Evidence
from ._estimate import Estimate
from ._jackknife import with_jackknife


def richardson_threshold(evidence: Evidence, *, jackknife: int = 0) -> Estimate:
    """Extrapolated capacities, those below minus the smallest of all set to zero."""
    extrapolated = evidence.extrapolated
    threshold = -np.min(extrapolated)
    capacity = np.where(extrapolated < threshold, 0.0, extrapolated)
    estimate = Estimate(capacity, np.full_like(extrapolated, threshold))
    return with_jackknife(evidence, estimate, lambda part: part.extrapolated, jackknife)
