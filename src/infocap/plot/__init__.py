"""Figures: functions that take a result and optional axes, and return the axes."""

from ._capacity import capacity_bars, capacity_matrix
from ._fibre_stages import fibre_stages
from ._run import convergence, drift, extra_value, growth, indicator
from ._sequences import capacity_by_delay, degree_bars, delay_matrix, memory_function
from ._style import COLOURS, DOUBLE_MM, SINGLE_MM, STYLE, save, width
from ._tasks import capacity_accuracy, compare, demand_supply

__all__ = [
    "COLOURS", "DOUBLE_MM", "SINGLE_MM", "STYLE", "capacity_accuracy", "capacity_bars", "capacity_by_delay",
    "capacity_matrix", "compare", "convergence", "degree_bars", "delay_matrix", "demand_supply", "drift",
    "extra_value", "fibre_stages", "growth", "indicator", "memory_function", "save", "width",
]  # fmt: skip
