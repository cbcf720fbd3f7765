"""What other people's files hold, as `RowsOfFile`, one per measurement; from them a `Recording`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._validation import shown
from ...errors import DataError, ParameterError
from ...recording import Measurements, Recording, assemble_recording, integer_index
from ...samples import FoldedTrace, TraceSteps, as_columns, fold
from ...typing import ArrayLike, Floats, Integers

AXES = ("samples", "averages", "channels")


@dataclass
class RowsOfFile(Measurements):
    """What a file holds of inputs, readouts, or both, and how it was read.

    Parameters
    ----------
    axes
        What the axes of the readouts are, where the user says it.
    read_from
        How the file was read: which names became what, and which were left out.
    columns_of_text
        Columns of words that are nothing else; one may name the file of each row.
    sample_numbers
        Columns that number the samples, by their names.
    """

    axes: str | None = None
    read_from: list[dict[str, Any]] = field(default_factory=list)
    columns_of_text: list[list[str]] = field(default_factory=list)
    sample_numbers: dict[str, Floats] = field(default_factory=dict)

    def note_choice(
        self, kind: str, names: Mapping[str, Sequence[str]], left_out: Mapping[str, str]
    ) -> None:
        """Keep how the file was read, for the metadata of the recording."""
        described = kind if self.axes is None else f"{kind}, readouts as {self.axes}"
        choice: dict[str, Any] = {"file": self.path.name, "as": described}
        choice |= {role: list(chosen) for role, chosen in names.items() if chosen}
        if left_out:
            choice["left out"] = dict(left_out)
        self.read_from.append(choice)


def to_recording(rows: RowsOfFile, steps: TraceSteps | None = None) -> Recording:
    """Sort rows into a recording in design order; without an index, in the order of the rows.

    The rows of a trace are first folded into one row for each of its `steps`.
    """
    path = rows.path
    if steps is not None:
        rows = _fold_rows(rows, steps)
    u = as_table(path, "u", oriented_as_readouts(rows.u, rows.x, rows.axes))
    x = as_table(path, "x", rows.x)
    u, x = _vectors_upright(u, x)
    _refuse_unequal_lengths(path, u, x)
    n_rows = u.shape[0]
    time = _one_per_row(path, "time", rows.time, n_rows)
    index = _one_per_row(path, "design_index", rows.index, n_rows)
    if time is not None and np.isnan(time).all():
        time = None  # the column is empty

    metadata = rows.metadata | {"read_from": rows.read_from}
    rows = replace(rows, u=u, x=x, time=time, metadata=metadata)
    if index is None:
        numbers = np.arange(n_rows)
        return rows.as_recording(inputs=u, readouts=x, design_index=numbers, time=time)
    rows.index = integer_index(path, index)
    if rows.time is None:
        rows.time = np.arange(n_rows, dtype=float)
    in_memory = isinstance(u, np.ndarray) and isinstance(x, np.ndarray)
    if not in_memory:
        _refuse_unsorted(path, rows.index)
        return rows.as_recording(inputs=u, readouts=x, design_index=rows.index, time=rows.time)
    recording = assemble_recording(rows)
    if not len(recording.design_index):
        raise DataError(f"{path} has no row of the design, only noise repeats and references.")
    return recording


def _fold_rows(rows: RowsOfFile, steps: TraceSteps) -> RowsOfFile:
    """Return rows of a trace with one row for each step, at the time of its first row."""
    path = rows.path
    u = as_table(path, "u", oriented_as_readouts(rows.u, rows.x, rows.axes), is_trace=True)
    x = as_table(path, "x", rows.x, is_trace=True)
    folded = fold(u, x, steps, channel=rows.channel)
    return replace(
        rows,
        u=folded.u,
        x=folded.x,
        index=_first_of_each_step(folded, "design_index", rows.index),
        time=_first_of_each_step(folded, "time", rows.time),
        extra=folded.one_per_step("extra", rows.extra),
        channel=tuple(folded.node_names),
        metadata=rows.metadata | {"trace": folded.steps.as_dict()},
        checks=[*rows.checks, *folded.checks],
    )


def _first_of_each_step(folded: FoldedTrace, name: str, values: Any) -> Any:
    return None if values is None else folded.one_per_step(name, np.ravel(values))


def as_table(path: Path, name: str, values: ArrayLike, is_trace: bool = False) -> ArrayLike:
    """Require two dimensions, (samples, columns); values in one dimension are a single column."""
    if is_trace:
        values = as_columns(values, name)
    elif len(values.shape) == 1:
        values = values[:].reshape(-1, 1)
    if 0 in values.shape:
        raise DataError(f"{name} in {path} is empty: its shape is {values.shape}.")
    if len(values.shape) != 2:
        raise DataError(
            f"{name} in {path} has shape {values.shape}; give two dimensions, (samples, channels), "
            "or say what the axes of x are, such as `axes='samples,averages,channels'`, or, of a "
            "trace of virtual nodes, `rows_per_step`."
        )
    return values


def _vectors_upright(u: ArrayLike, x: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Turn an array of one row that can only be one column, as MATLAB has them."""
    if u.shape[0] == 1 and u.shape[1] == x.shape[0] > 1:
        u = np.asarray(u[:]).reshape(-1, 1)
    elif x.shape[0] == 1 and x.shape[1] == u.shape[0] > 1:
        x = np.asarray(x[:]).reshape(-1, 1)
    return u, x


def oriented_as_readouts(u: ArrayLike, x: ArrayLike, axes: str | None) -> ArrayLike:
    """Return the inputs, transposed where the user gave `axes` and only so the lengths agree."""
    if axes is None or len(u.shape) != 2:
        return u
    n_samples = x.shape[0]
    is_transposed = u.shape[0] != n_samples and u.shape[1] == n_samples
    return np.ascontiguousarray(u[:].T) if is_transposed else u


def along_axes(path: Path, x: ArrayLike, axes: str) -> np.ndarray:
    """Bring readouts into the order (samples, channels); averages become their mean."""
    names = [name.strip() for name in axes.split(",")]
    if names.count("samples") != 1 or not set(names) <= set(AXES):
        raise ParameterError(
            f"`axes={shown(axes)}` needs samples once, and otherwise channels and averages."
        )
    if len(names) != len(x.shape):
        raise DataError(
            f"x in {path} has shape {x.shape}, and `axes={shown(axes)}` names {len(names)} axes; "
            "name each."
        )
    values = np.asarray(x[:])
    averages = tuple(k for k, name in enumerate(names) if name == "averages")
    if averages:
        dtype = np.result_type(values, np.float64)
        values = values.mean(axis=averages, dtype=dtype, keepdims=True)
    values = np.moveaxis(values, names.index("samples"), 0)
    return np.ascontiguousarray(values.reshape(len(values), -1))


def _refuse_unequal_lengths(path: Path, u: ArrayLike, x: ArrayLike) -> None:
    """Refuse inputs and readouts of unequal lengths; say whether one lies on its side."""
    n_rows, n_inputs = u.shape
    n_readout_rows, n_readouts = x.shape
    if n_rows == n_readout_rows:
        return
    message = (
        f"u has shape {u.shape} and x has shape {x.shape} in {path}: unequal numbers of samples"
    )
    if n_readouts == n_rows:
        transposed = "x"
        axes = "channels,samples"
    elif n_inputs == n_readout_rows:
        transposed = "u"
        axes = "samples,channels"
    elif n_rows and n_readout_rows >= 2 * n_rows:
        raise DataError(
            f"{message}; give one row for each sample, or, of a trace of virtual nodes, "
            f"`rows_per_step={n_readout_rows // n_rows}`."
        )
    elif n_inputs == n_readouts:
        transposed = "both"
        axes = "channels,samples"
    else:
        raise DataError(f"{message}; give one row for each sample.")
    raise DataError(
        f"{message}; the lengths agree with {transposed} transposed: tell what the axes of x are, "
        f"`axes={shown(axes)}`."
    )


def _one_per_row(path: Path, name: str, values: Any, n_rows: int) -> Any:
    """Return a value for each row in one dimension; refuse other lengths."""
    if values is None:
        return None
    if values.size != n_rows or n_rows not in values.shape:
        raise DataError(
            f"{name} in {path} has shape {values.shape}; give one for each of {n_rows} rows."
        )
    return values.ravel()


def _refuse_unsorted(path: Path, index: Integers) -> None:
    """Refuse a design index that does not grow from row to row, for data read in blocks."""
    steps_back = np.flatnonzero(np.diff(index) <= 0)
    if len(steps_back):
        row = int(steps_back[0]) + 1
        raise DataError(
            f"design_index in {path} is {index[row]} at row {row}, after {index[row - 1]}; "
            "what is read in blocks must be sorted: read it whole, or write it so."
        )
