"""The numerical core: summarise blocks of samples, combine the summaries, read capacities off them."""

from ._evidence import Evidence, gather
from ._factor import orthonormal_factor
from ._summary import Span, Summary, capacities, combine, coordinates, span, summarise
from ._walk import Walk, row_blocks

__all__ = [
    "Evidence",
    "Span",
    "Summary",
    "Walk",
    "capacities",
    "combine",
    "coordinates",
    "gather",
    "orthonormal_factor",
    "row_blocks",
    "span",
    "summarise",
]
