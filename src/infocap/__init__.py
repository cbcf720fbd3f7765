"""Information processing capacity: what does a physical system compute, and how sure are we?"""

from importlib import import_module
from types import ModuleType
from typing import Any

from . import basis, checks, dimension, errors, estimators, experiment, systems, tasks, theory
from ._version import __version__
from .basis import DelayedBasis, ProductBasis, delayed_basis, inputs, product_basis
from .designs import draw, draw_weighted
from .estimators import ESTIMATORS, Estimate, Evidence
from .experiment import inspect
from .recording import Recording, read
from .result import CapacityResult, load_result
from .workflow import Comparison as _Comparison
from .workflow import analyse, calibrate, compare, conclude, convergence, estimate, evidence, explore, probe, sweep

__all__ = [
    "ESTIMATORS", "CapacityResult", "DelayedBasis", "Estimate", "Evidence", "ProductBasis", "Recording", "__version__",
    "analyse", "basis", "calibrate", "checks", "compare", "conclude", "convergence", "delayed_basis", "dimension",
    "draw", "draw_weighted", "errors", "estimate", "estimators", "evidence", "experiment", "explore", "inputs",
    "inspect", "load_result", "plot", "probe", "product_basis", "read", "report", "sweep", "systems", "tasks", "theory",
]  # fmt: skip


def _repr_html_(shown: Any) -> str:
    """What notebooks show of a result, a comparison, a recording, a plan or a basis."""
    return str(import_module(".report._notebook", __name__).notebook(shown))


for _kind in (CapacityResult, _Comparison, ProductBasis, Recording, experiment.Plan):
    _kind._repr_html_ = _repr_html_  # type: ignore[union-attr]


def __getattr__(name: str) -> ModuleType:
    """Import `infocap.plot` and `infocap.report` when they are first used: matplotlib is heavy."""
    if name in ("plot", "report"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
