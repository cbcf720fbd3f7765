"""Networks with fixed random weights: one hidden layer, or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from .._validation import (
    Checked,
    Count,
    NotNegative,
    Positive,
    require_numbers,
    require_one_of,
    require_whole_number,
)
from ..errors import DataError, ParameterError
from ..typing import Floats

ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0.0),
    "sin": np.sin,
    "square": np.square,
    "linear": lambda a: a,
}
Activation = Annotated[str, partial(require_one_of, options=ACTIVATIONS)]


class _Network(Checked):
    """What both networks share: layers, and noise that is added to the last of them."""

    n_inputs: int
    activation: str
    noise: float
    _layers: Any  # a list with the weights (inputs of the layer, units) and bias (units,) of each

    def __call__(self, u: Any, seed: Any = None) -> Floats:
        """Return readouts (samples, readouts).

        Parameters
        ----------
        u
            Inputs (samples, inputs).
        seed
            The seed of the noise; different noise each time by default.
        """
        x = require_numbers("u", u, finite=False)
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise DataError(f"u has shape {x.shape}; this system needs (samples, {self.n_inputs}).")
        activation = ACTIVATIONS[self.activation]
        for weights, bias in self._layers:
            x = activation(x @ weights + bias)
        if self.noise:
            x = x + self.noise * np.random.default_rng(seed).standard_normal(x.shape)
        return x


@dataclass(frozen=True)
class RandomFeatures(_Network):
    """One hidden layer with fixed random weights: x_i = activation(gain w_i · u + bias_i) + noise.

    Parameters
    ----------
    n_inputs
        The number of inputs.
    n_readouts
        The number of units, all of which are read out.
    activation
        ``"tanh"``, ``"relu"``, ``"sin"``, ``"square"`` or ``"linear"``.
    gain
        The standard deviation of the weights. Biases are uniform on [-1, 1].
    noise
        The standard deviation of what is added to every readout.
    seed
        The seed of the weights, not of the noise.

    Examples
    --------
    >>> RandomFeatures(n_inputs=2, n_readouts=30)(np.zeros((5, 2))).shape
    (5, 30)
    """

    n_inputs: Count
    n_readouts: Count = 50
    activation: Activation = "tanh"
    gain: Positive = 1.0
    noise: NotNegative = 0.0
    seed: int = 0

    @cached_property
    def _layers(self) -> list[tuple[Floats, Floats]]:
        generator = np.random.default_rng(self.seed)
        weights = self.gain * generator.standard_normal((self.n_inputs, self.n_readouts))
        bias = generator.uniform(-1, 1, self.n_readouts)
        return [(weights, bias)]


@dataclass(frozen=True)
class FeedForward(_Network):
    """A feed-forward network with fixed random weights, whose last layer is read out.

    Each layer is x -> activation(gain w x / sqrt(inputs of the layer) + bias). Networks of one seed
    that begin with the same widths begin with the same layers: to read out an inner layer, make the
    network that ends there.

    Parameters
    ----------
    n_inputs
        The number of inputs.
    widths
        The number of units of each layer.
    activation
        ``"tanh"``, ``"relu"``, ``"sin"``, ``"square"`` or ``"linear"``.
    gain
        The standard deviation of what enters a unit, for inputs of size 1.
    bias
        The standard deviation of the biases.
    noise
        The standard deviation of what is added to every readout.
    seed
        The seed of the weights, not of the noise.

    Examples
    --------
    >>> FeedForward(n_inputs=3, widths=(40, 40))(np.zeros((5, 3))).shape
    (5, 40)
    """

    n_inputs: Count
    widths: Sequence[int] = (40, 40)
    activation: Activation = "tanh"
    gain: Positive = 1.5
    bias: NotNegative = 0.5
    noise: NotNegative = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.widths, str) or not isinstance(self.widths, Sequence) or not self.widths:
            raise ParameterError(
                f"`widths={self.widths!r}` must be a list of layer sizes, such as (40, 40)."
            )
        widths = tuple(require_whole_number("widths", width, 1) for width in self.widths)
        object.__setattr__(self, "widths", widths)

    @cached_property
    def _layers(self) -> list[tuple[Floats, Floats]]:
        generator = np.random.default_rng(self.seed)
        layers = []
        for fan_in, width in pairwise([self.n_inputs, *self.widths]):
            weights = self.gain / np.sqrt(fan_in) * generator.standard_normal((fan_in, width))
            bias = self.bias * generator.standard_normal(width)
            layers.append((weights, bias))
        return layers
