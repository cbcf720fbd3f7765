"""The numerical core, functions of arrays alone: summarise samples, combine summaries, read capacities off them."""

from ._regression import Regression
from ._summary import Moments, capacities, combine, coordinates, span, summarise

__all__ = ["Moments", "Regression", "capacities", "combine", "coordinates", "span", "summarise"]
