"""The stages of the photonic experiment other than the fibre: pulse, encoder and detector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any

import numpy as np

from .._arrays import array_namespace, fourier_module, to_library_of, unit_phasors
from .._kinds import NUMBER_KINDS
from .._validation import (
    Checked,
    Count,
    Finite,
    NotNegative,
    Positive,
    checks_arguments,
    require_number,
    require_numbers,
    require_one_of,
    shown,
)
from ..errors import DataError, ParameterError, warn
from ..typing import ArrayLike, Floats, Integers

SPEED_OF_LIGHT_NM_THZ = 299_792.458
# Wavelength of the carrier, as in the paper.
CARRIER_NM = 1550.0
# Number of cells of 1 GHz. The spectral filter's phase noise lives on this raster, as in the
# authors' program, whatever the grid. It spans ±512 GHz, more than filter and spectrum analyser
# see.
N_CELLS = 1024
# Offset of the cells from the carrier, in the order of the Fourier transform.
CELLS_GHZ = np.fft.fftfreq(N_CELLS, 1 / N_CELLS)
# Time-bandwidth product of a sech pulse: full widths at half maximum of its power in time and in
# frequency.
TIME_BANDWIDTH = 0.315
# Full width at half maximum of sech²(t) in units of its time constant, 2 arcosh(sqrt 2).
FWHM_OF_SECH = 1.7627471740390859
# Full width at half maximum of a Gaussian in units of its standard deviation, 2 sqrt(2 ln 2).
FWHM_OF_GAUSSIAN = 2.3548200450309493
# The paper goes up to 7.1 dBm; from here on a number of milliwatts is the likelier explanation.
MAX_PLAUSIBLE_DBM = 12.0
# 10 W; more is certainly a number of milliwatts.
MAX_DBM = 40.0
# Full width at half maximum of the Gaussian that rounds the edges of the filter "smooth", relative
# to the width of the filter.
SMOOTHING = 0.25
FILTERS = ("flat-top", "gaussian", "smooth")
Filter = Annotated[str | None, partial(require_one_of, options=(*FILTERS, None))]
PhaseNoise = Annotated[str | None, partial(require_one_of, options=("bin", "cell", None))]


def _not_negative_or_none(name: str, value: Any) -> float | None:
    """Return a number of 0 or more, or None."""
    return None if value is None else require_number(name, value, minimum=0.0)


@dataclass(frozen=True)
class Grid(Checked):
    """Frequencies around the carrier, in the order of the fast Fourier transform.

    Physical answers do not depend on the grid: they are read at the points of the 1 GHz raster.

    Parameters
    ----------
    window_ps
        The length of the window in time, a whole multiple of 1000 ps, so that the points include
        the 1 GHz raster. Its inverse is the spacing of the frequencies.
    band_thz
        The width of the band.

    Examples
    --------
    >>> Grid().n_points, Grid(band_thz=2.048).n_points
    (1024, 2048)
    """

    window_ps: Positive = 1000.0
    band_thz: Positive = 1.024

    def __post_init__(self) -> None:
        super().__post_init__()
        per_cell = self.window_ps * 1e-3
        doublings = np.log2(self.band_thz * 1e3 / N_CELLS)
        fits = per_cell == int(per_cell) and doublings >= 0 and doublings == int(doublings)
        if not fits:
            raise ParameterError(
                f"window_ps={self.window_ps:g} and band_thz={self.band_thz:g} do not fit the 1 GHz "
                "raster; the window can be 1000, 2000, ... ps and the band 1.024, 2.048, 4.096, "
                "... THz."
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


# Nanometres of the longest wavelength, a millimetre; longer ones are no light.
MAX_WAVELENGTH_NM = 1e6


def ghz_per_nm(wavelength_nm: float) -> float:
    """Return how many GHz of frequency are 1 nm of wavelength, near a wavelength.

    >>> round(ghz_per_nm(1550.0), 1)
    124.8
    """
    if not 1.0 <= wavelength_nm <= MAX_WAVELENGTH_NM:
        raise ParameterError(
            f"`wavelength_nm={wavelength_nm:g}` must lie between 1 and {MAX_WAVELENGTH_NM:g}."
        )
    return SPEED_OF_LIGHT_NM_THZ / wavelength_nm**2 * 1e3


@dataclass(frozen=True)
class Pulse(Checked):
    """A pulse A(t) = sqrt(P_peak) sech(t / tau).

    Parameters
    ----------
    power_dbm
        The average power that the unmasked pulse train has after the amplifier.
    width_nm
        The full width at half maximum of the power spectrum.
    wavelength_nm
        The wavelength of the carrier.
    repetition_mhz
        The repetition rate of the laser.

    Examples
    --------
    >>> round(Pulse(power_dbm=7.1).peak_power_w, 1)
    107.4
    """

    power_dbm: Finite = 6.6
    width_nm: Positive = 0.6
    wavelength_nm: Positive = CARRIER_NM
    repetition_mhz: Positive = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power_dbm > MAX_DBM:
            raise ParameterError(
                f"power_dbm={self.power_dbm:g} is more than 10 W; give dBm, not mW."
            )
        if self.power_dbm > MAX_PLAUSIBLE_DBM:
            warn(
                f"power_dbm={self.power_dbm:g} is far above the paper's range of -9.1 to 7.1 dBm, "
                "and the model has no Raman scattering and no higher-order dispersion; give less, "
                "in dBm and not in mW."
            )

    @property
    def duration_ps(self) -> float:
        """Full width at half maximum of the power."""
        width_thz = self.width_nm * ghz_per_nm(self.wavelength_nm) * 1e-3
        return TIME_BANDWIDTH / width_thz

    @property
    def time_constant_ps(self) -> float:
        """The time constant tau of sech(t / tau)."""
        return self.duration_ps / FWHM_OF_SECH

    @property
    def peak_power_w(self) -> float:
        """Peak power, the energy of a pulse over twice its time constant."""
        average_power_w = 10 ** (self.power_dbm / 10) * 1e-3
        energy_w_ps = average_power_w / (self.repetition_mhz * 1e6) * 1e12
        return energy_w_ps / (2 * self.time_constant_ps)

    @checks_arguments
    def amplitude(self, frequency_thz: Floats) -> Floats:
        """Return the spectral amplitude in sqrt(W) ps.

        Parameters
        ----------
        frequency_thz
            Frequencies relative to the carrier.
        """
        frequency_thz = require_numbers("frequency_thz", frequency_thz)
        x = np.pi**2 * self.time_constant_ps * np.abs(frequency_thz)
        sech = 2 * np.exp(-x) / (1 + np.exp(-2 * x))
        return np.pi * self.time_constant_ps * np.sqrt(self.peak_power_w) * sech

    @property
    def density_unit(self) -> float:
        """Average power density in mW / nm for 1 W ps² of spectral amplitude squared."""
        # In the order of the factors: MHz in Hz, ps² in s², GHz per nm in Hz per nm, W in mW.
        return self.repetition_mhz * 1e6 * 1e-24 * ghz_per_nm(self.wavelength_nm) * 1e9 * 1e3


def crop_points(array: Any, n_points: int) -> Any:
    """Return the points next to zero of an array in the order of the Fourier transform."""
    half = n_points // 2
    xp = array_namespace(array)
    return xp.concat([array[:, :half], array[:, -half:]], axis=1)


def pad_points(array: Any, n_points: int, value: float = 0.0) -> Any:
    """Return an array in the order of the Fourier transform with more points far from zero.

    All of the new points have the same value.
    """
    half = array.shape[1] // 2
    n_new = n_points - 2 * half
    if n_new == 0:
        return array
    xp = array_namespace(array)
    shape = (array.shape[0], n_new)
    new_points = xp.full(shape, value, dtype=array.dtype, device=array.device)
    return xp.concat([array[:, :half], new_points, array[:, half:]], axis=1)


@dataclass(frozen=True)
class Encoder(Checked):
    """A spectral filter that writes the inputs into equal bins of the spectrum.

    The field mask is sign(u) sqrt(abs(u)), smoothed by the instrument's own filter. Input k is
    written into every bin b with b mod n_inputs = k, counted from short to long wavelength: two
    inputs alternate, five come in sequence, four times. Outside its span the filter transmits all
    light; if it transmitted none, u -> -u would be an exact symmetry and all odd degrees would
    vanish.

    Parameters
    ----------
    n_inputs
        The number of inputs.
    n_bins
        The number of bins.
    span_nm
        The width of all bins together.
    filter
        The shape of the instrument's own filter: ``"flat-top"``, ``"gaussian"``, ``"smooth"`` (a
        flat top with rounded edges) or None.
    filter_ghz
        The full width at half maximum of that filter.
    phase_noise
        Whether random phases are drawn for each ``"bin"`` (the paper's text), for each 1 GHz
        ``"cell"`` (the authors' program), or not at all (None). They do not depend on the grid.
    phase_noise_rad
        The standard deviation of the random phases.
    exponent_spread, phase_spread_rad
        A real filter is not calibrated equally well in all bins: a bin transmits the power
        T = abs(u) raised to 1 + `exponent_spread` c, and turns the phase by `phase_spread_rad`
        c (1 - T), where each bin has a standard normal number c of its own.
    calibration_seed
        Of the numbers c, which belong to the device and are no noise.
    filter_margin_nm
        How far beyond the span the instrument's own filter acts: everywhere, where None (the
        default). Phase noise further out is not smoothed.
    whole_cells
        Whether bins consist of whole 1 GHz cells, as in the authors' program: all of them together
        begin and end at the cells nearest to the ends of the span, and edges between them lie up to
        1.9 GHz beside those of equal bins.

    Examples
    --------
    >>> Encoder(n_inputs=2).n_bins
    20
    >>> Encoder(n_inputs=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    infocap.errors.ParameterError: `n_inputs=3` does not divide 20 bins; it can be one of [1, 2, ...
    """

    n_inputs: Count = 5
    n_bins: Count = 20
    span_nm: Positive = 2.5
    filter: Filter = "flat-top"
    filter_ghz: Positive = 12.0
    phase_noise: PhaseNoise = "bin"
    phase_noise_rad: NotNegative = 0.0015 * 2 * np.pi
    exponent_spread: NotNegative = 0.0
    phase_spread_rad: NotNegative = 0.0
    calibration_seed: int = 0
    filter_margin_nm: Annotated[float | None, _not_negative_or_none] = None
    whole_cells: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_bins % self.n_inputs:
            divisors = [q for q in range(1, self.n_bins + 1) if self.n_bins % q == 0]
            raise ParameterError(
                f"`n_inputs={self.n_inputs}` does not divide {self.n_bins} bins; "
                f"it can be one of {divisors}."
            )

    @checks_arguments
    def bin_of_cell(self, wavelength_nm: float = CARRIER_NM) -> Integers:
        """Return the bin that each 1 GHz cell lies in; `n_bins` stands for outside the span.

        Parameters
        ----------
        wavelength_nm
            The wavelength of the carrier.
        """
        if self.whole_cells:
            return self._bin_of_whole_cell(wavelength_nm)
        offset_nm = -CELLS_GHZ / ghz_per_nm(wavelength_nm)
        bins = np.floor((offset_nm / self.span_nm + 0.5) * self.n_bins).astype(int)
        inside = (bins >= 0) & (bins < self.n_bins)
        return np.where(inside, bins, self.n_bins)

    def _bin_of_whole_cell(self, wavelength_nm: float) -> Integers:
        """Return the bin that each 1 GHz cell lies in, where bins consist of whole cells.

        Bins are filled from the lowest frequency on, with as many cells as fit, rounded down. A bin
        gets one more cell where the bins before it lack more than one.
        """
        last_cell = round(self.span_nm / 2 * ghz_per_nm(wavelength_nm))
        n_cells = 2 * last_cell + 1
        cells_of_shortest = n_cells // self.n_bins
        lost_per_bin = n_cells / self.n_bins - cells_of_shortest
        number = np.arange(self.n_bins)  # from low to high frequency
        n_longer_before = np.maximum(np.ceil((number - 1) * lost_per_bin) - 1, 0)
        first_cells = cells_of_shortest * number + n_longer_before
        cell_in_span = CELLS_GHZ + last_cell
        from_low_frequency = np.searchsorted(first_cells, cell_in_span, side="right") - 1
        inside = np.abs(CELLS_GHZ) <= last_cell
        return np.where(inside, self.n_bins - 1 - from_low_frequency, self.n_bins)

    @property
    def n_noises(self) -> int:
        """How many random phases a sample needs."""
        return {"bin": self.n_bins, "cell": N_CELLS, None: 0}[self.phase_noise]

    @checks_arguments
    def cells(
        self, u: ArrayLike, noise: ArrayLike | None, wavelength_nm: float = CARRIER_NM
    ) -> Any:
        """Return what is written into each 1 GHz cell, before the instrument's own filter.

        Parameters
        ----------
        u
            Inputs (samples, inputs).
        noise
            Standard normal numbers (samples, n_noises), or None.
        wavelength_nm
            The wavelength of the carrier.

        Returns
        -------
        array
            Complex transmissions (samples, cells).
        """
        u = as_table("u", u, self.n_inputs)
        xp = array_namespace(u)
        bins = to_library_of(self.bin_of_cell(wavelength_nm), u)
        input_of_bin = to_library_of(np.arange(self.n_bins) % self.n_inputs, u)
        values = xp.take(u, input_of_bin, axis=1)  # (samples, bins)
        calibration = np.random.default_rng(self.calibration_seed).standard_normal(self.n_bins)
        power = xp.abs(values) ** to_library_of(1 + self.exponent_spread * calibration, u)
        phase_per_loss = to_library_of(self.phase_spread_rad * calibration, u)
        amplitude = xp.sign(values) * xp.sqrt(power) * unit_phasors((1 - power) * phase_per_loss)
        outside = xp.ones_like(amplitude[:, :1])
        mask = xp.take(xp.concat([amplitude, outside], axis=1), bins, axis=1)
        if noise is None or self.phase_noise is None:
            return mask
        phase = self.phase_noise_rad * as_table("noise", noise, self.n_noises)
        if self.phase_noise == "bin":
            no_phase_outside = xp.zeros_like(u[:, :1])
            phase = xp.take(xp.concat([phase, no_phase_outside], axis=1), bins, axis=1)
        return mask * unit_phasors(phase)

    @checks_arguments
    def filtered(
        self, cells: ArrayLike, grid: Grid, *offsets: float, wavelength_nm: float = CARRIER_NM
    ) -> list[Any]:
        """Return the cells as the instrument's own filter smooths them, on the grid.

        Parameters
        ----------
        cells
            Transmissions (samples, cells).
        grid
            At whose points the mask is wanted.
        *offsets
            Shifts of these points, in units of their spacing.
        wavelength_nm
            The wavelength of the carrier.

        Returns
        -------
        list of array
            For each offset a mask (samples, points).
        """
        cells = as_table("cells", cells, N_CELLS)
        xp = array_namespace(cells)
        fourier = fourier_module(cells)
        per_cell = grid.points_per_cell
        spectrum = fourier.fft(cells)
        last_filtered = np.inf  # in GHz from the carrier
        if self.filter_margin_nm is not None:
            half_width_nm = self.span_nm / 2 + self.filter_margin_nm
            last_filtered = round(half_width_nm * ghz_per_nm(wavelength_nm))
        masks = []
        for offset in offsets:
            columns = []
            for step in range(per_cell):
                position = (step + offset) / per_cell  # in cells, from the centre of a cell
                response = to_library_of(_response(self.filter, self.filter_ghz, position), cells)
                column = fourier.ifft(spectrum * response)
                is_filtered = np.abs(CELLS_GHZ + position) <= last_filtered
                if not is_filtered.all():
                    column = xp.where(to_library_of(is_filtered, cells), column, cells)
                columns.append(column)
            if per_cell == 1:
                mask = columns[0]
            else:
                interleaved = xp.stack(columns, axis=-1)
                mask = xp.reshape(interleaved, (cells.shape[0], -1))
            masks.append(pad_points(mask, grid.n_points, 1.0))
        return masks


def as_table(name: str, values: Any, n_columns: int | None) -> Any:
    """Return numbers (samples, columns) as an array; those of all libraries stay what they are."""
    if not hasattr(values, "__array_namespace__") and not hasattr(values, "__dlpack__"):
        values = require_numbers(name, values, finite=False)
    kind = getattr(values.dtype, "kind", "f")  # types of other libraries have no kind
    if kind not in NUMBER_KINDS:
        raise DataError(f"{name} holds {values.dtype}; give numbers.")
    if isinstance(values, np.ndarray) and kind in "biu":
        values = values.astype(float)
    if len(values.shape) != 2 or n_columns not in (None, values.shape[1]):
        columns = "readouts" if n_columns is None else n_columns
        raise DataError(f"{name} has shape {tuple(values.shape)}; give (samples, {columns}).")
    return values


@cache
def _response(name: str | None, width_ghz: float, offset: float) -> Floats:
    """Return the Fourier transform of what each cell contributes to one point.

    The point lies `offset` cells above the centre of cell 0.
    """
    distance = CELLS_GHZ + offset
    if name is None:
        inside = np.abs(distance) < 0.5
        on_the_edge = np.abs(distance) == 0.5
        return np.fft.fft(inside + 0.5 * on_the_edge)
    above = integrated_response(name, distance + 0.5, width_ghz)
    below = integrated_response(name, distance - 0.5, width_ghz)
    return np.fft.fft(above - below)


def integrated_response(name: str, x: Floats, width: float) -> Floats:
    """Return a filter's response, integrated up to x; `width` is its full width at half maximum."""
    from scipy.special import ndtr

    if name == "flat-top":  # a moving average
        return np.clip(x / width + 0.5, 0.0, 1.0)
    if name == "gaussian":
        return ndtr(x * FWHM_OF_GAUSSIAN / width)
    # A moving average, smoothed by a narrower Gaussian.
    deviation = SMOOTHING * width / FWHM_OF_GAUSSIAN
    upper = _integral_of_ndtr((x + width / 2) / deviation)
    lower = _integral_of_ndtr((x - width / 2) / deviation)
    return (deviation * upper - deviation * lower) / width


def _integral_of_ndtr(z: Floats) -> Floats:
    """Return the normal distribution function, integrated up to z."""
    from scipy.special import ndtr

    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return z * ndtr(z) + density


@dataclass(frozen=True)
class Detector(Checked):
    """A spectrum analyser: power density in mW / nm at equal steps of wavelength.

    Readings are interpolated linearly from the 1 GHz raster. Noise is drawn anew for every
    measurement.

    Parameters
    ----------
    span_nm
        The distance of the first and the last reading.
    step_nm
        The distance of neighbouring readings.
    additive_mw_per_nm
        The standard deviation of noise that does not depend on the reading.
    relative
        The standard deviation of noise as a share of each reading.
    offset_nm
        By how much the middle of the readings lies above the wavelength of the carrier.

    Examples
    --------
    >>> Detector().readout_offset_nm[[0, -1]]
    array([-1.75,  1.75])
    >>> len(Detector(step_nm=0.1).readout_offset_nm)
    36
    """

    span_nm: Positive = 3.5
    step_nm: Positive = 0.05
    additive_mw_per_nm: NotNegative = 0.0
    relative: NotNegative = 0.0
    offset_nm: Finite = 0.0

    @property
    def readout_offset_nm(self) -> Floats:
        """Wavelengths of the readouts relative to the carrier."""
        count = int(self.span_nm / self.step_nm + 1e-9) + 1
        from_middle = (np.arange(count) - (count - 1) / 2) * self.step_nm
        return from_middle + self.offset_nm

    @property
    def noisy(self) -> bool:
        """Whether two measurements of the same light differ."""
        return bool(self.additive_mw_per_nm or self.relative)

    @checks_arguments
    def read(self, density: ArrayLike, wavelength_nm: float = CARRIER_NM) -> Any:
        """Return noise-free readings of power densities on the 1 GHz raster.

        Parameters
        ----------
        density
            Power densities (samples, cells).
        wavelength_nm
            The wavelength of the carrier.

        Returns
        -------
        array
            Readings (samples, readouts).
        """
        density = as_table("density", density, N_CELLS)
        xp = array_namespace(density)
        offset_ghz = -self.readout_offset_nm * ghz_per_nm(wavelength_nm)
        cell_below = np.floor(offset_ghz).astype(int)
        share_above = to_library_of(offset_ghz - cell_below, density)
        below = xp.take(density, to_library_of(cell_below % N_CELLS, density), axis=1)
        above = xp.take(density, to_library_of((cell_below + 1) % N_CELLS, density), axis=1)
        return below * (1 - share_above) + above * share_above

    @checks_arguments
    def disturb(self, readings: ArrayLike, noise: ArrayLike) -> Any:
        """Return readings with noise.

        Parameters
        ----------
        readings
            Noise-free readings (samples, readouts).
        noise
            Standard normal numbers (samples, 2, readouts).
        """
        readings = as_table("readings", readings, None)
        needed = (readings.shape[0], 2, readings.shape[1])
        if tuple(getattr(noise, "shape", ())) != needed:
            raise DataError(f"`noise={shown(noise)}` must be an array of shape {needed}.")
        relative_noise = self.relative * noise[:, 0]
        return readings * (1 + relative_noise) + self.additive_mw_per_nm * noise[:, 1]
