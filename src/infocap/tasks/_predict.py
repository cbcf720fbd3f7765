"""The score of a task, predicted from the capacities of a device and not by training it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._formatting import percent, with_error
from .._validation import checks_arguments, did_you_mean
from ..basis import DelayedBasis, ProductBasis
from ..errors import DataError, ParameterError
from ..result import CapacityResult
from ._demand import demand
from ._sequences import narma, parity
from ._task import Task

# Steps of a task from which its demand is found: the fit of some hundred functions is then known to
# 2 %.
N_STEPS = 20_000
# Names such as narma10 and parity3.
NAME_AND_NUMBER = re.compile(r"([a-z]+)[-_ ]?(\d+)")


@dataclass(frozen=True, repr=False)
class PredictedScore:
    """The R² that a linear readout of a device reaches on a task, from capacities alone.

    Attributes
    ----------
    score, standard_error
        R² on new inputs, and its standard error, which is that of the capacities; None where the
        method has none.
    explained
        The share of the target's variance that functions of the result's basis explain. What lies
        outside counts as not computed, so the score may be larger by as much.
    task
        The name of the task.

    Examples
    --------
    >>> PredictedScore(score=0.705, standard_error=0.003, explained=0.983, task="NARMA10")
    NARMA10: predicted R² 0.705 ± 0.003 (NRMSE 0.543); the basis holds 98 % of the target
    """

    score: float
    standard_error: float | None
    explained: float
    task: str

    @property
    def nrmse(self) -> float:
        """The normalised root mean square error, the root of 1 - R²."""
        return float(np.sqrt(max(1 - self.score, 0.0)))

    @property
    def score_in_words(self) -> str:
        """The score ± its standard error, with three decimals."""
        return with_error(self.score, self.standard_error, 1.0, digits=3)

    def __repr__(self) -> str:
        text = f"{self.task}: predicted R² {self.score_in_words} (NRMSE {self.nrmse:.3f})"
        return f"{text}; the basis holds {percent(self.explained)} of the target"


@checks_arguments
def predict_score(task: Task, result: CapacityResult) -> PredictedScore:
    """Predict how well a linear readout of a device does a task, from its capacities.

    The demand of the task, its target expanded in the functions of the result, meets the supply,
    the capacity for that combination of functions. This holds where the inputs of the task are
    distributed as the basis assumes, independently in time.

    Parameters
    ----------
    task
        A task with a real target, such as ``tasks.narma(10, 20_000, domain=(-1, 1))``.
    result
        The capacities of the device, with the coordinates that an ``.nc`` file keeps.

    Examples
    --------
    >>> basis = infocap.delayed_basis(max_delay={1: 12, 2: 10})
    >>> result = infocap.probe(infocap.systems.DelayLine(12), basis, 3000, seed=1)
    >>> task = infocap.tasks.narma(10, 5000, domain=(-1, 1))
    >>> predicted = infocap.tasks.predict_score(task, result)
    >>> 0.3 < predicted.score < 0.9
    True
    """
    if not task.regression:
        raise ParameterError(
            f"{task.name} has classes, and scores of classes are not predicted from capacities; "
            "use tasks.accuracy(readouts, task)."
        )
    if result.nothing_to_show:
        raise DataError(result.nothing_to_show)
    needs = demand(task, result.basis)
    coefficients = needs.coefficients[:, 0]
    capacity = result.capacity_of_coefficients(coefficients / np.linalg.norm(coefficients))
    explained = max(1 - needs.unexplained, 0.0)
    error = capacity.standard_error
    return PredictedScore(
        score=float(capacity) * explained,
        standard_error=None if error is None else error * explained,
        explained=explained,
        task=needs.task,
    )


@checks_arguments
def named_task(name: str, basis: ProductBasis) -> Task:
    """Return a task by its name, for the inputs of a basis: "narma10", "parity3".

    Parameters
    ----------
    name
        The kind of the task and its order.
    basis
        The functions of a result, whose family and range the inputs of the task have.

    Examples
    --------
    >>> named_task("narma10", infocap.delayed_basis(max_delay={1: 3})).name
    'NARMA10'
    """
    match = NAME_AND_NUMBER.fullmatch(name.lower())
    if match is None or match[1] not in TASKS_BY_NAME:
        names = [f"{kind}{order}" for kind, order in (("narma", 10), ("parity", 3))]
        raise ParameterError(
            f"{name!r} is no task that is known by name; there are {' and '.join(names)} with any "
            f"order{did_you_mean(name, names)}"
        )
    if not isinstance(basis, DelayedBasis) or basis.n_inputs != 1:
        raise ParameterError(
            f"{name} is a sequence of one input; the result must be of a device with memory and "
            "one input."
        )
    return TASKS_BY_NAME[match[1]](int(match[2]), basis)


def _narma(order: int, basis: DelayedBasis) -> Task:
    """Return NARMA with inputs as the basis has them, which must be uniform."""
    family = basis.families[0]
    if family.name != "legendre":
        raise ParameterError(
            f"the inputs of NARMA are uniform, and those of this result are {family.distribution}: "
            "measure the device with uniform inputs."
        )
    low, high = family.domain
    return narma(order, N_STEPS, domain=(float(low), float(high)))


def _parity(order: int, basis: DelayedBasis) -> Task:
    """Return parity, whose inputs must be two values."""
    family = basis.families[0]
    if family.name != "bernoulli":
        raise ParameterError(
            f"the inputs of parity are two values, and those of this result are "
            f"{family.distribution}: measure the device with --family bernoulli."
        )
    return parity(order, n_steps=N_STEPS)


TASKS_BY_NAME: dict[str, Callable[[int, DelayedBasis], Task]] = {
    "narma": _narma,
    "parity": _parity,
}
