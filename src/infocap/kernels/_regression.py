"""Regression on a dictionary of functions, with the residual that each sample has when it is left out of the fit."""

from __future__ import annotations

import numpy as np

from ..typing import Floats, Integers

# Share of the largest eigenvalue, per sample, below which a direction of the dictionary is rounding.
NEGLIGIBLE = 1e-15
# Rows that are squared together, so that they stay in cache.
ROWS = 1024
# Least value of 1 - leverage by which a residual without penalty is divided: below it only rounding is left.
LEAST_MARGIN = 1e-13


class Regression:
    """A linear fit z ~ sum_m b_m phi_m on some columns of a dictionary, for any penalty lam sum_m p_m b_m².

    With D P^-1/2 = U diag(sqrt e) V' the hat matrix is H = U diag(e / (e + lam)) U', for all lam at the price of one.
    Residuals and margins 1 - h, with h the leverage of a sample, are written as sums of positive terms: where the fit
    interpolates both vanish, and differences of rounded numbers would make it look perfect. No fit at all is the case
    of no columns, least squares that of no penalty.
    """

    def __init__(self, columns: Integers, u: Floats, e: Floats, back: Floats) -> None:
        self.columns = columns  # of the dictionary that are in use
        self._u, self._e, self._back = u, e, back  # back = P^-1/2 V
        self._interpolates = len(e) == len(u)
        self.noise_gain = float(
            np.sum(back**2 / e)
        )  # tr (Y'Y)^-1: how much of white noise leaks into coefficients

    @classmethod
    def none(cls, n_samples: int) -> Regression:
        """No function at all: every residual is the readout itself."""
        return cls(np.zeros(0, int), np.zeros((n_samples, 0)), np.zeros(0), np.zeros((0, 0)))

    @classmethod
    def least_squares(cls, dictionary: Floats, columns: Integers) -> Regression:
        """No penalty, by Cholesky's method; LinAlgError where the functions are not independent on these samples."""
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dtrtri

        first = len(columns) == columns[-1] + 1  # the first ones in order: no copy
        y = dictionary[:, : len(columns)] if first else dictionary[:, columns]
        lower = np.linalg.cholesky(y.T @ y)
        u = solve_triangular(lower, y.T, lower=True).T
        return cls(columns, u, np.ones(len(columns)), dtrtri(lower, lower=1)[0].T)

    @classmethod
    def ridge(cls, dictionary: Floats, columns: Integers, weights: Floats) -> Regression:
        """With the penalty weights p of all functions of the dictionary."""
        scale = 1 / np.sqrt(weights[columns])
        scaled = dictionary[:, columns] * scale
        n_samples, n_columns = scaled.shape
        wide = n_columns > n_samples
        e, vectors = np.linalg.eigh(scaled @ scaled.T if wide else scaled.T @ scaled)
        keep = e > max(e[-1], 0.0) * NEGLIGIBLE * n_samples
        e, vectors = e[keep], vectors[:, keep]
        other = (scaled.T if wide else scaled) @ (vectors / np.sqrt(e))
        u, v = (vectors, other) if wide else (other, vectors)
        return cls(columns, u, e, scale[:, None] * v)

    def residuals(self, z: Floats, penalty: float) -> Floats:
        """z - H z of all samples."""
        inside = self._u.T @ z
        left = self._u @ ((penalty / (self._e + penalty))[:, None] * inside)
        return left if self._interpolates else left + (z - self._u @ inside)

    def coefficients(self, z: Floats, penalty: float) -> Floats:
        """b = P^-1/2 V diag(sqrt e / (e + lam)) U'z, (columns, directions)."""
        return self._back @ ((np.sqrt(self._e) / (self._e + penalty))[:, None] * (self._u.T @ z))

    def margin(self, penalties: Floats, rows: Integers | slice = slice(None)) -> Floats:
        """1 - h of some samples for each penalty: what divides a residual to give that of a fit without the sample.

        The sum of h over all samples is the number of degrees of freedom that the fit takes.
        """
        u, shrink, parts = self._u[rows], penalties / (self._e[:, None] + penalties), []
        for start in range(0, len(u), ROWS):
            squares = u[start : start + ROWS] ** 2
            outside = 0.0 if self._interpolates else np.maximum(1 - squares.sum(axis=1), 0.0)[:, None]
            parts.append(squares @ shrink + outside)
        return np.concatenate(parts)

    def left_out(self, z: Floats, penalties: Floats, rows: Integers | slice) -> list[Floats]:
        """Residuals of some rows, each from a fit without that row, for each penalty."""
        inside, u = self._u.T @ z, self._u[rows]
        margins = self.margin(penalties, rows)
        outside = 0.0 if self._interpolates else z[rows] - u @ inside
        return [
            (u @ ((penalty / (self._e + penalty))[:, None] * inside) + outside)
            / np.maximum(margins[:, number], LEAST_MARGIN if penalty == 0 else 1e-300)[:, None]
            for number, penalty in enumerate(penalties)
        ]
