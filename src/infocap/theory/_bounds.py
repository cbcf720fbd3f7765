"""What the paper proves about noise and finite samples, as formulas."""

from __future__ import annotations

import numpy as np

from ..errors import DataError
from ..kernels import orthonormal_frame
from ..typing import ArrayLike, Floats


def finite_sample_bias(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Delta(y, X) of every target, where E[C_N] = C + Delta / N + ... (paper, Prop. 5.2).

    Delta = E[(sum_i X~_i²) (y - P_X y)²] / E[y²] is an average over the inputs and the noise: give values
    x (nodes, readouts) and y (nodes, targets) at quadrature nodes with their `weights`, or at very many
    samples. It vanishes where C = 1.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 2)
    >>> nodes, weights = basis.quadrature(8)
    >>> finite_sample_bias(basis(nodes)[:, :2], basis(nodes), weights).round(3)
    array([0.   , 0.   , 2.571])
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise DataError(
            f"x has shape {x.shape} and y {y.shape}; give (nodes, readouts) and (nodes, targets)."
        )
    w = np.full(len(x), 1 / len(x)) if weights is None else np.asarray(weights, dtype=float)
    x, y, w = x[w > 0], y[w > 0], w[w > 0]  # weights of far nodes underflow
    root = np.sqrt(w)[:, None]
    frame = orthonormal_frame(root * x)  # (nodes, rank): X~ times the root of the weights
    rest = root * y - frame @ (frame.T @ (root * y))
    leverage = np.sum(frame**2, axis=1) / w
    return leverage @ rest**2 / (w @ y**2)


def noisy_capacities(weights: ArrayLike, noise_covariance: ArrayLike | None = None) -> Floats:
    """Exact capacities of readouts X = weights @ y + noise, where y are the functions of a basis.

    `weights` is (readouts, terms), `noise_covariance` (readouts, readouts). The noise counts as further
    functions that nobody asks for (paper, section 4), so the capacities are the squared lengths of the
    columns of an orthonormal frame of [weights, noise^(1/2)]: no Gram matrix is inverted.

    >>> noisy_capacities([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.25]])
    array([0.5, 0.8])
    """
    w = np.asarray(weights, dtype=float)
    if w.ndim != 2:
        raise DataError(f"weights has shape {w.shape}; give (readouts, terms).")
    noise = np.zeros((len(w), 0))
    if noise_covariance is not None:
        covariance = np.asarray(noise_covariance, dtype=float)
        if covariance.shape != (len(w), len(w)):
            raise DataError(f"noise_covariance has shape {covariance.shape}; give ({len(w)}, {len(w)}).")
        values, vectors = np.linalg.eigh(covariance)
        if values[0] < -1e-12 * max(abs(values[-1]), 1e-300):
            raise DataError(
                f"noise_covariance has the negative eigenvalue {values[0]:g}; it must be a covariance."
            )
        noise = vectors * np.sqrt(np.maximum(values, 0.0))
    frame = orthonormal_frame(np.hstack([w, noise]).T)
    return np.sum(frame[: w.shape[1]] ** 2, axis=1)
