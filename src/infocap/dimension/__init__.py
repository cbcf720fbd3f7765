"""How many functions of its input a system computes, without naming them: repeats and factors."""

from ._repeats import CapacityAtShots, Repeats, from_repeats
from ._spectra import Indicator, indicator, noise_scale

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._components import find_components as find_components
from ._components import number_of_components as number_of_components
from ._drift import MIN_REFERENCES as MIN_REFERENCES
from ._drift import motion_of_reference as motion_of_reference
from ._repeats import dead_channels as dead_channels
from ._spectra import readouts as readouts
from ._whitening import whiten as whiten

__all__ = ["CapacityAtShots", "Indicator", "Repeats", "from_repeats", "indicator", "noise_scale"]
