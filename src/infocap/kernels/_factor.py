"""Orthonormal columns and their triangle: QR, at the speed of matrix products where that is safe."""

from __future__ import annotations

import numpy as np

from ..typing import Floats

SAFE_PIVOT = 1e-4  # of unit columns; the squared condition number then leaves 8 digits to repair


def orthonormal_factor(x: Floats) -> tuple[Floats, Floats]:
    """x = q @ triangle with q'q = 1; x is (samples, columns).

    Tall blocks are factored by Cholesky twice ("CholeskyQR2"): the Gram matrix loses half the digits, the
    second round gets them back, and both are matrix products. That is as orthonormal as Householder's
    method while the columns are not nearly dependent; when a pivot says they are, Householder's is used.
    """
    rows, columns = x.shape
    if rows < 2 * columns:
        return np.linalg.qr(x)
    gram = x.T @ x
    norms = np.sqrt(np.diag(gram))
    if not np.all(norms > 0):
        return np.linalg.qr(x)
    try:
        first = np.linalg.cholesky(gram / np.outer(norms, norms)).T
        if np.min(np.diag(first)) < SAFE_PIVOT:
            return np.linalg.qr(x)
        q = x @ (np.linalg.inv(first) / norms[:, None])
        second = np.linalg.cholesky(q.T @ q).T
    except np.linalg.LinAlgError:
        return np.linalg.qr(x)
    return q @ np.linalg.inv(second), (second @ first) * norms
