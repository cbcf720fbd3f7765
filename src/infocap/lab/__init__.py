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
    acquire,
    extend,
    status,
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
    "acquire",
    "adapters",
    "extend",
    "read",
    "status",
]
