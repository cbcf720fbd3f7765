"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from . import fibre
from ._random_features import RandomFeatures
from .fibre import FibreSystem

__all__ = ["FibreSystem", "RandomFeatures", "fibre"]
