"""Numerical steps on arrays alone: summaries of samples, ridge fits, and statistics of capacities."""

from ._moments import (
    MAX_CONDITION_OF_PRODUCTS,
    AddableSums,
    Frame,
    Moments,
    add_groups,
    condition_bound,
    frame_from_triangle,
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
from ._ridge import MIN_EXACT_LEVERAGE, Ridge, rows_at
from ._statistics import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    jackknife_error_of_stretches,
    serial_sums,
    zero_capacity_bound,
)

__all__ = [
    "MAX_CONDITION_OF_PRODUCTS",
    "MIN_EXACT_LEVERAGE",
    "RANK_TOLERANCE",
    "SMALLEST_DIVISOR",
    "AddableSums",
    "Frame",
    "Moments",
    "Ridge",
    "Span",
    "Summary",
    "add_groups",
    "benjamini_hochberg",
    "capacities",
    "combine",
    "condition_bound",
    "coordinates",
    "frame_from_triangle",
    "jackknife_error_of_stretches",
    "rows_at",
    "serial_sums",
    "span",
    "squares",
    "summarise",
    "triangle_of_gram",
    "zero_capacity_bound",
]
