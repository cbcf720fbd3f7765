"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from . import fibre
from ._networks import FeedForward, RandomFeatures
from .fibre import FibreSystem

__all__ = ["FeedForward", "FibreSystem", "RandomFeatures", "fibre"]
