"""repair: what exact findings allow to put right in a recording, with a record of it.

A finding is exact where nothing but the mistake explains it: rows that are equal to the last digit,
cells with a number that instruments write for no number, readouts that fit the inputs of other rows
and pass all tests there. Rows that only misfit stay: a device may do this, and the user decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._formatting import counted, join_names
from .._version import __version__
from ..basis import DiscreteFamily, lowest_degrees
from ..diagnostics import CODES
from ..errors import Check
from ..recording import Recording
from ..typing import ArrayLike, Floats, Integers
from ._diagnose import Diagnosis, diagnose, rows_with_missing_values

# From this size on a code cannot be a measurement: SCPI's not-a-number and infinities.
MIN_SIZE_OF_SCPI_CODES = 9e37
# Any other code may also be a measurement, such as 999 counts or the full scale of a converter. It
# is none where it lies so many times the range of the channel's other values outside that range,
# and these are more than the states of a switch.
MIN_RANGES_OUTSIDE = 5.0
MIN_OTHER_VALUES = 8
# Whole numbers up to this size have all their digits as floating-point numbers.
MAX_EXACT_INTEGER = 2**53
# Part of second measurements that equal the first, from which they may as well be damaged copies.
MAX_SHARE_OF_COPIES = 0.5
# Standard errors by which second readouts must agree with the first ones more than by chance.
MIN_AGREEMENT_OF_REPEATS = 3.0
# Causes of warnings about the order of rows. Realigned rows must be free of all of them.
ORDER_CAUSES = {
    *("shift", "slip", "gap", "late input", "late channels", "neighbours", "later inputs"),
    *("memory", "nothing", "swapped rows", "foreign rows", "interpolated", "copied rows"),
}
# Findings beside which the order of rows cannot be judged, for they hide whether it has a meaning.
INPUT_CAUSES = {
    *("domain", "shape of inputs", "correlated inputs", "rounded inputs", "another design"),
    *("stacked", "repeats", "held inputs"),
}
# Rows that are realigned: more need memory for their fit.
MAX_REALIGNED_ROWS = 200_000
# Part of the rows that may be left without a partner at the edges.
MAX_SHARE_WITHOUT_PARTNER = 0.1
# The fit that tells which rows slipped: functions of low degree, rows per function, channels, and
# rows that are used.
MAX_FITTED_FUNCTIONS = 120
MIN_ROWS_PER_FUNCTION = 10
MAX_FITTED_CHANNELS = 64
MAX_FITTED_ROWS = 20_000
# A squared residual in units of its variance counts up to this, and a whole row up to that, so that
# no direction and no row decides alone. A change of the shift must pay for as much as three rows.
MAX_SQUARE = 36.0
MAX_COST_OF_ROW = 20.0
COST_OF_CHANGE = 60.0
# A row belongs to one side of a slip for certain where the other side costs so much more, which is
# a likelihood ratio of 150. So many rows beside a slip may be uncertain; the rows beyond are tried.
CLEAR_COST = 10.0
MAX_UNCLEAR_ROWS = 3
MAX_TRIED_ROWS = 200
# Delays that are tried for every row, and how often readouts are fitted for it.
MAX_TRIED_DELAYS = 17
N_FITS = 2
# Shifts and codes that a sentence lists.
MAX_SHIFTS_TOLD = 4
MAX_CODES_TOLD = 4


@dataclass(frozen=True, eq=False)
class Change:
    """A recording that was changed: what was done, in a sentence and as plain data."""

    recording: Recording
    done: str
    details: dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """Why a finding is not exact enough for a change."""

    reason: str


@dataclass(frozen=True, eq=False)
class Repair:
    """A kind of repair: the causes that ask for it, and the function that makes it."""

    causes: tuple[str, ...]
    change: Callable[[Diagnosis], Change | Refusal]
    # Why its outcome is not kept, by the diagnoses before and after; None where it is kept.
    objection: Callable[[Diagnosis, Diagnosis], str | None] = lambda before, after: None


@dataclass(frozen=True, eq=False)
class RepairOutcome:
    """What was repaired, and why the rest was not; `recording` is None where nothing was."""

    recording: Recording | None
    diagnosis: Diagnosis  # of the outcome
    done: tuple[str, ...]
    refusals: tuple[str, ...]

    @property
    def reason(self) -> str:
        """One sentence: why nothing, or nothing more, was changed."""
        if self.refusals:
            return "; ".join(self.refusals)
        findings = _warnings_of(self.diagnosis)
        if not findings:
            return "nothing is wrong"
        return (
            f"no finding is exact ({_in_few_words(findings)}), so nothing says what the data "
            "should be; look at what is named, and decide"
        )


def repair(diagnosis: Diagnosis) -> RepairOutcome:
    """Repair all that is exact, in the order of `REPAIRS`, each on the outcome of the one before.

    The outcome of each repair is diagnosed again, because one mistake may hide another.
    """
    done: list[str] = []
    refusals: list[str] = []
    for kind in REPAIRS:
        if not _findings(diagnosis, kind.causes):
            continue
        diagnosis = _in_memory(diagnosis)
        findings = _findings(diagnosis, kind.causes)
        if not findings:
            continue
        change = kind.change(diagnosis)
        if isinstance(change, Refusal):
            refusals.append(change.reason)
            continue
        after = diagnose(_with_record(change, findings), basis=diagnosis.basis)
        objection = kind.objection(diagnosis, after)
        if objection is not None:
            refusals.append(objection)
            continue
        done.append(change.done)
        diagnosis = after
    recording = diagnosis.recording if done else None
    return RepairOutcome(recording, diagnosis, tuple(done), tuple(refusals))


def _warnings_of(diagnosis: Diagnosis) -> list[Check]:
    return [check for check in diagnosis.checks if check.kind == "warning"]


def _in_few_words(checks: list[Check]) -> str:
    """Return the causes of checks, or what they say of the total, for the middle of a sentence."""
    return join_names([_cause(check) for check in checks])


def _cause(check: Check) -> str:
    return str(check.found.get("cause") or check.found.get("unreliable"))


def _causes_of_warnings(diagnosis: Diagnosis) -> set[str]:
    return {_cause(check) for check in _warnings_of(diagnosis)}


def _findings(diagnosis: Diagnosis, causes: tuple[str, ...]) -> list[Check]:
    return [check for check in _warnings_of(diagnosis) if check.found.get("cause") in causes]


def _in_memory(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis of the recording in memory: of files only parts were looked at."""
    recording = diagnosis.recording
    readouts = recording.readouts
    if isinstance(readouts, np.ndarray) and not isinstance(readouts, np.memmap):
        return diagnosis
    loaded = replace(
        recording, inputs=np.array(recording.inputs), readouts=np.array(recording.readouts)
    )
    return diagnose(loaded, basis=diagnosis.basis)


def _with_record(change: Change, findings: list[Check]) -> Recording:
    """Return the changed recording with a record of the change as the last of its repairs."""
    metadata = change.recording.metadata
    record = {
        "findings": [{"cause": check.found["cause"], "text": str(check)} for check in findings],
        "done": change.done,
        "infocap": __version__,
        **change.details,
    }
    repairs = [*metadata.get("repairs", []), record]
    return replace(change.recording, metadata=metadata | {"repairs": repairs})


def _order_is_meaningless(diagnosis: Diagnosis) -> bool:
    return any(check.found.get("cause") == "order of inputs" for check in diagnosis.checks)


def select_rows(recording: Recording, rows: Integers) -> Recording:
    """Return the recording with these rows alone."""
    values_of_rows: dict[str, Any] = {}
    for name in ("inputs", "readouts", "design_index", "time", "repeats", "extra"):
        values = getattr(recording, name)
        values_of_rows[name] = None if values is None else np.asarray(values)[rows]
    return replace(recording, **values_of_rows)


def _values_of_rows(recording: Recording, rows: Integers) -> dict[str, Any]:
    """Return what rows that are left out held beside inputs and readouts, as plain data."""
    values = {"rows": rows.tolist()}
    for name in ("design_index", "time", "extra"):
        column = getattr(recording, name)
        if column is not None:
            values[name] = np.asarray(column)[rows].tolist()
    return values


def _as_floats(values: ArrayLike) -> Floats | None:
    """Return numbers of a type that can be missing; None where whole numbers would lose digits."""
    array = np.asarray(values)
    if np.issubdtype(array.dtype, np.inexact):
        return array.copy()
    floats = array.astype(np.float64)
    return None if np.any(np.abs(floats) > MAX_EXACT_INTEGER) else floats


_DIGITS_LOST = Refusal(
    f"readouts are whole numbers above {MAX_EXACT_INTEGER}, which cannot be marked as missing "
    "without losing digits; subtract an offset first"
)


# Rows that are there twice.


def keep_one_copy(diagnosis: Diagnosis) -> Change | Refusal:
    """Leave out rows that equal an earlier one in inputs, readouts and repeats."""
    recording = diagnosis.recording
    if _has_levels_only(diagnosis):
        return _EQUAL_BY_LAW
    first, again = _rows_with_equal_inputs(np.asarray(recording.inputs))
    is_copy = _equal_in_rows(np.asarray(recording.readouts), first, again)
    if recording.repeats is not None:
        is_copy &= _equal_in_rows(np.asarray(recording.repeats), first, again)
    copies = again[is_copy]
    if not len(copies):
        return Refusal("rows with equal inputs are no exact copies in the file, so all were kept")
    kept = np.setdiff1d(np.arange(len(recording.design_index)), copies)
    return Change(
        select_rows(recording, kept),
        f"{counted(len(copies), 'row')} left out, each an exact copy of an earlier one",
        {"first_rows": first[is_copy].tolist(), "left_out": _values_of_rows(recording, copies)},
    )


def turn_into_repeats(diagnosis: Diagnosis) -> Change | Refusal:
    """Make second measurements `repeats` of the row with their inputs.

    `repeats` hold one second measurement of each row. A recording with a third one stays as it is,
    because one of them would be lost.
    """
    recording = diagnosis.recording
    if _has_levels_only(diagnosis):
        return _EQUAL_BY_LAW
    first, again = _rows_with_equal_inputs(np.asarray(recording.inputs))
    if not _agree(np.asarray(recording.readouts), first, again):
        return Refusal(
            "readouts at equal inputs have nothing in common, so they are no repeats; check that "
            "these are the inputs that were sent"
        )
    if _has_repeats(recording) or len(np.unique(first)) < len(first):
        return Refusal(
            "some inputs were measured three times or more, and `repeats` hold one second "
            "measurement of each; give the mean of the further ones as `repeats`, or one of them"
        )
    is_copy = _equal_in_rows(np.asarray(recording.readouts), first, again)
    if np.mean(is_copy) > MAX_SHARE_OF_COPIES:
        return Refusal(
            f"{np.sum(is_copy)} of {len(first)} rows with the inputs of another row equal it and "
            "the others do not, so they are copies in part, or measurements in coarse steps; keep "
            "one of the two"
        )
    readouts = _as_floats(recording.readouts)
    if readouts is None:
        return _DIGITS_LOST
    repeats = np.full_like(readouts, np.nan)
    repeats[first] = readouts[again]
    kept = np.setdiff1d(np.arange(len(readouts)), again)
    return Change(
        select_rows(replace(recording, repeats=repeats), kept),
        f"{counted(len(again), 'row')} became repeats of the row with the same inputs",
        {"first_rows": first.tolist(), "repeats": _values_of_rows(recording, again)},
    )


def _agree(readouts: Floats, rows: Integers, others: Integers) -> bool:
    """Return whether channels lie on the same side of their median in rows more often than not.

    Where an input was written down twice by mistake, its second readouts belong to another one.
    """
    values = readouts
    if np.iscomplexobj(values):
        values = np.hstack([values.real, values.imag])
    side = np.nan_to_num(np.sign(values - np.nanmedian(values, axis=0)))
    agreement = np.mean(side[rows] * side[others], axis=1)
    error = np.std(agreement) / np.sqrt(len(agreement))
    return bool(np.mean(agreement) > MIN_AGREEMENT_OF_REPEATS * error)


def _has_repeats(recording: Recording) -> bool:
    return recording.repeats is not None and not np.isnan(np.asarray(recording.repeats)).all()


def hide_no_order(_: Diagnosis, after: Diagnosis) -> str | None:
    """Return why rows are no repeats: in a sweep there and back the way may matter."""
    if not _order_is_meaningless(after):
        return None
    return (
        "rows with equal inputs were not made repeats, because the inputs of neighbouring rows are "
        "related, and what the device did before may matter"
    )


_EQUAL_BY_LAW = Refusal(
    "inputs on a few levels are equal in many rows by law, so none of these was taken for a copy"
)


def _has_levels_only(diagnosis: Diagnosis) -> bool:
    """Return whether all inputs take a few levels, so that equal inputs tell nothing."""
    families = () if diagnosis.basis is None else diagnosis.basis.families
    return all(isinstance(family, DiscreteFamily) for family in families)


def _rows_with_equal_inputs(u: Floats) -> tuple[Integers, Integers]:
    """Return the rows whose inputs came before, and for each the first row with them."""
    complete = np.flatnonzero(np.isfinite(u).all(axis=1))
    _, first_places, groups = np.unique(u[complete], axis=0, return_index=True, return_inverse=True)
    first = complete[first_places[groups.ravel()]]
    is_again = first != complete
    return first[is_again], complete[is_again]


def _equal_in_rows(values: Floats, rows: Integers, others: Integers) -> Any:
    """Return whether rows are equal in all columns; missing values equal each other."""
    a = values[rows]
    b = values[others]
    return np.all((a == b) | (np.isnan(a) & np.isnan(b)), axis=1)


# Codes in place of numbers.


def set_codes_to_missing(diagnosis: Diagnosis) -> Change | Refusal:
    """Mark cells that hold an instrument's code as missing; their rows stay.

    A cell is changed only if it holds a number of the table `CODES`, of which nothing but SCPI's
    could be a measurement: the others must lie far outside everything else in their channel. A
    value that merely comes often, or lies far outside, is no fact about an instrument.
    """
    recording = diagnosis.recording
    is_code = _cells_with_codes(np.asarray(recording.readouts))
    if not is_code.any():
        return Refusal(
            "no cell holds a number that can only be an instrument's code, so none was set to "
            "missing; look at the rows that are named"
        )
    readouts = _as_floats(recording.readouts)
    if readouts is None:
        return _DIGITS_LOST
    details = {"cells": _cells(np.asarray(recording.readouts), is_code)}
    readouts[is_code] = np.nan
    changed = replace(recording, readouts=readouts)
    if recording.repeats is not None:
        repeats = _as_floats(recording.repeats)
        if repeats is None:
            return _DIGITS_LOST
        is_code_of_repeat = _cells_with_codes(repeats)
        details["cells_of_repeats"] = _cells(repeats, is_code_of_repeat)
        repeats[is_code_of_repeat] = np.nan
        changed = replace(changed, repeats=repeats)
    rows = np.flatnonzero(is_code.any(axis=1))
    values = np.unique(np.asarray(recording.readouts)[is_code])
    names = join_names([f"{value:.6g}" for value in values.tolist()], MAX_CODES_TOLD)
    done = (
        f"{counted(int(is_code.sum()), 'cell')} in {counted(len(rows), 'row')} set to missing, "
        f"with the instrument's code {names}"
    )
    return Change(changed, done, details)


def _cells_with_codes(values: Floats) -> Any:
    """Return which cells hold a number that can only be an instrument's code."""
    if np.iscomplexobj(values):
        return _cells_with_codes(values.real) | _cells_with_codes(values.imag)
    # In the precision of the readouts, which may have rounded 9.91e37.
    is_float = np.issubdtype(values.dtype, np.floating)
    dtype = values.dtype if is_float else np.dtype(np.float64)
    with np.errstate(over="ignore"):
        codes = np.array(CODES).astype(dtype)
    is_listed = np.isin(values, codes[np.isfinite(codes)])
    is_code = is_listed & (np.abs(values.astype(np.float64)) >= MIN_SIZE_OF_SCPI_CODES)
    for channel in np.flatnonzero((is_listed & ~is_code).any(axis=0)):
        column = values[:, channel].astype(np.float64)
        others = np.unique(column[np.isfinite(column) & ~is_listed[:, channel]])
        if len(others) < MIN_OTHER_VALUES:
            continue
        low, high = others[0], others[-1]
        outside = np.maximum(low - column, column - high)
        is_far = outside >= MIN_RANGES_OUTSIDE * (high - low)
        is_code[:, channel] |= is_listed[:, channel] & is_far
    return is_code


def _cells(values: Floats, is_changed: Any) -> dict[str, list[Any]]:
    """Return rows, channels and numbers of cells as plain data."""
    rows, channels = np.nonzero(is_changed)
    return {
        "rows": rows.tolist(),
        "channels": channels.tolist(),
        "values": _as_plain_data(values[rows, channels]),
    }


def _as_plain_data(values: Floats) -> list[Any]:
    """Return numbers as lists; complex ones as pairs of real and imaginary part."""
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], axis=-1)
    plain: list[Any] = values.tolist()
    return plain


# Readouts out of step with their inputs.


def realign(diagnosis: Diagnosis) -> Change | Refusal:
    """Put every readout into the row of its inputs, where a shift or slips were found.

    The finding tells the shifts. Where each begins and ends is where the rows fit best, which up
    to three rows leave open; where more do, nothing is done. Rows
    without a partner are left out: inputs without a readout, and readouts at the ends whose inputs
    are not in the file. Of two readouts of one input, the second is kept in the record, unless it
    is an exact copy. Times and extra values stay with the inputs.
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
    delay = _told_delay(diagnosis, order, findings)
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


def _shifts_and_slips(diagnosis: Diagnosis) -> list[Check]:
    """Return all shifts and slips that were found, also those told beneath another one.

    A long run is looked at in parts: a slip that ends in one of them is a shift of the next.
    """
    causes = ("shift", "slip")
    told = _findings(diagnosis, causes)
    beneath = [Check.from_dict(data) for check in told for data in check.found.get("also", ())]
    return [*told, *(check for check in beneath if check.found.get("cause") in causes)]


def _refusal_to_realign(diagnosis: Diagnosis) -> Refusal | None:
    """Return why the order of the rows cannot be judged or put right; None where it can."""
    recording = diagnosis.recording
    if diagnosis.basis is None or diagnosis.basis.of_sequences:
        return Refusal(
            "rows of a sequence were not realigned, because leaving out rows tears it apart; "
            "give the parts before and after the slip as runs"
        )
    if _order_is_meaningless(diagnosis):
        return Refusal("the order of the rows tells nothing, so nothing was realigned")
    hiding = sorted(_causes_of_warnings(diagnosis) & INPUT_CAUSES)
    if hiding:
        return Refusal(
            f"rows were not realigned, because the inputs are in doubt ({join_names(hiding)}); "
            "repair these first"
        )
    if _has_repeats(recording):
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


def pass_all_tests(before: Diagnosis, after: Diagnosis) -> str | None:
    """Return why realigned rows are not kept: tests of order that they fail, or new warnings."""
    if _order_is_meaningless(after):
        return "the order of the rows tells nothing, so nothing was realigned"
    allowed = _causes_of_warnings(before) - ORDER_CAUSES
    failed = [check for check in _warnings_of(after) if _cause(check) not in allowed]
    if not failed:
        return None
    return (
        "rows were not moved, because they would not pass all tests after that either "
        f"({_in_few_words(failed)}); bring inputs and readouts into step where they were recorded"
    )


def _told_delay(diagnosis: Diagnosis, order: Integers, findings: list[Check]) -> Integers:
    """Return by how many measurements the readouts come late, as the findings tell it.

    These number the rows without missing values in the order of acquisition.
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


def _fitted_delay(diagnosis: Diagnosis, order: Integers, told: Integers) -> Integers | None:
    """Return the delay of every row that fits best, with as few changes as pay for themselves.

    None where no row slips for certain, or where it is not clear at which rows it does. Slips that
    add up are not all told, so every delay between those that are told is tried, and once more with
    a fit to the rows as they were aligned then.
    """
    delays = np.arange(min(told.min(), 0), max(told.max(), 0) + 1)
    if len(delays) > MAX_TRIED_DELAYS:
        delays = np.union1d(told, [0])
    aligned = told
    for _ in range(N_FITS):
        costs = _costs_of_delays(diagnosis, order, aligned, delays)
        states = _cheapest_states(costs)
        aligned = delays[states]
    changes = np.flatnonzero(np.diff(states)) + 1
    n_unclear = [_n_unclear_rows(costs, states, change) for change in changes.tolist()]
    if not aligned.any() or max(n_unclear, default=0) > MAX_UNCLEAR_ROWS:
        return None
    return aligned


def _cheapest_states(costs: Floats) -> Integers:
    """Return the state of every row, one of the columns of costs, that cost the least together."""
    # The cheapest way through the rows (dynamic programming, the algorithm of Viterbi).
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
    """Return up to how many rows earlier or later a change of the delay would fit hardly worse."""
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
    diagnosis: Diagnosis, order: Integers, told: Integers, delays: Integers
) -> Floats:
    """Return how much worse each row fits at each delay than at its best one, (rows, delays)."""
    u, x, y = _fitted_columns(diagnosis, order)
    n_rows = len(x)
    is_known = np.isfinite(x).all(axis=1)
    has_inputs: Any = np.isfinite(u).all(axis=1)
    positions = np.arange(n_rows)

    def fits_at(delay: Any) -> tuple[Integers, Any]:
        """Return the row of inputs at a delay, and whether it and the readouts are known."""
        target = positions - delay
        is_inside = (target >= 0) & (target < n_rows)
        target = target.clip(0, n_rows - 1)
        return target, is_inside & is_known & has_inputs[target]

    target, is_usable = fits_at(told)
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
        target, is_usable = fits_at(delay)
        left = (x[is_usable] - fitted[target[is_usable]]) @ whitening
        costs[is_usable, k] = np.sum(np.minimum(left**2, MAX_SQUARE), axis=1)
    # A delay at which a row has no inputs in the file is judged as one that fits as usual.
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


def _move_readouts(
    recording: Recording, order: Integers, target: Integers, delay: Integers, is_reversed: bool
) -> Change | Refusal:
    """Return the recording with each readout in its target, counted in measured order."""
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
    is_copy = _equal_in_rows(readouts, order[first_of_second], order[second])
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
    by = join_names([f"{shift:+d}" for _, _, shift in shifts], MAX_SHIFTS_TOLD)
    steps = ["put into reverse order"] if is_reversed else []
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
            "values": _as_plain_data(readouts[order[measured_again]]),
        },
    }
    return Change(select_rows(moved, np.sort(target_rows)), done, details)


def _parts_of(delay: Integers) -> list[list[int]]:
    """Return start, stop and delay of the parts that come late, in measured order."""
    edges = [0, *(np.flatnonzero(np.diff(delay)) + 1).tolist(), len(delay)]
    return [[start, stop, int(delay[start])] for start, stop in pairwise(edges) if delay[start]]


# What is repaired, in this order. Copies are compared as they were written, and codes hide shifts.
REPAIRS = (
    Repair(("stacked",), keep_one_copy),
    Repair(("repeats",), turn_into_repeats, hide_no_order),
    Repair(("codes",), set_codes_to_missing),
    Repair(("shift", "slip"), realign, pass_all_tests),
)
