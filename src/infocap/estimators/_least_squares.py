"""Least squares on the reported basis in two passes over the data: the fast path, whatever the number of samples."""

from collections.abc import Iterator

import numpy as np

from ._evidence import Evidence
from ._second_order import Block, SecondOrder, second_order

# Least value of 1 - leverage that divides a residual: below it a sample is fitted exactly, and only rounding is left.
LEAST_MARGIN = 1e-6


def least_squares(evidence: Evidence, independent: bool) -> tuple[SecondOrder, float] | None:
    """The second-order expansion around c = (Y'Y)^-1 Y'Z, and tr (Y'Y)^-1, the noise gain.

    The coefficients are means over the samples, c = mean(eta z), with the exact weights eta = N (Y'Y)^-1 y of
    this design in the place of y. So the expansion is that of eta, with e = (z - Hz) / sqrt(1 - h), whose
    covariance is that of the noise. None when the functions are not independent on these points.
    """
    n, terms, rank = evidence.n_samples, len(evidence.basis), evidence.rank
    gram, cross, power = np.zeros((terms, terms)), np.zeros((terms, rank)), np.zeros((rank, rank))
    for y, z in evidence.blocks():
        gram += y @ y.T
        cross += y @ z
        power += z.T @ z
    try:
        np.linalg.cholesky(gram)  # fails where the functions are not independent
    except np.linalg.LinAlgError:
        return None
    inverse = np.linalg.inv(gram)
    c = inverse @ cross
    noise_gain = float(np.trace(inverse))
    noise = (power - cross.T @ c) / (n - len(c))
    covariance = c.T @ c + noise * (1 - noise_gain)

    def blocks() -> Iterator[Block]:
        eta = np.empty((0, 0))
        for y, z in evidence.blocks():
            eta = np.matmul(inverse, y, out=eta if eta.shape == y.shape else None)
            margin = np.maximum(1 - np.einsum("ij,ij->j", eta, y), LEAST_MARGIN)
            eta *= n
            e = (z - y.T @ c) / np.sqrt(margin)[:, None]
            yield Block(eta, eta.T @ c + e, e, e, e / np.sqrt(1 - len(c) / n))

    covariance = (covariance + covariance.T) / 2
    found = second_order(c, covariance, noise, blocks(), n_samples=n, independent=independent)
    return found, noise_gain


def squares_bytes(n_samples: int, n_columns: int, terms: int) -> float:
    """Memory that the two passes take: matrices of all functions, a few blocks of values, a number for each sample."""
    return 8.0 * (4 * terms * terms + 8 * terms * n_columns + 3 * n_samples) + 8 * max(8e6, 512.0 * terms)
