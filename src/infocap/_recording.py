"""A measured or simulated data set: inputs, readouts, and all that must not be separated from them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ._check import one_of
from ._netcdf import load_dataset, save_dataset
from ._version import __version__
from .errors import DataError
from .typing import Floats, Integers

FORMAT = "infocap recording 1"


@dataclass(frozen=True, eq=False)
class Recording:
    """Inputs (samples, inputs) and readouts (samples, channels), in design order, with their story.

    `index` is the design index of each row; `metadata` any plain data (parameters, seed, operator);
    `readout_unit` and `channel` say what the columns of the readouts are.
    """

    inputs: Floats
    readouts: Floats
    index: Integers
    readout_unit: str = ""
    channel: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.inputs)
        if len(self.readouts) != n or len(self.index) != n:
            raise DataError(
                f"a recording needs as many inputs as readouts and indices; got {n}, {len(self.readouts)} and "
                f"{len(self.index)}."
            )

    def __repr__(self) -> str:
        return (
            f"Recording: {len(self.inputs)} samples, {self.inputs.shape[1]} inputs, {self.readouts.shape[1]} readouts"
            f"{f' in {self.readout_unit}' if self.readout_unit else ''}"
        )

    def save(self, path: str | Path) -> Path:
        """Write to NetCDF4 (``.nc``)."""
        import xarray as xr

        path = Path(path)
        one_of("path suffix", path.suffix, (".nc",))
        names = self.channel or tuple(str(k) for k in range(self.readouts.shape[1]))
        data = xr.Dataset(
            {
                "inputs": (("sample", "input"), self.inputs),
                "readouts": (("sample", "channel"), self.readouts, {"units": self.readout_unit}),
                "index": ("sample", self.index),
            },
            coords={"channel": np.array(names, dtype=object)},
            attrs={"format": FORMAT, "infocap_version": __version__, "metadata": json.dumps(self.metadata)},
        )
        save_dataset(data, path)
        return path


def read(path: str | Path) -> Recording:
    """Read a recording from a NetCDF4 file that `Recording.save` or ``infocap simulate`` wrote."""
    path = Path(path)
    one_of("path suffix", path.suffix, (".nc",))
    data = load_dataset(path, FORMAT)
    return Recording(
        data["inputs"].values,
        data["readouts"].values,
        data["index"].values,
        str(data["readouts"].attrs.get("units", "")),
        tuple(str(name) for name in data["channel"].values),
        json.loads(data.attrs["metadata"]),
    )
