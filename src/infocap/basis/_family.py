"""One-dimensional orthonormal families, each one a small piece of data about an input measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from numbers import Real
from typing import Any, ClassVar, ParamSpec

import numpy as np
import scipy

from .._arrays import array_namespace, as_like, to_numpy
from .._validation import one_of
from ..errors import ParameterError
from ..typing import Floats, Integers

Recurrence = Callable[[int], tuple[Floats, Floats]]
Quantile = Callable[[Floats], Floats]
P = ParamSpec("P")
MOST_OF_ONE_INPUT = 4096  # functions: the quadrature of 9000 takes half a minute
MOST_VALUES = 10_000_000  # numbers of a table made at a time, 80 MB: a quadrature of degree 4000 would else take 1 GB


@dataclass(frozen=True, eq=False)
class Family:
    """Functions p_0 = 1, p_1, p_2, ... that are orthonormal under the distribution of one input.

    A polynomial family is its three-term recurrence, ``x p_k = b_k p_{k+1} + a_k p_k + b_{k-1} p_{k-1}``, and the
    quantile of its measure; values, samples and Gauss quadrature follow. `canonical` is the interval that `domain` is
    mapped onto, so that ``domain=(0, 1)`` shifts and stretches any family. For the unbounded measures it is not the
    support but a ruler: mean ± one standard deviation (Hermite), origin and scale (Laguerre).

    >>> from infocap.basis import legendre
    >>> legendre().values(np.array([1.0]), 4).ravel().round(4)  # √(2k + 1)
    array([1.    , 1.7321, 2.2361, 2.6458])
    >>> legendre().fourth_moments(3).round(4)
    array([1.    , 1.8   , 2.1429])
    """

    per_degree: ClassVar[int] = 1  # how many functions there are of each degree above 0
    name: str
    symbol: str
    recurrence: Recurrence = field(repr=False)  # count -> (a, b), `count` of each
    canonical_quantile: Quantile = field(repr=False)
    distribution: str
    parameters: tuple[tuple[str, Any], ...] = ()
    canonical: tuple[float, float] = (-1.0, 1.0)
    support: tuple[float, float] = (-1.0, 1.0)  # of the canonical variable
    domain: tuple[float, float] = (-1.0, 1.0)
    largest_degree: int | None = None
    # What the input is called, perhaps with a unit in brackets; it changes no function.
    variable: str = field(default="", compare=False)
    # Whether a function known by that name made it, so that name and parameters tell all about it.
    by_name: bool = field(default=False, init=False, repr=False)
    # What values of so many functions are made from: every block of samples needs it.
    _tables: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        """What two families share if and only if they have the same functions."""
        if self.by_name:
            return self.name, self.parameters, self.domain
        own = (getattr(self, one.name) for one in fields(self) if one.compare)
        return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in own)

    def on(self, domain: tuple[float, float]) -> Family:
        """The same family for inputs that live on another interval."""
        edges = tuple(domain) if isinstance(domain, Sequence | np.ndarray) else ()
        finite = len(edges) == 2 and all(
            isinstance(edge, Real) and np.isfinite(edge) for edge in edges
        )
        if not finite or not edges[0] < edges[1]:
            raise ParameterError(
                f"`domain={domain!r}` is not an interval; give low < high, both finite. Different intervals for "
                "different inputs: product_basis([legendre().on((0, 1)), legendre().on((0, 2))], ...)."
            )
        return self._changed(domain=(float(edges[0]), float(edges[1])))

    def named(self, variable: str) -> Family:
        """The same family for an input with a name and perhaps a unit: ``legendre().named("Bias [V]")``."""
        return self._changed(variable=" ".join(str(variable).split()))

    def _changed(self, **changes: Any) -> Family:
        out = replace(self, **changes)
        object.__setattr__(out, "by_name", self.by_name)
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as its name and parameters, like in files; a user's own family with its functions."""
        if not self.by_name:
            return super().__reduce_ex__(protocol)
        return restore, (self.name, dict(self.parameters), self.domain, self.variable)

    def count(self, degree: int) -> int:
        """How many functions have at most this degree."""
        return self.per_degree * degree + 1

    def degrees(self, count: int) -> Integers:
        """The degree of each of the first `count` functions."""
        return -(-np.arange(count) // self.per_degree)

    def degrees_up_to(self, limit: int, strict: bool = False) -> Integers:
        """Degrees of the functions that one input may use; a measure on few levels has few, unless `strict`."""
        if self.largest_degree is not None and limit > self.largest_degree:
            if strict or not isinstance(self, DiscreteFamily):
                raise ParameterError(
                    f"degree {limit} is above {self.largest_degree}, the highest of the {self.name} family "
                    f"({self.distribution}); lower the degree or, for a density, raise its `max_degree`."
                )
            limit = self.largest_degree
        if self.count(limit) > MOST_OF_ONE_INPUT:
            raise ParameterError(
                f"degree {limit} of one input gives {self.count(limit):,} {self.name} functions of it; the limit is "
                f"{MOST_OF_ONE_INPUT:,}: lower `max_degree`."
            )
        return self.degrees(self.count(limit))

    def label(self, index: int, variable: str) -> str:
        """What the function is called in tables and plots, such as ``P2(u3)``."""
        return f"{self.symbol}{index}({variable})"

    def standard(self, u: Floats) -> Floats:
        """Inputs on `domain`, as values of the canonical variable."""
        (low, high), (start, stop) = self.domain, self.canonical
        return start + (u - low) * ((stop - start) / (high - low))

    def natural(self, x: Floats) -> Floats:
        """Values of the canonical variable, as inputs on `domain`."""
        (low, high), (start, stop) = self.domain, self.canonical
        return low + (x - start) * ((high - low) / (stop - start))

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest possible input."""
        low, high = self.natural(np.array(self.support))
        return float(low), float(high)

    def quantile(self, p: Floats) -> Floats:
        """Inputs at probabilities `p`: uniform points go in, inputs of this distribution come out."""
        return self.natural(self.canonical_quantile(np.asarray(p, dtype=float)))

    def values(self, x: Any, count: int) -> Any:
        """The first `count` functions at canonical points of any shape, in any array library: (count, \\*x.shape)."""
        xp = array_namespace(x)
        out = [xp.ones_like(x)]
        if count not in self._tables:
            self._tables[count] = [column.tolist() for column in self.recurrence(max(count - 1, 1))]
        a, b = self._tables[count]
        for k in range(count - 1):
            new = (x - a[k] if a[k] else x) * (1 / b[k]) * out[k]
            out.append(new - (b[k - 1] / b[k]) * out[k - 1] if k else new)
        return xp.stack(out, axis=0)

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Gauss nodes and weights: exact for polynomials up to degree 2 count - 1."""
        a, b = self.recurrence(count)
        nodes = scipy.linalg.eigvalsh_tridiagonal(a, b[: count - 1])
        # Christoffel numbers keep their digits where the eigenvectors' first components do not.
        parts = np.array_split(nodes, -(-count * len(nodes) // MOST_VALUES))
        return nodes, np.concatenate(
            [1 / np.sum(self.values(part, count) ** 2, axis=0) for part in parts]
        )

    def fourth_moments(self, count: int) -> Floats:
        """E[p_k^4] of the first `count` functions, exactly."""
        highest = int(self.degrees(count)[-1])
        rule = self.quadrature(2 * highest + 1)  # exact up to degree 4 highest + 1
        parts = zip(
            *(np.array_split(one, -(-count * len(one) // MOST_VALUES)) for one in rule), strict=True
        )
        return np.sum(
            [(self.values(nodes, count) ** 4) @ weights for nodes, weights in parts], axis=0
        )


@dataclass(frozen=True, eq=False)
class FourierFamily(Family):
    """1, √2 cos x, √2 sin x, √2 cos 2x, ... for a phase that is uniform on one period."""

    per_degree = 2  # the degree of a harmonic is its number; cosine and sine share it

    def label(self, index: int, variable: str) -> str:
        """Such as ``cos2(u1)``."""
        return f"{'cos' if index % 2 else 'sin'}{(index + 1) // 2}({variable})"

    def values(self, x: Any, count: int) -> Any:
        """The first `count` functions at phases of any shape, in any array library: (count, \\*x.shape)."""
        xp, root = array_namespace(x), float(np.sqrt(2.0))
        harmonics = self.degrees(count).tolist()
        waves = [
            root * (xp.cos if k % 2 else xp.sin)(float(harmonics[k]) * x) for k in range(1, count)
        ]
        return xp.stack([xp.ones_like(x), *waves], axis=0)

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Equal weights on equal steps: exact for harmonics up to 2 count - 1, as Gauss is for degrees."""
        return 2 * np.pi * np.arange(2 * count) / (2 * count), np.full(2 * count, 0.5 / count)


@dataclass(frozen=True, eq=False)
class DiscreteFamily(Family):
    """Polynomials for an input that takes n levels: there are n functions, of degrees 0 to n - 1.

    A recurrence loses its digits at isolated levels and when the degree comes near their number. So the
    functions are orthogonalised on the levels themselves, once, and every input takes its level's values.

    >>> from infocap.basis import table
    >>> three = table([0, 1, 5])
    >>> three.largest_degree, three.levels.tolist()
    (2, [0.0, 1.0, 5.0])
    """

    levels: Floats = field(default_factory=lambda: np.empty(0), repr=False)  # canonical, sorted
    mass: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def values(self, x: Any, count: int) -> Any:
        """The first `count` functions at the levels next to points of any shape: (count, \\*x.shape)."""
        if count not in self._tables:
            self._tables[count] = _orthogonalise(self.levels, self.mass, count)
        xp, nearest = array_namespace(x), self.nearest(to_numpy(x).ravel())
        flat = xp.take(as_like(self._tables[count], x), as_like(nearest, x), axis=1)
        return xp.reshape(flat, (count, *x.shape))

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """The measure itself: it is its own quadrature, whatever the degree."""
        return self.levels, self.mass

    def nearest(self, x: Floats) -> Integers:
        """The number of the level next to each point."""
        return np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, x)


MAKERS: dict[
    str, Callable[..., Family]
] = {}  # what makes each of infocap's own families, by their names
FAMILIES: dict[str, Callable[..., Family]] = {}  # those that a user may name, and a user's own


def built_in(make: Callable[P, Family]) -> Callable[P, Family]:
    """Mark what a function makes as one of infocap's own families, which files and pickles hold by name."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> Family:
        family = make(*args, **options)
        object.__setattr__(family, "by_name", True)
        return family

    MAKERS[make.__name__] = made
    return made


def describe(family: Family) -> dict[str, Any]:
    """A family as plain data: its name, parameters and domain, and what its input is called.

    >>> from infocap.basis import jacobi
    >>> describe(jacobi(2, 3))
    {'name': 'jacobi', 'parameters': {'a': 2.0, 'b': 3.0}, 'domain': [-1.0, 1.0]}
    """
    if not family.by_name:
        raise ParameterError(
            f"the family {family.name!r} is your own and cannot be saved; put what makes it into "
            "basis.FAMILIES and pass its name, or use basis.density(...), basis.table(...) or basis.samples(...)."
        )
    known = {
        "name": family.name,
        "parameters": dict(family.parameters),
        "domain": list(family.domain),
    }
    return known | ({"variable": family.variable} if family.variable else {})


def restore(
    name: str, parameters: dict[str, Any] | None = None, domain: Any = None, variable: str = ""
) -> Family:
    """The family that `describe` has described.

    >>> restore("jacobi", {"a": 2, "b": 3}, (0, 1)).bounds
    (0.0, 1.0)
    """
    makers = MAKERS | FAMILIES
    one_of("family", name, makers)
    try:
        family = makers[name](**(parameters or {}))
    except TypeError as problem:
        raise ParameterError(
            f"`family={name!r}` needs other parameters than {parameters}: {problem}; "
            f"pass a family such as infocap.basis.{name if name in MAKERS else 'jacobi'}(...)."
        ) from None
    if name == family.name and name not in MAKERS:
        object.__setattr__(family, "by_name", True)
    family = family if domain is None else family.on(domain)
    return family.named(variable) if variable else family


def no_recurrence(count: int) -> tuple[Floats, Floats]:
    """For the families whose values do not come from a three-term recurrence."""
    raise NotImplementedError("This family has no three-term recurrence.")


def discrete(
    names: tuple[str, str, str],
    levels: Floats,
    mass: Floats,
    ruler: tuple[float, float],
    given: dict[str, Any],
) -> DiscreteFamily:
    """A family on ascending levels of known mass; `names` are its own, its functions' and the distribution's."""
    (name, symbol, distribution), cumulative = names, np.cumsum(mass)[:-1]
    support = ruler if len(levels) > 1 else (float(levels[0]), float(levels[0]))

    def quantile(p: Floats) -> Floats:
        return levels[np.searchsorted(cumulative, p, side="right")]

    own: dict[str, Any] = {"largest_degree": len(levels) - 1, "levels": levels, "mass": mass}
    told = (distribution, tuple(given.items()), ruler, support, ruler)
    return DiscreteFamily(name, symbol, no_recurrence, quantile, *told, **own)


def _orthogonalise(levels: Floats, mass: Floats, count: int) -> Floats:
    """The first `count` orthonormal polynomials on the levels of a discrete measure: (count, levels)."""
    x = levels / (np.max(np.abs(levels)) or 1.0)
    out = np.empty((count, len(x)))
    out[0] = np.sqrt(mass)
    for k in range(1, count):
        new = x * out[k - 1]
        for _ in range(2):  # twice is enough: orthonormal to rounding
            new -= out[:k].T @ (out[:k] @ new)
        out[k] = new / np.linalg.norm(new)
    return out / np.sqrt(mass)
