"""Recordings written to files; the suffix decides how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .._check import one_of
from ._hdf5_file import save_hdf5
from ._mat_file import save_mat
from ._own_csv import save_csv
from ._recording import Recording
from ._zarr_file import save_zarr

WRITERS: dict[str, Callable[[Recording, Path], None]] = {
    ".nc": save_hdf5,
    ".h5": save_hdf5,
    ".hdf5": save_hdf5,
    ".mat": save_mat,
    ".csv": save_csv,
    ".zarr": save_zarr,
}


def write(recording: Recording, path: Path) -> Path:
    """Write everything that a recording holds; the file is there whole or not at all."""
    one_of("path suffix", path.suffix.lower(), WRITERS)
    WRITERS[path.suffix.lower()](recording, path)
    return path
