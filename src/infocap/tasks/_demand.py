"""What a task needs: its target expanded in the basis, degree by degree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import checks_arguments, require_numbers, require_whole_number, shown
from ..basis import ProductBasis
from ..errors import Check, ParameterError, warn
from ..result import CapacityResult
from ..samples import Table, check_domain
from ..typing import Floats, Integers
from ._task import Split, Task

# Penalties on |coefficients|² (ridge regression), from next to none to one that leaves only the
# mean; held-out samples decide which is used.
TRIED_PENALTIES = 10.0 ** np.arange(-10, 1)
# The target's function is the fit with the strongest penalty that keeps this part of the best
# share of the variance.
MIN_KEPT_SHARE = 0.995
# A fit whose power is this many times the target's variance is mostly extrapolation.
MAX_POWER_RATIO = 4.0
# Eigenvectors of every degree and fold cost L³ operations; with 3000 functions that takes a
# minute.
MAX_EXPANDED_FUNCTIONS = 3000
# Condition number beyond which functions can hardly be told apart, though rounding is no trouble
# yet.
MAX_CONDITION = 1e4
# With fewer samples per function, the share of a degree is a lower bound.
MIN_SAMPLES_PER_FITTED_FUNCTION = 4


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """The part of a task's target that polynomials of each degree explain, on the task's inputs.

    Attributes
    ----------
    cumulative
        The share of the target's variance that functions up to each degree predict for held-out
        samples, (degrees,).
    condition
        The condition number of these functions on the task's inputs, which is 1 where the inputs
        are distributed as the basis assumes, (degrees,).
    coefficients
        A fit at the highest degree, penalised as strongly as costs at most half a per cent of the
        share, (functions, targets).
    classes
        The classes of the task, (targets,).
    variances
        The variance of each target, (targets,).
    basis
        The functions in which the target was expanded.
    task
        The name of the task.
    n_samples
        The number of samples, without those of a sequence that lack a part of their past.
    checks
        Degrees at which the inputs hardly distinguish the functions, or samples are few.

    Examples
    --------
    >>> u = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> needs = demand(Task(u, u[:, 0] > 0), infocap.product_basis("legendre", 1, 3))
    >>> bool(needs.target(True)(np.ones((1, 1))) > 0)
    True
    """

    cumulative: Floats
    condition: Floats
    coefficients: Floats
    classes: np.ndarray
    variances: Floats
    basis: ProductBasis
    task: str
    n_samples: int
    checks: tuple[Check, ...] = ()

    def __repr__(self) -> str:
        basis = self.basis
        lines = [
            f"Demand of {self.task}: {1 - self.unexplained:.1%} of the variance "
            f"up to degree {basis.max_degree}",
            f"{self.n_samples} samples, {len(basis)} {basis.family_name} functions "
            f"of {basis.n_inputs} inputs",
        ]
        for degree, share in enumerate(self.share):
            if f"{share:.1%}" != "0.0%":
                lines.append(f"degree {degree:2d} {share:7.1%}")
        lines += [f"check: {check}" for check in self.checks]
        return "\n  ".join(lines)

    @property
    def share(self) -> Floats:
        """What each degree adds to lower ones; zero where more functions only overfit."""
        best_so_far = np.maximum.accumulate(np.maximum(self.cumulative, 0.0))
        return np.diff(best_so_far, prepend=0.0)

    @property
    def unexplained(self) -> float:
        """The share of the target's variance that no function of the basis predicts."""
        return float(1 - self.share.sum())

    @checks_arguments
    def target(self, label: Any = "target") -> Callable[[Floats], Floats]:
        """Return a fitted target as a function of the inputs.

        Among the functions that fit about as well it is the one of the lowest power. Where the task
        has no samples it extrapolates. For a sequence there is one value per step, and the first
        ones, which have no past, are zero.

        Parameters
        ----------
        label
            A class: ``result.capacity_of(demand.target(3))`` is for class 3. Without it, the real
            target of a regression.
        """
        matches = [n for n, value in enumerate(self.classes.tolist()) if _is_label(value, label)]
        if not matches:
            raise ParameterError(f"`label={shown(label)}` is not one of {self.classes.tolist()}.")
        coefficients = self.coefficients[:, matches[0]]
        without_past = np.zeros(self.basis.memory)

        def evaluate(u: Floats) -> Floats:
            values = self.basis.combine(require_numbers("u", u), coefficients)
            return np.append(without_past, values)

        return evaluate

    @checks_arguments
    def reachable(self, result: CapacityResult) -> float:
        """Return the share of the fitted target that a device's readouts reproduce.

        It holds for inputs distributed as the basis assumes; for the task's own inputs see
        `accuracy`.

        Parameters
        ----------
        result
            The capacities of the device.
        """
        if self.basis.n_inputs != result.basis.n_inputs:
            raise ParameterError(
                f"the demand has {self.basis.n_inputs} inputs, the result "
                f"{result.basis.n_inputs}; both must be about the same inputs."
            )
        power_ratio = float(np.sum(self.coefficients**2) / np.sum(self.variances))
        if power_ratio > MAX_POWER_RATIO:
            warn(
                f"the fitted target has {power_ratio:.3g} times the power of the task's own: it is "
                "mostly extrapolation away from the samples, and how much of it is reachable says "
                "little; try a basis of higher degree."
            )
        capacities = [result.capacity_of(self.target(label)) for label in self.classes]
        return float(np.average(capacities, weights=self.variances))


def _is_label(value: Any, label: Any) -> bool:
    """Return whether a label that a user gave is this class."""
    return np.ndim(label) == 0 and bool(value == label)


@checks_arguments
def demand(task: Task, basis: ProductBasis, *, folds: int = 5, seed: int | None = 0) -> Demand:
    """Return which functions a task needs: how much of its target each degree explains.

    The target is an indicator of each class, or the real target. Functions up to each degree are
    fitted to it by ridge regression on the task's own inputs, and scored on held-out samples. On
    these inputs the functions are rarely orthogonal, so a degree's share is what it adds to lower
    ones.

    Parameters
    ----------
    task
        A task of `infocap.tasks`.
    basis
        The functions; for a sequence functions of delayed inputs.
    folds
        The folds of the cross-validation; those of a sequence are contiguous with a gap, as in
        `accuracy`.
    seed
        Of the folds.

    Examples
    --------
    >>> u = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> product = Task(u, u[:, 0] * u[:, 1] > 0)
    >>> needs = demand(product, infocap.product_basis("legendre", 2, 4))
    >>> int(np.argmax(needs.share))  # the product of the inputs has degree 2
    2
    """
    _refuse_misfit(task, basis)
    u = task.inputs
    table = Table(u, "inputs")
    lowest = u.min(axis=0)
    highest = u.max(axis=0)
    check_domain(table, (0, len(u)), lowest=lowest, highest=highest, basis=basis)
    start = max(task.memory, basis.memory)  # rows before it lack part of their past
    y = basis(u)[start - len(u) :]
    target = task.targets[start:]
    folds = require_whole_number("folds", folds, 2)
    splits = []
    for train, test in task.splits(folds, seed, start):
        splits.append(Split(train[start:], test[start:]))
    n_functions = np.searchsorted(basis.degrees, np.arange(basis.max_degree + 1), side="right")
    shares = _predicted_shares(y, target, splits, n_functions)
    condition = _condition_numbers(y, n_functions)
    checks = _checks(task, condition, n_functions)
    for check in checks:
        warn(check)
    return Demand(
        cumulative=shares.max(axis=1),
        condition=condition,
        coefficients=_fit(y, target, _strongest_penalty(shares[-1])),
        classes=task.classes,
        variances=target.var(axis=0),
        basis=basis,
        task=task.name,
        n_samples=len(y),
        checks=tuple(checks),
    )


def _refuse_misfit(task: Task, basis: ProductBasis) -> None:
    """Refuse a task and a basis that do not belong together."""
    if not isinstance(task, Task) or not isinstance(basis, ProductBasis):
        raise ParameterError(
            "demand takes a task from infocap.tasks and a basis from product_basis(...)."
        )
    if basis.n_inputs != task.n_inputs:
        raise ParameterError(
            f"the task has {task.n_inputs} inputs, the basis {basis.n_inputs}; give the same."
        )
    if len(basis) > MAX_EXPANDED_FUNCTIONS:
        raise ParameterError(
            f"the basis has {len(basis)} functions, more than {MAX_EXPANDED_FUNCTIONS}; lower its "
            "degree."
        )


def _predicted_shares(
    y: Floats, target: Floats, splits: list[Split], n_functions: Integers
) -> Floats:
    """Return the share of the variance of held-out samples that is predicted, (degrees, penalties).

    One eigendecomposition of the Gram matrix serves all penalties.
    """
    unpredicted = np.zeros((len(n_functions), len(TRIED_PENALTIES)))
    total = 0.0
    for train, test in splits:
        centred_y = y - y[train].mean(axis=0)
        centred_target = target - target[train].mean(axis=0)
        gram, cross = _moments(centred_y[train], centred_target[train])
        y_test = centred_y[test]
        target_test = centred_target[test]
        total += float(np.sum(target_test**2))
        for degree, size in enumerate(n_functions):
            eigenvalues, eigenvectors = np.linalg.eigh(gram[:size, :size])
            rotated_cross = eigenvectors.T @ cross[:size]
            rotated_y = y_test[:, :size] @ eigenvectors
            for k, penalty in enumerate(TRIED_PENALTIES):
                weights = rotated_cross / (eigenvalues + penalty)[:, None]
                residual = target_test - rotated_y @ weights
                unpredicted[degree, k] += np.sum(residual**2)
    return 1 - unpredicted / total


def _condition_numbers(y: Floats, n_functions: Integers) -> Floats:
    """Return the condition number of the functions up to each degree.

    They come from one QR decomposition: the triangle of the first functions is a corner of it.
    """
    triangle: Floats = np.linalg.qr(y, mode="r")  # type: ignore[assignment]
    condition = np.full(len(n_functions), np.inf)
    for degree, size in enumerate(n_functions):
        if size <= len(y):
            condition[degree] = np.linalg.cond(triangle[:size, :size])
    return condition


def _checks(task: Task, condition: Floats, n_functions: Integers) -> list[Check]:
    """Return from which degree on functions are ill-conditioned, or the samples too few."""
    checks = []
    ill_conditioned = np.flatnonzero(condition > MAX_CONDITION)
    if len(ill_conditioned):
        degree = ill_conditioned[0]
        text = (
            f"the inputs of {task.name} hardly tell functions of degree {degree} and more apart "
            f"(condition number {condition[degree]:.1g}): shares of these degrees, and the fit "
            "away from the samples, mean little; lower the degree."
        )
        checks.append(Check(text))
    n_samples = len(task.inputs)
    too_many = np.flatnonzero(MIN_SAMPLES_PER_FITTED_FUNCTION * n_functions > n_samples)
    if len(too_many):
        degree = too_many[0]
        text = (
            f"{n_samples} samples are few for the {n_functions[degree]} functions up to degree "
            f"{degree}: the demand there is a lower bound; lower the degree, or take more samples."
        )
        checks.append(Check(text))
    return checks


def _strongest_penalty(shares: Floats) -> float:
    """Return the strongest penalty that predicts about as well as the best one."""
    best = shares.max()
    if best <= 0:
        return 1.0
    return float(TRIED_PENALTIES[shares >= MIN_KEPT_SHARE * best].max())


def _fit(y: Floats, target: Floats, penalty: float) -> Floats:
    """Return the coefficients of a ridge regression.

    Functions and target are centred, which leaves out the constant: every readout has it.
    """
    gram, cross = _moments(y - y.mean(axis=0), target - target.mean(axis=0))
    return np.linalg.solve(gram + penalty * np.eye(y.shape[1]), cross)


def _moments(y: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return the mean products of functions with functions, and of functions with targets."""
    return y.T @ y / len(y), y.T @ target / len(y)
