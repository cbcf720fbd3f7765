"""Which column of a table is what, decided in the order in which a person would.

1. Columns that the user names by ``u=`` and ``x=`` are inputs and readouts.
2. A column ``design_index`` (or ``index``) numbers the rows of the design.
3. The first clock is the time: a column with a usual name (``time``, ``timestamp``, ...), of dates,
   of seconds that only grow, or called ``t`` or so that never goes back. It is neither input nor
   readout.
4. Columns of text, empty columns, and a nameless column that counts the rows are left out.
5. Inputs, where the user names none, are columns called ``u1``, ``u2``, ..., or else one called
   ``u``, ``inputs`` or ``input``; in a file that is to hold only inputs, all that is left.
6. Readouts, where the user names none, are all columns of numbers that are left.

What became what, and what was left out and why, goes into the metadata of the recording.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..._formatting import join_names
from ..._validation import MAX_NAMES_IN_MESSAGE
from ...errors import Check, DataError
from ...recording import PLAN_COMMENT, PLAN_COMMENT_ENTRIES, integer_index
from ...typing import Floats
from ._arrange import RowsOfFile, along_axes
from ._names import (
    DATE_NAMES,
    INDEX_NAMES,
    INPUT_NAMES,
    SECONDS,
    SHORT_TIME_NAMES,
    TIME_NAMES,
    NotInFileError,
    common_unit,
    find_numbered_inputs,
    find_requested,
    find_usual,
    names_of_inputs,
    plain_name,
    unit_of,
)
from ._options import ReadOptions
from ._tables import Sheet
from ._times import in_seconds

# Rows from which on seconds that only grow are taken for a clock: two numbers grow as often as not.
MIN_ROWS_OF_A_CLOCK = 3
MAX_LEFT_OUT_IN_CHECK = 6

# The columns of each role, such as inputs.
Roles = dict[str, list[int]]


class Clock(NamedTuple):
    """The column that is the time, and its values in seconds."""

    column: int
    times: Floats


def rows_of_sheet(sheet: Sheet, options: ReadOptions) -> RowsOfFile:
    """Take inputs, readouts or both from the columns of a table."""
    is_transposed = (options.axes or "").replace(" ", "") == "channels,samples"
    if is_transposed and options.wants_readouts:
        sheet = sheet.transposed()
        options = replace(options, axes=None)
    try:
        return _assign(sheet, options)
    except DataError as problem:
        problem.add_note(_listing(sheet))
        raise


def _assign(sheet: Sheet, options: ReadOptions) -> RowsOfFile:
    """Decide for every column what it is, and read it as such."""
    named = _columns_named_by_user(sheet, options)
    index = _column_of_design_index(sheet)
    used = {*index, *named.get("u", []), *named.get("x", [])}
    clock = _clock(sheet, used)
    clock_columns = [] if clock is None else [clock.column]
    columns_of_text = _columns_of_text(sheet)
    unusable = {*index, *clock_columns, *columns_of_text, *_empty_columns(sheet)}
    unusable.update(_columns_that_count_rows(sheet))
    usable = [k for k in range(len(sheet.labels)) if k not in unusable]
    inputs = _columns_of_inputs(sheet, options, named, usable)
    readouts = _columns_of_readouts(options, named, usable, inputs)
    roles = {"inputs": inputs, "readouts": readouts, "time": clock_columns, "index": index}
    left_out = _left_out(sheet, roles, usable)
    if options.wants_readouts and not readouts:
        _refuse_without_readouts(sheet, left_out)

    rows = RowsOfFile(sheet.path, axes=options.axes)
    rows.metadata = _metadata(sheet)
    rows.checks = list(sheet.checks)
    used = {*inputs, *readouts, *clock_columns}
    for k in columns_of_text:
        if k not in used:
            rows.columns_of_text.append(list(sheet.columns[k].astype(str)))
    if index:
        numbers = sheet.numbers(index, real="index")[:, 0]
        rows.index = integer_index(sheet.path, numbers)
    if clock is not None:
        rows.time = clock.times
    if inputs:
        rows.u = sheet.numbers(inputs, real="inputs")
    if readouts:
        x = sheet.numbers(readouts)
        rows.x = x if options.axes is None else along_axes(sheet.path, x, options.axes)
    _name_columns(rows, sheet, inputs, readouts)
    if left_out and options.wants_readouts and "x" not in named:
        rows.checks.append(_check_of_left_out(sheet, left_out))
    names = {}
    for role, columns in roles.items():
        names[role] = [sheet.labels[k] for k in columns]
    rows.note_choice(sheet.layout, names, left_out)
    return rows


# The decisions


def _columns_named_by_user(sheet: Sheet, options: ReadOptions) -> Roles:
    """Return the columns that the user names for each role; a column can have one role."""
    named = {}
    if options.wants_inputs and options.u is not None:
        named["u"] = find_requested(sheet.path, sheet.labels, options.u, role="u")
    if options.wants_readouts and options.x is not None:
        named["x"] = find_requested(sheet.path, sheet.labels, options.x, role="x")
    named_twice = [k for k in named.get("u", []) if k in named.get("x", [])]
    if named_twice:
        raise DataError(
            f"{sheet.labels[named_twice[0]]!r} of {sheet.path} is named as an input and as a "
            "readout; it can be one of them."
        )
    return named


def _column_of_design_index(sheet: Sheet) -> list[int]:
    """Return the column that numbers the rows of the design, if there is one."""
    return [k for k in find_usual(sheet.labels, INDEX_NAMES) if not sheet.is_text(k)]


def _columns_of_text(sheet: Sheet) -> list[int]:
    return [k for k in range(len(sheet.labels)) if sheet.is_text(k)]


def _empty_columns(sheet: Sheet) -> list[int]:
    return [k for k in range(len(sheet.labels)) if sheet.is_empty(k)]


def _columns_that_count_rows(sheet: Sheet) -> list[int]:
    """Return the columns without a name that count the rows, as pandas writes them."""
    return [k for k, name in enumerate(sheet.labels) if not name and sheet.counts_rows(k)]


def _clock(sheet: Sheet, used: set[int]) -> Clock | None:
    """Return the first column that is a clock; None where there is none."""
    plain = [plain_name(label) for label in sheet.labels]
    day = next((k for k, name in enumerate(plain) if name in DATE_NAMES), None)
    with_usual_name = [plain.index(name) for name in TIME_NAMES if name in plain]
    for k in (*with_usual_name, *range(len(plain))):
        if k in used:
            continue
        has_usual_name = k in with_usual_name
        times = sheet.seconds(k, day if has_usual_name else None)
        if times is None:
            continue
        is_date = sheet.is_text(k)
        if has_usual_name or is_date or _is_running(sheet.labels[k], times):
            return Clock(k, in_seconds(times))
    return None


def _is_running(label: str, times: Floats) -> bool:
    """Return whether a column in seconds grows, or one called ``t`` or so never goes back."""
    if len(times) < MIN_ROWS_OF_A_CLOCK:
        return False
    steps = np.diff(times)
    if unit_of(label).lower() in SECONDS:
        return bool((steps > 0).all())
    if plain_name(label) in SHORT_TIME_NAMES:  # few digits may make two times equal
        return bool((steps >= 0).all()) and times[-1] > times[0]
    return False


def _columns_of_inputs(
    sheet: Sheet, options: ReadOptions, named: Roles, usable: list[int]
) -> list[int]:
    """Return the inputs: named by the user, by usual names, or all of a file of inputs only."""
    if "u" in named:
        return named["u"]
    readouts = named.get("x", [])
    by_name = find_numbered_inputs(sheet.labels) or find_usual(sheet.labels, INPUT_NAMES)
    if by_name:
        return by_name
    if not options.wants_readouts:
        return [k for k in usable if k not in readouts]
    if options.wants_inputs:
        numbered = "" if sheet.has_names else "; without a header line columns are numbered from 1"
        raise NotInFileError(
            f"{sheet.path} has no columns named u1, u2, ...; it holds {_names(sheet)}: "
            f"name the inputs by u='a,b' (--u){numbered}."
        )
    return []


def _columns_of_readouts(
    options: ReadOptions, named: Roles, usable: list[int], inputs: list[int]
) -> list[int]:
    """Return the readouts: named by the user, or all columns of numbers that are left."""
    if not options.wants_readouts:
        return []
    if "x" in named:
        return named["x"]
    return [k for k in usable if k not in inputs]


# What is kept of the decisions


def _name_columns(rows: RowsOfFile, sheet: Sheet, inputs: list[int], readouts: list[int]) -> None:
    """Keep the names of inputs and readouts, and the unit of the readouts."""
    if not sheet.has_names:
        return
    rows.input_names = names_of_inputs([sheet.labels[k] for k in inputs])
    rows.channel = tuple(sheet.labels[k] for k in readouts)
    rows.readout_unit = common_unit([unit_of(name) for name in rows.channel])


def _left_out(sheet: Sheet, roles: Roles, usable: Sequence[int]) -> dict[str, str]:
    """Say of every column that became nothing what it holds."""
    used = {k for columns in roles.values() for k in columns}
    left_out = {}
    for k, label in enumerate(sheet.labels):
        if k not in used:
            reason = ", not asked for" if k in usable else ""
            left_out[label or "(no name)"] = sheet.describe(k) + reason
    return left_out


def _check_of_left_out(sheet: Sheet, left_out: dict[str, str]) -> Check:
    return Check(
        f"columns of {sheet.path.name} were left out: {_in_words(left_out)}.",
        "note",
        left_out=list(left_out),
    )


def _refuse_without_readouts(sheet: Sheet, left_out: dict[str, str]) -> None:
    leftovers = f"; left out: {_in_words(left_out)}" if left_out else ""
    raise NotInFileError(
        f"{sheet.path} has no column of readouts; it holds {_names(sheet)}{leftovers}."
    )


def _in_words(left_out: dict[str, str]) -> str:
    columns = [f"{name} ({content})" for name, content in left_out.items()]
    return join_names(columns, MAX_LEFT_OUT_IN_CHECK)


def _names(sheet: Sheet) -> str:
    return join_names(sheet.labels, MAX_NAMES_IN_MESSAGE)


def _listing(sheet: Sheet) -> str:
    """Return how the table was read and what each column holds, one line for each."""
    lines = [f"{sheet.path}: {sheet.layout}"]
    lines += [f"  {label:<24} {sheet.describe(k)}" for k, label in enumerate(sheet.labels)]
    return "\n".join(lines)


def _metadata(sheet: Sheet) -> dict[str, Any]:
    """Return the plan that `infocap draw` writes in a comment above the table."""
    data = sheet.data_in_comment(PLAN_COMMENT)
    return {name: data[name] for name in PLAN_COMMENT_ENTRIES if name in data}
