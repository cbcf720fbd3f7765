"""What the photonic simulation costs: `python benchmarks/fibre.py`.

(a) The whole chain u -> readouts against a loop over samples at the authors' grid, (b) against the package
gnlse at equal error, (c) every setting of the paper on one core. The paper's sweep on a card is in `limits.py`.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

import infocap
from _common import run_tables
from infocap.photonics import Encoder, FibreSystem

POWERS_DBM = (-9.1, -6.4, -1.9, 1.0, 4.5, 6.6, 7.1)
JOBS = ((2, 14, 4096), (5, 8, 8192))


def inputs(n_inputs: int, degree: int, n_samples: int) -> np.ndarray:
    return infocap.draw(infocap.product_basis("legendre", n_inputs, degree), n_samples, seed=1)


def one_sample_loop(
    system: FibreSystem, u: np.ndarray, step_m: float = 0.5, n_points: int = 2**14
) -> None:
    """Mask and propagation of one sample after the other: 1000 ps, 2^14 points, steps of 0.5 m."""
    frequency = np.fft.fftfreq(n_points, 1 / n_points) * 1e-3
    half = np.exp(
        0.25j * system.fibre.beta2_ps2_per_km * 1e-3 * (2 * np.pi * frequency) ** 2 * step_m
    )
    strength = system.fibre.gamma_per_w_km * 1e-3 * step_m
    noise = np.random.default_rng(0).standard_normal((len(u), system.encoder.n_noises))
    for k in range(len(u)):
        cells = system.encoder.cells(u[k : k + 1], noise[k : k + 1])
        mask = system.encoder.filtered(cells, system.grid, 0.0)[0][0]
        field = np.ones(n_points, dtype=complex)
        field[:512], field[-512:] = mask[:512], mask[512:]
        field = field * system.pulse.amplitude(frequency) * 1e-3
        for _ in range(round(system.length_m / step_m)):
            shape = np.fft.fft(field * half)
            field = np.fft.ifft(shape * np.exp(1j * strength * np.abs(shape) ** 2)) * half
        np.abs(field) ** 2


def against_the_loop() -> list[str]:
    u = inputs(5, 8, 8192)
    lines = [
        "| setting | threads | loop, per sample | infocap, per sample | ratio |",
        "|---|---|---|---|---|",
    ]
    for power in (-1.9, 7.1):
        system = FibreSystem(power_dbm=power, length_m=40.0, n_inputs=5)
        for threads in sorted({1, 2, len(os.sched_getaffinity(0))}):
            with threadpool_limits(threads):
                system(u[:1024], seed=0)
                loop, ours = [], []
                for _ in range(3):
                    start = time.perf_counter()
                    one_sample_loop(system, u[:10])
                    loop.append((time.perf_counter() - start) / 10)
                    start = time.perf_counter()
                    system(u, seed=0)
                    ours.append((time.perf_counter() - start) / len(u))
            slow, fast = np.median(loop), np.median(ours)
            lines.append(
                f"| {power} dBm, 40 m, q=5 | {threads} | {slow * 1e3:.1f} ms | {fast * 1e6:.0f} µs "
                f"| {slow / fast:.0f} |"
            )
    return lines


def against_gnlse() -> list[str]:
    """The same masked pulses through the package gnlse; tolerances chosen so that the errors are equal."""
    try:
        import gnlse
    except ImportError:
        return [
            "gnlse is not installed here (it needs setuptools<80 and pip install --no-build-isolation)."
        ]
    system = FibreSystem(
        power_dbm=-1.9,
        length_m=40.0,
        n_inputs=5,
        phase_noise=None,
        encoder=Encoder(filter="gaussian"),
    )
    u = inputs(5, 8, 8192)
    exact = replace(system, tolerance=1e-10)(u[:8])
    lines = [
        "| solver | rtol or tolerance | largest relative error | time per sample |",
        "|---|---|---|---|",
    ]
    for rtol in (1e-3, 1e-5, 1e-8):
        start = time.perf_counter()
        found = np.array([_by_gnlse(gnlse, system, row, rtol) for row in u[:8]])
        elapsed = (time.perf_counter() - start) / 8
        error = np.max(np.abs(found - exact) / exact.max(axis=1, keepdims=True))
        lines.append(f"| gnlse | {rtol:g} | {error:.1e} | {elapsed * 1e3:.1f} ms |")
    for tolerance in (1e-5, 1e-8):
        chosen = replace(system, tolerance=tolerance)
        with threadpool_limits(1):
            chosen(u[:512])
            start = time.perf_counter()
            chosen(u[:2048])
            elapsed = (time.perf_counter() - start) / 2048
        error = np.max(np.abs(chosen(u[:8]) - exact) / exact.max(axis=1, keepdims=True))
        lines.append(
            f"| infocap, one core | {tolerance:g} | {error:.1e} | {elapsed * 1e3:.3f} ms |"
        )
    return lines


def _by_gnlse(gnlse, system: FibreSystem, row: np.ndarray, rtol: float) -> np.ndarray:
    """Readouts of one sample by gnlse, without Raman scattering and self-steepening."""
    np.math = math  # gnlse still asks NumPy for it
    setup = gnlse.GNLSESetup()
    setup.resolution = 2**11
    setup.time_window = 1000 * (1 - 1 / setup.resolution)  # gnlse counts both ends of the window
    setup.z_saves = 2
    setup.wavelength = system.pulse.wavelength_nm
    setup.fiber_length = system.length_m
    setup.nonlinearity = system.fibre.gamma_per_w_km * 1e-3
    setup.dispersion_model = gnlse.DispersionFiberFromTaylor(
        0, np.array([system.fibre.beta2_ps2_per_km * 1e-3])
    )
    setup.self_steepening = False
    setup.rtol = setup.atol = rtol
    before = system.stages(row[None])["before"][0]
    padded = np.zeros(setup.resolution, dtype=complex)
    padded[:512], padded[-512:] = before[:512], before[512:]
    # gnlse wants the field in time on a centred axis, with the opposite sign of the frequency
    setup.pulse_model = np.fft.fftshift(np.fft.fft(padded))
    solution = gnlse.GNLSE(setup).run()
    field = np.fft.ifft(np.fft.ifftshift(solution.At[-1]))
    density = (
        np.abs(np.concatenate([field[:512], field[-512:]]) * 1e3) ** 2 * system.pulse.density_unit
    )
    return system.detector.read(density[None])[0]


def every_setting() -> list[str]:
    lines = ["| power | q=2, 5 m | q=2, 40 m | q=5, 5 m | q=5, 40 m |", "|---|---|---|---|---|"]
    for power in POWERS_DBM:
        cells = []
        for n_inputs, degree, n in JOBS:
            u = inputs(n_inputs, degree, n)
            for length in (5.0, 40.0):
                system = FibreSystem(power_dbm=power, length_m=length, n_inputs=n_inputs)
                with threadpool_limits(1):
                    start = time.perf_counter()
                    system(u, seed=0)
                    cells.append(f"{time.perf_counter() - start:.1f} s")
        lines.append(f"| {power} dBm | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    arguments = parser.parse_args()
    tables = {
        "(a) The whole chain against a loop over samples at the authors' grid": against_the_loop,
        "(b) Against gnlse, -1.9 dBm, 40 m, q=5, noise-free, Gaussian filter": against_gnlse,
        "(c) Every setting of the paper, 4096 (q=2) and 8192 (q=5) samples, one core": every_setting,
    }
    run_tables("Fibre", "python benchmarks/fibre.py", tables, arguments.write)


if __name__ == "__main__":
    main()
