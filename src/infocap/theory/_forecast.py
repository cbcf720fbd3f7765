"""How well a total will be known from N samples, before they are measured (docs/choosing.md derives it)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._validation import made_by, number, one_of, positive, whole_number
from ..basis._product import ProductBasis
from ..designs import draw, draw_weighted
from ..errors import DataError, ParameterError
from ..estimators import METHODS
from ..result._capacity_result import CapacityResult
from ..typing import Floats

FORECAST_METHODS = tuple(method.name for method in METHODS.values() if method.forecast)
# More samples than this are not recommended: a lower degree or less noise helps sooner.
MOST_SAMPLES = 2**24
# With fewer samples per function, error bars are several times too long (docs/choosing.md).
SAMPLES_PER_FUNCTION = 4
# With fewer samples per function, the total is a sum of what is shown, and no formula holds.
LEAST_PER_FUNCTION = 2
# With fewer samples per readout, the covariance of the readouts is not known well enough to divide by.
SAMPLES_PER_READOUT = 4
# Where the largest E[y^4] exceeds the second number, few samples decide: so many are needed for each unit of it.
HEAVY, LEAST_HEAVY = 10, 100.0
# The scatter exceeds that of normal residuals by at most this factor (measured, docs/choosing.md).
NOT_NORMAL = 1.5
# Shares of the bias that remain when it is taken off, typically and at most (measured on Sobol points).
REMAINING, LARGEST_REMAINING = 0.01, 0.04
# A typical spectrum of v has this share of the largest possible sum(v² - v⁴) (measured over simulated devices).
TYPICAL_TRANSITION = 0.4
# Algorithm 1's loss and scatter as shares of the largest ones: at least, typically and at most (measured).
LOST, SCATTER = (0.02, 0.3, 1.0), (0.1, 0.5, 1.2)
# Points for the average over the inputs, which is needed to a few per cent.
POINTS = 1024


@dataclass(frozen=True)
class ExpectedError:
    """Root mean square error of the total: a middle value, and the range that devices span.

    >>> expected = forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71).at(8192)
    >>> expected.low < expected.typical < expected.high
    True
    """

    n_samples: int
    typical: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is assumed of a device, and the error of its total that follows.

    With v the share of each whitened direction of the readouts that the functions leave unexplained,
    `unexplained` is sum(v), the capacity that noise and functions outside the basis take; each case is a pair
    of sum(v²) and sum(v² - v⁴), the first of them typical.

    >>> expected = forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71, unexplained=0.2)
    >>> [expected.samples_needed(error) for error in (1.0, 0.5, 0.1)]
    [8192, 8192, 16384]
    """

    basis: ProductBasis
    maximum: int  # the maximum capacity: readouts and the constant
    unexplained: float
    cases: Floats  # (cases, 2)

    @cached_property
    def concentration(self) -> float:
        """E[k²] / L² for k = sum of y² over the basis: 1 if all samples weigh alike, more if the edge does."""
        weights: Floats | float = 1.0
        if self.basis.memory:
            u = draw(self.basis, POINTS, seed=0)
        else:
            u, weights = draw_weighted(
                self.basis, POINTS, seed=0, blocks=1
            )  # many at the edge, where k is large
        k: Floats = np.concatenate([np.einsum("ij,ij->j", y, y) for y in self.basis.blocks(u)])
        return float(np.mean(weights * k**2) / len(self.basis) ** 2)

    def at(self, n_samples: int, method: str = "control-variate") -> ExpectedError:
        """The expected error of the total with so many samples."""
        n, terms = whole_number("n_samples", n_samples, 1), len(self.basis)
        one_of("method", method, FORECAST_METHODS)
        if METHODS[method].forecast == "threshold":
            # Functions below the threshold are lost, and few samples weigh much.
            total = self.maximum - self.unexplained
            lost = min(
                self.maximum * max(terms - total, 0.0) / n, total
            )  # at most as much as the raw bias
            uneven = total * np.sqrt(max(self.concentration - 1, 0.0) / n)
            low, typical, high = np.hypot(
                np.multiply(LOST, lost), np.multiply(SCATTER, uneven)
            ).tolist()
            return ExpectedError(n, typical=typical, low=low, high=high)
        if n < self.pilot_samples:
            raise ParameterError(
                f"`n_samples={n}` is fewer than {self.pilot_samples}, {LEAST_PER_FUNCTION} for each of {terms} "
                f"functions and {SAMPLES_PER_READOUT} for each of {self.maximum - 1} readouts and the constant; the "
                "error of the total cannot be foreseen there. Take more samples, or lower the degree."
            )
        errors = np.array([scatter(n, terms, *case) for case in self.cases])
        removed = terms * self.unexplained / (n - terms)
        return ExpectedError(
            n,
            typical=float(np.hypot(errors[0], REMAINING * removed)),
            low=float(errors.min()),
            high=float(np.hypot(NOT_NORMAL * errors.max(), LARGEST_REMAINING * removed)),
        )

    def samples_needed(self, error: float, method: str = "control-variate") -> int:
        """The smallest power of two with which the error is below `error`, also for a device at the high end."""
        positive("error", error)
        least = self.least_samples
        if least > MOST_SAMPLES:
            raise ParameterError(
                f"a function has E[y^4] = {self.basis.fourth_moments.max():.2g}: few samples would decide, and "
                f"{least:,} be needed whatever the error. Lower the degree, or use draw_weighted."
            )
        for power in range((least - 1).bit_length(), MOST_SAMPLES.bit_length()):
            if self.at(2**power, method).high <= error:
                return 2**power
        raise ParameterError(
            f"error={error:g} would take more than {MOST_SAMPLES:,} samples, which may leave "
            f"{self.at(MOST_SAMPLES, method).high:.2g}; allow a larger error, a lower degree or less noise."
        )

    @property
    def pilot_samples(self) -> int:
        """With fewer, nothing can be said about the error."""
        return max(LEAST_PER_FUNCTION * len(self.basis), SAMPLES_PER_READOUT * self.maximum)

    @property
    def least_samples(self) -> int:
        """Below this many, error bars do not hold, whatever their size."""
        largest = float(self.basis.fourth_moments.max())
        heavy = int(np.ceil(HEAVY * largest)) if largest > LEAST_HEAVY else 0
        return max(
            SAMPLES_PER_FUNCTION * len(self.basis), SAMPLES_PER_READOUT * self.maximum, heavy
        )


def forecast(basis: ProductBasis, n_readouts: int, *, unexplained: float = 0.5) -> Forecast:
    """The error to expect of a device with so many readouts, the constant not counted.

    `unexplained` is the share of the readouts' independent directions that noise and functions outside the basis
    take: 1 - total / (n_readouts + 1). The error of the total grows at most in proportion to it, so with one half, the
    default, pure noise is at most twice as bad as foreseen. Where functions outside the basis are the larger part, and
    not noise, errors up to three times the high end were seen (docs/choosing.md).

    >>> forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71).samples_needed(0.5)
    8192
    """
    k = whole_number("n_readouts", n_readouts, 1) + 1
    if (s := number("unexplained", unexplained, 0.0)) > 1:
        raise ParameterError(
            f"`unexplained={unexplained!r}` is a share of the readouts; give 0 to 1."
        )
    most = _most_transition(s)
    cases = np.array([(np.sqrt(s), TYPICAL_TRANSITION * most), (s, 0.0), (1.0, most)])
    return Forecast(basis, k, s * k, s * k * cases)


def forecast_from(pilot: CapacityResult) -> Forecast:
    """The error to expect from more samples of a device that was measured with few: `pilot` is their result.

    Its error bar says how large sum(v²) is, and its total sum(v). What remains open is which of the two terms of
    the error bar is the larger one; the range runs over both.

    >>> system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, noise=0.05)
    >>> pilot = infocap.probe(system, infocap.product_basis("legendre", 2, max_degree=6), 512, seed=1)
    >>> forecast_from(pilot).samples_needed(0.05)
    8192
    """
    made_by("pilot", pilot, CapacityResult, "infocap.estimate(...)")
    error, n, terms = pilot.total_standard_error, pilot.n_samples, len(pilot.basis)
    if pilot.method not in METHODS or METHODS[pilot.method].forecast != "residual" or error is None:
        raise DataError(
            f"the pilot was estimated by {pilot.method!r}; an error bar is needed: take 'control-variate'."
        )
    if n < LEAST_PER_FUNCTION * terms:
        raise DataError(
            f"the pilot has {n} samples for {terms} functions; its error bar holds from {LEAST_PER_FUNCTION * terms} "
            "samples on. Estimate it with a lower degree, or measure more."
        )
    k = pilot.rank
    unexplained = max(k - pilot.total, 0.0)
    s = unexplained / k
    typical = min(TYPICAL_TRANSITION * _most_transition(s) / np.sqrt(s), 1.0) if s else 0.0
    shares = np.array([typical, 0.0, 1.0])
    squares = np.array([(error / scatter(n, terms, 1.0, share)) ** 2 for share in shares])
    return Forecast(pilot.basis, k, unexplained, np.column_stack([squares, shares * squares]))


def scatter(n_samples: int, terms: int, square: float, transition: float) -> float:
    """The standard error of the total, from sum(v²) and sum(v² - v⁴)."""
    return float(
        np.sqrt(2 * transition / n_samples + 2 * terms * square / (n_samples - terms) ** 2)
    )


def _most_transition(s: float) -> float:
    """The largest sum(v² - v⁴) over sum(v), if the mean of v is s: on the concave hull of v² - v⁴."""
    return 2 / np.sqrt(27) if s < 1 / np.sqrt(3) else s - s**3
