"""Figures: functions that draw a result on axes, given or new, and return the axes."""

from ._capacity import capacity_bars, capacity_matrix, input_matrix
from ._channels import channels
from ._compare import compare
from ._finding import finding
from ._run import convergence, drift, extra_value, growth, indicator
from ._sequences import capacity_by_delay, degree_bars, delay_matrix, memory_function
from ._style import COLOURS, DOUBLE_MM, SINGLE_MM, STYLE, save, width

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._capacity import DEGREE_BAR_WIDTH as DEGREE_BAR_WIDTH
from ._capacity import KIND_NAMES as KIND_NAMES
from ._capacity import capacity_by_kind as capacity_by_kind
from ._style import MM_PER_INCH as MM_PER_INCH
from ._style import UNRELIABLE_COLOUR as UNRELIABLE_COLOUR
from ._style import axes_in_style as axes_in_style
from ._style import degree_axis as degree_axis
from ._style import package_style as package_style

__all__ = [
    "COLOURS", "DOUBLE_MM", "SINGLE_MM", "STYLE", "capacity_bars", "capacity_by_delay",
    "capacity_matrix", "channels", "compare", "convergence", "degree_bars", "delay_matrix", "drift",
    "extra_value", "finding", "growth", "indicator", "input_matrix", "memory_function", "save",
    "width",
]  # fmt: skip
