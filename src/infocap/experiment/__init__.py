"""In the lab: plan what to measure, acquire it without losing anything."""

from ._plan import Plan
from ._schedule import Measurement, Schedule

__all__ = ["Measurement", "Plan", "Schedule"]
