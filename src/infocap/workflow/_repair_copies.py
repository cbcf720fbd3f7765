"""Repair of rows that are there twice: copies are left out, second measurements become repeats."""

from dataclasses import replace

import numpy as np

from .._formatting import counted
from ..basis import DiscreteFamily
from ..typing import Floats, Integers
from ._diagnose import Diagnosis
from ._repair_change import (
    DIGITS_WOULD_BE_LOST,
    Change,
    Refusal,
    as_floats,
    equal_in_rows,
    has_repeats,
    order_is_not_random,
    select_rows,
    values_of_rows,
)

# Where more than this share of the second measurements equal the first, they may be damaged copies.
MAX_SHARE_OF_COPIES = 0.5
# Second readouts belong to the same inputs if they agree with the first ones by so many standard
# errors more than by chance.
MIN_AGREEMENT_OF_REPEATS = 3.0
_EQUAL_BY_LAW = Refusal(
    "inputs on a few levels are equal in many rows by law, so none of these was taken for a copy"
)


def keep_one_copy(diagnosis: Diagnosis) -> Change | Refusal:
    """Leave out rows that equal an earlier one in inputs, readouts and repeats."""
    recording = diagnosis.recording
    if _has_levels_only(diagnosis):
        return _EQUAL_BY_LAW
    first, again = _rows_with_equal_inputs(np.asarray(recording.inputs))
    is_copy = equal_in_rows(np.asarray(recording.readouts), first, again)
    if recording.repeats is not None:
        is_copy &= equal_in_rows(np.asarray(recording.repeats), first, again)
    copies = again[is_copy]
    if not len(copies):
        return Refusal("rows with equal inputs are no exact copies in the file, so all were kept")
    kept = np.setdiff1d(np.arange(len(recording.design_index)), copies)
    return Change(
        select_rows(recording, kept),
        f"{counted(len(copies), 'row')} left out, each an exact copy of an earlier one",
        {"first_rows": first[is_copy].tolist(), "left_out": values_of_rows(recording, copies)},
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
    if not _repeats_agree(np.asarray(recording.readouts), first, again):
        return Refusal(
            "readouts at equal inputs have nothing in common, so they are no repeats; check that "
            "these are the inputs that were sent"
        )
    if has_repeats(recording) or len(np.unique(first)) < len(first):
        return Refusal(
            "some inputs were measured three times or more, and `repeats` hold one second "
            "measurement of each; give the mean of the further ones as `repeats`, or one of them"
        )
    is_copy = equal_in_rows(np.asarray(recording.readouts), first, again)
    if np.mean(is_copy) > MAX_SHARE_OF_COPIES:
        return Refusal(
            f"{np.sum(is_copy)} of {len(first)} rows with the inputs of another row equal it and "
            "the others do not, so they are copies in part, or measurements in coarse steps; keep "
            "one of the two"
        )
    readouts = as_floats(recording.readouts)
    if readouts is None:
        return DIGITS_WOULD_BE_LOST
    repeats = np.full_like(readouts, np.nan)
    repeats[first] = readouts[again]
    kept = np.setdiff1d(np.arange(len(readouts)), again)
    return Change(
        select_rows(replace(recording, repeats=repeats), kept),
        f"{counted(len(again), 'row')} became repeats of the row with the same inputs",
        {"first_rows": first.tolist(), "repeats": values_of_rows(recording, again)},
    )


def objection_in_a_sweep(_: Diagnosis, after: Diagnosis) -> str | None:
    """Return why rows of a sweep do not become repeats: the device may have hysteresis."""
    if not order_is_not_random(after):
        return None
    return (
        "rows with equal inputs were not made repeats, because the inputs of neighbouring rows are "
        "related, and what the device did before may matter"
    )


def _repeats_agree(readouts: Floats, rows: Integers, others: Integers) -> bool:
    """Return whether the readouts of rows agree with those of other rows with the same inputs.

    They agree where channels lie on the same side of their median. They do not where an input was
    written down twice by mistake, so that the second readouts belong to another one.
    """
    values = readouts
    if np.iscomplexobj(values):
        values = np.hstack([values.real, values.imag])
    side = np.nan_to_num(np.sign(values - np.nanmedian(values, axis=0)))
    agreement = np.mean(side[rows] * side[others], axis=1)
    error = np.std(agreement) / np.sqrt(len(agreement))
    return bool(np.mean(agreement) > MIN_AGREEMENT_OF_REPEATS * error)


def _has_levels_only(diagnosis: Diagnosis) -> bool:
    """Return whether all inputs are discrete, so that equal inputs are no sign of a copy."""
    families = () if diagnosis.basis is None else diagnosis.basis.families
    return all(isinstance(family, DiscreteFamily) for family in families)


def _rows_with_equal_inputs(u: Floats) -> tuple[Integers, Integers]:
    """Return the rows whose inputs came before, and for each the first row with them."""
    complete = np.flatnonzero(np.isfinite(u).all(axis=1))
    _, first_places, groups = np.unique(u[complete], axis=0, return_index=True, return_inverse=True)
    first = complete[first_places[groups.ravel()]]
    is_again = first != complete
    return first[is_again], complete[is_again]
