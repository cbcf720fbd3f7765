"""Checks of what belongs to each row: design index, time of measurement, weight, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import is_on_device, to_numpy
from ..errors import DataError
from ..typing import ArrayLike, Floats, Integers
from ._table import Table, as_array

# Epochs, equal parts of the acquisition in the order of time, whose means are compared to find
# drift: enough to see a slow curve, few enough that each has a hundred samples of an ordinary run.
N_EPOCHS = 32
# Standard errors by which the mean of weights may miss 1; beyond, it is a mistake and not chance.
MAX_STANDARD_ERRORS_OF_MEAN_WEIGHT = 6.0
# Deviation of the mean weight from 1 that counts as rounding. For nearly equal weights, whose
# standard error is near zero, it is the only tolerance.
MAX_ROUNDING_OF_MEAN_WEIGHT = 1e-9
# The kinds of NumPy types that are numbers or times: signed, unsigned, float, date, duration.
KINDS_OF_NUMBERS_AND_TIMES = "iufMm"


def one_per_row(name: str, values: ArrayLike, n_rows: int) -> Any:
    """Return one number or time for each row as a NumPy array, none of them missing."""
    values = to_numpy(values) if is_on_device(values) else as_array(values, name)
    if values.shape != (n_rows,):
        raise DataError(
            f"{name} has shape {values.shape}; give one value for each of {n_rows} rows."
        )
    if values.dtype.kind not in KINDS_OF_NUMBERS_AND_TIMES:
        raise DataError(f"{name} holds {values.dtype} values; give numbers or times.")
    is_missing = np.isnan(values)
    if is_missing.any():
        row = int(np.argmax(is_missing))
        raise DataError(f"{name} is {values[row]} at row {row}; give a value for every row.")
    return values


def refuse_disorder(design_index: Integers) -> None:
    """Refuse a design index that does not increase from row to row."""
    falls = np.flatnonzero(np.diff(design_index) <= 0)
    if not len(falls):
        return
    row = int(falls[0]) + 1
    if len(np.unique(design_index)) < len(design_index):
        raise DataError(
            f"design_index has {design_index[row]} more than once; keep one row per point of the "
            "design."
        )
    raise DataError(
        f"design_index is {design_index[row]} at row {row}, after {design_index[row - 1]}: the "
        "halves of a Sobol design are its first and second part in index order; sort the rows with "
        "order = np.argsort(design_index)."
    )


def epochs_of_rows(times: Any) -> Integers:
    """Return the number of the epoch in which each row was measured."""
    n_rows = len(times)
    epochs = np.empty(n_rows, np.int8)
    epochs[np.argsort(times, kind="stable")] = np.arange(n_rows) * N_EPOCHS // n_rows
    return epochs


def density_ratios(weights: ArrayLike, n_rows: int) -> Floats:
    """Return weights as ratios of densities, one per row: none is negative, and their mean is 1."""
    values = np.asarray(one_per_row("sample_weight", weights, n_rows), dtype=float)
    is_valid = np.isfinite(values) & (values >= 0)
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise DataError(
            f"sample_weight is {values[row]} at row {row}; weights are ratios of densities, 0 or "
            "more."
        )
    mean = float(values.mean())
    standard_error = float(values.std()) / np.sqrt(n_rows)
    tolerance = MAX_STANDARD_ERRORS_OF_MEAN_WEIGHT * standard_error + MAX_ROUNDING_OF_MEAN_WEIGHT
    if abs(mean - 1) > tolerance:
        raise DataError(
            f"sample_weight has the mean {mean:.4g}; the density of the basis over that of the "
            "inputs has the mean 1: normalise both densities, or use draw_weighted."
        )
    return values


def table_of_repeats(repeats: ArrayLike, shape: tuple[int, int], complex_as: str | None) -> Table:
    """Return the second measurement as a table, with NaN in the rows that were not repeated."""
    table = Table(repeats, "repeats", complex_as)
    if table.shape != shape:
        raise DataError(
            f"repeats has shape {table.shape} and x has shape {shape}; give a second "
            "measurement of every row, with NaN in the rows that were not repeated."
        )
    return table
