"""The nonlinear fibre: many pulses at once, each with as many steps and as wide a band as it needs.

The march, from top to bottom:

- `Fibre.propagate` propagates linearly, and adds a nonlinear correction that is computed in a short
  window around each pulse.
- `Fibre._corrections` takes the pulses from length to length.
- `Fibre._march` takes them to the end of a segment, from band to band.
- `Fibre._march_in_one_band` repeats one step for all pulses of a band, and decides pulse by pulse
  whether the step counts, how long the next one is, and whether the band is wide enough.
- `extrapolated_step` is the step: one Strang step, and two of half its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    fourier_module,
    is_on_host,
    take_rows,
    to_library_of,
    to_numpy,
    unit_phasors,
)
from .._validation import (
    Checked,
    Finite,
    NotNegative,
    Positive,
    checks_arguments,
    require_number,
    require_numbers,
)
from ..errors import ParameterError, warn
from ..typing import ArrayLike, Floats, Integers
from ._stages import Grid, as_table, crop_points, pad_points

# Share of a cropped window in which the field is used as it is; towards the ends it is faded out.
FLAT_SHARE_OF_WINDOW = 0.8
# The nonlinear correction is tried in windows shorter by these factors, the shortest first.
WINDOW_DIVISORS = (8, 4, 2, 1)
# Measured over the paper's range: if a step and its two halves differ by e, the extrapolated one is
# off by about e², and light of relative amplitude e at the edge of the band does as much harm. So
# both are kept below these multiples of sqrt(tolerance).
MAX_STEP_DIFFERENCE = 0.1
MAX_EDGE_AMPLITUDE = 1.0
# The next step is twice as long if the difference is below this share of what is allowed.
LENGTHENING_SHARE = 0.25
# Dispersion that moves light by less than this is no reason for a longer window.
NEGLIGIBLE_SPREAD_PS = 10.0
# Halvings of a segment of fibre to the shortest step, and widenings of the band. Beyond them a
# pulse goes on as it is, with a warning. The hardest pulse of the paper's range takes 1024 steps
# (10 halvings) and 16 times the band.
MAX_HALVINGS = 13
MAX_BAND_FACTOR = 64
# The linear propagators of a step need its half and its quarter, so two halvings more.
N_STEP_LENGTHS = MAX_HALVINGS + 2
# Smaller tolerances are below the rounding of double precision.
MIN_TOLERANCE = 1e-12
# From this tolerance on single precision suffices for the correction; it is good to about 3e-6.
MIN_TOLERANCE_FOR_SINGLE_PRECISION = 5e-6


@dataclass
class Pulses:
    """Pulses with one band on their way through a segment of fibre, each with its own step."""

    field: Any  # Fourier coefficients (pulses, points)
    samples: Integers  # the samples that the pulses belong to
    position: Integers  # where they are in the segment, in units of the shortest step
    halvings: Integers  # The next step is as long as the segment over 2^halvings.

    def select(self, mask: Any) -> Pulses:
        """Return the pulses of a mask."""
        rows = np.flatnonzero(mask)
        field = take_rows(self.field, to_library_of(rows, self.field))
        return Pulses(field, self.samples[rows], self.position[rows], self.halvings[rows])


@dataclass(frozen=True)
class IncomingLight:
    """The light of each sample at the beginning of a segment, to which errors are relative.

    The light at the end would be no good measure: the spectrum of a compressed pulse is spread
    thin.
    """

    largest_power: Floats  # of a Fourier coefficient, (samples,)
    total_power: Floats  # (samples,)

    def attenuated(self, factor: float) -> IncomingLight:
        """Return the light after a loss."""
        return IncomingLight(self.largest_power * factor, self.total_power * factor)


@dataclass(frozen=True)
class FibreSegment:
    """A segment of the fibre between two lengths at which the light is wanted."""

    length_m: float
    light: IncomingLight
    n_first_points: int  # of the first, narrowest band
    spacing_thz: float  # between the points of every band


@dataclass(frozen=True)
class Fibre(Checked):
    """A fibre in which light obeys ``dA/dz = -alpha/2 A - i beta2/2 d²A/dt² + i gamma |A|² A``.

    The sign of the dispersion is the usual one: beta2 < 0 is anomalous. (The paper prints the other
    sign; totals change by up to 1.4.) The equation is solved by Strang steps, each of which
    is compared with two steps of half its length and extrapolated. The difference decides, pulse by
    pulse and step by step, how long the next step is, and the light at the edge of the band decides
    whether the band is wide enough. The nonlinear part is a correction to linear propagation,
    computed in the shortest window around the pulse whose neglected nonlinear phase is harmless.

    Parameters
    ----------
    length_m
        The length of the fibre.
    beta2_ps2_per_km
        The dispersion.
    gamma_per_w_km
        The nonlinearity.
    loss_db_per_km
        The loss alpha.
    prechirp_length_m
        The length of the same fibre before the amplifier, where there is only dispersion.
    amplifier_length_m
        The effective length inside the amplifier, which is added to the fibre's.
    tolerance
        The error aimed at, relative to the largest readout of the sample: most samples are better,
        the worst up to 30 times worse.

    Examples
    --------
    >>> grid = Grid()
    >>> field = np.exp(-((grid.frequency_thz / 0.1) ** 2))[None, :] + 0j  # a weak pulse
    >>> fibre = Fibre(loss_db_per_km=3.0, gamma_per_w_km=0.0)
    >>> near, far = fibre.propagate(field, grid, [0.0, 1000.0])
    >>> round(float(np.sum(np.abs(far) ** 2) / np.sum(np.abs(near) ** 2)), 3)  # 3 dB
    0.501
    """

    length_m: NotNegative = 5.0
    beta2_ps2_per_km: Finite = -23.0
    gamma_per_w_km: NotNegative = 1.2
    loss_db_per_km: NotNegative = 0.0
    prechirp_length_m: NotNegative = 0.0
    amplifier_length_m: NotNegative = 0.0
    tolerance: Positive = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance < MIN_TOLERANCE:
            raise ParameterError(
                f"`tolerance={self.tolerance:g}` is below rounding; give 1e-12 or more."
            )

    @property
    def uses_single_precision(self) -> bool:
        """Whether the tolerance allows the nonlinear correction in single precision."""
        return self.tolerance >= MIN_TOLERANCE_FOR_SINGLE_PRECISION

    @property
    def _gamma_per_w_m(self) -> float:
        return self.gamma_per_w_km * 1e-3

    @property
    def _attenuation_per_m(self) -> float:
        """The decrease of the logarithm of the power over a metre."""
        return self.loss_db_per_km * np.log(10) / 10 * 1e-3

    @checks_arguments
    def exponent(self, frequency_thz: Floats) -> Floats:
        """Return what a metre of linear propagation adds to the logarithm of the field.

        Parameters
        ----------
        frequency_thz
            Frequencies relative to the carrier.
        """
        omega = 2 * np.pi * require_numbers("frequency_thz", frequency_thz)
        dispersion = 0.5j * self.beta2_ps2_per_km * 1e-3 * omega**2
        return dispersion - self._attenuation_per_m / 2

    @checks_arguments
    def propagate(
        self,
        field: ArrayLike,
        grid: Grid,
        lengths_m: Sequence[float],
        in_time: ArrayLike | None = None,
        single_precision: bool = True,
    ) -> list[Any]:
        """Return the fields after each of the lengths, from one propagation to the longest.

        Parameters
        ----------
        field
            Fourier coefficients (samples, points).
        grid
            Their frequencies.
        lengths_m
            The lengths, increasing.
        in_time
            The field in time, where it is known better than from the Fourier coefficients.
        single_precision
            Whether the nonlinear correction may be computed in single precision, where the
            tolerance allows it.

        Returns
        -------
        list of array
            Fourier coefficients (samples, points) after each length.
        """
        field = as_table("field", field, grid.n_points)
        if in_time is not None:
            in_time = as_table("in_time", in_time, grid.n_points)
        lengths = [
            require_number("lengths_m", length, minimum=0.0) for length in np.atleast_1d(lengths_m)
        ]
        if not lengths or sorted(lengths) != lengths:
            raise ParameterError(f"`lengths_m={lengths}` must be one length or more, increasing.")
        lengths = [length + self.amplifier_length_m for length in lengths]
        exponent = self.exponent(grid.frequency_thz)
        if self.prechirp_length_m:
            chirp = np.exp(1j * exponent.imag * self.prechirp_length_m)
            field = field * to_library_of(chirp, field)
            in_time = None  # Dispersion has changed it.
        outputs = [field * to_library_of(np.exp(exponent * length), field) for length in lengths]
        if self.gamma_per_w_km == 0 or lengths[-1] == 0:
            return outputs

        fourier = fourier_module(field)
        if in_time is None:
            in_time = fourier.fft(field)
        window_points = self._window_points(in_time, field, grid, lengths[-1])
        for n_points in np.unique(window_points).tolist():
            rows = to_library_of(np.flatnonzero(window_points == n_points), field)
            cropped = crop_points(take_rows(in_time, rows), n_points)
            fade = to_library_of(_fade(n_points, grid.n_points), field)
            start = fourier.ifft(cropped * fade)
            corrections = self._corrections(start, grid, lengths, single_precision)
            for output, correction in zip(outputs, corrections, strict=True):
                whole_window = pad_points(fourier.fft(correction), grid.n_points)
                output[rows] += fourier.ifft(whole_window)
        return outputs

    def _window_points(self, in_time: Any, field: Any, grid: Grid, length_m: float) -> Integers:
        """Return the points of the shortest window that neglects no nonlinear phase worth having.

        Leaving the field A at some times to linear propagation changes the spectral amplitude
        anywhere by at most gamma L times the integral of |A|³ over those times, and a readout
        relatively by twice that.
        """
        xp = array_namespace(in_time)
        sizes = [grid.n_points // divisor for divisor in WINDOW_DIVISORS]
        fades = [pad_points(_fade(n, grid.n_points)[None], grid.n_points) for n in sizes]
        neglected = 1 - np.vstack(fades)  # share of the field, (windows, points)
        powers = [_power(in_time)]
        omega_at_edge = 2 * np.pi * grid.band_thz / 2
        spread_ps = abs(self.beta2_ps2_per_km) * 1e-3 * length_m * omega_at_edge
        if spread_ps > NEGLIGIBLE_SPREAD_PS:
            # Dispersion may carry light out of the window.
            propagator = to_library_of(np.exp(self.exponent(grid.frequency_thz) * length_m), field)
            powers.append(_power(fourier_module(field).fft(field * propagator)))
        cubes = 0.0  # sums of |A|³ over the neglected times, (samples, windows)
        for power in powers:
            cubes = cubes + (power * xp.sqrt(power)) @ to_library_of(neglected.T, power)
        largest_amplitude = xp.sqrt(xp.max(_power(field), axis=1)) * grid.window_ps
        relative_cubes = to_numpy(cubes / largest_amplitude[:, None])
        step_ps = grid.window_ps / grid.n_points
        harm = 2 * self._gamma_per_w_m * length_m * step_ps * relative_cubes
        harmless = harm <= self.tolerance / 2
        harmless[:, -1] = True  # The whole window neglects nothing.
        return np.array(sizes)[np.argmax(harmless, axis=1)]

    def _corrections(
        self, start: Any, grid: Grid, lengths: Sequence[float], single_precision: bool
    ) -> list[Any]:
        """Return nonlinear minus linear propagation of cropped fields at each length.

        `start` holds Fourier coefficients (samples, points), and so do the corrections.
        """
        xp = array_namespace(start)
        n_samples, n_points = start.shape
        field = start
        if single_precision and self.uses_single_precision:
            field = xp.astype(start, xp.complex64)
        exponent = self.exponent(np.fft.fftfreq(n_points, 1 / grid.band_thz))
        power = _power(field)
        largest = xp.max(power, axis=1)
        total = xp.sum(power, axis=1)
        light = IncomingLight(*to_numpy(xp.stack([largest, total])).astype(float))
        zeros = np.zeros(n_samples, dtype=int)
        groups = [Pulses(field, np.arange(n_samples), position=zeros, halvings=zeros)]
        failed = np.zeros(n_samples, dtype=bool)
        corrections = []
        travelled = 0.0
        for length in lengths:
            segment = FibreSegment(length - travelled, light, n_points, grid.band_thz / n_points)
            groups = self._march(groups, segment, failed)
            light = light.attenuated(np.exp(-self._attenuation_per_m * segment.length_m))
            linear = field * to_library_of(np.exp(exponent * length), field)
            correction = xp.zeros_like(start)
            for pulses in groups:
                rows = to_library_of(pulses.samples, start)
                difference = crop_points(pulses.field, n_points) - take_rows(linear, rows)
                correction[rows] = xp.astype(difference, start.dtype)
                pulses.position = np.zeros_like(pulses.position)
            corrections.append(correction)
            travelled = length
        if failed.any():
            warn(
                f"{failed.sum()} pulses did not reach tolerance={self.tolerance:g} with "
                f"{2 ** (MAX_HALVINGS + 1)} steps and {MAX_BAND_FACTOR * grid.band_thz:g} THz; "
                "lower the power or the length."
            )
        return corrections

    def _march(self, groups: list[Pulses], segment: FibreSegment, failed: Any) -> list[Pulses]:
        """Return all pulses at the end of a segment, in groups with one band.

        The groups are taken from the narrowest band to the widest, and a pulse goes on in a wider
        band where it must. Samples that had to go on with a larger error are marked in `failed`.
        """
        arrived = []
        waiting = groups
        while waiting:
            n_points = min(group.field.shape[1] for group in waiting)
            narrowest = _merge([group for group in waiting if group.field.shape[1] == n_points])
            waiting = [group for group in waiting if group.field.shape[1] > n_points]
            at_end, too_wide = self._march_in_one_band(narrowest, segment, failed)
            if at_end:
                arrived.append(_merge(at_end))
            waiting += too_wide
        return arrived

    def _march_in_one_band(
        self, pulses: Pulses, segment: FibreSegment, failed: Any
    ) -> tuple[list[Pulses], list[Pulses]]:
        """Return pulses at the end of the segment, and those that need a wider band to go on."""
        n_points = pulses.field.shape[1]
        xp = array_namespace(pulses.field)
        propagators = linear_half_steps(self, n_points, segment.spacing_thz, segment.length_m)
        propagators = to_library_of(propagators, pulses.field)
        phases = self._gamma_per_w_m * segment.length_m * 0.5 ** np.arange(N_STEP_LENGTHS)[:, None]
        phases = to_library_of(phases, xp.real(pulses.field))
        # A step that is half as long may differ by half as much, for errors add up.
        step_limits = MAX_STEP_DIFFERENCE**2 * self.tolerance * 0.25 ** np.arange(MAX_HALVINGS + 1)
        edge_limit = MAX_EDGE_AMPLITUDE**2 * self.tolerance
        edge = slice(3 * n_points // 8, 5 * n_points // 8)  # the highest frequencies
        n_units = 2**MAX_HALVINGS  # shortest steps in the segment
        log_loss = -self._attenuation_per_m * segment.length_m / n_units
        can_widen = n_points < MAX_BAND_FACTOR * segment.n_first_points
        arrived = []
        too_wide = []
        while len(pulses.samples):
            after, difference = extrapolated_step(
                pulses.field, pulses.halvings, propagators, phases
            )
            # Both errors, relative to the light that came in, less what was lost on the way.
            largest_difference = xp.max(_power(difference), axis=1)
            power_at_edge = xp.sum(_power(after[:, edge]), axis=1)
            errors = xp.stack([largest_difference, power_at_edge])
            step_error, edge_error = to_numpy(errors).astype(float)
            step_units = 2 ** (MAX_HALVINGS - pulses.halvings)
            remaining = np.exp(log_loss * (pulses.position + step_units))
            step_error = step_error / (segment.light.largest_power[pulses.samples] * remaining)
            edge_error = edge_error / (segment.light.total_power[pulses.samples] * remaining)

            # A pulse takes the step, or tries a shorter one, or needs a wider band first.
            step_limit = step_limits[pulses.halvings]
            is_rough = step_error > step_limit
            is_cut = edge_error > edge_limit
            must_widen = is_cut & can_widen
            must_shorten = is_rough & (pulses.halvings < MAX_HALVINGS) & ~must_widen
            takes_step = ~must_shorten & ~must_widen
            failed[pulses.samples] |= takes_step & (is_rough | is_cut)
            if takes_step.all():
                pulses.field = after
            else:
                rows = to_library_of(takes_step, after)[:, None]
                pulses.field = xp.where(rows, after, pulses.field)
            pulses.position = pulses.position + np.where(takes_step, step_units, 0)

            # Longer steps begin at multiples of their own length.
            is_calm = step_error <= LENGTHENING_SHARE**2 * step_limit
            fits_longer_step = pulses.position % (2 * step_units) == 0
            lengthen = takes_step & is_calm & (pulses.halvings > 0) & fits_longer_step
            pulses.halvings = pulses.halvings + must_shorten - lengthen

            at_end = pulses.position >= n_units
            if at_end.any():
                arrived.append(pulses.select(at_end))
            if must_widen.any():
                widened = pulses.select(must_widen)
                widened.field = pad_points(widened.field, 2 * n_points)
                too_wide.append(widened)
            if (at_end | must_widen).any():
                pulses = pulses.select(~at_end & ~must_widen)
        return arrived, too_wide


def extrapolated_step(
    field: Any, halvings: Integers, propagators: Any, phases: Any
) -> tuple[Any, Any]:
    """Return one step of each pulse, extrapolated, and its distance from two steps half as long.

    The error of a Strang step falls as the third power of its length, so two half steps have a
    quarter of it, and adding a third of the difference removes it.

    Parameters
    ----------
    field
        Fourier coefficients (pulses, points).
    halvings
        How often the segment is halved for each pulse's step, (pulses,).
    propagators
        Linear propagation over half of a step, for each number of halvings, (steps, points).
    phases
        Nonlinear phase per power over a whole step, for each number of halvings, (steps, 1).

    Returns
    -------
    tuple of array
        The field after the step, and a third of the difference.
    """
    # Where all steps are alike, a single row serves all pulses without a copy.
    all_alike = (halvings == halvings[0]).all()
    steps = to_library_of(halvings[:1] if all_alike else halvings, field)
    half = take_rows(propagators, steps)
    quarter = take_rows(propagators, steps + 1)
    phase = take_rows(phases, steps)
    coarse = _with_nonlinear_phase(field * half, phase) * half
    middle = _with_nonlinear_phase(field * quarter, phase / 2) * half
    fine = _with_nonlinear_phase(middle, phase / 2) * quarter
    difference = (fine - coarse) / 3
    return fine + difference, difference


@lru_cache(maxsize=64)
def linear_half_steps(fibre: Fibre, n_points: int, spacing_thz: float, length_m: float) -> Floats:
    """Return linear propagation over half of a step, for steps of a length over 1, 2, 4, ...

    The propagators (steps, points) are factors for Fourier coefficients.
    """
    exponent = fibre.exponent(np.fft.fftfreq(n_points, 1 / (n_points * spacing_thz)))
    half_steps = length_m * 0.5 ** np.arange(1, N_STEP_LENGTHS + 1)
    return np.exp(exponent * half_steps[:, None])


def _with_nonlinear_phase(field: Any, phase_per_power: Any) -> Any:
    """Return Fourier coefficients after the phase that light takes up in time by its own power."""
    fourier = fourier_module(field)
    in_time = fourier.fft(field)
    in_time *= unit_phasors(phase_per_power * _power(in_time))
    return fourier.ifft(in_time)


def _merge(groups: list[Pulses]) -> Pulses:
    """Return the pulses of several groups with one band as one group."""
    if len(groups) == 1:
        return groups[0]
    xp = array_namespace(groups[0].field)
    return Pulses(
        field=xp.concat([group.field for group in groups], axis=0),
        samples=np.concatenate([group.samples for group in groups]),
        position=np.concatenate([group.position for group in groups]),
        halvings=np.concatenate([group.halvings for group in groups]),
    )


def _power(field: Any) -> Any:
    """Return |A|², by the quickest way of each kind of array."""
    if is_on_host(field):
        return field.real**2 + field.imag**2  # without the square root that abs takes
    # On a device the number of operations counts, not their cost.
    return array_namespace(field).abs(field) ** 2


def _fade(n_points: int, n_total: int) -> Floats:
    """Return 1 in the middle of a cropped window, falling to 0 at its ends.

    Where nothing is cropped there is no fading.
    """
    if n_points == n_total:
        return np.ones(n_points)
    distance = np.abs(np.fft.fftfreq(n_points) * 2)
    ramp = np.clip((distance - FLAT_SHARE_OF_WINDOW) / (1 - FLAT_SHARE_OF_WINDOW), 0.0, 1.0)
    return np.cos(np.pi / 2 * ramp) ** 2
