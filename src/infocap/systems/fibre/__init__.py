"""The photonic experiment, simulated: pulse, encoder, fibre, detector."""

from ._fibre import Fibre
from ._stages import Detector, Encoder, Grid, Pulse, ghz_per_nm
from ._system import FibreSystem

__all__ = ["Detector", "Encoder", "Fibre", "FibreSystem", "Grid", "Pulse", "ghz_per_nm"]
