"""Repair of readouts that are out of step with their inputs: each is put to its inputs.

A finding says by how much the readouts are shifted, and about where. The rows at which a shift
begins and ends are found here, by a fit of all rows (`_fitted_delay`).
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._formatting import counted, join_names
from ..basis import lowest_degrees
from ..errors import Check
from ..recording import Recording
from ..typing import Floats, Integers
from ._diagnose import Diagnosis, rows_with_missing_values
from ._repair_change import (
    Change,
    Refusal,
    as_plain_data,
    cause_of,
    causes_of_warnings,
    equal_in_rows,
    has_repeats,
    in_few_words,
    order_is_not_random,
    select_rows,
    warnings_of,
    warnings_with_causes,
)

# Causes of warnings about the order of rows. Realigned rows must be free of all of them.
ORDER_CAUSES = {
    *("shift", "slip", "gap", "late input", "late channels", "neighbours", "later inputs"),
    *("memory", "nothing", "swapped rows", "foreign rows", "interpolated", "copied rows"),
}
# Causes of warnings about the inputs. Beside one of them nothing is realigned, because the fit by
# the inputs would be wrong, too.
INPUT_CAUSES = {
    *("domain", "shape of inputs", "correlated inputs", "rounded inputs", "another design"),
    *("stacked", "repeats", "held inputs"),
}
# The most rows that are realigned, limited by the memory that the fit needs.
MAX_REALIGNED_ROWS = 200_000
# The largest share of rows that may be left out because their readouts are not in the file.
MAX_SHARE_WITHOUT_PARTNER = 0.1
# Size of the fit that shows which rows slipped: functions of low degree, rows for each of them,
# channels, and rows that it is made from.
MAX_FITTED_FUNCTIONS = 120
MIN_ROWS_PER_FUNCTION = 10
MAX_FITTED_CHANNELS = 64
MAX_FITTED_ROWS = 20_000
# The cost of a row at a delay is the sum of its squared residuals, in units of their variance. Each
# square counts up to the first limit and each row up to the second, so that none decides alone.
MAX_SQUARE = 36.0
MAX_COST_OF_ROW = 20.0
# What a change of the delay costs: as much as three rows that do not fit at all.
COST_OF_CHANGE = 60.0
# Rows belong to one side of a slip without doubt where the other side costs more than this: a
# likelihood ratio of exp(10 / 2), about 150.
CLEAR_COST = 10.0
# At a slip so many rows may be in doubt. So many rows on each side of it are looked at for that.
MAX_UNCLEAR_ROWS = 3
MAX_TRIED_ROWS = 200
# The most delays that are tried for every row, and how often the fit is made, each time with the
# rows as they were aligned before.
MAX_TRIED_DELAYS = 17
N_FITS = 2
# Shifts that a sentence lists.
MAX_SHIFTS_IN_SENTENCE = 4


def realign(diagnosis: Diagnosis) -> Change | Refusal:
    """Put every readout into the row of its inputs, where a shift or slips were found.

    The shifts are those of the findings. The rows at which each begins and ends are those that fit
    best; where this leaves more than three rows in doubt, nothing is changed. Rows without a
    partner are left out: inputs without a readout, and readouts whose inputs are not in the file.
    Of two readouts of one input, the second is kept in the record, unless it is an exact copy.
    Times and extra values stay with the inputs.
    """
    recording = diagnosis.recording
    refusal = _refusal_to_realign(diagnosis)
    if refusal is not None:
        return refusal
    n_rows = len(recording.design_index)
    order = np.arange(n_rows)
    if recording.time is not None:
        order = np.argsort(np.asarray(recording.time), kind="stable")

    findings = _shifts_and_slips(diagnosis)
    delay = _delay_in_findings(diagnosis, order, findings)
    is_reversed = any(check.found.get("reversed") for check in findings)
    if not is_reversed and np.any(delay != delay[0]):
        fitted_delay = _fitted_delay(diagnosis, order, delay)
        if fitted_delay is None:
            return Refusal(
                "the rows at which the readouts slip are not clear, so nothing was realigned; "
                "realign them where the record of the run tells these rows"
            )
        delay = fitted_delay
    target = np.arange(n_rows) - delay
    if is_reversed:
        target = n_rows - 1 - target
    return _move_readouts(recording, order, target, delay, is_reversed)


def _refusal_to_realign(diagnosis: Diagnosis) -> Refusal | None:
    """Return why rows cannot be realigned; None where they can."""
    recording = diagnosis.recording
    if diagnosis.basis is None or diagnosis.basis.of_sequences:
        return Refusal(
            "rows of a sequence were not realigned, because leaving out rows tears it apart; "
            "give the parts before and after the slip as runs"
        )
    if order_is_not_random(diagnosis):
        return Refusal("the order of the rows tells nothing, so nothing was realigned")
    hiding = sorted(causes_of_warnings(diagnosis) & INPUT_CAUSES)
    if hiding:
        return Refusal(
            f"rows were not realigned, because the inputs are in doubt ({join_names(hiding)}); "
            "repair these first"
        )
    if has_repeats(recording):
        return Refusal(
            "rows were not realigned, because it is not known by how much their repeats slipped"
        )
    n_rows = len(recording.design_index)
    if n_rows > MAX_REALIGNED_ROWS:
        return Refusal(
            f"more than {MAX_REALIGNED_ROWS} rows are not realigned; move the columns of readouts "
            "by the shift that is named"
        )
    return None


def objection_by_tests_of_order(before: Diagnosis, after: Diagnosis) -> str | None:
    """Return why realigned rows are not kept, by warnings of order or new ones; None if kept."""
    if order_is_not_random(after):
        return "the order of the rows tells nothing, so nothing was realigned"
    allowed = causes_of_warnings(before) - ORDER_CAUSES
    failed = [check for check in warnings_of(after) if cause_of(check) not in allowed]
    if not failed:
        return None
    return (
        "rows were not moved, because they would not pass all tests after that either "
        f"({in_few_words(failed)}); bring inputs and readouts into step where they were recorded"
    )


# By how many measurements each readout comes late.


def _shifts_and_slips(diagnosis: Diagnosis) -> list[Check]:
    """Return all findings of shifts and slips, also those that another finding holds in `also`.

    A long run is tested in parts, so a slip that ends in one of them is a shift of the next.
    """
    causes = ("shift", "slip")
    told = warnings_with_causes(diagnosis, causes)
    beneath = [Check.from_dict(data) for check in told for data in check.found.get("also", ())]
    return [*told, *(check for check in beneath if check.found.get("cause") in causes)]


def _delay_in_findings(diagnosis: Diagnosis, order: Integers, findings: list[Check]) -> Integers:
    """Return by how many measurements each readout comes late, according to the findings.

    Findings count only rows without missing values, in the order of acquisition.
    """
    is_missing = np.zeros(len(order), dtype=bool)
    is_missing[rows_with_missing_values(diagnosis.recording)] = True
    complete = np.flatnonzero(~is_missing[order])
    delay = np.zeros(len(order), dtype=int)
    for check in findings:
        for start, stop, shift in check.found["shifts"]:
            first = 0 if start == 0 else complete[start]
            last = len(order) if stop == len(complete) else complete[stop - 1] + 1
            delay[first:last] = shift
    return delay


def _fitted_delay(diagnosis: Diagnosis, order: Integers, in_findings: Integers) -> Integers | None:
    """Return the delay of every row that fits best, with few changes from row to row.

    None where no row slips, or where too many rows are in doubt. Of several slips in a row findings
    may name only some, so every delay between those in the findings is tried.
    """
    delays = np.arange(min(in_findings.min(), 0), max(in_findings.max(), 0) + 1)
    if len(delays) > MAX_TRIED_DELAYS:
        delays = np.union1d(in_findings, [0])
    delay = in_findings
    for _ in range(N_FITS):
        costs = _costs_of_delays(diagnosis, order, delay, delays)
        chosen = _cheapest_path(costs)
        delay = delays[chosen]
    changes = np.flatnonzero(np.diff(chosen)) + 1
    n_unclear = [_n_unclear_rows(costs, chosen, change) for change in changes.tolist()]
    if not delay.any() or max(n_unclear, default=0) > MAX_UNCLEAR_ROWS:
        return None
    return delay


def _cheapest_path(costs: Floats) -> Integers:
    """Return the column of costs for every row so that rows and changes cost the least together.

    This is dynamic programming, the algorithm of Viterbi; columns are its states.
    """
    total = costs[0].copy()
    n_states = costs.shape[1]
    came_from = np.empty(costs.shape, dtype=int)
    for row in range(1, len(costs)):
        cheapest = int(np.argmin(total))
        is_change = total > total[cheapest] + COST_OF_CHANGE
        came_from[row] = np.where(is_change, cheapest, np.arange(n_states))
        total = np.minimum(total, total[cheapest] + COST_OF_CHANGE) + costs[row]
    states = np.empty(len(costs), dtype=int)
    states[-1] = np.argmin(total)
    for row in range(len(costs) - 1, 0, -1):
        states[row - 1] = came_from[row, states[row]]
    return states


def _n_unclear_rows(costs: Floats, states: Integers, change: int) -> int:
    """Return by how many rows a change of the delay could come earlier or later and fit as well."""
    before = states[change - 1]
    after = states[change]
    n_unclear = 0
    following = costs[change : change + MAX_TRIED_ROWS]
    preceding = costs[max(change - MAX_TRIED_ROWS, 0) : change][::-1]
    for rows, own, other in ((following, after, before), (preceding, before, after)):
        excess = np.cumsum(rows[:, other] - rows[:, own])
        unclear = np.flatnonzero(excess < CLEAR_COST)
        if len(unclear):
            n_unclear = max(n_unclear, int(unclear[-1]) + 1)
    return n_unclear


def _costs_of_delays(
    diagnosis: Diagnosis, order: Integers, fitted_at: Integers, delays: Integers
) -> Floats:
    """Return how much worse each row fits at each delay than at its best one, (rows, delays).

    The readouts are fitted by functions of the inputs at the delay `fitted_at` of each row.
    """
    u, x, y = _fitted_columns(diagnosis, order)
    n_rows = len(x)
    is_known = np.isfinite(x).all(axis=1)
    has_inputs: Any = np.isfinite(u).all(axis=1)
    positions = np.arange(n_rows)

    def inputs_at(delay: Any) -> tuple[Integers, Any]:
        """Return each row's row of inputs at a delay, and whether both are known."""
        target = positions - delay
        is_inside = (target >= 0) & (target < n_rows)
        target = target.clip(0, n_rows - 1)
        return target, is_inside & is_known & has_inputs[target]

    target, is_usable = inputs_at(fitted_at)
    rows = np.flatnonzero(is_usable)
    if len(rows) > MAX_FITTED_ROWS:
        rows = np.random.default_rng(0).choice(rows, MAX_FITTED_ROWS, replace=False)
    coefficients = np.linalg.lstsq(y[target[rows]], x[rows], rcond=None)[0]
    fitted = y @ coefficients
    residuals = x[rows] - fitted[target[rows]]
    variance, vectors = np.linalg.eigh(residuals.T @ residuals / len(rows))
    floor = np.finfo(float).eps * max(float(variance.max()), 1.0)
    whitening = vectors / np.sqrt(np.maximum(variance, floor))

    costs = np.full((n_rows, len(delays)), np.nan)
    for k, delay in enumerate(delays.tolist()):
        target, is_usable = inputs_at(delay)
        residuals = (x[is_usable] - fitted[target[is_usable]]) @ whitening
        costs[is_usable, k] = np.sum(np.minimum(residuals**2, MAX_SQUARE), axis=1)
    # A delay at which the inputs of a row are not in the file costs as much as a usual fit. A row
    # without readouts costs nothing at any delay.
    usual = float(np.nanmedian(np.min(np.nan_to_num(costs, nan=np.inf), axis=1)))
    costs[~is_known] = 0.0
    costs = np.nan_to_num(costs, nan=usual)
    costs -= costs.min(axis=1, keepdims=True)
    return np.minimum(costs, MAX_COST_OF_ROW)


def _fitted_columns(diagnosis: Diagnosis, order: Integers) -> tuple[Floats, Floats, Floats]:
    """Return inputs, standardised readouts and functions of the inputs, in measured order."""
    recording = diagnosis.recording
    assert diagnosis.basis is not None
    u = np.asarray(recording.inputs, dtype=float)[order]
    x = np.asarray(recording.readouts)[order]
    if np.iscomplexobj(x):
        x = np.hstack([x.real, x.imag])
    x = x[:, :: -(-x.shape[1] // MAX_FITTED_CHANNELS)].astype(float)
    x[~np.isfinite(x)] = np.nan
    x = x - np.nanmean(x, axis=0)
    deviation = np.nanstd(x, axis=0)
    x = x[:, deviation > 0] / deviation[deviation > 0]
    n_functions = max(min(MAX_FITTED_FUNCTIONS, len(u) // MIN_ROWS_PER_FUNCTION), 2)
    functions = lowest_degrees(diagnosis.basis, n_functions)
    has_inputs = np.isfinite(u).all(axis=1)
    y = np.zeros((len(u), len(functions)))
    y[has_inputs] = functions(u[has_inputs])
    return u, x, y


# Moving the readouts.


def _move_readouts(
    recording: Recording, order: Integers, target: Integers, delay: Integers, is_reversed: bool
) -> Change | Refusal:
    """Return the recording with each readout moved to its target.

    Positions, targets and delays count rows in the order of acquisition; `order` has their numbers
    in the recording.
    """
    n_rows = len(order)
    is_inside = (target >= 0) & (target < n_rows)
    # Of two readouts of one input the one that was not moved comes first.
    positions = np.concatenate(
        [np.flatnonzero(is_inside & (delay == 0)), np.flatnonzero(is_inside & (delay != 0))]
    )
    targets, places, counts = np.unique(target[positions], return_index=True, return_counts=True)
    first = positions[places]
    second = np.setdiff1d(positions, first)
    if counts.max() > 2:
        return Refusal("three readouts would belong to one input, so the rows stay as they are")
    readouts = np.asarray(recording.readouts)
    target_rows = order[targets]
    first_of_second = first[np.searchsorted(targets, target[second])]
    is_copy = equal_in_rows(readouts, order[first_of_second], order[second])
    measured_again = second[~is_copy]

    inputs_left_out = np.setdiff1d(np.arange(n_rows), target_rows)
    if len(inputs_left_out) > MAX_SHARE_WITHOUT_PARTNER * n_rows:
        return Refusal(
            f"{len(inputs_left_out)} of {n_rows} rows would be left without a partner, so the rows "
            "stay as they are; look for the rest of the readouts"
        )
    realigned = readouts.copy()
    realigned[target_rows] = readouts[order[first]]
    moved = replace(recording, readouts=realigned)

    shifts = _parts_of(delay)
    by = join_names([f"{shift:+d}" for _, _, shift in shifts], MAX_SHIFTS_IN_SENTENCE)
    steps = []
    if is_reversed:
        steps.append("put into reverse order")
    if shifts:
        steps.append(f"realigned by {by} measurements")
    done = (
        f"readouts were {' and '.join(steps)}; left out without a readout of its own: "
        f"{counted(len(inputs_left_out), 'row')}"
    )
    details = {
        "shifts": shifts,
        "reversed": is_reversed,
        "rows_of_inputs_left_out": inputs_left_out.tolist(),
        "rows_of_readouts_without_inputs": np.sort(order[~is_inside]).tolist(),
        "rows_of_copies_left_out": np.sort(order[second[is_copy]]).tolist(),
        "second_readouts": {
            "rows": order[measured_again].tolist(),
            "rows_of_inputs": order[target[measured_again]].tolist(),
            "values": as_plain_data(readouts[order[measured_again]]),
        },
    }
    return Change(select_rows(moved, np.sort(target_rows)), done, details)


def _parts_of(delay: Integers) -> list[list[int]]:
    """Return start, stop and delay of the parts that come late, in measured order."""
    edges = [0, *(np.flatnonzero(np.diff(delay)) + 1).tolist(), len(delay)]
    return [[start, stop, int(delay[start])] for start, stop in pairwise(edges) if delay[start]]
