"""Numerical steps on arrays alone: summaries of samples, ridge fits, and statistics of capacities."""

from ._moments import (
    GOOD_CONDITION,
    Frame,
    Moments,
    Sums,
    add_groups,
    condition_bound,
    frame_of,
    triangle_of_gram,
)
from ._projection import (
    RANK_TOLERANCE,
    Span,
    Summary,
    capacities,
    combine,
    coordinates,
    span,
    squares,
    summarise,
)
from ._ridge import EXACT_ABOVE, Ridge, rows_at
from ._statistics import TINY, benjamini_hochberg, serial_sums, stretch_error, zero_capacity_bound

__all__ = [
    "EXACT_ABOVE",
    "GOOD_CONDITION",
    "RANK_TOLERANCE",
    "TINY",
    "Frame",
    "Moments",
    "Ridge",
    "Span",
    "Summary",
    "Sums",
    "add_groups",
    "benjamini_hochberg",
    "capacities",
    "combine",
    "condition_bound",
    "coordinates",
    "frame_of",
    "rows_at",
    "serial_sums",
    "span",
    "squares",
    "stretch_error",
    "summarise",
    "triangle_of_gram",
    "zero_capacity_bound",
]
