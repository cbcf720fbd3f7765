"""What an estimation found: the result, its capacities for any target, and its files."""

from ._capacity_result import PER_TERM, CapacityResult, Drift, Factors, Growth
from ._files import attributes, is_result, load_result

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._capacity_result import per_term as per_term
from ._files import SUFFIXES as SUFFIXES
from ._files import extras as extras
from ._target import sum_over as sum_over

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
