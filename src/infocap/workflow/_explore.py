"""explore: a search for the functions of the past that a device computes."""

import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from .._arrays import array_namespace, to_library_of, to_numpy
from .._formatting import ONE_SIDED_95, with_error
from .._validation import (
    checks_arguments,
    require_one_of,
    require_probability,
    require_whole_number,
    shown,
)
from ..basis import (
    DelayedBasis,
    Family,
    count_terms,
    find_families,
    join_terms,
    list_terms,
    sort_terms,
)
from ..errors import Check, DataError, DataWarning, ParameterError, warn
from ..estimators import (
    MAX_BYTES_OF_STRETCH_SUMS,
    MEMORY_FRACTION_OF_STRETCH_SUMS,
    MIN_SAMPLES_PER_CONTROL,
    Evidence,
    control_sums,
    fit_least_squares,
    gather_evidence,
    iterate_pieces,
)
from ..kernels import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    effective_directions,
    squared_mean_from_stretches,
)
from ..result import CapacityResult
from ..samples import Samples, TraceSteps, fold, hold_of_rows, is_of_several_runs
from ..typing import ArrayLike, Floats, Integers, Limits
from ._estimate import estimate
from ._explore_recorded import MAX_FUNCTIONS, MIN_ROWS_PER_FUNCTION, search_windows

# Fraction of the functions to be tested that the first windows hold, in equal parts of every
# degree.
FIRST_FRACTION_TESTED = 0.4
# Fraction of a window beyond which a function that is found means that there may be more outside.
BEGIN_OF_OUTER_THIRD = 2 / 3
# By how much such a window is made wider.
WINDOW_WIDENING = 1.5
# Functions that are found at the most; a fit of more takes minutes.
MAX_FUNCTIONS_FOUND = 2000
# Rounds that may find functions, at most; one more round tests what they leave.
MAX_ROUNDS_THAT_FIND = 6
# Fraction of the rank of the readouts that the functions of one round have to explain for another
# round.
MIN_GAIN = 0.01
# Steps of the washout where none is given: a tenth of the shortest run, at most so many.
MAX_DEFAULT_WASHOUT = 1000


@dataclass(frozen=True)
class Round:
    """One round of a search: functions are tested on what earlier ones leave unexplained.

    Attributes
    ----------
    windows
        The largest delay of each degree.
    tested, found
        How many functions were tested, and how many of these were found in this round.
    unexplained
        How much of the rank of the readouts the functions found before leave.
    """

    windows: dict[int, int]
    tested: int
    found: int
    unexplained: float


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """The functions of the past that `explore` found, their capacities, and how the search went.

    Attributes
    ----------
    basis
        The functions that were found.
    result
        Their capacities with error bars; those of functions that the last test did not confirm are
        zero.
    rounds
        How the search went, round by round.
    undetected, undetected_standard_error
        The total capacity of all other functions that were tested, and its standard error. Each is
        too small to be significant by itself; the sum of their unbiased values may not be.
    """

    basis: DelayedBasis
    result: CapacityResult
    rounds: tuple[Round, ...]
    undetected: float
    undetected_standard_error: float

    @property
    def windows(self) -> dict[int, int]:
        """The largest delay found of each degree, for ``delayed_basis(max_delay=...)``."""
        largest: dict[int, int] = {}
        confirmed = np.flatnonzero(self.result.capacity > 0)
        for term in confirmed.tolist():
            degree = int(self.basis.degrees[term])
            delay = int(self.basis.largest_delays[term])
            if degree > 0:
                largest[degree] = max(largest.get(degree, 0), delay)
        return dict(sorted(largest.items()))

    def __repr__(self) -> str:
        return "\n".join([*self.search_lines(), repr(self.result)])

    def search_lines(self) -> list[str]:
        """Return how the search went, one line per step."""
        result = self.result
        if result.no_numbers:
            return ["Exploration: no capacities can be had from these inputs"]
        last_round = self.rounds[-1]
        n_found = np.count_nonzero(result.capacity[1:] > 0)
        error = float(np.hypot(result.total_standard_error or 0.0, self.undetected_standard_error))
        total = with_error(result.total + self.undetected, error, result.rank)
        lines = [
            f"Exploration: {n_found} of {last_round.tested} functions found",
            f"  largest delay of each degree {self.windows}, tested up to {last_round.windows}",
            f"  with functions too small to be found one by one {total}; the total below counts "
            "those that were found",
        ]
        when = "before" if result.law == "declared" else "after"
        for number, round_ in enumerate(self.rounds, 1):
            line = f"  round {number}: {round_.found} of {round_.tested} found"
            if round_.unexplained <= result.rank:
                line += f", {round_.unexplained:.2f} unexplained {when}"
            lines.append(line)
        return lines


@checks_arguments
def explore(
    u: ArrayLike,
    x: ArrayLike,
    family: str | Family | dict[str, Any] | Sequence[Any] = "legendre",
    *,
    domain: Limits | None = None,
    washout: int | None = None,
    max_degree: int = 6,
    most_tested: int = 30_000,
    false_discovery_rate: float = 0.02,
    repeats: ArrayLike | None = None,
    complex_as: str | None = None,
    rows_per_step: int | None = None,
    offset: int = 0,
    mask: ArrayLike | None = None,
    n_components: int | str | None = None,
    memory_limit: str | float | None = None,
    executor: Any = None,
    law: str = "declared",
    input_noise: float | Sequence[float] | None = None,
) -> Exploration:
    """Find the functions of an input sequence and its past that a device computes.

    All functions of wide windows are tested, about as many of every degree, so that the delays of
    degree 1 reach far and those of degree 6 a few steps. What is found is fitted, and all are
    tested again on what the fit leaves. A degree of which something was found in the outermost
    third of its delays gets a window half as wide again. The search ends when nothing new is found,
    or too little. Finally, all functions found are tested again with one common fit.

    Parameters
    ----------
    u, x
        A sequence of inputs and the readouts, or a list of runs of each, as for `estimate`.
    family, domain
        The distribution of the inputs, as for `delayed_basis`; there are as many inputs as u has
        columns.
    washout
        Time steps at the beginning of every run that are not used; no longer delays are looked for.
        By default a tenth of the shortest run, at most 1000 steps.
    max_degree, most_tested
        The highest degree that is looked for, and the most functions that are tested; windows grow
        no further.
    false_discovery_rate
        The share of the functions found that may be false, on average.
    repeats
        The readouts of the same input sequence played a second time; they tell how much noise
        allows to be found.
    complex_as, rows_per_step, offset, mask, n_components, memory_limit, executor
        Those of `estimate`.
    law, input_noise
        Those of `estimate`. Under the recorded law all functions of some windows are estimated at
        once, and windows grow where something is found near their end, as far as there are ten rows
        for each function.

    Returns
    -------
    Exploration
        The functions found, their capacities, and how the search went.

    Examples
    --------
    >>> import infocap
    >>> u = np.random.default_rng(1).uniform(-1, 1, 2000)
    >>> noise = 0.1 * np.random.default_rng(2).standard_normal(2000)
    >>> hidden = np.roll(u, 3) * np.roll(u, 5) ** 2 + noise
    >>> found = infocap.explore(u, hidden[:, None], washout=100)
    >>> found.basis.labels
    ['1', 'P1(u[t-3])', 'P1(u[t-3])·P2(u[t-5])']
    """
    rate = require_probability("false_discovery_rate", false_discovery_rate)
    max_degree = require_whole_number("max_degree", max_degree, 1)
    most_tested = require_whole_number("most_tested", most_tested, 100)
    steps = TraceSteps.wanted(rows_per_step, offset, mask)
    checks_of_trace: list[Check] = []
    if steps is not None:
        folded = fold(u, x, steps, repeats=repeats)
        u = folded.u
        x = folded.labelled_x
        repeats = folded.repeats
        checks_of_trace = list(folded.checks)
    runs = list(zip(u, x, strict=False)) if is_of_several_runs(x) else [(u, x)]
    if washout is None:
        shortest_run = min(np.shape(readouts)[0] for _, readouts in runs)
        washout = min(shortest_run // 10 or 1, MAX_DEFAULT_WASHOUT)
    washout = require_whole_number("washout", washout, 1)
    families = _families_of_runs(runs, family, domain)
    options: dict[str, Any] = {
        "washout": washout,
        "complex_as": complex_as,
        "n_components": n_components,
        "memory_limit": memory_limit,
        "executor": executor,
    }

    require_one_of("law", law, ("declared", "recorded"))
    if law == "recorded":
        options |= {"law": law, "input_noise": input_noise, "repeats": repeats}
        options["method_options"] = {"false_discovery_rate": rate}
        return _explore_recorded(
            u, x, families, options, max_degree=max_degree, most_tested=most_tested
        )
    if input_noise is not None:
        raise ParameterError(
            f"`input_noise={shown(input_noise)}` is for law='recorded'; leave it out."
        )
    return _explore_declared(
        u,
        x,
        families,
        options,
        repeats=repeats,
        rate=rate,
        max_degree=max_degree,
        most_tested=most_tested,
        checks_of_trace=checks_of_trace,
    )


def _families_of_runs(
    runs: list[tuple[ArrayLike, ArrayLike]],
    family: str | Family | dict[str, Any] | Sequence[Any],
    domain: Limits | None,
) -> Sequence[Family]:
    """Return the distribution of each input; a single one is that of all columns of u."""
    first_shape = np.shape(runs[0][0])
    n_inputs = first_shape[1] if len(first_shape) > 1 else 1
    is_one_family = isinstance(family, str | Family | dict)
    return find_families(family, n_inputs if is_one_family else None, domain)


def _explore_declared(
    u: ArrayLike,
    x: ArrayLike,
    families: Sequence[Family],
    options: dict[str, Any],
    *,
    repeats: ArrayLike | None,
    rate: float,
    max_degree: int,
    most_tested: int,
    checks_of_trace: list[Check],
) -> Exploration:
    """Find the functions that a device computes of inputs that follow the declared law."""
    washout = options["washout"]
    only_constant = DelayedBasis(families, np.zeros((1, 3), int), memory=washout)
    evidence = gather_evidence(u, x, only_constant, **options)
    findings = [check for checks in evidence.data_findings().values() for check in checks]
    if any(check.found.get("no_numbers") for check in findings):
        nothing = estimate(u, x, only_constant, **options)
        return Exploration(only_constant, nothing, (), np.nan, np.nan)
    most_found = min(evidence.n_samples // MIN_SAMPLES_PER_CONTROL, MAX_FUNCTIONS_FOUND)
    windows = _first_windows(families, max_degree, washout, most_tested)
    search = _search(evidence, rate, windows, most_tested=most_tested, most_found=most_found)
    # The memory keeps earlier inputs, which control functions use even if nothing of the past was
    # found.
    basis = DelayedBasis(families, search.found.indices, memory=1)

    # Warnings of functions beyond the basis are dropped, for those were tested here; the others are
    # given below.
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        result = estimate(
            u, x, basis, repeats=repeats, method_options={"false_discovery_rate": rate}, **options
        )
    last_round = search.rounds[-1]
    confirmed = _confirmed(result, last_round.tested, rate)
    confirmed_basis = DelayedBasis(families, basis.indices[confirmed])
    checks = [check for check in result.checks if "beyond" not in check.found]
    checks += _checks_of_search(result, confirmed_basis, last_round, most_found, washout)
    checks += checks_of_trace
    for check in checks:
        if check.kind == "warning":
            warn(check)
    explored = {
        "windows": last_round.windows,
        "tested": last_round.tested,
        "undetected": (search.undetected, search.undetected_standard_error),
        "upper_bounds": search.upper_bounds,
    }
    return Exploration(
        basis=basis,
        result=replace(
            result,
            capacity=result.capacity * confirmed,
            checks=tuple(checks),
            metadata=result.metadata | {"explored": explored},
        ),
        rounds=tuple(search.rounds),
        undetected=search.undetected,
        undetected_standard_error=search.undetected_standard_error,
    )


def _explore_recorded(
    u: ArrayLike,
    x: ArrayLike,
    families: Sequence[Family],
    options: dict[str, Any],
    *,
    max_degree: int,
    most_tested: int,
) -> Exploration:
    """Find the windows of functions that a device computes under the law of recorded inputs."""
    washout = options["washout"]
    n_rows = 0
    for readouts in x if is_of_several_runs(x) else [x]:
        n_rows += max(np.shape(readouts)[0] - washout, 0)
    most_functions = min(most_tested, n_rows // MIN_ROWS_PER_FUNCTION, MAX_FUNCTIONS)

    def estimate_basis(basis: DelayedBasis) -> CapacityResult:
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            return estimate(u, x, basis, **options)

    rounds = search_windows(
        families,
        _first_windows(families, max_degree, washout, most_functions),
        estimate_basis,
        most_functions=most_functions,
        longest_delay=washout,
        begin_of_outer_part=BEGIN_OF_OUTER_THIRD,
        widening=WINDOW_WIDENING,
    )
    result = rounds[-1].result
    largest = max(rounds, key=lambda round_: len(round_.result.basis))
    # Longer delays than those of the result were tested.
    checks = [check for check in result.checks if check.found.get("cause") != "short window"]
    result = replace(result, checks=tuple(checks))
    for check in result.warnings:
        warn(check)
    undetected = largest.result.total - result.total
    error = 0.0
    if largest is not rounds[-1]:
        error_of_largest = largest.result.total_standard_error or 0.0
        error = float(np.hypot(error_of_largest, result.total_standard_error or 0.0))
    explored = {
        "windows": largest.windows,
        "tested": len(largest.result.basis) - 1,
        "undetected": (undetected, error),
    }
    told = []
    for round_ in rounds:
        unexplained = round_.result.rank - round_.result.total
        n_tested = len(round_.result.basis) - 1
        told.append(Round(round_.windows, n_tested, round_.n_found, unexplained))
    return Exploration(
        basis=result.delayed_basis,
        result=replace(result, metadata=result.metadata | {"explored": explored}),
        rounds=tuple(told),
        undetected=undetected,
        undetected_standard_error=error,
    )


def _confirmed(result: CapacityResult, n_tested: int, rate: float) -> Any:
    """Return which of the functions found are significant among all that were tested.

    The first rounds tested by residuals full of what was found later. The p-values of the result
    come from one fit with all functions found; those of all others count as 1.
    """
    assert result.p_value is not None
    n_found = len(result.p_value)
    n_not_found = n_tested + 1 - n_found  # the constant is found, and was not tested
    p_values = np.append(result.p_value, np.ones(n_not_found))
    return benjamini_hochberg(p_values, rate)[:n_found]


def _checks_of_search(
    result: CapacityResult,
    confirmed_basis: DelayedBasis,
    last_round: Round,
    most_found: int,
    washout: int,
) -> Iterator[Check]:
    """Warn where the search ended early: at the most functions, or at the longest delays."""
    if len(result.basis) >= most_found:
        yield Check(
            f"the search ended at {len(result.basis) - 1} functions, the most for "
            f"{result.n_samples} samples; take more samples to find smaller ones."
        )
    for degree in _degrees_near_the_end(confirmed_basis, last_round.windows):
        delays = last_round.windows[degree]
        if delays >= washout:
            remedy = "record longer runs and raise `washout`"
        else:
            remedy = "raise `most_tested`"
        yield Check(
            f"functions of degree {degree} were found in the outermost third of the {delays} "
            f"delays tested; {remedy} to look beyond.",
            degree=degree,
        )


def _first_windows(
    families: Sequence[Family], max_degree: int, longest_delay: int, most_tested: int
) -> dict[int, int]:
    """Return the largest delay of each degree, so that every degree has about as many functions."""
    functions_per_degree = FIRST_FRACTION_TESTED * most_tested / max_degree
    windows: dict[int, int] = {}
    delay = longest_delay
    for degree in range(1, max_degree + 1):
        count = partial(_count_of_degree, families, degree)
        delay = bisect_right(range(delay + 1), functions_per_degree, key=count) - 1
        if delay < 0:  # without delays there are too many already
            break
        windows[degree] = delay
    return windows


def _count_of_degree(families: Sequence[Family], degree: int, delay: int) -> int:
    """Return how many functions of one degree have delays up to `delay`."""
    return count_terms(families, {degree: delay})


@dataclass(frozen=True, eq=False)
class _Search:
    """How a search ended: the functions found, its rounds, and what all others hold together."""

    found: DelayedBasis  # with the constant
    rounds: list[Round]
    undetected: float
    undetected_standard_error: float
    # Of each degree, the capacity that no function tested and not found exceeds with 95 %.
    upper_bounds: dict[int, float]


def _search(
    evidence: Evidence,
    rate: float,
    windows: dict[int, int],
    *,
    most_tested: int,
    most_found: int,
) -> _Search:
    """Test the functions of wider and wider windows, until nothing new is found, or too little."""
    found = evidence.basis
    assert isinstance(found, DelayedBasis)
    families = found.families
    memory = found.memory
    rounds: list[Round] = []
    while True:
        terms = sort_terms(families, list_terms(families, windows))
        basis = DelayedBasis(families, terms, memory=memory)
        not_found = np.flatnonzero(basis.positions_in(found) < 0)
        fit = _fit_found(evidence, found)
        tests = _test(evidence, basis, fit)
        p_values = tests.p_values[not_found]
        gain = rounds[-1].unexplained - fit.unexplained if rounds else np.inf
        explains_little = gain < MIN_GAIN * evidence.rank
        if explains_little or len(found) >= most_found or len(rounds) == MAX_ROUNDS_THAT_FIND:
            n_new = 0
        else:
            n_passed = np.count_nonzero(benjamini_hochberg(p_values, rate))
            n_new = min(int(n_passed), most_found - len(found))
        rounds.append(Round(windows, len(basis) - 1, n_new, fit.unexplained))
        if n_new == 0:
            undetected, error = _undetected(evidence, basis, fit, not_found)
            bounds = _bounds_by_degree(basis.degrees[not_found], tests.upper_bounds[not_found])
            return _Search(found, rounds, undetected, error, bounds)
        new = not_found[np.argsort(p_values)[:n_new]]
        rows = join_terms(found.factors, basis.factors[new])
        found = DelayedBasis(families, sort_terms(families, rows), memory=memory)
        windows = _wider_windows(found, windows, most_tested)


def _wider_windows(
    found: DelayedBasis, windows: dict[int, int], most_tested: int
) -> dict[int, int]:
    """Return wider windows of the degrees that were found near the end of theirs.

    A window stays as it is where the wider one would hold too many functions, and none is longer
    than the washout, which is the memory of the functions found.
    """
    for degree in _degrees_near_the_end(found, windows):
        wider_delay = min(int(WINDOW_WIDENING * windows[degree]) + 1, found.memory)
        wider = windows | {degree: wider_delay}
        if count_terms(found.families, wider) <= most_tested:
            windows = wider
    return windows


def _degrees_near_the_end(found: DelayedBasis, windows: dict[int, int]) -> list[int]:
    """Return the degrees with functions found in the outermost third of the delays tested."""
    degrees = []
    for degree, window in windows.items():
        largest_delay = found.largest_delays[found.degrees == degree].max(initial=-1)
        if largest_delay > BEGIN_OF_OUTER_THIRD * window:
            degrees.append(degree)
    return degrees


@dataclass(frozen=True, eq=False)
class _FoundFit:
    """A fit of the readouts by the functions found, and what it leaves unexplained."""

    sum_residuals: Any  # the work `_residual_sums` with the residuals e of this fit
    degrees_of_freedom: int  # the number of samples, less that of the functions found
    directions: float  # effective number of directions of the residuals (Satterthwaite)
    unexplained: float  # of the rank of the readouts


def _fit_found(evidence: Evidence, found: DelayedBasis) -> _FoundFit:
    """Fit the readouts by least squares."""
    sum_controls = partial(control_sums, **evidence.whitener)
    sums = evidence.engine.fold(replace(evidence.samples, basis=found), sum_controls)
    fit = fit_least_squares(sums)
    if fit is None:
        raise _same_functions(evidence)
    covariance = fit.whitening.T @ fit.residual_covariance @ fit.whitening
    sum_residuals = partial(
        _residual_sums,
        found=found,
        c=fit.c,
        whitening_of_gram=fit.whitening,
        **evidence.whitener,
    )
    return _FoundFit(
        sum_residuals=sum_residuals,
        degrees_of_freedom=evidence.n_samples - len(found),
        directions=effective_directions(covariance),
        unexplained=float(np.trace(covariance)),
    )


def _same_functions(evidence: Evidence) -> DataError:
    """Return the error about functions that are equal on all samples, with the reason if known."""
    hold = hold_of_rows(evidence.samples.u)
    if hold is None:
        return DataError(
            "some functions that were found have the same values at all steps of this input, so "
            "they cannot be told apart; draw another input sequence, or a longer one."
        )
    return DataError(
        f"the input stays constant for {hold.rows_per_step} rows, so delays cannot be told apart; "
        f"give one row for each input, or `rows_per_step={hold.rows_per_step}`, which makes "
        f"{hold.rows_per_step} virtual nodes of each channel."
    )


@dataclass(frozen=True, eq=False)
class _Tests:
    """All functions of a basis, tested on the residuals of a fit."""

    p_values: Floats  # (terms,)
    upper_bounds: Floats  # one-sided, 95 %, of the capacity of each function by itself, (terms,)


def _test(evidence: Evidence, basis: DelayedBasis, fit: _FoundFit) -> _Tests:
    """Test all functions of a basis on the residuals.

    Without capacity, the squares of a function's means over their bias follow a chi-squared
    distribution, with the effective number of directions of the residuals. With capacity the root
    of their sum scatters by the noise of one direction.
    """
    sums = evidence.engine.fold(replace(evidence.samples, basis=basis), fit.sum_residuals)
    means = sums / fit.degrees_of_freedom
    capacity = np.sum(means[:, :-1] ** 2, axis=1)
    bias = means[:, -1] / fit.degrees_of_freedom
    p_values: Floats = scipy.special.chdtrc(
        fit.directions, fit.directions * capacity / np.maximum(bias, SMALLEST_DIVISOR)
    )
    noise_of_direction = np.sqrt(bias / fit.directions)
    upper_bounds = (np.sqrt(capacity) + ONE_SIDED_95 * noise_of_direction) ** 2 - bias
    return _Tests(p_values, np.maximum(upper_bounds, 0.0))


def _bounds_by_degree(degrees: Integers, upper_bounds: Floats) -> dict[int, float]:
    """Return the largest upper bound among the functions of each degree."""
    bounds = {}
    for degree in np.unique(degrees).tolist():
        bounds[degree] = float(upper_bounds[degrees == degree].max())
    return bounds


def _undetected(
    evidence: Evidence, basis: DelayedBasis, fit: _FoundFit, not_found: Integers
) -> tuple[float, float]:
    """Return what the functions that were not found hold together, and its standard error.

    Where memory does not suffice for their sums over all stretches, there are several passes.
    """
    edges = evidence.group_edges
    n_stretches = len(edges) - 1
    products = np.zeros((n_stretches, n_stretches))
    step = _functions_per_pass(evidence, n_stretches)
    for first in range(0, len(not_found), step):
        with_constant = np.concatenate([[0], not_found[first : first + step]])
        tested = DelayedBasis(basis.families, basis.indices[with_constant], memory=basis.memory)
        samples = replace(evidence.samples, basis=tested)
        sums = evidence.engine.fold(samples, fit.sum_residuals, edges=edges.tolist())
        vectors = np.array(sums)[:, 1:, :-1].reshape(n_stretches, -1)
        products += vectors @ vectors.T
    return squared_mean_from_stretches(
        products / fit.degrees_of_freedom**2, np.diff(edges) / evidence.n_samples
    )


def _functions_per_pass(evidence: Evidence, n_stretches: int) -> int:
    """Return the number of functions whose sums over all stretches fit into memory."""
    max_bytes = MAX_BYTES_OF_STRETCH_SUMS
    memory_limit = evidence.engine.memory_limit
    if memory_limit is not None:
        max_bytes = min(max_bytes, int(memory_limit * MEMORY_FRACTION_OF_STRETCH_SUMS))
    bytes_per_function = 8 * n_stretches * (evidence.rank + 1)
    return int(max(max_bytes // bytes_per_function, 1))


def _residual_sums(
    samples: Samples,
    start: int,
    stop: int,
    *,
    found: DelayedBasis,
    c: Floats,
    whitening_of_gram: Floats,
    **whitener: Any,
) -> Floats:
    """Return sums over some rows of y e and, last, of y² |e|²: (terms, rank + 1).

    Here e are the residuals of a fit, whitened.
    """
    total = np.zeros((len(samples.basis), whitening_of_gram.shape[1] + 1))
    for piece in iterate_pieces(samples, start, stop, found, **whitener):
        u = piece.inputs
        z = piece.z
        residuals = z - piece.phi.T @ to_library_of(c, z)
        e = residuals @ to_library_of(whitening_of_gram, z)
        e_power = to_numpy(array_namespace(e).sum(e * e, axis=1))
        total[:, :-1] += to_numpy(samples.basis.project([(u, e)]))
        total[:, -1] += samples.basis.sum_over_samples(u, e_power, power=2)
    return total
