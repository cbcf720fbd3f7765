"""One function per mistake: data whose answer would look plausible and be wrong, answers weaker than they look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from .._arrays import to_library_of, to_numpy
from .._threads import parallel_map
from ..basis import ProductBasis, product_basis
from ..dimension import Repeats, dead_channels
from ..errors import Check, ParameterError
from ..samples import ColumnStatistics, Samples
from ..typing import Integers
from ._alignment import alignment, clocks, hum, unsteady
from ._stretch import Stretch, prepared, stretches
from ._values import (
    clipped,
    counted_twice,
    inputs_off,
    mixed_units,
    outlying,
    rounded,
    stale,
    without_effect,
)

if TYPE_CHECKING:
    from ..estimators import Estimate, Evidence, Method

# A mean this many standard errors away is not chance, however many functions are looked at.
STANDARD_ERRORS = 5.0
# Variance of means over stretches of the acquisition, relative to independent samples, below which nobody cares.
EXCESS = 1.5
# Capacity held by slow drift, of which the total may then miss as much, or by functions of an input; less is harmless.
HARMLESS = 0.1
# Samples per readout below which the raw capacities' bias is no longer proportional to 1/N.
SAMPLES_PER_READOUT = 4
# E[y^4] per sample, and at least, above which a few samples decide the mean of y²; and the part of the rank that a fit
# leaves below which it is exact.
HEAVY, LEAST_HEAVY, NOISELESS = 0.1, 100.0, 1e-7
# A corrected total scatters around the rank; beyond this multiple of it something is wrong.
ABOVE = 1.01


@dataclass(frozen=True, eq=False)
class Case:
    """What a check sees: the evidence, the method, what it found, and what repeats say where there are any.

    >>> import infocap
    >>> def few_functions(case):
    ...     yield infocap.errors.Check(f"{len(case.evidence.basis)} functions, total {case.total:.0f}", "note")
    >>> infocap.diagnostics.CHECKS["mine"] = few_functions
    >>> infocap.probe(lambda u: u, infocap.product_basis("legendre", 1, 3), 64, seed=1).notes[-1]
    '4 functions, total 2'
    >>> del infocap.diagnostics.CHECKS["mine"]
    """

    evidence: Evidence
    method: Method
    estimate: Estimate
    total: float
    repeats: Repeats | None = None
    repeated: Integers | None = None  # the rows that were measured twice


def correlated(case: Case) -> Iterator[Check]:
    """Means over stretches of the acquisition that differ by more than independent samples allow."""
    evidence, samples, look = case.evidence, case.evidence.samples, case.evidence.column_statistics
    sizes = look.epoch_sizes
    if evidence.n_samples < 4 * len(sizes):
        return
    means = look.epoch_sums / np.maximum(sizes, 1)[:, None]
    shifted = means[:, samples.channels] + (look.typical[samples.channels] - samples.shift)
    whitening = evidence.whitener["whitening"]
    means = to_numpy(
        to_library_of(shifted * samples.scale - evidence.space.mean, whitening) @ whitening
    )
    if not samples.constant or samples.sqrt_sample_weight is not None:
        means = means - (sizes @ means) / sizes.sum()
    freedom = (len(sizes) - 1) * means.shape[1]
    held = (float(np.sum(sizes[:, None] * means**2)) - freedom) / evidence.n_samples
    excess = float(np.sum(sizes[:, None] * means**2)) / max(freedom, 1)
    if samples.sqrt_sample_weight is not None:
        # As drawn, readouts scatter more than under the density of the basis.
        drawn = (
            evidence.leverage / np.maximum(samples.sqrt_sample_weight**2, 1e-300) - samples.constant
        )
        excess *= means.shape[1] / float(np.mean(drawn))
    if excess > max(EXCESS, 1 + 6 * np.sqrt(2 / max(freedom, 1))) and held > HARMLESS:
        yield Check(
            f"samples are correlated in acquisition order: means over {len(sizes)} stretches vary "
            f"{excess:.1f} times more than independent samples would (effective number of samples about "
            f"{evidence.n_samples / excess:.0f}), which takes up to {held:.2g} of the capacity: the device drifts, or "
            "the inputs were not in random order; measure in random order, and keep the device steady.",
            unreliable="samples correlated in acquisition order",
            cause="drift", excess=excess, capacity=held,
        )  # fmt: skip


def weak(case: Case) -> Iterator[Check]:
    """Readouts that are no new ones, samples too few for any correction, capacities that sum to more than possible."""
    samples, n, rank = case.evidence.samples, case.evidence.n_samples, case.evidence.rank
    maximum, left = samples.n_columns, case.estimate.residual_covariance
    if rank < maximum:
        said = f"only {rank} of {maximum} readouts are linearly independent, so the total cannot exceed {rank}"
        yield Check(
            f"{said}; leave out copies and sums of others.",
            cause="dependent",
            rank=rank,
            maximum=maximum,
        )
    least = SAMPLES_PER_READOUT * rank
    if n < least:
        said = (
            f"{n} samples are few for {rank} readouts: below 4 K = {least} the bias is large, and "
            "extrapolation does not remove it; take more samples."
        )
        yield Check(
            said,
            unreliable=f"few samples for {rank} readouts",
            cause="few samples",
            n_samples=n,
            wanted=least,
        )
    if case.total > ABOVE * rank:
        advice = "check the inputs' distribution, or take more samples"
        if not case.method.corrects_bias:
            advice = f"use the default method, for {case.method.name!r} does not correct the finite-sample bias"
        said = f"the capacities sum to {case.total:.3f}, above the {rank} that the readouts allow; {advice}."
        yield Check(
            said, unreliable=f"more than the {rank} that are possible", total=case.total, rank=rank
        )
    if left is not None and np.trace(left) > NOISELESS and samples.sqrt_sample_weight is None:
        limit, terms = max(HEAVY * n, LEAST_HEAVY), len(samples.basis)
        heavy = int(np.sum(samples.basis.fourth_moments > limit))
        remedy = "use bounded inputs" if samples.basis.memory else "use draw_weighted"
        if heavy:
            yield Check(
                f"{heavy} of {terms} functions have E[y^4] above {limit:.0f}: a few samples decide them, so that they "
                "and the total are less certain than their error bars; lower the degree, take more samples, or "
                f"{remedy}.",
                unreliable=f"{heavy} functions with large fourth moments", functions=heavy,
            )  # fmt: skip


def repeats_off(case: Case) -> Iterator[Check]:
    """What repeats have to say: their own analysis, inputs that are not spread like all others, contradictions."""
    limit = case.repeats
    if limit is None or case.repeated is None:
        return
    yield from (one for one in limit.checks if one.kind == "warning")
    u, root = (
        case.evidence.samples.u.read_rows(case.repeated),
        case.evidence.samples.sqrt_sample_weight,
    )
    low, weights = (
        single_inputs(case.evidence.basis),
        None if root is None else root[case.repeated] ** 2,
    )
    means = np.abs(low.sum_over_samples(u, weights)) / len(u)
    # A weighted mean scatters more, at most by the root of the largest weight.
    z = means * np.sqrt(len(u) / (1.0 if weights is None else weights.max()))
    worst = int(np.argmax(np.where(low.degrees > 0, z, -1.0)))
    if z[worst] > STANDARD_ERRORS:
        yield Check(
            f"the repeated inputs do not follow the declared distribution: the mean of {low.labels[worst]} over them "
            f"is {means[worst]:.3g}, {z[worst]:.0f} standard errors from 0; repeat inputs chosen at "
            "random (every 4th point of a Sobol design lies in one quarter of an input's range).",
            function=low.labels[worst],
            standard_errors=float(z[worst]),
        )
    if limit.total + 3 * limit.standard_error < case.total - 0.5:
        said = (
            f"more was found ({case.total:.1f}) than the repeats say noise allows ({limit.total:.1f} ± "
            f"{limit.standard_error:.1f}): the repeated inputs are not a random sample, or the device drifted between "
            "the repeats; repeat inputs chosen at random, at random times."
        )
        yield Check(
            said, unreliable="more than repeats allow", total=case.total, allowed=limit.total
        )


def left_out(case: Case) -> Iterator[Check]:
    """Rows and channels that were left out without harm, said all the same."""
    samples, look = case.evidence.samples, case.evidence.column_statistics
    if samples.n_omitted_rows:
        said = f"{samples.n_omitted_rows} rows with NaN or infinite values were dropped."
        yield Check(said, "note", rows=samples.n_omitted_rows)
    unused = np.setdiff1d(np.arange(len(look.low)), samples.channels)
    if len(unused):
        yield from dead_channels(samples.x, unused, look.low, samples.constant)


@lru_cache(maxsize=8)
def single_inputs(basis: ProductBasis) -> ProductBasis:
    """Functions of single inputs of a basis up to degree 2."""
    return product_basis(basis.families, max_degree=2, max_interactions=1)


# What is looked for in the data, by `estimate` and by `diagnose`.
DATA: dict[str, Callable[[Stretch], Iterator[Check]]] = {
    "inputs of the declared range, shape and digits, independent of each other": inputs_off,
    "inputs that have an effect": without_effect,
    "no row counted twice": counted_twice,
    "no readout that repeats the one before": stale,
    "no codes in place of numbers, no glitches": outlying,
    "readouts in one unit, not wrapped around": mixed_units,
    "readouts not clipped": clipped,
    "readouts resolved finer than their noise": rounded,
    "readouts that belong to the inputs of their row, and to no earlier ones": alignment,
    "no hum": hum,
    "readouts of a steady size": unsteady,
    "no clock or thermometer among the readouts": clocks,
}
# Those that hold for devices with memory too, whose readouts do not follow the inputs of their own row alone.
WITH_MEMORY = (inputs_off, stale, outlying, clipped, rounded, hum)
# Measurements that some of them need in a stretch.
LEAST = {clocks: 64, alignment: 128, hum: 256, clipped: 1000, unsteady: 1024}
NEEDS = {name: LEAST[check] for name, check in DATA.items() if check in LEAST}
# What a finding explains: that is then not told a second time under another name. The first in this order counts.
_OF_VALUES = ("wrapped", "clipped", "rounded readouts", "drift", "unsteady")
_OF_ORDER = ("shift", "gap", "memory", "late channels", "nothing", "no effect", "hum")
EXPLAINS = {
    "units": ("codes", "glitches", "outlying", *_OF_VALUES, *_OF_ORDER),
    "codes": ("glitches", *_OF_VALUES, *_OF_ORDER),
    "shift": ("wrapped", "glitches", "no effect", "drift", "unsteady"),
    "gap": ("wrapped", "glitches", "stale", "drift", "unsteady"),
    "late channels": ("wrapped", "glitches", "unsteady"),
    "clipped": ("stale",),
    "stale": ("wrapped", "memory", "glitches", "drift"),
    "no effect": ("wrapped", "glitches"),
    "memory": ("wrapped", "drift"),
    "wrapped": ("clipped", "glitches"),
    "order of inputs": ("unsteady", "hum"),
    "unsteady": ("glitches", "drift"),
    "glitches": ("clipped", "memory", "nothing", "hum"),
    "nothing": ("no effect",),
    "no readout": ("drift", "hum", "unsteady"),
    "rounded inputs": ("stacked", "repeats"),
    "stacked": ("order of inputs", "drift", "memory"),
    "repeats": ("order of inputs", "drift"),
    **dict.fromkeys(
        ("domain", "shape of inputs", "correlated inputs"), ("order of inputs", "glitches")
    ),
}


def mistakes(
    samples: Samples, look: ColumnStatistics, cores_per_thread: int = 1
) -> dict[str, list[Check]]:
    """What is wrong with the data in all stretches, by its cause; `cores_per_thread` as for `parallel_map`."""
    parts, found = stretches(samples), dict[str, list[Check]]()
    seen = partial(_in_stretch, samples, look, 1 / len(parts))
    with np.errstate(under="ignore"):
        for one in chain.from_iterable(
            parallel_map(seen, parts, cores_per_thread) if samples.in_memory else map(seen, parts)
        ):
            if "cause" not in one.found:
                raise ParameterError(
                    f"the check of the data {str(one)!r:.60} has no cause; give Check(..., cause=...)."
                )
            found.setdefault(one.found["cause"], []).append(one)
    return found


def of_data(case: Case) -> Iterator[Check]:
    """What is wrong with the data, each mistake once, the first with a picture of where it is."""
    found, length = dict(case.evidence.data_findings()), len(stretches(case.evidence.samples)[0][1])
    kept, pictured = told_once([first for first, *_ in found.values()]), False
    if case.method.corrects_bias:  # what low degrees do not show may have been found in higher ones
        capacity, dead = (
            case.estimate.capacity,
            [k for one in found.get("no effect", ()) for k in one.found["inputs"]],
        )
        if case.total - capacity[0] > 1:
            found.pop("nothing", None)
        if (
            dead
            and min(capacity[case.evidence.basis.indices[:, k] > 0].sum() for k in dead) > HARMLESS
        ):
            found.pop("no effect")
    for first, *others in found.values():
        if first not in kept:
            continue
        text, all_found = str(first), dict(first.found)
        if others:
            text += f" The same is seen in {len(others)} more stretches of {length} measurements."
            for name in ("rows", "first_rows", "shifts"):
                if name in all_found:
                    all_found[name] = [row for one in (first, *others) for row in one.found[name]]
        if pictured:
            all_found.pop("picture", None)
        pictured |= "picture" in all_found
        yield Check(text, first.kind, **all_found)


def _in_stretch(
    samples: Samples, look: ColumnStatistics, share: float, part: tuple[int, Integers]
) -> list[Check]:
    """What is wrong with the data of one stretch, each with a picture of where it is."""
    stretch, found = prepared(samples, look, *part, share), list[Check]()
    for name, check in DATA.items():
        used = stretch.n >= NEEDS.get(name, 0) and (check in WITH_MEMORY or not samples.history)
        for one in check(stretch) if used else ():
            one.found["looked_for"] = name
            if one.kind == "warning" and {"rows", "channels"} & set(one.found):
                one.found["picture"] = stretch.picture(
                    one.found.get("rows", ()), one.found.get("channels", ())
                )
            found.append(one)
    return found


def told_once(checks: list[Check]) -> list[Check]:
    """The checks without those that another one explains."""
    causes = {one.found.get("cause") for one in checks}
    explained: set[str] = set()
    for cause, others in EXPLAINS.items():
        explained.update(others if cause in causes - explained else ())
    return [one for one in checks if one.found.get("cause") not in explained]


CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "data": of_data,
    "correlated": correlated,
    "weak": weak,
    "repeats off": repeats_off,
    "left out": left_out,
}


def run_checks(case: Case) -> tuple[Check, ...]:
    """What the method had to say, then everything that the checks of the table find, in its order, each once.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=1)
    >>> evidence = infocap.estimators.gather_evidence(u, u**3, basis)
    >>> method = infocap.estimators.METHODS["raw"]
    >>> run_checks(Case(evidence, method, method(evidence), total=2.0))
    ()
    """
    said = [one if isinstance(one, Check) else Check(one) for one in case.estimate.checks]
    table = {
        name: one
        for name, one in CHECKS.items()
        if one is not repeats_off or case.repeats is not None
    }
    if case.evidence.basis.memory:
        from ._sequences import SEQUENCE_CHECKS

        table = {
            name: one for name, one in table.items() if one is not correlated
        } | SEQUENCE_CHECKS
    for check in table.values():
        said += check(case)
    return tuple(dict.fromkeys(told_once(said)))
