"""The test of capacities of innovations against zero, by their scores in stretches of the rows.

The score of function l in stretch g is the sum of its innovation psi_l times what the functions up
to it leave of the whitened readouts z, e_l = z - sum over j <= l of psi_j c_j:

    s_gl = (sum over the rows t of g) psi_l(t) e_l(t) / N,    a vector (rank,).

Functions that come later and that the readouts hold are noise to the test of l. Without capacity,
scores of different stretches are independent with mean 0, and raw_l, the squared length of their
sum, is on average what noise alone gives. Its distribution follows from q_gh = s_gl · s_hl.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.linalg import solve_triangular

from ..kernels import SMALLEST_DIVISOR, effective_directions
from ..typing import Floats
from ._fit import ControlSums
from ._innovations import Innovations, JackknifedCapacities, orthonormalise
from ._stretch_sums import OrderedSums


@dataclass(frozen=True, eq=False)
class ZeroTest:
    """The test of every function's capacity against zero."""

    p_value: Floats
    null_capacity: Floats  # what noise alone gives on average, (functions,)
    n_directions: float  # effective number of directions of the noise


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of all functions in all stretches, and what noise alone gives."""

    scores: Floats  # s, (stretches, functions, rank)
    null_capacity: Floats  # (functions,)


def compare_with_zero(sums: OrderedSums, capacities: JackknifedCapacities) -> ZeroTest:
    """Test every capacity against zero: raw_l over its mean under noise follows an F distribution.

    F_l = raw_l / (null_l (1 + 2r)), where r is the correlation of neighbouring stretches. Its
    degrees of freedom nu_l and nu_l (G' - 1) come from the scores: nu_l is the effective number of
    directions in which they scatter, and G' the effective number of stretches.
    """
    scores = _scores_of(sums, capacities.of_all)
    n_directions = _directions_of_noise(capacities.of_all)

    # q, (functions, stretches, stretches), and its diagonal.
    products = np.einsum("gmk,hmk->mgh", scores.scores, scores.scores, optimize=True)
    own_products = np.einsum("mgg->mg", products)
    power = np.sum(own_products, axis=1)
    power_of_own = np.sum(own_products**2, axis=1)
    power_between = np.sum(products**2, axis=(1, 2)) - power_of_own

    # nu_l = (sum of q_gg)² / (sum of q_gh² over g != h), within what the residuals allow.
    directions = power**2 / np.maximum(power_between, SMALLEST_DIVISOR)
    directions = np.clip(directions, 1.0, n_directions)

    # G' = G / max(1, G sum of q_gg² / (sum of q_gg)² / (1 + 2 / nu_l)): fewer than G where scores
    # of some stretches are much larger than others.
    n_stretches = len(sums)
    unevenness = n_stretches * power_of_own / np.maximum(power**2, SMALLEST_DIVISOR)
    unevenness = unevenness / (1 + 2 / directions)
    effective_stretches = n_stretches / np.maximum(unevenness, 1.0)
    freedom = np.maximum(directions * (effective_stretches - 1), 1.0)

    mean_of_noise = np.maximum(scores.null_capacity, SMALLEST_DIVISOR)
    mean_of_noise = mean_of_noise * (1 + 2 * capacities.correlation)
    ratio = capacities.of_all.raw / mean_of_noise
    p_value = scipy.special.fdtrc(directions, freedom, ratio)
    return ZeroTest(p_value, scores.null_capacity, n_directions)


def _scores_of(sums: OrderedSums, of_all: Innovations) -> _Scores:
    """Return the scores, and the sum over stretches of their products with those of other fits.

    The second score of a stretch is by the fit without this stretch, so that the noise in its rows
    counts once only: products of both are unbiased for white noise, at any number of functions.
    """
    whole = sums.whole
    n = whole.count
    n_functions = len(of_all.raw)
    scores = np.empty((len(sums), *of_all.coefficients.shape))
    near_far = np.zeros(n_functions)
    far_far = np.zeros(n_functions)
    for number, stretch in enumerate(sums):
        without = orthonormalise(whole.without(stretch))
        near = _score(stretch, of_all, of_all) / n
        far = _score(stretch, of_all, without) / n
        scores[number] = near
        near_far += np.sum(near * far, axis=1)
        far_far += np.sum(far**2, axis=1)
    smallest = 0.5 * (1 - n_functions / n) * far_far
    return _Scores(scores, null_capacity=np.maximum(near_far, smallest))


def _score(stretch: ControlSums, innovations: Innovations, fit: Innovations) -> Floats:
    """Return the sums over a stretch of innovations times what a fit leaves, (functions, rank).

    With the sums A_g and B_g of the stretch that is L^-1 B_g - tril(L^-1 A_g F^-T) f, where f and
    F are the coefficients and the triangle of the fit. The lower triangle keeps the functions up
    to each one.
    """
    with_readouts = solve_triangular(innovations.triangle, stretch.phi_z, lower=True)
    with_functions = solve_triangular(innovations.triangle, stretch.phi_phi, lower=True)
    with_innovations = solve_triangular(fit.triangle, with_functions.T, lower=True).T
    fitted: Floats = np.tril(with_innovations) @ fit.coefficients
    return with_readouts - fitted


def _directions_of_noise(of_all: Innovations) -> float:
    """Return in how many directions of the readouts the noise scatters, effectively."""
    rank = of_all.coefficients.shape[1]
    covariance = np.eye(rank) - of_all.coefficients.T @ of_all.coefficients
    return max(effective_directions(covariance), 1.0)
