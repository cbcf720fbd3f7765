"""The photonic experiment as a black box: inputs in, spectra out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_like, on_host, transforms
from .._threads import all_cores, parallel_map
from ..errors import DataError, ParameterError
from ..typing import Floats
from ._fibre import Fibre
from ._stages import CELLS_GHZ, N_CELLS, Detector, Encoder, Grid, Pulse, ghz_per_nm, nearest

Noise = Callable[
    ..., Floats
]  # noise(stage, *shape) gives standard normal numbers (samples, *shape)
AS_ENCODER = "as the encoder"  # None, the default of others, means no phase noise
STAGES = {"pulse": Pulse, "encoder": Encoder, "fibre": Fibre, "detector": Detector, "grid": Grid}
# Spectral amplitude of the pulse at the edge of the band, relative to its centre, that still counts as nothing.
WEAKEST_EDGE = 5e-4
# Relative noise from which on the rounding of single precision, 1e-7, is lost in it.
SINGLE_NOISE = 1e-4
# Each stage draws the noise of so many samples from one random stream, wherever they are propagated.
NOISE_ROWS = 512
# Samples that are propagated together: on a processor an equal share for each of eight threads, or of four where light
# takes many short steps (a nonlinear phase above 1), but no more than this, because more threads with fewer samples
# wait for Python's lock; on a graphics card so many times NOISE_ROWS pulses, because each step takes the time of its
# launches, however many pulses take it.
HOST_ROWS, HOST_SHARES, DEVICE_ROWS = 4 * NOISE_ROWS, (8, 4), 128


@dataclass(frozen=True)
class FibreSystem:
    """A picosecond pulse, shaped by the inputs, sent through a nonlinear fibre and seen by a spectrum analyser.

    The defaults are the paper's. `phase_noise` is ``"cell"``, ``"bin"`` or None; with None and a noise-free detector
    the system is deterministic. Everything else belongs to a stage, each of which can be replaced:
    ``FibreSystem(length_m=40, detector=Detector(additive_fraction=1e-5))``; what is given here wins over the stage.

    >>> system = FibreSystem(power_dbm=-1.9, length_m=40.0, n_inputs=2)
    >>> system(np.zeros((3, 2)), seed=0).shape
    (3, 71)
    >>> round(system.nonlinear_phase, 3)
    0.649
    """

    power_dbm: float = None  # type: ignore[assignment]  # 6.6
    length_m: float = None  # type: ignore[assignment]  # 5.0
    n_inputs: int = None  # type: ignore[assignment]  # 5
    phase_noise: str | None = AS_ENCODER  # "cell"
    tolerance: float = None  # type: ignore[assignment]  # 1e-5
    pulse: Pulse = None  # type: ignore[assignment]
    encoder: Encoder = None  # type: ignore[assignment]
    fibre: Fibre = None  # type: ignore[assignment]
    detector: Detector = None  # type: ignore[assignment]
    grid: Grid = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Make the stages that are not given; a value given here goes into its stage, others come from there."""
        own = {one.name for one in fields(self)}
        for stage, make in STAGES.items():
            names = [one.name for one in fields(make) if one.name in own]
            given = {name: getattr(self, name) for name in names}
            changes = {
                name: value for name, value in given.items() if value != getattr(FibreSystem, name)
            }
            made = replace(getattr(self, stage) or make(), **changes)
            object.__setattr__(self, stage, made)
            for name in names:
                object.__setattr__(self, name, getattr(made, name))
        if (
            len({self.pulse.wavelength_nm, self.encoder.wavelength_nm, self.detector.wavelength_nm})
            > 1
        ):
            raise ParameterError(
                "pulse, encoder and detector have different wavelength_nm; give one value."
            )
        edge, centre = self.pulse.amplitude(np.array([self.grid.band_thz / 2, 0.0]))
        if edge / centre > WEAKEST_EDGE:
            raise ParameterError(
                f"`width_nm={self.pulse.width_nm:g}` is too wide for a band of {self.grid.band_thz:g} THz; "
                "give Grid(band_thz=2.048) or more."
            )

    @classmethod
    def published(cls, **settings: Any) -> "FibreSystem":
        """The simulator fitted to the published experiment, with five numbers beyond the paper's own parameters.

        `infocap reproduce twin` fits them to Figure 1 of the paper and tells how well they are known: dispersion before
        the amplifier, bins of the encoder that differ, and two kinds of noise of the spectrometer, in place of phase
        noise. They hold for any power, length and number of inputs, which `settings` choose as for `FibreSystem`.

        >>> FibreSystem.published(power_dbm=-1.9, length_m=40.0, n_inputs=2).fibre.prechirp_length_m
        138.0
        """
        encoder = Encoder(phase_noise=None, exponent_spread=0.017, phase_spread_rad=0.021)
        detector = Detector(relative=2.9e-3, additive_mw_per_nm=1.8e-6)
        return cls(
            encoder=encoder, fibre=Fibre(prechirp_length_m=138.0), detector=detector, **settings
        )

    @property
    def wavelength_nm(self) -> Floats:
        """Wavelengths of the readouts."""
        return self.detector.readout_wavelength_nm

    @property
    def peak_power_w(self) -> float:
        """Peak power of the unmasked pulse after the amplifier."""
        return self.pulse.peak_power_w

    @property
    def nonlinear_phase(self) -> float:
        """phi_NL = gamma P_peak L (the amplifier's effective length included)."""
        length_km = (self.length_m + self.fibre.amplifier_length_m) * 1e-3
        return self.fibre.gamma_per_w_km * self.peak_power_w * length_km

    def __call__(self, u: Any, seed: Any = None) -> Any:
        """Readouts (samples, 71) in mW / nm; a seed makes the noise reproducible, None draws fresh noise."""
        return self.readouts(u, [self.length_m], seed)[0]

    def readouts(
        self,
        u: Any,
        lengths_m: Sequence[float],
        seed: Any = None,
        powers_dbm: Sequence[float] | None = None,
    ) -> list[Any]:
        """Readouts after several fibre lengths, from one propagation: same light, same noise at the encoder.

        With `powers_dbm` there is such a list for each of these powers in place of the system's own, with the numbers
        that a system of that power gives. All pulses travel together, which keeps a graphics card busy.
        """
        powers = [self.power_dbm] if powers_dbm is None else [float(one) for one in powers_dbm]
        out = self._in_blocks(
            u,
            lengths_m,
            seed,
            self._readings,
            [replace(self.pulse, power_dbm=one) for one in powers],
        )
        return out if powers_dbm is not None else out[0]

    def _readings(self, density: Any, noise: Noise, pulse: Pulse) -> Any:
        """What the spectrum analyser shows of power densities, which the unmasked pulse would give at most."""
        readings, peak = (
            self.detector.read(density),
            float(pulse.amplitude(np.zeros(1))[0] ** 2 * pulse.density_unit),
        )
        added = as_like(noise(2, readings.shape[1]), readings) if self.detector.noisy else None
        return self.detector.disturb(readings, peak, added)

    def spectrum(self, u: Any, seed: Any = None) -> Any:
        """Power density in mW / nm (samples, 1024) before the detector, at `spectrum_wavelength_nm`."""
        return self._in_blocks(u, [self.length_m], seed, lambda density, *_: density, [self.pulse])[
            0
        ][0]

    @property
    def spectrum_wavelength_nm(self) -> Floats:
        """Wavelengths of `spectrum`, in the order of the Fourier transform; sort before plotting."""
        return self.pulse.wavelength_nm - CELLS_GHZ / ghz_per_nm(self.pulse.wavelength_nm)

    def stages(self, u: Any, seed: Any = None) -> dict[str, Any]:
        """Mask, and fields (samples, points) before and after the fibre, in sqrt(W): for a look inside."""
        u = self._inputs(u)
        noise = partial(_noise, seed, 0, u.shape[0])
        mask, before, (after,) = self._propagated(u, [self.length_m], noise, [self.pulse])
        return {"mask": mask, "before": before, "after": after}

    def _propagated(
        self, u: Any, lengths_m: Sequence[float], noise: Noise, pulses: Sequence[Pulse]
    ) -> tuple[Any, Any, list[Any]]:
        """Mask (samples, points), and fields before and after the fibre: all samples of one pulse after the other."""
        xp, count = array_namespace(u), self.encoder.n_noises
        u = xp.astype(u, xp.float32) if self.single else u
        cells = self.encoder.cells(u, as_like(noise(0, count), u) if count else None)
        mask, between = self.encoder.seen(cells, self.grid, 0.0, 0.5)
        before = mask * self._pulse_coefficients(mask)
        shape = self._shape(before, between * self._pulse_coefficients(mask, 0.5))
        if len(pulses) > 1 or pulses[0] != self.pulse:
            factors = [float(np.sqrt(one.peak_power_w / self.peak_power_w)) for one in pulses]
            before, shape = (
                xp.concat([field * factor for factor in factors], axis=0)
                for field in (before, shape)
            )
        after = self.fibre.propagate(before, self.grid, lengths_m, shape)
        return mask, before, [xp.astype(field, xp.complex128) for field in after]

    @property
    def single(self) -> bool:
        """Whether single precision will do: the tolerance allows it, and noise is far above its rounding."""
        noise = self.encoder.phase_noise_rad if self.encoder.n_noises else 0.0
        return self.fibre.single and max(noise, self.detector.relative) >= SINGLE_NOISE

    def _shape(self, field: Any, between: Any) -> Any:
        """The light in time, without what the finite window folds back, from points of the grid and half-way between.

        Kinks of the spectrum half-way between the cells make tails that fall as 1 / t² (without a filter as 1 / t).
        Sampled at the points of the grid they fold back with alternating signs, half-way between with equal signs (or
        the other way round, for an even number of points in a cell). Both series have known sums, so the light itself
        is the weighted mean of the two samplings that is free of both.
        """
        fourier = transforms(field)
        turns = np.fft.fftfreq(self.grid.n_points)  # time in units of the window
        angle = np.pi * np.where(turns == 0, 0.1, turns)
        if self.encoder.filter is None:
            alternating, equal = 1 / np.sin(angle) - 1 / angle, 1 / np.tan(angle) - 1 / angle
        else:
            alternating = np.cos(angle) / np.sin(angle) ** 2 - 1 / angle**2
            equal = 1 / np.sin(angle) ** 2 - 1 / angle**2
        alternating[0], equal[0] = -1.0, 2.0  # their ratio at the centre
        odd = self.grid.points_per_cell % 2
        share = alternating / (alternating - equal) if odd else equal / (equal - alternating)
        halfway = fourier.fft(between) * as_like(np.exp(-1j * np.pi * turns), field)
        return fourier.fft(field) * as_like(1 - share, field) + halfway * as_like(share, field)

    def _in_blocks(
        self,
        u: Any,
        lengths_m: Sequence[float],
        seed: Any,
        shown: Callable[..., Any],
        pulses: Sequence[Pulse],
    ) -> list[list[Any]]:
        """What is shown of the power densities on the 1 GHz raster: for each pulse, after each length."""
        u = self._inputs(u)
        xp, step = array_namespace(u), self.grid.points_per_cell
        unit = self.pulse.density_unit * self.grid.window_ps**2
        strongest = (
            max(one.peak_power_w for one in pulses) / self.peak_power_w * self.nonlinear_phase
        )
        with all_cores() as cores:  # a multiple of what one random stream is for
            streams = -(-u.shape[0] // (min(cores, HOST_SHARES[int(strongest > 1)]) * NOISE_ROWS))
        size = (
            min(streams * NOISE_ROWS, HOST_ROWS)
            if on_host(u)
            else max(DEVICE_ROWS // len(pulses), 1) * NOISE_ROWS
        )

        def one(start: int) -> list[Any]:
            rows = u[start : start + size]
            n, noise = rows.shape[0], partial(_noise, seed, start, rows.shape[0])
            fields = self._propagated(rows, lengths_m, noise, pulses)[2]
            densities = [
                xp.abs(nearest(light, N_CELLS * step)[:, ::step]) ** 2 * unit for light in fields
            ]
            return [
                shown(density[k * n : (k + 1) * n], partial(noise, stage), pulse)
                for k, pulse in enumerate(pulses)
                for stage, density in enumerate(densities, start=1)
            ]

        starts = range(0, u.shape[0], size)
        parts = parallel_map(one, starts) if on_host(u) else [one(start) for start in starts]
        out = [xp.concat(list(pieces), axis=0) for pieces in zip(*parts, strict=True)]
        return [out[k : k + len(lengths_m)] for k in range(0, len(out), len(lengths_m))]

    def _pulse_coefficients(self, like: Any, offset: float = 0.0) -> Any:
        """Fourier coefficients of the pulse in sqrt(W), at the points of the grid plus `offset` spacings."""
        spacing = self.grid.spacing_thz
        return as_like(
            self.pulse.amplitude(self.grid.frequency_thz + offset * spacing) * spacing, like
        )

    def _inputs(self, u: Any) -> Any:
        if not hasattr(
            u, "__dlpack__"
        ):  # lists and tables; arrays of any library stay what they are
            u = np.asarray(u)
        if u.ndim != 2 or u.shape[1] != self.n_inputs or u.shape[0] == 0:
            raise DataError(
                f"u has shape {tuple(u.shape)}; this system wants (samples, {self.n_inputs})."
            )
        if isinstance(u, np.ndarray) and u.dtype.kind not in "fiub":
            raise DataError(f"u holds {u.dtype}; give real numbers between -1 and 1.")
        xp = array_namespace(u)
        largest = float(xp.max(xp.abs(u)))
        if not largest <= 1 + 1e-9:
            raise DataError(f"u reaches {largest:g}; the encoder takes inputs between -1 and 1.")
        return xp.astype(u, xp.float64)


def _noise(seed: Any, first: int, n_samples: int, stage: int, *shape: int) -> Floats:
    """Standard normal numbers (samples, *shape) for the samples from `first` on, a multiple of NOISE_ROWS.

    Each stage has a stream of its own for every NOISE_ROWS samples, drawn sample by sample on the processor: what a
    sample gets depends neither on how many come after it, nor on what other stages draw, nor on the device.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)

    def draw(start: int) -> Floats:
        key = (*root.spawn_key, stage, start // NOISE_ROWS)
        generator = np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=key))
        return generator.standard_normal((min(NOISE_ROWS, first + n_samples - start), *shape))

    return np.concatenate(parallel_map(draw, range(first, first + n_samples, NOISE_ROWS)))
