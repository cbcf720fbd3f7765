"""read: a recording from a file; the suffix decides how."""

from __future__ import annotations

from pathlib import Path

from .._check import one_of
from ._netcdf_file import load_netcdf
from ._recording import Recording
from ._store_file import load_store


def read(path: str | Path) -> Recording:
    """Read a recording from a NetCDF4 file that `Recording.save` or ``infocap simulate`` wrote."""
    path = Path(path)
    if path.suffix in (".db", ".sqlite"):
        return load_store(path)
    one_of("path suffix", path.suffix, (".nc",))
    return load_netcdf(path)
