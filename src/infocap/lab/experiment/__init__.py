"""In the lab: plan what to measure, acquire it without losing anything."""

from ._acquire import INTERRUPTED, acquire, extend
from ._instrument import Instrument, SimulatedBench, simulated
from ._plan import Plan
from ._schedule import Measurement, Schedule
from ._status import Status, status
from ._store import Store

__all__ = [
    "INTERRUPTED", "Instrument", "Measurement", "Plan", "Schedule", "SimulatedBench", "Status", "Store",
    "acquire", "extend", "simulated", "status",
]  # fmt: skip
