"""Findings at reference inputs, which were measured again and again at random moments of a run.

Readouts at one and the same input may be noisy, but those of a steady device do not depend on the
time. The order of the samples does not matter for that, so drift is found in a sweep, too.

`_reference_series` prepares the measurements, `_reference_changes` tests them, and this file says
what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._formatting import counted, join_names
from ..errors import Check
from ..typing import Floats, Integers
from ._chance import N_RANDOM_ORDERS, chi_squared_tail
from ._finding import finding
from ._reference_changes import (
    LEVEL,
    MIN_PART,
    Change,
    Permutations,
    change_to_report,
    changed_channels,
    clearest_changes,
    functions_of_time,
    largest_unseen_capacity,
    least_capacity,
    permute,
    resolvable_bands,
)
from ._reference_series import (
    References,
    ReferenceSeries,
    centred,
    prepare_references,
    principal_components,
    usable_references,
)

# The name of the test of references, which users read where they are in order.
REFERENCES_CHECK = "reference inputs that give the same readouts along the run"
# The cause of the note that says so.
STEADY = "steady"
# The name of the test of the rows for changes with time. References may show one all the same.
CHANGES_CHECK = "readouts and a response that do not change with time"
# With fewer measurements even a clear change has no p-value below the level of the tests.
MIN_REFERENCES = 16
# A p-value below the level is computed again from so many random orders, unless it is so small that
# no badly fitted tail explains it.
N_MORE_ORDERS = 1000
CERTAIN_P_VALUE = 1e-9
# A device is called steady only if a slow change of more capacity than this would have been seen.
MAX_UNSEEN_OF_STEADY = 0.5
# A change is called a jump where slow waves in what a step leaves have a p-value above this.
P_VALUE_OF_WAVES_BESIDE_A_JUMP = 1e-3
# Channels are named where less than this part of all changed.
MAX_SHARE_OF_NAMED_CHANNELS = 0.5
# The gain of a jump is the factor from the response before it to that after it. Below the first
# value the polarity flipped; where it is smaller in size than the second, the response is gone.
FLIPPED_GAIN = -0.5
DEAD_GAIN = 0.1
# A gain is given only if it explains this part of the variance of the response after the jump.
MIN_SHARE_OF_GAIN = 0.8
# Times above this are seconds since 1970, and messages give them as date and time.
MIN_CLOCK_S = 1e8
# Names of channels in a message.
MAX_NAMES = 4


@dataclass(frozen=True, eq=False)
class Steadiness:
    """What the references show: findings if they changed, else how small every change was.

    Parameters
    ----------
    checks
        The findings; the note that the device was steady where there are none.
    largest_unseen
        The most capacity that a slow change may hold without having been seen (95 %); None where
        the references changed.
    """

    checks: tuple[Check, ...]
    largest_unseen: float | None


def look_at_references(references: References) -> Steadiness | None:
    """Return whether the references changed with time, and how; None where they are too few."""
    references = usable_references(references)
    if min(len(references.readouts), len(references.samples)) < MIN_REFERENCES:
        return None
    series = prepare_references(references)
    if not len(series.channels):
        return Steadiness((_steady_note(series, 0.0),), 0.0)
    permutations = permute(series, N_RANDOM_ORDERS)
    changes = clearest_changes(permutations)
    if CERTAIN_P_VALUE < min(change.p_value for change in changes.values()) < LEVEL:
        permutations = permute(series, N_MORE_ORDERS)
        changes = clearest_changes(permutations)
    change = change_to_report(changes)
    if change is not None:
        if change.kind == "noise":
            check = _noise_check(references, series, change)
        else:
            check = _change_check(references, series, permutations, change)
        return Steadiness((check,), None)
    largest_unseen = largest_unseen_capacity(permutations)
    return Steadiness((_steady_note(series, largest_unseen),), largest_unseen)


# Findings of the references beside those of the rows.


def with_references(
    findings: Mapping[str, list[Check]], steadiness: Steadiness
) -> dict[str, list[Check]]:
    """Return the findings of the rows by cause, joined with those of the references.

    A change at the references replaces a finding of the rows with the same cause: the inputs were
    the same before and after, so the device itself changed. Where the references were steady, the
    findings of the rows stay, because their p-values are right, and say that the device did not
    change.
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
            # The rows are at all inputs, so they show better how much capacity it costs.
            sentence = "The reference inputs show it, too."
            combined[cause] = [_with_sentence(other, sentence) for other in of_rows]
        else:
            combined[cause] = [check]
        if check.found.get("gain", 1.0) < FLIPPED_GAIN:
            # Inputs act in opposite ways before and after the flip. On average they seem to have
            # no effect, which is no second mistake.
            combined.pop("nothing", None)
            combined.pop("no effect", None)
    return combined


def _with_steady_references(
    findings: dict[str, list[Check]], steadiness: Steadiness, largest_unseen: float
) -> dict[str, list[Check]]:
    """Return findings in which a change that the references would have seen is explained.

    If the rows show a change too small for the references to see, these prove nothing about it, and
    the note that the device was steady is left out.
    """
    combined = dict(findings)
    would_have_seen_all = True
    for cause, sentence in (
        ("drift", "the device itself did not drift: perhaps not all inputs are those recorded"),
        ("response", "the response changed at other inputs only, or inputs are not those recorded"),
    ):
        for number, check in enumerate(findings.get(cause, [])):
            if check.found.get("capacity", 0.0) <= largest_unseen:
                would_have_seen_all = False
                continue
            words = f"The reference inputs were steady, so {sentence}."
            combined[cause] = [*combined[cause]]
            combined[cause][number] = _with_sentence(check, words)
    if would_have_seen_all:
        combined[STEADY] = list(steadiness.checks)
    return combined


def _with_sentence(check: Check, sentence: str) -> Check:
    return Check(f"{check} {sentence}", check.kind, **check.found)


# What is said about the references.


def _steady_note(series: ReferenceSeries, largest_unseen: float) -> Check:
    """Return the note that the references show no change, and how small any change must be."""
    inputs = counted(len(series.rows_of_inputs), "reference input")
    measured = f"{series.n} measurements at {inputs}"
    if largest_unseen > MAX_UNSEEN_OF_STEADY:
        text = (
            f"{measured} show no change, but a slow change that costs up to {largest_unseen:.2g} "
            "of the total might not be seen in so few; plan more of them."
        )
    else:
        text = (
            f"the device was steady: {measured} show no drift, no jump, and no change of gain or "
            f"noise. A slow change that was not noticed costs at most {largest_unseen:.2g} of the "
            "total (95 %)."
        )
    return Check(text, "note", cause=STEADY, capacity=largest_unseen)


def _change_check(
    references: References, series: ReferenceSeries, permutations: Permutations, change: Change
) -> Check:
    """Return the check of an offset or a response that changed."""
    of_response = change.kind == "response"
    channels = changed_channels(permutations, change)
    course = _course_of_change(series, channels, of_response)
    capacity = max(
        _capacity_of_best_readout(series, channels, course), least_capacity(permutations, change)
    )
    found: dict[str, Any] = {"p_value": change.p_value}
    what = "the device drifted, whatever its input"
    remedy = "keep it steady, or measure faster"
    if of_response:
        what = "the response of the device drifted: its gain changed along the run"
    if course.jump is not None:
        jump = _Jump("jumped, whatever its input,")
        if of_response:
            jump = _jump_of_response(series, course.jump, channels)
        if jump.gain is not None:
            found["gain"] = jump.gain
        what = f"the device {jump.words} {_between(references, course.jump)}"
        remedy = "estimate the parts before and after it by themselves"
        found["moment"] = _moment(references, course.jump)
    names = [references.channels[int(k)] for k in series.channels[channels]]
    if len(names) < MAX_SHARE_OF_NAMED_CHANNELS * len(references.channels):
        what += f", in {counted(len(names), 'channel')} ({join_names(names, MAX_NAMES)})"
        found["channels"] = names
    return finding(
        f"the reference inputs show that {what}",
        cause="response" if of_response else "drift",
        next_step=remedy,
        in_short="a device that changed",
        capacity=capacity,
        looked_for=REFERENCES_CHECK,
        **found,
    )


@dataclass(frozen=True, eq=False)
class _Course:
    """A fit of the change with time, by slow waves or by a step."""

    fitted: Floats  # in noise units, (measurements, channels)
    jump: int | None  # the first measurement after the step; None for slow waves


def _course_of_change(series: ReferenceSeries, channels: Integers, of_response: bool) -> _Course:
    """Return how these channels changed: by a step if that leaves no slow waves, else by waves.

    Which of them it is, is decided in the first principal component.
    """
    values = series.deviations[:, channels]
    rows_of_inputs = series.rows_of_inputs
    n_fits = len(rows_of_inputs) if of_response else 1
    component = principal_components(values)[:, :1]
    functions = functions_of_time(series, every_place=True)
    n_all_waves = functions.bands[-1]
    bands = resolvable_bands(series.n_free, n_fits) or functions.bands[:1]

    power = functions.explained(component, rows_of_inputs).of(of_response)[:, 0]
    power_of_slowest_waves = power[0]
    power_of_steps = power[len(functions.bands) :]
    place = int(np.argmax(power_of_steps))
    step = slice(n_all_waves + place, n_all_waves + place + 1)

    # A likelihood ratio test for waves in what the step leaves.
    rest = component - functions.fit(component, rows_of_inputs, step, of_response)
    waves_in_rest = functions.explained(rest, rows_of_inputs).of(of_response)[len(bands) - 1, 0]
    share = min(waves_in_rest / float(np.sum(rest**2)), 1 - np.finfo(float).eps)
    log_likelihood_ratio = -series.n_free * np.log1p(-share)
    p_value = chi_squared_tail(log_likelihood_ratio, bands[-1] * n_fits)

    step_is_larger = power_of_steps[place] > power_of_slowest_waves
    if step_is_larger and p_value > P_VALUE_OF_WAVES_BESIDE_A_JUMP:
        return _Course(functions.fit(values, rows_of_inputs, step, of_response), MIN_PART + place)
    waves = slice(0, bands[-1])
    return _Course(functions.fit(values, rows_of_inputs, waves, of_response), None)


def _capacity_of_best_readout(
    series: ReferenceSeries, channels: Integers, course: _Course
) -> float:
    """Return the capacity of a change in the one combination of channels that shows it best.

    Its weights are those of a matched filter, change over variance of the noise. The capacity in
    all readouts is larger, but a few measurements of many channels do not show by how much.
    """
    _, _, directions = np.linalg.svd(course.fitted, full_matrices=False)
    time_course = course.fitted @ directions[0]
    time_course /= max(float(np.linalg.norm(time_course)), np.finfo(float).tiny)
    deviation = centred(series.readouts[:, channels], series.rows_of_inputs)
    change = time_course @ deviation / np.sqrt(series.n)  # root mean square, of each channel
    weights = change / series.noise[channels] ** 2
    variance = float(np.var(series.samples[:, channels] @ weights))
    # The variance of the samples contains the change, so this is at most 1 but for sampling noise.
    return min(float(weights @ change) ** 2 / max(variance, np.finfo(float).tiny), 1.0)


@dataclass(frozen=True)
class _Jump:
    """What a jump did, in words, and the gain by which it multiplied the response, if it did."""

    words: str
    gain: float | None = None


def _jump_of_response(series: ReferenceSeries, first: int, channels: Integers) -> _Jump:
    """Return what a jump before measurement `first` did to the response of some channels."""
    before = []
    after = []
    for rows in series.rows_of_inputs:
        is_before = rows < first
        if is_before.any() and not is_before.all():
            before.append(series.readouts[rows[is_before]][:, channels].mean(axis=0))
            after.append(series.readouts[rows[~is_before]][:, channels].mean(axis=0))
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
    """Return in words between which measurements a jump happened, and when."""
    if references.rows_before is None:
        return f"between its references {first - 1} and {first}"
    before = int(references.rows_before[first - 1])
    words = f"between measurements {before} and {int(references.rows_before[first])}"
    if references.time is not None and references.time[first] > MIN_CLOCK_S:
        moment = datetime.fromtimestamp(float(references.time[first]), UTC)
        words += f" (before {moment:%Y-%m-%d %H:%M:%S} UTC)"
    return words


def _moment(references: References, first: int) -> dict[str, float]:
    """Return a jump as data: the reference after it, the samples before it, and the time."""
    moment: dict[str, float] = {"reference": first}
    if references.rows_before is not None:
        moment["rows_before"] = int(references.rows_before[first])
    if references.time is not None:
        moment["time"] = float(references.time[first])
    return moment


def _noise_check(references: References, series: ReferenceSeries, change: Change) -> Check:
    """Return the check of references that scatter more in a part of the run."""
    # The step that fits the logarithm of the misfit best.
    misfit = series.log_misfit[:, 0]
    starts = np.arange(MIN_PART, series.n - MIN_PART + 1)
    sums_after = np.array([misfit[start:].sum() for start in starts])
    sizes_of_step = np.abs(sums_after) / np.sqrt(starts * (series.n - starts))
    first = int(starts[np.argmax(sizes_of_step)])
    variance = np.sum(series.whitened**2, axis=1)
    before = float(variance[:first].mean())
    after = float(variance[first:].mean())
    share_of_noisier = (first if before > after else series.n - first) / series.n
    capacity = abs(after - before) * share_of_noisier
    return finding(
        "the reference inputs show that the noise of the device changed, most clearly "
        f"{_between(references, first)}",
        cause="noise",
        next_step="find out what happened there, and estimate the parts by themselves",
        in_short="noise that changed",
        capacity=capacity,
        p_value=change.p_value,
        moment=_moment(references, first),
        looked_for=REFERENCES_CHECK,
    )
