"""The result of an estimation: capacities, how they were found, and the ways to look at them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._formatting import (
    CANNOT_BE_TOLD,
    counted,
    digits_of_column,
    exceeds,
    html_for_notebook,
    join_names,
    rounded,
    short,
    with_error,
)
from .._validation import (
    checks_arguments,
    require_numbers,
    require_one_of,
    require_probability,
    require_whole_numbers,
)
from ..basis import DELAY, FUNCTION, INPUT, DelayedBasis, ProductBasis, graded_order
from ..errors import Check, DataError, ParameterError, warn
from ..samples import Components
from ..typing import ArrayLike, Booleans, Floats, Integers, Target
from ._analyses import Drift, Factors, Growth
from ._by_input import by_input, input_matrix
from ._latex import MIN_WRITTEN_ERROR, table, to_latex
from ._recorded_law import RecordedLaw
from ._target import Capacity, bias_corrected, expand, sum_over, sums_over_degrees

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


# The fields that hold one number for every function; None where the method has no such number.
PER_TERM = ("capacity", "raw", "unbiased", "standard_error", "p_value", "threshold")
# The empirical capacity of the constant, where a readout is constant, is 1 up to this rounding.
ROUNDING_OF_CONSTANT = 1e-9
# Names of functions that are listed one by one in a label.
MAX_NAMES_IN_LABEL = 3


@dataclass(frozen=True, eq=False, repr=False)
class CapacityResult:
    """Capacities of every function of a basis, their total, and how they were found.

    Attributes
    ----------
    capacity
        The capacity of every function as the method gives it, within [0, 1], (terms,).
    raw
        The plain empirical capacities C_N, (terms,).
    standard_error, p_value, threshold
        What belongs to every capacity, (terms,); None where the method has none.
    total, total_standard_error
        The total capacity and its standard error, which is None where the method has none.
    n_samples, n_readouts
        The numbers of samples, and of channels that were given.
    maximum
        The largest possible total: the channels that change and the constant readout.
    rank
        How many of those are linearly independent.
    basis, method
        The functions, and the name of the method.
    checks
        Every warning raised and everything that was put right.
    unbiased
        Capacities before anything is set to zero or clipped, the centres of the intervals,
        (terms,).
    noise_limited_total, noise_limited_standard_error
        The total over a complete basis that noise allows, from repeats, and its standard error.
    coordinates, residual_covariance
        What `capacity_of` needs. The coefficients of the functions along orthonormal directions of
        the readouts, each (rank, terms), from all samples, the first and the second half of them. A
        method that fits the readouts gives those of all samples alone, and the covariance along the
        same directions of what the fit left, (rank, rank).
    without_stretches
        Capacities when each stretch of a sequence, a group of neighbouring samples, is left out in
        turn, (stretches, terms).
    without_groups
        Capacities when each group of samples of a device without memory is left out in turn,
        (groups, terms); sums over functions and differences of devices have errors from them.
    degree_errors
        The standard errors of sums over all functions of each degree, (degrees,), as files keep
        them that have no groups or stretches.
    inputs_fingerprint
        The same for two results from the same inputs in the same order; None if not known.
    influence_variance, leverage_ratio
        What `theory.forecast_from` needs, with the covariance: the variance of single samples'
        influence on the total, and S_N / (K N), how much single samples weigh.
    weights
        W* of every function, (readouts + 1, terms), the constant's weight first.
    recorded_law
        What belongs to capacities under the law that the inputs really had; None under the declared
        law.
    growth, factors, drift
        What `estimate` found in a recording besides capacities.
    components
        The components whose capacities these are, in place of those of many channels
        (`Components`); all channels hold at least the total. None where the readouts are the
        channels.
    metadata
        Where the data came from, as plain data.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=2)
    >>> result = infocap.probe(lambda u: u[:, :1] * u, basis, 256, seed=1)  # u1², u1 u2
    >>> result.matrix().round(2)
    array([[ 1.,  0.,  0.],
           [ 0.,  1., nan],
           [ 1., nan, nan]])
    >>> result.by_degree().sum(axis=1).round(2).tolist()
    [1.0, 0.0, 2.0]
    >>> round(result.capacity_of(lambda u: (u[:, 0] + u[:, 1]) ** 2), 1)  # all but u2²
    0.9
    """

    capacity: Floats
    raw: Floats
    standard_error: Floats | None
    p_value: Floats | None
    threshold: Floats | None
    total: float
    total_standard_error: float | None
    n_samples: int
    n_readouts: int
    maximum: int
    rank: int
    basis: ProductBasis
    method: str
    checks: tuple[Check, ...] = ()
    unbiased: Floats | None = None
    noise_limited_total: float | None = None
    noise_limited_standard_error: float | None = None
    coordinates: tuple[Floats, ...] = ()
    residual_covariance: Floats | None = None
    without_stretches: Floats | None = None
    without_groups: Floats | None = None
    degree_errors: Floats | None = None
    inputs_fingerprint: str | None = None
    influence_variance: float | None = None
    leverage_ratio: float | None = None
    weights: Floats | None = None
    recorded_law: RecordedLaw | None = None
    growth: Growth | None = None
    factors: Factors | None = None
    drift: Drift | None = None
    components: Components | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        if self.nothing_to_show:
            return f"CapacityResult: no capacities. {self.nothing_to_show}"
        n_inputs = counted(self.basis.n_inputs, "input")
        size = f"{len(self.basis)} {self.basis.family_name} functions of {n_inputs}"
        if self.basis.memory:
            size += f" with delays up to {self.basis.memory}"
        lines = [
            f"CapacityResult: {self.claim(self.total_in_words)}",
            f"  {self.n_samples} samples, {size}, method {self.method!r}",
        ]
        if self.noise_limited_total is not None:
            total = with_error(self.total, self.total_standard_error)
            if self.unreliable:
                total = f"about {rounded(self.total, self.total_standard_error)}"
            lines.append(
                f"  found {total} of {self.noise_limit_in_words} that noise allows, "
                f"of {self.maximum}"
            )
        lines += [f"  {sentence}" for sentence in self.about_law]
        lines += [f"  {sentence}" for sentence in self.for_reservoirs]
        for degree, capacity in self.degrees_in_words().items():
            lines.append(f"  degree {degree:2d}  {capacity}")
        lines += [f"  check: {check}" for check in self.checks]
        return "\n".join(lines)

    def _repr_html_(self) -> str | None:
        return html_for_notebook(self)

    @property
    def law(self) -> str:
        """The law of the inputs under which capacities are given: "declared" or "recorded"."""
        return "declared" if self.recorded_law is None else "recorded"

    @property
    def told_apart(self) -> Booleans:
        """Which functions can be told apart from those before them, (terms,).

        Under the declared law all can. The others have no capacity, which is NaN in arrays.
        """
        if self.recorded_law is None:
            return np.ones(len(self.basis), dtype=bool)
        return self.recorded_law.told_apart

    @property
    def pivots(self) -> Floats:
        """The part of each function that those before it do not explain, (terms,).

        Under the declared law functions are orthogonal, and that is 1.
        """
        if self.recorded_law is None:
            return np.ones(len(self.basis))
        return self.recorded_law.pivots

    @property
    def largest_total(self) -> int:
        """The largest possible total: one for each readout.

        Under the law of the recorded inputs it is also one for each function told apart.
        """
        if self.recorded_law is None:
            return self.maximum
        return min(self.maximum, int(np.count_nonzero(self.told_apart)))

    @property
    def no_numbers(self) -> str:
        """Why there are no capacities, and what to do; empty where there are some.

        Capacities of independent inputs cannot be had from inputs that depend on each other. They
        are NaN then.
        """
        reasons = [str(check) for check in self.warnings if check.found.get("no_numbers")]
        return " ".join(reasons)

    @property
    def cannot_be_told(self) -> str:
        """Why the total is not written; empty where it can be.

        Its standard error is larger than its possible range, and the first warning says why.
        """
        error = self.total_standard_error
        if error is None or not exceeds(error, self.rank):
            return ""
        reason = f"The total cannot be told: its standard error is above {self.rank}, the rank."
        if not self.warnings:
            return f"{reason} Take more samples."
        cause = str(self.warnings[0])
        return f"{reason} {cause[:1].upper()}{cause[1:]}"

    @property
    def nothing_to_show(self) -> str:
        """Why no number of this result is written anywhere; empty where there are some.

        Either no capacities can be had (`no_numbers`), or the total `cannot_be_told`.
        """
        return self.no_numbers or self.cannot_be_told

    @property
    def about_law(self) -> list[str]:
        """Lines of text about the law of the recorded inputs; none under the declared law."""
        if self.recorded_law is None:
            return []
        n_told = np.count_nonzero(self.told_apart)
        return [
            f"under the law of the recorded inputs ({n_told} of {self.recorded_law.n_functions} "
            "functions can be told apart)"
        ]

    def only_told_apart(self) -> CapacityResult:
        """Return the result for the functions that can be told apart, as tables and pictures need.

        Under the declared law these are all functions.
        """
        if self.told_apart.all():
            return self
        return self.of_functions(np.flatnonzero(self.told_apart))

    @checks_arguments
    def of_functions(self, rows: Integers) -> CapacityResult:
        """Return the result for some of its functions, with their sum as the total.

        Parameters
        ----------
        rows
            The numbers of the functions. Where these are all of them, it is the result itself.
        """
        rows = require_whole_numbers("rows", rows, "functions", 0, len(self.basis) - 1)
        if len(rows) == len(self.basis):
            return self
        columns = {name: column[rows] for name, column in per_term(self).items()}
        total = sum_over(self, rows)
        stretches = self.without_stretches
        groups = self.without_groups
        basis = self.basis.subset(rows)
        degree_errors = None
        if self.degree_errors is not None:
            of_degrees = [rows[basis.degrees == degree] for degree in range(basis.max_degree + 1)]
            errors = [sum_over(self, chosen).standard_error for chosen in of_degrees]
            degree_errors = np.array(errors, dtype=float)
        return replace(
            self,
            **columns,
            basis=basis,
            degree_errors=degree_errors,
            total=float(total),
            total_standard_error=total.standard_error,
            without_stretches=None if stretches is None else stretches[:, rows],
            without_groups=None if groups is None else groups[:, rows],
            coordinates=tuple(coordinates[:, rows] for coordinates in self.coordinates),
            weights=None if self.weights is None else self.weights[:, rows],
            recorded_law=None
            if self.recorded_law is None
            else self.recorded_law.of_functions(rows),
        )

    @property
    def has_constant(self) -> bool:
        """Whether the readouts hold the constant function, appended or as a channel."""
        computes_constant = self.basis.degrees[0] == 0 and self.raw[0] > 1 - ROUNDING_OF_CONSTANT
        return bool(computes_constant) or self.maximum > self.n_readouts

    @property
    def readouts_in_words(self) -> str:
        """How many readouts there are, such as "71 readouts and the constant"."""
        constant = " and the constant" if self.has_constant else ""
        if self.components is not None:
            n_channels = self.components.n_channels
            return f"{self.components.in_words} of {n_channels} channels{constant}"
        n_changing = self.maximum - self.has_constant
        if n_changing == self.n_readouts:
            return f"{counted(self.n_readouts, 'readout')}{constant}"
        return f"{counted(n_changing, 'changing readout')} of {self.n_readouts}{constant}"

    @property
    def limits_in_words(self) -> str:
        """What limits the total: the readouts, or the functions that can be told apart."""
        if self.largest_total < self.maximum:
            return f"{self.largest_total} functions can be told apart"
        return self.readouts_in_words

    @checks_arguments
    def claim(self, total: str) -> str:
        """Return what a total says: "total 3.0 of at most 4 (3 readouts and the constant)".

        A total of components is a lower bound for all channels, and says so: "the 1601 channels
        hold at least 9.10 ± 0.80 (16 principal components)".

        Parameters
        ----------
        total
            The total as it is to be written.
        """
        if self.components is None:
            return f"total {total} of at most {self.largest_total} ({self.limits_in_words})"
        n_channels = self.components.n_channels
        return f"the {n_channels} channels hold at least {total} ({self.components.in_words})"

    @checks_arguments
    def short_claim(self, total: str) -> str:
        """Return the same in short: "3.0 of 4", or of components "at least 3.0".

        A total that cannot be told has no bounds either.

        Parameters
        ----------
        total
            The total as it is to be written.
        """
        if self.nothing_to_show:
            return total
        if self.components is None:
            return f"{total} of {self.largest_total}"
        return f"at least {total}"

    @property
    def warnings(self) -> tuple[Check, ...]:
        """The checks that make the answer weaker than it looks."""
        return tuple(check for check in self.checks if check.kind == "warning")

    @property
    def notes(self) -> tuple[Check, ...]:
        """The checks that say what was put right without harm.

        An example are dead channels that were left out.
        """
        return tuple(check for check in self.checks if check.kind == "note")

    @property
    def unreliable(self) -> str:
        """Why the total cannot be trusted, in the words of the warnings; empty where it can be."""
        reasons = [str(warning.found.get("unreliable") or "") for warning in self.warnings]
        in_words = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        if not in_words and self.cannot_be_told:
            return "its standard error is larger than its range"
        return in_words

    @property
    def qualified_total(self) -> str:
        """An unreliable total in words, "about 81 (unreliable: few samples for 72 readouts)".

        It is empty for a total that is reliable.
        """
        if self.nothing_to_show:
            return CANNOT_BE_TOLD
        if not self.unreliable:
            return ""
        total = rounded(self.total, self.total_standard_error)
        return f"about {total} (unreliable: {self.unreliable})"

    @property
    def total_in_words(self) -> str:
        """The total ± its standard error, or in the words of `qualified_total`."""
        return self.qualified_total or with_error(self.total, self.total_standard_error)

    @property
    def short_total(self) -> str:
        """The total in a few letters, for a circle: "23.8", "≈81" where unreliable, or "?"."""
        if self.nothing_to_show:
            return "?"
        if self.unreliable:
            return f"≈{rounded(self.total, self.total_standard_error)}"
        return short(self.total, self.maximum)

    @property
    def noise_limit_in_words(self) -> str:
        """What noise allows ± its standard error, as "about 12.3 ± 0.4"."""
        if self.noise_limited_total is None:
            return "unknown"
        limit = with_error(
            self.noise_limited_total, self.noise_limited_standard_error, self.maximum
        )
        return limit if limit == CANNOT_BE_TOLD else f"about {limit}"

    def degrees_in_words(self) -> dict[int, str]:
        """Return the estimate of each degree of which a function was found, ± its standard error.

        These are sums of unbiased capacities as in ``by_degree(errors=True)``; those of all degrees
        add up to the total.
        """
        sums = sums_over_degrees(self)
        errors = np.array([one.standard_error for one in sums], dtype=float)
        digits = digits_of_column(errors)
        in_words = {}
        for degree, shown in enumerate(self.sums_by_degree()):
            if shown > 0:
                # The constant has an error of rounding alone, which is not written.
                error = float(errors[degree]) if errors[degree] >= MIN_WRITTEN_ERROR else None
                one = sums[degree]
                in_words[degree] = with_error(float(one), error, one.maximum, digits)
        return in_words

    @checks_arguments
    def interval(self, level: float = 0.95) -> Floats:
        """Return the confidence interval of every capacity, (terms, 2), within [0, 1].

        It holds only where `unreliable` is empty; otherwise a warning says so.

        Parameters
        ----------
        level
            The probability with which an interval holds.
        """
        half_width = self._half_width(self.standard_error, level)
        if self.unreliable:
            warn(
                "intervals of capacities may be too short, as the total is unreliable: "
                f"{self.unreliable}; see `warnings` of the result for what to do."
            )
        centre = self.capacity if self.unbiased is None else self.unbiased
        return np.clip(np.column_stack([centre - half_width, centre + half_width]), 0.0, 1.0)

    @checks_arguments
    def total_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the total, between 0 and the rank.

        It holds only where `unreliable` is empty.

        Parameters
        ----------
        level
            The probability with which the interval holds.
        """
        half_width = float(self._half_width(self.total_standard_error, level))
        low = max(self.total - half_width, 0.0)
        high = min(self.total + half_width, float(self.rank))
        return low, high

    def _half_width(self, error: Any, level: float) -> Any:
        """Return half the width of the interval that belongs to a standard error."""
        from scipy.special import ndtri

        if self.no_numbers:
            raise DataError(self.no_numbers)
        if error is None:
            raise ParameterError(
                f"method {self.method!r} gives no standard errors, so there is no interval; use "
                "the default method, or `method_options=dict(jackknife=16)`."
            )
        level = require_probability("level", level)
        return ndtri(0.5 + level / 2) * error

    @checks_arguments
    def by_degree(self, errors: bool = False) -> pd.DataFrame:
        """Return capacity by total degree and number of variables ("1", "2", ">2").

        The constant counts as a function of one variable. Under the law of the recorded inputs the
        rows are sums of unbiased capacities, which do not depend on the order of the functions.

        Parameters
        ----------
        errors
            Return instead the sum of the unbiased capacities of each degree, and its standard
            error.
        """
        import pandas as pd

        n_degrees = self.basis.max_degree + 1
        degrees = pd.RangeIndex(n_degrees, name="degree")
        if errors:
            sums = sums_over_degrees(self)
            columns = {
                "capacity": [float(capacity) for capacity in sums],
                "standard_error": [capacity.standard_error for capacity in sums],
            }
            table = pd.DataFrame(columns, degrees, dtype=float)
            # Degrees of which no function can be told apart have no capacity.
            is_told_apart = np.bincount(self.basis.degrees, self.told_apart, n_degrees) > 0
            return table[is_told_apart].reindex(degrees)
        column = np.clip(self.basis.interactions - 1, 0, 2)
        table = np.zeros((n_degrees, 3))
        np.add.at(table, (self.basis.degrees, column), self._summed_capacity)
        return pd.DataFrame(table, degrees, ["1", "2", ">2"])

    def by_input(self) -> pd.DataFrame:
        """Return one row per input: the sum over all functions that contain it, and its error.

        A function of two inputs counts for both. The column `alone` is the sum over functions of
        this input only, `functions` the number of functions. The sums are of unbiased capacities.
        """
        return by_input(self)

    def input_matrix(self) -> Floats:
        """Return which inputs interact, (inputs, inputs).

        Entry [i, j] is the capacity of all functions that contain both inputs, and [i, i] that of
        the functions of input i alone. It is NaN where the basis has no such function.
        """
        return input_matrix(self)

    def table(self, errors: bool = False) -> pd.DataFrame:
        """Return the functions above zero, the largest capacity first: degree and capacity.

        Parameters
        ----------
        errors
            Whether to give standard errors and p-values, too; NaN where the method has none.
        """
        return table(self, errors)

    def to_latex(self, rows: str = "degree", errors: bool = True) -> str:
        """Return a table for a paper, with the total in its last row.

        Parameters
        ----------
        rows
            ``"degree"``, the estimates of ``by_degree(errors=True)``, or ``"function"``, the 20
            strongest functions.
        errors
            Whether to give standard errors.

        Examples
        --------
        >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
        >>> result = infocap.probe(lambda u: u, basis, 64, seed=1)
        >>> print(result.to_latex(errors=False))  # doctest: +ELLIPSIS
        % needs ...
        Total (of at most 2) & $2.000$ ...
        """
        if self.nothing_to_show:
            raise DataError(self.nothing_to_show)
        return to_latex(self, rows, errors)

    def sums_by_degree(self) -> Floats:
        """Return the capacity of each degree from 0 on, the sums of the rows of `by_degree`."""
        sums: Floats = np.bincount(self.basis.degrees, self._summed_capacity)
        return sums

    @checks_arguments
    def capacity_of_term(self, term: int) -> Capacity:
        """Return the capacity that is shown for a function of the basis, with `standard_error`.

        Parameters
        ----------
        term
            The number of the function.
        """
        error = None if self.standard_error is None else float(self.standard_error[term])
        return Capacity(float(self.capacity[term]), error)

    @property
    def _summed_capacity(self) -> Floats:
        """The capacities that sums are made of, (terms,).

        Under the law of the recorded inputs sums of unbiased capacities are those that have a
        meaning, and functions that cannot be told apart add nothing.
        """
        if self.recorded_law is None or self.unbiased is None:
            return self.capacity
        return np.where(self.told_apart, self.unbiased, 0.0)

    def matrix(self) -> Floats:
        """Return capacities of two inputs: [i, j] is for degree i in u1 and j in u2.

        It is NaN where the basis has no such function.
        """
        if self.basis.of_sequences:
            raise ParameterError("a matrix is for inputs without delays; use delay_matrix().")
        if self.basis.n_inputs != 2:
            raise ParameterError(
                f"a matrix needs 2 inputs; this result has {self.basis.n_inputs}. Use by_degree()."
            )
        size = int(self.basis.indices.max()) + 1
        matrix = np.full((size, size), np.nan)
        matrix[tuple(self.basis.indices.T)] = self.capacity
        return matrix

    @property
    def delayed_basis(self) -> DelayedBasis:
        """The basis of a result of delayed inputs; results of other inputs are refused."""
        if isinstance(self.basis, DelayedBasis):
            return self.basis
        raise ParameterError(
            "this result is not about delayed inputs; estimate with a basis from "
            "delayed_basis(...)."
        )

    @property
    def for_reservoirs(self) -> list[str]:
        """Lines of text about a device with memory, in the terms of the literature on reservoirs.

        They give the total without the constant, and the linear and nonlinear parts of it. There
        are none for a device without memory.
        """
        if not self.basis.of_sequences or self.nothing_to_show:
            return []
        if self.recorded_law is not None:
            return self._for_reservoirs_under_recorded_law
        if not self.basis.memory or not self.has_constant:
            return []
        if self.unreliable:
            total = f"about {rounded(self.total - 1, self.total_standard_error)}"
        else:
            total = with_error(self.total - 1, self.total_standard_error)
        if self.components is None:
            without_constant = f"{total} of {self.maximum - 1}"
        else:
            without_constant = f"at least {total}"
        return [
            f"without the constant, as usual for reservoirs: {without_constant}",
            f"memory capacity {self.memory_capacity_in_words}",
            f"nonlinear capacity {self.nonlinear_capacity!r}",
        ]

    @property
    def memory_capacity_in_words(self) -> str:
        """The memory capacity with delay 0 and, where the basis has that delay, without it."""
        if not np.any(self._is_linear & (self.delayed_basis.largest_delays == 0)):
            return f"{self.memory_capacity!r}, delays from {self._shortest_delay} on"
        return (
            f"{self.memory_capacity!r} with delay 0, "
            f"{self.memory_capacity_of_past!r} for delays from 1 on"
        )

    @property
    def _is_linear(self) -> Booleans:
        is_linear: Booleans = self.delayed_basis.degrees == 1
        return is_linear

    @property
    def _shortest_delay(self) -> int:
        return int(
            self.delayed_basis.largest_delays[self._is_linear].min(initial=self.basis.memory)
        )

    @property
    def _for_reservoirs_under_recorded_law(self) -> list[str]:
        """Lines of text about memory: innovations of the inputs, and plain recall."""
        lines = []
        if np.any(self.delayed_basis.degrees == 1):
            sentence = f"memory capacity {self.memory_capacity!r} (innovations)"
            recalled = self._recall_in_words
            lines.append(f"{sentence}; {recalled}" if recalled else sentence)
        if self.basis.memory:
            beyond = repr(self.beyond_present)
            if np.isnan(self.beyond_present):
                beyond = f"that {CANNOT_BE_TOLD} (no function of earlier inputs can be told apart)"
            lines.append(f"beyond the present input {beyond}")
        return lines

    @property
    def _recall_in_words(self) -> str:
        """The recall of the first input at the shortest delay that is not 0."""
        law = self.recorded_law
        assert law is not None
        basis = self.delayed_basis
        in_words = []
        for term in np.flatnonzero((basis.degrees == 1) & (basis.largest_delays == 1)).tolist():
            name = basis.label(term).removeprefix("P1(").removesuffix(")")
            recall = Capacity(float(law.plain[term]), float(law.plain_error[term]))
            in_words.append(f"{name} {recall!r}")
        return f"recall of {join_names(in_words)}" if in_words else ""

    @property
    def memory_capacity(self) -> Capacity:
        """The sum of all unbiased capacities of degree 1 of a sequence, with `standard_error`.

        Delay 0, the present input, counts where the basis has it. `memory_capacity_of_past` leaves
        it out, as Jaeger's definition does.

        Under the law of the recorded inputs that is the capacity for what each input says that
        later ones do not, so the inputs' own memory does not count.
        """
        return sum_over(self, self._is_linear)

    @property
    def memory_capacity_of_past(self) -> Capacity:
        """The memory capacity of delays from 1 on, as Jaeger (2002) defines it."""
        return sum_over(self, self._is_linear & (self.delayed_basis.largest_delays > 0))

    @property
    def nonlinear_capacity(self) -> Capacity:
        """The sum of all unbiased capacities of degree 2 and more, with `standard_error`."""
        return sum_over(self, self.delayed_basis.degrees > 1)

    @property
    def recall(self) -> pd.Series:
        """R² of each delayed input itself, by its delay, and by input where there are several.

        It is a fact about the task to recall u[t-k] under these inputs. Its sum counts the inputs'
        own memory; `memory_capacity` does not.
        """
        import pandas as pd

        basis = self.delayed_basis
        rows = np.flatnonzero(basis.degrees == 1)
        values = self.capacity if self.recorded_law is None else self.recorded_law.plain
        delays = basis.largest_delays[rows].tolist()
        if basis.n_inputs == 1:
            index: pd.Index = pd.Index(delays, name="delay")
        else:
            inputs = (basis.factors[rows, 0, INPUT] + 1).tolist()
            index = pd.MultiIndex.from_arrays([inputs, delays], names=["input", "delay"])
        return pd.Series(values[rows], index, name="recall").sort_index()

    @property
    def beyond_present(self) -> Capacity:
        """The capacity of all functions that involve an earlier input, with `standard_error`.

        Does the device remember anything? Under the law of the recorded inputs that is what earlier
        inputs add to all functions of the present ones, powers up to degree 10 among these.
        """
        law = self.recorded_law
        if law is None:
            return sum_over(self, self.delayed_basis.largest_delays > 0)
        if law.beyond_present is None:
            raise ParameterError(
                "this result is not about delayed inputs; estimate with a basis from "
                "delayed_basis(...)."
            )
        return Capacity(law.beyond_present, law.beyond_present_error, self.rank, lowest=-self.rank)

    @checks_arguments
    def innovation_label(self, term: int) -> str:
        """Return the name of a function with what it is told apart from.

        An example is ``u[t-3] beyond u[t], u[t-1], u[t-2]``. Under the declared law functions are
        orthogonal, and it is the label alone.

        Parameters
        ----------
        term
            The number of the function.
        """
        basis = self.basis
        label = basis.label(term)
        degree = int(basis.degrees[term])
        if self.recorded_law is None or degree == 0:
            return label
        earlier = self._terms_of_degree_before(term)
        if degree > 1:
            beyond = "all of lower degree"
            if len(earlier):
                beyond += f" and {len(earlier)} of degree {degree}"
            return f"{label} beyond {beyond}"
        name = label.removeprefix("P1(").removesuffix(")")
        names = [basis.label(k).removeprefix("P1(").removesuffix(")") for k in earlier.tolist()]
        if not names:
            return name
        if len(names) > MAX_NAMES_IN_LABEL:
            return f"{name} beyond {names[0]} to {names[-1]}"
        return f"{name} beyond {', '.join(names)}"

    def _terms_of_degree_before(self, term: int) -> Integers:
        """Return the functions of the same degree that come before one and can be told apart."""
        order = graded_order(self.basis)
        before = order[: int(np.flatnonzero(order == term)[0])]
        is_of_degree = self.basis.degrees[before] == self.basis.degrees[term]
        return before[is_of_degree & self.told_apart[before]]

    @checks_arguments
    def memory_function(self, degree: int = 1, input: int = 1) -> pd.DataFrame:  # noqa: A002
        """Return the memory function: what each function of one delayed input has, by its delay.

        The columns are capacity, standard error and p-value, as far as the method gives them, and
        under the law of the recorded inputs the recall, R² of each function itself, and its
        standard error.

        Parameters
        ----------
        degree
            The degree of the functions.
        input
            The number of the input, from 1 on.
        """
        import pandas as pd

        basis = self.delayed_basis
        first_factors = basis.factors[:, 0]
        input_of_first_factor = first_factors[:, INPUT] + 1
        of_degree = (basis.interactions == 1) & (basis.degrees == degree)
        rows = of_degree & (input_of_first_factor == input)
        if not rows.any():
            raise ParameterError(
                f"the basis has no function of degree {degree} of input {input} alone; it is "
                f"{basis!r}."
            )
        columns = {}
        for name in ("capacity", "standard_error", "p_value"):
            values = getattr(self, name)
            if values is not None:
                columns[name] = values[rows]
        if self.recorded_law is not None:
            columns["recall"] = self.recorded_law.plain[rows]
            columns["recall_standard_error"] = self.recorded_law.plain_error[rows]
        delays = pd.Index(basis.largest_delays[rows], name="delay")
        return pd.DataFrame(columns, delays).sort_index(kind="stable")

    @checks_arguments
    def by_delay(self, errors: bool = False) -> pd.DataFrame:
        """Return capacity by the largest delay (rows) and the degree (columns) of functions.

        The constant is left out. Under the law of the recorded inputs the capacity of a delay is
        what it adds to all functions of later inputs. Powers of the present input up to degree 10
        then belong to delay 0, whatever the basis holds, so that the sum may exceed the total.

        Parameters
        ----------
        errors
            Return instead the sum of the unbiased capacities of each delay, and its standard error.
        """
        import pandas as pd

        delays = self.delayed_basis.largest_delays
        degrees = self.basis.degrees
        index = pd.RangeIndex(self.basis.memory + 1, name="delay")
        law = self.recorded_law
        if law is not None and law.delay_capacity is not None:
            table = law.delay_capacity
            index = pd.RangeIndex(len(table), name="delay")
            if errors:
                sums = {"capacity": table.sum(axis=1), "standard_error": law.delay_error}
                return pd.DataFrame(sums, index)
            columns = pd.Index(np.flatnonzero(np.nansum(table, axis=0)), name="degree")
            return pd.DataFrame(table[:, columns], index, columns)
        if errors:
            has_degree = degrees > 0
            capacities = [sum_over(self, has_degree & (delays == delay)) for delay in index]
            sums = {
                "capacity": np.array([float(capacity) for capacity in capacities]),
                "standard_error": np.array([c.standard_error for c in capacities], dtype=float),
            }
            return pd.DataFrame(sums, index)
        table = np.zeros((self.basis.memory + 1, self.basis.max_degree + 1))
        np.add.at(table, (delays, degrees), self.capacity)
        columns = pd.Index(sorted(set(degrees.tolist()) - {0}), name="degree")
        return pd.DataFrame(table[:, columns], index, columns)

    @checks_arguments
    def delay_matrix(self, input: int = 1) -> Floats:  # noqa: A002
        """Return the capacities of degree 2 by two delays.

        Entry [i, j] is for P1(u[t-i])·P1(u[t-j]), and [i, i] for P2(u[t-i]). It is NaN where the
        basis has no such function.

        Parameters
        ----------
        input
            The number of the input, from 1 on.
        """
        basis = self.delayed_basis
        is_of_input = basis.factors[:, :, INPUT] == input - 1
        is_empty = basis.factors[:, :, FUNCTION] == 0
        of_input_alone = np.all(is_of_input | is_empty, axis=1)
        pairs = np.flatnonzero(of_input_alone & (basis.degrees == 2))
        if not len(pairs):
            raise ParameterError(
                f"the basis has no function of degree 2 of input {input}; give `max_delay={{2: "
                "...}`."
            )
        first_factors = basis.factors[pairs, 0]
        shorter_delays = first_factors[:, DELAY]
        longer_delays = basis.largest_delays[pairs]
        size = int(longer_delays.max()) + 1
        matrix = np.full((size, size), np.nan)
        matrix[shorter_delays, longer_delays] = self.capacity[pairs]
        matrix[longer_delays, shorter_delays] = self.capacity[pairs]
        return matrix

    def capacity_of(self, target: Target) -> Capacity:
        """Return the capacity for any function of the inputs.

        The function may be ``lambda u: np.sin(u[:, 0])``. The bias of its capacity is removed, and
        no threshold applied. What lies outside the basis counts as not computed, and a warning says
        how much that is.

        Parameters
        ----------
        target
            The function, from inputs (samples, inputs) to values (samples,). Of a sequence u
            (steps, inputs) it gives one value per step, such as ``lambda u: np.roll(u[:, 0], 3)``.

        Returns
        -------
        Capacity
            A number within [0, 1] with an attribute `standard_error`, which is None where the
            method has none.
        """
        self._refuse_without_coordinates()
        coefficients, power = expand(target, self.basis)
        return self.capacity_of_coefficients(coefficients / np.sqrt(power))

    def _refuse_without_coordinates(self) -> None:
        """Refuse sums of functions where the result does not hold what they need."""
        if self.recorded_law is not None:
            raise ParameterError(
                "capacities of other functions are for the declared law of the inputs; under the "
                "law of the recorded inputs put the function's variables into the basis."
            )
        if not self.coordinates:
            raise ParameterError(
                "this result does not hold the coordinates of its functions (a CSV file or a very "
                "large basis); save to NetCDF, or estimate with fewer functions."
            )

    def capacity_of_coefficients(self, coefficients: Floats) -> Capacity:
        """Return the capacity for a sum of functions of the basis, with its bias removed.

        Parameters
        ----------
        coefficients
            The coefficient of each function, (terms,). Where their squares add up to less than 1,
            the rest lies outside the basis and counts as not computed.
        """
        self._refuse_without_coordinates()
        coefficients = require_numbers("coefficients", coefficients)
        if coefficients.shape != (len(self.basis),):
            raise ParameterError(
                f"`coefficients` has the shape {coefficients.shape}; give one number for each of "
                f"the {len(self.basis)} functions of the basis."
            )
        if self.residual_covariance is None or self.unbiased is None or self.standard_error is None:
            of_all_rows, of_first_half, of_second_half = (
                float(np.sum((coordinates @ coefficients) ** 2)) for coordinates in self.coordinates
            )
            extrapolated = 2 * of_all_rows - (of_first_half + of_second_half) / 2  # to infinite N
            return Capacity(extrapolated)
        return bias_corrected(
            coefficients,
            coordinates=self.coordinates[0],
            noise=self.residual_covariance,
            unbiased=self.unbiased,
            standard_error=self.standard_error,
            n_samples=self.n_samples,
        )

    @checks_arguments
    def readout_weights(self, target: str | Target) -> Floats:
        """Return the weights W* = G⁻¹R that bring the readouts closest to a target.

        See section 2.2 of the paper.

        Parameters
        ----------
        target
            A label, such as ``"P1(u1)·P2(u2)"``, or a function of the inputs, of which what lies in
            the basis counts.

        Returns
        -------
        Floats
            Weights (readouts + 1,): the first belongs to the constant readout, the others to the
            channels as given, 0 where one was left out.
        """
        if self.weights is None:
            raise ParameterError(
                "this result holds no weights (a CSV file or a very large basis); save to NetCDF."
            )
        if isinstance(target, str):
            require_one_of("target", target, self.basis.labels)
            # A column taken by a list is a copy.
            return self.weights[:, [self.basis.labels.index(target)]].ravel()
        if self.recorded_law is not None:
            raise ParameterError(
                "under the law of the recorded inputs a target is one of the labels, such as "
                f"{self.basis.labels[-1]!r}."
            )
        coefficients, _ = expand(target, self.basis)
        return self.weights @ coefficients

    @checks_arguments
    def reconstruct(self, x: ArrayLike, target: str | Target) -> Floats:
        """Return the best output y* = W*ᵀX for a target (paper, section 2.2), (samples,).

        Parameters
        ----------
        x
            Readouts (samples, readouts) of the channels that the result was estimated from.
        target
            A label or a function of the inputs, as for `readout_weights`.

        Examples
        --------
        >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
        >>> u = infocap.draw(basis, 64, seed=1)
        >>> result = infocap.estimate(u, np.hstack([u, u**2]), basis)
        >>> values = result.reconstruct(np.hstack([u, u**2]), lambda u: u[:, 0] ** 2 - 3)
        >>> bool(np.allclose(values, u[:, 0] ** 2 - 3))
        True
        """
        constant, *weights = self.readout_weights(target)
        values = require_numbers("x", x, finite=False)
        if values.ndim != 2 or values.shape[1] != len(weights):
            raise DataError(
                f"x has shape {values.shape}; this result needs (samples, {len(weights)}) readouts."
            )
        return constant + values @ np.asarray(weights)

    def to_dataframe(self) -> pd.DataFrame:
        """Return one row per function: label, degrees, capacity and all that is known about it."""
        import pandas as pd

        basis = self.basis
        table: dict[str, Any] = {
            "label": basis.labels,
            "degree": basis.degrees,
            "variables": basis.interactions,
        }
        table |= basis.index_columns | per_term(self)
        if self.recorded_law is not None:
            table["plain"] = self.recorded_law.plain
            table["plain_standard_error"] = self.recorded_law.plain_error
            table["pivot"] = self.recorded_law.pivots
            table["told_apart"] = self.recorded_law.told_apart
        return pd.DataFrame(table)

    def to_xarray(self) -> xr.Dataset:
        """Return everything as a labelled data set."""
        from ._files import to_dataset

        return to_dataset(self)

    @checks_arguments
    def save(self, path: str | Path) -> Path:
        """Write the result to a file, and return its path.

        Parameters
        ----------
        path
            A name that ends in ``.nc`` (NetCDF4, which holds everything) or ``.csv`` (a table,
            without what `capacity_of` needs).
        """
        from ._files import save

        return save(self, Path(path))


def per_term(result: CapacityResult) -> dict[str, Any]:
    """Return the columns of a result that its method gives, each with one number per function."""
    columns = {name: getattr(result, name) for name in PER_TERM}
    return {name: values for name, values in columns.items() if values is not None}
