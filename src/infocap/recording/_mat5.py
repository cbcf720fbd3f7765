"""MATLAB files of version 5 to 7, read by SciPy, which damaged ones can crash: for a process of its own."""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._child import limit_memory
from .._files import Contents, Variable, blame, refuse_bomb, refuse_too_large
from ..errors import DataError

# NumPy's names too.
CLASSES = ("double", "single", *(f"{sign}int{8 << k}" for sign in ("", "u") for k in range(4)))
HEAD_BYTES, PACKED = 128, 15  # of a file; the type of an element that is compressed
STEP = 1 << 16  # bytes that are unpacked at a time to look at the checksum; they become 64 MB at most


@contextmanager
def read_mat5(path: Path) -> Iterator[Contents]:
    """Open all arrays of numbers and text, fields of structures as ``data.u``; of cells only the shape."""
    import scipy.io

    with blame(path, "MATLAB"):
        limit_memory(path.stat().st_size)
        limit_memory(_unpacked_bytes(path))
        kinds = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
        for name, (shape, kind) in kinds.items():
            refuse_too_large(path, name, shape, np.dtype(kind).itemsize if kind in CLASSES else 1)
        found = scipy.io.loadmat(path)
        for name, (_, kind) in kinds.items():  # numbers are stored in the smallest type that holds them
            if kind in CLASSES and found[name].dtype.kind != "c":
                found[name] = found[name].astype(kind)
        arrays = [pair for name, value in found.items() for pair in _arrays(name, value)]
        variables = {name: Variable(one.shape, one.dtype, partial(np.asarray, one)) for name, one in arrays}
        yield Contents(path, "MATLAB", variables)


def _unpacked_bytes(path: Path) -> int:
    """Unpack everything once to see whether the checksums of zlib agree, which SciPy leaves out; count the bytes."""
    data = memoryview(path.read_bytes())
    order = "<" if bytes(data[126:HEAD_BYTES]) == b"IM" else ">"
    place, total = HEAD_BYTES, len(data)
    while place + 8 <= len(data):
        kind, length = struct.unpack_from(f"{order}II", data, place)
        place += 8
        if kind == PACKED:
            unpacker, count = zlib.decompressobj(), 0
            for start in range(place, min(place + length, len(data)), STEP):
                count += len(unpacker.decompress(data[start : min(start + STEP, place + length)]))
                refuse_bomb(path, "an array", length, count)
            if not unpacker.eof:
                raise DataError(f"{path} is cut short or damaged: an array ends before its checksum.")
            total += count
        place += length
    return total


def _arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    if type(value) is not np.ndarray or name.startswith("__"):
        return  # MATLAB's own objects, sparse matrices, and what SciPy tells of the file
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            yield from _arrays(f"{name}.{field}", value.flat[0][field])
    else:
        yield name, value if value.dtype.kind in "biufcU" else np.full(value.shape, "")
