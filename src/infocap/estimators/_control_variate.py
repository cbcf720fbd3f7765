"""Control variates: the basis functions, whose means are known, take the sampling noise out of the capacities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._check import one_of, probability
from ..basis import product_basis
from ..errors import ParameterError
from ..kernels import Evidence
from ._cross_fit import ENOUGH_SAMPLES, STABLE_GAIN, CrossFit, Search, search_bytes, uncontrolled
from ._estimate import Estimate
from ._least_squares import least_squares
from ._second_order import LEAST_EIGENVALUE, Block, SecondOrder, second_order
from ._zeros import benjamini_hochberg, null_scale, p_values

FITS = ("auto", "least-squares", "none")
SEARCH_BYTES = (
    1_000_000_000  # of readouts and residuals in memory; with more samples, least squares in passes
)
LOW_FUNCTIONS = 24
BALANCED = 0.3  # of the variance that means of low-degree functions have for independent points
LARGEST_BIAS = 0.5
MOST_FREEDOM = 0.8  # of the samples
SMALLEST = 1e-7  # a capacity below is rounding
ENOUGH_FOR_SCALE, NULL_QUANTILE, CLEARLY_LESS = 30, 0.4, 0.95
ENOUGH_FOR_TOTAL = 2  # samples for each function, for the sum of all to mean something
ENOUGH_BALANCED, MUCH_BEYOND = 32, 0.5  # the same for low-discrepancy designs, if capacity lies beyond
HEAVY, LEAST_HEAVY = (
    0.1,
    100.0,
)  # E[y^4] for each sample, and at all, above which a few samples decide the means of y²
NOTICEABLE = 1e-4  # error of a capacity
FEW_CONTRIBUTORS = 12  # samples that an error bar rests on


def control_variate(evidence: Evidence, *, false_discovery_rate: float = 0.05, fit: str = "auto") -> Estimate:
    """Capacities from a regression of the readouts on the basis, free of bias to second order, with error bars.

    The fitted part of the readouts has known capacities; only what the fit leaves is averaged over samples. So
    the error is that of the residual, not of the readouts: none at all when the readouts lie in the span of
    the functions. The fit never sees the sample it is used for. Zeros are decided by p-values with at most
    `false_discovery_rate` of the declared capacities false on average; the total is the sum of all unbiased
    values, those set to zero included, because their errors cancel where thresholded ones pile up.

    `fit` is ``"auto"`` (many fits compete for each direction of the readouts), ``"least-squares"`` (one fit
    on the basis: fast, in passes over the data; for more than about 4 samples a function) or ``"none"`` (the
    raw capacity with its second-order bias removed). docs/estimators.md has the derivation.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="control-variate").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    probability("false_discovery_rate", false_discovery_rate)
    one_of("fit", fit, FITS)
    n, terms = evidence.n_samples, len(evidence.walk.basis)
    independent = _balance(evidence) > BALANCED
    checks: list[str] = []
    memory = evidence.walk.passes.memory
    too_large = 8 * 6 * n * evidence.rank > SEARCH_BYTES
    if memory is not None:
        too_large = search_bytes(n, evidence.n_readouts, terms) > memory
    if fit == "least-squares" or (fit == "auto" and too_large):
        found, problem = _fast(evidence, independent)
        if found is not None:
            return _estimate(evidence, found, false_discovery_rate, independent, checks)
        if too_large and memory is not None:
            raise ParameterError(
                f"least squares is not stable here ({problem}), and the search for the best fit takes more than "
                f"`memory={memory / 1e6:,.0f} MB`; allow more, or use `method='threshold-richardson'`."
            )
        checks.append(
            f"least squares is not stable here ({problem}); the search for the best fit took its place."
        )
    z = evidence.all_framed()
    best = uncontrolled(evidence, z) if fit == "none" else Search(evidence, z).best()
    found = _expand(evidence, best, independent)
    unstable = _unstable(found)
    if fit != "none" and unstable:
        checks.append(
            f"the fit of the readouts is not to be trusted ({unstable}): capacities are the raw ones with their "
            f"second-order bias removed, less precise and on low-discrepancy points too low; {n} samples for {terms} "
            f"functions of {evidence.rank} readouts are few."
        )
        found = _expand(evidence, uncontrolled(evidence, z), independent)
    if not independent and n < ENOUGH_BALANCED * terms and best.beyond > MUCH_BEYOND:
        checks.append(
            f"functions of higher degree than can be fitted hold a capacity of {best.beyond:.1f} or more; on a "
            f"low-discrepancy design with fewer than {ENOUGH_BALANCED} samples for each function they pass for others: "
            "the total may be off by more than its error bar, a quarter of those shown may be false; raise the "
            "degree, or take random points."
        )
    return _estimate(evidence, found, false_discovery_rate, independent, checks)


def _fast(evidence: Evidence, independent: bool) -> tuple[SecondOrder | None, str]:
    """Least squares on the basis, or what speaks against it."""
    n, terms = evidence.n_samples, len(evidence.walk.basis)
    if n <= ENOUGH_SAMPLES * terms:
        return None, f"{n} samples for {terms} functions"
    fitted = least_squares(evidence, independent)
    if fitted is None:
        return None, "the functions are not independent on these points"
    found, noise_gain = fitted
    if noise_gain > STABLE_GAIN:
        return None, f"its noise gain tr (Y'Y)^-1 is {noise_gain:.2f}, above {STABLE_GAIN}"
    unstable = _unstable(found)
    return (None, unstable) if unstable else (found, "")


def _unstable(found: SecondOrder) -> str:
    if found.smallest_eigenvalue < LEAST_EIGENVALUE:
        return f"a readout direction of variance 1 is estimated to have {found.smallest_eigenvalue:.2g}"
    largest = float(found.bias.max())
    return f"a bias is as large as {largest:.2g}" if largest > LARGEST_BIAS else ""


def _balance(evidence: Evidence) -> float:
    """The square of sqrt(N) mean(y) over its variance, averaged over functions of low degree: 1 if independent."""
    families = evidence.walk.basis.families
    small = product_basis(families, max_degree=0).extended(LOW_FUNCTIONS)
    if len(small) == 1:
        return 1.0
    total, square = np.zeros((2, len(small)))
    for part in evidence.walk.slabs():
        for start, stop in part.pieces(0, part.n_samples):
            u, weights = part.u.read(start, stop), part.weights(start, stop)
            total += small.sum_over(u, weights)
            square += small.sum_over(u, None if weights is None else weights**2, power=2)
    return float(np.mean(total[1:] ** 2 / square[1:]))


def _expand(evidence: Evidence, fit: CrossFit, independent: bool) -> SecondOrder:
    """The second order around c = lift + mean(y e)."""
    basis, n = evidence.walk.basis, evidence.n_samples
    c = fit.lift[: len(basis)].copy()
    for y, rows in evidence.walk.all_targets():
        c += (y @ fit.e[rows])[basis.row_of] / n
    e = fit.e if independent else fit.e * np.sqrt(fit.gain)
    e_capacity = fit.e_plain * np.sqrt(fit.gain_plain)
    e_total = fit.e_plain * np.sqrt(fit.level / (1 - np.minimum(fit.freedom / n, MOST_FREEDOM)))
    blocks = (
        Block(y, fit.z[rows], e[rows], e_capacity[rows], e_total[rows])
        for y, rows in evidence.walk.all_targets()
    )
    return second_order(
        c, fit.gram, e.T @ e / n, blocks, n_samples=n, row_of=basis.row_of, independent=independent
    )


def _settled(found: SecondOrder, constant: bool, independent: bool) -> SecondOrder:
    """What is known besides: the constant readout gives the constant function, and evenness lowers the bias.

    Low-discrepancy points average what is smooth in the residual, functions outside the fit, almost exactly; then
    zeros scatter less than white noise would, and so does the bias.
    """
    if not independent and len(found.plain) >= ENOUGH_FOR_SCALE and found.unexplained > SMALLEST:
        scale = null_scale(found, NULL_QUANTILE)
        if scale < CLEARLY_LESS:
            found = replace(found, bias=found.bias * scale)
    if constant:
        plain, bias, variance = (part.copy() for part in (found.plain, found.bias, found.variance))
        plain[0], bias[0], variance[0] = 1.0, 0.0, 0.0
        found = replace(found, plain=plain, bias=bias, variance=variance)
    return found


def _estimate(
    evidence: Evidence, found: SecondOrder, rate: float, independent: bool, checks: list[str]
) -> Estimate:
    """Decide the zeros, add up the total, and say where the answer is weak."""
    n, terms = evidence.n_samples, len(evidence.walk.basis)
    found = _settled(found, evidence.walk.constant, independent)
    p = p_values(found)
    clear = benjamini_hochberg(p, rate) & (found.unbiased > SMALLEST)
    capacity = np.where(clear, np.clip(found.unbiased, 0.0, 1.0), 0.0)
    total, variance = float(found.unbiased.sum()), found.total_variance
    if n < ENOUGH_FOR_TOTAL * terms:
        variance += (total - float(capacity.sum())) ** 2
        total = float(capacity.sum())
        checks.append(
            f"{n} samples are few for {terms} functions: the total is the sum of the capacities that are clearly "
            f"not zero and may miss small ones; take at least {ENOUGH_FOR_TOTAL * terms} samples, or lower the degree."
        )
    limit = max(HEAVY * n, LEAST_HEAVY)
    heavy = int(np.sum(evidence.fourth_moments > limit)) if evidence.walk.root_weights is None else 0
    if heavy and found.unexplained > SMALLEST:
        checks.append(
            f"{heavy} of {terms} functions have E[y^4] above {limit:.0f}: they and the total are "
            "uncertain beyond the error bars; lower the degree, take more samples, or use draw_weighted."
        )
    error, contributors = (
        float(np.median(part[clear])) if clear.any() else np.inf
        for part in (np.sqrt(found.variance), found.contributors)
    )
    if independent and not heavy and contributors < FEW_CONTRIBUTORS and error > NOTICEABLE:
        checks.append(
            f"error bars of single capacities rest on about {contributors:.0f} samples at the edge of the inputs, and "
            "cover less often than they say; take more samples, a Sobol design, or draw_weighted."
        )
    return Estimate(
        capacity,
        unbiased=found.unbiased,
        standard_error=np.sqrt(found.variance),
        p_value=p,
        total=float(np.clip(total, 0.0, evidence.rank)),
        total_standard_error=float(np.sqrt(variance)),
        checks=tuple(checks),
    )
