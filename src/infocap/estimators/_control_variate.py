"""Control variates: the basis functions, whose means are known, take the sampling noise out of the capacities."""

from collections.abc import Iterator

import numpy as np
import scipy

from .._validation import one_of, probability
from ..errors import Check
from ..kernels._summary import TINY, benjamini_hochberg, squares, stretch_error
from ._evidence import GROUPS, Evidence
from ._fit import HOST_NUMBERS, fit_readouts, most_controls
from ._method import Estimate
from ._second_order import SUMS_BYTES, Found, second_order
from ._sequence import ROUNDING, jackknifed, short_stretches
from ._tuning import TUNING

# Samples per function below which the total is the sum of the clear capacities alone.
ENOUGH_FOR_TOTAL = 2
# S_N / (K N) above which the bias is not removed well enough, and the value to aim at (docs/estimators.md).
CROWDED, ROOMY = 0.12, 0.06
# Samples that the noise of the total should rest on, and the error from which that matters.
FEW_CONTRIBUTORS, NOTICEABLE = 60.0, 0.01
# Error bars by which the mean total of both halves may differ from that of all samples (by three times the bias that
# is left, which goes with 1 / N²), and the two from each other (their difference scatters by two error bars).
DISAGREEING = 6.0, 10.0


def control_variate(
    evidence: Evidence, *, false_discovery_rate: float = 0.05, fit: str = "auto"
) -> Estimate:
    """Capacities from a regression of the readouts on the basis, free of bias to second order, with error bars.

    The fitted part of the readouts has known capacities; only what the fit leaves is averaged over samples. So
    the error is that of the residual, not of the readouts: none at all when the readouts lie in the span of
    the functions. The fit never sees the sample it is used for. Zeros are decided by p-values with at most
    `false_discovery_rate` of the declared capacities false on average; the total is the sum of all unbiased
    values, those set to zero included, because their errors cancel where thresholded ones pile up.

    `fit` is ``"auto"`` (several fits compete for each direction of the readouts), ``"least-squares"`` (one fit
    on the basis) or ``"none"`` (the raw capacity less its second-order bias); docs/estimators.md has the derivation.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="control-variate").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    probability("false_discovery_rate", false_discovery_rate)
    one_of("fit", fit, ("auto", "least-squares", "none"))
    sequence = (
        jackknifed(evidence, false_discovery_rate)
        if evidence.basis.memory and fit != "none"
        else None
    )
    if sequence is not None:
        return sequence
    edges = evidence.group_edges
    found = second_order(evidence, fit_readouts(evidence, fit, edges), edges)
    plain, bias, variance, count = (
        squares(found.inside.T),
        found.bias,
        found.variance,
        len(found.totals),
    )
    # Coefficients of a function without capacity scatter about zero from group to group as much as their mean does: the
    # ratio has an F distribution, with the effective number of directions of the noise (Satterthwaite) times groups.
    nu = np.trace(found.pooled) ** 2 / max(float(np.sum(found.pooled**2)), TINY)
    p = scipy.special.fdtrc(nu, nu * (count - 1), count * plain / np.maximum(found.scatter, TINY))
    # A fit that moves with the samples adds up to (moved - 1) times the bias: half of it is removed, half allowed for,
    # and so is the next term of the series.
    moved = max(float(found.response[1] / max(found.response[0], TINY)), 1.0)
    third = TUNING.third_order * (found.crowding + moved - 1) * np.abs(bias)
    bias = bias * (1 + moved) / 2
    variance = moved * variance + third**2
    if evidence.samples.constant:  # the constant readout gives the constant function
        plain[0], bias[0], variance[0], p[0] = 1.0, 0.0, 0.0, 0.0
    unbiased = plain - bias
    clear = benjamini_hochberg(p, false_discovery_rate) & (unbiased > ROUNDING)
    capacity = np.where(clear, np.clip(unbiased, 0.0, 1.0), 0.0)
    total, shown = float(unbiased.sum()), float(capacity.sum())
    # The jackknife over groups of samples, or over stretches of a sequence; few make longer intervals (Student).
    student = (
        scipy.special.stdtrit(count - 1, 0.975)
        / 1.96
        * np.sqrt(count - 1)
        * float(np.std(found.totals))
    )
    jackknife = np.sqrt(moved) * (stretch_error(found.totals) if evidence.basis.memory else student)
    error = float(np.linalg.norm([jackknife, third.sum(), TUNING.capped * found.capped]))
    if evidence.n_samples < ENOUGH_FOR_TOTAL * len(plain):
        error, total = float(np.hypot(error, total - shown)), shown
    return Estimate(
        capacity,
        unbiased=unbiased,
        standard_error=np.sqrt(variance),
        p_value=p,
        total=float(np.clip(total, 0.0, evidence.rank)),
        total_standard_error=error,
        checks=tuple(_doubts(evidence, found, error)),
        coordinates=(found.inside.T,),
        residual_covariance=found.covariance,
    )


def _doubts(evidence: Evidence, found: Found, error: float) -> Iterator[Check]:
    """Where the answer is weaker than its error bars say."""
    n, terms, unexplained = (
        evidence.n_samples,
        len(evidence.basis),
        float(np.trace(found.covariance)),
    )
    yield from short_stretches(evidence) if evidence.basis.memory else ()
    if n < ENOUGH_FOR_TOTAL * terms and unexplained > ROUNDING:
        yield Check(
            f"{n} samples are few for {terms} functions: the total is the sum of the capacities that are clearly "
            f"not zero and may miss small ones; take at least {ENOUGH_FOR_TOTAL * terms} samples, or lower the degree.",
            unreliable=f"few samples for {terms} functions",
            wanted=ENOUGH_FOR_TOTAL * terms,
        )
    if found.crowding > CROWDED and unexplained > ROUNDING:
        wanted = int(np.ceil(n * found.crowding / ROOMY))
        yield Check(
            f"{n} samples are few for {evidence.rank} readouts: single samples carry much of their variance (S_N / (K "
            f"N) is {found.crowding:.2f}, above {CROWDED}), so the bias is not removed well; take {wanted} samples.",
            unreliable=f"few samples for {evidence.rank} readouts",
            crowding=found.crowding,
            wanted=wanted,
        )
    nu = unexplained**2 / max(
        float(np.sum(found.covariance**2)), TINY
    )  # effective directions of the noise
    contributors = (
        found.contributors * (nu + 4) * (nu + 6) / max(nu * (nu + 2), TINY)
    )  # N for normal noise
    if contributors < FEW_CONTRIBUTORS and error > NOTICEABLE:
        yield Check(
            f"the total's error bar rests on about {contributors:.0f} samples with large residuals (heavy-tailed "
            "noise, or the edge of the inputs) and may be too short; check the largest readouts, or take more samples.",
            unreliable=f"it rests on {contributors:.0f} samples",
            contributors=contributors,
        )
    (first, second), every = found.of_halves, float(found.totals.mean())
    apart = max(
        abs((first + second) / 2 - every) / DISAGREEING[0], abs(first - second) / DISAGREEING[1]
    )
    if apart > error > NOTICEABLE:
        yield Check(
            f"the first half of the samples gives a total of {first:.4g}, the second {second:.4g}, all together "
            f"{every:.4g} with an error bar of {error:.2g}: the device changed in between (look at the drift), or "
            "the samples are too few; measure again, or take more samples.",
            unreliable="the halves of the samples disagree",
            halves=found.of_halves.tolist(),
        )
    if found.smallest_eigenvalue < TUNING.least_eigenvalue:
        yield Check(
            f"the fit is unstable: a variance that is 1 is estimated as {found.smallest_eigenvalue:.2g}, because {n} "
            f"samples are few for {terms} functions and {evidence.rank} readouts; take more, or lower the degree.",
            unreliable="an unstable fit",
        )
    if not evidence.n_groups and error > NOTICEABLE:
        yield Check(
            "the inputs are a single low-discrepancy design: functions of higher degree than the basis can look like "
            "functions of the basis there, so the total may be too high, and a fifth of the functions shown false, "
            "beyond their error bars; use four independent blocks or more, as draw does from 256 samples on."
        )


def control_variate_bytes(n_samples: int, n_columns: int, terms: int, threads: int) -> float:
    """Memory beside the passes: matrices of the controls and values of them, for each thread; sums y e' by groups."""
    controls = most_controls(n_samples, terms)
    sums = 3 * GROUPS * n_columns * min(controls + terms, SUMS_BYTES // (8 * GROUPS * n_columns))
    values = 6 * threads * min(HOST_NUMBERS, n_samples * controls)
    return 8.0 * (2 * (len(TUNING.penalties[1]) + threads) * controls**2 + sums + values)


def control_variate_work(n_samples: int, n_columns: int, terms: int) -> float:
    """Operations beside the passes: sums of the controls, the ridge fits, and the second pass."""
    controls = most_controls(n_samples, terms)
    fits = (
        2
        * len(TUNING.penalties[1])
        * (controls**3 / 3 + 2.0 * controls * (controls + TUNING.judges) * n_columns)
    )
    passes = (
        controls**2
        + 8.0 * controls * n_columns
        + 8.0 * terms * n_columns
        + 6.0 * controls * TUNING.signs
    )
    return fits + n_samples * passes
