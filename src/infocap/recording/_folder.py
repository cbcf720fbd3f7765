"""A folder with one file per sample, such as spectra, beside a table of inputs."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .._files import readable
from .._words import listed
from ..errors import DataError
from ._recording import Rows
from ._tables import unit_of

DIGITS = re.compile(r"(\d+)")


def is_folder(path: Path) -> bool:
    """Whether readouts are in a folder of many files, rather than in a zarr folder."""
    return path.is_dir() and path.suffix.lower() != ".zarr"


def folder_rows(folder: Path, words: list[list[str]], read_one: Callable[[Path], Rows]) -> Rows:
    """Read every file as one row: in the order that a column of words in the table tells, or of their numbers."""
    there = sorted(one for one in readable(folder, folder=True).iterdir() if one.is_file() and one.name[0] != ".")
    files = _in_order(folder, there, words)
    shots = [read_one(file) for file in files]
    tables = [np.asarray(one.x) for one in shots]
    labels, axis = shots[0].told.get("channel", ()), shots[0].acquired
    if tables[0].shape[1:] == (2,) and all(np.array_equal(one[:, 0], tables[0][:, 0]) for one in tables):
        axis, tables = tables[0][:, 0], [one[:, 1:] for one in tables]  # such as wavelengths, the same in all files
    for file, one in zip(files, tables, strict=True):
        if one.shape != tables[0].shape or 1 not in one.shape:
            said = f"{file} has readouts of shape {one.shape}, and {files[0].name} of {tables[0].shape}"
            raise DataError(f"{said}; name the column of readouts by x=... (--x), or take the file out.")
    rows = Rows(folder, x=np.stack([one.ravel() for one in tables]))
    if axis is not None and len(axis) == tables[0].size:
        unit = unit_of(labels[0]) if len(labels) == 2 else ""
        rows.told["channel"] = tuple(f"{one:.10g} {unit}".strip() for one in axis)
    rows.told["readout_unit"] = unit_of(labels[-1]) if labels else ""
    left_out = {one.name: "not named in the table" for one in there if one not in files}
    kind = f"one file per sample, {files[0].name} to {files[-1].name}, {len(files)} files"
    rows.keep_choice(kind, {"readouts": list(labels[-1:])}, left_out)
    return rows


def _in_order(folder: Path, there: list[Path], words: list[list[str]]) -> list[Path]:
    """Sort files as a column of the table names them, or by the numbers in their names, which must leave none out."""
    known = {one.stem: one for one in there} | {one.name: one for one in there}
    for names in ([Path(cell).name for cell in cells] for cells in words):
        lost = [name for name in names if name not in known]
        if lost and 2 * len(lost) < len(names):
            raise DataError(f"{folder} has no {listed(lost, 3)}, of {len(names)} files that the table names.")
        if not lost:
            return [known[name] for name in names]
    numbers = {int(DIGITS.findall(one.stem)[-1]): one for one in there if DIGITS.search(one.stem)}
    files = [one for _, one in sorted(numbers.items())]
    if not files or len(files) < len(there) or max(numbers) - min(numbers) >= len(files):
        said = f"{folder} has {len(there)} files, and their names are not numbered without gaps"
        raise DataError(f"{said}: name the files in a column of the table of inputs, and take others out.")
    return files
