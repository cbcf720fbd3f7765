"""How many functions of its input a system computes, without naming them: repeats and factors."""

from ._repeats import Repeats, from_repeats
from ._spectra import Indicator, indicator, noise_scale

__all__ = ["Indicator", "Repeats", "from_repeats", "indicator", "noise_scale"]
