"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import CapacityResult
from ._files import is_result, load_result

__all__ = ["CapacityResult", "is_result", "load_result"]
