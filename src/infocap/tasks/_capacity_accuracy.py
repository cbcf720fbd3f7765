"""Capacity against accuracy over several settings of a device: does the one predict the other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._check import probability
from .._files import axis_values
from ..errors import DataError, ParameterError
from ..result import CapacityResult
from ..typing import Floats
from ._accuracy import Accuracy

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False)
class CapacityAccuracy:
    """Total capacity and accuracy at each setting, in the order of the sweep.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> def make(n_readouts):
    ...     return infocap.systems.RandomFeatures(2, n_readouts, gain=3.0, noise=0.01)
    >>> sweep = infocap.sweep(make, {"n_readouts": [2, 4, 8, 12]}, basis, 128, seed=1, progress=False)
    >>> task = infocap.tasks.two_spirals(n_points=200)
    >>> scores = [infocap.tasks.accuracy(make(**point), task) for point in sweep.points]
    >>> relation = infocap.tasks.capacity_accuracy(sweep, scores)
    >>> relation.total.shape, relation.accuracy.shape
    ((4,), (4,))
    >>> low, high = relation.interval()
    >>> -1 <= low <= relation.correlation <= high <= 1
    True
    """

    total: Floats
    total_standard_error: Floats | None
    accuracy: Floats
    accuracy_standard_error: Floats
    linear: float
    task: str
    settings: dict[str, tuple[Any, ...]]  # values of each parameter; the last varies fastest

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"CapacityAccuracy: correlation {self.correlation:.2f}, 95 % between {low:.2f} and {high:.2f}\n"
            f"  {len(self.total)} settings, total capacity {self.total.min():.1f} to {self.total.max():.1f}, "
            f"accuracy {self.accuracy.min():.1%} to {self.accuracy.max():.1%} on {self.task}, "
            f"linear model {self.linear:.1%}"
        )

    @property
    def correlation(self) -> float:
        """Pearson's correlation of total capacity and mean accuracy."""
        return float(np.corrcoef(self.total, self.accuracy)[0, 1])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Fisher's interval of the correlation: atanh(r) ± z / sqrt(n - 3).

        It treats the settings as n independent draws of a normal pair, which the points of a sweep are not:
        read it as "with so few settings, no surer than this". Up to three settings say nothing: (-1, 1).
        """
        from scipy.special import ndtri

        n = len(self.total)
        if n <= 3:
            return -1.0, 1.0
        reach = float(ndtri(0.5 + probability("level", level) / 2)) / np.sqrt(n - 3)
        centre = np.arctanh(np.clip(self.correlation, -1 + 1e-15, 1 - 1e-15))
        return float(np.tanh(centre - reach)), float(np.tanh(centre + reach))

    def to_xarray(self) -> xr.Dataset:
        """One table: total, accuracy and their errors over the settings; the correlation among the attributes."""
        import xarray as xr

        names, shape = tuple(self.settings), tuple(len(values) for values in self.settings.values())
        columns = {
            "total": self.total,
            "total_standard_error": self.total_standard_error,
            "accuracy": self.accuracy,
            "accuracy_standard_error": self.accuracy_standard_error,
        }
        low, high = self.interval()
        return xr.Dataset(
            {name: (names, column.reshape(shape)) for name, column in columns.items() if column is not None},
            coords={name: axis_values(values) for name, values in self.settings.items()},
            attrs={
                "task": self.task,
                "linear_accuracy": self.linear,
                "correlation": self.correlation,
                "correlation_interval": [low, high],
                "correlation_interval_method": "Fisher, 95 %",
            },
        )


def capacity_accuracy(results: Any, accuracies: Sequence[Accuracy]) -> CapacityAccuracy:
    """Put the capacities of a sweep next to the accuracies at the same settings.

    Parameters
    ----------
    results
        What `infocap.sweep` gave, or a list of `CapacityResult`.
    accuracies
        One `Accuracy` for each, in the same order:
        ``[accuracy(make_system(**point), task) for point in sweep.points]``.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=3)
    >>> def make(n_readouts):
    ...     return infocap.systems.RandomFeatures(2, n_readouts, gain=3.0, noise=0.01)
    >>> sweep = infocap.sweep(make, {"n_readouts": [2, 4, 8, 12]}, basis, 128, seed=1, progress=False)
    >>> task = infocap.tasks.two_spirals(n_points=200)
    >>> scores = [infocap.tasks.accuracy(make(**point), task) for point in sweep.points]
    >>> relation = infocap.tasks.capacity_accuracy(sweep, scores)
    >>> relation.settings
    {'n_readouts': (2, 4, 8, 12)}
    """
    settings = dict(getattr(results, "settings", {}))
    found: list[CapacityResult] = list(getattr(results, "results", results))
    scores = list(accuracies)
    for kind, ones in ((CapacityResult, found), (Accuracy, scores)):
        for one in ones:
            if not isinstance(one, kind):
                raise ParameterError(
                    f"capacity_accuracy got a {type(one).__name__} where {kind.__name__} is needed."
                )
    if len(found) != len(scores) or len(found) < 2:
        raise DataError(
            f"{len(found)} results and {len(scores)} accuracies: give one accuracy for each result, two at least."
        )
    if len({score.task for score in scores}) > 1:
        raise DataError(f"the accuracies are of different tasks, {sorted({score.task for score in scores})}.")
    total, accuracy = np.array([one.total for one in found]), np.array([one.mean for one in scores])
    for name, values in (("total capacities", total), ("accuracies", accuracy)):
        if np.ptp(values) == 0:
            raise DataError(f"all {name} are {values[0]:g}: nothing to correlate; vary the settings more.")
    errors = [one.total_standard_error for one in found]
    return CapacityAccuracy(
        total,
        None if any(error is None for error in errors) else np.array(errors, dtype=float),
        accuracy,
        np.array([one.standard_error for one in scores]),
        float(np.mean([one.linear_mean for one in scores])),
        scores[0].task,
        settings or {"setting": tuple(range(len(found)))},
    )
