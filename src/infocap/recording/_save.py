"""Recordings in files: NetCDF4 holds everything, a text table the numbers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._files import NUMBER_KINDS, plain_numbers, save_dataset, write_whole
from .._formatting import one_line
from .._hdf5 import COMPLEX_PARTS
from .._version import __version__
from ..errors import DataError, ParameterError
from ._assemble import Measurements
from ._recording import (
    ARRAY_DIMENSIONS,
    NAMED_COLUMNS,
    NOISE_CODE,
    REFERENCE_CODE,
    Recording,
    input_columns,
)

RECORDING_FORMAT = "infocap recording 1"
# The first words of the line that `infocap draw` writes above its inputs, and `Recording.save`
# above a sequence.
PLAN_COMMENT = "# infocap plan "
# The entries of the metadata that such a line holds.
PLAN_COMMENT_ENTRIES = ("plan", "fingerprint", "design", "runs")
# The fields that hold the unit of an array.
UNIT_FIELDS = {"inputs": "input_unit", "readouts": "readout_unit"}
# A chunk is what is read to get one row: 1 MB costs a disk little more than its seek.
NETCDF_CHUNK_BYTES = 1 << 20


def _save_netcdf(recording: Recording, path: Path) -> None:
    """Write everything, in chunks with a checksum, so that a flipped bit is found."""
    import xarray as xr

    variables: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    for name, values in _arrays(recording).items():
        dimensions = ARRAY_DIMENSIONS[name]
        array_attributes = {}
        if name in UNIT_FIELDS:
            array_attributes["units"] = getattr(recording, UNIT_FIELDS[name])
        if values.dtype.kind == "c":  # NetCDF has no complex numbers
            values = np.stack([values.real, values.imag], axis=-1)
            dimensions = (*dimensions, "part")
            array_attributes["parts"] = COMPLEX_PARTS
        variables[name] = (dimensions, values, array_attributes)
        encoding[name] = {"_FillValue": None}  # no number stands for a missing value
        if values.size:
            rows_in_chunk_bytes = NETCDF_CHUNK_BYTES * len(values) // values.nbytes
            n_rows = min(len(values), max(1, rows_in_chunk_bytes))
            encoding[name] |= {"chunksizes": (n_rows, *values.shape[1:]), "fletcher32": True}

    # Metadata and checks are variables, because attributes have a largest size.
    checks = [check.to_dict() for check in recording.checks]
    variables["metadata"] = ((), to_json("metadata", recording.metadata))
    variables["checks"] = ((), to_json("checks", checks))
    coordinates = {}
    for columns in NAMED_COLUMNS:
        names = getattr(recording, columns.field)
        if names:
            coordinates[columns.dimension] = np.array(names, dtype=object)
    attributes = {"format": RECORDING_FORMAT, "infocap_version": __version__}
    save_dataset(xr.Dataset(variables, coords=coordinates, attrs=attributes), path, encoding)


def _save_table(recording: Recording, path: Path) -> None:
    """Write one row per measurement: design index, time if known, inputs, then the channels.

    Repeats, noise and references follow the samples, marked by the index as in the tables of
    ``infocap draw``. Above them stands, as there, the plan of a sequence: without it one run would
    seem to go on in the next.
    """
    import pandas as pd

    n_inputs = recording.inputs.shape[1]
    n_readouts = recording.readouts.shape[1]
    channels = [one_line(name) for name in recording.channel]
    if not channels:
        channels = [f"x{number}" for number in range(1, n_readouts + 1)]
    headings = input_columns(recording.input_names or [""] * n_inputs) + channels
    with write_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if recording.washout is not None or "runs" in recording.metadata:
            entries = {
                name: recording.metadata[name]
                for name in PLAN_COMMENT_ENTRIES
                if name in recording.metadata
            }
            file.write(f"{PLAN_COMMENT}{to_json('metadata', entries)}\n")
        for number, rows in enumerate(_blocks_of_rows(recording, path)):
            inputs = pd.DataFrame(rows.u)
            readouts = pd.DataFrame(rows.x)
            table = pd.concat([inputs, readouts], axis=1)
            table.columns = pd.Index(headings)
            if recording.time is not None:
                table.insert(0, "time", rows.time, allow_duplicates=True)
            table.insert(0, "design_index", rows.index, allow_duplicates=True)
            table.to_csv(file, index=False, header=number == 0)


def _blocks_of_rows(recording: Recording, path: Path) -> Iterator[Measurements]:
    """Yield the rows of the samples, of their repeats, of the noise and of the references."""
    arrays = _arrays(recording)
    for name, values in arrays.items():
        if values.dtype.kind in "fc":  # all digits of what single precision holds
            arrays[name] = values.astype(np.result_type(values, np.float64))
    index = arrays["design_index"]
    inputs = arrays["inputs"]
    yield Measurements(path, u=inputs, x=arrays["readouts"], index=index, time=arrays.get("time"))
    if "repeats" in arrays:
        is_repeated = ~np.isnan(arrays["repeats"]).all(axis=1)
        yield Measurements(
            path,
            u=inputs[is_repeated],
            x=arrays["repeats"][is_repeated],
            index=index[is_repeated],
            time=np.full(is_repeated.sum(), np.nan),
        )
    for code, name in ((NOISE_CODE, "noise"), (REFERENCE_CODE, "reference")):
        if name in arrays:
            n_rows = len(arrays[name])
            not_told = np.full((n_rows, inputs.shape[1]), np.nan)
            yield Measurements(
                path,
                u=arrays.get(f"{name}_inputs", not_told),
                x=arrays[name],
                index=np.full(n_rows, code),
                time=arrays.get(f"{name}_time", np.full(n_rows, np.nan)),
            )


WRITERS: dict[str, Callable[[Recording, Path], None]] = {".nc": _save_netcdf, ".csv": _save_table}


def _arrays(recording: Recording) -> dict[str, np.ndarray]:
    """Return the arrays that a recording has, by name, as types that files hold."""
    arrays = {}
    for name in ARRAY_DIMENSIONS:
        source = getattr(recording, name)
        if source is None:
            continue
        values = np.asarray(source[:])
        if values.dtype.kind not in NUMBER_KINDS:
            raise DataError(
                f"{name} holds {values.dtype} values; give plain numbers, times in seconds."
            )
        arrays[name] = plain_numbers(values)
    return arrays


def to_json(name: str, value: Any) -> str:
    """Return plain data as text; NumPy's numbers and arrays become Python's."""
    try:
        return json.dumps(value, default=lambda array: array.tolist())
    except (AttributeError, TypeError, ValueError) as problem:
        raise ParameterError(
            f"`{name}` must be plain data, numbers, text and lists, for a file: {problem}."
        ) from None
