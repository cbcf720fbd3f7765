"""Rows in the order of acquisition, sorted into a recording: samples, repeats, noise and references."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..typing import Floats, Integers
from ._layout import whole_numbers
from ._recording import Recording
from ._schedule_names import NOISE, REFERENCE


@dataclass
class Rows:
    """What a file holds, one row a measurement; what it does not hold is None."""

    path: Path
    u: Floats | None = None
    x: Floats | None = None
    index: Integers | None = None
    acquired: Floats | None = None
    channel: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    own: dict[str, Any] | None = None  # the words of a recording of ours


def arrange(rows: Rows) -> Recording:
    """A recording in design order; without an index, in the order of the rows."""
    u, x = table(rows.path, "u", rows.u), table(rows.path, "x", rows.x)
    refuse_unequal(rows.path, u, x)
    n = len(u)
    acquired = None if rows.acquired is None else _one_a_row(rows.path, "acquired", rows.acquired, n)
    told: dict[str, Any] = {"channel": rows.channel, "metadata": rows.metadata, "checks": rows.checks}
    if rows.index is None:
        return Recording(u, x, np.arange(n), acquired=acquired, **told)
    index = whole_numbers(rows.path, _one_a_row(rows.path, "index", rows.index, n))
    first, second = _appearances(rows.path, index)
    _refuse_moved(rows.path, index, u, first, second)
    when = np.arange(n, dtype=float) if acquired is None else acquired
    noise, reference = index == NOISE, index == REFERENCE
    return Recording(
        u[first],
        x[first],
        index[first],
        acquired=when[first],
        repeats=None if (second < 0).all() else _again(x, second),
        noise=x[noise] if noise.any() else None,
        reference=x[reference] if reference.any() else None,
        reference_acquired=when[reference] if reference.any() else None,
        **told,
    )


def table(path: Path, name: str, values: Floats | None) -> Floats:
    """Two dimensions, (samples, columns); inputs in one dimension are a single input."""
    if values is None:
        raise DataError(
            f"{path} has no {name}; name the variable by {name}=... (--{name} on the command line)."
        )
    if name == "u" and values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or 0 in values.shape:
        what = "is empty: its shape is" if 0 in values.shape else "has shape"
        raise DataError(f"{name} in {path} {what} {values.shape}; give two dimensions, (samples, channels).")
    return values


def refuse_unequal(path: Path, u: Floats, x: Floats) -> None:
    """An error that tells both shapes, and the transpose when that fits; nothing is turned silently."""
    if len(u) != len(x):
        flip = "x" if x.shape[1] == len(u) else "u" if u.shape[1] == len(x) else None
        hint = (
            f"the lengths agree with {flip} transposed, {flip}.T (MATLAB: {flip}.'): write it so"
            if flip
            else "give one row for each sample"
        )
        raise DataError(
            f"u has shape {u.shape} and x has shape {x.shape} in {path}: unequal numbers of samples; {hint}."
        )


def _appearances(path: Path, index: Integers) -> tuple[Integers, Integers]:
    """For each point of the design in its order: the rows of its first and its second measurement, or -1."""
    if index.min() < REFERENCE:
        row = int(np.argmax(index < REFERENCE))
        raise DataError(
            f"index in {path} is {index[row]} in row {row + 1}; it is the number of a point of the design, {NOISE} for "
            f"noise repeats or {REFERENCE} for references."
        )
    samples = np.flatnonzero(index >= 0)
    if not len(samples):
        raise DataError(
            f"{path} has no row of the design, only noise repeats and references; nothing to estimate."
        )
    order = samples[np.argsort(index[samples], kind="stable")]
    points, start, count = np.unique(index[order], return_index=True, return_counts=True)
    if count.max() > 2:
        many = int(np.argmax(count > 2))
        raise DataError(
            f"index in {path} has {points[many]} {count[many]} times; a point of the design is measured once or twice: "
            "keep two of its rows, or give them another index."
        )
    second = np.full(len(points), -1)
    second[count == 2] = order[start[count == 2] + 1]
    return order[start], second


def _refuse_moved(path: Path, index: Integers, u: Floats, first: Integers, second: Integers) -> None:
    """A repeat is at the input of its sample, or the file is not what it says."""
    twice = second >= 0
    moved = (u[first[twice]] != u[second[twice]]) & ~np.isnan(u[second[twice]])
    if moved.any():
        row = int(second[twice][np.argmax(moved.any(axis=1))])
        raise DataError(
            f"u in {path} differs between the two rows of index {index[row]}, the second of them row {row + 1}; a "
            "repeat is measured at the same input."
        )


def _again(x: Floats, second: Integers) -> Floats:
    """The second measurements, with NaN where there is none."""
    out = np.full((len(second), x.shape[1]), np.nan, dtype=np.result_type(x.dtype, np.float32))
    out[second >= 0] = x[second[second >= 0]]
    return out


def _one_a_row(path: Path, name: str, values: Floats, n_rows: int) -> Floats:
    if values.size != n_rows or max(values.shape, default=0) != n_rows:
        raise DataError(
            f"{name} in {path} has shape {values.shape}; give one value for each of {n_rows} rows."
        )
    return values.ravel()
