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
from functools import partial
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import (
    array_namespace,
    cholesky,
    invert_triangle,
    is_on_host,
    multiply_by_triangle,
    solve_triangle,
    to_library_of,
    to_numpy,
)
from .._threads import parallel_map
from ._projection import Summary

# Smallest pivot of unit columns for which a preconditioner is made: the squared condition number
# then leaves 8 digits, enough for readouts that need to be nearly uncorrelated only.
MIN_PIVOT_TO_PRECONDITION = 1e-4
# Condition number whose square costs less than 1e-11 in the capacities (5e-13 measured at 1400).
MAX_CONDITION_OF_PRODUCTS = 1000.0
# Condition number of some of the rows below which the readouts need no preconditioner. It is less
# than the last step allows, since the other rows differ.
MAX_CONDITION_WITHOUT_PRECONDITIONER = 800.0
# Rows of a matrix that are changed at a time, so few that they stay in cache.
ROWS_IN_CACHE = 64
# Bytes of an array from which on several threads add to it. One thread adds 3 GB in a second, and
# the sums of many readouts are hundreds of megabytes, which arrive when all other work is done.
MIN_BYTES_TO_ADD_IN_PARTS = 8_000_000
# Parts of such an array: four threads take nearly all that the memory gives.
N_PARTS_TO_ADD = 4


def triangle_of_gram(gram: Any) -> Any:
    """Return the triangle r of x = q r from x'x, by a Cholesky factorisation.

    It consists of NaN where the Gram matrix is not positive definite to rounding.
    """
    xp = array_namespace(gram)
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = xp.sqrt(xp.linalg.diagonal(gram))
        return cholesky(_scaled_by(gram, 1 / norms)).T * norms


def condition_margin(limit: float, gram: Any, constant: bool = False) -> Any:
    """Return a number above 0 if x'x shows that the condition number of x is below a limit, or NaN.

    Columns of x are first scaled to one length. A number is certain; NaN is certain where the
    condition number is above the limit, and may also come for one above the limit over n^(1/4), for
    n columns. The largest eigenvalue of the scaled matrix is at most its norm, and the smallest one
    is larger than a shift if the matrix less that shift has a Cholesky factor.

    With `constant` the first column is the constant, and the other columns count as centred, since
    a factorisation begins with that. The square of the limit is then divided by how many times
    centring makes the square of a column smaller, because its digits are lost.
    """
    xp = array_namespace(gram)
    squared_limit: Any = limit**2
    with np.errstate(all="ignore"):
        if constant:
            power = xp.linalg.diagonal(gram)[1:]
            of_constant = gram[1:, 0] / xp.sqrt(gram[0, 0])
            centred_power = power - of_constant**2
            squared_limit = squared_limit * xp.min(centred_power / power)
            inverse_norms = 1 / xp.sqrt(centred_power)
            scaled = _scaled_by(gram[1:, 1:], inverse_norms)
            scaled = _less_square(scaled, of_constant * inverse_norms)
        else:
            scaled = _scaled_by(gram, 1 / xp.sqrt(xp.linalg.diagonal(gram)))
        flat = xp.reshape(scaled, (-1,))
        shift = xp.sqrt(xp.vecdot(flat, flat)) / squared_limit
        return cholesky(scaled, -shift * xp.ones_like(scaled[0, :]))[-1, -1]


def _scaled_by(gram: Any, factors: Any) -> Any:
    """Return x'x for columns of x that are multiplied by factors."""
    scaled = gram * factors
    scaled *= factors[:, None]
    return scaled


def _less_square(matrix: Any, vector: Any) -> Any:
    """Return a matrix less the product of a vector with its transpose; on the host in place."""
    if not is_on_host(matrix):
        return matrix - vector[:, None] * vector
    for start in range(0, len(matrix), ROWS_IN_CACHE):
        rows = slice(start, start + ROWS_IN_CACHE)
        matrix[rows] -= vector[rows, None] * vector
    return matrix


class Preconditioner(NamedTuple):
    """What makes readouts nearly uncorrelated, z = x @ `matrix`; the way back is z @ `triangle`.

    Both are None where the readouts already are nearly uncorrelated.
    """

    matrix: Any
    triangle: Any


# The readouts as they are.
NO_PRECONDITIONER = Preconditioner(None, None)


def preconditioner_from_gram(gram: Any, constant: bool) -> Preconditioner | None:
    """Return the preconditioner that makes readouts with the Gram matrix x'x orthonormal.

    With `constant` the first of them is the constant. Return None where some readouts are nearly
    dependent.
    """
    xp = array_namespace(gram)
    triangle = triangle_of_gram(gram)
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = xp.linalg.diagonal(triangle) / xp.sqrt(xp.linalg.diagonal(gram))
    margin = condition_margin(MAX_CONDITION_WITHOUT_PRECONDITIONER, gram, constant)
    pivot_and_margin = xp.stack([xp.min(pivots), margin])
    smallest_pivot, margin = to_numpy(pivot_and_margin).tolist()  # one transfer from a device
    if not smallest_pivot > MIN_PIVOT_TO_PRECONDITION:  # false for NaN, too
        return None
    if margin > 0:
        return NO_PRECONDITIONER
    return Preconditioner(invert_triangle(triangle), triangle)


class AddableSums:
    """Base class of dataclasses whose fields are sums over samples: they add up field by field."""

    def __add__(self, other: Self) -> Self:
        return self._field_by_field(add, other)

    def absorb(self, other: Self) -> Self:
        """Return the sum of both, in this object's arrays where they can be written into."""
        return self._field_by_field(_add_in_place, other)

    def _field_by_field(self, operation: Callable[[Any, Any], Any], other: Self) -> Self:
        values_of_other = vars(other)
        sums = {name: operation(value, values_of_other[name]) for name, value in vars(self).items()}
        return type(self)(**sums)


def _add_in_place(total: Any, more: Any) -> Any:
    """Return the sum of both, in the memory of `total` where it can be written into."""
    if not is_on_host(total) or total.nbytes < MIN_BYTES_TO_ADD_IN_PARTS:
        total += more
        return total
    n_rows = -(-len(total) // N_PARTS_TO_ADD)
    starts = range(0, len(total), n_rows)
    parallel_map(partial(_add_rows, total, more, n_rows), starts)
    return total


def _add_rows(total: Any, more: Any, count: int, start: int) -> None:
    """Add `count` rows to those of `total`, from the row `start` on."""
    total[start : start + count] += more[start : start + count]


def add_groups(first: dict[int, Any], second: dict[int, Any]) -> dict[int, Any]:
    """Add sums that are stored by the number of their group of samples."""
    total = first | second
    for group in first.keys() & second.keys():
        total[group] = first[group] + second[group]
    return total


def absorb_groups(first: dict[int, Any], second: dict[int, Any]) -> dict[int, Any]:
    """Do the same as `add_groups`, in the arrays of the first sums."""
    for group, sums in second.items():
        first[group] = first[group].absorb(sums) if group in first else sums
    return first


@dataclass(frozen=True, eq=False)
class Moments(AddableSums):
    """Sums of products over some samples, of readouts z = x t with a preconditioner t."""

    gram: Any  # z'z, (readouts, readouts)
    projection: Any  # y'z, (terms, readouts)
    n_samples: int

    def margin(self, constant: bool) -> Any:
        """Return a number above 0 if the summary of these sums has enough digits, else NaN.

        Sums of products may have lost too many digits where the condition number of z is not below
        `MAX_CONDITION_OF_PRODUCTS`. The number stays on the device, because fetching it would wait
        for the sums.
        """
        return condition_margin(MAX_CONDITION_OF_PRODUCTS, self.gram, constant)

    def summary(self, preconditioner: Preconditioner, constant: bool) -> Summary:
        """Return the summary of these samples, which is accurate where `margin` says so."""
        triangle = triangle_of_gram(self.gram)
        lower = to_library_of(triangle.T, self.projection)
        projection = solve_triangle(lower, self.projection.T)

        def invert() -> Any:
            inverse = invert_triangle(triangle)
            if preconditioner.matrix is None:
                return inverse
            return multiply_by_triangle(preconditioner.matrix, inverse)

        return Summary(
            left_triangle=triangle,
            right_triangle=preconditioner.triangle,
            projection=projection,
            n_samples=self.n_samples,
            constant=constant,
            invert=invert,
        )
