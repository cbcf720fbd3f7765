"""Exact capacities: formulas for noise and for finite samples, and test systems."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import checks_arguments, require_number, require_numbers, require_whole_number
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..kernels import RANK_TOLERANCE, SMALLEST_DIVISOR
from ..typing import ArrayLike, Floats, Integers

# Rounding may bring eigenvalues of a covariance below zero by this share of the largest.
MAX_NEGATIVE_EIGENVALUE = 1e-12


@checks_arguments
def finite_sample_bias(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return Delta(y, X) of every target, where E[C_N] = C + Delta / N + ... (paper, Prop. 5.2).

    Delta = E[(sum_i X~_i²) (y - P_X y)²] / E[y²] is an average over the inputs and the noise.

    Parameters
    ----------
    x, y
        Readouts (nodes, readouts) and targets (nodes, targets) at quadrature nodes, or at very many
        samples.
    weights
        The weights of the nodes, (nodes,); equal by default.

    Returns
    -------
    Floats
        Delta of every target, (targets,).

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 1, 2)
    >>> nodes, weights = basis.quadrature(8)
    >>> finite_sample_bias(basis(nodes)[:, :2], basis(nodes), weights).round(3)
    array([0.   , 0.   , 2.571])
    """
    x = require_numbers("x", x)
    y = require_numbers("y", y)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise DataError(
            f"x has shape {x.shape}, y {y.shape}; give (nodes, readouts) and (nodes, targets)."
        )
    if weights is None:
        node_weights = np.full(len(x), 1 / len(x))
    else:
        node_weights = require_numbers("weights", weights, "nodes")
        if len(node_weights) != len(x):
            raise DataError(f"`weights` has {len(node_weights)} values for {len(x)} nodes.")
    is_used = node_weights > 0  # weights of far nodes underflow
    y = y[is_used]
    node_weights = node_weights[is_used]
    root_weights = np.sqrt(node_weights)[:, None]
    weighted_y = root_weights * y
    # X~ times the roots of the weights, (nodes, rank).
    weighted_x = _orthonormal_columns(root_weights * x[is_used])
    residual = weighted_y - weighted_x @ (weighted_x.T @ weighted_y)
    leverage = np.sum(weighted_x**2, axis=1) / node_weights
    return leverage @ residual**2 / (node_weights @ y**2)


@checks_arguments
def noisy_capacities(
    weights: ArrayLike,
    noise_covariance: ArrayLike | None = None,
    relative_covariance: ArrayLike | None = None,
) -> Floats:
    """Return the exact capacities of readouts X = weights @ y + noise, for functions y of a basis.

    The noise counts as further functions that nobody asks for (paper, section 4), so the capacities
    are the squared lengths of the columns of [weights, noise^(1/2)] after its rows were made
    orthonormal: no Gram matrix is inverted.

    Parameters
    ----------
    weights
        What each readout holds of each function, (readouts, terms).
    noise_covariance
        The covariance of the noise, (readouts, readouts).
    relative_covariance
        Every readout is also multiplied by 1 + noise of this covariance, as by a gain that
        fluctuates.

    Returns
    -------
    Floats
        The capacity of every function, (terms,).

    Examples
    --------
    >>> noisy_capacities([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.25]])
    array([0.5, 0.8])
    """
    signal = require_numbers("weights", weights)
    if signal.ndim != 2:
        raise DataError(f"weights has shape {signal.shape}; give (readouts, terms).")
    columns = [signal]
    if noise_covariance is not None:
        columns.append(_root_of_covariance("noise_covariance", noise_covariance, len(signal), 1.0))
    if relative_covariance is not None:
        power = signal @ signal.T
        root = _root_of_covariance("relative_covariance", relative_covariance, len(signal), power)
        columns.append(root)
    orthonormal = _orthonormal_columns(np.hstack(columns).T)
    return np.sum(orthonormal[: signal.shape[1]] ** 2, axis=1)


def _root_of_covariance(
    name: str, matrix: ArrayLike, n_readouts: int, strength: Floats | float
) -> Floats:
    """Return a root of a covariance times a strength, both (readouts, readouts).

    They are multiplied element by element. What is no covariance is refused.
    """
    covariance = require_numbers(name, matrix)
    if covariance.shape != (n_readouts, n_readouts):
        raise DataError(f"{name} has shape {covariance.shape}; give ({n_readouts}, {n_readouts}).")
    values, vectors = np.linalg.eigh(covariance * strength)
    if values[0] < -MAX_NEGATIVE_EIGENVALUE * max(abs(values[-1]), SMALLEST_DIVISOR):
        raise DataError(f"{name} has a negative eigenvalue, {values[0]:g}; give a covariance.")
    return vectors * np.sqrt(np.maximum(values, 0.0))


@dataclass(frozen=True, eq=False)
class RandomMixture:
    """Readouts that are random linear combinations of a few basis functions, plus white noise.

    With functions of delayed inputs, from `delayed_basis`, this is a Volterra series: a device with
    memory. `random_mixture` makes one.

    Attributes
    ----------
    basis, active
        The functions, and the numbers of those that the readouts hold.
    weights
        What each readout holds of them, (readouts, active).
    noise
        The standard deviation of the noise, relative to each readout's own root mean square.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 2, 3)
    >>> system = random_mixture(basis, n_active=5, n_readouts=4, noise=0.5, seed=1)
    >>> round(float(system.exact().sum()), 1)
    3.3
    """

    basis: ProductBasis
    active: Integers
    weights: Floats
    noise: float

    def __call__(self, u: Floats, seed: Any = None) -> Floats:
        """Return readouts (samples, readouts).

        Before a sequence begins, its inputs were at their median.

        Parameters
        ----------
        u
            Inputs (samples, inputs), or (samples,) where there is a single one.
        seed
            The seed of the noise.
        """
        rows = np.union1d(0, self.active)  # every basis has the constant
        u = np.asarray(u, dtype=float).reshape(len(u), -1)
        middle = np.array([0.5])
        medians = np.hstack([family.quantile(middle) for family in self.basis.families])
        if u.shape[1] == len(medians):  # else the basis refuses it below
            u = np.vstack([np.tile(medians, (self.basis.memory, 1)), u])
        x = self.basis.subset(rows).combine(u, self._all_weights[:, rows].T)
        if self.noise:
            x += self.noise_scale * np.random.default_rng(seed).standard_normal(x.shape)
        return x

    @property
    def noise_scale(self) -> Floats:
        """Standard deviation of the noise of each readout."""
        return self.noise * np.sqrt(np.sum(self.weights**2, axis=1))

    @checks_arguments
    def exact(self, constant: bool = True) -> Floats:
        """Return the exact capacity of every function of the basis, (terms,).

        Parameters
        ----------
        constant
            Whether the constant readout is added, as `estimate` does.
        """
        weights = self._all_weights
        noise_variance = self.noise_scale**2
        if constant:
            weights = np.vstack([np.eye(1, len(self.basis)), weights])
            noise_variance = np.concatenate([[0.0], noise_variance])
        return noisy_capacities(weights, np.diag(noise_variance))

    @property
    def _all_weights(self) -> Floats:
        weights = np.zeros((len(self.weights), len(self.basis)))
        weights[:, self.active] = self.weights
        return weights


@checks_arguments
def random_mixture(
    basis: ProductBasis,
    *,
    n_active: int,
    n_readouts: int,
    noise: float = 0.0,
    seed: int | None = None,
) -> RandomMixture:
    """Return the paper's synthetic system: random mixtures of a few functions of the basis.

    Parameters
    ----------
    basis
        The functions.
    n_active
        How many of them the readouts hold; they are chosen at random.
    n_readouts
        The number of mixtures, whose weights are normal.
    noise
        The standard deviation of the noise, relative to each readout's own root mean square.
    seed
        The seed of the choice and the weights; calls of the system have a seed of their own for the
        noise.

    Returns
    -------
    RandomMixture
        A system, whose capacities `exact` gives.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 5, 8)
    >>> system = random_mixture(basis, n_active=200, n_readouts=71, seed=0)
    >>> bool(abs(system.exact().sum() - 72) < 1e-9)
    True
    """
    n_active = require_whole_number("n_active", n_active, 1)
    n_readouts = require_whole_number("n_readouts", n_readouts, 1)
    if n_active > len(basis):
        raise ParameterError(
            f"`n_active={n_active}` is more than the {len(basis)} functions of the basis."
        )
    noise = require_number("noise", noise, 0.0)
    generator = np.random.default_rng(seed)
    active = np.sort(generator.choice(len(basis), n_active, replace=False))
    weights = generator.standard_normal((n_readouts, n_active))
    return RandomMixture(basis, active, weights, noise)


def _orthonormal_columns(x: Floats) -> Floats:
    """Return orthonormal columns that span the same space as those of x, (rows, rank)."""
    norms = np.linalg.norm(x, axis=0)
    nonzero = norms > 0
    scaled = x[:, nonzero] / norms[nonzero]
    columns, singular_values, _ = np.linalg.svd(scaled, full_matrices=False)
    is_direction = singular_values > RANK_TOLERANCE * singular_values.max(initial=0.0)
    return columns[:, is_direction]
