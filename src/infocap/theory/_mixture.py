"""Systems whose capacities are known exactly: random mixtures of basis functions, the paper's validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import number, whole_number
from ..basis import ProductBasis
from ..errors import ParameterError
from ..typing import Floats, Integers
from ._bounds import noisy_capacities

# Functions are evaluated for so many samples at a time: 200 of them then take 26 MB, whatever the number of samples.
BLOCK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class RandomMixture:
    """Readouts that are fixed random linear combinations of a few basis functions, plus white noise.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 2, 3)
    >>> quiet, loud = (random_mixture(basis, n_active=5, n_readouts=4, noise=s, seed=1) for s in (0, 0.5))
    >>> bool(quiet.exact().sum() > loud.exact().sum())
    True
    """

    basis: ProductBasis
    active: Integers  # rows of basis.indices
    weights: Floats  # (readouts, active)
    noise: float  # standard deviation, relative to each readout's own root mean square

    def __call__(self, u: Floats, seed: Any = None) -> Floats:
        """Readouts (samples, readouts); a seed makes the noise reproducible."""
        u = np.asarray(u, dtype=float)
        rows = np.union1d(0, self.active)  # a basis has the constant
        mixed = ProductBasis(self.basis.families, self.basis.indices[rows])
        weights = self._all_weights[:, rows].T
        starts = range(0, max(len(u), 1), BLOCK_ROWS)
        x = np.concatenate([mixed(u[start : start + BLOCK_ROWS]) @ weights for start in starts])
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
        """The weight of every function of the basis in every readout, (readouts, terms)."""
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
        raise ParameterError(f"n_active={n_active} is more than the {len(basis)} functions of the basis.")
    noise = number("noise", noise, 0.0)
    generator = np.random.default_rng(seed)
    active = np.sort(generator.choice(len(basis), n_active, replace=False))
    return RandomMixture(basis, active, generator.standard_normal((n_readouts, n_active)), noise)
