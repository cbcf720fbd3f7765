"""Figures: functions that draw a result on axes, given or new, and return the axes."""

from ._capacity import capacity_bars, capacity_matrix
from ._compare import compare
from ._run import convergence, drift, extra_value, growth, indicator
from ._sequences import capacity_by_delay, degree_bars, delay_matrix, memory_function
from ._style import COLOURS, DOUBLE_MM, SINGLE_MM, STYLE, save, width

__all__ = [
    "COLOURS", "DOUBLE_MM", "SINGLE_MM", "STYLE", "capacity_bars", "capacity_by_delay",
    "capacity_matrix", "compare", "convergence", "degree_bars", "delay_matrix", "drift",
    "extra_value", "growth", "indicator", "memory_function", "save", "width",
]  # fmt: skip
