"""In the laboratory: plan what to measure, and acquire it without losing anything."""

from ._acquire import INTERRUPTED, acquire, extend
from ._instrument import MISTAKES, Instrument, SimulatedBench, in_one_line, simulated
from ._measurement import Kind, Measurement
from ._plan import Plan
from ._schedule import Schedule
from ._status import Status, counts, pace, status
from ._store import Store
from ._store_file import LATEST_S, MAGIC, read_entries, to_recording

__all__ = [
    "INTERRUPTED",
    "LATEST_S",
    "MAGIC",
    "MISTAKES",
    "Instrument",
    "Kind",
    "Measurement",
    "Plan",
    "Schedule",
    "SimulatedBench",
    "Status",
    "Store",
    "acquire",
    "counts",
    "extend",
    "in_one_line",
    "pace",
    "read_entries",
    "simulated",
    "status",
    "to_recording",
]
