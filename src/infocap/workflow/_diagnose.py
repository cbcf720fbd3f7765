"""Warnings about data whose answer would look plausible and be wrong: one function for each mistake."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._array import as_like, to_numpy
from .._words import listed
from ..basis import DiscreteFamily, Family, ProductBasis, product_basis
from ..dimension import Repeats
from ..estimators import Estimate
from ..kernels import Evidence, squares
from ..typing import Floats, Integers
from ._look import Survey
from ._refuse import fitting_domain

STANDARD_ERRORS = 5.0  # a mean this far off is not chance
LAGS = 4
LAG_ROWS = 1024
SATURATED = 0.01
EXCESS = 1.5  # variance of epoch means, relative to independent samples, below which nobody cares


def diagnose(
    evidence: Evidence,
    survey: Survey,
    estimate: Estimate,
    total: float,
    order: Integers | None,
    method: str,
    options: dict[str, Any],
) -> list[str]:
    """Every warning the data deserve, in the order a person should read them.

    `order` lists the rows in the order of acquisition; None means as they stand.
    """
    names = evidence.walk.x.columns
    return [
        *_inputs_off(evidence, survey),
        *_shifted(evidence, order),
        *_slow(evidence, survey),
        *_saturated(survey, evidence, names),
        *_rank(evidence),
        *_few_samples(evidence),
        *_threshold(estimate, method == "threshold-richardson" and options.get("bound") != "data"),
        *_too_much(evidence, total, method),
    ]


def handled(evidence: Evidence, survey: Survey, constant: bool) -> list[str]:
    """What was put right without harm, said all the same."""
    notes = []
    used = set(evidence.walk.channels.tolist())
    left_out = [number for number in range(len(survey.low)) if number not in used]
    carrier = next((number for number in left_out if constant and survey.low[number] != 0), None)
    names = [evidence.walk.x.column(number) for number in left_out if number != carrier]
    if carrier is not None:
        notes.append(f"{evidence.walk.x.column(carrier)} is constant and serves as the constant readout.")
    if names:
        notes.append(
            f"dead channels were dropped ({listed(names)}); the maximum capacity is lower by {len(names)}."
        )
    return notes


def repeats_off(u: Floats, basis: ProductBasis, limit: Repeats, total: float) -> Iterator[str]:
    """Repeats at inputs `u` that are not spread like all others, or that contradict what was found."""
    small = _low_degree(basis.families)
    z = np.abs(small.sum_over(u)) / np.sqrt(len(u))
    worst = int(np.argmax(np.where(small.degrees > 0, z, -1.0)))
    if z[worst] > STANDARD_ERRORS:
        yield (
            f"the repeated inputs do not follow the declared distribution: the mean of {small.labels[worst]} over them "
            f"is {z[worst] / np.sqrt(len(u)):.3g}, {z[worst]:.0f} standard errors from 0; repeat inputs chosen at "
            "random (every 4th point of a Sobol design lies in one quarter of an input's range)."
        )
    if limit.total + 3 * limit.standard_error < total - 0.5:
        yield (
            f"more was found ({total:.1f}) than the repeats say noise allows ({limit.total:.1f} ± "
            f"{limit.standard_error:.1f}): they are no fair sample of the inputs, or the device drifted between them."
        )


def _inputs_off(evidence: Evidence, survey: Survey) -> Iterator[str]:
    """The means of low-degree functions are 0 if the inputs are what the basis assumes."""
    basis, n = evidence.walk.basis, evidence.n_samples
    if evidence.whole.constant:
        z = np.abs(to_numpy(evidence.whole.projection[0, :]))  # sqrt(N) times the means, for free
        low = (basis.degrees > 0) & (basis.degrees <= 4) & (basis.fourth_moments < n / 10)
    else:
        small = _low_degree(basis.families)
        z = np.abs(
            sum(
                small.sum_over(part.u.read_on_host(*piece), part.weights(*piece))
                for part in evidence.walk.slabs()
                for piece in part.pieces(0, part.n_samples)
            )
        ) / np.sqrt(n)
        basis, low = small, small.degrees > 0
    if not low.any():
        return
    if evidence.walk.root_weights is not None:
        z = z / evidence.walk.root_weights.max()  # a bound on how much more a weighted mean scatters
    worst = int(np.argmax(np.where(low, z, -1.0)))
    if z[worst] <= STANDARD_ERRORS:
        return
    said = ", ".join(dict.fromkeys(family.distribution for family in basis.families))
    message = (
        f"inputs do not follow the declared distribution ({said}): the mean of {basis.label(worst)} is "
        f"{z[worst] / np.sqrt(n):.3g}, {z[worst]:.0f} standard errors from 0"
    )
    for k, family in enumerate(basis.families):
        fitting = fitting_domain(survey.input_low[k], survey.input_high[k], family.domain)
        if fitting:
            yield f"{message}; u fills {fitting}: make the basis with `domain={fitting}`."
            return
    yield f"{message}; make the basis with the true distribution's `family`, or from basis.samples(recorded inputs)."


def _shifted(evidence: Evidence, order: Integers | None) -> Iterator[str]:
    """Readouts that match the inputs of a neighbouring sample better than their own, from some row on perhaps.

    A few low-degree functions raise the suspicion. In Sobol order neighbouring inputs are related, so those
    may mislead; then the whole basis has to agree. A row lost on the way shifts all that comes after it, so the
    end of the acquisition is looked at as well as its beginning.
    """
    total, n = evidence.n_samples, min(evidence.n_samples, LAG_ROWS)
    if n < 16 * LAGS:
        return
    ends = [_stretch(evidence, order, 0, n)] + [_stretch(evidence, order, total - n, total)] * (total > n)
    looked_at = [(0, ends[0]), (total - n, ends[-1])][: len(ends)]
    if n >= 64 * LAGS:
        looked_at.append((total - n // 4, ends[-1].last(n // 4)))
    low = _low_degree(evidence.walk.basis.families)
    y = np.split(low(np.vstack([end.u for end in ends]))[:, 1:], len(ends))
    for start, stretch in looked_at:
        found = _shift_within(stretch, y[0 if start == 0 else -1][-stretch.n :], evidence.walk.basis)
        if found is not None:
            best, there, here = found
            where = "" if start == 0 else f" in the stretch from measurement {start} on"
            yield (
                f"readouts look shifted by {best:+d} samples against the inputs{where}: their raw capacity is "
                f"{there:.1f} there and {here:.1f} as given; check the trigger, then realign the rows."
            )
            return


class _Stretch(NamedTuple):
    """Some rows in the order of acquisition: whitened readouts, inputs, and roots of weights."""

    z: Any
    u: Floats
    root: Floats | None

    @property
    def n(self) -> int:
        return len(self.u)

    def last(self, n: int) -> _Stretch:
        return _Stretch(self.z[self.n - n :, :], self.u[-n:], None if self.root is None else self.root[-n:])


def _stretch(evidence: Evidence, order: Integers | None, start: int, stop: int) -> _Stretch:
    walk = evidence.walk
    if order is None:
        rows: Integers | slice = slice(start, stop)
        z, u = evidence.whiten(walk.x.read(start, stop)), walk.u.read_on_host(start, stop)
    else:
        rows = order[start:stop]
        z, u = evidence.whiten(walk.x.take(rows)), walk.u.take(rows)
    # A wide density has large values far out, which would decide alone; hence the weights.
    root = None if walk.root_weights is None else walk.root_weights[rows, None]
    return _Stretch(z if root is None else z * as_like(root, z), u, root)


def _shift_within(stretch: _Stretch, y: Floats, basis: ProductBasis) -> tuple[int, float, float] | None:
    """The lag that fits a stretch of the acquisition clearly better than none, and both raw capacities.

    `y` are the low-degree functions at its inputs.
    """
    lags, rank = list(range(-LAGS, LAGS + 1)), stretch.z.shape[1]
    found = _scores(stretch, y, lags)
    place = int(np.argmax(found))
    if lags[place] == 0 or found[place] < found[LAGS] + _chance(stretch.n, rank, y.shape[1], found[place]):
        return None
    there, here = _scores(stretch, basis(stretch.u)[:, 1:], [lags[place], 0]).tolist()
    doubt = _chance(stretch.n, rank, len(basis) - 1, there)
    return (lags[place], there, here) if there > here + doubt else None


def _scores(stretch: _Stretch, y: Floats, lags: list[int]) -> Floats:
    """Capacity of the functions `y` in readouts taken so many samples later, over the samples common to all lags."""
    n, size = stretch.n - 2 * LAGS, y.shape[1]
    y = y if stretch.root is None else y * stretch.root
    shifted = as_like(np.hstack([y[LAGS - lag : LAGS - lag + n] for lag in lags]), stretch.z)
    power = squares(stretch.z[LAGS : LAGS + n, :].T @ shifted / n)
    return power.reshape(len(lags), size).sum(axis=1)


def _chance(n: int, rank: int, size: int, score: float) -> float:
    """By how much two scores may differ by chance: six standard deviations."""
    return float(6 * (np.sqrt(2 * rank * size) + 2 * np.sqrt(n * score)) / n)


def _slow(evidence: Evidence, survey: Survey) -> Iterator[str]:
    """Means over stretches of the acquisition that differ by more than independent samples allow."""
    sizes = survey.epoch_sizes
    if evidence.n_samples < 4 * len(sizes):
        return
    walk, space = evidence.walk, evidence.space
    shifted = survey.epoch_means[:, walk.channels] + (survey.typical[walk.channels] - walk.shift)
    means = (shifted * walk.scale - space.mean) @ (space.whitening * np.sqrt(evidence.n_samples))
    if not walk.constant or walk.root_weights is not None:
        means = means - (sizes @ means) / sizes.sum()
    freedom = (len(sizes) - 1) * means.shape[1]
    excess = float(np.sum(sizes[:, None] * means**2)) / max(freedom, 1)
    if walk.root_weights is not None:  # as drawn, readouts scatter more than under the density of the basis
        drawn = evidence.leverage / np.maximum(walk.root_weights**2, 1e-300) - walk.constant
        excess *= means.shape[1] / float(np.mean(drawn))
    if excess > max(EXCESS, 1 + 6 * np.sqrt(2 / max(freedom, 1))):
        yield (
            f"samples are correlated in acquisition order: means over {len(sizes)} stretches vary "
            f"{excess:.1f} times more than independent samples would (effective number of samples about "
            f"{evidence.n_samples / excess:.0f}); the device drifts, or the inputs were not in random order."
        )


def _saturated(survey: Survey, evidence: Evidence, names: list[str]) -> Iterator[str]:
    """Channels that spend too long at one end of their range."""
    if all(isinstance(family, DiscreteFamily) for family in evidence.walk.basis.families):
        return  # inputs on a few levels make readouts on a few levels
    share = np.where(survey.dead, 0.0, survey.at_extreme - 1 / evidence.n_samples)  # one sample always is
    bad = np.flatnonzero(share > SATURATED)
    if len(bad):
        named = listed([evidence.walk.x.column(int(number)) for number in bad])
        yield (
            f"{len(bad)} of {len(names)} channels look saturated or clipped ({named}): up to "
            f"{share.max():.0%} of their samples sit at the lowest or highest value."
        )


def _rank(evidence: Evidence) -> Iterator[str]:
    if evidence.rank < evidence.n_readouts:
        yield (
            f"only {evidence.rank} of {evidence.n_readouts} readouts are linearly independent; "
            f"the total capacity cannot exceed {evidence.rank}."
        )


def _few_samples(evidence: Evidence) -> Iterator[str]:
    n, k = evidence.n_samples, evidence.rank
    if n < 4 * k:
        yield (
            f"{n} samples are few for {k} readouts: below 4 K = {4 * k} the bias is not small and not "
            "removed by extrapolation; take more samples."
        )


def _threshold(estimate: Estimate, papers_bound: bool) -> Iterator[str]:
    if estimate.threshold is None:
        return
    count = int(np.sum(estimate.threshold > 1))
    if count:
        other = ", or pass `bound='data'` for the bound mean(leverage·y²)/N" if papers_bound else ""
        yield (
            f"the zero-capacity threshold exceeds 1 for {count} of {len(estimate.threshold)} functions: no true "
            f"capacity can pass it; lower the degree or take more samples{other}."
        )


def _too_much(evidence: Evidence, total: float, method: str) -> Iterator[str]:
    if total > 1.01 * evidence.rank:  # a corrected total scatters around the rank
        advice = (
            f"method {method!r} does not correct the finite-sample bias; use 'control-variate'"
            if method in ("raw", "surrogate", "chi2")
            else "check the inputs' distribution, or take more samples"
        )
        yield (
            f"the capacities sum to {total:.3f}, above the {evidence.rank} that the readouts allow: {advice}."
        )


@lru_cache(maxsize=8)
def _low_degree(families: tuple[Family, ...]) -> ProductBasis:
    """Functions of single inputs up to degree 2."""
    return product_basis(families, max_degree=2, max_interactions=1)
