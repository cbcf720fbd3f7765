"""Information processing capacity: what does a physical system compute, and how sure are we?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported at once, because a forked process must forget the locks of its parent.
from . import _threads as _threads
from ._version import __version__

if TYPE_CHECKING:
    from . import (
        basis,
        diagnostics,
        dimension,
        errors,
        estimators,
        lab,
        photonics,
        plot,
        report,
        systems,
        tasks,
        theory,
    )  # fmt: skip
    from .basis import DelayedBasis, ProductBasis, delayed_basis, inputs, product_basis
    from .designs import draw, draw_weighted
    from .lab import read
    from .recording import Recording, find_steps, fold_trace
    from .result import CapacityResult, load_result
    from .workflow import (
        Sweep,
        calibrate,
        cite,
        compare,
        convergence,
        diagnose,
        estimate,
        explore,
        load_sweep,
        probe,
        rank_channels,
        sweep,
    )  # fmt: skip

__all__ = [
    "CapacityResult", "DelayedBasis", "ProductBasis", "Recording", "Sweep", "__version__", "basis",
    "calibrate", "cite", "compare", "convergence", "delayed_basis", "diagnose", "diagnostics",
    "dimension", "draw", "draw_weighted", "errors", "estimate", "estimators", "explore",
    "find_steps", "fold_trace", "inputs", "lab", "load_result", "load_sweep", "photonics", "plot",
    "probe", "product_basis", "rank_channels", "read", "report", "sweep", "systems", "tasks",
    "theory",
]  # fmt: skip

# The modules of which a user may write `infocap.basis` after `import infocap`.
_MODULES = (
    "basis", "diagnostics", "dimension", "errors", "estimators", "lab", "photonics", "plot",
    "report", "systems", "tasks", "theory",
)  # fmt: skip

# The module from which each other public name comes.
_ORIGINS = {
    "basis": ("DelayedBasis", "ProductBasis", "delayed_basis", "inputs", "product_basis"),
    "designs": ("draw", "draw_weighted"),
    "lab": ("read",),
    "recording": ("Recording", "find_steps", "fold_trace"),
    "result": ("CapacityResult", "load_result"),
    "workflow": (
        "Sweep", "calibrate", "cite", "compare", "convergence", "diagnose", "estimate", "explore",
        "load_sweep", "probe", "rank_channels", "sweep",
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, which keeps `import infocap` fast."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    for module, names in _ORIGINS.items():
        if name in names:
            value = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = value  # so that the next use of the name does not come here
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, also those not imported yet, for completion in notebooks."""
    return sorted({*globals(), *__all__})
