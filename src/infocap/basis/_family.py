"""One-dimensional orthonormal families, each one a small piece of data about an input measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, on_host, to_numpy
from ..errors import ParameterError
from ..typing import Floats, Integers

Recurrence = Callable[[int], tuple[Floats, Floats]]
Quantile = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Family:
    """Functions p_0 = 1, p_1, p_2, ... that are orthonormal under the distribution of one input.

    A polynomial family is its three-term recurrence,
    ``x p_k = b_k p_{k+1} + a_k p_k + b_{k-1} p_{k-1}``, and the quantile of its measure; values,
    samples and Gauss quadrature follow. `canonical` is the interval that `domain` is mapped onto, so
    that ``domain=(0, 1)`` shifts and stretches any family. For the unbounded measures it is not the
    support but a ruler: mean ± one standard deviation (Hermite), origin and scale (Laguerre).

    >>> from infocap.basis import legendre
    >>> legendre().values(np.array([1.0]), 4).ravel().round(4)  # √(2k + 1)
    array([1.    , 1.7321, 2.2361, 2.6458])
    >>> legendre().fourth_moments(3).round(4)
    array([1.    , 1.8   , 2.1429])
    """

    name: str
    symbol: str
    recurrence: Recurrence = field(compare=False, repr=False)  # count -> (a, b), `count` of each
    canonical_quantile: Quantile = field(compare=False, repr=False)
    distribution: str
    parameters: tuple[tuple[str, Any], ...] = ()
    canonical: tuple[float, float] = (-1.0, 1.0)
    support: tuple[float, float] = (-1.0, 1.0)  # of the canonical variable
    domain: tuple[float, float] = (-1.0, 1.0)
    largest_degree: int | None = None

    def on(self, domain: tuple[float, float]) -> Family:
        """The same family for inputs that live on another interval."""
        edges = tuple(domain) if isinstance(domain, Sequence | np.ndarray) else ()
        if len(edges) != 2 or not all(isinstance(edge, Real) and np.isfinite(edge) for edge in edges):
            raise ParameterError(
                f"`domain={domain!r}` is not an interval; give two finite numbers, low < high. Different intervals "
                "for different inputs: product_basis([legendre().on((0, 1)), legendre().on((0, 2))], ...)."
            )
        if not edges[0] < edges[1]:
            raise ParameterError(f"`domain={domain!r}` is not an interval; give low < high.")
        return replace(self, domain=(float(edges[0]), float(edges[1])))

    def __reduce__(self) -> Any:
        """Pickled as its name and parameters, like in files."""
        from ._restore import restore

        return restore, (self.name, dict(self.parameters), self.domain)

    def count(self, degree: int) -> int:
        """How many functions have at most this degree."""
        return degree + 1

    def degrees(self, count: int) -> Integers:
        """The degree of each of the first `count` functions."""
        return np.arange(count)

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

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest possible input."""
        low, high = self.natural(np.array(self.support))
        return float(low), float(high)

    def quantile(self, p: Floats) -> Floats:
        """Inputs at probabilities `p`: uniform points go in, inputs of this distribution come out."""
        return self.natural(self.canonical_quantile(np.asarray(p, dtype=float)))

    def sample(self, n_samples: int, seed: int | np.random.Generator | None = None) -> Floats:
        """Independent random inputs of this distribution."""
        return self.quantile(np.random.default_rng(seed).random(n_samples))

    def values(self, x: Floats, count: int) -> Floats:
        """The first `count` functions at canonical points of any shape: (count, \\*x.shape)."""
        if not on_host(x):
            return self._values_there(x, count)
        out = np.empty((count, *x.shape))
        out[0] = 1.0
        if count == 1:
            return out
        a, b = self.recurrence(count - 1)
        np.multiply(x - a[0], 1 / b[0], out=out[1])
        for k in range(1, count - 1):
            np.multiply(x - a[k], 1 / b[k], out=out[k + 1])
            out[k + 1] *= out[k]
            out[k + 1] -= (b[k - 1] / b[k]) * out[k - 1]
        return out

    def _values_there(self, x: Any, count: int) -> Any:
        """The same recurrence in another array library."""
        xp = array_namespace(x)
        out = [xp.ones_like(x)]
        a, b = (column.tolist() for column in self.recurrence(max(count - 1, 1)))
        for k in range(count - 1):
            new = (x - a[k]) * (1 / b[k]) * out[k]
            out.append(new - (b[k - 1] / b[k]) * out[k - 1] if k else new)
        return xp.stack(out, axis=0)

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Gauss nodes and weights: exact for polynomials up to degree 2 count - 1."""
        a, b = self.recurrence(count)
        nodes = np.linalg.eigvalsh(np.diag(a) + np.diag(b[: count - 1], 1) + np.diag(b[: count - 1], -1))
        # Christoffel numbers keep their digits where the eigenvectors' first components do not.
        return nodes, 1 / np.sum(self.values(nodes, count) ** 2, axis=0)

    def fourth_moments(self, count: int) -> Floats:
        """E[p_k^4] of the first `count` functions, exactly."""
        highest = int(self.degrees(count)[-1])
        nodes, weights = self.quadrature(2 * highest + 1)  # exact up to degree 4 highest + 1
        return (self.values(nodes, count) ** 4) @ weights


@dataclass(frozen=True)
class FourierFamily(Family):
    """1, √2 cos x, √2 sin x, √2 cos 2x, ... for a phase that is uniform on one period."""

    def count(self, degree: int) -> int:
        """One constant, then a cosine and a sine for each harmonic."""
        return 2 * degree + 1

    def degrees(self, count: int) -> Integers:
        """The degree of a harmonic is its number; cosine and sine share it."""
        return (np.arange(count) + 1) // 2

    def label(self, index: int, variable: str) -> str:
        """Such as ``cos2(u1)``."""
        return f"{'cos' if index % 2 else 'sin'}{(index + 1) // 2}({variable})"

    def values(self, x: Floats, count: int) -> Floats:
        """The first `count` functions at phases of any shape: (count, \\*x.shape)."""
        if not on_host(x):
            xp, root = array_namespace(x), float(np.sqrt(2.0))
            waves = [
                root * (xp.cos if k % 2 else xp.sin)(float(degree) * x)
                for k, degree in enumerate(self.degrees(count))
            ]
            return xp.stack([xp.ones_like(x), *waves[1:]], axis=0)
        harmonics = self.degrees(count).reshape(-1, *(1,) * x.ndim)
        out = np.sqrt(2.0) * np.cos(harmonics * x)
        out[2::2] = np.sqrt(2.0) * np.sin(harmonics[2::2] * x)
        out[0] = 1.0
        return out

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """Equal weights on equal steps: exact for harmonics up to 2 count - 1, as Gauss is for degrees."""
        return 2 * np.pi * np.arange(2 * count) / (2 * count), np.full(2 * count, 0.5 / count)


@dataclass(frozen=True)
class DiscreteFamily(Family):
    """Polynomials for an input that takes n levels: there are n functions, of degrees 0 to n - 1.

    A recurrence loses its digits at isolated levels and when the degree comes near their number. So the
    functions are orthogonalised on the levels themselves, once, and every input takes its level's values.

    >>> from infocap.basis import table
    >>> three = table([0, 1, 5])
    >>> three.largest_degree, three.levels.tolist()
    (2, [0.0, 1.0, 5.0])
    """

    levels: Floats = field(
        default_factory=lambda: np.empty(0), compare=False, repr=False
    )  # canonical, sorted
    mass: Floats = field(default_factory=lambda: np.empty(0), compare=False, repr=False)

    def values(self, x: Floats, count: int) -> Floats:
        """The first `count` functions at the levels next to points of any shape: (count, \\*x.shape)."""
        functions = self._tables.get(count)
        if functions is None:
            functions = self._tables[count] = _orthogonalise(self.levels, self.mass, count)
        if on_host(x):
            return functions[:, self.nearest(x)]
        nearest = as_like(self.nearest(to_numpy(x)), x)
        xp = array_namespace(x)
        flat = xp.take(as_like(functions, x), xp.reshape(nearest, (-1,)), axis=1)
        return xp.reshape(flat, (count, *x.shape))

    def quadrature(self, count: int) -> tuple[Floats, Floats]:
        """The measure itself: it is its own quadrature, whatever the degree."""
        return self.levels, self.mass

    def nearest(self, x: Floats) -> Integers:
        """The number of the level next to each point."""
        return np.searchsorted((self.levels[1:] + self.levels[:-1]) / 2, x)

    @cached_property
    def _tables(self) -> dict[int, Floats]:
        return {}


def no_recurrence(count: int) -> tuple[Floats, Floats]:
    """For the families whose values do not come from a three-term recurrence."""
    raise NotImplementedError("This family has no three-term recurrence.")


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
