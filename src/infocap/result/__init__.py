"""What an estimation found: the result, its capacities for any target, and its files."""

from ._analyses import Drift, Factors, Growth
from ._capacity_result import PER_TERM, CapacityResult
from ._files import is_result, load_result, saved_attributes
from ._recorded_law import RecordedLaw

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._capacity_result import per_term as per_term
from ._files import READABLE_SUFFIXES as READABLE_SUFFIXES
from ._files import saved_metadata as saved_metadata
from ._latex import MIN_WRITTEN_ERROR as MIN_WRITTEN_ERROR
from ._latex import ROWS_OF_TABLE as ROWS_OF_TABLE
from ._target import Capacity as Capacity
from ._target import errors_by_degree as errors_by_degree
from ._target import known_sums_by_degree as known_sums_by_degree
from ._target import sum_over as sum_over
from ._target import sums_over_degrees as sums_over_degrees
from ._target import untold_degrees as untold_degrees

__all__ = [
    "PER_TERM",
    "CapacityResult",
    "Drift",
    "Factors",
    "Growth",
    "RecordedLaw",
    "is_result",
    "load_result",
    "saved_attributes",
]
