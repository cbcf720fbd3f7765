"""The photonic experiment, simulated: pulse, encoder, fibre, detector."""

from ._detector import Detector
from ._encoder import Encoder
from ._fibre import Fibre
from ._grid import Grid, ghz_per_nm
from ._pulse import Pulse
from ._system import FibreSystem

__all__ = ["Detector", "Encoder", "Fibre", "FibreSystem", "Grid", "Pulse", "ghz_per_nm"]
