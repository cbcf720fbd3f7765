"""In the laboratory: plan what to measure, and acquire it without losing anything.

A datum takes these forms on its way: a `Measurement` of the plan's schedule, to which its readouts
are added; a `StoreRow`, packed and with a checksum; a row of the SQLite file; a `Measurement` again
when the file is read; a row of `Measurements`, arrays in which all measurements stand; and a row of
the `Recording`.
"""

from ._acquire import INTERRUPTED, acquire, extend
from ._instrument import (
    DRIVER_MISTAKES,
    Instrument,
    SimulatedBench,
    error_in_one_line,
    simulated_bench,
)
from ._measurement import Kind, Measurement
from ._plan import ORDERS, Plan
from ._schedule import Schedule
from ._status import (
    NAN_POLICIES,
    REFRESH_INTERVAL_S,
    Status,
    counts_in_words,
    pace_in_words,
    status,
)
from ._store import Store
from ._store_file import MAX_TIME_S, SQLITE_MAGIC, read_store, recording_of_store
from ._sweep import (
    SweepStatus,
    acquire_sweep,
    estimate_sweep,
    extend_sweep,
    is_sweep_folder,
    sweep_status,
)

__all__ = [
    "DRIVER_MISTAKES",
    "INTERRUPTED",
    "MAX_TIME_S",
    "NAN_POLICIES",
    "ORDERS",
    "REFRESH_INTERVAL_S",
    "SQLITE_MAGIC",
    "Instrument",
    "Kind",
    "Measurement",
    "Plan",
    "Schedule",
    "SimulatedBench",
    "Status",
    "Store",
    "SweepStatus",
    "acquire",
    "acquire_sweep",
    "counts_in_words",
    "error_in_one_line",
    "estimate_sweep",
    "extend",
    "extend_sweep",
    "is_sweep_folder",
    "pace_in_words",
    "read_store",
    "recording_of_store",
    "simulated_bench",
    "status",
    "sweep_status",
]
