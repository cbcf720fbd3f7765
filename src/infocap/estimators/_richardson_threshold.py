"""Algorithm 2 of the paper: extrapolate, then drop what is no larger than the most negative value."""

from __future__ import annotations

import numpy as np

from ..kernels import Evidence
from ._estimate import Estimate


def richardson_threshold(evidence: Evidence) -> Estimate:
    """Extrapolated capacities, those below minus the smallest of all set to zero."""
    extrapolated = 2 * evidence.raw - evidence.raw_half
    threshold = -np.min(extrapolated)
    return Estimate(
        np.where(extrapolated < threshold, 0.0, extrapolated), np.full_like(extrapolated, threshold)
    )
