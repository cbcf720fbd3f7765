"""Recordings in files of our own: NetCDF4 holds everything, a text table the numbers; and those of older versions."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._files import NUMBERS, Contents, plain_numbers, replaced, save_dataset
from .._hdf5 import PARTS
from .._version import __version__
from ..errors import Check, DataError, ParameterError
from ._array_files import numbers_of
from ._recording import DIMENSIONS, NAMES, NOISE, REFERENCE, Recording, input_columns, whole_numbers

FORMAT = "infocap recording 1"
# The first words of what `infocap draw` writes above its inputs, and `Recording.save` above a sequence; what it tells.
PLAN, PLANNED = "# infocap plan ", ("plan", "fingerprint", "design", "runs")
UNITS = {"inputs": "input_unit", "readouts": "readout_unit"}
MATLAB_NAMES = {"inputs": "u", "readouts": "x"}  # in the .mat files that older versions wrote
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
            values, dimensions = np.stack([values.real, values.imag], axis=-1), (*dimensions, "part")
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
        axis: np.array(getattr(recording, name), dtype=object) for name, axis, _ in NAMES if getattr(recording, name)
    }
    attributes = {"format": FORMAT, "infocap_version": __version__}
    save_dataset(xr.Dataset(variables, coords=named, attrs=attributes), path, encoding)


def _save_table(recording: Recording, path: Path) -> None:
    """Write one row per measurement: index, acquired if known, inputs u1, u2, ..., then the channels.

    Repeats, noise and references follow the samples, marked by the index as in the tables of ``infocap draw``. Above
    them stands, as there, the plan of a sequence: without it one run would seem to go on in the next.
    """
    import pandas as pd

    arrays = _arrays(recording)
    for name, values in arrays.items():
        if values.dtype.kind in "fc":  # all digits of what single precision holds
            arrays[name] = values.astype(np.result_type(values, np.float64))
    index, inputs, x = (arrays[name] for name in ("index", "inputs", "readouts"))
    channel = [" ".join(name.split()) for name in recording.channel]
    names = input_columns(recording.input_names or [""] * inputs.shape[1])
    names += channel or [f"x{k + 1}" for k in range(x.shape[1])]
    blocks: list[tuple[Any, Any, Any, Any]] = [(index, arrays.get("acquired"), inputs, x)]
    if "repeats" in arrays:
        twice = ~np.isnan(arrays["repeats"]).all(axis=1)
        blocks.append((index[twice], np.nan, inputs[twice], arrays["repeats"][twice]))
    for code, name in ((NOISE, "noise"), (REFERENCE, "reference")):
        if name in arrays:
            unknown = np.full((len(arrays[name]), inputs.shape[1]), np.nan)
            blocks.append((code, arrays.get(f"{name}_acquired", np.nan), unknown, arrays[name]))
    with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        if recording.washout is not None or "runs" in recording.metadata:
            told = {name: recording.metadata[name] for name in PLANNED if name in recording.metadata}
            file.write(f"{PLAN}{to_json('metadata', told)}\n")
        for number, (codes, times, u, values) in enumerate(blocks):
            table = pd.concat([pd.DataFrame(u), pd.DataFrame(values)], axis=1)
            table.columns = pd.Index(names)
            if recording.acquired is not None:
                table.insert(0, "acquired", times, allow_duplicates=True)
            table.insert(0, "index", codes, allow_duplicates=True)
            table.to_csv(file, index=False, header=number == 0)


WRITERS: dict[str, Callable[[Recording, Path], None]] = {".nc": _save_netcdf, ".csv": _save_table}


def load_own(contents: Contents, in_memory: bool) -> Recording | None:
    """Restore what `Recording.save` wrote, now or in an older version; None for files of others."""
    path, matlab = contents.path, contents.kind == "MATLAB"
    words: Any = dict(contents.attributes)
    if matlab and "metadata" in contents:
        with suppress(DataError, ValueError, RecursionError):  # somebody else's
            words = json.loads("".join(contents.text("metadata")))
    found = str(words.get("format", "")) if isinstance(words, dict) else ""
    if found != FORMAT:
        if found.startswith("infocap "):
            raise DataError(f"{path} is not an {FORMAT!r} file but {found!r}; it holds {contents}.")
        return None
    if not matlab:
        words |= {name: "".join(contents.text(name)) for name in ("metadata", "checks") if name in contents}
        words |= {axis: json.dumps(contents.text(axis)) for _, axis, _ in NAMES if axis in contents}
    arrays: dict[str, Any] = {}
    for name, dimensions in DIMENSIONS.items():
        here = MATLAB_NAMES.get(name, name) if matlab else name
        if here in contents:
            arrays[name] = numbers_of(contents, here, in_memory or name not in UNITS)
            if matlab and len(dimensions) == 1:
                arrays[name] = arrays[name].ravel()  # MATLAB has nothing below two dimensions
            if name in UNITS and "units" in contents.variables[here].attributes:
                words[UNITS[name]] = contents.variables[here].attributes["units"]
    lost = [name for name in ("inputs", "readouts", "index") if name not in arrays]
    told = words.get("arrays")  # of .mat files, which can end after any variable
    lost += [str(name) for name in told if str(name) not in contents] if isinstance(told, list) else []
    if lost:
        raise DataError(f"{path} is damaged or cut short: it has no {', '.join(lost)}, and holds {contents}.")
    arrays["index"], checks = whole_numbers(path, arrays["index"]), from_json(path, "checks", words, [])
    arrays |= {unit: str(words.get(unit, "")) for unit in UNITS.values()}
    arrays |= {name: tuple(map(str, from_json(path, axis, words, []))) for name, axis, _ in NAMES}
    return Recording(
        **arrays,
        metadata=from_json(path, "metadata", words, {}),
        # Older versions saved plain sentences.
        checks=tuple(Check.from_dict(one) if isinstance(one, dict) else str(one) for one in checks),
    )


def _arrays(recording: Recording) -> dict[str, np.ndarray]:
    """The arrays that a recording has, by name, as types that files hold."""
    held = {name: getattr(recording, name) for name in DIMENSIONS}
    arrays = {name: np.asarray(values[:]) for name, values in held.items() if values is not None}
    for name, values in arrays.items():
        if values.dtype.kind not in NUMBERS:
            raise DataError(f"{name} holds {values.dtype} values; give plain numbers, times in seconds.")
        arrays[name] = plain_numbers(values)
    return arrays


def to_json(name: str, value: Any) -> str:
    """Plain data as text; NumPy's numbers and arrays become Python's."""
    try:
        return json.dumps(value, default=lambda one: one.tolist())
    except (AttributeError, TypeError, ValueError) as problem:
        raise ParameterError(f"`{name}` must be plain data, numbers, text and lists, for a file: {problem}.") from None


def from_json(path: Path, name: str, words: Mapping[str, Any], empty: Any) -> Any:
    """Restore plain data from text; what is damaged, or of another kind than `empty`, is an error."""
    if name not in words:
        return empty
    try:
        value = json.loads(words[name])
    except (TypeError, ValueError, RecursionError) as problem:
        value = problem
    if not isinstance(value, type(empty)):
        raise DataError(f"{name} in {path} is {value!r:.60}; it is damaged: read the arrays by u=..., x=....")
    return value
