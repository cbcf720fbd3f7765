"""Files read with care and written whole: one clear error for what is broken, and never half of a new file."""

import errno
import math
import os
import textwrap
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._formatting import listed
from .errors import DataError, InfocapError

if TYPE_CHECKING:
    import xarray as xr

FRACTION = (
    0.8  # of the memory that one array may take; the rest is for the program and copies of columns
)
# Bytes of memory per byte of text, at most: a cell of two digits and its comma was measured to take 77.
TEXT_EXPANSION = 26
TEXT_BYTES = 64  # of memory that a string takes at least, whatever its type in the file says
NUMBERS = "biufc"
# The last line of a file that infocap wrote, with the CRC-32 of all before it; HDF5 reads nothing beyond its own end.
SEAL, SEAL_BYTES = b"# infocap crc32 %08x\n", 25
# An attribute that tells that there was such a line: without it the file was cut, or changed by another program.
SEALED = "infocap_checksum"
BLOCK = 1 << 24  # bytes read at a time for a checksum
# Noise of a detector packs to a half or a third; an array of more than LARGE bytes that is packed to less than one part
# in MOST_PACKED is made to fill memory.
MOST_PACKED, LARGE = 200, 100_000_000


def readable(path: Path, folder: bool = False) -> Path:
    """Return the path of a file (or folder) that can be opened and is not empty; refuse anything else."""
    try:
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        if not (path.is_dir() if folder else path.is_file()):
            found = (
                "a folder" if path.is_dir() else "a file" if path.is_file() else "no regular file"
            )
            raise DataError(f"{path} is {found}; a {'folder' if folder else 'file'} is needed.")
        if folder:
            next(path.iterdir(), None)
        else:
            with path.open("rb") as file:
                if not file.read(1):
                    raise DataError(f"{path} is empty (0 bytes); nothing of it can be recovered.")
    except DataError:
        raise
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        reason = getattr(problem, "strerror", None) or problem
        raise DataError(
            f"{path} cannot be opened ({reason}); look at its name and permissions."
        ) from problem
    return path


@contextmanager
def blame(path: Path, kind: str) -> Iterator[None]:
    """Make one DataError of whatever a library raises about a broken file."""
    try:
        yield
    except InfocapError:
        raise
    # On damaged files h5py, zarr, zipfile and NumPy were seen to raise nearly every built-in exception.
    except Exception as problem:
        said = textwrap.shorten(str(problem), 200) or type(problem).__name__
        said = f"{path} cannot be read as {kind} ({said})"
        raise DataError(f"{said}; it is truncated or of another format.") from problem


def refuse_too_large(path: Path, what: str, shape: Sequence[int], itemsize: int) -> None:
    """Refuse an array that would not fit into memory, before anything is allocated."""
    n_bytes = math.prod(shape) * max(itemsize, 1)
    if n_bytes > FRACTION * memory():
        said = f"{path} declares {what} of shape {tuple(shape)}, {n_bytes:,} bytes, more than {FRACTION:.0%} of memory"
        raise DataError(
            f"{said}; it is damaged, or must be read in parts with its own library for infocap.estimate."
        )


def read_text(path: Path) -> bytes:
    """Read a file of text, unless its cells would not fit into memory."""
    refuse_too_large(readable(path), "text", (path.stat().st_size,), TEXT_EXPANSION)
    return path.read_bytes()


def refuse_bomb(path: Path, what: str, packed: int, unpacked: int) -> None:
    """Refuse what unpacks to far more than measured numbers do, before it is unpacked."""
    if unpacked > LARGE and unpacked > MOST_PACKED * packed:
        said = f"{path} packs {what}, {unpacked:,} bytes, into {packed:,}, which measured numbers never do"
        raise DataError(
            f"{said}; it is damaged or made to fill memory: write it without compression if it is meant."
        )


def memory() -> float:
    """Return the bytes that this process may use: those of the machine, or the limit of its container or its own."""
    known = []
    if hasattr(os, "sysconf"):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        import resource

        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        known += [own] if own != resource.RLIM_INFINITY else []
        known.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (ImportError, OSError, ValueError):  # not Unix; no container; "max"
        pass
    return min(
        known, default=16e9
    )  # what a laptop has, where the system does not tell, as on Windows


@dataclass(frozen=True)
class Variable:
    """An array that has not been read: its shape, its type, and how to get it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    missing: str = (
        ""  # what of it was never written or is lost, in words; it would be read as zeros
    )


@dataclass(frozen=True)
class Contents:
    """Arrays and attributes of an open file of some kind, described before they are read."""

    path: Path
    kind: str
    variables: dict[str, Variable]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def __str__(self) -> str:
        return (
            listed([f"{name} {one.shape}" for name, one in self.variables.items()], 20)
            or "no arrays"
        )

    def whole(self, name: str) -> Variable:
        """Find an array of which nothing is missing; refuse others."""
        variable = self.variables[name]
        if variable.missing:
            said = f"{name} in {self.path} is not whole: {variable.missing}"
            raise DataError(
                f"{said}, and would be read as zeros; copy the file again, or write all of it."
            )
        return variable

    def numbers(self, name: str) -> np.ndarray:
        """Read an array of numbers."""
        variable = self.variables[name]
        if variable.dtype.kind not in NUMBERS:
            said = f"{name} in {self.path} holds {variable.dtype} values"
            raise DataError(f"{said}; give an array of plain numbers.")
        refuse_too_large(self.path, name, variable.shape, variable.dtype.itemsize)
        with blame(self.path, self.kind):
            values = np.asarray(self.whole(name).load())
        return plain_numbers(values)

    def text(self, name: str) -> list[str]:
        """Read strings; a single one is a list of one."""
        variable = self.variables[name]
        refuse_too_large(self.path, name, variable.shape, max(variable.dtype.itemsize, TEXT_BYTES))
        with blame(self.path, self.kind):
            found = np.ravel(variable.load()).tolist()
            return [one.decode() if isinstance(one, bytes) else str(one) for one in found]


def plain_numbers(values: np.ndarray) -> np.ndarray:
    """Convert to native byte order and to a type every format has: no Booleans, half or extended precision."""
    others = {"?": np.uint8, "e": np.float32, "g": np.float64, "G": np.complex128}
    return values.astype(others.get(values.dtype.char, values.dtype.newbyteorder("=")), copy=False)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a path to write to, beside the one wanted; it takes that place once it is complete and on the disk."""
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    beside = path.with_name(f".{path.name}.part")
    try:
        yield beside
        sync(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names of a folder, is on the disk."""
    if path.is_dir() and os.name == "nt":
        return  # folders cannot be opened there, and need not be
    # Windows syncs only what may be written.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save_dataset(data: "xr.Dataset", path: Path, encoding: dict[str, Any] | None = None) -> None:
    """Write a NetCDF4 file beside the place wanted and then take it, so that an interrupted write loses nothing."""
    with replaced(path) as beside:
        if hasattr(os, "posix_fallocate"):
            # Ask for the space of arrays, names and attributes before: HDF5 may end the process when the disk is full.
            with beside.open("wb") as file:
                try:
                    os.posix_fallocate(
                        file.fileno(), 0, data.nbytes + data.nbytes // 10 + 1_000_000
                    )
                except OSError as problem:
                    if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                        raise OSError(problem.errno, problem.strerror, str(beside)) from None
                file.truncate(0)
        data.assign_attrs({SEALED: "crc32 of all but the last line"}).to_netcdf(
            beside, engine="h5netcdf", encoding=encoding or {}
        )
        seal(beside)


def seal(path: Path) -> None:
    """Write the checksum of a file as its last line."""
    with path.open("ab") as file:
        file.write(SEAL % checksum(path, file.tell()))


def checksum(path: Path, stop: int) -> int:
    """Return the CRC-32 of a file up to some byte."""
    crc = 0
    with path.open("rb") as file:
        for start in range(0, stop, BLOCK):
            crc = zlib.crc32(file.read(min(BLOCK, stop - start)), crc)
    return crc


def sealed(path: Path) -> bool:
    """Whether the last line of a file tells its checksum; refuse a file that is not as infocap wrote it."""
    found = path.stat()
    agrees = _sealed(path, found.st_size, found.st_mtime_ns)
    if agrees is False:
        raise changed(path)
    return agrees is not None


def changed(path: Path) -> DataError:
    """Return the error for a file whose checksum does not agree."""
    said = f"{path} is damaged or cut short, or another program changed it: its checksum does not agree"
    return DataError(
        f"{said}; take another copy, or if it was changed on purpose, delete its attribute '{SEALED}'."
    )


@lru_cache(maxsize=64)  # a file is opened several times: to see what it is, and to read it
def _sealed(path: Path, size: int, modified_ns: int) -> bool | None:
    with path.open("rb") as file:
        file.seek(max(size - SEAL_BYTES, 0))
        line = file.read()
    if not line.startswith(SEAL[:16]):
        return None
    return line == SEAL % checksum(path, size - SEAL_BYTES)


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Make an array of values along an axis of a table: numbers and strings as they are, the rest as text."""
    plain = any(all(isinstance(value, kind) for value in values) for kind in (int | float, str))
    return np.array(values if plain else [str(value) for value in values])
