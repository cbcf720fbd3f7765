"""Systems whose capacities are known: analytically, or by Gauss quadrature of their noise-free readouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import infocap

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Known:
    """Readouts `clean(u)` plus white noise of fixed size, and a basis; the truth follows."""

    name: str
    basis: infocap.ProductBasis
    clean: Callable[[Array], Array]
    noise: float  # relative to the root mean square of each readout's variation
    nodes: int = 0  # of the quadrature, for each input; 0: analytic, in the mixture itself
    relative: bool = True

    def __call__(self, u: Array, seed: int) -> Array:
        x = self.clean(u)
        return x + self.noise_scale * np.random.default_rng(seed).standard_normal(x.shape)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """E[x y] (readouts, terms) and E[x x'] of the noise-free readouts, the constant first."""
        u, w = self.basis.quadrature(self.nodes)
        x = np.column_stack([np.ones(len(u)), self.clean(u)])
        return (x * w[:, None]).T @ self.basis(u), (x * w[:, None]).T @ x

    @cached_property
    def noise_scale(self) -> Array:
        gram = self._moments[1]
        variation = np.diag(gram)[1:] - gram[0, 1:] ** 2
        return self.noise * np.sqrt(variation if self.relative else np.full(len(variation), variation.mean()))

    @cached_property
    def capacity(self) -> Array:
        cross, gram = self._moments
        gram = gram + np.diag(np.concatenate([[0.0], self.noise_scale**2]))
        size = np.sqrt(np.diag(gram))
        e, v = np.linalg.eigh(gram / np.outer(size, size))
        keep = e > 1e-13 * e[-1]
        inside = (v[:, keep] / np.sqrt(e[keep])).T @ (cross / size[:, None])
        return np.sum(inside**2, axis=0)

    @cached_property
    def complete_total(self) -> float:
        """The total over a complete basis: tr(G^-1 (G - noise))."""
        _, clean = self._moments
        gram = clean + np.diag(np.concatenate([[0.0], self.noise_scale**2]))
        return float(np.trace(np.linalg.lstsq(gram, clean, rcond=None)[0]))


def mixture(
    name: str, basis, n_active: int, n_readouts: int, noise: float, tail: float = 0.0, seed: int = 0
) -> Known:
    """A sparse random mixture; `tail` is the share of the power in functions of the next two degrees."""
    generator = np.random.default_rng(seed)
    wide = infocap.product_basis(basis.families, max_degree=basis.max_degree + (2 if tail else 0))
    inside = np.flatnonzero(wide.degrees <= basis.max_degree)
    outside = np.flatnonzero(wide.degrees > basis.max_degree)
    active = generator.choice(inside, n_active, replace=False)
    weights = generator.standard_normal((n_readouts, n_active)) * np.sqrt((1 - tail) / n_active)
    if tail:
        far = generator.choice(outside, n_active // 2, replace=False)
        more = generator.standard_normal((n_readouts, len(far))) * np.sqrt(tail / len(far))
        active, weights = np.concatenate([active, far]), np.column_stack([weights, more])
    order = np.argsort(active)
    active, weights = active[order], weights[:, order]
    system = infocap.theory._mixture.RandomMixture(wide, active, weights, 0.0)
    return _Mixture(name, basis, system, noise, nodes=-1, relative=True)


class _Mixture(Known):
    """A mixture needs no quadrature."""

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        wide = self.clean.basis
        full = np.zeros((len(self.clean.weights) + 1, len(wide)))
        full[1:, self.clean.active] = self.clean.weights
        full[0, 0] = 1.0
        return full[:, : len(self.basis)], full @ full.T


def features(
    name: str, q: int, degree: int, k: int, gain: float, noise: float, nodes: int, seed: int = 0
) -> Known:
    """Random tanh features; white noise of one size on all readouts."""
    basis = infocap.product_basis("legendre", q, degree)
    return Known(name, basis, infocap.systems.RandomFeatures(q, k, gain=gain, seed=seed), noise, nodes, False)


def periodic(name: str, q: int, degree: int, k: int, noise: float, nodes: int, seed: int = 0) -> Known:
    g = np.random.default_rng(seed)
    w, phase = g.standard_normal((q, k)) * 1.2, g.uniform(0, 2 * np.pi, k)
    return Known(
        name,
        infocap.product_basis("legendre", q, degree),
        lambda u: np.sin(u @ w + phase),
        noise,
        nodes,
        False,
    )


def collinear(
    name: str, q: int, degree: int, k: int, eps: float, noise: float, nodes: int, seed: int = 0
) -> Known:
    """Pairs of readouts that differ by eps."""
    g = np.random.default_rng(seed)
    w, v = g.standard_normal((2, q, k // 2))
    b, d = g.uniform(-1, 1, (2, k // 2))

    def clean(u: Array) -> Array:
        one = np.tanh(u @ w + b)
        return np.column_stack([one, one + eps * np.tanh(1.5 * u @ v + d)])

    return Known(name, infocap.product_basis("legendre", q, degree), clean, noise, nodes, True)


def spectral(
    name: str, degree: int, k: int, noise: float, nodes: int, strength: float = 2.0, seed: int = 0
) -> Known:
    """A spectrum-like system of two inputs: |sum of phase-modulated lines|² over k channels."""
    g = np.random.default_rng(seed)
    lines, channel = np.linspace(-1, 1, 12), np.linspace(-1.2, 1.2, k)
    a, b = g.standard_normal((2, 12)) * strength
    shape = np.exp(-(((channel[:, None] - lines) / 0.2) ** 2)) * np.exp(1j * g.uniform(0, 2 * np.pi, 12))

    def clean(u: Array) -> Array:
        field = np.exp(
            1j * (np.outer(u[:, 0], a) + np.outer(u[:, 1], b) + 0.5 * np.outer(u[:, 0] * u[:, 1], a * b))
        )
        return np.abs(field @ shape.T) ** 2

    return Known(name, infocap.product_basis("legendre", 2, degree), clean, noise, nodes, False)
