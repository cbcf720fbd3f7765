"""Functions of the past: products of orthonormal functions of delayed inputs, the targets for devices with memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from .._arrays import array_namespace
from .._formatting import name_and_unit
from .._validation import whole_number
from ..errors import DataError, ParameterError
from ..typing import Floats, Integers
from ._classical import find_families, legendre
from ._family import Family
from ._index_sets import MAX_CANDIDATES, counts_by_degree, refuse_too_many
from ._plan import Sizes
from ._product import ProductBasis
from ._shifts import ROWS, ShiftPlan, as_patterns

LONGEST_DELAY = 32_767  # delays are kept as 16-bit numbers


class DelayedBasis(ProductBasis):
    """Products of functions of an input sequence at several delays, orthonormal for inputs independent in time.

    Make one with `delayed_basis`. Calling it with a sequence u (samples, inputs) gives values at the times from
    `memory`, the largest delay, on: (samples - memory, functions). `factors` (terms, factors, 3) holds the input, the
    delay and the number of the function of every factor, with zeros where a function has fewer factors. Functions are
    sorted by degree, window (largest minus smallest delay), pattern, and delay.

    >>> basis = delayed_basis("legendre", max_delay={1: 2, 2: 1})
    >>> basis.labels
    ['1', 'P1(u[t])', 'P1(u[t-1])', 'P1(u[t-2])', 'P2(u[t])', 'P2(u[t-1])', 'P1(u[t])·P1(u[t-1])']
    >>> basis(np.array([[0.0], [0.5], [1.0]])).round(2)
    array([[ 1.  ,  1.73,  0.87,  0.  ,  2.24, -0.28,  1.5 ]])
    """

    of_sequences = True

    def __init__(
        self,
        families: Sequence[Family],
        indices: Integers,
        slow_time: bool = False,
        memory: int = 0,
    ) -> None:
        self.slow_time = slow_time  # whether time is one more input, the last
        self.columns = (
            (*families, legendre()) if slow_time else tuple(families)
        )  # what values are made from
        self.factors = np.asarray(indices, dtype=np.int16).reshape(len(indices), -1, 3)
        self.largest_delays = self.factors[:, :, 1].max(axis=1).astype(int)
        self.memory = max(
            int(self.largest_delays.max()), memory
        )  # some functions of a basis keep its memory
        self._further = (slow_time, self.memory)
        super().__init__(families, self.factors.reshape(len(indices), -1))

    def __repr__(self) -> str:
        of = "an input sequence" if self.n_inputs == 1 else f"{self.n_inputs} input sequences"
        size = (
            f"{len(self)} {self.family_name} functions of {of}{' and slow time' * self.slow_time}"
        )
        return f"DelayedBasis: {size}, delays up to {self.memory}, degree up to {self.max_degree}"

    @cached_property
    def degrees(self) -> Integers:
        """Total degree of each function."""
        return total_degrees(self.columns, self.factors)

    @cached_property
    def interactions(self) -> Integers:
        """How many factors each function has."""
        return np.count_nonzero(self.factors[:, :, 2], axis=1)

    @cached_property
    def fourth_moments(self) -> Floats:
        """E[y^4] of each function, by Gauss quadrature, exact."""
        return _of_factors(
            self.columns, self.factors, lambda one, count: one.fourth_moments(count)
        ).prod(axis=1)

    def label(self, term: int) -> str:
        """The name of one function, such as ``P1(u[t-3])·P2(u[t-5])``."""
        said = []
        for k, delay, index in self.factors[term].tolist():
            name = name_and_unit(self.columns[k].variable)[0] or (
                "u" if self.n_inputs == 1 else f"u{k + 1}"
            )
            name += f"[t-{delay}]" if delay else "[t]"
            said += (
                [self.columns[k].label(index, "time" if k == self.n_inputs else name)]
                if index
                else []
            )
        return "·".join(said) or "1"

    def project(self, pieces: Iterable[tuple[Any, Any]]) -> Any:
        """The sums over all samples of y_l z_k: (terms, columns), from pieces of inputs with history, and of z."""
        parts: dict[int, Any] = {}
        for u, z in pieces:
            for first, one in self._plan(u).products(u, z):
                parts[first] = parts[first] + one if first in parts else one
        return array_namespace(*parts.values()).concat([parts[first] for first in sorted(parts)])

    @property
    def tile_samples(self) -> int:
        """How many samples to prepare at a time: so many that the history in front of them does not matter."""
        return ROWS

    def extended(self, most: int, seed: int = 0, memory: int | None = None) -> "DelayedBasis":
        """This basis and further functions, at most `most` in all, with delays up to `memory` (by default its own).

        Longer delays of degree 1 come first, up to twice the longest, because what a device forgets slowly lies there;
        then those of all degrees up to half as far again as their windows; then the next degree at small delays.
        """
        memory = self.memory if memory is None else memory
        largest = {
            d: int(self.largest_delays[self.degrees == d].max())
            for d in set(self.degrees.tolist()) - {0}
        }
        wide = {degree: min(delay + (delay + 1) // 2, memory) for degree, delay in largest.items()}
        wide |= {
            1: min(2 * largest.get(1, memory), memory),
            self.max_degree + 1: largest.get(self.max_degree, 0) // 2,
        }
        if most <= len(self) or count_terms(self.families, wide) > MAX_CANDIDATES:
            return self
        found = DelayedBasis(
            self.families, sort_terms(self.families, list_terms(self.families, wide))
        )
        reach = found.largest_delays / np.array(
            [largest.get(d, 0) or 1 for d in found.degrees.tolist()]
        )
        order = np.lexsort((reach, found.degrees > 1, found.degrees > self.max_degree))
        new = order[found.places(self)[order] < 0][: most - len(self)]
        rows = sort_terms(self.columns, joined(self.factors, found.factors[new]))
        return DelayedBasis(self.families, rows, *self._further)

    def quadrature(self, nodes_per_input: int | None = None) -> tuple[Floats, Floats]:
        """Refused: a grid over all delays would be far too large."""
        raise ParameterError(
            "functions of delayed inputs have no grid of nodes; draw a sequence, draw(basis, n)."
        )

    @property
    def index_columns(self) -> dict[str, Any]:
        """Input, delay and function of every factor as columns of a table."""
        parts = product(range(1, self.factors.shape[1] + 1), ("input", "delay", "function"))
        return {
            f"factor{k}_{name}": column
            for (k, name), column in zip(parts, self.indices.T, strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """The families as plain data; with `indices` it rebuilds the basis."""
        return super().to_dict() | {"delayed": {"slow_time": self.slow_time}}

    def _make_plan(self, sizes: Sizes) -> Any:
        return ShiftPlan(self.columns, self.factors.astype(int), self.degrees, self.memory, sizes)


def delayed_basis(
    family: str | Family | Sequence[str | Family] = "legendre",
    n_inputs: int | None = None,
    max_delay: int | Mapping[int, int] | None = None,
    *,
    max_degree: int | None = None,
    domain: tuple[float, float] | None = None,
    min_delay: int = 0,
    max_factors: int | None = None,
    time_degree: int = 0,
    terms: Iterable[Iterable[Sequence[int]]] | None = None,
) -> DelayedBasis:
    """An orthonormal basis of functions of an input sequence and its past, for devices with memory.

    Parameters
    ----------
    family, n_inputs, domain
        The distribution of each input sequence, as in `product_basis`; values are independent from step to step.
    max_delay
        The largest delay of the functions of each degree, such as ``{1: 100, 2: 40, 3: 20}``; or one number for all
        degrees up to `max_degree`.
    min_delay, max_factors
        Further cuts: the smallest delay, and how many delayed inputs are joined.
    time_degree
        Every function is also multiplied with polynomials up to this degree of slow time, which runs from the first
        sample to the last: what a drifting device computes.
    terms
        An explicit list instead. Each function is a list of factors, (delay, degree) for one input sequence or (input,
        delay, degree) with inputs counted from 1; the constant function is added.

    Examples
    --------
    >>> delayed_basis("legendre", max_delay={1: 100, 2: 40, 3: 20})
    DelayedBasis: 2734 legendre functions of an input sequence, delays up to 100, degree up to 3
    >>> delayed_basis("hermite", terms=[[(3, 1), (5, 2)]]).labels
    ['1', 'He1(u[t-3])·He2(u[t-5])']
    """
    families = find_families(family, n_inputs, domain)
    if terms is not None:
        if max_delay is not None or max_degree is not None or time_degree:
            raise ParameterError(
                "`terms` names all functions; leave out `max_delay`, `max_degree` and `time_degree`."
            )
        return DelayedBasis(families, sort_terms(families, _explicit(families, terms)))
    if max_delay is None or (not isinstance(max_delay, Mapping) and max_degree is None):
        raise ParameterError(
            "give `max_delay` as {1: 100, 2: 40}, by degree, or as one number with `max_degree`."
        )
    if not isinstance(max_delay, Mapping):
        max_delay = dict.fromkeys(
            range(1, whole_number("max_degree", max_degree, 1) + 1), max_delay
        )
    low, times = (
        whole_number("min_delay", min_delay, 0),
        whole_number("time_degree", time_degree, 0) + 1,
    )
    windows = {
        whole_number("degree", d, 1): whole_number("max_delay", one, low)
        for d, one in max_delay.items()
    }
    if not windows or max(windows.values()) > LONGEST_DELAY:
        raise ParameterError(
            f"`max_delay={max_delay!r}` must name a degree, with delays of at most {LONGEST_DELAY:,}."
        )
    if max_factors is not None:
        max_factors = whole_number("max_factors", max_factors, 1)
    remedy = "lower `max_delay` of the higher degrees, or cut with `max_factors`"
    count = count_terms(families, windows, low, max_factors)
    refuse_too_many(times * (count + 1), remedy)
    rows = list_terms(families, windows, low, max_factors)
    if times == 1:
        return DelayedBasis(families, sort_terms(families, rows))
    # Slow time is one more input and never delayed.
    clock = [(0, 0, 0), *((len(families), 0, k) for k in range(1, times))]
    rows = np.concatenate([np.insert(rows, rows.shape[1], one, axis=1) for one in clock])
    return DelayedBasis(families, sort_terms([*families, legendre()], rows), slow_time=True)


def at_one_step(u: Any, x: Any, basis: ProductBasis, at: int) -> tuple[Any, Any, ProductBasis]:
    """Delayed inputs and readouts of all trials at one time step, and the basis as products of those inputs."""
    u, x, at = np.asarray(u), np.asarray(x), whole_number("at", at, 0)
    u = u[:, :, None] if u.ndim == 2 else u
    if not isinstance(basis, DelayedBasis) or basis.slow_time:
        raise ParameterError("`at` is for a basis from delayed_basis(...) without slow time.")
    if u.ndim != 3 or x.ndim != 3 or u.shape[:2] != x.shape[:2] or u.shape[2] != basis.n_inputs:
        raise DataError(
            f"u has shape {u.shape} and x has shape {x.shape}; give (trials, steps, inputs or channels)."
        )
    if not basis.memory <= at < u.shape[1]:
        raise ParameterError(
            f"`at={at}` must lie between the largest delay, {basis.memory}, and {u.shape[1] - 1}."
        )
    factors = basis.factors.reshape(-1, 3).astype(int)
    places, column = np.unique(factors[:, :2], axis=0, return_inverse=True)
    indices = np.zeros((len(basis), len(places)), np.int16)
    row = np.repeat(np.arange(len(basis)), basis.factors.shape[1])
    np.add.at(indices, (row, column.ravel()), factors[:, 2])
    lagged = u[:, at - places[:, 1], places[:, 0]]
    return (
        lagged,
        x[:, at],
        ProductBasis([basis.families[k] for k in places[:, 0].tolist()], indices),
    )


def count_terms(
    families: Sequence[Family],
    windows: Mapping[int, int],
    min_delay: int = 0,
    max_factors: int | None = None,
) -> int:
    """How many functions list_terms would make, without the constant.

    >>> count_terms([legendre()], {1: 2000, 2: 300, 3: 50, 4: 30, 5: 15})
    132758
    """
    total = 0
    for degree, delay in windows.items():
        inputs = [*families] * (delay - min_delay + 1)
        total += int(counts_by_degree(inputs, degree, max_factors)[degree])
    return total


def list_terms(
    families: Sequence[Family],
    windows: Mapping[int, int],
    min_delay: int = 0,
    max_factors: int | None = None,
) -> Integers:
    """Factors (terms, factors, 3) of the constant and of all functions of each degree over delays up to `windows`.

    Patterns, whose smallest delay is 0, are made first; every function is one of them, moved as a whole.
    """
    parts = [np.zeros((1, 1, 3), np.int16)]
    for degree, delay in windows.items():
        shifts = np.arange(min_delay, delay + 1)
        for pattern in _patterns(families, degree, delay - min_delay, max_factors or degree):
            which, moved = np.nonzero(shifts + pattern[:, :, 1].max(axis=1)[:, None] <= delay)
            rows = pattern[which]
            rows[:, :, 1] += shifts[moved, None]
            parts.append(rows.astype(np.int16))
    return joined(*parts)


def _patterns(
    families: Sequence[Family], degree: int, window: int, max_factors: int
) -> Iterator[Integers]:
    """Factors (patterns, factors, 3) of all products of one degree with smallest delay 0, some at a time."""
    n_inputs, own = len(families), np.array([family.per_degree for family in families])
    highest = np.array([len(family.degrees_up_to(degree)) - 1 for family in families]) // own
    for size in range(1, min(degree, max_factors, n_inputs * (window + 1)) + 1):
        first = combinations(
            range(n_inputs * (window + 1)), size
        )  # places are numbered delay by delay
        chosen = np.array([one for one in first if one[0] < n_inputs], dtype=np.int32)
        delay, which = np.divmod(chosen, n_inputs)
        cuts = np.array([(0, *inner, degree) for inner in combinations(range(1, degree), size - 1)])
        for split, copy in product(
            np.diff(cuts, axis=1), np.array([*product(range(int(own.max())), repeat=size)])
        ):
            allowed = np.all((split <= highest[which]) & (copy < own[which]), axis=1)
            function = own[which] * (split - 1) + 1 + copy
            yield np.stack([which, delay, function], axis=2)[allowed]


def joined(*parts: Integers) -> Integers:
    """Functions of several arrays (terms, factors, 3) in one, with zeros where some have fewer factors."""
    wide = max(part.shape[1] for part in parts)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, wide - part.shape[1]), (0, 0))) for part in parts]
    )


def sort_terms(families: Sequence[Family], rows: Integers) -> Integers:
    """The functions (terms, factors, 3) by degree, window, pattern and delay, each once, as `indices`."""
    filled = np.argsort(rows[:, :, 2] == 0, axis=1, kind="stable")[:, :, None]
    rows = np.take_along_axis(rows, filled, axis=1)  # what is empty goes last
    rows = np.unique(rows.reshape(len(rows), -1), axis=0).reshape(-1, *rows.shape[1:])
    pattern, shift = as_patterns(rows)
    keys = (
        *pattern.reshape(len(rows), -1).T[::-1],
        pattern[:, :, 1].max(axis=1),
        total_degrees(families, rows),
    )
    return rows.reshape(len(rows), -1)[np.lexsort((shift, *keys))]


def total_degrees(families: Sequence[Family], factors: Integers) -> Integers:
    """The total degree of each function (terms, factors, 3)."""
    return _of_factors(families, factors, Family.degrees).sum(axis=1).astype(int)


def _of_factors(
    families: Sequence[Family], factors: Integers, table: Callable[[Family, int], Floats]
) -> Floats:
    """What `table(family, count)` says about a family's first functions, for every factor: (terms, factors)."""
    count = int(factors[:, :, 2].max()) + 1
    known = [table(one, min(count, one.count(one.largest_degree or count))) for one in families]
    wide = np.array([np.pad(np.asarray(one, dtype=float), (0, count - len(one))) for one in known])
    return wide[factors[:, :, 0], factors[:, :, 2]]


def _explicit(families: Sequence[Family], terms: Iterable[Iterable[Sequence[int]]]) -> Integers:
    """A user's own list of functions, checked: (terms, factors, 3)."""
    out = [np.zeros((1, 1, 3), np.int16)]
    for term in terms:
        factors = [((1, *factor) if len(factor) == 2 else tuple(factor)) for factor in term]
        good = [
            len(one) == 3 and 1 <= one[0] <= len(families) and 0 <= one[1] <= LONGEST_DELAY
            for one in factors
        ]
        if not all(good) or len({one[:2] for one in factors}) < max(len(factors), 1):
            wanted = "factors (delay, degree) or (input, delay, degree), each input and delay once"
            raise ParameterError(f"`terms` has {term!r}; give {wanted}.")
        rows = []
        for k, delay, degree in sorted(factors, key=lambda one: (one[1], one[0])):
            families[k - 1].degrees_up_to(whole_number("terms", degree, 1), strict=True)
            rows.append((k - 1, delay, families[k - 1].count(degree - 1)))
        out.append(np.array([rows], np.int16))
    return joined(*out)
