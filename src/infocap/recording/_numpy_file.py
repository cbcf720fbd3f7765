"""Arrays in .npy and .npz files: headers first, and never a pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._files import Contents, Variable, blame, readable
from ..errors import DataError


@contextmanager
def open_npy(path: Path) -> Iterator[Contents]:
    """The one array of the file, under the name ``array``."""
    readable(path)
    with path.open("rb") as file, blame(path, "npy"):
        shape, dtype = _header(path, file)
        start, size = file.tell(), path.stat().st_size
    _refuse_short(path, "array", shape, dtype, size - start)
    yield Contents(path, "npy", {"array": Variable(shape, dtype, partial(np.load, path, allow_pickle=False))})


@contextmanager
def open_npz(path: Path) -> Iterator[Contents]:
    """The arrays of the archive by name."""
    readable(path)
    with blame(path, "npz"):
        archive = zipfile.ZipFile(path)
    with archive:
        variables = {}
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                with blame(path, "npz"), archive.open(member) as file:
                    shape, dtype = _header(path, file)  # type: ignore[arg-type]
                variables[name] = Variable(shape, dtype, partial(_load_member, path, archive, member, name))
        yield Contents(path, "npz", variables)


def _load_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Any:
    with archive.open(member) as file:
        shape, dtype = _header(path, file)  # type: ignore[arg-type]
        _refuse_short(path, name, shape, dtype, member.file_size - file.tell())
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise DataError(f"{path} is of npy version {version}; write it with np.save.")
    if any(n < 0 for n in shape):
        raise DataError(f"{path} declares the shape {shape}; it is damaged.")
    return shape, dtype


def _refuse_short(path: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], there: int) -> None:
    if dtype.hasobject:
        raise DataError(
            f"{name} in {path} holds pickled Python objects, which can run any program and are never loaded; write it "
            "as an array of numbers."
        )
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > there:
        row = max(n_bytes // max(shape[0], 1), 1) if shape else 1
        raise DataError(
            f"{path} is cut short: {name} of shape {shape} takes {n_bytes:,} bytes and {there:,} are there, "
            f"{there // row} whole rows."
        )
