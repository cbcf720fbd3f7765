"""How well a system with a linear readout does a task, by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import to_numpy
from .._check import whole_number, yes_or_no
from ..errors import DataError, ParameterError
from ..systems._measure import measure
from ..typing import ArrayLike, Floats, Integers, System
from ._task import Task, finite_table, reduction

LEAST_SQUARES = "least-squares"
# A readout whose standard deviation is below so many roundings of its mean is constant, and gets no weight.
ROUNDINGS = 32
# With fewer samples per readout than this, a fit without a penalty follows the noise.
SAMPLES_PER_READOUT = 4


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """Share of samples classified correctly when they are not trained on, fold by fold.

    The standard errors are those of the mean over the folds, as in the paper. `linear_per_fold` is for the same
    readout, trained on the inputs without the system.

    >>> import infocap
    >>> task = infocap.tasks.two_spirals(n_points=600, turns=1)
    >>> score = infocap.tasks.accuracy(infocap.systems.RandomFeatures(2, 40, gain=3.0), task)
    >>> len(score.per_fold), bool(score.mean > score.linear_mean)
    (5, True)
    """

    per_fold: Floats
    linear_per_fold: Floats
    task: str
    source: str
    n_samples: int
    readout: str
    leak_free: bool
    checks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [
            f"Accuracy: {self.mean:.1%} ± {self.standard_error:.1%} on {self.task}",
            f"  linear model {self.linear_mean:.1%} ± {self.linear_standard_error:.1%}",
            f"  {self.n_samples} samples, {len(self.per_fold)} folds, {self.readout} readout, "
            f"source: {self.source}",
        ]
        return "\n".join([*lines, *(f"  check: {check}" for check in self.checks)])

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
    def linear_standard_error(self) -> float:
        """The standard error of the mean accuracy without the system."""
        return _standard_error(self.linear_per_fold)


def accuracy(
    system: System | ArrayLike,
    task: Task,
    folds: int = 5,
    *,
    readout: Any = LEAST_SQUARES,
    leak_free: bool = False,
    seed: int | None = 0,
) -> Accuracy:
    """Cross-validated accuracy of a linear readout on a system's answers, next to the linear model alone.

    Folds are shuffled and stratified: each has its share of every class.

    Parameters
    ----------
    system
        A callable (samples, inputs) -> (samples, readouts), or the readouts already measured at ``task.inputs``.
    readout
        ``"least-squares"``, the paper's: an indicator of each class is regressed on the readouts, and the highest score
        wins. Or a classifier of scikit-learn, such as ``make_pipeline(StandardScaler(), RidgeClassifier())``: any
        object with ``fit(x, labels)`` and ``predict(x)``.
    leak_free
        A reduced task such as `digits` has principal components and scale from all samples, as in the paper:
        the test samples' features, though not their labels, had a say. True fits both to the training part of
        each fold; the system is then measured anew in each fold, and test inputs beyond [-1, 1] are clipped.
        For a task that was not reduced nothing is fitted, and nothing changes.
    seed
        Of the folds and, where the system takes one, of its noise.

    Examples
    --------
    >>> import infocap
    >>> task = infocap.tasks.two_spirals(turns=1)
    >>> accuracy(infocap.systems.RandomFeatures(2, 50, gain=3.0), task).mean > 0.9
    True
    """
    if not isinstance(task, Task):
        raise ParameterError(f"task is a {type(task).__name__}; make one with tasks.Task(inputs, labels).")
    if readout != LEAST_SQUARES and not (hasattr(readout, "fit") and hasattr(readout, "predict")):
        raise ParameterError(
            f"readout={readout!r} is neither 'least-squares' nor a classifier with fit and predict; give one of "
            "scikit-learn's, such as make_pipeline(StandardScaler(), RidgeClassifier())."
        )
    leak_free = yes_or_no("leak_free", leak_free)
    codes = task.codes
    fold_of = stratified_folds(codes, whole_number("folds", folds, 2), seed, task.classes)
    scores: list[list[float]] = []
    checks: list[str] = []
    for inputs, x, train in _parts(system, task, fold_of, leak_free, seed, checks):
        scores.append([_score(z, codes, train, readout) for z in (x, inputs)])
    per_fold, linear = np.array(scores).T
    name = readout if isinstance(readout, str) else " ".join(repr(readout).split())
    return Accuracy(
        per_fold, linear, task.name, task.source, len(codes), name, leak_free, tuple(dict.fromkeys(checks))
    )


def stratified_folds(codes: Integers, folds: int, seed: int | None, names: np.ndarray) -> Integers:
    """The fold of each sample: every class is shuffled, then dealt out in turn."""
    counts = np.bincount(codes)
    if counts.min() < folds:
        rare = int(np.argmin(counts))
        raise ParameterError(
            f"folds={folds} is more than the {counts[rare]} samples of class {names[rare]!r}; "
            "give fewer folds or more samples."
        )
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold_of = np.empty(len(codes), int)
    fold_of[by_class] = np.arange(len(codes)) % folds  # goes on from class to class: folds of equal size
    return fold_of


def _parts(
    system: Any, task: Task, fold_of: Integers, leak_free: bool, seed: int | None, checks: list[str]
) -> Iterator[tuple[Floats, Floats, np.ndarray]]:
    """For each fold: inputs, readouts, and which samples to train on."""
    folds = int(fold_of.max()) + 1
    seeds = [None] * (folds + 1) if seed is None else np.random.SeedSequence(seed).spawn(folds + 1)
    if not leak_free or task.features is None:
        x = _readouts(system, task.inputs, seeds[0], checks)
        for fold in range(folds):
            yield task.inputs, x, fold_of != fold
        return
    if not callable(system):
        raise ParameterError(
            "leak_free=True encodes the samples anew in each fold, so the system must be a callable; readouts "
            "measured beforehand belong to one encoding."
        )
    for fold in range(folds):
        train = fold_of != fold
        free = reduction(task.features[train], task.n_inputs)(task.features)
        clipped = int(np.sum(np.any(np.abs(free[~train]) > 1, axis=1)))
        if clipped:
            checks.append(f"fold {fold}: {clipped} test samples lay beyond [-1, 1] and were clipped.")
        inputs = np.clip(free, -1.0, 1.0)
        yield inputs, _readouts(system, inputs, seeds[fold + 1], checks), train


def _readouts(system: Any, inputs: Floats, seed: Any, checks: list[str]) -> Floats:
    x = finite_table(to_numpy(measure(system, inputs, seed)) if callable(system) else system, "readouts")
    if len(x) != len(inputs):
        raise DataError(f"readouts has {len(x)} rows for {len(inputs)} samples of the task; give as many.")
    if len(x) < SAMPLES_PER_READOUT * x.shape[1]:
        checks.append(
            f"{len(x)} samples are few to train {x.shape[1]} readouts: the fit may follow noise; consider a `readout` "
            "with a penalty, such as scikit-learn's RidgeClassifier()."
        )
    return x


def _score(x: Floats, codes: Integers, train: np.ndarray, readout: Any) -> float:
    """Share of the samples outside `train` that a readout trained on `train` gets right."""
    if readout == LEAST_SQUARES:
        predicted = _least_squares(x[train], codes[train], x[~train])
    else:
        predicted = deepcopy(readout).fit(x[train], codes[train]).predict(x[~train])
    return float(np.mean(predicted == codes[~train]))


def _least_squares(x: Floats, codes: Integers, others: Floats) -> Integers:
    """The classes of other samples, by least squares on an indicator of each class; units do not matter."""
    mean, deviation = x.mean(axis=0), np.std(x, axis=0)
    varies = deviation > ROUNDINGS * np.finfo(float).eps * np.abs(mean)
    scale = np.where(varies, deviation, np.inf)
    y = np.eye(codes.max() + 1)[codes]
    offset = y.mean(axis=0)
    weights = np.linalg.lstsq((x - mean) / scale, y - offset, rcond=None)[0]
    return np.argmax((others - mean) / scale @ weights + offset, axis=1)


def _standard_error(per_fold: Floats) -> float:
    return float(np.std(per_fold, ddof=1) / np.sqrt(len(per_fold)))
