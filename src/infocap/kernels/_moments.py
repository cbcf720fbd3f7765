"""Summaries from sums of products, x'x and y'x, which is many times faster than factoring x.

The triangle r of x = q r follows from x'x by a Cholesky factorisation, and q'y from y'x. That
squares the condition number, so it is done with readouts z = x t that are nearly uncorrelated. The
matrix t is the preconditioner, which comes from some of the samples. Sums over consecutive rows add
up, so the sums of many ranges of rows still need a single pass. Where some readouts are nearly or
wholly dependent there is no preconditioner, and they are factored block by block (`summarise`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, iadd
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import array_namespace, cholesky, invert_triangle, to_library_of, to_numpy
from ._projection import Summary

# Smallest pivot of unit columns for which a preconditioner is made: the squared condition number
# then leaves 8 digits, enough for readouts that need to be nearly uncorrelated only.
MIN_PIVOT_TO_PRECONDITION = 1e-4
# Condition number whose square costs less than 1e-11 in the capacities.
MAX_CONDITION_OF_PRODUCTS = 300.0
# Condition number of some of the rows below which the readouts need no preconditioner: half of what
# the last step allows, since the other rows differ.
MAX_CONDITION_WITHOUT_PRECONDITIONER = 150.0


def triangle_of_gram(gram: Any) -> Any:
    """Return the triangle r of x = q r from x'x, by a Cholesky factorisation.

    It consists of NaN where the Gram matrix is not positive definite to rounding.
    """
    xp = array_namespace(gram)
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = xp.sqrt(xp.linalg.diagonal(gram))
        return cholesky(gram / norms / norms[:, None]).T * norms


def condition_bound(matrix: Any, inverse: Any) -> Any:
    """Return a bound on the condition number, too large by a factor of n^(1/4) at most.

    Here n is the number of rows. The eighth power of the largest singular value is at most the sum
    of the eighth powers of all of them, and that sum takes two matrix products.
    """
    xp = array_namespace(matrix)
    # An overflow makes the bound infinite, which is what it should then be.
    with np.errstate(over="ignore", invalid="ignore"):
        return (_sum_of_eighth_powers(xp, matrix) * _sum_of_eighth_powers(xp, inverse)) ** 0.125


def _sum_of_eighth_powers(xp: Any, matrix: Any) -> Any:
    gram = matrix.T @ matrix
    return xp.sum((gram @ gram) ** 2)


class Preconditioner(NamedTuple):
    """What makes readouts nearly uncorrelated, z = x @ `matrix`; the way back is z @ `triangle`.

    Both are None where the readouts already are nearly uncorrelated.
    """

    matrix: Any
    triangle: Any


def preconditioner_from_triangle(triangle: Any) -> Preconditioner | None:
    """Return the preconditioner that makes readouts with this triangle orthonormal.

    Return None where some readouts are nearly dependent.
    """
    xp = array_namespace(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / xp.where(norms > 0, norms, xp.ones_like(norms))
    inverse = invert_triangle(scaled)
    smallest_pivot = xp.min(xp.abs(xp.linalg.diagonal(scaled)))
    pivot_and_condition = xp.stack([smallest_pivot, condition_bound(scaled, inverse)])
    pivot, condition = to_numpy(pivot_and_condition).tolist()  # one transfer from a device
    if not pivot > MIN_PIVOT_TO_PRECONDITION:  # false for NaN, too
        return None
    if condition < MAX_CONDITION_WITHOUT_PRECONDITIONER:
        return Preconditioner(None, None)
    return Preconditioner(inverse / norms[:, None], triangle)


class AddableSums:
    """Base class of dataclasses whose fields are sums over samples: they add up field by field."""

    def __add__(self, other: Self) -> Self:
        return self._field_by_field(add, other)

    def absorb(self, other: Self) -> Self:
        """Return the sum of both, in this object's arrays where they can be written into."""
        return self._field_by_field(iadd, other)

    def _field_by_field(self, operation: Callable[[Any, Any], Any], other: Self) -> Self:
        values_of_other = vars(other)
        sums = {name: operation(value, values_of_other[name]) for name, value in vars(self).items()}
        return type(self)(**sums)


def add_groups(first: dict[int, Any], second: dict[int, Any]) -> dict[int, Any]:
    """Add sums that are stored by the number of their group of samples."""
    total = first | second
    for group in first.keys() & second.keys():
        total[group] = first[group] + second[group]
    return total


@dataclass(frozen=True, eq=False)
class Moments(AddableSums):
    """Sums of products over some samples, of readouts z = x t with a preconditioner t."""

    gram: Any  # z'z, (readouts, readouts)
    projection: Any  # y'z, (terms, readouts)
    n_samples: int

    def summary(self, preconditioner: Preconditioner, constant: bool) -> tuple[Summary, Any]:
        """Return the summary of these samples, and a bound on the condition number of z.

        Where the bound is not below `MAX_CONDITION_OF_PRODUCTS`, sums of products have lost too
        many digits. The bound stays on the device, because fetching it would wait for the sums.
        """
        xp = array_namespace(self.gram)
        triangle = triangle_of_gram(self.gram)
        inverse = invert_triangle(triangle)
        norms = xp.sqrt(xp.sum(triangle**2, axis=0))
        bound = condition_bound(triangle / norms, inverse * norms[:, None])
        projection = (self.projection @ to_library_of(inverse, self.projection)).T
        if preconditioner.matrix is not None:
            triangle = triangle @ preconditioner.triangle
            inverse = preconditioner.matrix @ inverse
        summary = Summary(
            triangle=triangle,
            projection=projection,
            n_samples=self.n_samples,
            constant=constant,
            inverse=inverse,
        )
        return summary, bound
