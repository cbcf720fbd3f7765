"""Recordings in files of our own: NetCDF4 holds everything, a text table the numbers; and those of older versions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._files import NUMBERS, plain_numbers, replaced, save_dataset
from .._hdf5 import PARTS
from .._version import __version__
from ..errors import Check, DataError, ParameterError
from ._recording import DIMENSIONS, NAMES, NOISE, REFERENCE, Recording, input_columns

FORMAT = "infocap recording 1"
# The first words of what `infocap draw` writes above its inputs, and `Recording.save` above a sequence; what it tells.
PLAN, PLANNED = "# infocap plan ", ("plan", "fingerprint", "design", "runs")
UNITS = {"inputs": "input_unit", "readouts": "readout_unit"}
# A chunk is what is read to get one row: 1 MB costs a disk little more than its seek.
CHUNK_BYTES = 1 << 20


def _save_netcdf(recording: Recording, path: Path) -> None:
    """Write everything, in chunks with a checksum, so that a flipped bit is found."""
    import xarray as xr

    variables: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    for name, values in _arrays(recording).items():
        dimensions = DIMENSIONS[name]
        attributes = {"units": getattr(recording, UNITS[name])} if name in UNITS else {}
        if values.dtype.kind == "c":
            values, dimensions = (
                np.stack([values.real, values.imag], axis=-1),
                (*dimensions, "part"),
            )
            attributes["parts"] = PARTS
        variables[name] = (dimensions, values, attributes)
        encoding[name] = {"_FillValue": None}  # no number stands for a missing one
        if values.size:
            rows = min(len(values), max(1, CHUNK_BYTES * len(values) // values.nbytes))
            encoding[name] |= {"chunksizes": (rows, *values.shape[1:]), "fletcher32": True}
    # Variables, because attributes have a largest size.
    variables["metadata"] = ((), to_json("metadata", recording.metadata))
    checks = [one.to_dict() if isinstance(one, Check) else one for one in recording.checks]
    variables["checks"] = ((), to_json("checks", checks))
    named = {
        axis: np.array(getattr(recording, name), dtype=object)
        for name, axis, _ in NAMES
        if getattr(recording, name)
    }
    attributes = {"format": FORMAT, "infocap_version": __version__}
    save_dataset(xr.Dataset(variables, coords=named, attrs=attributes), path, encoding)


def _save_table(recording: Recording, path: Path) -> None:
    """Write one row per measurement: design_index, time if known, inputs u1, u2, ..., then the channels.

    Repeats, noise and references follow the samples, marked by the index as in the tables of ``infocap draw``. Above
    them stands, as there, the plan of a sequence: without it one run would seem to go on in the next.
    """
    import pandas as pd

    arrays = _arrays(recording)
    for name, values in arrays.items():
        if values.dtype.kind in "fc":  # all digits of what single precision holds
            arrays[name] = values.astype(np.result_type(values, np.float64))
    index, inputs, x = (arrays[name] for name in ("design_index", "inputs", "readouts"))
    channel = [" ".join(name.split()) for name in recording.channel]
    names = input_columns(recording.input_names or [""] * inputs.shape[1])
    names += channel or [f"x{k + 1}" for k in range(x.shape[1])]
    blocks: list[tuple[Any, Any, Any, Any]] = [(index, arrays.get("time"), inputs, x)]
    if "repeats" in arrays:
        twice = ~np.isnan(arrays["repeats"]).all(axis=1)
        blocks.append((index[twice], np.nan, inputs[twice], arrays["repeats"][twice]))
    for code, name in ((NOISE, "noise"), (REFERENCE, "reference")):
        if name in arrays:
            unknown = np.full((len(arrays[name]), inputs.shape[1]), np.nan)
            blocks.append((code, arrays.get(f"{name}_time", np.nan), unknown, arrays[name]))
    with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        if recording.washout is not None or "runs" in recording.metadata:
            told = {
                name: recording.metadata[name] for name in PLANNED if name in recording.metadata
            }
            file.write(f"{PLAN}{to_json('metadata', told)}\n")
        for number, (codes, times, u, values) in enumerate(blocks):
            table = pd.concat([pd.DataFrame(u), pd.DataFrame(values)], axis=1)
            table.columns = pd.Index(names)
            if recording.time is not None:
                table.insert(0, "time", times, allow_duplicates=True)
            table.insert(0, "design_index", codes, allow_duplicates=True)
            table.to_csv(file, index=False, header=number == 0)


WRITERS: dict[str, Callable[[Recording, Path], None]] = {".nc": _save_netcdf, ".csv": _save_table}


def _arrays(recording: Recording) -> dict[str, np.ndarray]:
    """The arrays that a recording has, by name, as types that files hold."""
    held = {name: getattr(recording, name) for name in DIMENSIONS}
    arrays = {name: np.asarray(values[:]) for name, values in held.items() if values is not None}
    for name, values in arrays.items():
        if values.dtype.kind not in NUMBERS:
            raise DataError(
                f"{name} holds {values.dtype} values; give plain numbers, times in seconds."
            )
        arrays[name] = plain_numbers(values)
    return arrays


def to_json(name: str, value: Any) -> str:
    """Plain data as text; NumPy's numbers and arrays become Python's."""
    try:
        return json.dumps(value, default=lambda one: one.tolist())
    except (AttributeError, TypeError, ValueError) as problem:
        raise ParameterError(
            f"`{name}` must be plain data, numbers, text and lists, for a file: {problem}."
        ) from None
