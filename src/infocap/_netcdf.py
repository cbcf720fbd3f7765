"""NetCDF files of our own: written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._atomic import replaced

if TYPE_CHECKING:
    import xarray as xr


def save_dataset(data: xr.Dataset, path: Path) -> None:
    """Write beside the file and then take its place, so that an interrupted write loses nothing."""
    with replaced(path) as beside:
        data.to_netcdf(beside, engine="h5netcdf")


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind along one axis of a table: numbers and strings as they are, the rest as text."""
    plain = all(isinstance(value, int | float) for value in values) or all(
        isinstance(value, str) for value in values
    )
    return np.array(values if plain else [str(value) for value in values])
