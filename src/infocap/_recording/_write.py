"""Recordings written to files; the suffix decides how."""

from __future__ import annotations

from pathlib import Path

from .._check import one_of
from ._netcdf_file import save_netcdf
from ._recording import Recording


def write(recording: Recording, path: Path) -> Path:
    """Write a recording to NetCDF4."""
    one_of("path suffix", path.suffix, (".nc",))
    save_netcdf(recording, path)
    return path
