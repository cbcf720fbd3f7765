"""Rows that a file of others holds, sorted into a recording."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError, ParameterError
from ...recording._assemble import by_index, whole_numbers
from ...recording._recording import Recording
from ...typing import ArrayLike, Floats, Integers


@dataclass
class Rows:
    """What a file of others holds, one row per measurement; what it does not hold is None."""

    path: Path
    u: ArrayLike | None = None
    x: ArrayLike | None = None
    index: Integers | None = None
    time: Floats | None = None
    told: dict[str, Any] = field(
        default_factory=dict
    )  # channel, metadata, checks and units of a recording
    words: list[list[str]] = field(default_factory=list)  # columns of text that are nothing else
    axes: str | None = None  # what the axes of x are, if the user said

    def keep_choice(
        self, kind: str, chosen: dict[str, list[str]], left_out: dict[str, str]
    ) -> None:
        """Write down in the metadata how the file was read: which names became what, which did not and why."""
        kind = kind if self.axes is None else f"{kind}, readouts as {self.axes}"
        choice = (
            {"file": self.path.name, "as": kind}
            | chosen
            | ({"left out": left_out} if left_out else {})
        )
        self.told["metadata"] = self.told.get("metadata", {}) | {"read_from": [choice]}


def arrange(rows: Rows) -> Recording:
    """Sort rows into a recording in design order; without an index, in the order of the rows."""
    path = rows.path
    u, x = table(path, "u", following(rows.u, rows.x, rows.axes)), table(path, "x", rows.x)
    n = u.shape[0]
    if n != x.shape[0]:
        said = (
            f"u has shape {u.shape} and x has shape {x.shape} in {path}: unequal numbers of samples"
        )
        for flip, agree in (
            ("x", x.shape[1] == n),
            ("u", u.shape[1] == len(x)),
            ("both", u.shape[1] == x.shape[1]),
        ):
            if agree:
                axes = "samples,channels" if flip == "u" else "channels,samples"
                said = f"{said}; the lengths agree with {flip} transposed"
                raise DataError(f"{said}: tell what the axes of x are, `axes={axes!r}`.")
        raise DataError(f"{said}; give one row for each sample.")
    for name, values in (("acquired", rows.time), ("index", rows.index)):
        if values is not None and (values.size != n or n not in values.shape):
            raise DataError(
                f"{name} in {path} has shape {values.shape}; give one for each of {n} rows."
            )
    acquired = None if rows.time is None else rows.time.ravel()
    if acquired is not None and np.isnan(acquired).all():
        acquired = None  # a column left empty
    if rows.index is None:
        return Recording(u, x, np.arange(n), time=acquired, **rows.told)
    index = whole_numbers(path, rows.index.ravel())
    when = np.arange(n, dtype=float) if acquired is None else acquired
    if not (isinstance(u, np.ndarray) and isinstance(x, np.ndarray)):
        if (np.diff(index) <= 0).any():
            row = int(np.argmax(np.diff(index) <= 0)) + 1
            said = f"index in {path} is {index[row]} at row {row}, after {index[row - 1]}"
            raise DataError(
                f"{said}; what is read in blocks must be sorted: read it whole, or write it so."
            )
        return Recording(u, x, index, time=when, **rows.told)
    found = by_index(path, u, x, index, when, **rows.told)
    if not len(found.design_index):
        raise DataError(f"{path} has no row of the design, only noise repeats and references.")
    return found


def table(path: Path, name: str, values: ArrayLike) -> ArrayLike:
    """Require two dimensions, (samples, columns); inputs in one dimension are a single input."""
    if name == "u" and len(values.shape) == 1:
        values = values[:].reshape(-1, 1)
    if 0 in values.shape:
        raise DataError(f"{name} in {path} is empty: its shape is {values.shape}.")
    if len(values.shape) != 2:
        said = (
            f"{name} in {path} has shape {values.shape}; give two dimensions, (samples, channels)"
        )
        raise DataError(
            f"{said}, or say what the axes of x are, such as `axes='samples,averages,channels'`."
        )
    return values


def following(u: ArrayLike, x: ArrayLike, axes: str | None) -> ArrayLike:
    """The inputs, transposed where the axes of the readouts are told and only so the lengths agree."""
    turned = axes is not None and len(u.shape) == 2 and u.shape[0] != x.shape[0] == u.shape[1]
    return np.ascontiguousarray(u[:].T) if turned else u


def along(path: Path, x: ArrayLike, axes: str) -> np.ndarray:
    """Bring readouts into the order (samples, channels): means over averages, several axes of channels as one."""
    words = [word.strip() for word in axes.split(",")]
    if words.count("samples") != 1 or {*words} - {"samples", "averages", "channels"}:
        raise ParameterError(
            f"`axes={axes!r}` needs samples once, and otherwise channels and averages."
        )
    if len(words) != len(x.shape):
        raise DataError(
            f"x in {path} has shape {x.shape}, and `axes={axes!r}` names {len(words)} axes; name each."
        )
    values = np.asarray(x[:])
    if over := tuple(k for k, word in enumerate(words) if word == "averages"):
        values = values.mean(axis=over, dtype=np.result_type(values, np.float64), keepdims=True)
    values = np.moveaxis(values, words.index("samples"), 0)
    return np.ascontiguousarray(values.reshape(len(values), -1))
