"""read: a recording from a file, from one of inputs and one of readouts, or from several; the suffix decides how."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._check import one_of, yes_or_no
from ..errors import DataError, ParameterError
from ..typing import ArrayLike
from ._array_files import OPENERS
from ._own_file import load_own
from ._recording import Recording, Rows, arrange, table
from ._salvage import MAGIC
from ._several import join
from ._store import load_store
from ._text_table import table_rows
from ._variables import rows_of

TEXTS = (".csv", ".txt", ".tsv", ".dat")
STORES = (".db", ".sqlite")


def read(
    path: str | Path | Sequence[str | Path],
    readouts: str | Path | None = None,
    *,
    u: str | None = None,
    x: str | None = None,
    in_memory: bool = True,
) -> Recording:
    """Read a recording from a file, or from two: the first with the inputs, the second with the readouts.

    Formats: ``.nc`` (what `Recording.save` wrote comes back in full), ``.h5``, ``.hdf5``, ``.mat``, ``.zarr``,
    ``.npz``, ``.npy``, ``.csv``, ``.txt``, ``.tsv``, ``.dat``, and the store of an acquisition, ``.db``. Arrays keep
    their type; text becomes float64. No pickle is ever loaded.

    Parameters
    ----------
    path
        A file, or a list of files that together are one recording: their rows in the order given, or sorted by design
        index where no index comes twice. They must agree in inputs, channels and units.
    readouts
        A second file with the readouts, when the first holds only the inputs.
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
    in_memory = yes_or_no("in_memory", in_memory)
    if isinstance(path, str | os.PathLike):
        return _read_one(Path(path), None if readouts is None else Path(readouts), u, x, in_memory)
    paths = [Path(one) for one in path]
    if readouts is not None:
        raise ParameterError(
            f"readouts={str(readouts)!r} goes with one file of inputs, not with a list; give files that hold both, "
            "`infocap import` makes them."
        )
    return join(paths, [_read_one(one, None, u, x, in_memory) for one in paths])


def _read_one(path: Path, readouts: Path | None, u: str | None, x: str | None, in_memory: bool) -> Recording:
    suffix = path.suffix.lower()
    if readouts is None and (suffix in STORES or _is_store(path)):
        return load_store(path, in_memory)
    one_of("path suffix", suffix, (*OPENERS, *TEXTS, *STORES))
    if readouts is not None:
        return _read_two(path, readouts, u, x, in_memory)
    if suffix == ".npy":
        raise ParameterError(
            f"path={str(path)!r} holds a single array; give two files, inputs and readouts: "
            "read('inputs.npy', 'readouts.npy')."
        )
    if suffix in TEXTS:
        return arrange(table_rows(path, u, x, "ux"))
    with OPENERS[suffix](path) as contents:
        own = load_own(contents, in_memory) if u is None and x is None else None
        return own or arrange(rows_of(contents, u, x, "ux", in_memory))


def _is_store(path: Path) -> bool:
    """Whether a file is a database, whatever its name."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def _read_two(path: Path, other: Path, u: str | None, x: str | None, in_memory: bool) -> Recording:
    """Read inputs from one file and readouts from another, with what each tells beside them."""
    given, measured = _half(path, "u", u, in_memory), _half(other, "x", x, in_memory)
    inputs, readouts = table(path, "u", given.u), table(other, "x", measured.x)
    n = inputs.shape[0]
    checks: tuple[str, ...] = ()
    cut = given.index is not None and readouts.shape[0] < n != readouts.shape[1]
    if not in_memory and (cut or measured.u is not None):
        return _read_two(path, other, u, x, True)  # rows are left out, or the inputs of both files compared
    if cut:
        said = (
            f"the acquisition stopped early: {len(readouts)} of {n} measurements are there, taken for the first in "
            "the order of acquisition"
        )
        if measured.index is None and measured.u is None:
            said += (
                "; if instead a row was lost in between, all after it belong to other inputs: write the index along "
                "with the readouts"
            )
        checks, n = (f"{said}.",), len(readouts)
        inputs = inputs[:n]
    index = None if given.index is None else given.index.ravel()[:n]
    acquired = measured.acquired if measured.acquired is not None else given.acquired
    _refuse_shifted(path, other, "index", index, measured.index)
    _refuse_shifted(path, other, "u", inputs, measured.u)
    rows = replace(measured, u=inputs, x=readouts, metadata=given.metadata, checks=checks)
    rows.index = measured.index if index is None else index
    rows.acquired = None if acquired is None else acquired.ravel()[:n]
    plan = given.metadata.get("plan")
    if isinstance(plan, dict):
        rows.input_unit, rows.readout_unit = (
            str(plan.get(f"{one}_unit", "")) for one in ("input", "readout")
        )
        planned = plan.get("channel")
        if not rows.channel and isinstance(planned, list) and len(planned) == readouts.shape[1]:
            rows.channel = tuple(map(str, planned))
    return arrange(rows)


def _half(path: Path, role: str, name: str | None, in_memory: bool) -> Rows:
    """Read inputs or readouts alone, with the index and times beside them."""
    suffix = path.suffix.lower()
    one_of("path suffix" if role == "u" else "readouts suffix", suffix, (*OPENERS, *TEXTS))
    u, x = (name, None) if role == "u" else (None, name)
    if suffix in TEXTS:
        return table_rows(path, u, x, role)
    with OPENERS[suffix](path) as contents:
        return rows_of(contents, u, x, role, in_memory)


def _refuse_shifted(path: Path, other: Path, name: str, ours: ArrayLike, theirs: ArrayLike) -> None:
    """Refuse files that disagree in any row of what both tell: the readouts belong to other inputs."""
    if ours is None or theirs is None:
        return
    theirs = theirs.ravel() if ours.ndim == 1 else theirs
    if theirs.shape != ours.shape:
        raise DataError(
            f"{name} has shape {ours.shape} in {path} and {theirs.shape} in {other}; they must be the same."
        )
    close = np.isclose(ours, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
    differs = ~close.reshape(len(ours), -1).all(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"{name} is {ours[row]} in {path} and {theirs[row]} in {other} at row {row + 1}, the first of "
            f"{differs.sum()} that differ: the readouts are shifted or of another run."
        )
