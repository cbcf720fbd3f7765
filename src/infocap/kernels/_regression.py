"""Ridge regression from sums over samples: its coefficients, and how much each sample decides its own fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, cholesky, solve_triangle, take_rows, to_numpy
from ..typing import Floats

# Share of a function's square that must be independent of the functions before it; less is rounding.
LEAST_PIVOT = 1e-10
# Leverages above this are computed exactly, those below from random signs, with a relative error sqrt(2 / signs).
EXACT_ABOVE = 0.25
# Least margin: a sample that is fitted exactly leaves nothing but rounding.
LEAST_MARGIN = 1e-12
# A penalty per unit of a function's square that stands for an infinite one: the function takes no part.
INFINITE = 1e30


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fit z ~ sum_m b_m phi_m on the functions of a dictionary, with a penalty p_m b_m² on each.

    With A = Phi'Phi over all samples, C C' = A + diag(p) and B = Phi'z, the coefficients are (C C')^-1 B, and the
    leverage of a sample is h = |C^-1 phi|². Its residual in a fit without it is its residual divided by the margin
    1 - h. Only products of matrices are needed to find h for many samples: |C^-1 phi|² is the mean of (w'C^-1 phi)²
    over vectors w of random signs; the few large ones are solved for.
    """

    factor: Any  # C
    coefficients: Any  # (dictionary, readouts)
    signs: Any  # C^-T w for each vector w of signs, (dictionary, signs); without any, all leverages are exact

    @classmethod
    def of(cls, gram: Any, cross: Any, penalty: Floats, n_signs: int) -> Ridge | None:
        """A fit from the sums A and B; None where the functions are not independent on these samples."""
        xp, count = array_namespace(gram), len(penalty)
        own = np.diag(gram) if xp is np else to_numpy(xp.linalg.diagonal(gram))
        penalty = np.where(np.isfinite(penalty), penalty, INFINITE * own.max())
        factor = cholesky(gram + as_like(np.diag(penalty), gram))
        if factor is None:
            return None
        pivots = np.diag(factor) if xp is np else to_numpy(xp.linalg.diagonal(factor))
        if not np.min(pivots**2 / (own + penalty)) > LEAST_PIVOT:
            return None
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (count, n_signs)) / np.sqrt(max(n_signs, 1))
        right = xp.concat([solve_triangle(factor, cross), as_like(signs, gram)], axis=1)
        solved = solve_triangle(factor, right, transposed=True)
        k = cross.shape[1]
        return cls(factor, solved[:, :k], solved[:, k:])

    def margin(self, phi: Any) -> Any:
        """1 - h of samples with these values of the dictionary (dictionary, samples)."""
        xp = array_namespace(phi)
        if not self.signs.shape[1]:
            return xp.clip(1 - xp.sum(solve_triangle(self.factor, phi) ** 2, axis=0), LEAST_MARGIN, None)
        h = xp.sum((self.signs.T @ phi) ** 2, axis=0)
        large = xp.nonzero(h > EXACT_ABOVE)[0]
        if large.shape[0]:
            h[large] = xp.sum(solve_triangle(self.factor, take_rows(phi.T, large).T) ** 2, axis=0)
        return xp.clip(1 - h, LEAST_MARGIN, None)

    def solve(self, right: Any) -> Any:
        """(A + diag(p))^-1 right, for right (dictionary, columns)."""
        return solve_triangle(self.factor, solve_triangle(self.factor, right), transposed=True)
