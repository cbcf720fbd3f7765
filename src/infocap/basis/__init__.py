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
from ._recorded import recorded
from ._registry import FAMILIES

# isort: split
# Names for other rooms of infocap, which are no part of the public interface.
from ._delayed import count_terms as count_terms
from ._delayed import join_terms as join_terms
from ._delayed import list_terms as list_terms
from ._delayed import sort_terms as sort_terms
from ._graded import graded_order as graded_order
from ._index_sets import indices_of as indices_of
from ._inputs import find_families as find_families
from ._product import lowest_degrees as lowest_degrees
from ._recorded import RecordedFamily as RecordedFamily
from ._recorded import recorded_family as recorded_family
from ._recorded import with_families as with_families
from ._registry import describe as describe
from ._registry import find_maker as find_maker
from ._shifts import DELAY as DELAY
from ._shifts import FUNCTION as FUNCTION
from ._shifts import INPUT as INPUT

__all__ = [
    "FAMILIES", "DelayedBasis", "DiscreteFamily", "Family", "ProductBasis", "bernoulli", "binomial",
    "chebyshev", "delayed_basis", "density", "fourier", "hermite", "inputs", "jacobi",
    "laguerre", "legendre", "product_basis", "recorded", "samples", "table",
]  # fmt: skip
