"""Orthonormal functions of the inputs: one-dimensional families, index sets and their products."""

from ._classical import (
    bernoulli,
    binomial,
    chebyshev,
    fourier,
    hermite,
    jacobi,
    laguerre,
    legendre,
)
from ._custom import density, samples, table
from ._delayed import DelayedBasis, delayed_basis
from ._family import DiscreteFamily, Family
from ._inputs import inputs
from ._product import ProductBasis, product_basis
from ._registry import FAMILIES, describe, restore

__all__ = [
    "FAMILIES", "DelayedBasis", "DiscreteFamily", "Family", "ProductBasis", "bernoulli", "binomial",
    "chebyshev", "delayed_basis", "density", "describe", "fourier", "hermite", "inputs", "jacobi",
    "laguerre", "legendre", "product_basis", "restore", "samples", "table",
]  # fmt: skip
