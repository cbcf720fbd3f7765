"""Summaries of blocks of samples: small, combined in any order, and all that capacities need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, inverse_of_triangle, on_host, to_numpy
from ..typing import Floats, Integers
from ._factor import orthonormal_factor

RANK_TOLERANCE = 32 * np.finfo(float).eps
CLEAR_PIVOT = 1e-6  # no doubt about the rank, and no need for a singular value decomposition


@dataclass(frozen=True, eq=False)
class Summary:
    """Readouts x = q @ triangle of some samples, and the targets seen from q.

    `triangle` is (readouts, readouts), `projection` = q'y is (readouts, terms). With `constant`, the first
    readout is the constant, and centring is exact: it happens on the triangle. The projection is where the data
    are; the triangle, which is small, in the processor's memory.
    """

    triangle: Floats
    projection: Any
    n_samples: int
    constant: bool = False
    inverse: Floats | None = None  # of the triangle, where it is known and safe to use


def summarise(x: Any, y: Any, constant: bool = False, row_of: Integers | None = None) -> Summary:
    """One block of samples: x (samples, readouts) and y (samples, terms).

    Instead of an array y may be an iterable of its consecutive blocks (terms, samples), with target l in
    row `row_of[l]`.
    """
    q, triangle, finish = orthonormal_factor(x)
    blocks = [y.T] if hasattr(y, "shape") else y
    projection: Any = None
    start = 0
    for block in blocks:
        stop = start + block.shape[1]
        part = q[start:stop, :].T @ block.T
        if projection is None:
            projection = part
        elif on_host(part):
            np.add(projection, part, out=projection)
        else:
            projection = projection + part
        start = stop
    assert projection is not None
    assert start == x.shape[0]
    if finish is not None:
        projection = as_like(finish.T, projection) @ projection
    if row_of is not None:
        columns = as_like(row_of, projection)
        projection = (
            projection[:, row_of] if on_host(x) else array_namespace(x).take(projection, columns, axis=1)
        )
    return Summary(triangle, projection, x.shape[0], constant)


def combine(*parts: Summary) -> Summary:
    """The summary of all samples together, from those of its parts."""
    return reduce(_combine_two, parts)


def _combine_two(a: Summary, b: Summary) -> Summary:
    q, triangle = np.linalg.qr(np.vstack([a.triangle, b.triangle]))
    split = len(a.triangle)
    first, second = (as_like(part.T, a.projection) for part in (q[:split], q[split:]))
    projection = first @ a.projection + second @ b.projection
    return Summary(triangle, projection, a.n_samples + b.n_samples, a.constant)


@dataclass(frozen=True, eq=False)
class Span:
    """The space that the readouts of a summary span: an orthonormal frame of it, and how to get there.

    `frame` (readouts, rank) holds the directions in terms of q, None when q itself will do; `whitening`
    (readouts, rank) turns readout values, after `mean` is subtracted, into coordinates whose sample
    covariance is 1 / samples. The constant is not among them.
    """

    frame: Floats | None
    whitening: Floats
    mean: Floats
    constant: bool

    @property
    def rank(self) -> int:
        """Dimension of the space, the constant included."""
        return self.whitening.shape[1] + self.constant


def span(summary: Summary) -> Span:
    """Centre, then scale, then decide the rank: no unit, offset or mixing of the readouts changes it.

    With the constant readout first, the triangle without its first row is that of the centred readouts.
    """
    triangle, skip = summary.triangle, int(summary.constant)
    centred = triangle[skip:, skip:]
    mean = triangle[0, 1:] / triangle[0, 0] if summary.constant else np.zeros(centred.shape[1])
    if summary.inverse is not None:
        return Span(None, summary.inverse[skip:, skip:], mean, summary.constant)
    norms = np.sqrt(np.sum(centred**2, axis=0))
    # What is left of a constant column after centring is rounding, not a direction.
    rounding = norms <= RANK_TOLERANCE * np.sqrt(np.sum(triangle[:, skip:] ** 2, axis=0))
    scaled = np.where(rounding, 0.0, centred) / np.where(rounding, 1.0, norms)
    norms = np.where(rounding, 1.0, norms)
    if scaled.shape[0] == scaled.shape[1] and np.min(np.abs(np.diag(scaled))) > CLEAR_PIVOT:
        inverse = inverse_of_triangle(scaled)
        if np.linalg.norm(inverse) * np.linalg.norm(scaled) < 1 / CLEAR_PIVOT:  # bounds the condition number
            return Span(None, inverse / norms[:, None], mean, summary.constant)
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.sum(singular > RANK_TOLERANCE * singular[0])) if singular.size and singular[0] > 0 else 0
    whitening = right[:rank].T / singular[:rank] / norms[:, None]
    return Span(left[:, :rank], whitening, mean, summary.constant)


def orthonormal_frame(x: Floats) -> Floats:
    """An orthonormal frame of the columns of x, whatever their scales: (rows, rank)."""
    norms = np.linalg.norm(x, axis=0)
    left, singular, _ = np.linalg.svd(x[:, norms > 0] / norms[norms > 0], full_matrices=False)
    return left[:, singular > RANK_TOLERANCE * singular.max(initial=0.0)]


def coordinates(summary: Summary, space: Span) -> Any:
    """The targets' coordinates in an orthonormal frame of the readouts' space: (rank, terms).

    Their squares, summed over the frame, are the capacities.
    """
    skip = int(summary.constant)
    inside = summary.projection
    if space.frame is not None:
        rest = as_like(space.frame.T, inside) @ inside[skip:, :]
        inside = array_namespace(inside).concat([inside[:skip, :], rest], axis=0)
    return inside / float(np.sqrt(summary.n_samples))


def capacities(summary: Summary) -> Floats:
    """The raw empirical capacities C_N of all targets, with the exact normalisation E[y²] = 1."""
    return squares(coordinates(summary, span(summary)))


def squares(values: Any) -> Floats:
    """The sum of squares over the first axis, as a NumPy array wherever the values are."""
    return (
        np.sum(values**2, axis=0)
        if on_host(values)
        else to_numpy(array_namespace(values).sum(values**2, axis=0))
    )
