"""Sums of products over samples: the way to a summary that is nothing but matrix products.

The triangle of x = q r follows from x'x by Cholesky's method, and q'y from x'y. That squares the condition number, so
it is done in coordinates z = x t in which the readouts are nearly uncorrelated already; t comes from some of the
samples. The sums of consecutive stretches add up, and only the last step depends on the number of stretches, not of
blocks. Readouts for which there is no such t, because some are nearly or wholly dependent, are left to
`orthonormal_factor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._array import array_namespace, as_like, on_host, to_numpy
from ..typing import Floats, Integers
from ._factor import GOOD_CONDITION, SAFE_PIVOT, condition_bound, inverse_of_triangle, triangle_of_gram
from ._summary import Summary

GOOD_ALREADY = 150.0  # of some of the readouts, below which all are good enough as they are


class Frame(NamedTuple):
    """New coordinates z = x @ `matrix` of the readouts, and the way back, x = z @ `triangle`; None: x itself.

    The matrix is where the readouts are, the triangle in the processor's memory.
    """

    matrix: Any
    triangle: Floats | None


AS_THEY_ARE = Frame(None, None)


def frame_of(triangle: Any) -> Frame | None:
    """The frame in which readouts with this triangle are orthonormal; None where some are nearly dependent."""
    if triangle is None:
        return None
    xp = array_namespace(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / xp.where(norms > 0, norms, xp.ones_like(norms))
    pivots = xp.abs(xp.linalg.diagonal(scaled))
    inverse = inverse_of_triangle(scaled)
    pivot, bound = to_numpy(xp.stack([xp.min(pivots), condition_bound(scaled, inverse)])).tolist()
    if not pivot > SAFE_PIVOT:
        return None
    if bound < GOOD_ALREADY:
        return AS_THEY_ARE
    return Frame(inverse / norms[:, None], to_numpy(triangle))


@dataclass(eq=False)
class Moments:
    """z'z and y'z of some samples; the rows of y'z, one a function, are in the order of the basis's rows."""

    gram: Floats
    projection: Any
    n_samples: int

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.gram + other.gram, self.projection + other.projection, self.n_samples + other.n_samples
        )


def moments(blocks: Iterable[tuple[Floats, Floats, Any]]) -> Moments:
    """Of blocks of samples: their z, their z times the weight of each sample, and pieces of their targets."""
    gram: Any = 0.0
    parts: dict[int, Floats] = {}
    n_samples = 0
    for z, weighted, tiles in blocks:
        gram = gram + z.T @ z
        for rows, samples, y in tiles:
            if rows.start not in parts:
                parts[rows.start] = np.zeros((len(y), z.shape[1]), order="F")
            _add_product(y, weighted[samples], parts[rows.start])
        n_samples += len(z)
    return Moments(gram, np.concatenate(list(parts.values())), n_samples)


def moments_there(wide: Any, weighted: Any, tiles: Iterable[Any], edges: list[int]) -> list[Moments]:
    """The same on a device, of each stretch of samples between the edges; nothing is written in place.

    The product is fastest there with the samples last in memory in both arrays, so z comes as (readouts, samples).
    The Gram matrices are fetched before the long work is started, so that what the processor does with them is
    done meanwhile.
    """
    xp = array_namespace(wide)
    stretches = [slice(*pair) for pair in pairwise(edges)]
    grams = to_numpy(xp.stack([wide[:, stretch] @ wide[:, stretch].T for stretch in stretches]))
    found: list[dict[int, Any]] = [{} for _ in stretches]
    for rows, samples, y in tiles:
        for stretch, parts in zip(stretches, found, strict=True):
            start, stop = max(stretch.start, samples.start), min(stretch.stop, samples.stop)
            if start < stop:
                part = weighted[:, start:stop] @ y[:, start - samples.start : stop - samples.start].T
                parts[rows.start] = parts[rows.start] + part if rows.start in parts else part
    return [
        Moments(gram, xp.concat(list(parts.values()), axis=1).T, stretch.stop - stretch.start)
        for gram, stretch, parts in zip(grams, stretches, found, strict=True)
    ]


def _add_product(y: Floats, z: Floats, out: Floats) -> None:
    """out += y z, in one call where the arrays are whole: BLAS adds as it multiplies.

    With the functions first, which are many, BLAS has less to rearrange than with the readouts first.
    """
    if z.flags.c_contiguous and y.flags.c_contiguous:
        from scipy.linalg.blas import dgemm

        dgemm(1.0, y.T, z.T, beta=1.0, c=out, trans_a=1, trans_b=1, overwrite_c=1)
    else:
        out += y @ z


def summary_of(found: Moments, frame: Frame, constant: bool, row_of: Integers) -> Summary | None:
    """The summary; None where the readouts are too nearly dependent for sums of products."""
    triangle = triangle_of_gram(found.gram)
    if triangle is None:
        return None
    inverse = inverse_of_triangle(triangle)
    norms = np.sqrt(np.sum(triangle**2, axis=0))
    if condition_bound(triangle / norms, inverse * norms[:, None]) > GOOD_CONDITION:
        return None
    by_term = found.projection
    if on_host(by_term):
        by_term = by_term[row_of]
    else:
        by_term = array_namespace(by_term).take(by_term, as_like(row_of, by_term), axis=0)
    projection = (by_term @ as_like(inverse, by_term)).T
    whole = triangle if frame.triangle is None else triangle @ frame.triangle
    return Summary(whole, projection, found.n_samples, constant)
