"""Files read with care and written whole: one clear error for what is broken, and never half of a new file."""

from __future__ import annotations

import errno
import math
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._words import listed
from .errors import DataError, InfocapError

if TYPE_CHECKING:
    import xarray as xr

FRACTION = 0.8  # of the memory that one array may take; the rest is for the program and copies of columns
# Libraries keep a record of some hundred bytes per chunk, so that a million of them takes about 100 MB.
MOST_CHUNKS = 1_000_000
UNKNOWN = 16e9  # bytes of memory assumed where the system does not tell, as on Windows: what a laptop has
GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # where Linux tells the limit of a container
TEXT_BYTES = 64  # of memory that a string takes at least, whatever its type in the file says
NUMBERS = "biufc"
# Only these attributes are read: following the references among others can hang on a damaged file.
PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value")
ATTRIBUTES = ("units", "parts", "MATLAB_class", "NAME", *PACKING)
LARGEST_ATTRIBUTE = 10_000_000  # bytes; attributes are words and single numbers, and more is damage
COMPLEX = (("real", "imag"), ("r", "i"))  # how MATLAB and h5py name the parts of complex numbers
CLASSIC = b"CDF"  # the first bytes of NetCDF of versions 1, 2 and 5
DIMENSION_ONLY = "This is a netCDF dimension but not a netCDF variable"
SLACK = 1_000_000  # bytes reserved on the disk beyond the arrays, for names and attributes


def readable(path: Path, folder: bool = False) -> Path:
    """Return the path of a file (or folder) that can be opened and is not empty; refuse anything else."""
    try:
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        if not (path.is_dir() if folder else path.is_file()):
            found = "a folder" if path.is_dir() else "a file" if path.is_file() else "no regular file"
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
        raise DataError(f"{path} cannot be opened ({reason}); look at its name and permissions.") from problem
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


def refuse_too_large(path: Path, what: str, shape: Sequence[int], itemsize: int, n_chunks: int = 1) -> None:
    """Refuse an array that would not fit into memory, before anything is allocated."""
    n_bytes = math.prod(shape) * max(itemsize, 1)
    if n_bytes > FRACTION * memory() or n_chunks > MOST_CHUNKS:
        raise DataError(
            f"{path} declares {what} of shape {tuple(shape)}, {n_bytes:,} bytes in {n_chunks:,} chunks, more than "
            f"{FRACTION:.0%} of this machine's memory or {MOST_CHUNKS:,} chunks; it is damaged, or must be rewritten "
            "in larger chunks, or read in parts with its own library and given to infocap.estimate."
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
        known.append(int(GROUP_LIMIT.read_text()))
    except (ImportError, OSError, ValueError):  # not Unix; no container; "max"
        pass
    return min(known, default=UNKNOWN)


@dataclass(frozen=True)
class Variable:
    """An array that has not been read: its shape, its type, and how to get it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    n_chunks: int = 1


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
        return listed([f"{name} {one.shape}" for name, one in self.variables.items()], 20) or "no arrays"

    def numbers(self, name: str) -> np.ndarray:
        """Read an array of numbers."""
        variable = self.variables[name]
        if variable.dtype.kind not in NUMBERS:
            said = f"{name} in {self.path} holds {variable.dtype} values"
            raise DataError(f"{said}; give an array of plain numbers.")
        refuse_too_large(self.path, name, variable.shape, variable.dtype.itemsize, variable.n_chunks)
        with blame(self.path, self.kind):
            values = np.asarray(variable.load())
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
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "b":
        return values.astype(np.uint8)
    size = {"f": min(max(size, 4), 8), "c": min(size, 16)}.get(kind, size)
    return values.astype(np.dtype(f"{kind}{size}"), copy=False)


@contextmanager
def open_hdf5(path: Path, kind: str = "HDF5") -> Iterator[Contents]:
    """Open an HDF5 file, which NetCDF4 and MATLAB v7.3 files are; arrays are named by path, ``run1/spectra``."""
    import h5py

    readable(path)
    with path.open("rb") as start:
        if start.read(3) == CLASSIC:
            convert = f"nccopy -k nc4 {path.name} new.nc"
            raise DataError(f"{path} is a NetCDF file of the classic format; convert it with {convert}.")
    with blame(path, kind), h5py.File(path, "r") as file:
        variables: dict[str, Variable] = {}
        file.visititems(partial(_visit, path, variables))
        yield Contents(path, kind, variables, _attributes(file, file.attrs))


def _visit(path: Path, variables: dict[str, Variable], name: str, found: Any) -> None:
    import h5py

    if not isinstance(found, h5py.Dataset) or name.startswith("#") or found.external:
        return  # groups; MATLAB's #refs#; numbers kept in another file
    attributes = _attributes(found, ATTRIBUTES)
    if str(attributes.get("NAME", "")).startswith(DIMENSION_ONLY):
        return
    dtype: np.dtype[Any] = np.dtype(object)
    with suppress(TypeError):  # a type that NumPy does not have
        dtype = found.dtype
    shape = tuple(int(n) for n in found.shape or ())
    if dtype.names in COMPLEX:
        dtype = np.result_type(dtype[0], np.complex64)
    elif h5py.check_string_dtype(dtype) is not None or attributes.get("MATLAB_class") == "char":
        dtype = np.dtype(str)
    if dtype.kind in "iu" and attributes.keys() & set(PACKING):
        dtype = np.dtype(float)
    chunks = math.prod(-(-n // c) for n, c in zip(shape, found.chunks or shape, strict=True) if c)
    load = partial(_load, path, name, found, attributes)
    shape = shape[::-1] if "MATLAB_class" in attributes else shape
    variables[name] = Variable(shape, dtype, load, attributes, chunks)


def _load(path: Path, name: str, dataset: Any, attributes: dict[str, Any]) -> Any:
    """Read values as their convention means them: MATLAB's transposed, NetCDF's unpacked (the CF conventions)."""
    import h5py

    if dataset.chunks:
        refuse_too_large(path, f"chunks of {name}", dataset.chunks, dataset.dtype.itemsize)
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return dataset.asstr()[...]
    values = dataset[...]
    if attributes.get("MATLAB_class") == "char":
        return "".join(map(chr, values.ravel()))
    if values.dtype.names in COMPLEX:
        values = values[values.dtype.names[0]] + 1j * values[values.dtype.names[1]]
    if "MATLAB_class" in attributes:
        return np.ascontiguousarray(values.T)
    packed = values
    for missing in ("_FillValue", "missing_value"):
        if missing in attributes and not np.all(np.isnan(attributes[missing])):
            values = np.where(np.isin(packed, attributes[missing]), np.nan, values)
    if "scale_factor" in attributes or "add_offset" in attributes:
        values = values * attributes.get("scale_factor", 1.0) + attributes.get("add_offset", 0.0)
    return values


def _attributes(found: Any, names: Iterable[str]) -> dict[str, Any]:
    """Read those of the attributes that are plain text or numbers, and not huge."""
    import h5py

    out: dict[str, Any] = {}
    for name in filter(found.attrs.__contains__, names):
        held = found.attrs.get_id(name)
        plain = held.dtype.kind in NUMBERS or h5py.check_string_dtype(held.dtype) is not None
        if plain and math.prod(held.shape or ()) * held.dtype.itemsize <= LARGEST_ATTRIBUTE:
            value = found.attrs[name]
            value = value.flat[0] if isinstance(value, np.ndarray) and value.size == 1 else value
            out[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return out


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


def save_dataset(data: xr.Dataset, path: Path, encoding: dict[str, Any] | None = None) -> None:
    """Write a NetCDF4 file beside the place wanted and then take it, so that an interrupted write loses nothing."""
    with replaced(path) as beside:
        if hasattr(os, "posix_fallocate"):
            # Ask for the space before: the HDF5 library may end the process when the disk is full.
            with beside.open("wb") as file:
                try:
                    os.posix_fallocate(file.fileno(), 0, data.nbytes + data.nbytes // 10 + SLACK)
                except OSError as problem:
                    if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                        raise OSError(problem.errno, problem.strerror, str(beside)) from None
                file.truncate(0)
        data.to_netcdf(beside, engine="h5netcdf", encoding=encoding or {})


def axis_values(values: Sequence[Any]) -> np.ndarray:
    """Make an array of values along an axis of a table: numbers and strings as they are, the rest as text."""
    plain = any(all(isinstance(value, kind) for value in values) for kind in (int | float, str))
    return np.array(values if plain else [str(value) for value in values])
