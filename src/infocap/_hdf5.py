"""HDF5 files, which NetCDF4 and MATLAB v7.3 files are: ours by their checksum, others in a process of their own."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ._child import in_child
from ._files import (
    NUMBERS,
    SEALED,
    Contents,
    Variable,
    blame,
    changed,
    readable,
    refuse_too_large,
    sealed,
)
from .errors import DataError

# Only these attributes are read: following the references among others can hang on a damaged file.
PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value")
ATTRIBUTES = ("units", "parts", "MATLAB_class", "NAME", *PACKING)
LARGEST_ATTRIBUTE = 10_000_000  # bytes; attributes are words and single numbers, and more is damage
COMPLEX = (("real", "imag"), ("r", "i"))  # how MATLAB and h5py name the parts of complex numbers
PARTS = "re, im"  # our own, along the last axis, for NetCDF, which has no complex numbers
DEEPEST = 32  # groups inside each other; each level takes longer to visit than the one above
CLASSIC = b"CDF"  # the first bytes of NetCDF of versions 1, 2 and 5
DIMENSION_ONLY = "This is a netCDF dimension but not a netCDF variable"


@contextmanager
def open_hdf5(path: Path) -> Iterator[Contents]:
    """Open an HDF5 file, here if infocap wrote it and its checksum agrees; the HDF5 library may crash on others.

    Arrays are named by path, ``run1/spectra``.
    """
    readable(path)
    with path.open("rb") as start:
        if start.read(3) == CLASSIC:
            convert = f"nccopy -k nc4 {path.name} new.nc"
            raise DataError(
                f"{path} is a NetCDF file of the classic format; convert it with {convert}."
            )
    as_written = sealed(path)
    with read_hdf5(path) if as_written else in_child("infocap._hdf5:read_hdf5", path) as contents:
        if not as_written and SEALED in contents.attributes:
            raise changed(path)
        yield contents


@contextmanager
def read_hdf5(path: Path) -> Iterator[Contents]:
    """Open any HDF5 file in this process."""
    import h5py

    kind = {".nc": "NetCDF", ".mat": "MATLAB v7.3"}.get(path.suffix.lower(), "HDF5")
    with blame(path, kind), h5py.File(path, "r") as file:
        variables: dict[str, Variable] = {}
        file.visititems(partial(_visit, path, variables))
        yield Contents(path, kind, variables, _attributes(file, file.attrs))


def _visit(path: Path, variables: dict[str, Variable], name: str, found: Any) -> None:
    import h5py

    if name.count("/") > DEEPEST:
        raise DataError(
            f"{path} nests groups deeper than {DEEPEST}; it is damaged, or made to take forever."
        )
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
    if attributes.get("parts") == PARTS:
        shape, dtype = shape[:-1], np.result_type(dtype, np.complex64)
    shape = shape[::-1] if "MATLAB_class" in attributes else shape
    variables[name] = Variable(shape, dtype, load, attributes, _missing(path, found, chunks))


def _missing(path: Path, dataset: Any, n_chunks: int) -> str:
    """Say which part of a data set is not in the file, or in those that a virtual one is made of."""
    import h5py

    if not dataset.size:
        return ""
    if dataset.is_virtual:
        for source in dataset.virtual_sources():
            # The file itself is ".", numbered ones have %b.
            file = (
                path
                if source.file_name == "."
                else path.parent / source.file_name.replace("%b", "0")
            )
            if not file.is_file():
                return f"its source {source.file_name} is not there"
            with h5py.File(file, "r") as opened:
                if source.dset_name.replace("%b", "0").strip("/") not in opened:
                    return f"its source {source.dset_name} is not in {file.name}"
    elif dataset.chunks:
        there = dataset.id.get_num_chunks()
        return "" if there == n_chunks else f"{there:,} of its {n_chunks:,} chunks are there"
    elif not dataset.id.get_storage_size():
        return "nothing of it was written"
    return ""


def _load(path: Path, name: str, dataset: Any, attributes: dict[str, Any]) -> Any:
    """Read values as their convention means them: MATLAB's transposed, ours complex, NetCDF's unpacked (CF)."""
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
    if attributes.get("parts") == PARTS:
        return values.view(np.result_type(values.dtype, np.complex64))[..., 0]
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
