"""The numerical core, functions of arrays alone: summarise samples, combine summaries, read capacities off them."""

from ._regression import Regression, inverse_of_gram
from ._summary import (
    Frame,
    Moments,
    Span,
    Summary,
    capacities,
    combine,
    coordinates,
    frame_of,
    orthonormal_factor,
    orthonormal_frame,
    span,
    squares,
    summarise,
    triangle_of_gram,
    zero_capacity_bound,
)

__all__ = [
    "Frame",
    "Moments",
    "Regression",
    "Span",
    "Summary",
    "capacities",
    "combine",
    "coordinates",
    "frame_of",
    "inverse_of_gram",
    "orthonormal_factor",
    "orthonormal_frame",
    "span",
    "squares",
    "summarise",
    "triangle_of_gram",
    "zero_capacity_bound",
]
