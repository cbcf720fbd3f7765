"""Reservoirs: systems with memory, which answer a sequence of inputs step by step; and how soon they forget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np

from .._arrays import to_numpy
from .._validation import (
    Checked,
    Count,
    Finite,
    NotNegative,
    Positive,
    one_of,
    positive,
    whole_number,
)
from ..errors import DataError, ParameterError
from ..typing import Floats, System
from ._measure import measure
from ._networks import ACTIVATIONS, Activation


class _Reservoir(Checked):
    """What reservoirs share: sequences in and out, one step after the other, and noise in the state and on readouts."""

    n_nodes: int
    n_inputs: int
    noise: float
    state_noise: float
    input_weights: Any  # (nodes, inputs)
    _step: Any  # the next state (runs, nodes), from the last one and what enters each node

    def __call__(self, u: Any, seed: Any = None) -> Floats:
        """Readouts (steps, nodes) for inputs (steps,) or (steps, inputs); a seed makes the noise reproducible.

        Inputs (runs, steps, inputs) are independent runs, computed together: readouts (runs, steps, nodes). Every run
        starts from rest.
        """
        u = np.asarray(u, dtype=float)
        runs = u[None, :, None] if u.ndim == 1 else u[None] if u.ndim == 2 else u
        if runs.ndim != 3 or runs.shape[2] != self.n_inputs:
            wanted = f"(steps, {self.n_inputs}) or (runs, steps, {self.n_inputs})"
            raise DataError(f"u has shape {u.shape}; this system wants a sequence {wanted}.")
        generator = np.random.default_rng(seed)
        x = (
            np.swapaxes(runs, 0, 1) @ self.input_weights.T
        )  # what enters each node; replaced by its state
        state = np.zeros(x.shape[1:])
        for step, entering in enumerate(x):
            state = self._step(state, entering)
            if self.state_noise:
                state = state + self.state_noise * generator.standard_normal(state.shape)
            x[step] = state
        if self.noise:
            x += self.noise * generator.standard_normal(x.shape)
        x = np.swapaxes(x, 0, 1)
        return x if u.ndim == 3 else x[0]


@dataclass(frozen=True)
class EchoState(_Reservoir):
    """A recurrent network with fixed random weights: x[t] = (1 - leak) x[t-1] + leak tanh(W x[t-1] + w u[t] + b).

    W is normal, scaled to the spectral radius `radius`; w is uniform within ± `input_scale`, b within ± `bias`.
    Without bias the network is odd: readouts of inputs symmetric about zero hold odd degrees only.
    With ``activation="linear"`` its capacities are known exactly, see `infocap.theory.linear_memory`.

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
    noise: NotNegative = 0.0  # standard deviation of what is added to every readout
    state_noise: NotNegative = (
        0.0  # standard deviation of what enters every node at every step, and stays in the loop
    )
    seed: int = 0  # of the weights, not of the noise

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.leak <= 1:
            raise ParameterError(f"`leak={self.leak!r}` must lie above 0 and be at most 1.")

    @cached_property
    def _weights(self) -> tuple[Floats, Floats, Floats]:
        generator = np.random.default_rng(self.seed)
        w = generator.standard_normal((self.n_nodes, self.n_nodes))
        w *= self.radius / np.abs(np.linalg.eigvals(w)).max()
        entering = self.input_scale * generator.uniform(-1, 1, (self.n_nodes, self.n_inputs))
        return w, entering, self.bias * generator.uniform(-1, 1, self.n_nodes)

    @property
    def recurrent_weights(self) -> Floats:
        """W (nodes, nodes)."""
        return self._weights[0]

    @property
    def input_weights(self) -> Floats:
        """The input weights w (nodes, inputs)."""
        return self._weights[1]

    def _step(self, state: Floats, entering: Floats) -> Floats:
        w, _, bias = self._weights
        return (1 - self.leak) * state + self.leak * ACTIVATIONS[self.activation](
            state @ w.T + entering + bias
        )


@dataclass(frozen=True)
class DelayLine(_Reservoir):
    """The last `n_nodes` inputs and nothing else: x_k[t] = u[t-k] plus noise, for k = 0, ..., n_nodes - 1.

    Each delay has the capacity v / (v + noise²), v being the variance of the inputs, and every other function 0.

    >>> DelayLine(3)([1.0, 2.0, 3.0])
    array([[1., 0., 0.],
           [2., 1., 0.],
           [3., 2., 1.]])
    """

    n_nodes: Count = 10
    noise: NotNegative = 0.0  # standard deviation of what is added to every readout

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
Nonlinearity = Annotated[str, partial(one_of, options=NONLINEARITIES)]


@dataclass(frozen=True)
class DelayReservoir(_Reservoir):
    """One nonlinear node with delayed feedback, read out at `n_nodes` virtual nodes along the delay.

    The node obeys x'(s) = -x(s) + feedback f(x(s - delay) + input_scale m(s) u[t] + bias), time in units of its own
    response time. Every input is held for one delay and multiplied by a mask m, one random level within ± 1 per virtual
    node. f is ``"mackey-glass"``, s / (1 + abs(s)^exponent) (Appeltant et al., Nature Communications 2, 468, 2011), or
    ``"ikeda"``, sin²(s), the opto-electronic oscillator (Larger et al., Opt. Express 20, 3241, 2012).
    From one virtual node to the next the delayed value is held, and the low-pass part is then integrated exactly:
    x_i[t] = r x_{i-1}[t] + (1 - r) feedback f(...) with r = exp(-separation).

    >>> u = np.random.default_rng(1).uniform(-1, 1, 500)
    >>> DelayReservoir(40, nonlinearity="ikeda")(u).shape
    (500, 40)
    """

    n_nodes: Count = 50
    nonlinearity: Nonlinearity = "mackey-glass"
    feedback: NotNegative = 0.95
    input_scale: NotNegative = 0.1
    bias: Finite = 0.2
    separation: Positive = 0.2  # of two virtual nodes, in units of the node's response time
    exponent: NotNegative = 1.0  # of the Mackey-Glass nonlinearity
    n_inputs: Count = 1
    noise: NotNegative = 0.0  # standard deviation of what is added to every readout
    state_noise: NotNegative = (
        0.0  # standard deviation of what is added to every virtual node, and stays in the loop
    )
    seed: int = 0  # of the mask, not of the noise

    @cached_property
    def input_weights(self) -> Floats:
        """The mask times `input_scale`, (nodes, inputs)."""
        return self.input_scale * np.random.default_rng(self.seed).uniform(
            -1, 1, (self.n_nodes, self.n_inputs)
        )

    @cached_property
    def _low_pass(self) -> tuple[Floats, Floats]:
        """What f of each virtual node adds to each, (nodes, nodes), and what is left there of the last one's value."""
        node = np.arange(self.n_nodes)
        response = -np.expm1(-self.separation) * np.exp(
            -self.separation * np.abs(node - node[:, None])
        )
        return np.triu(response), np.exp(-self.separation * (node + 1))

    def _step(self, state: Floats, entering: Floats) -> Floats:
        response, left = self._low_pass
        f = self.feedback * NONLINEARITIES[self.nonlinearity](
            state + entering + self.bias, self.exponent
        )
        return f @ response + state[:, -1:] * left


N_PASTS = 4  # different pasts that check_fading compares


def check_fading(
    system: System,
    drive: Any,
    *,
    n_steps: int = 2000,
    tolerance: float = 1e-3,
    seed: int | None = 0,
) -> int:
    """The washout that a system needs: steps after which its readouts no longer tell from which state it started.

    Capacities of sequences need fading memory: readouts may depend on recent inputs, not on how it all began. Here
    different pasts, `n_steps` inputs in an order of their own, lead a system into different states, and once it starts
    from rest; then the same inputs drive it, and the readouts must become equal. If they do not, a DataError says so.

    Parameters
    ----------
    system
        A callable (steps, inputs) -> (steps, readouts). Its noise must be repeatable: each run gets the same `seed`.
    drive
        A basis, from whose distributions inputs are drawn, or inputs (2 `n_steps`, inputs) of your own.
    tolerance
        Readouts that differ by less, in standard deviations of each, count as equal. A transient of 0.001 at the start
        of N samples changes capacities by about 1e-6 / N.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=1)
    >>> check_fading(infocap.systems.DelayLine(20), basis)
    19
    """
    n_steps = whole_number("n_steps", n_steps, 2)
    generator = np.random.default_rng(seed)
    if families := getattr(drive, "families", None):
        u = np.column_stack([family.quantile(generator.random(2 * n_steps)) for family in families])
    else:
        u = to_numpy(drive).astype(float)
    if len(u) < 2 * n_steps:
        raise DataError(
            f"drive has {len(u)} steps; give {2 * n_steps}, or `n_steps={len(u) // 2}`."
        )
    future = u[n_steps : 2 * n_steps]
    driven = [np.concatenate([generator.permutation(u[:n_steps]), future]) for _ in range(N_PASTS)]
    first, *others = (to_numpy(measure(system, past, seed))[n_steps:] for past in driven)
    # From rest the noise is another one: two such runs tell how much that alone is; 1.5 times as much is no memory.
    rest, again = (
        to_numpy(measure(system, future, one)) for one in (seed, None if seed is None else seed + 1)
    )
    deviation = first.std(axis=0)

    def distance(x: Floats, y: Floats) -> Floats:
        """Root mean square over the readouts, in standard deviations of each, at every step."""
        return np.sqrt(np.mean(((x - y) / np.where(deviation > 0, deviation, np.inf)) ** 2, axis=1))

    tolerance = positive("tolerance", tolerance)
    alone = max(tolerance, 1.5 * distance(rest, again).max())
    apart = np.max(
        [*(distance(first, x) / tolerance for x in others), distance(first, rest) / alone], axis=0
    )
    late = np.flatnonzero(~(apart < 1))
    if len(late) and late[-1] == n_steps - 1:
        raise DataError(
            f"after {n_steps} steps, runs from different states are {apart[-1]:.2g} times farther apart than noise and "
            f"`tolerance={tolerance:g}` allow: the system is chaotic, has several states to settle in, or noise that "
            "no `seed` repeats; lower its feedback, or give more `n_steps` if it is only slow."
        )
    return int(late[-1]) + 1 if len(late) else 0
