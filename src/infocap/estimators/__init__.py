"""Estimators: each a function of the evidence, one published method a file."""

from collections.abc import Callable
from typing import Any

from ._chi2 import chi2
from ._control_variate import control_variate
from ._cross_fit import DICTIONARY_BYTES, MOST_CONTROLS, dictionary_size
from ._estimate import Estimate
from ._raw import raw
from ._richardson_threshold import richardson_threshold
from ._surrogate import surrogate
from ._threshold_richardson import threshold_richardson
from ._zeros import benjamini_hochberg

Estimator = Callable[..., Any]

ESTIMATORS: dict[str, Estimator] = {
    "control-variate": control_variate,
    "raw": raw,
    "threshold-richardson": threshold_richardson,
    "richardson-threshold": richardson_threshold,
    "surrogate": surrogate,
    "chi2": chi2,
}

__all__ = [
    "DICTIONARY_BYTES",
    "ESTIMATORS",
    "MOST_CONTROLS",
    "Estimate",
    "Estimator",
    "benjamini_hochberg",
    "chi2",
    "control_variate",
    "dictionary_size",
    "raw",
    "richardson_threshold",
    "surrogate",
    "threshold_richardson",
]
