"""The family of an input whose distribution is that of its recorded values.

A law that nobody declared is known from its samples alone. What its polynomials need of it is a
Gauss rule: so few nodes and weights that files can hold them, and still exact for the polynomials
of the degrees that are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from .._validation import checks_arguments, require_numbers
from ..errors import DataError, ParameterError
from ..typing import ArrayLike, Floats, Integers
from ._delayed import DelayedBasis, sort_terms
from ._family import Family
from ._index_sets import explicit_set
from ._product import ProductBasis
from ._registry import FAMILIES, built_in
from ._shifts import FUNCTION, INPUT

# Nodes of the Gauss rule. It is exact up to degree 127, that of E[y^4] for degree 31.
N_NODES = 64
MAX_DEGREE = (2 * N_NODES - 1) // 4
# Size of a polynomial on the recorded values, relative to the largest one before, below which it is
# zero: an input with v values has v - 1 degrees.
SMALLEST_POLYNOMIAL = 1e-7


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedFamily(Family):
    """Polynomials that are orthonormal under the recorded values of an input.

    Before these are known, as in ``delayed_basis("recorded", ...)``, it stands for the family that
    `estimate` makes of the inputs that are passed to it.

    Parameters
    ----------
    nodes, mass
        A Gauss rule of the recorded values in standard deviations from their mean; empty as long as
        they are not known.

    Examples
    --------
    >>> recorded_family([1.0, 1.0, 4.0]).largest_degree
    1
    """

    nodes: Floats = field(repr=False)
    mass: Floats = field(repr=False)

    @property
    def is_known(self) -> bool:
        """Whether the recorded values are known."""
        return len(self.nodes) > 0

    def degrees_up_to(self, limit: int, strict: bool = False) -> Integers:
        """Return the degrees of the functions up to a limit; few values have few degrees."""
        if self.largest_degree is not None and not strict:
            limit = min(limit, self.largest_degree)
        return super().degrees_up_to(limit, strict)

    def quantile(self, p: Floats) -> Floats:
        """Return the inputs at some probabilities."""
        self._refuse_unknown()
        return super().quantile(p)

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Return the Gauss rule; the number of nodes does not depend on `count`."""
        self._refuse_unknown()
        return self.nodes, self.mass

    def values(self, x: Floats, count: int) -> Floats:
        """Return the first `count` functions at points of any shape, (count, \\*x.shape)."""
        self._refuse_unknown()
        return super().values(x, count)

    def _refuse_unknown(self) -> None:
        if not self.is_known:
            raise ParameterError(
                "the family 'recorded' takes its distribution from the inputs that `estimate` "
                "gets; to draw inputs, name their distribution, such as family='legendre', or use "
                "basis.samples(recorded inputs)."
            )


@built_in
@checks_arguments
def recorded(nodes: Sequence[float] = (), mass: Sequence[float] = ()) -> Family:
    """Return the family of an input with the distribution that its recorded values have.

    Without arguments it stands for the inputs that `estimate` gets. Files hold the Gauss rule
    of the values.

    Parameters
    ----------
    nodes, mass
        The Gauss rule of the recorded values, in standard deviations from their mean.

    Examples
    --------
    >>> infocap.delayed_basis("recorded", max_delay={1: 1}).labels
    ['1', 'P1(u[t])', 'P1(u[t-1])']
    """
    points = require_numbers("nodes", nodes, "nodes")
    weights = require_numbers("mass", mass, "nodes")
    if len(points) != len(weights):
        raise DataError(f"there are {len(points)} nodes and {len(weights)} masses; give as many.")
    cumulative = np.cumsum(weights) - weights / 2

    def quantile(p: Floats) -> Floats:
        if not len(points):
            return np.zeros_like(p)
        return np.interp(p, cumulative, points)

    def recurrence(count: int) -> tuple[Floats, Floats]:
        diagonal, off_diagonal = _recurrence(points, weights, len(points))
        return diagonal[:count], off_diagonal[:count]

    largest_degree = None
    if len(points):
        largest_degree = MAX_DEGREE if len(points) == N_NODES else len(points) - 1
    return RecordedFamily(
        name="recorded",
        symbol="P",
        recurrence=recurrence,
        canonical_quantile=quantile,
        distribution="recorded values",
        parameters=(("nodes", tuple(points.tolist())), ("mass", tuple(weights.tolist()))),
        support=(-np.inf, np.inf),
        largest_degree=largest_degree,
        nodes=points,
        mass=weights,
    )


FAMILIES["recorded"] = recorded


def recorded_family(values: ArrayLike) -> Family:
    """Return the family whose functions are orthonormal on these values; NaN are left out.

    Parameters
    ----------
    values
        The recorded values of one input.
    """
    numbers = np.asarray(values, dtype=float).ravel()
    levels, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if not len(levels):
        levels = np.zeros(1)
        counts = np.ones(1, dtype=int)
    weights = counts / counts.sum()
    mean = float(levels @ weights)
    deviation = float(np.sqrt((levels - mean) ** 2 @ weights)) or 1.0
    points = (levels - mean) / deviation
    diagonal, off_diagonal = _recurrence(points, weights, N_NODES)
    nodes, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal[: len(diagonal) - 1])
    family = recorded(nodes.tolist(), (vectors[0] ** 2).tolist())
    return family.on((mean - deviation, mean + deviation))


def _recurrence(points: Floats, weights: Floats, count: int) -> tuple[Floats, Floats]:
    """Return up to `count` recurrence coefficients a, and b, of a law on points (Lanczos).

    There are fewer where there are fewer points. Polynomials are kept times the roots of the
    weights, and made orthogonal to all before them twice, so that rounding does not grow.
    """
    diagonal = []
    off_diagonal: list[float] = []
    polynomials = np.empty((count, len(points)))
    following = np.sqrt(weights)
    for k in range(count):
        polynomials[k] = following / np.linalg.norm(following)
        times_x = points * polynomials[k]
        diagonal.append(float(polynomials[k] @ times_x))
        following = times_x
        for _ in range(2):
            following = following - polynomials[: k + 1].T @ (polynomials[: k + 1] @ following)
        size = float(np.linalg.norm(following))
        if size <= SMALLEST_POLYNOMIAL * max([1.0, *off_diagonal]):
            break
        off_diagonal.append(size)
    return np.array(diagonal), np.array(off_diagonal)


def with_families(basis: ProductBasis, families: Sequence[Family]) -> ProductBasis:
    """Return the functions of the same degrees, inputs and delays with other families.

    Functions of degrees that a family does not have are left out. Cosine and sine of a phase have
    the same degree, so both become one polynomial.

    Parameters
    ----------
    basis
        The functions.
    families
        A family of polynomials for each input.
    """
    named = []
    for family, old in zip(families, basis.families, strict=True):
        named.append(family.named(old.variable) if old.variable else family)
    if isinstance(basis, DelayedBasis):
        factors = basis.factors.astype(int)
        for number, old in enumerate(basis.families):
            is_of_input = factors[:, :, INPUT] == number
            functions = factors[:, :, FUNCTION]
            functions[is_of_input] = _degrees_of(old, functions[is_of_input])
        exists = np.ones(len(factors), dtype=bool)
        for number, family in enumerate(named):
            is_of_input = factors[:, :, INPUT] == number
            exists &= ~np.any(is_of_input & _is_above(family, factors[:, :, FUNCTION]), axis=1)
        rows = sort_terms(named, factors[exists].astype(np.int16))
        return DelayedBasis(named, rows, memory=basis.memory)
    indices = np.array(basis.indices, dtype=int)
    exists = np.ones(len(indices), dtype=bool)
    for number, (family, old) in enumerate(zip(named, basis.families, strict=True)):
        indices[:, number] = _degrees_of(old, indices[:, number])
        exists &= ~_is_above(family, indices[:, number])
    return ProductBasis(named, explicit_set(named, indices[exists]))


def _degrees_of(family: Family, functions: Integers) -> Integers:
    """Return the degrees of functions of a family, given by their numbers."""
    return family.degrees(int(functions.max(initial=0)) + 1)[functions]


def _is_above(family: Family, degrees: Integers) -> Integers:
    """Return which degrees a family does not have."""
    if family.largest_degree is None:
        return np.zeros(degrees.shape, dtype=bool)
    return degrees > family.largest_degree
