"""Readouts from anywhere as one array of finite numbers."""

from __future__ import annotations

from ..errors import DataError
from ..samples import Table
from ..typing import ArrayLike, Floats


def readouts(source: ArrayLike, name: str) -> tuple[Floats, Table]:
    """Values (samples, readouts) as float64, and the table that can name their cells."""
    if getattr(getattr(source, "dtype", None), "kind", "") == "c":
        raise DataError(f"{name} is complex; give what is measured, such as abs({name})**2.")
    table = Table(source, name)
    return table.finite(), table
