"""Which column of a table is what, decided in the order in which a person would.

1. Columns that the user names by ``u=`` and ``x=`` are inputs and readouts.
2. A column ``design_index`` (or ``index``) numbers the rows of the design.
3. Clocks are neither inputs nor readouts, and the first is the time: a column with a usual name
   (``time``, ``timestamp``, ...), of dates, of seconds that only grow, called ``t`` or so that
   never goes back, or of any name that grows from row to row while the inputs do not. Where such a
   clock starts again, a run of a sequence begins.
4. Columns that number the samples (``shot``, ``sample``, ...), columns of text, empty columns, and
   a nameless column that counts the rows are left out; so are columns of a long table that are the
   same throughout each sample (`_long`).
5. Inputs, where the user names none, are columns called ``u1``, ``u2``, ..., or else one called
   ``u``, ``inputs`` or ``input``; in a file that is to hold only inputs, all that is left.
6. Readouts, where the user names none, are all columns of numbers that are left.

What became what, and what was left out and why, goes into the metadata of the recording.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._formatting import counted, join_names
from ..._validation import MAX_NAMES_IN_MESSAGE
from ...errors import Check, DataError
from ...recording import PLAN_COMMENT, PLAN_COMMENT_ENTRIES, integer_index
from ...typing import Floats
from ._arrange import RowsOfFile, along_axes
from ._long import wide_where_long
from ._names import (
    DATE_NAMES,
    INDEX_NAMES,
    INPUT_NAMES,
    SAMPLE_NAMES,
    SECONDS,
    TIME_NAMES,
    NotInFileError,
    common_unit,
    find_numbered_inputs,
    find_requested,
    find_usual,
    is_name_of_time,
    names_of_inputs,
    plain_name,
    unit_of,
)
from ._options import ReadOptions
from ._sheet import Sheet
from ._times import in_seconds

# Rows from which on seconds that only grow are taken for a clock: two numbers grow as often as not.
MIN_ROWS_OF_A_CLOCK = 3
# Rows from which on a column of any name that only grows is one: of 16 rows in a random order, one
# order in 16! does.
MIN_ROWS_OF_A_NAMELESS_CLOCK = 16
# Times that go back after fewer rows are in some other order.
MIN_ROWS_OF_A_RUN = 8
STARTS_AGAIN = "a clock that starts again"
# A clock starts again where it goes back to within so many of its usual steps from its first value.
MAX_STEPS_AT_A_START = 2
MAX_LEFT_OUT_IN_CHECK = 6

# The columns of each role, such as inputs.
Roles = dict[str, list[int]]


@dataclass
class Clocks:
    """The columns of a table that are clocks.

    Parameters
    ----------
    column
        The column that is the time; empty where there is none.
    times
        Its values in seconds.
    others
        Further clocks, which are left out, and why.
    first_rows
        The first rows of runs, where a clock starts again.
    """

    column: list[int] = field(default_factory=list)
    times: Floats | None = None
    others: dict[int, str] = field(default_factory=dict)
    first_rows: list[int] = field(default_factory=list)


def rows_of_sheet(sheet: Sheet, options: ReadOptions) -> RowsOfFile:
    """Take inputs, readouts or both from the columns of a table."""
    is_transposed = (options.axes or "").replace(" ", "") == "channels,samples"
    if is_transposed and options.wants_readouts:
        sheet = sheet.transposed()
        options = replace(options, axes=None)
    try:
        sheet, options = wide_where_long(sheet, options)
        return _assign(sheet, options)
    except DataError as problem:
        problem.add_note(_listing(sheet))
        raise


def _assign(sheet: Sheet, options: ReadOptions) -> RowsOfFile:
    """Decide for every column what it is, and read it as such."""
    named = _columns_named_by_user(sheet, options)
    index = _column_of_design_index(sheet)
    used = {*index, *named.get("u", []), *named.get("x", [])}
    sample_numbers = _columns_of_sample_numbers(sheet, used)
    used.update(sample_numbers)
    clocks = _find_clocks(sheet, options, named, used, has_index=bool(index))
    columns_of_text = _columns_of_text(sheet)
    unusable = {*index, *clocks.column, *clocks.others, *columns_of_text, *_empty_columns(sheet)}
    unusable.update(sample_numbers, _columns_that_count_rows(sheet))
    usable = [k for k in range(len(sheet.columns)) if k not in unusable]
    inputs = _columns_of_inputs(sheet, options, named, usable)
    readouts = _columns_of_readouts(sheet, options, named, usable, inputs)
    roles = {"inputs": inputs, "readouts": readouts, "time": clocks.column, "index": index}
    reasons = dict.fromkeys(usable, ", not asked for") | clocks.others
    reasons |= dict.fromkeys(sample_numbers, ", numbers the samples")
    left_out = _left_out(sheet, roles, reasons)
    if options.wants_readouts and not readouts:
        _refuse_without_readouts(sheet, left_out)

    rows = RowsOfFile(sheet.path, axes=options.axes)
    rows.metadata = _metadata(sheet)
    rows.checks = list(sheet.checks)
    used = {*inputs, *readouts, *clocks.column}
    for k in columns_of_text:
        if k not in used:
            rows.columns_of_text.append([str(cell) for cell in sheet.columns[k].cells])
    if index:
        numbers = sheet.numbers(index, real="index")[:, 0]
        rows.index = integer_index(sheet.path, numbers)
    for k in sample_numbers:
        rows.sample_numbers[plain_name(sheet.labels[k])] = sheet.columns[k].cells
    rows.time = clocks.times
    if clocks.first_rows and not index and options.steps is None:
        rows.metadata["runs"] = clocks.first_rows
        rows.checks.append(_check_of_runs(sheet, clocks))
    if inputs:
        rows.u = sheet.numbers(inputs, real="inputs")
    if readouts:
        x = sheet.numbers(readouts)
        rows.x = x if options.axes is None else along_axes(sheet.path, x, options.axes)
    _name_columns(rows, sheet, inputs, readouts)
    if left_out and options.wants_readouts and "x" not in named:
        rows.checks.append(_check_of_left_out(sheet, left_out))
    labels = sheet.labels
    names = {}
    for role, columns in roles.items():
        names[role] = [labels[k] for k in columns]
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
    inputs = set(named.get("u", []))
    named_twice = [k for k in named.get("x", []) if k in inputs]
    if not named_twice:
        return named
    others = [k for k in named["x"] if k not in inputs]
    if others and "*" in str(options.x):  # the pattern of the readouts fits the inputs, too
        named["x"] = others
        return named
    raise DataError(
        f"{sheet.labels[named_twice[0]]!r} of {sheet.path} is named as an input and as a "
        "readout; it can be one of them."
    )


def _column_of_design_index(sheet: Sheet) -> list[int]:
    """Return the column that numbers the rows of the design, if there is one."""
    return [k for k in find_usual(sheet.labels, INDEX_NAMES) if not sheet.is_text(k)]


def _columns_of_sample_numbers(sheet: Sheet, used: set[int]) -> list[int]:
    """Return the columns, known by their names, that number the samples without gaps."""
    columns = []
    for k, label in enumerate(sheet.labels):
        numbers = sheet.columns[k].cells
        if k in used or plain_name(label) not in SAMPLE_NAMES or numbers.dtype.kind != "f":
            continue
        if len(numbers) > 1 and (np.diff(np.sort(numbers)) == 1).all():
            columns.append(k)
    return columns


def _columns_of_text(sheet: Sheet) -> list[int]:
    return [k for k, column in enumerate(sheet.columns) if column.is_text]


def _empty_columns(sheet: Sheet) -> list[int]:
    return [k for k, column in enumerate(sheet.columns) if column.is_empty]


def _columns_that_count_rows(sheet: Sheet) -> list[int]:
    """Return the columns without a name that count the rows, as pandas writes them."""
    return [k for k, name in enumerate(sheet.labels) if not name and sheet.counts_rows(k)]


def _find_clocks(
    sheet: Sheet, options: ReadOptions, named: Roles, used: set[int], *, has_index: bool
) -> Clocks:
    """Find the columns that are clocks; the first of them is the time."""
    labels = sheet.labels
    plain = [plain_name(label) for label in labels]
    day = next((k for k, name in enumerate(plain) if name in DATE_NAMES), None)
    with_usual_name = [plain.index(name) for name in TIME_NAMES if name in plain]
    with_short_name = [k for k, label in enumerate(labels) if is_name_of_time(label)]
    candidates = dict.fromkeys([*with_usual_name, *with_short_name, *range(len(plain))])
    may_be_nameless = _may_have_nameless_clock(sheet, options, named)
    clocks = Clocks()
    for k in candidates:
        may_be_time = _may_be_time(sheet, k)
        if k in used or not (may_be_time or may_be_nameless):
            continue
        has_usual_name = k in with_usual_name
        times = sheet.seconds(k, day if has_usual_name else None)
        if times is None:
            continue
        # With a design index the rows may be in any order.
        may_start_again = is_name_of_time(labels[k]) and not has_index
        starts = _starts_again(times) if may_start_again else []
        is_surely_time = has_usual_name or sheet.is_text(k) or _is_running(labels[k], times)
        is_nameless_clock = may_be_nameless and _grows(times, MIN_ROWS_OF_A_NAMELESS_CLOCK)
        if starts:
            clocks.others[k] = f", {STARTS_AGAIN} {counted(len(starts), 'time')}"
            clocks.first_rows = clocks.first_rows or starts
        elif not (is_surely_time or is_nameless_clock):
            continue
        elif not clocks.column:
            clocks.column = [k]
            clocks.times = in_seconds(times)
        elif sheet.counts_rows(k):
            clocks.others[k] = ", counts the rows"
        else:
            clocks.others[k] = ", another clock"
    return clocks


def _may_be_time(sheet: Sheet, position: int) -> bool:
    """Return whether a column may be a time by its name, its unit, or because it is text."""
    label = sheet.columns[position].label
    is_in_seconds = unit_of(label).lower() in SECONDS
    return sheet.is_text(position) or is_name_of_time(label) or is_in_seconds


def _may_have_nameless_clock(sheet: Sheet, options: ReadOptions, named: Roles) -> bool:
    """Return whether a column of any name that grows is a clock: the inputs do not grow with it.

    In a sweep of an input, readouts may grow from row to row.
    """
    if not options.wants_inputs or not options.wants_readouts:
        return False
    inputs = named.get("u") or _inputs_by_name(sheet)
    n_readouts = len(sheet.columns) - len(inputs)
    if not inputs or n_readouts < 2:
        return False
    for k in inputs:
        column = sheet.columns[k]
        steps = np.diff(column.cells) if column.cells.dtype.kind == "f" else np.zeros(1)
        if np.all(steps >= 0) or np.all(steps <= 0):
            return False
    return True


def _grows(times: Floats, min_rows: int) -> bool:
    return len(times) >= min_rows and bool((np.diff(times) > 0).all())


def _is_running(label: str, times: Floats) -> bool:
    """Return whether a column in seconds grows, or one called ``t`` or so never goes back."""
    if len(times) < MIN_ROWS_OF_A_CLOCK:
        return False
    if unit_of(label).lower() in SECONDS and _grows(times, MIN_ROWS_OF_A_CLOCK):
        return True
    if is_name_of_time(label):  # few digits may make two times equal
        return bool((np.diff(times) >= 0).all()) and times[-1] > times[0]
    return False


def _starts_again(times: Floats) -> list[int]:
    """Return the rows in which a clock goes back to where it began; empty where it does not."""
    if len(times) < MIN_ROWS_OF_A_CLOCK or not np.isfinite(times).all():
        return []
    steps = np.diff(times)
    back = np.flatnonzero(steps < 0) + 1
    forward = steps[steps > 0]
    lengths = np.diff([0, *back, len(times)])
    if not len(back) or min(lengths) < MIN_ROWS_OF_A_RUN:
        return []
    margin = MAX_STEPS_AT_A_START * np.median(forward)
    is_start = np.abs(times[back] - times[0]) <= margin
    return [int(row) for row in back] if is_start.all() else []


def _inputs_by_name(sheet: Sheet) -> list[int]:
    """Return the columns called u1, u2, ..., or else the one called u, inputs or input."""
    return find_numbered_inputs(sheet.labels) or find_usual(sheet.labels, INPUT_NAMES)


def _columns_of_inputs(
    sheet: Sheet, options: ReadOptions, named: Roles, usable: list[int]
) -> list[int]:
    """Return the inputs: named by the user, by usual names, or all of a file of inputs only."""
    if "u" in named:
        return named["u"]
    readouts = set(named.get("x", []))
    by_name = _inputs_by_name(sheet)
    if by_name:
        return by_name
    if not options.wants_readouts:
        return [k for k in usable if k not in readouts]
    if options.wants_inputs:
        numbered = "" if sheet.has_names else "; without a header line columns are numbered from 1"
        raise NotInFileError(
            f"{sheet.path} has no columns named u1, u2, ...; it holds {_names(sheet)}: "
            f"name the inputs by u='a,b' (--u){numbered}. {sheet.hint}".rstrip()
        )
    return []


def _columns_of_readouts(
    sheet: Sheet, options: ReadOptions, named: Roles, usable: list[int], inputs: list[int]
) -> list[int]:
    """Return the readouts: named by the user, or all columns of numbers that are left."""
    if not options.wants_readouts:
        return []
    if "x" in named:
        return named["x"]
    used = set(inputs)
    return [k for k in usable if k not in used and sheet.columns[k].may_be_readout]


# What is kept of the decisions


def _name_columns(rows: RowsOfFile, sheet: Sheet, inputs: list[int], readouts: list[int]) -> None:
    """Keep the names of inputs and readouts, and the unit of the readouts."""
    if not sheet.has_names:
        return
    labels = sheet.labels
    rows.input_names = names_of_inputs([labels[k] for k in inputs])
    rows.channel = tuple(labels[k] for k in readouts)
    rows.readout_unit = common_unit([sheet.columns[k].unit or unit_of(labels[k]) for k in readouts])


def _left_out(sheet: Sheet, roles: Roles, reasons: dict[int, str]) -> dict[str, str]:
    """Say of every column that became nothing what it holds."""
    used = {k for columns in roles.values() for k in columns}
    left_out = {}
    for k, label in enumerate(sheet.labels):
        if k not in used:
            reason = reasons.get(k, "")
            if not sheet.columns[k].may_be_readout:
                reason = ", the same throughout each sample"
            left_out[label or "(no name)"] = sheet.describe(k) + reason
    return left_out


def _check_of_runs(sheet: Sheet, clocks: Clocks) -> Check:
    name = next(sheet.labels[k] for k, reason in clocks.others.items() if STARTS_AGAIN in reason)
    n_starts = len(clocks.first_rows)
    n_runs = n_starts + 1
    return Check(
        f"{name!r} of {sheet.path.name} starts again {counted(n_starts, 'time')}: its "
        f"rows were taken for {n_runs} runs, which matters for sequences alone.",
        "note",
    )


def _check_of_left_out(sheet: Sheet, left_out: dict[str, str]) -> Check:
    return Check(
        f"columns of {sheet.path.name} were left out: {_in_words(left_out)}.",
        "note",
        left_out=list(left_out),
    )


def _refuse_without_readouts(sheet: Sheet, left_out: dict[str, str]) -> None:
    leftovers = f"; left out: {_in_words(left_out)}" if left_out else ""
    raise NotInFileError(
        f"{sheet.path} has no column of readouts; it holds {_names(sheet)}{leftovers}. "
        f"{sheet.hint}".rstrip()
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
