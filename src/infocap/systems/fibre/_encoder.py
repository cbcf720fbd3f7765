"""The programmable spectral filter: writes the inputs into the spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import erf, exp, pi, sqrt
from typing import Any

import numpy as np

from ..._array import array_namespace, as_like, fft, ifft, rotation
from ..._check import number, one_of, positive, whole_number
from ...errors import ParameterError
from ...typing import Floats, Integers
from ._grid import CELL_GHZ, N_CELLS, Grid, ghz_per_nm

PHASE_NOISE = ("cell", "bin", None)
SMOOTHING = 0.25  # FWHM of the Gaussian that smooths the flat top, relative to its width


@dataclass(frozen=True)
class Encoder:
    """Field mask sign(u) sqrt|u| in equal spectral bins, smoothed by the instrument's own filter.

    Input k is written into every bin b with b mod n_inputs = k, counted from short to long wavelength: two
    inputs alternate, five come in sequence, four times. Outside its span the filter transmits. With 0 there,
    u -> -u would be an exact symmetry and all odd degrees would vanish.

    Phase noise is drawn for each 1 GHz cell (the authors' program) or for each bin (the paper's text), on a
    raster that does not depend on the grid.

    >>> Encoder(n_inputs=2).n_bins
    20
    >>> Encoder(n_inputs=3)
    Traceback (most recent call last):
    infocap.errors.ParameterError: n_inputs=3 does not divide 20 bins; it can be one of [1, 2, 4, 5, 10, 20].
    """

    n_inputs: int = 5
    n_bins: int = 20
    span_nm: float = 2.5
    wavelength_nm: float = 1550.0
    filter: str | None = "flat-top"
    filter_ghz: float = 12.0  # full width at half maximum
    phase_noise: str | None = "cell"
    phase_noise_rad: float = 0.0015 * 2 * np.pi

    def __post_init__(self) -> None:
        whole_number("n_bins", self.n_bins, 1)
        whole_number("n_inputs", self.n_inputs, 1)
        if self.n_bins % self.n_inputs:
            fitting = [q for q in range(1, self.n_bins + 1) if self.n_bins % q == 0]
            raise ParameterError(
                f"`n_inputs={self.n_inputs}` does not divide {self.n_bins} bins; it can be one of {fitting}."
            )
        for name in ("span_nm", "wavelength_nm", "filter_ghz"):
            positive(name, getattr(self, name))
        number("phase_noise_rad", self.phase_noise_rad, least=0.0)
        one_of("filter", self.filter, (*FILTERS, None))
        one_of("phase_noise", self.phase_noise, PHASE_NOISE)
        if self.span_nm * ghz_per_nm(self.wavelength_nm) > N_CELLS * CELL_GHZ:
            raise ParameterError(f"span_nm={self.span_nm:g} is wider than the raster of {N_CELLS} GHz.")

    @cached_property
    def bin_of_cell(self) -> Integers:
        """The bin that each 1 GHz cell lies in; -1 outside the span."""
        frequency_ghz = np.fft.fftfreq(N_CELLS, 1 / N_CELLS) * CELL_GHZ
        offset_nm = -frequency_ghz / ghz_per_nm(self.wavelength_nm)
        bins = np.floor((offset_nm / self.span_nm + 0.5) * self.n_bins).astype(int)
        return np.where((bins >= 0) & (bins < self.n_bins), bins, -1)

    @property
    def n_noises(self) -> int:
        """How many random phases a sample needs."""
        return {"cell": N_CELLS, "bin": self.n_bins, None: 0}[self.phase_noise]

    def mask(self, u: Any, grid: Grid, noise: Any | None) -> Any:
        """The complex transmission (samples, points) for inputs (samples, inputs) and standard normal noise."""
        return self.seen(self.cells(u, noise), grid)

    def cells(self, u: Any, noise: Any | None) -> Any:
        """What is written into each 1 GHz cell (samples, cells), before the instrument's own filter."""
        xp = array_namespace(u)
        cells = self.bin_of_cell
        # one more column, the transmission outside, is what index -1 picks
        amplitude = xp.sign(u) * xp.sqrt(xp.abs(u))
        amplitude = xp.concat([amplitude, xp.ones_like(u[:, :1])], axis=1)
        picked = np.where(cells < 0, self.n_inputs, cells % self.n_inputs)
        mask = xp.take(amplitude, as_like(picked, u), axis=1) + 0j
        if noise is not None and self.phase_noise is not None:
            phase = self.phase_noise_rad * noise
            if self.phase_noise == "bin":
                phase = xp.concat([phase, xp.zeros_like(u[:, :1])], axis=1)
                phase = xp.take(phase, as_like(np.where(cells < 0, self.n_bins, cells), u), axis=1)
            mask = mask * rotation(phase)
        return mask

    def seen(self, mask: Any, grid: Grid, offset: float = 0.0) -> Any:
        """The cells seen through the instrument's filter, at the points of the grid plus `offset` spacings."""
        xp = array_namespace(mask)
        spectrum = fft(mask)
        parts = [
            ifft(
                spectrum
                * as_like(
                    _response(self.filter, self.filter_ghz, (step + offset) / grid.points_per_cell), mask
                )
            )
            for step in range(grid.points_per_cell)
        ]
        out = parts[0] if len(parts) == 1 else xp.reshape(xp.stack(parts, axis=-1), (mask.shape[0], -1))
        if out.shape[1] == grid.n_points:
            return out
        beyond = xp.ones((out.shape[0], grid.n_points - out.shape[1]), dtype=out.dtype, device=out.device)
        half = out.shape[1] // 2
        return xp.concat([out[:, :half], beyond, out[:, half:]], axis=1)


@cache
def _response(name: str | None, width_ghz: float, offset: float) -> Floats:
    """Fourier transform of what each cell contributes to a point `offset` cells above the centre of cell 0."""
    distance = np.fft.fftfreq(N_CELLS, 1 / N_CELLS) + offset
    if name is None:
        return np.fft.fft((np.abs(distance) < 0.5) + 0.5 * (np.abs(distance) == 0.5))
    cumulative, width = FILTERS[name], width_ghz / CELL_GHZ
    return np.fft.fft([cumulative(d + 0.5, width) - cumulative(d - 0.5, width) for d in distance])


def _flat_top(x: float, width: float) -> float:
    return min(max(x / width + 0.5, 0.0), 1.0)


def _gaussian(x: float, width: float) -> float:
    return 0.5 * (1 + erf(x / _deviation(width) / sqrt(2)))


def _smooth(x: float, width: float) -> float:
    """A flat top of this width convolved with a narrower Gaussian."""
    deviation = _deviation(SMOOTHING * width)

    def integral(y: float) -> float:
        scaled = y / deviation
        return y * 0.5 * (1 + erf(scaled / sqrt(2))) + deviation * exp(-(scaled**2) / 2) / sqrt(2 * pi)

    return (integral(x + width / 2) - integral(x - width / 2)) / width


def _deviation(full_width: float) -> float:
    return full_width / (2 * sqrt(2 * np.log(2)))


FILTERS = {"flat-top": _flat_top, "gaussian": _gaussian, "smooth": _smooth}  # cumulative responses
