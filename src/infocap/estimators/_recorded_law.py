"""Capacities under the law that the inputs really had (docs/recorded-law.md).

Functions of the inputs are orthonormalised in a graded order under the law of the recording. What a
function says that those before it do not is its innovation, and its capacity is R² of the
innovation from the readouts. Sums over stretches of neighbouring rows are all that is needed: of
all rows for the capacities, and without each stretch in turn for their bias and errors (jackknife).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import scipy
from scipy.linalg import solve_triangular

from .._arrays import array_namespace, to_numpy
from ..basis import DelayedBasis, ProductBasis, graded_order
from ..diagnostics import RecordedLawFacts, checks_of_recorded_law
from ..errors import DataError
from ..kernels import SMALLEST_DIVISOR, benjamini_hochberg, effective_directions, student_widening
from ..result import RecordedLaw
from ..samples import Samples
from ..typing import Booleans, Floats, Integers
from ._evidence import Evidence
from ._fit import ControlSums, control_sums
from ._groups import N_STRETCHES, cut_into_groups
from ._method import Estimate, Method
from ._recorded_inputs import (
    correlation_time,
    first_inputs,
    gram_of_input_noise,
    input_deviations,
    period_of,
    with_powers_of_present,
)
from ._sequence import (
    CAPACITY_ROUNDING,
    MAX_BYTES_OF_STRETCH_SUMS,
    MEMORY_FRACTION_OF_STRETCH_SUMS,
)
from ._told_apart import tell_apart

# Stretches of a sequence at least, and their length in units of the largest delay plus the
# correlation time of the inputs. Between these and 24 stretches the length decides.
MIN_STRETCHES = 8
STRETCH_TO_MEMORY = 2.0
# Power of a direction of the readouts, relative to the largest, below which it is left out where
# one stretch is.
MIN_RELATIVE_POWER = 1e-10
# The longest delays whose correlations tell one drive from another.
MAX_DELAY_OF_CORRELATIONS = 10
# Sums of products that the method holds at a time, and that each thread holds: what it adds to, and
# values of functions.
N_LASTING_SUMS = 8
N_SUMS_PER_THREAD = 2
# Operations for each stretch, in units of the cubed number of functions: three Cholesky factors in
# two orders, and triangular solves.
OPERATIONS_PER_CUBE = 4.0
# Kurtosis of a readout above which totals rest on rare large excursions, and the factor of their
# error bars: 75 to 100 % of the recordings of bilinear devices are above it, and 0 to 6 % of those
# of echo state networks. Without the factor 95 % intervals of bilinear devices held in 55 to 95 %,
# with it in 82 to 100 %.
MAX_KURTOSIS = 6.0
WIDENING_BY_EXCURSIONS = 1.5


class StretchSums:
    """Sums over the rows of each stretch, which can be gone through several times.

    Where those of all stretches together would take too much memory, the rows are gone through
    again each time.
    """

    def __init__(self, evidence: Evidence, basis: ProductBasis, edges: Integers) -> None:
        self._engine = evidence.engine
        self._samples = replace(evidence.samples, basis=basis)
        self._sum_rows = partial(control_sums, **evidence.whitener)
        self.edges = edges
        max_bytes = MAX_BYTES_OF_STRETCH_SUMS
        if self._engine.memory_limit is not None:
            limit = int(self._engine.memory_limit * MEMORY_FRACTION_OF_STRETCH_SUMS)
            max_bytes = min(max_bytes, limit)
        self._kept: list[ControlSums] | None = None
        if 8 * len(basis) ** 2 * len(edges) < max_bytes:
            folded = self._engine.fold(self._samples, self._sum_rows, edges=edges.tolist())
            self._kept = [_on_host(sums) for sums in folded]
            self.whole = reduce(add, self._kept)
        else:
            self.whole = _on_host(self._engine.fold(self._samples, self._sum_rows))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __iter__(self) -> Iterator[ControlSums]:
        if self._kept is not None:
            yield from self._kept
            return
        for rows in pairwise(self.edges.tolist()):
            (sums,) = self._engine.fold(self._samples, self._sum_rows, edges=rows)
            yield _on_host(sums)


def _on_host(sums: ControlSums) -> ControlSums:
    return ControlSums(
        count=sums.count,
        phi_phi=to_numpy(sums.phi_phi),
        phi_z=to_numpy(sums.phi_z),
        z_z=to_numpy(sums.z_z),
    )


def _of_functions(sums: ControlSums, functions: Integers) -> ControlSums:
    """Return the sums of some functions in a given order."""
    return ControlSums(
        count=sums.count,
        phi_phi=sums.phi_phi[np.ix_(functions, functions)],
        phi_z=sums.phi_z[functions],
        z_z=sums.z_z,
    )


@dataclass(frozen=True, eq=False)
class Innovations:
    """Functions orthonormalised in their order, and what the readouts hold of each."""

    triangle: Floats  # of the Gram matrix, lower, (functions, functions)
    coefficients: Floats  # of the innovations along the readouts, (functions, rank)
    raw: Floats  # R² of each innovation, (functions,)
    # The same without what least squares with so many functions takes from white noise.
    adjusted: Floats


def orthonormalise(sums: ControlSums) -> Innovations:
    """Return the innovations of functions in the order of the sums, and their capacities."""
    n = sums.count
    triangle = np.linalg.cholesky(sums.phi_phi / n)
    coefficients = solve_triangular(triangle, sums.phi_z / n, lower=True, check_finite=False)
    power, directions = np.linalg.eigh(sums.z_z / n)
    is_clear = power > MIN_RELATIVE_POWER * power[-1]
    whitening = directions[:, is_clear] / np.sqrt(power[is_clear])
    raw = np.sum((coefficients @ whitening) ** 2, axis=1)
    n_directions = np.count_nonzero(is_clear)
    noise = (n_directions - raw.sum()) / (n - len(raw))
    return Innovations(triangle, coefficients, raw, raw - noise)


@dataclass(frozen=True, eq=False)
class JackknifedCapacities:
    """Capacities of innovations in one graded order, without bias, and without each stretch."""

    of_all: Innovations
    capacity: Floats  # (functions,)
    without: Floats  # capacities without each stretch, (stretches, functions)
    correlation: float  # of the influences of neighbouring stretches

    def error_of(self, without: Floats) -> Floats:
        """Return standard errors from values without each stretch, (stretches, ...)."""
        n_stretches = len(without)
        variance = (n_stretches - 1) * (1 + 2 * self.correlation) * np.var(without, axis=0)
        errors: Floats = student_widening(n_stretches) * np.sqrt(variance)
        return errors

    def sum_of(self, chosen: Booleans) -> tuple[float, float]:
        """Return the sum over chosen functions and its standard error."""
        error = self.error_of(self.without[:, chosen].sum(axis=1))
        return float(self.capacity[chosen].sum()), float(error)


def jackknife(sums: StretchSums, functions: Integers, has_constant: bool) -> JackknifedCapacities:
    """Return the capacities of functions in a given order, from all stretches and without each.

    The adjustment for white noise removes what is not small where functions are many. The jackknife
    of adjusted values removes the rest of order 1/N: from the covariance of the readouts, coloured
    noise, and chance correlations of the inputs.
    """
    whole = _of_functions(sums.whole, functions)
    of_all = orthonormalise(whole)
    rows = []
    for stretch in sums:
        rest = whole.without(_of_functions(stretch, functions))
        rows.append(orthonormalise(rest).adjusted)
    without = np.array(rows)
    if has_constant:
        without[:, 0] = 1.0
    n_stretches = len(without)
    capacity = of_all.adjusted + (n_stretches - 1) * (of_all.adjusted - without.mean(axis=0))
    if has_constant:
        capacity[0] = 1.0
    influence = without - without.mean(axis=0)
    power = max(float(np.sum(influence**2)), SMALLEST_DIVISOR)
    correlation = float(np.sum(influence[1:] * influence[:-1])) / power
    # Deviations from a common mean are correlated by -1/G on average.
    correlation = max(correlation + 1 / n_stretches, 0.0)
    return JackknifedCapacities(of_all, capacity, without, correlation)


@dataclass(frozen=True, eq=False)
class ZeroTest:
    """The test of every function's capacity against zero."""

    p_value: Floats
    null_capacity: Floats  # what noise alone gives on average, (functions,)
    n_directions: float  # effective number of directions of the noise


def compare_with_zero(
    sums: StretchSums, functions: Integers, capacities: JackknifedCapacities
) -> ZeroTest:
    """Test every capacity against zero by the scatter of its score from stretch to stretch (F).

    The score of a function in a stretch is the sum of its innovation times what the functions up to
    it leave of the readouts; without capacity, scores are independent with mean 0. Products of a
    score with that of the fit without the stretch are unbiased for white noise.
    """
    whole = _of_functions(sums.whole, functions)
    of_all = capacities.of_all
    n = whole.count
    n_functions = len(functions)
    scores = np.empty((len(sums), *of_all.coefficients.shape))
    near_far = np.zeros(n_functions)
    far_far = np.zeros(n_functions)
    for number, stretch in enumerate(sums):
        part = _of_functions(stretch, functions)
        without = orthonormalise(whole.without(part))
        half = solve_triangular(of_all.triangle, part.phi_phi, lower=True) / n
        share = solve_triangular(of_all.triangle, part.phi_z, lower=True) / n
        own = np.tril(solve_triangular(of_all.triangle, half.T, lower=True).T)
        other = np.tril(solve_triangular(without.triangle, half.T, lower=True).T)
        near = share - own @ of_all.coefficients
        far = share - other @ without.coefficients
        scores[number] = near
        near_far += np.sum(near * far, axis=1)
        far_far += np.sum(far**2, axis=1)
    smallest_null = 0.5 * (1 - n_functions / n) * far_far
    null_capacity = np.maximum(near_far, smallest_null)

    rank = scores.shape[2]
    left = np.eye(rank) - of_all.coefficients.T @ of_all.coefficients
    n_directions = max(effective_directions(left), 1.0)
    # Products of the scores of every two stretches, (functions, stretches, stretches).
    products = np.einsum("gmk,hmk->mgh", scores, scores, optimize=True)
    own_products = np.einsum("mgg->mg", products)
    power = np.sum(own_products, axis=1)
    between = np.sum(products**2, axis=(1, 2)) - np.sum(own_products**2, axis=1)
    directions = power**2 / np.maximum(between, SMALLEST_DIVISOR)
    directions = np.clip(directions, 1.0, n_directions)
    n_stretches = len(sums)
    unevenness = n_stretches * np.sum(own_products**2, axis=1)
    unevenness = unevenness / np.maximum(power**2, SMALLEST_DIVISOR) / (1 + 2 / directions)
    effective_stretches = n_stretches / np.maximum(unevenness, 1.0)
    freedom = np.maximum(directions * (effective_stretches - 1), 1.0)
    widened = np.maximum(null_capacity, SMALLEST_DIVISOR) * (1 + 2 * capacities.correlation)
    p_value = scipy.special.fdtrc(directions, freedom, of_all.raw / widened)
    return ZeroTest(p_value, null_capacity, n_directions)


def recorded_law(
    evidence: Evidence,
    *,
    false_discovery_rate: float = 0.05,
    input_noise: float | tuple[float, ...] | None = None,
) -> Estimate:
    """Return capacities of innovations, under the law that the inputs really had.

    Parameters
    ----------
    evidence
        Its basis is orthonormal under each input's own recorded values (`under_law`).
    false_discovery_rate
        The share of functions shown as not zero that may be false, on average.
    input_noise
        The standard deviation of the noise in the recorded inputs, one number or one for each;
        rounding to their smallest step by default.
    """
    samples = evidence.samples
    asked = evidence.basis
    union = with_powers_of_present(asked)
    u = first_inputs(samples)[:, : asked.n_inputs]
    time = correlation_time(u)
    edges = cut_into_groups(samples, _count_stretches(samples, time))
    _refuse_few_rows(samples, union, edges)
    sums = StretchSums(evidence, union, edges)
    deviations = input_deviations(samples, input_noise)
    noise_gram = gram_of_input_noise(replace(samples, basis=union), edges, deviations)

    place_in_union = asked.positions_in(union)
    order = place_in_union[graded_order(asked, "degree")]
    further = np.setdiff1d(np.arange(len(union)), order)
    order = np.concatenate([order, further])
    told = tell_apart(
        _of_functions(sums.whole, order),
        _Ordered(sums, order),
        None if noise_gram is None else noise_gram[np.ix_(order, order)],
    )
    kept = order[told.functions]
    kept_asked = kept[np.isin(kept, place_in_union)]
    by_degree = jackknife(sums, kept_asked, samples.constant)
    test = compare_with_zero(sums, kept_asked, by_degree)

    reported = _Reported(asked, union, kept_asked)
    kurtosis = _largest_kurtosis(evidence)
    widening = WIDENING_BY_EXCURSIONS if kurtosis > MAX_KURTOSIS else 1.0
    error = _errors_of_single_capacities(by_degree, test)
    p_value = test.p_value
    if samples.constant:  # The correlation of the constant with itself is known.
        error[0] = 0.0
        p_value[0] = 0.0
    is_clear = benjamini_hochberg(p_value, false_discovery_rate)
    is_clear &= by_degree.capacity > CAPACITY_ROUNDING
    unbiased = by_degree.capacity
    without = _scaled_for_sums(by_degree, widening)
    total, total_error = by_degree.sum_of(np.ones(len(kept_asked), dtype=bool))

    pivots = np.empty(len(union))
    pivots[order] = told.pivots
    law = RecordedLaw(
        n_functions=len(asked),
        told_apart=reported.is_kept,
        pivots=pivots[place_in_union],
        plain=_plain_capacities(sums.whole, samples.constant)[place_in_union],
        delay_capacity=None,
        delay_error=None,
        beyond_present=None,
        beyond_present_error=None,
        correlation_time=time,
        correlations=_correlations(u, asked.memory),
    )
    if isinstance(union, DelayedBasis):
        law = _with_delays(law, sums, union, kept, widening, samples.constant)
    influence = by_degree.without.sum(axis=1)
    influence = (influence - influence.mean()) ** 2
    facts = RecordedLawFacts(
        law=law,
        n_samples=evidence.n_samples,
        n_functions=len(kept_asked),
        constant_inputs=np.flatnonzero(np.ptp(u, axis=0) == 0).tolist(),
        input_names=_input_names(asked),
        of_sequence=asked.of_sequences,
        n_absent_functions=samples.n_absent_functions,
        kurtosis=kurtosis,
        has_excursions=kurtosis > MAX_KURTOSIS,
        largest_stretch=float(influence.max() / max(influence.sum(), SMALLEST_DIVISOR)),
        period=period_of(u) if asked.of_sequences and samples.runs is None else None,
        total=total,
    )
    shown = np.where(is_clear, np.clip(unbiased, 0.0, 1.0), 0.0)
    return Estimate(
        reported.spread(shown),
        unbiased=reported.spread(unbiased),
        standard_error=reported.spread(error),
        p_value=reported.spread(p_value),
        total=float(np.clip(total, 0.0, evidence.rank)),
        total_standard_error=widening * total_error,
        checks=tuple(checks_of_recorded_law(facts)),
        without_stretches=np.array([reported.spread(row) for row in without]),
        recorded_law=law,
        raw=reported.spread(by_degree.of_all.raw),
    )


def _errors_of_single_capacities(capacities: JackknifedCapacities, test: ZeroTest) -> Floats:
    """Return the standard errors of single capacities, (functions,).

    The squared noise scatters about its mean. Near zero the stretches see too little of this.
    """
    by_stretches = capacities.error_of(capacities.without)
    squared_noise = test.null_capacity * (1 - np.clip(capacities.capacity, 0.0, 1.0))
    errors: Floats = np.sqrt(by_stretches**2 + 2 * squared_noise**2 / test.n_directions)
    return errors


def _scaled_for_sums(capacities: JackknifedCapacities, widening: float) -> Floats:
    """Return capacities without each stretch, so far from their mean that a plain jackknife holds.

    It then gives the errors of any sum, as if stretches were independent.
    """
    mean = capacities.without.mean(axis=0)
    scale = widening * np.sqrt(1 + 2 * capacities.correlation)
    scaled: Floats = mean + scale * (capacities.without - mean)
    return scaled


def recorded_law_bytes(n_samples: int, n_columns: int, n_terms: int, n_threads: int) -> float:
    """Return the memory that the method takes: products of functions, by thread and by stretch."""
    sums = 8.0 * n_terms * (n_terms + n_columns)
    return (N_LASTING_SUMS + N_SUMS_PER_THREAD * n_threads) * sums


def recorded_law_work(n_samples: int, n_columns: int, n_terms: int) -> float:
    """Return the floating-point operations: products over the rows, and matrices by stretch."""
    products = 2.0 * n_samples * n_terms * (n_terms + n_columns)
    matrices = N_STRETCHES * OPERATIONS_PER_CUBE * n_terms**3
    return products + matrices


RECORDED_LAW = Method(
    name="recorded law",
    function=recorded_law,
    summary="capacities of innovations under the law that the inputs really had",
    takes_weights=False,
    extra_bytes=recorded_law_bytes,
    extra_work=recorded_law_work,
)


@dataclass(frozen=True, eq=False)
class _Ordered:
    """The sums over stretches with their functions in another order."""

    sums: StretchSums
    order: Integers

    def __iter__(self) -> Iterator[ControlSums]:
        for stretch in self.sums:
            yield _of_functions(stretch, self.order)


class _Reported:
    """Where the functions that can be told apart are among all that are reported."""

    def __init__(self, asked: ProductBasis, union: ProductBasis, kept: Integers) -> None:
        place_in_asked = np.full(len(union), -1)
        place_in_asked[asked.positions_in(union)] = np.arange(len(asked))
        self._places = place_in_asked[kept]
        self.is_kept = np.zeros(len(asked), dtype=bool)
        self.is_kept[self._places] = True

    def spread(self, values: Floats) -> Floats:
        """Return values of kept functions as values of all; NaN where there is none."""
        spread = np.full(len(self.is_kept), np.nan)
        spread[self._places] = values
        return spread


def _count_stretches(samples: Samples, time: float) -> int:
    """Return the number of stretches: 24, or fewer of a sequence that is short for its memory."""
    if not samples.basis.of_sequences:
        return N_STRETCHES
    memory = samples.basis.memory + time
    n_stretches = int(samples.n_samples / (STRETCH_TO_MEMORY * memory))
    return int(np.clip(n_stretches, MIN_STRETCHES, N_STRETCHES))


def _refuse_few_rows(samples: Samples, union: ProductBasis, edges: Integers) -> None:
    """Refuse fewer rows than functions, also where a stretch is left out."""
    n_without = samples.n_samples - int(np.diff(edges).max())
    if n_without <= len(union) + 1 or len(edges) < 3:
        raise DataError(
            f"{samples.n_samples} rows are too few for {len(union)} functions under the law of the "
            "recorded inputs (powers of the present input among them); take at least "
            f"{3 * len(union)} rows, or a smaller basis."
        )


def _with_delays(
    law: RecordedLaw,
    sums: StretchSums,
    union: DelayedBasis,
    kept: Integers,
    widening: float,
    has_constant: bool,
) -> RecordedLaw:
    """Return the law with the sums by delay, from the grading by delay first."""
    order = graded_order(union, "delay")
    functions = order[np.isin(order, kept)]
    capacities = jackknife(sums, functions, has_constant)
    delays = union.largest_delays[functions]
    degrees = union.degrees[functions]
    table = np.zeros((union.memory + 1, union.max_degree + 1))
    np.add.at(table, (delays, degrees), capacities.capacity)
    table[0, 0] = 0.0  # the constant
    nothing_told_apart = np.setdiff1d(np.arange(len(table)), delays)
    table[nothing_told_apart] = np.nan
    errors = [
        capacities.sum_of((delays == delay) & (degrees > 0))[1] for delay in range(union.memory + 1)
    ]
    delay_error = np.array(errors)
    delay_error[nothing_told_apart] = np.nan
    beyond, error = capacities.sum_of(delays > 0)
    return replace(
        law,
        delay_capacity=table,
        delay_error=widening * delay_error,
        beyond_present=beyond,
        beyond_present_error=widening * error,
    )


def _plain_capacities(whole: ControlSums, has_constant: bool) -> Floats:
    """Return R² of each function itself, adjusted for the number of readouts."""
    n = whole.count
    rank = whole.phi_z.shape[1]
    power = np.diag(whole.phi_phi) / n
    explained = np.sum((whole.phi_z / n) ** 2, axis=1)
    if has_constant:
        mean = whole.phi_z[:, 0] / n
        power = power - mean**2
        explained = explained - mean**2
    plain = explained / np.maximum(power, SMALLEST_DIVISOR)
    plain = 1 - (1 - plain) * (n - has_constant) / (n - rank)
    if has_constant:
        plain[0] = 1.0
    return np.clip(plain, 0.0, 1.0)


def _correlations(u: Floats, memory: int) -> Floats:
    """Return correlations of inputs with those of earlier rows, (delays, inputs, inputs)."""
    deviation = u.std(axis=0)
    scaled = (u - u.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    n_delays = min(memory, MAX_DELAY_OF_CORRELATIONS, len(u) - 1) + 1
    correlations = [scaled[k:].T @ scaled[: len(u) - k] / len(u) for k in range(n_delays)]
    return np.array(correlations)


def _input_names(basis: ProductBasis) -> list[str]:
    if basis.n_inputs == 1 and basis.of_sequences and not basis.families[0].variable:
        return ["u"]
    return basis.names


def _largest_kurtosis(evidence: Evidence) -> float:
    """Return the largest kurtosis of a readout."""
    mean = evidence.space.mean
    powers = to_numpy(evidence.engine.fold(evidence.samples, partial(_powers, mean=mean)))
    squares, fourth_powers = powers
    kurtosis = evidence.n_samples * fourth_powers / np.maximum(squares**2, SMALLEST_DIVISOR)
    return float(kurtosis.max(initial=0.0))


def _powers(samples: Samples, start: int, stop: int, *, mean: Any) -> Any:
    """Return the sums of squares and of fourth powers of readouts, (2, readouts)."""
    x = samples.readouts(start, stop, mean)[:, int(samples.constant) :]
    xp = array_namespace(x)
    return xp.stack([xp.sum(x**2, axis=0), xp.sum(x**4, axis=0)])
