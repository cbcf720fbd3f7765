"""Tables of numbers from anywhere, read in blocks."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_like, on_device, take_rows, to_numpy
from ..errors import DataError
from ..typing import ArrayLike, Floats, Integers
from ._sources import in_memory, is_dask, read_in_place, travelling


class Table:
    """A two-dimensional source of numbers with a name, read as float64 in blocks of rows.

    Only ``.shape`` and row slices of the source are used, so nothing larger than a block is ever loaded.
    Blocks may be asked for by several threads; sources other than NumPy arrays are read by one at a time.
    A table can be cut (`part`), brought into memory (`held`) and pickled; a file then travels as its name.
    """

    def __init__(self, source: ArrayLike, name: str, complex_as: str | None = None) -> None:
        if not hasattr(source, "shape") or not hasattr(source, "__getitem__"):
            source = _as_array(source, name)
        self.name = name
        if hasattr(source, "detach"):  # of a model that could still be trained
            source = source.detach()
        self.source = source
        self.complex_as = complex_as
        self.on_device = on_device(source)
        self._numbered = 0  # what the source's first row is called
        self._lock = Lock()
        shape = tuple(source.shape)
        if len(shape) != 2 or 0 in shape or any(isinstance(size, float) for size in shape):
            self._refuse_shape(shape)
        self._rows: range | Integers = range(int(shape[0]))  # of the source, in ascending order
        first = to_numpy(self._slice(0, 1))
        self.columns = self._column_names(first)
        self.row_bytes = first.nbytes
        self.shape = (int(shape[0]), len(self.columns))  # as read, with complex columns split
        self.source = source if type(source) is np.ndarray else read_in_place(source)
        self.in_memory = self.on_device or type(source) is np.ndarray or in_memory(self.source)
        # NumPy's double precision needs neither reading nor converting.
        self._plain = (
            type(source) is np.ndarray and source.dtype == float and source.flags.c_contiguous
        )
        narrow = first.dtype.kind == "f" and first.dtype.itemsize < 8
        self.rounding = (
            float(np.finfo(first.dtype).eps) if narrow else 0.0
        )  # relative, of the values given

    @property
    def chunk_rows(self) -> int:
        """Rows that the source keeps together: to read one of them costs as much as to read all; 1 for most."""
        first = (getattr(self.source, "chunks", None) or (1,))[0]
        return int(max(first)) if isinstance(first, tuple | list) else int(first)

    def source_rows(self, start: int, stop: int) -> tuple[int, int]:
        """The stretch of the source in which the rows start to stop of this table lie."""
        return int(self._rows[start]), int(self._rows[stop - 1]) + 1

    def given_rows(self, rows: Integers) -> Integers:
        """The numbers that rows of this table had in what the user gave, before some were left out."""
        return rows if isinstance(self._rows, range) else self._numbered + self._rows[rows]

    def on_host(self) -> Table:
        """The same table in the processor's memory."""
        return self._with(source=to_numpy(self.source), on_device=False) if self.on_device else self

    def only(self, rows: Integers) -> Table:
        """The same table with only these rows, given by increasing numbers."""
        return self._with(_rows=np.asarray(self._rows)[rows])

    def part(self, start: int, stop: int) -> Table:
        """The rows start to stop as a table of their own; nothing is read."""
        return self._with(_rows=self._rows[start:stop])

    @property
    def lazy(self) -> Any | None:
        """The rows as a dask array, for a cluster that computes it; None for every other source."""
        return (
            self.source[slice(*self.source_rows(0, self.shape[0]))]
            if is_dask(self.source)
            else None
        )

    def held(self, block: Any = None) -> Table:
        """The same table with its rows in memory: read now, or given as the block that `lazy` stands for."""
        return self if self.in_memory else self._cut(block)

    def _cut(self, block: Any = None) -> Table:
        """The same table with nothing but its own rows behind it."""
        first, stop = self.source_rows(0, self.shape[0])
        rows = range(stop - first) if isinstance(self._rows, range) else self._rows - first
        block = self._slice(first, stop) if block is None else block
        return self._with(
            source=block, in_memory=True, _rows=rows, _numbered=self._numbered + first
        )

    def without_rows(self) -> Table:
        """The same table with an empty stand-in for its source, to be `held` where the rows are."""
        return self._with(source=_Absent(self.source.shape), in_memory=False)

    def _with(self, **changes: Any) -> Table:
        chosen = object.__new__(Table)
        chosen.__dict__.update(self.__dict__ | changes)
        chosen.shape = (len(chosen._rows), len(self.columns))
        chosen._plain = self._plain and chosen.source is self.source
        return chosen

    def __getstate__(self) -> dict[str, Any]:
        """What travels: files by name, arrays as the rows that are in use."""
        source = travelling(self.source)
        table = self._cut() if source is None else self._with(source=source)
        return {name: value for name, value in vars(table).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def read(self, start: int, stop: int, on_host: bool = False) -> Any:
        """Rows start to stop as float64, shape (rows, columns), in NumPy or in the source's own library."""
        if self._plain and isinstance(self._rows, range):
            return self.source[self._rows.start + start : self._rows.start + stop]
        first, last = self.source_rows(start, stop)
        block = self._slice(first, last)
        if not isinstance(self._rows, range):
            rows = self._rows[start:stop] - first
            block = take_rows(block, as_like(rows, block)) if self.on_device else block[rows]
        block = self._convert(block, start)
        return to_numpy(block) if on_host else block

    def finite(self) -> Floats:
        """All rows; a NaN or infinite value is an error that names the first and counts them."""
        values = self.read(0, self.shape[0], on_host=True)
        if not np.isfinite(values).all():
            ((count, first),) = self.gaps(0, self.shape[0])
            said = f"{self.name} has {count} NaN or infinite values, the first {first}"
            raise DataError(f"{said}; repair the data, or leave such rows out.")
        return values

    def gaps(self, start: int, stop: int) -> list[tuple[int, str]]:
        """How many values of some rows are NaN or infinite, and the first in words; nothing where all are finite."""
        block = self.read(start, stop, on_host=True)
        bad = np.argwhere(~np.isfinite(block)).tolist()
        places = [(block[row, column], self.place(start + row, column)) for row, column in bad[:1]]
        return [(len(bad), f"{value} at {place}") for value, place in places]

    def take(self, rows: Integers) -> Floats:
        """Chosen rows in the order given, read in as few slices as blocks of 4096 rows allow."""
        out = np.empty((len(rows), self.shape[1]))
        for start in range(int(rows.min()), int(rows.max()) + 1, 4096):
            here = (rows >= start) & (rows < start + 4096)
            if here.any():
                block = self.read(start, min(start + 4096, self.shape[0]), on_host=True)
                out[here] = block[rows[here] - start]
        return out

    def place(self, row: int, column: int) -> str:
        """How to name a cell in a message."""
        return f"row {self._numbered + int(self._rows[row])}, {self.column(column)}"

    def column(self, number: int) -> str:
        """How to name a column in a message."""
        name = self.columns[number]
        return f"column {name}" if name == str(number) else f"column {name!r}"

    def _slice(self, start: int, stop: int) -> Any:
        if self.on_device:
            return self.source[start:stop, :]
        if isinstance(self.source, np.ndarray):
            block = self.source[start:stop]
        else:
            with self._lock:
                block = self.source[start:stop]
                block = block if isinstance(block, np.ma.MaskedArray) else np.asarray(block)
        if isinstance(block, np.ma.MaskedArray):
            block = np.ma.filled(
                block.astype(complex if block.dtype.kind == "c" else float), np.nan
            )
        if block.ndim != 2:
            raise DataError(
                f"{self.name} gives slices of {getattr(block, 'ndim', 0)} dimensions; give a dense table of "
                f"numbers (for a sparse matrix, {self.name}.toarray())."
            )
        return np.asarray(block)

    def _convert(self, block: Any, start: int) -> Any:
        """Any numbers as float64: complex ones as powers, or as real and imaginary parts side by side."""
        xp = array_namespace(block)
        if xp.isdtype(block.dtype, "complex floating"):
            parts = xp.real(block), xp.imag(block)
            block = (
                xp.concat(parts, axis=1)
                if self.complex_as == "split"
                else parts[0] ** 2 + parts[1] ** 2
            )
        if not self.on_device:
            if block.dtype.kind in "OUS":
                self._refuse_words(block, start)
            return np.ascontiguousarray(block, dtype=np.float64)
        block = xp.astype(block, xp.float64, copy=False)
        if block.dtype != xp.float64:
            raise DataError(
                f"{self.name} can only be made {block.dtype} there, and capacities need float64; with JAX, set "
                "jax.config.update('jax_enable_x64', True) first."
            )
        return block

    def _refuse_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2:
            flat = (
                f": {self.name}.reshape(-1, 1) makes one channel of it" if len(shape) == 1 else ""
            )
            raise DataError(
                f"{self.name} has shape {shape}; give two dimensions, (samples, channels){flat}."
            )
        if any(isinstance(size, float) for size in shape):  # dask, after a selection
            raise DataError(
                f"{self.name} has unknown length, {shape}; call {self.name}.compute_chunk_sizes() first."
            )
        raise DataError(
            f"{self.name} is empty: its shape is {shape}; give at least one row and one column."
        )

    def _column_names(self, first: Any) -> list[str]:
        """Names of the columns as read, after a look at the type of the first row."""
        if first.dtype.kind == "c" and self.complex_as is None:
            how = f"np.abs({self.name}) ** 2 for powers, np.hstack([{self.name}.real, {self.name}.imag]) for both parts"
            if self.name in ("x", "repeats"):  # where there is an option for it
                how = "`complex_as='abs2'` for powers |x|², `complex_as='split'` for real and imaginary parts"
            raise DataError(
                f"{self.name} is complex ({first.dtype}); say what is measured: {how} as channels."
            )
        if first.dtype.kind not in "fiubcOUS":
            raise DataError(f"{self.name} holds {first.dtype}; give numbers.")
        names = getattr(self.source, "columns", None)  # pandas
        if (
            names is None and hasattr(self.source, "dims") and hasattr(self.source, "coords")
        ):  # xarray
            dimension = self.source.dims[1]
            names = (
                self.source.coords[dimension].values if dimension in self.source.coords else None
            )
        names = [str(name) for name in (range(self.source.shape[1]) if names is None else names)]
        if self.complex_as == "split" and first.dtype.kind == "c":
            return [f"{part}({name})" for part in ("re", "im") for name in names]
        return names

    def _refuse_words(self, block: Any, start: int) -> None:
        for (row, column), cell in np.ndenumerate(block):
            try:
                float(np.nan if cell is None else cell)
            except (TypeError, ValueError):
                raise DataError(
                    f"{self.name} has {cell!r} at {self.place(start + row, column)}; give numbers only."
                ) from None


class _Absent:
    """Stands for rows that are somewhere else."""

    sent_by_name = True

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape


def _as_array(source: ArrayLike, name: str) -> Any:
    """Lists and the like; what is no table of numbers is refused."""
    try:
        return np.asarray(source)
    except (TypeError, ValueError) as problem:
        raise DataError(
            f"{name} is a {type(source).__name__} that is no table of numbers ({problem}); "
            "give an array of shape (samples, channels)."
        ) from None
