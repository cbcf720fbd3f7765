"""Theory as code: bounds, finite-sample bias, noise, and systems whose capacities are known exactly."""

from ..kernels import zero_capacity_bound
from ._bounds import finite_sample_bias, noisy_capacities
from ._mixture import RandomMixture, random_mixture

__all__ = ["RandomMixture", "finite_sample_bias", "noisy_capacities", "random_mixture", "zero_capacity_bound"]
