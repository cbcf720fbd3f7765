"""Ridge regression on some functions of a dictionary, from sums of products over the samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import array_namespace, cholesky, solve_triangle, take_rows, to_library_of, to_numpy
from ..typing import Floats, Integers

# Share of a function's square that must be independent of the functions before it; less is rounding.
MIN_INDEPENDENT_SHARE = 1e-10
# Leverages above this are computed exactly, smaller ones from random signs, with a relative error
# of sqrt(2 / number of sign vectors).
MIN_EXACT_LEVERAGE = 0.6
# Smallest margin 1 - h: a sample that is fitted exactly leaves nothing but rounding.
MIN_RIDGE_MARGIN = 1e-12


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fit z ~ sum_m b_m phi_m on some functions of a dictionary, with a penalty p_m b_m² on each.

    With A = Phi'Phi over all samples, C C' = A + diag(p) and B = Phi'z, the coefficients are
    (C C')^-1 B, and the leverage of a sample is h = |C^-1 phi|². The residual of a sample in a fit
    without it is its residual divided by the margin 1 - h.

    Leverages of many samples need only products of matrices: |C^-1 phi|² is the mean of
    (w'C^-1 phi)² over vectors w of random signs (Hutchinson's estimator). The few large ones are
    solved for.
    """

    functions: Integers  # places in the dictionary of the functions that the fit uses
    position: Integers  # of each function of the dictionary among them; -1: not used
    factor: Any  # C
    coefficients: Any  # (dictionary, readouts), zero for functions that are not used
    sign_vectors: Any  # C^-T w for each vector w of signs, (dictionary, vectors)

    @classmethod
    def fits(
        cls, products: Any, cross: Any, kept: Integers, penalties: Iterable[Floats], n_signs: int
    ) -> Iterator[Ridge]:
        """Yield a fit for each penalty, from sums over samples.

        Nothing is yielded for a penalty with which the functions are not independent.

        Parameters
        ----------
        products
            A, of all functions of the dictionary.
        cross
            B, (dictionary, readouts).
        kept
            Places in the dictionary of the functions to use.
        penalties
            Arrays p, each with a number for every function in use.
        n_signs
            Number of vectors of random signs.
        """
        xp = array_namespace(products)
        rows = to_library_of(kept, products)
        position = np.full(products.shape[0], -1)
        position[kept] = np.arange(len(kept))
        gram = products
        if len(kept) < len(position):
            gram = take_rows(take_rows(products, rows).T, rows)  # the matrix is symmetric
        right = take_rows(cross, rows)
        power = to_numpy(xp.linalg.diagonal(gram))
        generator = np.random.default_rng(0)
        signs = generator.choice([-1.0, 1.0], (len(kept), n_signs)) / np.sqrt(n_signs)
        for penalty in penalties:
            factor = cholesky(gram, penalty)
            pivots = to_numpy(xp.linalg.diagonal(factor))
            is_independent = np.min(pivots**2 / (power + penalty)) > MIN_INDEPENDENT_SHARE
            if not is_independent:
                continue
            right_and_signs = xp.concat(
                [solve_triangle(factor, right), to_library_of(signs, gram)], axis=1
            )
            solution = rows_at(solve_triangle(factor, right_and_signs, transposed=True), position)
            n_readouts = right.shape[1]
            yield cls(
                functions=kept,
                position=position,
                factor=factor,
                coefficients=solution[:, :n_readouts],
                sign_vectors=solution[:, n_readouts:],
            )

    def margin(self, phi: Any) -> Any:
        """Return 1 - h of samples whose values of the dictionary are phi (dictionary, samples)."""
        xp = array_namespace(phi)
        leverage = xp.sum((self.sign_vectors.T @ phi) ** 2, axis=0)
        large = xp.nonzero(leverage > MIN_EXACT_LEVERAGE)[0]
        if large.shape[0]:
            phi_of_large = take_rows(take_rows(phi.T, large).T, to_library_of(self.functions, phi))
            exact = xp.sum(solve_triangle(self.factor, phi_of_large) ** 2, axis=0)
            # Exact values are appended and picked by index, because not every library can write
            # into an array.
            n_samples = leverage.shape[0]
            source = np.arange(n_samples)
            source[to_numpy(large)] = n_samples + np.arange(large.shape[0])
            leverage = take_rows(xp.concat([leverage, exact]), to_library_of(source, leverage))
        return xp.clip(1 - leverage, MIN_RIDGE_MARGIN, None)

    def solve(self, right: Any) -> Any:
        """Return (A + diag(p))^-1 right, for right (dictionary, columns)."""
        right_in_use = take_rows(right, to_library_of(self.functions, right))
        half_solved = solve_triangle(self.factor, right_in_use)
        return rows_at(solve_triangle(self.factor, half_solved, transposed=True), self.position)


def rows_at(array: Any, places: Integers) -> Any:
    """Return the rows of an array with these indices, and zeros where the index is -1."""
    is_beginning = len(places) <= array.shape[0] and np.array_equal(places, np.arange(len(places)))
    if is_beginning:
        return array[: len(places), ...]  # without a copy
    rows = take_rows(array, to_library_of(np.maximum(places, 0), array))
    if np.all(places >= 0):
        return rows
    is_row = (places >= 0)[:, None]
    return rows * to_library_of(is_row * 1.0, array)
