"""A folder with one file per sample: readouts, and perhaps the inputs beside them.

The tables of a folder are put one below the other, as one long table in which each file is a
sample, and `_long` makes it wide. Arrays become one row per file. The inputs are in a table beside
the folder, in columns that are the same throughout each file, or in the names of the files.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import readable_path
from ..._formatting import join_names
from ...errors import DataError, ParameterError
from ._arrange import RowsOfFile
from ._cells import Column
from ._columns import rows_of_sheet
from ._long import Grid, channel_column, names_of_channels, widened
from ._names import UNIT, with_unit
from ._options import IN_FILE_NAMES, ReadOptions
from ._sheet import Sheet

DIGITS = re.compile(r"\d+")
MAX_LOST_FILES_IN_MESSAGE = 3
# Decimal signs in the names of files, which cannot always hold a point.
NUMBER_IN_FILE_NAME = r"[+-]?\d+(?:[._,p]\d+)?(?:[eE][+-]?\d+)?"
PLACE_IN_FILE_NAME = re.compile(r"\{(\w+)\}")
# The place in the pattern that numbers the files, and is no input.
NUMBER_OF_FILE = "n"
LEADING_UNIT = re.compile(r"[A-Za-zµμΩ°%]+")

# Reads one file: a table, or what its arrays hold.
ReadFile = Callable[[Path, ReadOptions], Sheet | RowsOfFile]


def is_folder(path: Path) -> bool:
    """Return whether readouts are in a folder of many files, rather than in a zarr folder."""
    return path.is_dir() and path.suffix.lower() != ".zarr"


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder, without hidden ones."""
    return sorted(
        file
        for file in readable_path(folder, folder=True).iterdir()
        if file.is_file() and not file.name.startswith(".")
    )


def rows_of_readout_files(
    folder: Path, columns_of_text: list[list[str]], options: ReadOptions, read_file: ReadFile
) -> RowsOfFile:
    """Read readouts from a folder, whose inputs are in a table; see `order_files`."""
    all_files = files_of(folder)
    files = order_files(folder, all_files, columns_of_text)
    left_out = {file.name: "not named in the table" for file in all_files if file not in files}
    return _rows_of_files(folder, files, options, read_file, left_out=left_out)


def rows_of_shots(
    source: Path, all_files: Sequence[Path], options: ReadOptions, read_file: ReadFile
) -> RowsOfFile:
    """Read inputs and readouts from files, one per sample."""
    if options.inputs_in_names:
        return _rows_with_named_inputs(source, all_files, options, read_file)
    files = _files_of_one_kind(source, all_files)
    left_out = {
        file.name: "its name is unlike those of the others"
        for file in all_files
        if file not in files
    }
    return _rows_of_files(source, in_order(files), options, read_file, left_out=left_out)


# Which files, and in which order


def order_files(
    folder: Path, all_files: list[Path], columns_of_text: list[list[str]]
) -> list[Path]:
    """Order files as a column of the table names them, or by the numbers in their names."""
    by_name = {file.stem: file for file in all_files} | {file.name: file for file in all_files}
    for cells in columns_of_text:
        names = [Path(cell).name for cell in cells]
        lost = [name for name in names if name not in by_name]
        names_most_files = 2 * len(lost) < len(names)
        if lost and names_most_files:
            raise DataError(
                f"{folder} has no {join_names(lost, MAX_LOST_FILES_IN_MESSAGE)}, of {len(names)} "
                "files that the table names."
            )
        if not lost and len(set(names)) == len(names):
            return [by_name[name] for name in names]

    counter = _counter(all_files)
    if counter is None:
        raise DataError(
            f"{folder} has {len(all_files)} files, and their names are not numbered without gaps: "
            "name the files in a column of the table of inputs, and take others out."
        )
    return [file for _, file in sorted(zip(counter, all_files, strict=True))]


def in_order(files: Sequence[Path]) -> list[Path]:
    """Return files by the number in their names that counts them, else by all their numbers."""
    counter = _counter(files)
    if counter is not None:
        return [file for _, file in sorted(zip(counter, files, strict=True))]
    return sorted(files, key=lambda file: [int(number) for number in DIGITS.findall(file.stem)])


def _counter(files: Sequence[Path]) -> list[int] | None:
    """Return the last of the numbers in the names that counts the files without gaps."""
    numbers = [[int(digits) for digits in DIGITS.findall(file.stem)] for file in files]
    n_numbers = {len(row) for row in numbers}
    if len(n_numbers) != 1 or not files:
        return None
    for column in reversed(list(zip(*numbers, strict=True))):
        is_without_gaps = max(column) - min(column) == len(files) - 1
        if is_without_gaps and len(set(column)) == len(files):
            return list(column)
    return None


def _files_of_one_kind(source: Path, all_files: Sequence[Path]) -> list[Path]:
    """Return the files whose names begin and end as those of most files do."""
    kinds = [(DIGITS.split(file.name)[0], file.suffix.lower()) for file in all_files]
    if not kinds:
        raise DataError(f"{source} has no files; give a folder with one file per sample.")
    usual, _ = Counter(kinds).most_common(1)[0]
    return [file for file, kind in zip(all_files, kinds, strict=True) if kind == usual]


# Inputs in the names of files


def _rows_with_named_inputs(
    source: Path, all_files: Sequence[Path], options: ReadOptions, read_file: ReadFile
) -> RowsOfFile:
    """Read files in whose names the inputs are."""
    pattern = (options.u or "").removeprefix(IN_FILE_NAMES)
    places, expression = _compiled(pattern)
    matches = {}
    left_out = {}
    for file in all_files:
        match = expression.fullmatch(file.stem) or expression.fullmatch(file.name)
        if match is None:
            left_out[file.name] = f"not named as {pattern}"
        else:
            matches[file] = match
    if not matches:
        raise DataError(
            f"no file of {source} is named as {pattern!r}; the first is {all_files[0].name!r}."
            if all_files
            else f"{source} has no files."
        )
    if NUMBER_OF_FILE in places:
        files = sorted(matches, key=lambda file: int(matches[file][NUMBER_OF_FILE]))
    else:
        files = in_order(list(matches))
    columns = []
    for place, label in places.items():
        if place != NUMBER_OF_FILE:
            words = [re.sub("[_,p]", ".", matches[file][place]) for file in files]
            columns.append(Column(label, np.array(words, dtype=float), may_be_readout=False))
    labels = ",".join(column.label for column in columns)
    options = replace(options, u=labels)
    return _rows_of_files(source, files, options, read_file, columns, left_out)


def _compiled(pattern: str) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the places of a pattern with their labels, and its regular expression.

    >>> _compiled("scan_{n}_{u}mT")[0]
    {'n': 'n', 'u': 'u [mT]'}
    """
    parts = PLACE_IN_FILE_NAME.split(pattern)
    texts = parts[0::2]
    names = parts[1::2]
    inputs = [name for name in names if name != NUMBER_OF_FILE]
    if not inputs or len(set(names)) != len(names):
        raise ParameterError(
            f"`u='{IN_FILE_NAMES}{pattern}'` needs each input once, in braces, as in "
            f"`u='{IN_FILE_NAMES}scan_{{n}}_{{u}}mT'`; {{n}} numbers the files, * stands for "
            "anything."
        )
    expression = _literal(texts[0])
    places = {}
    for name, text in zip(names, texts[1:], strict=True):
        number = r"\d+" if name == NUMBER_OF_FILE else NUMBER_IN_FILE_NAME
        expression += f"(?P<{name}>{number}){_literal(text)}"
        unit = LEADING_UNIT.match(text)
        is_unit = unit is not None and UNIT.fullmatch(unit[0])
        places[name] = with_unit(name, unit[0]) if unit is not None and is_unit else name
    return places, re.compile(expression)


def _literal(text: str) -> str:
    return ".*?".join(map(re.escape, text.split("*")))


# From files to rows


def _rows_of_files(
    source: Path,
    files: Sequence[Path],
    options: ReadOptions,
    read_file: ReadFile,
    inputs: Sequence[Column] = (),
    left_out: dict[str, str] | None = None,
) -> RowsOfFile:
    """Read each file as one row: tables by their columns, arrays whole."""
    contents = [read_file(file, options) for file in files]
    layout = f"one file per sample, {files[0].name} to {files[-1].name}, {len(files)} files"
    sheets = [content for content in contents if isinstance(content, Sheet)]
    if len(sheets) == len(contents):
        rows = _rows_of_tables(source, files, sheets, options, inputs, layout)
    else:
        rows = _rows_of_arrays(source, files, contents, inputs)
        rows.note_choice(layout, {}, {})
    if left_out:
        choice = rows.read_from[-1]
        choice["left out"] = choice.get("left out", {}) | left_out
    return rows


def _rows_of_tables(
    source: Path,
    files: Sequence[Path],
    sheets: Sequence[Sheet],
    options: ReadOptions,
    inputs: Sequence[Column],
    layout: str,
) -> RowsOfFile:
    """Put tables one below the other and make a row of each."""
    first = sheets[0]
    _refuse_unlike(files, sheets)
    axis = _common_axis(sheets, options)
    columns = []
    for k, column in enumerate(first.columns):
        parts = [sheet.columns[k] for sheet in sheets]
        starts = np.cumsum([0, *(len(part.cells) for part in parts)])
        words = [start + part.words for start, part in zip(starts, parts, strict=False)]
        cells = np.concatenate([part.cells for part in parts])
        missing = sum((part.missing for part in parts), Counter())
        columns.append(Column(column.label, cells, np.concatenate(words), missing))
    n_samples = len(sheets)
    n_rows = len(first.lines)
    if axis is None:
        names = [str(number + 1) for number in range(n_rows)]
        dropped: tuple[int, ...] = ()
    else:
        names = names_of_channels(first.columns[axis], list(first.columns[axis].cells))
        dropped = (axis,)
    grid = Grid(
        sample=np.repeat(np.arange(n_samples), n_rows),
        channel=np.tile(np.arange(n_rows), n_samples),
        n_samples=n_samples,
        n_channels=n_rows,
        channel_names=names,
        dropped=dropped,
    )
    lines = np.concatenate([sheet.lines for sheet in sheets])
    checks = tuple(dict.fromkeys(check for sheet in sheets for check in sheet.checks))
    long = Sheet(source, columns, lines, has_names=True, layout=layout, checks=checks)
    sheet, options = widened(long, grid, options)
    sheet = replace(sheet, columns=[*inputs, *sheet.columns])
    return rows_of_sheet(sheet, options)


def _refuse_unlike(files: Sequence[Path], sheets: Sequence[Sheet]) -> None:
    """Refuse a file with other columns, or with more or fewer rows, than the first."""
    first = sheets[0]
    for file, sheet in zip(files, sheets, strict=True):
        shape = (len(sheet.lines), len(sheet.columns))
        first_shape = (len(first.lines), len(first.columns))
        if shape != first_shape:
            raise DataError(
                f"{file} has readouts of shape {shape}, and {files[0].name} of {first_shape}; "
                "one row is one channel: repair the file, or take it out."
            )
        if sheet.labels != first.labels:
            raise DataError(
                f"{file} has the columns {join_names(sheet.labels, 6)}, and {files[0].name} "
                f"{join_names(first.labels, 6)}; repair the file, or take it out."
            )


def _common_axis(sheets: Sequence[Sheet], options: ReadOptions) -> int | None:
    """Return the column that names the channels: the user's, or one that all files share.

    Without the user's word it grows or falls from row to row, as wavelengths do.
    """
    first = sheets[0]
    if options.channels is not None:
        candidates = [channel_column(first, options.channels)]
    else:
        candidates = []
        for k, column in enumerate(first.columns):
            steps = np.diff(column.cells) if column.cells.dtype.kind == "f" else np.zeros(1)
            if len(first.columns) > 1 and len(steps) and (np.all(steps > 0) or np.all(steps < 0)):
                candidates.append(k)
    for k in candidates:
        cells = first.columns[k].cells
        differs = [sheet for sheet in sheets if not np.array_equal(sheet.columns[k].cells, cells)]
        if not differs:
            return k
        if options.channels is not None:
            raise DataError(
                f"channels={options.channels!r} differs from file to file, as between "
                f"{first.path.name} and {differs[0].path.name}; channels are the same in all "
                "samples: interpolate them, or leave `channels` out."
            )
    return None


def _rows_of_arrays(
    source: Path,
    files: Sequence[Path],
    contents: Sequence[Any],
    inputs: Sequence[Column],
) -> RowsOfFile:
    """Return the arrays of each file as a row."""
    rows = RowsOfFile(source)
    for field in ("u", "x"):
        values = [getattr(content, field) for content in contents]
        if any(value is None for value in values):
            continue
        arrays = [np.asarray(value) for value in values]
        for file, array in zip(files, arrays, strict=True):
            if array.shape != arrays[0].shape:
                raise DataError(
                    f"{file} has {field} of shape {array.shape}, and {files[0].name} of "
                    f"{arrays[0].shape}; repair the file, or take it out."
                )
        setattr(rows, field, np.stack([array.ravel() for array in arrays]))
    if inputs:
        rows.u = np.column_stack([column.cells for column in inputs])
        rows.input_names = tuple(column.label for column in inputs)
    for name in ("readout_unit", "input_unit"):
        setattr(rows, name, getattr(contents[0], name))
    if contents[0].channel and rows.x is not None and len(contents[0].channel) == rows.x.shape[1]:
        rows.channel = contents[0].channel
    return rows
