"""The photonic experiment as a black box: inputs in, spectra out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._array import array_namespace, as_like, normal_source, on_host
from ..._parallel import parallel_map
from ...errors import DataError, ParameterError
from ...typing import Floats
from ._detector import Detector
from ._encoder import Encoder
from ._fibre import Fibre
from ._grid import CELL_GHZ, N_CELLS, Grid, ghz_per_nm
from ._pulse import Pulse

HOST_ROWS = 256  # samples at a time on a processor; also the unit in which noise is drawn
DEVICE_ROWS = 8192  # on a graphics card


@dataclass(frozen=True)
class FibreSystem:
    """A picosecond pulse, shaped by the inputs, sent through a nonlinear fibre and seen by a spectrum analyser.

    The defaults are the paper's. `phase_noise` is ``"cell"``, ``"bin"`` or None; with None and a noise-free
    detector the system is deterministic. Everything else belongs to one of four stages, each of which can be
    replaced: ``FibreSystem(length_m=40, detector=Detector(additive_fraction=1e-5))``. A stage that is given
    supplies the values that are not given here.

    >>> system = FibreSystem(power_dbm=-1.9, length_m=40.0, n_inputs=2)
    >>> system(np.zeros((3, 2)), seed=0).shape
    (3, 71)
    >>> round(system.nonlinear_phase, 3)
    0.649
    """

    power_dbm: float = 6.6
    length_m: float = 5.0
    n_inputs: int = 5
    phase_noise: str | None = "cell"
    tolerance: float = 1e-5
    pulse: Pulse = None  # type: ignore[assignment]  # made from the above when not given
    encoder: Encoder = None  # type: ignore[assignment]
    fibre: Fibre = None  # type: ignore[assignment]
    detector: Detector = field(default_factory=Detector)
    grid: Grid = field(default_factory=Grid)

    def __post_init__(self) -> None:
        """Stages and short arguments are made to agree; a stage wins over a default."""
        own = {name: entry.default for name, entry in self.__dataclass_fields__.items()}
        for stage, maker, names in (
            ("pulse", Pulse, ("power_dbm",)),
            ("encoder", Encoder, ("n_inputs", "phase_noise")),
            ("fibre", Fibre, ("length_m", "tolerance")),
        ):
            given = getattr(self, stage)
            changed = {name: getattr(self, name) for name in names if getattr(self, name) != own[name]}
            made = replace(maker() if given is None else given, **changed)
            object.__setattr__(self, stage, made)
            for name in names:
                object.__setattr__(self, name, getattr(made, name))
        if len({self.pulse.wavelength_nm, self.encoder.wavelength_nm, self.detector.wavelength_nm}) > 1:
            raise ParameterError(
                "pulse, encoder and detector have different wavelength_nm; give all the same."
            )
        if 2 * self._edge_amplitude > 1e-3:
            raise ParameterError(
                f"width_nm={self.pulse.width_nm:g} is too wide for a band of {self.grid.band_thz:g} THz; "
                "give Grid(band_thz=2.048) or more."
            )

    @property
    def _edge_amplitude(self) -> float:
        """The pulse's spectral amplitude at the edge of the band, relative to its centre."""
        edge = self.pulse.amplitude(np.array([self.grid.band_thz / 2, 0.0]))
        return float(edge[0] / edge[1])

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

    def readouts(self, u: Any, lengths_m: Sequence[float], seed: Any = None) -> list[Any]:
        """Readouts after several fibre lengths, from one propagation: same light, same noise at the encoder."""
        return self._in_blocks(u, seed, lambda rows, source: self._measure(rows, lengths_m, source))

    def spectrum(self, u: Any, seed: Any = None) -> Any:
        """Power density in mW / nm (samples, 1024) on the 1 GHz raster, before the detector."""
        return self._in_blocks(u, seed, lambda rows, source: self._densities(rows, [self.length_m], source))[
            0
        ]

    @property
    def spectrum_wavelength_nm(self) -> Floats:
        """Wavelengths of `spectrum`."""
        frequency_ghz = np.fft.fftfreq(N_CELLS, 1 / N_CELLS) * CELL_GHZ
        return self.pulse.wavelength_nm - frequency_ghz / ghz_per_nm(self.pulse.wavelength_nm)

    def stages(self, u: Any, seed: Any = None) -> dict[str, Any]:
        """Mask, and fields (samples, points) before and after the fibre, in sqrt(W): for a look inside."""
        u = self._inputs(u)
        noise = self._encoder_noise(normal_source(u, seed), u.shape[0])
        mask = self.encoder.mask(u, self.grid, noise)
        before = mask * self._pulse_coefficients(u)
        after = self.fibre.propagate(before, self.grid, [self.length_m])[0]
        return {"mask": mask, "before": before, "after": after}

    def _in_blocks(self, u: Any, seed: Any, work: Callable[[Any, Any], list[Any]]) -> list[Any]:
        """Work through the samples in blocks, each with noise of its own seed, and put the results together."""
        u = self._inputs(u)
        rows = HOST_ROWS if on_host(u) else DEVICE_ROWS
        starts = range(0, u.shape[0], rows)
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        seeds = np.random.SeedSequence(root.entropy, spawn_key=root.spawn_key).spawn(len(starts))

        def one(job: tuple[int, Any]) -> list[Any]:
            return work(u[job[0] : job[0] + rows], normal_source(u, job[1]))

        jobs = list(zip(starts, seeds, strict=True))
        parts = parallel_map(one, jobs) if on_host(u) else [one(job) for job in jobs]
        xp = array_namespace(u)
        return [xp.concat(list(pieces), axis=0) for pieces in zip(*parts, strict=True)]

    def _measure(
        self, u: Any, lengths_m: Sequence[float], source: Callable[[tuple[int, ...]], Any]
    ) -> list[Any]:
        """What the detector shows for one block of samples, after each length."""
        out = []
        peak = float(self.pulse.amplitude(np.zeros(1))[0] ** 2 * self.pulse.density_unit)
        for density in self._densities(u, lengths_m, source):
            readings = self.detector.read(density)
            noise = source((2, *readings.shape)) if self.detector.noisy else None
            out.append(self.detector.disturb(readings, peak, noise))
        return out

    def _densities(
        self, u: Any, lengths_m: Sequence[float], source: Callable[[tuple[int, ...]], Any]
    ) -> list[Any]:
        """Power densities on the 1 GHz raster for one block of samples, after each length."""
        xp = array_namespace(u)
        mask = self.encoder.mask(u, self.grid, self._encoder_noise(source, u.shape[0]))
        fields = self.fibre.propagate(mask * self._pulse_coefficients(u), self.grid, lengths_m)
        step, half = self.grid.points_per_cell, N_CELLS * self.grid.points_per_cell // 2
        out = []
        for light in fields:
            raster = xp.concat([light[:, :half:step], light[:, -half::step]], axis=1)
            out.append(xp.abs(raster) ** 2 * (self.pulse.density_unit * self.grid.window_ps**2))
        return out

    def _encoder_noise(self, source: Callable[[tuple[int, ...]], Any], n_samples: int) -> Any | None:
        count = self.encoder.n_noises
        return source((n_samples, count)) if count else None

    def _pulse_coefficients(self, like: Any) -> Any:
        """Fourier coefficients of the pulse, in sqrt(W)."""
        return as_like(self.pulse.amplitude(self.grid.frequency_thz) * self.grid.spacing_thz, like)

    def _inputs(self, u: Any) -> Any:
        u = u if hasattr(u, "shape") else np.asarray(u, dtype=float)
        if u.ndim != 2 or u.shape[1] != self.n_inputs:
            raise DataError(f"u has shape {tuple(u.shape)}; this system wants (samples, {self.n_inputs}).")
        xp = array_namespace(u)
        largest = float(xp.max(xp.abs(u))) if u.shape[0] else 0.0
        if not largest <= 1 + 1e-9:
            raise DataError(f"u reaches {largest:g}; the encoder takes inputs between -1 and 1.")
        return xp.astype(u, xp.float64)
