"""In the laboratory: plan, acquire without losing anything, read what others measured, report."""

from ..recording import Recording
from . import adapters
from .experiment import (
    Instrument,
    Measurement,
    Plan,
    Schedule,
    SimulatedBench,
    Status,
    Store,
    SweepStatus,
    acquire,
    acquire_sweep,
    estimate_sweep,
    extend,
    extend_sweep,
    status,
    sweep_status,
)
from .files import READERS, read

__all__ = [
    "READERS",
    "Instrument",
    "Measurement",
    "Plan",
    "Recording",
    "Schedule",
    "SimulatedBench",
    "Status",
    "Store",
    "SweepStatus",
    "acquire",
    "acquire_sweep",
    "adapters",
    "estimate_sweep",
    "extend",
    "extend_sweep",
    "read",
    "status",
    "sweep_status",
]
