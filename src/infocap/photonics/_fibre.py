"""The nonlinear fibre: many pulses at once, each with as many steps and as wide a band as it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_like, on_host, rotation, take_rows, to_numpy, transforms
from .._validation import Checked, Finite, NotNegative, Positive, number
from ..errors import ParameterError, warn
from ..typing import Floats, Integers
from ._stages import Grid, nearest, widened

# Share of a cropped window in which the field is used as it is; towards the ends it is faded out.
FLAT = 0.8
# The nonlinear part is tried in windows shorter by these factors, the shortest first.
CROPS = (8, 4, 2, 1)
# Measured over the paper's range: when a step and its two halves differ by e, the extrapolated one is off by about e²;
# light of relative amplitude e at the edge of the band does as much. So both are held below about sqrt(tolerance).
STEP_ERROR, EDGE_ERROR = 0.1, 1.0
# A pulse takes steps twice as long again where their error is below this share of what is allowed.
CALM = 0.25
# A dispersion that moves light by less than this is no reason for a longer window.
SPREAD_PS = 10.0
# A stretch of fibre is halved so often at most, and the band made at most so many times as wide; then the pulse goes on
# as it is, with a warning. The hardest pulse of the paper's range takes 1024 steps and 16 times the band.
FINEST, WIDEST_BAND = 13, 64


@dataclass
class Pulses:
    """Pulses with one band on their way through a stretch of fibre, each with a step of its own."""

    field: Any  # Fourier coefficients (pulses, points)
    rows: Integers  # the samples that they are
    place: Integers  # where they are, in units of the finest step
    level: Integers  # the next step is the stretch over 2^level

    def some(self, chosen: Any) -> Pulses:
        """Those of a mask."""
        where = np.flatnonzero(chosen)
        field = take_rows(self.field, as_like(where, self.field))
        return Pulses(field, self.rows[where], self.place[where], self.level[where])


@dataclass(frozen=True)
class Fibre(Checked):
    """``dA/dz = -alpha/2 A - i beta2/2 d²A/dt² + i gamma |A|² A``, the usual sign: beta2 < 0 is anomalous.

    (The paper prints the dispersion with the other sign; totals change by about 1 at most.) Strang steps, each beside
    two of half its length, extrapolated; the difference of the two decides, pulse by pulse and step by step, how long
    the next one is, and the light at the edge of the band whether the band is wide enough. `tolerance` is the error
    aimed at, relative to the largest readout of the sample: most samples are better, the worst up to 30 times worse.
    The nonlinear part is a correction to linear propagation, computed in the shortest window around the pulse whose
    neglected nonlinear phase is harmless.

    >>> grid = Grid()
    >>> field = np.exp(-((grid.frequency_thz / 0.1) ** 2))[None, :] + 0j  # Fourier coefficients of a weak pulse
    >>> near, far = Fibre(loss_db_per_km=3.0, gamma_per_w_km=0.0).propagate(field, grid, [0.0, 1000.0])
    >>> round(float(np.sum(np.abs(far) ** 2) / np.sum(np.abs(near) ** 2)), 3)  # 3 dB
    0.501
    """

    length_m: NotNegative = 5.0
    beta2_ps2_per_km: Finite = -23.0
    gamma_per_w_km: NotNegative = 1.2
    loss_db_per_km: NotNegative = 0.0
    prechirp_length_m: NotNegative = 0.0  # the same fibre before the amplifier: dispersion only
    amplifier_length_m: NotNegative = (
        0.0  # effective length inside the amplifier, added to the fibre's
    )
    tolerance: Positive = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance < 1e-12:
            raise ParameterError(
                f"`tolerance={self.tolerance:g}` is below rounding; give 1e-12 or more."
            )

    @property
    def single(self) -> bool:
        """Whether the tolerance allows the nonlinear correction in single precision, good to about 3e-6."""
        return self.tolerance >= 5e-6

    def exponent(self, frequency_thz: Floats) -> Floats:
        """What a metre of linear propagation adds to the logarithm of the field."""
        omega = 2 * np.pi * frequency_thz
        loss = self.loss_db_per_km * np.log(10) / 10 * 1e-3
        return 0.5j * self.beta2_ps2_per_km * 1e-3 * omega**2 - loss / 2

    def propagate(
        self, field: Any, grid: Grid, lengths_m: Sequence[float], shape: Any = None
    ) -> list[Any]:
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
        fourier = transforms(field)
        if shape is None or self.prechirp_length_m:  # dispersion has moved what was known
            shape = fourier.fft(field)
        crop = self._crop(shape, field, grid, total[-1])
        for n_points in np.unique(crop).tolist():
            rows = np.flatnonzero(crop == n_points)
            near = nearest(take_rows(shape, as_like(rows, field)), n_points)
            start = fourier.ifft(near * as_like(_fade(n_points, grid.n_points), field))
            for position, correction in enumerate(self._corrections(start, grid, total)):
                out[position][as_like(rows, field)] += fourier.ifft(
                    widened(fourier.fft(correction), grid.n_points)
                )
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
            far = np.exp(
                self.exponent(grid.frequency_thz) * length_m
            )  # may carry light out of the window
            powers.append(_power(transforms(field).fft(field * as_like(far, field))))
        cubes = sum((power * xp.sqrt(power)) @ as_like(1 - kept.T, power) for power in powers)
        step_ps = grid.window_ps / grid.n_points
        largest = xp.sqrt(xp.max(_power(field), axis=1)) * grid.window_ps
        harm = (
            2 * self.gamma_per_w_km * 1e-3 * length_m * step_ps * to_numpy(cubes / largest[:, None])
        )
        harmless = harm <= self.tolerance / 2
        harmless[:, -1] = True
        return np.array(sizes)[np.argmax(harmless, axis=1)]

    def _corrections(self, start: Any, grid: Grid, lengths: Sequence[float]) -> list[Any]:
        """Nonlinear minus linear propagation of cropped fields, at each length: (samples, points)."""
        xp, narrow = array_namespace(start), start.shape[1]
        first = xp.astype(start, xp.complex64) if self.single else start
        begin = np.zeros(first.shape[0], dtype=int)
        groups = [Pulses(first, np.arange(len(begin)), begin, begin)]
        exponent = self.exponent(np.fft.fftfreq(narrow, 1 / grid.band_thz))
        power = _power(first)
        light = to_numpy(xp.stack([xp.max(power, axis=1), xp.sum(power, axis=1)])).astype(float)
        out, before, failed = [], 0.0, np.zeros(len(begin), dtype=bool)
        for length in lengths:
            # Errors are relative to the light sent in, less what is lost: a compressed pulse is spread too thin.
            groups = self._march(groups, length - before, grid, narrow, light, failed)
            light = light * np.exp(2 * exponent[0].real * (length - before))
            correction = xp.zeros_like(start)
            linear = first * as_like(np.exp(exponent * length), first)
            for one in groups:
                rows = as_like(one.rows, start)
                change = nearest(one.field, narrow) - take_rows(linear, rows)
                correction[rows] = xp.astype(change, start.dtype)
                one.place = np.zeros_like(one.place)
            out.append(correction)
            before = length
        if failed.any():
            warn(
                f"{failed.sum()} pulses did not reach tolerance={self.tolerance:g} with {2 ** (FINEST + 1)} steps and "
                f"{WIDEST_BAND * grid.band_thz:g} THz; lower the power or the length."
            )
        return out

    def _march(
        self,
        groups: list[Pulses],
        stretch: float,
        grid: Grid,
        narrow: int,
        light: Floats,
        failed: Any,
    ) -> list[Pulses]:
        """All pulses at the end of a stretch, in groups with one band; a pulse goes on in a wider one where it must.

        `narrow` is how many points the first band has; `light` holds the largest and the whole power of each sample at
        the beginning of the stretch. Samples that had to go on with a larger error are marked in `failed`.
        """
        arrived, waiting = [], groups
        while waiting:
            n_points = min(one.field.shape[1] for one in waiting)
            pulses = _together([one for one in waiting if one.field.shape[1] == n_points])
            waiting = [one for one in waiting if one.field.shape[1] > n_points]
            there, wider = self._in_one_band(pulses, stretch, grid, narrow, light, failed)
            arrived += [_together(there)] if there else []
            waiting += wider
        return arrived

    def _in_one_band(
        self, pulses: Pulses, stretch: float, grid: Grid, narrow: int, light: Floats, failed: Any
    ) -> tuple[list[Pulses], list[Pulses]]:
        """Pulses that arrived at the end of the stretch, and those that need a wider band to go on in."""
        field, n_points = pulses.field, pulses.field.shape[1]
        xp = array_namespace(field)
        table = as_like(
            _half_steps(self, n_points, grid.band_thz / narrow, stretch, FINEST + 2), field
        )
        strength = self.gamma_per_w_km * 1e-3 * stretch * 0.5 ** np.arange(FINEST + 2)[:, None]
        strength = as_like(strength, xp.real(field))
        allowed = STEP_ERROR**2 * self.tolerance * 0.25 ** np.arange(FINEST + 1)
        loss = 2 * self.exponent(np.zeros(1))[0].real * stretch / 2**FINEST
        edge = slice(3 * n_points // 8, 5 * n_points // 8)
        arrived, wider = [], []
        while len(pulses.rows):
            best, apart = _step(field, pulses.level, table, strength)
            numbers = xp.stack(
                [xp.max(_power(apart), axis=1), xp.sum(_power(best[:, edge]), axis=1)]
            )
            left = np.exp(loss * (pulses.place + 2.0 ** (FINEST - pulses.level)))
            error, beyond = to_numpy(numbers).astype(float) / (light[:, pulses.rows] * left)
            limit = allowed[pulses.level]
            rough, cut = error > limit, beyond > EDGE_ERROR**2 * self.tolerance
            shorter = rough & (pulses.level < FINEST)
            wide = cut & (n_points < WIDEST_BAND * narrow)
            moved = ~shorter & ~wide
            failed[pulses.rows] |= moved & (rough | cut)
            field = pulses.field = (
                best if moved.all() else xp.where(as_like(moved, best)[:, None], best, field)
            )
            pulses.place = pulses.place + np.where(moved, 2 ** (FINEST - pulses.level), 0)
            calm = moved & (error <= CALM**2 * limit) & (pulses.level > 0)
            calm &= (
                pulses.place % 2 ** (FINEST - pulses.level + 1) == 0
            )  # longer steps begin at their own places
            pulses.level = pulses.level + (shorter & ~wide) - calm
            done = pulses.place >= 2**FINEST
            arrived += [pulses.some(done)] if done.any() else []
            if wide.any():
                wider.append(pulses.some(wide))
                wider[-1].field = widened(wider[-1].field, 2 * n_points)
            if (done | wide).any():
                pulses = pulses.some(~done & ~wide)
                field = pulses.field
        return arrived, wider


def _step(field: Any, level: Integers, table: Any, strength: Any) -> tuple[Any, Any]:
    """One step of each pulse, extrapolated, and how far it is from two steps of half its length.

    `level` says how often the stretch is halved for a pulse's step; `table` holds linear propagation over half of such
    a step and `strength` the nonlinear phase per power over a whole one, for every level.
    """
    there = as_like(
        level[:1] if (level == level[0]).all() else level, field
    )  # no copies where all steps are alike
    half, quarter, whole = (
        take_rows(table, there),
        take_rows(table, there + 1),
        take_rows(strength, there),
    )
    coarse = _turned(field * half, whole) * half
    fine = _turned(_turned(field * quarter, whole / 2) * half, whole / 2) * quarter
    apart = (fine - coarse) / 3
    return fine + apart, apart


@lru_cache(maxsize=64)
def _half_steps(fibre: Fibre, n_points: int, spacing: float, stretch: float, levels: int) -> Any:
    """Linear propagation over half of a step, for the steps of every level: (levels, points)."""
    exponent = fibre.exponent(np.fft.fftfreq(n_points, 1 / (n_points * spacing)))
    return np.exp(exponent * (stretch * 0.5 ** np.arange(1, levels + 1)[:, None]))


def _turned(field: Any, strength: Any) -> Any:
    """The spectrum after the nonlinear phase, which light takes up in time by its own power."""
    fourier = transforms(field)
    shape = fourier.fft(field)
    shape *= rotation(strength * _power(shape))
    return fourier.ifft(shape)


def _together(groups: list[Pulses]) -> Pulses:
    if len(groups) == 1:
        return groups[0]
    field = array_namespace(groups[0].field).concat([one.field for one in groups], axis=0)
    numbers = ([getattr(one, name) for one in groups] for name in ("rows", "place", "level"))
    return Pulses(field, *map(np.concatenate, numbers))


def _power(field: Any) -> Any:
    if on_host(field):
        return field.real**2 + field.imag**2  # without the square root that abs takes
    return array_namespace(field).abs(field) ** 2  # in fewer steps, which is what takes time there


def _fade(n_points: int, n_total: int) -> Floats:
    """1 in the middle of a cropped window, falling to 0 at its ends; no fading when nothing is cropped."""
    if n_points == n_total:
        return np.ones(n_points)
    distance = np.abs(np.fft.fftfreq(n_points) * 2)
    ramp = np.clip((distance - FLAT) / (1 - FLAT), 0.0, 1.0)
    return np.cos(np.pi / 2 * ramp) ** 2
