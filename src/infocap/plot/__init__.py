"""Figures: functions that take a result and optional axes, and return the axes."""

from ._capacity_accuracy import capacity_accuracy
from ._capacity_bars import capacity_bars
from ._capacity_matrix import capacity_matrix
from ._compare import compare
from ._convergence import convergence
from ._demand_supply import demand_supply
from ._fibre_stages import fibre_stages
from ._growth import growth
from ._style import COLOURS, DOUBLE_MM, SINGLE_MM, STYLE

__all__ = [
    "COLOURS",
    "DOUBLE_MM",
    "SINGLE_MM",
    "STYLE",
    "capacity_accuracy",
    "capacity_bars",
    "capacity_matrix",
    "compare",
    "convergence",
    "demand_supply",
    "fibre_stages",
    "growth",
]
