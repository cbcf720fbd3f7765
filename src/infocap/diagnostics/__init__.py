"""Checks: one mistake per function, in one table. What they find is kept in the result and shown wherever it is.

A check is a function of a `Case` that yields `Check` sentences; ``CHECKS["mine"] = function`` adds one.
"""

from ..errors import Check
from ._checks import CHECKS, Case, run_checks

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._checks import DATA as DATA
from ._checks import NEEDS as NEEDS
from ._checks import WITH_MEMORY as WITH_MEMORY
from ._checks import mistakes as mistakes
from ._stretch import FUNCTIONS as FUNCTIONS
from ._stretch import LONGEST as LONGEST
from ._stretch import SHORT as SHORT

__all__ = ["CHECKS", "Case", "Check", "run_checks"]
