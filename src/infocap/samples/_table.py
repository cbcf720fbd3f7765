"""Table: a two-dimensional source of numbers from anywhere, read in blocks of rows as float64."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from .._arrays import array_namespace, is_on_device, take_rows, to_library_of, to_numpy
from ..errors import DataError
from ..typing import ArrayLike, Floats, Integers
from ._dask import is_dask
from ._sources import in_memory, read_in_place, sent_as_name

# Rows that are read at a time where rows from all over a table are picked.
ROWS_PER_PICK = 4096
# The same in bytes, for rows of very many columns.
MAX_BYTES_PER_PICK = 64_000_000
# The kinds of NumPy types that are real numbers: float, signed, unsigned, Boolean.
REAL_KINDS = "fiub"
COMPLEX_KIND = "c"
# Kinds of cells that may be numbers: Python objects, and words that can be converted.
CONVERTIBLE_KINDS = "OUS"


@dataclass(frozen=True)
class MissingValues:
    """NaN and infinite values among some rows: how many, and the first of them in words."""

    count: int
    first: str


@dataclass(frozen=True, eq=False)
class RowNumbering:
    """Which rows of what the user passed the rows of a source are.

    A source may be several parts of what was passed, one after the other: the runs of a sequence
    without their washouts. Inside a part, rows are neighbours in both.
    """

    first_rows: Integers  # of the source, one for each part, ascending
    given_first_rows: Integers  # the same rows in what the user passed

    def given_rows(self, rows: Integers) -> Integers:
        """Return the numbers of rows of the source in what the user passed."""
        part = np.searchsorted(self.first_rows, rows, side="right") - 1
        return self.given_first_rows[part] + (rows - self.first_rows[part])

    def from_row(self, row: int) -> RowNumbering:
        """Return the numbering of a source that begins at this row."""
        return RowNumbering(self.first_rows - row, self.given_first_rows)


class Table:
    """A two-dimensional source of numbers with a name, read as float64 in blocks of rows.

    Only ``.shape`` and row slices of the source are used, so nothing larger than a block is loaded.
    Several threads may read; sources other than NumPy arrays are read by one thread at a time.
    Choosing rows (`slice_rows`, `select_rows`) reads nothing. A table can be pickled; a file is
    then sent as its name.

    Parameters
    ----------
    source
        NumPy, pandas, xarray, dask, h5py, zarr, torch, CuPy, JAX, or a list of lists.
    name
        What messages call the table.
    complex_as
        ``"abs2"`` to read complex numbers as |x|², ``"split"`` as real and imaginary parts; with
        None they are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from infocap.samples import Table
    >>> table = Table(np.arange(6).reshape(3, 2), "x")
    >>> table.read(1, 3)
    array([[2., 3.],
           [4., 5.]])
    """

    def __init__(self, source: ArrayLike, name: str, complex_as: str | None = None) -> None:
        if not hasattr(source, "shape") or not hasattr(source, "__getitem__"):
            source = as_array(source, name)
        if hasattr(source, "detach"):
            source = source.detach()  # A tensor of a model that could still be trained.
        _refuse_shape(tuple(source.shape), name)
        self.name = name
        self.source = source
        self.complex_as = complex_as
        self.on_device = is_on_device(source)
        self._lock = Lock()
        # Rows of the source in this table, in ascending order.
        self._rows: range | Integers = range(int(source.shape[0]))
        self._numbering = RowNumbering(np.array([0]), np.array([0]))

        first_row = to_numpy(self._slice(0, 1))
        self.column_names = self._column_names(first_row.dtype)
        self.shape = (
            len(self._rows),
            len(self.column_names),
        )  # as read, with complex columns split
        self.row_bytes = first_row.nbytes
        self.rounding = _relative_rounding(first_row.dtype)  # of the values as they came

        is_plain_array = type(source) is np.ndarray
        if not is_plain_array:
            self.source = read_in_place(source)
        self.in_memory = self.on_device or is_plain_array or in_memory(self.source)
        self._needs_conversion = not (
            is_plain_array and source.dtype == float and source.flags.c_contiguous
        )

    # Reading.

    def read(self, start: int, stop: int, on_host: bool = False) -> Any:
        """Return the rows `start` to `stop` as float64, shape (rows, columns).

        The array is of the source's own library, or of NumPy with `on_host`.
        """
        if isinstance(self._rows, range) and not self._needs_conversion:
            offset = self._rows.start
            return self.source[offset + start : offset + stop]
        first, last = self.source_range(start, stop)
        block = self._slice(first, last)
        if not isinstance(self._rows, range):
            rows = self._rows[start:stop] - first
            block = take_rows(block, to_library_of(rows, block)) if self.on_device else block[rows]
        block = self._convert(block, start)
        return to_numpy(block) if on_host else block

    def read_finite(self) -> Floats:
        """Return all rows; a NaN or infinite value is an error that names the first of them."""
        try:
            values = self.read(0, self.shape[0], on_host=True)
        except MemoryError as problem:
            raise DataError(
                f"{self.name} has shape {self.shape} and does not fit into memory ({problem}); "
                "give fewer rows or columns."
            ) from None
        missing = self.find_missing(values, 0)
        if missing is not None:
            raise DataError(
                f"{self.name} has {missing.count} NaN or infinite values, the first "
                f"{missing.first}; repair the data, or leave such rows out."
            )
        return values

    def find_missing(self, block: Floats, start: int) -> MissingValues | None:
        """Return what is NaN or infinite in a block of rows that was read from `start` on."""
        is_missing = ~np.isfinite(block)
        if not is_missing.any():
            return None
        row, column = np.argwhere(is_missing)[0].tolist()
        cell = self.describe_cell(start + row, column)
        return MissingValues(int(np.count_nonzero(is_missing)), f"{block[row, column]} at {cell}")

    def read_rows(self, rows: Integers, columns: Integers | None = None) -> Floats:
        """Return chosen rows in the order given, read in as few slices as memory allows.

        `columns` are those that are wanted; by default all.
        """
        if columns is None:
            columns = np.arange(self.shape[1])
        out = np.empty((len(rows), len(columns)))
        n_rows = min(ROWS_PER_PICK, max(MAX_BYTES_PER_PICK // (8 * self.shape[1]), 1))
        for start in range(int(rows.min()), int(rows.max()) + 1, n_rows):
            stop = min(start + n_rows, self.shape[0])
            is_inside = (rows >= start) & (rows < stop)
            if is_inside.any():
                block = self.read(start, stop, on_host=True)[rows[is_inside] - start]
                out[is_inside] = block if len(columns) == self.shape[1] else block[:, columns]
        return out

    # Choosing rows.

    def slice_rows(self, start: int, stop: int) -> Table:
        """Return the rows `start` to `stop` as a table of their own; nothing is read."""
        return self._with(_rows=self._rows[start:stop])

    def select_rows(self, rows: Integers) -> Table:
        """Return a table of only these rows, given by increasing numbers; nothing is read."""
        return self._with(_rows=np.asarray(self._rows)[rows])

    def given_rows(self, rows: Integers) -> Integers:
        """Return the numbers of rows in what the user passed, before some were left out."""
        if isinstance(self._rows, range):
            return self._numbering.given_rows(self._rows.start + rows)
        return self._numbering.given_rows(self._rows[rows])

    def numbered(self, numbering: RowNumbering) -> Table:
        """Return the same table, the rows of its source numbered in another way."""
        return self._with(_numbering=numbering)

    def source_range(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of rows of the source that the rows `start` to `stop` lie in."""
        return int(self._rows[start]), int(self._rows[stop - 1]) + 1

    @property
    def rows_per_stored_chunk(self) -> int:
        """Rows that the source stores together: reading one of them costs as much as all.

        It is 1 for sources that are not stored in chunks.
        """
        chunks = getattr(self.source, "chunks", None)
        if not chunks:
            return 1
        n_rows = chunks[0]
        return int(max(n_rows)) if isinstance(n_rows, tuple | list) else int(n_rows)

    # Moving rows to where they are used.

    def to_host(self) -> Table:
        """Return the same table in the processor's memory."""
        if not self.on_device:
            return self
        return self._with(source=to_numpy(self.source), on_device=False)

    def load(self, block: Any = None) -> Table:
        """Return the same table with its rows in memory.

        They are read now, unless `block` has them: what became of `as_dask()` on a cluster.
        """
        return self if self.in_memory else self._with_rows_alone(block)

    def as_dask(self) -> Any | None:
        """Return the rows as a dask array, or None where the source is something else."""
        if not is_dask(self.source):
            return None
        first, last = self.source_range(0, self.shape[0])
        return self.source[first:last]

    def without_source(self) -> Table:
        """Return the same table with a stand-in for its source, to be loaded elsewhere."""
        return self._with(source=_RowsElsewhere(self.source.shape), in_memory=False)

    def _with_rows_alone(self, block: Any = None) -> Table:
        """Return the same table with nothing but its rows behind it."""
        first, last = self.source_range(0, self.shape[0])
        if block is None:
            block = self._slice(first, last)
        rows = range(last - first) if isinstance(self._rows, range) else self._rows - first
        numbering = self._numbering.from_row(first)
        return self._with(source=block, in_memory=True, _rows=rows, _numbering=numbering)

    def _with(self, **changes: Any) -> Table:
        table = object.__new__(Table)
        table.__dict__.update(self.__dict__ | changes)
        table.shape = (len(table._rows), len(self.column_names))
        table._needs_conversion = self._needs_conversion or table.source is not self.source
        return table

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to another process: files as names, arrays as the rows in use."""
        source = sent_as_name(self.source)
        table = self._with_rows_alone() if source is None else self._with(source=source)
        return {name: value for name, value in vars(table).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    # Names in messages.

    def describe_cell(self, row: int, column: int) -> str:
        """Return how to name a cell in a message: ``"row 3, column 'a'"``."""
        number = self.given_rows(np.array([row]))[0]
        return f"row {number}, {self.describe_column(column)}"

    def describe_column(self, number: int) -> str:
        """Return how to name a column in a message."""
        name = self.column_names[number]
        return f"column {name}" if name == str(number) else f"column {name!r}"

    # Details of reading.

    def _slice(self, start: int, stop: int) -> Any:
        """Return rows of the source as they come; masked values are NaN."""
        if self.on_device:
            return self.source[start:stop, :]
        if isinstance(self.source, np.ndarray):
            block = self.source[start:stop]
        else:
            with self._lock:
                block = self.source[start:stop]
                if not isinstance(block, np.ma.MaskedArray):
                    block = np.asarray(block)
        if isinstance(block, np.ma.MaskedArray):
            dtype = complex if block.dtype.kind == COMPLEX_KIND else float
            block = np.ma.filled(block.astype(dtype), np.nan)
        if block.ndim != 2:
            raise DataError(
                f"{self.name} gives slices of {getattr(block, 'ndim', 0)} dimensions; give a dense "
                f"table of numbers (for a sparse matrix, {self.name}.toarray())."
            )
        return np.asarray(block)

    def _convert(self, block: Any, start: int) -> Any:
        """Return any numbers as float64, complex ones as `complex_as` says."""
        xp = array_namespace(block)
        if xp.isdtype(block.dtype, "complex floating"):
            block = self._convert_complex(block, xp)
        if not self.on_device:
            if block.dtype.kind in CONVERTIBLE_KINDS:
                self._refuse_words(block, start)
            return np.ascontiguousarray(block, dtype=np.float64)
        block = xp.astype(block, xp.float64, copy=False)
        if block.dtype != xp.float64:
            raise DataError(
                f"{self.name} can only be made {block.dtype} there, and capacities need float64; "
                "with JAX, set jax.config.update('jax_enable_x64', True) first."
            )
        return block

    def _convert_complex(self, block: Any, xp: Any) -> Any:
        real = xp.real(block)
        imaginary = xp.imag(block)
        if self.complex_as == "split":
            return xp.concat((real, imaginary), axis=1)
        return real**2 + imaginary**2

    def _column_names(self, dtype: np.dtype[Any]) -> list[str]:
        """Return names of the columns as read; a type that is no number is refused."""
        is_complex = dtype.kind == COMPLEX_KIND
        if is_complex and self.complex_as is None:
            raise DataError(
                f"{self.name} is complex ({dtype}); say what is measured: {self._complex_remedy()} "
                "as channels."
            )
        if not is_complex and dtype.kind not in REAL_KINDS + CONVERTIBLE_KINDS:
            raise DataError(f"{self.name} holds {dtype}; give numbers.")
        names = labels_of_columns(self.source)
        if is_complex and self.complex_as == "split":
            real = [f"re({name})" for name in names]
            return real + [f"im({name})" for name in names]
        return names

    def _complex_remedy(self) -> str:
        has_option = self.name in ("x", "repeats")
        if has_option:
            return (
                "`complex_as='abs2'` for powers |x|², `complex_as='split'` for real and imaginary "
                "parts"
            )
        return (
            f"np.abs({self.name}) ** 2 for powers, np.hstack([{self.name}.real, {self.name}.imag]) "
            "for both parts"
        )

    def _refuse_words(self, block: Any, start: int) -> None:
        for (row, column), cell in np.ndenumerate(block):
            try:
                float(np.nan if cell is None else cell)
            except (TypeError, ValueError):
                raise DataError(
                    f"{self.name} has {cell!r} at {self.describe_cell(start + row, column)}; give "
                    "numbers only."
                ) from None


class _RowsElsewhere:
    """Stands for rows that another process has."""

    sent_by_name = True

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape


def as_array(source: ArrayLike, name: str) -> Any:
    """Convert lists and the like; what is no table of numbers is refused."""
    if hasattr(source, "detach"):
        source = source.detach()  # A tensor of a model that could still be trained.
    try:
        return np.asarray(source)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{name} is a {type(source).__name__} that is no table of numbers ({error}); "
            "give an array of shape (samples, channels)."
        ) from None


def _refuse_shape(shape: tuple[Any, ...], name: str) -> None:
    """Refuse all but two dimensions of known length with something in them."""
    if len(shape) != 2:
        hint = f": {name}.reshape(-1, 1) makes one channel of it" if len(shape) == 1 else ""
        raise DataError(
            f"{name} has shape {shape}; give two dimensions, (samples, channels){hint}."
        )
    if any(isinstance(size, float) for size in shape):  # NaN: a dask array after a selection
        raise DataError(
            f"{name} has unknown length, {shape}; call {name}.compute_chunk_sizes() first."
        )
    if 0 in shape:
        raise DataError(
            f"{name} is empty: its shape is {shape}; give at least one row and one column."
        )


def _relative_rounding(dtype: np.dtype[Any]) -> float:
    """Return the rounding of single and half precision; that of doubles counts as none."""
    is_narrow = dtype.kind == "f" and dtype.itemsize < 8
    return float(np.finfo(dtype).eps) if is_narrow else 0.0


def labels_of_columns(source: Any) -> list[str]:
    """Return names of columns from pandas or xarray, else their numbers."""
    labels = getattr(source, "columns", None)
    if labels is None and hasattr(source, "dims") and hasattr(source, "coords"):
        dimension = source.dims[1]
        if dimension in source.coords:
            labels = source.coords[dimension].values
    if labels is None:
        labels = range(source.shape[1])
    return [str(label) for label in labels]
