"""What a task needs: its target expanded in the basis, degree by degree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..basis._product import ProductBasis
from ..errors import Check, ParameterError, warn
from ..result._capacity_result import CapacityResult
from ..samples._look import refuse_outside
from ..samples._table import Table
from ..typing import Floats, Integers
from ._task import Task

# Penalties on |coefficients|² from next to none to one that leaves only the mean; the samples left out choose.
PENALTIES = 10.0 ** np.arange(-10, 1)
# The target's function is the fit with the strongest penalty that keeps this part of the best share.
QUIET = 0.995
# A fit whose power is so many times the target's variance is mostly extrapolation.
LOUD = 4.0
# Eigenvectors of every degree and fold cost L³; with 3000 functions that takes a minute.
MOST_TERMS = 3000
# Beyond this condition number rounding is not the trouble yet, but telling functions apart is.
ILL = 1e4
# With fewer samples per function, what a degree is found to give is a lower bound.
SAMPLES_PER_FUNCTION = 4


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """The part of a task's target that polynomials of each degree give, on the task's own inputs.

    `cumulative[d]` is the share of the target's variance that functions up to degree d predict for samples they
    were not fitted to; `condition[d]` the condition number of those functions on the task's inputs, 1 where the
    inputs are distributed as the basis assumes. `coefficients` (terms, targets) is a fit at the highest degree,
    penalised as strongly as costs at most half a per cent of the share.

    >>> u = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> needs = demand(Task(u, u[:, 0] > 0), infocap.product_basis("legendre", 1, 3))
    >>> bool(needs.target(True)(np.ones((1, 1))) > 0)
    True
    """

    cumulative: Floats
    condition: Floats
    coefficients: Floats
    classes: np.ndarray
    variances: Floats  # of each target
    basis: ProductBasis
    task: str
    n_samples: int
    checks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        basis = self.basis
        lines = [
            f"Demand of {self.task}: {1 - self.unexplained:.1%} of the variance up to degree {basis.max_degree}",
            f"{self.n_samples} samples, {len(basis)} {basis.family_name} functions of {basis.n_inputs} inputs",
            *(
                f"degree {d:2d} {share:7.1%}"
                for d, share in enumerate(self.share)
                if f"{share:.1%}" != "0.0%"
            ),
            *(f"check: {check}" for check in self.checks),
        ]
        return "\n  ".join(lines)

    @property
    def share(self) -> Floats:
        """What each degree adds to the degrees below it; where more functions only overfit, nothing."""
        return np.diff(np.maximum.accumulate(np.maximum(self.cumulative, 0.0)), prepend=0.0)

    @property
    def unexplained(self) -> float:
        """The share of the target's variance that no function of the basis was found to predict."""
        return float(1 - self.share.sum())

    def target(self, label: Any = "target") -> Callable[[Floats], Floats]:
        """A fitted target as a function of the inputs: ``result.capacity_of(demand.target(3))`` for class 3.

        Without `label` it is the real target of a regression. Of the functions that fit about as well it is the
        quietest; where the task has no samples it extrapolates. Of a sequence there is one value per step, the first
        of which, without their past, are zero.
        """
        found = np.flatnonzero(self.classes == label)
        if not len(found):
            raise ParameterError(f"`label={label!r}` is not one of {self.classes.tolist()}.")
        coefficients = self.coefficients[:, found[0]]
        past = np.zeros(self.basis.memory)
        return lambda u: np.append(
            past, self.basis.combine(np.asarray(u, dtype=float), coefficients)
        )

    def reachable(self, result: CapacityResult) -> float:
        """The share of the fitted target that a device's readouts give, from `capacity_of` each class.

        It holds for inputs distributed as the basis assumes; on the task's own inputs `accuracy` is the judge.
        """
        if self.basis.n_inputs != result.basis.n_inputs:
            said = (
                f"the demand has {self.basis.n_inputs} inputs, the result {result.basis.n_inputs}"
            )
            raise ParameterError(f"{said}; both must be about the same inputs.")
        loud = float(np.sum(self.coefficients**2) / np.sum(self.variances))
        if loud > LOUD:
            warn(
                f"the fitted target has {loud:.3g} times the power of the task's own: it is mostly extrapolation away "
                "from the samples, and how much of it is reachable says little; try a basis of higher degree."
            )
        parts = [result.capacity_of(self.target(label)) for label in self.classes]
        return float(np.average(parts, weights=self.variances))


def demand(task: Task, basis: ProductBasis, *, folds: int = 5, seed: int | None = 0) -> Demand:
    """Which functions a task needs: how much of its target each degree of the basis gives.

    The target is an indicator of each class, or the real target. Functions up to each degree are fitted to it by
    penalised least squares on the task's own inputs, and judged on samples left out. On these inputs the functions are
    rarely orthogonal, so a degree's share is what it adds to lower ones.
    For a sequence the basis is one of delayed inputs, and folds are contiguous with a gap, as in `accuracy`.

    >>> u = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = demand(Task(u, u[:, 0] * u[:, 1] > 0), infocap.product_basis("legendre", 2, 4))
    >>> int(np.argmax(found.share))  # the product of the inputs has degree 2
    2
    """
    if not isinstance(task, Task) or not isinstance(basis, ProductBasis):
        raise ParameterError(
            "demand takes a task from infocap.tasks and a basis from product_basis(...)."
        )
    if basis.n_inputs != task.n_inputs:
        raise ParameterError(
            f"the task has {task.n_inputs} inputs, the basis {basis.n_inputs}; give the same."
        )
    if len(basis) > MOST_TERMS:
        raise ParameterError(
            f"the basis has {len(basis)} functions, more than {MOST_TERMS}; lower its degree."
        )
    u = task.inputs
    refuse_outside(Table(u, "inputs"), (0, len(u)), u.min(axis=0), u.max(axis=0), basis)
    start = max(task.memory, basis.memory)  # rows before it lack part of their past
    y, target = basis(u)[start - len(u) :], task.targets[start:]
    splits = task.splits(whole_number("folds", folds, 2), seed, start)
    splits = [(train[start:], test[start:]) for train, test in splits]
    sizes = np.searchsorted(basis.degrees, np.arange(basis.max_degree + 1), side="right")
    shares = _predicted(y, target, splits, sizes)
    # From one QR: the triangle of the first functions is a corner of it.
    triangle: Floats = np.linalg.qr(y, mode="r")  # type: ignore[assignment]
    corners = [triangle[:size, :size] if size <= len(y) else None for size in sizes]
    condition = np.array([np.inf if one is None else np.linalg.cond(one) for one in corners])
    checks = []
    if len(ill := np.flatnonzero(condition > ILL)):
        said = f"the inputs of {task.name} hardly tell functions of degree {ill[0]} and more apart (condition number"
        why = "shares of these degrees, and the fit away from the samples, mean little"
        checks.append(Check(f"{said} {condition[ill[0]]:.1g}): {why}; lower the degree."))
    if len(few := np.flatnonzero(SAMPLES_PER_FUNCTION * sizes > len(u))):
        said = f"{len(u)} samples are few for the {sizes[few[0]]} functions up to degree {few[0]}"
        checks.append(
            Check(
                f"{said}: the demand there is a lower bound; lower the degree, or take more samples."
            )
        )
    for message in checks:
        warn(message)
    last = shares[-1]
    quiet = float(PENALTIES[last >= QUIET * last.max()].max()) if last.max() > 0 else 1.0
    # Centred: the constant, which every readout has, is left out.
    gram, cross = _moments(y - y.mean(axis=0), target - target.mean(axis=0))
    coefficients = np.linalg.solve(gram + quiet * np.eye(len(basis)), cross)
    fitted = (shares.max(axis=1), condition, coefficients, task.classes, target.var(axis=0))
    return Demand(*fitted, basis, task.name, len(y), tuple(checks))


def _predicted(
    y: Floats, target: Floats, splits: list[tuple[NDArray, NDArray]], sizes: Integers
) -> Floats:
    """Share of the variance of samples left out that is predicted, (degrees, penalties)."""
    unpredicted, total = np.zeros((len(sizes), len(PENALTIES))), 0.0
    for train, test in splits:
        functions, wanted = y - y[train].mean(axis=0), target - target[train].mean(axis=0)
        gram, cross = _moments(functions[train], wanted[train])
        functions, wanted = functions[test], wanted[test]
        total += float(np.sum(wanted**2))
        for degree, size in enumerate(sizes):
            powers, frame = np.linalg.eigh(gram[:size, :size])
            weights, seen = frame.T @ cross[:size], functions[:, :size] @ frame
            for k, penalty in enumerate(PENALTIES):
                residual = wanted - seen @ (weights / (powers + penalty)[:, None])
                unpredicted[degree, k] += np.sum(residual**2)
    return 1 - unpredicted / total


def _moments(y: Floats, target: Floats) -> tuple[Floats, Floats]:
    return y.T @ y / len(y), y.T @ target / len(y)
