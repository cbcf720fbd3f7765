"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from ._find import find
from ._measure import measure, parameter_names
from ._networks import FeedForward, RandomFeatures
from ._reservoirs import DelayLine, DelayReservoir, EchoState, check_fading

__all__ = [
    "DelayLine", "DelayReservoir", "EchoState", "FeedForward", "RandomFeatures", "check_fading",
    "find", "measure", "parameter_names",
]  # fmt: skip
