"""Control variates for sequences: least squares, with one stretch of the samples left out at a time.

Neighbouring samples of a device with memory are not independent, so no formula for single samples tells how far an
estimate scatters; stretches that are long against the memory are nearly independent. All that a fit needs of a stretch
are sums of products. So leaving out each in turn takes no further pass, and removes the bias as well (jackknife).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from operator import add, sub
from typing import Any

import numpy as np
import scipy

from .._arrays import array_namespace, as_like, inverse_of_triangle, to_numpy
from .._threads import parallel_map
from ..basis._delayed import DelayedBasis
from ..errors import Check
from ..kernels._summary import TINY, benjamini_hochberg, stretch_error, triangle_of_gram
from ..samples._samples import Samples
from ..typing import Floats
from ._evidence import Evidence
from ._fit import LEAST_MARGIN, Products, inverse_root, pieces, products
from ._method import Estimate

# Samples per function from which least squares is safe; below, what leaving out stretches does to it is too much.
LEAST_SAMPLES = 8
# Controls per function reported: what a device remembers beyond the functions scatters totals and biases them; twice
# as many controls halved that bias. Products of samples and squared controls beyond which it takes minutes, and has
# become small against the rest: then a few controls more tell whether the window is too short.
MORE_CONTROLS, MOST_WORK = 2, 5e10
# Bytes of sums of all stretches that are held together; where there are more, the data are gone through twice.
STRETCH_BYTES = 500_000_000
# A capacity below this is rounding.
ROUNDING = 1e-7
# Stretches should be so many times as long as the memory.
LONG_STRETCH = 2
# Variance of coefficients from stretch to stretch, relative to that of independent samples, from which the device is
# not the same all the time: at most 1.5 in the systems of benchmarks/sequences.py, 3.6 for a gain that grows tenfold.
DISAGREE = 2.0
# Standard errors, and share of the total, from which capacity beyond the delays of the basis is worth a warning.
CLEARLY, WORTH = 4.0, 0.01


def fitted(sums: Products) -> tuple[Floats, Floats, Floats] | None:
    """Coefficients c (controls, rank) by least squares, the covariance of what they leave of the readouts, and G.

    None where some controls are the same on these samples, as functions of binary inputs may be.
    """
    triangle = triangle_of_gram(sums.controls)
    if not np.isfinite(to_numpy(triangle[-1, -1])):
        return None
    inverse = inverse_of_triangle(triangle)
    c = inverse @ (inverse.T @ sums.cross)
    left = to_numpy(sums.readouts - sums.cross.T @ c) / (sums.count - c.shape[0])
    noise = left * (1 - float(array_namespace(inverse).sum(inverse**2)))
    return to_numpy(c), left, to_numpy(c.T @ c) + noise


def _fitted_without(whole: Products, part: Products) -> tuple[Floats, Floats, Floats] | None:
    """The fit of all samples but some."""
    left = map(sub, *([one.controls, one.cross, one.readouts, one.count] for one in (whole, part)))
    return fitted(Products(*left))


def _residual_squares(
    samples: Samples, start: int, stop: int, *, c: Any, root: Floats, **frame: Any
) -> Floats:
    """The sums over some rows of y² |e|² and of y², for the residuals e of a fit in a frame with G = 1: (2, terms).

    Rows with leverage h = |y|² / N have residuals that are too small, and fits that scatter more, by 1 - h each.
    """
    total = np.zeros((2, len(samples.basis)))
    for _, _, phi, z in pieces(samples, start, stop, samples.basis, **frame):
        e = (z - phi.T @ as_like(c, z)) @ as_like(root, z)
        xp, square = array_namespace(e), phi * phi
        margin = xp.clip(1 - xp.sum(square, axis=0) / samples.n_total, LEAST_MARGIN, None)
        total += to_numpy(
            xp.stack([square @ (xp.sum(e * e, axis=1) / margin**2), xp.sum(square, axis=1)])
        )
    return total


def leave_out(
    evidence: Evidence, controls: DelayedBasis
) -> list[tuple[Floats, Floats, Floats] | None]:
    """The fit of all samples, then the fits without each stretch."""
    samples, engine, edges = (
        replace(evidence.samples, basis=controls),
        evidence.engine,
        evidence.group_edges.tolist(),
    )
    work, allowed = partial(products, **evidence.whitener), STRETCH_BYTES
    if engine.memory_limit is not None:
        allowed = min(allowed, engine.memory_limit // 4)
    if 8 * len(controls) ** 2 * len(edges) < allowed:
        stretches: list[Products] = engine.fold(samples, work, edges=edges)
        whole = reduce(add, stretches)
        return [fitted(whole), *parallel_map(partial(_fitted_without, whole), stretches)]
    whole = engine.fold(samples, work)
    parts = (engine.fold(samples, work, edges=both)[0] for both in pairwise(edges))
    return [fitted(whole), *(_fitted_without(whole, part) for part in parts)]


def jackknifed(evidence: Evidence, false_discovery_rate: float) -> Estimate | None:
    """Capacities free of bias to second order and error bars, from fits without each of 24 stretches of a sequence.

    P-values need no stretches: functions of independent inputs are white, so those without capacity scatter as if
    samples were independent. Functions beyond those reported serve as controls, and tell what a longer window would.
    None where samples are too few for least squares.
    """
    n, basis, most = evidence.n_samples, evidence.basis, evidence.n_samples // LEAST_SAMPLES
    if not isinstance(basis, DelayedBasis) or len(basis) > most:
        return None
    wanted = MORE_CONTROLS * len(basis)
    wanted = wanted if n * wanted**2 <= MOST_WORK else len(basis) + basis.memory
    controls = basis.extended(min(most, wanted), memory=evidence.samples.history)
    fits = leave_out(evidence, controls)
    known = [one for one in fits if one is not None]
    if len(known) < len(fits):
        return None
    places, ((c, left, gram), *others) = basis.places(controls), known
    root, _ = inverse_root(gram)
    count, inside, covariance = len(others), c @ root, root.T @ left @ root
    without = np.array(
        [np.sum((one @ inverse_root(metric)[0]) ** 2, axis=1) for one, _, metric in others]
    )
    every = np.sum(inside**2, axis=1)
    # Noise of a fit falls as 1 / (N - M) for M controls: so much more than 1 / N do samples left out change.
    free = 1 - len(controls) / n
    corrected = every + (count * free - 1) * (every - without.mean(axis=0))
    # Student's factor for few stretches, with which 1.96 standard errors make a 95 % interval.
    scale = float(scipy.special.stdtrit(count - 1, 0.975)) / 1.96 * np.sqrt(count - 1)
    work = partial(_residual_squares, c=c, root=root, **evidence.whitener)
    squares, power = evidence.engine.fold(replace(evidence.samples, basis=controls), work)
    null = (squares / power**2)[places]
    moved = np.array([one[places] @ root for one, *_ in others])
    spread = (
        (count - 1) * free * np.sum(np.var(moved, axis=0), axis=1)
    )  # of coefficients, from stretch to stretch
    scatter = float(every[places][1:] @ spread[1:]) / max(
        float(every[places][1:] @ null[1:]), ROUNDING / n
    )
    freedom = np.trace(covariance) ** 2 / max(float(np.sum(covariance**2)), TINY)
    p = scipy.special.chdtrc(freedom, freedom * every[places] / np.maximum(null, TINY))
    unbiased, error = corrected[places], scale * np.sqrt(free) * without[:, places].std(axis=0)
    # Squares of noise scatter about their mean: what the jackknife sees of that is too little near zero.
    error = np.sqrt(error**2 + 2 * np.abs(every[places] - unbiased) * null / freedom)
    if evidence.samples.constant:
        unbiased[0], error[0], p[0] = 1.0, 0.0, 0.0
    clear = benjamini_hochberg(p, false_discovery_rate) & (unbiased > ROUNDING)
    beyond = np.setdiff1d(np.arange(len(controls)), places)
    outside = float(corrected[beyond].sum()), stretch_error(without[:, beyond].sum(axis=1))
    return Estimate(
        np.where(clear, np.clip(unbiased, 0.0, 1.0), 0.0),
        unbiased=unbiased,
        standard_error=error,
        p_value=p,
        total=float(np.clip(unbiased.sum(), 0.0, evidence.rank)),
        total_standard_error=stretch_error(without[:, places].sum(axis=1)),
        checks=tuple(_doubts(evidence, unbiased, outside, scatter)),
        coordinates=(inside[places].T,),
        residual_covariance=covariance,
        without_stretches=without[:, places],
    )


def short_stretches(evidence: Evidence) -> Iterator[Check]:
    """Whether stretches are too short to be independent of each other."""
    n, memory, stretches = evidence.n_samples, evidence.basis.memory, len(evidence.group_edges) - 1
    if n < LONG_STRETCH * memory * stretches:
        wanted = LONG_STRETCH * memory * stretches
        yield Check(
            f"{n} samples make {stretches} stretches shorter than {LONG_STRETCH} times the largest delay, {memory}: "
            f"error bars may be too short; take at least {wanted} samples.",
            unreliable=f"few samples for delays up to {memory}",
            wanted=wanted,
        )


def _doubts(
    evidence: Evidence, unbiased: Floats, outside: tuple[float, float], scatter: float
) -> Iterator[Check]:
    """Where the answer is weaker than its error bars say."""
    yield from short_stretches(evidence)
    found, error = outside
    if found > CLEARLY * error and found > WORTH * unbiased.sum():
        yield Check(
            f"the window is too short: functions beyond it, mostly at longer delays, hold another {found:.2f} ± "
            f"{error:.2f}; raise `max_delay` (and the washout with it) to count them.",
            beyond=found,
        )
    if scatter > DISAGREE:
        yield Check(
            f"stretches of the sequence disagree: their coefficients scatter {scatter:.0f} times as much as noise "
            "explains; use `time_degree=2` if the device drifts, or several runs if it settles into different states.",
            unreliable="stretches that disagree",
            scatter=scatter,
        )
