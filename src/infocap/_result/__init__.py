"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import CapacityResult
from ._files import load_result
from ._is_result import is_result

__all__ = ["CapacityResult", "is_result", "load_result"]
