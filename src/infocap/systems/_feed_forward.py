"""A feed-forward network with fixed random weights: what depth does to a profile, before any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._check import number, one_of, positive, whole_number
from ..errors import DataError, ParameterError
from ..typing import Floats
from ._random_features import ACTIVATIONS


@dataclass(frozen=True)
class FeedForward:
    """Layers x -> activation(gain w x / sqrt(inputs of the layer) + bias), the last one read out, plus additive noise.

    Networks of one seed that begin with the same widths begin with the same layers: to read out an inner layer, make
    the network that ends there.

    >>> FeedForward(n_inputs=3, widths=(40, 40))(np.zeros((5, 3))).shape
    (5, 40)
    """

    n_inputs: int
    widths: Sequence[int] = (40, 40)
    activation: str = "tanh"
    gain: float = 1.5  # standard deviation of what enters a unit, for inputs of size 1
    bias: float = 0.5  # standard deviation of the biases
    noise: float = 0.0  # standard deviation of what is added to every readout
    seed: int = 0  # of the weights, not of the noise

    def __post_init__(self) -> None:
        whole_number("n_inputs", self.n_inputs, 1)
        if isinstance(self.widths, str) or not isinstance(self.widths, Sequence) or not self.widths:
            raise ParameterError(f"widths={self.widths!r} must be a list of layer sizes, such as (40, 40).")
        object.__setattr__(self, "widths", tuple(whole_number("widths", one, 1) for one in self.widths))
        one_of("activation", self.activation, ACTIVATIONS)
        positive("gain", self.gain)
        number("bias", self.bias, 0.0)
        number("noise", self.noise, 0.0)

    @cached_property
    def _layers(self) -> list[tuple[Floats, Floats]]:
        generator, fan_in, layers = np.random.default_rng(self.seed), self.n_inputs, []
        for width in self.widths:
            weights = self.gain / np.sqrt(fan_in) * generator.standard_normal((fan_in, width))
            layers.append((weights, self.bias * generator.standard_normal(width)))
            fan_in = width
        return layers

    def __call__(self, u: Floats, seed: Any = None) -> Floats:
        """Outputs of the last layer, (samples, last width); a seed makes the noise reproducible."""
        x = np.asarray(u, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise DataError(f"u has shape {x.shape}; this system wants (samples, {self.n_inputs}).")
        for weights, bias in self._layers:
            x = ACTIVATIONS[self.activation](x @ weights + bias)
        return x + self.noise * np.random.default_rng(seed).standard_normal(x.shape) if self.noise else x
