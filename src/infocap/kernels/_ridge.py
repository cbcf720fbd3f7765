"""Ridge regression on some of the controls, from sums of products over the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    cholesky,
    is_on_host,
    solve_triangle,
    take_rows,
    to_library_of,
    to_numpy,
)
from .._threads import parallel_map
from ..typing import Floats, Integers

# Fraction of a control's square that must be independent of the controls before it; less is
# rounding.
MIN_INDEPENDENT_FRACTION = 1e-10
# Leverages above this are computed exactly, smaller ones from random signs, with a relative error
# of sqrt(2 / number of sign vectors).
MIN_EXACT_LEVERAGE = 0.6
# Smallest margin 1 - h: a sample that is fitted exactly leaves nothing but rounding.
MIN_RIDGE_MARGIN = 1e-12


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fit z ~ sum_m b_m phi_m of readouts on some controls, with a penalty p_m b_m² on each.

    Controls are functions of the inputs whose values phi_m may predict the readouts z.

    With A = Phi'Phi over all samples, C C' = A + diag(p) and B = Phi'z, where C is a Cholesky
    factor and no capacity, the coefficients are (C C')^-1 B, and the leverage of a sample is
    h = |C^-1 phi|². The residual of a sample in a fit without it is its residual divided by the
    margin 1 - h.

    Leverages of many samples need only products of matrices: |C^-1 phi|² is the mean of
    (w'C^-1 phi)² over vectors w of random signs (Hutchinson's estimator). The few large ones are
    solved for.
    """

    used: Integers  # numbers of the controls that the fit uses
    position: Integers  # of each control among those used, (controls,); -1: not used
    factor: Any  # C, lower triangular
    coefficients: Any  # b, (controls, readouts), zero for controls that are not used
    sign_vectors: Any  # C^-T w for each vector w of signs, (controls, vectors)

    @classmethod
    def fits(
        cls, phi_phi: Any, phi_z: Any, used: Integers, penalties: Iterable[Floats], n_signs: int
    ) -> list[Ridge]:
        """Return a fit for each penalty, from sums over samples.

        There is none for a penalty with which the controls are not independent.

        Parameters
        ----------
        phi_phi
            A, of all controls, (controls, controls).
        phi_z
            B, (controls, readouts).
        used
            Numbers of the controls to use.
        penalties
            Arrays p, each with a number for every control in use.
        n_signs
            Number of vectors of random signs.
        """
        xp = array_namespace(phi_phi)
        rows = to_library_of(used, phi_phi)
        position = np.full(phi_phi.shape[0], -1)
        position[used] = np.arange(len(used))
        gram = phi_phi
        if len(used) < len(position):
            gram = take_rows(take_rows(phi_phi, rows).T, rows)  # the matrix is symmetric
        right = take_rows(phi_z, rows)
        power = to_numpy(xp.linalg.diagonal(gram))
        generator = np.random.default_rng(0)
        signs = generator.choice([-1.0, 1.0], (len(used), n_signs)) / np.sqrt(n_signs)
        signs = to_library_of(signs, gram)

        def fit(penalty: Floats) -> Ridge | None:
            factor = cholesky(gram, penalty)
            pivots = to_numpy(xp.linalg.diagonal(factor))
            is_independent = np.min(pivots**2 / (power + penalty)) > MIN_INDEPENDENT_FRACTION
            if not is_independent:
                return None
            right_and_signs = xp.concat([solve_triangle(factor, right), signs], axis=1)
            solution = rows_at(solve_triangle(factor, right_and_signs, transposed=True), position)
            n_readouts = right.shape[1]
            return cls(
                used=used,
                position=position,
                factor=factor,
                coefficients=solution[:, :n_readouts],
                sign_vectors=solution[:, n_readouts:],
            )

        map_penalties = parallel_map if is_on_host(gram) else map
        fits = map_penalties(fit, list(penalties))
        return [ridge for ridge in fits if ridge is not None]

    def margin(self, phi: Any) -> Any:
        """Return 1 - h of samples with values phi of the controls, (controls, samples)."""
        xp = array_namespace(phi)
        leverage = xp.sum((self.sign_vectors.T @ phi) ** 2, axis=0)
        large = xp.nonzero(leverage > MIN_EXACT_LEVERAGE)[0]
        if large.shape[0]:
            phi_of_large = take_rows(take_rows(phi.T, large).T, to_library_of(self.used, phi))
            exact = xp.sum(solve_triangle(self.factor, phi_of_large) ** 2, axis=0)
            # Exact values are appended and picked by index, because not every library can write
            # into an array.
            n_samples = leverage.shape[0]
            source = np.arange(n_samples)
            source[to_numpy(large)] = n_samples + np.arange(large.shape[0])
            leverage = take_rows(xp.concat([leverage, exact]), to_library_of(source, leverage))
        return xp.clip(1 - leverage, MIN_RIDGE_MARGIN, None)

    def solve(self, right: Any) -> Any:
        """Return (A + diag(p))^-1 right, for right (controls, columns)."""
        right_of_used = take_rows(right, to_library_of(self.used, right))
        half_solved = solve_triangle(self.factor, right_of_used)
        return rows_at(solve_triangle(self.factor, half_solved, transposed=True), self.position)


def rows_at(array: Any, positions: Integers) -> Any:
    """Return the rows of an array at these positions, and zeros where the position is -1."""
    n_rows = len(positions)
    if n_rows <= array.shape[0] and np.array_equal(positions, np.arange(n_rows)):
        return array[:n_rows, ...]  # without a copy
    rows = take_rows(array, to_library_of(np.maximum(positions, 0), array))
    has_position = positions >= 0
    if np.all(has_position):
        return rows
    return rows * to_library_of(has_position[:, None] * 1.0, array)
