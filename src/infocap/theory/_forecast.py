"""How well a total will be known from N samples, before they are measured.

docs/howto/choose-n.md has the derivation.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._validation import require_number, require_positive, require_type, require_whole_number
from ..basis import ProductBasis
from ..errors import DataError, ParameterError
from ..estimators import DEFAULT_METHOD
from ..result import CapacityResult

# More samples than this are not recommended: a lower degree or less noise helps sooner.
MAX_SAMPLES = 2**24
# With fewer samples per function, error bars are several times too long (docs/howto/choose-n.md).
RECOMMENDED_SAMPLES_PER_FUNCTION = 4
# With fewer samples per function, the total is a sum of what is shown, and no formula holds.
PILOT_SAMPLES_PER_FUNCTION = 2
# With fewer samples per readout, the covariance of the readouts is not known well enough to divide
# by.
PILOT_SAMPLES_PER_READOUT = 4
# Where the largest E[y^4] exceeds this, few samples decide.
LARGE_FOURTH_MOMENT = 100.0
# So many samples are needed for each unit of it.
SAMPLES_PER_FOURTH_MOMENT = 10
# The scatter exceeds that of normal residuals by at most this factor (measured,
# docs/howto/choose-n.md).
MAX_SCATTER_RATIO = 1.5
# Shares of the bias that remain when it is taken off, typically and at most (measured on Sobol
# points).
TYPICAL_REMAINING_BIAS = 0.01
MAX_REMAINING_BIAS = 0.04
# A typical spectrum of v has this share of the largest possible sum(v² - v⁴) (measured over
# simulated devices).
TYPICAL_TRANSITION = 0.4


@dataclass(frozen=True)
class ExpectedError:
    """The root mean square error of the total to expect.

    Attributes
    ----------
    n_samples
        For so many samples.
    typical
        That of a typical device.
    low, high
        The range that devices span.

    Examples
    --------
    >>> expected = forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71).at(8192)
    >>> expected.low < expected.typical < expected.high
    True
    """

    n_samples: int
    typical: float
    low: float
    high: float


class Spectrum(NamedTuple):
    """Sums over v, the unexplained share of each whitened direction of the readouts."""

    sum_of_squares: float  # sum(v²)
    transition: float  # sum(v² - v⁴), zero where every direction is explained wholly or not at all


@dataclass(frozen=True, eq=False)
class Forecast:
    """What is assumed of a device, and the error of its total that follows.

    Here v is the share of each whitened direction of the readouts that the functions leave
    unexplained.

    Attributes
    ----------
    basis
        The functions.
    maximum
        The largest possible total: readouts and the constant.
    unexplained
        sum(v), the capacity that noise and functions outside the basis take.
    spectra
        Sums over v that devices may have, the first of them typical.

    Examples
    --------
    >>> expected = forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71, unexplained=0.2)
    >>> [expected.samples_needed(error) for error in (1.0, 0.5, 0.1)]
    [8192, 8192, 16384]
    """

    basis: ProductBasis
    maximum: int
    unexplained: float
    spectra: tuple[Spectrum, ...]

    def at(self, n_samples: int) -> ExpectedError:
        """Return the expected error of the total.

        Parameters
        ----------
        n_samples
            The number of samples.
        """
        n_samples = require_whole_number("n_samples", n_samples, 1)
        n_functions = len(self.basis)
        if n_samples < self.pilot_samples:
            raise ParameterError(
                f"`n_samples={n_samples}` is fewer than {self.pilot_samples}, "
                f"{PILOT_SAMPLES_PER_FUNCTION} for each of {n_functions} functions and "
                f"{PILOT_SAMPLES_PER_READOUT} for each of {self.maximum - 1} readouts and the "
                "constant; the error of the total cannot be foreseen there. Take more samples, or "
                "lower the degree."
            )
        errors = [scatter(n_samples, n_functions, spectrum) for spectrum in self.spectra]
        bias = n_functions * self.unexplained / (n_samples - n_functions)
        return ExpectedError(
            n_samples,
            typical=float(np.hypot(errors[0], TYPICAL_REMAINING_BIAS * bias)),
            low=min(errors),
            high=float(np.hypot(MAX_SCATTER_RATIO * max(errors), MAX_REMAINING_BIAS * bias)),
        )

    def samples_needed(self, error: float) -> int:
        """Return the smallest power of two that is enough samples.

        It is also enough for a device at the high end of the range.

        Parameters
        ----------
        error
            The largest root mean square error of the total that is allowed.
        """
        require_positive("error", error)
        min_samples = self.least_samples
        if min_samples > MAX_SAMPLES:
            raise ParameterError(
                f"a function has E[y^4] = {self.basis.fourth_moments.max():.2g}: few samples would "
                f"decide, and {min_samples:,} be needed whatever the error. Lower the degree, or "
                "use draw_weighted."
            )
        for power in range((min_samples - 1).bit_length(), MAX_SAMPLES.bit_length()):
            if self.at(2**power).high <= error:
                return 2**power
        raise ParameterError(
            f"error={error:g} would take more than {MAX_SAMPLES:,} samples, which may leave "
            f"{self.at(MAX_SAMPLES).high:.2g}; allow a larger error, a lower degree or less noise."
        )

    @property
    def pilot_samples(self) -> int:
        """With fewer, nothing can be said about the error."""
        for_functions = PILOT_SAMPLES_PER_FUNCTION * len(self.basis)
        for_readouts = PILOT_SAMPLES_PER_READOUT * self.maximum
        return max(for_functions, for_readouts)

    @property
    def least_samples(self) -> int:
        """Below this many, error bars do not hold, whatever their size."""
        for_functions = RECOMMENDED_SAMPLES_PER_FUNCTION * len(self.basis)
        n_samples = max(for_functions, PILOT_SAMPLES_PER_READOUT * self.maximum)
        fourth_moment = float(self.basis.fourth_moments.max())
        if fourth_moment > LARGE_FOURTH_MOMENT:
            n_samples = max(n_samples, int(np.ceil(SAMPLES_PER_FOURTH_MOMENT * fourth_moment)))
        return n_samples

    @property
    def reason_for_least_samples(self) -> str:
        """Why there must be `least_samples`, in words."""
        for_functions = RECOMMENDED_SAMPLES_PER_FUNCTION * len(self.basis)
        for_readouts = PILOT_SAMPLES_PER_READOUT * self.maximum
        if self.least_samples > max(for_functions, for_readouts):
            return "some functions are so large at the edge that few samples decide"
        return (
            f"{RECOMMENDED_SAMPLES_PER_FUNCTION} for each of {len(self.basis)} functions and "
            f"{PILOT_SAMPLES_PER_READOUT} for each of {self.maximum} readouts"
        )


def forecast(basis: ProductBasis, n_readouts: int, *, unexplained: float = 0.5) -> Forecast:
    """Return the error to expect of a device with so many readouts, the constant not counted.

    Where functions outside the basis are the larger part of what is unexplained, and not noise,
    errors above the high end were seen (docs/howto/choose-n.md).

    Parameters
    ----------
    basis
        The functions.
    n_readouts
        The number of channels of the device.
    unexplained
        The share of the readouts' independent directions that noise and functions outside the basis
        take: 1 - total / (n_readouts + 1). The error of the total grows at most in proportion to
        it, so with one half, the default, pure noise is at most twice as bad as foreseen.

    Returns
    -------
    Forecast
        The error for any number of samples, and the number of samples for any error.

    Examples
    --------
    >>> forecast(infocap.product_basis("legendre", n_inputs=5, max_degree=8), 71).samples_needed(0.5)
    8192
    """
    maximum = require_whole_number("n_readouts", n_readouts, 1) + 1
    share = require_number("unexplained", unexplained, 0.0)
    if share > 1:
        raise ParameterError(
            f"`unexplained={unexplained!r}` is a share of the readouts; give 0 to 1."
        )
    # A typical device, one with equal v, and one with the largest possible sum(v² - v⁴), for a
    # total of 1.
    capacity = share * maximum
    largest = capacity * _largest_transition(share)
    typical = Spectrum(capacity * np.sqrt(share), TYPICAL_TRANSITION * largest)
    equal = Spectrum(capacity * share, 0.0)
    extreme = Spectrum(capacity, largest)
    return Forecast(basis, maximum, capacity, (typical, equal, extreme))


def forecast_from(pilot: CapacityResult) -> Forecast:
    """Return the error to expect from more samples of a device that was measured with few.

    The error bar of the pilot says how large sum(v²) is, and its total sum(v). What remains open is
    which of the two terms of the error bar is the larger one; the range runs over both.

    Parameters
    ----------
    pilot
        The result of the first samples, by the default method.

    Returns
    -------
    Forecast
        The error for any number of samples, and the number of samples for any error.

    Examples
    --------
    >>> system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=20, noise=0.05)
    >>> pilot = infocap.probe(system, infocap.product_basis("legendre", 2, max_degree=6), 512, seed=1)
    >>> forecast_from(pilot).samples_needed(0.05)
    8192
    """
    require_type("pilot", pilot, CapacityResult, "infocap.estimate(...)")
    error = pilot.total_standard_error
    if pilot.method != DEFAULT_METHOD or error is None:
        raise DataError(
            f"the pilot was estimated by {pilot.method!r}; an error bar is needed: take "
            f"{DEFAULT_METHOD!r}."
        )
    n_samples = pilot.n_samples
    n_functions = len(pilot.basis)
    min_samples = PILOT_SAMPLES_PER_FUNCTION * n_functions
    if n_samples < min_samples:
        raise DataError(
            f"the pilot has {n_samples} samples for {n_functions} functions; its error bar holds "
            f"from {min_samples} samples on. Estimate it with a lower degree, or measure more."
        )
    unexplained = max(pilot.rank - pilot.total, 0.0)
    share = unexplained / pilot.rank
    typical_ratio = 0.0
    if share > 0:
        typical_ratio = TYPICAL_TRANSITION * _largest_transition(share) / np.sqrt(share)
    spectra = []
    # sum(v² - v⁴) over sum(v²): typically, at least and at most. The error bar gives the size of
    # both.
    for ratio in (min(typical_ratio, 1.0), 0.0, 1.0):
        error_of_unit = scatter(n_samples, n_functions, Spectrum(1.0, ratio))
        sum_of_squares = float((error / error_of_unit) ** 2)
        spectra.append(Spectrum(sum_of_squares, ratio * sum_of_squares))
    return Forecast(pilot.basis, pilot.rank, unexplained, tuple(spectra))


def scatter(n_samples: int, n_functions: int, spectrum: Spectrum) -> float:
    """Return the standard error of the total for a device with these sums over v."""
    first_order = 2 * spectrum.transition / n_samples
    second_order = 2 * n_functions * spectrum.sum_of_squares / (n_samples - n_functions) ** 2
    return float(np.sqrt(first_order + second_order))


def _largest_transition(share: float) -> float:
    """Return the largest sum(v² - v⁴) over sum(v) for a mean of v of `share`.

    It lies on the concave hull of v² - v⁴.
    """
    return 2 / np.sqrt(27) if share < 1 / np.sqrt(3) else share - share**3
