"""Sums of products over samples: the way to a summary that is nothing but matrix products.

The triangle of x = q r follows from x'x by Cholesky's method, and q'y from x'y. That squares the condition number, so
it is done in coordinates z = x t in which the readouts are nearly uncorrelated already; t comes from some of the
samples, and is left out where they are so anyway. The sums of consecutive stretches add up, and only the last step
depends on the number of stretches, not of blocks. Readouts for which there is no such t, because some are nearly or
wholly dependent, are left to `orthonormal_factor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._array import array_namespace, as_like, inverse_of_triangle, on_host, take_rows, to_numpy
from ..typing import Floats, Integers
from ._factor import GOOD_CONDITION, SAFE_PIVOT, condition_bound, triangle_of_gram
from ._summary import Summary

GOOD_ALREADY = 150.0  # of some of the readouts, below which all are good enough as they are


class Frame(NamedTuple):
    """New coordinates z = x @ `matrix` of the readouts, and the way back, x = z @ `triangle`; None: x itself."""

    matrix: Any
    triangle: Any


AS_THEY_ARE = Frame(None, None)


def frame_of(triangle: Any) -> Frame | None:
    """The frame in which readouts with this triangle are orthonormal; None where some are nearly dependent."""
    if triangle is None:
        return None
    xp = array_namespace(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / xp.where(norms > 0, norms, xp.ones_like(norms))
    inverse = inverse_of_triangle(scaled)
    pivot = xp.min(xp.abs(xp.linalg.diagonal(scaled)))
    pivot, bound = to_numpy(xp.stack([pivot, condition_bound(scaled, inverse)])).tolist()
    if not pivot > SAFE_PIVOT:
        return None
    return (
        AS_THEY_ARE if _condition(scaled, bound) < GOOD_ALREADY else Frame(inverse / norms[:, None], triangle)
    )


def _condition(triangle: Any, bound: float) -> float:
    """The condition number, or a bound on it where that will do."""
    if bound < GOOD_ALREADY or not on_host(triangle):
        return bound
    singular = np.linalg.svd(triangle, compute_uv=False)
    return float(singular[0] / singular[-1])


class Finish(NamedTuple):
    """What turns z'y into q'y (`inverse`), and the triangle of x with its inverse, in the processor's memory."""

    inverse: Any
    triangle: Floats
    triangle_inverse: Floats


def finish_of(gram: Any, frame: Frame) -> Finish | None:
    """The last step, from z'z; None where z is still too nearly dependent for sums of products."""
    triangle = triangle_of_gram(gram)
    if triangle is None:
        return None
    xp, inverse = array_namespace(gram), inverse_of_triangle(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / norms
    bound = float(condition_bound(scaled, inverse * norms[:, None]))
    if not (np.isfinite(bound) and _condition(scaled, bound) < GOOD_CONDITION):
        return None
    if frame.matrix is None:
        return Finish(inverse, to_numpy(triangle), to_numpy(inverse))
    return Finish(inverse, to_numpy(triangle @ frame.triangle), to_numpy(frame.matrix @ inverse))


@dataclass(eq=False)
class Moments:
    """z'z and y'z of some samples; the rows of y'z, one a function, are in the order of the basis's rows."""

    gram: Any
    projection: Any
    n_samples: int

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.gram + other.gram, self.projection + other.projection, self.n_samples + other.n_samples
        )

    def add(self, other: Moments) -> None:
        """Add those of further samples to these."""
        self.gram += other.gram
        self.projection += other.projection
        self.n_samples += other.n_samples

    def summary(self, finish: Finish, constant: bool, row_of: Integers) -> Summary:
        """The summary, with the functions in their own order."""
        by_term = take_rows(self.projection, as_like(row_of, self.projection))
        projection = (by_term @ as_like(finish.inverse, by_term)).T
        return Summary(finish.triangle, projection, self.n_samples, constant, finish.triangle_inverse)


def moments(blocks: Iterable[tuple[Floats, Floats, Any]], n_terms: int) -> Moments:
    """Of blocks of samples: their z, their z times the weight of each sample, and pieces of their targets."""
    gram: Any = None
    projection: Any = None
    n_samples = 0
    for z, weighted, tiles in blocks:
        if projection is None:
            gram, projection = np.zeros((z.shape[1],) * 2), np.zeros((n_terms, z.shape[1]), order="F")
        gram += z.T @ z
        for rows, samples, y in tiles:
            part = projection[rows].T  # the product is fastest with the samples last in memory in both arrays
            part += weighted[samples].T @ y.T
        n_samples += len(z)
    return Moments(gram, projection, n_samples)


def projections(weighted: Any, tiles: Iterable[Any], edges: list[int]) -> list[Any]:
    """y'z of each stretch of samples between the edges, on a device; nothing is written in place.

    z comes as (readouts, samples): there the product is fastest with the samples last in memory in both arrays.
    """
    xp = array_namespace(weighted)
    found: list[dict[int, Any]] = [{} for _ in pairwise(edges)]
    for rows, samples, y in tiles:
        for (first, last), parts in zip(pairwise(edges), found, strict=True):
            start, stop = max(first, samples.start), min(last, samples.stop)
            if start < stop:
                part = weighted[:, start:stop] @ y[:, start - samples.start : stop - samples.start].T
                part = part[:, : rows.stop - rows.start]  # there may be more rows than functions
                parts[rows.start] = parts[rows.start] + part if rows.start in parts else part
    return [xp.concat(list(parts.values()), axis=1).T for parts in found]
