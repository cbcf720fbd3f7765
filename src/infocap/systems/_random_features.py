"""A random-feature network: the simplest nonlinear system with many readouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._check import one_of, positive, whole_number
from ..errors import DataError, ParameterError
from ..typing import Floats

ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0.0),
    "sin": np.sin,
    "square": np.square,
}


@dataclass(frozen=True)
class RandomFeatures:
    """x_i = activation(gain w_i · u + bias_i), with fixed random weights, plus additive noise.

    >>> RandomFeatures(n_inputs=2, n_readouts=30)(np.zeros((5, 2))).shape
    (5, 30)
    """

    n_inputs: int
    n_readouts: int = 50
    activation: str = "tanh"
    gain: float = 1.0
    noise: float = 0.0  # standard deviation of what is added to every readout
    seed: int = 0  # of the weights, not of the noise

    def __post_init__(self) -> None:
        whole_number("n_inputs", self.n_inputs, 1)
        whole_number("n_readouts", self.n_readouts, 1)
        one_of("activation", self.activation, ACTIVATIONS)
        positive("gain", self.gain)
        if self.noise < 0:
            raise ParameterError(f"noise={self.noise!r} is a standard deviation; give 0 or more.")

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        generator = np.random.default_rng(self.seed)
        weights = generator.standard_normal((self.n_inputs, self.n_readouts))
        return weights, generator.uniform(-1, 1, self.n_readouts)

    def __call__(self, u: Floats, seed: Any = None) -> Floats:
        """Readouts (samples, n_readouts); a seed makes the noise reproducible."""
        u = np.asarray(u, dtype=float)
        if u.ndim != 2 or u.shape[1] != self.n_inputs:
            raise DataError(f"u has shape {u.shape}; this system wants (samples, {self.n_inputs}).")
        weights, bias = self._weights
        x = ACTIVATIONS[self.activation](self.gain * (u @ weights) + bias)
        return x + self.noise * np.random.default_rng(seed).standard_normal(x.shape) if self.noise else x
