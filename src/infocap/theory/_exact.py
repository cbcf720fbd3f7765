"""What is known exactly: the paper's formulas for noise and finite samples, and systems to test estimators on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import number, whole_number
from ..basis._product import ProductBasis
from ..errors import DataError, ParameterError
from ..kernels._summary import RANK_TOLERANCE
from ..typing import ArrayLike, Floats, Integers

# A covariance may have eigenvalues below zero by this share of the largest: rounding.
ROUNDING = 1e-12


def finite_sample_bias(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Delta(y, X) of every target, where E[C_N] = C + Delta / N + ... (paper, Prop. 5.2).

    Delta = E[(sum_i X~_i²) (y - P_X y)²] / E[y²] is an average over the inputs and the noise: give values x (nodes,
    readouts) and y (nodes, targets) at quadrature nodes with their `weights`, or at very many samples.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 2)
    >>> nodes, weights = basis.quadrature(8)
    >>> finite_sample_bias(basis(nodes)[:, :2], basis(nodes), weights).round(3)
    array([0.   , 0.   , 2.571])
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise DataError(f"x has shape {x.shape}, y {y.shape}; give (nodes, readouts) and (nodes, targets).")
    w = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, dtype=float)
    x, y, w = x[w > 0], y[w > 0], w[w > 0]  # weights of far nodes underflow
    root = np.sqrt(w)[:, None]
    frame = _orthonormal_frame(root * x)  # (nodes, rank): X~ times the root of the weights
    residual = root * y - frame @ (frame.T @ (root * y))
    leverage = np.sum(frame**2, axis=1) / w
    return leverage @ residual**2 / (w @ y**2)


def noisy_capacities(
    weights: ArrayLike, noise_covariance: ArrayLike | None = None, relative_covariance: ArrayLike | None = None
) -> Floats:
    """Exact capacities of readouts X = weights @ y + noise, where y are the functions of a basis.

    `weights` is (readouts, terms), `noise_covariance` (readouts, readouts). With `relative_covariance` every readout is
    also multiplied by 1 + noise of that covariance, as by a gain that fluctuates. The noise counts as further functions
    that nobody asks for (paper, section 4), so the capacities are the squared lengths of the columns of an orthonormal
    frame of [weights, noise^(1/2)]: no Gram matrix is inverted.

    >>> noisy_capacities([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.25]])
    array([0.5, 0.8])
    """
    w = np.asarray(weights, dtype=float)
    if w.ndim != 2:
        raise DataError(f"weights has shape {w.shape}; give (readouts, terms).")
    columns = [w]
    given = {"noise_covariance": (noise_covariance, 1.0), "relative_covariance": (relative_covariance, w @ w.T)}
    for name, (one, strength) in given.items():
        if one is None:
            continue
        covariance = np.asarray(one, dtype=float)
        if covariance.shape != (len(w), len(w)):
            raise DataError(f"{name} has shape {covariance.shape}; give ({len(w)}, {len(w)}).")
        covariance = covariance * strength
        values, vectors = np.linalg.eigh(covariance)
        if values[0] < -ROUNDING * max(abs(values[-1]), 1e-300):
            raise DataError(f"{name} has a negative eigenvalue, {values[0]:g}; give a covariance.")
        columns.append(vectors * np.sqrt(np.maximum(values, 0.0)))
    return np.sum(_orthonormal_frame(np.hstack(columns).T)[: w.shape[1]] ** 2, axis=1)


@dataclass(frozen=True, eq=False)
class RandomMixture:
    """Readouts that are fixed random linear combinations of a few basis functions, plus white noise.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 3)
    >>> round(float(random_mixture(basis, n_active=5, n_readouts=4, noise=0.5, seed=1).exact().sum()), 1)
    3.3
    """

    basis: ProductBasis
    active: Integers  # rows of basis.indices
    weights: Floats  # (readouts, active)
    noise: float  # standard deviation, relative to each readout's own root mean square

    def __call__(self, u: Floats, seed: Any = None) -> Floats:
        """Readouts (samples, readouts); a seed makes the noise reproducible."""
        rows = np.union1d(0, self.active)  # a basis has the constant
        mixed = ProductBasis(self.basis.families, self.basis.indices[rows])
        x = mixed.combine(np.asarray(u, dtype=float), self._all_weights[:, rows].T)
        if self.noise:
            x += self.noise_scale * np.random.default_rng(seed).standard_normal(x.shape)
        return x

    @property
    def noise_scale(self) -> Floats:
        """Standard deviation of the noise of each readout."""
        return self.noise * np.sqrt(np.sum(self.weights**2, axis=1))

    def exact(self, constant: bool = True) -> Floats:
        """The capacity of every function of the basis, with the constant readout as `estimate` adds it."""
        weights, noise = self._all_weights, self.noise_scale**2
        if constant:
            weights = np.vstack([np.eye(1, len(self.basis)), weights])
            noise = np.concatenate([[0.0], noise])
        return noisy_capacities(weights, np.diag(noise))

    @property
    def _all_weights(self) -> Floats:
        weights = np.zeros((len(self.weights), len(self.basis)))
        weights[:, self.active] = self.weights
        return weights


def random_mixture(
    basis: ProductBasis, *, n_active: int, n_readouts: int, noise: float = 0.0, seed: int | None = None
) -> RandomMixture:
    """The paper's synthetic system: `n_readouts` random mixtures of `n_active` functions of the basis.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 5, 8)
    >>> system = random_mixture(basis, n_active=200, n_readouts=71, seed=0)
    >>> bool(abs(system.exact().sum() - 72) < 1e-9)
    True
    """
    n_active, n_readouts = whole_number("n_active", n_active, 1), whole_number("n_readouts", n_readouts, 1)
    if n_active > len(basis):
        raise ParameterError(f"`n_active={n_active}` is more than the {len(basis)} functions of the basis.")
    noise = number("noise", noise, 0.0)
    generator = np.random.default_rng(seed)
    active = np.sort(generator.choice(len(basis), n_active, replace=False))
    return RandomMixture(basis, active, generator.standard_normal((n_readouts, n_active)), noise)


def _orthonormal_frame(x: Floats) -> Floats:
    """An orthonormal frame of the columns of x, whatever their scales: (rows, rank)."""
    norms = np.linalg.norm(x, axis=0)
    left, singular, _ = np.linalg.svd(x[:, norms > 0] / norms[norms > 0], full_matrices=False)
    return left[:, singular > RANK_TOLERANCE * singular.max(initial=0.0)]
