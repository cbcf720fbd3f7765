"""Permutation tests of reference inputs: did offset, response or noise change with time?

Where the device is steady, any two measurements at the same input can change places. So what
functions of time (slow waves and steps) explain of the readouts is compared with what they explain
in random orders of the measurements at each input, whatever the noise looks like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..typing import Floats, Integers
from ._chance import FALSE_ALARM_PER_DATA_SET, N_TESTS, gamma_tail
from ._reference_series import ReferenceSeries, centred

# The p-value below which a change is reported: the same as for one test of the rows.
LEVEL = FALSE_ALARM_PER_DATA_SET / N_TESTS
# Slow changes are looked for in three bands: cosines with up to so many half-waves per run.
BANDS = (2, 8, 24)
# Degrees of freedom that are needed for each coefficient in the fit of a band.
MIN_MEASUREMENTS_PER_WAVE = 3
# Measurements that there must be before and after a step, and the most places where one is tried.
MIN_PART = 4
MAX_PLACES = 32
# An offset or a response that changes makes measurements scatter more. So where the noise changes
# beyond doubt, a change of these with a p-value below this is reported as its cause.
MAX_P_VALUE_BEHIND_NOISE = 1e-3
# Where the offset changes, too, a response with less than this part of its power is what the fit
# of the offset leaves.
MIN_SHARE_OF_RESPONSE = 0.1
# The p-value, of one channel alone, below which it is likely to have changed with others.
P_VALUE_OF_A_CHANNEL = 0.01
# The 95 % quantile of the normal distribution.
ONE_SIDED_95 = 1.645
# Mean and scale of the Gumbel distribution of the largest of many numbers.
EULER_GAMMA = 0.5772156649
GUMBEL_SCALE = np.sqrt(6) / np.pi


# Functions of time: slow waves and steps.


@dataclass(frozen=True, eq=False)
class TimeFunctions:
    """Functions of time at the reference measurements, with mean zero at each input.

    The first functions are slow waves, which are orthonormal; a band is the first few of them. Each
    further function is one step, normalised by itself. A band, or one step, is called a pattern.

    Fitted with one coefficient for all inputs, a function describes a change of the offset. With a
    coefficient for each input, it describes a change of the response.
    """

    common: Floats  # normalised on all measurements, (measurements, functions)
    at_inputs: Floats  # normalised on the measurements at each input, (measurements, functions)
    bands: list[int]  # how many waves each band has

    def reordered(self, order: Integers) -> TimeFunctions:
        """Return the functions for another order of the measurements."""
        return TimeFunctions(self.common[order], self.at_inputs[order], self.bands)

    def explained(self, values: Floats, rows_of_inputs: list[Integers]) -> ExplainedSquares:
        """Return the sums of squares of columns that each pattern explains."""
        by_offset = self._by_pattern((self.common.T @ values) ** 2)
        by_each_input = np.zeros_like(by_offset)
        for rows in rows_of_inputs:
            by_each_input += self._by_pattern((self.at_inputs[rows].T @ values[rows]) ** 2)
        return ExplainedSquares(by_offset, np.maximum(by_each_input - by_offset, 0.0))

    def fit(
        self, values: Floats, rows_of_inputs: list[Integers], chosen: slice, of_response: bool
    ) -> Floats:
        """Return the fit of columns by chosen functions, of a response with one fit per input."""
        if not of_response:
            functions = self.common[:, chosen]
            return functions @ (functions.T @ values)
        fitted = np.zeros_like(values)
        for rows in rows_of_inputs:
            functions = self.at_inputs[rows, chosen]
            fitted[rows] = functions @ (functions.T @ values[rows])
        return fitted

    def _by_pattern(self, power: Floats) -> Floats:
        """Add up the power of the waves of each band; the power of a step stays."""
        n_waves = self.bands[-1]
        of_bands = np.cumsum(power[:n_waves], axis=0)[np.array(self.bands) - 1]
        return np.concatenate([of_bands, power[n_waves:]])


@dataclass(frozen=True, eq=False)
class ExplainedSquares:
    """Sums of squares that each pattern explains, (patterns, columns)."""

    offset: Floats  # by one coefficient for all inputs
    response: Floats  # how much more by a coefficient for each input

    def of(self, of_response: bool) -> Floats:
        """Return what is explained by one coefficient, or by one for each input."""
        return self.offset + self.response if of_response else self.offset


def resolvable_bands(n_free: int, n_inputs: int = 1) -> list[int]:
    """Return the bands with enough degrees of freedom for a coefficient per wave and input."""
    return [n for n in BANDS if n * n_inputs * MIN_MEASUREMENTS_PER_WAVE <= n_free]


def functions_of_time(series: ReferenceSeries, every_place: bool = False) -> TimeFunctions:
    """Return the slow waves of all resolvable bands, and steps at some places or at every one."""
    bands = resolvable_bands(series.n_free)
    places = np.arange(MIN_PART, series.n - MIN_PART + 1)
    if not every_place and len(places) > MAX_PLACES:
        places = np.linspace(places[0], places[-1], MAX_PLACES).round().astype(int)
    moments = np.arange(series.n)
    phase = np.pi * (moments + 0.5) / series.n
    waves = centred(np.cos(np.outer(phase, np.arange(1, bands[-1] + 1))), series.rows_of_inputs)
    steps = (moments[:, None] >= places).astype(float)
    steps = centred(steps, series.rows_of_inputs)
    waves_at_inputs = np.zeros_like(waves)
    steps_at_inputs = np.zeros_like(steps)
    for rows in series.rows_of_inputs:
        n_independent = min(bands[-1], len(rows) - 1)
        waves_at_inputs[rows, :n_independent], _ = np.linalg.qr(waves[rows, :n_independent])
        steps_at_inputs[rows] = _normalised(steps[rows])
    common_waves, _ = np.linalg.qr(waves)
    return TimeFunctions(
        common=np.hstack([common_waves, _normalised(steps)]),
        at_inputs=np.hstack([waves_at_inputs, steps_at_inputs]),
        bands=bands,
    )


def _normalised(functions: Floats) -> Floats:
    """Return columns of length 1; one without a step stays 0."""
    lengths = np.sqrt(np.sum(functions**2, axis=0))
    return functions / np.where(lengths > 0, lengths, 1.0)


# What they explain in the measured order, and in random orders.


@dataclass(frozen=True, eq=False)
class Permutations:
    """What functions of time explain in the measured order, and in random orders.

    The columns are those of a `ReferenceSeries`, beside each other. `offset` and `response` are
    those of `ExplainedSquares`, with the shape (orders, patterns, columns). The first order is
    the measured one.
    """

    offset: Floats
    response: Floats
    total: Floats  # sums of squares of the columns, (columns,)
    columns: dict[str, slice]  # which are "components", "channels", "misfit" and "whitened"
    # Which patterns are tested together, for each kind of change: each band alone, and all steps.
    patterns: dict[str, list[slice]]
    n_functions: list[int]  # of each pattern
    n: int  # number of measurements
    n_free: int  # degrees of freedom: one less for each input

    @property
    def n_directions(self) -> int:
        """Number of whitened readouts, which no capacity exceeds."""
        whitened = self.columns["whitened"]
        return int(whitened.stop - whitened.start)

    def capacities(self, kind: str, pattern: slice) -> Floats:
        """Return the capacity of the best of some patterns, with its bias, (orders,)."""
        columns = self.columns["whitened"]
        power = self.offset[:, pattern, columns]
        if kind == "response":
            power = power + self.response[:, pattern, columns]
        best = int(np.argmax(power[0].sum(axis=1)))
        return power[:, best].sum(axis=1) / self.n

    def evidence(self, kind: str, pattern: slice, name: str) -> Floats:
        """Return twice the log likelihood ratio for normal noise, (orders, patterns, columns)."""
        columns = self.columns[name]
        total = np.maximum(self.total[columns], np.finfo(float).tiny)
        offset = self.offset[:, pattern, columns] / total
        rest = np.maximum(1 - offset, np.finfo(float).eps)
        if kind == "response":
            response = self.response[:, pattern, columns] / total
            rest = np.maximum(1 - response / rest, np.finfo(float).eps)
        return -self.n_free * np.log(rest)


def permute(series: ReferenceSeries, n_orders: int) -> Permutations:
    """Return what functions of time explain in the measured order and in random ones."""
    parts = {
        "components": series.components,
        "channels": series.deviations,
        "misfit": series.log_misfit,
        "whitened": series.whitened,
    }
    columns = {}
    n_columns = 0
    for name, part in parts.items():
        columns[name] = slice(n_columns, n_columns + part.shape[1])
        n_columns += part.shape[1]
    values = np.hstack(list(parts.values()))

    functions = functions_of_time(series)
    generator = np.random.default_rng(0)
    explained = [functions.explained(values, series.rows_of_inputs)]
    for _ in range(n_orders):
        reordered = functions.reordered(_random_order(series.rows_of_inputs, generator))
        explained.append(reordered.explained(values, series.rows_of_inputs))

    n_bands = len(functions.bands)
    n_bands_of_response = 0
    steps_of_response = []
    n_other_inputs = len(series.rows_of_inputs) - 1
    steps = slice(n_bands, None)
    if n_other_inputs:
        n_bands_of_response = len(resolvable_bands(series.n_free, n_other_inputs))
        steps_of_response = [steps]
    bands = [slice(band, band + 1) for band in range(n_bands)]
    return Permutations(
        offset=np.array([found.offset for found in explained]),
        response=np.array([found.response for found in explained]),
        total=np.sum(values**2, axis=0),
        columns=columns,
        patterns={
            "offset": [*bands, steps],
            "response": [*bands[:n_bands_of_response], *steps_of_response],
            "noise": [*bands, steps],
        },
        n_functions=[*functions.bands, *[1] * (explained[0].offset.shape[0] - n_bands)],
        n=series.n,
        n_free=series.n_free,
    )


def _random_order(rows_of_inputs: list[Integers], generator: np.random.Generator) -> Integers:
    """Return a random order in which measurements only change places at the same input."""
    order = np.empty(sum(len(rows) for rows in rows_of_inputs), dtype=int)
    for rows in rows_of_inputs:
        order[rows] = generator.permutation(rows)
    return order


# The clearest changes.


@dataclass(frozen=True)
class Change:
    """The clearest change of a kind: its p-value, and the patterns that show it."""

    kind: str  # "offset", "response" or "noise"
    p_value: float
    pattern: slice  # one band, or all steps
    # The power of the response relative to that of the offset, where the change is clearest.
    share_of_response: float = 0.0


def clearest_changes(permutations: Permutations) -> dict[str, Change]:
    """Return the clearest change of the offset, of the response and of the noise.

    A change of offset or response is looked for in principal components, whose evidence is added
    up, and in single channels, of which the largest counts.
    """
    tests = []
    for kind, patterns in permutations.patterns.items():
        for name in ("misfit",) if kind == "noise" else ("components", "channels"):
            tests += [(kind, pattern, name) for pattern in patterns]
    clearest: dict[str, Change] = {}
    for kind, pattern, name in tests:
        evidence = permutations.evidence(kind, pattern, name)
        of_pattern = evidence.max(axis=2) if name == "channels" else evidence.sum(axis=2)
        largest = of_pattern.max(axis=1)
        p_value = min(tail_probability(float(largest[0]), largest[1:]) * len(tests), 1.0)
        if kind not in clearest or p_value < clearest[kind].p_value:
            share = _share_of_response(permutations, evidence[0], pattern, name)
            clearest[kind] = Change(kind, p_value, pattern, share)
    return clearest


def _share_of_response(
    permutations: Permutations, evidence: Floats, pattern: slice, name: str
) -> float:
    """Return the power of the response relative to that of the offset, where `evidence` is largest.

    The evidence has the shape (patterns, columns).
    """
    columns = permutations.columns[name]
    offset = permutations.offset[0, pattern, columns]
    response = permutations.response[0, pattern, columns]
    if name == "channels":
        best = np.unravel_index(np.argmax(evidence), evidence.shape)
        return float(response[best] / max(offset[best], np.finfo(float).tiny))
    best_pattern = int(np.argmax(evidence.sum(axis=1)))
    total_offset = max(float(offset[best_pattern].sum()), np.finfo(float).tiny)
    return float(response[best_pattern].sum()) / total_offset


def tail_probability(value: float, draws: Floats) -> float:
    """Return the probability above a value, by mean and variance of random draws.

    A sum of few squares has the tail of a gamma distribution, the largest of many numbers about
    that of a Gumbel distribution. Of both the larger is returned, so that neither statistic gets
    too small a p-value.
    """
    scale = float(np.std(draws)) * GUMBEL_SCALE
    if scale <= 0:
        return 1.0 if value <= np.mean(draws) else 0.0
    mode = float(np.mean(draws)) - EULER_GAMMA * scale
    of_gumbel = float(-np.expm1(-np.exp(-(value - mode) / scale)))
    return max(of_gumbel, gamma_tail(value, draws))


def change_to_report(changes: dict[str, Change]) -> Change | None:
    """Return the change to report; None where chance explains all of them.

    A response that changes also changes the offset and the scatter, and an offset that changes also
    changes the scatter. So the first of them that is clear is reported. An exception is a response
    much smaller than the offset, which may be what the fit of the offset leaves.
    """
    clearest = min(changes.values(), key=_p_value)
    if clearest.p_value >= LEVEL:
        return None
    response = changes.get("response")
    offset = changes["offset"]
    offset_changed = offset.p_value < LEVEL
    if response is not None and response.p_value < LEVEL:
        is_small = response.share_of_response < MIN_SHARE_OF_RESPONSE
        return offset if offset_changed and is_small else response
    if offset_changed:
        return offset
    behind_noise = min((changes[kind] for kind in changes if kind != "noise"), key=_p_value)
    if behind_noise.p_value < MAX_P_VALUE_BEHIND_NOISE:
        return replace(behind_noise, p_value=clearest.p_value)
    return clearest


def _p_value(change: Change) -> float:
    return change.p_value


def changed_channels(permutations: Permutations, change: Change) -> Integers:
    """Return the numbers of the channels that changed; all of them where none stands out."""
    kind = "offset" if change.kind == "noise" else change.kind
    evidence = permutations.evidence(kind, change.pattern, "channels").max(axis=1)
    by_chance = evidence[1:].max(axis=1)
    is_certain = np.array(
        [tail_probability(float(value), by_chance) < LEVEL for value in evidence[0]]
    )
    usual = np.quantile(evidence[1:], 1 - P_VALUE_OF_A_CHANNEL, axis=0)
    is_likely = evidence[0] > usual
    # By chance some channels pass the second, weaker test. Only if more do, it counts.
    n_only_likely = int(is_likely.sum() - is_certain.sum())
    is_changed = is_certain
    if n_only_likely > 1 + 2 * P_VALUE_OF_A_CHANNEL * len(is_likely):
        is_changed = is_likely
    return np.flatnonzero(is_changed) if is_changed.any() else np.arange(len(is_changed))


def least_capacity(permutations: Permutations, change: Change) -> float:
    """Return a capacity that a change holds at least (95 %), in all whitened readouts."""
    kind = "offset" if change.kind == "noise" else change.kind
    capacities = permutations.capacities(kind, change.pattern)
    by_chance = capacities[1:]
    least = float(capacities[0] - by_chance.mean() - ONE_SIDED_95 * by_chance.std())
    n_functions = permutations.n_functions[change.pattern][0]
    if kind == "response":
        n_functions *= permutations.n - permutations.n_free  # one more for each input
    return min(least, permutations.n_directions, float(n_functions))


def largest_unseen_capacity(permutations: Permutations) -> float:
    """Return the capacity that slow changes hold at most (95 %), though none was found.

    Random orders show the bias and the variance of the capacity where nothing changes. With a
    change it scatters more: its variance grows as that of a noncentral chi-squared number.
    """
    kind = "response" if permutations.patterns["response"] else "offset"
    slowest = permutations.patterns["offset"][0]
    capacities = permutations.capacities(kind, slowest)
    bias = float(capacities[1:].mean())
    variance = float(capacities[1:].var())
    excess = max(float(capacities[0]) - bias, 0.0)
    # Of n terms, each a squared normal number of variance s, the mean is n s and the variance
    # 2 n s^2, so this is s.
    scale = variance / (2 * bias) if bias > 0 else 0.0
    return excess + ONE_SIDED_95 * float(np.sqrt(variance + 4 * excess * scale))
