"""read: a recording from a file, from two or from several; the suffix decides how.

A recording takes these forms on its way: a file, which is opened once; an `ArrayFile` of named
arrays or a `Sheet` of columns; `RowsOfFile`, what of them is input, readout, index and time; and
the `Recording`. Files that infocap wrote, stores and files of added readers go to the `Recording`
at once.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..._files import ArrayFile, readable_path
from ..._validation import checks_arguments, require_boolean
from ...errors import DataError, ParameterError
from ...recording import Recording, fold_recording
from ...samples import TraceSteps
from ...typing import ArrayLike
from ..experiment import (
    SQLITE_MAGIC,
    is_sweep_folder,
    read_store,
    recording_of_store,
    sweep_status,
)
from ._arrange import to_recording
from ._cells import MissingWords
from ._folder import files_of, is_folder, rows_of_shots
from ._foreign_file import FORMATS, open_file, read_table_or_arrays, require_format, rows_of
from ._join import join
from ._names import NotInFileError
from ._options import ReadOptions
from ._pair import pair
from ._readers import find_reader, read_with, refuse_names, registered_suffixes
from ._saved_recording import load_saved_recording
from ._sheet import Sheet

STORES = (".db", ".sqlite")


@checks_arguments
def read(
    path: str | Path | Sequence[str | Path],
    readouts: str | Path | None = None,
    *,
    u: str | None = None,
    x: str | None = None,
    axes: str | None = None,
    channels: str | None = None,
    sheet: str | None = None,
    missing: str | Sequence[str] | None = None,
    rows_per_step: int | None = None,
    offset: int = 0,
    mask: ArrayLike | None = None,
    in_memory: bool = True,
) -> Recording:
    """Read a recording from a file, or from one of inputs and one of readouts.

    Formats: ``.nc`` (what `Recording.save` wrote comes back in full), ``.h5``, ``.hdf5``, ``.mat``,
    ``.zarr``, ``.npz``, ``.npy``, ``.csv``, ``.txt``, ``.tsv``, ``.dat``, ``.lvm``, ``.asc``,
    ``.tab``, ``.prn``, ``.json``, ``.itx``, with the extra ``files`` also ``.xlsx``, ``.xlsm``,
    ``.parquet``, ``.feather`` and ``.tdms``; tables compressed as ``.gz``, ``.bz2``, ``.xz`` or
    ``.zip``; and the store of an acquisition, ``.db``. Arrays keep their type; text becomes
    float64. No pickle is ever loaded. Readers of other formats can be added (see Notes).

    Parameters
    ----------
    path
        A file, or a list of files that together are one recording: their rows in the order given,
        or sorted by design index where no index comes twice. They must agree in inputs, channels
        and units. Of a list of two files the second may hold the readouts to the inputs in the
        first. A folder holds one file per sample, with inputs that are the same throughout each
        file, or in its name.
    readouts
        A second file with the readouts, when the first holds only the inputs; or a folder with one
        file per sample, in the order of the numbers in their names, or as a column of names in the
        first file says.
    u, x
        Names of the inputs and of the readouts in other people's files: a variable
        (``"run1/spectra"``, ``"data.u"``), or several, or columns of a table, with commas between
        or by a pattern (``"u*"``). Without them ``u``, ``inputs``, columns ``u1``, ``u2``, ..., and
        ``x``, ``readouts``, ``outputs`` are looked for. ``u="name:scan_{n}_{u}mT"`` takes the
        input from the names of files, one per sample, and ``{n}`` as their number.
    axes
        What the axes of the readouts are, where they are not ``"samples,channels"``:
        ``"channels,samples"``, or ``"samples,averages,channels"``, of which the mean over the
        averages is taken.
    channels
        The column that says which channel a row is of, where a sample has a row for each channel:
        ``"Frequency"`` of a spectrum, or ``"channel"`` of a table of shot, channel and value.
    sheet
        The sheet of a workbook; several, with commas between, are put side by side. Without it the
        first that holds numbers is read.
    missing
        What stands for a missing value, with commas between, as ``"OVERFLOW,--,-999"``. Usual words
        such as these are known, and said.
    rows_per_step, offset, mask
        Of a time-multiplexed trace: for how many rows each input is held, the rows before the first
        step, and the factors by which recorded inputs were multiplied within each step, as for
        `fold_trace`. The inputs may have one row for each row of the trace, or one for each step.
        Each of several files is a trace of its own.
    in_memory
        False leaves inputs and readouts in their file, for `estimate` to read in blocks: HDF5,
        NetCDF4, zarr and NumPy files; others, and complex or packed numbers, are read whole all the
        same.

    Returns
    -------
    Recording
        Its ``metadata["read_from"]`` tells what became what, and what was left out.

    Raises
    ------
    DataError
        Where a file is damaged, or what is looked for is not in it; the message says what the file
        holds.
    ParameterError
        Where the suffix of a file is not known.

    Notes
    -----
    A variable or column ``design_index`` (or ``index``) is the number of the row in the design, by
    which rows are sorted; the second time it appears the row is a repeat, -1 marks measurements at
    a constant input, -2 drift references. ``time`` tells when the row was measured.

    A reader of another format is a function from a path to a `Recording`. A script adds it by one
    line::

        infocap.lab.READERS[".sif"] = read_sif

    A package adds it for all who install it, by an entry point of the group ``infocap.readers``,
    whose name is the suffix; in its ``pyproject.toml``::

        [project.entry-points."infocap.readers"]
        ".sif" = "my_package:read_sif"

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/lab.npz", volts=np.zeros((4, 2)), spectra=np.ones((4, 3)))
    ...     read(f"{folder}/lab.npz", u="volts", x="spectra")
    Recording: 4 samples, 2 inputs, 3 readouts
    """
    options = ReadOptions(
        u=u,
        x=x,
        axes=axes,
        channels=channels,
        sheet=sheet,
        missing=MissingWords.of(_words(missing)),
        in_memory=require_boolean("in_memory", in_memory),
        steps=TraceSteps.wanted(rows_per_step, offset, mask),
    )
    if isinstance(path, str | os.PathLike):
        if readouts is None:
            return _read_one(Path(path), options)
        return _read_pair(Path(path), Path(readouts), options)
    if readouts is not None:
        raise ParameterError(
            f"readouts={str(readouts)!r} goes with one file of inputs, not with a list; "
            "give files that hold both, `infocap import` makes them."
        )
    paths = [Path(file) for file in path]
    if _are_shots(paths, options):
        rows = rows_of_shots(paths[0].parent, paths, options, read_table_or_arrays)
        return to_recording(rows, options.steps)
    if len(paths) == 2:
        return _read_two(paths[0], paths[1], options)
    return join(paths, [_read_one(file, options) for file in paths])


def _are_shots(paths: list[Path], options: ReadOptions) -> bool:
    """Return whether each file of a list is one sample.

    Of two files the second may be a long table of readouts, whose channels are named.
    """
    if any(map(is_folder, paths)):
        return False
    if options.inputs_in_names:
        return len(paths) > 1
    return len(paths) > 2 and options.channels is not None


def _words(missing: str | Sequence[str] | None) -> Sequence[str]:
    if missing is None:
        return ()
    return missing.split(",") if isinstance(missing, str) else missing


def _read_one(path: Path, options: ReadOptions) -> Recording:
    """Read a file that holds inputs and readouts, or a folder with a file for each sample."""
    if is_sweep_folder(path):
        n_settings = len(sweep_status(path, capacities=False).settings)
        raise DataError(
            f"{path} holds a sweep of {n_settings} settings; `infocap sweep` or "
            "lab.estimate_sweep estimates all of them, or give one of the stores in the folder."
        )
    if is_folder(path) and path.suffix.lower() not in FORMATS:
        rows = rows_of_shots(path, files_of(path), options, read_table_or_arrays)
        return to_recording(rows, options.steps)
    recording = _read_self_describing(path, options)
    if recording is not None:
        return recording
    with open_file(path, options) as file:
        if isinstance(file, ArrayFile) and path.suffix.lower() == ".npy":
            raise ParameterError(
                f"path={str(path)!r} holds a single array; give two files, inputs and readouts: "
                "read('inputs.npy', 'readouts.npy')."
            )
        return _recording_of(file, options)


def _read_pair(path: Path, readouts: Path, options: ReadOptions) -> Recording:
    """Read inputs from one file and readouts from another, or from a folder."""
    require_format(path, FORMATS)
    with open_file(path, options) as file:
        return pair(file, readouts, options)


def _read_two(path: Path, other: Path, options: ReadOptions) -> Recording:
    """Read two files that both hold inputs and readouts, or one of inputs and one of readouts."""
    if is_folder(path) and not is_folder(other):
        raise ParameterError(
            f"{path} is a folder; give the table of inputs first, then the folder of readouts."
        )
    recording = _read_self_describing(path, options)
    if recording is None:
        with open_file(path, options) as file:
            if not is_folder(other):
                with suppress(NotInFileError):
                    recording = _recording_of(file, options)
            if recording is None:
                return pair(file, other, options)
    return join([path, other], [recording, _read_one(other, options)])


def _read_self_describing(path: Path, options: ReadOptions) -> Recording | None:
    """Read a store, or a file of an added reader; return None for a file that `open_file` opens."""
    if path.exists() and not path.is_dir() and not path.is_file():
        readable_path(path)  # refuses pipes and devices
    suffix = path.suffix.lower()
    reader = find_reader(suffix, (*FORMATS, *STORES))
    if reader is not None:
        return _folded(read_with(reader, path, options), options)
    is_store = suffix in STORES or _is_store(path)
    if suffix in FORMATS and not is_store:
        return None
    if not is_store:
        require_format(path, (*FORMATS, *STORES, *registered_suffixes()))
    recording = recording_of_store(read_store(path), path)
    refuse_names(path, recording, options)
    return _folded(recording, options)


def _is_store(path: Path) -> bool:
    """Return whether a file of another name is a store, such as a copy of one."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    return False


def _recording_of(file: ArrayFile | Sheet, options: ReadOptions) -> Recording:
    """Read inputs and readouts from an open file, which infocap or another program wrote."""
    if isinstance(file, ArrayFile) and options.names_nothing:
        recording = load_saved_recording(file, options.in_memory)
        if recording is not None:
            return _folded(recording, options)
    return to_recording(rows_of(file, options), options.steps)


def _folded(recording: Recording, options: ReadOptions) -> Recording:
    """Return a recording with one row for each step, where the user says that it is a trace."""
    return recording if options.steps is None else fold_recording(recording, options.steps)
