"""What follows from sums over samples: summaries, which are all that capacities need, and ridge regression.

A summary is the triangle r of x = q r and the targets seen from there, q'y. There are two ways to it. The triangle of
x = q r follows from x'x by Cholesky's method, and q'y from x'y. That squares the condition number, so it is done in
coordinates z = x t in which the readouts are nearly uncorrelated already; t comes from some of the samples, and is
left out where they are so anyway. The sums of consecutive shares of the samples add up, and only the last step
depends on how many wholes are asked for. Readouts for which there is no such t, because some are nearly or wholly
dependent, are factored block by block, by Householder's method.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add, iadd
from typing import Any, NamedTuple, Self

import numpy as np

from .._arrays import (
    array_namespace,
    as_like,
    cholesky,
    inverse_of_triangle,
    on_host,
    solve_triangle,
    take_rows,
    to_numpy,
)
from ..typing import ArrayLike, Floats, Integers

# Least pivot of unit columns for Cholesky's method: the squared condition number then leaves 8 digits to repair.
SAFE_PIVOT = 1e-4
# Condition number whose square costs less than 1e-11, so that there is nothing to repair.
GOOD_CONDITION = 300.0
# Condition number of some of the readouts below which all of them are good enough as they are: half of what the last
# step allows, since the other samples differ.
GOOD_ALREADY = 150.0
# Singular values of the scaled readouts below this share of the largest are rounding. A coarser limit throws real
# capacity away: N times the rounding error dropped 5 of 25 directions at a condition number of 2e13.
RANK_TOLERANCE = 32 * np.finfo(float).eps
# Pivots of the scaled triangle above this leave no doubt about the rank, and no need for singular values.
CLEAR_PIVOT = 1e-6
# Share of a function's square that must be independent of the functions before it in a ridge fit; less is rounding.
LEAST_PIVOT = 1e-10
# Leverages above this are computed exactly, those below from random signs, with a relative error sqrt(2 / signs).
EXACT_ABOVE = 0.6
# Least margin 1 - h: a sample that is fitted exactly leaves nothing but rounding.
LEAST_MARGIN = 1e-12
# The least that anything is divided by: it is zero where there is no noise at all.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Summary:
    """Readouts x = q @ triangle of some samples, and the targets seen from q.

    `triangle` is (readouts, readouts), `projection` = q'y is (readouts, terms). With `constant`, the first
    readout is the constant, and centring is exact: it happens on the triangle. The projection is where the data
    are; the triangle, which is small, in the processor's memory, unless its inverse is known.
    """

    triangle: Any
    projection: Any
    n_samples: int
    constant: bool = False
    inverse: Any = None  # of the triangle, where it is known and safe to use


def summarise(x: Any, y: Any, constant: bool = False) -> Summary:
    """One block of samples: x (samples, readouts) and y (samples, terms).

    Instead of an array y may be an iterable of its consecutive blocks (terms, samples).
    """
    q, triangle = array_namespace(x).linalg.qr(x)
    blocks = [y.T] if hasattr(y, "shape") else y
    projection: Any = 0.0
    start = 0
    for block in blocks:
        stop = start + block.shape[1]
        projection = projection + q[start:stop, :].T @ block.T
        start = stop
    assert start == x.shape[0]
    return Summary(to_numpy(triangle), projection, x.shape[0], constant)


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
    covariance is 1 / samples; it may be on a device. The constant is not among them.
    """

    frame: Floats | None
    whitening: Any
    mean: Floats


def span(summary: Summary) -> Span:
    """Centre, then scale, then decide the rank: no unit, offset or mixing of the readouts changes it.

    With the constant readout first, the triangle without its first row is that of the centred readouts.
    """
    triangle, skip = summary.triangle, int(summary.constant)
    centred = triangle[skip:, skip:]
    mean = (
        to_numpy(triangle[0, 1:] / triangle[0, 0])
        if summary.constant
        else np.zeros(centred.shape[1])
    )
    if summary.inverse is not None:
        return Span(None, summary.inverse[skip:, skip:], mean)
    norms = np.sqrt(np.sum(centred**2, axis=0))
    # What is left of a constant column after centring is rounding, not a direction.
    rounding = norms <= RANK_TOLERANCE * np.sqrt(np.sum(triangle[:, skip:] ** 2, axis=0))
    scaled = np.where(rounding, 0.0, centred) / np.where(rounding, 1.0, norms)
    norms = np.where(rounding, 1.0, norms)
    if scaled.shape[0] == scaled.shape[1] and np.min(np.abs(np.diag(scaled))) > CLEAR_PIVOT:
        inverse = inverse_of_triangle(scaled)
        if (
            np.linalg.norm(inverse) * np.linalg.norm(scaled) < 1 / CLEAR_PIVOT
        ):  # bounds the condition number
            return Span(None, inverse / norms[:, None], mean)
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    rank = (
        int(np.sum(singular > RANK_TOLERANCE * singular[0]))
        if singular.size and singular[0] > 0
        else 0
    )
    whitening = right[:rank].T / singular[:rank] / norms[:, None]
    return Span(left[:, :rank], whitening, mean)


def coordinates(summary: Summary, space: Span) -> Any:
    """The targets' coordinates in an orthonormal frame of the readouts' space: (rank, terms).

    Their squares, summed over the frame, are the capacities.
    """
    skip, inside = int(summary.constant), summary.projection
    if space.frame is not None:
        rest = as_like(space.frame.T, inside) @ inside[skip:, :]
        inside = array_namespace(inside).concat([inside[:skip, :], rest], axis=0)
    return inside / float(np.sqrt(summary.n_samples))


def capacities(summary: Summary) -> Floats:
    """The raw empirical capacities C_N of all targets, with the exact normalisation E[y²] = 1."""
    return squares(coordinates(summary, span(summary)))


def squares(values: Any) -> Floats:
    """The sum of squares over the first axis, as a NumPy array wherever the values are."""
    if on_host(values):
        return np.einsum("ij,ij->j", values, values)
    return to_numpy(array_namespace(values).sum(values**2, axis=0))


def zero_capacity_bound(fourth_moments: ArrayLike, leverage_power: float, n_samples: int) -> Floats:
    """Upper bound on the mean C_N of functions whose capacity is zero: sqrt(S E[y^4]) / N (paper, Prop. 5.3).

    `leverage_power` is S = E[(sum_i X~_i²)²], at least the square of the number of readouts.

    >>> zero_capacity_bound([1.8], leverage_power=100.0, n_samples=1000)
    array([0.01341641])
    """
    return np.sqrt(leverage_power * np.asarray(fourth_moments, dtype=float)) / n_samples


def triangle_of_gram(gram: Any) -> Any:
    """The triangle r of x = q r from x'x, by Cholesky's method, where the Gram matrix is.

    It holds no numbers (NaN) when that is not positive definite to rounding.
    """
    xp = array_namespace(gram)
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = xp.sqrt(xp.linalg.diagonal(gram))
        return cholesky(gram / norms / norms[:, None]).T * norms


def condition_bound(matrix: Any, inverse: Any) -> Any:
    """At least the condition number, and at most n^(1/4) times that of a matrix with n rows.

    The eighth power of the largest singular value is at most the sum of all; that sum takes two products.
    """
    xp = array_namespace(matrix)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # then the bound is not finite, which is answer enough
        a, b = matrix.T @ matrix, inverse.T @ inverse
        return (xp.sum((a @ a) ** 2) * xp.sum((b @ b) ** 2)) ** 0.125


class Frame(NamedTuple):
    """New coordinates z = x @ `matrix` of the readouts, and the way back, x = z @ `triangle`; None: x itself."""

    matrix: Any
    triangle: Any


def frame_of(triangle: Any) -> Frame | None:
    """The frame in which readouts with this triangle are orthonormal; None where some are nearly dependent."""
    xp = array_namespace(triangle)
    norms = xp.sqrt(xp.sum(triangle**2, axis=0))
    scaled = triangle / xp.where(norms > 0, norms, xp.ones_like(norms))
    inverse = inverse_of_triangle(scaled)
    pivot = xp.min(xp.abs(xp.linalg.diagonal(scaled)))
    pivot, bound = to_numpy(xp.stack([pivot, condition_bound(scaled, inverse)])).tolist()
    if not pivot > SAFE_PIVOT:
        return None
    if bound < GOOD_ALREADY:
        return Frame(None, None)
    return Frame(inverse / norms[:, None], triangle)


class Sums:
    """Sums over samples, which add up field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, vars(self).values(), vars(other).values()))

    def absorb(self, other: Self) -> Self:
        """The sum of both, in the memory of this one where its arrays can be written into."""
        return type(self)(*map(iadd, vars(self).values(), vars(other).values()))


def add_groups(one: dict[int, Any], other: dict[int, Any]) -> dict[int, Any]:
    """Sums by the number of their group, over the samples of both."""
    return one | other | {group: one[group] + other[group] for group in one.keys() & other.keys()}


@dataclass(frozen=True, eq=False)
class Moments(Sums):
    """z'z and y'z of some samples: (readouts, readouts) and (terms, readouts)."""

    gram: Any
    projection: Any
    n_samples: int

    def summary(self, frame: Frame, constant: bool) -> tuple[Summary, Any]:
        """The summary of these samples, and a bound on the condition number of z; on a device nothing is waited for.

        Where the bound is not below `GOOD_CONDITION`, sums of products have lost too many digits for the summary.
        """
        xp, triangle = array_namespace(self.gram), triangle_of_gram(self.gram)
        inverse, norms = inverse_of_triangle(triangle), xp.sqrt(xp.sum(triangle**2, axis=0))
        bound = condition_bound(triangle / norms, inverse * norms[:, None])
        projection = (self.projection @ as_like(inverse, self.projection)).T
        if frame.matrix is not None:
            triangle, inverse = triangle @ frame.triangle, frame.matrix @ inverse
        return Summary(triangle, projection, self.n_samples, constant, inverse), bound


def benjamini_hochberg(p: Floats, rate: float) -> Floats:
    """True where a function is declared not zero, with at most this share of false declarations on average.

    >>> benjamini_hochberg(np.array([0.001, 0.03, 0.9, 0.02]), rate=0.05).tolist()
    [True, True, False, True]
    """
    order = np.argsort(p)
    passed = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    out = np.zeros(len(p), dtype=bool)
    if len(passed):
        out[order[: passed[-1] + 1]] = True
    return out


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fit z ~ sum_m b_m phi_m on some functions of a dictionary, with a penalty p_m b_m² on each.

    With A = Phi'Phi over all samples, C C' = A + diag(p) and B = Phi'z, the coefficients are (C C')^-1 B, and the
    leverage of a sample is h = |C^-1 phi|². Its residual in a fit without it is its residual divided by the margin
    1 - h. Only products of matrices are needed to find h for many samples: |C^-1 phi|² is the mean of (w'C^-1 phi)²
    over vectors w of random signs; the few large ones are solved for.
    """

    kept: Integers  # the functions in use
    places: Integers  # where each function of the dictionary is among them, -1 for those not in use
    factor: Any  # C
    coefficients: Any  # (dictionary, readouts), zero for functions that are not in use
    signs: Any  # C^-T w for each vector w of signs, (dictionary, signs)

    @classmethod
    def fits(
        cls, products: Any, cross: Any, kept: Integers, penalties: Iterable[Floats], n_signs: int
    ) -> Iterator[Ridge]:
        """Fits from the sums A and B, one per penalty; none where the functions are not independent on the samples."""
        xp, where = array_namespace(products), as_like(kept, products)
        places = np.full(products.shape[0], -1)
        places[kept] = np.arange(len(kept))
        a = (
            products if len(kept) == len(places) else take_rows(take_rows(products, where).T, where)
        )  # symmetric
        b, own = take_rows(cross, where), to_numpy(xp.linalg.diagonal(a))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(kept), n_signs)) / np.sqrt(
            n_signs
        )
        for penalty in penalties:
            factor = cholesky(a, penalty)
            pivots = to_numpy(xp.linalg.diagonal(factor))
            if np.min(pivots**2 / (own + penalty)) > LEAST_PIVOT:
                inside = xp.concat([solve_triangle(factor, b), as_like(signs, a)], axis=1)
                solved = rows_at(solve_triangle(factor, inside, transposed=True), places)
                yield cls(kept, places, factor, solved[:, : b.shape[1]], solved[:, b.shape[1] :])

    def margin(self, phi: Any) -> Any:
        """1 - h of samples with these values of the dictionary (dictionary, samples)."""
        xp = array_namespace(phi)
        h = xp.sum((self.signs.T @ phi) ** 2, axis=0)
        large = xp.nonzero(h > EXACT_ABOVE)[0]
        if large.shape[0]:
            few = take_rows(take_rows(phi.T, large).T, as_like(self.kept, phi))
            where = np.arange(
                h.shape[0]
            )  # without writing into an array, which not every library can do
            where[to_numpy(large)] = h.shape[0] + np.arange(large.shape[0])
            h = take_rows(
                xp.concat([h, xp.sum(solve_triangle(self.factor, few) ** 2, axis=0)]),
                as_like(where, h),
            )
        return xp.clip(1 - h, LEAST_MARGIN, None)

    def solve(self, right: Any) -> Any:
        """(A + diag(p))^-1 right, for right (dictionary, columns)."""
        inside = solve_triangle(self.factor, take_rows(right, as_like(self.kept, right)))
        return rows_at(solve_triangle(self.factor, inside, transposed=True), self.places)


def rows_at(array: Any, places: Integers) -> Any:
    """Rows of an array by their places, zeros where the place is -1."""
    if len(places) <= array.shape[0] and np.array_equal(places, np.arange(len(places))):
        return array[: len(places), ...]  # no copy
    rows = take_rows(array, as_like(np.maximum(places, 0), array))
    return rows if np.all(places >= 0) else rows * as_like((places >= 0)[:, None] * 1.0, array)


def serial_sums(
    weights: Any, root: Any, every: Any, groups: list[Any], parts: list[Any]
) -> tuple[Floats, Floats]:
    """Bias and variance of capacities from stretches of a sequence, because neighbouring samples are not independent.

    A stretch adds `part` - W `mixed` to the sum of e rho - f (e·W), and W·(2 `part` - W `mixed`) to the influence.
    """
    xp, squares, influence = array_namespace(weights), 0.0, 0.0
    for part, one in zip(parts, groups, strict=True):
        share = one.count / every.count
        off, along = part - sum(parts) * share, weights @ (one.mixed - every.mixed * share)
        squares = squares + xp.sum(((off - along) @ root) ** 2, axis=1)
        influence = influence + xp.sum((2 * off - along) * weights, axis=1) ** 2
    few = len(groups) / (len(groups) - 1) / every.count**2
    return few * to_numpy(squares), few * to_numpy(influence)


def stretch_error(without: Floats) -> float:
    """The standard error of a number from its values without each of a few stretches of a sequence (jackknife).

    Neighbouring stretches that go together count for less than their number. It is so much longer that 1.96 of them
    make a 95 % interval of Student's distribution.
    """
    from scipy.special import stdtrit

    count, off = len(without), without - without.mean()
    power = max(float(off @ off), 1e-300)
    together = max(float(off[1:] @ off[:-1]) / power, 0.0)
    return float(
        stdtrit(count - 1, 0.975) / 1.96 * np.sqrt((count - 1) / count * power * (1 + 2 * together))
    )
