"""Reservoirs: systems with memory, which answer a sequence step by step; how soon they forget.

A reservoir is its input weights and a function `_step`, from the last state and what enters the
nodes to the next state. Several runs are computed side by side, so a state is an array (runs,
nodes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from .._arrays import to_numpy
from .._validation import (
    Checked,
    Count,
    Finite,
    NotNegative,
    Positive,
    checks_arguments,
    require_numbers,
    require_one_of,
    require_whole_number,
)
from ..errors import DataError, ParameterError
from ..typing import Floats, System
from ._measure import measure
from ._networks import ACTIVATIONS, Activation

# How many different pasts `check_fading` compares.
N_PASTS = 4
# Readouts that differ by less, in standard deviations of each, count as equal to `check_fading`. A
# transient of 0.001 at the start of N samples changes capacities by about 1e-6 / N.
MAX_DIFFERENCE_OF_EQUALS = 1e-3
# The distance of a run from rest, over that of two runs with different noise, may be so large: more
# is memory of the start.
MAX_DISTANCE_FROM_REST_TO_NOISE = 1.5


class _Reservoir(Checked):
    """What reservoirs share: the loop over the steps, and noise in the state and on readouts."""

    n_nodes: int
    n_inputs: int
    noise: float
    state_noise: float
    input_weights: Any  # (nodes, inputs)
    _step: Any  # the next state (runs, nodes), from the last one and what enters each node

    def __call__(self, u: Any, seed: Any = None) -> Floats:
        """Return readouts (steps, nodes), or (runs, steps, nodes) of several runs.

        Every run starts from rest.

        Parameters
        ----------
        u
            Inputs (steps,) or (steps, inputs). Inputs (runs, steps, inputs) are independent runs,
            which are computed together.
        seed
            The seed of the noise; different noise each time by default.
        """
        u = require_numbers("u", u, finite=False)
        runs = self._as_runs(u)
        generator = np.random.default_rng(seed)
        # What enters each node at each step, (steps, runs, nodes). Each step is replaced by the
        # state it leads to.
        x = np.swapaxes(runs, 0, 1) @ self.input_weights.T
        state = np.zeros(x.shape[1:])
        for step, entering in enumerate(x):
            state = self._step(state, entering)
            if self.state_noise:
                state = state + self.state_noise * generator.standard_normal(state.shape)
            x[step] = state
        if self.noise:
            x += self.noise * generator.standard_normal(x.shape)
        readouts = np.swapaxes(x, 0, 1)
        return readouts if u.ndim == 3 else readouts[0]

    def _as_runs(self, u: Floats) -> Floats:
        """Return inputs of any of the shapes that `__call__` takes as (runs, steps, inputs)."""
        runs = u
        if u.ndim == 1:
            runs = u[None, :, None]
        if u.ndim == 2:
            runs = u[None]
        if runs.ndim != 3 or runs.shape[2] != self.n_inputs:
            raise DataError(
                f"u has shape {u.shape}; this system needs a sequence (steps, {self.n_inputs}) or "
                f"(runs, steps, {self.n_inputs})."
            )
        return runs


class _NetworkWeights(NamedTuple):
    """What an echo state network draws once and keeps."""

    recurrent: Floats  # W (nodes, nodes)
    of_inputs: Floats  # w (nodes, inputs)
    bias: Floats  # b (nodes,)


@dataclass(frozen=True)
class EchoState(_Reservoir):
    """A recurrent network with fixed random weights.

    Its state is x[t] = (1 - leak) x[t-1] + leak tanh(W x[t-1] + w u[t] + b).

    Without bias the network is odd: readouts of inputs symmetric about zero hold odd degrees only.
    With ``activation="linear"`` its capacities are known exactly, see
    `infocap.theory.linear_memory`.

    Parameters
    ----------
    n_nodes
        The number of nodes, all of which are read out.
    radius
        The spectral radius of W, which is normal.
    input_scale
        Input weights w are uniform within ± this.
    leak
        The share of the state that a step replaces, above 0 and at most 1.
    bias
        Biases b are uniform within ± this.
    n_inputs
        The number of inputs.
    activation
        ``"tanh"``, as in the formula, or ``"relu"``, ``"sin"``, ``"square"``, ``"linear"``.
    noise
        The standard deviation of what is added to every readout.
    state_noise
        The standard deviation of what enters every node at every step, and stays in the loop.
    seed
        The seed of the weights, not of the noise.

    Examples
    --------
    >>> u = np.random.default_rng(1).uniform(-1, 1, 500)
    >>> EchoState(50, radius=0.9, input_scale=0.5, seed=1)(u).shape
    (500, 50)
    """

    n_nodes: Count = 50
    radius: NotNegative = 0.9
    input_scale: NotNegative = 0.5
    leak: Finite = 1.0
    bias: Finite = 0.0
    n_inputs: Count = 1
    activation: Activation = "tanh"
    noise: NotNegative = 0.0
    state_noise: NotNegative = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.leak <= 1:
            raise ParameterError(f"`leak={self.leak!r}` must lie above 0 and be at most 1.")

    @cached_property
    def _weights(self) -> _NetworkWeights:
        generator = np.random.default_rng(self.seed)
        recurrent = generator.standard_normal((self.n_nodes, self.n_nodes))
        recurrent *= self.radius / np.abs(np.linalg.eigvals(recurrent)).max()
        of_inputs = self.input_scale * generator.uniform(-1, 1, (self.n_nodes, self.n_inputs))
        bias = self.bias * generator.uniform(-1, 1, self.n_nodes)
        return _NetworkWeights(recurrent, of_inputs, bias)

    @property
    def recurrent_weights(self) -> Floats:
        """W (nodes, nodes)."""
        return self._weights.recurrent

    @property
    def input_weights(self) -> Floats:
        """The input weights w (nodes, inputs)."""
        return self._weights.of_inputs

    def _step(self, state: Floats, entering: Floats) -> Floats:
        activation = ACTIVATIONS[self.activation]
        recurrent = state @ self._weights.recurrent.T
        driven = activation(recurrent + entering + self._weights.bias)
        return (1 - self.leak) * state + self.leak * driven


@dataclass(frozen=True)
class DelayLine(_Reservoir):
    """The last `n_nodes` inputs and nothing else: x_k[t] = u[t-k] plus noise.

    Each delay has the capacity v / (v + noise²), v being the variance of the inputs, and every
    other function 0.

    Parameters
    ----------
    n_nodes
        The number of delays k = 0, ..., n_nodes - 1.
    noise
        The standard deviation of what is added to every readout.

    Examples
    --------
    >>> DelayLine(3)([1.0, 2.0, 3.0])
    array([[1., 0., 0.],
           [2., 1., 0.],
           [3., 2., 1.]])
    """

    n_nodes: Count = 10
    noise: NotNegative = 0.0

    n_inputs = 1
    state_noise = 0.0

    @property
    def input_weights(self) -> Floats:
        """The input enters the first node: (nodes, 1)."""
        return np.eye(self.n_nodes, 1)

    def _step(self, state: Floats, entering: Floats) -> Floats:
        return np.hstack([entering[:, :1], state[:, :-1]])


NONLINEARITIES: dict[str, Callable[[Floats, float], Floats]] = {
    "mackey-glass": lambda s, exponent: s / (1 + np.abs(s) ** exponent),
    "ikeda": lambda s, _: np.sin(s) ** 2,
}
Nonlinearity = Annotated[str, partial(require_one_of, options=NONLINEARITIES)]


@dataclass(frozen=True)
class DelayReservoir(_Reservoir):
    """One nonlinear node with delayed feedback, read out at virtual nodes along the delay.

    The node obeys x'(s) = -x(s) + feedback f(x(s - delay) + input_scale m(s) u[t] + bias), time in
    units of its own response time. Every input is held for one delay and multiplied by a mask m,
    one random level within ± 1 per virtual node. f is ``"mackey-glass"``, s / (1 + abs(s)^exponent)
    (Appeltant et al., Nature Communications 2, 468, 2011), or ``"ikeda"``, sin²(s), the
    opto-electronic oscillator (Larger et al., Opt. Express 20, 3241, 2012).

    From one virtual node to the next the delayed value is held, and the low-pass part is then
    integrated exactly: x_i[t] = r x_{i-1}[t] + (1 - r) feedback f(...) with r = exp(-separation).

    Parameters
    ----------
    n_nodes
        The number of virtual nodes, all of which are read out.
    nonlinearity
        ``"mackey-glass"`` or ``"ikeda"``.
    feedback
        The factor before f.
    input_scale
        The factor before the masked input.
    bias
        A constant that is added to the argument of f.
    separation
        The time between two virtual nodes, in units of the node's response time.
    exponent
        The exponent of the Mackey-Glass nonlinearity.
    n_inputs
        The number of inputs, each with a mask of its own.
    noise
        The standard deviation of what is added to every readout.
    state_noise
        The standard deviation of what is added to every virtual node, and stays in the loop.
    seed
        The seed of the mask, not of the noise.

    Examples
    --------
    >>> u = np.random.default_rng(1).uniform(-1, 1, 500)
    >>> DelayReservoir(40, nonlinearity="ikeda")(u).shape
    (500, 40)
    """

    n_nodes: Count = 50
    nonlinearity: Nonlinearity = "mackey-glass"
    feedback: NotNegative = 0.95
    input_scale: NotNegative = 0.1
    bias: Finite = 0.2
    separation: Positive = 0.2
    exponent: NotNegative = 1.0
    n_inputs: Count = 1
    noise: NotNegative = 0.0
    state_noise: NotNegative = 0.0
    seed: int = 0

    @cached_property
    def input_weights(self) -> Floats:
        """The mask times `input_scale`, (nodes, inputs)."""
        generator = np.random.default_rng(self.seed)
        mask = generator.uniform(-1, 1, (self.n_nodes, self.n_inputs))
        return self.input_scale * mask

    @cached_property
    def _low_pass(self) -> tuple[Floats, Floats]:
        """What f at each virtual node adds to later ones, and how the last value decays.

        The shapes are (nodes, nodes) and (nodes,).
        """
        node = np.arange(self.n_nodes)
        distance = np.abs(node - node[:, None])
        response = -np.expm1(-self.separation) * np.exp(-self.separation * distance)
        decay = np.exp(-self.separation * (node + 1))
        return np.triu(response), decay

    def _step(self, state: Floats, entering: Floats) -> Floats:
        response, decay = self._low_pass
        nonlinearity = NONLINEARITIES[self.nonlinearity]
        f = self.feedback * nonlinearity(state + entering + self.bias, self.exponent)
        last_value = state[:, -1:]  # of the node at the end of the step before
        return f @ response + last_value * decay


@checks_arguments
def check_fading(
    system: System,
    drive: Any,
    *,
    n_steps: int = 2000,
    seed: int | None = 0,
) -> int:
    """Return how many steps a system needs to forget its initial state: its washout.

    Capacities of sequences need fading memory: readouts may depend on recent inputs, not on how it
    all began. Here four different pasts, `n_steps` inputs in different orders, lead a system into
    different states, and once it starts from rest; then the same inputs drive it, and the readouts
    must become equal to 0.001 of their standard deviation.

    Parameters
    ----------
    system
        A callable (steps, inputs) -> (steps, readouts). Its noise must be repeatable: each run gets
        the same `seed`.
    drive
        A basis, from whose distributions inputs are drawn, or inputs (2 `n_steps`, inputs) of your
        own.
    n_steps
        How many steps lead into the different states, and how many steps the common inputs then
        drive the system.
    seed
        The seed of the inputs, of their orders and of the noise.

    Returns
    -------
    int
        The number of steps after which all runs are equal.

    Raises
    ------
    DataError
        When the readouts do not become equal.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=1)
    >>> check_fading(infocap.systems.DelayLine(20), basis)
    19
    """
    n_steps = require_whole_number("n_steps", n_steps, 2)
    generator = np.random.default_rng(seed)
    u = _driving_inputs(drive, 2 * n_steps, generator)
    past = u[:n_steps]
    future = u[n_steps : 2 * n_steps]

    after_pasts = []  # readouts under the common inputs
    for _ in range(N_PASTS):
        shuffled_past = generator.permutation(past)
        readouts = measure(system, np.concatenate([shuffled_past, future]), seed)
        after_pasts.append(to_numpy(readouts)[n_steps:])
    reference = after_pasts[0]
    scale = reference.std(axis=0)
    # A run from rest has other noise than the rest of the runs. Two such runs tell how much noise
    # alone differs.
    other_seed = None if seed is None else seed + 1
    from_rest = to_numpy(measure(system, future, seed))
    from_rest_again = to_numpy(measure(system, future, other_seed))
    noise = _distance(from_rest, from_rest_again, scale).max()

    allowed_from_rest = max(MAX_DIFFERENCE_OF_EQUALS, MAX_DISTANCE_FROM_REST_TO_NOISE * noise)
    distances = [_distance(reference, from_rest, scale) / allowed_from_rest]
    for readouts in after_pasts[1:]:
        distances.append(_distance(reference, readouts, scale) / MAX_DIFFERENCE_OF_EQUALS)
    farthest = np.max(distances, axis=0)  # at every step, in units of what is allowed
    is_apart = ~(farthest < 1)  # readouts that are not finite count as apart
    steps_apart = np.flatnonzero(is_apart)
    if is_apart[-1]:
        raise DataError(
            f"after {n_steps} steps, runs from different states are {farthest[-1]:.2g} times "
            f"farther apart than noise and {MAX_DIFFERENCE_OF_EQUALS:g} of their standard "
            "deviation allow: the system is chaotic, has several states to settle in, or noise "
            "that no `seed` repeats; lower its feedback, or give more `n_steps` if it is only slow."
        )
    return int(steps_apart[-1]) + 1 if len(steps_apart) else 0


def _driving_inputs(drive: Any, n_steps: int, generator: np.random.Generator) -> Floats:
    """Return inputs (steps, inputs) drawn from the distributions of a basis, or the user's own."""
    families = getattr(drive, "families", None)
    if families:
        columns = [family.quantile(generator.random(n_steps)) for family in families]
        return np.column_stack(columns)
    u: Floats = np.atleast_1d(require_numbers("drive", drive))
    if len(u) < n_steps:
        raise DataError(f"drive has {len(u)} steps; give {n_steps}, or `n_steps={len(u) // 2}`.")
    return u


def _distance(x: Floats, y: Floats, scale: Floats) -> Floats:
    """Return at every step how far apart two runs are.

    It is the root mean square of x - y over the readouts, each in units of its scale.
    """
    varying_scale = np.where(scale > 0, scale, np.inf)  # readouts that never change do not count
    return np.sqrt(np.mean(((x - y) / varying_scale) ** 2, axis=1))
