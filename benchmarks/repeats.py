"""How right `dimension.from_repeats` is: bias, standard error and coverage over many data sets of known systems.

(a) two repeats at random inputs, (b) more repeats, few repeated inputs, Sobol inputs, (c) how often the indicator
function finds the number of factors, (d) the total at more shots than were measured. With --write, RESULTS.md is brought up to date.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import infocap
from _common import run_tables

N_DATA_SETS = 200
HEAD = [
    "bias before correction",
    "bias",
    "scatter",
    "mean standard error",
    "95 % intervals that hold",
]


@dataclass(frozen=True)
class Known:
    """Noise-free readouts of the inputs, and the standard deviation of their noise, which may depend on them."""

    clean: Callable[[np.ndarray], np.ndarray]
    noise: Callable[[np.ndarray], np.ndarray]
    n_inputs: int
    total: float

    def measure(self, u: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """One noisy measurement at the inputs u."""
        x = self.clean(u)
        return x + self.noise(x) * generator.standard_normal(x.shape)


def by_quadrature(clean: Callable, noise: Callable, n_inputs: int = 2, nodes: int = 64) -> Known:
    """The exact total of a smooth system of two inputs: 1 + tr((S + V)⁻¹ S)."""
    u, weights = infocap.product_basis("legendre", n_inputs, 1).quadrature(nodes)
    x = clean(u)
    spread = np.sqrt(weights @ np.broadcast_to(noise(x), x.shape) ** 2)
    signal = np.sqrt(weights)[:, None] * (x - weights @ x) / spread
    power = np.linalg.svd(signal, compute_uv=False) ** 2
    return Known(clean, noise, n_inputs, 1 + float(np.sum(power / (1 + power))))


def spectrum(u: np.ndarray, n_readouts: int = 72) -> np.ndarray:
    """Smooth spectra: light with two phases set by the inputs, bent by its own power, seen with finite resolution."""
    k = np.linspace(-1, 1, n_readouts)
    field = 0.6 * np.exp(-2 * k**2) + np.zeros((len(u), 1), complex)
    for place, phase in zip((-0.6, 0.6), u.T, strict=True):
        field += np.exp(-(((k - place) / 0.35) ** 2) + 6j * phase[:, None] * (1 + k))
    field *= np.exp(3j * np.abs(field) ** 2)
    resolution = np.exp(-(((k[:, None] - k) / 0.08) ** 2))
    return np.abs(field @ (resolution / resolution.sum(axis=0))) ** 2


def systems() -> dict[str, Known]:
    basis = infocap.product_basis("legendre", 5, 4)
    found = {}
    for noise in (0.3, 1.0):
        mixture = infocap.theory.random_mixture(
            basis, n_active=40, n_readouts=25, noise=noise, seed=3
        )
        clean = infocap.theory.random_mixture(basis, n_active=40, n_readouts=25, seed=3)
        scale = mixture.noise_scale
        total = float(mixture.exact().sum())
        found[f"25 mixtures, {noise:.0%} noise"] = Known(clean, lambda x, s=scale: s, 5, total)
    for noise in (1e-3, 1e-2):
        found[f"72 spectral readouts, noise {noise:g}"] = by_quadrature(
            spectrum, lambda x, s=noise: s
        )
    features = infocap.systems.RandomFeatures(2, 30, gain=1.5, seed=5)
    found["30 tanh readouts, noise 0.001"] = by_quadrature(features, lambda x: 1e-3)
    found["30 tanh readouts, 1 % of the value"] = by_quadrature(
        features, lambda x: 0.01 * np.abs(x)
    )
    return found


def measure(
    known: Known, n_inputs: int, repeats: int = 2, n_repeated: int = 0, sobol: bool = False
) -> list[str]:
    """Bias, scatter and coverage over the data sets, as cells of a table."""
    n_repeated = n_repeated or n_inputs
    basis = infocap.product_basis("legendre", known.n_inputs, 1)
    errors = np.empty((N_DATA_SETS, 3))
    held = 0
    for number in range(N_DATA_SETS):
        generator = np.random.default_rng([n_inputs, number])
        u = infocap.draw(basis, n_inputs, design="sobol" if sobol else "random", seed=number)
        shots = [known.measure(u[:n_repeated], generator) for _ in range(repeats)]
        once = known.measure(u[n_repeated:], generator) if n_repeated < n_inputs else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*inputs are few for")
            found = infocap.dimension.from_repeats(*shots, measured_once=once)
        errors[number] = (
            found.raw_total - known.total,
            found.total - known.total,
            found.standard_error,
        )
        low, high = found.interval()
        held += low <= known.total <= high
    plain, total, error = errors.T
    chance = total.std(ddof=1) / np.sqrt(N_DATA_SETS)
    return [
        f"{plain.mean():+.3f}",
        f"{total.mean():+.3f} ± {chance:.3f}",
        f"{total.std(ddof=1):.3f}",
        f"{error.mean():.3f}",
        f"{held / N_DATA_SETS:.1%}",
    ]


def two_repeats() -> list[str]:
    lines = [
        f"| system | true total | N | {' | '.join(HEAD)} |",
        "|---|---|---|" + "---|" * len(HEAD),
    ]
    for name, known in systems().items():
        fewest = 5 * int(name.split()[0]) + 5
        for n in (fewest, 512, 2048):
            lines.append(f"| {name} | {known.total:.2f} | {n} | {' | '.join(measure(known, n))} |")
    return lines


def other_designs() -> list[str]:
    designs = {
        "3 repeats": {"repeats": 3},
        "5 repeats": {"repeats": 5},
        "2 repeats of 64 of the inputs": {"n_repeated": 64},
        "2 repeats of 256 of the inputs": {"n_repeated": 256},
        "2 repeats, Sobol inputs": {"sobol": True},
    }
    lines = [f"| system | design | {' | '.join(HEAD)} |", "|---|---|" + "---|" * len(HEAD)]
    for name, known in list(systems().items())[::2]:
        for design, options in designs.items():
            lines.append(f"| {name} | {design} | {' | '.join(measure(known, 1024, **options))} |")
    return lines


def factors() -> list[str]:
    """Orthogonal factors of equal strength in readouts with white noise."""
    strengths = (1.5, 2.0, 2.5, 3.0, 10.0)
    lines = [
        "| factors, readouts, samples | " + " | ".join(f"strength {s:g}" for s in strengths) + " |",
        "|---|" + "---|" * len(strengths),
    ]
    for rank, k, n in ((5, 20, 200), (5, 20, 2000), (20, 72, 500), (20, 72, 4096), (60, 72, 4096)):
        cells = []
        for strength in strengths:
            found = []
            for number in range(N_DATA_SETS):
                generator = np.random.default_rng([rank, n, number])
                loadings = np.linalg.qr(generator.standard_normal((k, rank)))[0].T
                signal = strength * generator.standard_normal((n, rank)) @ loadings
                found.append(
                    infocap.dimension.indicator(
                        signal + generator.standard_normal((n, k))
                    ).n_factors
                )
            cells.append(f"{np.mean([one == rank for one in found]):.0%}")
        lines.append(f"| {rank}, {k}, {n} | {' | '.join(cells)} |")
    return lines


# Readouts, standard deviation of the noise, inputs, and repeats. With 20 readouts of 14 functions, six directions of
# the readouts hold noise alone.
CASES_OF_SHOTS = ((12, 0.5, 1024, 2), (12, 0.5, 1024, 4), (20, 0.3, 2048, 2), (20, 1.0, 2048, 2))
SHOTS = (1, 4, 16)


def more_shots() -> list[str]:
    """The total of averages of several shots, from repeats of single shots, of mixtures whose capacities are known."""

    def mixture(n_readouts: int, noise: float) -> infocap.theory.RandomMixture:
        basis = infocap.product_basis("legendre", 2, 6)
        return infocap.theory.random_mixture(
            basis, n_active=14, n_readouts=n_readouts, noise=noise, seed=1
        )

    lines = [
        "| readouts, noise, inputs, repeats | " + " | ".join(f"{n} shots" for n in SHOTS) + " |",
        "|---" * (1 + len(SHOTS)) + "|",
    ]
    for n_readouts, noise, n_inputs, n_repeats in CASES_OF_SHOTS:
        system = mixture(n_readouts, noise)
        truth = np.array([mixture(n_readouts, noise / n**0.5).exact().sum() for n in SHOTS])
        errors, ratios = [], []
        for seed in range(N_DATA_SETS):
            u = infocap.draw(system.basis, n_inputs, design="random", seed=seed)
            shots = [system(u, seed=1000 * seed + k) for k in range(n_repeats)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", infocap.errors.DataWarning)
                found = infocap.dimension.from_repeats(*shots).capacity_at(SHOTS)
            errors.append(found.total - truth)
            ratios.append(errors[-1] / found.standard_error)
        mean, scatter = np.mean(errors, axis=0), np.std(errors, axis=0)
        holds = np.mean(np.abs(ratios) < 1.96, axis=0)
        cells = [
            f"{true:.2f}: {off:+.3f} ± {width:.3f}, {share:.0%} hold"
            for true, off, width, share in zip(truth, mean, scatter, holds, strict=True)
        ]
        name = f"{n_readouts}, {noise:g}, {n_inputs}, {n_repeats}"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    tables = {
        f"(a) Two repeats at N random inputs, {N_DATA_SETS} data sets": two_repeats,
        f"(b) Other designs, N = 1024, {N_DATA_SETS} data sets": other_designs,
        f"(c) How often the indicator finds the number of factors, {N_DATA_SETS} data sets": factors,
        f"(d) At more shots: the truth, mean error ± scatter, intervals that hold, {N_DATA_SETS} data sets": more_shots,
    }
    run_tables("Repeats", "python benchmarks/repeats.py", tables, parser.parse_args().write)


if __name__ == "__main__":
    main()
