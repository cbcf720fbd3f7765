"""The total capacity over a complete basis, from repeated measurements at the same inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._check import probability, yes_or_no
from .._table import Table
from .._words import listed
from ..errors import Check, DataError, warn
from ..typing import ArrayLike, Floats
from ._jackknife import noise_covariance, noise_share
from ._read import readouts
from ._whiten import Whitened, whiten

ENOUGH = 5  # inputs for each independent readout, below which the theory of small 1/N is out of range
DRIFT_CHANCE = 1e-6  # of a warning about drift when there is none
DRIFT_MATTERS = 0.1  # standard errors
DRIFT_FLOOR = 1e-18  # rounding, relative to the variance of a readout


@dataclass(frozen=True, eq=False, repr=False)
class Repeats:
    """What repeated measurements tell: the total capacity, and the functions that survive the noise.

    `total` may scatter slightly below its lowest possible value when there is only noise; its interval
    does not. ``(x - mean) @ eigentasks`` gives the values of the eigentasks (Hu et al., Phys. Rev. X 13,
    041020, 2023) for readouts x (samples, readouts): uncorrelated, of variance 1 in single shots, the one
    with the least noise first. `signal_fraction` is the share of that variance which the input explains,
    hence the capacity of each eigentask; it is what the sample shows, kept within [0, 1], without the
    correction that `total` has. The constant is not among the eigentasks.

    `n_readouts` is the maximum capacity and `rank` how many readouts are linearly independent, both with
    the constant readout if it was asked for. `checks` holds every warning and what was put right.

    >>> rng = np.random.default_rng(0)
    >>> signal = rng.standard_normal((500, 4))
    >>> found = from_repeats(*(signal + 0.5 * rng.standard_normal((500, 4)) for _ in range(2)))
    >>> print(f"{found.total:.1f}: the constant, and four functions of which noise leaves 1 / (1 + 0.25)")
    4.2: the constant, and four functions of which noise leaves 1 / (1 + 0.25)
    >>> found.signal_fraction.shape
    (4,)
    """

    total: float
    standard_error: float
    raw_total: float  # before the correction of the bias
    eigentasks: Floats  # (readouts, directions)
    mean: Floats  # (readouts,)
    signal_fraction: Floats  # (directions,)
    rank: int
    n_readouts: int
    n_repeats: int
    n_repeated: int  # inputs measured n_repeats times
    n_inputs: int  # inputs in all
    constant: bool
    checks: tuple[Check, ...] = ()

    def __repr__(self) -> str:
        once = self.n_inputs - self.n_repeated
        more = f", {once} more inputs once" if once else ""
        lines = [
            f"Repeats: total {self.total:.3f} ± {self.standard_error:.3f} of {self.n_readouts} readouts",
            f"  {self.n_repeated} inputs measured {self.n_repeats} times{more}",
            f"  {np.sum(self.signal_fraction > 0.5)} eigentasks with more signal than noise",
        ]
        return "\n".join(lines + [f"  check: {check}" for check in self.checks])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the total, between what the constant alone gives and the rank."""
        from scipy.special import stdtrit

        reach = stdtrit(self.n_repeated - 1, 0.5 + probability("level", level) / 2) * self.standard_error
        low, high = np.clip([self.total - reach, self.total + reach], float(self.constant), float(self.rank))
        return float(low), float(high)


def from_repeats(
    x1: ArrayLike,
    x2: ArrayLike,
    *more: ArrayLike,
    measured_once: ArrayLike | None = None,
    constant: bool = True,
) -> Repeats:
    """The total capacity over a complete basis, rank - tr(G⁻¹V), from measurements at the same inputs.

    V is the covariance of the noise, which repeats show, and G that of single shots. No basis and no inputs
    are needed. The estimate is corrected for its finite-sample bias, and its standard error includes the
    choice of the inputs; both assume independent inputs and noise that is independent between repeats.

    Parameters
    ----------
    x1, x2, more
        Readouts (samples, readouts) of two or more measurements, row by row at the same inputs. The capacity
        is that of a single shot, however many there are.
    measured_once
        Readouts at further inputs that were not repeated. They sharpen G; V comes from the repeats.
    constant
        Append the constant readout, which has no noise and adds exactly 1, as `infocap.estimate` does.

    Examples
    --------
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    >>> system = infocap.theory.random_mixture(basis, n_active=12, n_readouts=10, noise=0.1, seed=1)
    >>> u = infocap.draw(basis, 1024, method="random", seed=1)
    >>> found = infocap.dimension.from_repeats(system(u, seed=2), system(u, seed=3))
    >>> low, high = found.interval()
    >>> bool(low < system.exact().sum() < high)
    True
    """
    constant = yes_or_no("constant", constant)
    names = [f"x{number + 1}" for number in range(2 + len(more))]
    measured = [readouts(x, name) for x, name in zip((x1, x2, *more), names, strict=True)]
    _refuse_other_shapes(dict(zip(names, (values for values, _ in measured), strict=True)))
    repeated, table = np.stack([values for values, _ in measured], axis=1), measured[0][1]
    once = np.empty((0, repeated.shape[2]))
    if measured_once is not None:
        once = readouts(measured_once, "measured_once")[0]
        _refuse_overlap(repeated, once)
    data = whiten(repeated, once, constant)
    rank = data.repeated.shape[2] + constant
    _refuse_too_few(data, rank)
    noise = noise_covariance(data.repeated)
    share, error = noise_share(data, noise, constant)
    fractions, vectors = np.linalg.eigh(noise)
    n_readouts = int(np.sum(data.live)) + constant
    messages = [*_same(repeated, names), *_few(data, rank), *_rank(rank, n_readouts), *_drift(data, error)]
    for message in messages:
        warn(message)
    return Repeats(
        total=rank - share,
        standard_error=error,
        raw_total=rank - float(np.trace(noise)),
        eigentasks=data.weights(vectors),
        mean=data.mean,
        signal_fraction=np.clip(1 - fractions, 0.0, 1.0),
        rank=rank,
        n_readouts=n_readouts,
        n_repeats=repeated.shape[1],
        n_repeated=len(repeated),
        n_inputs=data.n_inputs,
        constant=constant,
        checks=(
            *map(Check, messages),
            *(Check(note, "note") for note in _dead(data, table, constant)),
        ),
    )


def _refuse_other_shapes(measured: dict[str, Floats]) -> None:
    first = measured["x1"].shape
    for name, values in measured.items():
        if values.shape != first:
            raise DataError(
                f"x1 has shape {first} and {name} has shape {values.shape}; give the same readouts at the same "
                "inputs (readouts at inputs that were not repeated go into measured_once=)."
            )


def _refuse_overlap(repeated: Floats, once: Floats) -> None:
    """A row in both would count twice, and pretend to be independent of itself."""
    if once.shape[1] != repeated.shape[2]:
        raise DataError(
            f"x1 has shape {repeated[:, 0].shape} and measured_once has shape {once.shape}; "
            "give the same readouts in the same order."
        )
    known = {row.tobytes(): number for number, row in enumerate(repeated[:, 0])}
    for number, row in enumerate(once):
        if row.tobytes() in known:
            raise DataError(
                f"row {number} of measured_once is row {known[row.tobytes()]} of x1; "
                "give only the inputs that were not repeated."
            )


def _refuse_too_few(data: Whitened, rank: int) -> None:
    if len(data.repeated) < 2 or data.n_inputs <= rank:
        raise DataError(
            f"x1 has {len(data.repeated)} repeated inputs of {data.n_inputs} for {rank} independent readouts: "
            f"with N <= K nothing can be told apart; take at least {ENOUGH} K = {ENOUGH * rank} inputs."
        )


def _same(repeated: Floats, names: list[str]) -> Iterator[str]:
    for number in range(1, len(names)):
        for other in range(number):
            if np.array_equal(repeated[:, number], repeated[:, other]):
                yield (
                    f"{names[other]} and {names[number]} are equal to the last digit, so there is no noise "
                    "between them; were the repeats really measured twice?"
                )
                return


def _few(data: Whitened, rank: int) -> Iterator[str]:
    n, shots = data.n_inputs, len(data.repeated) * (data.repeated.shape[1] - 1)
    if n < ENOUGH * rank:
        yield (
            f"{n} inputs are few for {rank} independent readouts: below {ENOUGH} K = {ENOUGH * rank} the bias is "
            "larger than what the correction can be trusted with; take more inputs."
        )
    elif shots < ENOUGH * rank:
        yield (
            f"{len(data.repeated)} repeated inputs are few for {rank} independent readouts: the total stands, with "
            "its standard error, but signal_fraction is too large for its first and too small for its last entries."
        )


def _rank(rank: int, n_readouts: int) -> Iterator[str]:
    if rank < n_readouts:
        yield (
            f"only {rank} of {n_readouts} readouts are linearly independent; "
            f"the total capacity cannot exceed {rank}."
        )


def _drift(data: Whitened, error: float) -> Iterator[str]:
    """Means of the repeats that differ by more than the noise allows (Hotelling's T², as an F statistic)."""
    from scipy.special import fdtrc

    n, repeats, k = data.repeated.shape
    rest = data.repeated - data.repeated.mean(axis=1, keepdims=True)
    means = rest.mean(axis=0)  # (repeats, directions)
    rest = (rest - means).reshape(-1, k)
    freedom = (n - 1) * (repeats - 1)
    if freedom < 2 * k:
        return
    noise = rest.T @ rest / freedom
    variances, vectors = np.linalg.eigh(noise)
    distance = n * np.sum((means @ vectors) ** 2 / (np.maximum(variances, 0.0) + DRIFT_FLOOR))
    statistic = distance * (freedom - k + 1) / (freedom * k * (repeats - 1))
    raised = np.sum(means**2) / (repeats - 1) - np.trace(noise) / n
    if fdtrc(k * (repeats - 1), freedom - k + 1, statistic) < DRIFT_CHANCE and raised > DRIFT_MATTERS * error:
        yield (
            f"the device drifted between the repeats: their means differ by more than the noise allows, which "
            f"counts as noise and lowers the total by up to {raised:.2g}; interleave the repeats."
        )


def _dead(data: Whitened, table: Table, constant: bool) -> Iterator[str]:
    names = [table.column(int(number)) for number in np.flatnonzero(~data.live)]
    if constant and names and data.mean[~data.live][0] != 0:
        yield f"{names.pop(0)} is constant and serves as the constant readout."
    if names:
        yield f"dead channels were dropped ({listed(names)}); the maximum capacity is lower by {len(names)}."
