"""How well a total will be known from N samples, before they are measured (docs/howto/choose-n.md derives it)."""

from dataclasses import dataclass

import numpy as np

from .._validation import require_number, require_positive, require_type, require_whole_number
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..estimators import DEFAULT_METHOD
from ..result import CapacityResult
from ..typing import Floats

# More samples than this are not recommended: a lower degree or less noise helps sooner.
MAX_SAMPLES = 2**24
# With fewer samples per function, error bars are several times too long (docs/howto/choose-n.md).
SAMPLES_PER_FUNCTION = 4
# With fewer samples per function, the total is a sum of what is shown, and no formula holds.
MIN_SAMPLES_PER_FUNCTION = 2
# With fewer samples per readout, the covariance of the readouts is not known well enough to divide by.
SAMPLES_PER_READOUT = 4
# Where the largest E[y^4] exceeds this, few samples decide.
LARGE_FOURTH_MOMENT = 100.0
# So many samples are needed for each unit of it.
SAMPLES_PER_FOURTH_MOMENT = 10
# The scatter exceeds that of normal residuals by at most this factor (measured, docs/howto/choose-n.md).
MAX_SCATTER_RATIO = 1.5
# Shares of the bias that remain when it is taken off, typically and at most (measured on Sobol points).
TYPICAL_REMAINING_BIAS = 0.01
MAX_REMAINING_BIAS = 0.04
# A typical spectrum of v has this share of the largest possible sum(v² - v⁴) (measured over simulated devices).
TYPICAL_TRANSITION = 0.4


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

    def at(self, n_samples: int) -> ExpectedError:
        """The expected error of the total with so many samples."""
        n_samples = require_whole_number("n_samples", n_samples, 1)
        n_functions = len(self.basis)
        if n_samples < self.pilot_samples:
            raise ParameterError(
                f"`n_samples={n_samples}` is fewer than {self.pilot_samples}, {MIN_SAMPLES_PER_FUNCTION} for each of "
                f"{n_functions} functions and {SAMPLES_PER_READOUT} for each of {self.maximum - 1} readouts and the "
                "constant; the error of the total cannot be foreseen there. Take more samples, or lower the degree."
            )
        errors = np.array([scatter(n_samples, n_functions, *case) for case in self.cases])
        bias = n_functions * self.unexplained / (n_samples - n_functions)
        return ExpectedError(
            n_samples,
            typical=float(np.hypot(errors[0], TYPICAL_REMAINING_BIAS * bias)),
            low=float(errors.min()),
            high=float(np.hypot(MAX_SCATTER_RATIO * errors.max(), MAX_REMAINING_BIAS * bias)),
        )

    def samples_needed(self, error: float) -> int:
        """The smallest power of two with which the error is below `error`, also for a device at the high end."""
        require_positive("error", error)
        least = self.least_samples
        if least > MAX_SAMPLES:
            raise ParameterError(
                f"a function has E[y^4] = {self.basis.fourth_moments.max():.2g}: few samples would decide, and "
                f"{least:,} be needed whatever the error. Lower the degree, or use draw_weighted."
            )
        for power in range((least - 1).bit_length(), MAX_SAMPLES.bit_length()):
            if self.at(2**power).high <= error:
                return 2**power
        raise ParameterError(
            f"error={error:g} would take more than {MAX_SAMPLES:,} samples, which may leave "
            f"{self.at(MAX_SAMPLES).high:.2g}; allow a larger error, a lower degree or less noise."
        )

    @property
    def pilot_samples(self) -> int:
        """With fewer, nothing can be said about the error."""
        for_functions = MIN_SAMPLES_PER_FUNCTION * len(self.basis)
        return max(for_functions, SAMPLES_PER_READOUT * self.maximum)

    @property
    def least_samples(self) -> int:
        """Below this many, error bars do not hold, whatever their size."""
        needed = [SAMPLES_PER_FUNCTION * len(self.basis), SAMPLES_PER_READOUT * self.maximum]
        fourth_moment = float(self.basis.fourth_moments.max())
        if fourth_moment > LARGE_FOURTH_MOMENT:
            needed.append(int(np.ceil(SAMPLES_PER_FOURTH_MOMENT * fourth_moment)))
        return max(needed)


def forecast(basis: ProductBasis, n_readouts: int, *, unexplained: float = 0.5) -> Forecast:
    """Return the error to expect of a device with so many readouts, the constant not counted.

    `unexplained` is the share of the readouts' independent directions that noise and functions outside the basis
    take: 1 - total / (n_readouts + 1). The error of the total grows at most in proportion to it, so with one half, the
    default, pure noise is at most twice as bad as foreseen. Where functions outside the basis are the larger part, and
    not noise, errors up to three times the high end were seen (docs/howto/choose-n.md).

    >>> forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71).samples_needed(0.5)
    8192
    """
    maximum = require_whole_number("n_readouts", n_readouts, 1) + 1
    share = require_number("unexplained", unexplained, 0.0)
    if share > 1:
        raise ParameterError(
            f"`unexplained={unexplained!r}` is a share of the readouts; give 0 to 1."
        )
    # A typical device, one with equal v, and one with the largest possible sum(v² - v⁴), for a total of 1.
    largest = _largest_transition(share)
    cases = np.array([(np.sqrt(share), TYPICAL_TRANSITION * largest), (share, 0.0), (1.0, largest)])
    capacity = share * maximum
    return Forecast(basis, maximum, capacity, capacity * cases)


def forecast_from(pilot: CapacityResult) -> Forecast:
    """Return the error to expect from more samples of a device that was measured with few: `pilot` is their result.

    Its error bar says how large sum(v²) is, and its total sum(v). What remains open is which of the two terms of
    the error bar is the larger one; the range runs over both.

    >>> system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, noise=0.05)
    >>> pilot = infocap.probe(system, infocap.product_basis("legendre", 2, max_degree=6), 512, seed=1)
    >>> forecast_from(pilot).samples_needed(0.05)
    8192
    """
    require_type("pilot", pilot, CapacityResult, "infocap.estimate(...)")
    error = pilot.total_standard_error
    if pilot.method != DEFAULT_METHOD or error is None:
        raise DataError(
            f"the pilot was estimated by {pilot.method!r}; an error bar is needed: take {DEFAULT_METHOD!r}."
        )
    n_samples = pilot.n_samples
    n_functions = len(pilot.basis)
    needed = MIN_SAMPLES_PER_FUNCTION * n_functions
    if n_samples < needed:
        raise DataError(
            f"the pilot has {n_samples} samples for {n_functions} functions; its error bar holds from {needed} "
            "samples on. Estimate it with a lower degree, or measure more."
        )
    unexplained = max(pilot.rank - pilot.total, 0.0)
    share = unexplained / pilot.rank
    # Which share sum(v² - v⁴) has of sum(v²): a typical one, none of it, or all.
    typical = 0.0
    if share > 0:
        typical = min(TYPICAL_TRANSITION * _largest_transition(share) / np.sqrt(share), 1.0)
    transitions = np.array([typical, 0.0, 1.0])
    unit_errors = [scatter(n_samples, n_functions, 1.0, transition) for transition in transitions]
    squares = (error / np.array(unit_errors)) ** 2
    cases = np.column_stack([squares, transitions * squares])
    return Forecast(pilot.basis, pilot.rank, unexplained, cases)


def scatter(n_samples: int, n_functions: int, square: float, transition: float) -> float:
    """The standard error of the total, from sum(v²) and sum(v² - v⁴)."""
    first_order = 2 * transition / n_samples
    second_order = 2 * n_functions * square / (n_samples - n_functions) ** 2
    return float(np.sqrt(first_order + second_order))


def _largest_transition(share: float) -> float:
    """The largest sum(v² - v⁴) over sum(v), if the mean of v is `share`: on the concave hull of v² - v⁴."""
    return 2 / np.sqrt(27) if share < 1 / np.sqrt(3) else share - share**3
