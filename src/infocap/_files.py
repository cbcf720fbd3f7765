"""Files: one clear error for a damaged one, arrays read when asked for, whole writes.

Three things that every format of file has in common:

- reading: `readable_path`, `as_data_error` and `refuse_too_large` turn whatever goes wrong into one
  `DataError`;
- arrays: a format opens its file as an `ArrayFile` of `StoredArray`, whose values are read when
  they are asked for;
- writing: `write_whole` writes beside the old file and takes its place at the end, `save_dataset`
  does so for NetCDF4, and `append_checksum` appends a checksum that `has_checksum` verifies.
"""

import errno
import math
import os
import secrets
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._formatting import join_names
from .errors import DataError, InfocapError

if TYPE_CHECKING:
    import xarray as xr

# The fraction of the memory that one array or one job may take. The rest is for the program and for
# copies of columns; beyond it the machine would begin to swap.
MAX_MEMORY_FRACTION = 0.8
# Bytes of memory where the system does not say how much it has, as on Windows: that of a laptop.
DEFAULT_MEMORY_BYTES = 16e9
# Bytes of memory per byte of a text table: a cell of two digits and its comma was measured to take
# 77.
MEMORY_BYTES_PER_TEXT_BYTE = 26
# Bytes of memory that a string takes at least, whatever its type in the file says.
MIN_STRING_BYTES = 64
# The kinds of NumPy types that are numbers: Boolean, signed, unsigned, float, complex.
NUMBER_KINDS = "biufc"

# The last line of a file that infocap wrote: the CRC-32 of all bytes before it. HDF5 reads nothing
# beyond its own end.
CHECKSUM_LINE = b"# infocap crc32 %08x\n"
CHECKSUM_LINE_BYTES = 25
# The attribute that says that the file ended in such a line. Where the line is missing, the file
# was cut short or changed by another program.
CHECKSUM_ATTRIBUTE = "infocap_checksum"
# Bytes that are read at a time for a checksum: files may be larger than memory.
CHECKSUM_BLOCK_BYTES = 1 << 24

# Bytes that names and attributes of a NetCDF file take besides its arrays.
NETCDF_HEADER_BYTES = 1_000_000
# Fraction of the bytes of its arrays that chunks which are not full add.
NETCDF_CHUNK_FRACTION = 0.1


# Reading


def readable_path(path: Path, folder: bool = False) -> Path:
    """Return the path of a file or folder that can be read; refuse anything else."""
    needed_kind = "a folder" if folder else "a file"
    try:
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        kind = _kind_of_path(path)
        if kind != needed_kind:
            raise DataError(f"{path} is {kind}; {needed_kind} is needed.")
        if not folder and path.stat().st_size == 0:
            raise DataError(f"{path} is empty (0 bytes); nothing of it can be recovered.")
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except DataError:
        raise
    except (OSError, ValueError) as problem:  # a ValueError is a NUL character in the name
        reason = getattr(problem, "strerror", None) or problem
        raise DataError(
            f"{path} cannot be opened ({reason}); look at its name and permissions."
        ) from problem
    return path


def _kind_of_path(path: Path) -> str:
    """Return what lies at a path: "a folder", "a file" or neither."""
    if path.is_dir():
        return "a folder"
    return "a file" if path.is_file() else "no regular file"


@contextmanager
def as_data_error(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises about a file into one DataError that names the file."""
    try:
        yield
    except InfocapError:
        raise
    # On damaged files h5py, zarr, zipfile, SciPy and NumPy were seen to raise nearly every built-in
    # exception.
    except Exception as problem:
        reason = textwrap.shorten(str(problem), 200) or type(problem).__name__
        raise DataError(
            f"{path} cannot be read as {kind} ({reason}); it is truncated or of another format."
        ) from problem


def refuse_too_large(path: Path, what: str, shape: Sequence[int], itemsize: int) -> None:
    """Refuse an array that would not fit into memory, before anything is allocated."""
    n_bytes = math.prod(shape) * max(itemsize, 1)
    if n_bytes > MAX_MEMORY_FRACTION * available_memory():
        raise DataError(
            f"{path} declares {what} of shape {tuple(shape)}, {n_bytes:,} bytes, more than "
            f"{MAX_MEMORY_FRACTION:.0%} of memory; it is damaged, or must be read in parts with "
            "its own library for infocap.estimate."
        )


def read_text(path: Path) -> bytes:
    """Read a file of text, unless its cells would not fit into memory."""
    n_bytes = readable_path(path).stat().st_size
    refuse_too_large(path, "text", (n_bytes,), MEMORY_BYTES_PER_TEXT_BYTE)
    return path.read_bytes()


def available_memory() -> float:
    """Return the bytes that this process may use, of the machine, its container or its limit."""
    limits = []
    if hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        import resource

        address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
        if address_space != resource.RLIM_INFINITY:
            limits.append(address_space)
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (ImportError, OSError, ValueError):
        pass  # not Unix; not in a container; a container without a limit, whose file says "max"
    return min(limits, default=DEFAULT_MEMORY_BYTES)


# Arrays in files


@dataclass(frozen=True)
class StoredArray:
    """An array in a file: what it is, and how to read it.

    Parameters
    ----------
    shape, dtype
        The shape and the type of the values as `load` gives them: MATLAB's arrays are transposed,
        packed integers are floats.
    load
        Reads all values.
    rows
        Gives a source of rows that stay in the file, for `estimate` to read in blocks. It is None
        where the numbers in the file are not the values (complex, packed or transposed ones).
    attributes
        What the file says about the array, such as ``units``.
    problem
        Why the array cannot be read, and what to do: parts of it were never written, or lie in
        other files.
    dimensions
        The names of its axes, where the file tells them.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], Any]
    rows: Callable[[], Any] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    dimensions: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether the values are plain numbers."""
        return self.dtype.kind in NUMBER_KINDS

    @property
    def unit(self) -> str:
        """The unit of the values, or an empty text."""
        return str(self.attributes.get("units", ""))

    def __str__(self) -> str:
        kind = str(self.dtype) if self.is_numeric else "text"
        unit = f" in {self.unit}" if self.unit else ""
        return f"{self.shape} {kind}{unit}"


@dataclass(frozen=True)
class ArrayFile:
    """The arrays and attributes of an open file; the values are read when they are asked for."""

    path: Path
    kind: str  # the format, in words
    arrays: dict[str, StoredArray]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __str__(self) -> str:
        shapes = [f"{name} {array.shape}" for name, array in self.arrays.items()]
        return join_names(shapes, 20) or "no arrays"

    def numbers(self, name: str) -> np.ndarray:
        """Read an array of numbers."""
        array = self._whole_array(name)
        refuse_too_large(self.path, name, array.shape, array.dtype.itemsize)
        with as_data_error(self.path, self.kind):
            values = np.asarray(array.load())
        return plain_numbers(values)

    def rows(self, name: str) -> Any:
        """Return the rows of a table or column as they lie in the file, or read them if need be."""
        array = self._whole_array(name)
        is_table = len(array.shape) in (1, 2)
        if array.rows is None or not is_table or array.dtype.kind not in "iuf":
            return self.numbers(name)
        with as_data_error(self.path, self.kind):
            return array.rows()

    def text(self, name: str) -> list[str]:
        """Read strings; a single string is a list of one."""
        array = self.arrays[name]
        self._refuse_problem(name, array)
        itemsize = max(array.dtype.itemsize, MIN_STRING_BYTES)
        refuse_too_large(self.path, name, array.shape, itemsize)
        with as_data_error(self.path, self.kind):
            values = np.ravel(array.load()).tolist()
            return [value.decode() if isinstance(value, bytes) else str(value) for value in values]

    def _whole_array(self, name: str) -> StoredArray:
        """Find an array of numbers that can be read as a whole."""
        array = self.arrays[name]
        if not array.is_numeric:
            raise DataError(
                f"{name} in {self.path} holds {array.dtype} values; give an array of plain numbers."
            )
        self._refuse_problem(name, array)
        return array

    def _refuse_problem(self, name: str, array: StoredArray) -> None:
        if array.problem:
            raise DataError(f"{name} in {self.path} is not whole: {array.problem}.")


def plain_numbers(values: np.ndarray) -> np.ndarray:
    """Convert to native byte order and to a type that every format has."""
    replacements = {"?": np.uint8, "e": np.float32, "g": np.float64, "G": np.complex128}
    dtype = replacements.get(values.dtype.char, values.dtype.newbyteorder("="))
    return values.astype(dtype, copy=False)


# Writing


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; it takes the place of `path` once it is complete.

    Every writer has a temporary file of its own, so of two that write at a time the later one wins,
    whole, and none deletes what another wrote. What the system refuses, such as a full disk, is one
    error that names the file.
    """
    with _as_writing_error(path):
        _refuse_place(path)
        temporary = _new_file_beside(path)
    try:
        with _as_writing_error(path):
            yield temporary
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_place(path: Path) -> None:
    """Refuse a place where no file can be put: no such folder, a folder, a pipe, a device."""
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is {_kind_of_path(path)}; give the name of a file.")


def _new_file_beside(path: Path) -> Path:
    """Make an empty file, which nobody else has, in the folder of `path`."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    only_new = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(temporary, only_new, 0o666))
    return temporary


@contextmanager
def _as_writing_error(path: Path) -> Iterator[None]:
    """Turn what the system says while a file is written into one DataError that names the file."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise DataError(
            f"{path} cannot be written ({reason}); make room, or give another name or folder."
        ) from problem


def sync(path: Path) -> None:
    """Wait until a file, or the list of names of a folder, is on the disk."""
    is_folder = path.is_dir()
    if is_folder and os.name == "nt":
        return  # Windows cannot open folders, and writes their lists by itself
    mode = os.O_RDONLY if is_folder else os.O_RDWR  # Windows syncs only what may be written
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_dataset(data: "xr.Dataset", path: Path, encoding: dict[str, Any] | None = None) -> None:
    """Write a NetCDF4 file with a checksum; an interrupted write leaves the former file."""
    marked = data.assign_attrs({CHECKSUM_ATTRIBUTE: "crc32 of all but the last line"})
    with write_whole(path) as temporary:
        _refuse_full_disk(temporary, data.nbytes)
        marked.to_netcdf(temporary, engine="h5netcdf", encoding=encoding or {})
        append_checksum(temporary)


def _refuse_full_disk(path: Path, n_bytes: int) -> None:
    """Raise an OSError where the disk has no room: HDF5 may end the process on a full one."""
    if not hasattr(os, "posix_fallocate"):
        return
    expected = int(n_bytes * (1 + NETCDF_CHUNK_FRACTION)) + NETCDF_HEADER_BYTES
    with path.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, expected)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise
        file.truncate(0)


# Checksums


def append_checksum(path: Path) -> None:
    """Append the checksum of a file as its last line."""
    with path.open("ab") as file:
        file.write(CHECKSUM_LINE % checksum(path, file.tell()))


def checksum(path: Path, stop: int) -> int:
    """Return the CRC-32 of the first `stop` bytes of a file."""
    crc = 0
    with path.open("rb") as file:
        for start in range(0, stop, CHECKSUM_BLOCK_BYTES):
            crc = zlib.crc32(file.read(min(CHECKSUM_BLOCK_BYTES, stop - start)), crc)
    return crc


def has_checksum(path: Path) -> bool:
    """Return whether a file ends in its checksum; refuse a file whose checksum does not agree."""
    state = path.stat()
    agrees = _checksum_agrees(path, state.st_size, state.st_mtime_ns)
    if agrees is False:
        raise checksum_error(path)
    return agrees is not None


def checksum_error(path: Path) -> DataError:
    """Return the error for a file whose checksum does not agree."""
    return DataError(
        f"{path} is damaged or cut short, or another program changed it: its checksum does not "
        "agree; take another copy, or if it was changed on purpose, delete its attribute "
        f"'{CHECKSUM_ATTRIBUTE}'."
    )


@lru_cache(maxsize=64)  # `infocap show` opens a file twice: to see what it is, and to read it
def _checksum_agrees(path: Path, size: int, modified_ns: int) -> bool | None:
    """Return whether the last line of a file is its checksum; None where it has no such line."""
    with path.open("rb") as file:
        file.seek(max(size - CHECKSUM_LINE_BYTES, 0))
        line = file.read()
    start = CHECKSUM_LINE.partition(b"%")[0]
    if not line.startswith(start):
        return None
    return line == CHECKSUM_LINE % checksum(path, size - CHECKSUM_LINE_BYTES)
