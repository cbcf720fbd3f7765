"""One-dimensional families: orthonormal functions p_0 = 1, p_1, p_2, ... of one input.

A polynomial family is data: its three-term recurrence and the quantile of its distribution.
Everything else follows from these two. Cosines and sines, and inputs with a few levels, have no
useful recurrence and override `values` and `quadrature`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import ceil
from typing import Any, ClassVar

import numpy as np
import scipy

from .._arrays import array_namespace, to_library_of, to_numpy
from .._kinds import is_number, is_sequence
from .._validation import check_fields, checks_arguments, require_limits, require_numbers, shown
from ..errors import ParameterError
from ..typing import ArrayLike, Floats, Integers, Limits
from ._registry import restore

Recurrence = Callable[[int], tuple[Floats, Floats]]
Quantile = Callable[[Floats], Floats]

# Functions of one input: the quadrature of 9000 functions takes half a minute.
MAX_FUNCTIONS_PER_INPUT = 4096
# Numbers of a table that is computed at a time, 80 MB. A quadrature of degree 4000 at once would
# take 1 GB.
MAX_TABLE_SIZE = 10_000_000
# Functions of one family that are computed: degrees are indices of 16 bits.
MAX_FUNCTIONS = 32_768
# Probabilities at which quantiles are compared with the support, far enough in the tails to notice
# that a distribution is unbounded.
COMPARED_PROBABILITIES = (1e-6, 0.5, 1 - 1e-6)
# By how much a quantile may lie outside the support, relative to the largest one: rounding.
MAX_RELATIVE_EXCESS = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Family:
    """Functions p_0 = 1, p_1, p_2, ... that are orthonormal under the distribution of one input.

    Parameters
    ----------
    name
        The name of the family in files and messages.
    symbol
        What its functions are called in labels: "P" gives ``P2(u3)``.
    recurrence
        A function: count -> (a, b), `count` coefficients of each, of the recurrence
        ``x p_k = b_k p_{k+1} + a_k p_k + b_{k-1} p_{k-1}``.
    canonical_quantile
        The inverse of the cumulative distribution function of the canonical variable x.
    distribution
        What the distribution of the input is called.
    parameters
        Names and values of the arguments that make this family, where a function with arguments
        makes it.
    canonical
        The interval of x that `domain` is mapped onto, so that ``domain=(0, 1)`` shifts and
        stretches any family. For unbounded distributions it is not the support: mean ±
        one standard deviation (Hermite), or origin and scale (Laguerre).
    support
        The smallest and the largest possible x, ``(-np.inf, np.inf)`` for an unbounded input.
    domain
        The interval of the input u that stands for `canonical`.
    largest_degree
        The highest degree, where there is one.
    variable
        What the input is called, perhaps with a unit in brackets; it changes no function.

    Examples
    --------
    >>> from infocap.basis import legendre
    >>> legendre().values(np.array([1.0]), 4).ravel().round(4)  # √(2k + 1)
    array([1.    , 1.7321, 2.2361, 2.6458])
    >>> legendre().fourth_moments(3).round(4)
    array([1.    , 1.8   , 2.1429])
    """

    per_degree: ClassVar[int] = 1  # how many functions there are of each degree above 0
    name: str
    symbol: str
    recurrence: Recurrence = field(repr=False)
    canonical_quantile: Quantile = field(repr=False)
    distribution: str
    parameters: tuple[tuple[str, Any], ...] = ()
    canonical: tuple[float, float] = (-1.0, 1.0)
    support: Limits = (-1.0, 1.0)
    domain: tuple[float, float] = (-1.0, 1.0)
    largest_degree: int | None = None
    variable: str = field(default="", compare=False)
    # Whether `restore(name, parameters, domain)` returns an equal family. The registry sets it.
    restorable: bool = field(default=False, init=False, repr=False)
    # What `values` needs for a number of functions, made once: every block of samples asks for the
    # same number.
    _tables: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a support that the quantiles leave: inputs that are drawn would be refused."""
        check_fields(self)
        require_limits("support", self.support)
        probabilities = np.array(COMPARED_PROBABILITIES)
        x = require_numbers("canonical_quantile(p)", self.canonical_quantile(probabilities))
        low, high = self.support
        slack = MAX_RELATIVE_EXCESS * np.max(np.abs(x))
        if not (low - slack <= np.min(x) and np.max(x) <= high + slack):
            raise ParameterError(
                f"`support={self.support}` of the family {self.name!r} does not hold its "
                f"quantiles, which run from {np.min(x):g} to {np.max(x):g}; give the range of x, "
                "such as support=(-np.inf, np.inf) for an unbounded input."
            )

    def _as_array(self, name: str, values: Any) -> Any:
        """Return numbers as an array; arrays of all libraries stay what they are."""
        is_array = hasattr(values, "__array_namespace__") or hasattr(values, "__dlpack__")
        return values if is_array else require_numbers(name, values, finite=False)

    def _refuse_count(self, count: int) -> None:
        """Refuse a number of functions that nobody can compute."""
        if not 0 < count <= MAX_FUNCTIONS:
            raise ParameterError(f"`count={count}` must be from 1 to {MAX_FUNCTIONS:,}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        """A key that is equal for two families if and only if their functions are equal."""
        if self.restorable:
            return self.name, self.parameters, self.domain
        identity = []
        for compared in fields(self):
            if compared.compare:
                value = getattr(self, compared.name)
                identity.append(value.tobytes() if isinstance(value, np.ndarray) else value)
        return tuple(identity)

    @checks_arguments
    def on(self, domain: Limits) -> Family:
        """Return the same family for inputs that live on another interval.

        Parameters
        ----------
        domain
            The interval, (low, high), that stands for `canonical`.
        """
        if not _is_interval(domain):
            raise ParameterError(
                f"`domain={shown(domain)}` is not an interval; give low < high, both finite. "
                "Different intervals for different inputs: product_basis([legendre().on((0, 1)), "
                "legendre().on((0, 2))], ...)."
            )
        low, high = domain
        return self._changed(domain=(float(low), float(high)))

    @checks_arguments
    def named(self, variable: str) -> Family:
        """Return the same family for an input with a name and perhaps a unit.

        Parameters
        ----------
        variable
            The name, such as ``Bias [V]``.

        Examples
        --------
        >>> from infocap.basis import legendre
        >>> legendre().named("Bias [V]").variable
        'Bias [V]'
        """
        return self._changed(variable=" ".join(str(variable).split()))

    def _changed(self, **changes: Any) -> Family:
        """Return a copy with another domain or variable, which `restore` can make as well."""
        copy = replace(self, **changes)
        object.__setattr__(copy, "restorable", self.restorable)
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the name and parameters, as files do.

        A user's own family is pickled with its functions.
        """
        if not self.restorable:
            return super().__reduce_ex__(protocol)
        return restore, (self.name, dict(self.parameters), self.domain, self.variable)

    @checks_arguments
    def count(self, degree: int) -> int:
        """Return how many functions have at most this degree.

        Parameters
        ----------
        degree
            The degree.
        """
        return self.per_degree * degree + 1

    @checks_arguments
    def degrees(self, count: int) -> Integers:
        """Return the degree of each function.

        Parameters
        ----------
        count
            The number of functions, from the constant on.
        """
        return -(-np.arange(count) // self.per_degree)  # rounded up

    @checks_arguments
    def degrees_up_to(self, limit: int, strict: bool = False) -> Integers:
        """Return the degrees of the functions up to a limit.

        An input with few levels has few degrees, so a basis takes as many as there are.

        Parameters
        ----------
        limit
            The highest degree to return.
        strict
            Whether to refuse a limit above the highest degree of an input with few levels, too.
        """
        if self.largest_degree is not None and limit > self.largest_degree:
            if strict or not isinstance(self, DiscreteFamily):
                raise ParameterError(
                    f"degree {limit} is above {self.largest_degree}, the highest of the "
                    f"{self.name} family ({self.distribution}); lower the degree or, for a "
                    "density, raise its `max_degree`."
                )
            limit = self.largest_degree
        if self.count(limit) > MAX_FUNCTIONS_PER_INPUT:
            raise ParameterError(
                f"degree {limit} of one input gives {self.count(limit):,} {self.name} functions of "
                f"it; the limit is {MAX_FUNCTIONS_PER_INPUT:,}: lower `max_degree`."
            )
        return self.degrees(self.count(limit))

    @checks_arguments
    def label(self, index: int, variable: str) -> str:
        """Return what a function is called in tables and plots, such as ``P2(u3)``.

        Parameters
        ----------
        index
            The number of the function; 0 is the constant.
        variable
            What its input is called.
        """
        return f"{self.symbol}{index}({variable})"

    @checks_arguments
    def standard(self, u: Floats) -> Floats:
        """Return inputs on `domain` as values of the canonical variable.

        Parameters
        ----------
        u
            The inputs, in an array of any shape.
        """
        u = self._as_array("u", u)
        low, high = self.domain
        start, stop = self.canonical
        return start + (u - low) * ((stop - start) / (high - low))

    @checks_arguments
    def natural(self, x: Floats) -> Floats:
        """Return values of the canonical variable as inputs on `domain`.

        Parameters
        ----------
        x
            The values, in an array of any shape.
        """
        x = self._as_array("x", x)
        low, high = self.domain
        start, stop = self.canonical
        return low + (x - start) * ((high - low) / (stop - start))

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest possible input."""
        low, high = self.natural(np.array(self.support))
        return float(low), float(high)

    @checks_arguments
    def quantile(self, p: Floats) -> Floats:
        """Return the inputs at some probabilities.

        Uniform points become inputs of this distribution.

        Parameters
        ----------
        p
            The probabilities, in an array of any shape.
        """
        return self.natural(self.canonical_quantile(require_numbers("p", p, finite=False)))

    @checks_arguments
    def values(self, x: ArrayLike, count: int) -> Any:
        """Return the values of the first functions, (count, \\*x.shape).

        Parameters
        ----------
        x
            Values of the canonical variable, in an array of any shape and of any library; what is
            returned is an array of the same library.
        count
            The number of functions, from the constant on.
        """
        x = self._as_array("x", x)
        xp = array_namespace(x)
        if count not in self._tables:
            self._refuse_count(count)
            a, b = self.recurrence(max(count - 1, 1))
            self._tables[count] = a.tolist(), b.tolist()
        a, b = self._tables[count]
        functions = [xp.ones_like(x)]
        for k in range(count - 1):
            shifted = x - a[k] if a[k] else x
            following = shifted * (1 / b[k]) * functions[k]
            if k > 0:
                following = following - (b[k - 1] / b[k]) * functions[k - 1]
            functions.append(following)
        return xp.stack(functions, axis=0)

    @checks_arguments
    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Return Gauss nodes and weights, exact for polynomials up to degree 2 count - 1.

        Parameters
        ----------
        count
            The number of nodes.
        """
        self._refuse_count(count)
        a, b = self.recurrence(count)
        nodes = scipy.linalg.eigvalsh_tridiagonal(a, b[: count - 1])
        # The weights are the Christoffel numbers 1 / sum_k p_k(x)². These keep their digits where
        # the first components of the eigenvectors, the usual way, do not.
        weights = [
            1 / np.sum(self.values(nodes_of_part, count) ** 2, axis=0)
            for nodes_of_part in _in_parts(nodes, count)
        ]
        return nodes, np.concatenate(weights)

    @checks_arguments
    def fourth_moments(self, count: int) -> Floats:
        """Return E[p_k^4] of the first functions, exactly.

        Parameters
        ----------
        count
            The number of functions, from the constant on.
        """
        highest_degree = int(self.degrees(count)[-1])
        nodes, weights = self.quadrature(2 * highest_degree + 1)  # exact to degree 4 highest + 1
        moments = []
        for nodes_of_part, weights_of_part in zip(
            _in_parts(nodes, count), _in_parts(weights, count), strict=True
        ):
            moments.append(self.values(nodes_of_part, count) ** 4 @ weights_of_part)
        return np.sum(moments, axis=0)


@dataclass(frozen=True, eq=False, kw_only=True)
class FourierFamily(Family):
    """1, √2 cos x, √2 sin x, √2 cos 2x, ... for a phase that is uniform on one period."""

    per_degree = 2  # the degree of a harmonic is its number; cosine and sine share it

    def label(self, index: int, variable: str) -> str:
        """Return what a function is called, such as ``cos2(u1)``."""
        function = "cos" if index % 2 else "sin"
        return f"{function}{(index + 1) // 2}({variable})"

    def values(self, x: ArrayLike, count: int) -> Any:
        """Return the first `count` functions at phases of any shape, (count, \\*x.shape)."""
        xp = array_namespace(x)
        norm = float(np.sqrt(2.0))
        functions = [xp.ones_like(x)]
        for k, harmonic in enumerate(self.degrees(count).tolist()[1:], start=1):
            wave = xp.cos if k % 2 else xp.sin
            functions.append(norm * wave(float(harmonic) * x))
        return xp.stack(functions, axis=0)

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Return equal steps and equal weights, exact for harmonics up to 2 count - 1."""
        n_nodes = 2 * count
        nodes = 2 * np.pi * np.arange(n_nodes) / n_nodes
        return nodes, np.full(n_nodes, 0.5 / count)


@dataclass(frozen=True, eq=False, kw_only=True)
class DiscreteFamily(Family):
    """Polynomials for an input that takes n levels: there are n functions, of degrees 0 to n - 1.

    A recurrence loses its digits at isolated levels, and where the degree comes near the number of
    levels. So the functions are orthogonalised on the levels themselves, once, and every input
    takes its level's values. `infocap.basis.table` makes one; besides the parameters of a `Family`
    it has these:

    Parameters
    ----------
    levels
        The values of the canonical variable x that are possible, ascending.
    mass
        The probability of each level.

    Examples
    --------
    >>> from infocap.basis import table
    >>> three = table([0, 1, 5])
    >>> three.largest_degree, three.levels.tolist()
    (2, [0.0, 1.0, 5.0])
    """

    levels: Floats = field(repr=False)  # values of the canonical variable, ascending
    mass: Floats = field(repr=False)  # the probability of each level

    @checks_arguments
    def values(self, x: ArrayLike, count: int) -> Any:
        """Return the first `count` functions at points of any shape, (count, \\*x.shape).

        A point takes the value of the level next to it.
        """
        x = self._as_array("x", x)
        if count not in self._tables:
            self._refuse_count(count)
            self._tables[count] = _orthogonal_polynomials(self.levels, self.mass, count)
        xp = array_namespace(x)
        table = to_library_of(self._tables[count], x)
        level_of_point = to_library_of(self.nearest(to_numpy(x).ravel()), x)
        return xp.reshape(xp.take(table, level_of_point, axis=1), (count, *x.shape))

    @checks_arguments
    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Return the levels and their probabilities, which are exact for every degree."""
        return self.levels, self.mass

    @checks_arguments
    def nearest(self, x: Floats) -> Integers:
        """Return the number of the level next to each point.

        Parameters
        ----------
        x
            Values of the canonical variable.
        """
        midpoints = (self.levels[1:] + self.levels[:-1]) / 2
        return np.searchsorted(midpoints, require_numbers("x", x, finite=False))


def no_recurrence(count: int) -> tuple[Floats, Floats]:
    """Stand in for the recurrence of a family whose values come from elsewhere."""
    raise NotImplementedError("This family has no three-term recurrence.")


def discrete_family(
    levels: Floats, mass: Floats, *, canonical: tuple[float, float], **attributes: Any
) -> DiscreteFamily:
    """Return a family on ascending levels of known probability.

    `canonical` is the interval of levels that corresponds to `domain`; `attributes` are `name`,
    `symbol`, `distribution` and `parameters` of the family.
    """
    cumulative = np.cumsum(mass)[:-1]

    def quantile(p: Floats) -> Floats:
        return levels[np.searchsorted(cumulative, p, side="right")]

    only_level = float(levels[0])
    return DiscreteFamily(
        **attributes,
        recurrence=no_recurrence,
        canonical_quantile=quantile,
        canonical=canonical,
        support=canonical if len(levels) > 1 else (only_level, only_level),
        domain=canonical,
        largest_degree=len(levels) - 1,
        levels=levels,
        mass=mass,
    )


def _orthogonal_polynomials(levels: Floats, mass: Floats, count: int) -> Floats:
    """Return the first orthonormal polynomials on the levels of an input: (count, levels).

    Each is x times the one before, made orthogonal to all before it (Arnoldi's process). Functions
    are kept times the root of the probability, so that their products are plain sums.
    """
    x = levels / (np.max(np.abs(levels)) or 1.0)
    weighted = np.empty((count, len(x)))
    weighted[0] = np.sqrt(mass)
    for k in range(1, count):
        following = x * weighted[k - 1]
        for _ in range(2):  # twice is enough to be orthonormal to rounding errors
            following -= weighted[:k].T @ (weighted[:k] @ following)
        weighted[k] = following / np.linalg.norm(following)
    return weighted / np.sqrt(mass)


def _in_parts(values: Floats, count: int) -> list[Floats]:
    """Cut an array into parts for which a table of `count` functions is not too large."""
    n_parts = ceil(count * len(values) / MAX_TABLE_SIZE)
    return np.array_split(values, n_parts)


def _is_interval(domain: Any) -> bool:
    """Return whether these are two finite numbers, the lower one first."""
    if not is_sequence(domain) or len(domain) != 2:
        return False
    low, high = domain
    return is_number(low) and is_number(high) and bool(low < high)
