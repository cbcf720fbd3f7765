"""The photonic experiment, simulated: pulse, encoder, fibre, detector."""

from importlib import import_module
from types import ModuleType

from ._fibre import Fibre
from ._stages import Detector, Encoder, Grid, Pulse
from ._system import FibreSystem

__all__ = ["Detector", "Encoder", "Fibre", "FibreSystem", "Grid", "Pulse", "plot"]


def __getattr__(name: str) -> ModuleType:
    """Import `photonics.plot` when it is first used: matplotlib is heavy."""
    if name == "plot":
        return import_module(".plot", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
