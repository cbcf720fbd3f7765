"""Checks: one mistake per function, in one table. What they find is kept in the result and shown wherever it is.

A check is a function of a `Case` that yields `Check` sentences; ``CHECKS["mine"] = function`` adds one.
"""

from ..errors import Check
from ._checks import CHECKS, Case, run_checks

__all__ = ["CHECKS", "Case", "Check", "run_checks"]
