"""A program of its own: MATLAB files of version 5 to 7 as an .npz archive, by SciPy, which damaged ones can crash.

``python _mat5.py FILE ARCHIVE BYTES`` uses at most so much memory; what is wrong is the last line of its errors.
"""

import math
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.io

# NumPy's names too.
CLASSES = ("double", "single", *(f"{sign}int{8 << k}" for sign in ("", "u") for k in range(4)))


def convert(path: str, archive: str, most: int) -> None:
    """Write all arrays of numbers and text, fields of structures as ``data.u``; of cells only the shape."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, ValueError):  # not Unix; a lower limit holds already
        pass
    kinds = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
    for name, (shape, kind) in kinds.items():
        if math.prod(shape) * (np.dtype(kind).itemsize if kind in CLASSES else 1) > most:
            raise SystemExit(f"it declares {name} of shape {shape}, more than the memory of {most:,} bytes")
    found = scipy.io.loadmat(path)
    for name, (_, kind) in kinds.items():  # numbers are stored in the smallest type that holds them
        if kind in CLASSES and found[name].dtype.kind != "c":
            found[name] = found[name].astype(kind)
    with zipfile.ZipFile(archive, "w") as out:
        for name, value in found.items():
            for field, values in _arrays(name, value):
                with out.open(f"{field}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.ascontiguousarray(values), allow_pickle=False)


def _arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    if type(value) is not np.ndarray or name.startswith("__"):
        return  # MATLAB's own objects, sparse matrices, and what SciPy tells of the file
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            yield from _arrays(f"{name}.{field}", value.flat[0][field])
    else:
        yield name, value if value.dtype.kind in "biufcU" else np.full(value.shape, "")


if __name__ == "__main__":
    convert(sys.argv[1], sys.argv[2], int(sys.argv[3]))
