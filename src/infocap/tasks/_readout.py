"""Linear readouts for classification: what is trained on top of a system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._check import number, one_of
from ..errors import ParameterError
from ..typing import Floats, Integers

READOUTS = ("least-squares", "ridge", "logistic")
PENALTY = {"least-squares": 0.0, "ridge": 1e-6, "logistic": 1e-6}


@dataclass(frozen=True, eq=False)
class Weights:
    """A score for each class, linear in the readouts: (x - mean) / scale @ weights + offset."""

    mean: Floats
    scale: Floats
    weights: Floats  # (readouts, classes)
    offset: Floats  # (classes,)

    def scores(self, x: Floats) -> Floats:
        """Scores (samples, classes); the highest wins."""
        return (x - self.mean) / self.scale @ self.weights + self.offset


def check_readout(method: Any, penalty: Any) -> float:
    """The penalty of a readout, the one given or the usual one."""
    one_of("readout", method, READOUTS)
    if penalty is None:
        return PENALTY[method]
    if method == "least-squares":
        raise ParameterError(f"penalty={penalty!r} has no meaning for 'least-squares'; use readout='ridge'.")
    return number("penalty", penalty, least=0.0)


def fit(x: Floats, codes: Integers, n_classes: int, method: str, penalty: float) -> Weights:
    """Train on readouts x (samples, readouts) and class numbers; the readouts' units do not matter.

    ``"least-squares"`` regresses an indicator of each class on the readouts (the paper's way), ``"ridge"`` adds
    penalty |w|² to the mean square error, ``"logistic"`` minimises the mean log-loss plus penalty |w|² / 2; all on
    readouts scaled to unit variance, none penalising the offset.
    """
    mean = x.mean(axis=0)
    spread = np.std(x, axis=0)
    scale = np.where(spread > 32 * np.finfo(float).eps * np.abs(mean), spread, np.inf)  # constant: no weight
    z = (x - mean) / scale
    if method == "logistic":
        weights, offset = _logistic(z, codes, n_classes, penalty)
        return Weights(mean, scale, weights, offset)
    y = np.eye(n_classes)[codes]
    offset = y.mean(axis=0)
    if penalty:
        gram = z.T @ z + penalty * len(z) * np.eye(z.shape[1])
        weights = np.linalg.solve(gram, z.T @ y)
    else:
        weights = np.linalg.lstsq(z, y - offset, rcond=None)[0]
    return Weights(mean, scale, weights, offset)


def _logistic(z: Floats, codes: Integers, n_classes: int, penalty: float) -> tuple[Floats, Floats]:
    """Multinomial logistic regression by L-BFGS, on the mean log-loss."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    y = np.eye(n_classes)[codes]
    n, k = z.shape

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights, offset = flat[: k * n_classes].reshape(k, n_classes), flat[k * n_classes :]
        log_p = log_softmax(z @ weights + offset, axis=1)
        slope = (np.exp(log_p) - y) / n
        value = -np.sum(y * log_p) / n + penalty / 2 * np.sum(weights**2)
        return value, np.concatenate([(z.T @ slope + penalty * weights).ravel(), slope.sum(axis=0)])

    found = minimize(
        loss, np.zeros((k + 1) * n_classes), jac=True, method="L-BFGS-B", options={"maxiter": 2000}
    )
    return found.x[: k * n_classes].reshape(k, n_classes), found.x[k * n_classes :]
