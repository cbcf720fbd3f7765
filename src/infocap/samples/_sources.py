"""Rows of numbers that lie in files, on a cluster or in memory: read where they are, sent cheaply elsewhere."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, ParameterError


class FileRows:
    """The rows of a memory-mapped array, read by plain file reads.

    Pages of a mapping count as memory of the process for as long as the system likes; what is read does not. And
    a mapping that is sent to another process becomes a copy, a file's name does not.
    """

    def __init__(
        self, path: str, offset: int, dtype: np.dtype[Any], shape: tuple[int, int]
    ) -> None:
        self.path, self.offset, self.dtype, self.shape = path, offset, dtype, shape

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(self.shape[0])
        row_bytes = self.shape[1] * self.dtype.itemsize
        count = max(stop - start, 0) * self.shape[1]
        try:
            values = np.fromfile(
                self.path, self.dtype, count, offset=self.offset + start * row_bytes
            )
        except OSError as problem:
            raise _unreachable(self.path, problem) from None
        if len(values) < count:
            raise DataError(
                f"{self.path} is cut short: from row {start} it has {len(values):,} of {count:,} values."
            )
        return values.reshape(-1, self.shape[1])


class Hdf5Rows:
    """The rows of an HDF5 data set, by file and name; opened when first read."""

    def __init__(self, path: str, name: str, shape: tuple[int, ...]) -> None:
        self.path, self.name, self.shape = path, name, shape

    def __getitem__(self, rows: slice) -> Any:
        try:
            return self._dataset[rows]
        except OSError as problem:  # a chunk that is damaged, or a disk that is gone
            raise _unreachable(self.path, problem) from None

    @property
    def chunks(self) -> Any:
        """How the file is cut into chunks; None where it is not."""
        return self._dataset.chunks

    @cached_property
    def _dataset(self) -> Any:
        import h5py

        try:
            return h5py.File(self.path, "r")[self.name]
        except (OSError, KeyError) as problem:
            raise _unreachable(self.path, problem) from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_dataset"}


class DaskRows:
    """The rows of a lazy dask array, computed by whoever reads them, in that thread."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.chunks = array, array.shape, array.chunks

    def __getitem__(self, rows: slice) -> Any:
        return self.array[rows].compute(scheduler="synchronous")


class Labelled:
    """Rows with names of their columns, for sources that have none."""

    def __init__(self, source: Any, columns: Sequence[str]) -> None:
        self.source, self.columns, self.shape = source, list(columns), source.shape

    def __getitem__(self, rows: slice) -> Any:
        return self.source[rows]


def read_in_place(source: Any) -> Any:
    """The form of a source that infocap reads: memory maps by file, labelled arrays by what they hold."""
    if isinstance(source, Labelled):
        source = source.source
    if is_labelled(source):
        if source.chunks is not None:
            return source.data
        if isinstance(source.variable._data, np.ndarray):
            source = source.data
    if isinstance(source, np.memmap):
        return _by_file(source) or source
    return source


def travelling(source: Any) -> Any | None:
    """The form in which a source is sent to other processes; None when its rows themselves have to travel."""
    if isinstance(source, FileRows | Hdf5Rows | DaskRows) or hasattr(source, "sent_by_name"):
        return source
    library = type(source).__module__.split(".")[0]
    if library == "h5py":
        return _hdf5(source)
    if library == "zarr":
        return None if type(source.store).__name__ == "MemoryStore" else source
    if library == "dask":
        return DaskRows(source)
    if library == "xarray":
        return source  # a lazy one; its file is opened again over there
    return None


def in_memory(source: Any) -> bool:
    """Whether a source's rows are in memory already, so that reading them ahead would bring nothing."""
    return isinstance(source, np.ndarray) or type(source).__module__.split(".")[0] == "pandas"


def is_dask(source: Any) -> bool:
    """Whether a source is a dask array, labelled or not."""
    if is_labelled(source):
        return source.chunks is not None
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "dask")


def is_labelled(source: Any) -> bool:
    """Whether a source is a DataArray of xarray."""
    return type(source).__module__.split(".")[0] == "xarray" and hasattr(source, "variable")


def _by_file(array: np.memmap) -> FileRows | None:
    """The same rows by file name and offset; None where the file cannot tell all (a private copy, odd strides)."""
    mapping = getattr(array, "_mmap", None)
    rows_together = array.ndim == 2 and array.strides == (
        array.shape[1] * array.itemsize,
        array.itemsize,
    )
    if (
        mapping is None
        or array.filename is None
        or array.mode == "c"
        or not rows_together
        or not array.size
    ):
        return None
    if array.mode != "r":
        array.flush()
    begin = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # of the mapping, in the file
    offset = begin + array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    rows = FileRows(str(Path(array.filename).resolve()), offset, array.dtype, array.shape)
    if not os.path.isfile(rows.path) or offset + array.nbytes > os.path.getsize(rows.path):
        return None
    ends = [slice(0, 1), slice(len(array) - 1, len(array))]
    same = all(rows[end].tobytes() == array[end].tobytes() for end in ends)
    return rows if same else None  # another file may have the name by now


def _hdf5(dataset: Any) -> Any | None:
    """A data set by file and name, if others can open its file."""
    file = dataset.file
    if not os.path.isfile(file.filename):
        return None
    if file.mode != "r":
        raise ParameterError(
            f"{dataset.name} lies in {file.filename}, which is open for writing, so no other process can read it; "
            "close the file and open it with h5py.File(path, 'r')."
        )
    return Hdf5Rows(os.path.abspath(file.filename), dataset.name, dataset.shape)


def _unreachable(path: str, problem: Exception) -> DataError:
    reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())
    return DataError(
        f"{path} cannot be read here ({reason}); every process must see it: put it on a shared disk."
    )
