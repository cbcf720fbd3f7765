"""Further systems of the accuracy benchmark, none of which served to choose a constant of the method.

They have 1 to 8 inputs and 4 to 60 readouts, and capacities from a quadrature. `PAIRS` are devices that are compared
with each other at the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import infocap
from _devices import Entry, legendre
from _truth import Array, Known, on_grid, white
from infocap.systems import RandomFeatures

Generator = np.random.Generator
SHARE_OF_GARBAGE = 0.02
SIZE_OF_GARBAGE = 2.0


def clean_device(name: str, basis: infocap.ProductBasis, clean: Callable, nodes: int) -> Known:
    """A device without noise, which computes more than the basis holds."""
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), 0.0)


def etalon(name: str) -> Known:
    """Four Airy lines of one input."""
    basis, generator = legendre(1, 12), np.random.default_rng(101)
    turns, phase = generator.uniform(1.5, 4.0, 4), 2 * np.pi * generator.random(4)

    def clean(u: Array) -> Array:
        return 1 / (1 + 3 * np.sin(u * turns + phase) ** 2)

    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(200)), 0.03)


def few_counts(name: str) -> Known:
    """Three to thirty photons per shot in 16 channels."""
    basis, generator = legendre(2, 6), np.random.default_rng(102)
    weights, phase = 1.4 * generator.standard_normal((2, 16)), 2 * np.pi * generator.random(16)
    brightness = np.geomspace(3, 30, 16)

    def mean(u: Array) -> Array:
        return brightness * (1 + 0.9 * np.sin(u @ weights + phase))

    return Known(
        name,
        basis,
        lambda u, g: g.poisson(mean(u)).astype(float),
        on_grid(basis, mean, basis.quadrature(50)),
        lambda x: np.diag(x[:, 0] @ x[:, 1:]),
    )


def with_gain(basis: infocap.ProductBasis, clean: Callable, spread: float, nodes: int) -> Callable:
    """A device all of whose readouts share a gain that changes from shot to shot."""
    k = clean(np.zeros((1, basis.n_inputs))).shape[1]

    def make(name: str) -> Known:
        def observe(u: Array, generator: Generator) -> Array:
            gain = np.exp(spread * generator.standard_normal((len(u), 1)) - spread**2 / 2)
            return clean(u) * gain + 0.02 * generator.standard_normal((len(u), k))

        def covariance(x: Array) -> Array:
            return np.expm1(spread**2) * x[:, 1:].T @ x[:, 1:] + 0.02**2 * np.eye(k)

        return Known(
            name, basis, observe, on_grid(basis, clean, basis.quadrature(nodes)), covariance
        )

    return make


def bright(q: int, k: int, seed: int) -> Callable[[Array], Array]:
    """Positive readouts of interferometers."""
    generator = np.random.default_rng(seed)
    weights, phase = 1.3 * generator.standard_normal((q, k)), 2 * np.pi * generator.random(k)
    return lambda u: 1.3 + np.sin(u @ weights + phase)


def noise_of_edge(name: str) -> Known:
    """Tanh units with Student's t5 noise that is sixfold at the edge of the first input."""
    basis, clean = legendre(2, 7), RandomFeatures(2, 14, gain=1.7, seed=103)

    def spread(u: Array) -> Array:
        return 0.02 + 0.1 * u[:, :1] ** 2

    nodes, weights = basis.quadrature(40)
    variance = float(weights @ spread(nodes)[:, 0] ** 2)

    def observe(u: Array, generator: Generator) -> Array:
        x = clean(u)
        return x + spread(u) * generator.standard_t(5, x.shape) / np.sqrt(5 / 3)

    table = on_grid(basis, clean, basis.quadrature(60))
    return Known(name, basis, observe, table, lambda x: variance * np.eye(14))


def garbage(name: str) -> Known:
    """Two shots of a hundred are noise alone."""
    basis, clean = legendre(3, 4), RandomFeatures(3, 18, gain=1.1, seed=104)
    p = SHARE_OF_GARBAGE

    def mean(u: Array) -> Array:
        return (1 - p) * clean(u)

    def observe(u: Array, generator: Generator) -> Array:
        x = clean(u) + 0.05 * generator.standard_normal((len(u), 18))
        is_garbage = generator.random(len(u)) < p
        x[is_garbage] = SIZE_OF_GARBAGE * generator.standard_normal((is_garbage.sum(), 18))
        return x

    def covariance(x: Array) -> Array:
        white_part = (1 - p) * 0.05**2 + p * SIZE_OF_GARBAGE**2
        return p / (1 - p) * x[:, 1:].T @ x[:, 1:] + white_part * np.eye(18)

    return Known(name, basis, observe, on_grid(basis, mean, basis.quadrature(30)), covariance)


def smooth(name: str) -> Known:
    return clean_device(name, legendre(2, 6), RandomFeatures(2, 10, gain=1.8, seed=105), 80)


def smooth_of_four(name: str) -> Known:
    return clean_device(name, legendre(4, 3), RandomFeatures(4, 12, gain=0.8, seed=106), 16)


def three_normal(name: str) -> Known:
    """Sine units behind three normal inputs."""
    basis = infocap.product_basis("hermite", 3, 3)
    clean = RandomFeatures(3, 15, activation="sin", gain=0.4, seed=107)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(24)), 0.1, common=True)


def waiting_times(name: str) -> Known:
    """Decays behind two exponential inputs."""
    basis, generator = infocap.product_basis("laguerre", 2, 2), np.random.default_rng(108)
    rates = generator.uniform(0.2, 1.5, (2, 9))

    def clean(u: Array) -> Array:
        return np.exp(-u @ rates)

    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(40)), 0.2, common=True)


def three_peaks(name: str) -> Known:
    """Tanh units behind two inputs whose density has three peaks."""

    def density(u: Array) -> Array:
        return sum(np.exp(-(((u - centre) / 0.12) ** 2)) for centre in (-0.7, 0.0, 0.6)) + 0.02

    family = infocap.basis.density(density, (-1, 1), max_degree=6)
    basis = infocap.product_basis([family, family], max_degree=6)
    clean = RandomFeatures(2, 12, gain=1.9, seed=109)
    nodes, weights = np.polynomial.legendre.leggauss(100)
    weights = weights * density(nodes)
    weights /= weights.sum()
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    table = on_grid(basis, clean, (grid, np.outer(weights, weights).ravel()))
    return white(name, basis, clean, table, 0.05, common=True)


def five_levels(name: str) -> Known:
    """Sine units behind three inputs of five unequal levels."""
    family = infocap.basis.table([-1.0, -0.6, 0.1, 0.5, 1.0], [1, 2, 3, 2, 1])
    basis = infocap.product_basis([family] * 3, max_degree=4)
    clean = RandomFeatures(3, 16, activation="sin", gain=1.2, seed=110)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature()), 0.15, common=True)


def eight_inputs(name: str) -> Known:
    """Cubic amplifiers behind eight inputs, exact on few nodes."""
    basis, generator = legendre(8, 2), np.random.default_rng(111)
    weights, offset = 0.5 * generator.standard_normal((8, 30)), generator.uniform(-1, 1, 30)

    def clean(u: Array) -> Array:
        signal = u @ weights + offset
        return signal - signal**3 / 6

    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(4)), 0.1, common=True)


def sixty_channels(name: str) -> Known:
    basis, clean = legendre(2, 8), RandomFeatures(2, 60, activation="sin", gain=2.2, seed=112)
    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(60)), 0.05, common=True)


SMALL, MIDDLE = (256, 1024, 4096), (512, 1024, 4096)
FURTHER = {
    "etalon of 1 input": Entry(etalon, "periodic", SMALL),
    "3 to 30 photons": Entry(few_counts, "shot noise", SMALL),
    "gain of 20 channels": Entry(
        with_gain(legendre(3, 4), bright(3, 20, 113), 0.15, 30), "common noise", SMALL
    ),
    "t5 noise at the edge": Entry(noise_of_edge, "signal-dependent noise", SMALL),
    "2 % garbage": Entry(garbage, "heavy tails", SMALL),
    "smooth of 2 inputs": Entry(smooth, "no noise", SMALL),
    "smooth of 4 inputs": Entry(smooth_of_four, "no noise", SMALL),
    "3 normal inputs": Entry(three_normal, "normal inputs", SMALL),
    "waiting times": Entry(waiting_times, "exponential inputs", SMALL),
    "density of 3 peaks": Entry(three_peaks, "density", SMALL),
    "5 levels": Entry(five_levels, "levels", SMALL),
    "8 inputs": Entry(eight_inputs, "many inputs", SMALL),
    "60 channels": Entry(sixty_channels, "many readouts", MIDDLE),
}


@dataclass(frozen=True)
class Pair:
    """How to make two devices of one basis, and with how many samples to compare them."""

    make: Callable[[str], tuple[Known, Known]]
    sizes: tuple[int, ...] = (256, 1024)


def nearly_equal(name: str) -> tuple[Known, Known]:
    """Two devices without noise; the second mixes the readouts of the first a little."""
    basis, first = legendre(2, 5), RandomFeatures(2, 9, gain=1.5, seed=114)
    mixing = np.eye(9) + 0.1 * np.random.default_rng(115).standard_normal((9, 9))

    def second(u: Array) -> Array:
        return np.sin(first(u) @ mixing)

    return clean_device(name, basis, first, 60), clean_device(name, basis, second, 60)


def unlike(name: str) -> tuple[Known, Known]:
    """Two devices without noise and with nothing in common."""
    basis = legendre(3, 4)
    devices = [RandomFeatures(3, 8, gain=1.2, seed=116), RandomFeatures(3, 12, gain=1.2, seed=117)]
    first, second = (clean_device(name, basis, device, 30) for device in devices)
    return first, second


def noisy(name: str) -> tuple[Known, Known]:
    """The same readouts with more and with less noise."""
    basis, clean = legendre(2, 6), RandomFeatures(2, 14, gain=1.4, seed=118)
    table = on_grid(basis, clean, basis.quadrature(60))
    first, second = (white(name, basis, clean, table, noise, True) for noise in (0.1, 0.3))
    return first, second


def gains(name: str) -> tuple[Known, Known]:
    """The same channels behind sources of unequal stability."""
    basis, clean = legendre(2, 5), bright(2, 12, 119)
    first, second = (with_gain(basis, clean, spread, 40)(name) for spread in (0.1, 0.2))
    return first, second


PAIRS = {
    "nearly equal, no noise": Pair(nearly_equal),
    "unlike, no noise": Pair(unlike),
    "more noise": Pair(noisy),
    "less stable source": Pair(gains),
}
