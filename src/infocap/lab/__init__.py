"""In the laboratory: plan what to measure, acquire it without losing anything, read what others measured, report."""

from ..recording import Recording
from . import adapters
from .experiment import (
    INTERRUPTED,
    Instrument,
    Measurement,
    Plan,
    Schedule,
    SimulatedBench,
    Status,
    Store,
    acquire,
    extend,
    simulated,
    status,
)  # fmt: skip
from .files import READERS, read

__all__ = [
    "INTERRUPTED", "READERS", "Instrument", "Measurement", "Plan", "Recording", "Schedule", "SimulatedBench", "Status",
    "Store", "acquire", "adapters", "extend", "read", "simulated", "status",
]  # fmt: skip
