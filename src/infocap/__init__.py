"""Information processing capacity: what does a physical system compute, and how sure are we?"""

from importlib import import_module
from typing import Any

from . import basis, diagnostics, dimension, errors, estimators, systems, theory
from ._version import __version__
from .basis import DelayedBasis, ProductBasis, delayed_basis, inputs, product_basis
from .designs import draw, draw_weighted
from .recording import Recording
from .result import CapacityResult, load_result
from .workflow import calibrate, compare, convergence, diagnose, estimate, explore, probe, sweep

__all__ = [
    "CapacityResult", "DelayedBasis", "ProductBasis", "Recording", "__version__", "basis", "calibrate",
    "compare", "convergence", "delayed_basis", "diagnose", "diagnostics", "dimension", "draw", "draw_weighted", "errors",
    "estimate", "estimators", "explore", "inputs", "lab", "load_result", "photonics", "plot", "probe",
    "product_basis", "read", "report", "sweep", "systems", "tasks", "theory",
]  # fmt: skip

# Imported when they are first used: matplotlib, SQLite and the command line are heavy, and an estimation needs none.
IMPORTED_ON_FIRST_USE = ("lab", "photonics", "plot", "report", "tasks")


def __getattr__(name: str) -> Any:
    """Import the laboratory, the applications and the pictures when they are first used."""
    if name in IMPORTED_ON_FIRST_USE:
        return import_module(f".{name}", __name__)
    if name == "read":
        return import_module(".lab", __name__).read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
