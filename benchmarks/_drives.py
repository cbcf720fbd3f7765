"""Drives whose values depend on each other, noise of three kinds, and devices with and without memory.

A drive makes stationary input sequences (sequences, steps, inputs) with values in [-1, 1]; a device makes readouts without
noise (sequences, steps, nodes) of them. All sequences are made at once, so that long runs are many short sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import solve_discrete_lyapunov
from scipy.signal import lfilter
from scipy.special import ndtr

Array = np.ndarray

# Steps after which devices have forgotten how they began.
SETTLING = 300

# ---------------------------------------------------------------------------------------------
# Drives
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drive:
    """A law of input sequences.

    `is_symmetric` says that u and -u have the same law; `is_independent` that inputs are uniform on [-1, 1] and
    independent of each other; `is_slow` that they stay large for so long that gains above one grow without limit.
    """

    name: str
    draw: Callable[[np.random.Generator, int, int], Array]
    is_symmetric: bool = False
    is_independent: bool = False
    is_slow: bool = True
    n_inputs: int = 1


def autoregressive(rng: np.random.Generator, shape: tuple[int, ...], persistence: float) -> Array:
    """Return normal sequences of variance 1 along axis 1, with the correlation persistence^k at lag k."""
    shocks = rng.standard_normal(shape)
    shocks[:, 1:] *= np.sqrt(1 - persistence**2)
    return lfilter([1.0], [1.0, -persistence], shocks, axis=1)


def independent(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    return rng.uniform(-1, 1, (n_sequences, n_steps, 1))


def uniform_autoregressive(
    rng: np.random.Generator, n_sequences: int, n_steps: int, persistence: float
) -> Array:
    """Return uniform values whose normal scores are autoregressive."""
    scores = autoregressive(rng, (n_sequences, n_steps, 1), persistence)
    return 2 * ndtr(scores) - 1


def mackey_glass(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return the Mackey-Glass equation with the delay 17, two units of time apart."""
    time_step = 0.1
    n_delay = round(17 / time_step)
    steps_per_sample = round(2 / time_step)
    n_unseen = 300  # samples in which it reaches its attractor
    history = list(rng.uniform(0.5, 1.2, (n_delay + 1, n_sequences)))
    samples = []
    for _ in range(n_unseen + n_steps):
        for _ in range(steps_per_sample):
            delayed = (history[-n_delay - 1] + history[-n_delay]) / 2
            now = history[-1]
            change = 0.2 * delayed / (1 + delayed**10)
            # Decay is exact within a step; the delayed value is that of the middle of the step.
            history.append(now * np.exp(-0.1 * time_step) + time_step * change)
        history = history[-n_delay - 1 :]
        samples.append(history[-1])
    sequences = np.array(samples[n_unseen:]).T
    return ((sequences - 0.85) / 0.65)[:, :, None]


def three_sines(
    rng: np.random.Generator, n_sequences: int, n_steps: int, squares: tuple[float, ...]
) -> Array:
    """Return products of three sines whose frequencies have no common measure, with random phases."""
    frequencies = 0.2 * np.sqrt(squares)
    phases = rng.uniform(0, 2 * np.pi, (n_sequences, 1, 3))
    time = np.arange(n_steps)[:, None]
    return np.sin(frequencies * time + phases).prod(axis=2, keepdims=True)


def telegraph(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return -1 or 1, which changes every ten steps on average."""
    changes = rng.random((n_sequences, n_steps, 1)) < 0.1
    signs = np.where(changes, -1.0, 1.0)
    signs[:, 0] = rng.choice([-1.0, 1.0], (n_sequences, 1))
    return np.cumprod(signs, axis=1)


def held(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return independent values that are held for four steps; sequences begin anywhere in a step."""
    n_hold = 4
    values = rng.uniform(-1, 1, (n_sequences, n_steps // n_hold + 2))
    first = rng.integers(n_hold, size=(n_sequences, 1))
    places = (first + np.arange(n_steps)) // n_hold
    return np.take_along_axis(values, places, axis=1)[:, :, None]


def logistic_map(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return the chaotic map u[t] = 1 - 2 u[t-1]^2, begun in its stationary law."""
    u = np.empty((n_sequences, n_steps, 1))
    u[:, 0] = np.cos(np.pi * rng.random((n_sequences, 1)))
    for step in range(1, n_steps):
        u[:, step] = 1 - 2 * u[:, step - 1] ** 2
    return u


def two_correlated(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return two uniform sequences whose normal scores have the correlation 0.6, and 0.7 from step to step."""
    scores = autoregressive(rng, (n_sequences, n_steps, 2), 0.7)
    scores[:, :, 1] = 0.6 * scores[:, :, 0] + 0.8 * scores[:, :, 1]
    return 2 * ndtr(scores) - 1


def three_dependent(rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
    """Return rows of three inputs that depend on each other: two correlated ones, and one that holds their product."""
    scores = rng.standard_normal((n_sequences, n_steps, 3))
    scores[:, :, 1] = 0.7 * scores[:, :, 0] + np.sqrt(1 - 0.7**2) * scores[:, :, 1]
    u = 2 * ndtr(scores) - 1
    u[:, :, 2] = (u[:, :, 0] * u[:, :, 1] + u[:, :, 2]) / 2
    return u


DRIVES = [
    Drive("independent", independent, is_symmetric=True, is_independent=True, is_slow=False),
    Drive(
        "AR 0.5", partial(uniform_autoregressive, persistence=0.5), is_symmetric=True, is_slow=False
    ),
    Drive("AR 0.9", partial(uniform_autoregressive, persistence=0.9), is_symmetric=True),
    Drive("AR 0.99", partial(uniform_autoregressive, persistence=0.99), is_symmetric=True),
    Drive("Mackey-Glass", mackey_glass),
    # The product's lines have periods of 3 to 30 steps; with the other frequencies one has 700, so that a short recording
    # sees an offset that comes and goes.
    Drive("three sines", partial(three_sines, squares=(2, 7, 26)), is_symmetric=True),
    Drive("three sines, slow beat", partial(three_sines, squares=(2, 5, 13)), is_symmetric=True),
    Drive("telegraph", telegraph, is_symmetric=True),
    Drive("held 4 steps", held, is_symmetric=True),
    Drive("logistic map", logistic_map, is_slow=False),
]
TWO_CORRELATED = Drive("two correlated", two_correlated, is_symmetric=True, n_inputs=2)
THREE_DEPENDENT = Drive("three dependent", three_dependent, n_inputs=3)


@dataclass(frozen=True)
class NormalDrive:
    """A normal sequence u[t] = sum a_k u[t-k] + e[t] + m e[t-1] of variance 1."""

    name: str
    autoregression: tuple[float, float]
    moving_average: float = 0.0
    is_symmetric: bool = True
    is_independent: bool = False
    n_inputs: int = 1

    def draw(self, rng: np.random.Generator, n_sequences: int, n_steps: int) -> Array:
        """Return sequences (sequences, steps, 1), after steps in which they become stationary."""
        shocks = rng.standard_normal((n_sequences, SETTLING + n_steps))
        denominator = [1.0, *(-coefficient for coefficient in self.autoregression)]
        u = lfilter([1.0, self.moving_average], denominator, shocks, axis=1)
        return (u[:, SETTLING:] / np.sqrt(self.variance))[:, :, None]

    @cached_property
    def transition(self) -> tuple[Array, Array]:
        """The state (u[t], u[t-1], e[t]) follows from the last one, and what a shock of size 1 adds to it."""
        first, second = self.autoregression
        matrix = np.array([[first, second, self.moving_average], [1, 0, 0], [0, 0, 0]], float)
        return matrix, np.array([1.0, 0.0, 1.0])

    @cached_property
    def variance(self) -> float:
        """Variance of the sequence for shocks of size 1."""
        matrix, shock = self.transition
        return float(solve_discrete_lyapunov(matrix, np.outer(shock, shock))[0, 0])


NORMAL_DRIVES = [
    NormalDrive("normal AR 0.5", (0.5, 0.0)),
    NormalDrive("normal AR 0.9", (0.9, 0.0)),
    NormalDrive("normal ARMA(2,1)", (1.2, -0.5), 0.4),
]

# ---------------------------------------------------------------------------------------------
# Noise
# ---------------------------------------------------------------------------------------------


def white_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)


def coloured_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return autoregressive(rng, shape, 0.9)


def heavy_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return noise of variance 1 with Student's distribution of 3 degrees of freedom: no fourth moment."""
    return rng.standard_t(3, shape) / np.sqrt(3)


# All have variance 1 and are independent from readout to readout, so they share one truth.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "white": white_noise,
    "AR 0.9": coloured_noise,
    "t(3)": heavy_noise,
}

# ---------------------------------------------------------------------------------------------
# Devices
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """A device, and the standard deviation of its noise relative to each readout without noise.

    `is_odd` says that readouts of -u are those of u with the other sign; functions of even degree then have no capacity
    under a symmetric drive. `has_gain_above_one` says that it may only meet drives that are not slow.
    """

    name: str
    respond: Callable[[Array], Array]
    noise: float = 0.1
    is_odd: bool = False
    has_memory: bool = True
    has_gain_above_one: bool = False


def delayed(u: Array, delay: int) -> Array:
    """Return the sequences `delay` steps earlier, zeros in front."""
    earlier = np.zeros_like(u)
    earlier[:, delay:] = u[:, : u.shape[1] - delay]
    return earlier


def echo_state(u: Array) -> Array:
    """Ten tanh nodes with a bias."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((10, 10))
    weights *= 0.8 / np.abs(np.linalg.eigvals(weights)).max()
    into_nodes = 0.7 * u @ rng.standard_normal((u.shape[2], 10)) + 0.3 * rng.standard_normal(10)
    x = np.empty_like(into_nodes)
    state = np.zeros((len(u), 10))
    for step in range(u.shape[1]):
        state = np.tanh(state @ weights + into_nodes[:, step])
        x[:, step] = state
    return x


def volterra(u: Array) -> Array:
    """Eight mixtures of products of inputs; three of these products are no functions of the dictionary."""
    products = [delayed(u, delay) for delay in range(7)]
    products += [
        delayed(u, 1) * delayed(u, 3),
        3 * delayed(u, 2) ** 2,
        2 * u * delayed(u, 5),
        2 * u**3,
        # Outside the dictionary.
        3 * delayed(u, 1) * delayed(u, 2) * delayed(u, 4),
        delayed(u, 14),
        3 * u**2 * delayed(u, 3) ** 2,
    ]
    mixing = np.random.default_rng(2).standard_normal((len(products), 8))
    return np.concatenate(products, axis=2) @ mixing


def leaky_integrators(u: Array) -> Array:
    """Six units that average tanh of the input over 1 to 20 steps."""
    gains = np.linspace(0.5, 3, 6)
    leaks = np.geomspace(1, 0.05, 6)
    units = []
    for gain, leak in zip(gains, leaks, strict=True):
        units.append(lfilter([leak], [1.0, leak - 1], np.tanh(gain * u), axis=1))
    return np.concatenate(units, axis=2)


def delay_reservoir(u: Array) -> Array:
    """Ten virtual nodes of one nonlinear node with delayed feedback, coupled to the node before."""
    mask = np.random.default_rng(3).uniform(-1, 1, 10)
    x = np.empty((*u.shape[:2], 10))
    state = np.zeros((len(u), 10))
    for step in range(u.shape[1]):
        before = state[:, -1]
        state = state.copy()
        for node in range(10):
            argument = 0.6 * state[:, node] + 0.5 * mask[node] * u[:, step, 0] + 0.4
            before = 0.4 * before + 0.6 * np.sin(argument) ** 2
            state[:, node] = before
        x[:, step] = state
    return x


def interferometer(u: Array) -> Array:
    """Eight intensities of light that got its phase from the latest five inputs."""
    rng = np.random.default_rng(4)
    field = np.zeros((*u.shape[:2], 8), complex)
    for delay in range(5):
        amplitudes = rng.standard_normal((2, 8)) * 0.8**delay
        phases = rng.uniform(0.5, 1.5, 8) * delayed(u, delay)
        field += (amplitudes[0] + 1j * amplitudes[1]) * np.exp(1j * phases)
    return np.abs(field) ** 2


def tanh_units(u: Array) -> Array:
    """Eight tanh units without memory."""
    rng = np.random.default_rng(5)
    gains = rng.uniform(0.5, 2, (u.shape[2], 8)) * rng.choice([-1, 1], (u.shape[2], 8))
    return np.tanh(u @ gains + rng.uniform(-1, 1, 8))


def nothing(u: Array) -> Array:
    """Six readouts that show nothing of the input."""
    return np.zeros((*u.shape[:2], 6))


def _bilinear(u: Array, constant_gain: tuple[float, float], gain: tuple[float, float]) -> Array:
    """Five nodes x[t] = (a + b u[t]) x[t-1] + d u[t]."""
    rng = np.random.default_rng(6)
    a = np.linspace(*constant_gain, 5)
    b = np.linspace(*gain, 5) * rng.choice([-1, 1], 5)
    x = np.empty((*u.shape[:2], 5))
    state = np.zeros((len(u), 5))
    for step in range(u.shape[1]):
        state = (a + b * u[:, step]) * state + u[:, step]
        x[:, step] = state
    return x


def bilinear_with_excursions(u: Array) -> Array:
    """Gains up to 1.3: now and then many inputs in a row amplify, so readouts have heavy tails."""
    return _bilinear(u, (0.5, 0.6), (0.5, 0.7))


def bilinear(u: Array) -> Array:
    """Gains below 0.85."""
    return _bilinear(u, (0.2, 0.4), (0.3, 0.45))


DEVICES = [
    Device("echo state", echo_state, 0.05),
    Device("Volterra, 3 of 14 outside", volterra, 0.2),
    Device("leaky integrators", leaky_integrators, is_odd=True),
    Device("delay reservoir", delay_reservoir, 0.05),
    Device("interferometer", interferometer),
    Device("tanh units, no memory", tanh_units, 0.05, has_memory=False),
    Device("noise alone", nothing, 1.0, is_odd=True, has_memory=False),
    Device("bilinear, gain below 1", bilinear),
    Device("bilinear, heavy tails", bilinear_with_excursions, has_gain_above_one=True),
]


@dataclass(frozen=True)
class LinearNetwork:
    """x[t] = W x[t-1] + b u[t] with noise on the readouts, whose capacities follow by algebra."""

    n_nodes: int
    noise: float = 0.3
    is_odd: bool = True
    has_memory: bool = True

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"linear, {self.n_nodes} nodes"

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """Weights between nodes, and from the input."""
        rng = np.random.default_rng([7, self.n_nodes])
        between = rng.standard_normal((self.n_nodes, self.n_nodes))
        between *= 0.85 / np.abs(np.linalg.eigvals(between)).max()
        return between, rng.standard_normal(self.n_nodes)

    def respond(self, u: Array) -> Array:
        """Return readouts without noise."""
        between, from_input = self.weights
        x = np.empty((*u.shape[:2], self.n_nodes))
        state = np.zeros((len(u), self.n_nodes))
        for step in range(u.shape[1]):
            state = state @ between.T + u[:, step] * from_input
            x[:, step] = state
        return x
