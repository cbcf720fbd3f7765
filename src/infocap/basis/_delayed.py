"""Functions of the past, for devices with memory.

They are products of orthonormal functions of delayed inputs.

A function is a list of factors, and a factor is three numbers: input, delay, and which function of
that input. So a basis is an array (terms, factors, 3), with zeros where a function has fewer
factors; `indices` is the same array as (terms, 3 * factors), which is what files hold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from .._arrays import array_namespace
from .._formatting import name_and_unit
from .._validation import (
    checks_arguments,
    require_positive,
    require_whole_number,
    require_whole_numbers,
    shown,
)
from ..errors import ParameterError
from ..typing import Floats, Integers, Limits
from ._classical import fourier, legendre
from ._evaluate import TileSizes
from ._family import Family
from ._index_sets import MAX_CANDIDATES, MAX_INDEX, counts_by_degree, refuse_too_many
from ._inputs import find_families
from ._product import ProductBasis
from ._shifts import DELAY, FUNCTION, INPUT, ROWS_PER_PIECE, ShiftEvaluator, as_patterns

MAX_DELAY = 32_767  # delays are kept as 16-bit numbers
# The constant function (1 term, 1 factor, 3): its single factor is empty.
CONSTANT_TERM = np.zeros((1, 1, 3), np.int16)


class DelayedBasis(ProductBasis):
    """Products of functions of an input sequence at several delays.

    They are orthonormal for inputs that are independent in time.

    Make one with `delayed_basis`. Calling it with a sequence u (samples, inputs) gives values at
    the times from `memory`, the largest delay, on: (samples - memory, functions). `factors` (terms,
    factors, 3) holds the input, the delay and the number of the function of every factor, with
    zeros where a function has fewer factors. Functions are sorted by degree, window (largest minus
    smallest delay), pattern, and delay.

    Parameters
    ----------
    families
        The family of each input sequence.
    indices
        The factors, (terms, 3 * factors), sorted as `delayed_basis` sorts them.
    slow_time
        Whether time, which runs slowly from the first sample to the last, is one more input.
    memory
        How many earlier inputs belong to every row; at least the largest delay. Some functions of a
        basis keep its memory, so that their rows stay the same.
    period
        The period in steps of a phase that is one more input, or None.

    Examples
    --------
    >>> basis = delayed_basis("legendre", max_delay={1: 2, 2: 1})
    >>> basis.labels
    ['1', 'P1(u[t])', 'P1(u[t-1])', 'P1(u[t-2])', 'P2(u[t])', 'P2(u[t-1])', 'P1(u[t])·P1(u[t-1])']
    >>> basis(np.array([[0.0], [0.5], [1.0]])).round(2)
    array([[ 1.  ,  1.73,  0.87,  0.  ,  2.24, -0.28,  1.5 ]])
    """

    of_sequences = True

    @checks_arguments
    def __init__(
        self,
        families: Sequence[Family],
        indices: Integers,
        slow_time: bool = False,
        memory: int = 0,
        period: float | None = None,
    ) -> None:
        self.slow_time = slow_time
        self.period = period
        self.column_families = tuple(families)
        if slow_time or period is not None:
            self.column_families += (_family_of_time(period),)
        indices = require_whole_numbers("indices", indices, "terms, 3 per factor", 0, MAX_INDEX)
        if indices.shape[1] % 3 or not indices.size:
            raise ParameterError(
                f"`indices={shown(indices)}` must be (terms, 3 per factor): input, delay, function."
            )
        indices = indices.astype(np.int16)
        self.factors = indices.reshape(len(indices), -1, 3)
        delays = self.factors[:, :, DELAY].astype(int)
        self.largest_delays = delays.max(axis=1)
        self.memory = max(int(self.largest_delays.max()), memory)
        self._further_arguments = (slow_time, self.memory, period)
        super().__init__(families, self.factors.reshape(len(indices), -1))

    def __repr__(self) -> str:
        inputs = "an input sequence" if self.n_inputs == 1 else f"{self.n_inputs} input sequences"
        if self.slow_time:
            inputs += " and slow time"
        if self.period is not None:
            inputs += f" and time of period {self.period:g}"
        size = f"{len(self)} {self.family_name} functions of {inputs}"
        return f"DelayedBasis: {size}, delays up to {self.memory}, degree up to {self.max_degree}"

    @cached_property
    def degrees(self) -> Integers:
        """Total degree of each function."""
        return total_degrees(self.column_families, self.factors)

    @cached_property
    def interactions(self) -> Integers:
        """How many factors each function has."""
        return np.count_nonzero(self.factors[:, :, FUNCTION], axis=1)

    @cached_property
    def fourth_moments(self) -> Floats:
        """E[y^4] of each function, by Gauss quadrature, exact."""

        def moments(family: Family, count: int) -> Floats:
            return family.fourth_moments(count)

        return _look_up(self.column_families, self.factors, moments).prod(axis=1)

    @checks_arguments
    def label(self, term: int) -> str:
        """Return the name of one function, such as ``P1(u[t-3])·P2(u[t-5])``.

        Parameters
        ----------
        term
            The number of the function.
        """
        labels = []
        for number, delay, index in self.factors[term].tolist():
            if index > 0:
                variable = self._name_of_factor(number, delay)
                labels.append(self.column_families[number].label(index, variable))
        return "·".join(labels) or "1"

    def _name_of_factor(self, number: int, delay: int) -> str:
        """Return what an input is called at a delay, such as ``u[t-3]``."""
        if number == self.n_inputs:
            return "time"
        name, _ = name_and_unit(self.column_families[number].variable)
        if not name:
            name = "u" if self.n_inputs == 1 else f"u{number + 1}"
        return f"{name}[t-{delay}]" if delay else f"{name}[t]"

    @checks_arguments
    def project(self, pieces: Iterable[tuple[Any, Any]]) -> Any:
        """Return the sums over all samples of y_l z_k, (terms, columns).

        Parameters
        ----------
        pieces
            Inputs with `memory` rows of history in front, (memory + samples, inputs), and columns z
            (samples, columns) of consecutive samples.
        """
        sums: dict[int, Any] = {}  # of the functions from this place on
        for piece in self._listed(pieces):
            u, z = self._checked_piece(piece)
            for place, products in self._evaluator(u).products(u, z):
                sums[place] = sums[place] + products if place in sums else products
        if not sums:
            raise ParameterError("`pieces` is empty; give inputs and columns.")
        in_order = [sums[place] for place in sorted(sums)]
        return array_namespace(*in_order).concat(in_order)

    @property
    def tile_samples(self) -> int:
        """How many samples to prepare at a time: so many that their history hardly counts."""
        return ROWS_PER_PIECE

    @checks_arguments
    def extended(self, max_functions: int, memory: int | None = None) -> "DelayedBasis":
        """Return this basis and further functions.

        Longer delays of degree 1 come first, up to twice the longest, because what a device forgets
        slowly lies there; then those of all degrees up to half as far again as their windows; then
        the next degree at small delays.

        Parameters
        ----------
        max_functions
            The number of functions in all. There are fewer where the wider windows hold fewer.
        memory
            The longest delay of the further functions; by default the memory of this basis.
        """
        memory = self.memory if memory is None else memory
        largest_delays = self._largest_delay_by_degree()
        wider = {}
        for degree, delay in largest_delays.items():
            half_as_far_again = delay + (delay + 1) // 2
            wider[degree] = min(half_as_far_again, memory)
        wider[1] = min(2 * largest_delays.get(1, memory), memory)
        wider[self.max_degree + 1] = largest_delays.get(self.max_degree, 0) // 2
        if max_functions <= len(self) or count_terms(self.families, wider) > MAX_CANDIDATES:
            return self
        rows = sort_terms(self.families, list_terms(self.families, wider))
        candidates = DelayedBasis(self.families, rows)

        usual_delays = []  # the longest so far of the same degree
        for degree in candidates.degrees.tolist():
            usual_delays.append(largest_delays.get(degree, 0) or 1)
        relative_delay = candidates.largest_delays / np.array(usual_delays)
        is_next_degree = candidates.degrees > self.max_degree
        order = np.lexsort((relative_delay, candidates.degrees > 1, is_next_degree))
        is_new = candidates.positions_in(self)[order] < 0
        chosen = order[is_new][: max_functions - len(self)]
        rows = sort_terms(
            self.column_families, join_terms(self.factors, candidates.factors[chosen])
        )
        return DelayedBasis(self.families, rows, *self._further_arguments)

    def _largest_delay_by_degree(self) -> dict[int, int]:
        """Return the largest delay of the functions of each degree."""
        delays = {}
        for degree in set(self.degrees.tolist()) - {0}:
            delays[degree] = int(self.largest_delays[self.degrees == degree].max())
        return delays

    @checks_arguments
    def quadrature(self, nodes_per_input: int | None = None) -> tuple[Floats, Floats]:
        """Refuse: a grid over all delays would be far too large."""
        raise ParameterError(
            "functions of delayed inputs have no grid of nodes; draw a sequence, draw(basis, n)."
        )

    @property
    def index_columns(self) -> dict[str, Any]:
        """Input, delay and function of every factor as columns of a table."""
        names = []
        for number in range(1, self.factors.shape[1] + 1):
            for entry in ("input", "delay", "function"):
                names.append(f"factor{number}_{entry}")
        return dict(zip(names, self.indices.T, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the families as plain data; with `indices` it rebuilds the basis."""
        settings = {"slow_time": self.slow_time, "period": self.period}
        return super().to_dict() | {"delayed": settings}

    def _make_evaluator(self, sizes: TileSizes) -> Any:
        return ShiftEvaluator(
            self.column_families,
            self.factors.astype(int),
            degrees=self.degrees,
            memory=self.memory,
            sizes=sizes,
        )


@checks_arguments
def delayed_basis(
    family: str | Family | dict[str, Any] | Sequence[Any] = "legendre",
    n_inputs: int | None = None,
    max_delay: int | Mapping[int, int] | None = None,
    *,
    max_degree: int | None = None,
    domain: Limits | None = None,
    min_delay: int = 0,
    max_factors: int | None = None,
    time_degree: int = 0,
    period: float | None = None,
    terms: Iterable[Iterable[Sequence[int]]] | None = None,
) -> DelayedBasis:
    """Return an orthonormal basis of functions of an input sequence and its past.

    Parameters
    ----------
    family, n_inputs, domain
        The distribution of each input sequence, as in `product_basis`; values are independent from
        step to step.
    max_delay
        The largest delay of the functions of each degree, such as ``{1: 100, 2: 40, 3: 20}``; or
        one number for all degrees up to `max_degree`.
    max_degree
        The highest degree, where `max_delay` is one number.
    min_delay
        The smallest delay.
    max_factors
        How many delayed inputs a function may join at most.
    time_degree
        Every function is also multiplied with polynomials up to this degree of slow time, which
        runs from the first sample to the last: what a drifting device computes.
    period
        The period in steps of a device that oscillates by itself or is driven by a clock, as from
        `systems.find_period`. Every function is then multiplied with cosines and sines of the phase
        2 pi t / period, up to the harmonic `time_degree`, in place of polynomials of slow time:
        the time-variant capacity (Kubota et al., Phys. Rev. Research 3, 043135, 2021). The phase is
        zero at the first step of every run.
    terms
        An explicit list instead. Each function is a list of factors, (delay, degree) for one input
        sequence or (input, delay, degree) with inputs counted from 1; the constant function is
        added.

    Returns
    -------
    DelayedBasis
        The functions, the constant first, then by degree.

    Examples
    --------
    >>> delayed_basis("legendre", max_delay={1: 100, 2: 40, 3: 20})
    DelayedBasis: 2734 legendre functions of an input sequence, delays up to 100, degree up to 3
    >>> delayed_basis("hermite", terms=[[(3, 1), (5, 2)]]).labels
    ['1', 'He1(u[t-3])·He2(u[t-5])']

    The two products of past inputs that the benchmark task NARMA10 is made of need a list of their
    own; all products of two delays up to 9 would be 55 functions:

    >>> delayed_basis(terms=[[(0, 1), (9, 1)], [(1, 1)], [(1, 2)]], domain=(0, 0.5)).labels
    ['1', 'P1(u[t-1])', 'P2(u[t-1])', 'P1(u[t])·P1(u[t-9])']

    A device with a clock of 24 steps, whose answer depends on the phase of the clock:

    >>> delayed_basis(max_delay={1: 0}, time_degree=1, period=24).labels[:4]
    ['1', 'P1(u[t])', 'cos1(time)', 'sin1(time)']
    """
    families = find_families(family, n_inputs, domain)
    if terms is not None:
        if max_delay is not None or max_degree is not None or time_degree or period:
            raise ParameterError(
                "`terms` names all functions; leave out `max_delay`, `max_degree`, `time_degree` "
                "and `period`."
            )
        return DelayedBasis(families, sort_terms(families, _explicit_terms(families, terms)))
    min_delay = require_whole_number("min_delay", min_delay, 0)
    time_degree = require_whole_number("time_degree", time_degree, 0)
    if max_factors is not None:
        max_factors = require_whole_number("max_factors", max_factors, 1)
    windows = _largest_delays(max_delay, max_degree, min_delay)
    n_terms = count_terms(families, windows, min_delay, max_factors) + 1
    remedy = "lower `max_delay` of the higher degrees, or cut with `max_factors`"
    if period is not None:
        _refuse_period(period, time_degree)
    # There are a cosine and a sine of each harmonic, and one polynomial of each degree.
    n_of_time = time_degree if period is None else 2 * time_degree
    refuse_too_many((n_of_time + 1) * n_terms, remedy)
    rows = list_terms(families, windows, min_delay, max_factors)
    if time_degree == 0:
        return DelayedBasis(families, sort_terms(families, rows))
    rows = _times_functions_of_time(rows, len(families), n_of_time)
    rows = sort_terms([*families, _family_of_time(period)], rows)
    return DelayedBasis(families, rows, slow_time=period is None, period=period)


def _family_of_time(period: float | None) -> Family:
    """Return the functions of time: polynomials of slow time, or waves of a phase."""
    return legendre() if period is None else fourier()


def _refuse_period(period: float, time_degree: int) -> None:
    """Refuse a period without harmonics, and one that is too short for them.

    The highest harmonic needs more than two steps in its own period.
    """
    require_positive("period", period)
    if time_degree == 0:
        raise ParameterError(
            f"`period={period:g}` needs the number of harmonics, `time_degree=1` or more."
        )
    if period <= 2 * time_degree:
        raise ParameterError(
            f"`period={period:g}` is too short for {time_degree} harmonics, which need more than "
            f"{2 * time_degree} steps; lower `time_degree`."
        )


def _largest_delays(
    max_delay: int | Mapping[int, int] | None, max_degree: int | None, min_delay: int
) -> dict[int, int]:
    """Return the largest delay of each degree, from the arguments of `delayed_basis`."""
    if max_delay is None or (not isinstance(max_delay, Mapping) and max_degree is None):
        raise ParameterError(
            "give `max_delay` as {1: 100, 2: 40}, by degree, or as one number with `max_degree`."
        )
    if not isinstance(max_delay, Mapping):
        degrees = range(1, require_whole_number("max_degree", max_degree, 1) + 1)
        max_delay = dict.fromkeys(degrees, max_delay)
    windows = {}
    for degree, delay in max_delay.items():
        degree = require_whole_number("degree", degree, 1)
        windows[degree] = require_whole_number("max_delay", delay, min_delay)
    if not windows or max(windows.values()) > MAX_DELAY:
        raise ParameterError(
            f"`max_delay={shown(max_delay)}` must name a degree, with delays of at most "
            f"{MAX_DELAY:,}."
        )
    return windows


def _times_functions_of_time(rows: Integers, number: int, n_of_time: int) -> Integers:
    """Return every function times every function of time, which is input `number`."""
    products = []
    for index in range(n_of_time + 1):
        factor = (number, 0, index) if index else (0, 0, 0)
        products.append(np.insert(rows, rows.shape[1], factor, axis=1))
    return np.concatenate(products)


def count_terms(
    families: Sequence[Family],
    windows: Mapping[int, int],
    min_delay: int = 0,
    max_factors: int | None = None,
) -> int:
    """Return how many functions `list_terms` would make, without the constant.

    Parameters
    ----------
    windows
        The largest delay of the functions of each degree.

    Examples
    --------
    >>> count_terms([legendre()], {1: 2000, 2: 300, 3: 50, 4: 30, 5: 15})
    132758
    """
    total = 0
    for degree, delay in windows.items():
        n_delays = delay - min_delay + 1
        counts = counts_by_degree([*families] * n_delays, degree, max_factors)
        total += int(counts[degree])
    return total


def list_terms(
    families: Sequence[Family],
    windows: Mapping[int, int],
    min_delay: int = 0,
    max_factors: int | None = None,
) -> Integers:
    """Return the constant and all functions of each degree over some delays: (terms, factors, 3).

    Patterns, whose smallest delay is 0, are made first; every function is a pattern that is moved
    as a whole.
    """
    arrays = [CONSTANT_TERM]
    for degree, largest_delay in windows.items():
        shifts = np.arange(min_delay, largest_delay + 1)
        window = largest_delay - min_delay
        for patterns in _patterns(families, degree, window, max_factors or degree):
            largest_in_pattern = patterns[:, :, DELAY].max(axis=1)
            fits = largest_in_pattern[:, None] + shifts <= largest_delay
            pattern, shift = np.nonzero(fits)
            rows = patterns[pattern]
            rows[:, :, DELAY] += shifts[shift, None]
            arrays.append(rows.astype(np.int16))
    return join_terms(*arrays)


def _patterns(
    families: Sequence[Family], degree: int, window: int, max_factors: int
) -> Iterator[Integers]:
    """Yield all products of one degree whose smallest delay is 0: (patterns, factors, 3).

    A pattern is a choice of places (delay and input), of degrees at these places that sum to the
    degree, and, where a family has several functions per degree, of one of these at every place.
    """
    n_inputs = len(families)
    n_places = n_inputs * (window + 1)  # numbered delay by delay
    per_degree = np.array([family.per_degree for family in families])
    n_functions = np.array([len(family.degrees_up_to(degree)) - 1 for family in families])
    highest_degree = n_functions // per_degree
    for n_factors in range(1, min(degree, max_factors, n_places) + 1):
        choices = []
        for chosen in combinations(range(n_places), n_factors):
            if chosen[0] < n_inputs:  # the first place has delay 0
                choices.append(chosen)
        delay, number = np.divmod(np.array(choices, dtype=np.int32), n_inputs)
        for degrees in _compositions(degree, n_factors):
            # Of a phase, number 0 of a degree is the cosine and number 1 the sine.
            for number_in_degree in product(range(int(per_degree.max())), repeat=n_factors):
                has_degree = degrees <= highest_degree[number]
                has_function = number_in_degree < per_degree[number]
                allowed = np.all(has_degree & has_function, axis=1)
                first_of_degree = per_degree[number] * (degrees - 1) + 1
                function = first_of_degree + np.array(number_in_degree)
                yield np.stack([number, delay, function], axis=2)[allowed]


def _compositions(total: int, n_parts: int) -> Integers:
    """Return all ways to write a number as an ordered sum of positive ones: (ways, parts).

    >>> _compositions(4, 2).tolist()
    [[1, 3], [2, 2], [3, 1]]
    """
    cuts = []
    for inner_cuts in combinations(range(1, total), n_parts - 1):
        cuts.append((0, *inner_cuts, total))
    return np.diff(np.array(cuts), axis=1)


def join_terms(*arrays: Integers) -> Integers:
    """Return the functions of several arrays (terms, factors, 3) in one.

    Functions with fewer factors than others are filled with zeros.
    """
    n_factors = max(array.shape[1] for array in arrays)
    padded = []
    for array in arrays:
        n_empty = n_factors - array.shape[1]
        padding = ((0, 0), (0, n_empty), (0, 0))  # behind the factors of each term
        padded.append(np.pad(array, padding))
    return np.concatenate(padded)


def sort_terms(families: Sequence[Family], rows: Integers) -> Integers:
    """Return the functions (terms, factors, 3) as `indices`, sorted, each once.

    They are sorted by degree, window, pattern and delay.
    """
    n_factors = rows.shape[1]
    empty_last = np.argsort(rows[:, :, FUNCTION] == 0, axis=1, kind="stable")
    rows = np.take_along_axis(rows, empty_last[:, :, None], axis=1)
    distinct = np.unique(rows.reshape(len(rows), -1), axis=0)
    rows = distinct.reshape(len(distinct), n_factors, 3)
    patterns, shifts = as_patterns(rows)
    # np.lexsort takes the last key as the first to sort by.
    keys = (
        shifts,
        *patterns.reshape(len(rows), -1).T[::-1],
        patterns[:, :, DELAY].max(axis=1),
        total_degrees(families, rows),
    )
    return distinct[np.lexsort(keys)]


def total_degrees(families: Sequence[Family], factors: Integers) -> Integers:
    """Return the total degree of each function (terms, factors, 3)."""

    def degrees(family: Family, count: int) -> Integers:
        return family.degrees(count)

    return _look_up(families, factors, degrees).sum(axis=1).astype(int)


def _look_up(
    families: Sequence[Family], factors: Integers, numbers_of: Callable[[Family, int], Floats]
) -> Floats:
    """Look up a number for every factor: (terms, factors).

    `numbers_of(family, count)` gives the numbers of the first functions of a family.
    """
    count = int(factors[:, :, FUNCTION].max()) + 1
    rows = []
    for family in families:
        n_functions = count
        if family.largest_degree is not None:
            n_functions = min(count, family.count(family.largest_degree))
        row = np.zeros(count)
        row[:n_functions] = numbers_of(family, n_functions)
        rows.append(row)
    table = np.array(rows)  # (inputs, functions)
    return table[factors[:, :, INPUT], factors[:, :, FUNCTION]]


def _explicit_terms(
    families: Sequence[Family], terms: Iterable[Iterable[Sequence[int]]]
) -> Integers:
    """Check a user's own list of functions; return it with the constant, (terms, factors, 3)."""
    arrays = [CONSTANT_TERM]
    for term in terms:
        factors = []
        for factor in term:
            only_input = (1,) if len(factor) == 2 else ()
            factors.append((*only_input, *factor))
        _refuse_wrong_factors(term, factors, len(families))
        rows = []
        by_delay_and_input = sorted(factors, key=lambda factor: (factor[1], factor[0]))
        for number, delay, degree in by_delay_and_input:
            family = families[number - 1]
            family.degrees_up_to(require_whole_number("terms", degree, 1), strict=True)
            first_of_degree = family.count(degree - 1)
            rows.append((number - 1, delay, first_of_degree))
        arrays.append(np.array([rows], np.int16))
    return join_terms(*arrays)


def _refuse_wrong_factors(term: Any, factors: list[tuple[int, ...]], n_inputs: int) -> None:
    """Refuse factors that are not (input, delay, degree), each input and delay once."""
    places = {factor[:2] for factor in factors}
    valid = len(factors) > 0 and len(places) == len(factors)
    for factor in factors:
        valid = valid and len(factor) == 3
        valid = valid and 1 <= factor[0] <= n_inputs and 0 <= factor[1] <= MAX_DELAY
    if not valid:
        raise ParameterError(
            f"`terms` has {term!r}; give factors (delay, degree) or (input, delay, degree), each "
            "input and delay once."
        )
