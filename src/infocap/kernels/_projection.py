"""Capacities from the readouts' triangle: summarise blocks of samples, combine, project.

With x = q r, q orthonormal and r an upper triangle, the raw capacity of a function y is the squared
length of q'y, divided by the number of samples. So a summary of some samples is r and q'y. Two
summaries combine into that of all their samples, and it does not matter how samples were split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    invert_triangle,
    is_on_host,
    multiply_by_triangle,
    to_library_of,
    to_numpy,
)
from ..typing import Floats

# Singular values of the scaled readouts below this share of the largest are rounding. A coarser
# limit loses real capacity: N times the rounding error dropped 5 of 25 directions at a condition
# number of 2e13.
RANK_TOLERANCE = 32 * np.finfo(float).eps
# Pivots of the scaled triangle above which the rank is full without a look at singular values.
MIN_CLEAR_PIVOT = 1e-6


@dataclass(frozen=True, eq=False)
class Summary:
    """Readouts x = q @ triangle of some samples, and the functions' projection q'y.

    With `constant` the first readout is the constant; then centring is exact, because it happens on
    the triangle.
    """

    left_triangle: Any  # (readouts, readouts), on the host unless `invert` is there
    projection: Any  # q'y, (readouts, terms), where the data are
    n_samples: int
    constant: bool = False
    right_triangle: Any = None  # the triangle is its product with the left one; None: 1
    invert: Callable[[], Any] | None = None  # computes the triangle's inverse, if that is accurate

    @cached_property
    def triangle(self) -> Any:
        """The upper triangle r of x = q r, (readouts, readouts)."""
        if self.right_triangle is None:
            return self.left_triangle
        return multiply_by_triangle(self.left_triangle, self.right_triangle)

    @property
    def constant_row(self) -> Any:
        """The first row of the triangle, (readouts,)."""
        row = self.left_triangle[0, :]
        return row if self.right_triangle is None else row @ self.right_triangle


def summarise(x: Any, y: Any, constant: bool = False) -> Summary:
    """Summarise one block of samples: x (samples, readouts) and y (samples, terms).

    In place of an array, y may be an iterable of its consecutive blocks (terms, samples).
    """
    q, triangle = array_namespace(x).linalg.qr(x)
    function_blocks = [y.T] if hasattr(y, "shape") else y
    projection: Any = 0.0
    start = 0
    for block in function_blocks:
        stop = start + block.shape[1]
        projection = projection + q[start:stop, :].T @ block.T
        start = stop
    assert start == x.shape[0]
    return Summary(to_numpy(triangle), projection, x.shape[0], constant)


def combine(*summaries: Summary) -> Summary:
    """Return the summary of all samples together, from summaries of disjoint samples."""
    return reduce(_combine_two, summaries)


def _combine_two(a: Summary, b: Summary) -> Summary:
    # [a.triangle; b.triangle] = q @ triangle. The rows of q that belong to a turn a's projection,
    # and those that belong to b turn b's.
    q, triangle = np.linalg.qr(np.vstack([a.triangle, b.triangle]))
    n_rows_of_a = len(a.triangle)
    q_of_a = to_library_of(q[:n_rows_of_a], a.projection)
    q_of_b = to_library_of(q[n_rows_of_a:], a.projection)
    projection = q_of_a.T @ a.projection + q_of_b.T @ b.projection
    return Summary(triangle, projection, a.n_samples + b.n_samples, a.constant)


@dataclass(frozen=True, eq=False)
class Span:
    """The space that centred readouts span: orthonormal directions in it, and how to get there.

    The constant is not among the readouts here.
    """

    directions: Floats | None  # orthonormal, in terms of q, (readouts, rank); None: q itself
    rank: int
    mean: Floats  # of the readouts, (readouts,)
    compute_whitening: Callable[[], Any]

    @cached_property
    def whitening(self) -> Any:
        """What turns readouts, after `mean` is subtracted, into `rank` uncorrelated ones.

        Each of these has the sum of squares 1 over the samples. The shape is (readouts, rank), and
        the matrix may be on a device.
        """
        return self.compute_whitening()


def span(summary: Summary) -> Span:
    """Centre, then scale, then decide the rank.

    In this order no unit, offset or mixing of the readouts changes the rank. With the constant
    readout first, the triangle without its first row is that of the centred readouts.
    """
    n_constant = int(summary.constant)
    mean = np.zeros(summary.left_triangle.shape[1] - n_constant)
    if summary.constant:
        row = summary.constant_row
        mean = to_numpy(row[1:] / row[0])
    invert = summary.invert
    if invert is not None:
        return Span(None, len(mean), mean, lambda: invert()[n_constant:, n_constant:])

    triangle = summary.triangle
    centred = triangle[n_constant:, n_constant:]
    # What centring leaves of a constant column is rounding, not a direction.
    norms = np.sqrt(np.sum(centred**2, axis=0))
    norms_before_centring = np.sqrt(np.sum(triangle[:, n_constant:] ** 2, axis=0))
    is_rounding = norms <= RANK_TOLERANCE * norms_before_centring
    norms = np.where(is_rounding, 1.0, norms)
    scaled = np.where(is_rounding, 0.0, centred) / norms

    inverse = _inverse_of_clear_triangle(scaled)
    if inverse is not None:
        return _known_span(None, inverse / norms[:, None], mean)
    directions, singular_values, right_vectors = np.linalg.svd(scaled, full_matrices=False)
    rank = _numerical_rank(singular_values)
    whitening = right_vectors[:rank].T / singular_values[:rank] / norms[:, None]
    return _known_span(directions[:, :rank], whitening, mean)


def _known_span(directions: Floats | None, whitening: Floats, mean: Floats) -> Span:
    return Span(directions, whitening.shape[1], mean, lambda: whitening)


def _inverse_of_clear_triangle(scaled: Floats) -> Floats | None:
    """Return the inverse of a triangle whose rank is certainly full; None where it is in doubt."""
    n_rows, n_columns = scaled.shape
    if n_rows != n_columns or not np.min(np.abs(np.diag(scaled))) > MIN_CLEAR_PIVOT:
        return None
    inverse: Floats = invert_triangle(scaled)
    max_condition = np.linalg.norm(inverse) * np.linalg.norm(scaled)
    return inverse if max_condition < 1 / MIN_CLEAR_PIVOT else None


def _numerical_rank(singular_values: Floats) -> int:
    """Return how many singular values, the largest first, are more than rounding."""
    if not singular_values.size or singular_values[0] <= 0:
        return 0
    return int(np.sum(singular_values > RANK_TOLERANCE * singular_values[0]))


def coordinates(summary: Summary, space: Span) -> Any:
    """Return the functions' coordinates along orthonormal directions of the readouts' space.

    The shape is (rank, terms). Squares of coordinates, summed over the directions, are the
    capacities.
    """
    projection = summary.projection
    if space.directions is not None:
        n_constant = int(summary.constant)
        directions = to_library_of(space.directions.T, projection)
        along_directions = directions @ projection[n_constant:, :]
        xp = array_namespace(projection)
        projection = xp.concat([projection[:n_constant, :], along_directions], axis=0)
    return projection / float(np.sqrt(summary.n_samples))


def capacities(summary: Summary) -> Floats:
    """Return the raw capacities C_N of all functions, with the exact normalisation E[y²] = 1."""
    return sum_of_squares(coordinates(summary, span(summary)))


def sum_of_squares(values: Any) -> Floats:
    """Return the sum of squares over the first axis, as a NumPy array wherever the values are."""
    if is_on_host(values):
        return np.einsum("ij,ij->j", values, values)
    return to_numpy(array_namespace(values).sum(values**2, axis=0))
