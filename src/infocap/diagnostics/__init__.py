"""Checks: one mistake per function, in one table. What they find is kept in the result and shown wherever it is.

A check is a function of a `Case` that yields `Check` sentences; ``CHECKS["mine"] = function`` adds one.
"""

from ..errors import Check
from ._case import Case
from ._checks import CHECKS, run_checks

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._checks import DATA as DATA
from ._checks import NEEDS as NEEDS
from ._checks import WITH_MEMORY as WITH_MEMORY
from ._checks import mistakes as mistakes
from ._excerpt import MAX_ROWS as MAX_ROWS
from ._excerpt import MAX_ROWS_FROM_FILES as MAX_ROWS_FROM_FILES
from ._excerpt import N_LOW_FUNCTIONS as N_LOW_FUNCTIONS
from ._values import CODES as CODES

__all__ = ["CHECKS", "Case", "Check", "run_checks"]
