"""False alarms: clean runs of many kinds of device, and how often each check of the data speaks up; and what checks cost.

``python benchmarks/alarms.py --write`` takes ten minutes; ``--runs`` sets how many runs there are of each kind.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import qmc

import infocap
from _common import run_tables
from _devices import SYSTEMS
from infocap.diagnostics import CHECKS
from infocap.photonics import FibreSystem
from infocap.systems import RandomFeatures

Array = np.ndarray
Device = Callable[[Array, np.random.Generator], Array]
# What is said of clean data and right: frequencies add up to one, and Sobol order does not tell memory from computation.
RIGHT = ("dependent", "order of inputs")


def legendre(q: int) -> infocap.ProductBasis:
    return infocap.product_basis("legendre", q, 4)


def features(q: int, k: int, noise: float = 1e-3, **options: object) -> Callable[[int], Device]:
    """Units with weights of their own in every run."""

    def make(seed: int) -> Device:
        device = RandomFeatures(q, k, seed=seed, **options)
        return lambda u, g: device(u) + noise * g.standard_normal((len(u), k))

    return make


def counted(shots: int) -> Callable[[int], Device]:
    """Frequencies of the 16 outcomes of a quantum state of four qubits, from so many shots."""

    def make(seed: int) -> Device:
        g0 = np.random.default_rng(seed)
        mix = np.linalg.qr(g0.standard_normal((16, 16)) + 1j * g0.standard_normal((16, 16)))[0]
        angles = g0.standard_normal((3, 16))

        def device(u: Array, g: np.random.Generator) -> Array:
            p = np.abs(np.exp(1j * u @ angles) @ mix.T) ** 2
            return g.multinomial(shots, p / p.sum(axis=1, keepdims=True)) / shots

        return device

    return make


def through(
    change: Callable[[Array, np.random.Generator], Array], **options: object
) -> Callable[[int], Device]:
    """Sine units behind something that changes their readouts."""

    def make(seed: int) -> Device:
        device = features(3, 24, 3e-3, activation="sin", gain=1.2, **options)(seed)
        return lambda u, g: change(device(u, g), g)

    return make


def drifting(x: Array, g: np.random.Generator) -> Array:
    """A gain that wanders by a tenth of the noise."""
    walk = np.cumsum(g.standard_normal(len(x))) / np.sqrt(len(x))
    return x * (1 + 3e-4 * walk[:, None])


def sparse(u: Array, g: np.random.Generator) -> Array:
    """Narrow resonances, which most inputs miss."""
    centres = np.random.default_rng(5).uniform(-1, 1, (20, 2))
    distance = np.sum((u[:, None, :] - centres) ** 2, axis=2)
    return 1 / (1 + distance / 4e-3) + 1e-3 * g.standard_normal((len(u), 20))


def laser(u: Array, g: np.random.Generator) -> Array:
    """Lasers that are dark below threshold and a thousand times brighter above."""
    pump = 1 + u @ np.random.default_rng(6).standard_normal((3, 16))
    return (1e-3 + np.maximum(pump - 1, 0)) * (1 + 0.01 * g.standard_normal(pump.shape))


def rare_step(q: int, k: int, share: float) -> Callable[[int], Device]:
    """Tanh units, a quarter of which take a large step in this share of the inputs; the steps are comparators."""

    def make(seed: int) -> Device:
        g0 = np.random.default_rng(seed)
        w, b = g0.standard_normal((q, k)), g0.standard_normal(k)
        edge = np.quantile(g0.uniform(-1, 1, (20_000, q)) @ w, 1 - share, axis=0)

        def device(u: Array, g: np.random.Generator) -> Array:
            steps = 5.0 * ((u @ w > edge) & (np.arange(k) < -(-k // 4)))
            return np.tanh(u @ w + b) + steps + 1e-3 * g.standard_normal((len(u), k))

        return device

    return make


def comparators(q: int, k: int, rarest: float) -> Callable[[int], Device]:
    """Comparators of which the rarest flips for this share of the inputs, the next for twice as many, and so on."""

    def make(seed: int) -> Device:
        g0 = np.random.default_rng(seed)
        w = g0.standard_normal((q, k))
        edge = np.diag(
            np.quantile(
                g0.uniform(-1, 1, (20_000, q)) @ w, 1 - rarest * np.arange(1, k + 1), axis=0
            )
        )
        return lambda u, g: (u @ w > edge) + 1e-3 * g.standard_normal((len(u), k))

    return make


def threshold_network(q: int, k: int, noise: float) -> Callable[[int], Device]:
    """Sums of thirty steps."""

    def make(seed: int) -> Device:
        g0 = np.random.default_rng(seed)
        w, edge, out = (
            g0.standard_normal((q, 30)),
            g0.uniform(-2, 2, 30),
            g0.standard_normal((30, k)),
        )
        return lambda u, g: (u @ w > edge) @ out + noise * g.standard_normal((len(u), k))

    return make


def etalons(q: int, k: int, finesse: float, dips: bool = False) -> Callable[[int], Device]:
    """Fabry-Perot etalons in transmission, or rings with dips, whose phase the inputs tune."""

    def make(seed: int) -> Device:
        g0 = np.random.default_rng(seed)
        w, phase = 2 * g0.standard_normal((q, k)), 2 * np.pi * g0.random(k)

        def device(u: Array, g: np.random.Generator) -> Array:
            peak = 1 / (1 + (2 * finesse / np.pi * np.sin((u @ w + phase) / 2)) ** 2)
            return (1 - peak if dips else peak) + 1e-3 * g.standard_normal(peak.shape)

        return device

    return make


def moving_lines(q: int, k: int, width: float) -> Callable[[int], Device]:
    """A spectrometer that sees two narrow lines move."""

    def make(seed: int) -> Device:
        w, pixels = np.random.default_rng(seed).standard_normal((q, 2)), np.linspace(-2, 2, k)

        def device(u: Array, g: np.random.Generator) -> Array:
            first, second = (u @ w).T[:, :, None]
            x = 1 / (1 + ((pixels - first) / width) ** 2) + 0.5 * np.exp(
                -(((pixels - second**2) / width) ** 2)
            )
            return x + 1e-3 * g.standard_normal(x.shape)

        return device

    return make


def sharp() -> dict[str, tuple[infocap.ProductBasis, Callable[[int], Device], tuple[int, ...]]]:
    """Devices with rare steps and sharp resonances, whose few large values are honest."""
    makers = {
        "steps in 0.3 %": lambda q: rare_step(q, 24, 0.003),
        "comparators from 0.3 %": lambda q: comparators(q, 16, 0.003),
        "threshold network": lambda q: threshold_network(q, 20, 1e-3),
        "threshold network, no noise": lambda q: threshold_network(q, 12, 0.0),
        "etalons, finesse 100": lambda q: etalons(q, 20, 100.0),
        "rings, finesse 100": lambda q: etalons(q, 20, 100.0, dips=True),
        "moving lines": lambda q: moving_lines(q, 60, 0.03),
    }
    return {
        f"{name}, {q} input{'s' * (q > 1)}": (legendre(q), make(q), (512, 2048, 8192))
        for name, make in makers.items()
        for q in (1, 2, 3)
    }


def fibre(seed: int) -> Device:
    system = FibreSystem(power_dbm=3.0, length_m=10.0, n_inputs=2)
    return lambda u, g: system(u, seed=int(g.integers(2**31)))


def known(name: str) -> tuple[infocap.ProductBasis, Callable[[int], Device]]:
    system = SYSTEMS[name].make(name)
    return system.basis, lambda seed: system.observe


def kinds() -> dict[str, tuple[infocap.ProductBasis, Callable[[int], Device], tuple[int, ...]]]:
    """Kind of device: inputs and functions, how to make one, numbers of samples."""
    step = 2.0 / 2**12
    own = {
        "tanh, little noise": (legendre(2), features(2, 30), (256, 1024, 4096)),
        "strongly saturating": (legendre(2), features(2, 30, 1e-3, gain=8.0), (1024, 4096)),
        "saturating, K = 72": (legendre(5), features(5, 72, 1e-2, gain=3.0), (1024, 8192)),
        "K = 300": (legendre(3), features(3, 300, 0.03, activation="sin", gain=2.0), (2048, 8192)),
        "K = 120, N = 512": (legendre(3), features(3, 120, 0.1), (512,)),
        "rectifiers": (legendre(3), features(3, 40, 1e-3, activation="relu"), (512, 4096)),
        "no noise at all": (legendre(2), features(2, 12, 0.0), (512, 4096)),
        "large N": (legendre(3), features(3, 10), (60_000,)),
        "30 shots": (legendre(3), counted(30), (512, 4096)),
        "2000 shots": (legendre(3), counted(2000), (512, 4096)),
        "12-bit converter": (
            legendre(3),
            through(lambda x, g: np.round(x / step) * step),
            (1024, 8192),
        ),
        "16-bit counts": (
            legendre(3),
            through(lambda x, g: np.floor(2**15 * (x + 1.2) / 1.3)),
            (1024, 8192),
        ),
        "Poisson, dark channels": (
            legendre(3),
            through(lambda x, g: 1.0 * g.poisson(np.exp(3 * x - 2))),
            (512, 4096),
        ),
        "harmless drift": (legendre(3), through(drifting), (1024, 8192)),
        "noise of 100 %": (legendre(3), features(3, 20, 1.0), (1024, 4096)),
        "t3 noise": (
            legendre(3),
            through(lambda x, g: x + 0.05 * g.standard_t(3, x.shape)),
            (1024, 4096),
        ),
        "log-normal gain": (legendre(3), through(lambda x, g: np.exp(2 * x)), (512, 4096)),
        "narrow resonances": (legendre(2), lambda seed: sparse, (1024, 4096)),
        "lasers with a threshold": (legendre(3), lambda seed: laser, (1024, 4096)),
        "fibre": (legendre(2), fibre, (512, 2048)),
    }
    names = (
        "photon counts",
        "populations",
        "converter of 4 bits",
        "comparators",
        "intensity noise",
        "speckle",
    )
    names += (
        "6 bits",
        "switches and knobs",
        "normal inputs",
        "resonators",
        "mixture with 100 % noise",
        "Student t3 noise",
    )
    return own | sharp() | {name: (*known(name), SYSTEMS[name].sizes) for name in names}


def inputs(basis: infocap.ProductBasis, n: int, how: int, seed: int) -> Array:
    """Sobol, random, Latin or Halton points as `draw` gives them, or SciPy's Sobol points in their own order."""
    if how == 4:
        if any(one.name != "legendre" for one in basis.families):
            return infocap.draw(basis, n, seed=seed)
        return 2 * qmc.Sobol(basis.n_inputs, rng=seed).random(1 << (n - 1).bit_length())[:n] - 1
    return infocap.draw(basis, n, design=("sobol", "random", "lhs", "halton")[how], seed=seed)


def alarms(runs: int) -> list[str]:
    """Every kind of device with all of its sizes, designs and orders in turn."""
    lines = ["| device | runs | runs with a warning | warnings | notes |", "|---|---|---|---|---|"]
    warned, whole = Counter(), 0
    for kind, (basis, make, sizes) in kinds().items():
        said, noted, count = (
            Counter(),
            Counter(),
            max(2, runs // 4) if max(sizes) > 50_000 else runs,
        )
        any_warning = 0
        for run in range(count):
            n, generator = sizes[run % len(sizes)], np.random.default_rng([run, 77])
            u = inputs(basis, n, run % 5, run)
            order = np.arange(n) if run % 2 else generator.permutation(n)
            x = make(run)(u[order], generator)  # measured in that order
            back = np.argsort(order)
            recording = infocap.Recording(u, x[back], np.arange(n), time=back)
            found = infocap.diagnose(recording, basis=basis).checks
            causes = {one.kind: [] for one in found}
            for one in found:
                causes[one.kind].append(one.found.get("cause", str(one)[:30]))
            said.update(set(causes.get("warning", ())) - set(RIGHT))
            noted.update(set(causes.get("note", ())) - set(RIGHT))
            any_warning += bool(set(causes.get("warning", ())) - set(RIGHT))
        warned.update(said)
        whole += count
        told = [
            ", ".join(f"{name} {number}" for name, number in one.items()) or "none"
            for one in (said, noted)
        ]
        lines.append(f"| {kind} | {count} | {any_warning} | {told[0]} | {told[1]} |")
        print(lines[-1], flush=True)
    total = ", ".join(f"{name} {number}" for name, number in warned.items()) or "none"
    return [
        *lines,
        "",
        f"Of {whole} clean runs of {len(kinds())} kinds, warnings by check: {total}.",
    ]


def cost() -> list[str]:
    """The paper's five-input job by Algorithm 1 on one core, with and without the checks in turn: processor time."""
    basis = infocap.product_basis("legendre", 5, 8)
    u = infocap.draw(basis, 8192, seed=0)
    kept = dict(CHECKS)

    def seconds(x: Array, checks: dict) -> float:
        CHECKS.clear()
        CHECKS.update(checks)
        start = time.process_time()
        infocap.estimate(u, x, basis, method="threshold-richardson")
        CHECKS.update(kept)
        return time.process_time() - start

    lines = [
        "N = 8192, K = 72, L = 1287.",
        "",
        "| device | without checks | with | ratio |",
        "|---|---|---|---|",
    ]
    devices = {
        "tanh, noise 1e-2": RandomFeatures(5, 71, noise=0.01, seed=1),
        "paper's mixture, 30 % noise": infocap.theory.random_mixture(
            basis, n_active=200, n_readouts=71, noise=0.3, seed=1
        ),
    }
    for name, device in devices.items():
        x = device(u)
        rounds = np.array([(seconds(x, {}), seconds(x, kept)) for _ in range(101)])
        (without, checked), ratio = (
            np.median(rounds, axis=0),
            np.median(rounds[:, 1] / rounds[:, 0]),
        )
        lines.append(f"| {name} | {without:.3f} s | {checked:.3f} s | {ratio:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--runs", type=int, default=40, help="of each kind of device")
    parser.add_argument("--only", choices=["alarms", "cost"], help="one of the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    if hasattr(os, "sched_setaffinity") and options.only == "cost":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    tables = {"Clean runs": partial(alarms, options.runs), "Cost of the checks": cost}
    names = {"alarms": "Clean runs", "cost": "Cost of the checks"}
    chosen = {
        name: make
        for name, make in tables.items()
        if options.only in (None, *[k for k, v in names.items() if v == name])
    }
    run_tables(
        "False alarms and cost of the checks", "python benchmarks/alarms.py", chosen, options.write
    )


if __name__ == "__main__":
    main()
