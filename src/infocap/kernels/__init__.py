"""The numerical core: summarise blocks of samples, combine the summaries, read capacities off them."""

from ._bounds import zero_capacity_bound
from ._evidence import SHUFFLE_BYTES, Evidence, LeveragePower, LeverageSquares, gather
from ._factor import orthonormal_factor
from ._regression import LeastSquares, NoFit, Regression, Ridge, inverse_of_gram
from ._summary import (
    Span,
    Summary,
    capacities,
    combine,
    coordinates,
    orthonormal_frame,
    span,
    squares,
    summarise,
)
from ._walk import Summaries, Walk, block_bytes, in_order, row_blocks

__all__ = [
    "SHUFFLE_BYTES",
    "Evidence",
    "LeastSquares",
    "LeveragePower",
    "LeverageSquares",
    "NoFit",
    "Regression",
    "Ridge",
    "Span",
    "Summaries",
    "Summary",
    "Walk",
    "block_bytes",
    "capacities",
    "combine",
    "coordinates",
    "gather",
    "in_order",
    "inverse_of_gram",
    "orthonormal_factor",
    "orthonormal_frame",
    "row_blocks",
    "span",
    "squares",
    "summarise",
    "zero_capacity_bound",
]
