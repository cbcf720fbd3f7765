"""How well a system with a linear readout does a task, and whether its capacity predicts that."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import to_numpy
from .._files import axis_values
from .._validation import probability, whole_number, yes_or_no
from ..errors import Check, DataError, ParameterError
from ..result._capacity_result import CapacityResult
from ..samples._table import Table
from ..systems._measure import measure
from ..typing import ArrayLike, Floats, System
from ._task import Task, reduction

if TYPE_CHECKING:
    import xarray as xr

LEAST_SQUARES = "least-squares"
# A readout whose standard deviation is below so many roundings of its mean is constant, and gets no weight.
ROUNDINGS = 32
# With fewer samples per readout than this, a fit without a penalty follows the noise.
SAMPLES_PER_READOUT = 4


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """How well samples are predicted that were not trained on, fold by fold: the share of right classes, or R².

    The standard error is that of the mean over the folds, as in the paper. `linear_per_fold` is for the same readout,
    trained on the inputs without the system. For real targets `per_fold` is R² = 1 - mean squared error / variance of
    the target within the fold, and `nrmse` the mean over the folds of the square root of 1 - R².

    >>> score = Accuracy(np.array([0.9, 0.8]), np.array([0.5, 0.5]), "spirals", "drawn", 200, "least-squares", False)
    >>> round(score.mean, 3), round(score.standard_error, 3), score.linear_mean
    (0.85, 0.05, 0.5)
    """

    per_fold: Floats
    linear_per_fold: Floats
    task: str
    source: str
    n_samples: int
    readout: str
    leak_free: bool
    checks: tuple[str, ...] = ()
    measure: str = "accuracy"  # or "R²", of a real target

    def __repr__(self) -> str:
        error = ""
        if self.measure == "R²":
            error = f", NRMSE {self.nrmse:.3f} ± {_standard_error(np.sqrt(1 - self.per_fold)):.3f}"
        lines = [
            f"{self.measure.capitalize()}: {_percent(self.per_fold)}{error} on {self.task}",
            f"linear model {_percent(self.linear_per_fold)}",
            f"{self.n_samples} samples, {len(self.per_fold)} folds, {self.readout} readout, source: {self.source}",
            *(f"check: {check}" for check in self.checks),
        ]
        return "\n  ".join(lines)

    @property
    def mean(self) -> float:
        """The mean accuracy over the folds."""
        return float(np.mean(self.per_fold))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean accuracy."""
        return _standard_error(self.per_fold)

    @property
    def linear_mean(self) -> float:
        """The mean accuracy over the folds without the system."""
        return float(np.mean(self.linear_per_fold))

    @property
    def nrmse(self) -> float:
        """Root mean squared error of a real target over its standard deviation, the mean over the folds."""
        if self.measure != "R²":
            raise ParameterError(
                f"`nrmse` is for real targets; {self.task} has classes, whose accuracy is `mean`."
            )
        return float(np.mean(np.sqrt(1 - self.per_fold)))


def accuracy(
    system: System | ArrayLike,
    task: Task,
    folds: int = 5,
    *,
    readout: Any = LEAST_SQUARES,
    leak_free: bool = False,
    washout: int = 100,
    seed: int | None = 0,
) -> Accuracy:
    """Cross-validated accuracy of a linear readout on a system's answers, next to the linear model alone.

    For classes it is the share of samples classified correctly; for real targets R², with NRMSE beside it.
    Folds are shuffled, and each has its share of every class. Those of a sequence are contiguous stretches, with a gap
    of ``task.memory`` rows on both sides that neither train nor test, and its linear model sees all inputs of that
    memory.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts), or the readouts already measured at ``task.inputs``.
    readout
        ``"least-squares"``, the paper's: an indicator of each class is regressed on the readouts, and the highest score
        wins; a real target is regressed itself. Or a classifier or regressor of scikit-learn, such as
        ``make_pipeline(StandardScaler(), RidgeClassifier())``: any object with ``fit(x, labels)`` and ``predict(x)``.
    leak_free
        A reduced task such as `digits` has principal components and scale from all samples, as in the paper: the test
        samples' features, though not their labels, had a say. True fits both to the training part of each fold; the
        system is then measured anew in each, and test inputs beyond [-1, 1] are clipped. Other tasks do not change.
    washout
        Of a sequence: rows at its start that are left out while the system forgets its initial state, at least
        ``task.memory``. `infocap.systems.check_fading` tells how many a system needs.
    seed
        Of the folds and, where the system takes one, of its noise.

    Examples
    --------
    >>> task = infocap.tasks.two_spirals(turns=1)
    >>> accuracy(infocap.systems.RandomFeatures(2, 50, gain=3.0), task).mean > 0.9
    True
    """
    if not isinstance(task, Task):
        raise ParameterError(
            f"task is a {type(task).__name__}; make one with tasks.Task(inputs, labels)."
        )
    if readout != LEAST_SQUARES and not (hasattr(readout, "fit") and hasattr(readout, "predict")):
        raise ParameterError(
            f"`readout={readout!r}` is neither 'least-squares' nor a classifier or regressor with fit and predict; "
            "give one of scikit-learn's, such as make_pipeline(StandardScaler(), RidgeClassifier())."
        )
    leak_free, folds = yes_or_no("leak_free", leak_free), whole_number("folds", folds, 2)
    splits = task.splits(folds, seed, max(whole_number("washout", washout, 0), task.memory))
    checks: list[str] = []
    seeds = [None] * (folds + 1) if seed is None else np.random.SeedSequence(seed).spawn(folds + 1)
    features = task.features if leak_free else None
    if features is not None and not callable(system):
        raise ParameterError(
            "`leak_free=True` encodes the samples anew in each fold, so the system must be a callable; readouts "
            "measured beforehand belong to one encoding."
        )
    inputs = task.inputs
    x = inputs if features is not None else _readouts(system, inputs, seeds[0], checks)
    scores = []
    for fold, (train, test) in enumerate(splits):
        if features is not None:  # principal components and scale of the training samples alone
            free = reduction(features[train], task.n_inputs)(features)
            if clipped := int(np.sum(np.any(np.abs(free[test]) > 1, axis=1))):
                said = f"fold {fold}: {clipped} test samples lay beyond [-1, 1] and were clipped."
                checks.append(Check(said, "note"))
            inputs = np.clip(free, -1.0, 1.0)
            x = _readouts(system, inputs, seeds[fold + 1], checks)
        past = np.hstack([np.roll(inputs, delay, axis=0) for delay in range(task.memory + 1)])
        scores.append([_score(z, task, train, test, readout) for z in (x, past)])
    per_fold, linear = np.array(scores).T
    name, once = " ".join(str(readout).split()), tuple(dict.fromkeys(checks))
    measured = "R²" if task.regression else "accuracy"
    return Accuracy(
        per_fold, linear, task.name, task.source, len(x), name, leak_free, once, measured
    )


def _readouts(system: Any, inputs: Floats, seed: Any, checks: list[str]) -> Floats:
    x = Table(
        to_numpy(measure(system, inputs, seed)) if callable(system) else system, "readouts"
    ).finite()
    if len(x) != len(inputs):
        raise DataError(
            f"readouts has {len(x)} rows for {len(inputs)} samples of the task; give one per sample."
        )
    if len(x) < SAMPLES_PER_READOUT * x.shape[1]:
        said = f"{len(x)} samples are few to train {x.shape[1]} readouts: the fit may follow noise"
        remedy = (
            "use a `readout` with a penalty, such as scikit-learn's RidgeClassifier() or Ridge()"
        )
        checks.append(Check(f"{said}; {remedy}."))
    return x


def _score(x: Floats, task: Task, train: np.ndarray, test: np.ndarray, readout: Any) -> float:
    """R² of a real target, the share of right answers for classes, both on the rows that test."""
    wanted = task.labels if task.regression else task.codes
    if readout != LEAST_SQUARES:
        predicted = deepcopy(readout).fit(x[train], wanted[train]).predict(x[test])
    else:
        mean, deviation = x[train].mean(axis=0), np.std(x[train], axis=0)
        varies = deviation > ROUNDINGS * np.finfo(float).eps * np.abs(mean)
        z = (x - mean) / np.where(varies, deviation, np.inf)  # units do not matter
        y, offset = task.targets[train], task.targets[train].mean(axis=0)
        predicted = z[test] @ np.linalg.lstsq(z[train], y - offset, rcond=None)[0] + offset
        predicted = predicted[:, 0] if task.regression else np.argmax(predicted, axis=1)
    if not task.regression:
        return float(np.mean(predicted == wanted[test]))
    if not (variance := np.var(wanted[test])):
        raise DataError(
            f"the target of {task.name} is {wanted[test][0]:g} in a whole fold; give fewer `folds`."
        )
    return float(1 - np.mean((np.ravel(predicted) - wanted[test]) ** 2) / variance)


def _percent(per_fold: Floats) -> str:
    """The mean in per cent, with its standard error if it is worth a digit."""
    error = _standard_error(per_fold)
    return f"{np.mean(per_fold):.1%}" + (f" ± {error:.1%}" if error >= 5e-4 else "")


def _standard_error(per_fold: Floats) -> float:
    return float(np.std(per_fold, ddof=1) / np.sqrt(len(per_fold)))


@dataclass(frozen=True, eq=False, repr=False)
class CapacityAccuracy:
    """Total capacity and accuracy at each setting, in the order of the sweep.

    >>> total, accuracy = np.array([5.0, 9.0, 14.0, 17.0]), np.array([0.55, 0.63, 0.71, 0.74])
    >>> relation = CapacityAccuracy(total, None, accuracy, np.full(4, 0.01), 0.54, "spirals", {"power": (1, 2, 3, 4)})
    >>> relation
    CapacityAccuracy: correlation 0.99, 95 % between 0.71 and 1.00
      4 settings, total capacity 5.0 to 17.0, accuracy 55.0% to 74.0% on spirals, linear model 54.0%
    """

    total: Floats
    total_standard_error: Floats | None
    accuracy: Floats
    accuracy_standard_error: Floats
    linear: float
    task: str
    settings: dict[str, tuple[Any, ...]]  # values of each parameter; the last varies fastest
    unreliable: tuple[str, ...] = ()  # why each total cannot be trusted, "" where it can be
    measure: str = "accuracy"  # or "R²", of a real target

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"CapacityAccuracy: correlation {self.correlation:.2f}, 95 % between {low:.2f} and {high:.2f}\n"
            f"  {len(self.total)} settings, total capacity {self.total.min():.1f} to {self.total.max():.1f}, "
            f"{self.measure} {self.accuracy.min():.1%} to {self.accuracy.max():.1%} on {self.task}, "
            f"linear model {self.linear:.1%}"
            + (
                f"\n  {self.doubtful.sum()} of the totals are unreliable"
                if self.doubtful.any()
                else ""
            )
        )

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """Whether the total of each setting is unreliable."""
        return np.array(self.unreliable or [""] * len(self.total)) != ""

    @property
    def correlation(self) -> float:
        """Pearson's correlation of total capacity and mean accuracy."""
        return float(np.corrcoef(self.total, self.accuracy)[0, 1])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Fisher's interval of the correlation: atanh(r) ± z / sqrt(n - 3).

        It treats the settings as n independent draws of a normal pair, which the points of a sweep are not:
        read it as "with so few settings, no surer than this". Up to three settings say nothing: (-1, 1).
        """
        from scipy.stats import pearsonr

        low, high = pearsonr(self.total, self.accuracy).confidence_interval(
            probability("level", level)
        )
        return float(low), float(high)

    def to_xarray(self) -> "xr.Dataset":
        """One table: total, accuracy and their errors over the settings; the correlation among the attributes."""
        import xarray as xr

        shape = [len(values) for values in self.settings.values()]
        names = ("total", "total_standard_error", "accuracy", "accuracy_standard_error")
        columns = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        columns |= {"unreliable": np.array(self.unreliable)} if self.unreliable else {}
        attrs = {"task": self.task, "measure": self.measure, "linear_accuracy": self.linear}
        attrs |= {"correlation": self.correlation, "correlation_interval": list(self.interval())}
        attrs |= {"correlation_interval_method": "Fisher, 95 %"}
        return xr.Dataset(
            {
                name: (tuple(self.settings), column.reshape(shape))
                for name, column in columns.items()
            },
            coords={name: axis_values(values) for name, values in self.settings.items()},
            attrs=attrs,
        )


def capacity_accuracy(results: Any, accuracies: Sequence[Accuracy]) -> CapacityAccuracy:
    """Put the capacities of a sweep next to the accuracies at the same settings.

    Parameters
    ----------
    results
        What `infocap.sweep` gave, or a list of `CapacityResult`.
    accuracies
        One `Accuracy` per result, in the same order:
        ``[accuracy(make_system(**point), task) for point in sweep.points]``.

    Examples
    --------
    >>> basis, task = infocap.product_basis("legendre", 2, max_degree=3), infocap.tasks.two_spirals(n_points=200)
    >>> devices = [infocap.systems.RandomFeatures(2, n, gain=3.0, noise=0.1) for n in (2, 4, 8, 12)]
    >>> results = [infocap.probe(device, basis, 1024, seed=1) for device in devices]
    >>> capacity_accuracy(results, [accuracy(device, task) for device in devices]).accuracy.shape
    (4,)
    """
    found: list[CapacityResult] = list(getattr(results, "results", results))
    scores = list(accuracies)
    for one, kind in [
        *((one, CapacityResult) for one in found),
        *((one, Accuracy) for one in scores),
    ]:
        if not isinstance(one, kind):
            raise ParameterError(f"got a {type(one).__name__} where {kind.__name__} is needed.")
    if len(found) != len(scores) or len(found) < 2:
        raise DataError(
            f"{len(found)} results and {len(scores)} accuracies; give one per result, two at least."
        )
    if len(tasks := {score.task for score in scores}) > 1:
        raise DataError(f"the accuracies are of different tasks, {sorted(tasks)}.")
    total, accuracy = np.array([one.total for one in found]), np.array([one.mean for one in scores])
    for name, values in (("total capacities", total), ("accuracies", accuracy)):
        if np.ptp(values) == 0:
            raise DataError(
                f"all {name} are {values[0]:g}: nothing to correlate; vary the settings more."
            )
    errors = [one.total_standard_error for one in found]
    return CapacityAccuracy(
        total,
        None if None in errors else np.array(errors, dtype=float),
        accuracy,
        np.array([one.standard_error for one in scores]),
        float(np.mean([one.linear_mean for one in scores])),
        scores[0].task,
        dict(getattr(results, "settings", {})) or {"setting": tuple(range(len(found)))},
        tuple(one.unreliable for one in found),
        scores[0].measure,
    )
