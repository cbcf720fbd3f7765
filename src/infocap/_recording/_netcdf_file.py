"""Recordings as NetCDF4 files: everything a recording holds, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._netcdf import load_dataset, save_dataset
from .._version import __version__
from ._recording import Recording

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "infocap recording 1"
OPTIONAL = {
    "acquired": ("sample",),
    "repeats": ("sample", "channel"),
    "noise": ("noise_repeat", "channel"),
    "reference": ("reference_repeat", "channel"),
    "reference_acquired": ("reference_repeat",),
}


def to_dataset(recording: Recording) -> xr.Dataset:
    """Everything, as a labelled data set."""
    import xarray as xr

    names = recording.channel or tuple(str(k) for k in range(recording.readouts.shape[1]))
    variables: dict[str, Any] = {
        "inputs": (("sample", "input"), recording.inputs, {"units": recording.input_unit}),
        "readouts": (("sample", "channel"), recording.readouts, {"units": recording.readout_unit}),
        "index": ("sample", recording.index),
    }
    for name, dimensions in OPTIONAL.items():
        if getattr(recording, name) is not None:
            variables[name] = (dimensions, getattr(recording, name))
    return xr.Dataset(
        variables,
        coords={"channel": np.array(names, dtype=object)},
        attrs={
            "format": FORMAT,
            "infocap_version": __version__,
            "metadata": json.dumps(recording.metadata),
            "checks": json.dumps(recording.checks),
        },
    )


def from_dataset(data: xr.Dataset) -> Recording:
    """What `to_dataset` made, as a recording again."""
    return Recording(
        data["inputs"].values,
        data["readouts"].values,
        data["index"].values,
        str(data["readouts"].attrs.get("units", "")),
        tuple(str(name) for name in data["channel"].values),
        json.loads(data.attrs.get("metadata", "{}")),
        str(data["inputs"].attrs.get("units", "")),
        **{name: data[name].values for name in OPTIONAL if name in data},
        checks=tuple(json.loads(data.attrs.get("checks", "[]"))),
    )


def save_netcdf(recording: Recording, path: Path) -> None:
    """Write everything; the file is there whole or not at all."""
    save_dataset(to_dataset(recording), path)


def load_netcdf(path: Path) -> Recording:
    """Read what `save_netcdf` wrote."""
    return from_dataset(load_dataset(path, FORMAT))
