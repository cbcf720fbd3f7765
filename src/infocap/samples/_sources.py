"""Rows in files: read without loading the whole, and sent to other processes as a file's name.

A *source* is anything with a shape and slices of rows. The classes here are sources for memory maps
and HDF5 data sets; `_dask` has that for dask arrays. Arrays of zarr and xarray are sources already.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, ParameterError
from ._dask import DaskRows, is_labelled


class FileRows:
    """The rows of a memory-mapped array, read by plain file reads.

    Pages of a mapping count as memory of the process for as long as the system likes; what is read
    does not. And a mapping that is sent to another process becomes a copy, a file's name does not.
    """

    def __init__(
        self, path: str, offset: int, dtype: np.dtype[Any], shape: tuple[int, int]
    ) -> None:
        self.path = path
        self.offset = offset
        self.dtype = dtype
        self.shape = shape

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        n_columns = self.shape[1]
        offset = self.offset + start * n_columns * self.dtype.itemsize
        count = max(stop - start, 0) * n_columns
        try:
            values = np.fromfile(self.path, self.dtype, count, offset=offset)
        except OSError as error:
            raise _cannot_be_read(self.path, error) from None
        if len(values) < count:
            raise DataError(
                f"{self.path} is cut short: from row {start} it has {len(values):,} of {count:,} "
                "values; copy the file again."
            )
        return values.reshape(-1, n_columns)


class Hdf5Rows:
    """The rows of an HDF5 data set, by file and name; the file is opened when first read."""

    def __init__(self, path: str, name: str, shape: tuple[int, ...]) -> None:
        self.path = path
        self.name = name
        self.shape = shape

    def __getitem__(self, rows: slice) -> Any:
        try:
            return self._dataset[rows]
        except OSError as error:  # The chunk is damaged, or the disk is gone.
            raise _cannot_be_read(self.path, error) from None

    @property
    def chunks(self) -> Any:
        """Shape of the file's chunks; None where the data set is contiguous."""
        return self._dataset.chunks

    @cached_property
    def _dataset(self) -> Any:
        import h5py

        try:
            return h5py.File(self.path, "r")[self.name]
        except (OSError, KeyError) as error:
            raise _cannot_be_read(self.path, error) from None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open file, which another process must open for itself."""
        return {name: value for name, value in vars(self).items() if name != "_dataset"}


class LabelledRows:
    """Rows with names of their columns, for sources that have none."""

    def __init__(self, source: Any, columns: Sequence[str]) -> None:
        self.source = source
        self.columns = list(columns)
        self.shape = source.shape

    def __getitem__(self, rows: slice) -> Any:
        return self.source[rows]


class FoldedRows:
    """Rows of which each is several rows of a source, one after the other; nothing is read ahead.

    Parameters
    ----------
    source
        Anything with a shape and slices of rows.
    rows_per_step
        Rows of the source in one row.
    offset
        Rows of the source before the first of them.
    n_steps
        Number of rows.
    """

    def __init__(self, source: Any, rows_per_step: int, offset: int, n_steps: int) -> None:
        self.source = read_in_place(source)
        self.rows_per_step = rows_per_step
        self.offset = offset
        n_channels = int(np.prod(source.shape[1:]))
        self.shape = (n_steps, rows_per_step * n_channels)

    @property
    def dtype(self) -> Any:
        """The type of the source's numbers; None where it does not tell."""
        return getattr(self.source, "dtype", None)

    @property
    def chunks(self) -> Any:
        """Shape of the file's chunks in these rows; None where the source has none."""
        chunks = getattr(self.source, "chunks", None)
        if not chunks:
            return None
        rows_of_chunk = chunks[0]
        if isinstance(rows_of_chunk, tuple | list):
            rows_of_chunk = max(rows_of_chunk)
        return (-(-int(rows_of_chunk) // self.rows_per_step), self.shape[1])

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        stop = max(stop, start)
        first = self.offset + start * self.rows_per_step
        last = self.offset + stop * self.rows_per_step
        block = self.source[first:last]
        if not isinstance(block, np.ma.MaskedArray):
            block = np.asarray(block)
        return block.reshape(stop - start, self.shape[1])

    @property
    def ndim(self) -> int:
        """Two: rows and columns."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self[:], dtype=dtype)

    def over(self, source: Any) -> FoldedRows:
        """Return the same rows of another form of the source."""
        return FoldedRows(source, self.rows_per_step, self.offset, self.shape[0])


def read_in_place(source: Any) -> Any:
    """Return the form of a source that is read: memory maps as files, labels taken off."""
    if isinstance(source, LabelledRows):
        source = source.source
    if is_labelled(source):
        if source.chunks is not None:
            return source.data  # a dask array
        if isinstance(source.variable._data, np.ndarray):
            source = source.data
    if isinstance(source, np.memmap):
        return _as_file_rows(source) or source
    return source


def sent_as_name(source: Any) -> Any | None:
    """Return the form in which a source is sent to other processes.

    None means that its rows themselves have to be sent.
    """
    if isinstance(source, FileRows | Hdf5Rows | DaskRows) or hasattr(source, "sent_by_name"):
        return source
    if isinstance(source, FoldedRows):
        named = sent_as_name(source.source)
        return None if named is None else source.over(named)
    library = type(source).__module__.split(".")[0]
    if library == "h5py":
        return _as_hdf5_rows(source)
    if library == "zarr":
        is_in_memory = type(source.store).__name__ == "MemoryStore"
        return None if is_in_memory else source
    if library == "dask":
        return DaskRows(source)
    if library == "xarray":
        return source  # a lazy array, whose file is opened again by the other process
    return None


def in_memory(source: Any) -> bool:
    """Return whether rows are in memory, so that reading them ahead would gain nothing."""
    return isinstance(source, np.ndarray) or is_of_pandas(source)


def is_of_pandas(source: Any) -> bool:
    """Return whether a source is a table or a column of pandas."""
    return type(source).__module__.split(".")[0] == "pandas"


def _as_file_rows(array: np.memmap) -> FileRows | None:
    """Return the same rows by file name and offset; None where the file does not have them all.

    That is so for a private copy (mode "c"), for other than contiguous rows, and where another file
    has the name by now.
    """
    mapping = getattr(array, "_mmap", None)
    if mapping is None or array.filename is None or array.mode == "c" or not array.size:
        return None
    if array.ndim != 2 or array.strides != (array.shape[1] * array.itemsize, array.itemsize):
        return None
    if array.mode != "r":
        array.flush()

    # Where the array begins in the mapping, and the mapping in the file.
    mapping_address = np.frombuffer(mapping, np.uint8).ctypes.data
    begin_of_mapping = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    offset = begin_of_mapping + array.ctypes.data - mapping_address
    path = str(Path(array.filename).resolve())
    if not os.path.isfile(path) or offset + array.nbytes > os.path.getsize(path):
        return None
    rows = FileRows(path, offset, array.dtype, array.shape)
    for end in (slice(0, 1), slice(len(array) - 1, len(array))):
        if rows[end].tobytes() != array[end].tobytes():
            return None
    return rows


def _as_hdf5_rows(dataset: Any) -> Hdf5Rows | None:
    """Return a data set of h5py by file and name; None where it has no file."""
    file = dataset.file
    if not os.path.isfile(file.filename):
        return None
    if file.mode != "r":
        raise ParameterError(
            f"{dataset.name} lies in {file.filename}, which is open for writing, so no other "
            "process can read it; close the file and open it with h5py.File(path, 'r')."
        )
    return Hdf5Rows(os.path.abspath(file.filename), dataset.name, dataset.shape)


def _cannot_be_read(path: str, error: Exception) -> DataError:
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())
    return DataError(
        f"{path} cannot be read here ({reason}); every process must see it: put it on a shared "
        "disk."
    )
