"""Methods as data: each a function of the evidence, in one table that everything else reads."""

from ..kernels._summary import benjamini_hochberg
from ._control_variate import control_variate
from ._evidence import Evidence
from ._method import Estimate, Estimator, Method
from ._methods import METHODS
from ._pipeline import conclude, gather_evidence
from ._rules import chi2, raw, richardson_threshold, surrogate, threshold_richardson

__all__ = [
    "METHODS", "Estimate", "Estimator", "Evidence", "Method", "benjamini_hochberg", "chi2", "conclude",
    "control_variate", "gather_evidence", "raw", "richardson_threshold", "surrogate", "threshold_richardson",
]  # fmt: skip
