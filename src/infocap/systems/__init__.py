"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts), with memory or without."""

from . import fibre
from ._networks import FeedForward, RandomFeatures
from ._reservoirs import DelayLine, DelayReservoir, EchoState, check_fading
from .fibre import FibreSystem

__all__ = [
    "DelayLine", "DelayReservoir", "EchoState", "FeedForward", "FibreSystem", "RandomFeatures",
    "check_fading", "fibre",
]  # fmt: skip
