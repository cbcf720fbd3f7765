"""explore: which functions of the past a device computes, found by search instead of given delays and degrees."""

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, to_numpy
from .._check import probability, whole_number
from .._words import with_error
from ..basis._classical import find_families
from ..basis._delayed import DelayedBasis, count_terms, joined, list_terms, sort_terms
from ..basis._family import Family
from ..errors import Check, DataError, DataWarning, warn
from ..estimators._evidence import Evidence
from ..estimators._fit import inverse_root, pieces
from ..estimators._second_order import TINY, benjamini_hochberg
from ..estimators._sequence import LEAST_SAMPLES, products
from ..result._capacity_result import CapacityResult
from ..samples._samples import Samples
from ..typing import ArrayLike, Floats, Integers
from ._estimate import estimate, evidence

# Functions that the first windows hold, in equal parts of every degree, and that are tested at the most. In dense
# spectra windows would grow without end: those of a network without noise went on to 144,000.
FIRST_TESTED, MOST_TESTED = 12_000, 30_000
# Functions that are found at the most; a fit of more takes minutes.
MOST_FOUND = 2000
# Rounds of the search, and the share of the readouts that the last of them has to explain for another one.
MOST_ROUNDS, WORTH = 6, 0.01
# A tenth of a run, at the most so many steps, is the washout where none is given.
LONGEST_WASHOUT = 1000


@dataclass(frozen=True)
class Round:
    """One round of a search: all functions of some windows are tested on what earlier finds leave unexplained."""

    windows: dict[int, int]  # the largest delay of each degree
    tested: int
    found: int
    unexplained: float  # capacity that the functions found before leave, of `rank`


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """The functions of the past that `explore` found, their capacities, and how the search went.

    `result` holds the capacities of the functions found, with error bars; those that the last judgement did not confirm
    are zero there. `faint` is what all other functions tested hold together: each of them is too small to be told from
    chance, but the sum of their unbiased values is not.
    """

    result: CapacityResult
    rounds: tuple[Round, ...]
    faint: float
    faint_standard_error: float

    @property
    def basis(self) -> DelayedBasis:
        """The functions found."""
        basis = self.result.basis
        assert isinstance(basis, DelayedBasis)
        return basis

    @property
    def windows(self) -> dict[int, int]:
        """The largest delay found of each degree, for ``delayed_basis(max_delay=found.windows)``."""
        held = self.result.capacity > 0
        degrees, delays = self.basis.degrees[held], self.basis.largest_delays[held]
        return {degree: int(delays[degrees == degree].max()) for degree in sorted({*degrees.tolist()} - {0})}

    def __repr__(self) -> str:
        result, last = self.result, self.rounds[-1]
        held = np.count_nonzero(result.capacity[1:])
        total = result.qualified_total or with_error(result.total, result.total_standard_error)
        lines = [
            f"Exploration: {held} of {last.tested} functions of {self.basis.n_inputs} input sequences found",
            f"the longest delay of each degree: {self.windows}, looked for up to {last.windows}",
            f"they hold {total} of at most {result.maximum} ({result.readouts_in_words})",
            f"the others together {with_error(self.faint, self.faint_standard_error)}, each too small to be told",
        ]
        if result.noise_limited_total is not None:
            limit = with_error(result.noise_limited_total, result.noise_limited_standard_error)
            lines.append(f"noise allows {limit} in all")
        for number, one in enumerate(self.rounds, 1):
            said = f"{one.tested} tested, {one.found} found, {one.unexplained:.2f} of {result.rank} unexplained before"
            lines.append(f"round {number}: {said}")
        return "\n  ".join([*lines, *(f"check: {check}" for check in result.checks)])


def explore(
    u: ArrayLike,
    x: ArrayLike,
    family: str | Family | Sequence[str | Family] = "legendre",
    *,
    domain: tuple[float, float] | None = None,
    washout: int | None = None,
    max_degree: int = 6,
    false_discovery_rate: float = 0.05,
    repeats: ArrayLike | None = None,
    complex_as: str | None = None,
    memory: str | float | None = None,
    executor: Any = None,
) -> Exploration:
    """Find the functions of an input sequence and its past that a device computes, without being told where to look.

    All functions of wide windows are tested, 12,000 at first: as many of every degree, so that the delays of degree 1
    reach far and those of degree 6 a few steps. What is found is fitted, and all are tested again on what the fit
    leaves, in round r at the false-discovery rate `false_discovery_rate` / 2^r. A degree of which something was found
    in the outermost third of its delays gets a window half as wide again. The search ends when nothing new is found, or
    too little. In the end all that was found is judged once more, by one fit.

    Parameters
    ----------
    u, x, complex_as, memory, executor
        As for `estimate`: a sequence of inputs and the readouts, or a list of runs of each.
    family, domain
        The distribution of the inputs, as for `delayed_basis`; as many inputs as u has columns.
    washout
        Time steps at the beginning of every run that are not used; no longer delays are looked for. By default a tenth
        of the shortest run, at most 1000 steps.
    max_degree
        The highest degree that is looked for.
    false_discovery_rate
        The share of the functions found that may be false, on average.
    repeats
        The readouts of the same input sequence played a second time; they tell how much noise allows to be found.

    Examples
    --------
    >>> import infocap
    >>> u = np.random.default_rng(1).uniform(-1, 1, 2000)
    >>> hidden = np.roll(u, 3) * np.roll(u, 5) ** 2 + 0.1 * np.random.default_rng(2).standard_normal(2000)
    >>> found = infocap.explore(u, hidden[:, None], washout=100)
    >>> found.basis.labels
    ['1', 'P1(u[t-3])', 'P1(u[t-3])·P2(u[t-5])']
    """
    rate = probability("false_discovery_rate", false_discovery_rate)
    runs = list(zip(u, x, strict=False)) if isinstance(x, list | tuple) and np.ndim(x[0]) == 2 else [(u, x)]
    shape = np.shape(runs[0][0])
    n_inputs = shape[1] if len(shape) == 2 else 1
    families = find_families(family, n_inputs if isinstance(family, str | Family) else None)
    families = families if domain is None else [one.on(domain) for one in families]
    longest = min(np.shape(one)[0] for _, one in runs) // 10
    washout = min(longest, LONGEST_WASHOUT) if washout is None else whole_number("washout", washout, 1)
    degrees = range(1, whole_number("max_degree", max_degree, 1) + 1)
    rows: dict[str, Any] = {"washout": washout, "complex_as": complex_as, "memory": memory, "executor": executor}
    nothing = DelayedBasis(families, np.zeros((1, 3), int), memory=max(washout, 1))
    seen = evidence(u, x, nothing, **rows)
    found, rounds, faint, doubts = _search(seen, rate, first_windows(families, degrees, washout))
    if len(found) == 1:
        raise DataError(
            f"none of {rounds[-1].tested} functions was found in the readouts; check that u and x belong together, or "
            "take more samples."
        )
    basis = DelayedBasis(families, found.indices)
    with warnings.catch_warnings():  # of functions beyond the basis, which were tested here; the others come again
        warnings.simplefilter("ignore", DataWarning)
        result = estimate(u, x, basis, repeats=repeats, false_discovery_rate=rate, **rows)
    # The first rounds judged by residuals full of what was found later: all that was tested is judged again, by one fit.
    assert result.p_value is not None
    every = np.append(result.p_value, np.ones(rounds[-1].tested + 1 - len(basis)))
    clear = benjamini_hochberg(every, rate)[: len(basis)]
    checks = (*(one for one in result.checks if "beyond" not in one.found), *doubts)
    for check in checks:
        if check.kind == "warning":
            warn(check)
    return Exploration(replace(result, capacity=result.capacity * clear, checks=checks), tuple(rounds), *faint)


def first_windows(families: Sequence[Family], degrees: range, longest: int) -> dict[int, int]:
    """The largest delay of each degree such that all have about as many functions; degrees with too many are left out.

    >>> first_windows(find_families("legendre", 1), range(1, 7), 200)
    {1: 200, 2: 61, 3: 20, 4: 12, 5: 8, 6: 7}
    """
    each = FIRST_TESTED // len(degrees)
    fitting = {
        degree: bisect_right(range(longest + 1), each, key=lambda delay: count_terms(families, {degree: delay})) - 1  # noqa: B023
        for degree in degrees
    }
    return {degree: delay for degree, delay in fitting.items() if delay >= 0}


def _search(
    seen: Evidence, rate: float, windows: dict[int, int]
) -> tuple[DelayedBasis, list[Round], tuple[float, float], list[Check]]:
    """The functions found with the constant, the rounds, what the others hold and its error, and doubts."""
    n, families, memory = seen.n_samples, seen.basis.families, seen.basis.memory
    found, rounds, most = seen.basis, list[Round](), min(n // LEAST_SAMPLES, MOST_FOUND)
    assert isinstance(found, DelayedBasis)
    while True:
        basis = DelayedBasis(families, sort_terms(families, list_terms(families, windows)), memory=memory)
        test = _test(seen, basis, found)
        others = np.flatnonzero(basis.places(found) < 0)
        gain = rounds[-1].unexplained - test.unexplained if rounds else np.inf
        done = gain < WORTH * seen.rank or len(found) >= most or len(rounds) == MOST_ROUNDS
        p = test.p_value[others]
        passed = 0 if done else np.count_nonzero(benjamini_hochberg(p, rate / 2 ** (len(rounds) + 1)))
        new = others[np.argsort(p)[: min(passed, most - len(found))]]
        rounds.append(Round(windows, len(basis) - 1, len(new), test.unexplained))
        if not len(new):
            return found, rounds, test.together(others), []
        rows = joined(found.factors, basis.factors[new])
        found = DelayedBasis(families, sort_terms(families, rows), memory=memory)
        far = basis.largest_delays[new] > 2 / 3 * np.array([windows[degree] for degree in basis.degrees[new].tolist()])
        windows = _wider(families, windows, set(basis.degrees[new][far].tolist()), memory)


def _wider(families: Sequence[Family], windows: dict[int, int], degrees: set[int], longest: int) -> dict[int, int]:
    """Windows half as wide again for some degrees, lower ones first, as long as not too many functions are tested."""
    for degree in sorted(degrees):
        wider = windows | {degree: min(windows[degree] + max(windows[degree] // 2, 1), longest)}
        windows = wider if count_terms(families, wider) <= MOST_TESTED else windows
    return windows


@dataclass(frozen=True, eq=False)
class _Test:
    """What the residuals of a fit say about functions that are not in it, each by itself."""

    capacity: Floats  # with the bias
    bias: Floats  # what chance alone gives
    freedom: float  # effective number of directions of the residuals
    unexplained: float

    @property
    def p_value(self) -> Floats:
        """The probability of so large a capacity if the function has none."""
        from scipy.special import chdtrc

        return chdtrc(self.freedom, self.freedom * self.capacity / np.maximum(self.bias, TINY))

    def together(self, which: Integers) -> tuple[float, float]:
        """The sum of the unbiased capacities of some functions, and its standard error."""
        bias, total = self.bias[which], float(np.sum(self.capacity[which] - self.bias[which]))
        variance = 2 * np.sum(bias**2) + 4 * max(total, 0.0) * np.mean(bias)
        return total, float(np.sqrt(variance / self.freedom))


def _test(seen: Evidence, basis: DelayedBasis, found: DelayedBasis) -> _Test:
    """Fit the readouts with the functions found, and test all functions of a basis on what the fit leaves."""
    fit = partial(products, **seen.whitener)
    c, left, gram = seen.engine.fold(replace(seen.samples, basis=found), fit).fit()
    root, _ = inverse_root(gram)
    covariance = root.T @ left @ root
    work = partial(_residual_sums, found=found, c=c, root=root, **seen.whitener)
    # A fit of M functions takes the share M / N out of everything that is left.
    sums = seen.engine.fold(replace(seen.samples, basis=basis), work) / (seen.n_samples - len(found))
    bias, unexplained = sums[:, -1] / (seen.n_samples - len(found)), float(np.trace(covariance))
    freedom = unexplained**2 / max(float(np.sum(covariance**2)), TINY)
    return _Test(np.sum(sums[:, :-1] ** 2, axis=1), bias, freedom, unexplained)


def _residual_sums(
    samples: Samples, start: int, stop: int, *, found: DelayedBasis, c: Floats, root: Floats, **frame: Any
) -> Floats:
    """The sums over some rows of y e, for the residuals e of a fit, and last of y² |e|²: (terms, rank + 1)."""
    total = np.zeros((len(samples.basis), root.shape[1] + 1))
    for first, last in pieces(samples, start, stop, len(found)):
        u, z = samples.inputs(first, last), samples.whitened(first, last, **frame)
        e = (z - found.values(u).T @ as_like(c, z)) @ as_like(root, z)
        square = to_numpy(array_namespace(e).sum(e * e, axis=1))
        total[:, :-1] += to_numpy(samples.basis.project([(u, e)]))
        total[:, -1] += samples.basis.sum_over(u, square, power=2)
    return total
