"""Orthonormal columns and their triangle: QR, at the speed of matrix products where that is safe."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._array import array_namespace, as_like, inverse_of_triangle, on_host, to_numpy
from ..typing import Floats

SAFE_PIVOT = 1e-4  # of unit columns; the squared condition number then leaves 8 digits to repair
GOOD_CONDITION = 300.0  # its square costs less than 1e-11: nothing to repair


def orthonormal_factor(x: Any) -> tuple[Any, Floats, Floats | None]:
    """x = q @ finish @ triangle, with orthonormal q @ finish; x is (samples, columns).

    Tall blocks are factored by Cholesky ("CholeskyQR2"): a first round on the Gram matrix of x, which loses
    twice as many digits as the condition number has, and a second round on the result, which gets them back;
    well-conditioned columns need the first alone. All of it is matrix products. What is small is left to
    the small matrix `finish`, to be applied to what q is multiplied with: cheaper than applying it to q.
    This is as accurate as Householder's method while the columns are not nearly dependent; when a pivot
    says they are, Householder's is used, and there is nothing to finish (None).

    x and q may live in any array library; what is small, `triangle` and `finish`, is always NumPy's.
    """
    rows, columns = x.shape
    if rows >= 2 * columns:
        triangle = triangle_of_gram(to_numpy(x.T @ x))
        if triangle is not None:
            norms = np.sqrt(np.sum(triangle**2, axis=0))
            if np.min(np.diag(triangle) / norms) > SAFE_PIVOT:
                return _by_cholesky(x, triangle, norms)
    q, triangle = array_namespace(x).linalg.qr(x)
    return q, to_numpy(triangle), None


def _by_cholesky(x: Any, first: Floats, norms: Floats) -> tuple[Any, Floats, Floats]:
    """The rest of CholeskyQR2, from the first round's triangle and the lengths of its columns."""
    finish = inverse_of_triangle(first)
    if condition_bound(first / norms, finish * norms[:, None]) < GOOD_CONDITION:
        return x, first, finish
    q = x @ as_like(finish, x)
    second = np.linalg.cholesky(to_numpy(q.T @ q)).T
    return q, second @ first, inverse_of_triangle(second)


def triangle_of_gram(gram: Any) -> Any:
    """The triangle r of x = q r from x'x, by Cholesky's method; None when it is not positive definite to rounding.

    It is where the Gram matrix is.
    """
    xp = array_namespace(gram)
    norms = xp.sqrt(xp.linalg.diagonal(gram))
    if on_host(gram) and not (np.all(norms > 0) and np.all(np.isfinite(norms))):
        return None
    try:
        lower = xp.linalg.cholesky(gram / norms / norms[:, None])
    except Exception as problem:
        if "LinAlgError" in type(problem).__name__:  # each library has its own
            return None
        raise
    return lower.T * norms


def condition_bound(matrix: Any, inverse: Any) -> Any:
    """At least k + 1/k for the condition number k, and close to it where that is small.

    The product of the Frobenius norms is at least k + 1/k + n - 2 (Cauchy-Schwarz, with the largest and the
    smallest singular value taken apart from the rest).
    """
    xp = array_namespace(matrix)
    return xp.sqrt(xp.sum(matrix**2) * xp.sum(inverse**2)) - (matrix.shape[0] - 2)
