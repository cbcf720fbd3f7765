"""Summaries from sums of products, x'x and y'x, which is many times faster than factoring x.

The triangle of x = q r follows from x'x by a Cholesky factorisation, and q'y from y'x. That squares
the condition number, so it is done in coordinates z = x t in which the readouts are nearly
uncorrelated; t, the frame, comes from some of the samples. Sums over consecutive rows add up, and
only the last step depends on how many sums are wanted. Readouts without such a frame, because some
of them are nearly or wholly dependent, are factored block by block (`summarise`).
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, iadd
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import array_namespace, cholesky, invert_triangle, to_library_of, to_numpy
from ._projection import Summary

# Smallest pivot of unit columns for which a frame is made: the squared condition number then leaves
# 8 digits, enough for coordinates that are to be nearly uncorrelated only.
MIN_FRAME_PIVOT = 1e-4
# Condition number whose square costs less than 1e-11 in the capacities.
MAX_CONDITION_OF_PRODUCTS = 300.0
# Condition number of some of the rows below which the readouts need no frame: half of what the last
# step allows, since the other rows differ.
MAX_CONDITION_WITHOUT_FRAME = 150.0


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


class Frame(NamedTuple):
    """Coordinates z = x @ `matrix` of the readouts, and the way back, x = z @ `triangle`.

    Both are None where the readouts themselves are good coordinates.
    """

    matrix: Any
    triangle: Any


def frame_from_triangle(triangle: Any) -> Frame | None:
    """Return the frame in which readouts with this triangle are orthonormal.

    Return None where some readouts are nearly dependent.
    """
    xp = array_namespace(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / xp.where(norms > 0, norms, xp.ones_like(norms))
    inverse = invert_triangle(scaled)
    smallest_pivot = xp.min(xp.abs(xp.linalg.diagonal(scaled)))
    both = xp.stack([smallest_pivot, condition_bound(scaled, inverse)])
    pivot, condition = to_numpy(both).tolist()  # fetched from a device in one transfer
    if not pivot > MIN_FRAME_PIVOT:
        return None
    if condition < MAX_CONDITION_WITHOUT_FRAME:
        return Frame(None, None)
    return Frame(inverse / norms[:, None], triangle)


class AddableSums:
    """Base class of dataclasses whose fields are sums over samples: they add up field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def absorb(self, other: Self) -> Self:
        """Return the sum of both, in this object's arrays where they can be written into."""
        return type(self)(*map(iadd, vars(self).values(), vars(other).values()))


def add_groups(first: dict[int, Any], second: dict[int, Any]) -> dict[int, Any]:
    """Add sums that are stored by the number of their group of samples."""
    total = first | second
    for group in first.keys() & second.keys():
        total[group] = first[group] + second[group]
    return total


@dataclass(frozen=True, eq=False)
class Moments(AddableSums):
    """Sums of products over some samples, with the readouts in the coordinates z of a frame."""

    gram: Any  # z'z, (readouts, readouts)
    projection: Any  # y'z, (terms, readouts)
    n_samples: int

    def summary(self, frame: Frame, constant: bool) -> tuple[Summary, Any]:
        """Return the summary of these samples, and a bound on the condition number of z.

        Where the bound is not below `MAX_CONDITION_OF_PRODUCTS`, sums of products have lost too many digits.
        On a device nothing is waited for.
        """
        xp = array_namespace(self.gram)
        triangle = triangle_of_gram(self.gram)
        inverse = invert_triangle(triangle)
        norms = xp.sqrt(xp.sum(triangle**2, axis=0))
        bound = condition_bound(triangle / norms, inverse * norms[:, None])
        projection = (self.projection @ to_library_of(inverse, self.projection)).T
        if frame.matrix is not None:
            triangle = triangle @ frame.triangle
            inverse = frame.matrix @ inverse
        return Summary(triangle, projection, self.n_samples, constant, inverse), bound
