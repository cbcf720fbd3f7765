"""What a method is, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._validation import require_numbers
from ..result import RecordedLaw
from ..typing import Floats

# A function of `Evidence`, with options as keywords, that returns capacities or an `Estimate`.
Estimator = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method returns: capacities and, where it has them, error bars, p-values, thresholds.

    Parameters
    ----------
    capacity
        The capacity of every function, (terms,).
    threshold
        The value that a capacity must exceed to be told from zero, (terms,).
    standard_error, p_value
        The standard error and the p-value of every capacity, (terms,).
    total, total_standard_error
        The total capacity; the sum of `capacity` where `total` is None.
    checks
        Findings of the method itself: each a sentence, or a `Check`, on why errors may be larger
        than the error bars.
    unbiased
        Capacities before any was set to zero or clipped: the centres of the intervals, (terms,).
    coordinates
        Coefficients of the functions along orthonormal directions of the readouts, (rank, terms),
        whose squares add up to the capacities: one array from all samples, or further ones from
        the first and the second half of them.
    without_stretches
        Capacities when each stretch of a sequence, a group of neighbouring samples, is left out in
        turn, (stretches, terms).
    without_groups
        Capacities when each group of samples of a device without memory is left out in turn,
        (groups, terms), so that their jackknife gives standard errors.
    inputs_fingerprint
        The same for the same inputs in the same order; None where the method does not tell.
    residual_covariance
        Covariance of what a fit leaves of the readouts, along the same directions, (rank, rank).
    influence_variance
        The variance of single samples' influence on the total, by which more samples are planned.
    leverage_ratio
        S_N / (K N): how much single samples weigh.
    recorded_law
        What belongs to capacities under the law of the recorded inputs. Functions that cannot be
        told apart then have no capacity, which is NaN.
    raw
        Plain empirical capacities, (terms,), where they are not those of the evidence.

    Examples
    --------
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
    total: float | None = None
    total_standard_error: float | None = None
    checks: tuple[str, ...] = ()
    unbiased: Floats | None = None
    coordinates: tuple[Floats, ...] = ()
    without_stretches: Floats | None = None
    without_groups: Floats | None = None
    inputs_fingerprint: str | None = None
    residual_covariance: Floats | None = None
    influence_variance: float | None = None
    leverage_ratio: float | None = None
    recorded_law: RecordedLaw | None = None
    raw: Floats | None = None


@dataclass(frozen=True, eq=False)
class Method:
    """A way to estimate capacities: a function of `Evidence`, with its name, source and cost.

    Parameters
    ----------
    name, function
        The name by which users choose the method, and the function.
    summary, reference
        One line about the method, and the publication to cite.
    cites
        Keys of the references in ``workflow/references.bib`` that `infocap.cite` gives for the
        method, besides the paper and the software.
    corrects_bias
        Whether the method corrects the finite-sample bias; checks depend on it.
    takes_weights
        Whether the method can be used with `sample_weight`.
    extra_bytes
        Memory beyond that of the passes over the data, a function of the numbers of samples,
        readouts, functions and threads.
    extra_work
        Floating-point operations beyond those of the first pass, a function of the numbers of
        samples, readouts and functions.

    Examples
    --------
    >>> from infocap.estimators import METHODS
    >>> METHODS["raw"].corrects_bias
    False
    """

    name: str
    function: Estimator
    summary: str
    reference: str = ""
    cites: tuple[str, ...] = ()
    corrects_bias: bool = True
    takes_weights: bool = True
    extra_bytes: Callable[..., float] = lambda n_samples, n_columns, n_terms, n_threads: 0.0
    extra_work: Callable[[int, int, int], float] = lambda n_samples, n_columns, n_terms: 0.0

    def __call__(self, evidence: Any, **options: Any) -> Estimate:
        """Run the method; a plain array of capacities becomes an `Estimate`."""
        answer = self.function(evidence, **options)
        if isinstance(answer, Estimate):
            return answer
        return Estimate(require_numbers("method(evidence)", answer, finite=False))
