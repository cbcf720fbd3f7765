"""Products of one-dimensional functions: the targets whose capacities are measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, reduce
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any, Self, cast

import numpy as np

from .._arrays import array_namespace, as_like, contiguous, multiplier, on_host, to_numpy
from .._formatting import name_and_unit
from .._validation import whole_number
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from ._classical import find_families
from ._family import Family, describe, restore
from ._index_sets import MOST_LISTED, explicit_set, indices_of, total_degrees
from ._plan import DEVICE, HOST, Plan, Sizes


class ProductBasis:
    """Functions of several inputs, each a product of one-dimensional ones, orthonormal under their measure.

    Make one with `product_basis`. Calling it gives values: ``basis(u)`` has shape (samples, terms).

    >>> basis = product_basis("legendre", n_inputs=2, max_degree=2)
    >>> basis([[1.0, 0.0]]).round(3)
    array([[ 1.   ,  0.   ,  1.732, -1.118,  0.   ,  2.236]])
    """

    memory: int = 0  # how many earlier inputs the functions depend on
    of_sequences: bool = False  # whether rows are time steps, as for `delayed_basis`
    columns: tuple[Family, ...] = ()  # of the inputs, and of slow time where it counts as one
    _further: tuple[Any, ...] = ()  # what makes this basis, beside families and indices

    def __init__(self, families: Sequence[Family], indices: Integers) -> None:
        self.families = tuple(families)
        self.columns = self.columns or self.families
        self.n_inputs = len(self.families)  # q
        self.indices = np.asarray(indices)
        self.indices.setflags(write=False)
        self._plans: dict[bool, Any] = {}
        if len(self.indices) and (self.indices[0].any() or np.any(np.diff(self.degrees) < 0)):
            raise ParameterError(
                "indices must begin with the constant function, sorted by degree; use product_basis."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: HTML from the report, which is loaded by name."""
        return str(import_module("infocap.lab.report").notebook(self))

    def __repr__(self) -> str:
        size = f"{len(self)} {self.family_name} functions of {self.n_inputs} inputs"
        return f"ProductBasis: {size}, degree up to {self.max_degree}"

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
    def names(self) -> list[str]:
        """What each input is called, without its unit; u1, u2, ... where nobody has named it."""
        return [
            name_and_unit(family.variable or f"u{k + 1}")[0]
            for k, family in enumerate(self.families)
        ]

    def named(self, names: Sequence[str]) -> ProductBasis:
        """The same functions, their inputs named; those that have a name keep it, and mere numbers are no names."""
        pairs = list(zip(self.families, names, strict=True))
        known = [one if one.variable or name.isdigit() else one.named(name) for one, name in pairs]
        if [one.variable for one in known] == [one.variable for one in self.families]:
            return self
        return type(self)(find_families(known, None), self.indices, *self._further)

    @cached_property
    def labels(self) -> list[str]:
        """Names such as ``P1(u1)·P2(u3)``; the constant is ``1``."""
        return [self.label(term) for term in range(len(self))]

    def label(self, term: int) -> str:
        """The name of one function, without making all the others'."""
        row = self.indices[term].tolist()
        factors = [
            self.families[k].label(index, self.names[k]) for k, index in enumerate(row) if index
        ]
        return "·".join(factors) or "1"

    @cached_property
    def fourth_moments(self) -> Floats:
        """E[y^4] of each function, by Gauss quadrature, exact."""
        out = np.ones(len(self))
        for family, column in zip(self.families, self.indices.T, strict=True):
            out *= family.fourth_moments(int(column.max()) + 1)[column]
        return out

    def __call__(self, u: ArrayLike) -> Floats:
        """Values of all functions: (samples, terms); of delayed inputs at the times from `memory` on."""
        return self.values(self._checked(u)).T

    def _checked(self, u: ArrayLike) -> Floats:
        """Inputs as an array with a column for each input."""
        u = np.asarray(u, dtype=float)
        u = u[:, None] if self.of_sequences and u.ndim == 1 else u
        if u.ndim != 2 or u.shape[1] != len(self.columns) or len(u) < self.memory:
            more = f" with more than {self.memory} samples" if self.memory else ""
            raise DataError(
                f"u has shape {u.shape}; the basis wants (samples, {len(self.columns)}){more}."
            )
        return u

    def places(self, other: ProductBasis) -> Integers:
        """The place of each function of this basis among those of another, -1 where it is not there."""
        wide = max(self.indices.shape[1], other.indices.shape[1])
        here, there = (
            np.pad(one.indices, ((0, 0), (0, wide - one.indices.shape[1]))) for one in (self, other)
        )
        ours, theirs = (
            rows.astype(np.int64, "C").view(f"V{8 * wide}")[:, 0].tolist() for rows in (here, there)
        )
        known = {row: place for place, row in enumerate(theirs)}
        return np.array([known.get(row, -1) for row in ours])

    def values(self, u: Any, space: Any = None) -> Any:
        """Values of all functions, (terms, samples), in the array library of the inputs (samples, inputs).

        They overwrite `space` where that is given and wide enough, because fresh memory for each of many pieces costs a
        tenth of what is computed with them.
        """
        plan, xp, n = self._plan(u), array_namespace(u), u.shape[0] - self.memory
        if not on_host(u) and multiplier(u) is None:  # a library that cannot write into arrays
            columns: dict[int, list[Any]] = {}
            for rows, samples, values in plan.tiles(u):
                columns.setdefault(samples.start, []).append(values[: rows.stop - rows.start, :])
            return plan.row_of.of(xp.concat([xp.concat(one) for one in columns.values()], axis=1))
        if space is None or space.shape[1] < n:
            space = xp.empty((len(self), n), dtype=xp.float64, device=u.device)
        order = as_like(plan.order, u)
        for rows, samples, values in plan.tiles(u):
            space[order[rows], samples] = values[: rows.stop - rows.start, :]
        return space[:, :n]

    def blocks(self, u: Any) -> Iterator[Any]:
        """Values of all functions in consecutive blocks of (terms, samples), in the array library of the inputs."""
        n_samples = u.shape[0] - self.memory
        for start, stop in pairwise(
            [*range(0, n_samples, self._plan(u).sizes.samples(len(self))), n_samples]
        ):
            yield self.values(u[start : stop + self.memory, :])

    def project(self, pieces: Iterable[tuple[Any, Any]]) -> Any:
        """The sums over all samples of y_l z_k: (terms, columns), from pieces of inputs and of columns z.

        Each piece holds consecutive samples: inputs (samples, inputs) and z (samples, columns). In the processor's
        memory pieces of `tile_samples` samples are fastest, because they stay in cache; on a device few large ones.
        """
        parts: dict[int, Any] = {}
        spare: dict[
            int, Floats
        ] = {}  # where products are written: fresh memory for each costs a tenth of the product
        for u, z in pieces:
            wide = z.T if on_host(u) else contiguous(z.T)  # the fastest way to multiply there
            for rows, samples, y in self._plan(u).tiles(u):
                count = rows.stop - rows.start
                if rows.start not in parts:
                    parts[rows.start] = (wide[:, samples] @ y.T)[:, :count]
                elif on_host(u):
                    room = spare.setdefault(count, np.empty((wide.shape[0], count)))
                    parts[rows.start] += np.matmul(wide[:, samples], y.T, out=room)
                else:
                    parts[rows.start] += (wide[:, samples] @ y.T)[:, :count]
        whole = array_namespace(*parts.values()).concat(list(parts.values()), axis=1)
        row_of = self._plan(whole).row_of
        return np.take(whole, row_of.rows, axis=1).T if on_host(whole) else row_of.of(whole.T)

    @cached_property
    def tile_samples(self) -> int:
        """How many samples to prepare at a time, so that they are still in cache when they are multiplied."""
        return HOST.samples(HOST.height(len(self)))

    def sum_over(self, u: Any, weights: Floats | None = None, power: int = 1) -> Floats:
        """The sum over samples of weight times y^power, for every function: (terms,)."""
        parts: dict[int, Any] = {}
        weights = as_like(np.ones(u.shape[0] - self.memory) if weights is None else weights, u)
        for rows, samples, y in self._plan(u).tiles(u):
            parts[rows.start] = (
                parts.get(rows.start, 0.0)
                + y[: rows.stop - rows.start, :] ** power @ weights[samples]
            )
        total = np.concatenate([to_numpy(one) for one in parts.values()])
        return total[self._plan(u).row_of.rows]

    def combine(self, u: ArrayLike, coefficients: Floats) -> Floats:
        """The function with these coefficients (terms,) at all samples, or several with (terms, columns)."""
        u = self._checked(u)
        out = np.zeros((len(u) - self.memory, *coefficients.shape[1:]))
        for rows, samples, y in self._plan(u).tiles(u):
            out[samples] += y.T @ coefficients[self._plan(u).order[rows]]
        return out

    def quadrature(self, nodes_per_input: int | None = None) -> tuple[Floats, Floats]:
        """Tensor Gauss nodes (nodes, inputs) and weights; by default exact for squares of the functions."""
        count = self.max_degree + 1 if nodes_per_input is None else nodes_per_input
        nodes, weights = zip(*(family.quadrature(count) for family in self.families), strict=True)
        size = prod(map(len, nodes))
        if size > 50_000_000:
            raise ParameterError(
                f"a tensor grid of {size:,} nodes is too large; use draw(basis, n) instead."
            )
        natural = [family.natural(own) for family, own in zip(self.families, nodes, strict=True)]
        grid = np.stack(np.meshgrid(*natural, indexing="ij"), axis=-1).reshape(size, self.n_inputs)
        return grid, reduce(np.multiply.outer, weights).ravel()

    def subset(self, rows: Integers) -> Self:
        """Only these functions, given by increasing numbers; the constant must be the first of them."""
        return (
            self
            if len(rows) == len(self)
            else type(self)(self.families, self.indices[rows], *self._further)
        )

    def extended(self, most: int, seed: int = 0) -> ProductBasis:
        """This basis and further functions, at most `most` in all, those of lowest degree.

        Of the last degree, which does not fit as a whole, some are chosen at random. There are fewer where the families
        end, or where the next degree is too large to list.
        """
        if most <= len(self):
            return self
        rows, before, degree = self.indices[:1], 0, self.max_degree
        with suppress(
            ParameterError
        ):  # too many to list, or a density that knows its functions up to some degree only
            while before < len(rows) < most:
                degree, before = degree + 1, len(rows)
                rows = indices_of(self.families, degree, limit=MOST_LISTED)
        new = rows[ProductBasis(self.families, rows).places(self) < 0]
        chance = np.random.default_rng(seed).random(len(new))
        order = np.lexsort((chance, total_degrees(self.families, new)))
        chosen = np.vstack([self.indices, new[order[: most - len(self)]]])
        return ProductBasis(self.families, explicit_set(self.families, chosen))

    @property
    def index_columns(self) -> dict[str, Any]:
        """The index of every function as columns of a table, one for each input."""
        return {f"index_u{k + 1}": column for k, column in enumerate(self.indices.T)}

    def to_dict(self) -> dict[str, Any]:
        """The families as plain data; with `indices` it rebuilds the basis."""
        return {"families": [describe(family) for family in self.families]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], indices: ArrayLike) -> ProductBasis:
        """The inverse of `to_dict`."""
        families = [restore(**entry) for entry in data["families"]]
        return cls(families, np.asarray(indices), **data.get("delayed", {}))

    def __reduce__(self) -> Any:
        """Pickled without the tables that can be made again."""
        return type(self), (self.families, np.array(self.indices), *self._further)

    def _plan(self, u: Any) -> Any:
        """How to evaluate the functions where the inputs are, made once."""
        here = on_host(u)
        if here not in self._plans:
            self._plans[here] = self._make_plan(HOST if here else DEVICE)
        return self._plans[here]

    def _make_plan(self, sizes: Sizes) -> Any:
        return Plan(self.families, self.indices, sizes)


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
        ``"legendre"`` (uniform), ``"hermite"`` (normal), ``"laguerre"`` (exponential), ``"chebyshev"`` (arcsine),
        ``"fourier"`` (uniform phase), ``"bernoulli"`` (0 or 1), a `Family` from `infocap.basis` (``jacobi(a, b)``,
        ``binomial(n, p)``, ``density(...)``, ``table(...)``, ``samples(...)``), a distribution (``"uniform"``,
        ``"normal"``), or one of these for each input. `infocap.inputs` gives them with names, units and ranges.
    n_inputs, max_degree
        Number of inputs q and highest degree d; with the total-degree set this gives binom(q + d, d) functions.
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
    families = find_families(family, n_inputs, domain)
    if indices is not None:
        return ProductBasis(families, explicit_set(families, indices))
    if max_interactions is not None:
        whole_number("max_interactions", max_interactions, 1)
    limits, given = None, cast(Any, max_degree_per_input)
    if given is not None:
        given = [given] * len(families) if np.ndim(given) == 0 else given
        if len(given) != len(families):
            raise ParameterError(
                f"`max_degree_per_input={given!r}` must have one for each of {len(families)} inputs."
            )
        limits = [whole_number("max_degree_per_input", limit, 0) for limit in given]
        max_degree = sum(limits) if max_degree is None else max_degree
    max_degree = whole_number("max_degree", max_degree, 0)
    return ProductBasis(
        families, indices_of(families, max_degree, index_set, max_interactions, limits)
    )


@lru_cache(maxsize=8)
def lowest(basis: ProductBasis, most: int) -> ProductBasis:
    """So many functions of lowest degree of the inputs of a basis."""
    return product_basis(basis.families, max_degree=0).extended(most)
