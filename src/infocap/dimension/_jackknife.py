"""The noise share tr(G⁻¹V) from repeats: its bias and standard error by leaving out each input in turn.

In whitened coordinates G_N = 1, so the plain estimate is tr V_N. It is a ratio of averages over the same
inputs, and E[tr(G_N⁻¹V_N)] = tr(G⁻¹V) + b/N + ..., with b = E[tr(g g V) - tr(g w)], where g and w are what one
input contributes to G_N and V_N: an inverse is biased upwards, and fewer inputs bias it more. Leaving out
one of N inputs changes G_N by a matrix of rank R, the number of repeats, so all N leave-one-out values cost
no more than whitening; they measure b with the moments that the data really have, and the influence of
every input with them.

How to apply b matters when N is a few times K. For Gaussian readouts the expectations are known: noise
directions beside s noise-free ones give T / (1 - s/2N), noisy directions of strong signals T / (1 - K/N).
Both are geometric series in 1/N, so dividing by 1 + bias/T sums them where subtracting the bias, as the
jackknife does, stops after the first term. It also keeps the noise share positive, whatever the data.
"""

from __future__ import annotations

import numpy as np

from ..typing import Floats
from ._whiten import Whitened

ALONE = 1e-9  # keeps the inverse finite when a direction exists at one input only


def noise_covariance(z: Floats) -> Floats:
    """Covariance of single shots (inputs, repeats, directions) around the mean of their input, unbiased."""
    rest = (z - z.mean(axis=1, keepdims=True)).reshape(-1, z.shape[2])
    return rest.T @ rest / (len(z) * (z.shape[1] - 1))


def noise_share(data: Whitened, noise: Floats, constant: bool) -> tuple[float, float]:
    """tr(G⁻¹V), corrected for its bias, and its standard error."""
    plain = float(np.trace(noise))
    if plain == 0:
        return 0.0, 0.0
    n = data.n_inputs
    without = leave_one_out(data, noise, constant)
    inflation = (
        1 + (n - 1) * (without.mean() - plain) / plain
    )  # at least 1 / n: no trace falls below its share
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return plain / inflation, float(error) / inflation


def leave_one_out(data: Whitened, noise: Floats, constant: bool) -> Floats:
    """tr(G⁻¹V) without each of the inputs, those measured once last.

    With g = a'a / R for the shots a (repeats, directions) of an input, the inverse of N - g is
    (1 + a'(N R - a a')⁻¹ a) / N. Centring is part of G: the constant is one more direction, without noise.
    """
    n, n_repeated, repeats = data.n_inputs, len(data.repeated), data.repeated.shape[1]
    plain = np.trace(noise)
    inner, gain = _inner(data.repeated, n, constant)
    centring = (np.eye(repeats) - 1 / repeats) / (repeats - 1)
    own = np.sum(inner * centring, axis=(1, 2))
    seen = n_repeated * _form(data.repeated, noise) - inner @ centring @ inner
    repeated = (n_repeated * plain - own + np.sum(gain * seen, axis=(1, 2))) / (n_repeated - 1)
    _, gain = _inner(data.once, n, constant)
    once = plain + np.sum(gain * _form(data.once, noise), axis=(1, 2))
    return (n - 1) / n * np.concatenate([repeated, once])


def _inner(z: Floats, n_inputs: int, constant: bool) -> tuple[Floats, Floats]:
    """a a' of each input, (inputs, repeats, repeats), and (N R - a a')⁻¹."""
    repeats = z.shape[1]
    inner = z @ z.transpose(0, 2, 1) + float(constant)
    return inner, np.linalg.inv(n_inputs * repeats * (1 + ALONE) * np.eye(repeats) - inner)


def _form(z: Floats, matrix: Floats) -> Floats:
    """a M a' of each input."""
    return (z @ matrix) @ z.transpose(0, 2, 1)
