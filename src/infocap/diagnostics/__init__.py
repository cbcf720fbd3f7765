"""Checks: one mistake per function, in two tables.

What they find is kept in the result and shown wherever it is.

A check of the answer is a function of a `Case` that yields `Check` sentences;
``CHECKS["mine"] = function`` adds one. A test of the data is a function of an excerpt of its rows
that yields findings; ``DATA["in order"] = function`` adds one.
"""

from ..errors import Check
from ._case import Case
from ._chance import level
from ._checks import CHECKS, DATA, run_checks
from ._finding import finding

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._checks import NEEDS as NEEDS
from ._checks import data_checks as data_checks
from ._checks import mistakes as mistakes
from ._checks import mistakes_of_channels as mistakes_of_channels
from ._checks import told_findings as told_findings
from ._excerpt import MAX_ROWS as MAX_ROWS
from ._excerpt import MAX_ROWS_FROM_FILES as MAX_ROWS_FROM_FILES
from ._excerpt import N_LOW_FUNCTIONS as N_LOW_FUNCTIONS
from ._recorded_law import Loop as Loop
from ._recorded_law import RecordedLawFacts as RecordedLawFacts
from ._recorded_law import ResidualFacts as ResidualFacts
from ._recorded_law import checks_of_recorded_law as checks_of_recorded_law
from ._reference_series import References as References
from ._references import CHANGES_CHECK as CHANGES_CHECK
from ._references import REFERENCES_CHECK as REFERENCES_CHECK
from ._references import STEADY as STEADY
from ._references import Steadiness as Steadiness
from ._references import look_at_references as look_at_references
from ._references import with_references as with_references
from ._values import CODES as CODES

__all__ = ["CHECKS", "DATA", "Case", "Check", "finding", "level", "run_checks"]
