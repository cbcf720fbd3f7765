"""Regressions on a dictionary of functions, with the residual that each sample has when it is left out.

All three kinds answer the same questions for readouts z (samples, directions) and a penalty: what the fit leaves
of z, its coefficients, and by how much to divide what is left to get the residual of a fit without that sample
(`room`, 1 - leverage).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..typing import Floats, Integers

NEGLIGIBLE = 1e-15  # of the largest eigenvalue, for each sample: directions below are rounding
ROWS = 1024  # squared at a time
LEAST_ROOM = 1e-13

Rows = Integers | slice


class Regression(ABC):
    """A linear fit z ~ sum_m b_m phi_m on the columns of a dictionary, for any of its penalties."""

    columns: Integers  # of the dictionary that are in use

    @abstractmethod
    def fit(self, z: Floats, penalty: float) -> tuple[Floats, Floats]:
        """What is left, z - H z with H the hat matrix, and the coefficients b (columns, directions)."""

    @abstractmethod
    def room(self, penalty: float) -> Floats:
        """1 - h of every sample, with h the diagonal of H."""

    @abstractmethod
    def coefficients(self, z: Floats, penalty: float) -> Floats:
        """b alone."""

    @abstractmethod
    def freedom(self, penalty: float) -> float:
        """Degrees of freedom that the fit takes, the trace of H."""

    def left_out(self, z: Floats, penalties: Floats, rows: Rows) -> list[Floats]:
        """Residuals of some rows, each from a fit without that row, for each penalty."""
        return [
            (self.fit(z, penalty)[0] / np.maximum(self.room(penalty), LEAST_ROOM)[:, None])[rows]
            for penalty in penalties
        ]


class NoFit(Regression):
    """No function at all: everything is left."""

    def __init__(self, n_samples: int) -> None:
        self.columns = np.zeros(0, int)
        self._room = np.ones(n_samples)

    def fit(self, z: Floats, penalty: float) -> tuple[Floats, Floats]:
        """All of z, and nothing."""
        return z, self.coefficients(z, penalty)

    def room(self, penalty: float) -> Floats:
        """1 for all samples."""
        return self._room

    def coefficients(self, z: Floats, penalty: float) -> Floats:
        """None."""
        return np.zeros((0, z.shape[1]))

    def freedom(self, penalty: float) -> float:
        """0."""
        return 0.0


class LeastSquares(Regression):
    """No penalty; `noise_gain` = tr (Y'Y)^-1 says how much of the noise leaks into all coefficients."""

    def __init__(self, dictionary: Floats, columns: Integers) -> None:
        self.columns = columns
        first = len(columns) == columns[-1] + 1  # the first ones in order: no copy
        y = self._y = dictionary[:, : len(columns)] if first else dictionary[:, columns]
        self._inverse = inverse_of_gram(y.T @ y)
        self.noise_gain = float(np.trace(self._inverse))
        self._room = np.concatenate(
            [
                1 - np.einsum("ij,ij->i", y[start : start + ROWS] @ self._inverse, y[start : start + ROWS])
                for start in range(0, len(y), ROWS)
            ]
        )

    def fit(self, z: Floats, penalty: float) -> tuple[Floats, Floats]:
        """z - Y b and b."""
        b = self.coefficients(z, penalty)
        return z - self._y @ b, b

    def room(self, penalty: float) -> Floats:
        """1 - y'(Y'Y)^-1 y."""
        return self._room

    def coefficients(self, z: Floats, penalty: float) -> Floats:
        """(Y'Y)^-1 Y'z."""
        return self._inverse @ (self._y.T @ z)

    def freedom(self, penalty: float) -> float:
        """The number of functions."""
        return float(len(self.columns))


def inverse_of_gram(gram: Floats) -> Floats:
    """The inverse of a symmetric positive definite matrix; LinAlgError if it is not."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(gram, lower=1)
    inverse, singular = (factor, failed) if failed else lapack.dpotri(factor, lower=1)
    if failed or singular:
        raise np.linalg.LinAlgError("not positive definite")
    out = inverse + inverse.T  # the upper triangle was zero
    np.fill_diagonal(out, np.diag(inverse))
    return out


class Ridge(Regression):
    """Least squares with the penalty lam sum_m p_m b_m², for all lam at the price of one.

    With D P^-1/2 = U diag(sqrt e) V' the hat matrix is H = U diag(e / (e + lam)) U'. What is left and the room
    are written as sums of positive terms: where the fit interpolates both vanish, and differences of rounded
    numbers would make it look perfect.
    """

    def __init__(self, dictionary: Floats, columns: Integers, weights: Floats) -> None:
        self.columns = columns
        scale = 1 / np.sqrt(weights[columns])
        scaled = dictionary[:, columns] * scale
        n_samples, n_columns = scaled.shape
        wide = n_columns > n_samples
        e, vectors = np.linalg.eigh(scaled @ scaled.T if wide else scaled.T @ scaled)
        keep = e > max(e[-1], 0.0) * NEGLIGIBLE * n_samples
        self.e, vectors = e[keep], vectors[:, keep]
        if wide:
            self._u, v = vectors, scaled.T @ (vectors / np.sqrt(self.e))
        else:
            self._u, v = scaled @ (vectors / np.sqrt(self.e)), vectors
        self._back = scale[:, None] * v
        self._interpolates = len(self.e) == n_samples

    def fit(self, z: Floats, penalty: float) -> tuple[Floats, Floats]:
        """What shrinking leaves inside the span and what lies outside; and b."""
        inside = self._u.T @ z
        left = self._u @ (self._shrink(penalty) * inside)
        if not self._interpolates:
            left += z - self._u @ inside
        return left, self._coefficients(inside, penalty)

    def room(self, penalty: float) -> Floats:
        """The same for the diagonal of H."""
        return self._rooms(self._shrink(penalty), slice(None))[:, 0]

    def coefficients(self, z: Floats, penalty: float) -> Floats:
        """P^-1/2 V diag(sqrt e / (e + lam)) U'z."""
        return self._coefficients(self._u.T @ z, penalty)

    def _coefficients(self, inside: Floats, penalty: float) -> Floats:
        return self._back @ ((np.sqrt(self.e) / (self.e + penalty))[:, None] * inside)

    def freedom(self, penalty: float) -> float:
        """The sum of e / (e + lam)."""
        return float(np.sum(self.e / (self.e + penalty)))

    def left_out(self, z: Floats, penalties: Floats, rows: Rows) -> list[Floats]:
        """All penalties share what does not depend on them."""
        inside, u = self._u.T @ z, self._u[rows]
        shrink = penalties / (self.e[:, None] + penalties)
        rooms = self._rooms(shrink, rows)
        outside = 0.0 if self._interpolates else z[rows] - u @ inside
        return [
            (u @ (shrink[:, number, None] * inside) + outside)
            / np.maximum(rooms[:, number], LEAST_ROOM if penalty == 0 else 1e-300)[:, None]
            for number, penalty in enumerate(penalties)
        ]

    def _shrink(self, penalty: float) -> Floats:
        return (penalty / (self.e + penalty))[:, None]

    def _rooms(self, shrink: Floats, rows: Rows) -> Floats:
        """1 - h of the rows, for each column of `shrink`."""
        u, parts = self._u[rows], []
        for start in range(0, len(u), ROWS):
            squares = u[start : start + ROWS] ** 2
            outside = 0.0 if self._interpolates else np.maximum(1 - squares.sum(axis=1), 0.0)[:, None]
            parts.append(squares @ shrink + outside)
        return np.concatenate(parts)
