"""Values of a basis on a graphics card, or in any array library: few and large operations, whole tiles at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._array import array_namespace, as_like
from ..typing import Integers
from ._plan import Chain, Plan

CHAIN_BYTES = 4_000_000_000  # of both sides' functions at a time
TILE_BYTES = 3_000_000_000  # of values at a time


def device_blocks(plan: Plan, n_terms: int, u: Any, factors: Any) -> Iterator[Any]:
    """Values in consecutive blocks of (terms, samples), in the order of the plan's tiles.

    `factors(u)` gives the one-dimensional values for each input. The short chains on both sides are made for very
    many samples at once, the tiles for as many as memory allows: a launch costs more than thousands of numbers.
    """
    xp = array_namespace(u)
    many = max(CHAIN_BYTES // (8 * (len(plan.left) + len(plan.right))), 1)
    some = max(TILE_BYTES // (8 * n_terms), 1)
    for begin in range(0, u.shape[0], many):
        ones = factors(u[begin : min(begin + many, u.shape[0]), :])
        left = _chain(plan.left, ones[: plan.split], ones[-1][0, :])
        right = _chain(plan.right, ones[plan.split :], ones[-1][0, :])
        for start in range(0, left.shape[1], some):
            columns = slice(start, min(start + some, left.shape[1]))
            yield xp.concat([_tile(xp, left, right, tile, columns) for tile in plan.tiles], axis=0)


def _tile(xp: Any, left: Any, right: Any, tile: Any, columns: slice) -> Any:
    a, b = _rows(xp, left, tile.left)[:, columns], _rows(xp, right, tile.right)[:, columns]
    return xp.reshape(a[:, None, :] * b[None, :, :], (tile.shape[0] * tile.shape[1], a.shape[1]))


def _rows(xp: Any, values: Any, chosen: slice | Integers) -> Any:
    return (
        values[chosen, :] if isinstance(chosen, slice) else xp.take(values, as_like(chosen, values), axis=0)
    )


def _chain(chain: Chain, factors: list[Any], ones: Any) -> Any:
    """Products of a few inputs: the rows of each input's factors that they need, multiplied."""
    xp = array_namespace(ones)
    out = None
    for values, column in zip(factors, chain.rows.T, strict=True):
        part = xp.take(values, as_like(column.astype("int64"), values), axis=0)
        out = part if out is None else out * part
    return ones[None, :] if out is None else out
