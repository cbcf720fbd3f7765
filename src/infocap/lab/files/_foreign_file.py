"""Inputs and readouts in files that another program wrote: which array or column is what.

The whole procedure, from a file to `RowsOfFile`:

1. The suffix tells the format. A text table is read as a `Sheet` of columns, anything else is
   opened as an `ArrayFile` of named arrays. This happens once for each file.
2. Names that the user gives by ``u=`` and ``x=`` are looked for: as written, with dots for slashes,
   as patterns, and last without regard to capitals and units.
3. Without them usual names are: ``u``, ``inputs``, ``u1``, ``u2``, ...; ``x``, ``readouts``,
   ``outputs``.
4. A ``design_index`` (or ``index``) and a ``time`` are taken along.
5. In a table, all columns of numbers that are left are readouts (`_columns` says how each column is
   decided); among arrays nothing is guessed, except where a file that is to hold one thing holds
   one array.
6. `along_axes` brings the readouts into the order (samples, channels).
7. What was taken for what, and what was left out, is kept in ``metadata["read_from"]``.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..._files import ArrayFile, as_data_error
from ..._formatting import join_names
from ...errors import DataError
from ...typing import ArrayLike
from ._arrange import RowsOfFile, along_axes
from ._array_files import ARRAY_FORMATS
from ._columns import rows_of_sheet
from ._names import (
    INDEX_NAMES,
    INPUT_NAMES,
    READOUT_NAMES,
    TIME_NAMES,
    NotInFileError,
    common_unit,
    find_numbered_inputs,
    find_requested,
    find_usual,
    names_of_inputs,
)
from ._options import ReadOptions
from ._tables import Sheet, load_sheet
from ._times import in_seconds

# A table format is a function from a path to a `Sheet`, and a line here.
TABLE_FORMATS = {
    ".csv": load_sheet,
    ".txt": load_sheet,
    ".tsv": load_sheet,
    ".dat": load_sheet,
    ".lvm": load_sheet,
    ".asc": load_sheet,
}
FORMATS = (*ARRAY_FORMATS, *TABLE_FORMATS)

MAX_ARRAYS_IN_CHOICE = 6


@contextmanager
def open_file(path: Path) -> Iterator[ArrayFile | Sheet]:
    """Open a file of other people's, whose suffix is one of `FORMATS`."""
    suffix = path.suffix.lower()
    if suffix in TABLE_FORMATS:
        with as_data_error(path, "a table"):
            sheet = TABLE_FORMATS[suffix](path)
        yield sheet
    else:
        with ARRAY_FORMATS[suffix](path) as file:
            yield file


def rows_of(file: ArrayFile | Sheet, options: ReadOptions) -> RowsOfFile:
    """Take inputs, readouts or both from an open file."""
    if isinstance(file, Sheet):
        return rows_of_sheet(file, options)
    return _rows_of_arrays(file, options)


def _rows_of_arrays(file: ArrayFile, options: ReadOptions) -> RowsOfFile:
    """Decide which arrays are inputs, readouts, design index and time, and read them."""
    rows = RowsOfFile(file.path, axes=options.axes)
    inputs: list[str] = []
    readouts: list[str] = []
    try:
        if options.wants_inputs:
            inputs = _arrays_of_inputs(file, options)
        if options.wants_readouts:
            readouts = _arrays_of_readouts(file, options)
    except DataError as problem:
        lines = [f"  {name:<24} {array}" for name, array in file.arrays.items()]
        problem.add_note("\n".join(lines))
        raise

    if inputs:
        rows.u = _side_by_side(file, "u", inputs, options.in_memory)
        rows.input_unit = common_unit([file.arrays[name].unit for name in inputs])
        if _is_one_column_each(rows.u, inputs):
            rows.input_names = names_of_inputs(inputs)
    if readouts:
        x = _side_by_side(file, "x", readouts, options.in_memory)
        rows.readout_unit = common_unit([file.arrays[name].unit for name in readouts])
        if _is_one_column_each(x, readouts):
            rows.channel = tuple(readouts)
        rows.x = x if options.axes is None else along_axes(file.path, x, options.axes)

    index = _array_of_design_index(file, {*inputs, *readouts})
    clock = _clock(file, rows, {*inputs, *readouts})
    if index:
        rows.index = file.numbers(index[0])
    if clock:
        rows.time = in_seconds(file.numbers(clock[0]), file.arrays[clock[0]].unit)

    shapes = [f"{name} {file.arrays[name].shape}" for name in (*inputs, *readouts)]
    used = {*inputs, *readouts, *index, *clock}
    rows.note_choice(
        f"{file.kind}, from {join_names(shapes, MAX_ARRAYS_IN_CHOICE)}",
        {"inputs": inputs, "readouts": readouts, "index": index, "time": clock},
        {name: str(array) for name, array in file.arrays.items() if name not in used},
    )
    return rows


# The decisions


def _arrays_of_inputs(file: ArrayFile, options: ReadOptions) -> list[str]:
    """Return the arrays that the user names, or those called u, inputs, u1, u2, ...."""
    names = list(file.arrays)
    if options.u is not None:
        positions = find_requested(file.path, names, options.u, role="u", content=str(file))
    else:
        positions = find_usual(names, INPUT_NAMES) or find_numbered_inputs(names)
        positions = positions or _only_array(file, options)
    if not positions:
        raise _not_obvious(file, "inputs", "u")
    return [names[k] for k in positions]


def _arrays_of_readouts(file: ArrayFile, options: ReadOptions) -> list[str]:
    """Return the arrays that the user names, or the one called x, readouts, outputs."""
    names = list(file.arrays)
    if options.x is not None:
        positions = find_requested(file.path, names, options.x, role="x", content=str(file))
    else:
        positions = find_usual(names, READOUT_NAMES) or _only_array(file, options)
    if not positions:
        raise _not_obvious(file, "readouts", "x")
    return [names[k] for k in positions]


def _only_array(file: ArrayFile, options: ReadOptions) -> list[int]:
    """Return the only array of numbers of a file that is to hold only inputs, or only readouts."""
    numeric = [k for k, array in enumerate(file.arrays.values()) if array.is_numeric]
    wants_both = options.wants_inputs and options.wants_readouts
    return numeric if len(numeric) == 1 and not wants_both else []


def _not_obvious(file: ArrayFile, what: str, role: str) -> NotInFileError:
    return NotInFileError(
        f"{file.path} has no variable that is obviously the {what} ({role}); it holds {file}: "
        f"name it by {role}=... (--{role} on the command line)."
    )


def _array_of_design_index(file: ArrayFile, used: set[str]) -> list[str]:
    """Return the array that numbers the rows of the design, if there is one that is not used."""
    free = _free_real_arrays(file, used)
    return [free[k] for k in find_usual(free, INDEX_NAMES)]


def _clock(file: ArrayFile, rows: RowsOfFile, used: set[str]) -> list[str]:
    """Return the array of times, if there is one as long as inputs or readouts."""
    lengths: set[int] = set()
    for values in (rows.u, rows.x):
        if values is not None:
            lengths.update(values.shape)
    free = [
        name
        for name in _free_real_arrays(file, used)
        if math.prod(file.arrays[name].shape) in lengths  # not the axis of something else
    ]
    return [free[k] for k in find_usual(free, TIME_NAMES)]


def _free_real_arrays(file: ArrayFile, used: set[str]) -> list[str]:
    """Return the arrays of real numbers that are not used yet."""
    return [
        name
        for name, array in file.arrays.items()
        if name not in used and array.dtype.kind in "iuf"
    ]


# Reading


def _side_by_side(file: ArrayFile, role: str, names: list[str], in_memory: bool) -> ArrayLike:
    """Read one array as it is, or several as columns side by side."""
    if len(names) == 1:
        return file.numbers(names[0]) if in_memory else file.rows(names[0])
    arrays = [file.numbers(name) for name in names]
    columns = []
    for array in arrays:
        is_vector = array.ndim < 2 or 1 in array.shape
        columns.append(array.reshape(-1, 1) if is_vector else array)
    n_rows = {len(column) for column in columns}
    if len(n_rows) > 1 or any(column.ndim != 2 for column in columns):
        pairs = zip(names, arrays, strict=True)
        shapes = ", ".join(f"{name} {array.shape}" for name, array in pairs)
        raise DataError(f"{role} in {file.path} is made of variables of unequal lengths: {shapes}.")
    return np.hstack(columns)


def _is_one_column_each(values: ArrayLike, names: list[str]) -> bool:
    return len(names) > 1 and values.shape[1] == len(names)
