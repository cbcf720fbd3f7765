"""How much a linear network remembers, exactly: its capacity for every input and delay."""

from typing import Any

import numpy as np

from .._check import number, positive, whole_number
from ..errors import DataError, ParameterError
from ..kernels._summary import RANK_TOLERANCE
from ..typing import ArrayLike, Floats


def linear_memory(
    a: ArrayLike,
    b: ArrayLike,
    *,
    noise: float | ArrayLike = 0.0,
    state_noise: float = 0.0,
    max_delay: int = 100,
    variance: float = 1.0,
) -> Floats:
    """Exact capacities (delays, inputs) of x[t] = a x[t-1] + b u[t] for the inputs u_j[t - delay].

    A linear network with independent inputs of mean zero holds these functions and no others. The covariance of its
    state solves the Lyapunov equation P = a P a' + variance b b' + state_noise² 1. It is summed as a product R R', by
    doubling, so that directions that are 1e-15 times weaker than others still count, as they do without noise.

    Parameters
    ----------
    a, b
        Recurrent weights (nodes, nodes), of spectral radius below 1, and input weights (nodes,) or (nodes, inputs).
    noise
        Standard deviation of the noise on the readouts: one number, or one per node.
    state_noise
        Standard deviation of the noise that enters every node at every step.
    variance
        Of the inputs: 1 for standard normal inputs, 1/3 for inputs uniform on [-1, 1].

    Examples
    --------
    One leaky integrator, of which (1 - a²) a^(2 delay) is known:

    >>> linear_memory([[0.5]], [1.0], max_delay=2)[:, 0]
    array([0.75    , 0.1875  , 0.046875])
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    b = b[:, None] if b.ndim == 1 else b
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.ndim != 2 or len(b) != len(a):
        raise DataError(f"a has shape {a.shape}, b {b.shape}; give (nodes, nodes) and (nodes, inputs).")
    if (radius := float(np.abs(np.linalg.eigvals(a)).max())) >= 1:
        raise ParameterError(f"`a` has the spectral radius {radius:.6g}: its memory does not fade; it must be below 1.")
    outside: Any = np.asarray(noise, dtype=float)
    if outside.shape not in ((), (1,), (len(a),)) or not np.all(outside >= 0):
        raise ParameterError(f"`noise={noise!r}` must be 0 or more: one number, or one for each of {len(a)} nodes.")
    b = np.sqrt(positive("variance", variance)) * b
    inside = number("state_noise", state_noise, 0.0) * np.eye(len(a))
    root, power = np.hstack([b, inside]), a
    while np.abs(power).max() > np.finfo(float).tiny ** 0.5:
        triangle: Floats = np.linalg.qr(np.hstack([root, power @ root]).T, mode="r")  # type: ignore[assignment]
        root = triangle.T
        power = power @ power
    root = np.hstack([root, np.diag(np.broadcast_to(outside, len(a)))])
    scale = np.linalg.norm(root, axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    frame, singular, _ = np.linalg.svd(root / scale, full_matrices=False)
    kept = singular > RANK_TOLERANCE * singular[0]
    delayed, capacities = b, []
    for _ in range(whole_number("max_delay", max_delay, 0) + 1):
        capacities.append(np.sum((frame[:, kept].T @ (delayed / scale) / singular[kept, None]) ** 2, axis=0))
        delayed = a @ delayed
    return np.array(capacities)
