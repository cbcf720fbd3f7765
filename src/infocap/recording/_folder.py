"""A folder with one file per sample, such as spectra, beside a table of inputs."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
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
    """Read every file as one row, in the order of the names in a column of the table, or of the numbers in the names."""
    there = sorted(one for one in readable(folder, folder=True).iterdir() if one.is_file() and one.name[0] != ".")
    files = _listed_files(folder, there, words)
    if not files:
        files = sorted(there, key=lambda one: [int(k) if k.isdigit() else k for k in DIGITS.split(one.name)])
        _refuse_gaps(folder, files)
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
    rows.told["readout_unit"] = shots[0].told.get("readout_unit") or (unit_of(labels[-1]) if labels else "")
    left_out = {one.name: "not named in the table" for one in there if one not in files}
    kind = f"one file per sample, {files[0].name} to {files[-1].name}, {len(files)} files"
    rows.keep_choice(kind, {"readouts": list(labels[-1:])}, left_out)
    return rows


def _listed_files(folder: Path, there: list[Path], words: list[list[str]]) -> list[Path]:
    """Find the files that a column of the table names; none where no column names at least half of its files."""
    known = {one.stem: one for one in there} | {one.name: one for one in there}
    for cells in words:
        names = [Path(cell).name for cell in cells]
        lost = [name for name in names if name not in known]
        if 2 * len(lost) < len(names):
            if lost:
                raise DataError(f"{folder} has no {listed(lost, 3)}, of {len(names)} files that the table names.")
            return [known[name] for name in names]
    return []


def _refuse_gaps(folder: Path, files: Sequence[Path]) -> None:
    """Refuse files whose numbers leave one out: all after it would belong to other inputs."""
    if not files:
        raise DataError(f"{folder} holds no files; give a folder with one file per sample.")
    for file, other in pairwise(files):
        numbers = [DIGITS.findall(one.stem) for one in (file, other)]
        if not all(numbers) or int(numbers[1][-1]) != int(numbers[0][-1]) + 1:
            said = f"{folder} has no file numbered between {file.name} and {other.name}"
            raise DataError(f"{said}; take others out, or name the files in a column of the table of inputs.")
