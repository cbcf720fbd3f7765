"""How well a total will be known from N samples, before they are measured.

docs/howto/choose-n.md has the derivation.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._validation import (
    checks_arguments,
    require_number,
    require_positive,
    require_type,
    require_whole_number,
    shown,
)
from ..basis import ProductBasis
from ..designs import MAX_FOURTH_MOMENT_PER_SAMPLE
from ..errors import DataError, ParameterError
from ..estimators import DEFAULT_METHOD, N_STRETCHES
from ..kernels import (
    SMALLEST_DIVISOR,
    effective_directions,
    normal_fourth_power_ratio,
    student_widening,
)
from ..result import CapacityResult
from ..typing import Floats

# More samples than this are not recommended: a lower degree or less noise helps sooner.
MAX_SAMPLES = 2**24
# With fewer samples per function, error bars are several times too long (docs/howto/choose-n.md).
RECOMMENDED_SAMPLES_PER_FUNCTION = 4
# With fewer samples per function, the total is a sum of what is shown, and no formula holds.
MIN_SAMPLES_PER_FUNCTION = 2
# With fewer samples per readout, the covariance of the readouts is not known well enough to divide
# by.
MIN_SAMPLES_PER_READOUT = 4
# Samples of a pilot per function. With half of them, the influence of single samples on the total
# is taken for 2 to 5 times too large.
PILOT_SAMPLES_PER_FUNCTION = 8
# The stretches from whose differences errors of sequences come are so many times the largest delay
# in a pilot. With half of that, error bars of a delay reservoir were twice too long.
PILOT_STRETCH_TO_MEMORY = 4
# Where the largest E[y^4] exceeds this, few samples decide.
LARGE_FOURTH_MOMENT = 100.0
# The scatter exceeds that of normal residuals by at most this factor. Of the devices of
# benchmarks/choosing.py only one with garbage among its shots needs more.
MAX_SCATTER_RATIO = 2.8
# A pilot's measured influence of single samples is up to twice too large, and that of normal
# residuals up to five times too small, so most is given to the former: the power of its variance in
# a geometric mean (chosen on ten devices of benchmarks/choosing.py).
WEIGHT_OF_MEASURED_INFLUENCE = 0.75
# A jackknife over stretches counts scatter that falls as 1 / N² twice.
SECOND_ORDER_IN_JACKKNIFE = 2.0
# The error lies between these multiples of the one that is foreseen from a pilot
# (benchmarks/choosing.py).
PILOT_RANGE = (0.5, 1.5)
# Of the bias that is taken off, LΣv / (N - L), the part S_N / (K N) is what the next term of its
# series brings, and half of that is typical of what remains (docs/estimators.md). S_N / K is the
# mean of |z|⁴ over K, which is K + 2 for normal readouts. Without a pilot, twice K is typical, and
# four times K the most.
FRACTION_OF_UNREMOVED_BIAS = 0.5
TYPICAL_LEVERAGE_PER_READOUT = 2.0
MAX_LEVERAGE_PER_READOUT = 4.0
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
        The range that devices span; from a pilot, half and one and a half times the typical error.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=5, max_degree=8)
    >>> expected = forecast(basis, 71).at(8192)
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


class RareNoise(NamedTuple):
    """Noise that few samples carry, as a pilot shows it.

    It is known as well as normal noise of so many samples would be: far worse than the number of
    all samples says, and not at all where they are no more than the directions of the noise.
    """

    samples_per_carrier: float  # all samples over those that carry the noise
    n_directions: float  # of the noise
    most: float  # N times the variance of the total that the pilot's error bar stands for

    def first_order(self, n_samples: int, asymptotic: float) -> float:
        """Return the part of the total's variance that falls as 1/N when carriers are many.

        The inverse of a covariance that n normal samples give scatters by (n / (n - ν))³ times the
        variance that it has for many, with ν directions (inverse Wishart distribution).

        Parameters
        ----------
        n_samples
            The number of samples.
        asymptotic
            N times the variance with many carriers.
        """
        n_carriers = n_samples / self.samples_per_carrier
        if n_carriers <= self.n_directions:
            return self.most / n_samples
        widening = (n_carriers / (n_carriers - self.n_directions)) ** 3
        return min(widening * asymptotic, self.most) / n_samples


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
        Sums over v that devices may have, the first of them typical; from a pilot that of its
        device.
    leverage
        S_N / K, how much single samples weigh: a typical number, or that of the pilot.
    is_from_pilot
        Whether the numbers are those of a pilot of the same device.
    factor
        By how much the error of this device is larger than the formulas say, according to the error
        bar of its pilot.
    rare_noise
        The noise of a pilot whose total rests on few samples; None for others.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=5, max_degree=8)
    >>> expected = forecast(basis, 71, unexplained=0.2)
    >>> [expected.samples_needed(error) for error in (1.0, 0.5, 0.1)]
    [8192, 8192, 16384]
    """

    basis: ProductBasis
    maximum: int
    unexplained: float
    spectra: tuple[Spectrum, ...]
    leverage: float
    is_from_pilot: bool = False
    factor: float = 1.0
    rare_noise: RareNoise | None = None

    @checks_arguments
    def at(self, n_samples: int) -> ExpectedError:
        """Return the expected error of the total.

        Parameters
        ----------
        n_samples
            The number of samples.
        """
        n_samples = require_whole_number("n_samples", n_samples, 1)
        n_functions = len(self.basis)
        if n_samples < self.min_samples:
            raise ParameterError(
                f"`n_samples={n_samples}` is fewer than {self.min_samples}, "
                f"{MIN_SAMPLES_PER_FUNCTION} for each of {n_functions} functions and "
                f"{MIN_SAMPLES_PER_READOUT} for each of {self.maximum - 1} readouts and the "
                "constant; the error of the total cannot be foreseen there. Take more samples, or "
                "lower the degree."
            )
        if self.is_from_pilot:
            typical = self.factor * self._error_by_formulas(n_samples)
            low, high = (multiple * typical for multiple in PILOT_RANGE)
            return ExpectedError(n_samples, typical, low, high)
        errors = [scatter(n_samples, n_functions, spectrum) for spectrum in self.spectra]
        bias = self._bias(n_samples)
        third_order = self._third_order(n_samples)
        most_third_order = third_order * MAX_LEVERAGE_PER_READOUT / TYPICAL_LEVERAGE_PER_READOUT
        typical_terms = [errors[0], TYPICAL_REMAINING_BIAS * bias, third_order]
        largest_terms = [
            MAX_SCATTER_RATIO * max(errors),
            MAX_REMAINING_BIAS * bias,
            most_third_order,
        ]
        return ExpectedError(
            n_samples,
            typical=float(np.linalg.norm(typical_terms)),
            low=min(errors),
            high=float(np.linalg.norm(largest_terms)),
        )

    def _bias(self, n_samples: int) -> float:
        """Return the bias of the total before it is taken off."""
        n_functions = len(self.basis)
        return n_functions * self.unexplained / (n_samples - n_functions)

    def _third_order(self, n_samples: int) -> float:
        """Return what typically remains of the bias."""
        return FRACTION_OF_UNREMOVED_BIAS * self.leverage / n_samples * self._bias(n_samples)

    def _error_by_formulas(self, n_samples: int) -> float:
        """Return the error of a typical device, or of that of the pilot."""
        spectrum = self.spectra[0]
        error = scatter(n_samples, len(self.basis), spectrum)
        if self.rare_noise is not None:
            first_order = self.rare_noise.first_order(n_samples, 2 * spectrum.transition)
            second_order = scatter(n_samples, len(self.basis), spectrum._replace(transition=0.0))
            error = float(np.sqrt(first_order + second_order**2))
        return float(np.hypot(error, self._third_order(n_samples)))

    @checks_arguments
    def samples_needed(self, error: float) -> int:
        """Return the smallest power of two that is enough samples.

        It is also enough for a device at the high end of the range.

        Parameters
        ----------
        error
            The largest root mean square error of the total that is allowed.
        """
        n_samples = self._smallest_power_of_two(error, "high")
        if n_samples is None:
            raise self._too_many(error, self.at(MAX_SAMPLES).high)
        return n_samples

    @checks_arguments
    def range_needed(self, error: float) -> tuple[int, int | None]:
        """Return the powers of two that are enough for devices at the low end, and for all.

        The second is None where that would be more than `MAX_SAMPLES`.

        Parameters
        ----------
        error
            The largest root mean square error of the total that is allowed.

        Examples
        --------
        >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=14)
        >>> forecast(basis, 71).range_needed(0.2)
        (512, 8192)
        """
        fewest = self._smallest_power_of_two(error, "low")
        if fewest is None:
            raise self._too_many(error, self.at(MAX_SAMPLES).low)
        return fewest, self._smallest_power_of_two(error, "high")

    def _smallest_power_of_two(self, error: float, end: str) -> int | None:
        """Return how many samples are enough at one end of the range, "low" or "high"."""
        require_positive("error", error)
        min_samples = self.least_samples
        if min_samples > MAX_SAMPLES:
            raise ParameterError(
                f"a function has E[y^4] = {self.basis.fourth_moments.max():.2g}, so a few samples "
                f"would decide its capacity, and at least {min_samples:,} samples are needed, "
                "whatever error is asked for. Lower the degree, or use draw_weighted."
            )
        for power in range((min_samples - 1).bit_length(), MAX_SAMPLES.bit_length()):
            if getattr(self.at(2**power), end) <= error:
                return 2**power
        return None

    def _too_many(self, error: float, left: float) -> ParameterError:
        return ParameterError(
            f"error={error:g} would take more than {MAX_SAMPLES:,} samples, which may leave "
            f"{left:.2g}; allow a larger error, a lower degree or less noise."
        )

    @property
    def min_samples(self) -> int:
        """With fewer, nothing can be said about the error."""
        for_functions = MIN_SAMPLES_PER_FUNCTION * len(self.basis)
        for_readouts = MIN_SAMPLES_PER_READOUT * self.maximum
        return max(for_functions, for_readouts)

    @property
    def pilot_samples(self) -> int:
        """A power of two, from which on a pilot foretells the error of more samples."""
        n_samples, _ = self._most_of_pilot
        return 1 << (n_samples - 1).bit_length()

    @property
    def reason_for_pilot_samples(self) -> str:
        """Why a pilot has no fewer samples, in words."""
        _, reason = self._most_of_pilot
        return reason

    @property
    def _most_of_pilot(self) -> tuple[int, str]:
        """The largest of the numbers of samples that a pilot needs, with the reason."""
        return max(
            (
                PILOT_SAMPLES_PER_FUNCTION * len(self.basis),
                f"{PILOT_SAMPLES_PER_FUNCTION} for each function",
            ),
            (
                MIN_SAMPLES_PER_READOUT * self.maximum,
                f"{MIN_SAMPLES_PER_READOUT} for each readout",
            ),
            (
                PILOT_STRETCH_TO_MEMORY * N_STRETCHES * self.basis.memory,
                f"{PILOT_STRETCH_TO_MEMORY * N_STRETCHES} for each step of the delay",
            ),
        )

    @property
    def least_samples(self) -> int:
        """Below this many, error bars do not hold, whatever their size."""
        for_functions = RECOMMENDED_SAMPLES_PER_FUNCTION * len(self.basis)
        n_samples = max(for_functions, MIN_SAMPLES_PER_READOUT * self.maximum)
        fourth_moment = float(self.basis.fourth_moments.max())
        if fourth_moment > LARGE_FOURTH_MOMENT:
            n_samples = max(n_samples, int(np.ceil(fourth_moment / MAX_FOURTH_MOMENT_PER_SAMPLE)))
        return n_samples


@checks_arguments
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
    >>> basis = infocap.product_basis("legendre", n_inputs=5, max_degree=8)
    >>> forecast(basis, 71).samples_needed(0.5)
    8192
    """
    maximum = require_whole_number("n_readouts", n_readouts, 1) + 1
    share = require_number("unexplained", unexplained, 0.0)
    if share > 1:
        raise ParameterError(
            f"`unexplained={shown(unexplained)}` is a share of the readouts; give 0 to 1."
        )
    # A typical device, one with equal v, and one with the largest possible sum(v² - v⁴), for a
    # total of 1.
    capacity = share * maximum
    largest = capacity * _largest_transition(share)
    typical = Spectrum(capacity * np.sqrt(share), TYPICAL_TRANSITION * largest)
    equal = Spectrum(capacity * share, 0.0)
    extreme = Spectrum(capacity, largest)
    leverage = TYPICAL_LEVERAGE_PER_READOUT * maximum
    return Forecast(basis, maximum, capacity, (typical, equal, extreme), leverage)


@checks_arguments
def forecast_from(pilot: CapacityResult) -> Forecast:
    """Return the error to expect from more samples of a device that was measured with few.

    The residuals of the pilot's fit say how large sum(v²) and sum(v² - v⁴) are, and how much single
    samples change the total; for a sequence, in which neighbours are not independent, its error bar
    says the latter. Where the pilot's error bar is longer than what follows from these, the
    geometric mean of both is foreseen. Where few samples carry the noise, their number decides, and
    the error bar is the most that is foreseen. Of a result from a table or a page, which hold no
    residuals, the error bar is taken apart as that of a typical device.

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
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=6)
    >>> pilot = infocap.probe(system, basis, 512, seed=1)
    >>> forecast_from(pilot).samples_needed(0.05)
    4096
    """
    require_type("pilot", pilot, CapacityResult, "infocap.estimate(...)")
    error = pilot.total_standard_error
    if pilot.method != DEFAULT_METHOD or error is None:
        raise DataError(
            f"the pilot was estimated by {pilot.method!r}; an error bar is needed: take "
            f"{DEFAULT_METHOD!r}."
        )
    n_functions = len(pilot.basis)
    min_samples = MIN_SAMPLES_PER_FUNCTION * n_functions
    if pilot.n_samples < min_samples:
        raise DataError(
            f"the pilot has {pilot.n_samples} samples for {n_functions} functions; its error bar "
            f"holds from {min_samples} samples on. Estimate it with a lower degree, or measure "
            "more."
        )
    if pilot.residual_covariance is None:
        return _forecast_from_error_bar(pilot, error)
    # The share of each direction that the fit leaves; rounding may bring it below zero.
    v = np.clip(np.linalg.eigvalsh(pilot.residual_covariance), 0.0, None)
    # The error bar of a sequence holds what is of third order.
    leverage = 0.0
    if pilot.leverage_ratio is not None:
        leverage = pilot.leverage_ratio * pilot.n_samples
    n_carriers = _samples_that_carry_the_noise(pilot)
    if n_carriers is None:
        spectrum = _spectrum_of_residuals(pilot, v, error)
        rare_noise = None
    else:
        spectrum, rare_noise = _spectrum_of_rare_noise(pilot, v, n_carriers, error)
    by_formulas = Forecast(
        pilot.basis,
        pilot.rank,
        unexplained=float(v.sum()),
        spectra=(spectrum,),
        leverage=leverage,
        is_from_pilot=True,
        rare_noise=rare_noise,
    )
    if pilot.influence_variance is None or rare_noise is not None:
        return by_formulas
    # The error bar also counts what the choice of the fit adds, which is much where functions
    # beyond the basis are the larger part of what is unexplained; there it is somewhat long.
    excess = error / max(by_formulas._error_by_formulas(pilot.n_samples), SMALLEST_DIVISOR)
    return replace(by_formulas, factor=max(excess, 1.0) ** 0.5)


def _samples_that_carry_the_noise(pilot: CapacityResult) -> float | None:
    """Return how many samples the total of a pilot rests on, if these are few; else None.

    Of a sequence nothing is said, because its error bar knows what neighbours share.
    """
    if pilot.influence_variance is None:
        return None
    for check in pilot.warnings:
        if "effective_samples" in check.found:
            return float(check.found["effective_samples"])
    return None


def _spectrum_of_rare_noise(
    pilot: CapacityResult, v: Floats, n_carriers: float, error: float
) -> tuple[Spectrum, RareNoise]:
    """Return the sums over v of a pilot whose noise few samples carry, and what these limit.

    So few samples tell directions apart that are alike: their noise adds sum(v)² / n to sum(v²) for
    n carriers. This is taken off by drawing all v nearer to their mean.
    """
    old_ratio = normal_fourth_power_ratio(effective_directions(np.diag(v)))
    mean = float(v.mean())
    of_equal_v = len(v) * mean**2
    excess = float(np.sum(v**2)) - of_equal_v
    excess_without_noise = max(excess - float(v.sum()) ** 2 / n_carriers, 0.0)
    drawn_nearer = np.sqrt(excess_without_noise / max(excess, SMALLEST_DIVISOR))
    v = np.clip(mean + drawn_nearer * (v - mean), 0.0, 1.0)

    # The number of carriers was found as if the noise had the directions of the pilot's residuals.
    n_directions = effective_directions(np.diag(v))
    n_carriers *= normal_fourth_power_ratio(n_directions) / old_ratio
    samples_per_carrier = max(pilot.n_samples / n_carriers, 1.0)

    # Products of two residuals are as large as these are rare; those of a residual and the fit are
    # not.
    of_residuals = 2 * float(np.sum(v**2 * (1 - v) ** 2))
    of_fit_and_residuals = 4 * float(np.sum(v**3 * (1 - v)))
    first_order = samples_per_carrier * of_residuals + of_fit_and_residuals
    spectrum = Spectrum(float(np.sum(v**2)), first_order / 2)
    most = max(pilot.n_samples * error**2, first_order)
    return spectrum, RareNoise(samples_per_carrier, n_directions, most)


def _spectrum_of_residuals(pilot: CapacityResult, v: Floats, error: float) -> Spectrum:
    """Return the sums over v of a pilot, from the residuals of its fit."""
    n_samples = pilot.n_samples
    # The noise of N residuals adds sum(v)² / N to sum(v²), which is never below that of equal v.
    sum_of_v = float(v.sum())
    sum_of_squares = float(np.sum(v**2)) - sum_of_v**2 / n_samples
    sum_of_squares = max(sum_of_squares, sum_of_v**2 / pilot.rank)

    # N times the variance that falls as 1/N.
    if pilot.influence_variance is None:
        # Neighbours in a sequence are not independent. Its error bar, from stretches, says what
        # they share.
        second_order = scatter(n_samples, len(pilot.basis), Spectrum(sum_of_squares, 0.0))
        jackknife_variance = (error / student_widening(N_STRETCHES)) ** 2
        excess = jackknife_variance - SECOND_ORDER_IN_JACKKNIFE * second_order**2
        first_order = n_samples * max(excess, 0.0)
    else:
        inside = np.clip(v, 0.0, 1.0)
        of_normal_residuals = 2 * float(np.sum(inside**2 - inside**4))
        # The noise of W brings 4 sum(v²) / N into the influence on each function. It is what the
        # second order counts.
        of_weights = 4 * len(pilot.basis) * sum_of_squares / n_samples
        as_measured = max(pilot.influence_variance - of_weights, 0.0)
        weight = WEIGHT_OF_MEASURED_INFLUENCE
        first_order = as_measured**weight * of_normal_residuals ** (1 - weight)
    return Spectrum(sum_of_squares, first_order / 2)


def _forecast_from_error_bar(pilot: CapacityResult, error: float) -> Forecast:
    """Return the forecast for a pilot of which only total and error bar are known."""
    unexplained = max(pilot.rank - pilot.total, 0.0)
    share = unexplained / pilot.rank
    ratio = 0.0
    if share > 0:
        ratio = TYPICAL_TRANSITION * _largest_transition(share) / np.sqrt(share)
    # sum(v² - v⁴) over sum(v²) is typical; the error bar gives the size of both.
    ratio = min(ratio, 1.0)
    error_of_unit = scatter(pilot.n_samples, len(pilot.basis), Spectrum(1.0, ratio))
    sum_of_squares = float((error / error_of_unit) ** 2)
    spectrum = Spectrum(sum_of_squares, ratio * sum_of_squares)
    # The error bar holds what is of third order.
    return Forecast(
        pilot.basis, pilot.rank, unexplained, (spectrum,), leverage=0.0, is_from_pilot=True
    )


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
