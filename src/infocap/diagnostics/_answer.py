"""Checks of the answer: one function for each reason why it may be weaker than it looks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..basis import ProductBasis, product_basis
from ..dimension import dead_channels
from ..errors import Check
from ..typing import Integers
from ._case import Case
from ._finding import finding

# A mean this many standard errors away is not chance, however many functions are looked at.
MAX_STANDARD_ERRORS = 5.0
# Samples per readout below which the raw capacities' bias is no longer proportional to 1/N.
MIN_SAMPLES_PER_READOUT = 4
# A corrected total scatters around the rank; beyond this multiple of it something is wrong.
MAX_TOTAL_OVER_RANK = 1.01
# E[y^4] above which a few samples decide the mean of y²: so much for each sample, and at least.
# With three normal inputs and 1024 samples, totals of functions up to degree 3 (E[y^4] = 93) held
# in 83 to 88 % instead of 95 %, with 4096 samples in 98 % (benchmarks/accuracy.py).
MAX_FOURTH_MOMENT_PER_SAMPLE = 0.05
MIN_LARGE_FOURTH_MOMENT = 50.0
# The same for sequences, whose error bars come from long stretches.
MAX_FOURTH_MOMENT_PER_TIME_STEP = 0.1
MIN_LARGE_FOURTH_MOMENT_OF_SEQUENCE = 100.0
# Part of the rank that a fit leaves, below which it is exact and moments do no harm.
NOISELESS = 1e-7
# Standard errors, and capacity, by which the total may exceed what noise allows.
MAX_ERRORS_ABOVE_NOISE = 3.0
MAX_CAPACITY_ABOVE_NOISE = 0.5


def weak(case: Case) -> Iterator[Check]:
    """Yield checks of dependent readouts, few samples, a total beyond the rank, large moments."""
    rank = case.evidence.rank
    n_samples = case.evidence.n_samples
    maximum = case.evidence.samples.n_columns
    if rank < maximum:
        yield finding(
            f"only {rank} of {maximum} readouts are linearly independent, so the total cannot "
            f"exceed {rank}",
            cause="dependent",
            next_step="leave out copies and sums of others",
            rank=rank,
            maximum=maximum,
        )
    n_needed = MIN_SAMPLES_PER_READOUT * rank
    if n_samples < n_needed:
        next_step = "take more samples, or pass `n_components='auto'`"
        if case.evidence.samples.components is not None:
            next_step = "take more samples, or fewer components"
        yield finding(
            f"{n_samples} samples are few for {rank} readouts: below 4 K = {n_needed} the bias is "
            "large, and extrapolation does not remove it",
            cause="few samples",
            next_step=next_step,
            in_short=f"few samples for {rank} readouts",
            n_samples=n_samples,
            wanted=n_needed,
        )
    if case.total > MAX_TOTAL_OVER_RANK * rank:
        next_step = "check the inputs' distribution, or take more samples"
        if not case.method.corrects_bias:
            next_step = (
                f"use the default method, for {case.method.name!r} does not correct the "
                "finite-sample bias"
            )
        yield finding(
            f"the capacities sum to {case.total:.3f}, above the {rank} that the readouts allow",
            cause="above the rank",
            next_step=next_step,
            in_short=f"more than the {rank} that are possible",
            total=case.total,
            rank=rank,
        )
    yield from _large_fourth_moments(case)


def _large_fourth_moments(case: Case) -> Iterator[Check]:
    """Yield a check where a few samples decide some functions."""
    samples = case.evidence.samples
    residual_covariance = case.estimate.residual_covariance
    if residual_covariance is None or samples.sqrt_sample_weight is not None:
        return
    if np.trace(residual_covariance) <= NOISELESS:
        return
    n_samples = case.evidence.n_samples
    limit = max(MAX_FOURTH_MOMENT_PER_SAMPLE * n_samples, MIN_LARGE_FOURTH_MOMENT)
    if samples.basis.of_sequences:
        limit_per_step = MAX_FOURTH_MOMENT_PER_TIME_STEP * n_samples
        limit = max(limit_per_step, MIN_LARGE_FOURTH_MOMENT_OF_SEQUENCE)
    n_large = int(np.sum(samples.basis.fourth_moments > limit))
    if not n_large:
        return
    remedy = "use bounded inputs" if samples.basis.of_sequences else "use draw_weighted"
    yield finding(
        f"{n_large} of {len(samples.basis)} functions have E[y^4] above {limit:.0f}: a few "
        "samples decide them, so that they and the total are less certain than their error bars",
        cause="large fourth moments",
        next_step=f"lower the degree, take more samples, or {remedy}",
        in_short=f"{n_large} functions with large fourth moments",
        functions=n_large,
    )


def repeats_off(case: Case) -> Iterator[Check]:
    """Yield what repeats say: their own warnings, inputs that are no sample, contradictions."""
    noise_limit = case.repeats
    if noise_limit is None or case.repeated is None:
        return
    for check in noise_limit.checks:
        if check.kind == "warning":
            yield check
    yield from _repeated_inputs_off(case, case.repeated)
    allowed = noise_limit.total + MAX_ERRORS_ABOVE_NOISE * noise_limit.standard_error
    if case.total > allowed + MAX_CAPACITY_ABOVE_NOISE:
        yield finding(
            f"more was found ({case.total:.1f}) than the repeats say noise allows "
            f"({noise_limit.total:.1f} ± {noise_limit.standard_error:.1f}): the repeated inputs "
            "are not a random sample, or the device drifted between the repeats",
            cause="above the noise limit",
            next_step="repeat inputs chosen at random, at random times",
            in_short="more than repeats allow",
            total=case.total,
            allowed=noise_limit.total,
        )


def _repeated_inputs_off(case: Case, repeated: Integers) -> Iterator[Check]:
    """Yield a check where the repeated inputs are not distributed as declared."""
    samples = case.evidence.samples
    u = samples.u.read_rows(repeated)
    weights = None
    largest_weight = 1.0
    if samples.sqrt_sample_weight is not None:
        weights = samples.sqrt_sample_weight[repeated] ** 2
        largest_weight = float(weights.max())
    low = _functions_of_single_inputs(case.evidence.basis)
    means = np.abs(low.sum_over_samples(u, weights)) / len(u)
    # A weighted mean scatters more, at most by the root of the largest weight.
    standard_errors = means * np.sqrt(len(u) / largest_weight)
    worst = int(np.argmax(np.where(low.degrees > 0, standard_errors, -1.0)))
    if standard_errors[worst] <= MAX_STANDARD_ERRORS:
        return
    yield finding(
        "the repeated inputs do not follow the declared distribution: the mean of "
        f"{low.labels[worst]} over them is {means[worst]:.3g}, {standard_errors[worst]:.0f} "
        "standard errors from 0",
        cause="repeated inputs",
        next_step="repeat inputs chosen at random (every 4th point of a Sobol design lies in one "
        "quarter of an input's range)",
        function=low.labels[worst],
        standard_errors=float(standard_errors[worst]),
    )


def left_out(case: Case) -> Iterator[Check]:
    """Yield notes about rows and channels that were left out without harm."""
    samples = case.evidence.samples
    statistics = case.evidence.column_statistics
    if samples.n_omitted_rows:
        text = f"{samples.n_omitted_rows} rows with NaN or infinite values were dropped."
        yield Check(text, "note", rows=samples.n_omitted_rows)
    unused = np.setdiff1d(np.arange(len(statistics.low)), samples.channels)
    if len(unused):
        yield from dead_channels(samples.x, unused, statistics.low, samples.constant)


@lru_cache(maxsize=8)
def _functions_of_single_inputs(basis: ProductBasis) -> ProductBasis:
    """Return the functions of single inputs of a basis up to degree 2."""
    return product_basis(basis.families, max_degree=2, max_interactions=1)
