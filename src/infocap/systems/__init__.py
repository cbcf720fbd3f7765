"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from . import fibre
from ._feed_forward import FeedForward
from ._random_features import RandomFeatures
from .fibre import FibreSystem

__all__ = ["FeedForward", "FibreSystem", "RandomFeatures", "fibre"]
