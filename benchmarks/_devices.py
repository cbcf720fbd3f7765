"""The systems of the accuracy benchmark: what laboratories have, with noise of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

import infocap
from _truth import (
    Array,
    Known,
    collinear,
    features,
    fibre,
    mixture,
    on_grid,
    sampled,
    spectral,
    white,
)
from infocap.basis import binomial
from infocap.photonics import FibreSystem
from infocap.systems import FeedForward, RandomFeatures

Generator = np.random.Generator


@dataclass(frozen=True)
class Entry:
    """How to make a system, what kind of device it is, and with how many samples to measure it."""

    make: Callable[[str], Known]
    kind: str
    sizes: tuple[int, int, int]
    large: bool = False  # takes seconds: a quarter of the data sets will do


def legendre(q: int, degree: int) -> infocap.ProductBasis:
    return infocap.product_basis("legendre", q, degree)


def counts(name: str) -> Known:
    """Photons counted behind 40 interferometers of different brightness: Poisson noise."""
    basis, generator = legendre(3, 5), np.random.default_rng(51)
    weights, phase = 1.2 * generator.standard_normal((3, 40)), 2 * np.pi * generator.random(40)
    brightness = np.geomspace(20, 400, 40)

    def mean(u: Array) -> Array:
        return brightness * (1 + 0.8 * np.cos(u @ weights + phase))

    table = on_grid(basis, mean, basis.quadrature(24))
    return Known(
        name,
        basis,
        lambda u, g: g.poisson(mean(u)).astype(float),
        table,
        lambda x: np.diag(x[:, 0] @ x[:, 1:]),
    )


def populations(name: str) -> Known:
    """Outcomes of 400 shots on a state of 20 levels: multinomial noise, and readouts that add up to one."""
    basis, generator, shots = legendre(2, 8), np.random.default_rng(52), 400
    rotation, _ = np.linalg.qr(
        generator.standard_normal((20, 20)) + 1j * generator.standard_normal((20, 20))
    )
    angles = 1.5 * generator.standard_normal((2, 20))

    def mean(u: Array) -> Array:
        p = np.abs(np.exp(1j * (u @ angles)) @ rotation.T) ** 2
        return p / p.sum(axis=1, keepdims=True)

    def covariance(x: Array) -> Array:
        return (np.diag(x[:, 0] @ x[:, 1:]) - x[:, 1:].T @ x[:, 1:]) / shots

    table = on_grid(basis, mean, basis.quadrature(48))
    return Known(name, basis, lambda u, g: g.multinomial(shots, mean(u)) / shots, table, covariance)


def student(name: str) -> Known:
    """Odd amplifiers whose noise has Student's t distribution with three degrees of freedom."""
    basis, weights = legendre(3, 4), 1.4 * np.random.default_rng(53).standard_normal((3, 22))

    def clean(u: Array) -> Array:
        return np.tanh(u @ weights)

    table = on_grid(basis, clean, basis.quadrature(30))

    def observe(u: Array, generator: Generator) -> Array:
        x = clean(u)
        return x + 0.1 * generator.standard_t(3, x.shape) / np.sqrt(3)

    return Known(name, basis, observe, table, lambda x: 0.01 * np.eye(22), fourth_moment=False)


def converter(name: str) -> Known:
    """Tanh units read by a converter of 4 bits, with noise of a third of a step before it."""
    basis, clean, step = legendre(2, 9), RandomFeatures(2, 18, gain=1.6, seed=54), 1 / 8
    edges = np.arange(-7, 8) * step

    def above(u: Array) -> Array:
        return ndtr((clean(u)[:, :, None] - edges) / (step / 3))

    def mean(u: Array) -> Array:
        return step * above(u).sum(axis=2)

    def variance(u: Array) -> Array:
        p, odd = above(u), 2 * np.arange(1, 16) - 1.0
        return step**2 * (p @ odd - p.sum(axis=2) ** 2)

    def observe(u: Array, generator: Generator) -> Array:
        x = clean(u)
        return step * np.searchsorted(
            edges, x + step / 3 * generator.standard_normal(x.shape)
        ).astype(float)

    grid = basis.quadrature(160)
    return Known(
        name,
        basis,
        observe,
        on_grid(basis, mean, grid),
        lambda x: np.diag(np.sum([w @ variance(u) for u, w in _pieces(grid)], axis=0)),
    )


def _pieces(grid: tuple[Array, Array]) -> list[tuple[Array, Array]]:
    count = len(grid[1]) // 4096 + 1
    return list(zip(np.array_split(grid[0], count), np.array_split(grid[1], count), strict=True))


def comparators(name: str) -> Known:
    """Comparators that see a mixture of the inputs and noise, and say -1 or 1."""
    basis, generator = legendre(3, 6), np.random.default_rng(55)
    weights, offset = generator.standard_normal((3, 36)), generator.uniform(-1, 1, 36)

    def observe(u: Array, g: Generator) -> Array:
        return np.sign(u @ weights + offset + 0.25 * g.standard_normal((len(u), 36)))

    def mean(u: Array) -> Array:
        return 2 * ndtr((u @ weights + offset) / 0.25) - 1

    table = on_grid(basis, mean, basis.quadrature(44))
    return Known(name, basis, observe, table, lambda x: np.diag(1 - np.sum(x[:, 1:] ** 2, axis=0)))


def intensity(name: str) -> Known:
    """Light whose power fluctuates by 8 % in all channels together, each seeing two of three inputs."""
    basis, generator = legendre(3, 5), np.random.default_rng(56)
    weights, phase = 1.5 * generator.standard_normal((3, 30)), 2 * np.pi * generator.random(30)
    weights[np.arange(30) % 3, np.arange(30)] = 0.0

    def mean(u: Array) -> Array:
        return 1.5 + np.sin(u @ weights + phase)

    def observe(u: Array, generator: Generator) -> Array:
        x = mean(u) * (1 + 0.08 * generator.standard_normal((len(u), 1)))
        return x + 0.03 * generator.standard_normal(x.shape)

    def covariance(x: Array) -> Array:
        return 0.08**2 * x[:, 1:].T @ x[:, 1:] + 0.03**2 * np.eye(30)

    return Known(name, basis, observe, on_grid(basis, mean, basis.quadrature(24)), covariance)


def speckle(name: str) -> Known:
    """Power in 64 channels of a weak field plus a random one: noise grows with the signal, most directions are noise."""
    basis, generator, spread = legendre(2, 9), np.random.default_rng(57), 0.2
    lines = generator.standard_normal((64, 6)) + 1j * generator.standard_normal((64, 6))
    angles, depth = 2 * generator.standard_normal((2, 6)), np.array([0.6, -0.5])

    def field(u: Array) -> Array:
        return (1 + u @ depth)[:, None] * np.exp(1j * (u @ angles)) @ lines.T / np.sqrt(12)

    def observe(u: Array, g: Generator) -> Array:
        clean = field(u)
        real, imaginary = np.sqrt(spread) * g.standard_normal((2, *clean.shape))
        return (clean.real + real) ** 2 + (clean.imag + imaginary) ** 2

    def mean(u: Array) -> Array:
        return np.abs(field(u)) ** 2 + 2 * spread

    def covariance(x: Array) -> Array:
        return np.diag(4 * spread * (x[:, 0] @ x[:, 1:]) - 4 * spread**2)

    return Known(name, basis, observe, on_grid(basis, mean, basis.quadrature(40)), covariance)


def bits(name: str) -> Known:
    """Rectifiers behind six binary inputs; all states are counted."""
    basis = infocap.product_basis("bernoulli", 6, 4)
    clean = RandomFeatures(6, 24, activation="relu", gain=0.8, seed=58)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature()), 0.2, common=True)


def levels(name: str) -> Known:
    """Two switches, a knob of four positions, a uniform and an arcsine input."""
    families = ["bernoulli", "bernoulli", binomial(3), "legendre", "chebyshev"]
    basis, clean = (
        infocap.product_basis(families, max_degree=4),
        RandomFeatures(5, 28, gain=0.9, seed=59),
    )
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(40)), 0.1, common=True)


def normal(name: str) -> Known:
    """Tanh units behind four normal inputs."""
    basis, clean = infocap.product_basis("hermite", 4, 3), RandomFeatures(4, 26, gain=0.35, seed=60)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(16)), 0.05, common=True)


def resonators(name: str) -> Known:
    """Light through 32 resonators whose phases are sums of two periodic inputs."""
    basis, generator = infocap.product_basis("fourier", 2, 4), np.random.default_rng(61)
    turns, phase = generator.integers(-2, 3, (2, 32)), 2 * np.pi * generator.random(32)
    finesse = generator.uniform(0.5, 3, 32)

    def clean(u: Array) -> Array:
        return 1 / (1 + finesse * np.sin((u @ turns + phase) / 2) ** 2)

    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(64)), 0.05, common=True)


def network(name: str) -> Known:
    """A network of two layers behind four inputs."""
    basis, clean = legendre(4, 5), FeedForward(4, (20, 30), seed=62)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(14)), 0.03, common=True)


def few_directions(name: str) -> Known:
    """Nine noisy signals seen through 48 channels: 39 of them tell nothing new."""
    basis, clean = legendre(3, 5), RandomFeatures(3, 9, gain=1.3, seed=63)
    mixing = np.random.default_rng(64).standard_normal((9, 48))

    def observe(u: Array, generator: Generator) -> Array:
        x = clean(u)
        return (x + 0.1 * generator.standard_normal(x.shape)) @ mixing

    table = on_grid(basis, lambda u: clean(u) @ mixing, basis.quadrature(28))
    return Known(name, basis, observe, table, lambda x: 0.01 * mixing.T @ mixing)


def noisy_fibre(power_dbm: float, length_m: float, q: int, degree: int) -> Callable[[str], Known]:
    """The photonic experiment with the phase noise of its own encoder, from 2^17 readings."""
    system = FibreSystem(power_dbm=power_dbm, length_m=length_m, n_inputs=q)
    return lambda name: sampled(name, legendre(q, degree), system, 2**16, 500)


SMALL, MIDDLE, WIDE, PAPER = (
    (256, 1024, 4096),
    (512, 1024, 4096),
    (512, 1024, 2048),
    (1024, 4096, 8192),
)
SYSTEMS = {
    "paper's mixture with 30 % noise": Entry(
        lambda name: mixture(name, legendre(5, 8), 200, 71, 0.3, 0.0, 22),
        "mixture",
        PAPER,
        large=True,
    ),
    "paper's mixture with 10 % outside": Entry(
        lambda name: mixture(name, legendre(5, 8), 200, 71, 0.03, 0.1, 23),
        "mixture",
        PAPER,
        large=True,
    ),
    "mixture with 100 % noise": Entry(
        lambda name: mixture(name, legendre(3, 7), 40, 24, 1.0, 0.0, 24), "mixture", SMALL
    ),
    "strong tanh": Entry(
        lambda name: features(name, 2, 14, 71, 3.0, 1e-2, 80, 26), "features", SMALL
    ),
    "tanh without noise": Entry(
        lambda name: features(name, 4, 6, 60, 1.0, 0.0, 18, 27), "features", SMALL
    ),
    "sine with little noise": Entry(
        lambda name: features(name, 3, 7, 40, 1.5, 1e-4, 30, 28, "sin"), "features", SMALL
    ),
    "collinear pairs": Entry(
        lambda name: collinear(name, 3, 6, 24, 1e-2, 1e-4, 30, 29), "collinear", SMALL
    ),
    "spectrum": Entry(lambda name: spectral(name, 14, 71, 1e-3, 80, 30), "spectrum", SMALL),
    "fibre with a noisy detector": Entry(lambda name: fibre(name, 14, 1e-3, 32), "fibre", SMALL),
    "photon counts": Entry(counts, "shot noise", SMALL),
    "populations": Entry(populations, "shot noise", SMALL),
    "Student t3 noise": Entry(student, "heavy tails", SMALL),
    "converter of 4 bits": Entry(converter, "quantised", SMALL),
    "150 sine units": Entry(
        lambda name: features(name, 3, 5, 150, 2.0, 0.3, 24, 65, "sin"), "K near N/3", WIDE
    ),
    "comparators": Entry(comparators, "steps", MIDDLE),
    "intensity noise": Entry(intensity, "common noise", SMALL),
    "speckle": Entry(speckle, "signal-dependent noise", MIDDLE),
    "6 bits": Entry(bits, "binary inputs", SMALL),
    "switches and knobs": Entry(levels, "mixed inputs", MIDDLE),
    "normal inputs": Entry(normal, "normal inputs", SMALL),
    "resonators": Entry(resonators, "periodic inputs", SMALL),
    "two layers": Entry(network, "network", MIDDLE),
    "9 directions in 48 channels": Entry(few_directions, "rank", SMALL),
    "noisy fibre of 2 inputs": Entry(noisy_fibre(-5.0, 15.0, 2, 10), "fibre", MIDDLE),
    "noisy fibre of 4 inputs": Entry(noisy_fibre(3.0, 30.0, 4, 5), "fibre", MIDDLE),
}
