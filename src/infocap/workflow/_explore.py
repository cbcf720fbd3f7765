"""explore: which functions of the past a device computes, found by search instead of given delays and degrees."""

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from .._arrays import array_namespace, as_like, to_numpy
from .._formatting import with_error
from .._validation import probability, whole_number
from ..basis._classical import find_families
from ..basis._delayed import DelayedBasis, count_terms, joined, list_terms, sort_terms
from ..basis._family import Family
from ..errors import Check, DataError, DataWarning, warn
from ..estimators._evidence import Evidence
from ..estimators._fit import inverse_root, pieces, products
from ..estimators._pipeline import gather_evidence
from ..estimators._sequence import LEAST_SAMPLES, fitted
from ..kernels._summary import TINY, benjamini_hochberg
from ..result._capacity_result import CapacityResult
from ..samples._runs import has_runs
from ..samples._samples import Samples
from ..typing import ArrayLike, Floats, Integers
from ._estimate import estimate

# Share of the functions to be tested that the first windows hold, in equal parts of every degree.
FIRST_SHARE = 0.4
# Share of a window beyond which a find means that there may be more outside, and how much wider it is made then.
OUTER, WIDER = 2 / 3, 1.5
# Functions that are found at the most; a fit of more takes minutes.
MOST_FOUND = 2000
# Rounds of the search, and the share of the readouts that the last of them has to explain for another one.
MOST_ROUNDS, WORTH = 6, 0.01


@dataclass(frozen=True)
class Round:
    """One round of a search: all functions of some windows are tested on what earlier finds leave unexplained."""

    windows: dict[int, int]  # the largest delay of each degree
    tested: int
    found: int
    unexplained: float  # how much of the rank of the readouts the functions found before leave


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """The functions of the past that `explore` found, their capacities, and how the search went.

    `result` holds the capacities of the functions of `basis`, which were found, with error bars; those that the last
    judgement did not confirm are zero. `faint` is what all other functions tested hold together: each is too small to
    be told from chance, but the sum of their unbiased values is not.
    """

    basis: DelayedBasis
    result: CapacityResult
    rounds: tuple[Round, ...]
    faint: float
    faint_standard_error: float

    @property
    def windows(self) -> dict[int, int]:
        """The largest delay found of each degree, for ``delayed_basis(max_delay=found.windows)``."""
        pairs = zip(
            self.basis.degrees.tolist(),
            self.basis.largest_delays.tolist(),
            self.result.capacity,
            strict=True,
        )
        return {degree: delay for degree, delay, held in sorted(pairs) if degree and held}

    def __repr__(self) -> str:
        result, last = self.result, self.rounds[-1]
        error = np.hypot(result.total_standard_error or 0.0, self.faint_standard_error)
        lines = [
            f"Exploration: {np.count_nonzero(result.capacity[1:])} of {last.tested} functions found",
            f"  largest delay of each degree {self.windows}, tested up to {last.windows}",
            f"  total with those too small to be found one by one {with_error(result.total + self.faint, error)}",
        ]
        for number, one in enumerate(self.rounds, 1):
            found = f"{one.found} of {one.tested} found, {one.unexplained:.2f} unexplained before"
            lines.append(f"  round {number}: {found}")
        return "\n".join([*lines, repr(result)])


def explore(
    u: ArrayLike,
    x: ArrayLike,
    family: str | Family | Sequence[str | Family] = "legendre",
    *,
    domain: tuple[float, float] | None = None,
    washout: int | None = None,
    max_degree: int = 6,
    most_tested: int = 30_000,
    false_discovery_rate: float = 0.02,
    repeats: ArrayLike | None = None,
    **options: Any,
) -> Exploration:
    """Find the functions of an input sequence and its past that a device computes, without being told where to look.

    All functions of wide windows are tested, about as many of every degree, so that the delays of degree 1 reach far
    and those of degree 6 a few steps. What is found is fitted, and all are tested again on what the fit leaves. A
    degree of which something was found in the outermost third of its delays gets a window half as wide again. The
    search ends when nothing new is found, or too little. In the end all is judged once more, by one fit.

    Parameters
    ----------
    u, x
        A sequence of inputs and the readouts, or a list of runs of each, as for `estimate`; its `complex_as`, `memory_limit`
        and `executor` may be given, too.
    family, domain
        The distribution of the inputs, as for `delayed_basis`; there are as many inputs as u has columns.
    washout
        Time steps at the beginning of every run that are not used; no longer delays are looked for. By default a tenth
        of the shortest run, at most 1000 steps.
    max_degree, most_tested
        The highest degree that is looked for, and the most functions that are tested; windows grow no further.
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
    runs = list(zip(u, x, strict=False)) if has_runs(x) else [(u, x)]
    n_inputs = (*np.shape(runs[0][0]), 1)[1]
    families = find_families(family, n_inputs if isinstance(family, str | Family) else None, domain)
    if washout is None:
        washout = min(min(np.shape(one)[0] for _, one in runs) // 10 or 1, 1000)
    options["washout"] = longest = whole_number("washout", washout, 1)
    nothing = DelayedBasis(families, np.zeros((1, 3), int), memory=longest)
    most, windows = whole_number("most_tested", most_tested, 100), dict[int, int]()
    for degree in range(1, whole_number("max_degree", max_degree, 1) + 1):
        size = partial(lambda degree, delay: count_terms(families, {degree: delay}), degree)
        longest = bisect_right(range(longest + 1), FIRST_SHARE * most / max_degree, key=size) - 1
        windows |= (
            {degree: longest} if longest >= 0 else {}
        )  # there may be too many already without delays
    seen = gather_evidence(u, x, nothing, **options)
    most_found = min(seen.n_samples // LEAST_SAMPLES, MOST_FOUND)
    found, rounds, faint = _search(seen, rate, windows, most, most_found)
    basis = DelayedBasis(
        families, found.indices, memory=1
    )  # a sequence, even if nothing of the past was found
    with (
        warnings.catch_warnings()
    ):  # of functions beyond the basis, which were tested here; the others come again
        warnings.simplefilter("ignore", DataWarning)
        result = estimate(
            u, x, basis, repeats=repeats, method_options={"false_discovery_rate": rate}, **options
        )
    # The first rounds judged by residuals full of what was found later: all tested are judged again, by one fit.
    assert result.p_value is not None
    every = np.append(result.p_value, np.ones(rounds[-1].tested + 1 - len(basis)))
    clear = benjamini_hochberg(every, rate)[: len(basis)]
    checks = [one for one in result.checks if "beyond" not in one.found]
    if len(basis) >= most_found:
        said = f"the search ended at {len(basis) - 1} functions, the most for {result.n_samples} samples"
        checks.append(Check(f"{said}; take more samples to find smaller ones."))
    for degree in _reaching(DelayedBasis(families, basis.indices[clear]), rounds[-1].windows):
        delays = rounds[-1].windows[degree]
        said = f"functions of degree {degree} were found in the outermost third of the {delays} delays tested"
        remedy = (
            "record longer runs and raise `washout`" if delays >= washout else "raise `most_tested`"
        )
        checks.append(Check(f"{said}; {remedy} to look beyond.", degree=degree))
    for check in checks:
        if check.kind == "warning":
            warn(check)
    last = rounds[-1]
    metadata = result.metadata | {
        "explored": {"windows": last.windows, "tested": last.tested, "faint": faint}
    }
    result = replace(
        result, capacity=result.capacity * clear, checks=tuple(checks), metadata=metadata
    )
    return Exploration(basis, result, tuple(rounds), *faint)


def _search(
    seen: Evidence, rate: float, windows: dict[int, int], most_tested: int, most_found: int
) -> tuple[DelayedBasis, list[Round], tuple[float, float]]:
    """The functions found with the constant, the rounds, and what the others hold together, with its error."""
    families, memory, found, rounds = (
        seen.basis.families,
        seen.basis.memory,
        seen.basis,
        list[Round](),
    )
    assert isinstance(found, DelayedBasis)
    while True:
        basis = DelayedBasis(
            families, sort_terms(families, list_terms(families, windows)), memory=memory
        )
        others = np.flatnonzero(basis.places(found) < 0)
        p, unexplained, faint = _test(seen, basis, found, others)
        gain = rounds[-1].unexplained - unexplained if rounds else np.inf
        done = gain < WORTH * seen.rank or len(found) >= most_found or len(rounds) == MOST_ROUNDS
        passed = 0 if done else np.count_nonzero(benjamini_hochberg(p, rate))
        new = others[np.argsort(p)[: min(passed, most_found - len(found))]]
        rounds.append(Round(windows, len(basis) - 1, len(new), unexplained))
        if not len(new):
            return found, rounds, faint
        rows = joined(found.factors, basis.factors[new])
        found = DelayedBasis(families, sort_terms(families, rows), memory=memory)
        for degree in _reaching(found, windows):
            wider = windows | {degree: min(int(WIDER * windows[degree]) + 1, memory)}
            windows = wider if count_terms(families, wider) <= most_tested else windows


def _reaching(found: DelayedBasis, windows: dict[int, int]) -> list[int]:
    """The degrees of which something was found in the outermost third of the delays tested."""
    far = [found.largest_delays[found.degrees == degree].max(initial=-1) for degree in windows]
    return [
        degree
        for delay, degree in zip(far, windows, strict=True)
        if delay > OUTER * windows[degree]
    ]


def _test(
    seen: Evidence, basis: DelayedBasis, found: DelayedBasis, others: Integers
) -> tuple[Floats, float, tuple[float, float]]:
    """Fit the readouts with the functions found, and test others of a basis on what the fit leaves.

    Returns p-values of the others, how much of the rank is unexplained, and the capacity of the others together.
    """
    fit = fitted(
        seen.engine.fold(replace(seen.samples, basis=found), partial(products, **seen.whitener))
    )
    if fit is None:
        raise DataError(
            "some functions found are the same on these samples; draw another sequence, or a longer one."
        )
    c, left, gram = fit
    root, _ = inverse_root(gram)
    covariance, free = (
        root.T @ left @ root,
        seen.n_samples - len(found),
    )  # the fit has taken its share of the residuals
    work = partial(_residual_sums, found=found, c=c, root=root, **seen.whitener)
    sums = seen.engine.fold(replace(seen.samples, basis=basis), work)[others] / free
    capacity, bias, unexplained = (
        np.sum(sums[:, :-1] ** 2, axis=1),
        sums[:, -1] / free,
        float(np.trace(covariance)),
    )
    freedom = unexplained**2 / max(float(np.sum(covariance**2)), TINY)
    variance = max(float(np.sum(2 * bias**2 + 4 * bias * (capacity - bias))), 0.0) / freedom
    p = scipy.special.chdtrc(freedom, freedom * capacity / np.maximum(bias, TINY))
    return p, unexplained, (float(np.sum(capacity - bias)), float(np.sqrt(variance)))


def _residual_sums(
    samples: Samples,
    start: int,
    stop: int,
    *,
    found: DelayedBasis,
    c: Floats,
    root: Floats,
    **frame: Any,
) -> Floats:
    """The sums over some rows of y e, for the residuals e of a fit, and last of y² |e|²: (terms, rank + 1)."""
    total = np.zeros((len(samples.basis), root.shape[1] + 1))
    for _, u, phi, z in pieces(samples, start, stop, found, **frame):
        e = (z - phi.T @ as_like(c, z)) @ as_like(root, z)
        square = to_numpy(array_namespace(e).sum(e * e, axis=1))
        total[:, :-1] += to_numpy(samples.basis.project([(u, e)]))
        total[:, -1] += samples.basis.sum_over(u, square, power=2)
    return total
