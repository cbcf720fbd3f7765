"""Systems whose capacities are known, and the least error that any estimate of them can have."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

import infocap

Array = np.ndarray
Grid = tuple[Array, Array]  # nodes (nodes, inputs) and weights
CACHE = Path(__file__).with_name(".cache")
BLOCK = 1024  # samples whose targets are held at a time


@dataclass(frozen=True, eq=False)
class Known:
    """A device whose mean readouts and noise are known, and a basis; the exact capacities follow.

    `observe(u, generator)` gives readouts. `table` gives mean readouts, the constant first, and targets as vectors
    whose inner products are the expectations: their values at the nodes of a quadrature, times the square root of the
    weights. `covariance` gives the mean covariance of the noise from the first of the two.

    Where the table comes from a large run, `half_difference` (terms, readouts) is half of what two such runs differ in
    E[y x]; its square is the bias that noise leaves in the capacities. They are then not exact.
    """

    name: str
    basis: infocap.ProductBasis
    observe: Callable[[Array, np.random.Generator], Array]
    table: Callable[[], tuple[Array, Array]]  # (rows, readouts), (rows, terms)
    covariance: Callable[[Array], Array]  # (rows, readouts) -> (readouts - 1, readouts - 1)
    half_difference: Callable[[], Array] | None = None
    fourth_moment: bool = True  # of the noise; without it no estimate has a finite variance bound

    def __call__(self, u: Array, seed: object) -> Array:
        return self.observe(u, np.random.default_rng(seed))

    @property
    def exact(self) -> bool:
        """Whether a capacity of zero is known to be zero."""
        return self.half_difference is None

    @cached_property
    def _vectors(self) -> tuple[Array, Array]:
        return self.table()

    @cached_property
    def _shift(self) -> Array:
        x, _ = self._vectors
        return x[:, 0] @ x[:, 1:]

    @cached_property
    def _projection(self) -> tuple[Array, Array]:
        """Orthonormal directions of the readouts: their values in the table, and how readouts make them up."""
        x = self._vectors[0].copy()
        x[:, 1:] -= np.outer(x[:, 0], self._shift)
        noise = root_of(self.covariance(self._vectors[0]))
        full = np.vstack([x, np.column_stack([np.zeros(len(noise)), noise])])
        scale = np.linalg.norm(full, axis=0)
        left, singular, right = np.linalg.svd(full / scale, full_matrices=False)
        kept = singular > 32 * np.finfo(float).eps * singular[0]
        return left[: len(x), kept], (right[kept] / singular[kept, None]).T / scale[:, None]

    @cached_property
    def capacity(self) -> Array:
        """Squared length of each target's projection on the readouts, which have axes of their own for their noise."""
        found = np.sum(self.weights**2, axis=0)
        if self.half_difference is not None:
            found -= np.sum((self.half_difference() @ self._projection[1][1:]) ** 2, axis=1)
        return found

    @cached_property
    def weights(self) -> Array:
        """The best linear readout of every target from whitened readouts, W: (directions, terms)."""
        return self._projection[0].T @ self._vectors[1]

    def whitened(self, x: Array) -> Array:
        """Readouts turned and scaled so that their second moments are the identity, z: (samples, directions)."""
        return np.column_stack([np.ones(len(x)), x - self._shift]) @ self._projection[1]

    @cached_property
    def bound(self) -> Bound:
        """The efficiency bound, from two readings at each of 8192 points."""
        return efficiency_bound(self, 8192)


@dataclass(frozen=True, eq=False)
class Bound:
    """The semi-parametric efficiency bound of the capacities (terms,) and of their total.

    A capacity has the efficient influence 2 y p - p², less its mean at given inputs: only noise is left. Where it
    vanishes, the square of the noise in the mean of z (y - p) remains: 2 tr S² / N², S the covariance of that noise.
    """

    variance: Array
    floor: Array
    total_variance: float
    total_floor: float

    def at(self, n_samples: int) -> tuple[Array, float]:
        """Least standard errors with this number of samples: of each capacity, and of the total."""
        each = self.variance / n_samples + self.floor / n_samples**2
        total = self.total_variance / n_samples + self.total_floor / n_samples**2
        return np.sqrt(each), float(np.sqrt(total))


def efficiency_bound(system: Known, n_points: int, seed: int = 4321) -> Bound:
    """V = E Var(2 y p - p² | u) and 2 tr S² from two readings at each point, with the true weights."""
    if not system.fourth_moment:
        return Bound(*(np.full(len(system.basis), np.nan),) * 2, np.nan, np.nan)
    u, found = infocap.draw(system.basis, n_points, seed=seed), []
    for start in range(0, n_points, BLOCK):
        part = u[start : start + BLOCK]
        y = system.basis(part)
        z = [system.whitened(system(part, seed=[seed, start, k])) for k in range(2)]
        first, second = (one @ system.weights for one in z)
        difference = (first - second) * (2 * y - first - second)
        floor, total_floor = _floors(z, [y - first, second - y])
        total = np.mean(difference.sum(axis=1) ** 2) / 2
        found.append((np.mean(difference**2, axis=0) / 2, floor, total, total_floor))
    return Bound(*(np.mean(parts, axis=0) for parts in zip(*found, strict=True)))


def _floors(z: list[Array], rest: list[Array]) -> tuple[Array, float]:
    """2 tr S² of every function and of their sum, by pairs of samples; the rest of the second reading has a minus."""
    n, terms = rest[0].shape
    floor, inner = np.empty(terms), np.zeros((n, n))
    for term in range(terms):
        noise = z[0] * rest[0][:, term, None] + z[1] * rest[1][:, term, None]
        floor[term] = np.sum((noise.T @ noise) ** 2) - np.sum(np.sum(noise**2, axis=1) ** 2)
    for one, own in zip(z, rest, strict=True):
        for other, its in zip(z, rest, strict=True):
            inner += (one @ other.T) * (own @ its.T)
    pairs = 2 * n * (n - 1)  # each with half the covariance of a difference
    return floor / pairs, float(np.sum(inner**2) - np.sum(np.diag(inner) ** 2)) / pairs


def root_of(covariance: Array) -> Array:
    """A matrix R with R'R the covariance; what rounding makes negative is zero."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-14 * max(values[-1], 0.0)
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T


def on_grid(basis: infocap.ProductBasis, mean: Callable[[Array], Array], grid: Grid) -> Callable:
    """Readouts and targets at the nodes of a quadrature."""

    def table() -> tuple[Array, Array]:
        u, root = grid[0], np.sqrt(grid[1])[:, None]
        return root * np.column_stack([np.ones(len(u)), mean(u)]), root * basis(u)

    return table


def white(
    name: str,
    basis: infocap.ProductBasis,
    clean: Callable[[Array], Array],
    table: Callable[[], tuple[Array, Array]],
    noise: float,
    common: bool = False,
) -> Known:
    """Normal noise relative to the root mean square variation of each readout, or of all together (`common`)."""

    @cache
    def scale() -> Array:
        x, _ = table()
        variance = np.sum(x[:, 1:] ** 2, axis=0) - (x[:, 0] @ x[:, 1:]) ** 2
        return noise * np.sqrt(np.full(len(variance), variance.mean()) if common else variance)

    def observe(u: Array, generator: np.random.Generator) -> Array:
        x = clean(u)
        return x + scale() * generator.standard_normal(x.shape)

    return Known(name, basis, observe, table, lambda x: np.diag(scale() ** 2))


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
        np.flatnonzero(part)
        for part in (wide.degrees <= basis.max_degree, wide.degrees > basis.max_degree)
    )
    active = generator.choice(inside, n_active, replace=False)
    far = generator.choice(outside, n_active // 2, replace=False)
    weights = np.zeros((n_readouts, len(wide)))
    weights[:, active] = generator.standard_normal((n_readouts, n_active)) * np.sqrt(
        (1 - tail) / n_active
    )
    weights[:, far] = generator.standard_normal((n_readouts, len(far))) * np.sqrt(tail / len(far))
    used = np.flatnonzero(np.any(weights != 0, axis=0) | (np.arange(len(wide)) == 0))
    few = infocap.ProductBasis(wide.families, wide.indices[used])

    def table() -> tuple[Array, Array]:
        one = np.eye(len(wide), 1)
        return np.column_stack([one, weights.T]), np.eye(len(wide), len(basis))

    return white(name, basis, lambda u: few(u) @ weights[:, used].T, table, noise)


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
    return white(
        name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise, common=True
    )


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

    return white(name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise)


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

    return white(
        name, basis, clean, on_grid(basis, clean, basis.quadrature(nodes)), noise, common=True
    )


def fibre(name: str, degree: int, noise: float, nodes: int) -> Known:
    """The photonic experiment without phase noise, at 4.5 dBm and 40 m; its detector has additive noise.

    The phase is sign(u) sqrt|u|: with u = s |s| the readouts are smooth on either side of zero, and so is
    the quadrature.
    """
    basis = infocap.product_basis("legendre", 2, degree)
    system = infocap.photonics.FibreSystem(
        power_dbm=4.5, length_m=40.0, n_inputs=2, phase_noise=None
    )
    s, w = np.polynomial.legendre.leggauss(nodes)
    s, w = (s + 1) / 2, w / 2  # on [0, 1]
    u, weight = np.concatenate([-(s[::-1] ** 2), s**2]), np.concatenate([(w * s)[::-1], w * s])
    grid = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    table = on_grid(basis, system, (grid, np.outer(weight, weight).ravel()))
    return white(name, basis, system, table, noise, common=True)


def sampled(
    name: str,
    basis: infocap.ProductBasis,
    system: Callable[..., Array],
    n_points: int,
    n_controls: int,
) -> Known:
    """A device with noise of its own, from two readings at each of many points, kept on disk.

    Readouts are fitted by `n_controls` functions; what two readings share beyond them is signal outside, and half their
    difference is noise.
    """
    wide = basis.extended(n_controls)
    place = {tuple(row): k for k, row in enumerate(wide.indices.tolist())}
    own = [place[tuple(row)] for row in basis.indices.tolist()]

    @cache
    def runs() -> dict[str, Array]:
        key = hashlib.sha256(repr((system, wide, n_points)).encode()).hexdigest()[:16]
        path = CACHE / f"{key}.npz"
        if not path.exists():
            CACHE.mkdir(exist_ok=True)
            np.savez(path, **_two_runs(wide, system, n_points))
        with np.load(path) as found:
            return dict(found)

    def table() -> tuple[Array, Array]:
        found = runs()
        outside = root_of(found["rest"] - found["noise"] / 2)
        x = np.vstack([found["mean"], outside])
        return np.column_stack([np.eye(len(x), 1), x]), np.eye(len(x), len(wide))[:, own]

    def observe(u: Array, generator: np.random.Generator) -> Array:
        return system(u, seed=int(generator.integers(2**62)))

    return Known(
        name,
        basis,
        observe,
        table,
        lambda x: runs()["noise"],
        lambda: runs()["half_difference"][own],
    )


def _two_runs(
    wide: infocap.ProductBasis, system: Callable[..., Array], n_points: int
) -> dict[str, Array]:
    """Coefficients of the readouts' mean and half difference; second moments of the noise, and of what is not fitted."""
    u = infocap.draw(wide, n_points, seed=99)
    first, second = (system(u, seed=seed) for seed in (101, 102))
    mean, half = (first + second) / 2, (first - second) / 2
    gram = np.zeros((len(wide), len(wide)))
    right = np.zeros((len(wide), 2 * mean.shape[1]))
    for start in range(0, n_points, BLOCK):
        y, rows = wide(u[start : start + BLOCK]), slice(start, start + BLOCK)
        gram += y.T @ y
        right += y.T @ np.hstack([mean[rows], half[rows]])
    mean_fit, half_fit = np.hsplit(np.linalg.solve(gram, right), 2)
    for start in range(0, n_points, BLOCK):
        mean[start : start + BLOCK] -= wide(u[start : start + BLOCK]) @ mean_fit
    half_fit[0] = 0.0  # the constant is a readout itself
    return {
        "mean": mean_fit,
        "half_difference": half_fit,
        "noise": 2 * half.T @ half / n_points,  # covariance of one reading
        "rest": mean.T @ mean / n_points,
    }
