"""Capacities under the law that the inputs really had (docs/recorded-law.md).

Functions of the inputs are orthonormalised in a graded order under the law of the recording. What a
function says that those before it do not is its innovation, and its capacity is R² of the
innovation from the readouts. Sums over stretches of neighbouring rows are all that is needed
(`_stretch_sums`): of all rows for the capacities, and without each stretch in turn for their bias
and errors (`_innovations`), and the scores of each stretch to tell them from zero (`_zero_test`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._arrays import array_namespace, to_numpy
from ..basis import DelayedBasis, ProductBasis, graded_order
from ..diagnostics import RecordedLawFacts, ResidualFacts, checks_of_recorded_law
from ..errors import DataError
from ..kernels import SMALLEST_DIVISOR, benjamini_hochberg
from ..result import RecordedLaw
from ..samples import Samples
from ..typing import Booleans, Floats, Integers
from ._evidence import Evidence
from ._fit import ControlSums
from ._groups import N_STRETCHES, cut_into_groups
from ._innovations import JackknifedCapacities, jackknife, whitening_of
from ._input_course import (
    correlation_time,
    first_inputs,
    near_period_of,
    period_of,
    slow_part,
)
from ._method import Estimate, Method
from ._recorded_inputs import gram_of_input_noise, input_deviations, with_powers_of_present
from ._recorded_residuals import look_at_residuals
from ._sequence import CAPACITY_ROUNDING
from ._stretch_sums import OrderedSums, StretchSums
from ._told_apart import ToldApart, tell_apart
from ._zero_test import ZeroTest, compare_with_zero

# Stretches of a sequence at least, and their length in units of the largest delay plus the
# correlation time of the inputs. Between these and 24 stretches the length decides.
MIN_STRETCHES = 8
STRETCH_TO_MEMORY = 2.0
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
# Kurtosis of what functions leave of the readouts above which the power of noise is known badly,
# and the factor of the error bars of sums. With 10 and more rows for each function, noise of
# Student's distribution with 3 degrees of freedom gave 4.3 to 160 in 81 recordings, in 78 of them
# above the limit, and normal noise at most 4.4 but under a telegraph signal, whose rare switches
# leave much. With 50 rows for each function 95 % intervals of 160 recordings of linear networks
# held in 92 % without the factor, and in 96 % with it.
MAX_KURTOSIS_OF_NOISE = 6.0
WIDENING_BY_HEAVY_NOISE = 1.25


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
    inputs = _look_at_inputs(evidence)
    dictionary = _tell_functions_apart(evidence, inputs.correlation_time, input_noise)
    measurement = _measure(evidence, dictionary)
    law = _law_of(measurement, inputs)
    facts = _facts(measurement, law, inputs)
    return _as_estimate(measurement, law, facts, false_discovery_rate)


# What is looked at: inputs, functions, and their capacities.


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Inputs of neighbouring rows, and how long they stay correlated."""

    values: Floats  # (rows, inputs)
    correlation_time: float

    @property
    def correlations(self) -> Floats:
        """Correlations of inputs with those of earlier rows, (delays, inputs, inputs)."""
        u = self.values
        deviation = u.std(axis=0)
        scaled = (u - u.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        n_delays = min(MAX_DELAY_OF_CORRELATIONS, len(u) - 1) + 1
        correlations = [scaled[k:].T @ scaled[: len(u) - k] / len(u) for k in range(n_delays)]
        return np.array(correlations)


def _look_at_inputs(evidence: Evidence) -> _Inputs:
    values = first_inputs(evidence.samples)[:, : evidence.basis.n_inputs]
    return _Inputs(values, correlation_time(values))


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """The functions that are asked for, further ones that are set aside, and which are kept.

    Functions of `union` are those that are asked for and powers of the present inputs. `order` has
    their numbers by degree, those that are asked for first; `told` is in this order.
    """

    asked: ProductBasis
    union: ProductBasis
    sums: StretchSums
    order: Integers
    told: ToldApart

    @property
    def kept(self) -> Integers:
        """The functions of the union that can be told apart, in their order."""
        return self.order[self.told.functions]

    @property
    def kept_asked(self) -> Integers:
        """Those of them that are asked for."""
        return self.kept[np.isin(self.kept, self._places_of_asked)]

    @property
    def kept_by_delay(self) -> Integers:
        """The functions of the union that can be told apart, by delay first."""
        order = graded_order(self.union, "delay")
        return order[np.isin(order, self.kept)]

    @property
    def pivots(self) -> Floats:
        """The pivot of each function that is asked for."""
        pivots = np.empty(len(self.union))
        pivots[self.order] = self.told.pivots
        return pivots[self._places_of_asked]

    @property
    def is_kept(self) -> Booleans:
        """Which of the functions that are asked for can be told apart."""
        return np.isin(self._places_of_asked, self.kept)

    @property
    def _places_of_asked(self) -> Integers:
        return self.asked.positions_in(self.union)

    def of_asked(self, values: Floats) -> Floats:
        """Return values of functions of the union as values of those that are asked for."""
        return values[..., self._places_of_asked]

    def spread(self, values: Floats) -> Floats:
        """Return values of `kept_asked`, (..., functions), as values of all that are asked for.

        They are NaN where a function cannot be told apart.
        """
        of_union = np.full((*values.shape[:-1], len(self.union)), np.nan)
        of_union[..., self.kept_asked] = values
        return self.of_asked(of_union)


def _tell_functions_apart(
    evidence: Evidence, time: float, input_noise: float | tuple[float, ...] | None
) -> _Dictionary:
    """Return the functions that can be told apart, and the sums over stretches of all of them."""
    samples = evidence.samples
    asked = evidence.basis
    union = with_powers_of_present(asked)
    edges = cut_into_groups(samples, _count_stretches(samples, time))
    _refuse_few_rows(evidence, union, edges)
    sums = StretchSums(evidence, union, edges)
    deviations = input_deviations(samples, input_noise)
    noise_gram = gram_of_input_noise(replace(samples, basis=union), edges, deviations)

    order = asked.positions_in(union)[graded_order(asked, "degree")]
    further = np.setdiff1d(np.arange(len(union)), order)
    order = np.concatenate([order, further])
    in_order = OrderedSums(sums, order)
    noise_in_order = None if noise_gram is None else noise_gram[np.ix_(order, order)]
    told = tell_apart(in_order.whole, in_order, noise_in_order)
    return _Dictionary(asked, union, sums, order, told)


def _count_stretches(samples: Samples, time: float) -> int:
    """Return the number of stretches: 24, or fewer of a sequence that is short for its memory."""
    if not samples.basis.of_sequences:
        return N_STRETCHES
    memory = samples.basis.memory + time
    n_stretches = int(samples.n_samples / (STRETCH_TO_MEMORY * memory))
    return int(np.clip(n_stretches, MIN_STRETCHES, N_STRETCHES))


def _refuse_few_rows(evidence: Evidence, union: ProductBasis, edges: Integers) -> None:
    """Refuse fewer rows than functions or readouts, also where a stretch is left out."""
    n_samples = evidence.n_samples
    n_without = n_samples - int(np.diff(edges).max())
    if n_without <= len(union) + 1 or len(edges) < 3:
        raise DataError(
            f"{n_samples} rows are too few for {len(union)} functions under the law of the "
            "recorded inputs (powers of the present input among them); take at least "
            f"{3 * len(union)} rows, or a smaller basis."
        )
    if n_without <= evidence.rank + 1:
        n_readouts = evidence.space.rank
        raise DataError(
            f"{n_samples} rows are too few for {n_readouts} independent readouts under the law of "
            f"the recorded inputs: without one stretch only {n_without} are left, which the "
            f"readouts fit without an error. Take at least {3 * n_readouts} rows, or fewer "
            "readouts."
        )


@dataclass(frozen=True, eq=False)
class _Measurement:
    """The capacities of the functions told apart, degree first, and what they rest on."""

    evidence: Evidence
    dictionary: _Dictionary
    capacities: JackknifedCapacities
    zero_test: ZeroTest
    residuals: ResidualFacts
    kurtosis: float  # the largest of a readout

    @property
    def has_excursions(self) -> bool:
        """Whether readouts have rare large excursions."""
        return self.kurtosis > MAX_KURTOSIS

    @property
    def has_heavy_noise(self) -> bool:
        """Whether what the functions leave has rare large values."""
        return self.residuals.kurtosis > MAX_KURTOSIS_OF_NOISE

    @property
    def widening(self) -> float:
        """The factor of the error bars of sums."""
        if self.has_excursions:
            return WIDENING_BY_EXCURSIONS
        return WIDENING_BY_HEAVY_NOISE if self.has_heavy_noise else 1.0

    @property
    def errors(self) -> Floats:
        """Standard errors of single capacities, (functions,).

        The squared noise scatters about its mean. Near zero the stretches see too little of this.
        """
        capacities = self.capacities
        by_stretches = capacities.error_of(capacities.without)
        share_of_noise = 1 - np.clip(capacities.capacity, 0.0, 1.0)
        squared_noise = self.zero_test.null_capacity * share_of_noise
        by_noise = 2 * squared_noise**2 / self.zero_test.n_directions
        errors: Floats = np.sqrt(by_stretches**2 + by_noise)
        return errors


def _measure(evidence: Evidence, dictionary: _Dictionary) -> _Measurement:
    functions = dictionary.kept_asked
    sums = OrderedSums(dictionary.sums, functions)
    capacities = jackknife(sums, evidence.samples.constant)
    return _Measurement(
        evidence=evidence,
        dictionary=dictionary,
        capacities=capacities,
        zero_test=compare_with_zero(sums, capacities),
        residuals=look_at_residuals(evidence, dictionary.union, functions, capacities.of_all),
        kurtosis=_largest_kurtosis(evidence),
    )


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


# What is told of them.


def _law_of(measurement: _Measurement, inputs: _Inputs) -> RecordedLaw:
    """Return what belongs to the law: sums by delay and degree, and plain R²."""
    dictionary = measurement.dictionary
    plain, plain_error = _plain_capacities(measurement)
    delays = _sums_by_delay(measurement)
    return RecordedLaw(
        n_functions=len(dictionary.asked),
        told_apart=dictionary.is_kept,
        pivots=dictionary.pivots,
        plain=plain,
        plain_error=plain_error,
        delay_capacity=delays.capacity,
        delay_error=delays.error,
        beyond_present=delays.beyond_present,
        beyond_present_error=delays.beyond_present_error,
        correlation_time=inputs.correlation_time,
        correlations=inputs.correlations[: dictionary.asked.memory + 1],
    )


def _plain_capacities(measurement: _Measurement) -> tuple[Floats, Floats]:
    """Return R² of each function that is asked for itself, and the standard errors of these."""
    dictionary = measurement.dictionary
    whole = dictionary.sums.whole
    has_constant = measurement.evidence.samples.constant
    without = []
    for stretch in dictionary.sums:
        without.append(_plain_of_sums(whole.without(stretch), has_constant))
    errors = measurement.capacities.error_of(np.array(without))
    plain = np.clip(_plain_of_sums(whole, has_constant), 0.0, 1.0)
    return dictionary.of_asked(plain), dictionary.of_asked(errors)


def _plain_of_sums(sums: ControlSums, has_constant: bool) -> Floats:
    """Return R² of each function itself, adjusted for the number of readouts."""
    n = sums.count
    whitening = whitening_of(sums)
    freedom = max(n - whitening.shape[1], 1)
    power = np.diag(sums.phi_phi) / n
    with_readouts = sums.phi_z / n
    explained = np.sum((with_readouts @ whitening) ** 2, axis=1)
    if has_constant:
        mean = with_readouts[:, 0]
        power = power - mean**2
        explained = explained - mean**2
    plain: Floats = explained / np.maximum(power, SMALLEST_DIVISOR)
    plain = 1 - (1 - plain) * (n - has_constant) / freedom
    if has_constant:
        plain[0] = 1.0
    return plain


@dataclass(frozen=True, eq=False)
class _DelaySums:
    """Sums by delay, from the order by delay first; None for rows that are no sequence."""

    capacity: Floats | None = None  # (delays, degrees)
    error: Floats | None = None  # (delays,)
    beyond_present: float | None = None
    beyond_present_error: float | None = None


def _sums_by_delay(measurement: _Measurement) -> _DelaySums:
    """Return what each delay adds to all functions of later inputs."""
    dictionary = measurement.dictionary
    union = dictionary.union
    if not isinstance(union, DelayedBasis):
        return _DelaySums()
    functions = dictionary.kept_by_delay
    sums = OrderedSums(dictionary.sums, functions)
    capacities = jackknife(sums, measurement.evidence.samples.constant)
    delays = union.largest_delays[functions]
    degrees = union.degrees[functions]
    n_delays = union.memory + 1
    table = np.zeros((n_delays, union.max_degree + 1))
    np.add.at(table, (delays, degrees), capacities.capacity)
    table[0, 0] = 0.0  # the constant
    errors = np.zeros(n_delays)
    for delay in range(n_delays):
        errors[delay] = capacities.sum_of((delays == delay) & (degrees > 0))[1]
    nothing_told_apart = np.setdiff1d(np.arange(n_delays), delays)
    table[nothing_told_apart] = np.nan
    errors[nothing_told_apart] = np.nan
    beyond, beyond_error = np.nan, np.nan
    if np.any(delays > 0):
        beyond, beyond_error = capacities.sum_of(delays > 0)
    widening = measurement.widening
    return _DelaySums(table, widening * errors, beyond, widening * beyond_error)


def _facts(measurement: _Measurement, law: RecordedLaw, inputs: _Inputs) -> RecordedLawFacts:
    """Return what the checks see."""
    samples = measurement.evidence.samples
    asked = measurement.dictionary.asked
    u = inputs.values
    is_long = len(u) < samples.u.shape[0]
    is_one_sequence = asked.of_sequences and samples.runs is None
    return RecordedLawFacts(
        law=law,
        n_samples=measurement.evidence.n_samples,
        n_functions=len(measurement.dictionary.kept_asked),
        first_rows=len(u) if is_long else None,
        constant_inputs=np.flatnonzero(np.ptp(u, axis=0) == 0).tolist(),
        input_names=_input_names(asked),
        of_sequence=asked.of_sequences,
        n_absent_functions=samples.n_absent_functions,
        kurtosis=measurement.kurtosis,
        has_excursions=measurement.has_excursions,
        has_heavy_noise=measurement.has_heavy_noise,
        residuals=measurement.residuals,
        largest_stretch=measurement.capacities.largest_share,
        period=period_of(u) if is_one_sequence else None,
        near_period=near_period_of(u) if is_one_sequence else None,
        slow_part=slow_part(u) if is_one_sequence else 0.0,
        total=measurement.capacities.total[0],
    )


def _input_names(basis: ProductBasis) -> list[str]:
    if basis.n_inputs == 1 and basis.of_sequences and not basis.families[0].variable:
        return ["u"]
    return basis.names


def _as_estimate(
    measurement: _Measurement,
    law: RecordedLaw,
    facts: RecordedLawFacts,
    false_discovery_rate: float,
) -> Estimate:
    """Return capacities of all functions that are asked for; zero where not significant."""
    capacities = measurement.capacities
    errors = measurement.errors
    p_value = measurement.zero_test.p_value.copy()
    if measurement.evidence.samples.constant:
        # The correlation of the constant with itself is known.
        errors[0] = 0.0
        p_value[0] = 0.0
    is_clear = benjamini_hochberg(p_value, false_discovery_rate)
    is_clear &= capacities.capacity > CAPACITY_ROUNDING
    shown = np.where(is_clear, np.clip(capacities.capacity, 0.0, 1.0), 0.0)
    total, total_error = capacities.total
    spread = measurement.dictionary.spread
    return Estimate(
        spread(shown),
        unbiased=spread(capacities.capacity),
        standard_error=spread(errors),
        p_value=spread(p_value),
        total=float(np.clip(total, 0.0, measurement.evidence.rank)),
        total_standard_error=measurement.widening * total_error,
        checks=tuple(checks_of_recorded_law(facts)),
        without_stretches=spread(capacities.without_for_sums(measurement.widening)),
        recorded_law=law,
        raw=spread(capacities.of_all.raw),
    )


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
