"""The numerical core, functions of arrays alone: summarise samples, combine summaries, read capacities off them."""

from ._regression import Ridge
from ._summary import Moments, capacities, combine, coordinates, span, summarise

__all__ = ["Moments", "Ridge", "capacities", "combine", "coordinates", "span", "summarise"]
