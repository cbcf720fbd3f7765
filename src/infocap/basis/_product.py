"""Products of one-dimensional functions: the targets whose capacities are measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._array import as_like, contiguous, on_host, take_rows, to_numpy
from .._check import one_of, whole_number
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from . import _index_sets
from ._classical import FAMILIES
from ._device import device_blocks, device_tiles
from ._family import Family
from ._index_sets import explicit_set, total_degrees
from ._plan import Batch, Plan
from ._restore import describe, restore

VALUES_BYTES = 8_000_000  # of values at a time, where all functions are wanted together
TILE_BYTES = 6_000_000  # where they are not: stays in cache until it is multiplied
TILE_SAMPLES = 512  # at least: what the matrix product needs to run at full speed
LONGEST_BLOCK = 4096


class Values(NamedTuple):
    """Values (rows, samples) of some functions at some samples, and which."""

    rows: slice
    samples: slice
    values: Any


class ProductBasis:
    """Functions of several inputs, each a product of one-dimensional ones, orthonormal under their measure.

    Make one with `product_basis`. Calling it gives values: ``basis(u)`` has shape (samples, terms).

    >>> basis = product_basis("legendre", n_inputs=2, max_degree=2)
    >>> basis.labels
    ['1', 'P1(u2)', 'P1(u1)', 'P2(u2)', 'P1(u1)·P1(u2)', 'P2(u1)']
    >>> basis([[1.0, 0.0]]).round(3)
    array([[ 1.   ,  0.   ,  1.732, -1.118,  0.   ,  2.236]])
    """

    def __init__(self, families: Sequence[Family], indices: Integers) -> None:
        self.families = tuple(families)
        self.indices = np.asarray(indices)
        self.indices.setflags(write=False)
        if len(self.indices) and (self.indices[0].any() or np.any(np.diff(self.degrees) < 0)):
            raise ParameterError(
                "indices must begin with the constant function and be sorted by degree; "
                "product_basis(..., indices=...) does both."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return (
            f"ProductBasis: {len(self)} {self.family_name} functions of {self.n_inputs} inputs, "
            f"degree up to {self.max_degree}"
        )

    @property
    def n_inputs(self) -> int:
        """Number of inputs, q."""
        return len(self.families)

    @property
    def family_name(self) -> str:
        """The family of all inputs, or "mixed"."""
        names = {family.name for family in self.families}
        return names.pop() if len(names) == 1 else "mixed"

    @cached_property
    def degrees(self) -> Integers:
        """Total degree of each function."""
        return total_degrees(self.families, self.indices)

    @property
    def max_degree(self) -> int:
        """The highest total degree."""
        return int(self.degrees[-1])

    @cached_property
    def interactions(self) -> Integers:
        """How many inputs each function depends on."""
        return np.count_nonzero(self.indices, axis=1)

    @cached_property
    def labels(self) -> list[str]:
        """Names such as ``P1(u1)·P2(u3)``; the constant is ``1``."""
        return [self._name(row) for row in self.indices.tolist()]

    def label(self, term: int) -> str:
        """The name of one function, without making all the others'.

        >>> product_basis("legendre", n_inputs=3, max_degree=9).label(100)
        'P2(u1)·P1(u2)·P4(u3)'
        """
        return self._name(self.indices[term].tolist())

    def _name(self, row: list[int]) -> str:
        names = self._factor_names
        return "·".join([names[k][index] for k, index in enumerate(row) if index]) or "1"

    @cached_property
    def _factor_names(self) -> list[list[str]]:
        """Names of the one-dimensional functions of each input."""
        return [
            ["", *(family.label(index, f"u{k + 1}") for index in range(1, count))]
            for k, (family, count) in enumerate(zip(self.families, self._counts, strict=True))
        ]

    @cached_property
    def fourth_moments(self) -> Floats:
        """E[y^4] of each function, by Gauss quadrature, exact."""
        out = np.ones(len(self))
        for family, count, column in zip(self.families, self._counts, self.indices.T, strict=True):
            out *= family.fourth_moments(count)[column]
        return out

    def __call__(self, u: ArrayLike) -> Floats:
        """Values of all functions: (samples, terms)."""
        u = self._inputs(u)
        out = np.empty((len(self), len(u)))
        start = 0
        for block in self.blocks(u):
            out[:, start : start + block.shape[1]] = block[self.row_of]
            start += block.shape[1]
        return out.T

    def blocks(self, u: Floats) -> Iterator[Floats]:
        """Values in consecutive blocks of (terms, samples), small enough to stay in cache.

        For speed the rows come in an order of their own: function l is in row `row_of[l]`. Each block is
        overwritten by the next: use it, do not keep it.
        """
        if on_host(u):
            yield from (
                tile.values for tile in self._on_host(u, self._plan.batches(len(self)), self.block_rows)
            )
        else:
            yield from device_blocks(self._plan, len(self), u, self._factors)

    def tiles(self, u: Any) -> Iterator[Values]:
        """The same values in smaller pieces, of some functions at a time, for one matrix product each.

        However many functions there are, the values never take more than a few megabytes, on a graphics card a
        few gigabytes; larger pieces are faster there. What is overwritten by the next piece is
        the same as in `blocks`.
        """
        if not on_host(u):
            for rows, samples, values in device_tiles(self._plan, u, self._factors):
                yield Values(rows, samples, values)
            return
        yield from self._on_host(u, self._plan.batches(self._tile_rows), self.tile_samples)

    @property
    def tile_samples(self) -> int:
        """Samples in one tile."""
        samples = TILE_BYTES // (8 * min(len(self), self._tile_rows))
        return int(min(max(samples - samples % 64, 64), LONGEST_BLOCK))

    @property
    def _tile_rows(self) -> int:
        """Functions in one tile, at most."""
        return max(TILE_BYTES // (8 * TILE_SAMPLES), 1)

    def _on_host(self, u: Floats, batches: list[Batch], samples: int) -> Iterator[Values]:
        """The values of each batch of functions, written one after the other into the same array."""
        samples = min(samples, len(u))
        sizes = (
            len(self._plan.left),
            len(self._plan.right),
            max(batch.stop - batch.start for batch in batches),
        )
        space = _borrow(sum(sizes) * samples)
        try:
            for begin in range(0, len(u), LONGEST_BLOCK):
                factors = self._factors(u[begin : begin + LONGEST_BLOCK])
                end = min(begin + LONGEST_BLOCK, len(u))
                for start in range(begin, end, samples):
                    n = min(samples, end - start)
                    left, right, values = np.split(
                        space[: sum(sizes) * n].reshape(sum(sizes), n), np.cumsum(sizes)[:-1]
                    )
                    self._plan.fill_sides(factors, slice(start - begin, start - begin + n), (left, right))
                    for batch in batches:
                        out = values[: batch.stop - batch.start]
                        batch.fill((left, right), out)
                        yield Values(slice(batch.start, batch.stop), slice(start, start + n), out)
        finally:
            _SPARE.append(space)

    def sum_over(self, u: Floats, weights: Floats | None = None, power: int = 1) -> Floats:
        """The sum over samples of weight times y^power, for every function: (terms,)."""
        total, row = np.zeros(len(self)), 0
        for y in self.blocks(u):
            n = y.shape[1]
            part = np.ones(n) if weights is None else weights[row : row + n]
            total += to_numpy(y**power @ as_like(part, y))
            row += n
        return total[self.row_of]

    def combine(self, u: Floats, coefficients: Floats) -> Floats:
        """The function with these coefficients: (samples,)."""
        by_row = np.empty(len(self))
        by_row[self.row_of] = coefficients
        return np.concatenate([by_row @ y for y in self.blocks(u)])

    @property
    def row_of(self) -> Integers:
        """The row of each function in what `blocks` yields."""
        return self._plan.row_of

    @property
    def block_rows(self) -> int:
        """Samples in one block of values."""
        rows = VALUES_BYTES // (8 * len(self))
        return int(min(max(rows - rows % 64, 64), LONGEST_BLOCK))

    def quadrature(self, nodes_per_input: int | None = None) -> tuple[Floats, Floats]:
        """Tensor Gauss nodes (nodes, inputs) and weights; by default exact for squares of the functions.

        >>> nodes, weights = product_basis("legendre", 2, 3).quadrature()
        >>> round(float(weights.sum()), 12)
        1.0
        """
        count = self.max_degree + 1 if nodes_per_input is None else nodes_per_input
        rules = [family.quadrature(count) for family in self.families]
        size = prod(len(nodes) for nodes, _ in rules)
        if size > 50_000_000:
            raise ParameterError(
                f"a tensor grid of {size:,} nodes is too large; use draw(basis, n, method='sobol') instead."
            )
        natural = [family.natural(nodes) for family, (nodes, _) in zip(self.families, rules, strict=True)]
        grid = np.stack(np.meshgrid(*natural, indexing="ij"), axis=-1).reshape(size, self.n_inputs)
        weights = np.ones(1)
        for _, rule in rules:
            weights = np.multiply.outer(weights, rule).ravel()
        return grid, weights

    def extended(self, most: int, seed: int = 0) -> ProductBasis:
        """This basis and further functions, at most `most` in all, those of lowest degree.

        Of the last degree, which does not fit as a whole, some are chosen at random.
        """
        rows = _index_sets.lowest_rows(self.families, self.max_degree, most)
        known = set(map(tuple, self.indices.tolist()))
        new = rows[[tuple(row) not in known for row in rows.tolist()]]
        room = most - len(self)
        if room <= 0 or not len(new):
            return self
        degrees = total_degrees(self.families, new)
        order = np.lexsort((np.random.default_rng(seed).random(len(new)), degrees))
        chosen = np.vstack([self.indices, new[order[:room]]])
        return ProductBasis(self.families, explicit_set(self.families, chosen))

    def share_of_last_degree(self) -> float:
        """How many of all products of the highest degree this basis has."""
        last = int(np.sum(self.degrees == self.max_degree))
        return last / _index_sets.count_of_degree(self.families, self.max_degree)

    def to_dict(self) -> dict[str, Any]:
        """The families as plain data; with `indices` it rebuilds the basis."""
        return {"families": [describe(family) for family in self.families]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], indices: ArrayLike) -> ProductBasis:
        """The inverse of `to_dict`."""
        return cls([restore(**entry) for entry in data["families"]], np.asarray(indices))

    def __reduce__(self) -> Any:
        """Pickled without the tables that can be made again."""
        return ProductBasis, (self.families, np.array(self.indices))

    @cached_property
    def _counts(self) -> list[int]:
        """How many one-dimensional functions each input needs."""
        return [int(column.max(initial=0)) + 1 for column in self.indices.T]

    def _inputs(self, u: ArrayLike) -> Floats:
        u = np.asarray(u, dtype=float)
        if u.ndim != 2 or u.shape[1] != self.n_inputs:
            raise DataError(f"u has shape {u.shape}; the basis wants (samples, {self.n_inputs}).")
        return u

    def _factors(self, u: Floats) -> list[Floats]:
        """One-dimensional values for each input: a list of (functions, samples)."""
        out: list[Floats] = [np.empty(0)] * self.n_inputs
        for family, inputs, count in self._alike:
            columns = np.ascontiguousarray(u[:, inputs].T) if on_host(u) else _columns(u, inputs)
            values = family.values(family.standard(columns), count)
            for position, k in enumerate(inputs):
                out[k] = values[:, position, :] if values.ndim == 3 else values[:, position]
        return out

    @cached_property
    def _alike(self) -> list[tuple[Family, list[int], int]]:
        """Each distinct family, the inputs that share it, and how many of its functions they need."""
        together: dict[Family, list[int]] = {}
        for k, family in enumerate(self.families):
            together.setdefault(family, []).append(k)
        return [(family, inputs, max(self._counts[k] for k in inputs)) for family, inputs in together.items()]

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.indices, self.families)


_SPARE: deque[Floats] = deque(maxlen=16)  # arrays for blocks: fresh memory from the system is slow to touch


def _columns(u: Any, inputs: list[int]) -> Any:
    """Some inputs of a table in another array library, (inputs, samples)."""
    return take_rows(u.T, as_like(np.array(inputs), u)) if len(inputs) < u.shape[1] else contiguous(u.T)


def _borrow(size: int) -> Floats:
    """An array of at least this many numbers, one used before if there is one."""
    try:
        space = _SPARE.pop()
    except IndexError:
        return np.empty(size)
    return space if space.size >= size else np.empty(size)


def product_basis(
    family: str | Family | Sequence[str | Family] = "legendre",
    n_inputs: int | None = None,
    max_degree: int | None = None,
    *,
    domain: tuple[float, float] | None = None,
    index_set: str = "total",
    max_interactions: int | None = None,
    max_degree_per_input: int | Sequence[int] | None = None,
    indices: ArrayLike | None = None,
) -> ProductBasis:
    """An orthonormal basis of functions of several inputs.

    Parameters
    ----------
    family
        ``"legendre"`` (uniform), ``"hermite"`` (normal), ``"laguerre"`` (exponential), ``"chebyshev"``
        (arcsine), ``"fourier"`` (uniform phase), ``"bernoulli"`` (0 or 1), a `Family` from
        `infocap.basis` (``jacobi(a, b)``, ``binomial(n, p)``, ``density(...)``, ``table(...)``,
        ``samples(...)``), or one of these for each input.
    n_inputs, max_degree
        Number of inputs q and highest degree d; with the total-degree set this gives binom(q + d, d)
        functions.
    domain
        Interval of every input, such as ``(0, 1)``; a family's own interval otherwise.
    index_set
        ``"total"`` (sum of degrees at most d) or ``"hyperbolic"`` (product of degree + 1 at most d + 1).
    max_interactions, max_degree_per_input
        Further cuts: how many inputs a function may join, and the highest degree in each input.
    indices
        An explicit list (terms, inputs) instead; the constant function is added when it is missing.

    Examples
    --------
    >>> basis = product_basis("legendre", n_inputs=2, max_degree=2)
    >>> basis.labels
    ['1', 'P1(u2)', 'P1(u1)', 'P2(u2)', 'P1(u1)·P1(u2)', 'P2(u1)']
    >>> len(product_basis("legendre", n_inputs=5, max_degree=8))
    1287
    """
    families = _families(family, n_inputs)
    if domain is not None:
        families = [one.on(domain) for one in families]
    if indices is not None:
        return ProductBasis(families, explicit_set(families, indices))
    if max_interactions is not None:
        whole_number("max_interactions", max_interactions, 1)
    limits = _per_input(max_degree_per_input, len(families))
    if max_degree is None and limits is not None:
        max_degree = sum(limits)
    return ProductBasis(
        families,
        _index_sets.index_set(
            families,
            whole_number("max_degree", max_degree, 0),
            kind=index_set,
            max_interactions=max_interactions,
            max_degree_per_input=limits,
        ),
    )


def _families(family: str | Family | Sequence[str | Family], n_inputs: int | None) -> list[Family]:
    """One family an input."""
    if n_inputs is not None:
        n_inputs = whole_number("n_inputs", n_inputs, 1)
    if isinstance(family, str | Family):
        given: list[Any] = [family] * (1 if n_inputs is None else n_inputs)
    elif isinstance(family, Sequence):
        given = list(family)
    else:
        given = [_made(family)]
    if not given or (n_inputs is not None and n_inputs != len(given)):
        raise ParameterError(
            f"`n_inputs={n_inputs!r}` but {len(given)} families are given, one for each input."
        )
    return [_named(one) if isinstance(one, str) else _made(one) for one in given]


def _made(family: Any) -> Family:
    if not isinstance(family, Family):
        raise ParameterError(
            f"`family={family!r}` must be a name or a Family; the functions of infocap.basis make one when called, "
            "such as legendre()."
        )
    return family


def _named(name: str) -> Family:
    one_of("family", name, FAMILIES)
    try:
        return FAMILIES[name]()
    except TypeError:
        raise ParameterError(
            f"`family={name!r}` has parameters; pass infocap.basis.{name}(...) instead of the name."
        ) from None


def _per_input(limit: int | Sequence[int] | None, n_inputs: int) -> list[int] | None:
    if limit is None:
        return None
    limits = [limit] * n_inputs if np.ndim(limit) == 0 else list(limit)  # type: ignore[arg-type]
    if len(limits) != n_inputs:
        raise ParameterError(
            f"max_degree_per_input={limit!r} must be one degree, or one for each of {n_inputs} inputs."
        )
    return [whole_number("max_degree_per_input", one, 0) for one in limits]
