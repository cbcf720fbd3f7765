"""Control variates for sequences: least squares, with each stretch of the samples left out in turn.

A stretch is a group of consecutive samples. Neighbouring samples of a device with memory are not
independent, so formulas for independent samples do not give the error of an estimate; stretches
that are long against the memory are nearly independent. A fit needs only sums of products over the
samples, so the fits without one stretch each take no further pass. Their differences give the
errors (jackknife).

The bias comes from single samples left out (`_sequence_noise`), whose residuals may be large where
the functions are, or from the stretches where that is more: neighbours that share their noise add
to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import scipy

from .._arrays import array_namespace, invert_triangle, to_numpy
from .._threads import parallel_map
from ..basis import DelayedBasis
from ..errors import Check
from ..kernels import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    effective_directions,
    jackknife_error_of_stretches,
    student_widening,
    triangle_of_gram,
)
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import ControlSums, control_sums, whitening_from_gram
from ._method import Estimate
from ._sequence_noise import SampleFit, SampleNoise, noise_of_samples

# Samples per function from which on least squares is safe; with fewer, leaving out a stretch
# changes the fit too much.
MIN_SAMPLES_PER_CONTROL = 8
# Controls per reported function. Memory of the device that no control describes adds scatter and
# bias to the total; twice as many controls as functions halved that bias.
CONTROLS_PER_FUNCTION = 2
# Number of samples times squared number of controls beyond which the fit takes minutes. The bias is
# then small anyway, and a few further controls suffice to see whether the delays are too short.
MAX_FIT_OPERATIONS = 5e10
# Bytes of the sums of all stretches that are kept together. With more, the samples are gone through
# a second time, stretch by stretch.
MAX_BYTES_OF_STRETCH_SUMS = 500_000_000
# Fraction of the memory limit, where there is one, that these sums may take.
MEMORY_FRACTION_OF_STRETCH_SUMS = 1 / 4
# A capacity below this is rounding.
CAPACITY_ROUNDING = 1e-7
# Length of a stretch, in units of the memory, from which on stretches are nearly independent.
MIN_STRETCH_TO_MEMORY = 2
# Variance of coefficients from stretch to stretch, relative to that of independent samples, above
# which the device is not the same all the time: at most 1.5 in the systems of
# benchmarks/sequences.py, 3.6 for a gain that grows tenfold.
MAX_STRETCH_SCATTER = 2.0
# Effective numbers of samples that the error of a total should rest on where the tails of the
# readouts are much heavier, or heavier, than those of normal ones (normality below 1/3 and 2/3).
# With fewer, readouts make rare large excursions, and 10 to 50 % of the totals missed by more than
# their error bars allow. Where only the fit errs at rare inputs, 5 % did, whatever this number
# (benchmarks/sequences.py --excursions).
MIN_EFFECTIVE_SAMPLES_WITH_HEAVY_TAILS = 150.0
MAX_NORMALITY_OF_HEAVY_TAILS = 1 / 3
MIN_EFFECTIVE_SAMPLES = 50.0
MAX_NORMALITY = 2 / 3
# A variance that rests on n samples is widened by the factor 1 + 40 / n: few stretches hold one of
# them, and these differ much from the others.
FEW_SAMPLES_WIDENING = 40.0
# Unexplained part of the rank from which on such a warning is worth the reader's time.
MIN_NOTICEABLE_UNEXPLAINED = 0.01
# Standard errors, and fraction of the total, from which on capacity beyond the delays of the basis
# is worth a warning.
MIN_STANDARD_ERRORS_BEYOND = 4.0
MIN_FRACTION_BEYOND = 0.01


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A fit of the whitened readouts by least squares."""

    c: Floats  # coefficients, (controls, rank)
    residual_covariance: Floats  # (rank, rank)
    gram: Floats  # G that follows, (rank, rank)

    @cached_property
    def whitening(self) -> Floats:
        """G^-1/2, (rank, rank)."""
        whitening: Floats = whitening_from_gram(self.gram)[0]
        return whitening

    def capacities(self) -> Floats:
        """Return the capacity of each control, c'G^-1c, with its bias."""
        return np.sum((self.c @ self.whitening) ** 2, axis=1)


@dataclass(frozen=True, eq=False)
class StretchFits:
    """Fits of all samples, and of all but those of each stretch."""

    of_all: LeastSquares
    without: list[LeastSquares]
    phi_phi_inverse: Any  # of all samples, (controls, controls)


@dataclass(frozen=True, eq=False)
class _StretchCapacities:
    """Capacities of the controls from all samples, and without each stretch (jackknife)."""

    of_all: Floats  # (controls,)
    without: Floats  # (stretches, controls)
    noise: SampleNoise
    free_fraction: float  # (N - M) / N

    def corrected(self, controls: Integers) -> Floats:
        """Return the capacities of some controls without their bias, (controls,).

        The bias is that of single samples. Where the jackknife over stretches finds a larger one in
        the sum, all are raised in proportion: neighbours share some of their noise. Both count the
        fit's own noise twice, so it is subtracted once.
        """
        of_all = self.of_all[controls]
        bias_of_samples = self.noise.bias[controls]
        change = self.without[:, controls].mean(axis=0) - of_all
        bias_of_total_by_stretches = (len(self.without) - 1) * float(change.sum())
        bias_of_total_by_samples = max(float(bias_of_samples.sum()), SMALLEST_DIVISOR)
        shared = max(bias_of_total_by_stretches / bias_of_total_by_samples, 1.0)
        corrected: Floats = of_all - shared * bias_of_samples + self.noise.bias_of_fit[controls]
        return corrected

    def standard_error(self) -> Floats:
        """Return the standard errors to first order, (controls,).

        The noise of a fit with M controls falls as 1 / (N - M) for N samples. The usual jackknife
        supposes 1 / N, but leaving out samples changes such a fit more. The factor (N - M) / N
        corrects for this.
        """
        n_stretches = len(self.without)
        scale = student_widening(n_stretches) * np.sqrt(n_stretches - 1)
        return scale * np.sqrt(self.free_fraction) * self.without.std(axis=0)

    def widened(self) -> Floats:
        """Return the capacities without each stretch, far from their mean, (stretches, ...).

        Where the error rests on few samples, a sequence that happened to miss the large ones has
        too short an error bar.
        """
        mean = self.without.mean(axis=0)
        return mean + few_samples_widening(self.noise.effective_samples) * (self.without - mean)


def fit_least_squares(sums: ControlSums) -> LeastSquares | None:
    """Fit the readouts by the controls.

    None where some controls are the same on these samples, as functions of binary inputs may be.
    """
    triangle = triangle_of_gram(sums.phi_phi)
    if not np.isfinite(to_numpy(triangle[-1, -1])):
        return None
    inverse = invert_triangle(triangle)
    c = inverse @ (inverse.T @ sums.phi_z)
    n_free = sums.count - c.shape[0]
    covariance = to_numpy(sums.z_z - sums.phi_z.T @ c) / n_free
    # The noise of the coefficients makes c'c too large, so less of the residual has to be added to
    # G.
    noise_of_c = float(array_namespace(inverse).sum(inverse**2))
    gram = to_numpy(c.T @ c) + covariance * (1 - noise_of_c)
    return LeastSquares(to_numpy(c), covariance, gram)


def fit_without_stretches(evidence: Evidence, controls: DelayedBasis) -> StretchFits | None:
    """Return the fit of all samples, and the fits without each stretch.

    None where some controls are the same on the samples of one of the fits.
    """
    samples = replace(evidence.samples, basis=controls)
    engine = evidence.engine
    edges = evidence.group_edges.tolist()
    sum_controls = partial(control_sums, **evidence.whitener)
    max_bytes = MAX_BYTES_OF_STRETCH_SUMS
    if engine.memory_limit is not None:
        max_bytes = min(max_bytes, int(engine.memory_limit * MEMORY_FRACTION_OF_STRETCH_SUMS))
    if 8 * len(controls) ** 2 * len(edges) < max_bytes:
        stretches: list[ControlSums] = engine.fold(samples, sum_controls, edges=edges)
        whole = reduce(add, stretches)
        without = list(parallel_map(partial(_fit_without, whole), stretches))
    else:
        whole = engine.fold(samples, sum_controls)
        without = []
        for rows in pairwise(edges):
            (stretch,) = engine.fold(samples, sum_controls, edges=rows)
            without.append(_fit_without(whole, stretch))
    of_all = fit_least_squares(whole)
    fits_without = [fit for fit in without if fit is not None]
    if of_all is None or len(fits_without) < len(without):
        return None
    inverse = invert_triangle(triangle_of_gram(whole.phi_phi))
    return StretchFits(of_all, fits_without, phi_phi_inverse=inverse @ inverse.T)


def _fit_without(whole: ControlSums, stretch: ControlSums) -> LeastSquares | None:
    return fit_least_squares(whole.without(stretch))


def estimate_sequence(evidence: Evidence, false_discovery_rate: float) -> Estimate | None:
    """Return capacities free of bias to second order, with errors from fits without each stretch.

    P-values need no stretches: functions of independent inputs are uncorrelated in time, so
    estimates of those without capacity scatter as if samples were independent. Functions with
    longer delays, or of the next degree, serve as further controls; their capacity shows whether
    the basis reaches far enough back. None where samples are too few for least squares.
    """
    controls = _choose_sequence_controls(evidence)
    if controls is None:
        return None
    fits = fit_without_stretches(evidence, controls)
    if fits is None:
        return None
    reported = evidence.basis.positions_in(controls)
    further = np.setdiff1d(np.arange(len(controls)), reported)

    whitening = fits.of_all.whitening
    covariance = whitening.T @ fits.of_all.residual_covariance @ whitening
    noise = _noise_of_fit(evidence, controls, fits, reported, float(np.trace(covariance)))
    capacities = _StretchCapacities(
        of_all=fits.of_all.capacities(),
        without=np.array([fit.capacities() for fit in fits.without]),
        noise=noise,
        free_fraction=1 - len(controls) / evidence.n_samples,
    )
    capacity = capacities.of_all[reported]
    unbiased = capacities.corrected(reported)

    n_directions = effective_directions(covariance)
    null_capacity = noise.null_capacity[reported]
    p_value = _p_values(capacity, null_capacity, n_directions)
    first_order = capacities.standard_error()[reported]
    # The squared noise scatters about its mean. For capacities near zero the jackknife
    # underestimates this.
    second_order = 2 * np.abs(capacity - unbiased) * null_capacity / n_directions
    error = np.sqrt(first_order**2 + second_order)
    if evidence.samples.constant:
        unbiased[0] = 1.0
        error[0] = 0.0
        p_value[0] = 0.0
    is_clear = benjamini_hochberg(p_value, false_discovery_rate) & (unbiased > CAPACITY_ROUNDING)

    capacity_beyond = float(capacities.corrected(further).sum())
    error_beyond = jackknife_error_of_stretches(capacities.without[:, further].sum(axis=1))
    without_stretches = capacities.widened()[:, reported]
    checks = [
        *short_stretches(evidence),
        *_short_window(unbiased, capacity_beyond, error_beyond),
        *_stretches_that_disagree(
            _relative_scatter(fits, reported, null_capacity, evidence.n_samples)
        ),
        *rare_excursions(
            noise.effective_samples, noise.normality, evidence.rank - float(unbiased.sum())
        ),
    ]
    return Estimate(
        np.where(is_clear, np.clip(unbiased, 0.0, 1.0), 0.0),
        unbiased=unbiased,
        standard_error=error,
        p_value=p_value,
        total=float(np.clip(unbiased.sum(), 0.0, evidence.rank)),
        total_standard_error=jackknife_error_of_stretches(without_stretches.sum(axis=1)),
        checks=tuple(checks),
        coordinates=((fits.of_all.c @ whitening)[reported].T,),
        residual_covariance=covariance,
        without_stretches=without_stretches,
    )


def _p_values(capacity: Floats, null_capacity: Floats, n_directions: float) -> Floats:
    """Return p-values of the null hypothesis that a capacity is zero.

    Then it is `null_capacity` on average, and as many times that as a chi-squared number divided by
    its degrees of freedom, the effective number of directions of the noise.
    """
    ratio = capacity / np.maximum(null_capacity, SMALLEST_DIVISOR)
    p_value: Floats = scipy.special.chdtrc(n_directions, n_directions * ratio)
    return p_value


def _choose_sequence_controls(evidence: Evidence) -> DelayedBasis | None:
    """Return the reported functions and further ones at longer delays.

    None where samples are too few for least squares, or the basis has no delays.
    """
    n = evidence.n_samples
    basis = evidence.basis
    max_controls = n // MIN_SAMPLES_PER_CONTROL
    if not isinstance(basis, DelayedBasis) or len(basis) > max_controls:
        return None
    n_controls = CONTROLS_PER_FUNCTION * len(basis)
    if n * n_controls**2 > MAX_FIT_OPERATIONS:
        n_controls = len(basis) + basis.memory
    return basis.extended(min(max_controls, n_controls), memory=evidence.samples.history)


def _noise_of_fit(
    evidence: Evidence,
    controls: DelayedBasis,
    fits: StretchFits,
    reported: Integers,
    residual_power: float,
) -> SampleNoise:
    """Return what single samples tell about the noise of the fit of all samples."""
    numbers = np.arange(len(controls))
    is_known = (numbers == 0) & evidence.samples.constant
    sample_fit = SampleFit(
        phi_phi_inverse=fits.phi_phi_inverse,
        coefficients=fits.of_all.c,
        whitening=fits.of_all.whitening,
        is_estimated=np.where(is_known, 0.0, 1.0),
        is_reported=np.where(np.isin(numbers, reported), 1.0, 0.0),
    )
    samples = replace(evidence.samples, basis=controls)
    return noise_of_samples(evidence, samples, sample_fit, residual_power)


def _relative_scatter(
    fits: StretchFits, reported: Integers, null_capacity: Floats, n_samples: int
) -> float:
    """Return how much coefficients scatter from stretch to stretch, relative to white noise.

    Both variances are averaged with the capacities as weights, without the constant.
    """
    n_stretches = len(fits.without)
    n_controls = len(fits.of_all.c)
    whitening = fits.of_all.whitening
    white_c_without = np.array([fit.c[reported] @ whitening for fit in fits.without])
    variance = np.sum(np.var(white_c_without, axis=0), axis=1)
    variance *= (n_stretches - 1) * (1 - n_controls / n_samples)
    capacity = fits.of_all.capacities()[reported]
    expected = max(float(capacity[1:] @ null_capacity[1:]), CAPACITY_ROUNDING / n_samples)
    return float(capacity[1:] @ variance[1:]) / expected


def short_stretches(evidence: Evidence) -> Iterator[Check]:
    """Warn where stretches are too short to be independent of each other."""
    n = evidence.n_samples
    memory = evidence.basis.memory
    n_stretches = len(evidence.group_edges) - 1
    n_needed = MIN_STRETCH_TO_MEMORY * memory * n_stretches
    if n < n_needed:
        yield Check(
            f"{n} samples make {n_stretches} stretches shorter than {MIN_STRETCH_TO_MEMORY} times "
            f"the largest delay, {memory}: error bars may be too short; take at least {n_needed} "
            "samples.",
            unreliable=f"few samples for delays up to {memory}",
            wanted=n_needed,
        )


def _short_window(unbiased: Floats, beyond: float, error: float) -> Iterator[Check]:
    """Warn where functions beyond those of the basis hold capacity."""
    if (
        beyond > MIN_STANDARD_ERRORS_BEYOND * error
        and beyond > MIN_FRACTION_BEYOND * unbiased.sum()
    ):
        yield Check(
            "the window is too short: functions beyond it, mostly at longer delays, hold another "
            f"{beyond:.2f} ± {error:.2f}; raise `max_delay` (and the washout with it) to count "
            "them.",
            beyond=beyond,
        )


def _stretches_that_disagree(scatter: float) -> Iterator[Check]:
    """Warn where coefficients differ more between stretches than noise explains."""
    if scatter > MAX_STRETCH_SCATTER:
        yield Check(
            f"stretches of the sequence disagree: their coefficients scatter {scatter:.0f} times "
            "as much as noise explains; use `time_degree=2` if the device drifts, or several runs "
            "if it settles into different states.",
            unreliable="stretches that disagree",
            scatter=scatter,
        )


def few_samples_widening(effective_samples: float) -> float:
    """Return the factor of a total's error bar that rests on few samples of a sequence."""
    return float(np.sqrt(1 + FEW_SAMPLES_WIDENING / max(effective_samples, 1.0)))


def rare_excursions(
    effective_samples: float, normality: float, unexplained: float
) -> Iterator[Check]:
    """Warn where the total's error rests on few samples, those of rare large readouts.

    `unexplained` is the part of the rank beyond the total.
    """
    if normality < MAX_NORMALITY_OF_HEAVY_TAILS:
        is_on_few_samples = effective_samples < MIN_EFFECTIVE_SAMPLES_WITH_HEAVY_TAILS
    else:
        is_on_few_samples = effective_samples < MIN_EFFECTIVE_SAMPLES and normality < MAX_NORMALITY
    if is_on_few_samples and unexplained > MIN_NOTICEABLE_UNEXPLAINED:
        yield Check(
            f"the total's error bar rests on about {effective_samples:.0f} samples, rare large "
            "excursions of the readouts: a sequence that misses some of them gives a total that is "
            "too high; take a longer sequence, or more runs.",
            unreliable=f"it rests on {effective_samples:.0f} samples",
            effective_samples=effective_samples,
        )
