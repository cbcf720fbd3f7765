"""Methods that estimate capacities: each is a function of the `Evidence`, in one table, `METHODS`.

The way from data to a result has two steps. `gather_evidence` goes through the rows once and keeps
what every method needs; `conclude` runs one method on it and puts everything into a result.
"""

from ..kernels._summary import benjamini_hochberg
from ._evidence import Evidence
from ._method import Estimate, Estimator, Method
from ._methods import METHODS
from ._pipeline import conclude, gather_evidence

__all__ = [
    "METHODS",
    "Estimate",
    "Estimator",
    "Evidence",
    "Method",
    "benjamini_hochberg",
    "conclude",
    "gather_evidence",
]
