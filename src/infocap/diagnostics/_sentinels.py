"""Tests of reference inputs, which were measured again and again at random moments of a run.

The readouts at one input may scatter, but of a steady device they know nothing of the time. Each
measurement is compared with the others at its own input, so no fit is needed, and the order of the
samples does not matter. Where the device is steady, any two measurements at the same input can
change places. Every p-value comes from such random orders, whatever the noise looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._formatting import counted, join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import chi_squared_tail, gamma_tail
from ._finding import finding
from ._order import FALSE_ALARM_PER_DATA_SET, N_RANDOM_ORDERS, N_TESTS

# What users read where the references are in order.
REFERENCES_CHECK = "reference inputs that give the same readouts along the run"
# The cause of the note that says so.
STEADY = "steady"
# What users read where the rows show no change with time. References may show one all the same.
CHANGES_CHECK = "readouts and a response that do not change with time"
# Probability by chance below which a change is told, that of one test of the rows.
LEVEL = FALSE_ALARM_PER_DATA_SET / N_TESTS
# Fewer measurements have too few orders to tell a change from chance at the level of the tests.
MIN_REFERENCES = 16
# Measurements at an input; those at an input measured less often are left out.
MIN_PER_INPUT = 4
# A probability below the level is computed again from so many random orders, unless it is so small
# that no tail is fitted that badly.
N_MORE_ORDERS = 1000
CERTAIN_P_VALUE = 1e-9
# The slow waves that are looked for, in half-waves per run: one after the other in each band.
BANDS = (2, 8, 24)
# Measurements, less one for each input, for each number that the fit of a band has.
MIN_MEASUREMENTS_PER_WAVE = 3
# Sums of channels in which the references vary most, in units of their noise: there a change of
# many channels is seen that is lost in the noise of each.
N_SUMS = 4
# References count up to so many standard deviations of the samples from the usual value at their
# input: a glitch is no change.
MAX_SPREADS = 5.0
# Scatter of a channel, in its standard deviation over the samples, below which it is rounding.
MIN_SCATTER = 1e-9
# The share of deviations within so many standard deviations of a normal distribution: it tells the
# scatter of a channel. Larger deviations are cut, unless many of them make a change.
USUAL_SHARE = 0.9
NORMAL_QUANTILE = 1.645
MAX_DEVIATION = 3.0
# Relative variance of a direction of the readouts below which it is rounding, and samples for each
# direction that capacities are computed in.
MIN_RELATIVE_VARIANCE = 1e-10
MIN_SAMPLES_PER_DIRECTION = 4
# Channels that are looked at, equally spaced among more.
MAX_CHANNELS = 512
# Standard deviations of a normal distribution that 95 % lie below, for the largest change that may
# have stayed unseen.
ONE_SIDED_95 = 1.645
# A part of the run, in measurements, on each side of a jump, and the places that are tried.
MIN_PART = 4
MAX_PLACES = 32
# Beside a change of noise, a change of the offset or of the response is told where chance alone
# gives one in fewer than this part of all runs: the noise is then its trace.
MAX_P_VALUE_OF_NAME = 1e-3
# Beside a change of the offset, a change of the response has at least this part of its power.
MIN_SHARE_OF_RESPONSE = 0.1
# References prove that a device was steady where slow changes hold no more capacity than this.
MAX_UNSEEN_OF_STEADY = 0.5
# A change is a jump where a step leaves no slow waves, by a test at this level.
P_VALUE_OF_WAVES_BESIDE_A_JUMP = 1e-3
# Channels are named where less than this part of them changed, by a test of each at this level.
MAX_SHARE_OF_NAMED_CHANNELS = 0.5
P_VALUE_OF_A_CHANNEL = 0.01
# The response after a jump, as a multiple of that before: below the first the polarity flipped, and
# below the second in size nothing of the response is left.
FLIPPED_GAIN = -0.5
DEAD_GAIN = 0.1
# It is a multiple where it explains this part of the response after the jump.
MIN_SHARE_OF_GAIN = 0.8
# Times above this are seconds since 1970, and are told as date and time.
MIN_CLOCK_S = 1e8
# Names of channels in a message.
MAX_NAMES = 4
# Mean and scale of the Gumbel distribution of the largest of many numbers.
EULER_GAMMA = 0.5772156649
GUMBEL_SCALE = np.sqrt(6) / np.pi
# The log of the misfit ends here.
MAX_MISFIT_RESIDUAL = 30.0
SMALLEST_MISFIT = 1e-3


@dataclass(frozen=True, eq=False)
class References:
    """Readouts at a few inputs that were measured again and again, in the order of acquisition.

    Parameters
    ----------
    readouts
        What came back, (measurements, channels).
    input_numbers
        Which of the reference inputs it was, (measurements,).
    rows_before
        How many samples had been measured before, (measurements,); None where it is not known.
    time
        When, in seconds, (measurements,); None where it is not known.
    channels
        The names of the channels.
    samples
        Readouts of some samples, (rows, channels): the unit in which changes are told.
    """

    readouts: Floats
    input_numbers: Integers
    rows_before: Integers | None
    time: Floats | None
    channels: list[str]
    samples: Floats


@dataclass(frozen=True, eq=False)
class Steadiness:
    """What the references say: findings where they changed, else how small all changes were.

    Parameters
    ----------
    checks
        The findings; the note that the device was steady where there are none.
    largest_unseen
        The capacity below which slow changes may have stayed unseen (95 %); None where the
        references changed.
    """

    checks: tuple[Check, ...]
    largest_unseen: float | None


@dataclass(frozen=True, eq=False)
class _Series:
    """The references made ready: what is left of each measurement by the mean at its input."""

    rows_of_inputs: list[Integers]  # the measurements at each input
    noise_units: Floats  # deviations in units of their scatter, cut, (measurements, channels)
    sums: Floats  # of these, those that vary most, (measurements, sums)
    log_misfit: Floats  # (measurements, 1)
    whitened: Floats  # deviations in whitened readouts, (measurements, directions)
    spreads: Floats  # readouts in standard deviations of the samples, cut, (measurements, channels)
    scatter: Floats  # of each channel, in the same unit, (channels,)
    samples: Floats  # the samples in the same unit, mean 0, (rows, channels)
    channels: Integers  # numbers of the channels that scatter at an input; others are left out

    @property
    def n(self) -> int:
        """Number of measurements."""
        return len(self.spreads)

    @property
    def n_free(self) -> int:
        """Number of measurements less one for each input."""
        return self.n - len(self.rows_of_inputs)


@dataclass(frozen=True)
class _Change:
    """The clearest change of a kind: its probability by chance, and the band that shows it."""

    kind: str  # "offset", "response" or "noise"
    p_value: float
    form: slice  # the band, or the steps, among bands and steps
    # What functions of each input explain where they are clearest, relative to the same functions.
    share_of_response: float = 0.0


def look_at_references(references: References) -> Steadiness | None:
    """Return what the references say; None where they are too few to say anything."""
    references = _usable(references)
    if min(len(references.readouts), len(references.samples)) < MIN_REFERENCES:
        return None
    series = _prepare(references)
    if not len(series.channels):
        return Steadiness((_steady_note(series, 0.0),), 0.0)
    draws = _draw(series, N_RANDOM_ORDERS)
    changes = _clearest_changes(draws)
    if CERTAIN_P_VALUE < min(change.p_value for change in changes.values()) < LEVEL:
        draws = _draw(series, N_MORE_ORDERS)
        changes = _clearest_changes(draws)
    change = _change_to_tell(changes)
    if change is not None:
        make_check = _noise_check if change.kind == "noise" else _change_check
        return Steadiness((make_check(references, series, draws, change),), None)
    largest_unseen = _largest_unseen(draws)
    return Steadiness((_steady_note(series, largest_unseen),), largest_unseen)


def with_references(
    findings: Mapping[str, list[Check]], steadiness: Steadiness
) -> dict[str, list[Check]]:
    """Return the findings of the rows by cause, and what the references add to them.

    A change at the references is told in place of what the rows say of the same cause: it is there
    at the same inputs, so nothing else can have made it. Where the references were steady, what the
    rows say is told on, because their p-values are right, but no longer as a change of the device.
    """
    combined = dict(findings)
    if "order of inputs" in combined:
        sentence = "The reference inputs were looked at for drift instead."
        combined["order of inputs"] = [
            _with_sentence(check, sentence) for check in combined["order of inputs"]
        ]
    if steadiness.largest_unseen is not None:
        return _with_steady_references(combined, steadiness, steadiness.largest_unseen)
    for check in steadiness.checks:
        cause = str(check.found["cause"])
        of_rows = findings.get(cause, [])
        if check.kind == "note" and any(other.kind == "warning" for other in of_rows):
            # Rows at all inputs tell better what it costs.
            sentence = "The reference inputs show it, too."
            combined[cause] = [_with_sentence(other, sentence) for other in of_rows]
        else:
            combined[cause] = [check]
        if check.found.get("gain", 1.0) < FLIPPED_GAIN:
            # Before and after the flip, inputs act in opposite ways: on average they seem not to.
            combined.pop("nothing", None)
            combined.pop("no effect", None)
    return combined


def _with_steady_references(
    findings: dict[str, list[Check]], steadiness: Steadiness, largest_unseen: float
) -> dict[str, list[Check]]:
    """Return findings of which those that the references would have seen say so.

    Rows may see less than the references. Then these prove nothing, and are not told of.
    """
    combined = dict(findings)
    is_refuted = True
    for cause, sentence in (
        ("drift", "the device itself did not: look for a change of what was recorded as inputs"),
        ("response", "the change is at other inputs, or in what was recorded as inputs"),
    ):
        for number, check in enumerate(findings.get(cause, [])):
            if check.found.get("capacity", 0.0) <= largest_unseen:
                is_refuted = False
                continue
            words = f"The reference inputs were steady, so {sentence}."
            combined[cause] = [*combined[cause]]
            combined[cause][number] = _with_sentence(check, words)
    if is_refuted:
        combined[STEADY] = list(steadiness.checks)
    return combined


def _with_sentence(check: Check, sentence: str) -> Check:
    return Check(f"{check} {sentence}", check.kind, **check.found)


# The measurements.


def _usable(references: References) -> References:
    """Return the references without missing values and inputs that were measured too seldom."""
    is_usable = np.isfinite(references.readouts).all(axis=1)
    numbers = references.input_numbers
    for number in np.unique(numbers):
        is_at_input = numbers == number
        if np.sum(is_usable & is_at_input) < MIN_PER_INPUT:
            is_usable &= ~is_at_input
    rows_before = references.rows_before
    step = -(-len(references.channels) // MAX_CHANNELS)
    samples = references.samples[:, ::step]
    return References(
        readouts=references.readouts[is_usable, ::step],
        input_numbers=numbers[is_usable],
        rows_before=None if rows_before is None else rows_before[is_usable],
        time=None if references.time is None else references.time[is_usable],
        channels=references.channels[::step],
        samples=samples[np.isfinite(samples).all(axis=1)],
    )


def _prepare(references: References) -> _Series:
    """Return the deviations of each measurement from the others at its input."""
    samples = references.samples
    centre = samples.mean(axis=0)
    spread = samples.std(axis=0)
    is_live = spread > 0
    standardised = (samples - centre)[:, is_live] / spread[is_live]
    readouts = (references.readouts - centre)[:, is_live] / spread[is_live]

    numbers = references.input_numbers
    rows_of_inputs = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    deviation = np.empty_like(readouts)
    spreads = np.empty_like(readouts)
    for rows in rows_of_inputs:
        usual = np.median(readouts[rows], axis=0)
        deviation[rows] = (readouts[rows] - usual).clip(-MAX_SPREADS, MAX_SPREADS)
        spreads[rows] = usual + deviation[rows]
    # A rounded readout may have been any number in its step.
    generator = np.random.default_rng(0)
    step = _smallest_steps(deviation, rows_of_inputs)
    dithered = deviation + step * generator.uniform(-0.5, 0.5, deviation.shape)
    scatter = np.quantile(np.abs(dithered), USUAL_SHARE, axis=0) / NORMAL_QUANTILE
    scatters = scatter > MIN_SCATTER
    in_noise_units = dithered[:, scatters] / scatter[scatters]
    noise_units = _centred(in_noise_units.clip(-MAX_DEVIATION, MAX_DEVIATION), rows_of_inputs)
    limited = in_noise_units.clip(-MAX_MISFIT_RESIDUAL, MAX_MISFIT_RESIDUAL)
    mean_square = np.sum(limited**2, axis=1, keepdims=True) / max(limited.shape[1], 1)
    whitened = _centred(deviation @ _whitening(standardised), rows_of_inputs)
    return _Series(
        rows_of_inputs=rows_of_inputs,
        noise_units=noise_units,
        sums=_largest_sums(noise_units),
        log_misfit=_centred(np.log(mean_square + SMALLEST_MISFIT), rows_of_inputs),
        whitened=whitened,
        spreads=spreads[:, scatters],
        scatter=scatter[scatters],
        samples=standardised[:, scatters],
        channels=np.flatnonzero(is_live)[scatters],
    )


def _smallest_steps(deviation: Floats, rows_of_inputs: list[Integers]) -> Floats:
    """Return the smallest difference between unequal readouts at an input, of each channel."""
    smallest = np.full(deviation.shape[1], np.inf)
    for rows in rows_of_inputs:
        gaps = np.diff(np.sort(deviation[rows], axis=0), axis=0)
        gaps = np.where(gaps > MIN_SCATTER, gaps, np.inf)
        smallest = np.minimum(smallest, gaps.min(axis=0))
    return np.where(np.isfinite(smallest), smallest, 0.0)


def _centred(values: Floats, rows_of_inputs: list[Integers]) -> Floats:
    """Return values minus their mean at each input."""
    centred = np.array(values)
    for rows in rows_of_inputs:
        centred[rows] -= centred[rows].mean(axis=0)
    return centred


def _largest_sums(values: Floats) -> Floats:
    """Return the sums of columns that vary most.

    Measurements that change places do not change the sums, so they may be chosen here.
    """
    if not values.size:
        return values
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    return (left * sizes)[:, :N_SUMS]


def _whitening(standardised: Floats) -> Floats:
    """Return what makes the channels of the samples uncorrelated, (channels, directions)."""
    covariance = standardised.T @ standardised / len(standardised)
    variance, vectors = np.linalg.eigh(covariance)
    n_kept = max(len(standardised) // MIN_SAMPLES_PER_DIRECTION, 1)
    is_kept = variance > MIN_RELATIVE_VARIANCE * variance.max(initial=0.0)
    is_kept[:-n_kept] = False
    return vectors[:, is_kept] / np.sqrt(variance[is_kept])


# Functions of time: slow waves and steps.


@dataclass(frozen=True, eq=False)
class _Functions:
    """Functions of the moments of the references, without their mean at each input.

    First come slow waves, which are orthonormal and count together in bands; then steps, each
    normalised by itself.
    """

    common: Floats  # the same at all inputs, (measurements, functions)
    at_inputs: Floats  # normalised among the measurements at each input, (measurements, functions)
    bands: list[int]  # the numbers of waves of each band

    def reordered(self, order: Integers) -> _Functions:
        """Return the functions where the measurements changed places."""
        return _Functions(self.common[order], self.at_inputs[order], self.bands)

    def explained(self, values: Floats, rows_of_inputs: list[Integers]) -> _Explained:
        """Return what bands and steps explain of columns that are centred at each input."""
        common = self._added_up((self.common.T @ values) ** 2)
        of_each = np.zeros_like(common)
        for rows in rows_of_inputs:
            of_each += self._added_up((self.at_inputs[rows].T @ values[rows]) ** 2)
        return _Explained(common, np.maximum(of_each - common, 0.0))

    def fit(
        self, values: Floats, rows_of_inputs: list[Integers], chosen: slice, of_response: bool
    ) -> Floats:
        """Return the fit of columns by some functions, at each input where they differ."""
        if not of_response:
            functions = self.common[:, chosen]
            return functions @ (functions.T @ values)
        fitted = np.zeros_like(values)
        for rows in rows_of_inputs:
            functions = self.at_inputs[rows, chosen]
            fitted[rows] = functions @ (functions.T @ values[rows])
        return fitted

    def _added_up(self, power: Floats) -> Floats:
        """Return the power of each band, then that of each step."""
        n_waves = self.bands[-1]
        of_bands = np.cumsum(power[:n_waves], axis=0)[np.array(self.bands) - 1]
        return np.concatenate([of_bands, power[n_waves:]])


@dataclass(frozen=True, eq=False)
class _Explained:
    """Sums of squares that bands and steps explain, (bands and steps, columns)."""

    offset: Floats  # functions that are the same at all inputs
    response: Floats  # what functions that differ from input to input explain beyond these

    def of(self, of_response: bool) -> Floats:
        """Return what the same functions explain, or functions of each input."""
        return self.offset + self.response if of_response else self.offset


@dataclass(frozen=True, eq=False)
class _Draws:
    """What functions of time explain, as measured and in random orders.

    Both arrays have the shape (orders, bands and steps, columns). The first order is that of the
    measurements.
    """

    offset: Floats
    response: Floats
    total: Floats  # sums of squares of the columns
    columns: dict[str, slice]  # "sums", "channels", "misfit" and "whitened"
    forms: dict[str, list[slice]]  # bands and steps that are tested, for each kind of change
    n_functions: list[int]  # of each band or step
    n: int  # measurements
    n_free: int  # less one for each input

    @property
    def n_directions(self) -> int:
        """Number of whitened readouts, which no capacity exceeds."""
        whitened = self.columns["whitened"]
        return int(whitened.stop - whitened.start)

    def capacities(self, kind: str, form: slice) -> Floats:
        """Return the capacity of a change in the whitened readouts, with its bias, (orders,)."""
        columns = self.columns["whitened"]
        power = self.offset[:, form, columns]
        if kind == "response":
            power = power + self.response[:, form, columns]
        best = int(np.argmax(power[0].sum(axis=1)))
        return power[:, best].sum(axis=1) / self.n

    def evidence(self, kind: str, form: slice, name: str) -> Floats:
        """Return twice the log likelihood ratio of normal noise, (orders, form, columns)."""
        columns = self.columns[name]
        total = np.maximum(self.total[columns], np.finfo(float).tiny)
        offset = self.offset[:, form, columns] / total
        rest = np.maximum(1 - offset, np.finfo(float).eps)
        if kind == "response":
            response = self.response[:, form, columns] / total
            rest = np.maximum(1 - response / rest, np.finfo(float).eps)
        return -self.n_free * np.log(rest)


def _bands(n_free: int, n_inputs: int = 1) -> list[int]:
    """Return the numbers of waves of the bands that so many measurements can tell."""
    return [n for n in BANDS if n * n_inputs * MIN_MEASUREMENTS_PER_WAVE <= n_free]


def _functions_of_time(series: _Series, every_place: bool = False) -> _Functions:
    """Return the slow waves that so many measurements can tell, and steps at some or all places."""
    bands = _bands(series.n_free)
    places = np.arange(MIN_PART, series.n - MIN_PART + 1)
    if not every_place and len(places) > MAX_PLACES:
        places = np.linspace(places[0], places[-1], MAX_PLACES).round().astype(int)
    moments = np.arange(series.n)
    phase = np.pi * (moments + 0.5) / series.n
    waves = _centred(np.cos(np.outer(phase, np.arange(1, bands[-1] + 1))), series.rows_of_inputs)
    steps = (moments[:, None] >= places).astype(float)
    steps = _centred(steps, series.rows_of_inputs)
    waves_at_inputs = np.zeros_like(waves)
    steps_at_inputs = np.zeros_like(steps)
    for rows in series.rows_of_inputs:
        n_independent = min(bands[-1], len(rows) - 1)
        waves_at_inputs[rows, :n_independent], _ = np.linalg.qr(waves[rows, :n_independent])
        steps_at_inputs[rows] = _normalised(steps[rows])
    common_waves, _ = np.linalg.qr(waves)
    return _Functions(
        common=np.hstack([common_waves, _normalised(steps)]),
        at_inputs=np.hstack([waves_at_inputs, steps_at_inputs]),
        bands=bands,
    )


def _normalised(functions: Floats) -> Floats:
    """Return columns of length 1; one without a step stays 0."""
    lengths = np.sqrt(np.sum(functions**2, axis=0))
    return functions / np.where(lengths > 0, lengths, 1.0)


def _draw(series: _Series, n_orders: int) -> _Draws:
    """Return what functions of time explain of all columns, as measured and in random orders."""
    parts = {
        "sums": series.sums,
        "channels": series.noise_units,
        "misfit": series.log_misfit,
        "whitened": series.whitened,
    }
    columns = {}
    n_columns = 0
    for name, part in parts.items():
        columns[name] = slice(n_columns, n_columns + part.shape[1])
        n_columns += part.shape[1]
    values = np.hstack(list(parts.values()))

    functions = _functions_of_time(series)
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
        n_bands_of_response = len(_bands(series.n_free, n_other_inputs))
        steps_of_response = [steps]
    bands = [slice(band, band + 1) for band in range(n_bands)]
    return _Draws(
        offset=np.array([found.offset for found in explained]),
        response=np.array([found.response for found in explained]),
        total=np.sum(values**2, axis=0),
        columns=columns,
        forms={
            "offset": [*bands, steps],
            "response": [*bands[:n_bands_of_response], *steps_of_response],
            "noise": [*bands, steps],
        },
        n_functions=[*functions.bands, *[1] * (explained[0].offset.shape[0] - n_bands)],
        n=series.n,
        n_free=series.n_free,
    )


def _random_order(rows_of_inputs: list[Integers], generator: np.random.Generator) -> Integers:
    """Return an order in which measurements at the same input changed places."""
    order = np.empty(sum(len(rows) for rows in rows_of_inputs), dtype=int)
    for rows in rows_of_inputs:
        order[rows] = generator.permutation(rows)
    return order


def _clearest_changes(draws: _Draws) -> dict[str, _Change]:
    """Return the clearest change of the offset, of the response and of the noise."""
    tests = []
    for kind, forms in draws.forms.items():
        for name in ("misfit",) if kind == "noise" else ("sums", "channels"):
            tests += [(kind, form, name) for form in forms]
    clearest: dict[str, _Change] = {}
    for kind, form, name in tests:
        evidence = draws.evidence(kind, form, name)
        of_form = evidence.max(axis=2) if name == "channels" else evidence.sum(axis=2)
        largest = of_form.max(axis=1)
        p_value = min(_tail(float(largest[0]), largest[1:]) * len(tests), 1.0)
        if kind not in clearest or p_value < clearest[kind].p_value:
            share = _share_of_response(draws, evidence[0], form, name)
            clearest[kind] = _Change(kind, p_value, form, share)
    return clearest


def _share_of_response(draws: _Draws, evidence: Floats, form: slice, name: str) -> float:
    """Return the power of the response relative to that of the offset, where `evidence` is largest.

    The evidence has the shape (bands or steps, columns).
    """
    columns = draws.columns[name]
    offset = draws.offset[0, form, columns]
    response = draws.response[0, form, columns]
    if name == "channels":
        best = np.unravel_index(np.argmax(evidence), evidence.shape)
        return float(response[best] / max(offset[best], np.finfo(float).tiny))
    best_form = int(np.argmax(evidence.sum(axis=1)))
    total_offset = max(float(offset[best_form].sum()), np.finfo(float).tiny)
    return float(response[best_form].sum()) / total_offset


def _change_to_tell(changes: dict[str, _Change]) -> _Change | None:
    """Return the change to tell, if there is one that chance does not explain.

    A response that changes moves the offset and the scatter, too, and an offset that changes moves
    the scatter; so the first of them is told. What little the waves leave of a large offset may
    look like a response.
    """
    clearest = min(changes.values(), key=_p_value)
    if clearest.p_value >= LEVEL:
        return None
    response = changes.get("response")
    offset = changes["offset"]
    offset_changed = offset.p_value < LEVEL
    if response is not None and response.p_value < LEVEL:
        is_trace = offset_changed and response.share_of_response < MIN_SHARE_OF_RESPONSE
        return offset if is_trace else response
    if offset_changed:
        return offset
    named = min((changes[kind] for kind in changes if kind != "noise"), key=_p_value)
    if named.p_value < MAX_P_VALUE_OF_NAME:
        return replace(named, p_value=clearest.p_value)
    return clearest


def _p_value(change: _Change) -> float:
    return change.p_value


def _tail(value: float, draws: Floats) -> float:
    """Return the probability above a value, by the moments of draws.

    A sum of few squares has the tail of a gamma distribution. The largest of many numbers has that
    of a Gumbel distribution, and so have about the sums of many logarithms. The larger of both is
    safe.
    """
    scale = float(np.std(draws)) * GUMBEL_SCALE
    if scale <= 0:
        return 1.0 if value <= np.mean(draws) else 0.0
    mode = float(np.mean(draws)) - EULER_GAMMA * scale
    of_gumbel = float(-np.expm1(-np.exp(-(value - mode) / scale)))
    return max(of_gumbel, gamma_tail(value, draws))


def _largest_unseen(draws: _Draws) -> float:
    """Return the capacity that the slowest changes stay below with 95 % probability.

    Random orders show the bias of the capacity, and how far it scatters where nothing changes. A
    change makes it scatter more, as that of a chi-squared number does.
    """
    kind = "response" if draws.forms["response"] else "offset"
    slowest = draws.forms["offset"][0]
    capacities = draws.capacities(kind, slowest)
    bias = float(capacities[1:].mean())
    variance = float(capacities[1:].var())
    excess = max(float(capacities[0]) - bias, 0.0)
    scatter_of_one = variance / (2 * bias) if bias > 0 else 0.0
    return excess + ONE_SIDED_95 * float(np.sqrt(variance + 4 * excess * scatter_of_one))


# What is told.


@dataclass(frozen=True, eq=False)
class _Course:
    """How the references changed with time: by slow waves, or by a step."""

    fitted: Floats  # in units of the noise, (measurements, channels)
    jump: int | None  # the first measurement after the step; None for slow waves


def _steady_note(series: _Series, largest_unseen: float) -> Check:
    """Return the note that the references show no change, and what they prove."""
    inputs = counted(len(series.rows_of_inputs), "reference input")
    measured = f"{series.n} measurements at {inputs}"
    if largest_unseen > MAX_UNSEEN_OF_STEADY:
        text = (
            f"{measured} show no change, but slow changes up to a capacity of {largest_unseen:.2g} "
            "would not have been seen; plan more of them."
        )
    else:
        text = (
            f"the device was steady: {measured} show no drift, no jump, and no change of gain or "
            f"noise. Changes that take as long as the run hold at most {largest_unseen:.2g} of "
            "capacity (95 %)."
        )
    return Check(text, "note", cause=STEADY, capacity=largest_unseen)


def _change_check(references: References, series: _Series, draws: _Draws, change: _Change) -> Check:
    """Return the check of an offset or a response that changed."""
    of_response = change.kind == "response"
    channels = _changed_channels(draws, change)
    course = _course_of_change(series, channels, of_response)
    capacity = max(
        _capacity_of_best_readout(series, channels, course), _least_capacity(draws, change)
    )
    found: dict[str, Any] = {"p_value": change.p_value}
    what = "the device drifted, whatever its input"
    remedy = "keep it steady, or measure faster"
    if of_response:
        what = "the device answered the same inputs differently along the run: its gain drifted"
    if course.jump is not None:
        jump = _Jump("jumped, whatever its input,")
        if of_response:
            jump = _jump_of_response(series, course.jump, channels)
        if jump.gain is not None:
            found["gain"] = jump.gain
        what = f"the device {jump.words} {_between(references, course.jump)}"
        remedy = "estimate the parts apart"
        found["moment"] = _moment(references, course.jump)
    names = [references.channels[int(k)] for k in series.channels[channels]]
    if len(names) < MAX_SHARE_OF_NAMED_CHANNELS * len(references.channels):
        what += f", in {counted(len(names), 'channel')} ({join_names(names, MAX_NAMES)})"
        found["channels"] = names
    return finding(
        f"{what}; its reference inputs show it",
        cause="response" if of_response else "drift",
        next_step=remedy,
        in_short="a device that changed",
        capacity=capacity,
        looked_for=REFERENCES_CHECK,
        **found,
    )


def _changed_channels(draws: _Draws, change: _Change) -> Integers:
    """Return the channels that changed, among those that scatter; all where none stands out."""
    kind = "offset" if change.kind == "noise" else change.kind
    evidence = draws.evidence(kind, change.form, "channels").max(axis=1)
    by_chance = evidence[1:].max(axis=1)
    is_certain = np.array([_tail(float(value), by_chance) < LEVEL for value in evidence[0]])
    usual = np.quantile(evidence[1:], 1 - P_VALUE_OF_A_CHANNEL, axis=0)
    is_likely = evidence[0] > usual
    # As many more as chance gives are no sign that others changed, too.
    n_more = int(is_likely.sum() - is_certain.sum())
    is_changed = is_certain
    if n_more > 1 + 2 * P_VALUE_OF_A_CHANNEL * len(is_likely):
        is_changed = is_likely
    return np.flatnonzero(is_changed) if is_changed.any() else np.arange(len(is_changed))


def _course_of_change(series: _Series, channels: Integers, of_response: bool) -> _Course:
    """Return how these channels changed: by a step if that leaves no slow waves, else by waves."""
    values = series.noise_units[:, channels]
    rows_of_inputs = series.rows_of_inputs
    n_fits = len(rows_of_inputs) if of_response else 1
    sums = _largest_sums(values)[:, :1]
    functions = _functions_of_time(series, every_place=True)
    n_all_waves = functions.bands[-1]
    bands = _bands(series.n_free, n_fits) or functions.bands[:1]

    power = functions.explained(sums, rows_of_inputs).of(of_response)[:, 0]
    of_slowest_waves = power[0]
    of_steps = power[len(functions.bands) :]
    place = int(np.argmax(of_steps))
    step = slice(n_all_waves + place, n_all_waves + place + 1)
    rest = sums - functions.fit(sums, rows_of_inputs, step, of_response)
    left_in_rest = functions.explained(rest, rows_of_inputs).of(of_response)[len(bands) - 1, 0]
    share_left = min(left_in_rest / float(np.sum(rest**2)), 1 - np.finfo(float).eps)
    evidence = -series.n_free * np.log1p(-share_left)
    p_value = chi_squared_tail(evidence, bands[-1] * n_fits)
    if of_steps[place] > of_slowest_waves and p_value > P_VALUE_OF_WAVES_BESIDE_A_JUMP:
        return _Course(functions.fit(values, rows_of_inputs, step, of_response), MIN_PART + place)
    waves = slice(0, bands[-1])
    return _Course(functions.fit(values, rows_of_inputs, waves, of_response), None)


def _capacity_of_best_readout(series: _Series, channels: Integers, course: _Course) -> float:
    """Return the capacity of the course of a change in the readout that shows it best.

    This is one sum of the channels, with weights as of a matched filter. The capacity of all
    readouts is larger, but a few measurements of many channels do not tell by how much.
    """
    _, _, directions = np.linalg.svd(course.fitted, full_matrices=False)
    in_time = course.fitted @ directions[0]
    in_time /= max(float(np.linalg.norm(in_time)), np.finfo(float).tiny)
    deviation = _centred(series.spreads[:, channels], series.rows_of_inputs)
    change = in_time @ deviation / np.sqrt(series.n)
    weights = change / series.scatter[channels] ** 2
    variance = float(np.var(series.samples[:, channels] @ weights))
    # The samples vary with time, too, unless they were measured at other times than the references.
    return min(float(weights @ change) ** 2 / max(variance, np.finfo(float).tiny), 1.0)


def _least_capacity(draws: _Draws, change: _Change) -> float:
    """Return the capacity of a change in all whitened readouts, less its bias and its scatter."""
    kind = "offset" if change.kind == "noise" else change.kind
    capacities = draws.capacities(kind, change.form)
    by_chance = capacities[1:]
    least = float(capacities[0] - by_chance.mean() - ONE_SIDED_95 * by_chance.std())
    n_functions = draws.n_functions[change.form][0]
    if kind == "response":
        n_functions *= draws.n - draws.n_free  # one more for each input
    return min(least, draws.n_directions, float(n_functions))


@dataclass(frozen=True)
class _Jump:
    """What a jump did to the response, in words, and by which gain it was multiplied, if by one."""

    words: str
    gain: float | None = None


def _jump_of_response(series: _Series, first: int, channels: Integers) -> _Jump:
    """Return what a jump before a measurement did to the response of these channels."""
    before = []
    after = []
    for rows in series.rows_of_inputs:
        is_before = rows < first
        if is_before.any() and not is_before.all():
            before.append(series.spreads[rows[is_before]][:, channels].mean(axis=0))
            after.append(series.spreads[rows[~is_before]][:, channels].mean(axis=0))
    if len(before) < 2:
        return _Jump("jumped")
    response_before = np.array(before) - np.mean(before, axis=0)
    response_after = np.array(after) - np.mean(after, axis=0)
    size_before = max(float(np.sum(response_before**2)), np.finfo(float).tiny)
    size_after = float(np.sum(response_after**2))
    if size_after < DEAD_GAIN**2 * size_before:
        return _Jump("stopped answering its inputs", 0.0)
    gain = float(np.sum(response_before * response_after)) / size_before
    unexplained = float(np.sum((response_after - gain * response_before) ** 2)) / size_after
    if unexplained > 1 - MIN_SHARE_OF_GAIN:
        return _Jump("changed its response")
    if gain < FLIPPED_GAIN:
        return _Jump("flipped its polarity", gain)
    return _Jump(f"changed its gain by a factor of {gain:.3g}", gain)


def _between(references: References, first: int) -> str:
    """Return in words between which measurements a jump lies, and when it was."""
    if references.rows_before is None:
        return f"between its references {first - 1} and {first}"
    before = int(references.rows_before[first - 1])
    words = f"between measurements {before} and {int(references.rows_before[first])}"
    if references.time is not None and references.time[first] > MIN_CLOCK_S:
        moment = datetime.fromtimestamp(float(references.time[first]), UTC)
        words += f" (before {moment:%Y-%m-%d %H:%M:%S} UTC)"
    return words


def _moment(references: References, first: int) -> dict[str, float]:
    """Return the number of the reference after a jump, the samples before it, and its time."""
    moment: dict[str, float] = {"reference": first}
    if references.rows_before is not None:
        moment["rows_before"] = int(references.rows_before[first])
    if references.time is not None:
        moment["time"] = float(references.time[first])
    return moment


def _noise_check(references: References, series: _Series, _: _Draws, change: _Change) -> Check:
    """Return the check of references that scatter more in a part of the run."""
    misfit = series.log_misfit[:, 0]
    starts = np.arange(MIN_PART, series.n - MIN_PART + 1)
    gaps = [abs(misfit[start:].sum()) / np.sqrt(start * (series.n - start)) for start in starts]
    first = int(starts[np.argmax(gaps)])
    variance = np.sum(series.whitened**2, axis=1)
    before = float(variance[:first].mean())
    after = float(variance[first:].mean())
    share_of_noisier = (first if before > after else series.n - first) / series.n
    capacity = abs(after - before) * share_of_noisier
    return finding(
        f"the noise of the device changed, most of all {_between(references, first)}; its "
        "reference inputs show it",
        cause="noise",
        next_step="look there, and estimate the parts apart",
        in_short="noise that changed",
        capacity=capacity,
        p_value=change.p_value,
        moment=_moment(references, first),
        looked_for=REFERENCES_CHECK,
    )
