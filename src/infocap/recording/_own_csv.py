"""Recordings as text tables of our own: one row a measurement, all words in the first line; they come back in full."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import replaced
from ..errors import DataError
from ..typing import Floats
from ._layout import DIMENSIONS, FORMAT, arrays_of, rebuild, words_of
from ._recording import Recording
from ._rows import Rows, arrange
from ._schedule_names import NOISE, REFERENCE
from ._sheet import Sheet

OWN = f"# {FORMAT} "
END = "# end"  # a file without it was cut short
EXACT = 2**53  # whole numbers up to here are numbers of a table


def save_csv(recording: Recording, path: Path) -> None:
    """Samples, then their repeats, noise and references, with the index that ``infocap draw`` gives them."""
    arrays = arrays_of(recording)
    _refuse_what_does_not_fit(path, arrays)
    n_inputs, n_channels = arrays["inputs"].shape[1], arrays["readouts"].shape[1]
    words = words_of(recording) | {
        "n_inputs": n_inputs,
        "arrays": {name: [one.dtype.str, len(one)] for name, one in arrays.items()},
    }
    names = recording.channel or tuple(f"x{k + 1}" for k in range(n_channels))
    with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{OWN}{json.dumps(words)}\n")
        header = io.StringIO()
        said = ["index", "acquired", *(f"u{k + 1}" for k in range(n_inputs))]
        csv.writer(header, lineterminator="\n").writerow([*said, *(" ".join(name.split()) for name in names)])
        file.write(header.getvalue())
        for index, times, u, x in _blocks(arrays):
            for row in range(len(x)):
                when = "" if times is None else _cell(times[row].item())
                inputs = [""] * n_inputs if u is None else map(_cell, u[row].tolist())
                cells = [str(index[row]), when, *inputs, *map(_cell, x[row].tolist())]
                file.write(",".join(cells) + "\n")
        file.write(f"{END}\n")


def own_rows(sheet: Sheet, words: dict[str, Any]) -> Rows:
    """The columns of such a table, by their places."""
    if sheet.comments[-1] != END:
        raise DataError(
            f"{sheet.path} is cut short after {len(sheet.values)} rows; those can still be read with u='u*'."
        )
    first = words.get("n_inputs")
    first = 2 + first if isinstance(first, int) and first > 0 else 0
    if not 2 < first < sheet.values.shape[1]:
        raise _damaged(sheet.path, "the number of inputs in the first line does not fit the table")
    values = sheet.values
    index, acquired, u = values[:, 0].real, values[:, 1].real, values[:, 2:first].real
    return Rows(sheet.path, u, values[:, first:], index, acquired, own=words)


def restore(rows: Rows, words: dict[str, Any]) -> Recording:
    """The recording, with the types that its arrays had."""
    found = arrange(rows)
    arrays: dict[str, Any] = {}
    try:
        declared = {name: (np.dtype(dtype), int(n)) for name, (dtype, n) in words["arrays"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise _damaged(
            rows.path, f"the list of arrays in the first line is no such list: {problem}"
        ) from None
    for name in DIMENSIONS.keys() & declared.keys():
        dtype, n = declared[name]
        values = getattr(found, name)
        if values is None:  # it was there, but without a row
            n_rows = len(found.index) if name == "repeats" else 0
            values = np.full((n_rows, found.readouts.shape[1]), np.nan)
            values = values[:, 0] if DIMENSIONS[name][1:] == () else values
        if len(values) != n or dtype.kind not in "iufc":
            raise _damaged(rows.path, f"it has {len(values)} rows of {name} instead of {n}")
        arrays[name] = _typed(rows.path, name, values, dtype)
    return rebuild(rows.path, arrays, words)


def _blocks(arrays: dict[str, np.ndarray]) -> list[tuple[Any, Any, Any, Any]]:
    """Index, times, inputs and readouts of each kind of row."""
    index, inputs = arrays["index"], arrays["inputs"]
    blocks: list[tuple[Any, Any, Any, Any]] = [(index, arrays.get("acquired"), inputs, arrays["readouts"])]
    if "repeats" in arrays:
        twice = ~np.isnan(arrays["repeats"]).all(axis=1)
        blocks.append((index[twice], None, inputs[twice], arrays["repeats"][twice]))
    for code, name in ((NOISE, "noise"), (REFERENCE, "reference")):
        if name in arrays:
            codes = np.full(len(arrays[name]), code)
            blocks.append((codes, arrays.get(f"{name}_acquired"), None, arrays[name]))
    return blocks


def _cell(value: complex) -> str:
    """All digits; whole numbers without a point."""
    if isinstance(value, complex):
        return f"{value.real!r}{'' if repr(value.imag)[0] == '-' else '+'}{value.imag!r}j"
    return repr(value)


def _typed(path: Path, name: str, values: Floats, dtype: np.dtype[Any]) -> np.ndarray:
    """The same numbers in the type they had."""
    values = values if dtype.kind == "c" else values.real
    with np.errstate(invalid="ignore", over="ignore"):
        typed = values.astype(dtype)
    if not np.array_equal(typed, values, equal_nan=True):
        raise _damaged(path, f"its {name} are no {dtype} numbers")
    return typed


def _refuse_what_does_not_fit(path: Path, arrays: dict[str, np.ndarray]) -> None:
    index = arrays["index"]
    if (
        index.dtype.kind not in "iu"
        or not len(index)
        or index.min() < 0
        or (np.diff(index.astype(float)) <= 0).any()
    ):
        raise DataError(
            f"{path} would not come back: in a table the index of the samples, here {index[:3]}..., must be whole "
            "numbers that increase from row to row; sort the rows, or write .nc."
        )
    for name, values in arrays.items():
        if values.dtype.kind in "iu" and values.size and (values.max() > EXACT or values.min() < -EXACT):
            raise DataError(f"{path} would lose digits of {name}, which reaches {values.max()}; write .nc.")


def _damaged(path: Path, what: str) -> DataError:
    return DataError(f"{path} is damaged: {what}; without its first line it can be read as a plain table.")
