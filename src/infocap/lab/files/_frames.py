"""Tables that pandas and other libraries read: workbooks, Parquet, Feather, JSON, TDMS, Igor text.

Each function gets the bytes of a file. Columns of equal lengths become a `Sheet`, anything else an
`ArrayFile`, so that inputs and readouts are chosen as in all other files.
"""

import io
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import (
    MEMORY_BYTES_PER_TEXT_BYTE,
    NUMBER_KINDS,
    ArrayFile,
    StoredArray,
    as_data_error,
    refuse_too_large,
)
from ..._formatting import join_names
from ..._validation import shown
from ...errors import Check, DataError, ParameterError
from ._cells import Column, MissingWords, NumberStyle, read_cells
from ._names import UNIT, with_unit
from ._options import ReadOptions
from ._sheet import Sheet, check_missing_words
from ._tables import sheet_of_grid

# The waves of Igor text, such as: WAVES/D/N=(512,6) spectra
IGOR_WAVES = re.compile(
    r"WAVES(?P<flags>(?:\s*/\s*\w+(?:=\s*\(?[\d,\s]*\)?)?)*)\s*,?\s*(?P<names>.*)", re.IGNORECASE
)
IGOR_SHAPE = re.compile(r"/\s*N\s*=\s*\(?([\d,\s]+)\)?", re.IGNORECASE)
IGOR_NAME = re.compile(r"'([^']+)'|([^\s,]+)")
# The unit of the values of waves, as in: X SetScale d 0,0,"V", wave0
IGOR_UNIT = re.compile(
    r"SetScale\s*(?:/\w+)?\s+[dy]\s+[^\"]*\"(?P<unit>[^\"]*)\"\s*,\s*(?P<names>[^;]+)",
    re.IGNORECASE,
)
MAX_SHEETS_IN_MESSAGE = 6
# A cell of a workbook with a formula, but without a value behind it.
FORMULA_ALONE = re.compile(rb"<f>[^<]*</f>\s*(?:<v\s*/>|<v></v>)?\s*</c>")
# The first bytes of a stream of Arrow; a file of Arrow, which Feather is, begins otherwise.
ARROW_STREAM = b"\xff\xff\xff\xff"
# How many channels are named that are shorter or longer than the others.
MAX_CHANNELS_IN_MESSAGE = 6


def require_package(module: str, what: str) -> None:
    """Refuse a format whose package is not installed; the message names the extra."""
    if find_spec(module) is None:
        raise ParameterError(
            f"{what} need the package {module}: pip install infocap[files], or save them as .csv."
        )


# From columns and arrays of any library


def column_of_values(label: str, values: Any, missing: MissingWords) -> Column:
    """Return numbers as numbers, dates as text in ISO 8601, and text as it is read in a table."""
    import pandas as pd

    series = pd.Series(values)
    if pd.api.types.is_complex_dtype(series.dtype):
        return Column(label, missing.blank(series.to_numpy(complex)))
    if pd.api.types.is_numeric_dtype(series.dtype):
        return Column(label, missing.blank(series.to_numpy(float, na_value=np.nan)))
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return Column(label, series.dt.total_seconds().to_numpy(float))
    text = series.astype(object).where(series.notna(), "").map(str)
    return read_cells(label, text, NumberStyle(), missing)


def sheet_of_frame(path: Path, frame: Any, layout: str, missing: MissingWords) -> Sheet:
    """Return a frame of pandas as a sheet; cells that hold lists become columns side by side."""
    import pandas as pd

    if not isinstance(frame.index, pd.RangeIndex):
        names = [name or "" for name in frame.index.names]
        frame = frame.reset_index(names=names, allow_duplicates=True)
    columns = []
    for position, name in enumerate(frame.columns):
        label = _label_of(name)
        values = frame.iloc[:, position]
        lists = _as_matrix(path, label, values)
        if lists is None:
            columns.append(column_of_values(label, values, missing))
        else:
            for k, cells in enumerate(lists.T):
                columns.append(Column(f"{label} {k + 1}", missing.blank(cells)))
    n_rows, n_columns = frame.shape
    return Sheet(
        path=path,
        columns=columns,
        lines=np.arange(1, n_rows + 1),
        has_names=True,
        layout=f"{layout}, {n_rows} rows of {n_columns} columns",
        checks=tuple(check_missing_words(path, columns)),
    )


def _label_of(name: Any) -> str:
    """Return the name of a column; of several levels the second may be a unit."""
    if not isinstance(name, tuple):
        return str(name)
    first, *others = [str(level) for level in name]
    if others and UNIT.fullmatch(others[0]):
        return with_unit(first, others[0])
    return " ".join([first, *(other for other in others if other)])


def _as_matrix(path: Path, label: str, values: Any) -> np.ndarray | None:
    """Return a column of lists, such as spectra, as (rows, values); None for other columns."""
    if values.dtype != object or not len(values):
        return None
    cells = values.to_numpy()
    if not isinstance(cells[0], list | tuple | np.ndarray):
        return None
    lengths = {np.size(cell) for cell in cells}
    if len(lengths) > 1:
        raise DataError(
            f"{label} in {path} holds lists of {min(lengths)} to {max(lengths)} values; "
            "give as many in each row."
        )
    return np.array([np.ravel(cell) for cell in cells], dtype=float)


def sheet_or_arrays(
    path: Path,
    kind: str,
    arrays: Mapping[str, Any],
    units: Mapping[str, str],
    missing: MissingWords,
) -> Sheet | ArrayFile:
    """Return vectors of one length as a sheet, and anything else as named arrays.

    Where most vectors have one length, the others are left out, and named.
    """
    values = {name: np.asarray(array) for name, array in arrays.items()}
    others: dict[str, np.ndarray] = {}
    if all(array.ndim == 1 for array in values.values()):
        lengths = Counter(len(array) for array in values.values())
        usual, n_usual = lengths.most_common(1)[0]
        if n_usual > 2 and n_usual > len(values) / 2:
            others = {name: array for name, array in values.items() if len(array) != usual}
            values = {name: array for name, array in values.items() if len(array) == usual}
    shapes = {array.shape for array in values.values()}
    shape = shapes.pop() if len(shapes) == 1 else ()
    if len(shape) == 1 and len(values) > 1:
        import pandas as pd

        labels = {name: with_unit(name, units.get(name, "")) for name in values}
        frame = pd.DataFrame({labels[name]: array for name, array in values.items()})
        sheet = sheet_of_frame(path, frame, kind, missing)
        return replace(sheet, checks=(*sheet.checks, *_check_other_lengths(path, others, shape[0])))
    stored = {}
    for name, array in values.items():
        is_text = array.dtype.kind not in NUMBER_KINDS
        plain = array.astype(str) if is_text else missing.blank(array)
        attributes = {"units": units[name]} if units.get(name) else {}
        load = partial(np.asarray, plain)
        stored[name] = StoredArray(plain.shape, plain.dtype, load, attributes=attributes)
    return ArrayFile(path, kind, stored)


def _check_other_lengths(path: Path, others: Mapping[str, np.ndarray], n_rows: int) -> list[Check]:
    """Say which vectors were left out because they are shorter or longer than the others."""
    if not others:
        return []
    named = [f"{name} ({len(array)} values)" for name, array in others.items()]
    return [
        Check(
            f"{join_names(named, MAX_CHANNELS_IN_MESSAGE)} of {path.name} were left out: the "
            f"others have {n_rows} values.",
            "note",
        )
    ]


# Formats


def load_workbook(path: Path, data: bytes, options: ReadOptions) -> Sheet:
    """Read the sheets that the user names, or the first that holds rows of numbers."""
    require_package("openpyxl", "workbooks (.xlsx)")
    import pandas as pd

    with as_data_error(path, "a workbook (.xlsx)"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        refuse_too_large(path, "cells", (n_bytes,), MEMORY_BYTES_PER_TEXT_BYTE)
        book = pd.read_excel(
            io.BytesIO(data),
            sheet_name=None,
            header=None,
            dtype=object,
            engine="openpyxl",
            keep_default_na=False,
        )
    if _has_formulas_without_values(data, book):
        raise DataError(
            f"{path} holds formulas whose values were never computed; open it in Excel or "
            "LibreOffice and save it, which computes them."
        )
    if options.sheet is not None:
        names = [name.strip() for name in options.sheet.split(",")]
        return _sheets_side_by_side(path, book, names, options.missing)
    return _first_sheet_of_numbers(path, book, options.missing)


def _has_formulas_without_values(data: bytes, book: dict[str, Any]) -> bool:
    """Return whether a program wrote formulas alone, without what they give.

    Then whole columns below a name are empty.
    """
    has_empty_columns = any(
        bool((frame.iloc[1:].isna() | (frame.iloc[1:] == "")).all().any())
        for frame in book.values()
        if len(frame) > 1
    )
    if not has_empty_columns:
        return False
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        return any(FORMULA_ALONE.search(archive.read(name)) for name in sheets)


def _first_sheet_of_numbers(path: Path, book: dict[str, Any], missing: MissingWords) -> Sheet:
    """Return the first sheet with rows of numbers, and name the others that have some."""
    sheets = {}
    problem: DataError | None = None
    for name, frame in book.items():
        try:
            sheets[name] = sheet_of_grid(path, _cells_as_text(frame), missing)
        except DataError as its_problem:
            problem = problem or its_problem
    if not sheets:
        raise problem or DataError(f"{path} has no sheets.")
    name, *others = sheets
    sheet = sheets[name]
    layout = f"sheet {name!r}, {sheet.layout}"
    if not others:
        return replace(sheet, layout=layout)
    more = join_names([repr(other) for other in others], MAX_SHEETS_IN_MESSAGE)
    hint = (
        f"sheet {name!r} of {path.name} was read, and {more} also hold numbers; choose by "
        f"`sheet={others[0]!r}`, or several side by side, as in `sheet='{name},{others[0]}'`."
    )
    return replace(sheet, layout=layout, hint=hint, checks=(*sheet.checks, Check(hint, "note")))


def _sheets_side_by_side(
    path: Path, book: dict[str, Any], names: Sequence[str], missing: MissingWords
) -> Sheet:
    """Return the columns of one or several sheets, row by row."""
    sheets = []
    for name in names:
        if name not in book:
            held = join_names(list(book), MAX_SHEETS_IN_MESSAGE)
            raise ParameterError(f"`sheet={shown(name)}` is not in {path}; its sheets are {held}.")
        sheets.append(sheet_of_grid(path, _cells_as_text(book[name]), missing))
    n_rows = [len(sheet.lines) for sheet in sheets]
    if len(set(n_rows)) > 1:
        raise DataError(
            f"the sheets {join_names(names)} of {path} have {join_names([str(n) for n in n_rows])} "
            "rows of numbers; give as many in each."
        )
    columns = [column for sheet in sheets for column in sheet.columns]
    checks = tuple(dict.fromkeys(check for sheet in sheets for check in sheet.checks))
    named = ", ".join(repr(name) for name in names)
    word = "sheet" if len(names) == 1 else "sheets"
    return replace(
        sheets[0], columns=columns, checks=checks, layout=f"{word} {named}, {sheets[0].layout}"
    )


def _cells_as_text(frame: Any) -> list[list[str]]:
    """Return the cells of a sheet as text: numbers with all digits, dates in ISO 8601."""

    def as_text(cell: Any) -> str:
        if cell is None or cell != cell:
            return ""
        if isinstance(cell, float):
            return repr(float(cell))
        return str(cell).strip()

    return [[as_text(cell) for cell in row] for row in frame.itertuples(index=False, name=None)]


def load_parquet(path: Path, data: bytes, options: ReadOptions) -> Sheet:
    """Read the columns of a Parquet file."""
    require_package("pyarrow", "Parquet files")
    import pandas as pd

    with as_data_error(path, "Parquet"):
        frame = pd.read_parquet(io.BytesIO(data), engine="pyarrow")
    return sheet_of_frame(path, frame, "Parquet", options.missing)


def load_feather(path: Path, data: bytes, options: ReadOptions) -> Sheet:
    """Read the columns of a Feather file, or of a stream of Arrow."""
    require_package("pyarrow", "Feather files")
    import pandas as pd
    import pyarrow

    with as_data_error(path, "Feather"):
        if data.startswith(ARROW_STREAM):
            frame = pyarrow.ipc.open_stream(data).read_pandas()
        else:
            frame = pd.read_feather(io.BytesIO(data))
    return sheet_of_frame(path, frame, "Feather", options.missing)


def load_json(path: Path, data: bytes, options: ReadOptions) -> Sheet | ArrayFile:
    """Read records, as [{"u1": 0.1, "x1": 2}, ...], or columns, as {"u1": [...], "x1": [...]}.

    The values may be lists of numbers, and the columns may lie in objects in objects, as
    ``data.u``.
    """
    with as_data_error(path, "JSON"):
        content = _json_content(data)
        if isinstance(content, dict) and {"schema", "data"} <= content.keys():  # pandas' "table"
            content = content["data"]
        if isinstance(content, dict) and {"columns", "data"} <= content.keys():  # pandas' "split"
            columns = zip(*content["data"], strict=True)
            content = dict(zip(content["columns"], columns, strict=True))
        if isinstance(content, list) and all(isinstance(row, list) for row in content):
            numbers = range(1, len(content[0]) + 1) if content else ()
            content = dict(zip(map(str, numbers), zip(*content, strict=True), strict=True))
        if isinstance(content, list):
            names = dict.fromkeys(name for record in content for name in record)
            content = {name: [record.get(name) for record in content] for name in names}
        arrays: dict[str, Any] = {}
        _add_json_arrays(arrays, "", content)
    if not arrays:
        raise DataError(f"{path} holds no lists of numbers.")
    return sheet_or_arrays(path, "JSON", arrays, {}, options.missing)


def _json_content(data: bytes) -> Any:
    """Return what a file of JSON holds, or a list of what its lines hold."""
    try:
        return json.loads(data)
    except ValueError:
        lines = data.splitlines()
        if len(lines) < 2:
            raise
        with suppress(ValueError):
            return [json.loads(line) for line in lines if line.strip()]
        raise


def _add_json_arrays(arrays: dict[str, Any], name: str, value: Any) -> None:
    """Add the lists in a JSON object under their names, joined by dots."""
    if isinstance(value, dict):
        if _is_column_by_row(value):
            value = [value[key] for key in sorted(value, key=int)]
        else:
            for key, member in value.items():
                _add_json_arrays(arrays, f"{name}.{key}" if name else str(key), member)
            return
    if not isinstance(value, list | tuple) or not value:
        return
    if all(isinstance(member, dict) for member in value):
        keys = dict.fromkeys(key for member in value for key in member)
        for key in keys:
            column = [member.get(key) for member in value]
            _add_json_arrays(arrays, f"{name}.{key}" if name else str(key), column)
        return
    try:
        array = np.array(value)
        if array.dtype.kind not in NUMBER_KINDS:
            array = np.array(value, dtype=float)  # None is a missing value
    except (TypeError, ValueError):  # words, or lists of unequal lengths
        array = np.empty(len(value), dtype=object)
        array[:] = [member if isinstance(member, str | None) else str(member) for member in value]
    arrays[name] = array


def _is_column_by_row(value: dict[str, Any]) -> bool:
    """Return whether an object holds what stands in each row, by its number, as pandas writes."""
    are_numbers = all(str(key).isdigit() for key in value)
    return (
        bool(value) and are_numbers and not any(isinstance(v, list | tuple) for v in value.values())
    )


def load_tdms(path: Path, data: bytes, options: ReadOptions) -> Sheet | ArrayFile:
    """Read the channels of a TDMS file of LabVIEW, with their units."""
    require_package("nptdms", "TDMS files")
    from nptdms import TdmsFile

    arrays = {}
    units = {}
    with as_data_error(path, "TDMS"):
        file = TdmsFile.read(io.BytesIO(data))
        if file.file_status.incomplete_final_segment:
            raise DataError(f"{path} is cut short: its last segment is incomplete; copy it again.")
        groups = file.groups()
        channels = [channel for group in groups for channel in group.channels()]
        for channel in channels:
            name = channel.name if len(groups) == 1 else f"{channel.group_name}/{channel.name}"
            arrays[name] = channel[:]
            units[name] = str(channel.properties.get("unit_string", ""))
    if not arrays:
        raise DataError(f"{path} holds no channels.")
    return sheet_or_arrays(path, "TDMS", arrays, units, options.missing)


def load_igor_text(path: Path, data: bytes, options: ReadOptions) -> Sheet | ArrayFile:
    """Read the waves of Igor Pro's text files, with their units."""
    lines = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    arrays: dict[str, np.ndarray] = {}
    units: dict[str, str] = {}
    with as_data_error(path, "Igor text"):
        waves: re.Match[str] | None = None
        block: list[str] | None = None
        for line in lines.split("\n"):
            word = line.strip()
            if block is not None and word.upper() != "END":
                block.append(word)
            elif block is not None and waves is not None:
                arrays |= _igor_waves(waves, block)
                block = None
            elif word.upper() == "BEGIN":
                block = []
            elif IGOR_WAVES.fullmatch(word):
                waves = IGOR_WAVES.fullmatch(word)
            for scale in IGOR_UNIT.finditer(word):
                names = _igor_names(scale["names"])
                units |= dict.fromkeys(names, scale["unit"])
    if not arrays:
        raise DataError(f"{path} holds no waves; a file of Igor text has WAVES, BEGIN and END.")
    return sheet_or_arrays(path, "Igor text", arrays, units, options.missing)


def _igor_names(text: str) -> list[str]:
    return [quoted or plain for quoted, plain in IGOR_NAME.findall(text)]


def _igor_waves(waves: re.Match[str], block: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the waves between BEGIN and END: columns, or one array of several dimensions."""
    names = _igor_names(waves["names"])
    flags = waves["flags"].upper()
    letters = set(re.findall(r"/\s*(\w+)", flags))
    filled = [line for line in block if line]
    if "T" in letters:
        cells = [re.findall(r'"((?:[^"\\]|\\.)*)"', line) for line in filled]
        columns = zip(*cells, strict=True)
        return {name: np.array(column) for name, column in zip(names, columns, strict=True)}
    values = np.array([line.split() for line in filled], dtype=float)
    if "C" in letters:
        values = values[:, ::2] + 1j * values[:, 1::2]
    shape = IGOR_SHAPE.search(flags)
    lengths = [int(length) for length in shape[1].split(",") if length.strip()] if shape else []
    if len(lengths) < 2:
        return {name: values[:, k] for k, name in enumerate(names)}
    n_rows, n_columns, *others = lengths
    if values.size != math.prod(lengths):
        raise ValueError(f"wave {names[0]} has {values.size} values for the shape {lengths}")
    # Layers of rows and columns come one after the other.
    layers = values.reshape(-1, n_rows, n_columns)
    array = np.moveaxis(layers, 0, -1).reshape(n_rows, n_columns, *others, order="F")
    return {names[0]: array}


TableFormat = Callable[[Path, bytes, ReadOptions], Sheet | ArrayFile]
