"""MATLAB files of version 5 to 7; those of version 7.3 are HDF5 files. Our own come back in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import replaced
from .._files import Contents, blame, open_hdf5, readable
from ..errors import DataError
from ._layout import DIMENSIONS, FORMAT, arrays_of, rebuild, words_of
from ._mat5 import scan
from ._recording import Recording

LARGEST = 2**31 - 1  # bytes of a variable in such a file
SHORT = {"inputs": "u", "readouts": "x"}  # names that are handier to type
VECTORS = [name for name, dimensions in DIMENSIONS.items() if len(dimensions) == 1]


@contextmanager
def open_mat(path: Path) -> Iterator[Contents]:
    """The arrays of a file of either version, told apart by what is in it; ``data.u`` is a field of a structure."""
    import h5py

    readable(path)
    with blame(path, "MATLAB"):
        newer = h5py.is_hdf5(path)
    if newer:
        with open_hdf5(path, "MATLAB v7.3") as contents:
            yield contents
        return
    with blame(path, "MATLAB"):
        data: Any = np.memmap(path, np.uint8, "r")
        variables = scan(path, memoryview(data))
    yield Contents(path, "MATLAB", variables)


def save_mat(recording: Recording, path: Path) -> None:
    """Variables u, x, index and so on; all words as JSON text in ``metadata``."""
    import scipy.io

    arrays = {SHORT.get(name, name): one for name, one in arrays_of(recording).items()}
    for name, one in arrays.items():
        if one.nbytes > LARGEST:
            raise DataError(
                f"{path} cannot hold {name}: {one.nbytes:,} bytes, where MATLAB v5 files end at {LARGEST:,}; "
                "write .h5 or .nc, which MATLAB reads with h5read and ncread."
            )
    words: dict[str, Any] = words_of(recording) | {"arrays": list(arrays)}
    held: dict[str, Any] = {"metadata": json.dumps(words)} | arrays  # first: it tells what is cut off
    with replaced(path) as beside, beside.open("wb") as file:
        scipy.io.savemat(file, held, oned_as="column")


def load_own_mat(contents: Contents) -> Recording | None:
    """A recording of ours, or None if the file is somebody else's."""
    if "metadata" not in contents or contents.variables["metadata"].dtype.kind != "U":
        return None
    try:
        words = json.loads("".join(contents.text("metadata")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(words, dict) or words.get("format") != FORMAT:
        return None
    told = words.get("arrays")
    lost = [str(name) for name in told if str(name) not in contents] if isinstance(told, list) else []
    if lost:
        raise DataError(f"{contents.path} is cut short: it lacks {', '.join(lost)} and holds {contents}.")
    arrays = {
        name: contents.numbers(short) for name in DIMENSIONS if (short := SHORT.get(name, name)) in contents
    }
    return rebuild(
        contents.path, {n: one.ravel() if n in VECTORS else one for n, one in arrays.items()}, words
    )
