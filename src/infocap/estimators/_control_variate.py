"""Control variates: the basis functions, whose means are known, take the sampling noise out of the capacities."""

import numpy as np

from .._check import one_of, probability
from ._evidence import Evidence
from ._fit import fit_readouts
from ._method import Estimate
from ._second_order import Found, benjamini_hochberg, second_order
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
    on the basis) or ``"none"`` (the raw capacity with its second-order bias removed). docs/estimators.md has the derivation.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=4)
    >>> u = infocap.draw(basis, 256, seed=1)
    >>> infocap.estimate(u, u**3, basis, method="control-variate").capacity.round(2)
    array([1.  , 0.84, 0.  , 0.16, 0.  ])
    """
    from scipy.special import stdtrit

    probability("false_discovery_rate", false_discovery_rate)
    one_of("fit", fit, FITS)
    n, terms = evidence.n_samples, len(evidence.basis)
    found = second_order(evidence, fit_readouts(evidence, fit))
    plain, bias, variance, p = found.plain, found.bias, found.variance, found.p_value
    if evidence.samples.constant:
        plain[0], bias[0], variance[0], p[0] = 1.0, 0.0, 0.0, 0.0
    unbiased = plain - bias
    clear = benjamini_hochberg(p, false_discovery_rate) & (unbiased > TUNING.smallest)
    capacity = np.where(clear, np.clip(unbiased, 0.0, 1.0), 0.0)
    total = float(unbiased.sum())
    third = TUNING.third_order * (found.crowding + found.widened - 1) * np.abs(bias)
    count = evidence.n_groups or 16
    student = stdtrit(count - 1, 0.975) / 1.96
    error = float(np.hypot(student * found.jackknife, third.sum()))
    checks: list[str] = []
    if n < 2 * terms:
        error = float(np.hypot(error, total - capacity.sum()))
        total = float(capacity.sum())
        checks.append("few samples")
    if found.crowding > TUNING.crowded:
        checks.append(f"crowded {found.crowding:.2f}")
    if found.contributors < TUNING.few_for_total and error > 1e-3:
        checks.append(f"rests on {found.contributors:.0f}")
    if found.smallest_eigenvalue < TUNING.eigenvalues[0]:
        checks.append("eigenvalue")
    if not evidence.n_groups and found.unexplained > 1e-3:
        checks.append("one net")
    limit = max(TUNING.heavy * n, TUNING.least_heavy)
    if np.any(evidence.basis.fourth_moments > limit) and evidence.samples.root_weights is None and found.unexplained > TUNING.smallest:
        checks.append("heavy")
    return Estimate(
        capacity,
        unbiased=unbiased,
        standard_error=np.sqrt(variance + third**2),
        p_value=p,
        total=float(np.clip(total, 0.0, evidence.rank)),
        total_standard_error=error,
        checks=tuple(checks),
    )


def control_variate_bytes(n_samples: int, n_columns: int, terms: int, **options: object) -> float:
    return 0.0


def control_variate_work(n_samples: int, n_columns: int, terms: int) -> float:
    return 0.0
