"""Innovations of functions in a graded order, their capacities, and how these scatter.

Symbols are those of docs/recorded-law.md: A are sums of products of functions with each other, B
those of functions with whitened readouts, L is the triangle of A/N, and c = L^-1 B/N.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ..kernels import SMALLEST_DIVISOR, student_widening
from ..typing import Booleans, Floats
from ._fit import ControlSums
from ._stretch_sums import OrderedSums

# Power of a direction of the readouts, relative to the largest, below which it is left out where
# one stretch is.
MIN_RELATIVE_POWER = 1e-10


@dataclass(frozen=True, eq=False)
class Innovations:
    """Functions orthonormalised in their order, and what the readouts hold of each."""

    triangle: Floats  # L, lower, (functions, functions)
    coefficients: Floats  # c, of the innovations along the readouts, (functions, rank)
    raw: Floats  # R² of each innovation, (functions,)
    # The same without what least squares with so many functions takes from white noise.
    adjusted: Floats


def orthonormalise(sums: ControlSums) -> Innovations:
    """Return the innovations of functions in the order of the sums, and their capacities."""
    n = sums.count
    triangle = np.linalg.cholesky(sums.phi_phi / n)
    coefficients = solve_triangular(triangle, sums.phi_z / n, lower=True, check_finite=False)
    whitening = whitening_of(sums)
    raw = np.sum((coefficients @ whitening) ** 2, axis=1)
    n_directions = whitening.shape[1]
    noise = (n_directions - raw.sum()) / (n - len(raw))
    return Innovations(triangle, coefficients, raw, raw - noise)


def whitening_of(sums: ControlSums) -> Floats:
    """Return the matrix that whitens the readouts in the rows of the sums, (rank, directions)."""
    power, directions = np.linalg.eigh(sums.z_z / sums.count)
    is_clear = power > MIN_RELATIVE_POWER * power[-1]
    whitening: Floats = directions[:, is_clear] / np.sqrt(power[is_clear])
    return whitening


@dataclass(frozen=True, eq=False)
class JackknifedCapacities:
    """Capacities of innovations in one graded order, without bias, and without each stretch."""

    of_all: Innovations
    capacity: Floats  # (functions,)
    without: Floats  # capacities without each stretch, (stretches, functions)
    correlation: float  # of the influences of neighbouring stretches

    @property
    def total(self) -> tuple[float, float]:
        """The sum over all functions and its standard error."""
        return self.sum_of(np.ones(len(self.capacity), dtype=bool))

    @property
    def largest_share(self) -> float:
        """The part of the total's squared error that one stretch decides."""
        influence = self.without.sum(axis=1)
        influence = (influence - influence.mean()) ** 2
        return float(influence.max() / max(influence.sum(), SMALLEST_DIVISOR))

    def error_of(self, without: Floats) -> Floats:
        """Return standard errors from values without each stretch, (stretches, ...)."""
        n_stretches = len(without)
        variance = (n_stretches - 1) * (1 + 2 * self.correlation) * np.var(without, axis=0)
        errors: Floats = student_widening(n_stretches) * np.sqrt(variance)
        return errors

    def sum_of(self, chosen: Booleans) -> tuple[float, float]:
        """Return the sum over chosen functions and its standard error."""
        error = self.error_of(self.without[:, chosen].sum(axis=1))
        return float(self.capacity[chosen].sum()), float(error)

    def without_for_sums(self, widening: float) -> Floats:
        """Return capacities without each stretch, moved so far from their mean that they widen.

        A plain jackknife of any sum of them then gives its error, as if stretches were independent.
        """
        mean = self.without.mean(axis=0)
        scale = widening * np.sqrt(1 + 2 * self.correlation)
        scaled: Floats = mean + scale * (self.without - mean)
        return scaled


def jackknife(sums: OrderedSums, has_constant: bool) -> JackknifedCapacities:
    """Return the capacities of functions in a given order, from all stretches and without each.

    The adjustment for white noise removes what is not small where functions are many. The jackknife
    of adjusted values removes the rest of order 1/N: from the covariance of the readouts, coloured
    noise, and chance correlations of the inputs.
    """
    whole = sums.whole
    of_all = orthonormalise(whole)
    rows = []
    for stretch in sums:
        rows.append(orthonormalise(whole.without(stretch)).adjusted)
    without = np.array(rows)
    if has_constant:
        without[:, 0] = 1.0
    capacity = jackknifed(of_all.adjusted, without)
    if has_constant:
        capacity[0] = 1.0
    return JackknifedCapacities(of_all, capacity, without, correlation_of_neighbours(without))


def jackknifed(of_all: Floats, without: Floats) -> Floats:
    """Return values of all stretches without their bias of order 1/N."""
    n_stretches = len(without)
    values: Floats = of_all + (n_stretches - 1) * (of_all - without.mean(axis=0))
    return values


def correlation_of_neighbours(without: Floats) -> float:
    """Return the correlation of the influences of neighbouring stretches, of all values together.

    Deviations from a common mean are correlated by -1/G on average.
    """
    influence = without - without.mean(axis=0)
    power = max(float(np.sum(influence**2)), SMALLEST_DIVISOR)
    correlation = float(np.sum(influence[1:] * influence[:-1])) / power
    return max(correlation + 1 / len(without), 0.0)
