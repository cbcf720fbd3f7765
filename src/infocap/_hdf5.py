"""HDF5 files, which NetCDF4 and MATLAB v7.3 files are, opened as an `ArrayFile`.

Conventions about what the numbers in a data set mean are followed: MATLAB's (transposed, and
structure arrays and cells as references), h5py's and MATLAB's complex numbers (two fields), our own
complex numbers (a last axis of two), NetCDF's packed integers and names of dimensions, and fields
of a compound type, which become arrays of their own.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ._files import (
    CHECKSUM_ATTRIBUTE,
    NUMBER_KINDS,
    ArrayFile,
    StoredArray,
    as_data_error,
    checksum_error,
    has_checksum,
    readable_path,
    refuse_too_large,
)
from .errors import DataError

FORMAT_NAMES = {".nc": "NetCDF", ".mat": "MATLAB v7.3"}
# The first bytes of NetCDF of versions 1, 2 and 5, which are not HDF5.
CLASSIC_NETCDF = b"CDF"
# How MATLAB and h5py name the fields of complex numbers.
COMPLEX_FIELDS = (("real", "imag"), ("r", "i"))
# What our attribute "parts" says where the last axis is (real, imaginary): NetCDF has no complex
# numbers.
COMPLEX_PARTS = "re, im"
# Attributes of packed numbers in NetCDF (CF conventions).
PACKING_ATTRIBUTES = ("scale_factor", "add_offset", "_FillValue", "missing_value")
MISSING_VALUE_ATTRIBUTES = ("_FillValue", "missing_value")
# Of the attributes of a data set only these are read: following references among the others can
# hang on a damaged file.
DIMENSION_NUMBER = "_Netcdf4Dimid"
DIMENSION_NUMBERS = "_Netcdf4Coordinates"
DATASET_ATTRIBUTES = (
    "units", "parts", "MATLAB_class", "NAME", DIMENSION_NUMBER, DIMENSION_NUMBERS,
    *PACKING_ATTRIBUTES,
)  # fmt: skip
# Attributes are words and single numbers; one of more bytes is damage.
MAX_ATTRIBUTE_BYTES = 10_000_000
# How the attribute NAME of a data set begins that stands for a dimension of NetCDF and holds no
# values.
DIMENSION_ONLY = "This is a netCDF dimension but not a netCDF variable"
# MATLAB keeps what cells refer to in groups whose names begin so.
MATLAB_REFERENCES = "#"
# Elements of a structure array or a cell array that are read; each is a data set of its own.
MAX_REFERENCES = 1_000_000

# Makes a source of rows that stay in the file, from the file, the name of the data set and its
# shape.
RowSource = Callable[[str, str, tuple[int, ...]], Any]


@contextmanager
def open_hdf5(path: Path, row_source: RowSource | None = None) -> Iterator[ArrayFile]:
    """Open an HDF5 file, whose arrays are named by their paths in it, such as ``run1/spectra``.

    A file that infocap wrote is refused where its checksum does not agree.
    """
    import h5py

    _refuse_classic_netcdf(readable_path(path))
    is_as_written = has_checksum(path)
    kind = FORMAT_NAMES.get(path.suffix.lower(), "HDF5")
    arrays: dict[str, StoredArray] = {}
    dimensions: dict[int, str] = {}  # their names, by their numbers

    def add(name: str, member: Any) -> None:
        """List a member of the file, if it is a data set with values."""
        is_dataset = isinstance(member, h5py.Dataset)
        if not is_dataset or name.startswith(MATLAB_REFERENCES):
            return
        attributes = _attributes(member, DATASET_ATTRIBUTES)
        is_dimension = "NAME" in attributes and DIMENSION_NUMBER in attributes
        if is_dimension:
            dimensions[int(attributes[DIMENSION_NUMBER])] = name.rpartition("/")[2]
        if str(attributes.get("NAME", "")).startswith(DIMENSION_ONLY):
            return
        described = _matlab_elements(path, name, member) or _fields(name, member)
        if not described:
            described = {
                name: _describe(path, name, member, attributes=attributes, row_source=row_source)
            }
        arrays.update(described)

    with as_data_error(path, kind), h5py.File(path, "r") as file:
        if CHECKSUM_ATTRIBUTE in file.attrs and not is_as_written:
            raise checksum_error(path)
        file.visititems(add)
        for name, array in arrays.items():
            arrays[name] = replace(array, dimensions=_dimensions_of(array, dimensions))
        yield ArrayFile(path, kind, arrays, _attributes(file, file.attrs))


def _refuse_classic_netcdf(path: Path) -> None:
    """Refuse NetCDF of versions 1, 2 and 5, which are not HDF5."""
    with path.open("rb") as file:
        start = file.read(len(CLASSIC_NETCDF))
    if start == CLASSIC_NETCDF:
        raise DataError(
            f"{path} is a NetCDF file of the classic format; convert it with "
            f"nccopy -k nc4 {path.name} new.nc."
        )


def _dimensions_of(array: StoredArray, dimensions: dict[int, str]) -> tuple[str, ...]:
    """Return the names of an array's axes, where NetCDF numbers them."""
    numbers = np.ravel(array.attributes.get(DIMENSION_NUMBERS, ())).tolist()
    names = tuple(dimensions.get(number, "") for number in numbers)
    return names if len(names) == len(array.shape) else ()


def _fields(name: str, dataset: Any) -> dict[str, StoredArray]:
    """Return the fields of a compound type as arrays, ``table.u1``; empty for other types."""
    dtype = _plain_dtype(dataset)
    fields: dict[str, StoredArray] = {}
    if dtype.names is None or dtype.names in COMPLEX_FIELDS:
        return fields
    for field in dtype.names:
        values = dtype[field]
        fields[f"{name}.{field}"] = StoredArray(
            shape=(*dataset.shape, *values.shape),
            dtype=values.base,
            load=partial(_load_field, dataset, field),
            problem=_problem(dataset),
        )
    return fields


def _load_field(dataset: Any, field: str) -> Any:
    return dataset.fields(field)[...]


def _matlab_elements(path: Path, name: str, dataset: Any) -> dict[str, StoredArray]:
    """Return the elements of a MATLAB structure array or cell array as one array.

    They are data sets of their own, to which the file refers. Empty where there are none, or where
    they are no numbers of one shape.
    """
    import h5py

    is_matlab = path.suffix.lower() == ".mat"
    if not is_matlab or h5py.check_ref_dtype(_plain_dtype(dataset)) is None:
        return {}
    if not 1 < dataset.size <= MAX_REFERENCES:
        return {}
    elements = [dataset.file[reference] for reference in dataset[...].T.ravel()]
    first = elements[0]
    are_alike = all(
        isinstance(element, h5py.Dataset)
        and element.shape == first.shape
        and _plain_dtype(element).kind in NUMBER_KINDS
        for element in elements
    )
    if not are_alike:
        return {}
    shape = (len(elements), *first.shape[::-1])
    dtype = np.result_type(*(element.dtype for element in elements))
    load = partial(_load_elements, elements)
    return {name: StoredArray(shape=shape, dtype=dtype, load=load)}


def _load_elements(elements: list[Any]) -> np.ndarray:
    return np.stack([element[...].T for element in elements])


def _plain_dtype(dataset: Any) -> np.dtype[Any]:
    """Return the type of the values in the file; `object` for what NumPy does not have."""
    with suppress(TypeError):
        dtype: np.dtype[Any] = dataset.dtype
        return dtype
    return np.dtype(object)


def _describe(
    path: Path,
    name: str,
    dataset: Any,
    *,
    attributes: dict[str, Any],
    row_source: RowSource | None,
) -> StoredArray:
    """Say what the values of a data set are once they are read, and how to read them."""
    shape = tuple(int(length) for length in dataset.shape or ())
    if attributes.get("parts") == COMPLEX_PARTS:
        shape = shape[:-1]
    if "MATLAB_class" in attributes:
        shape = shape[::-1]

    rows = None
    is_converted = attributes.keys() & {*PACKING_ATTRIBUTES, "MATLAB_class", "parts"}
    if row_source is not None and not is_converted:
        rows = partial(row_source, str(path.resolve()), name, shape)

    return StoredArray(
        shape=shape,
        dtype=_dtype_of_values(dataset, attributes),
        load=partial(_load, path, name, dataset, attributes),
        rows=rows,
        attributes=attributes,
        problem=_problem(dataset),
    )


def _dtype_of_values(dataset: Any, attributes: dict[str, Any]) -> np.dtype[Any]:
    """Return the type of the values once they are read; `object` for what NumPy does not have."""
    import h5py

    dtype = _plain_dtype(dataset)
    if dtype.names in COMPLEX_FIELDS:
        return np.result_type(dtype[0], np.complex64)
    if attributes.get("parts") == COMPLEX_PARTS:
        return np.result_type(dtype, np.complex64)
    if h5py.check_string_dtype(dtype) is not None or attributes.get("MATLAB_class") == "char":
        return np.dtype(str)
    if dtype.kind in "iu" and attributes.keys() & set(PACKING_ATTRIBUTES):
        return np.dtype(float)
    return dtype


def _problem(dataset: Any) -> str:
    """Say why a data set cannot be read: its values lie in other files, or were never written."""
    if dataset.is_virtual or dataset.external:
        return "its values lie in other files; copy them into this one"
    if not dataset.size:
        return ""
    cure = "would be read as zeros; copy the file again, or write all of it"
    if dataset.chunks:
        chunks_per_axis = [
            math.ceil(length / chunk)
            for length, chunk in zip(dataset.shape, dataset.chunks, strict=True)
        ]
        n_chunks = math.prod(chunks_per_axis)
        n_written = dataset.id.get_num_chunks()
        if n_written != n_chunks:
            return f"{n_written:,} of its {n_chunks:,} chunks are there, and the others {cure}"
    elif not dataset.id.get_storage_size():
        return f"nothing of it was written, and it {cure}"
    return ""


def _load(path: Path, name: str, dataset: Any, attributes: dict[str, Any]) -> Any:
    """Read a data set and give its values the meaning that its convention says."""
    import h5py

    if dataset.chunks:
        refuse_too_large(path, f"chunks of {name}", dataset.chunks, dataset.dtype.itemsize)
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return dataset.asstr()[...]
    values = dataset[...]
    if attributes.get("MATLAB_class") == "char":
        return "".join(chr(code) for code in values.ravel())
    if values.dtype.names in COMPLEX_FIELDS:
        real, imaginary = values.dtype.names
        values = values[real] + 1j * values[imaginary]
    if "MATLAB_class" in attributes:
        return np.ascontiguousarray(values.T)
    if attributes.get("parts") == COMPLEX_PARTS:
        return values.view(np.result_type(values.dtype, np.complex64))[..., 0]
    return _unpacked(values, attributes)


def _unpacked(packed: np.ndarray, attributes: dict[str, Any]) -> np.ndarray:
    """Turn packed numbers of NetCDF into values: NaN where missing, scaled and shifted."""
    values = packed
    for name in MISSING_VALUE_ATTRIBUTES:
        if name not in attributes:
            continue
        missing = attributes[name]
        if not np.all(np.isnan(missing)):
            values = np.where(np.isin(packed, missing), np.nan, values)
    if "scale_factor" in attributes or "add_offset" in attributes:
        values = values * attributes.get("scale_factor", 1.0) + attributes.get("add_offset", 0.0)
    return values


def _attributes(member: Any, names: Iterable[str]) -> dict[str, Any]:
    """Read those of the attributes that are plain text or numbers, and not huge."""
    attributes: dict[str, Any] = {}
    for name in names:
        if name in member.attrs and _is_plain(member.attrs.get_id(name)):
            attributes[name] = _plain_value(member.attrs[name])
    return attributes


def _is_plain(attribute: Any) -> bool:
    """Return whether an attribute is text or numbers, and not huge."""
    import h5py

    is_text = h5py.check_string_dtype(attribute.dtype) is not None
    n_bytes = math.prod(attribute.shape or ()) * attribute.dtype.itemsize
    return (is_text or attribute.dtype.kind in NUMBER_KINDS) and n_bytes <= MAX_ATTRIBUTE_BYTES


def _plain_value(value: Any) -> Any:
    """Return a single value in place of an array of one, and text in place of bytes."""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.flat[0]
    return value.decode(errors="replace") if isinstance(value, bytes) else value
