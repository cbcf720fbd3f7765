"""Repair of cells that hold an instrument's code: they become missing, and their rows stay."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._formatting import counted, join_names
from ..diagnostics import CODES
from ..typing import Floats
from ._diagnose import Diagnosis
from ._repair_change import DIGITS_WOULD_BE_LOST, Change, Refusal, as_floats, as_plain_data

# Numbers of this size are SCPI's not-a-number and infinities, and never measurements.
MIN_SIZE_OF_SCPI_CODES = 9e37
# Any other code may also be a measurement, such as 999 counts or the full scale of a converter. It
# is a code only if it lies outside the range of the channel's other values by so many times that
# range, and if there are so many different other values (a switch has two).
MIN_RANGES_OUTSIDE = 5.0
MIN_OTHER_VALUES = 8
MAX_CODES_IN_SENTENCE = 4


def set_codes_to_missing(diagnosis: Diagnosis) -> Change | Refusal:
    """Mark cells that hold an instrument's code as missing; their rows stay.

    A cell is changed only if it holds a number of the table `CODES` that cannot be a measurement:
    one of SCPI's, or one far outside all other values of its channel. Any other number that comes
    often or lies far outside stays, because no instrument is known to write it.
    """
    recording = diagnosis.recording
    is_code = _cells_with_codes(np.asarray(recording.readouts))
    if not is_code.any():
        return Refusal(
            "no cell holds a number that can only be an instrument's code, so none was set to "
            "missing; look at the rows that are named"
        )
    readouts = as_floats(recording.readouts)
    if readouts is None:
        return DIGITS_WOULD_BE_LOST
    details = {"cells": _cells(np.asarray(recording.readouts), is_code)}
    readouts[is_code] = np.nan
    changed = replace(recording, readouts=readouts)
    if recording.repeats is not None:
        repeats = as_floats(recording.repeats)
        if repeats is None:
            return DIGITS_WOULD_BE_LOST
        is_code_of_repeat = _cells_with_codes(repeats)
        details["cells_of_repeats"] = _cells(repeats, is_code_of_repeat)
        repeats[is_code_of_repeat] = np.nan
        changed = replace(changed, repeats=repeats)
    rows = np.flatnonzero(is_code.any(axis=1))
    values = np.unique(np.asarray(recording.readouts)[is_code])
    names = join_names([f"{value:.6g}" for value in values.tolist()], MAX_CODES_IN_SENTENCE)
    done = (
        f"{counted(int(is_code.sum()), 'cell')} in {counted(len(rows), 'row')} set to missing, "
        f"with the instrument's code {names}"
    )
    return Change(changed, done, details)


def _cells_with_codes(values: Floats) -> Any:
    """Return which cells hold a number that can only be an instrument's code."""
    if np.iscomplexobj(values):
        return _cells_with_codes(values.real) | _cells_with_codes(values.imag)
    # Codes are compared in the precision of the readouts, in which 9.91e37 may have been rounded.
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
        "values": as_plain_data(values[rows, channels]),
    }
