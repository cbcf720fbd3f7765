"""What all repairs use: their two outcomes, and functions of findings, rows and values."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._formatting import join_names
from ..errors import Check
from ..recording import Recording
from ..typing import ArrayLike, Floats, Integers
from ._diagnose import Diagnosis

# Whole numbers up to this size have all their digits as floating-point numbers.
MAX_EXACT_INTEGER = 2**53


@dataclass(frozen=True, eq=False)
class Change:
    """A recording that was changed: what was done, in a sentence and as plain data."""

    recording: Recording
    done: str
    details: dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """Why nothing was changed, in a sentence."""

    reason: str


DIGITS_WOULD_BE_LOST = Refusal(
    f"readouts are whole numbers above {MAX_EXACT_INTEGER}, which cannot be marked as missing "
    "without losing digits; subtract an offset first"
)


# What a diagnosis found.


def warnings_of(diagnosis: Diagnosis) -> list[Check]:
    """Return the warnings of a diagnosis, without its notes."""
    return [check for check in diagnosis.checks if check.kind == "warning"]


def warnings_with_causes(diagnosis: Diagnosis, causes: tuple[str, ...]) -> list[Check]:
    """Return the warnings that have one of some causes."""
    return [check for check in warnings_of(diagnosis) if check.found.get("cause") in causes]


def cause_of(check: Check) -> str:
    """Return the cause of a check, or else what it says of the total in a few words."""
    return str(check.found.get("cause") or check.found.get("unreliable"))


def causes_of_warnings(diagnosis: Diagnosis) -> set[str]:
    """Return the causes of all warnings."""
    return {cause_of(check) for check in warnings_of(diagnosis)}


def in_few_words(checks: list[Check]) -> str:
    """Return the causes of checks as a list in words."""
    return join_names([cause_of(check) for check in checks])


def order_is_not_random(diagnosis: Diagnosis) -> bool:
    """Return whether neighbouring rows have related inputs, as in a sweep or a sorted file."""
    return any(check.found.get("cause") == "order of inputs" for check in diagnosis.checks)


# Rows and values of a recording.


def has_repeats(recording: Recording) -> bool:
    """Return whether some row was measured twice."""
    return recording.repeats is not None and not np.isnan(np.asarray(recording.repeats)).all()


def select_rows(recording: Recording, rows: Integers) -> Recording:
    """Return the recording with these rows alone."""
    selected: dict[str, Any] = {}
    for name in ("inputs", "readouts", "design_index", "time", "repeats", "extra"):
        values = getattr(recording, name)
        selected[name] = None if values is None else np.asarray(values)[rows]
    return replace(recording, **selected)


def values_of_rows(recording: Recording, rows: Integers) -> dict[str, Any]:
    """Return rows that are left out, with design index, times and extra values, as plain data."""
    values = {"rows": rows.tolist()}
    for name in ("design_index", "time", "extra"):
        column = getattr(recording, name)
        if column is not None:
            values[name] = np.asarray(column)[rows].tolist()
    return values


def equal_in_rows(values: Floats, rows: Integers, others: Integers) -> Any:
    """Return whether rows are equal in all columns; missing values equal each other."""
    a = values[rows]
    b = values[others]
    return np.all((a == b) | (np.isnan(a) & np.isnan(b)), axis=1)


def as_floats(values: ArrayLike) -> Floats | None:
    """Return values as floats, which can be NaN; None where whole numbers would lose digits."""
    array = np.asarray(values)
    if np.issubdtype(array.dtype, np.inexact):
        return array.copy()
    floats = array.astype(np.float64)
    return None if np.any(np.abs(floats) > MAX_EXACT_INTEGER) else floats


def as_plain_data(values: Floats) -> list[Any]:
    """Return numbers as lists; complex ones as pairs of real and imaginary part."""
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], axis=-1)
    plain: list[Any] = values.tolist()
    return plain
