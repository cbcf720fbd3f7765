"""The plain empirical capacity C_N: biased upwards by about rank / N for every function."""

from __future__ import annotations

from ..kernels import Evidence
from ._estimate import Estimate


def raw(evidence: Evidence) -> Estimate:
    """C_N as it is, with the exact normalisation E[y²] = 1, so single values may exceed 1."""
    return Estimate(evidence.raw)
