"""Control variates for sequences: least squares, with each stretch of the samples left out in turn.

A stretch is a group of consecutive samples. Neighbouring samples of a device with memory are not
independent, so formulas for independent samples do not give the error of an estimate; stretches
that are long against the memory are nearly independent. A fit needs only sums of products over the
samples, so the fits without one stretch each take no further pass. Their differences give the
errors, and the bias to subtract (jackknife).
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

from .._arrays import array_namespace, invert_triangle, to_library_of, to_numpy
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
from ..samples import Samples
from ..typing import Floats, Integers
from ._evidence import Evidence
from ._fit import (
    MIN_SAMPLE_MARGIN,
    ControlSums,
    control_sums,
    iterate_pieces,
    whitening_from_gram,
)
from ._method import Estimate

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


@dataclass(frozen=True, eq=False)
class _StretchCapacities:
    """Capacities of the controls from all samples, and without each stretch (jackknife).

    The noise of a fit with M controls falls as 1 / (N - M) for N samples. The usual jackknife
    supposes 1 / N, but leaving out samples changes such a fit more. The factor (N - M) / N corrects
    for this.
    """

    of_all: Floats  # (controls,)
    without: Floats  # (stretches, controls)
    free_fraction: float  # (N - M) / N

    def corrected(self) -> Floats:
        """Return the capacities without their bias, (controls,)."""
        change = self.of_all - self.without.mean(axis=0)
        return self.of_all + (len(self.without) * self.free_fraction - 1) * change

    def standard_error(self) -> Floats:
        """Return the standard errors to first order, (controls,)."""
        n_stretches = len(self.without)
        scale = student_widening(n_stretches) * np.sqrt(n_stretches - 1)
        return scale * np.sqrt(self.free_fraction) * self.without.std(axis=0)


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
    return StretchFits(of_all, fits_without)


def _fit_without(whole: ControlSums, stretch: ControlSums) -> LeastSquares | None:
    return fit_least_squares(whole.without(stretch))


def estimate_sequence(evidence: Evidence, false_discovery_rate: float) -> Estimate | None:
    """Return capacities free of bias to second order, from fits without each of 24 stretches.

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

    capacities = _StretchCapacities(
        of_all=fits.of_all.capacities(),
        without=np.array([fit.capacities() for fit in fits.without]),
        free_fraction=1 - len(controls) / evidence.n_samples,
    )
    capacity = capacities.of_all[reported]
    corrected = capacities.corrected()
    unbiased = corrected[reported]

    whitening = fits.of_all.whitening
    covariance = whitening.T @ fits.of_all.residual_covariance @ whitening
    n_directions = effective_directions(covariance)
    null_capacity = _null_capacities(evidence, controls, fits.of_all)[reported]
    p_value = scipy.special.chdtrc(
        n_directions, n_directions * capacity / np.maximum(null_capacity, SMALLEST_DIVISOR)
    )

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

    capacity_beyond = float(corrected[further].sum())
    error_beyond = jackknife_error_of_stretches(capacities.without[:, further].sum(axis=1))
    without_stretches = capacities.without[:, reported]
    checks = [
        *short_stretches(evidence),
        *_short_window(unbiased, capacity_beyond, error_beyond),
        *_stretches_that_disagree(
            _relative_scatter(fits, reported, null_capacity, evidence.n_samples)
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


def _null_capacities(evidence: Evidence, controls: DelayedBasis, fit: LeastSquares) -> Floats:
    """Return the mean estimate of each control's capacity under the null hypothesis, (controls,).

    The null hypothesis is that its true capacity is zero.
    """
    samples = replace(evidence.samples, basis=controls)
    sum_squares = partial(
        _residual_squares, c=fit.c, whitening_of_gram=fit.whitening, **evidence.whitener
    )
    residual_squares, power = evidence.engine.fold(samples, sum_squares)
    null_capacity: Floats = residual_squares / power**2
    return null_capacity


def _residual_squares(
    samples: Samples, start: int, stop: int, *, c: Any, whitening_of_gram: Floats, **whitener: Any
) -> Floats:
    """Return the sums over some rows of y² |e|² and of y², for residuals e where G = 1: (2, terms).

    Rows with leverage h = |y|² / N have residuals that are too small, and fits that scatter more,
    by 1 - h each.
    """
    total = np.zeros((2, len(samples.basis)))
    for piece in iterate_pieces(samples, start, stop, samples.basis, **whitener):
        y = piece.phi
        z = piece.z
        xp = array_namespace(z)
        e = (z - y.T @ to_library_of(c, z)) @ to_library_of(whitening_of_gram, z)
        square = y * y
        leverage = xp.sum(square, axis=0) / samples.n_total
        margin = xp.clip(1 - leverage, MIN_SAMPLE_MARGIN, None)
        e_power = xp.sum(e * e, axis=1) / margin**2
        total += to_numpy(xp.stack([square @ e_power, xp.sum(square, axis=1)]))
    return total


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
