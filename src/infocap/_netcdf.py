"""NetCDF files of our own: written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._atomic import replaced

if TYPE_CHECKING:
    import xarray as xr

SLACK = 1_000_000  # bytes, for names and attributes


def save_dataset(data: xr.Dataset, path: Path, encoding: dict[str, Any] | None = None) -> None:
    """Write beside the file and then take its place, so that an interrupted write loses nothing."""
    with replaced(path) as beside:
        _reserve(beside, data.nbytes + data.nbytes // 10 + SLACK)
        data.to_netcdf(beside, engine="h5netcdf", encoding=encoding or {})


def _reserve(path: Path, n_bytes: int) -> None:
    """Ask for the space before: the HDF5 library may end the process when the disk is full."""
    if not hasattr(os, "posix_fallocate"):
        return
    with path.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise OSError(problem.errno, problem.strerror, str(path)) from None
        file.truncate(0)


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind along one axis of a table: numbers and strings as they are, the rest as text."""
    plain = all(isinstance(value, int | float) for value in values) or all(
        isinstance(value, str) for value in values
    )
    return np.array(values if plain else [str(value) for value in values])
