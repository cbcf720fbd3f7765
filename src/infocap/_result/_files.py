"""Results on disk: NetCDF4 holds everything, CSV what a spreadsheet can show; both come back exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import one_of
from .._netcdf import load_dataset, save_dataset
from .._version import __version__
from ..basis import ProductBasis
from ..errors import DataError
from ._capacity_result import PER_TERM, CapacityResult

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "infocap result 1"
MAYBE = ("total_standard_error", "noise_limited_total", "noise_limited_standard_error")
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
    variables["metadata"] = ((), json.dumps(result.metadata))  # a variable: attributes have a largest size
    return xr.Dataset(
        variables,
        coords={
            "label": ("term", np.array(basis.labels, dtype=object)),
            "degree": ("term", basis.degrees),
            "variables": ("term", basis.interactions),
        },
        attrs=_attributes(result),
    )


def save(result: CapacityResult, path: Path) -> Path:
    """Write a result; the suffix decides the format."""
    one_of("path suffix", path.suffix, (".nc", ".csv"))
    if path.suffix == ".nc":
        save_dataset(to_dataset(result), path)
        return path
    header = json.dumps(_attributes(result) | {"metadata": result.metadata})
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {header}\n")
        result.to_dataframe().to_csv(file, index=False, float_format="%.17g")
    return path


def load_result(path: str | Path) -> CapacityResult:
    """Read what `CapacityResult.save` wrote."""
    path = Path(path)
    one_of("path suffix", path.suffix, (".nc", ".csv"))
    return _read_netcdf(path) if path.suffix == ".nc" else _read_csv(path)


def _read_netcdf(path: Path) -> CapacityResult:
    data = load_dataset(path, FORMAT)
    columns = {name: data[name].values for name in PER_TERM if name in data}
    coordinates = tuple(data[name].values for name in COORDINATES if name in data)
    metadata = json.loads(str(data["metadata"].values)) if "metadata" in data else {}
    return _rebuild(dict(data.attrs), data["index"].values, columns, coordinates, metadata)


def _read_csv(path: Path) -> CapacityResult:
    import pandas as pd

    if not path.exists():
        raise DataError(f"{path} does not exist.")
    with path.open(encoding="utf-8") as file:
        header = file.readline()
        if not header.startswith("# {"):
            raise DataError(f"{path} is a CSV file without the header of an infocap result.")
        table = pd.read_csv(file, dtype=str)  # converted below: every pandas then reads back every digit
    indices = table[[name for name in table if name.startswith("index_u")]].to_numpy(dtype=int)
    columns = {name: table[name].to_numpy(dtype=float) for name in PER_TERM if name in table}
    attributes = json.loads(header[2:])
    metadata = attributes.pop("metadata", {})
    if attributes.get("format") != FORMAT:
        raise DataError(f"{path} is not an {FORMAT!r} file but {attributes.get('format')!r}.")
    if len(table) != attributes.get("n_terms") or any(np.isnan(column).any() for column in columns.values()):
        raise DataError(
            f"{path} is cut short: {len(table)} of {attributes.get('n_terms')} functions are there, the last perhaps "
            "in part; the table itself can still be read with pandas.read_csv(path, comment='#')."
        )
    return _rebuild(attributes, indices, columns, (), metadata)


def _attributes(result: CapacityResult) -> dict[str, Any]:
    attributes = {
        "format": FORMAT,
        "infocap_version": __version__,
        "method": result.method,
        "total": result.total,
        "n_terms": len(result.basis),
        "n_samples": result.n_samples,
        "n_readouts": result.n_readouts,
        "rank": result.rank,
        "basis": json.dumps(result.basis.to_dict()),
        "checks": json.dumps(result.checks),
    }
    return attributes | {name: getattr(result, name) for name in MAYBE if getattr(result, name) is not None}


def _rebuild(
    attributes: dict[str, Any],
    indices: np.ndarray,
    columns: dict[str, np.ndarray],
    coordinates: tuple[np.ndarray, ...],
    metadata: dict[str, Any],
) -> CapacityResult:
    maybe = {name: float(attributes[name]) if name in attributes else None for name in MAYBE}
    return CapacityResult(
        **{name: columns.get(name) for name in PER_TERM},  # type: ignore[arg-type]
        total=float(attributes["total"]),
        **maybe,  # type: ignore[arg-type]
        n_samples=int(attributes["n_samples"]),
        n_readouts=int(attributes["n_readouts"]),
        rank=int(attributes["rank"]),
        basis=ProductBasis.from_dict(json.loads(attributes["basis"]), indices.astype(np.int16)),
        method=str(attributes["method"]),
        checks=tuple(json.loads(attributes["checks"])),
        coordinates=coordinates,
        metadata=metadata,
    )
