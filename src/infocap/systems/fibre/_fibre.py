"""The nonlinear fibre: many pulses at once, each with as many steps and as wide a band as it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._array import array_namespace, as_like, rotation, to_numpy, transforms
from ..._check import number, positive
from ...errors import ParameterError, warn
from ...typing import Floats, Integers
from ._stages import Grid, nearest, widened

# Share of a cropped window in which the field is used as it is; towards the ends it is faded out.
FLAT = 0.8
# The nonlinear part is tried in windows shorter by these factors, the shortest first.
CROPS = (8, 4, 2, 1)
# Strang steps of the first attempt, the fewest that can be halved.
FIRST_STEPS = 2
# Measured over the paper's range: when two Strang solutions differ by e, the extrapolated one is off by about
# e²; light of relative amplitude e at the edge of the band does as much. So both are held below about sqrt(tolerance).
STEP_ERROR, EDGE_ERROR = 0.1, 1.0
# A dispersion that moves light by less than this is no reason for a longer window.
SPREAD_PS = 10.0
# The light at the edge of the band grows slowly: to look at it every fourth step is enough, and costs nothing.
EDGE_EVERY = 4
# Where so many steps and so many times the band do not suffice, the pulse is given up with a warning; the hardest pulse
# of the paper's range takes hundreds of steps and 16 times the band.
MOST_STEPS, WIDEST_BAND = 2**13, 64


@dataclass(frozen=True)
class Fibre:
    """``dA/dz = -alpha/2 A - i beta2/2 d²A/dt² + i gamma |A|² A``, the usual sign: beta2 < 0 is anomalous.

    (The paper prints the dispersion with the other sign; totals change by about 1 at most.) Strang splitting with n and
    2n steps, extrapolated; the difference of the two decides, sample by sample, whether n is enough, and the light at
    the edge of the band whether the band is. `tolerance` is the error aimed at, relative to the largest readout of the
    sample: most samples are far better, the worst up to 30 times worse. The nonlinear part is a correction to linear
    propagation, computed in the shortest window around the pulse whose neglected nonlinear phase is harmless.

    >>> grid = Grid()
    >>> field = np.exp(-((grid.frequency_thz / 0.1) ** 2))[None, :] + 0j  # Fourier coefficients of a weak pulse
    >>> near, far = Fibre(loss_db_per_km=3.0, gamma_per_w_km=0.0).propagate(field, grid, [0.0, 1000.0])
    >>> round(float(np.sum(np.abs(far) ** 2) / np.sum(np.abs(near) ** 2)), 3)  # 3 dB
    0.501
    """

    length_m: float = 5.0
    beta2_ps2_per_km: float = -23.0
    gamma_per_w_km: float = 1.2
    loss_db_per_km: float = 0.0
    prechirp_length_m: float = 0.0  # the same fibre before the amplifier: dispersion only
    amplifier_length_m: float = 0.0  # effective length inside the amplifier, added to the fibre's
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        lengths = ("length_m", "prechirp_length_m", "amplifier_length_m")
        for name in (*lengths, "gamma_per_w_km", "loss_db_per_km"):
            number(name, getattr(self, name), least=0.0)
        number("beta2_ps2_per_km", self.beta2_ps2_per_km)
        positive("tolerance", self.tolerance)
        if self.tolerance < 1e-12:
            raise ParameterError(f"`tolerance={self.tolerance:g}` is below rounding; give 1e-12 or more.")

    @property
    def single(self) -> bool:
        """Whether the tolerance allows the nonlinear correction in single precision, good to about 3e-6."""
        return self.tolerance >= 5e-6

    def exponent(self, frequency_thz: Floats) -> Floats:
        """What a metre of linear propagation adds to the logarithm of the field."""
        omega = 2 * np.pi * frequency_thz
        loss = self.loss_db_per_km * np.log(10) / 10 * 1e-3
        return 0.5j * self.beta2_ps2_per_km * 1e-3 * omega**2 - loss / 2

    def propagate(self, field: Any, grid: Grid, lengths_m: Sequence[float], shape: Any = None) -> list[Any]:
        """Fields (samples, points) after each of the lengths, from one propagation to the longest.

        `field` holds Fourier coefficients; `shape` the field in time, where it is known better than from them.
        """
        lengths = [number("lengths_m", length, least=0.0) for length in np.atleast_1d(lengths_m)]
        if not lengths or sorted(lengths) != lengths:
            raise ParameterError(f"`lengths_m={lengths}` must be one length or more, increasing.")
        exponent = self.exponent(grid.frequency_thz)
        if self.prechirp_length_m:
            field = field * as_like(np.exp(1j * exponent.imag * self.prechirp_length_m), field)
        total = [length + self.amplifier_length_m for length in lengths]
        out = [field * as_like(np.exp(exponent * length), field) for length in total]
        if self.gamma_per_w_km == 0 or total[-1] == 0:
            return out
        xp, fourier = array_namespace(field), transforms(field)
        if shape is None or self.prechirp_length_m:  # dispersion has moved what was known
            shape = fourier.fft(field)
        crop = self._crop(shape, field, grid, total[-1])
        for n_points in np.unique(crop).tolist():
            rows = np.flatnonzero(crop == n_points)
            near = nearest(xp.take(shape, as_like(rows, field), axis=0), n_points)
            start = fourier.ifft(near * as_like(_fade(n_points, grid.n_points), field))
            for position, correction in enumerate(self._corrections(start, grid, total)):
                out[position][as_like(rows, field)] += fourier.ifft(widened(fourier.fft(correction), grid.n_points))
        return out

    def _crop(self, shape: Any, field: Any, grid: Grid, length_m: float) -> Integers:
        """Points of the shortest window that neglects no nonlinear phase worth having, for each sample.

        Leaving the field A at some times to linear propagation changes the spectral amplitude anywhere by at
        most gamma L times the integral of |A|³ over those times, and a readout relatively by twice that.
        """
        xp = array_namespace(shape)
        sizes = [grid.n_points // part for part in CROPS]
        kept = np.vstack([widened(_fade(n, grid.n_points)[None], grid.n_points) for n in sizes])
        powers = [_power(shape)]
        if 2 * np.pi * abs(self.beta2_ps2_per_km) * 1e-3 * length_m * grid.band_thz / 2 > SPREAD_PS:
            far = np.exp(self.exponent(grid.frequency_thz) * length_m)  # may carry light out of the window
            powers.append(_power(transforms(field).fft(field * as_like(far, field))))
        cubes = sum((power * xp.sqrt(power)) @ as_like(1 - kept.T, power) for power in powers)
        step_ps = grid.window_ps / grid.n_points
        largest = xp.sqrt(xp.max(_power(field), axis=1)) * grid.window_ps
        harm = 2 * self.gamma_per_w_km * 1e-3 * length_m * step_ps * to_numpy(cubes / largest[:, None])
        harmless = harm <= self.tolerance / 2
        harmless[:, -1] = True
        return np.array(sizes)[np.argmax(harmless, axis=1)]

    def _corrections(self, start: Any, grid: Grid, lengths: Sequence[float]) -> list[Any]:
        """Nonlinear minus linear propagation of cropped fields, at each length: (samples, points)."""
        xp = array_namespace(start)
        spacing = grid.band_thz / start.shape[1]
        out = [xp.zeros_like(start) for _ in lengths]
        waiting: list[tuple[Integers, int, int, Any]] = [(np.arange(start.shape[0]), FIRST_STEPS, 1, None)]
        failed = 0
        while waiting:
            rows, steps, band, coarse = waiting.pop()
            first = widened(xp.take(start, as_like(rows, start), axis=0), band * start.shape[1])
            first = xp.astype(first, xp.complex64) if self.single else first
            if coarse is None:
                coarse, _ = self._strang(first, spacing, lengths, steps)
            fine, edge = self._strang(first, spacing, lengths, 2 * steps)
            better = [(4 * two - one) / 3 for one, two in zip(coarse, fine, strict=True)]
            # relative to the light sent in, less what is lost: that of a compressed pulse is spread too thin
            apart = sum(
                xp.max(_power(best - two), axis=1) * 10 ** (self.loss_db_per_km * length * 1e-4)
                for best, two, length in zip(better, fine, lengths, strict=True)
            )
            error = 2 * np.sqrt(to_numpy(apart / xp.max(_power(first), axis=1)))
            exact = error <= STEP_ERROR * np.sqrt(self.tolerance)
            cut = edge > EDGE_ERROR * np.sqrt(self.tolerance)
            narrow = cut & (band < WIDEST_BAND)
            slow = ~narrow & ~exact & (steps < MOST_STEPS)
            done = ~narrow & ~slow
            failed += int(np.sum(done & (~exact | cut)))
            exponent = self.exponent(np.fft.fftfreq(first.shape[1], 1 / (first.shape[1] * spacing)))
            kept = as_like(np.flatnonzero(done), start)
            for target, best, length in zip(out, better, lengths, strict=True):
                linear = xp.take(first, kept, axis=0) * as_like(np.exp(exponent * length), first)
                change = xp.take(best, kept, axis=0) - linear
                target[as_like(rows[done], start)] = xp.astype(nearest(change, target.shape[1]), target.dtype)
            if narrow.any():
                waiting.append((rows[narrow], steps, 2 * band, None))
            if slow.any():
                chosen = as_like(np.flatnonzero(slow), start)
                waiting.append((rows[slow], 2 * steps, band, [xp.take(two, chosen, axis=0) for two in fine]))
        if failed:
            warn(
                f"{failed} pulses did not reach tolerance={self.tolerance:g} with {MOST_STEPS} steps and "
                f"{WIDEST_BAND * grid.band_thz:g} THz; lower the power or the length."
            )
        return out

    def _strang(self, field: Any, spacing: float, lengths: Sequence[float], steps: int) -> tuple[list[Any], Floats]:
        """Fields after each length with `steps` steps in all, and the largest amplitude at the band's edge."""
        xp, fourier, n_points = array_namespace(field), transforms(field), field.shape[1]
        exponent = self.exponent(np.fft.fftfreq(n_points, 1 / (n_points * spacing)))
        edge = slice(3 * n_points // 8, 5 * n_points // 8)
        energy = xp.sum(_power(field), axis=1)
        worst = xp.zeros_like(energy)
        out, before = [], 0.0
        for length in lengths:
            # as many times the first number of steps in every stretch: extrapolation needs exact doubling
            count = max(1, round(FIRST_STEPS * (length - before) / lengths[-1])) * (steps // FIRST_STEPS)
            step = (length - before) / count
            half, whole = (as_like(np.exp(exponent * step * part), field) for part in (0.5, 1.0))
            strength = self.gamma_per_w_km * 1e-3 * step
            field = field * half
            for number_of_step in range(count):
                shape = fourier.fft(field)
                shape *= rotation(strength * _power(shape))
                field = fourier.ifft(shape)
                last = number_of_step == count - 1
                field *= half if last else whole
                if last or number_of_step % EDGE_EVERY == 0:
                    worst = xp.maximum(worst, xp.sum(_power(field[:, edge]), axis=1))
            out.append(field)
            before = length
        return out, np.sqrt(to_numpy(worst / energy))


def _power(field: Any) -> Any:
    xp = array_namespace(field)
    return xp.real(field) ** 2 + xp.imag(field) ** 2  # without the square root that abs takes


def _fade(n_points: int, n_total: int) -> Floats:
    """1 in the middle of a cropped window, falling to 0 at its ends; no fading when nothing is cropped."""
    if n_points == n_total:
        return np.ones(n_points)
    distance = np.abs(np.fft.fftfreq(n_points) * 2)
    ramp = np.clip((distance - FLAT) / (1 - FLAT), 0.0, 1.0)
    return np.cos(np.pi / 2 * ramp) ** 2
