"""The arrays and the words of a recording, as every format of ours holds them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._files import plain_numbers
from .._version import __version__
from ..errors import DataError, ParameterError
from ._recording import Recording

FORMAT = "infocap recording 1"
DIMENSIONS = {
    "inputs": ("sample", "input"),
    "readouts": ("sample", "channel"),
    "index": ("sample",),
    "acquired": ("sample",),
    "repeats": ("sample", "channel"),
    "noise": ("noise_repeat", "channel"),
    "reference": ("reference_repeat", "channel"),
    "reference_acquired": ("reference_repeat",),
}
WORDS = ("readout_unit", "input_unit", "channel", "metadata", "checks")


def arrays_of(recording: Recording) -> dict[str, np.ndarray]:
    """The arrays there are, by name."""
    held = {name: getattr(recording, name) for name in DIMENSIONS}
    arrays = {name: np.asarray(one) for name, one in held.items() if one is not None}
    for name, one in arrays.items():
        if one.dtype.kind not in "biufc":
            raise DataError(f"{name} holds {one.dtype} values; files hold plain numbers, times in seconds.")
    return {name: plain_numbers(one) for name, one in arrays.items()}


def words_of(recording: Recording) -> dict[str, str]:
    """All the rest, as text."""
    return {
        "format": FORMAT,
        "infocap_version": __version__,
        "readout_unit": recording.readout_unit,
        "input_unit": recording.input_unit,
        "channel": to_json("channel", list(recording.channel)),
        "metadata": to_json("metadata", recording.metadata),
        "checks": to_json("checks", list(recording.checks)),
    }


def rebuild(path: Path, arrays: Mapping[str, np.ndarray], words: Mapping[str, Any]) -> Recording:
    """The recording again; a file that lacks something, or holds it in another form, is an error."""
    for name in ("inputs", "readouts", "index"):
        if name not in arrays:
            raise DataError(
                f"{path} is an {FORMAT!r} file without {name}; it is damaged, and holds {list(arrays)}."
            )
    return Recording(
        inputs=arrays["inputs"],
        readouts=arrays["readouts"],
        index=whole_numbers(path, arrays["index"]),
        readout_unit=str(words.get("readout_unit", "")),
        input_unit=str(words.get("input_unit", "")),
        channel=tuple(map(str, from_json(path, "channel", words, []))),
        metadata=from_json(path, "metadata", words, {}),
        checks=tuple(map(str, from_json(path, "checks", words, []))),
        **{name: arrays[name] for name in DIMENSIONS if name in arrays and name not in NEEDED},
    )


NEEDED = ("inputs", "readouts", "index")


def whole_numbers(path: Path, index: np.ndarray) -> np.ndarray:
    """A design index as integers."""
    if index.dtype.kind in "iu":
        return index
    if index.dtype.kind != "f" or not np.isfinite(index).all() or (index != np.round(index)).any():
        raise DataError(f"index in {path} holds {index.dtype} values that are no whole numbers; repair it.")
    if np.abs(index).max(initial=0) > 2**53:
        raise DataError(
            f"index in {path} reaches {np.abs(index).max():g}; give numbers of points of a design."
        )
    return index.astype(np.int64)


def to_json(name: str, value: Any) -> str:
    """Plain data as text; NumPy's numbers and arrays become Python's."""
    try:
        return json.dumps(value, default=_plain)
    except (TypeError, ValueError) as problem:
        raise ParameterError(f"{name} must be plain data to be written to a file: {problem}.") from None


def from_json(path: Path, name: str, words: Mapping[str, Any], empty: Any) -> Any:
    """What `to_json` made, of the kind expected."""
    if name not in words:
        return empty
    try:
        value = json.loads(words[name])
    except (TypeError, ValueError, RecursionError) as problem:
        raise DataError(
            f"{name} in {path} is damaged ({problem}); the arrays can be read by u=..., x=...."
        ) from None
    if not isinstance(value, type(empty)):
        raise DataError(
            f"{name} in {path} is {value!r:.60}; it is damaged, the arrays can be read by u=..., x=...."
        )
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"it holds a {type(value).__name__}")
