"""Readouts in a folder with one file per sample."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..._files import readable_path
from ..._formatting import join_names
from ...errors import DataError
from ._arrange import RowsOfFile
from ._names import unit_of

DIGITS = re.compile(r"\d+")
MAX_LOST_FILES_IN_MESSAGE = 3


def is_folder(path: Path) -> bool:
    """Return whether readouts are in a folder of many files, rather than in a zarr folder."""
    return path.is_dir() and path.suffix.lower() != ".zarr"


def rows_of_folder(
    folder: Path, columns_of_text: list[list[str]], read_file: Callable[[Path], RowsOfFile]
) -> RowsOfFile:
    """Read every file as one row, in the order of `order_files`.

    Where all files hold two columns of which the first is the same, such as wavelengths, that is
    the axis of the channels.
    """
    all_files = sorted(
        file
        for file in readable_path(folder, folder=True).iterdir()
        if file.is_file() and not file.name.startswith(".")
    )
    files = order_files(folder, all_files, columns_of_text)
    shots = [read_file(file) for file in files]
    tables = [np.asarray(shot.x) for shot in shots]
    channel = shots[0].channel
    axis = shots[0].time
    if _share_first_column(tables):
        axis = tables[0][:, 0]
        tables = [table[:, 1:] for table in tables]
    _refuse_unlike(files, tables)

    rows = RowsOfFile(folder, x=np.stack([table.ravel() for table in tables]))
    if axis is not None and len(axis) == tables[0].size:
        unit = unit_of(channel[0]) if len(channel) == 2 else ""
        rows.channel = tuple(f"{value:.10g} {unit}".strip() for value in axis)
    if channel:
        rows.readout_unit = unit_of(channel[-1])
    rows.note_choice(
        f"one file per sample, {files[0].name} to {files[-1].name}, {len(files)} files",
        {"readouts": channel[-1:]},
        {file.name: "not named in the table" for file in all_files if file not in files},
    )
    return rows


def _share_first_column(tables: list[np.ndarray]) -> bool:
    """Return whether all tables have two columns, of which the first is the same."""
    if tables[0].shape[1:] != (2,):
        return False
    first_column = tables[0][:, 0]
    return all(np.array_equal(table[:, 0], first_column) for table in tables)


def _refuse_unlike(files: list[Path], tables: list[np.ndarray]) -> None:
    """Refuse files of other shapes than the first, or with several columns of readouts."""
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        is_single_column = table.size == max(table.shape)
        if table.shape != first.shape or not is_single_column:
            raise DataError(
                f"{file} has readouts of shape {table.shape}, and {files[0].name} of "
                f"{first.shape}; name the column of readouts by x=... (--x), or take the file out."
            )


def order_files(
    folder: Path, all_files: list[Path], columns_of_text: list[list[str]]
) -> list[Path]:
    """Order files as a column of the table names them, or by the last numbers in their names."""
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

    by_number = {}
    for file in all_files:
        numbers = DIGITS.findall(file.stem)
        if numbers:
            by_number[int(numbers[-1])] = file
    files = [by_number[number] for number in sorted(by_number)]
    all_numbered = bool(files) and len(files) == len(all_files)
    if not all_numbered or max(by_number) - min(by_number) >= len(files):
        raise DataError(
            f"{folder} has {len(all_files)} files, and their names are not numbered without gaps: "
            "name the files in a column of the table of inputs, and take others out."
        )
    return files
