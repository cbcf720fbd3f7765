"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import PER_TERM, CapacityResult, Drift, Factors, Growth
from ._files import attributes, is_result, load_result

__all__ = [
    "PER_TERM",
    "CapacityResult",
    "Drift",
    "Factors",
    "Growth",
    "attributes",
    "is_result",
    "load_result",
]
