"""Products of one-dimensional functions: the functions whose capacities are estimated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import Any, Self

import numpy as np

from .._arrays import (
    array_namespace,
    contiguous,
    is_on_host,
    multiply_function,
    to_library_of,
    to_numpy,
)
from .._formatting import html_for_notebook, name_and_unit
from .._validation import (
    checks_arguments,
    require_numbers,
    require_whole_number,
    require_whole_numbers,
    shown,
)
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers, Limits
from ._evaluate import DEVICE_TILES, HOST_TILES, ProductEvaluator, TileSizes, slices
from ._family import Family
from ._index_sets import MAX_CANDIDATES, explicit_set, indices_of, total_degrees
from ._inputs import find_families
from ._registry import describe, restore

# Nodes of a tensor grid: with more, the nodes of 5 inputs alone would take 2 GB.
MAX_GRID_NODES = 50_000_000


class ProductBasis:
    """Products of one-dimensional functions of several inputs.

    They are orthonormal under the distribution of the inputs.

    Make one with `product_basis`. Calling it gives values: ``basis(u)`` has shape (samples, terms).

    Parameters
    ----------
    families
        The family of each input.
    indices
        Which function of each input every product takes, (terms, inputs), as `product_basis` sorts
        them: the constant first, then by total degree.

    Examples
    --------
    >>> basis = product_basis("legendre", n_inputs=2, max_degree=2)
    >>> basis([[1.0, 0.0]]).round(3)
    array([[ 1.   ,  0.   ,  1.732, -1.118,  0.   ,  2.236]])
    """

    memory: int = 0  # how many earlier inputs the functions depend on
    # In steps, of a phase that is one more input; None where time is no input, or slow.
    period: float | None = None
    of_sequences: bool = False  # whether rows are time steps, as for `delayed_basis`
    # Of the inputs, and of slow time where it counts as one.
    column_families: tuple[Family, ...] = ()
    _further_arguments: tuple[Any, ...] = ()  # of the class, after families and indices

    @checks_arguments
    def __init__(self, families: Sequence[Family], indices: Integers) -> None:
        self.families = tuple(families)
        # `DelayedBasis` has set them before, because slow time has a family of its own.
        self.column_families = self.column_families or self.families
        self.n_inputs = len(self.families)  # q
        if not self.families:
            raise ParameterError("`families` is empty; give one family for each input.")
        self.indices = np.asarray(indices)
        is_table = self.indices.ndim == 2 and self.indices.dtype.kind in "iu"
        if not is_table or not (self.of_sequences or self.indices.shape[1] == self.n_inputs):
            raise ParameterError(
                f"`indices={shown(indices)}` must be whole numbers, (terms, {self.n_inputs})."
            )
        self.indices.setflags(write=False)
        self._evaluators: dict[bool, Any] = {}  # for inputs on the host and for those on a device
        constant_is_first = len(self.indices) > 0 and not self.indices[0].any()
        if not constant_is_first or np.any(np.diff(self.degrees) < 0):
            raise ParameterError(
                "indices must begin with the constant function, sorted by degree; use "
                "product_basis."
            )

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        size = f"{len(self)} {self.family_name} functions of {self.n_inputs} inputs"
        return f"ProductBasis: {size}, degree up to {self.max_degree}"

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

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
        names = []
        for number, family in enumerate(self.families, start=1):
            name, _ = name_and_unit(family.variable or f"u{number}")
            names.append(name)
        return names

    @checks_arguments
    def named(self, names: Sequence[str]) -> ProductBasis:
        """Return the same functions, their inputs named.

        Inputs that have a name keep it. Mere numbers, as tables have them for columns without a
        header, are no names.

        Parameters
        ----------
        names
            One name for each input, perhaps with a unit, such as ``Bias [V]``.
        """
        families = []
        if len(names) != self.n_inputs:
            raise ParameterError(
                f"`names={shown(names)}` must be {self.n_inputs} names, one for each input."
            )
        for family, name in zip(self.families, names, strict=True):
            keeps_its_name = bool(family.variable) or not name or name.isdigit()
            families.append(family if keeps_its_name else family.named(name))
        if all(new is old for new, old in zip(families, self.families, strict=True)):
            return self
        return type(self)(find_families(families, None), self.indices, *self._further_arguments)

    @cached_property
    def labels(self) -> list[str]:
        """Names such as ``P1(u1)·P2(u3)``; the constant is ``1``."""
        return [self.label(term) for term in range(len(self))]

    @checks_arguments
    def label(self, term: int) -> str:
        """Return the name of one function, without making those of all others.

        Parameters
        ----------
        term
            The number of the function.
        """
        factors = []
        for number, index in enumerate(self.indices[term].tolist()):
            if index > 0:
                factors.append(self.families[number].label(index, self.names[number]))
        return "·".join(factors) or "1"

    @cached_property
    def fourth_moments(self) -> Floats:
        """E[y^4] of each function, by Gauss quadrature, exact."""
        product_of_moments = np.ones(len(self))
        for family, column in zip(self.families, self.indices.T, strict=True):
            moments = family.fourth_moments(int(column.max()) + 1)
            product_of_moments *= moments[column]
        return product_of_moments

    def __call__(self, u: ArrayLike) -> Floats:
        """Return the values of all functions, (samples, terms).

        Those of delayed inputs are at the times from `memory` on.
        """
        return self.values(self._checked(u)).T

    def _checked(self, u: ArrayLike) -> Floats:
        """Return inputs as an array with a column for each input."""
        u = require_numbers("u", u, finite=False)
        if self.of_sequences and u.ndim == 1:
            u = u[:, None]
        is_table = u.ndim == 2 and u.shape[1] == len(self.column_families)
        if not is_table or len(u) < self.memory:
            needed = f"(samples, {len(self.column_families)})"
            if self.memory:
                needed += f" with at least {self.memory} samples"
            raise DataError(f"u has shape {u.shape}; the basis needs {needed}.")
        return u

    @checks_arguments
    def positions_in(self, other: ProductBasis) -> Integers:
        """Return the place of each function in another basis, -1 where it is not there.

        Parameters
        ----------
        other
            The other basis, of the same kind and the same inputs.
        """
        width = max(self.indices.shape[1], other.indices.shape[1])
        place_of_key = {key: place for place, key in enumerate(_row_keys(other.indices, width))}
        return np.array([place_of_key.get(key, -1) for key in _row_keys(self.indices, width)])

    @checks_arguments
    def values(self, u: Any, buffer: Any = None) -> Any:
        """Return the values of all functions, (terms, samples), in the array library of the inputs.

        Parameters
        ----------
        u
            Inputs (samples, inputs).
        buffer
            An array (terms, samples) of an earlier call that is overwritten, if it is wide enough:
            fresh memory for each of many pieces costs a tenth of what is computed with them.
        """
        self._refuse_other_inputs(u)
        if not is_on_host(u) and multiply_function(u) is None:
            return self._values_without_writing(u)
        evaluator = self._evaluator(u)
        n_samples = u.shape[0] - self.memory
        if buffer is not None and tuple(getattr(buffer, "shape", ()))[:1] != (len(self),):
            raise ParameterError(f"`buffer={shown(buffer)}` must be what `values` returned.")
        if buffer is None or buffer.shape[1] < n_samples:
            xp = array_namespace(u)
            buffer = xp.empty((len(self), n_samples), dtype=xp.float64, device=u.device)
        order = to_library_of(evaluator.order, u)
        for tile in evaluator.tiles(u):
            buffer[order[tile.functions], tile.samples] = tile.values
        return buffer[:, :n_samples]

    def _values_without_writing(self, u: Any) -> Any:
        """Return the values of all functions in a library that cannot write into arrays (JAX)."""
        xp = array_namespace(u)
        evaluator = self._evaluator(u)
        columns: dict[int, list[Any]] = {}  # the tiles of each range of samples
        for tile in evaluator.tiles(u):
            columns.setdefault(tile.samples.start, []).append(tile.values)
        in_order_of_tiles = xp.concat([xp.concat(column) for column in columns.values()], axis=1)
        return evaluator.row_of.take_from(in_order_of_tiles)

    @checks_arguments
    def value_blocks(self, u: Any) -> Iterator[Any]:
        """Yield the values of all functions in consecutive blocks (terms, samples).

        Parameters
        ----------
        u
            Inputs (samples, inputs), with `memory` rows of history in front.
        """
        self._refuse_other_inputs(u)
        evaluator = self._evaluator(u)
        n_samples = u.shape[0] - self.memory
        for samples in slices(n_samples, evaluator.sizes.samples(len(self))):
            yield self.values(u[samples.start : samples.stop + self.memory, :])

    @checks_arguments
    def project(self, pieces: Iterable[tuple[Any, Any]]) -> Any:
        """Return the sums over all samples of y_l z_k, (terms, columns).

        Parameters
        ----------
        pieces
            Inputs (samples, inputs) and columns z (samples, columns) of consecutive samples. In the
            processor's memory pieces of `tile_samples` samples are fastest, because they stay in
            cache; on a device few large ones.
        """
        # Of the functions from this number on, (columns, functions).
        sums: dict[int, Any] = {}
        # For each shape of a product: fresh memory for each product would cost a tenth of it.
        buffers: dict[tuple[int, int], Floats] = {}
        for piece in self._listed(pieces):
            u, z = self._checked_piece(piece)
            # On the processor and on a device the two fastest ways to multiply.
            z_transposed = z.T if is_on_host(u) else contiguous(z.T)
            for tile in self._evaluator(u).tiles(u):
                number = tile.functions.start
                z_of_tile = z_transposed[:, tile.samples]
                if number not in sums:
                    sums[number] = (z_of_tile @ tile.rows.T)[:, : tile.n_functions]
                elif is_on_host(u):
                    shape = sums[number].shape
                    if shape not in buffers:
                        buffers[shape] = np.empty(shape)
                    sums[number] += np.matmul(z_of_tile, tile.rows.T, out=buffers[shape])
                else:
                    sums[number] += (z_of_tile @ tile.rows.T)[:, : tile.n_functions]
        if not sums:
            raise ParameterError("`pieces` is empty; give inputs and columns.")
        sums_of_tiles = list(sums.values())
        in_order_of_tiles = array_namespace(*sums_of_tiles).concat(sums_of_tiles, axis=1)
        row_of = self._evaluator(in_order_of_tiles).row_of
        if is_on_host(in_order_of_tiles):
            return np.take(in_order_of_tiles, row_of.rows, axis=1).T
        return row_of.take_from(in_order_of_tiles.T)

    @cached_property
    def tile_samples(self) -> int:
        """How many samples to prepare at a time: so many that a tile of them stays in cache."""
        return HOST_TILES.samples(HOST_TILES.height(len(self)))

    @checks_arguments
    def sum_over_samples(self, u: Any, weights: Floats | None = None, power: int = 1) -> Floats:
        """Return the sum over samples of weight times y^power, for every function: (terms,).

        Parameters
        ----------
        u
            Inputs (samples, inputs), with `memory` rows of history in front.
        weights
            The weight of each sample, (samples,); 1 by default.
        power
            The power of the values.
        """
        self._refuse_other_inputs(u)
        n_samples = u.shape[0] - self.memory
        if weights is None:
            weights = np.ones(n_samples)
        elif np.shape(weights) != (n_samples,):
            raise DataError(f"`weights={shown(weights)}` must be ({n_samples},), one per sample.")
        weights = to_library_of(weights, u)
        sums: dict[int, Any] = {}  # of the functions from this number on
        for tile in self._evaluator(u).tiles(u):
            number = tile.functions.start
            sums[number] = sums.get(number, 0.0) + tile.values**power @ weights[tile.samples]
        in_order_of_tiles = np.concatenate(
            [to_numpy(sums_of_tile) for sums_of_tile in sums.values()]
        )
        return in_order_of_tiles[self._evaluator(u).row_of.rows]

    @checks_arguments
    def combine(self, u: ArrayLike, coefficients: Floats) -> Floats:
        """Return the sum of coefficient times function at all samples: (samples,).

        Parameters
        ----------
        u
            Inputs (samples, inputs), with `memory` rows of history in front.
        coefficients
            One for each function, (terms,). With coefficients (terms, columns) the answer is
            (samples, columns).
        """
        u = self._checked(u)
        if np.shape(coefficients)[:1] != (len(self),):
            raise DataError(
                f"`coefficients={shown(coefficients)}` must be ({len(self)},), one per function."
            )
        coefficients = np.asarray(coefficients)
        evaluator = self._evaluator(u)
        combined = np.zeros((len(u) - self.memory, *coefficients.shape[1:]))
        for tile in evaluator.tiles(u):
            combined[tile.samples] += tile.values.T @ coefficients[evaluator.order[tile.functions]]
        return combined

    @checks_arguments
    def quadrature(self, nodes_per_input: int | None = None) -> tuple[Floats, Floats]:
        """Return the nodes (nodes, inputs) and the weights (nodes,) of a tensor Gauss rule.

        Parameters
        ----------
        nodes_per_input
            The number of nodes along each input; by default so many that the rule is exact for
            squares of the functions.
        """
        if nodes_per_input is None:
            nodes_per_input = self.max_degree + 1
        nodes_per_input = require_whole_number("nodes_per_input", nodes_per_input, 1)
        nodes = []
        weights = []
        for family in self.families:
            canonical_nodes, weights_of_input = family.quadrature(nodes_per_input)
            nodes.append(family.natural(canonical_nodes))
            weights.append(weights_of_input)
        size = prod(len(nodes_of_input) for nodes_of_input in nodes)
        if size > MAX_GRID_NODES:
            raise ParameterError(
                f"a tensor grid of {size:,} nodes is too large; use draw(basis, n) instead."
            )
        grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1)
        products_of_weights = reduce(np.multiply.outer, weights)
        return grid.reshape(size, self.n_inputs), products_of_weights.ravel()

    @checks_arguments
    def subset(self, rows: Integers) -> Self:
        """Return the basis of some of the functions.

        Parameters
        ----------
        rows
            Their numbers, increasing from 0, the constant.
        """
        rows = require_whole_numbers("rows", rows, "functions", 0, len(self) - 1)
        if len(rows) == len(self):
            return self
        return type(self)(self.families, self.indices[rows], *self._further_arguments)

    @checks_arguments
    def joined(self, other: ProductBasis) -> Self:
        """Return the basis of all functions of this one and of another, each once, by degree.

        Parameters
        ----------
        other
            A basis of the same kind and the same inputs.
        """
        is_new = other.positions_in(self) < 0
        if not is_new.any():
            return self
        width = max(self.indices.shape[1], other.indices.shape[1])
        rows = np.zeros((len(self) + np.count_nonzero(is_new), width), dtype=self.indices.dtype)
        # Functions of delayed inputs with fewer factors than others end with zeros.
        rows[: len(self), : self.indices.shape[1]] = self.indices
        rows[len(self) :, : other.indices.shape[1]] = other.indices[is_new]
        degrees = np.concatenate([self.degrees, other.degrees[is_new]])
        in_order = rows[np.argsort(degrees, kind="stable")]
        return type(self)(self.families, in_order, *self._further_arguments)

    @checks_arguments
    def extended(self, max_functions: int) -> ProductBasis:
        """Return this basis and further functions of lowest degree.

        Of the last degree, which does not fit as a whole, some are chosen at random, always the
        same ones.

        Parameters
        ----------
        max_functions
            The number of functions in all. There are fewer where the families end, or where the
            next degree is too large to list.
        """
        if max_functions <= len(self):
            return self
        candidates = self.indices[:1]
        n_before = 0
        degree = self.max_degree
        # The error says that there are too many to list, or that a density knows its functions up
        # to some degree only.
        with suppress(ParameterError):
            while n_before < len(candidates) < max_functions:
                degree += 1
                n_before = len(candidates)
                candidates = indices_of(self.families, degree, limit=MAX_CANDIDATES)
        new = candidates[ProductBasis(self.families, candidates).positions_in(self) < 0]
        random_order = np.random.default_rng(0).random(len(new))
        by_degree = np.lexsort((random_order, total_degrees(self.families, new)))
        chosen = new[by_degree[: max_functions - len(self)]]
        rows = np.vstack([self.indices, chosen])
        return ProductBasis(self.families, explicit_set(self.families, rows))

    @property
    def index_columns(self) -> dict[str, Any]:
        """The index of every function as columns of a table, one for each input."""
        return {f"index_u{number}": column for number, column in enumerate(self.indices.T, start=1)}

    def to_dict(self) -> dict[str, Any]:
        """Return the families as plain data; with `indices` it rebuilds the basis."""
        return {"families": [describe(family) for family in self.families]}

    @classmethod
    @checks_arguments
    def from_dict(cls, data: dict[str, Any], indices: ArrayLike) -> ProductBasis:
        """Return the basis that `to_dict` has described.

        Parameters
        ----------
        data
            What `to_dict` returned.
        indices
            The `indices` of the same basis.
        """
        if not isinstance(data.get("families"), list | tuple):
            raise ParameterError(f"`data={shown(data)}` is not what `to_dict` gives.")
        families = [restore(**description) for description in data["families"]]
        return cls(families, np.asarray(indices), **data.get("delayed", {}))

    def __reduce__(self) -> Any:
        """Pickle without the tables that can be made again."""
        return type(self), (self.families, np.array(self.indices), *self._further_arguments)

    def _refuse_other_inputs(self, u: Any) -> None:
        """Refuse what is no array of this basis's inputs, of any library."""
        shape = tuple(getattr(u, "shape", ()))
        n_columns = len(self.column_families)
        is_table = hasattr(u, "dtype") and len(shape) == 2 and shape[1] == n_columns
        if not is_table or shape[0] < self.memory:
            raise DataError(f"`u={shown(u)}` must be an array of inputs, (samples, {n_columns}).")

    def _listed(self, pieces: Any) -> Iterable[Any]:
        """Return what yields pieces; refuse an array, which would yield its rows."""
        if hasattr(pieces, "shape"):
            raise ParameterError(f"`pieces={shown(pieces)}` must be a list of (inputs, columns).")
        return pieces

    def _checked_piece(self, piece: Any) -> tuple[Any, Any]:
        """Return the inputs and the columns of consecutive samples, checked."""
        if not isinstance(piece, list | tuple) or len(piece) != 2:
            raise ParameterError(f"`pieces` has {shown(piece)}; give (inputs, columns).")
        u, z = piece
        self._refuse_other_inputs(u)
        n_samples = u.shape[0] - self.memory
        if len(getattr(z, "shape", ())) != 2 or z.shape[0] != n_samples:
            raise DataError(f"`z={shown(z)}` must be an array of columns, ({n_samples}, columns).")
        return u, z

    def _evaluator(self, u: Any) -> Any:
        """Return how to evaluate the functions where the inputs are; it is made once."""
        on_host = is_on_host(u)
        if on_host not in self._evaluators:
            self._evaluators[on_host] = self._make_evaluator(
                HOST_TILES if on_host else DEVICE_TILES
            )
        return self._evaluators[on_host]

    def _make_evaluator(self, sizes: TileSizes) -> Any:
        return ProductEvaluator(self.families, self.indices, sizes)


def _row_keys(indices: Integers, width: int) -> list[bytes]:
    """Return one key per row of indices, equal for equal rows.

    Rows are filled with zeros up to a width.
    """
    missing = width - indices.shape[1]
    rows = np.pad(indices, ((0, 0), (0, missing)))
    rows = rows.astype(np.int64, "C")
    return rows.view(f"V{8 * width}")[:, 0].tolist()  # each row as one item of 8 bytes per number


@checks_arguments
def product_basis(
    family: str | Family | dict[str, Any] | Sequence[Any] = "legendre",
    n_inputs: int | None = None,
    max_degree: int | None = None,
    *,
    domain: Limits | None = None,
    index_set: str = "total",
    max_interactions: int | None = None,
    indices: ArrayLike | None = None,
) -> ProductBasis:
    """Return an orthonormal basis of functions of several inputs.

    Parameters
    ----------
    family
        ``"legendre"`` (uniform), ``"hermite"`` (normal), ``"laguerre"`` (exponential),
        ``"chebyshev"`` (arcsine), ``"fourier"`` (uniform phase), ``"bernoulli"`` (0 or 1), a
        `Family` from `infocap.basis` (``jacobi(a, b)``, ``binomial(n, p)``, ``density(...)``,
        ``table(...)``, ``samples(...)``), a distribution (``"uniform"``, ``"normal"``), or one of
        these for each input. `infocap.inputs` gives them with names, units and ranges.
    n_inputs
        Number of inputs q.
    max_degree
        Highest degree d; with the total-degree set this gives binom(q + d, d) functions.
    domain
        Interval of every input, such as ``(0, 1)``; a family's own interval otherwise.
    index_set
        ``"total"``: the sum of the degrees is at most d; or ``"hyperbolic"``: the product of
        (degree + 1) over the inputs is at most d + 1.
    max_interactions
        How many inputs a function may join at most.
    indices
        An explicit list (terms, inputs) instead; the constant function is added when it is missing.

    Returns
    -------
    ProductBasis
        The functions, the constant first, then by total degree.

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
    max_degree = require_whole_number("max_degree", max_degree, 0)
    if max_interactions is not None:
        max_interactions = require_whole_number("max_interactions", max_interactions, 1)
    rows = indices_of(families, max_degree, index_set, max_interactions)
    return ProductBasis(families, rows)


@lru_cache(maxsize=8)
def lowest_degrees(basis: ProductBasis, max_functions: int) -> ProductBasis:
    """Return functions of the inputs of a basis, so many of lowest degree."""
    return product_basis(basis.families, max_degree=0).extended(max_functions)
