"""HDF5 files, which NetCDF4 and MATLAB v7.3 files are: named arrays, and the conventions of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ._before import blame, readable, refuse_too_large
from ._contents import NUMBERS, Contents, Variable
from ._heaps import refuse_broken_heaps

# Only these are read: following the references among others can hang on a damaged file.
ATTRIBUTES = (
    "units",
    "parts",
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "MATLAB_class",
    "NAME",
)
LARGEST_ATTRIBUTE = 10_000_000  # bytes
CLASSIC = b"CDF"  # the first bytes of NetCDF of versions 1, 2 and 5
DIMENSION_ONLY = "This is a netCDF dimension but not a netCDF variable"


@contextmanager
def open_hdf5(path: Path, kind: str = "HDF5") -> Iterator[Contents]:
    """The arrays of all groups, named by their path such as ``run1/spectra``, while the file is open."""
    import h5py

    readable(path)
    with path.open("rb") as start:
        if start.read(3) == CLASSIC:
            raise DataError(
                f"{path} is a NetCDF file of the classic format; convert it with nccopy -k nc4 {path.name} new.nc."
            )
    refuse_broken_heaps(path, kind)
    with blame(path, kind):
        file = h5py.File(path, "r")
    try:
        with blame(path, kind):
            variables: dict[str, Variable] = {}
            file.visititems(partial(_visit, path, variables))
            attributes = _attributes(file, file.attrs)
        yield Contents(path, kind, variables, attributes)
    finally:
        with blame(path, kind):
            file.close()


def _visit(path: Path, variables: dict[str, Variable], name: str, found: Any) -> None:
    import h5py

    if not isinstance(found, h5py.Dataset) or name.startswith("#") or found.external:
        return  # groups; MATLAB's #refs#; numbers kept in another file
    attributes = _attributes(found, ATTRIBUTES)
    if str(attributes.get("NAME", "")).startswith(DIMENSION_ONLY):
        return
    try:
        dtype = found.dtype
    except TypeError:  # a type that NumPy does not have
        dtype = np.dtype(object)
    shape = tuple(int(n) for n in found.shape or ())
    matlab = "MATLAB_class" in attributes
    if dtype.names in (("real", "imag"), ("r", "i")):
        dtype = np.result_type(dtype[0], np.complex64)
    elif h5py.check_string_dtype(dtype) is not None or attributes.get("MATLAB_class") == "char":
        dtype = np.dtype(str)
    if dtype.kind in "iu" and attributes.keys() & {
        "scale_factor",
        "add_offset",
        "_FillValue",
        "missing_value",
    }:
        dtype = np.dtype(float)
    chunks = math.prod(-(-n // c) for n, c in zip(shape, found.chunks, strict=True)) if found.chunks else 1
    load = partial(_load, path, name, found, attributes)
    variables[name] = Variable(shape[::-1] if matlab else shape, dtype, load, attributes, chunks)


def _load(path: Path, name: str, dataset: Any, attributes: dict[str, Any]) -> Any:
    """The values as their convention means them: MATLAB's transposed, NetCDF's unpacked."""
    import h5py

    if dataset.chunks:
        refuse_too_large(path, f"chunks of {name}", dataset.chunks, dataset.dtype.itemsize)
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return dataset.asstr()[...]
    values = dataset[...]
    if attributes.get("MATLAB_class") == "char":
        return "".join(map(chr, values.ravel()))
    if values.dtype.names in (("real", "imag"), ("r", "i")):
        re, im = (values[part] for part in values.dtype.names)
        values = re + 1j * im
    if "MATLAB_class" in attributes:
        return np.ascontiguousarray(values.T)
    return _unpack(values, attributes)


def _unpack(values: Any, attributes: dict[str, Any]) -> Any:
    """Missing values as NaN, then the scale and offset of packed integers (the CF conventions)."""
    packed = values
    for name in ("_FillValue", "missing_value"):
        if name in attributes and not np.all(np.isnan(attributes[name])):
            values = np.where(np.isin(packed, attributes[name]), np.nan, values)
    if "scale_factor" in attributes or "add_offset" in attributes:
        values = values * attributes.get("scale_factor", 1.0) + attributes.get("add_offset", 0.0)
    return values


def _attributes(found: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those of the attributes that are plain text or numbers, and not huge."""
    import h5py

    out: dict[str, Any] = {}
    for name in names:
        if name not in found.attrs:
            continue
        held = found.attrs.get_id(name)
        plain = held.dtype.kind in NUMBERS or h5py.check_string_dtype(held.dtype) is not None
        if plain and math.prod(held.shape or ()) * held.dtype.itemsize <= LARGEST_ATTRIBUTE:
            value = found.attrs[name]
            value = value.flat[0] if isinstance(value, np.ndarray) and value.size == 1 else value
            out[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return out
