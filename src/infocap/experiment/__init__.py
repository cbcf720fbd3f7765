"""In the lab: plan what to measure, acquire it without losing anything."""

from ..recording._recording import Measurement, Schedule
from ._acquire import INTERRUPTED, Status, acquire, status
from ._instrument import Instrument, SimulatedBench, simulated
from ._plan import Plan
from ._store import Store

__all__ = [
    "INTERRUPTED", "Instrument", "Measurement", "Plan", "Schedule", "SimulatedBench", "Status", "Store",
    "acquire", "simulated", "status",
]  # fmt: skip
