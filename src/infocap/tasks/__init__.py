"""Learning tasks: what capacities are good for, and which functions a task needs."""

from importlib import import_module
from typing import Any

from ._accuracy import Accuracy, CapacityAccuracy, accuracy, capacity_accuracy
from ._demand import Demand, demand
from ._predict import PredictedScore, named_task, predict_score
from ._sequences import channel_equalisation, mackey_glass, narma, parity
from ._task import Task, digits, two_spirals

__all__ = [
    "Accuracy", "CapacityAccuracy", "Demand", "PredictedScore", "SystemFeatures", "Task",
    "accuracy", "capacity_accuracy", "channel_equalisation", "demand", "digits", "mackey_glass",
    "named_task", "narma", "parity", "plot", "predict_score", "two_spirals",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import `SystemFeatures` and `plot` on first use: scikit-learn and matplotlib are heavy."""
    if name == "plot":
        return import_module(".plot", __name__)
    if name != "SystemFeatures":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from ._sklearn import SystemFeatures
    except ImportError as error:
        raise ImportError(
            f"tasks.{name} needs scikit-learn ({error}): pip install infocap[ml]."
        ) from None
    return SystemFeatures
