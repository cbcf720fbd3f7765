"""The capacity for a user's own function, from what was measured for the basis functions."""

from typing import TYPE_CHECKING

import numpy as np

from .._formatting import with_error
from ..basis._product import ProductBasis
from ..designs import draw
from ..errors import DataError, warn
from ..kernels._summary import stretch_error
from ..typing import Floats, Target

if TYPE_CHECKING:
    from ._capacity_result import CapacityResult

MOST_TERMS = 3000  # least squares costs L² memory; in larger bases coefficients are plain averages
FIT_POINTS, CHECK_POINTS = (
    4,
    2**17,
)  # points of the fit for each function, and points that correct it
UNSEEN = 0.01  # the share of a target outside the basis that is worth a warning
TINY = 1e-300


class Capacity(float):
    """The capacity for one function or for several, a number that knows its `standard_error` (None where nobody does).

    >>> Capacity(0.91234, 0.0123), Capacity(0.5) + 0.1, Capacity(12.3, 0.2, most=20)
    (0.912 ± 0.012, 0.6, 12.30 ± 0.20)
    """

    standard_error: float | None

    def __new__(
        cls, value: float, standard_error: float | None = None, most: float = 1.0
    ) -> "Capacity":
        """Keep the value within [0, most]; a single capacity is at most 1."""
        made = super().__new__(cls, min(max(value, 0.0), most))
        made.standard_error = standard_error
        return made

    def __repr__(self) -> str:
        return with_error(float(self), self.standard_error)


def sum_over(result: "CapacityResult", some: Floats) -> Capacity:
    """The sum of the unbiased capacities of some functions, with its standard error.

    Stretches that were left out tell how far the sum scatters. Without them the squared error of the total is shared
    out as the squared errors of functions are.
    """
    value = float((result.capacity if result.unbiased is None else result.unbiased)[some].sum())
    if result.without_stretches is not None:
        return Capacity(
            value, stretch_error(result.without_stretches[:, some].sum(axis=1)), result.rank
        )
    if result.standard_error is None or result.total_standard_error is None:
        return Capacity(value, None, result.rank)
    share = np.linalg.norm(result.standard_error[some]) / max(
        float(np.linalg.norm(result.standard_error)), TINY
    )
    return Capacity(value, float(share) * result.total_standard_error, result.rank)


def expand(target: Target, basis: ProductBasis) -> tuple[Floats, float]:
    """The coefficients of a target in the basis, (terms,), and its mean square, of which a part may lie outside.

    A least-squares fit is exact for what lies in the basis, but may fit the rest too well. So its residual
    is averaged over many further points, which corrects the coefficients and gives the power outside the basis.
    """
    coefficients = np.zeros(len(basis))
    if len(basis) <= MOST_TERMS:
        count = 2 ** int(np.ceil(np.log2(max(FIT_POINTS * len(basis), 4096))))
        u = _drawn(basis, count, 0)
        coefficients = np.linalg.lstsq(basis(u), _values(target, u)[basis.memory :], rcond=None)[0]
    u = _drawn(basis, CHECK_POINTS, 1)
    values = _values(target, u)[basis.memory :]
    coefficients += basis.sum_over(u, values - basis.combine(u, coefficients)) / len(values)
    outside = float(np.mean((values - basis.combine(u, coefficients)) ** 2))
    power = float(np.sum(coefficients**2)) + outside
    if not (np.isfinite(power) and power > 0):
        raise DataError(f"the target's mean square is {power}; it must be finite and not zero.")
    if outside > UNSEEN * power:
        warn(
            f"{outside / power:.1%} of the target's power lies outside the basis; raise the degree to see more of it."
        )
    return coefficients, power


def corrected(
    target: Floats,
    inside: Floats,
    noise: Floats,
    unbiased: Floats,
    standard_error: Floats,
    n_samples: int,
) -> Capacity:
    """The capacity of a target with coefficients (terms,), without its bias, and its standard error.

    `inside` (rank, terms) are the functions' coefficients on the readouts in a frame with G = 1, and `noise` the
    covariance of what the fit leaves of the readouts there. A target's coefficients are sums of those, so its bias is a
    sum over pairs of functions. Only that of each function with itself was measured; bias and variance of the others
    are those of normal residuals (docs/theory.md), scaled so that every single function has what was measured for it.
    """
    along, square = inside @ target, target**2
    bias, variance = _expected(along[:, None], np.sum(square), noise, n_samples)
    each_bias, each_variance = _expected(inside, 1.0, noise, n_samples)
    correction = square @ (np.sum(inside**2, axis=0) - unbiased - each_bias)
    wider = (square @ standard_error**2) / max(square @ each_variance, TINY)
    return Capacity(
        float(along @ along - bias[0] - correction), float(np.sqrt(variance[0] * wider))
    )


def _expected(along: Floats, power: float, noise: Floats, n_samples: int) -> tuple[Floats, Floats]:
    """Bias and variance of |along|² (rank, functions) for functions of mean square `power` and normal residuals."""
    trace, rank = float(np.trace(noise)), len(noise)
    missed, noisy = power - np.sum(along**2, axis=0), np.einsum("ij,ij->j", along, noise @ along)
    bias = (trace * missed + (rank - trace) * noisy) / n_samples
    first = np.maximum(4 * missed * noisy - 2 * noisy**2, 0.0) / n_samples
    return bias, first + 2 * np.abs(bias) * np.sum(noise**2) / (max(trace, TINY) * n_samples)


def _drawn(basis: ProductBasis, count: int, seed: int) -> Floats:
    """Inputs for a mean over so many points, in one net, the most even; slow time, if it counts, goes last."""
    u = draw(basis, count + basis.memory, seed=seed, blocks=None if basis.of_sequences else 1)
    time = np.random.default_rng([seed, 1]).uniform(
        -1, 1, (len(u), len(basis.columns) - u.shape[1])
    )
    return np.hstack([u, time])


def _values(target: Target, u: Floats) -> Floats:
    if not callable(target):
        raise DataError(
            f"the target {target!r} is no function; give one of inputs u, lambda u: np.sin(3 * u[:, 0])."
        )
    values = np.asarray(target(u))
    if values.shape != (len(u),) or values.dtype.kind not in "fiub":
        raise DataError(
            f"the target gave {values.dtype} {values.shape}; give ({len(u)},) real numbers, one per input."
        )
    return values.astype(float)
