"""Files of named arrays (.npy, .npz, .mat, .h5, .nc, zarr), opened before they are read.

A format is a function from a path to an `ArrayFile`, as a context in which the file is open, and a
line in the table `ARRAY_FORMATS`. No format loads a pickle, which could run any program.
"""

import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import (
    NUMBER_KINDS,
    ArrayFile,
    StoredArray,
    as_data_error,
    read_text,
    readable_path,
    refuse_too_large,
)
from ..._hdf5 import open_hdf5
from ...errors import DataError, ParameterError
from ...samples import Hdf5Rows

# The name of the array in a file that holds a single array without a name.
SINGLE_ARRAY = "array"

# The first bytes of NetCDF of versions 1 and 2, which SciPy reads.
CLASSIC_NETCDF = (b"CDF\x01", b"CDF\x02")

# MATLAB's names of its types of numbers, which are NumPy's, too.
MATLAB_NUMBERS = (
    "double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
# The head of a MATLAB file of version 5 to 7 ends in these letters, in the byte order of the file.
MATLAB_HEAD_BYTES = 128
MATLAB_ENDINGS = (b"IM", b"MI")
# Types of data elements in such a file: numbers and text, a matrix, and what is compressed. SciPy
# looks others up outside of its table, which ends the process.
MATLAB_ELEMENT_TYPES = (*range(1, 8), 9, *range(12, 19))
MATLAB_MATRIX = 14
MATLAB_COMPRESSED = 15
MATLAB_TAG_BYTES = 8

# Files of a zarr folder that describe an array or a group.
ZARR_DESCRIPTIONS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
ZARR_CODEC_KEYS = ("filters", "compressor", "codecs", "index_codecs")
PICKLE_CODEC = "pickle"


# NumPy


@contextmanager
def open_npy(path: Path) -> Iterator[ArrayFile]:
    """Open the one array of the file, under the name ``array``."""
    n_bytes = readable_path(path).stat().st_size
    array = _describe_npy(path, SINGLE_ARRAY, n_bytes, partial(path.open, "rb"))
    if array.dtype.hasobject:
        raise DataError(
            f"{path} holds pickled Python objects, which are never loaded; write numbers."
        )
    mapped = partial(np.load, path, mmap_mode="r")
    array = replace(array, rows=mapped)
    yield ArrayFile(path, "npy", {SINGLE_ARRAY: array})


@contextmanager
def open_npz(path: Path) -> Iterator[ArrayFile]:
    """Open the arrays of an archive, by name."""
    readable_path(path)
    with as_data_error(path, "npz"), zipfile.ZipFile(path) as archive:
        arrays = {}
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename.removesuffix(".npy")
                opened = partial(archive.open, member)
                arrays[name] = _describe_npy(path, name, member.file_size, opened)
        yield ArrayFile(path, "npz", arrays)


def _describe_npy(path: Path, name: str, n_bytes: int, opened: Callable[[], Any]) -> StoredArray:
    """Describe an array by its head; refuse an array of which not all bytes are there."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,  # version 3 is of named fields
    }
    with as_data_error(path, "NumPy's format"), opened() as file:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = read_header[version](file)
        n_bytes_there = n_bytes - file.tell()
    n_bytes_declared = math.prod(shape) * dtype.itemsize
    is_cut = n_bytes_declared > n_bytes_there and not dtype.hasobject
    if is_cut or min(shape, default=0) < 0:
        raise DataError(
            f"{path} is cut short: {name} {shape} takes {n_bytes_declared:,} bytes; "
            f"{n_bytes_there:,} are there."
        )

    def load() -> Any:
        with opened() as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return StoredArray(shape, dtype, load)


# NetCDF


def open_netcdf(path: Path) -> AbstractContextManager[ArrayFile]:
    """Open a NetCDF file, which is HDF5, or one of the classic format."""
    with readable_path(path).open("rb") as file:
        start = file.read(len(CLASSIC_NETCDF[0]))
    if start in CLASSIC_NETCDF:
        return open_classic_netcdf(path)
    return open_hdf5(path, row_source=Hdf5Rows)


@contextmanager
def open_classic_netcdf(path: Path) -> Iterator[ArrayFile]:
    """Read the variables of a NetCDF file of the classic format, versions 1 and 2."""
    from scipy.io import netcdf_file

    arrays: dict[str, StoredArray] = {}
    with as_data_error(path, "NetCDF"), netcdf_file(path, mmap=False, maskandscale=True) as file:
        for name, variable in file.variables.items():
            if variable.data.dtype.kind not in NUMBER_KINDS:
                continue
            values = np.ma.filled(np.ma.asarray(variable[...]).astype(float), np.nan)
            units = getattr(variable, "units", b"")
            arrays[name] = StoredArray(
                values.shape,
                values.dtype,
                partial(np.asarray, values),
                attributes={"units": units.decode(errors="replace")} if units else {},
                dimensions=tuple(variable.dimensions),
            )
    yield ArrayFile(path, "NetCDF", arrays)


# MATLAB


def open_matlab(path: Path) -> AbstractContextManager[ArrayFile]:
    """Open a MATLAB file of version 7.3, which is HDF5, or of version 5 to 7."""
    import h5py

    if h5py.is_hdf5(readable_path(path)):
        return open_hdf5(path)
    return open_matlab5(path)


@contextmanager
def open_matlab5(path: Path) -> Iterator[ArrayFile]:
    """Read arrays of numbers and text, and fields of structures as ``data.u``.

    Of a structure array or a cell array, elements of one shape become one array, a row for each.

    SciPy reads a file as a whole, so the sizes that it declares are checked before.
    """
    import scipy.io

    with path.open("rb") as file:
        head = file.read(MATLAB_HEAD_BYTES)
    if head[-2:] not in MATLAB_ENDINGS:
        raise DataError(f"{path} is no MATLAB file of version 5 or later; save it with -v7.")
    byte_order = "<" if head.endswith(b"IM") else ">"
    data = np.memmap(path, mode="r").data
    _refuse_unknown_elements(path, data, byte_order, start=MATLAB_HEAD_BYTES, stop=data.nbytes)
    with as_data_error(path, "MATLAB"):
        classes = {}
        for name, shape, matlab_class in scipy.io.whosmat(path):
            classes[name] = matlab_class
            is_number = matlab_class in MATLAB_NUMBERS
            itemsize = np.dtype(matlab_class).itemsize if is_number else 1
            refuse_too_large(path, name, shape, itemsize)
        values = scipy.io.loadmat(path)
    arrays: dict[str, StoredArray] = {}
    for name, matlab_class in classes.items():
        value = values[name]
        if matlab_class in MATLAB_NUMBERS and value.dtype.kind != "c":
            value = value.astype(matlab_class)  # MATLAB stores the smallest type that holds them
        for full_name, array in _matlab_arrays(name, value):
            arrays[full_name] = StoredArray(array.shape, array.dtype, partial(np.asarray, array))
    yield ArrayFile(path, "MATLAB", arrays)


def _refuse_unknown_elements(
    path: Path, data: memoryview, byte_order: str, *, start: int, stop: int
) -> None:
    """Go through data elements, each a tag and then its bytes, and those in matrices."""
    tag = struct.Struct(f"{byte_order}II")
    while start + MATLAB_TAG_BYTES <= stop:
        element_type, length = tag.unpack_from(data, start)
        is_small = element_type > 0xFFFF  # up to 4 bytes, in the tag itself
        if is_small:
            element_type &= 0xFFFF
            length = 0
        if element_type not in MATLAB_ELEMENT_TYPES:
            raise DataError(
                f"{path} cannot be read as MATLAB (an element of type {element_type} at byte "
                f"{start}); it is damaged."
            )
        start += MATLAB_TAG_BYTES
        end = min(start + length, stop)
        if element_type == MATLAB_MATRIX:
            _refuse_unknown_elements(path, data, byte_order, start=start, stop=end)
        is_padded = element_type != MATLAB_COMPRESSED
        start = end + (-length % MATLAB_TAG_BYTES if is_padded else 0)


def _matlab_arrays(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Go through an array, or the fields of a structure; MATLAB's own objects are left out."""
    is_array = type(value) is np.ndarray  # not a sparse matrix, an object or a function
    if not is_array:
        return
    if value.dtype.names:
        for field in value.dtype.names:
            elements = [element[field] for element in value.T.ravel()]
            yield from _matlab_arrays(f"{name}.{field}", _stacked(elements))
    elif value.dtype.kind in "biufcU":
        yield name, value
    elif value.size > 1 and _stacked(list(value.T.ravel())).dtype.kind != "O":
        yield name, _stacked(list(value.T.ravel()))  # the elements of a cell array
    else:
        yield name, np.full(value.shape, "")


def _stacked(elements: list[Any]) -> np.ndarray:
    """Return elements of one shape as one array, with a first axis of elements."""
    if len(elements) == 1:
        return elements[0]
    are_arrays = all(type(element) is np.ndarray for element in elements)
    if are_arrays:
        shapes = {element.shape for element in elements}
        kinds = {element.dtype.kind for element in elements}
        if kinds == {"V"}:  # structures in structures
            return np.concatenate([element.ravel() for element in elements])
        if kinds == {"U"}:
            return np.array([str(element) for element in elements])
        if len(shapes) == 1 and kinds <= set(NUMBER_KINDS):
            return np.stack(elements)
    return np.full(len(elements), None)


# Zarr


@contextmanager
def open_zarr(path: Path) -> Iterator[ArrayFile]:
    """Open the arrays of a zarr folder by their paths in it; a single array as ``array``."""
    if find_spec("zarr") is None:
        raise ParameterError("zarr folders need the package zarr: pip install infocap[zarr].")
    import zarr

    _refuse_unsafe_folder(readable_path(path, folder=True))
    with as_data_error(path, "zarr"):
        root = zarr.open(str(path), mode="r")
        if isinstance(root, zarr.Array):
            arrays = {SINGLE_ARRAY: _describe_zarr(path, SINGLE_ARRAY, root)}
        else:
            arrays = {}
            for name, member in sorted(root.members(max_depth=None)):
                if isinstance(member, zarr.Array):
                    arrays[name] = _describe_zarr(path, name, member)
        attributes = root.attrs.asdict()
    yield ArrayFile(path, "zarr", arrays, attributes)


def _describe_zarr(path: Path, name: str, array: Any) -> StoredArray:
    """Return an array of a zarr group with how to read it, and what of it is missing."""

    def load() -> Any:
        for chunks in (array.chunks, array.shards or ()):
            refuse_too_large(path, f"chunks of {name}", chunks, array.dtype.itemsize)
        return array[...]

    problem = ""
    n_written = array.nchunks_initialized
    if n_written < array.nchunks:
        problem = (
            f"{n_written:,} of its {array.nchunks:,} chunks are there, and the others would be "
            "read as zeros; copy the folder again, or write all of it"
        )
    names = array.attrs.get("_ARRAY_DIMENSIONS")  # of version 2, as xarray writes it
    if names is None:
        names = getattr(array.metadata, "dimension_names", None)
    return StoredArray(
        shape=tuple(array.shape),
        dtype=array.dtype,
        load=load,
        rows=lambda: array,
        attributes={"units": str(array.attrs.get("units", ""))},
        problem=problem,
        dimensions=tuple(str(name) for name in names or ()),
    )


def _refuse_unsafe_folder(path: Path) -> None:
    """Refuse links out of the folder, pipes and devices in it, and codecs that unpickle."""
    is_described = False
    for parent, folder_names, file_names in os.walk(path):
        for name in folder_names:
            _refuse_link_out(Path(parent, name), path)
        for name in file_names:
            file = Path(parent, name)
            if not file.is_file():
                raise DataError(f"{file} is no regular file; take it out of the folder.")
            _refuse_link_out(file, path)
            if name in ZARR_DESCRIPTIONS:
                is_described = True
                _refuse_pickle_codec(file)
    if not is_described:
        raise DataError(f"{path} is without zarr.json, .zgroup or .zarray; it is no zarr folder.")


def _refuse_link_out(member: Path, folder: Path) -> None:
    if member.is_symlink() and not member.resolve().is_relative_to(folder.resolve()):
        raise DataError(
            f"{member} is a link to {member.resolve()}, out of the folder; "
            "put the data in its place."
        )


def _refuse_pickle_codec(file: Path) -> None:
    """Refuse the description of an array that asks zarr to unpickle, at any depth of it."""

    def check(description: dict[str, Any]) -> dict[str, Any]:
        for key in ZARR_CODEC_KEYS:
            codecs = description.get(key) or []
            for codec in codecs if isinstance(codecs, list) else [codecs]:
                name = codec
                if isinstance(codec, dict):
                    name = codec.get("id", codec.get("name"))
                if str(name).removeprefix("numcodecs.") == PICKLE_CODEC:
                    raise DataError(
                        f"{file} asks for the codec {PICKLE_CODEC!r}, which could run any program "
                        "and is never used; write the array as plain numbers."
                    )
        return description

    with as_data_error(file, "a description of zarr"):
        json.loads(read_text(file), object_hook=check)


ArrayFormat = Callable[[Path], AbstractContextManager[ArrayFile]]

ARRAY_FORMATS: dict[str, ArrayFormat] = {
    ".nc": open_netcdf,
    ".h5": partial(open_hdf5, row_source=Hdf5Rows),
    ".hdf5": partial(open_hdf5, row_source=Hdf5Rows),
    ".mat": open_matlab,
    ".npz": open_npz,
    ".npy": open_npy,
    ".zarr": open_zarr,
}
