"""The photonic experiment as a black box: inputs in, spectra out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._arrays import array_namespace, fourier_module, is_on_host, to_library_of
from .._processes import map_on_helpers
from .._threads import all_cores, parallel_map
from .._validation import check_fields, checks_arguments, require_numbers, require_whole_number
from ..errors import DataError, ParameterError
from ..typing import Floats
from ._fibre import Fibre
from ._stages import N_CELLS, Detector, Encoder, Grid, Pulse, crop_points, ghz_per_nm

# A function noise(stage, *shape) that returns standard normal numbers (samples, *shape).
Noise = Callable[..., Floats]
# The default of `phase_noise`; None means no phase noise.
AS_ENCODER = "as the encoder"
STAGES = {"pulse": Pulse, "encoder": Encoder, "fibre": Fibre, "detector": Detector, "grid": Grid}
# Spectral amplitude of the pulse at the edge of the band, relative to its centre, that still counts
# as nothing.
MAX_PULSE_AT_BAND_EDGE = 5e-4
# Relative noise from which on the rounding of single precision, 1e-7, is negligible.
MIN_NOISE_FOR_SINGLE_PRECISION = 1e-4
# Inputs may exceed ±1 by rounding.
INPUT_ROUNDING = 1e-9
# Each stage draws the noise of this many samples from one random stream, wherever they are
# propagated.
SAMPLES_PER_STREAM = 512
# Samples that a processor propagates together at most, however few threads there are.
MAX_SAMPLES_PER_BLOCK = 4 * SAMPLES_PER_STREAM
# Threads among which the samples are shared on a processor: fewer where light takes many short
# steps, that is, for a nonlinear phase above 1. More threads with fewer samples each would wait for
# Python's interpreter lock.
MAX_THREADS = 8
MAX_THREADS_WITH_SHORT_STEPS = 4
# About the seconds of a sample on one core, and how much longer they are with strong pulses, for
# each unit of the squared nonlinear phase.
SECONDS_PER_SAMPLE = 6e-5
SHARE_PER_SQUARED_PHASE = 0.1
# Tasks below which helper processes do not share the work better than threads.
MIN_TASKS_FOR_HELPERS = 4
# Random streams whose samples a graphics card propagates together: a step takes there the time of
# its launches, however many pulses take it.
STREAMS_PER_BLOCK_ON_DEVICE = 128


@dataclass(frozen=True)
class _PublishedFit:
    """Parameters with which the simulator comes close to the published experiment."""

    prechirp_length_m: float
    exponent_spread: float
    phase_spread_rad: float
    relative: float
    additive_mw_per_nm: float
    # Which bins of the encoder deviate by how much: one of three patterns that were tried.
    calibration_seed: int


# All minima of chi² that are about as good as the best, the best first: `infocap reproduce twin`
# finds them and compares them with these numbers.
PUBLISHED_FITS = (
    _PublishedFit(
        prechirp_length_m=210.0,
        exponent_spread=0.0106,
        phase_spread_rad=0.0713,
        relative=2.6e-3,
        additive_mw_per_nm=3.0e-6,
        calibration_seed=2,
    ),
    _PublishedFit(
        prechirp_length_m=244.0,
        exponent_spread=0.0159,
        phase_spread_rad=0.0494,
        relative=3.02e-3,
        additive_mw_per_nm=3.7e-6,
        calibration_seed=0,
    ),
    _PublishedFit(
        prechirp_length_m=138.0,
        exponent_spread=0.017,
        phase_spread_rad=0.021,
        relative=2.9e-3,
        additive_mw_per_nm=1.8e-6,
        calibration_seed=0,
    ),
)

# Found in the authors' program, Phot_sys.m of their repository (commit 848affc). It asks for a
# filter of 12 cells, divides by a width of a cell that is 1 - 1e-16 GHz in double precision, and
# rounds up.
FILTER_GHZ_OF_AUTHORS = 13.0
# It smooths the mask so far beyond the span of the bins.
FILTER_MARGIN_NM_OF_AUTHORS = 0.25
# Its first reading lies at the 1 GHz point next to 1548.25 nm.
DETECTOR_OFFSET_NM_OF_AUTHORS = -0.00305


class _Light(NamedTuple):
    """The light on its way through the experiment."""

    mask: Any  # of the encoder, (samples, points)
    before: Any  # the fields before the fibre, (samples, points)
    after: list[Any]  # the fields after each length of fibre


# Radians of nonlinear phase that the simulation resolves: a sample took 7 s at 40 and more than
# 25 s at 126, and at 1257, which is 40 dBm, readouts were NaN.
MAX_NONLINEAR_PHASE = 100.0


@dataclass(frozen=True)
class FibreSystem:
    """A picosecond pulse, shaped by the inputs, sent through a nonlinear fibre and measured.

    The defaults are the paper's. With ``phase_noise=None`` and a noise-free detector the system is
    deterministic. Each stage can be replaced, for example
    ``FibreSystem(length_m=40, detector=Detector(relative=1e-3))``. The first five parameters belong
    to a stage, too; what is given here wins over the stage.

    Parameters
    ----------
    power_dbm
        The average power of the unmasked pulse train after the amplifier; by default 6.6 dBm.
    length_m
        The length of the fibre; by default 5 m.
    n_inputs
        The number of inputs; by default 5.
    phase_noise
        ``"bin"`` (the default), ``"cell"`` or None; see `Encoder`.
    tolerance
        The error of the propagation aimed at, relative to the largest readout of a sample; by
        default 1e-5.
    pulse, encoder, fibre, detector, grid
        The stages.

    Examples
    --------
    >>> system = FibreSystem(power_dbm=-1.9, length_m=40.0, n_inputs=2)
    >>> system(np.zeros((3, 2)), seed=0).shape
    (3, 71)
    >>> round(system.nonlinear_phase, 3)
    0.649
    """

    is_simulation: ClassVar[bool] = True  # Several points of a sweep may be computed at a time.
    shares_its_work: ClassVar[bool] = True  # One call is computed by all helper processes.
    # How many fits `published` knows.
    n_published: ClassVar[int] = len(PUBLISHED_FITS)

    power_dbm: float = None  # type: ignore[assignment]
    length_m: float = None  # type: ignore[assignment]
    n_inputs: int = None  # type: ignore[assignment]
    phase_noise: str | None = AS_ENCODER
    tolerance: float = None  # type: ignore[assignment]
    pulse: Pulse = None  # type: ignore[assignment]
    encoder: Encoder = None  # type: ignore[assignment]
    fibre: Fibre = None  # type: ignore[assignment]
    detector: Detector = None  # type: ignore[assignment]
    grid: Grid = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        check_fields(self)
        self._make_stages()
        per_nm = ghz_per_nm(self.pulse.wavelength_nm)
        if self.encoder.span_nm * per_nm > N_CELLS:
            raise ParameterError(
                f"the encoder's span_nm={self.encoder.span_nm:g} is wider than the raster of "
                f"{N_CELLS} GHz; give less than {N_CELLS / per_nm:.2f} nm."
            )
        # The interpolation needs a cell more on both sides.
        detected_nm = self.detector.span_nm + 2 * abs(self.detector.offset_nm)
        if detected_nm * per_nm > N_CELLS - 2:
            raise ParameterError(
                f"the detector's span_nm={self.detector.span_nm:g} is wider than the raster of "
                f"{N_CELLS} GHz; give less than {(N_CELLS - 2) / per_nm:.2f} nm, less twice its "
                "offset_nm."
            )
        edge, centre = self.pulse.amplitude(np.array([self.grid.band_thz / 2, 0.0]))
        if edge / centre > MAX_PULSE_AT_BAND_EDGE:
            raise ParameterError(
                f"`width_nm={self.pulse.width_nm:g}` is too wide for a band of "
                f"{self.grid.band_thz:g} THz; give Grid(band_thz=2.048) or more."
            )

        self._refuse_phase(self.power_dbm, self.length_m)

    def _refuse_phase(self, power_dbm: float, length_m: float) -> None:
        """Refuse a power and a length at which the propagation would not be resolved."""
        length_km = (length_m + self.fibre.amplifier_length_m) * 1e-3
        peak_power_w = self.peak_power_w * 10 ** ((power_dbm - self.power_dbm) / 10)
        phase = self.fibre.gamma_per_w_km * peak_power_w * length_km
        if phase > MAX_NONLINEAR_PHASE:
            highest_dbm = power_dbm - 10 * np.log10(phase / MAX_NONLINEAR_PHASE)
            raise ParameterError(
                f"`power_dbm={power_dbm:g}` over {length_m:g} m is a nonlinear phase of "
                f"{phase:.3g} rad, more than the {MAX_NONLINEAR_PHASE:g} that the simulation "
                f"resolves; give {highest_dbm:.1f} dBm or less, or a shorter `length_m`."
            )

    def _make_stages(self) -> None:
        """Make the stages that are not given, and let parameters and stages agree.

        A parameter that was given changes its stage; the others are taken from their stages.
        """
        system_parameters = {field.name for field in fields(self)}
        for stage_name, make_stage in STAGES.items():
            stage = getattr(self, stage_name)
            if stage is None:
                stage = make_stage()
            shared = [field.name for field in fields(stage) if field.name in system_parameters]
            changes = {}
            for name in shared:
                default = getattr(FibreSystem, name)
                if getattr(self, name) != default:
                    changes[name] = getattr(self, name)
            stage = replace(stage, **changes)
            object.__setattr__(self, stage_name, stage)
            for name in shared:
                object.__setattr__(self, name, getattr(stage, name))

    @classmethod
    @checks_arguments
    def published(cls, *, member: int = 0, **settings: Any) -> "FibreSystem":
        """Return the simulator fitted to the published experiment.

        Five numbers beyond the paper's own parameters were fitted to the capacities that its
        authors show: dispersion before the amplifier, bins of the encoder that differ, and two
        kinds of noise of the spectrometer, in place of phase noise. Several fits are about equally
        good and predict differently: use each of them, and give the spread. `infocap reproduce
        twin` repeats the fits and gives their errors.

        Parameters
        ----------
        member
            Which of the `FibreSystem.n_published` fits, from 0, the best.
        **settings
            Power, length, number of inputs and others, as for `FibreSystem`.

        Examples
        --------
        >>> settings = {"power_dbm": -1.9, "length_m": 40.0, "n_inputs": 2}
        >>> twins = [FibreSystem.published(member=k, **settings) for k in range(3)]
        >>> [twin.fibre.prechirp_length_m for twin in twins]
        [210.0, 244.0, 138.0]
        """
        if require_whole_number("member", member, minimum=0) >= len(PUBLISHED_FITS):
            raise ParameterError(
                f"`member={member}` is not one of the {len(PUBLISHED_FITS)} published fits; give 0 "
                f"to {len(PUBLISHED_FITS) - 1}."
            )
        fit = PUBLISHED_FITS[member]
        return cls(
            encoder=Encoder(
                phase_noise=None,
                exponent_spread=fit.exponent_spread,
                phase_spread_rad=fit.phase_spread_rad,
                calibration_seed=fit.calibration_seed,
            ),
            fibre=Fibre(prechirp_length_m=fit.prechirp_length_m),
            detector=Detector(
                relative=fit.relative,
                additive_mw_per_nm=fit.additive_mw_per_nm,
            ),
            **settings,
        )

    @classmethod
    @checks_arguments
    def authors_program(cls, **settings: Any) -> "FibreSystem":
        """Return the system as the authors' program simulates it.

        Their program, Phot_sys.m, differs from the paper's text: phases are drawn for each 1 GHz
        cell, the instrument's filter is 13 GHz wide and acts up to 0.25 nm beyond the bins, bins
        consist of whole cells, and the first reading lies at the cell next to 1548.25 nm. Its
        inputs come in the opposite order: input k here is input ``n_inputs - 1 - k`` there.

        Without noise the readouts are the same to 0.002 of the largest, but where its steps of
        0.5 m are too long: all light at 7.1 dBm over 40 m is off by 0.04 there.

        Parameters
        ----------
        **settings
            Power, length, number of inputs and others, as for `FibreSystem`.

        Examples
        --------
        >>> FibreSystem.authors_program(n_inputs=2).encoder.filter_ghz
        13.0
        """
        encoder = Encoder(
            filter_ghz=FILTER_GHZ_OF_AUTHORS,
            filter_margin_nm=FILTER_MARGIN_NM_OF_AUTHORS,
            phase_noise="cell",
            whole_cells=True,
        )
        detector = Detector(offset_nm=DETECTOR_OFFSET_NM_OF_AUTHORS)
        return cls(**{"encoder": encoder, "detector": detector, **settings})

    @property
    def wavelength_nm(self) -> Floats:
        """Wavelengths of the readouts."""
        return self.pulse.wavelength_nm + self.detector.readout_offset_nm

    @property
    def peak_power_w(self) -> float:
        """Peak power of the unmasked pulse after the amplifier."""
        return self.pulse.peak_power_w

    @property
    def nonlinear_phase(self) -> float:
        """The phase gamma P_peak L, with the amplifier's effective length."""
        length_km = (self.length_m + self.fibre.amplifier_length_m) * 1e-3
        return self.fibre.gamma_per_w_km * self.peak_power_w * length_km

    @property
    def uses_single_precision(self) -> bool:
        """Whether the tolerance allows single precision, and noise is far above its rounding.

        It has to be so in every direction of the readouts. Noise of cells or of the detector is.
        The few phases of bins leave most directions free of noise, in which rounding would pass for
        functions of the inputs.
        """
        noise = self.detector.relative
        if self.encoder.phase_noise == "cell":
            noise = max(noise, self.encoder.phase_noise_rad)
        return self.fibre.uses_single_precision and noise >= MIN_NOISE_FOR_SINGLE_PRECISION

    def __call__(self, u: Any, seed: Any = None) -> Any:
        """Return the readouts in mW / nm, (samples, readouts): 71 with the detector of the paper.

        Parameters
        ----------
        u
            Inputs between -1 and 1, (samples, inputs).
        seed
            Makes the noise reproducible; None draws fresh noise.
        """
        return self.readouts(u, [self.length_m], seed)[0]

    @checks_arguments
    def readouts(
        self,
        u: Any,
        lengths_m: Sequence[float],
        seed: Any = None,
        powers_dbm: Sequence[float] | None = None,
    ) -> list[Any]:
        """Return the readouts after several fibre lengths, from one propagation.

        They share the light and the noise of the encoder. With `powers_dbm` all pulses travel
        together, which keeps a graphics card busy, and the numbers are those that a system of each
        power gives.

        Parameters
        ----------
        u
            Inputs between -1 and 1, (samples, inputs).
        lengths_m
            The lengths, increasing.
        seed
            Makes the noise reproducible; None draws fresh noise.
        powers_dbm
            Powers in place of the system's own.

        Returns
        -------
        list
            The readouts (samples, readouts) after each length; with `powers_dbm` such a list for
            each power.
        """
        powers = [self.power_dbm] if powers_dbm is None else [float(dbm) for dbm in powers_dbm]
        if not powers:
            raise ParameterError("`powers_dbm` is empty; give one power or more, or None.")
        for power in powers:
            for length in lengths_m:
                self._refuse_phase(power, length)
        pulses = [replace(self.pulse, power_dbm=power) for power in powers]
        u = self._checked_inputs(u)
        if is_on_host(u):
            block_size = self._block_size_on_host(len(u), pulses)
        else:
            streams_per_block = max(STREAMS_PER_BLOCK_ON_DEVICE // len(pulses), 1)
            block_size = streams_per_block * SAMPLES_PER_STREAM

        def propagate(start: int) -> list[Any]:
            block = u[start : start + block_size]
            noise = partial(_draw_noise, seed, start, block.shape[0])
            return self._readouts_of_block(block, lengths_m, noise, pulses)

        starts = range(0, u.shape[0], block_size)
        if is_on_host(u):
            blocks = self._blocks_of_helpers(u, lengths_m, seed, pulses)
            if blocks is None:
                blocks = parallel_map(propagate, starts)
        else:
            blocks = [propagate(start) for start in starts]
        xp = array_namespace(u)
        readouts = [xp.concat(list(pieces), axis=0) for pieces in zip(*blocks, strict=True)]
        if powers_dbm is None:
            return readouts
        n_lengths = len(lengths_m)
        return [readouts[k : k + n_lengths] for k in range(0, len(readouts), n_lengths)]

    def _blocks_of_helpers(
        self, u: Any, lengths_m: Sequence[float], seed: Any, pulses: Sequence[Pulse]
    ) -> list[list[Any]] | None:
        """Return the readouts of each random stream's samples, from helper processes.

        None where there are no helpers, because the work is too little.
        """
        starts = range(0, len(u), SAMPLES_PER_STREAM)
        # The strongest pulses take longest. They go first, so that no helper is left with one.
        order = sorted(range(len(pulses)), key=lambda number: -pulses[number].peak_power_w)
        tasks = [(number, start) for number in order for start in starts]
        seconds = 0.0
        for pulse in pulses:
            phase = pulse.peak_power_w / self.peak_power_w * self.nonlinear_phase
            seconds += len(u) * SECONDS_PER_SAMPLE * (1 + SHARE_PER_SQUARED_PHASE * phase**2)
        if len(tasks) < MIN_TASKS_FOR_HELPERS:
            return None
        arguments = [
            (u[start : start + SAMPLES_PER_STREAM], start, pulses[number])
            for number, start in tasks
        ]
        work = partial(_readouts_of_stream, self, lengths_m, seed)
        readouts = map_on_helpers(work, arguments, seconds)
        if readouts is None:
            return None
        of_task = dict(zip(tasks, readouts, strict=True))
        blocks = []
        for start in starts:
            block = []
            for number in range(len(pulses)):
                block += of_task[number, start]
            blocks.append(block)
        return blocks

    def _block_size_on_host(self, n_samples: int, pulses: Sequence[Pulse]) -> int:
        """Return how many samples are propagated together: an equal share for each thread.

        It is a multiple of the samples of one random stream.
        """
        highest_power_w = max(pulse.peak_power_w for pulse in pulses)
        largest_phase = highest_power_w / self.peak_power_w * self.nonlinear_phase
        max_threads = MAX_THREADS_WITH_SHORT_STEPS if largest_phase > 1 else MAX_THREADS
        with all_cores() as n_cores:
            samples_per_round = min(n_cores, max_threads) * SAMPLES_PER_STREAM
        streams_per_thread = -(-n_samples // samples_per_round)  # rounded up
        return min(streams_per_thread * SAMPLES_PER_STREAM, MAX_SAMPLES_PER_BLOCK)

    def _readouts_of_block(
        self, u: Any, lengths_m: Sequence[float], noise: Noise, pulses: Sequence[Pulse]
    ) -> list[Any]:
        """Return the readouts of a block of samples: for each pulse, after each length."""
        n_samples = u.shape[0]
        # Mask and light before the fibre are not kept: new arrays can then use their memory.
        fields = self._propagated(u, lengths_m, noise, pulses).after
        densities = [self._density_on_raster(field) for field in fields]
        readouts = []
        for k in range(len(pulses)):
            rows = slice(k * n_samples, (k + 1) * n_samples)
            # Stage 0 is the encoder; the detector has a stage of noise for each length.
            for stage, density in enumerate(densities, start=1):
                readings = self.detector.read(density[rows], self.pulse.wavelength_nm)
                if self.detector.noisy:
                    values = to_library_of(noise(stage, 2, readings.shape[1]), readings)
                    readings = self.detector.disturb(readings, values)
                readouts.append(readings)
        return readouts

    def _density_on_raster(self, field: Any) -> Any:
        """Return power densities in mW / nm (samples, cells) of a field (samples, points)."""
        step = self.grid.points_per_cell
        amplitude = crop_points(field, N_CELLS * step)[:, ::step]
        unit = self.pulse.density_unit * self.grid.window_ps**2
        return array_namespace(field).abs(amplitude) ** 2 * unit

    @checks_arguments
    def stages(self, u: Any, seed: Any = None) -> dict[str, Any]:
        """Return mask, and fields (samples, points) before and after the fibre, in sqrt(W).

        Parameters
        ----------
        u
            Inputs between -1 and 1, (samples, inputs).
        seed
            Makes the noise reproducible; None draws fresh noise.

        Returns
        -------
        dict
            ``"mask"``, the field transmission of the encoder, ``"before"`` and ``"after"``, the
            fields in sqrt(W); each (samples, points).
        """
        u = self._checked_inputs(u)
        noise = partial(_draw_noise, seed, 0, u.shape[0])
        light = self._propagated(u, [self.length_m], noise, [self.pulse])
        return {"mask": light.mask, "before": light.before, "after": light.after[0]}

    def _propagated(
        self, u: Any, lengths_m: Sequence[float], noise: Noise, pulses: Sequence[Pulse]
    ) -> _Light:
        """Return the light of all samples of one pulse after the other."""
        xp = array_namespace(u)
        if self.uses_single_precision:
            u = xp.astype(u, xp.float32)
        n_noises = self.encoder.n_noises
        phases = to_library_of(noise(0, n_noises), u) if n_noises else None
        cells = self.encoder.cells(u, phases, self.pulse.wavelength_nm)
        mask, mask_between = self.encoder.filtered(
            cells, self.grid, 0.0, 0.5, wavelength_nm=self.pulse.wavelength_nm
        )
        before = mask * self._pulse_coefficients(mask)
        between = mask_between * self._pulse_coefficients(mask, offset=0.5)
        in_time = self._field_in_time(before, between)
        if len(pulses) > 1 or pulses[0] != self.pulse:
            ratios = [pulse.peak_power_w / self.peak_power_w for pulse in pulses]
            factors = [float(np.sqrt(ratio)) for ratio in ratios]
            before = xp.concat([before * factor for factor in factors], axis=0)
            in_time = xp.concat([in_time * factor for factor in factors], axis=0)
        # Rounding would hide what noise of bins leaves to be seen: see `uses_single_precision`.
        allows_single = self.uses_single_precision or self.encoder.phase_noise != "bin"
        after = self.fibre.propagate(before, self.grid, lengths_m, in_time, allows_single)
        return _Light(mask, before, [xp.astype(field, xp.complex128) for field in after])

    def _field_in_time(self, field: Any, between: Any) -> Any:
        """Return the light in time, without what the finite window folds back.

        Kinks of the spectrum half-way between the cells make tails that fall as 1 / t² (without a
        filter as 1 / t). If the spectrum is sampled at the points of the grid, the tails fold back
        with alternating signs; if it is sampled `between` them, with equal signs (or the other way
        round, for an even number of points in a cell). Both series have known sums, so the light
        itself is the weighted mean of the two samplings in which both cancel.
        """
        fourier = fourier_module(field)
        time = np.fft.fftfreq(self.grid.n_points)  # in units of the window
        # The value at the centre, where the sums are 0 / 0, is replaced below.
        angle = np.pi * np.where(time == 0, 0.1, time)
        if self.encoder.filter is None:
            alternating_sum = 1 / np.sin(angle) - 1 / angle
            equal_sum = 1 / np.tan(angle) - 1 / angle
        else:
            alternating_sum = np.cos(angle) / np.sin(angle) ** 2 - 1 / angle**2
            equal_sum = 1 / np.sin(angle) ** 2 - 1 / angle**2
        # Only the ratio of the two sums matters, which is -1/2 at the centre.
        alternating_sum[0] = -1.0
        equal_sum[0] = 2.0
        if self.grid.points_per_cell % 2:
            share = alternating_sum / (alternating_sum - equal_sum)
        else:
            share = equal_sum / (equal_sum - alternating_sum)
        shift = to_library_of(np.exp(-1j * np.pi * time), field)
        at_points = fourier.fft(field)
        halfway = fourier.fft(between) * shift
        return at_points * to_library_of(1 - share, field) + halfway * to_library_of(share, field)

    def _pulse_coefficients(self, like: Any, offset: float = 0.0) -> Any:
        """Return Fourier coefficients of the pulse in sqrt(W).

        They belong to the points of the grid, shifted by `offset` spacings.
        """
        spacing = self.grid.spacing_thz
        amplitude = self.pulse.amplitude(self.grid.frequency_thz + offset * spacing)
        return to_library_of(amplitude * spacing, like)

    def _checked_inputs(self, u: Any) -> Any:
        """Return the inputs in double precision; refuse a wrong shape and values beyond ±1."""
        # Lists and tables become NumPy arrays; arrays of other libraries stay what they are.
        if not hasattr(u, "__dlpack__"):
            u = require_numbers("u", u, finite=False)
        if u.ndim != 2 or u.shape[1] != self.n_inputs or u.shape[0] == 0:
            raise DataError(
                f"u has shape {tuple(u.shape)}; this system needs (samples, {self.n_inputs})."
            )
        if isinstance(u, np.ndarray) and u.dtype.kind not in "fiub":
            raise DataError(f"u holds {u.dtype}; give real numbers between -1 and 1.")
        xp = array_namespace(u)
        largest = float(xp.max(xp.abs(u)))
        if np.isnan(largest) or largest > 1 + INPUT_ROUNDING:
            raise DataError(f"u reaches {largest:g}; the encoder takes inputs between -1 and 1.")
        return xp.astype(u, xp.float64)


def _readouts_of_stream(
    system: FibreSystem,
    lengths_m: Sequence[float],
    seed: Any,
    task: tuple[Floats, int, Pulse],
) -> list[Any]:
    """Return the readouts after each length of the samples of one random stream."""
    u, start, pulse = task
    noise = partial(_draw_noise, seed, start, len(u))
    return system._readouts_of_block(u, lengths_m, noise, [pulse])


def _draw_noise(seed: Any, first: int, n_samples: int, stage: int, *shape: int) -> Floats:
    """Return standard normal numbers (samples, *shape) for the samples from `first` on.

    Each stage has a random stream of its own for every SAMPLES_PER_STREAM samples, drawn sample by
    sample on the processor. So the noise of a sample does not depend on how many samples come after
    it, on what other stages draw, or on the device. `first` is a multiple of SAMPLES_PER_STREAM.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)

    def draw_stream(start: int) -> Floats:
        key = (*root.spawn_key, stage, start // SAMPLES_PER_STREAM)
        rng = np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=key))
        n_rows = min(SAMPLES_PER_STREAM, first + n_samples - start)
        return rng.standard_normal((n_rows, *shape))

    starts = range(first, first + n_samples, SAMPLES_PER_STREAM)
    return np.concatenate(parallel_map(draw_stream, starts))
