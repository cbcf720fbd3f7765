"""Control variates for sequences: least squares, with each stretch of the samples left out in turn.

Neighbouring samples of a device with memory are not independent, so no formula for single samples
tells how far an estimate scatters; stretches that are long against the memory are nearly
independent. All that a fit needs of a stretch are sums of products. So leaving out each in turn
takes no further pass, and removes the bias as well (jackknife).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import numpy as np
import scipy

from .._arrays import array_namespace, invert_triangle, to_library_of, to_numpy
from .._threads import parallel_map
from ..basis import DelayedBasis
from ..errors import Check
from ..kernels import (
    SMALLEST_DIVISOR,
    benjamini_hochberg,
    jackknife_error_of_stretches,
    triangle_of_gram,
)
from ..samples import Samples
from ..typing import Floats
from ._evidence import Evidence
from ._fit import MIN_SAMPLE_MARGIN, Products, inverse_root, iterate_pieces, products
from ._method import Estimate

# Samples per function from which on least squares is safe; with fewer, leaving out a stretch
# changes the fit too much.
MIN_SAMPLES_PER_CONTROL = 8
# Controls per reported function: what a device remembers beyond the functions scatters totals and
# biases them; twice as many controls halved that bias.
CONTROLS_PER_FUNCTION = 2
# Products of samples and squared controls beyond which the fit takes minutes, and the bias is small
# against the rest: then a few further controls tell whether the window is too short.
MAX_FIT_OPERATIONS = 5e10
# Bytes of the sums of all stretches that are kept together; with more the data are gone through
# twice.
STRETCH_BYTES = 500_000_000
# Share of the memory limit, where there is one, that these sums may take.
MEMORY_SHARE_OF_STRETCHES = 4
# A capacity below this is rounding.
ROUNDING = 1e-7
# Length of a stretch, in units of the memory, from which on stretches are nearly independent.
MIN_STRETCH_TO_MEMORY = 2
# Variance of coefficients from stretch to stretch, relative to that of independent samples, above
# which the device is not the same all the time: at most 1.5 in the systems of
# benchmarks/sequences.py, 3.6 for a gain that grows tenfold.
MAX_STRETCH_SCATTER = 2.0
# Standard errors, and share of the total, from which on capacity beyond the delays of the basis is
# worth a warning.
MIN_STANDARD_ERRORS_BEYOND = 4.0
MIN_SHARE_BEYOND = 0.01


class LeastSquares(NamedTuple):
    """A fit of the readouts by least squares."""

    c: Floats  # coefficients, (controls, rank)
    residual_covariance: Floats  # (rank, rank)
    gram: Floats  # G that follows, (rank, rank)


def fit_least_squares(sums: Products) -> LeastSquares | None:
    """Fit the readouts by the controls.

    None where some controls are the same on these samples, as functions of binary inputs may be.
    """
    triangle = triangle_of_gram(sums.controls)
    if not np.isfinite(to_numpy(triangle[-1, -1])):
        return None
    inverse = invert_triangle(triangle)
    c = inverse @ (inverse.T @ sums.cross)
    n_free = sums.count - c.shape[0]
    covariance = to_numpy(sums.readouts - sums.cross.T @ c) / n_free
    # The squares of coefficients hold their noise: that much of the residual is not missing in G.
    noise_of_c = float(array_namespace(inverse).sum(inverse**2))
    gram = to_numpy(c.T @ c) + covariance * (1 - noise_of_c)
    return LeastSquares(to_numpy(c), covariance, gram)


def _fitted_without(whole: Products, stretch: Products) -> LeastSquares | None:
    """Fit all samples but those of a stretch."""
    rest = Products(
        controls=whole.controls - stretch.controls,
        cross=whole.cross - stretch.cross,
        readouts=whole.readouts - stretch.readouts,
        count=whole.count - stretch.count,
    )
    return fit_least_squares(rest)


def _residual_squares(
    samples: Samples, start: int, stop: int, *, c: Any, root: Floats, **whitener: Any
) -> Floats:
    """Return the sums over some rows of y² |e|² and of y², for residuals e where G = 1: (2, terms).

    Rows with leverage h = |y|² / N have residuals that are too small, and fits that scatter more,
    by 1 - h each.
    """
    total = np.zeros((2, len(samples.basis)))
    for piece in iterate_pieces(samples, start, stop, samples.basis, **whitener):
        phi = piece.values
        z = piece.readouts
        xp = array_namespace(z)
        e = (z - phi.T @ to_library_of(c, z)) @ to_library_of(root, z)
        square = phi * phi
        leverage = xp.sum(square, axis=0) / samples.n_total
        margin = xp.clip(1 - leverage, MIN_SAMPLE_MARGIN, None)
        e_power = xp.sum(e * e, axis=1) / margin**2
        total += to_numpy(xp.stack([square @ e_power, xp.sum(square, axis=1)]))
    return total


def leave_out(evidence: Evidence, controls: DelayedBasis) -> list[LeastSquares | None]:
    """Return the fit of all samples, then the fits without each stretch."""
    samples = replace(evidence.samples, basis=controls)
    engine = evidence.engine
    edges = evidence.group_edges.tolist()
    sum_products = partial(products, **evidence.whitener)
    allowed_bytes = STRETCH_BYTES
    if engine.memory_limit is not None:
        allowed_bytes = min(allowed_bytes, engine.memory_limit // MEMORY_SHARE_OF_STRETCHES)
    if 8 * len(controls) ** 2 * len(edges) < allowed_bytes:
        stretches: list[Products] = engine.fold(samples, sum_products, edges=edges)
        whole = reduce(add, stretches)
        return [fit_least_squares(whole), *parallel_map(partial(_fitted_without, whole), stretches)]
    whole = engine.fold(samples, sum_products)
    fits = [fit_least_squares(whole)]
    for rows in pairwise(edges):
        (stretch,) = engine.fold(samples, sum_products, edges=rows)
        fits.append(_fitted_without(whole, stretch))
    return fits


def jackknifed(evidence: Evidence, false_discovery_rate: float) -> Estimate | None:
    """Return capacities free of bias to second order, from fits without each of 24 stretches.

    P-values need no stretches: functions of independent inputs are white, so those without capacity
    scatter as if samples were independent. Functions beyond those reported serve as controls, and
    tell what a longer window would hold. None where samples are too few for least squares.
    """
    n = evidence.n_samples
    basis = evidence.basis
    most = n // MIN_SAMPLES_PER_CONTROL
    if not isinstance(basis, DelayedBasis) or len(basis) > most:
        return None
    n_controls = CONTROLS_PER_FUNCTION * len(basis)
    if n * n_controls**2 > MAX_FIT_OPERATIONS:
        n_controls = len(basis) + basis.memory
    controls = basis.extended(min(most, n_controls), memory=evidence.samples.history)
    all_fits = leave_out(evidence, controls)
    fits = [fit for fit in all_fits if fit is not None]
    if len(fits) < len(all_fits):
        return None
    places = basis.positions_in(controls)
    whole, *without = fits
    count = len(without)
    root, _ = inverse_root(whole.gram)
    coordinates = whole.c @ root
    covariance = root.T @ whole.residual_covariance @ root

    # Capacities of all samples and without each stretch, corrected by the jackknife. Noise of a fit
    # falls as 1 / (N - M) for M controls: so much more than 1 / N do samples left out change.
    capacity = np.sum(coordinates**2, axis=1)
    capacities_without = np.array(
        [np.sum((fit.c @ inverse_root(fit.gram)[0]) ** 2, axis=1) for fit in without]
    )
    free = 1 - len(controls) / n
    corrected = capacity + (count * free - 1) * (capacity - capacities_without.mean(axis=0))

    # The expected capacity of functions that have none, and how far coefficients really scatter.
    sum_squares = partial(_residual_squares, c=whole.c, root=root, **evidence.whitener)
    samples = replace(evidence.samples, basis=controls)
    squares, power = evidence.engine.fold(samples, sum_squares)
    null = (squares / power**2)[places]
    coefficients_without = np.array([fit.c[places] @ root for fit in without])
    spread = (count - 1) * free * np.sum(np.var(coefficients_without, axis=0), axis=1)
    reported = capacity[places]
    expected_spread = max(float(reported[1:] @ null[1:]), ROUNDING / n)
    scatter = float(reported[1:] @ spread[1:]) / expected_spread

    freedom = np.trace(covariance) ** 2 / max(float(np.sum(covariance**2)), SMALLEST_DIVISOR)
    p = scipy.special.chdtrc(freedom, freedom * reported / np.maximum(null, SMALLEST_DIVISOR))
    unbiased = corrected[places]
    # Student's factor for few stretches, with which 1.96 standard errors make a 95 % interval.
    scale = float(scipy.special.stdtrit(count - 1, 0.975)) / 1.96 * np.sqrt(count - 1)
    error = scale * np.sqrt(free) * capacities_without[:, places].std(axis=0)
    # Squares of noise scatter about their mean: what the jackknife sees of that is too little near
    # zero.
    error = np.sqrt(error**2 + 2 * np.abs(reported - unbiased) * null / freedom)
    if evidence.samples.constant:
        unbiased[0] = 1.0
        error[0] = 0.0
        p[0] = 0.0
    is_clear = benjamini_hochberg(p, false_discovery_rate) & (unbiased > ROUNDING)

    places_beyond = np.setdiff1d(np.arange(len(controls)), places)
    beyond = float(corrected[places_beyond].sum())
    beyond_error = jackknife_error_of_stretches(capacities_without[:, places_beyond].sum(axis=1))
    checks = [
        *short_stretches(evidence),
        *_short_window(unbiased, beyond, beyond_error),
        *_stretches_that_disagree(scatter),
    ]
    return Estimate(
        np.where(is_clear, np.clip(unbiased, 0.0, 1.0), 0.0),
        unbiased=unbiased,
        standard_error=error,
        p_value=p,
        total=float(np.clip(unbiased.sum(), 0.0, evidence.rank)),
        total_standard_error=jackknife_error_of_stretches(
            capacities_without[:, places].sum(axis=1)
        ),
        checks=tuple(checks),
        coordinates=(coordinates[places].T,),
        residual_covariance=covariance,
        without_stretches=capacities_without[:, places],
    )


def short_stretches(evidence: Evidence) -> Iterator[Check]:
    """Warn where stretches are too short to be independent of each other."""
    n = evidence.n_samples
    memory = evidence.basis.memory
    n_stretches = len(evidence.group_edges) - 1
    wanted = MIN_STRETCH_TO_MEMORY * memory * n_stretches
    if n < wanted:
        yield Check(
            f"{n} samples make {n_stretches} stretches shorter than {MIN_STRETCH_TO_MEMORY} times "
            f"the largest delay, {memory}: error bars may be too short; take at least {wanted} "
            "samples.",
            unreliable=f"few samples for delays up to {memory}",
            wanted=wanted,
        )


def _short_window(unbiased: Floats, beyond: float, error: float) -> Iterator[Check]:
    """Warn where functions beyond those of the basis hold capacity."""
    if beyond > MIN_STANDARD_ERRORS_BEYOND * error and beyond > MIN_SHARE_BEYOND * unbiased.sum():
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
