"""Times in other people's files, in seconds."""

from contextlib import suppress

import numpy as np

from ...typing import Floats
from ..experiment import MAX_TIME_S

# The factor from one unit of time to the next: s, ms, µs, ns.
MILLI = 1000


def in_seconds(times: Floats, unit: str = "") -> Floats:
    """Convert times to seconds, from units such as ``hours since 2026-01-31`` or milliseconds.

    >>> in_seconds(np.array([1769853600500.0])).tolist()
    [1769853600.5]
    """
    if " since " in unit:
        with suppress(ValueError):  # a unit that xarray does not know
            return _decode_dates(times, unit)
    while np.max(times, initial=0, where=np.isfinite(times)) > MAX_TIME_S:
        times = times / MILLI
    return times


def _decode_dates(times: Floats, unit: str) -> Floats:
    """Convert times since a date, as NetCDF writes them (CF conventions), to seconds since 1970."""
    import xarray as xr

    encoded = xr.Dataset({"time": ("sample", times.ravel(), {"units": unit})})
    dates = xr.decode_cf(encoded)["time"].to_numpy()
    return (dates - np.datetime64(0, "s")) / np.timedelta64(1, "s")
