"""Results on disk: NetCDF4 holds everything, CSV what a spreadsheet can show; both come back exactly."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import one_of
from .._files import open_hdf5, readable, refuse_too_large, replaced, save_dataset
from .._version import __version__
from ..basis import ProductBasis
from ..errors import Check, DataError
from ._capacity_result import PER_TERM, CapacityResult
from ._found import Drift, Factors, Growth

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "infocap result 2"
FORMATS = ("infocap result 1", FORMAT)  # the first counts the constant among the readouts
MAYBE = ("total_standard_error", "noise_limited_total", "noise_limited_standard_error")
TEXT_EXPANSION = 40  # bytes of memory for each byte of text: cells are read as strings
FOUND: dict[str, Any] = {"growth": Growth, "factors": Factors, "drift": Drift}
COORDINATES = ("coordinates", "coordinates_first_half", "coordinates_second_half")


def to_dataset(result: CapacityResult) -> xr.Dataset:
    """The result as an xarray data set; its attributes rebuild what arrays cannot hold."""
    import xarray as xr

    basis = result.basis
    variables: dict[str, Any] = {
        name: ("term", getattr(result, name)) for name in PER_TERM if getattr(result, name) is not None
    }
    for name, part in zip(COORDINATES, result.coordinates, strict=False):
        variables[name] = ((f"{name}_frame", "term"), part)
    variables["index"] = (("term", "input"), basis.indices)
    variables["metadata"] = ((), json.dumps(_extras(result)))  # a variable: attributes have a largest size
    return xr.Dataset(
        variables,
        coords={
            "label": ("term", np.array(basis.labels, dtype=object)),
            "degree": ("term", basis.degrees),
            "variables": ("term", basis.interactions),
        },
        attrs=attributes(result),
    )


def save(result: CapacityResult, path: Path) -> Path:
    """Write a result; the suffix decides the format."""
    one_of("path suffix", path.suffix, (".nc", ".csv"))
    if path.suffix == ".nc":
        save_dataset(to_dataset(result), path)
        return path
    header = json.dumps(attributes(result) | {"metadata": _extras(result)})
    with replaced(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {header}\n")
        result.to_dataframe().to_csv(file, index=False, float_format="%.17g")
    return path


def load_result(path: str | Path) -> CapacityResult:
    """Read what `CapacityResult.save` wrote.

    >>> import tempfile
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> result = infocap.probe(lambda u: u, basis, 64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_result(result.save(f"{folder}/result.nc"))
    >>> bool((again.capacity == result.capacity).all())
    True
    """
    path = Path(path)
    one_of("path suffix", path.suffix, (".nc", ".csv"))
    return _read_netcdf(path) if path.suffix == ".nc" else _read_csv(path)


def _read_netcdf(path: Path) -> CapacityResult:
    with open_hdf5(path, "NetCDF") as contents:
        found = contents.attributes.get("format")
        if found not in FORMATS:
            raise DataError(f"{path} is not an {FORMAT!r} file but {found!r}; it holds {contents}.")
        columns = {name: contents.numbers(name) for name in PER_TERM if name in contents}
        coordinates = tuple(contents.numbers(name) for name in COORDINATES if name in contents)
        metadata = contents.text("metadata") if "metadata" in contents else ["{}"]
        indices = contents.numbers("index")
        with _damage(path):
            return _rebuild(contents.attributes, indices, columns, coordinates, json.loads("".join(metadata)))


def _read_csv(path: Path) -> CapacityResult:
    import pandas as pd

    readable(path)
    refuse_too_large(path, "text", (path.stat().st_size,), TEXT_EXPANSION)
    with path.open("rb") as file:
        if file.read(3) != b"# {":
            raise DataError(
                f"{path} is a CSV file without the header of an infocap result; of measured data "
                f"`infocap estimate {path} -o result.nc` makes one."
            )
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise DataError(
                f"{path} is cut short within its last line; the table itself can still be read with "
                "pandas.read_csv(path, comment='#')."
            )
    with _damage(path), path.open(encoding="utf-8") as text:
        attributes = json.loads(text.readline()[2:])
        if attributes.get("format") not in FORMATS:
            raise DataError(f"{path} is not an {FORMAT!r} file but {attributes.get('format')!r}.")
        table = pd.read_csv(text, dtype=str)  # converted below: every pandas then reads back every digit
        metadata = attributes.pop("metadata", {})
        columns = {name: table[name].to_numpy(dtype=float) for name in PER_TERM if name in table}
        if len(table) != attributes.get("n_terms") or any(np.isnan(one).any() for one in columns.values()):
            raise DataError(
                f"{path} is cut short: {len(table)} of {attributes.get('n_terms')} functions are there, the last "
                "perhaps in part; the table itself can still be read with pandas.read_csv(path, comment='#')."
            )
        indices = table[[name for name in table if name.startswith("index_u")]].to_numpy(dtype=int)
        return _rebuild(attributes, indices, columns, (), metadata)


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Make one DataError of all that a result with missing or senseless parts can cause."""
    try:
        yield
    except DataError:
        raise
    # Pandas, JSON, NumPy and the families of the basis each raise several kinds on senseless values.
    except Exception as problem:
        said = f"lacks {problem}" if isinstance(problem, KeyError) else " ".join(str(problem).split())[:200]
        raise DataError(
            f"{path} is damaged: it {said or type(problem).__name__}; xarray or pandas may still read its arrays."
        ) from problem


def attributes(result: CapacityResult) -> dict[str, Any]:
    """What a file says about a result beside its table; JSON knows all of it."""
    known = {
        "format": FORMAT,
        "infocap_version": __version__,
        "method": result.method,
        "total": result.total,
        "n_terms": len(result.basis),
        "n_samples": result.n_samples,
        "n_readouts": result.n_readouts,
        "maximum": result.maximum,
        "rank": result.rank,
        "basis": json.dumps(result.basis.to_dict()),
        "checks": json.dumps([check.to_dict() for check in result.checks]),
    }
    return known | {name: getattr(result, name) for name in MAYBE if getattr(result, name) is not None}


def _extras(result: CapacityResult) -> dict[str, Any]:
    """Metadata and what a recording told beside its capacities, as plain data."""
    found = {name: getattr(result, name) for name in FOUND}
    return result.metadata | {name: asdict(one) for name, one in found.items() if one is not None}


def _checks(saved: list[Any], notes: list[str]) -> tuple[Check, ...]:
    """Checks as they were saved; the first format had sentences, and which of them are notes in the metadata."""
    return tuple(
        Check(one, "note" if one in notes else "warning") if isinstance(one, str) else Check.from_dict(one)
        for one in saved
    )


def _rebuild(
    attributes: dict[str, Any],
    indices: np.ndarray,
    columns: dict[str, np.ndarray],
    coordinates: tuple[np.ndarray, ...],
    metadata: dict[str, Any],
) -> CapacityResult:
    _refuse_unequal(indices, columns, coordinates)
    found = {name: kind(**_tuples(metadata.pop(name))) for name, kind in FOUND.items() if name in metadata}
    maximum = int(attributes.get("maximum", attributes["n_readouts"]))
    maybe = {name: float(attributes[name]) if name in attributes else None for name in MAYBE}
    return CapacityResult(
        **{name: columns.get(name) for name in PER_TERM},  # type: ignore[arg-type]
        total=float(attributes["total"]),
        **maybe,  # type: ignore[arg-type]
        n_samples=int(attributes["n_samples"]),
        n_readouts=int(attributes["n_readouts"]) if "maximum" in attributes else maximum - 1,
        maximum=maximum,
        rank=int(attributes["rank"]),
        basis=ProductBasis.from_dict(json.loads(attributes["basis"]), indices.astype(np.int16)),
        method=str(attributes["method"]),
        checks=_checks(json.loads(attributes["checks"]), metadata.pop("notes", [])),
        coordinates=coordinates,
        **found,
        metadata=metadata,
    )


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _refuse_unequal(
    indices: np.ndarray, columns: dict[str, np.ndarray], coordinates: tuple[np.ndarray, ...]
) -> None:
    """Every array has one entry for each function."""
    if indices.ndim != 2 or "capacity" not in columns or "raw" not in columns:
        raise ValueError(
            f"holds an index of shape {indices.shape} and {list(columns)}, too little for a result"
        )
    for values in (*columns.values(), *(part.T for part in coordinates)):
        if len(values) != len(indices) or values.dtype.kind != "f":
            raise ValueError(
                f"holds {values.dtype} values of shape {values.shape} for {len(indices)} functions"
            )


def is_result(path: str | Path) -> bool:
    """Whether a file says that it holds a result."""
    import h5py

    path = Path(path)
    if not path.is_file():
        return False
    try:
        if path.suffix == ".csv":
            with path.open("rb") as file:
                return file.read(64).startswith(b'# {"format": "infocap result ')
        with h5py.File(path, "r") as file:
            return str(file.attrs.get("format")) in FORMATS
    except (OSError, RuntimeError, TypeError, ValueError, UnicodeError):
        return False  # broken, or of another format
