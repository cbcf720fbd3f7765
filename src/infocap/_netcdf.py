"""NetCDF files of our own: opened whole, with one clear error when they are broken or somebody else's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DataError

if TYPE_CHECKING:
    import xarray as xr


def save_dataset(data: xr.Dataset, path: Path) -> None:
    """Write a data set, all of it or nothing."""
    with in_place_of(path) as beside:
        data.to_netcdf(beside, engine="h5netcdf")


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A file beside another that takes its place once it is written, so that an interrupted write loses nothing."""
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    beside = path.with_name(f".{path.name}.part")
    yield beside
    beside.replace(path)


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind along one axis of a table: numbers and strings as they are, the rest as text."""
    plain = all(isinstance(value, int | float) for value in values) or all(
        isinstance(value, str) for value in values
    )
    return np.array(values if plain else [str(value) for value in values])


def load_dataset(path: Path, expected: str) -> xr.Dataset:
    """Everything in a file whose attribute ``format`` is as expected."""
    import xarray as xr

    if not path.exists():
        raise DataError(f"{path} does not exist.")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as data:
            data.load()
    except (OSError, ValueError) as problem:
        raise DataError(
            f"{path} cannot be read as NetCDF ({problem}); it is truncated or of another format, and nothing of "
            "it can be recovered."
        ) from None
    found = data.attrs.get("format")
    if found != expected:
        held = ", ".join(map(str, data.data_vars)) or "nothing"
        raise DataError(f"{path} is not an {expected!r} file but {found!r}; it holds {held}.")
    return data
