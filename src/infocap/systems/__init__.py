"""Built-in systems to measure: callables (samples, inputs) -> (samples, readouts)."""

from ._find import find
from ._networks import FeedForward, RandomFeatures
from ._period import find_period
from ._reservoirs import DelayLine, DelayReservoir, EchoState, check_fading

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._measure import is_instrument as is_instrument
from ._measure import measure as measure
from ._measure import parameter_names as parameter_names
from ._measure import system_of_instrument as system_of_instrument

__all__ = [
    "DelayLine",
    "DelayReservoir",
    "EchoState",
    "FeedForward",
    "RandomFeatures",
    "check_fading",
    "find",
    "find_period",
]
