"""Least squares on the reported basis in two passes over the data: the fast path, whatever the number of samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..kernels import Evidence, inverse_of_gram
from ..typing import Floats
from ._second_order import Block, SecondOrder, second_order

LEAST_ROOM = 1e-6


def least_squares(evidence: Evidence, independent: bool) -> tuple[SecondOrder, float] | None:
    """The second-order expansion around c = (Y'Y)^-1 Y'Z, and tr (Y'Y)^-1, the noise gain.

    The coefficients are means over the samples, c = mean(eta z), with the exact weights eta = N (Y'Y)^-1 y of
    this design in the place of y. So the expansion is that of eta, with e = (z - Hz) / sqrt(1 - h), whose
    covariance is that of the noise. None when the functions are not independent on these points.
    """
    n, row_of = evidence.n_samples, evidence.walk.basis.row_of
    gram, cross, power = _sums(evidence)
    try:
        inverse = inverse_of_gram(gram)
    except np.linalg.LinAlgError:
        return None
    c = inverse @ cross
    noise_gain = float(np.trace(inverse))
    noise = (power - cross.T @ c) / (n - len(c))
    covariance = c.T @ c + noise * (1 - noise_gain)

    def blocks() -> Iterator[Block]:
        eta = np.empty((0, 0))
        for y, z in _samples(evidence):
            eta = np.matmul(inverse, y, out=eta if eta.shape == y.shape else None)
            room = np.maximum(1 - np.einsum("ij,ij->j", eta, y), LEAST_ROOM)
            eta *= n
            e = (z - y.T @ c) / np.sqrt(room)[:, None]
            yield Block(eta, eta.T @ c + e, e, e, e / np.sqrt(1 - len(c) / n))

    found = second_order(
        c[row_of],
        (covariance + covariance.T) / 2,
        noise,
        blocks(),
        n_samples=n,
        row_of=row_of,
        independent=independent,
    )
    return found, noise_gain


def squares_bytes(n_samples: int, n_readouts: int, terms: int, block_rows: int) -> float:
    """Memory that the two passes take: matrices of all functions, a few blocks, a number for each sample."""
    return 8.0 * (4 * terms * terms + 8 * terms * (block_rows + n_readouts) + 3 * n_samples)


def _samples(evidence: Evidence) -> Iterator[tuple[Floats, Floats]]:
    """Targets (terms, samples) in the row order of the basis's blocks, and readouts (samples, rank)."""
    for part in evidence.walk.slabs():
        for start, stop in part.pieces(0, part.n_samples):
            z, row = evidence.framed(start, stop, part), 0
            for y in part.targets(start, stop):
                yield y, z[row : row + y.shape[1]]
                row += y.shape[1]


def _sums(evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """Y'Y, Y'Z and Z'Z."""
    terms, rank = len(evidence.walk.basis), evidence.rank
    gram, cross, power = np.zeros((terms, terms)), np.zeros((terms, rank)), np.zeros((rank, rank))
    for y, z in _samples(evidence):
        gram += y @ y.T
        cross += y @ z
        power += z.T @ z
    return gram, cross, power
