"""More channels than samples: time and memory, and whether components ever claim too much.

python benchmarks/wide.py [--sets 12] [--processes 16] [--quick] [--only Weak] [--write]

The devices are mixtures of 14 functions of their inputs in K noisy channels. Their capacities are
known exactly: all channels together, with the noise known, hold tr(M (1 + M)^-1) and the constant,
for M = A' V^-1 A with the mixing matrix A (K, 14) and the covariance V of the noise. Inputs are
independent, or a sequence whose values are those of an AR(1) process. Under the recorded law of
that drive all channels hold tr(M (1 + M)^-1) and the constant for M = S^1/2 A' V^-1 A S^1/2, with
the covariance S of the 14 functions. S comes from a sequence of a million steps; with another one an
exact value of 7.085 was 7.080.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

import infocap
from _common import run_tables
from infocap.typing import Floats

# What a device computes: functions of two inputs up to degree 4 but for the constant.
N_FUNCTIONS = 14
# Strength of each function in a channel, over the noise of the channel.
STRENGTH = 0.033
# Strengths from hardly seen to nearly without noise, and sizes, where the bound may be tight.
STRENGTHS = (0.01, 0.033, 0.1, 0.4, 1.5)
TIGHT_SIZES = ((300, 250), (800, 250), (2000, 400))
# By how much each function of the device "decay" is weaker than the one before.
RATIO_OF_DECAY = 1.6
# Modes of structured noise, their strength over the strongest function, and their memory in rows.
N_NOISE_MODES = 5
STRENGTH_OF_MODES = 3.0
MEMORY_OF_MODES = 0.9
# Largest delay of each degree of the device with memory: 14 functions, too.
DELAYS = {1: 7, 2: 2}
# How inputs are drawn: rows of two independent inputs, an independent sequence, or an AR(1) process
# with this coefficient whose values are made uniform.
DRIVES = ("rows", "sequence", "AR 0.9")
PERSISTENCE = 0.9
STEPS_FOR_COVARIANCE = 1_000_000
SIZES = ((2000, 500), (2000, 2000), (20_000, 500), (20_000, 2000))
COST_SIZES = ((2000, 500), (2000, 2000), (20_000, 2000), (100_000, 500), (100_000, 2000))
# Rows of noise that are made at a time.
BLOCK_ROWS = 100


@dataclass(frozen=True)
class Device:
    """A mixture of functions of its inputs in many noisy channels."""

    kind: str  # mix, decay or structured
    drive: str  # one of DRIVES
    n_channels: int
    n_samples: int
    seed: int
    strength: float = STRENGTH

    def basis(self) -> Any:
        """The functions that are asked for, among them those that the device computes."""
        if self.is_sequence:
            return infocap.delayed_basis("legendre", max_delay=DELAYS)
        return infocap.product_basis("legendre", n_inputs=2, max_degree=5)

    @property
    def is_sequence(self) -> bool:
        """Whether functions are those of delayed inputs."""
        return self.drive != "rows"

    @property
    def law(self) -> str:
        """The law under which capacities are estimated."""
        return "recorded" if self.drive == "AR 0.9" else "declared"

    def mixing(self) -> Floats:
        """The strength of each function in each channel, (channels, functions)."""
        rng = np.random.default_rng([self.seed, 1])
        strengths = np.full(N_FUNCTIONS, self.strength)
        if self.kind == "decay":
            strengths = 4 * self.strength * RATIO_OF_DECAY ** -np.arange(N_FUNCTIONS)
        return rng.standard_normal((self.n_channels, N_FUNCTIONS)) * strengths

    def noise_modes(self) -> Floats:
        """The strong modes of the noise, (channels, modes); there may be none."""
        n_modes = N_NOISE_MODES if self.kind == "structured" else 0
        rng = np.random.default_rng([self.seed, 2])
        return self.strength * STRENGTH_OF_MODES * rng.standard_normal((self.n_channels, n_modes))

    def exact(self) -> float:
        """What all channels together hold of the functions, and the constant."""
        mixing, modes = self.mixing(), self.noise_modes()
        across = modes.T @ mixing
        of_modes = np.linalg.solve(np.eye(modes.shape[1]) + modes.T @ modes, across)
        signal_over_noise = mixing.T @ mixing - across.T @ of_modes
        if self.drive == "AR 0.9":
            root = np.linalg.cholesky(covariance_of_functions())
            signal_over_noise = root.T @ signal_over_noise @ root
        held = np.linalg.solve(np.eye(N_FUNCTIONS) + signal_over_noise, signal_over_noise)
        return 1.0 + float(np.trace(held))

    def inputs(self) -> Floats:
        """Independent inputs with a uniform distribution."""
        rng = np.random.default_rng([self.seed, 3])
        if self.is_sequence:
            return drawn_sequence(rng, self.drive, self.n_samples + max(DELAYS.values()))
        return rng.uniform(-1, 1, (self.n_samples, 2))

    def readouts(self, u: Floats, shot: int = 0) -> Floats:
        """One measurement of all channels at these inputs."""
        rng = np.random.default_rng([self.seed, 4, shot])
        basis = self.basis()
        if self.is_sequence:
            n_earlier = max(DELAYS.values())
            y = np.zeros((len(u), len(basis)))
            y[n_earlier:] = basis(u)[-(len(u) - n_earlier) :]
        else:
            y = basis(u)
        functions = y[:, 1 : N_FUNCTIONS + 1]
        drift = rng.standard_normal((len(u), self.noise_modes().shape[1]))
        step = np.sqrt(1 - MEMORY_OF_MODES**2)
        for row in range(1, len(drift)):
            drift[row] = MEMORY_OF_MODES * drift[row - 1] + step * drift[row]
        signal = np.hstack([functions, drift])
        patterns = np.hstack([self.mixing(), self.noise_modes()]).T
        x = np.empty((len(u), self.n_channels))
        for start in range(0, len(u), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            noise = rng.standard_normal(x[rows].shape)
            x[rows] = noise + signal[rows] @ patterns
        return x


def drawn_sequence(rng: np.random.Generator, drive: str, n_steps: int) -> Floats:
    """Return uniform inputs of a sequence."""
    if drive == "sequence":
        return rng.uniform(-1, 1, n_steps)
    shocks = rng.standard_normal(n_steps)
    shocks[1:] *= np.sqrt(1 - PERSISTENCE**2)
    return 2 * ndtr(lfilter([1.0], [1.0, -PERSISTENCE], shocks)) - 1


@lru_cache
def covariance_of_functions() -> Floats:
    """Return the covariance of the functions that a device computes of AR(1) inputs."""
    u = drawn_sequence(np.random.default_rng(0), "AR 0.9", STEPS_FOR_COVARIANCE)
    basis = infocap.delayed_basis("legendre", max_delay=DELAYS)
    functions = basis(u)[:, 1 : N_FUNCTIONS + 1]
    return np.cov(functions, rowvar=False)


@dataclass(frozen=True)
class Outcome:
    """What was estimated, over what all channels hold."""

    total: float
    excess_in_errors: float


def estimates(device: Device, with_repeats: bool) -> dict[str, Outcome]:
    """Estimate one device with several numbers of components."""
    u = device.inputs()
    x = device.readouts(u)
    repeats = device.readouts(u, shot=1) if with_repeats else None
    exact = device.exact()
    outcomes = {}
    for n_components in (5, "auto", 20, 60):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = infocap.estimate(
                u,
                x,
                device.basis(),
                n_components=n_components,
                repeats=repeats,
                law=device.law,
            )
        excess = (result.total - exact) / result.total_standard_error
        outcomes[str(n_components)] = Outcome(result.total, excess)
    return outcomes


def lower_bounds(n_sets: int, n_processes: int, sizes: Any, with_repeats: bool) -> list[str]:
    """Estimates of several numbers of components beside what all channels hold."""
    columns = ("5", "auto", "20", "60")
    heads = [f"{name}: total (largest excess in bars)" for name in columns]
    lines = [
        f"| device, inputs | K, N | all channels (exact) | {' | '.join(heads)} | more than 2 bars above |",
        "|" + "---|" * (4 + len(columns)),
    ]
    with ProcessPoolExecutor(n_processes) as pool:
        for kind in ("mix", "decay", "structured"):
            for drive in DRIVES:
                for n_channels, n_samples in sizes:
                    devices = [
                        Device(kind, drive, n_channels, n_samples, seed) for seed in range(n_sets)
                    ]
                    work = partial(estimates, with_repeats=with_repeats)
                    outcomes = list(pool.map(work, devices))
                    exact = np.mean([device.exact() for device in devices])
                    cells = []
                    n_above = 0
                    for column in columns:
                        totals = [outcome[column].total for outcome in outcomes]
                        excess = [outcome[column].excess_in_errors for outcome in outcomes]
                        n_above += sum(number > 2 for number in excess)
                        cells.append(f"{np.mean(totals):.2f} ({max(excess):+.1f})")
                    lines.append(
                        f"| {kind}, {drive} | {n_channels}, {n_samples} | {exact:.2f} | "
                        f"{' | '.join(cells)} | {n_above} of {len(columns) * n_sets} |"
                    )
                    print(lines[-1], flush=True)
    return lines


def tight_bounds(n_sets: int, n_processes: int) -> list[str]:
    """The largest excess over what all channels hold, from weak to strong signals."""
    lines = [
        "| strength | device | exact | largest excess in bars | the same with repeats | more than 2 bars above |",
        "|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(n_processes) as pool:
        for strength in STRENGTHS:
            for kind in ("mix", "decay", "structured"):
                devices = [
                    Device(kind, DRIVES[seed % len(DRIVES)], *size, seed, strength)
                    for size in TIGHT_SIZES
                    for seed in range(n_sets)
                ]
                exact = [device.exact() for device in devices]
                excess = []
                for with_repeats in (False, True):
                    work = partial(estimates, with_repeats=with_repeats)
                    of_all = [
                        outcome.excess_in_errors
                        for outcomes in pool.map(work, devices)
                        for outcome in outcomes.values()
                    ]
                    excess.append(of_all)
                n_above = sum(number > 2 for of_all in excess for number in of_all)
                lines.append(
                    f"| {strength} | {kind} | {min(exact):.2f} to {max(exact):.2f} | "
                    f"{max(excess[0]):+.1f} | {max(excess[1]):+.1f} | "
                    f"{n_above} of {len(excess[0]) + len(excess[1])} |"
                )
                print(lines[-1], flush=True)
    return lines


def costs(sizes: Any) -> list[str]:
    """Time and peak memory of one estimation, each in a process of its own."""
    lines = [
        "| K, N | readouts, GB | from memory: s (processor s; peak beyond them, GB) | from a file: s (processor s; peak, GB) |",
        "|---|---|---|---|",
    ]
    for n_channels, n_samples in sizes:
        device = Device("mix", "rows", n_channels, n_samples, seed=0)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.npy"
            np.save(path, device.readouts(device.inputs()))
            for source in ("memory", "file"):
                command = [sys.executable, __file__, "--one", source, str(path)]
                child = subprocess.run(command, capture_output=True, text=True, check=True)
                cells.append(child.stdout.strip())
        size = 8e-9 * n_channels * n_samples
        lines.append(f"| {n_channels:,}, {n_samples} | {size:.2f} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def one_cost(source: str, path: str) -> None:
    """Print the time of an estimation, and the peak of the memory of this process."""
    small = Device("mix", "rows", n_channels=20, n_samples=500, seed=0)
    infocap.estimate(small.inputs(), small.readouts(small.inputs()), small.basis())  # imports
    x = np.load(path, mmap_mode="r" if source == "file" else None)
    device = replace(small, n_samples=len(x))
    start = time.perf_counter()
    processor_start = time.process_time()
    infocap.estimate(device.inputs(), x, device.basis(), n_components="auto")
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start
    peak = peak_memory()
    if source == "memory":
        peak -= x.nbytes
    print(f"{seconds:.1f} ({processor_seconds:.1f}; {peak / 1e9:.2f})")


def peak_memory() -> float:
    """Return the largest memory that this process has had, in bytes (Linux only)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1000 * float(status.split("VmHWM:")[1].split()[0])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=12, help="data sets for each line")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="K = 2000 alone in the tables of lower bounds"
    )
    parser.add_argument("--only", default="", help="tables with this word in their title")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one_cost(*given.one)
        return
    sizes = SIZES[:2] if given.quick else SIZES
    tables: dict[str, Callable[[], list[str]]] = {
        "Time and memory": partial(costs, COST_SIZES),
        "Principal components": partial(lower_bounds, given.sets, given.processes, sizes, False),
        "Directions of signal over noise, all rows measured twice": partial(
            lower_bounds, given.sets, given.processes, sizes, True
        ),
        "Weak and strong signals": partial(tight_bounds, given.sets, given.processes),
    }
    tables = {title: table for title, table in tables.items() if given.only in title}
    command = f"python benchmarks/wide.py --sets {given.sets}"
    if given.quick:
        command += " --quick"
    run_tables("More channels than samples", command, tables, given.write)


if __name__ == "__main__":
    main()
