"""A recording whose inputs and readouts stay in their file, to be read in blocks; all that is small is read now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._files import Contents, blame, open_hdf5
from ..errors import DataError
from ..samples import Hdf5Rows
from ._hdf5_file import PARTS, refuse_other
from ._layout import DIMENSIONS, FORMAT, from_json, rebuild, whole_numbers
from ._names import TIMES, one_of_these
from ._numpy_file import open_npy
from ._recording import Recording
from ._variables import chosen
from ._zarr_file import open_zarr

PACKED = ("scale_factor", "add_offset", "_FillValue", "missing_value", "MATLAB_class", "parts")
OPENERS: dict[str, Callable[[Path], AbstractContextManager[Contents]]] = {
    ".nc": partial(open_hdf5, kind="NetCDF"),
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".zarr": open_zarr,
    ".npy": open_npy,
}


def read_in_place(path: Path, other: Path | None, u: str | None, x: str | None) -> Recording | None:
    """The recording; None when it is of a format, or packed in a way, that only reading it whole understands."""
    if path.suffix.lower() not in OPENERS or (other is not None and other.suffix.lower() not in OPENERS):
        return None
    with OPENERS[path.suffix.lower()](path) as contents:
        if other is None and u is None and x is None and contents.attributes.get("format") == FORMAT:
            return _own(contents)
        if other is None:
            refuse_other(contents)
            return _of_others(contents, contents, u, x)
        with OPENERS[other.suffix.lower()](other) as readouts:
            return _of_others(contents, readouts, u, x)


def _own(contents: Contents) -> Recording | None:
    """What `Recording.save` wrote."""
    rows: dict[str, Any] = {
        name: _rows(contents, name) for name in ("inputs", "readouts") if name in contents
    }
    if len(rows) < 2 or any(one is None for one in rows.values()):
        return None
    small = [name for name in DIMENSIONS if name in contents and name not in rows]
    if any(contents.variables[name].attributes.get("parts") == PARTS for name in small):
        return None
    arrays: dict[str, Any] = {name: contents.numbers(name) for name in small}
    words = dict(contents.attributes)
    words |= {name: "".join(contents.text(name)) for name in ("metadata", "checks") if name in contents}
    found = rebuild(contents.path, arrays | rows, words | {"channel": "[]"})
    channel = (
        contents.text("channel") if "channel" in contents else from_json(contents.path, "channel", words, [])
    )
    return replace(found, channel=tuple(map(str, channel)))


def _of_others(contents: Contents, readouts: Contents, u: str | None, x: str | None) -> Recording | None:
    """Inputs and readouts of somebody else's, each one variable; the rows in the order of the design."""
    inputs_name, readouts_name = (
        chosen(held, role, asked, alone=contents is not readouts)
        for held, role, asked in ((contents, "u", u), (readouts, "x", x))
    )
    if len(inputs_name) != 1 or len(readouts_name) != 1:
        return None
    inputs, measured = _rows(contents, inputs_name[0]), _rows(readouts, readouts_name[0])
    if inputs is None or measured is None or len(inputs.shape) != 2 or len(measured.shape) != 2:
        return None
    if inputs.shape[0] != measured.shape[0]:
        return None  # reading it whole says what is wrong
    taken = {inputs_name[0], readouts_name[0]}
    index, acquired = (_beside(contents, readouts, known, taken) for known in (("index",), TIMES))
    if index is None:
        index = np.arange(inputs.shape[0])
    index = whole_numbers(contents.path, np.ravel(index))
    steps = np.flatnonzero(np.diff(index) <= 0)
    if len(steps):
        row = int(steps[0]) + 1
        raise DataError(
            f"index in {contents.path} is {index[row]} at row {row}, after {index[row - 1]}; what is read in blocks "
            "must be in the order of the design: read it whole, or write it sorted."
        )
    return Recording(inputs, measured, index, acquired=None if acquired is None else np.ravel(acquired))


def _beside(contents: Contents, readouts: Contents, known: tuple[str, ...], taken: set[str]) -> Any | None:
    """The index or the times, from either file."""
    for held in (contents, readouts):
        names = list(held.variables)
        for number in one_of_these(names, known):
            if names[number] not in taken and held.variables[names[number]].dtype.kind in "iuf":
                return held.numbers(names[number])
    return None


def _rows(contents: Contents, name: str) -> Any:
    """A variable where it lies; None when its values have to be unpacked first."""
    variable = contents.variables[name]
    if variable.dtype.kind not in "iuf" or any(one in variable.attributes for one in PACKED):
        return None
    path = contents.path
    with blame(path, contents.kind):
        if contents.kind == "npy":
            return np.load(path, mmap_mode="r")
        if contents.kind == "zarr":
            import zarr

            return zarr.open_array(str(path if name == "array" else path / name), mode="r")
    return Hdf5Rows(str(path.resolve()), name, variable.shape, None).with_chunks()
