"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import PER_TERM, CapacityResult
from ._files import attributes, load_result
from ._is_result import is_result

__all__ = ["PER_TERM", "CapacityResult", "attributes", "is_result", "load_result"]
