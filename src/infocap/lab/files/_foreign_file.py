"""Inputs and readouts in files that another program wrote: which array or column is what.

The whole procedure, from a file to `RowsOfFile`:

1. The suffix tells the format. A table of any format is read as a `Sheet` of columns, anything
   else is opened as an `ArrayFile` of named arrays. This happens once for each file.
2. Names that the user gives by ``u=`` and ``x=`` are looked for: as written, with dots for slashes,
   as patterns, without regard to capitals and units, and last without the group before them.
3. Without them usual names are: ``u``, ``inputs``, ``u1``, ``u2``, ...; ``x``, ``readouts``,
   ``outputs``.
4. A ``design_index`` (or ``index``) and a ``time`` are taken along.
5. In a table, all columns of numbers that are left are readouts (`_columns` says how each column is
   decided); among arrays nothing is guessed, except where a file that is to hold one thing holds
   one array.
6. A long table becomes a wide one (`_long`). Arrays are brought into the order (samples, channels)
   by the names of their axes, where the file tells them, or by `along_axes`.
7. What was taken for what, and what was left out, is kept in ``metadata["read_from"]``.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..._files import ArrayFile, as_data_error
from ..._formatting import join_names
from ...errors import DataError, ParameterError
from ...typing import ArrayLike
from ._arrange import RowsOfFile, along_axes
from ._array_files import ARRAY_FORMATS
from ._columns import rows_of_sheet
from ._frames import (
    TableFormat,
    load_feather,
    load_igor_text,
    load_json,
    load_parquet,
    load_tdms,
    load_workbook,
    sheet_or_arrays,
)
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
    is_name_of_time,
    names_of_inputs,
)
from ._options import ReadOptions
from ._packed import PACKED_SUFFIXES, unpack
from ._series import with_shots_stacked
from ._sheet import Sheet
from ._tables import load_text
from ._times import in_seconds

# A format of tables is a function from the bytes of a file to a `Sheet` or an `ArrayFile`, and a
# line here.
TABLE_FORMATS: dict[str, TableFormat] = {
    **dict.fromkeys((".csv", ".txt", ".tsv", ".dat", ".lvm", ".asc", ".tab", ".prn"), load_text),
    **dict.fromkeys((".xlsx", ".xlsm"), load_workbook),
    ".parquet": load_parquet,
    **dict.fromkeys((".feather", ".arrow"), load_feather),
    ".json": load_json,
    ".tdms": load_tdms,
    ".itx": load_igor_text,
}
FORMATS = (*ARRAY_FORMATS, *TABLE_FORMATS, *PACKED_SUFFIXES)

# What to do with files that are not read.
SAVE_OTHERWISE = {
    ".xls": "save the workbook as .xlsx",
    ".xlsb": "save the workbook as .xlsx",
    ".ods": "save the workbook as .xlsx",
    ".numbers": "export the workbook as .xlsx",
    ".opj": "in Origin, export the worksheet as .csv (File, Export, ASCII)",
    ".opju": "in Origin, export the worksheet as .csv (File, Export, ASCII)",
    ".ibw": "in Igor, save the waves as Igor text (.itx)",
    ".pxp": "in Igor, save the waves as Igor text (.itx)",
    ".pkl": "a pickle could run any program and is never loaded: save arrays by numpy.savez",
    ".pickle": "a pickle could run any program and is never loaded: save arrays by numpy.savez",
    ".rds": "in R, write.csv(data, 'data.csv', row.names = FALSE)",
    ".rdata": "in R, write.csv(data, 'data.csv', row.names = FALSE)",
    ".jld2": "in Julia, save the arrays as .h5 by HDF5.jl",
    ".m": "this is a program; in MATLAB, save the arrays as .mat",
    ".tar": "unpack it, and give its files or its folder",
    ".tgz": "unpack it, and give its files or its folder",
    ".7z": "unpack it, and give its files or its folder",
    ".rar": "unpack it, and give its files or its folder",
}

MAX_ARRAYS_IN_CHOICE = 6
# With so many arrays in a file, each may be that of a sample.
MIN_NUMBERED_ARRAYS = 64


def require_format(path: Path, known: Sequence[str]) -> None:
    """Refuse a file of another format, and say what to do with it."""
    suffix = path.suffix.lower()
    if suffix in known:
        return
    cure = SAVE_OTHERWISE.get(suffix, "save it as .csv")
    names = ", ".join(repr(name) for name in known)
    raise ParameterError(
        f"{path} is not read: {cure}, or load it in Python and call infocap.estimate(u, x) with "
        f"the arrays. (`path suffix={suffix!r}` is not one of {names}.)"
    )


@contextmanager
def open_file(path: Path, options: ReadOptions) -> Iterator[ArrayFile | Sheet]:
    """Open a file of other people's, whose suffix is one of `FORMATS`."""
    suffix = path.suffix.lower()
    if suffix in ARRAY_FORMATS:
        with ARRAY_FORMATS[suffix](path) as file:
            yield _table_of_records(file, options) or with_shots_stacked(file)
        return
    name, data = unpack(path)
    inner_suffix = Path(name).suffix.lower()
    if inner_suffix not in TABLE_FORMATS:
        raise DataError(
            f"{path} holds {name}, which is read only unpacked; unpack it, and give that file."
        )
    with as_data_error(path, "a table"):
        content = TABLE_FORMATS[inner_suffix](path, data, options)
    yield content


def _table_of_records(file: ArrayFile, options: ReadOptions) -> Sheet | ArrayFile | None:
    """Return the one array of records of a NumPy file as a table; None where there is none."""
    records = [array for array in file.arrays.values() if array.dtype.names]
    if len(records) != 1 or len(records[0].shape) != 1:
        return None
    values = records[0].load()
    arrays = {name: values[name] for name in values.dtype.names}
    return sheet_or_arrays(file.path, f"{file.kind}, records", arrays, {}, options.missing)


def rows_of(file: ArrayFile | Sheet, options: ReadOptions) -> RowsOfFile:
    """Take inputs, readouts or both from an open file."""
    if isinstance(file, Sheet):
        return rows_of_sheet(file, options)
    return _rows_of_arrays(file, options)


def read_table_or_arrays(path: Path, options: ReadOptions) -> Sheet | RowsOfFile:
    """Read a file of a single sample: a table as it is, or its inputs and readouts."""
    require_format(path, FORMATS)
    with open_file(path, options) as file:
        if isinstance(file, Sheet):
            return file
        return _rows_of_arrays(file, replace(options, axes=None, in_memory=True))


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
        if len(file.arrays) >= MIN_NUMBERED_ARRAYS and isinstance(problem, NotInFileError):
            problem = NotInFileError(
                f"{problem} Of many arrays, one per sample, make two in Python by numpy.stack, and "
                "call infocap.estimate(u, x)."
            )
        problem.add_note("\n".join(lines))
        raise problem from None

    if inputs:
        u = _side_by_side(file, "u", inputs, options)
        rows.input_unit = common_unit([file.arrays[name].unit for name in inputs])
        rows.input_names = names_of_inputs(_names_of_columns(file, inputs, u))
        rows.u = u.values
    coordinates: set[str | None] = set()
    if readouts:
        x = _side_by_side(file, "x", readouts, options)
        if inputs and options.axes is None:
            x = _samples_first(x, u)
        rows.readout_unit = common_unit([file.arrays[name].unit for name in readouts])
        rows.x = x.values
        if options.axes is not None:
            rows.x = along_axes(file.path, x.values, options.axes)
        names = _names_of_columns(file, readouts, x)
        rows.channel = names if len(names) == rows.x.shape[-1] else ()
        coordinates.add(_coordinate_of_columns(file, x))

    index = _array_of_design_index(file, {*inputs, *readouts})
    clock = _clock(file, rows, {*inputs, *readouts})
    if index:
        rows.index = file.numbers(index[0])
    if clock:
        rows.time = in_seconds(file.numbers(clock[0]), file.arrays[clock[0]].unit)

    shapes = [f"{name} {file.arrays[name].shape}" for name in (*inputs, *readouts)]
    used = {*inputs, *readouts, *index, *clock, *coordinates}
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
    positions = find_usual(free, TIME_NAMES)
    positions += [k for k, name in enumerate(free) if is_name_of_time(name.rpartition("/")[2])]
    return [free[k] for k in positions[:1]]


def _free_real_arrays(file: ArrayFile, used: set[str]) -> list[str]:
    """Return the arrays of real numbers that are not used yet."""
    return [
        name
        for name, array in file.arrays.items()
        if name not in used and array.dtype.kind in "iuf"
    ]


# Reading


@dataclass(frozen=True)
class NamedAxes:
    """An array and the names of its axes, where the file tells them."""

    values: ArrayLike
    dimensions: tuple[str, ...] = ()


def _side_by_side(file: ArrayFile, role: str, names: list[str], options: ReadOptions) -> NamedAxes:
    """Read one array as it is, or several as columns side by side."""
    if len(names) == 1:
        return _without_short_axes(file, names[0], options)
    arrays = [options.missing.blank(file.numbers(name)) for name in names]
    columns = []
    for array in arrays:
        is_vector = array.ndim < 2 or 1 in array.shape
        columns.append(array.reshape(-1, 1) if is_vector else array)
    n_rows = {len(column) for column in columns}
    if len(n_rows) > 1 or any(column.ndim != 2 for column in columns):
        pairs = zip(names, arrays, strict=True)
        shapes = ", ".join(f"{name} {array.shape}" for name, array in pairs)
        raise DataError(f"{role} in {file.path} is made of variables of unequal lengths: {shapes}.")
    return NamedAxes(np.hstack(columns))


def _without_short_axes(file: ArrayFile, name: str, options: ReadOptions) -> NamedAxes:
    """Read an array; of more than two axes, those of length one are left out."""
    in_memory = options.in_memory or bool(options.missing.numbers)
    values = options.missing.blank(file.numbers(name)) if in_memory else file.rows(name)
    shape = values.shape
    dimensions = file.arrays[name].dimensions
    is_named = len(dimensions) == len(shape)
    if options.axes is not None or len(shape) < 3 or 1 not in shape:
        return NamedAxes(values, dimensions if is_named else ())
    long = [k for k, length in enumerate(shape) if length > 1]
    values = np.asarray(values).reshape([shape[k] for k in long])
    if len(long) == 1:
        values = values.reshape(-1, 1)
    is_named = is_named and len(long) == values.ndim
    return NamedAxes(values, tuple(dimensions[k] for k in long) if is_named else ())


def _samples_first(x: NamedAxes, u: NamedAxes) -> NamedAxes:
    """Transpose readouts where the names of the axes say that samples come last."""
    common = set(x.dimensions) & set(u.dimensions) - {""}
    if len(x.dimensions) != 2 or len(common) != 1 or x.dimensions[0] in common:
        return x
    if u.dimensions[0] not in common:
        return x
    return NamedAxes(np.ascontiguousarray(np.asarray(x.values[:]).T), x.dimensions[::-1])


def _names_of_columns(file: ArrayFile, names: list[str], array: NamedAxes) -> tuple[str, ...]:
    """Return the names of columns: those of their variables, or of the coordinate along them."""
    shape = array.values.shape
    if len(names) > 1 and len(shape) == 2 and shape[1] == len(names):
        return tuple(names)
    coordinate = _coordinate_of_columns(file, array)
    if coordinate is None:
        return ()
    stored = file.arrays[coordinate]
    if not stored.is_numeric:
        return tuple(file.text(coordinate))
    numbers = file.numbers(coordinate)
    return tuple(f"{value:.10g} {stored.unit}".strip() for value in numbers)


def _coordinate_of_columns(file: ArrayFile, array: NamedAxes) -> str | None:
    """Return the name of the coordinate along the columns of a table, if the file has one."""
    if len(array.dimensions) != 2 or not array.dimensions[1]:
        return None
    dimension = array.dimensions[1]
    along = [name for name, other in file.arrays.items() if other.dimensions == (dimension,)]
    for name in (dimension, *along):
        if name in file and file.arrays[name].shape == array.values.shape[1:]:
            return name
    return None
