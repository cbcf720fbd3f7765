"""Systems whose capacities are known: analytically, or by Gauss quadrature of their noise-free readouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import infocap

Array = np.ndarray
Grid = tuple[Array, Array]  # nodes (nodes, inputs) and weights


@dataclass(frozen=True, eq=False)
class Known:
    """Readouts `clean(u)` plus white noise, and a basis; the exact capacities follow.

    `table` gives noise-free readouts and targets as vectors whose inner products are the expectations: their
    values at the nodes of a quadrature, times the square root of the weights.
    """

    name: str
    basis: infocap.ProductBasis
    clean: Callable[[Array], Array]
    table: Callable[[], tuple[Array, Array]]  # (rows, readouts), (rows, terms); the constant readout first
    noise: float  # relative to the root mean square variation of each readout
    common: bool = False  # relative to that of all readouts together

    def __call__(self, u: Array, seed: object) -> Array:
        x = self.clean(u)
        return x + self.noise_scale * np.random.default_rng(seed).standard_normal(x.shape)

    @cached_property
    def _vectors(self) -> tuple[Array, Array]:
        return self.table()

    @cached_property
    def noise_scale(self) -> Array:
        x, _ = self._vectors
        variance = np.sum(x[:, 1:] ** 2, axis=0) - (x[:, 0] @ x[:, 1:]) ** 2
        return self.noise * np.sqrt(np.full(len(variance), variance.mean()) if self.common else variance)

    @cached_property
    def capacity(self) -> Array:
        """Squared length of each target's projection on the readouts, which have an own axis for their noise."""
        x, y = self._vectors
        full = np.vstack([x, np.diag(np.concatenate([[0.0], self.noise_scale]))])
        left, singular, _ = np.linalg.svd(full / np.linalg.norm(full, axis=0), full_matrices=False)
        frame = left[: len(x), singular > 32 * np.finfo(float).eps * singular[0]]
        return np.sum((frame.T @ y) ** 2, axis=0)


def on_grid(basis: infocap.ProductBasis, clean: Callable[[Array], Array], grid: Grid) -> Callable:
    """Readouts and targets at the nodes of a quadrature."""

    def table() -> tuple[Array, Array]:
        u, root = grid[0], np.sqrt(grid[1])[:, None]
        return root * np.column_stack([np.ones(len(u)), clean(u)]), root * basis(u)

    return table


def mixture(
    name: str,
    basis: infocap.ProductBasis,
    n_active: int,
    n_readouts: int,
    noise: float,
    tail: float,
    seed: int,
) -> Known:
    """A sparse random mixture; `tail` is the share of the power in functions of the next two degrees."""
    generator = np.random.default_rng(seed)
    wide = infocap.product_basis(basis.families, max_degree=basis.max_degree + 2)
    inside, outside = (
        np.flatnonzero(part) for part in (wide.degrees <= basis.max_degree, wide.degrees > basis.max_degree)
    )
    active = generator.choice(inside, n_active, replace=False)
    far = generator.choice(outside, n_active // 2, replace=False)
    weights = np.zeros((n_readouts, len(wide)))
    weights[:, active] = generator.standard_normal((n_readouts, n_active)) * np.sqrt((1 - tail) / n_active)
    weights[:, far] = generator.standard_normal((n_readouts, len(far))) * np.sqrt(tail / len(far))
    used = np.flatnonzero(np.any(weights != 0, axis=0) | (np.arange(len(wide)) == 0))
    few = infocap.ProductBasis(wide.families, wide.indices[used])

    def table() -> tuple[Array, Array]:
        one = np.eye(len(wide), 1)
        return np.column_stack([one, weights.T]), np.eye(len(wide), len(basis))

    return Known(name, basis, lambda u: few(u) @ weights[:, used].T, table, noise)


def features(
    name: str,
    q: int,
    degree: int,
    k: int,
    gain: float,
    noise: float,
    nodes: int,
    seed: int,
    activation: str = "tanh",
) -> Known:
    """Random features with white noise of one size on all readouts."""
    basis = infocap.product_basis("legendre", q, degree)
    clean = infocap.systems.RandomFeatures(q, k, activation=activation, gain=gain, seed=seed)
    return Known(name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise, common=True)


def collinear(
    name: str, q: int, degree: int, k: int, eps: float, noise: float, nodes: int, seed: int
) -> Known:
    """Pairs of readouts that differ by eps; noise relative to that difference would drown it."""
    basis = infocap.product_basis("legendre", q, degree)
    first = infocap.systems.RandomFeatures(q, k // 2, seed=seed)
    second = infocap.systems.RandomFeatures(q, k // 2, gain=1.5, seed=seed + 1)

    def clean(u: Array) -> Array:
        x = first(u)
        return np.column_stack([x, x + eps * second(u)])

    return Known(name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise)


def spectral(name: str, degree: int, k: int, noise: float, nodes: int, seed: int) -> Known:
    """A spectrum of two inputs: the power of phase-modulated lines that overlap in k channels."""
    basis = infocap.product_basis("legendre", 2, degree)
    generator = np.random.default_rng(seed)
    lines, channels = np.linspace(-1, 1, 12), np.linspace(-1.2, 1.2, k)
    a, b = 2 * generator.standard_normal((2, 12))
    shape = np.exp(-(((channels[:, None] - lines) / 0.2) ** 2) + 2j * np.pi * generator.random(12))

    def clean(u: Array) -> Array:
        phase = np.outer(u[:, 0], a) + np.outer(u[:, 1], b) + np.outer(u[:, 0] * u[:, 1], a * b) / 2
        return np.abs(np.exp(1j * phase) @ shape.T) ** 2

    return Known(name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise, common=True)


def fibre(name: str, degree: int, noise: float, nodes: int) -> Known:
    """The photonic experiment without phase noise, at 4.5 dBm and 40 m; its detector has additive noise.

    The phase is sign(u) sqrt|u|: with u = s |s| the readouts are smooth on either side of zero, and so is
    the quadrature.
    """
    basis = infocap.product_basis("legendre", 2, degree)
    system = infocap.systems.FibreSystem(power_dbm=4.5, length_m=40.0, n_inputs=2, phase_noise=None)
    s, w = np.polynomial.legendre.leggauss(nodes)
    s, w = (s + 1) / 2, w / 2  # on [0, 1]
    u, weight = np.concatenate([-(s[::-1] ** 2), s**2]), np.concatenate([(w * s)[::-1], w * s])
    grid = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    return Known(
        name,
        basis,
        system,
        on_grid(basis, system, (grid, np.outer(weight, weight).ravel())),
        noise,
        common=True,
    )
