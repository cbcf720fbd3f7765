"""Which products of one-dimensional functions a basis holds: total degree, hyperbolic cross, cuts of both."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from .._check import one_of
from ..errors import ParameterError
from ..typing import ArrayLike, Integers
from ._family import DiscreteFamily, Family

MOST_FUNCTIONS = 20_000_000  # 160 MB for each array of one number a function
MOST_LISTED = 200_000  # to choose a few thousand from
INDEX_SETS = ("total", "hyperbolic")


def index_set(
    families: Sequence[Family],
    max_degree: int,
    *,
    kind: str,
    max_interactions: int | None,
    max_degree_per_input: Sequence[int] | None,
) -> Integers:
    """(terms, inputs) indices, sorted by total degree and then lexicographically; row 0 is the constant.

    The set is counted first and refused if it is too large. It grows one input at a time and drops at once
    what no later input can bring back in, so its cost is that of the set, not of the full tensor product.
    """
    one_of("index_set", kind, INDEX_SETS)
    limits = [None] * len(families) if max_degree_per_input is None else list(max_degree_per_input)
    own_degrees = [
        _degrees(family, max_degree, limit) for family, limit in zip(families, limits, strict=True)
    ]
    # Both sets limit a running size: the sum of the degrees, or the product of degree + 1.
    join, sizes, start, most = (
        (np.add, own_degrees, 0, max_degree)
        if kind == "total"
        else (np.multiply, [own + 1 for own in own_degrees], 1, max_degree + 1)
    )
    most_joined = len(families) if max_interactions is None else max_interactions
    _refuse_too_many(_count(join, own_degrees, sizes, start, most, most_joined), len(families))
    rows = np.zeros((1, 0), dtype=np.int16)
    size, interactions = np.full(1, start), np.zeros(1, int)
    for own, factor in zip(own_degrees, sizes, strict=True):
        size_now = join(size[:, None], factor)
        interactions_now = interactions[:, None] + (own > 0)
        allowed = (size_now <= most) & (interactions_now <= most_joined)
        row, index = np.nonzero(allowed)
        rows = np.column_stack([rows[row], index.astype(np.int16)])
        size, interactions = size_now[allowed], interactions_now[allowed]
    return sort_rows(rows, total_degrees(families, rows))


def count_of_degree(families: Sequence[Family], degree: int) -> int:
    """How many products of functions have this total degree."""
    counts = []
    for most in (degree - 1, degree):
        own = [_degrees(family, max(most, 0), None) for family in families]
        counts.append(_count(np.add, own, own, 0, most, len(families)) if most >= 0 else 0)
    return counts[1] - counts[0]


def lowest_rows(families: Sequence[Family], least_degree: int, enough: int) -> Integers:
    """All indices up to the lowest total degree, above `least_degree`, that gives at least `enough`.

    Fewer where the families end, or where the next degree is too large to list.
    """
    degree, rows = least_degree, np.zeros((1, len(families)), dtype=np.int16)
    while len(rows) < enough:
        degree += 1
        try:
            own = [_degrees(family, degree, None) for family in families]
        except ParameterError:  # a tabulated density knows its functions up to some degree only
            break
        count = _count(np.add, own, own, 0, degree, len(families))
        if count == len(rows) or count > MOST_LISTED:
            break
        rows = index_set(families, degree, kind="total", max_interactions=None, max_degree_per_input=None)
    return rows


def _count(
    join: np.ufunc,
    own_degrees: list[Integers],
    sizes: list[Integers],
    start: int,
    most: int,
    most_joined: int,
) -> int:
    """How many indices a set holds, without making it: count partial indices by size and interactions."""
    states = {(start, 0): 1}
    for own, factors in zip(own_degrees, sizes, strict=True):
        steps: dict[tuple[int, int], int] = {}
        for degree, factor in zip(own.tolist(), factors.tolist(), strict=True):
            steps[factor, int(degree > 0)] = steps.get((factor, int(degree > 0)), 0) + 1
        grown: dict[tuple[int, int], int] = {}
        for ((size, joined), number), ((factor, more), ways) in product(states.items(), steps.items()):
            state = int(join(size, factor)), joined + more
            if state[0] <= most and state[1] <= most_joined:
                grown[state] = grown.get(state, 0) + number * ways
        states = grown
    return sum(states.values())


def explicit_set(families: Sequence[Family], indices: ArrayLike) -> Integers:
    """A user's own list of indices, checked and brought into the common order; the constant is added."""
    rows = np.asarray(indices)
    if rows.ndim != 2 or rows.shape[1] != len(families) or not np.issubdtype(rows.dtype, np.integer):
        raise ParameterError(
            f"indices must be whole numbers of shape (terms, {len(families)}); got {rows.dtype} {rows.shape}."
        )
    if rows.size and not 0 <= rows.min() <= rows.max() <= 32767:
        raise ParameterError(
            f"indices run from {rows.min()} to {rows.max()}; degrees are between 0 and 32767."
        )
    rows = np.unique(np.vstack([np.zeros((1, len(families)), int), rows]), axis=0)
    for family, column in zip(families, rows.T, strict=True):
        _degrees(family, int(family.degrees(int(column.max()) + 1)[-1]), None, strict=True)
    return sort_rows(rows.astype(np.int16), total_degrees(families, rows))


def total_degrees(families: Sequence[Family], rows: Integers) -> Integers:
    """The total degree of each row of indices."""
    out = np.zeros(len(rows), dtype=int)
    for family, column in zip(families, rows.T, strict=True):
        out += family.degrees(int(column.max(initial=0)) + 1)[column]
    return out


def sort_rows(rows: Integers, degree: Integers) -> Integers:
    """Rows by total degree, then lexicographically with the first input leading."""
    order = np.lexsort((*rows.T[::-1], degree))
    return np.ascontiguousarray(rows[order])


def _degrees(family: Family, max_degree: int, own_limit: int | None, strict: bool = False) -> Integers:
    """Degrees of the functions one input may use; a measure on few points has few."""
    limit = max_degree if own_limit is None else min(max_degree, own_limit)
    if family.largest_degree is not None and limit > family.largest_degree:
        if strict or not isinstance(family, DiscreteFamily):
            raise ParameterError(
                f"degree {limit} is above {family.largest_degree}, the highest of the {family.name} family "
                f"({family.distribution}); lower the degree or, for a density, raise its max_degree."
            )
        limit = family.largest_degree
    return family.degrees(family.count(limit))


def _refuse_too_many(count: int, n_inputs: int) -> None:
    if count > MOST_FUNCTIONS:
        raise ParameterError(
            f"the basis would hold {count:,} functions of {n_inputs} inputs, "
            f"{count * n_inputs * 2 / 1e9:,.1f} GB of indices alone (the limit is {MOST_FUNCTIONS:,}); "
            "lower max_degree, or cut with max_interactions= or index_set='hyperbolic'."
        )
