"""One function per mistake: data whose answer would look plausible and be wrong, answers weaker than they look."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, to_numpy
from .._words import listed
from ..basis._family import DiscreteFamily
from ..basis._product import ProductBasis, product_basis
from ..dimension._repeats import Repeats
from ..errors import Check
from ..estimators._evidence import Evidence
from ..estimators._method import Estimate, Method
from ..kernels._summary import squares
from ..samples._look import fitting_domain
from ..samples._samples import Samples
from ..typing import Floats, Integers

# A mean this many standard errors away is not chance, however many functions are looked at.
STANDARD_ERRORS = 5.0
# Share of a channel's samples at its lowest or highest value from which it looks clipped.
SATURATED = 0.01
# Variance of means over stretches of the acquisition, relative to independent samples, below which nobody cares.
EXCESS = 1.5
# Samples by which readouts may be shifted in either direction.
LAGS = 4
# Rows at either end of the acquisition that are looked at: enough to see a shift of readouts with much noise.
LAG_ROWS = 1024
# Samples per readout below which the raw capacities' bias is no longer proportional to 1/N.
SAMPLES_PER_READOUT = 4
# A corrected total scatters around the rank; beyond this multiple of it something is wrong.
ABOVE = 1.01


@dataclass(frozen=True, eq=False)
class Case:
    """What a check sees: the evidence, the method, what it found, and what repeats say where there are any.

    >>> import infocap
    >>> def few_functions(case):
    ...     yield infocap.errors.Check(f"{len(case.evidence.basis)} functions, total {case.total:.0f}", "note")
    >>> infocap.checks.CHECKS["mine"] = few_functions
    >>> infocap.probe(lambda u: u, infocap.product_basis("legendre", 1, 3), 64, seed=1).notes[-1]
    '4 functions, total 2'
    >>> del infocap.checks.CHECKS["mine"]
    """

    evidence: Evidence
    method: Method
    estimate: Estimate
    total: float
    repeats: Repeats | None = None
    repeated: Integers | None = None  # the rows that were measured twice


def inputs_off(case: Case) -> Iterator[Check]:
    """Inputs that do not follow the declared distribution: then the means of low-degree functions are not 0."""
    evidence, samples = case.evidence, case.evidence.samples
    basis, n = evidence.basis, evidence.n_samples
    if evidence.whole.constant:
        z = np.abs(to_numpy(evidence.whole.projection[0, :]))  # sqrt(N) times the means, for free
        low = (basis.degrees > 0) & (basis.degrees <= 4) & (basis.fourth_moments < n / 10)
        low &= (basis.interactions < 2) | (basis.memory == 0)  # products of delays tell dependence, not distribution
    else:
        basis = single_inputs(basis)
        z = np.abs(evidence.engine.fold(samples, partial(_sums, basis=basis))) / np.sqrt(n)
        low = basis.degrees > 0
    if not low.any():
        return
    if samples.root_weights is not None:
        z = z / samples.root_weights.max()  # a bound on how much more a weighted mean scatters
    worst = int(np.argmax(np.where(low, z, -1.0)))
    if z[worst] <= STANDARD_ERRORS:
        return
    said = ", ".join(dict.fromkeys(family.distribution for family in basis.families))
    spans = zip(evidence.look.input_low, evidence.look.input_high, basis.families, strict=True)
    fitting = (fitting_domain(low, high, family.domain) for low, high, family in spans)
    domain = next((one for one in fitting if one), None)
    advice = "use the `family` of the true distribution, or basis.samples(recorded inputs)"
    if domain:
        advice = f"u fills {domain}: pass `domain={domain}` to product_basis"
    text = (
        f"inputs do not follow the declared distribution ({said}): the mean of {basis.label(worst)} is "
        f"{z[worst] / np.sqrt(n):.3g}, {z[worst]:.0f} standard errors from 0; {advice}."
    )
    found: dict[str, Any] = {"function": basis.label(worst), "standard_errors": float(z[worst])}
    yield Check(text, unreliable="inputs not of the declared distribution", **found)


def _sums(samples: Samples, start: int, stop: int, *, basis: ProductBasis) -> Floats:
    return basis.sum_over(samples.u.read(start, stop, on_host=True), samples.weights(start, stop))


def correlated(case: Case) -> Iterator[Check]:
    """Means over stretches of the acquisition that differ by more than independent samples allow."""
    evidence, samples, look = case.evidence, case.evidence.samples, case.evidence.look
    sizes = look.epoch_sizes
    if evidence.n_samples < 4 * len(sizes):
        return
    means = look.epoch_sums / np.maximum(sizes, 1)[:, None]
    shifted = means[:, samples.channels] + (look.typical[samples.channels] - samples.shift)
    means = (shifted * samples.scale - evidence.space.mean) @ evidence.whitening
    if not samples.constant or samples.root_weights is not None:
        means = means - (sizes @ means) / sizes.sum()
    freedom = (len(sizes) - 1) * means.shape[1]
    excess = float(np.sum(sizes[:, None] * means**2)) / max(freedom, 1)
    if samples.root_weights is not None:
        # As drawn, readouts scatter more than under the density of the basis.
        drawn = evidence.leverage / np.maximum(samples.root_weights**2, 1e-300) - samples.constant
        excess *= means.shape[1] / float(np.mean(drawn))
    if excess > max(EXCESS, 1 + 6 * np.sqrt(2 / max(freedom, 1))):
        yield Check(
            f"samples are correlated in acquisition order: means over {len(sizes)} stretches vary "
            f"{excess:.1f} times more than independent samples would (effective number of samples about "
            f"{evidence.n_samples / excess:.0f}); the device drifts, or the inputs were not in random order.",
            unreliable="samples correlated in acquisition order",
            excess=excess,
        )


def saturated(case: Case) -> Iterator[Check]:
    """Channels that spend too long at one end of their range."""
    if all(isinstance(family, DiscreteFamily) for family in case.evidence.basis.families):
        return  # inputs on a few levels make readouts on a few levels
    look, n = case.evidence.look, case.evidence.n_samples
    share = (np.maximum(look.at_low, look.at_high) - 1) / n  # one sample always is
    share = np.where(look.dead, 0.0, share)
    bad = np.flatnonzero(share > SATURATED)
    if len(bad):
        names = [case.evidence.samples.x.column(int(number)) for number in bad]
        said = (
            f"{len(bad)} of {len(share)} channels look saturated or clipped ({listed(names)}): up to "
            f"{share.max():.0%} of their samples sit at the lowest or highest value."
        )
        yield Check(said, channels=names, share=share[bad].tolist())


def dependent_readouts(case: Case) -> Iterator[Check]:
    """Readouts that are linear combinations of others."""
    rank, maximum = case.evidence.rank, case.evidence.maximum
    if rank < maximum:
        said = f"only {rank} of {maximum} readouts are linearly independent; the total capacity cannot exceed {rank}."
        yield Check(said, rank=rank, maximum=maximum)


def few_samples(case: Case) -> Iterator[Check]:
    """So few samples that no correction of the bias is safe."""
    n, k = case.evidence.n_samples, case.evidence.rank
    if n < SAMPLES_PER_READOUT * k:
        said = (
            f"{n} samples are few for {k} readouts: below 4 K = {4 * k} the bias is not small and not "
            "removed by extrapolation; take more samples."
        )
        yield Check(said, unreliable=f"few samples for {k} readouts", n_samples=n, wanted=SAMPLES_PER_READOUT * k)


def above_the_rank(case: Case) -> Iterator[Check]:
    """Capacities that sum to more than the readouts allow."""
    total, rank, method = case.total, case.evidence.rank, case.method
    if total > ABOVE * rank:
        advice = "check the inputs' distribution, or take more samples"
        if not method.corrects_bias:
            advice = f"method {method.name!r} does not correct the finite-sample bias; use the default method"
        said = f"the capacities sum to {total:.3f}, above the {rank} that the readouts allow: {advice}."
        yield Check(said, unreliable=f"more than the {rank} that are possible", total=total, rank=rank)


def repeats_off(case: Case) -> Iterator[Check]:
    """What repeats have to say: their own analysis, inputs that are not spread like all others, contradictions."""
    limit = case.repeats
    if limit is None or case.repeated is None:
        return
    yield from (one for one in limit.checks if one.kind == "warning")
    u, root = case.evidence.samples.u.take(case.repeated), case.evidence.samples.root_weights
    low, weights = single_inputs(case.evidence.basis), None if root is None else root[case.repeated] ** 2
    means = np.abs(low.sum_over(u, weights)) / len(u)
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
            f"{limit.standard_error:.1f}): they are no fair sample of the inputs, or the device drifted between them."
        )
        yield Check(said, unreliable="more than repeats allow", total=case.total, allowed=limit.total)


def left_out(case: Case) -> Iterator[Check]:
    """Rows and channels that were left out without harm, said all the same."""
    samples, look = case.evidence.samples, case.evidence.look
    if samples.n_dropped:
        said = f"{samples.n_dropped} rows with NaN or infinite values were dropped."
        yield Check(said, "note", rows=samples.n_dropped)
    unused = sorted(set(range(len(look.low))) - set(samples.channels.tolist()))
    carrier = next((number for number in unused if samples.constant and look.low[number] != 0), None)
    if carrier is not None:
        name = samples.x.column(carrier)
        yield Check(f"{name} is constant and serves as the constant readout.", "note", channels=[name])
    names = [samples.x.column(number) for number in unused if number != carrier]
    if names:
        said = f"dead channels were dropped ({listed(names)}); the maximum capacity is lower by {len(names)}."
        yield Check(said, "note", channels=names)


def shifted(case: Case) -> Iterator[Check]:
    """Readouts that match the inputs of a neighbouring sample better than their own, from some row on perhaps.

    A few low-degree functions raise the suspicion. In Sobol order neighbouring inputs are related, so those
    may mislead; then the whole basis has to agree. A row lost on the way shifts all that comes after it, so the
    end of the acquisition is looked at as well as its beginning.
    """
    total = case.evidence.n_samples
    n = min(total, LAG_ROWS)
    if n < 16 * LAGS:
        return
    ends = [(0, n), (total - n, total)][: 1 + (total > n)]
    z, u, root = _rows_of(case, ends)
    y = as_like(single_inputs(case.evidence.basis).values(u).T[:, 1:] * root, z)
    looked_at = [(0, slice(0, n)), (total - n, slice(-n, None))][: len(ends)]
    looked_at += [(total - n // 4, slice(-(n // 4), None))] * (n >= 64 * LAGS)
    for start, rows in looked_at:
        found = _shift_within(case.evidence.basis, z[rows, :], y[rows, :], u[rows], root[rows])
        if found is not None:
            lag, there, here = found
            where = "" if start == 0 else f" in the stretch from measurement {start} on"
            said = (
                f"readouts look shifted by {lag:+d} samples against the inputs{where}: their raw capacity is "
                f"{there:.1f} there and {here:.1f} as given; check the trigger, then realign the rows."
            )
            yield Check(said, unreliable="readouts shifted against the inputs", lag=lag, first_measurement=start)
            return


def _rows_of(case: Case, stretches: list[tuple[int, int]]) -> tuple[Any, Floats, Floats]:
    """Whitened readouts, inputs and roots of the weights of some stretches of the acquisition, one after the other."""
    samples, order = case.evidence.samples, case.evidence.samples.order
    chosen = np.concatenate([np.arange(*rows) if order is None else order[slice(*rows)] for rows in stretches])
    if order is None:
        blocks = [samples.x.read(*rows) for rows in stretches]
        block = array_namespace(*blocks).concat(blocks, axis=0)
        u = np.concatenate([samples.u.read(*rows, on_host=True) for rows in stretches])
    else:
        block, u = samples.x.take(chosen), samples.u.take(chosen)
    z = samples.centred(block, case.evidence.space.mean) @ as_like(case.evidence.whitening, block)
    if samples.root_weights is None:
        return z, u, np.ones((len(u), 1))
    # A wide density has large values far out, which would decide alone; hence the weights.
    root = samples.root_weights[chosen, None]
    return z * as_like(root, z), u, root


def _shift_within(basis: ProductBasis, z: Any, y: Any, u: Floats, root: Floats) -> tuple[int, float, float] | None:
    """The lag that fits a stretch of the acquisition clearly better than none, and both raw capacities.

    `y` has the values of functions of low degree, (samples, functions).
    """
    n, rank, common, xp = len(u), z.shape[1], len(u) - 2 * LAGS, array_namespace(z)

    def scores(y: Any, lags: list[int]) -> Floats:
        """Capacity of all functions in readouts so many samples later, over the samples common to all lags."""
        moved = xp.concat([y[LAGS - lag : LAGS - lag + common, :] for lag in lags], axis=1)
        power = squares(z[LAGS : LAGS + common, :].T @ moved / common)
        return power.reshape(len(lags), -1).sum(axis=1)

    lags = list(range(-LAGS, LAGS + 1))
    found = scores(y, lags)
    place = int(np.argmax(found))
    if lags[place] == 0 or found[place] < found[LAGS] + _chance(n, rank, y.shape[1], found[place]):
        return None
    whole = as_like(basis.values(u).T[:, 1:] * root, z)
    there, here = scores(whole, [lags[place], 0]).tolist()
    return (lags[place], there, here) if there > here + _chance(n, rank, len(basis) - 1, there) else None


def _chance(n: int, rank: int, size: int, score: float) -> float:
    """By how much two scores may differ by chance: six standard deviations."""
    return float(6 * (np.sqrt(2 * rank * size) + 2 * np.sqrt(n * score)) / n)


@lru_cache(maxsize=8)
def single_inputs(basis: ProductBasis) -> ProductBasis:
    """Functions of single inputs of a basis up to degree 2."""
    return product_basis(basis.families, max_degree=2, max_interactions=1)


CHECKS: dict[str, Callable[[Case], Iterator[Check]]] = {
    "inputs off": inputs_off,
    "shifted": shifted,
    "correlated": correlated,
    "saturated": saturated,
    "dependent readouts": dependent_readouts,
    "few samples": few_samples,
    "above the rank": above_the_rank,
    "repeats off": repeats_off,
    "left out": left_out,
}


# Checks of devices without memory: readouts of the others depend on neighbouring inputs, and on each other.
MEMORYLESS = ("shifted", "correlated")


def run_checks(case: Case) -> tuple[Check, ...]:
    """What the method had to say, then everything that the checks of the table find, in its order, each once.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=1)
    >>> evidence = infocap.evidence(u, u**3, basis)
    >>> method = infocap.ESTIMATORS["raw"]
    >>> run_checks(Case(evidence, method, method(evidence), total=2.0))
    ()
    """
    said = [one if isinstance(one, Check) else Check(one) for one in case.estimate.checks]
    table = CHECKS
    if case.evidence.basis.memory:
        from ._sequences import SEQUENCE_CHECKS

        table = {name: one for name, one in CHECKS.items() if name not in MEMORYLESS} | SEQUENCE_CHECKS
    return tuple(dict.fromkeys([*said, *(one for check in table.values() for one in check(case))]))
