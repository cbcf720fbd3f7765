"""What an estimator gives back."""

from __future__ import annotations

from dataclasses import dataclass

from ..typing import Floats


@dataclass(frozen=True, eq=False)
class Estimate:
    """Capacities of all targets and, where the method has them, thresholds, error bars and p-values.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=3)
    >>> def halved(evidence):
    ...     return Estimate(capacity=evidence.raw / 2, threshold=evidence.leverage_bound)
    >>> infocap.probe(lambda u: u, basis, 64, seed=1, method=halved).capacity.round(2)
    array([0.5, 0.5, 0. , 0. ])
    """

    capacity: Floats
    threshold: Floats | None = None
    standard_error: Floats | None = None
    p_value: Floats | None = None
    total: float | None = None  # the sum of `capacity` when None
    total_standard_error: float | None = None
    checks: tuple[str, ...] = ()
    unbiased: Floats | None = None  # before anything is set to zero or clipped; centre of the intervals
