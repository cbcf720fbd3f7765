"""The laser pulse after the amplifier: a hyperbolic secant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import number, positive
from ...errors import ParameterError, warn
from ...typing import Floats
from ._grid import ghz_per_nm

TIME_BANDWIDTH = 0.315  # FWHM of power in time times in frequency, of a sech pulse
FWHM_OF_SECH = 1.7627471740390859  # 2 arcosh(sqrt 2): FWHM of sech²(t) in units of its time constant
LOUDEST_DBM = 12.0


@dataclass(frozen=True)
class Pulse:
    """A(t) = sqrt(P_peak) sech(t / tau), at the average power that the unmasked pulse train has.

    >>> round(Pulse(power_dbm=7.1).peak_power_w, 1)
    107.4
    """

    power_dbm: float = 6.6
    width_nm: float = 0.6  # FWHM of the power spectrum
    wavelength_nm: float = 1550.0
    repetition_mhz: float = 10.0

    def __post_init__(self) -> None:
        number("power_dbm", self.power_dbm)
        for name in ("width_nm", "wavelength_nm", "repetition_mhz"):
            positive(name, getattr(self, name))
        if self.power_dbm > 40:
            raise ParameterError(f"power_dbm={self.power_dbm:g} is more than 10 W; give dBm, not mW.")
        if self.power_dbm > LOUDEST_DBM:
            warn(
                f"power_dbm={self.power_dbm:g} is far above the paper's range of -9.1 to 7.1 dBm: are these mW? "
                "The fibre model has no Raman scattering and no higher-order dispersion."
            )

    @property
    def duration_ps(self) -> float:
        """Full width at half maximum of the power."""
        return TIME_BANDWIDTH / (self.width_nm * ghz_per_nm(self.wavelength_nm) * 1e-3)

    @property
    def time_constant_ps(self) -> float:
        """tau of sech(t / tau)."""
        return self.duration_ps / FWHM_OF_SECH

    @property
    def peak_power_w(self) -> float:
        """Peak power, the energy of a pulse over twice its time constant."""
        energy_w_ps = 10 ** (self.power_dbm / 10) * 1e-3 / (self.repetition_mhz * 1e6) * 1e12
        return energy_w_ps / (2 * self.time_constant_ps)

    def amplitude(self, frequency_thz: Floats) -> Floats:
        """The spectral amplitude in sqrt(W) ps."""
        x = np.pi**2 * self.time_constant_ps * np.abs(frequency_thz)
        sech = 2 * np.exp(-x) / (1 + np.exp(-2 * x))
        return np.pi * self.time_constant_ps * np.sqrt(self.peak_power_w) * sech

    @property
    def density_unit(self) -> float:
        """mW / nm of average power in 1 W ps² of spectral amplitude squared."""
        return self.repetition_mhz * 1e6 * 1e-24 * ghz_per_nm(self.wavelength_nm) * 1e9 * 1e3
