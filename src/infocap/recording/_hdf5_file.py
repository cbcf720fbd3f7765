"""Recordings as NetCDF4 files, which any HDF5 library reads too: everything a recording holds, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import Contents
from .._netcdf import save_dataset
from ..errors import DataError
from ._layout import DIMENSIONS, FORMAT, arrays_of, rebuild, to_json, words_of
from ._recording import Recording

if TYPE_CHECKING:
    import xarray as xr

PARTS = "re, im"  # of complex numbers, which NetCDF does not have, along the last axis
CHUNK_BYTES = 1 << 20


def to_dataset(recording: Recording) -> xr.Dataset:
    """Everything, as a labelled data set."""
    import xarray as xr

    words = words_of(recording)
    units = {"inputs": {"units": recording.input_unit}, "readouts": {"units": recording.readout_unit}}
    variables: dict[str, Any] = {}
    for name, values in arrays_of(recording).items():
        dimensions, attributes = DIMENSIONS[name], dict(units.get(name, {}))
        if values.dtype.kind == "c":
            values, dimensions = np.stack([values.real, values.imag], axis=-1), (*dimensions, "part")
            attributes["parts"] = PARTS
        variables[name] = (dimensions, values, attributes)
    for name in ("metadata", "checks"):  # variables: attributes have a largest size
        variables[name] = ((), words[name])
    return xr.Dataset(
        variables,
        coords={"channel": np.array(recording.channel, dtype=object)} if recording.channel else {},
        attrs={name: words[name] for name in ("format", "infocap_version")},
    )


def save_hdf5(recording: Recording, path: Path) -> None:
    """Write everything, with checksums; the file is there whole or not at all."""
    data = to_dataset(recording)
    save_dataset(data, path, {str(name): _encoding(data[name]) for name in data.data_vars})


def load_own(contents: Contents) -> Recording:
    """A recording from an open file of ours."""
    held = {name: contents.numbers(name) for name in DIMENSIONS if name in contents}
    for name, values in held.items():
        if contents.variables[name].attributes.get("parts") == PARTS:
            if values.shape[-1:] != (2,) or values.dtype.kind != "f":
                raise DataError(
                    f"{name} in {contents.path} has shape {values.shape} for complex numbers; it is damaged."
                )
            held[name] = np.ascontiguousarray(values).view(np.result_type(values.dtype, np.complex64))[..., 0]
    words = dict(contents.attributes)
    words |= {name: "".join(contents.text(name)) for name in ("metadata", "checks") if name in contents}
    if "channel" in contents:
        words["channel"] = to_json("channel", contents.text("channel"))
    for name, word in (("inputs", "input_unit"), ("readouts", "readout_unit")):
        if name in held:
            words[word] = contents.variables[name].attributes.get("units", "")
    return rebuild(contents.path, held, words)


def refuse_other(contents: Contents) -> None:
    """An error for a file of ours that is no recording."""
    found = str(contents.attributes.get("format", ""))
    if found.startswith("infocap ") and found != FORMAT:
        raise DataError(f"{contents.path} is not an {FORMAT!r} file but {found!r}; it holds {contents}.")


def _encoding(variable: xr.DataArray) -> dict[str, Any]:
    """Chunks with a checksum, so that a flipped bit is found; no value stands for a missing one."""
    if variable.dtype.kind not in "iuf":
        return {}
    encoding: dict[str, Any] = {"_FillValue": None}
    if variable.ndim and variable.size:
        row = variable.nbytes // len(variable)
        rows = min(len(variable), max(1, CHUNK_BYTES // row))
        encoding |= {"chunksizes": (rows, *variable.shape[1:]), "fletcher32": True}
    return encoding
