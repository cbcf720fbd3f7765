"""Control variates: functions of the inputs with known means reduce the noise of capacities."""

from collections.abc import Iterator

import numpy as np
import scipy

from .._validation import require_one_of, require_probability
from ..errors import Check
from ..kernels import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    effective_directions,
    jackknife_error_of_groups,
    jackknife_error_of_stretches,
    normal_fourth_power_ratio,
    sum_of_squares,
)
from ..typing import Floats
from ._evidence import Evidence
from ._fit import (
    MIN_EIGENVALUE,
    N_HELDOUT_ROWS,
    N_SIGNS,
    RIDGE_PENALTIES_WITH_PRIOR,
    VALUES_PER_PIECE,
    few_samples_decide,
    fit_readouts,
    max_controls,
)
from ._groups import MAX_SAMPLES_PER_FUNCTION_OF_NET, N_GROUPS
from ._method import Estimate
from ._second_pass import (
    MAX_SUMS_BYTES,
    MIN_LARGE_EIGENVALUE,
    PassResults,
    run_second_pass,
)
from ._sequence import (
    CAPACITY_ROUNDING,
    estimate_sequence,
    few_samples_widening,
    rare_excursions,
    short_stretches,
)
from ._sequence_noise import normality_of_leverage

# Samples per function below which the total is the sum of the clear capacities alone.
MIN_SAMPLES_PER_FUNCTION_FOR_TOTAL = 2
# S_N / (K N) above which the bias is not removed well enough (docs/estimators.md).
MAX_LEVERAGE_RATIO = 0.12
# S_N / (K N) to aim at when more samples are taken.
TARGET_LEVERAGE_RATIO = 0.06
# Effective number of samples that the noise of the total should rest on.
MIN_EFFECTIVE_SAMPLES_OF_TOTAL = 60.0
# Where the noise of the total rests on n < 60 effective samples, single capacities share their
# luck: variances grow by the fraction 40 (1 / n - 1 / 60), and that of the total's jackknife by
# half of it. With 2 % of garbage samples the intervals of capacities then held in 88 to 97 %, not
# in 76 to 90 %.
WIDENING_BY_FEW_EFFECTIVE_SAMPLES = 40.0
# Error of the total from which on a warning about it is worth the reader's time.
MIN_NOTICEABLE_ERROR = 0.01
# Largest difference, in error bars, between the mean total of both halves and the total of all
# samples. The bias that is left falls as 1 / N², so this difference is three times that bias.
MAX_ERRORS_OF_MEAN_OF_HALVES = 6.0
# Largest difference, in error bars, between the totals of both halves. By chance it scatters by two
# error bars.
MAX_ERRORS_BETWEEN_HALVES = 10.0

# Share of what is known of the bias and not removed that enters the error bars: of the next term in
# the series of the bias, S_N / (K N) times the bias that is removed, and of the growth by a
# re-estimated fit. Half covers 95 % of the totals of benchmarks/accuracy.py.
FRACTION_OF_UNREMOVED_BIAS = 0.5
# How many times the residual power that clipped margins take away goes into the error bar of the
# total, beside the change of the total between both margins. The second number is for functions of
# which a few samples decide (`few_samples_decide`): there the change itself is not known.
CLIPPED_POWER_FACTOR = 0.5
CLIPPED_POWER_FACTOR_OF_FEW = 2.0
# The largest eigenvalue of G that is not too large, in units of sqrt(rank / N) above 1, if it is
# above the one that needs no second look.
MAX_EXCESS_OF_FINAL_EIGENVALUE = 6.0


def control_variate(
    evidence: Evidence, *, false_discovery_rate: float = 0.05, fit: str = "auto"
) -> Estimate:
    """Return capacities from a regression of the readouts on the basis, with error bars.

    The fitted part of the readouts has known capacities; only the residual is averaged over
    samples. So the error is that of the residual, not of the readouts: none at all when the
    readouts lie in the span of the functions. The fit never sees the sample it is used for, and the
    capacities are free of bias to second order. docs/estimators.md has the derivation.

    Zeros are decided by p-values. The total is the sum of all unbiased values, those set to zero
    included, because their errors cancel where thresholded ones pile up.

    Parameters
    ----------
    evidence
        What `gather_evidence` returned.
    false_discovery_rate
        The share of the declared capacities that may be false, on average.
    fit
        ``"auto"``: several fits compete for each direction of the readouts; ``"least-squares"``:
        one fit on the basis; ``"none"``: the raw capacity less its second-order bias.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="control-variate").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    require_probability("false_discovery_rate", false_discovery_rate)
    require_one_of("fit", fit, ("auto", "least-squares", "none"))
    if evidence.basis.of_sequences and fit != "none":
        estimate = estimate_sequence(evidence, false_discovery_rate)
        if estimate is not None:
            return estimate

    chosen_fit = fit_readouts(evidence, fit, evidence.groups)
    passes = run_second_pass(evidence, chosen_fit, evidence.groups)
    capacity = sum_of_squares(passes.white_coefficients.T)
    p_value = _p_values(passes, capacity)

    # A re-estimated fit raises the bias by at most the factor refit_ratio. Half of this increase is
    # subtracted. The other half, and half of the next term of the series, go into the error bars.
    refit_ratio = _refit_ratio(passes)
    unremoved_fraction = FRACTION_OF_UNREMOVED_BIAS * (passes.leverage_ratio + refit_ratio - 1)
    remaining_bias = unremoved_fraction * np.abs(passes.bias)
    bias = passes.bias * (1 + refit_ratio) / 2
    widening = _widening_by_few_samples(evidence, passes)
    variance = widening * (refit_ratio * passes.variance + remaining_bias**2)
    scale = float(np.sqrt(refit_ratio * (1 + widening) / 2))  # of errors of the total
    if evidence.samples.constant:  # the constant readout gives the constant function
        capacity[0] = 1.0
        bias[0] = 0.0
        variance[0] = 0.0
        p_value[0] = 0.0

    unbiased = capacity - bias
    is_clear = benjamini_hochberg(p_value, false_discovery_rate) & (unbiased > CAPACITY_ROUNDING)
    declared = np.where(is_clear, np.clip(unbiased, 0.0, 1.0), 0.0)
    without_groups = _scaled_about_mean(passes.capacities_without, scale)
    error = _total_error(
        evidence,
        passes,
        totals_without=without_groups.sum(axis=1),
        scale=scale,
        remaining_bias=remaining_bias,
    )
    total = float(unbiased.sum())
    if evidence.n_samples < MIN_SAMPLES_PER_FUNCTION_FOR_TOTAL * len(capacity):
        clear_total = float(declared.sum())
        error = float(np.hypot(error, total - clear_total))
        total = clear_total
    # Neighbours in a sequence are not independent, so single samples do not tell its error.
    influence_variance = None
    leverage_ratio = None
    if not evidence.basis.of_sequences:
        influence_variance = evidence.n_samples * passes.variance_of_total
        leverage_ratio = passes.leverage_ratio
    return Estimate(
        declared,
        unbiased=unbiased,
        standard_error=np.sqrt(variance),
        p_value=p_value,
        total=float(np.clip(total, 0.0, evidence.rank)),
        total_standard_error=error,
        checks=tuple(_reliability_warnings(evidence, passes, error)),
        coordinates=(passes.white_coefficients.T,),
        without_groups=None if evidence.basis.of_sequences else without_groups,
        inputs_fingerprint=_fingerprint(evidence),
        residual_covariance=passes.residual_covariance,
        influence_variance=influence_variance,
        leverage_ratio=leverage_ratio,
    )


def _scaled_about_mean(without_groups: Floats, scale: float) -> Floats:
    """Return capacities without each group whose jackknife error is `scale` times as long."""
    mean_without = without_groups.mean(axis=0)
    scaled: Floats = mean_without + scale * (without_groups - mean_without)
    return scaled


def _fingerprint(evidence: Evidence) -> str | None:
    order = evidence.input_order
    return None if order is None else order.fingerprint


def _p_values(passes: PassResults, capacity: Floats) -> Floats:
    """Return p-values of the null hypothesis that a capacity is zero.

    Coefficients of a function without capacity scatter about zero from group to group as much as
    their mean does. With G groups, group_variance / G is the variance of the mean coefficient, and
    capacity / (group_variance / G) has an F distribution with nu and nu (G - 1) degrees of freedom;
    nu is the effective number of directions of the noise (Satterthwaite).
    """
    n_groups = len(passes.jackknife_totals)
    n_directions = effective_directions(passes.group_covariance)
    ratio = n_groups * capacity / np.maximum(passes.group_variance, SMALLEST_DIVISOR)
    p_value = scipy.special.fdtrc(n_directions, n_directions * (n_groups - 1), ratio)
    return np.asarray(p_value)


def _refit_ratio(passes: PassResults) -> float:
    """Return how much more coefficients scatter with a re-estimated fit, in squares; 1 or more."""
    return max(passes.refitted_change / max(passes.fixed_fit_change, SMALLEST_DIVISOR), 1.0)


def _effective_samples(passes: PassResults) -> float:
    """Return how many samples the noise of the total rests on; for normal noise all of them."""
    n_directions = effective_directions(passes.residual_covariance)
    return passes.effective_samples * normal_fourth_power_ratio(n_directions)


def _widening_by_few_samples(evidence: Evidence, passes: PassResults) -> float:
    """Return how much larger variances are where few samples decide; 1 where many do.

    It is 1 for sequences, whose stretches show what their samples share; the error of their total
    has a widening of its own.
    """
    if evidence.basis.of_sequences:
        return 1.0
    effective_samples = max(_effective_samples(passes), 1.0)
    excess = 1 / effective_samples - 1 / MIN_EFFECTIVE_SAMPLES_OF_TOTAL
    return 1 + max(WIDENING_BY_FEW_EFFECTIVE_SAMPLES * excess, 0.0)


def _total_error(
    evidence: Evidence,
    passes: PassResults,
    *,
    totals_without: Floats,
    scale: float,
    remaining_bias: Floats,
) -> float:
    """Return the standard error of the total.

    It joins the jackknife error with the bias that may be left, with the change of the total
    between both margins, and with a part of what the larger margin takes away. `scale` is how much
    longer errors are with a re-estimated fit, and where few samples decide; it is in the totals
    without each group already.
    """
    if evidence.basis.of_sequences:  # groups are stretches of a sequence
        widening = few_samples_widening(passes.effective_samples)
        jackknife = widening * jackknife_error_of_stretches(totals_without)
    else:
        # Sixteen groups know their scatter to a fifth, and may agree too well by chance. The
        # influences of single samples are many, and know its first order.
        first_order = scale * float(np.sqrt(max(passes.variance_of_total, 0.0)))
        jackknife = max(jackknife_error_of_groups(totals_without), first_order)
    clipped_factor = CLIPPED_POWER_FACTOR
    if few_samples_decide(evidence):
        clipped_factor = CLIPPED_POWER_FACTOR_OF_FEW
    contributions = [
        jackknife,
        remaining_bias.sum(),
        passes.change_by_margins,
        clipped_factor * passes.clipped_power,
    ]
    return float(np.linalg.norm(contributions))


def _reliability_warnings(evidence: Evidence, passes: PassResults, error: float) -> Iterator[Check]:
    """Yield a check for each reason why the errors may be larger than the error bars."""
    if evidence.basis.of_sequences:
        yield from short_stretches(evidence)
        yield from rare_excursions(
            passes.effective_samples,
            normality_of_leverage(evidence),
            _unexplained(passes),
        )
    else:
        yield from _few_effective_samples(passes, error)
    yield from _few_samples_for_functions(evidence, passes)
    yield from _few_samples_for_readouts(evidence, passes)
    yield from _halves_that_disagree(passes, error)
    yield from _unstable_fit(evidence, passes)
    yield from _single_net(evidence, error)


def _unexplained(passes: PassResults) -> float:
    """Return the part of the rank that the fit does not explain."""
    return float(np.trace(passes.residual_covariance))


def _few_samples_for_functions(evidence: Evidence, passes: PassResults) -> Iterator[Check]:
    n = evidence.n_samples
    n_terms = len(evidence.basis)
    n_needed = MIN_SAMPLES_PER_FUNCTION_FOR_TOTAL * n_terms
    if n < n_needed and _unexplained(passes) > CAPACITY_ROUNDING:
        yield Check(
            f"{n} samples are few for {n_terms} functions: the total is the sum of the capacities "
            "that are clearly not zero and may miss small ones; take at least "
            f"{n_needed} samples, or lower the degree.",
            unreliable=f"few samples for {n_terms} functions",
            wanted=n_needed,
        )


def _few_samples_for_readouts(evidence: Evidence, passes: PassResults) -> Iterator[Check]:
    ratio = passes.leverage_ratio
    if ratio > MAX_LEVERAGE_RATIO and _unexplained(passes) > CAPACITY_ROUNDING:
        n = evidence.n_samples
        n_needed = int(np.ceil(n * ratio / TARGET_LEVERAGE_RATIO))
        remedy = "or pass `n_components='auto'`"
        if evidence.samples.components is not None:
            remedy = "or fewer components"
        yield Check(
            f"{n} samples are few for {evidence.rank} readouts: single samples carry much of their "
            f"variance (S_N / (K N) is {ratio:.2f}, above {MAX_LEVERAGE_RATIO}), so the bias is "
            f"not removed well; take {n_needed} samples, {remedy}.",
            unreliable=f"few samples for {evidence.rank} readouts",
            leverage_ratio=ratio,
            wanted=n_needed,
        )


def _few_effective_samples(passes: PassResults, error: float) -> Iterator[Check]:
    effective_samples = _effective_samples(passes)
    if effective_samples < MIN_EFFECTIVE_SAMPLES_OF_TOTAL and error > MIN_NOTICEABLE_ERROR:
        yield Check(
            f"the total's error bar rests on about {effective_samples:.0f} samples with large "
            "residuals (heavy-tailed noise, or the edge of the inputs) and may be too short; check "
            "the largest readouts, or take more samples.",
            unreliable=f"it rests on {effective_samples:.0f} samples",
            effective_samples=effective_samples,
        )


def _halves_that_disagree(passes: PassResults, error: float) -> Iterator[Check]:
    first, second = passes.half_totals
    total = float(passes.jackknife_totals.mean())
    shift_of_mean = abs((first + second) / 2 - total) / MAX_ERRORS_OF_MEAN_OF_HALVES
    difference = abs(first - second) / MAX_ERRORS_BETWEEN_HALVES
    if max(shift_of_mean, difference) > error > MIN_NOTICEABLE_ERROR:
        yield Check(
            f"the first half of the samples gives a total of {first:.4g}, the second "
            f"{second:.4g}, all together {total:.4g} with an error bar of {error:.2g}: the device "
            "changed in between (look at the drift), or the samples are too few; measure again, or "
            "take more samples.",
            unreliable="the halves of the samples disagree",
            halves=passes.half_totals.tolist(),
        )


def _unstable_fit(evidence: Evidence, passes: PassResults) -> Iterator[Check]:
    eigenvalue = passes.smallest_eigenvalue
    if eigenvalue < MIN_EIGENVALUE:
        yield Check(
            f"the fit is unstable: it gives {eigenvalue:.2g} for a variance that is 1, because "
            f"{evidence.n_samples} samples are few for {len(evidence.basis)} functions and "
            f"{evidence.rank} readouts; take more, or lower the degree.",
            unreliable="an unstable fit",
        )
    excess = MAX_EXCESS_OF_FINAL_EIGENVALUE * (evidence.rank / evidence.n_samples) ** 0.5
    limit = max(1 + excess, MIN_LARGE_EIGENVALUE)
    if passes.largest_eigenvalue > limit and not few_samples_decide(evidence):
        yield Check(
            f"the fit is unstable: it gives {passes.largest_eigenvalue:.2g} for a variance that is "
            "1, because functions are large at few samples; take more samples, lower the degree, "
            "or use draw_weighted.",
            unreliable="an unstable fit",
        )


def _single_net(evidence: Evidence, error: float) -> Iterator[Check]:
    # A net is a low-discrepancy design whose points are not independent of each other.
    order = evidence.input_order
    if order is not None and order.is_single_net and error > MIN_NOTICEABLE_ERROR:
        yield Check(
            "the inputs are spread evenly as a whole and not in several blocks (a single "
            "low-discrepancy design): functions of higher degree than the basis can look like "
            "functions of the basis there, and with fewer than "
            f"{MAX_SAMPLES_PER_FUNCTION_OF_NET} samples per function the total may be too high by "
            "half its error bar.",
            kind="note",
        )


def control_variate_bytes(n_samples: int, n_columns: int, n_terms: int, n_threads: int) -> float:
    """Return the memory besides the passes: matrices and values of the controls, sums y e'."""
    n_controls = max_controls(n_samples, n_terms)
    n_matrices = 2 * (len(RIDGE_PENALTIES_WITH_PRIOR) + n_threads)
    n_functions = MAX_SUMS_BYTES // (8 * N_GROUPS * n_columns)
    n_sums = 3 * N_GROUPS * n_columns * min(n_controls + n_terms, n_functions)
    n_values = 6 * n_threads * min(VALUES_PER_PIECE, n_samples * n_controls)
    return 8.0 * (n_matrices * n_controls**2 + n_sums + n_values)


def control_variate_work(n_samples: int, n_columns: int, n_terms: int) -> float:
    """Return the operations besides the evidence: sums of the controls, fits, the last pass."""
    n_controls = max_controls(n_samples, n_terms)
    factorisation = n_controls**3 / 3
    solution = 2.0 * n_controls * (n_controls + N_HELDOUT_ROWS) * n_columns
    fits = 2 * len(RIDGE_PENALTIES_WITH_PRIOR) * (factorisation + solution)
    sums_of_controls = n_controls**2 + 10.0 * n_controls * n_columns
    sums_of_functions = 8.0 * n_terms * n_columns
    leverages = 6.0 * n_controls * N_SIGNS
    return fits + n_samples * (sums_of_controls + sums_of_functions + leverages)
