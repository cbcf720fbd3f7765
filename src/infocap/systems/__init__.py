"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts), with memory or without."""

from . import fibre
from ._fading import check_fading
from ._networks import FeedForward, RandomFeatures
from ._reservoirs import DelayLine, DelayReservoir, EchoState
from .fibre import FibreSystem

__all__ = [
    "DelayLine", "DelayReservoir", "EchoState", "FeedForward", "FibreSystem", "RandomFeatures",
    "check_fading", "fibre",
]  # fmt: skip
