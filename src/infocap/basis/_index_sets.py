"""Which products of one-dimensional functions a basis holds: total degree, hyperbolic cross, cuts of both."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .._validation import one_of
from ..errors import ParameterError
from ..typing import ArrayLike, Integers

# An estimate keeps about 1.5 kB per function with 30 readouts: 7.5 GB, and works on that for minutes.
MOST_FUNCTIONS = 5_000_000
MOST_LISTED = 200_000  # candidates, to choose a few thousand further functions from
LARGEST_SIZE = (
    1_000_000  # counting takes one array of the total degree, or of the product of degree + 1
)
MOST_COUNTED = 10**12  # functions; it is of no interest how many more there would be


def indices_of(
    families: Sequence[Any],
    max_degree: int,
    kind: str = "total",
    max_interactions: int | None = None,
    max_degree_per_input: Sequence[int] | None = None,
    *,
    limit: int = MOST_FUNCTIONS,
) -> Integers:
    """(terms, inputs) indices, sorted by total degree and then lexicographically; row 0 is the constant.

    The set is counted first and refused if it is larger than `limit`. It grows one input at a time and drops at once
    what no later input can bring back in, so its cost is that of the set, not of the full tensor product.
    """
    one_of("index_set", kind, ("total", "hyperbolic"))
    limits = max_degree_per_input or [max_degree] * len(families)
    pairs = zip(families, limits, strict=True)
    own_degrees = [family.degrees_up_to(min(max_degree, limit)) for family, limit in pairs]
    # Both sets limit a running size: the sum of the degrees, or the product of degree + 1.
    join: np.ufunc
    if kind == "total":
        join, sizes, start = np.add, own_degrees, 0
        most = min(max_degree, sum(int(own[-1]) for own in sizes))
    else:
        join, sizes, start = np.multiply, [own + 1 for own in own_degrees], 1
        most = min(max_degree + 1, prod(int(own[-1]) for own in sizes))
    if most > LARGEST_SIZE:
        raise ParameterError(
            f"`max_degree={max_degree}` is too large; give less than {LARGEST_SIZE:,}."
        )
    most_joined = len(families) if max_interactions is None else max_interactions
    count = int(_counts(join, own_degrees, sizes, most, most_joined).sum())
    refuse_too_many(
        count,
        "lower `max_degree`, or cut with `max_interactions` or `index_set='hyperbolic'`",
        limit,
    )
    steps: list[
        tuple[Integers, Integers]
    ] = []  # of each input: the row that is continued, and the new index
    size, interactions = np.full(1, start), np.zeros(1, int)
    for own, factor in zip(own_degrees, sizes, strict=True):
        room = most - size if join is np.add else most // size
        counts = np.where(
            interactions == most_joined, 1, np.searchsorted(factor, room, side="right")
        )  # sizes ascend
        row = np.repeat(np.arange(len(size)), counts)
        index = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        steps.append((row.astype(np.int32), index.astype(np.int16)))
        size, interactions = join(size[row], factor[index]), interactions[row] + (own[index] > 0)
    rows, row = np.empty((len(size), len(steps)), np.int16), np.arange(len(size))
    for column in range(len(steps) - 1, -1, -1):
        before, index = steps[column]
        rows[:, column], row = index[row], before[row]
    return sort_rows(families, rows)


def refuse_too_many(count: int, remedy: str, limit: int = MOST_FUNCTIONS) -> None:
    """Refuse a basis of more functions than can be worked with."""
    if count > limit:
        told = f"{count:,}" if count < MOST_COUNTED else f"more than {MOST_COUNTED:,}"
        raise ParameterError(
            f"the basis would hold {told} functions (the limit is {limit:,}); {remedy}."
        )


def counts_by_degree(
    families: Sequence[Any], degree: int, max_interactions: int | None = None
) -> Integers:
    """How many products of functions that join at most so many inputs there are of each total degree up to this one."""
    own = [family.degrees_up_to(degree) for family in families]
    return _counts(np.add, own, own, degree, max_interactions or len(families))


def _counts(
    join: np.ufunc, own_degrees: list[Integers], sizes: list[Integers], most: int, most_joined: int
) -> Integers:
    """How many indices of each size a set holds, without making it; MOST_COUNTED of each where there are more in all.

    Partial indices are counted by interactions (rows; one row where these have no limit) and by size (columns). Each
    input brings every degree from 1 to its own limit equally often.
    """
    limited, end = most_joined < len(own_degrees), most + 1
    state = np.zeros((most_joined + 1 if limited else 1, end), dtype=np.int64)
    state[0, 0 if join is np.add else 1] = 1
    for own, factors in zip(own_degrees, sizes, strict=True):
        step, largest = np.zeros_like(state), int(factors[-1])
        if join is np.add:
            sums = np.cumsum(state, axis=1)
            step[:, 1:] = sums[:, :-1]
            step[:, largest + 1 :] -= sums[:, : most - largest]
        else:
            for size in range(2, largest + 1):
                step[:, ::size] += state[:, : -(-end // size)]
        step *= np.count_nonzero(own == 1)
        if limited:
            state[1:] += step[:-1]
        else:
            state += step
        if state.sum() > MOST_COUNTED:
            return np.full(end, MOST_COUNTED)
    return state.sum(axis=0)


def explicit_set(families: Sequence[Any], indices: ArrayLike) -> Integers:
    """A user's own list of indices, checked and brought into the common order; the constant is added."""
    rows = np.asarray(indices)
    if (
        rows.ndim != 2
        or rows.shape[1] != len(families)
        or not np.issubdtype(rows.dtype, np.integer)
    ):
        raise ParameterError(
            f"indices must be whole numbers (terms, {len(families)}); got {rows.dtype} {rows.shape}."
        )
    low, high = rows.min(initial=0), rows.max(initial=0)
    if low < 0 or high > 32767:
        raise ParameterError(f"indices run from {low} to {high}; degrees are between 0 and 32767.")
    rows = np.unique(np.vstack([np.zeros((1, len(families)), int), rows]), axis=0)
    for family, column in zip(families, rows.T, strict=True):
        family.degrees_up_to(int(family.degrees(int(column.max()) + 1)[-1]), strict=True)
    return sort_rows(families, rows.astype(np.int16))


def total_degrees(families: Sequence[Any], rows: Integers) -> Integers:
    """The total degree of each row of indices."""
    out = np.zeros(len(rows), dtype=int)
    for family, column in zip(families, rows.T, strict=True):
        out += family.degrees(int(column.max(initial=0)) + 1)[column]
    return out


def sort_rows(families: Sequence[Any], rows: Integers) -> Integers:
    """Rows by total degree, then lexicographically with the first input leading."""
    return np.ascontiguousarray(rows[np.lexsort((*rows.T[::-1], total_degrees(families, rows)))])
