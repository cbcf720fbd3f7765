"""The numerical core, functions of arrays alone: summarise samples, combine summaries, read capacities off them."""

from ._summary import Moments, Ridge, capacities, combine, coordinates, span, summarise

__all__ = ["Moments", "Ridge", "capacities", "combine", "coordinates", "span", "summarise"]
