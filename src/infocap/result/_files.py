"""Results on disk: NetCDF4 holds everything, CSV what a spreadsheet can show.

Both come back to the last digit.
"""

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import (
    CHECKSUM_ATTRIBUTE,
    append_checksum,
    checksum_error,
    has_checksum,
    read_text,
    save_dataset,
    write_whole,
)
from .._hdf5 import open_hdf5
from .._validation import checks_arguments, require_one_of
from .._version import __version__
from ..basis import DelayedBasis, ProductBasis, find_maker
from ..errors import Check, DataError, ParameterError
from ..samples import Components
from ..typing import Floats
from ._analyses import Drift, Factors, Growth
from ._capacity_result import PER_TERM, CapacityResult, per_term
from ._recorded_law import RecordedLaw
from ._target import errors_by_degree

if TYPE_CHECKING:
    import xarray as xr

RESULT_FORMAT = "infocap result 1"
# What `load_result` reads: tables, NetCDF, and reports and cards.
READABLE_SUFFIXES = (".csv", ".nc", ".html")
# The numbers in a report or a card, as JSON.
EMBEDDED_JSON = re.compile(rb'id="infocap-data">(.*?)</', re.DOTALL)
# Fields of a result that are whole numbers, and fields that are numbers or None.
WHOLE_NUMBERS = ("n_samples", "n_readouts", "maximum", "rank")
OPTIONAL_FLOATS = (
    "total_standard_error",
    "noise_limited_total",
    "noise_limited_standard_error",
    "influence_variance",
    "leverage_ratio",
)
# The text by which results from the same inputs are known, or None.
FINGERPRINT = "inputs_fingerprint"
# The standard errors of sums over all functions of a degree.
DEGREE_ERRORS = "degree_errors"
# What the readouts are where they are components of many channels, or None.
COMPONENTS = "components"
# What a recording tells besides capacities.
ANALYSES: dict[str, Any] = {"growth": Growth, "factors": Factors, "drift": Drift}
# The key of the metadata under which a file holds what belongs to the law of recorded inputs.
RECORDED_LAW = "recorded_law"
# The parts of the factors of functions of delayed inputs, along their last axis.
FACTOR_VARIABLES = ("factor_input", "factor_delay", "factor_function")
# The names of the coordinates from all samples and from both halves.
COORDINATES = ("coordinates", "coordinates_first_half", "coordinates_second_half")
# Arrays that `capacity_of`, `memory_capacity` and `readout_weights` need, and their dimensions. A
# frame is the orthonormal directions of the readouts along which coordinates are given.
EXTRA_ARRAYS = {
    "residual_covariance": ("coordinates_frame", "other_frame"),
    "without_stretches": ("stretch", "term"),
    "without_groups": ("group", "term"),
    "weights": ("constant_and_readout", "term"),
}


@dataclass
class StoredResult:
    """What a file holds of a result, before the result is made of it."""

    attributes: dict[str, Any]
    indices: Any  # (terms, numbers that describe a function)
    columns: dict[str, Any]  # one array of numbers (terms,) for each name
    metadata: dict[str, Any]
    coordinates: tuple[Floats, ...] = ()
    extra_arrays: dict[str, Any] = field(default_factory=dict)


def to_dataset(result: CapacityResult) -> "xr.Dataset":
    """Return the result as an xarray data set; its attributes rebuild what arrays cannot hold."""
    import xarray as xr

    basis = result.basis
    variables: dict[str, Any] = {}
    for name, values in per_term(result).items():
        variables[name] = ("term", values)
    for name, coordinates in zip(COORDINATES, result.coordinates, strict=False):
        variables[name] = ((f"{name}_frame", "term"), coordinates)
    for name, dimensions in EXTRA_ARRAYS.items():
        array = getattr(result, name)
        if array is not None:
            variables[name] = (dimensions, array)
    if isinstance(basis, DelayedBasis):
        for place, name in enumerate(FACTOR_VARIABLES):
            variables[name] = (("term", "factor"), basis.factors[:, :, place])
    else:
        variables["index"] = (("term", "input"), basis.indices)
    # The metadata are a variable, because attributes have a largest size.
    variables["metadata"] = ((), json.dumps(saved_metadata(result)))
    descriptions = {
        "label": ("term", np.array(basis.labels, dtype=object)),
        "degree": ("term", basis.degrees),
        "variables": ("term", basis.interactions),
    }
    return xr.Dataset(variables, coords=descriptions, attrs=saved_attributes(result))


def save(result: CapacityResult, path: Path) -> Path:
    """Write a result; the suffix decides the format."""
    require_one_of("path suffix", path.suffix, (".nc", ".csv"))
    if path.suffix == ".nc":
        save_dataset(to_dataset(result), path)
        return path
    header = saved_attributes(result)
    header[CHECKSUM_ATTRIBUTE] = "crc32 of all but the last line"
    header["metadata"] = saved_metadata(result)
    with write_whole(path) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(f"# {json.dumps(header)}\n")
            result.to_dataframe().to_csv(file, index=False, float_format="%.17g")
        append_checksum(temporary)
    return path


@checks_arguments
def load_result(path: str | Path) -> CapacityResult:
    """Read what `CapacityResult.save` wrote, or the numbers that a report or a card carries.

    Parameters
    ----------
    path
        A file that ends in ``.nc``, ``.csv`` or ``.html``.

    Returns
    -------
    CapacityResult
        The result, to the last digit. Tables, reports and cards do not hold what `capacity_of`
        needs.

    Examples
    --------
    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> result = infocap.probe(lambda u: u, basis, 64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_result(result.save(f"{folder}/result.nc"))
    >>> bool((again.capacity == result.capacity).all())
    True
    """
    path = Path(path)
    if path.suffix not in READABLE_SUFFIXES:
        raise DataError(
            f"{path} is no result, whose name ends in {', '.join(READABLE_SUFFIXES)}; "
            f"`infocap estimate {path} -o result.nc` makes one of a recording or a store."
        )
    readers = {".nc": _read_netcdf, ".csv": _read_csv, ".html": _read_page}
    try:
        stored = readers[path.suffix](path)
        _refuse_unknown_families(path, stored.attributes)
        return _rebuild(stored)
    except DataError:
        raise
    # Pandas, JSON, NumPy and the families of the basis each raise several kinds on senseless
    # values.
    except Exception as problem:
        if isinstance(problem, KeyError):
            reason = f"lacks {problem}"
        else:
            reason = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise DataError(
            f"{path} is damaged: it {reason}; xarray or pandas may still read its arrays."
        ) from problem


def _read_netcdf(path: Path) -> StoredResult:
    """Return what a NetCDF4 file holds."""
    with open_hdf5(path) as contents:
        _refuse_other_formats(path, contents.attributes)

        def arrays(names: Any) -> dict[str, Any]:
            """Return those of the named arrays that the file has."""
            return {name: contents.numbers(name) for name in names if name in contents}

        if "index" in contents:
            indices = contents.numbers("index")
        else:
            factors = np.stack([contents.numbers(name) for name in FACTOR_VARIABLES], axis=2)
            indices = factors.reshape(len(factors), -1)
        metadata = {}
        if "metadata" in contents:
            metadata = json.loads("".join(contents.text("metadata")))
        return StoredResult(
            attributes=contents.attributes,
            indices=indices,
            columns=arrays(PER_TERM),
            metadata=metadata,
            coordinates=tuple(arrays(COORDINATES).values()),
            extra_arrays=arrays(EXTRA_ARRAYS),
        )


def _read_csv(path: Path) -> StoredResult:
    """Return what a table with infocap's header holds."""
    import pandas as pd

    data = read_text(path)
    if not data.startswith(b"# {"):
        raise DataError(
            f"{path} is a CSV file without the header of an infocap result; of measured data "
            f"`infocap estimate {path} -o result.nc` makes one."
        )
    header, _, rows = data.decode().partition("\n")
    attributes = json.loads(header[2:])
    _refuse_other_formats(path, attributes)
    # The text is converted below, because not every pandas reads back every digit.
    table = pd.read_csv(StringIO(rows), dtype=str, comment="#")
    columns = {name: table[name].to_numpy(dtype=float) for name in PER_TERM if name in table}
    is_whole = data.endswith(b"\n") and len(table) == attributes.get("n_terms")
    # Functions that cannot be told apart have no capacity.
    may_be_nan = attributes.get("law") == "recorded" or "no_numbers" in attributes["checks"]
    has_nan = any(np.isnan(column).any() for column in columns.values())
    if not is_whole or (has_nan and not may_be_nan):
        raise DataError(
            f"{path} is cut short: {len(table)} of {attributes.get('n_terms')} functions are "
            "there, the last perhaps in part; the table itself can still be read with "
            "pandas.read_csv(path, comment='#')."
        )
    # A table that the browser saved from a report has no checksum, and does not say that it has
    # one.
    if not has_checksum(path) and CHECKSUM_ATTRIBUTE in attributes:
        raise checksum_error(path)
    index_columns = [name for name in table if name.startswith(("index_u", "factor"))]
    return StoredResult(
        attributes=attributes,
        indices=table[index_columns].to_numpy(dtype=int),
        columns=columns,
        metadata=attributes.pop("metadata", {}),
    )


def _read_page(path: Path) -> StoredResult:
    """Return what a report or a card carries as JSON."""
    embedded = EMBEDDED_JSON.search(read_text(path))
    if embedded is None:
        raise DataError(
            f"{path} carries no numbers of infocap; give a report or a card that infocap wrote."
        )
    data = json.loads(embedded[1])
    _refuse_other_formats(path, data["attributes"])
    functions = data["functions"]
    return StoredResult(
        attributes=data["attributes"],
        indices=np.array(functions["index"]).T,
        columns={name: np.array(functions[name], float) for name in PER_TERM if name in functions},
        metadata=data["metadata"],
    )


def _refuse_other_formats(path: Path, attributes: dict[str, Any]) -> None:
    """Refuse a file that does not say it is a result of this format."""
    if attributes.get("format") != RESULT_FORMAT:
        raise DataError(
            f"{path} is not an {RESULT_FORMAT!r} file but {attributes.get('format')!r}; of "
            f"measured data `infocap estimate {path} -o result.nc` makes one."
        )


def _refuse_unknown_families(path: Path, attributes: dict[str, Any]) -> None:
    """Refuse a whole file whose basis has a family that this process does not know."""
    for family in json.loads(attributes["basis"])["families"]:
        name = family["name"]
        try:
            find_maker(name)
        except ParameterError as problem:
            raise DataError(
                f"{path} has functions of the family {name!r}, which is not known here; put the "
                "function that makes it into infocap.basis.FAMILIES before reading, or install the "
                "package that offers it."
            ) from problem


def saved_attributes(result: CapacityResult) -> dict[str, Any]:
    """Return what a file says about a result besides its table; JSON knows all of it."""
    attributes = {
        "format": RESULT_FORMAT,
        "infocap_version": __version__,
        "n_terms": len(result.basis),
        "basis": json.dumps(result.basis.to_dict()),
        "law": result.law,
        "checks": json.dumps([check.to_dict() for check in result.checks]),
    }
    if result.components is not None:
        attributes[COMPONENTS] = json.dumps(asdict(result.components))
    degree_errors = errors_by_degree(result)
    if degree_errors is not None:
        attributes[DEGREE_ERRORS] = degree_errors.tolist()
    for name in ("method", "total", FINGERPRINT, *WHOLE_NUMBERS, *OPTIONAL_FLOATS):
        value = getattr(result, name)
        if value is not None:
            attributes[name] = value
    return attributes


def saved_metadata(result: CapacityResult) -> dict[str, Any]:
    """Return the metadata and what a recording told besides capacities, as plain data."""
    plain = dict(result.metadata)
    for name in ANALYSES:
        analysis = getattr(result, name)
        if analysis is not None:
            plain[name] = asdict(analysis)
    if result.recorded_law is not None:
        plain[RECORDED_LAW] = result.recorded_law.to_dict()
    return plain


def _rebuild(stored: StoredResult) -> CapacityResult:
    """Return the result that a file holds; refuse arrays of unequal lengths, or not of numbers."""
    columns = stored.columns
    arrays_by_term = [columns["capacity"], columns["raw"], *columns.values()]
    arrays_by_term += [coordinates.T for coordinates in stored.coordinates]
    is_valid = stored.indices.ndim == 2
    for array in arrays_by_term:
        is_valid = is_valid and len(array) == len(stored.indices) and array.dtype.kind == "f"
    if not is_valid:
        shapes = ", ".join(f"{array.dtype} {array.shape}" for array in arrays_by_term)
        raise ValueError(f"holds {shapes} for functions of index {stored.indices.shape}")

    attributes = stored.attributes
    description = json.loads(attributes["basis"])
    kind_of_basis = DelayedBasis if "delayed" in description else ProductBasis
    fields: dict[str, Any] = {name: columns.get(name) for name in PER_TERM}
    for name in WHOLE_NUMBERS:
        fields[name] = int(attributes[name])
    for name in OPTIONAL_FLOATS:
        fields[name] = float(attributes[name]) if name in attributes else None
    fields[FINGERPRINT] = attributes.get(FINGERPRINT)
    if DEGREE_ERRORS in attributes:
        # Where a file has null or an error is not known, it is NaN.
        fields[DEGREE_ERRORS] = np.atleast_1d(np.array(attributes[DEGREE_ERRORS], dtype=float))
    if COMPONENTS in attributes:
        fields[COMPONENTS] = Components(**json.loads(attributes[COMPONENTS]))
    metadata = dict(stored.metadata)
    for name, kind in ANALYSES.items():
        if name in metadata:
            fields[name] = _analysis(kind, metadata.pop(name))
    if RECORDED_LAW in metadata:
        fields[RECORDED_LAW] = RecordedLaw.from_dict(metadata.pop(RECORDED_LAW))
    return CapacityResult(
        total=float(attributes["total"]),
        basis=kind_of_basis.from_dict(description, stored.indices.astype(np.int16)),
        method=str(attributes["method"]),
        checks=tuple(Check.from_dict(check) for check in json.loads(attributes["checks"])),
        metadata=metadata,
        coordinates=stored.coordinates,
        **stored.extra_arrays,
        **fields,
    )


def _analysis(kind: Any, saved: dict[str, Any]) -> Any:
    """Return a Growth, Factors or Drift, whose columns are lists in a file."""
    values = {}
    for name, value in saved.items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def is_result(path: str | Path) -> bool:
    """Return whether a file says that it holds a result."""
    path = Path(path)
    if not path.is_file():
        return False
    with suppress(OSError, ValueError):  # not there, broken, or of another format
        if path.suffix == ".csv":
            with path.open("rb") as file:
                return file.read(64).startswith(b'# {"format": "infocap result ')
        if path.suffix == ".html":
            return EMBEDDED_JSON.search(path.read_bytes()) is not None
        with open_hdf5(path) as contents:
            return contents.attributes.get("format") == RESULT_FORMAT
    return False
