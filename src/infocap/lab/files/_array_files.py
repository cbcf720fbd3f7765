"""Files of named arrays: .npy, .npz, .mat and zarr folders, described before they are read; never a pickle."""

import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..._child import in_child, limit_memory
from ..._files import Contents, Variable, blame, read_text, readable, refuse_bomb, refuse_too_large
from ..._hdf5 import PACKING, open_hdf5
from ...errors import DataError, ParameterError
from ...samples._sources import Hdf5Rows

# MATLAB's names of its types of numbers, which are NumPy's too.
CLASSES = ("double", "single", *(f"{sign}int{8 << k}" for sign in ("", "u") for k in range(4)))
HEAD_BYTES, PACKED = 128, 15  # of a file; the type of an element that is compressed
STEP = (
    1 << 16
)  # bytes that are unpacked at a time to look at the checksum; they become 64 MB at most
DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
CODECS = {
    "bytes", "endian", "transpose", "sharding_indexed", "gzip", "zstd", "blosc", "crc32c", "adler32", "fletcher32",
    "zlib", "bz2", "lzma", "lz4", "shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "packbits", "astype",
    "cast_value", "scale_offset", "default", "vlen-utf8", "vlen-bytes", "crc32", "jenkins_lookup3",
}  # fmt: skip


@contextmanager
def _open_npy(path: Path) -> Iterator[Contents]:
    """Open the one array of the file, under the name ``array``."""
    readable(path)
    variable = _npy_variable(path, "array", path.stat().st_size, partial(path.open, "rb"))
    if variable.dtype.hasobject:
        raise DataError(
            f"{path} holds pickled Python objects, which are never loaded; write numbers."
        )
    yield Contents(path, "npy", {"array": variable})


@contextmanager
def open_npz(path: Path) -> Iterator[Contents]:
    """Open the arrays of an archive, by name."""
    readable(path)
    with blame(path, "npz"), zipfile.ZipFile(path) as archive:
        variables = {}
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                refuse_bomb(path, name, member.compress_size, member.file_size)
                variables[name] = _npy_variable(
                    path, name, member.file_size, partial(archive.open, member)
                )
        yield Contents(path, "npz", variables)


def _npy_variable(path: Path, name: str, size: int, opened: Callable[[], Any]) -> Variable:
    """Describe an array by its head, and refuse one of which not all bytes are there; pickles are never loaded."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with blame(path, "NumPy's format"), opened() as file:
        shape, _, dtype = readers[np.lib.format.read_magic(file)](
            file
        )  # version 3 is of named fields
        n_bytes, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or (n_bytes > there and not dtype.hasobject):
        raise DataError(
            f"{path} is cut short: {name} {shape} takes {n_bytes:,} bytes; {there:,} are there."
        )

    def load() -> Any:
        with opened() as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return Variable(shape, dtype, load)


def _open_mat(path: Path) -> AbstractContextManager[Contents]:
    """Open a MATLAB file of version 7.3, which is HDF5, or 5 to 7, on which SciPy may crash: in another process."""
    import h5py

    if h5py.is_hdf5(readable(path)):
        return open_hdf5(path)
    with path.open("rb") as file:
        if file.read(HEAD_BYTES)[-2:] not in (b"IM", b"MI"):
            raise DataError(f"{path} is no MATLAB file of version 5 or later; save it with -v7.")
    return in_child("infocap.lab.files._array_files:read_mat5", path)


@contextmanager
def read_mat5(path: Path) -> Iterator[Contents]:
    """Open all arrays of numbers and text, fields of structures as ``data.u``; of cells only the shape."""
    import scipy.io

    with blame(path, "MATLAB"):
        limit_memory(path.stat().st_size)
        limit_memory(_unpacked_bytes(path))
        kinds = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
        for name, (shape, kind) in kinds.items():
            refuse_too_large(path, name, shape, np.dtype(kind).itemsize if kind in CLASSES else 1)
        found = scipy.io.loadmat(path)
        for name, (
            _,
            kind,
        ) in kinds.items():  # numbers are stored in the smallest type that holds them
            if kind in CLASSES and found[name].dtype.kind != "c":
                found[name] = found[name].astype(kind)
        arrays = [pair for name, value in found.items() for pair in _mat_arrays(name, value)]
        variables = {
            name: Variable(one.shape, one.dtype, partial(np.asarray, one)) for name, one in arrays
        }
        yield Contents(path, "MATLAB", variables)


def _unpacked_bytes(path: Path) -> int:
    """Unpack everything once to see whether the checksums of zlib agree, which SciPy leaves out; count the bytes."""
    data = memoryview(path.read_bytes())
    order = "<" if bytes(data[126:HEAD_BYTES]) == b"IM" else ">"
    place, total = HEAD_BYTES, len(data)
    while place + 8 <= len(data):
        kind, length = struct.unpack_from(f"{order}II", data, place)
        place += 8
        if kind == PACKED:
            unpacker, count = zlib.decompressobj(), 0
            for start in range(place, min(place + length, len(data)), STEP):
                count += len(unpacker.decompress(data[start : min(start + STEP, place + length)]))
                refuse_bomb(path, "an array", length, count)
            if not unpacker.eof:
                raise DataError(
                    f"{path} is cut short or damaged: an array ends before its checksum."
                )
            total += count
        place += length
    return total


def _mat_arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    if type(value) is not np.ndarray or name.startswith("__"):
        return  # MATLAB's own objects, sparse matrices, and what SciPy tells of the file
    if value.dtype.names and value.size == 1:
        for field in value.dtype.names:
            yield from _mat_arrays(f"{name}.{field}", value.flat[0][field])
    else:
        yield name, value if value.dtype.kind in "biufcU" else np.full(value.shape, "")


def _open_zarr(path: Path) -> AbstractContextManager[Contents]:
    if find_spec("zarr") is None:
        raise ParameterError("zarr folders need the package zarr: pip install infocap[zarr].")
    return in_child("infocap.lab.files._array_files:read_zarr", readable(path, folder=True))


@contextmanager
def read_zarr(path: Path) -> Iterator[Contents]:
    """Open the arrays of a zarr folder in this process, by their paths in it."""
    import zarr

    zarr.config.set({"threading.max_workers": 1})
    variables: dict[str, Variable] = {}
    attributes: Any = {}  # of the folder itself
    with blame(path, "zarr"):
        # Not by zarr's own list of members, which stops at the first that is damaged.
        files = [file for file in _files_in(path) if file.name in DESCRIPTIONS]
        if not files:
            raise DataError(
                f"{path} is without zarr.json, .zgroup or .zarray; it is no zarr folder."
            )
        for file in sorted(files):
            described, folder = _described(file), file.parent
            if file.name == ".zarray" or described.get("node_type") == "array":
                name = "array" if folder == path else folder.relative_to(path).as_posix()
                array = zarr.open_array(
                    str(folder), mode="r", zarr_format=2 if file.name == ".zarray" else 3
                )
                variables[name] = _zarr_variable(path, name, array)
            if folder == path and file.name in ("zarr.json", ".zattrs"):
                attributes = (
                    described.get("attributes", {}) if file.name == "zarr.json" else described
                )
    if not isinstance(attributes, dict):
        raise DataError(
            f"{path} has attributes that are no such thing ({attributes!r:.60}); it is damaged."
        )
    yield Contents(path, "zarr", variables, attributes)


def _files_in(path: Path) -> Iterator[Path]:
    """All files of a folder; refuse links that lead out of it, and what is no file, such as a pipe or a device."""
    for at, _, names in os.walk(path):
        for file in (Path(at, name) for name in names):
            if not file.is_file():
                raise DataError(f"{file} is no regular file; take it out of the folder.")
            if file.is_symlink() and not file.resolve().is_relative_to(path.resolve()):
                raise DataError(
                    f"{file} is a link to {file.resolve()}, out of the folder; put the file in its place."
                )
            yield file


def _described(file: Path) -> dict[str, Any]:
    """Read a description of an array or a group; refuse codecs that may unpickle, even while an array is opened."""

    def refuse_strange_codecs(one: dict[str, Any]) -> dict[str, Any]:
        for key in ("filters", "compressor", "codecs", "index_codecs"):
            codecs = one.get(key) or []
            for codec in codecs if isinstance(codecs, list) else [codecs]:
                name = str(codec.get("id", codec.get("name")) if isinstance(codec, dict) else codec)
                if name.removeprefix("numcodecs.") not in CODECS:
                    said = (
                        f"{file} asks for the codec {name!r}, which may do more than unpack numbers"
                    )
                    raise DataError(
                        f"{said}; write the array with one of {', '.join(sorted(CODECS))}."
                    )
        return one

    found = json.loads(read_text(file), object_hook=refuse_strange_codecs)
    if not isinstance(found, dict):
        raise DataError(f"{file} holds {found!r:.60} and describes nothing; it is damaged.")
    return found


def _zarr_variable(path: Path, name: str, array: Any) -> Variable:
    def load() -> Any:
        for chunks in (array.chunks, array.shards or ()):
            refuse_too_large(path, f"chunks of {name}", chunks, array.dtype.itemsize)
        return array[...]

    there, n_chunks = array.nchunks_initialized, array.nchunks
    missing = "" if there >= n_chunks else f"{there:,} of its {n_chunks:,} chunks are there"
    return Variable(tuple(array.shape), array.dtype, load, missing=missing)


@contextmanager
def unpack_zarr(path: Path) -> Iterator[Contents]:
    """Unpack every chunk of an array once, within the memory that its shape declares, so that none is a bomb later."""
    import zarr

    zarr.config.set({"threading.max_workers": 1})
    with blame(path, "zarr"):
        array = zarr.open_array(str(path), mode="r")
        rows = (array.shards or array.chunks)[0]
        limit_memory(rows * array.shape[1] * array.dtype.itemsize)
        for start in range(0, array.shape[0] if array.compressors else 0, rows):
            array[start : start + rows]
    yield Contents(path, "zarr", {}, {})


def numbers_of(contents: Contents, name: str, in_memory: bool) -> Any:
    """Read an array, or leave a table where it lies, to be read in blocks, unless it must be unpacked first."""
    path, variable = contents.path, contents.variables[name]
    plain = len(variable.shape) == 2 and variable.dtype.kind in "iuf"
    if in_memory or not plain or variable.attributes.keys() & {*PACKING, "MATLAB_class"}:
        return contents.numbers(name)
    with blame(path, contents.kind):
        contents.whole(name)
        if contents.kind == "npy":
            return np.load(path, mmap_mode="r")
        if contents.kind == "zarr":
            import zarr

            folder = path if name == "array" else path / name
            with in_child("infocap.lab.files._array_files:unpack_zarr", folder):
                return zarr.open_array(str(folder), mode="r")
        if contents.kind in ("HDF5", "NetCDF"):
            return Hdf5Rows(str(path.resolve()), name, variable.shape)
    return contents.numbers(name)


OPENERS: dict[str, Callable[[Path], AbstractContextManager[Contents]]] = {
    ".nc": open_hdf5,
    ".h5": open_hdf5,
    ".hdf5": open_hdf5,
    ".mat": _open_mat,
    ".npz": open_npz,
    ".npy": _open_npy,
    ".zarr": _open_zarr,
}
