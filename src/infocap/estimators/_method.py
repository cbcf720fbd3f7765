"""What a method is, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..typing import Floats

Estimator = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Capacities of all targets and, where the method has them, thresholds, error bars and p-values.

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
    unbiased: Floats | None = (
        None  # before anything is set to zero or clipped; centre of the intervals
    )
    coordinates: tuple[
        Floats, ...
    ] = ()  # of the functions in a frame of the readouts, (rank, terms)
    without_stretches: Floats | None = (
        None  # capacities without each stretch of a sequence, (stretches, terms)
    )
    residual_covariance: Floats | None = (
        None  # of what a fit leaves of the readouts, in the same frame
    )


@dataclass(frozen=True, eq=False)
class Method:
    """A way to estimate capacities: a function of `Evidence`, and what the rest of the package has to know about it.

    Calling it calls the function. `extra_bytes` and `extra_work` say how much memory and how many operations it takes
    beside the passes over the data, from the numbers of samples, readouts and functions (and of threads).

    >>> from infocap import METHODS
    >>> METHODS["raw"].corrects_bias
    False
    """

    name: str
    function: Estimator
    summary: str
    reference: str = ""
    corrects_bias: bool = True
    takes_weights: bool = True
    forecast: str = (
        ""  # which formula of theory.forecast tells its error: "residual", "threshold", or none
    )
    extra_bytes: Callable[..., float] = lambda n_samples, n_columns, terms, threads: 0.0
    extra_work: Callable[[int, int, int], float] = lambda n_samples, n_columns, terms: 0.0

    def __call__(self, evidence: Any, **options: Any) -> Estimate:
        """Run the method; a plain array of capacities is as good as an `Estimate`."""
        found = self.function(evidence, **options)
        return found if isinstance(found, Estimate) else Estimate(np.asarray(found, dtype=float))
