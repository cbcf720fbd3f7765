"""Readouts from anywhere as one array of finite numbers."""

from __future__ import annotations

import numpy as np

from .._array import Table
from ..errors import DataError
from ..typing import ArrayLike, Floats


def readouts(source: ArrayLike, name: str) -> tuple[Floats, Table]:
    """Values (samples, readouts) as float64, and the table that can name their cells."""
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise DataError(f"{name} is complex; give what is measured, such as abs({name})**2.")
    table = Table(source, name)
    values = table.read(0, table.shape[0])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(number) for number in bad[0])
        raise DataError(
            f"{name} has {len(bad)} NaN or infinite values, the first {values[row, column]} at "
            f"{table.place(row, column)}; repair the data, or leave such rows out."
        )
    return values, table
