"""Control variates: the basis functions, whose means are known, take the sampling noise out of the capacities."""

from dataclasses import replace
from itertools import starmap

import numpy as np

from .._check import one_of, probability
from ..errors import ParameterError
from ._evidence import Evidence
from ._least_squares import least_squares, squares_bytes
from ._method import Estimate
from ._search import CrossFit, Search, dictionary_size, search_bytes, uncontrolled
from ._second_order import (
    LEAST_EIGENVALUE,
    Block,
    SecondOrder,
    benjamini_hochberg,
    null_scale,
    p_values,
    second_order,
)
from ._tuning import TUNING

FITS = ("auto", "least-squares", "none")


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
    n, terms = evidence.n_samples, len(evidence.basis)
    independent = evidence.independent
    checks: list[str] = []
    memory = evidence.engine.memory
    too_large = 8 * 6 * n * evidence.rank > TUNING.search_bytes
    if memory is not None:
        too_large = search_bytes(n, evidence.maximum, terms) > memory
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
    z = evidence.all_whitened()
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
    if not independent and n < TUNING.enough_balanced * terms and best.beyond > TUNING.much_beyond:
        checks.append(
            f"functions of higher degree than can be fitted hold a capacity of {best.beyond:.1f} or more; on a "
            f"low-discrepancy design with fewer than {TUNING.enough_balanced} samples for each function they pass for "
            "others: the total may be off by more than its error bar, a quarter of those shown may be false; raise the "
            "degree, or take random points."
        )
    return _estimate(evidence, found, false_discovery_rate, independent, checks)


def _fast(evidence: Evidence, independent: bool) -> tuple[SecondOrder | None, str]:
    """Least squares on the basis, or what speaks against it."""
    n, terms = evidence.n_samples, len(evidence.basis)
    if n <= TUNING.enough_samples * terms:
        return None, f"{n} samples for {terms} functions"
    fitted = least_squares(evidence, independent)
    if fitted is None:
        return None, "the functions are not independent on these points"
    found, noise_gain = fitted
    if noise_gain > TUNING.stable_gain:
        return None, f"its noise gain tr (Y'Y)^-1 is {noise_gain:.2f}, above {TUNING.stable_gain}"
    unstable = _unstable(found)
    return (None, unstable) if unstable else (found, "")


def _unstable(found: SecondOrder) -> str:
    if found.smallest_eigenvalue < LEAST_EIGENVALUE:
        return f"a readout direction of variance 1 is estimated to have {found.smallest_eigenvalue:.2g}"
    largest = float(found.bias.max())
    return f"a bias is as large as {largest:.2g}" if largest > TUNING.largest_bias else ""


def _expand(evidence: Evidence, fit: CrossFit, independent: bool) -> SecondOrder:
    """The second order around c = lift + mean(y e)."""
    n = evidence.n_samples
    c = fit.lift[: len(evidence.basis)] + evidence.project(fit.e)
    e = fit.e if independent else fit.e * np.sqrt(fit.gain)
    e_capacity = fit.e_plain * np.sqrt(fit.gain_plain)
    e_total = fit.e_plain * np.sqrt(fit.level / (1 - np.minimum(fit.freedom / n, TUNING.most_freedom)))
    targets = evidence.samples.targets(0, n)
    blocks = starmap(lambda y, rows: Block(y, fit.z[rows], e[rows], e_capacity[rows], e_total[rows]), targets)
    return second_order(c, fit.gram, e.T @ e / n, blocks, n_samples=n, independent=independent)


def _settled(found: SecondOrder, constant: bool, independent: bool) -> SecondOrder:
    """What is known besides: the constant readout gives the constant function, and evenness lowers the bias.

    Low-discrepancy points average what is smooth in the residual, functions outside the fit, almost exactly; then
    zeros scatter less than white noise would, and so does the bias.
    """
    if (
        not independent
        and len(found.plain) >= TUNING.enough_for_scale
        and found.unexplained > TUNING.smallest
    ):
        scale = null_scale(found, TUNING.null_quantile)
        if scale < TUNING.clearly_less:
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
    n, terms = evidence.n_samples, len(evidence.basis)
    found = _settled(found, evidence.samples.constant, independent)
    p = p_values(found)
    clear = benjamini_hochberg(p, rate) & (found.unbiased > TUNING.smallest)
    capacity = np.where(clear, np.clip(found.unbiased, 0.0, 1.0), 0.0)
    total, variance = float(found.unbiased.sum()), found.total_variance
    if n < TUNING.enough_for_total * terms:
        variance += (total - float(capacity.sum())) ** 2
        total = float(capacity.sum())
        checks.append(
            f"{n} samples are few for {terms} functions: the total is the sum of the capacities that are clearly "
            f"not zero and may miss small ones; take at least {TUNING.enough_for_total * terms} samples, or lower the "
            "degree."
        )
    limit = max(TUNING.heavy * n, TUNING.least_heavy)
    heavy = int(np.sum(evidence.basis.fourth_moments > limit)) if evidence.samples.root_weights is None else 0
    if heavy and found.unexplained > TUNING.smallest:
        checks.append(
            f"{heavy} of {terms} functions have E[y^4] above {limit:.0f}: they and the total are "
            "uncertain beyond the error bars; lower the degree, take more samples, or use draw_weighted."
        )
    error, contributors = (
        float(np.median(part[clear])) if clear.any() else np.inf
        for part in (np.sqrt(found.variance), found.contributors)
    )
    if independent and not heavy and contributors < TUNING.few_contributors and error > TUNING.noticeable:
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


def control_variate_bytes(
    n_samples: int, n_columns: int, terms: int, *, fit: str = "auto", **options: object
) -> float:
    """Memory beside the passes: that of the search or, where the fit may be made in passes, of the smaller of both."""
    search = search_bytes(n_samples, n_columns, terms)
    return search if fit == "none" else min(search, squares_bytes(n_samples, n_columns, terms))


def control_variate_work(n_samples: int, n_columns: int, terms: int) -> float:
    """Operations beside the passes: values of the dictionary, about four fits, and the expansion."""
    dictionary = dictionary_size(n_samples, terms)
    controls = min(dictionary, n_samples, TUNING.most_controls)
    fits = 4 * (2.0 * n_samples * controls**2 + 30.0 * controls**3) + 30.0 * n_samples * controls * n_columns
    return 3.0 * n_samples * terms * min(terms, dictionary) + 12.0 * n_samples * n_columns * terms + fits
