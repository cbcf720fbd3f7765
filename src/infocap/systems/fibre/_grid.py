"""The raster on which light is represented: time window, frequency band, and the order of the points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import positive
from ...errors import ParameterError
from ...typing import Floats

SPEED_OF_LIGHT_NM_THZ = 299_792.458
CELL_GHZ = 1.0  # the raster of the spectral filter's phase noise, whatever the grid
N_CELLS = 1024  # of that raster: ±512 GHz


@dataclass(frozen=True)
class Grid:
    """Frequencies around the carrier, in the order of the fast Fourier transform.

    The spacing is 1 / `window_ps`; the window is a whole multiple of 1000 ps, so that the points include the
    1 GHz raster. Physical answers do not depend on the grid: they are read at the raster's points.

    >>> Grid().n_points, Grid(band_thz=2.048).n_points
    (1024, 2048)
    """

    window_ps: float = 1000.0
    band_thz: float = 1.024

    def __post_init__(self) -> None:
        positive("window_ps", self.window_ps)
        positive("band_thz", self.band_thz)
        per_cell = self.window_ps * CELL_GHZ * 1e-3
        doublings = np.log2(self.band_thz * 1e3 / (N_CELLS * CELL_GHZ))
        if per_cell != int(per_cell) or doublings < 0 or doublings != int(doublings):
            raise ParameterError(
                f"window_ps={self.window_ps:g} and band_thz={self.band_thz:g} do not fit the 1 GHz raster; "
                "the window can be 1000, 2000, ... ps and the band 1.024, 2.048, 4.096, ... THz."
            )

    @property
    def points_per_cell(self) -> int:
        """Grid points in 1 GHz."""
        return round(self.window_ps * CELL_GHZ * 1e-3)

    @property
    def n_points(self) -> int:
        """Number of points, in time and in frequency."""
        return round(self.window_ps * self.band_thz)

    @property
    def spacing_thz(self) -> float:
        """Distance of neighbouring frequencies."""
        return 1.0 / self.window_ps

    @property
    def frequency_thz(self) -> Floats:
        """Frequencies relative to the carrier."""
        return np.fft.fftfreq(self.n_points, 1 / (self.n_points * self.spacing_thz))


def ghz_per_nm(wavelength_nm: float) -> float:
    """How many GHz of frequency are 1 nm of wavelength, near a wavelength.

    >>> round(ghz_per_nm(1550.0), 1)
    124.8
    """
    return SPEED_OF_LIGHT_NM_THZ / wavelength_nm**2 * 1e3
