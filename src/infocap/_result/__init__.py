"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import CapacityResult
from ._files import load_result

__all__ = ["CapacityResult", "load_result"]
