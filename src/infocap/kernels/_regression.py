"""Ridge regression from sums over samples: its coefficients, and how much each sample decides its own fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import array_namespace, as_like, cholesky, solve_triangle, take_rows, to_numpy
from ..typing import Floats, Integers

# Share of a function's square that must be independent of the functions before it; less is rounding.
LEAST_PIVOT = 1e-10
# Leverages above this are computed exactly, those below from random signs, with a relative error sqrt(2 / signs).
EXACT_ABOVE = 0.6
# Least margin: a sample that is fitted exactly leaves nothing but rounding.
LEAST_MARGIN = 1e-12


@dataclass(frozen=True, eq=False)
class Ridge:
    """A fit z ~ sum_m b_m phi_m on some functions of a dictionary, with a penalty p_m b_m² on each.

    With A = Phi'Phi over all samples, C C' = A + diag(p) and B = Phi'z, the coefficients are (C C')^-1 B, and the
    leverage of a sample is h = |C^-1 phi|². Its residual in a fit without it is its residual divided by the margin
    1 - h. Only products of matrices are needed to find h for many samples: |C^-1 phi|² is the mean of (w'C^-1 phi)²
    over vectors w of random signs; the few large ones are solved for.
    """

    kept: Integers  # the functions in use
    factor: Any  # C
    coefficients: Any  # (dictionary, readouts), zero for functions that are not in use
    signs: Any  # C^-T w for each vector w of signs, (dictionary, signs)

    @classmethod
    def of(cls, products: Any, cross: Any, kept: Integers, penalty: Floats, n_signs: int) -> Ridge | None:
        """A fit from the sums A and B; None where the functions are not independent on these samples."""
        xp, count = array_namespace(products), len(kept)
        where = as_like(kept, products)
        a = products if count == products.shape[0] else take_rows(take_rows(products, where).T, where).T
        a = a + xp.eye(count, dtype=a.dtype, device=a.device) * as_like(penalty, a)
        factor = cholesky(a)
        if factor is None:
            return None
        pivots, own = (np.diag(one) if xp is np else to_numpy(xp.linalg.diagonal(one)) for one in (factor, a))
        if not np.min(pivots**2 / own) > LEAST_PIVOT:
            return None
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (count, n_signs)) / np.sqrt(n_signs)
        inside = solve_triangle(factor, take_rows(cross, where))
        solved = solve_triangle(factor, xp.concat([inside, as_like(signs, a)], axis=1), transposed=True)
        solved = _spread(solved, kept, products.shape[0])
        return cls(kept, factor, solved[:, : cross.shape[1]], solved[:, cross.shape[1] :])

    def margin(self, phi: Any) -> Any:
        """1 - h of samples with these values of the dictionary (dictionary, samples)."""
        xp = array_namespace(phi)
        h = xp.sum((self.signs.T @ phi) ** 2, axis=0)
        large = xp.nonzero(h > EXACT_ABOVE)[0]
        if large.shape[0]:
            few = take_rows(take_rows(phi.T, large).T, as_like(self.kept, phi))
            where = np.arange(h.shape[0])  # without writing into an array, which not every library can do
            where[to_numpy(large)] = h.shape[0] + np.arange(large.shape[0])
            h = take_rows(xp.concat([h, xp.sum(solve_triangle(self.factor, few) ** 2, axis=0)]), as_like(where, h))
        return xp.clip(1 - h, LEAST_MARGIN, None)

    def solve(self, right: Any) -> Any:
        """(A + diag(p))^-1 right, for right (dictionary, columns)."""
        inside = solve_triangle(self.factor, take_rows(right, as_like(self.kept, right)))
        return _spread(solve_triangle(self.factor, inside, transposed=True), self.kept, right.shape[0])


def _spread(rows: Any, kept: Integers, count: int) -> Any:
    """So many rows: those given at the places kept, zeros elsewhere."""
    where = np.full(count, -1)
    where[kept] = np.arange(len(kept))
    return rows_at(rows, where)


def rows_at(array: Any, places: Integers) -> Any:
    """Rows of an array by their places, zeros where the place is -1."""
    if len(places) == array.shape[0] and np.array_equal(places, np.arange(len(places))):
        return array
    rows = take_rows(array, as_like(np.maximum(places, 0), array))
    return rows if np.all(places >= 0) else rows * as_like((places >= 0)[:, None] * 1.0, array)


def stretch_error(without: Floats) -> float:
    """The standard error of a number from its values without each of a few stretches of a sequence (jackknife).

    Neighbouring stretches that go together count for less than their number. It is so much longer that 1.96 of them
    make a 95 % interval of Student's distribution.
    """
    from scipy.special import stdtrit

    count, off = len(without), without - without.mean()
    power = max(float(off @ off), 1e-300)
    together = max(float(off[1:] @ off[:-1]) / power, 0.0)
    return float(stdtrit(count - 1, 0.975) / 1.96 * np.sqrt((count - 1) / count * power * (1 + 2 * together)))
