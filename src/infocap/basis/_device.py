"""Values of a basis on a graphics card, or in any array library: few and large operations, whole tiles at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._array import array_namespace, as_like, empty_like, multiply_into, take_rows
from ..typing import Integers
from ._plan import Batch, Chain, Halves, Plan

CHAIN_BYTES = 4_000_000_000  # of both sides' functions at a time
TILE_BYTES = 2_300_000_000  # of values at a time
TILE_SAMPLES = 32_768
ROUND = 64
TILE_ROWS = 8_448  # functions: a multiple of what the 132 processors of an H200 multiply in one go


def device_tiles(plan: Plan, u: Any, factors: Any) -> Iterator[tuple[slice, slice, Any]]:
    """Which functions, which samples, and their values (functions, samples), in the order of the plan's tiles.

    `factors(u)` gives the one-dimensional values for each input. The short chains on both sides are made for very
    many samples at once, and so are the tiles, of as many functions as memory allows: a launch costs more than
    thousands of numbers. Products are fastest with a round number of functions, so there may be more rows of values
    than functions; what is in those has no meaning.
    """
    tallest = min(TILE_SAMPLES, u.shape[0])
    batches = plan.batches(max(min(TILE_BYTES // (8 * tallest), TILE_ROWS), 1))
    room = empty_like(u, tallest * max(_even(batch) for batch in batches))
    for samples, (left, right) in _sides(plan, u, factors):
        for start in range(samples.start, samples.stop, TILE_SAMPLES):
            some = slice(start, min(start + TILE_SAMPLES, samples.stop))
            here = slice(some.start - samples.start, some.stop - samples.start)
            for batch in batches:
                values = _fill((left[:, here], right[:, here]), batch, room)
                yield slice(batch.start, batch.stop), some, values


def device_blocks(plan: Plan, n_terms: int, u: Any, factors: Any) -> Iterator[Any]:
    """Values of all functions in consecutive blocks of (terms, samples)."""
    some = max(TILE_BYTES // (8 * n_terms), 1)
    (everything,) = plan.batches(n_terms)
    for samples, (left, right) in _sides(plan, u, factors):
        for start in range(0, samples.stop - samples.start, some):
            columns = slice(start, min(start + some, left.shape[1]))
            yield _fill((left[:, columns], right[:, columns]), everything)


def _sides(plan: Plan, u: Any, factors: Any) -> Iterator[tuple[slice, tuple[Any, Any]]]:
    """Values of the functions of both sides, for as many samples at a time as memory allows."""
    many = _many(plan)
    for begin in range(0, u.shape[0], many):
        samples = slice(begin, min(begin + many, u.shape[0]))
        ones = factors(u[samples, :])
        yield (
            samples,
            (
                _chain(plan.left, ones[: plan.split], ones[-1][0, :]),
                _chain(plan.right, ones[plan.split :], ones[-1][0, :]),
            ),
        )


def _even(batch: Batch) -> int:
    """The number of functions of a batch, rounded up."""
    return -(-(batch.stop - batch.start) // ROUND) * ROUND


def _many(plan: Plan) -> int:
    """How many samples of both sides fit."""
    return max(CHAIN_BYTES // (8 * (len(plan.left) + len(plan.right))), 1)


def _fill(sides: tuple[Any, Any], batch: Batch, room: Any = None) -> Any:
    """Values of a batch, in the room for it if there is any: making new arrays and joining them takes longer."""
    xp, n = array_namespace(sides[0]), sides[0].shape[1]
    where = None if room is None else xp.reshape(room[: _even(batch) * n], (-1, n))
    parts = []
    for tile in batch.tiles:
        a, b = _rows(sides[0], tile.left)[:, None, :], _rows(sides[1], tile.right)[None, :, :]
        size = tile.shape[0] * tile.shape[1]
        if where is None:
            parts.append(xp.reshape(a * b, (size, n)))
        else:
            start = tile.start - batch.start
            multiply_into(a, b, xp.reshape(where[start : start + size, :], (*tile.shape, n)))
    if where is not None:
        return where
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


def _rows(values: Any, chosen: slice | Integers) -> Any:
    return values[chosen, :] if isinstance(chosen, slice) else take_rows(values, as_like(chosen, values))


def _chain(chain: Chain, factors: list[Any], ones: Any) -> Any:
    """Products of a few inputs: the rows that they need of those of the first inputs and of the others, multiplied."""
    return _products(chain.halves, factors, ones) if factors else ones[None, :]


def _products(halves: Halves, factors: list[Any], like: Any) -> Any:
    parts = []
    for inner, inputs, chosen in zip(halves.inner, halves.inputs, halves.rows_like(like), strict=True):
        values = factors[inputs.start] if inner is None else _products(inner, factors[inputs], like)
        parts.append(take_rows(values, chosen))
    return parts[0] if len(parts) == 1 else parts[0] * parts[1]
