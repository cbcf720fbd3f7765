"""The optical spectrum analyser: average power in each resolution step, with its imperfections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._array import array_namespace, as_like
from ..._check import number, positive
from ...errors import ParameterError
from ...typing import Floats
from ._grid import CELL_GHZ, N_CELLS, ghz_per_nm


@dataclass(frozen=True)
class Detector:
    """Power density in mW / nm at equal steps of wavelength, interpolated linearly from the 1 GHz raster.

    Noise is drawn anew for every measurement: `additive_fraction` of the unmasked pulse's peak density,
    `additive_mw_per_nm` of any, and `relative` to each reading. Then readings below `floor_mw_per_nm` are
    lifted to it, and all are rounded to `quantum_db` steps.

    >>> Detector().readout_wavelength_nm[[0, -1]]
    array([1548.25, 1551.75])
    >>> len(Detector(step_nm=0.1).readout_wavelength_nm)
    36
    """

    span_nm: float = 3.5
    step_nm: float = 0.05
    wavelength_nm: float = 1550.0
    additive_fraction: float = 0.0
    additive_mw_per_nm: float = 0.0
    relative: float = 0.0
    quantum_db: float = 0.0
    floor_mw_per_nm: float = 0.0

    def __post_init__(self) -> None:
        for name in ("span_nm", "step_nm", "wavelength_nm"):
            positive(name, getattr(self, name))
        for name in ("additive_fraction", "additive_mw_per_nm", "relative", "quantum_db", "floor_mw_per_nm"):
            number(name, getattr(self, name), least=0.0)
        if self.span_nm * ghz_per_nm(self.wavelength_nm) > (N_CELLS - 2) * CELL_GHZ:
            raise ParameterError(f"span_nm={self.span_nm:g} is wider than the raster of {N_CELLS} GHz.")
        if self.quantum_db and not self.floor_mw_per_nm:
            raise ParameterError(
                "quantum_db rounds decibels; give floor_mw_per_nm too, since noise can make 0 mW."
            )

    @property
    def readout_wavelength_nm(self) -> Floats:
        """Where it reads."""
        count = int(self.span_nm / self.step_nm + 1e-9) + 1
        return self.wavelength_nm + (np.arange(count) - (count - 1) / 2) * self.step_nm

    @property
    def noisy(self) -> bool:
        """Whether two measurements of the same light differ."""
        return bool(self.additive_fraction or self.additive_mw_per_nm or self.relative)

    def read(self, density: Any) -> Any:
        """Noise-free readings (samples, readouts) of densities (samples, cells) on the 1 GHz raster."""
        xp = array_namespace(density)
        offset_ghz = -(self.readout_wavelength_nm - self.wavelength_nm) * ghz_per_nm(self.wavelength_nm)
        below = np.floor(offset_ghz / CELL_GHZ)
        share = as_like(offset_ghz / CELL_GHZ - below, density)
        low, high = (as_like((below + k).astype(int) % N_CELLS, density) for k in (0, 1))
        return xp.take(density, low, axis=1) * (1 - share) + xp.take(density, high, axis=1) * share

    def disturb(self, readings: Any, peak: float, noise: Any | None) -> Any:
        """What the instrument shows: readings with noise (2, samples, readouts), floor and rounding."""
        xp = array_namespace(readings)
        if noise is not None:
            additive = np.hypot(self.additive_fraction * peak, self.additive_mw_per_nm)
            readings = readings * (1 + self.relative * noise[0]) + additive * noise[1]
        if self.floor_mw_per_nm:
            readings = xp.maximum(readings, xp.full_like(readings, self.floor_mw_per_nm))
        if self.quantum_db:
            steps = xp.round(10 * xp.log10(readings) / self.quantum_db)
            readings = 10 ** (steps * self.quantum_db / 10)
        return readings
