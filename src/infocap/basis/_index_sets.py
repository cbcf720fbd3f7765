"""Which products of one-dimensional functions a basis holds: total degree, hyperbolic cross, cuts of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from .._check import one_of
from ..errors import ParameterError
from ..typing import ArrayLike, Integers
from ._family import DiscreteFamily, Family

MOST_FUNCTIONS = 20_000_000  # 160 MB for each array of one number a function
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

    The set grows one input at a time and drops at once what no later input can bring back in, so its cost
    is that of the set itself and not of the full tensor product.
    """
    one_of("index_set", kind, INDEX_SETS)
    whole = kind == "total" and max_interactions is None and max_degree_per_input is None
    if whole and all(family.count(1) == 2 and family.largest_degree is None for family in families):
        _refuse_too_many(comb(len(families) + max_degree, max_degree), len(families))
    rows = np.zeros((1, 0), dtype=np.int16)
    degree, volume, interactions = np.zeros(1, int), np.ones(1), np.zeros(1, int)
    for position, family in enumerate(families):
        own = _degrees(family, max_degree, max_degree_per_input[position] if max_degree_per_input else None)
        _refuse_too_many(len(rows), len(families))
        degree_now = degree[:, None] + own
        volume_now = volume[:, None] * (own + 1)
        interactions_now = interactions[:, None] + (own > 0)
        allowed = degree_now <= max_degree if kind == "total" else volume_now <= max_degree + 1
        if max_interactions is not None:
            allowed &= interactions_now <= max_interactions
        row, index = np.nonzero(allowed)
        rows = np.column_stack([rows[row], index.astype(np.int16)])
        degree, volume, interactions = degree_now[allowed], volume_now[allowed], interactions_now[allowed]
    _refuse_too_many(len(rows), len(families))
    return sort_rows(rows, degree)


def explicit_set(families: Sequence[Family], indices: ArrayLike) -> Integers:
    """A user's own list of indices, checked and brought into the common order; the constant is added."""
    rows = np.asarray(indices)
    if rows.ndim != 2 or rows.shape[1] != len(families) or not np.issubdtype(rows.dtype, np.integer):
        raise ParameterError(
            f"indices must be whole numbers of shape (terms, {len(families)}); got {rows.dtype} {rows.shape}."
        )
    if rows.size and rows.min() < 0:
        raise ParameterError(f"indices contain {rows.min()}; degrees start at 0.")
    rows = np.unique(np.vstack([np.zeros((1, len(families)), int), rows]), axis=0)
    for family, column in zip(families, rows.T, strict=True):
        _degrees(family, int(family.degrees(int(column.max()) + 1)[-1]), None, strict=True)
    return sort_rows(rows.astype(np.int16), total_degrees(families, rows))


def total_degrees(families: Sequence[Family], rows: Integers) -> Integers:
    """The total degree of each row of indices."""
    degrees = [
        family.degrees(int(column.max(initial=0)) + 1)[column]
        for family, column in zip(families, rows.T, strict=True)
    ]
    return np.sum(degrees, axis=0)


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


def _refuse_too_many(count: float, n_inputs: int) -> None:
    if count > MOST_FUNCTIONS:
        raise ParameterError(
            f"the basis would hold {count:,} functions of {n_inputs} inputs, "
            f"{count * n_inputs * 2 / 1e9:,.1f} GB of indices alone (the limit is {MOST_FUNCTIONS:,} functions); "
            "lower max_degree, or cut with max_interactions= or index_set='hyperbolic'."
        )
