"""How well a system with a linear readout does a task, and whether its capacity predicts that."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import axis_values, to_numpy
from .._formatting import one_line
from .._validation import (
    checks_arguments,
    require_boolean,
    require_probability,
    require_whole_number,
    shown,
)
from ..errors import Check, DataError, ParameterError
from ..kernels import student_widening
from ..result import CapacityResult
from ..samples import Table
from ..systems import measure
from ..typing import ArrayLike, Floats, System
from ._task import Split, Task, reduction

if TYPE_CHECKING:
    import xarray as xr

LEAST_SQUARES = "least-squares"
# A readout is constant, and gets no weight, if its standard deviation is below this many
# rounding errors of its mean.
MAX_ROUNDING_ERRORS = 32
# With fewer samples per readout, a fit without a penalty follows the noise.
MIN_TRAINING_SAMPLES_PER_READOUT = 4
# A smaller standard error of the accuracy is not worth a digit.
MIN_WRITTEN_ERROR_OF_ACCURACY = 5e-4


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """How well held-out samples are predicted, fold by fold: the share of right classes, or R².

    Attributes
    ----------
    per_fold
        The accuracy of each fold. For real targets it is R² = 1 - mean squared error / variance of
        the target within the fold.
    linear_per_fold
        The same for a readout that was trained on the inputs without the system.
    task, source
        The name of the task, and where its data come from.
    n_samples
        The number of samples of the task.
    readout
        The readout, in words.
    leak_free
        Whether a reduced task was reduced anew in each fold, without its test samples.
    checks
        What was noticed about the data.
    measure
        ``"accuracy"``, or ``"R²"`` for a real target.

    Examples
    --------
    >>> per_fold = np.array([0.9, 0.8])
    >>> linear = np.array([0.5, 0.5])
    >>> score = Accuracy(per_fold, linear, "spirals", "drawn", 200, "least-squares", False)
    >>> round(score.mean, 3), round(score.standard_error, 2), score.linear_mean
    (0.85, 0.56, 0.5)
    """

    per_fold: Floats
    linear_per_fold: Floats
    task: str
    source: str
    n_samples: int
    readout: str
    leak_free: bool
    checks: tuple[Check, ...] = ()
    measure: str = "accuracy"

    def __repr__(self) -> str:
        error = ""
        if self.measure == "R²":
            nrmse_error = _standard_error(np.sqrt(1 - self.per_fold))
            error = f", NRMSE {self.nrmse:.3f} ± {nrmse_error:.3f}"
        lines = [
            f"{self.measure.capitalize()}: {_percent(self.per_fold)}{error} on {self.task}",
            f"linear model {_percent(self.linear_per_fold)}",
            f"{self.n_samples} samples, {len(self.per_fold)} folds, {self.readout} readout, "
            f"source: {self.source}",
        ]
        lines += [f"check: {check}" for check in self.checks]
        return "\n  ".join(lines)

    @property
    def mean(self) -> float:
        """The mean accuracy over the folds."""
        return float(np.mean(self.per_fold))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean accuracy, of which 1.96 make a 95 % interval.

        Folds share most of their training samples, so their scatter alone says too little: with k
        folds of variance s² the variance of the mean is (1/k + 1/(k - 1)) s² in place of s²/k
        (Nadeau and Bengio, Machine Learning 52, 239, 2003). Few folds make it longer (Student).
        """
        return _standard_error(self.per_fold)

    @property
    def linear_mean(self) -> float:
        """The mean accuracy over the folds without the system."""
        return float(np.mean(self.linear_per_fold))

    @property
    def nrmse(self) -> float:
        """Root mean squared error of a real target over its standard deviation: mean over folds."""
        if self.measure != "R²":
            raise ParameterError(
                f"`nrmse` is for real targets; {self.task} has classes, whose accuracy is `mean`."
            )
        return float(np.mean(np.sqrt(1 - self.per_fold)))


@checks_arguments
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
    """Return the cross-validated accuracy of a linear readout of a system.

    For classes it is the share of samples classified correctly; for real targets R², with NRMSE.
    The accuracy of a linear model of the inputs alone comes with it. Folds are shuffled, and each
    has its share of every class. Those of a sequence are contiguous stretches, with a gap of
    ``task.memory`` rows on both sides that neither train nor test, and its linear model sees all
    inputs of that memory.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts), or the readouts already measured at
        ``task.inputs``.
    task
        A task of `infocap.tasks`.
    folds
        The number of folds of the cross-validation.
    readout
        ``"least-squares"``, the paper's: an indicator of each class is regressed on the readouts,
        and the highest score wins; a real target is regressed itself. Or a classifier or regressor
        of scikit-learn, such as ``make_pipeline(StandardScaler(), RidgeClassifier())``: any object
        with ``fit(x, labels)`` and ``predict(x)``.
    leak_free
        A reduced task such as `digits` has principal components and scale from all samples, as in
        the paper, so they depend on the features of the test samples, though not on their labels.
        True fits both to the training part of each fold; the system is then measured anew in each,
        and test inputs beyond [-1, 1] are clipped. Other tasks do not change.
    washout
        Of a sequence: rows at its start that are left out while the system forgets its initial
        state, at least ``task.memory``. `infocap.systems.check_fading` measures how many a system
        needs.
    seed
        Of the folds and, where the system takes one, of its noise.

    Examples
    --------
    >>> task = infocap.tasks.two_spirals(turns=1)
    >>> accuracy(infocap.systems.RandomFeatures(2, 50, gain=3.0), task).mean > 0.9
    True
    """
    _refuse_wrong_kinds(task, readout)
    leak_free = require_boolean("leak_free", leak_free)
    folds = require_whole_number("folds", folds, 2)
    washout = max(require_whole_number("washout", washout, 0), task.memory)
    splits = task.splits(folds, seed, washout)
    if leak_free and task.features is not None:
        if not callable(system):
            raise ParameterError(
                "`leak_free=True` encodes the samples anew in each fold, so the system must be a "
                "callable; readouts measured beforehand belong to one encoding."
            )
        measurements: Iterable[_Measured] = _measure_in_each_fold(system, task, splits, seed)
    else:
        noise_seed, *_ = _noise_seeds(seed, folds)
        measurements = itertools.repeat(_measure(system, task.inputs, noise_seed), folds)
    per_fold = []
    linear_per_fold = []
    checks: list[Check] = []
    for measured, split in zip(measurements, splits, strict=True):
        delayed_inputs = []
        for delay in range(task.memory + 1):
            delayed_inputs.append(np.roll(measured.inputs, delay, axis=0))
        per_fold.append(_score(measured.readouts, task, split, readout))
        linear_per_fold.append(_score(np.hstack(delayed_inputs), task, split, readout))
        checks += measured.checks
    return Accuracy(
        per_fold=np.array(per_fold),
        linear_per_fold=np.array(linear_per_fold),
        task=task.name,
        source=task.source,
        n_samples=len(task.inputs),
        readout=one_line(readout),
        leak_free=leak_free,
        checks=tuple(dict.fromkeys(checks)),
        measure="R²" if task.regression else "accuracy",
    )


def _refuse_wrong_kinds(task: Any, readout: Any) -> None:
    """Refuse what is no task, and what is no readout."""
    if not isinstance(task, Task):
        raise ParameterError(
            f"task is a {type(task).__name__}; make one with tasks.Task(inputs, labels)."
        )
    is_name = isinstance(readout, str) and readout == LEAST_SQUARES
    if not is_name and not (hasattr(readout, "fit") and hasattr(readout, "predict")):
        raise ParameterError(
            f"`readout={shown(readout)}` is neither 'least-squares' nor a classifier or regressor "
            "with fit and predict; give one of scikit-learn's, such as "
            "make_pipeline(StandardScaler(), RidgeClassifier())."
        )


def _noise_seeds(seed: int | None, folds: int) -> Sequence[np.random.SeedSequence | None]:
    """Return a seed for a measurement of all samples, and one for a measurement in each fold."""
    if seed is None:
        return [None] * (folds + 1)
    return np.random.SeedSequence(seed).spawn(folds + 1)


@dataclass(frozen=True, eq=False)
class _Measured:
    """The readouts of a system at some inputs, and what was noticed about them."""

    inputs: Floats
    readouts: Floats
    checks: list[Check]


def _measure_in_each_fold(
    system: System, task: Task, splits: Sequence[Split], seed: int | None
) -> Iterator[_Measured]:
    """Measure once for each fold, encoded by the principal components of its training part."""
    features: Any = task.features
    _, *noise_seeds = _noise_seeds(seed, len(splits))
    for fold, (split, noise_seed) in enumerate(zip(splits, noise_seeds, strict=True)):
        reduce = reduction(features[split.train], task.n_inputs)
        inputs = reduce(features)
        measured = _measure(system, np.clip(inputs, -1.0, 1.0), noise_seed)
        is_beyond = (np.abs(inputs[split.test]) > 1).any(axis=1)
        if is_beyond.any():
            text = (
                f"fold {fold}: {is_beyond.sum()} test samples lay beyond [-1, 1] and were clipped."
            )
            measured.checks.insert(0, Check(text, "note"))
        yield measured


def _measure(system: Any, inputs: Floats, seed: Any) -> _Measured:
    """Return the readouts at the inputs, with a check where they are many for the samples."""
    readouts = to_numpy(measure(system, inputs, seed)) if callable(system) else system
    x = Table(readouts, "readouts").read_finite()
    n_samples, n_readouts = x.shape
    if n_samples != len(inputs):
        raise DataError(
            f"readouts has {n_samples} rows for {len(inputs)} samples of the task; "
            "give one per sample."
        )
    checks = []
    if n_samples < MIN_TRAINING_SAMPLES_PER_READOUT * n_readouts:
        text = (
            f"{n_samples} samples are few to train {n_readouts} readouts: the fit may follow "
            "noise; use a `readout` with a penalty, such as scikit-learn's RidgeClassifier() or "
            "Ridge()."
        )
        checks.append(Check(text))
    return _Measured(inputs, x, checks)


def _score(x: Floats, task: Task, split: Split, readout: Any) -> float:
    """Return R² of a real target, or the share of right classes, on the test rows."""
    labels = task.labels if task.regression else task.codes
    correct = labels[split.test]
    if readout == LEAST_SQUARES:
        scores = _least_squares(x, task.targets, split)
        predicted = scores[:, 0] if task.regression else np.argmax(scores, axis=1)
    else:
        trained = deepcopy(readout).fit(x[split.train], labels[split.train])
        predicted = trained.predict(x[split.test])
    if not task.regression:
        return float(np.mean(predicted == correct))
    variance = np.var(correct)
    if variance == 0:
        raise DataError(
            f"the target of {task.name} is {correct[0]:g} in a whole fold; give fewer `folds`."
        )
    return float(1 - np.mean((np.ravel(predicted) - correct) ** 2) / variance)


def _least_squares(x: Floats, targets: Floats, split: Split) -> Floats:
    """Return the predictions of a linear regression for the test rows.

    Readouts are standardised, so units do not matter.
    """
    train = split.train
    mean = x[train].mean(axis=0)
    deviation = np.std(x[train], axis=0)
    varies = deviation > MAX_ROUNDING_ERRORS * np.finfo(float).eps * np.abs(mean)
    z = (x - mean) / np.where(varies, deviation, np.inf)
    offset = targets[train].mean(axis=0)
    weights, *_ = np.linalg.lstsq(z[train], targets[train] - offset, rcond=None)
    return z[split.test] @ weights + offset


def _percent(per_fold: Floats) -> str:
    """Return the mean in per cent, with its standard error if that is worth a digit."""
    error = _standard_error(per_fold)
    text = f"{np.mean(per_fold):.1%}"
    return f"{text} ± {error:.1%}" if error >= MIN_WRITTEN_ERROR_OF_ACCURACY else text


def _standard_error(per_fold: Floats) -> float:
    """Return the standard error of a mean over the folds of a cross-validation.

    Nadeau and Bengio add the ratio of test to training samples, 1 / (k - 1), to 1 / k.
    """
    k = len(per_fold)
    variance_of_mean = (1 / k + 1 / (k - 1)) * float(np.var(per_fold, ddof=1))
    return student_widening(k) * float(np.sqrt(variance_of_mean))


@dataclass(frozen=True, eq=False, repr=False)
class CapacityAccuracy:
    """Total capacity and accuracy at each setting, in the order of the sweep.

    Attributes
    ----------
    total, total_standard_error
        The total capacity of each setting, and its error if the method gives one.
    accuracy, accuracy_standard_error
        The mean accuracy of each setting, and its error.
    linear
        The accuracy of the linear model without a system.
    task
        The name of the task.
    settings
        The values of each parameter; the last varies fastest.
    unreliable
        Why the total of each setting cannot be trusted; "" where it can be.
    measure
        ``"accuracy"``, or ``"R²"`` for a real target.

    Examples
    --------
    >>> total = np.array([5.0, 9.0, 14.0, 17.0])
    >>> accuracy = np.array([0.55, 0.63, 0.71, 0.74])
    >>> errors = np.full(4, 0.01)
    >>> settings = {"power": (1, 2, 3, 4)}
    >>> CapacityAccuracy(total, None, accuracy, errors, 0.54, "spirals", settings)
    CapacityAccuracy: correlation 0.99, 95 % between 0.71 and 1.00
      4 settings, total capacity 5.0 to 17.0, accuracy 55.0% to 74.0% on spirals, linear model 54.0%
    """

    total: Floats
    total_standard_error: Floats | None
    accuracy: Floats
    accuracy_standard_error: Floats
    linear: float
    task: str
    settings: dict[str, tuple[Any, ...]]
    unreliable: tuple[str, ...] = ()
    measure: str = "accuracy"

    def __repr__(self) -> str:
        low, high = self.interval()
        lines = [
            f"CapacityAccuracy: correlation {self.correlation:.2f}, "
            f"95 % between {low:.2f} and {high:.2f}",
            f"{len(self.total)} settings, "
            f"total capacity {self.total.min():.1f} to {self.total.max():.1f}, "
            f"{self.measure} {self.accuracy.min():.1%} to {self.accuracy.max():.1%} "
            f"on {self.task}, linear model {self.linear:.1%}",
        ]
        if self.is_unreliable.any():
            lines.append(f"{self.is_unreliable.sum()} of the totals are unreliable")
        return "\n  ".join(lines)

    @property
    def is_unreliable(self) -> NDArray[np.bool_]:
        """Whether the total of each setting is unreliable."""
        if not self.unreliable:
            return np.zeros(len(self.total), dtype=bool)
        return np.array(self.unreliable) != ""

    @property
    def correlation(self) -> float:
        """Pearson's correlation of total capacity and mean accuracy."""
        return float(np.corrcoef(self.total, self.accuracy)[0, 1])

    @checks_arguments
    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return Fisher's interval of the correlation: atanh(r) ± z / sqrt(n - 3).

        It treats the settings as n independent draws of a normal pair, which the points of a sweep
        are not: read it as "with so few settings, no surer than this". Up to three settings say
        nothing: (-1, 1).

        Parameters
        ----------
        level
            The confidence level.
        """
        from scipy.stats import pearsonr

        correlation = pearsonr(self.total, self.accuracy)
        low, high = correlation.confidence_interval(require_probability("level", level))
        return float(low), float(high)

    def to_xarray(self) -> "xr.Dataset":
        """Return totals, accuracies and their errors over the settings, with the correlation."""
        import xarray as xr

        shape = [len(values) for values in self.settings.values()]
        variables = {}
        for name in ("total", "total_standard_error", "accuracy", "accuracy_standard_error"):
            column = getattr(self, name)
            if column is not None:
                variables[name] = (tuple(self.settings), column.reshape(shape))
        if self.unreliable:
            reasons = np.array(self.unreliable).reshape(shape)
            variables["unreliable"] = (tuple(self.settings), reasons)
        coordinates = {name: axis_values(values) for name, values in self.settings.items()}
        attributes = {
            "task": self.task,
            "measure": self.measure,
            "linear_accuracy": self.linear,
            "correlation": self.correlation,
            "correlation_interval": list(self.interval()),
            "correlation_interval_method": "Fisher, 95 %",
        }
        return xr.Dataset(variables, coords=coordinates, attrs=attributes)


@checks_arguments
def capacity_accuracy(results: Any, accuracies: Sequence[Accuracy]) -> CapacityAccuracy:
    """Return the capacities of a sweep together with the accuracies at the same settings.

    Parameters
    ----------
    results
        What `infocap.sweep` returned, or a list of `CapacityResult`.
    accuracies
        One `Accuracy` per result, in the same order:
        ``[accuracy(make_system(**point), task) for point in sweep.points]``.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 2, max_degree=3)
    >>> task = infocap.tasks.two_spirals(n_points=200)
    >>> devices = [infocap.systems.RandomFeatures(2, n, noise=0.1) for n in (2, 4, 8, 12)]
    >>> results = [infocap.probe(device, basis, 1024, seed=1) for device in devices]
    >>> accuracies = [accuracy(device, task) for device in devices]
    >>> capacity_accuracy(results, accuracies).accuracy.shape
    (4,)
    """
    result_list: list[CapacityResult] = _list_of_results(results)
    scores = list(accuracies)
    _refuse_other_kinds(result_list, CapacityResult)
    _refuse_other_kinds(scores, Accuracy)
    if len(result_list) != len(scores) or len(scores) < 2:
        raise DataError(
            f"{len(result_list)} results and {len(scores)} accuracies; "
            "give one per result, two at least."
        )
    tasks = {score.task for score in scores}
    if len(tasks) > 1:
        raise DataError(f"the accuracies are of different tasks, {sorted(tasks)}.")
    totals = np.array([result.total for result in result_list])
    means = np.array([score.mean for score in scores])
    for name, values in (("total capacities", totals), ("accuracies", means)):
        if np.ptp(values) == 0:
            raise DataError(
                f"all {name} are {values[0]:g}: nothing to correlate; vary the settings more."
            )
    errors = [result.total_standard_error for result in result_list]
    settings = dict(getattr(results, "settings", {}))
    return CapacityAccuracy(
        total=totals,
        total_standard_error=None if None in errors else np.array(errors, dtype=float),
        accuracy=means,
        accuracy_standard_error=np.array([score.standard_error for score in scores]),
        linear=float(np.mean([score.linear_mean for score in scores])),
        task=scores[0].task,
        settings=settings or {"setting": tuple(range(len(scores)))},
        unreliable=tuple(result.unreliable for result in result_list),
        measure=scores[0].measure,
    )


def _list_of_results(results: Any) -> list[CapacityResult]:
    """Return the results of a sweep, or of a list."""
    result_list = getattr(results, "results", results)
    if isinstance(result_list, list | tuple):
        return list(result_list)
    raise ParameterError(f"`results={shown(results)}` must be a list of results, or a sweep.")


def _refuse_other_kinds(objects: Sequence[Any], kind: type) -> None:
    for item in objects:
        if not isinstance(item, kind):
            raise ParameterError(f"got a {type(item).__name__} where {kind.__name__} is needed.")
