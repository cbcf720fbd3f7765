"""Numerical steps on arrays alone: summaries of samples, ridge fits, statistics of capacities."""

from ._moments import (
    MAX_CONDITION_OF_PRODUCTS,
    AddableSums,
    Moments,
    Preconditioner,
    add_groups,
    condition_bound,
    preconditioner_from_triangle,
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
    sum_of_squares,
    summarise,
)
from ._ridge import MIN_EXACT_LEVERAGE, Ridge, rows_at
from ._statistics import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    effective_directions,
    jackknife_error_of_stretches,
    squared_mean_from_stretches,
    student_widening,
    zero_capacity_bound,
)

__all__ = [
    "MAX_CONDITION_OF_PRODUCTS",
    "MIN_EXACT_LEVERAGE",
    "RANK_TOLERANCE",
    "SMALLEST_DIVISOR",
    "AddableSums",
    "Moments",
    "Preconditioner",
    "Ridge",
    "Span",
    "Summary",
    "add_groups",
    "benjamini_hochberg",
    "capacities",
    "combine",
    "condition_bound",
    "coordinates",
    "effective_directions",
    "jackknife_error_of_stretches",
    "preconditioner_from_triangle",
    "rows_at",
    "span",
    "squared_mean_from_stretches",
    "student_widening",
    "sum_of_squares",
    "summarise",
    "triangle_of_gram",
    "zero_capacity_bound",
]
