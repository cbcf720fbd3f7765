"""The stages of the photonic experiment beside the fibre: raster, pulse, encoder and detector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Annotated, Any

import numpy as np

from .._arrays import array_namespace, as_like, rotation, transforms
from .._validation import Checked, Count, Finite, NotNegative, Positive, one_of
from ..errors import ParameterError, warn
from ..typing import Floats, Integers

SPEED_OF_LIGHT_NM_THZ = 299_792.458
# The spectral filter's phase noise lives on a raster of 1 GHz, as in the authors' program, whatever the grid.
# It spans ±512 GHz, more than the filter and the spectrum analyser see.
N_CELLS = 1024
CELLS_GHZ = np.fft.fftfreq(N_CELLS, 1 / N_CELLS)
# Time-bandwidth product of a sech pulse: full widths at half maximum of its power in time and in frequency.
TIME_BANDWIDTH = 0.315
# Full width at half maximum of sech²(t) in units of its time constant, 2 arcosh(sqrt 2).
FWHM_OF_SECH = 1.7627471740390859
# Full width at half maximum of a Gaussian in units of its standard deviation, 2 sqrt(2 ln 2).
FWHM_OF_GAUSSIAN = 2.3548200450309493
# The paper goes up to 7.1 dBm; from here on a number of milliwatts is the likelier explanation.
LOUDEST_DBM = 12.0
# Full width at half maximum of the Gaussian that rounds the edges of the filter "smooth", relative to its own.
SMOOTHING = 0.25
FILTERS = ("flat-top", "gaussian", "smooth")
Filter = Annotated[str | None, partial(one_of, options=(*FILTERS, None))]
PhaseNoise = Annotated[str | None, partial(one_of, options=("cell", "bin", None))]


@dataclass(frozen=True)
class Grid(Checked):
    """Frequencies around the carrier, in the order of the fast Fourier transform.

    The spacing is 1 / `window_ps`; the window is a whole multiple of 1000 ps, so that the points include the
    1 GHz raster. Physical answers do not depend on the grid: they are read at the raster's points.

    >>> Grid().n_points, Grid(band_thz=2.048).n_points
    (1024, 2048)
    """

    window_ps: Positive = 1000.0
    band_thz: Positive = 1.024

    def __post_init__(self) -> None:
        super().__post_init__()
        per_cell = self.window_ps * 1e-3
        doublings = np.log2(self.band_thz * 1e3 / N_CELLS)
        if per_cell != int(per_cell) or doublings < 0 or doublings != int(doublings):
            raise ParameterError(
                f"window_ps={self.window_ps:g} and band_thz={self.band_thz:g} do not fit the 1 GHz raster; "
                "the window can be 1000, 2000, ... ps and the band 1.024, 2.048, 4.096, ... THz."
            )

    @property
    def points_per_cell(self) -> int:
        """Grid points in 1 GHz."""
        return round(self.window_ps * 1e-3)

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


@dataclass(frozen=True)
class Pulse(Checked):
    """A(t) = sqrt(P_peak) sech(t / tau), at the average power that the unmasked pulse train has.

    >>> round(Pulse(power_dbm=7.1).peak_power_w, 1)
    107.4
    """

    power_dbm: Finite = 6.6
    width_nm: Positive = 0.6  # FWHM of the power spectrum
    wavelength_nm: Positive = 1550.0
    repetition_mhz: Positive = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power_dbm > 40:
            raise ParameterError(
                f"power_dbm={self.power_dbm:g} is more than 10 W; give dBm, not mW."
            )
        if self.power_dbm > LOUDEST_DBM:
            warn(
                f"power_dbm={self.power_dbm:g} is far above the paper's range of -9.1 to 7.1 dBm, and the model has no "
                "Raman scattering and no higher-order dispersion; give less, in dBm and not in mW."
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


def nearest(array: Any, n_points: int) -> Any:
    """The points next to zero, from an array in the order of the Fourier transform."""
    half = n_points // 2
    return array_namespace(array).concat([array[:, :half], array[:, -half:]], axis=1)


def widened(array: Any, n_points: int, value: float = 0.0) -> Any:
    """More points far from zero, all of this value, for an array in the order of the Fourier transform."""
    xp = array_namespace(array)
    half = array.shape[1] // 2
    far = xp.full(
        (array.shape[0], n_points - 2 * half), value, dtype=array.dtype, device=array.device
    )
    return xp.concat([array[:, :half], far, array[:, half:]], axis=1) if far.shape[1] else array


@dataclass(frozen=True)
class Encoder(Checked):
    """Field mask sign(u) sqrt(abs(u)) in equal spectral bins, smoothed by the instrument's own filter.

    Input k is written into every bin b with b mod n_inputs = k, counted from short to long wavelength: two
    inputs alternate, five come in sequence, four times. Outside its span the filter transmits. With 0 there,
    u -> -u would be an exact symmetry and all odd degrees would vanish.

    Phase noise is drawn for each 1 GHz cell (the authors' program) or for each bin (the paper's text), on a
    raster that does not depend on the grid.

    A real filter is not calibrated equally well in all bins. A bin transmits the power T = abs(u) raised to
    1 + `exponent_spread` c, and turns the phase by `phase_spread_rad` c (1 - T), where each bin has a standard normal
    number c of its own that `calibration_seed` fixes for good: it belongs to the device, and is no noise.

    >>> Encoder(n_inputs=2).n_bins
    20
    >>> Encoder(n_inputs=3)
    Traceback (most recent call last):
    infocap.errors.ParameterError: `n_inputs=3` does not divide 20 bins; it can be one of [1, 2, 4, 5, 10, 20].
    """

    n_inputs: Count = 5
    n_bins: Count = 20
    span_nm: Positive = 2.5
    wavelength_nm: Positive = 1550.0
    filter: Filter = "flat-top"
    filter_ghz: Positive = 12.0  # full width at half maximum
    phase_noise: PhaseNoise = "cell"
    phase_noise_rad: NotNegative = 0.0015 * 2 * np.pi
    exponent_spread: NotNegative = 0.0
    phase_spread_rad: NotNegative = 0.0
    calibration_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_bins % self.n_inputs:
            fitting = [q for q in range(1, self.n_bins + 1) if self.n_bins % q == 0]
            raise ParameterError(
                f"`n_inputs={self.n_inputs}` does not divide {self.n_bins} bins; it can be one of {fitting}."
            )
        if self.span_nm * ghz_per_nm(self.wavelength_nm) > N_CELLS:
            raise ParameterError(
                f"span_nm={self.span_nm:g} is wider than the raster of {N_CELLS} GHz."
            )

    @cached_property
    def bin_of_cell(self) -> Integers:
        """The bin that each 1 GHz cell lies in; `n_bins` outside the span."""
        offset_nm = -CELLS_GHZ / ghz_per_nm(self.wavelength_nm)
        bins = np.floor((offset_nm / self.span_nm + 0.5) * self.n_bins).astype(int)
        return np.where(bins >= 0, np.minimum(bins, self.n_bins), self.n_bins)

    @property
    def n_noises(self) -> int:
        """How many random phases a sample needs."""
        return {"cell": N_CELLS, "bin": self.n_bins, None: 0}[self.phase_noise]

    def cells(self, u: Any, noise: Any | None) -> Any:
        """What is written into each 1 GHz cell (samples, cells), before the instrument's own filter."""
        xp, cells = array_namespace(u), as_like(self.bin_of_cell, u)
        each = xp.take(
            u, as_like(np.arange(self.n_bins) % self.n_inputs, u), axis=1
        )  # (samples, bins)
        calibration = np.random.default_rng(self.calibration_seed).standard_normal(self.n_bins)
        power = xp.abs(each) ** as_like(1 + self.exponent_spread * calibration, u)
        turned = rotation((1 - power) * as_like(self.phase_spread_rad * calibration, u))
        # one more column: the transmission outside
        amplitude = xp.concat(
            [xp.sign(each) * xp.sqrt(power) * turned, xp.ones_like(turned[:, :1])], axis=1
        )
        mask = xp.take(amplitude, cells, axis=1)
        if noise is not None and self.phase_noise is not None:
            phase = self.phase_noise_rad * noise
            if self.phase_noise == "bin":
                phase = xp.take(xp.concat([phase, xp.zeros_like(u[:, :1])], axis=1), cells, axis=1)
            mask = mask * rotation(phase)
        return mask

    def seen(self, mask: Any, grid: Grid, *offsets: float) -> list[Any]:
        """The cells seen through the instrument's filter, at the points of the grid plus each offset, in spacings."""
        xp, fourier, per_cell = array_namespace(mask), transforms(mask), grid.points_per_cell
        spectrum, out = fourier.fft(mask), []
        for offset in offsets:
            places = [(step + offset) / per_cell for step in range(per_cell)]
            responses = [
                as_like(_response(self.filter, self.filter_ghz, one), mask) for one in places
            ]
            parts = [fourier.ifft(spectrum * response) for response in responses]
            whole = (
                xp.reshape(xp.stack(parts, axis=-1), (mask.shape[0], -1))
                if per_cell > 1
                else parts[0]
            )
            out.append(widened(whole, grid.n_points, 1.0))
        return out


@cache
def _response(name: str | None, width_ghz: float, offset: float) -> Floats:
    """Fourier transform of what each cell contributes to a point `offset` cells above the centre of cell 0."""
    distance = CELLS_GHZ + offset
    if name is None:
        return np.fft.fft((np.abs(distance) < 0.5) + 0.5 * (np.abs(distance) == 0.5))
    above, below = (cumulative(name, distance + half, width_ghz) for half in (0.5, -0.5))
    return np.fft.fft(above - below)


def cumulative(name: str, x: Floats, width: float) -> Floats:
    """A filter's response, integrated up to x; `width` is its full width at half maximum."""
    from scipy.special import ndtr

    if name == "flat-top":  # a moving average
        return np.clip(x / width + 0.5, 0.0, 1.0)
    if name == "gaussian":
        return ndtr(x * FWHM_OF_GAUSSIAN / width)
    deviation = (
        SMOOTHING * width / FWHM_OF_GAUSSIAN
    )  # a moving average, smoothed by a narrower Gaussian
    z = np.stack([x + width / 2, x - width / 2]) / deviation
    upper, lower = deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    return (upper - lower) / width


@dataclass(frozen=True)
class Detector(Checked):
    """Power density in mW / nm at equal steps of wavelength, interpolated linearly from the 1 GHz raster.

    Noise is drawn anew for every measurement: `additive_fraction` of the unmasked pulse's peak density,
    `additive_mw_per_nm` of any, and `relative` to each reading. Then readings below `floor_mw_per_nm` are
    lifted to it, and all are rounded to `quantum_db` steps.

    >>> Detector().readout_wavelength_nm[[0, -1]]
    array([1548.25, 1551.75])
    >>> len(Detector(step_nm=0.1).readout_wavelength_nm)
    36
    """

    span_nm: Positive = 3.5
    step_nm: Positive = 0.05
    wavelength_nm: Positive = 1550.0
    additive_fraction: NotNegative = 0.0
    additive_mw_per_nm: NotNegative = 0.0
    relative: NotNegative = 0.0
    quantum_db: NotNegative = 0.0
    floor_mw_per_nm: NotNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.span_nm * ghz_per_nm(self.wavelength_nm) > N_CELLS - 2:
            raise ParameterError(
                f"span_nm={self.span_nm:g} is wider than the raster of {N_CELLS} GHz."
            )
        if self.quantum_db and not self.floor_mw_per_nm:
            raise ParameterError(
                "`quantum_db` rounds decibels; give `floor_mw_per_nm` too, against 0 mW."
            )

    @property
    def readout_wavelength_nm(self) -> Floats:
        """Wavelengths of the readouts."""
        count = int(self.span_nm / self.step_nm + 1e-9) + 1
        return self.wavelength_nm + (np.arange(count) - (count - 1) / 2) * self.step_nm

    @property
    def noisy(self) -> bool:
        """Whether two measurements of the same light differ."""
        return bool(self.additive_fraction or self.additive_mw_per_nm or self.relative)

    def read(self, density: Any) -> Any:
        """Noise-free readings (samples, readouts) of densities (samples, cells) on the 1 GHz raster."""
        xp = array_namespace(density)
        offset_ghz = -(self.readout_wavelength_nm - self.wavelength_nm) * ghz_per_nm(
            self.wavelength_nm
        )
        below = np.floor(offset_ghz)
        share = as_like(offset_ghz - below, density)
        low, high = (as_like((below + k).astype(int) % N_CELLS, density) for k in (0, 1))
        return xp.take(density, low, axis=1) * (1 - share) + xp.take(density, high, axis=1) * share

    def disturb(self, readings: Any, peak: float, noise: Any | None) -> Any:
        """What the instrument shows: readings with noise (samples, 2, readouts), floor and rounding."""
        xp = array_namespace(readings)
        if noise is not None:
            additive = np.hypot(self.additive_fraction * peak, self.additive_mw_per_nm)
            readings = readings * (1 + self.relative * noise[:, 0]) + additive * noise[:, 1]
        if self.floor_mw_per_nm:
            readings = xp.maximum(readings, xp.full_like(readings, self.floor_mw_per_nm))
        if self.quantum_db:
            steps = xp.round(10 * xp.log10(readings) / self.quantum_db)
            readings = 10 ** (steps * self.quantum_db / 10)
        return readings
