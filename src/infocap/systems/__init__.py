"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from ._random_features import RandomFeatures

__all__ = ["RandomFeatures"]
