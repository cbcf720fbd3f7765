"""Results on disk: NetCDF4 holds everything, CSV what a spreadsheet can show; both come back exactly."""

import json
import re
from contextlib import suppress
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import SEALED, changed, read_text, replaced, save_dataset, seal, sealed
from .._hdf5 import open_hdf5
from .._validation import one_of
from .._version import __version__
from ..basis._delayed import DelayedBasis
from ..basis._product import ProductBasis
from ..errors import Check, DataError
from ._capacity_result import PER_TERM, CapacityResult, Drift, Factors, Growth, per_term

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "infocap result 2"
FORMATS = ("infocap result 1", FORMAT)  # the first counts the constant among the readouts
SUFFIXES = (
    ".csv",
    ".nc",
    ".html",
)  # what `load_result` reads: tables, NetCDF, and cards and reports
CARRIED = re.compile(
    rb'id="infocap-data">(.*?)</', re.DOTALL
)  # the numbers in a card or a report, as JSON
COUNTS = ("n_samples", "n_readouts", "maximum", "rank")
MAYBE = ("total_standard_error", "noise_limited_total", "noise_limited_standard_error")
FOUND: dict[str, Any] = {"growth": Growth, "factors": Factors, "drift": Drift}
FACTORS = ("factor_input", "factor_delay", "factor_function")  # of functions of delayed inputs
COORDINATES = ("coordinates", "coordinates_first_half", "coordinates_second_half")
INSIDE = {  # arrays that `capacity_of`, `memory_capacity` and `readout_weights` need, and their dimensions
    "residual_covariance": ("coordinates_frame", "other_frame"),
    "without_stretches": ("stretch", "term"),
    "weights": ("constant_and_readout", "term"),
}


def to_dataset(result: CapacityResult) -> "xr.Dataset":
    """The result as an xarray data set; its attributes rebuild what arrays cannot hold."""
    import xarray as xr

    basis = result.basis
    variables: dict[str, Any] = {
        name: ("term", values) for name, values in per_term(result).items()
    }
    for name, part in zip(COORDINATES, result.coordinates, strict=False):
        variables[name] = ((f"{name}_frame", "term"), part)
    inside = {name: (dimensions, getattr(result, name)) for name, dimensions in INSIDE.items()}
    variables |= {name: one for name, one in inside.items() if one[1] is not None}
    if isinstance(basis, DelayedBasis):
        parts = zip(FACTORS, basis.factors.transpose(2, 0, 1), strict=True)
        variables |= {name: (("term", "factor"), part) for name, part in parts}
    else:
        variables["index"] = (("term", "input"), basis.indices)
    variables["metadata"] = (
        (),
        json.dumps(extras(result)),
    )  # a variable: attributes have a largest size
    coordinates = {
        "label": ("term", np.array(basis.labels, dtype=object)),
        "degree": ("term", basis.degrees),
        "variables": ("term", basis.interactions),
    }
    return xr.Dataset(variables, coordinates, attributes(result))


def save(result: CapacityResult, path: Path) -> Path:
    """Write a result; the suffix decides the format."""
    one_of("path suffix", path.suffix, (".nc", ".csv"))
    if path.suffix == ".nc":
        save_dataset(to_dataset(result), path)
        return path
    header = json.dumps(
        attributes(result) | {SEALED: "crc32 of all but the last line", "metadata": extras(result)}
    )
    with replaced(path) as beside:
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write(f"# {header}\n")
            result.to_dataframe().to_csv(file, index=False, float_format="%.17g")
        seal(beside)
    return path


def load_result(path: str | Path) -> CapacityResult:
    """Read what `CapacityResult.save` wrote, or the numbers that a report or a card carries.

    >>> import tempfile
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> result = infocap.probe(lambda u: u, basis, 64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_result(result.save(f"{folder}/result.nc"))
    >>> bool((again.capacity == result.capacity).all())
    True
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        said = f"{path} is no result, whose name ends in {', '.join(SUFFIXES)}"
        raise DataError(
            f"{said}; `infocap estimate {path} -o result.nc` makes one of a recording or a store."
        )
    reader = {".nc": _read_netcdf, ".csv": _read_csv}.get(path.suffix, _read_page)
    try:
        return _rebuild(*reader(path))
    except DataError:
        raise
    # Pandas, JSON, NumPy and the families of the basis each raise several kinds on senseless values.
    except Exception as problem:
        said = (
            f"lacks {problem}"
            if isinstance(problem, KeyError)
            else " ".join(str(problem).split())[:200]
        )
        raise DataError(
            f"{path} is damaged: it {said or type(problem).__name__}; xarray or pandas may still read its arrays."
        ) from problem


def _read_netcdf(path: Path) -> tuple[Any, ...]:
    """Attributes, indices, columns, coordinates and metadata, as `_rebuild` takes them."""
    with open_hdf5(path) as contents:
        _refuse_other(path, contents.attributes)
        columns = {name: contents.numbers(name) for name in PER_TERM if name in contents}
        inside: dict[str, Any] = {
            name: contents.numbers(name) for name in INSIDE if name in contents
        }
        inside["coordinates"] = tuple(
            contents.numbers(name) for name in COORDINATES if name in contents
        )
        metadata = contents.text("metadata") if "metadata" in contents else ["{}"]
        if "index" in contents:
            indices = contents.numbers("index")
        else:
            factors = np.stack([contents.numbers(name) for name in FACTORS], axis=2)
            indices = factors.reshape(len(factors), -1)
    return contents.attributes, indices, columns, inside, json.loads("".join(metadata))


def _read_csv(path: Path) -> tuple[Any, ...]:
    import pandas as pd

    data = read_text(path)
    if not data.startswith(b"# {"):
        raise DataError(
            f"{path} is a CSV file without the header of an infocap result; of measured data "
            f"`infocap estimate {path} -o result.nc` makes one."
        )
    header, _, rows = data.decode().partition("\n")
    attributes = json.loads(header[2:])
    _refuse_other(path, attributes)
    table = pd.read_csv(
        StringIO(rows), dtype=str, comment="#"
    )  # converted below: every pandas reads back every digit
    columns = {name: table[name].to_numpy(dtype=float) for name in PER_TERM if name in table}
    whole = data.endswith(b"\n") and len(table) == attributes.get("n_terms")
    if not whole or any(np.isnan(one).any() for one in columns.values()):
        raise DataError(
            f"{path} is cut short: {len(table)} of {attributes.get('n_terms')} functions are there, the last "
            "perhaps in part; the table itself can still be read with pandas.read_csv(path, comment='#')."
        )
    if not sealed(path) and SEALED in attributes:
        raise changed(path)
    indices = table[[name for name in table if name.startswith(("index_u", "factor"))]].to_numpy(
        dtype=int
    )
    return attributes, indices, columns, {}, attributes.pop("metadata", {})


def _read_page(path: Path) -> tuple[Any, ...]:
    carried = CARRIED.search(read_text(path))
    if carried is None:
        raise DataError(
            f"{path} carries no numbers of infocap; give a report or a card that infocap wrote."
        )
    data = json.loads(carried[1])
    _refuse_other(path, data["attributes"])
    columns = {
        name: np.array(data["functions"][name], float)
        for name in PER_TERM
        if name in data["functions"]
    }
    return data["attributes"], np.array(data["functions"]["index"]).T, columns, {}, data["metadata"]


def _refuse_other(path: Path, attributes: dict[str, Any]) -> None:
    if attributes.get("format") not in FORMATS:
        said = f"{path} is not an {FORMAT!r} file but {attributes.get('format')!r}"
        raise DataError(
            f"{said}; of measured data `infocap estimate {path} -o result.nc` makes one."
        )


def attributes(result: CapacityResult) -> dict[str, Any]:
    """What a file says about a result beside its table; JSON knows all of it."""
    known = {name: getattr(result, name) for name in ("method", "total", *COUNTS, *MAYBE)}
    return {
        "format": FORMAT,
        "infocap_version": __version__,
        "n_terms": len(result.basis),
        "basis": json.dumps(result.basis.to_dict()),
        "checks": json.dumps([check.to_dict() for check in result.checks]),
        **{name: value for name, value in known.items() if value is not None},
    }


def extras(result: CapacityResult) -> dict[str, Any]:
    """Metadata and what a recording told beside its capacities, as plain data."""
    found = {name: getattr(result, name) for name in FOUND}
    return result.metadata | {name: asdict(one) for name, one in found.items() if one is not None}


def _rebuild(
    attributes: Any, indices: Any, columns: Any, inside: Any, metadata: Any
) -> CapacityResult:
    coordinates = inside.get("coordinates", ())
    arrays = [
        columns["capacity"],
        columns["raw"],
        *columns.values(),
        *(part.T for part in coordinates),
    ]
    if indices.ndim != 2 or any(
        len(one) != len(indices) or one.dtype.kind != "f" for one in arrays
    ):
        shapes = [f"{one.dtype} {one.shape}" for one in arrays]
        raise ValueError(f"holds {', '.join(shapes)} for functions of index {indices.shape}")
    checks = json.loads(attributes["checks"])
    if (
        "maximum" not in attributes
    ):  # the first format: sentences for checks, the notes in the metadata
        readouts, notes = int(attributes["n_readouts"]), metadata.pop("notes", [])
        attributes = attributes | {"n_readouts": readouts - 1, "maximum": readouts}
        checks = [Check(one, "note" if one in notes else "warning").to_dict() for one in checks]
    fields: dict[str, Any] = {name: columns.get(name) for name in PER_TERM}
    fields |= {name: int(attributes[name]) for name in COUNTS}
    fields |= {name: float(attributes[name]) if name in attributes else None for name in MAYBE}
    for name, kind in FOUND.items():
        if name in metadata:
            saved = metadata.pop(name).items()
            fields[name] = kind(
                **{key: tuple(one) if isinstance(one, list) else one for key, one in saved}
            )
    described = json.loads(attributes["basis"])
    kind = DelayedBasis if "delayed" in described else ProductBasis
    return CapacityResult(
        total=float(attributes["total"]),
        basis=kind.from_dict(described, indices.astype(np.int16)),
        method=str(attributes["method"]),
        checks=tuple(map(Check.from_dict, checks)),
        metadata=metadata,
        **inside,
        **fields,
    )


def is_result(path: str | Path) -> bool:
    """Whether a file says that it holds a result."""
    path = Path(path)
    with suppress(OSError, ValueError):  # not there, broken, or of another format
        if path.suffix == ".csv":
            with path.open("rb") as file:
                return file.read(64).startswith(b'# {"format": "infocap result ')
        if path.suffix == ".html":
            return CARRIED.search(path.read_bytes()) is not None
        with open_hdf5(path) as contents:
            return str(contents.attributes.get("format")) in FORMATS
    return False
