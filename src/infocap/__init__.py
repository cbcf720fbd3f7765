"""Information processing capacity: what does a physical system compute, and how sure are we?"""

from importlib import import_module
from types import ModuleType

from . import basis, dimension, errors, estimators, experiment, systems, tasks, theory
from ._version import __version__
from .basis import ProductBasis, product_basis
from .designs import draw, draw_weighted
from .estimators import ESTIMATORS, Estimate
from .kernels import Evidence
from .recording import Recording, read
from .result import CapacityResult, load_result
from .workflow import (
    Part,
    analyse,
    combine,
    common_frame,
    compare,
    convergence,
    estimate,
    load_frame,
    load_part,
    probe,
    summarise,
    sweep,
)

__all__ = [
    "ESTIMATORS",
    "CapacityResult",
    "Estimate",
    "Evidence",
    "Part",
    "ProductBasis",
    "Recording",
    "__version__",
    "analyse",
    "basis",
    "combine",
    "common_frame",
    "compare",
    "convergence",
    "dimension",
    "draw",
    "draw_weighted",
    "errors",
    "estimate",
    "estimators",
    "experiment",
    "load_frame",
    "load_part",
    "load_result",
    "plot",
    "probe",
    "product_basis",
    "read",
    "report",
    "summarise",
    "sweep",
    "systems",
    "tasks",
    "theory",
]


def __getattr__(name: str) -> ModuleType:
    """Import `infocap.plot` and `infocap.report` when they are first used: matplotlib is heavy."""
    if name in ("plot", "report"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
