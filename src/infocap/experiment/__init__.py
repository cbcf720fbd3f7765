"""In the lab: plan what to measure, acquire it without losing anything."""

from ..recording._recording import Measurement, Schedule
from . import adapters
from ._acquire import INTERRUPTED, acquire, extend
from ._doctor import Inspection, inspect
from ._instrument import Instrument, SimulatedBench, simulated
from ._plan import Plan
from ._status import Status, status
from ._store import Store

__all__ = [
    "INTERRUPTED", "Inspection", "Instrument", "Measurement", "Plan", "Schedule", "SimulatedBench", "Status", "Store",
    "acquire", "adapters", "extend", "inspect", "simulated", "status",
]  # fmt: skip
