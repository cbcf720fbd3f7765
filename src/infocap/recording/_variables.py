"""Inputs and readouts in files of named arrays that somebody else wrote: which they are, read now or in place."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .._files import NUMBERS, PACKING, Contents, blame
from ..errors import DataError
from ..samples._sources import Hdf5Rows
from ._recording import Rows

INPUTS = ("u", "inputs", "input")
READOUTS = ("x", "readouts", "readout", "outputs", "output")
TIMES = ("acquired", "time")
NUMBERED = re.compile(r"(?:u|inputs?)[ _]*[\[(]?(\d{1,6})[\])]?", re.IGNORECASE)  # u1, u_1, u[0], input 1


def rows_of(contents: Contents, wanted: dict[str, str | None], in_memory: bool) -> Rows:
    """Find u and x, or one of them, by the names wanted or the usual ones; and index and times if there are."""
    names = list(contents.variables)
    rows, taken = Rows(contents.path), set[str]()
    for role, asked in wanted.items():
        chosen = _chosen(contents, role, asked, alone=len(wanted) == 1)
        values = _joined(contents, role, chosen, in_memory)
        setattr(rows, role, values)
        taken |= set(chosen)
        if role == "x" and len(chosen) > 1 and values.shape[1] == len(chosen):
            rows.told["channel"] = tuple(chosen)
    for field, known in (("index", ("index",)), ("acquired", TIMES)):
        for name in (names[k] for k in one_of_these(names, known)):
            if name not in taken and contents.variables[name].dtype.kind in "iuf":
                setattr(rows, field, contents.numbers(name))
    return rows


def matching(path: Path, names: Sequence[str], wanted: str, role: str, held: str) -> list[int]:
    """Find the positions of names asked for: one name, or names and patterns such as ``u*`` with commas between."""
    chosen: list[int] = []
    for part in [wanted] if wanted in names else [one.strip() for one in wanted.split(",")]:
        dotted = part.replace("/", ".")
        found = [k for k, name in enumerate(names) if name == part]
        found = found or [k for k, name in enumerate(names) if name.replace("/", ".") == dotted]
        found = found or [k for k, name in enumerate(names) if fnmatchcase(name, part)]
        found = found or [k for k, name in enumerate(names) if name.lower() == part.lower()]
        if not found:
            raise DataError(f"{role}={part!r} is not in {path}; it holds {held}.")
        chosen += [k for k in found if k not in chosen]
    return chosen


def numbered(names: Sequence[str]) -> list[int]:
    """Find the positions of names such as u1, u2, ..., in the order of their numbers."""
    matches = {k: NUMBERED.fullmatch(name.strip()) for k, name in enumerate(names)}
    return [k for _, k in sorted((int(match[1]), k) for k, match in matches.items() if match)]


def one_of_these(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """Find the first known name that is there, in capitals or not: its position, as a list of at most one."""
    lower = [name.strip().lower() for name in names]
    return next(([lower.index(one)] for one in known if one in lower), [])


def in_place(contents: Contents, name: str) -> Any | None:
    """A table of numbers where it lies, to be read in blocks; None when it must be unpacked first, or cannot be."""
    path, variable = contents.path, contents.variables[name]
    if len(variable.shape) != 2 or variable.dtype.kind not in "iuf":
        return None
    if any(one in variable.attributes for one in (*PACKING, "MATLAB_class", "parts")):
        return None
    with blame(path, contents.kind):
        if contents.kind == "npy":
            return np.load(path, mmap_mode="r")
        if contents.kind == "zarr":
            import zarr

            return zarr.open_array(str(path if name == "array" else path / name), mode="r")
        if contents.kind in ("HDF5", "NetCDF"):
            return Hdf5Rows(str(path.resolve()), name, variable.shape)
    return None


def _chosen(contents: Contents, role: str, asked: str | None, alone: bool) -> list[str]:
    names = list(contents.variables)
    if asked is not None:
        return [names[k] for k in matching(contents.path, names, asked, role, str(contents))]
    found = one_of_these(names, INPUTS if role == "u" else READOUTS)
    if not found and role == "u":
        found = numbered(names)
    if not found and alone:
        numeric = [k for k, name in enumerate(names) if contents.variables[name].dtype.kind in NUMBERS]
        found = numeric if len(numeric) == 1 else []
    if not found:
        what = "inputs (u)" if role == "u" else "readouts (x)"
        raise DataError(
            f"{contents.path} has no variable that is obviously the {what}; it holds {contents}: "
            f"name it by {role}=... (--{role} on the command line)."
        )
    return [names[k] for k in found]


def _joined(contents: Contents, role: str, names: list[str], in_memory: bool) -> Any:
    if len(names) == 1:
        lazy = None if in_memory else in_place(contents, names[0])
        return contents.numbers(names[0]) if lazy is None else lazy
    parts = [contents.numbers(name) for name in names]
    columns = [part.reshape(-1, 1) if part.ndim < 2 or 1 in part.shape else part for part in parts]
    if len({len(part) for part in columns}) > 1 or any(part.ndim != 2 for part in columns):
        said = ", ".join(f"{name} {part.shape}" for name, part in zip(names, parts, strict=True))
        raise DataError(f"{role} in {contents.path} is made of variables of unequal lengths: {said}.")
    return np.hstack(columns)
