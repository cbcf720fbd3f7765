"""How many functions of its input a system computes, without naming them: repeats, factors, spectra."""

from ._repeats import Repeats, from_repeats
from ._spectra import Indicator, effective_rank, indicator, noise_scale, participation_ratio

__all__ = [
    "Indicator",
    "Repeats",
    "effective_rank",
    "from_repeats",
    "indicator",
    "noise_scale",
    "participation_ratio",
]
