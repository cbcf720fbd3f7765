"""read: a recording from a file, or from one of inputs and one of readouts; the suffix decides how."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from .._check import one_of, yes_or_no
from .._files import Contents, open_hdf5
from ..errors import DataError, ParameterError
from ..typing import ArrayLike
from ._csv_file import csv_rows
from ._hdf5_file import load_own, refuse_other
from ._in_place import read_in_place
from ._layout import FORMAT
from ._mat_file import load_own_mat, open_mat
from ._numpy_file import open_npy, open_npz
from ._own_csv import restore
from ._recording import Recording
from ._rows import Rows, arrange, table
from ._store_file import load_store
from ._store_rows import store_in_place
from ._variables import rows_of
from ._zarr_file import load_own_zarr, open_zarr

TEXTS = (".csv", ".txt", ".tsv", ".dat")
ARRAYS: dict[str, Callable[[Path], AbstractContextManager[Contents]]] = {
    ".nc": partial(open_hdf5, kind="NetCDF"),
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".mat": open_mat,
    ".npz": open_npz,
    ".npy": open_npy,
    ".zarr": open_zarr,
}
STORES = (".db", ".sqlite")
SQLITE = b"SQLite format 3\0"
UNKNOWN_ROWS = (
    "; if instead a row was lost in between, all after it belong to other inputs: "
    "write the index along with the readouts"
)


def read(
    path: str | Path,
    readouts: str | Path | None = None,
    *,
    u: str | None = None,
    x: str | None = None,
    in_memory: bool = True,
) -> Recording:
    """Read a recording from a file, or from two: the first with the inputs, the second with the readouts.

    Formats: ``.nc``, ``.h5``, ``.hdf5``, ``.mat``, ``.csv``, ``.zarr`` (what `Recording.save` wrote comes back in
    full), ``.npz``, ``.npy``, ``.txt``, ``.tsv``, ``.dat``, and the store of an acquisition, ``.db``. Arrays keep their
    type; text becomes float64. No pickle is ever loaded.

    Parameters
    ----------
    u, x
        Names of the inputs and of the readouts in a file of somebody else's: a variable (``"run1/spectra"``,
        ``"data.u"``), or several, or columns of a table, with commas between or by a pattern (``"u*"``). Without
        them ``u``, ``inputs``, columns ``u1``, ``u2``, ..., and ``x``, ``readouts``, ``outputs`` are looked for.
    in_memory
        False leaves inputs and readouts in their file, for `estimate` to read in blocks: HDF5, NetCDF4, zarr, NumPy
        files and stores; others, and complex or packed numbers, are read whole all the same.

    Notes
    -----
    A variable or column ``index`` is the number of the row in the design, by which rows are sorted; the second time
    it appears the row is a repeat, -1 marks measurements at a constant input, -2 drift references. ``acquired`` or
    ``time`` tells when the row was measured.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/lab.npz", volts=np.zeros((4, 2)), spectra=np.ones((4, 3)))
    ...     read(f"{folder}/lab.npz", u="volts", x="spectra")
    Recording: 4 samples, 2 inputs, 3 readouts
    """
    path = Path(path)
    if readouts is None and (path.suffix.lower() in STORES or _is_store(path)):
        return load_store(path) if yes_or_no("in_memory", in_memory) else store_in_place(path)
    one_of("path suffix", path.suffix.lower(), (*ARRAYS, *TEXTS, *STORES))
    if not yes_or_no("in_memory", in_memory):
        found = read_in_place(path, None if readouts is None else Path(readouts), u, x)
        if found is not None:
            return found
    if readouts is not None:
        return _read_two(path, Path(readouts), u, x)
    if path.suffix.lower() == ".npy":
        raise ParameterError(
            f"path={str(path)!r} holds a single array; give two files, inputs and readouts: "
            "read('inputs.npy', 'readouts.npy')."
        )
    if path.suffix.lower() in TEXTS:
        rows = csv_rows(path, u, x)
        return arrange(rows) if rows.own is None else restore(rows, rows.own)
    with _open(path) as contents:
        own = _own(contents) if u is None and x is None else None
        return own or arrange(rows_of(contents, u, x))


def _open(path: Path) -> AbstractContextManager[Contents]:
    return ARRAYS[path.suffix.lower()](path)


def _own(contents: Contents) -> Recording | None:
    """What `Recording.save` wrote, in full; None for files of others."""
    refuse_other(contents)
    if contents.kind == "MATLAB":
        return load_own_mat(contents)
    if contents.attributes.get("format") == FORMAT:
        return load_own_zarr(contents) if contents.kind == "zarr" else load_own(contents)
    return None


def _is_store(path: Path) -> bool:
    """Whether a file is a database, whatever its name."""
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _read_two(path: Path, other: Path, u: str | None, x: str | None) -> Recording:
    one_of("readouts suffix", other.suffix.lower(), (*ARRAYS, *TEXTS))
    one_of("path suffix", path.suffix.lower(), (*ARRAYS, *TEXTS))
    given, measured = _part(path, u, "u"), _part(other, x, "x")
    inputs, readouts = table(path, "u", given.u), table(other, "x", measured.x)
    checks: tuple[str, ...] = ()
    if given.index is not None and len(readouts) != len(inputs):
        known = measured.index is not None or measured.u is not None
        checks = (_stopped_early(path, other, inputs, readouts, known),)
    n = len(readouts) if checks else len(inputs)
    index = None if given.index is None else given.index.ravel()[:n]
    acquired = measured.acquired if measured.acquired is not None else given.acquired
    _refuse_shifted(path, other, "index", index, measured.index)
    _refuse_shifted(path, other, "u", inputs[:n], measured.u)
    found = arrange(
        Rows(
            other,
            inputs[:n],
            readouts,
            measured.index if index is None else index,
            None if acquired is None else acquired.ravel()[:n],
            measured.channel,
            given.metadata,
            checks,
        )
    )
    return _as_planned(found)


def _as_planned(recording: Recording) -> Recording:
    """With the units and names of the plan, where the files tell none."""
    plan = recording.metadata.get("plan")
    if not isinstance(plan, dict):
        return recording
    planned = plan.get("channel")
    names = tuple(map(str, planned)) if isinstance(planned, list) else ()
    fits = not recording.channel and len(names) == recording.readouts.shape[1]
    return replace(
        recording,
        input_unit=str(plan.get("input_unit", "")),
        readout_unit=str(plan.get("readout_unit", "")),
        channel=names if fits else recording.channel,
    )


def _part(path: Path, name: str | None, role: str) -> Rows:
    """Inputs or readouts alone, with the index and times beside them."""
    names = {"u": name} if role == "u" else {"x": name}
    u, x = names.get("u"), names.get("x")
    if path.suffix.lower() in TEXTS:
        return csv_rows(path, u, x, role)
    with _open(path) as contents:
        return rows_of(contents, u, x, role)


def _stopped_early(path: Path, other: Path, inputs: ArrayLike, readouts: ArrayLike, known: bool) -> str:
    """What to say when only the first measurements of a design were made; more than all is an error."""
    if readouts.shape[1] == len(inputs):
        raise DataError(
            f"x in {other} has shape {readouts.shape} for {len(inputs)} inputs; the lengths agree with x transposed, "
            "x.T (MATLAB: x.'): write it so."
        )
    if len(readouts) > len(inputs):
        raise DataError(
            f"{other} has {len(readouts)} rows for {len(inputs)} inputs in {path}; give one for each, in their order."
        )
    return (
        f"the acquisition stopped early: {len(readouts)} of {len(inputs)} measurements are there, taken for the "
        f"first in the order of acquisition{'' if known else UNKNOWN_ROWS}."
    )


def _refuse_shifted(path: Path, other: Path, name: str, ours: ArrayLike, theirs: ArrayLike) -> None:
    """What both files tell must agree row by row, or the readouts belong to other inputs."""
    if ours is None or theirs is None:
        return
    theirs = theirs.ravel() if ours.ndim == 1 else theirs
    if theirs.shape != ours.shape:
        raise DataError(
            f"{name} has shape {ours.shape} in {path} and {theirs.shape} in {other}; they must be the same."
        )
    differs = ~np.isclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True).reshape(len(ours), -1).all(
        axis=1
    )
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {ours[row]} in {path} and {theirs[row]} in {other} at row {row + 1}, the first of "
            f"{differs.sum()} that differ: the readouts are shifted or of another run."
        )
