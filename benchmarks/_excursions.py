"""Devices with memory whose capacities are known exactly: some make rare large excursions, some do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.signal import lfilter

import infocap

N_QUADRATURE = 400
# Steps of the state before the first that is used.
SETTLING = 300


@dataclass(frozen=True)
class Device:
    """Readouts without noise have known coefficients and second moments; noise is added to them."""

    name: str
    n_nodes: int = 5
    noise: float = 0.1  # standard deviation, relative to that of each readout without noise
    slow: float = 0.0  # autocorrelation of the noise from step to step
    bursts: float = 0.0  # standard deviation of the logarithm of a gain that all noise shares
    family: str = "legendre"
    max_delay: tuple[tuple[int, int], ...] = ((1, 12), (2, 6), (3, 4))
    seed: int = 0

    @cached_property
    def basis(self) -> infocap.DelayedBasis:
        """The functions whose capacities are asked for."""
        return infocap.delayed_basis(self.family, max_delay=dict(self.max_delay))

    def draw(self, rng: np.random.Generator, sets: int, steps: int) -> np.ndarray:
        """Input sequences (sets, steps)."""
        if self.family == "laguerre":
            return rng.exponential(size=(sets, steps))
        if self.family == "hermite":
            return rng.standard_normal((sets, steps))
        return rng.uniform(-1, 1, (sets, steps))

    def __call__(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts (sets, steps, nodes) of sequences u (sets, steps)."""
        x = self.without_noise(u, rng)
        if not self.noise:
            return x
        white = rng.standard_normal((x.shape[0], x.shape[1] + SETTLING, x.shape[2]))
        noise = lfilter([np.sqrt(1 - self.slow**2)], [1.0, -self.slow], white, axis=1)
        noise = noise[:, SETTLING:]
        if self.bursts:
            slow = 0.9
            shocks = rng.standard_normal((x.shape[0], x.shape[1] + SETTLING, 1))
            level = lfilter([np.sqrt(1 - slow**2)], [1.0, -slow], shocks, axis=1)[:, SETTLING:]
            noise = noise * np.exp(self.bursts * level - self.bursts**2)  # mean square 1
        return x + self.noise * np.sqrt(np.diag(self.covariance)) * noise

    def without_noise(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts without noise."""
        raise NotImplementedError

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the readouts without noise, (nodes, nodes)."""
        raise NotImplementedError

    @cached_property
    def coefficients(self) -> np.ndarray:
        """E[y x] of every function, (functions, nodes)."""
        raise NotImplementedError

    @cached_property
    def exact(self) -> np.ndarray:
        """Capacities of all functions of the basis."""
        c = self.coefficients
        g = self.covariance + np.diag(self.noise**2 * np.diag(self.covariance))
        capacity = np.einsum("ij,ij->i", c, np.linalg.solve(g, c.T).T)
        capacity[0] = 1.0
        return capacity


@dataclass(frozen=True)
class Bilinear(Device):
    """Uncoupled nodes x[t] = (a + b u[t]) x[t-1] + d u[t], whose gain now and then stays above one.

    `gain` is the mean square of a + b u, from 0 to 1: the larger, the rarer and larger are excursions.
    """

    gain: tuple[float, float] = (0.6, 0.85)
    linear: bool = False  # b = 0: a fading memory alone

    @cached_property
    def parameters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a, b and d of every node, for inputs of variance one."""
        rng = np.random.default_rng(self.seed)
        gain = rng.uniform(*self.gain, self.n_nodes)
        a = np.sqrt(gain) * rng.uniform(0.2, 0.8, self.n_nodes)
        if self.linear:
            a = np.sqrt(gain)
        b = np.sqrt(gain - a**2) * rng.choice([-1.0, 1.0], self.n_nodes)
        return a, b, rng.uniform(0.5, 1.5, self.n_nodes)

    def without_noise(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts without noise, after steps that nobody sees."""
        a, b, d = self.parameters
        deviation = 1.0 if self.family == "hermite" else 1 / np.sqrt(3)
        before = self.draw(rng, len(u), SETTLING)
        scaled = np.concatenate([before, u], axis=1) / deviation
        state = np.zeros((len(u), self.n_nodes))
        x = np.empty((*u.shape, self.n_nodes))
        for step in range(scaled.shape[1]):
            now = scaled[:, step, None]
            state = (a + b * now) * state + d * now
            if step >= SETTLING:
                x[:, step - SETTLING] = state
        return x

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the states."""
        a, b, d = self.parameters
        return np.outer(d, d) / (1 - np.outer(a, a) - np.outer(b, b))

    @cached_property
    def coefficients(self) -> np.ndarray:
        """Coefficients of products of inputs at different delays: d a^i b^j at the delay i + j."""
        a, b, d = self.parameters
        out = np.zeros((len(self.basis), self.n_nodes))
        for term, factors in enumerate(self.basis.factors):
            used = factors[factors[:, 2] > 0]
            if len(used) and used[:, 2].max() == 1:
                delay = used[:, 1].max()
                n_products = len(used) - 1
                out[term] = d * a ** (delay - n_products) * b**n_products
        return out


@dataclass(frozen=True)
class Chain(Device):
    """Products of one factor for each of the latest inputs: x[t] is the real part of prod f_j(u[t-j])."""

    kind: str = "cascade"
    length: int = 8
    size: float = 0.8

    @cached_property
    def parameters(self) -> np.ndarray:
        """Numbers of every node and delay, (2, nodes, length)."""
        return np.random.default_rng(self.seed).uniform(-1, 1, (2, self.n_nodes, self.length))

    def factor(self, u: np.ndarray, delay: int) -> np.ndarray:
        """The factor of one delay, (..., nodes)."""
        first, second = self.parameters[:, :, delay]
        fading = 0.9**delay
        u = u[..., None]
        if self.kind == "cascade":  # gains that multiply
            offset = 1.0 if self.family == "laguerre" else 0.0
            return 1 + self.size * fading * (0.7 + 0.3 * first) * np.sign(second) * (u - offset)
        if self.kind == "coincidence":  # gains that are large for few inputs
            return 0.4 + self.size * np.exp(-(((u - first) / 0.1) ** 2) / 2) + 0.4 * second * u
        if self.kind == "gate" and delay == 0:  # a rare input opens it
            return 0.3 + 0.3 * first * u + self.size * (u > 0.97 - 0.02 * second)
        if self.kind == "gate":
            return 1 + 0.5 * first * u
        phase = self.size * fading * first * u + (np.pi * second if delay == 0 else 0.0)
        return np.exp(1j * phase)  # an interferometer

    def without_noise(self, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readouts without noise, after steps that nobody sees."""
        u = np.concatenate([self.draw(rng, len(u), self.length), u], axis=1)
        x = np.ones((len(u), u.shape[1] - self.length, self.n_nodes), complex)
        for delay in range(self.length):
            x *= self.factor(u[:, self.length - delay : u.shape[1] - delay], delay)
        return x.real

    @cached_property
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and weights of a quadrature, fine enough for narrow factors."""
        if self.family == "legendre":
            edges = np.linspace(-1, 1, 20 * N_QUADRATURE + 1)
            return (edges[1:] + edges[:-1]) / 2, np.full(20 * N_QUADRATURE, 1 / 20 / N_QUADRATURE)
        one = infocap.product_basis(self.family, n_inputs=1, max_degree=8)
        points, weights = one.quadrature(30)
        return points[:, 0], weights

    @cached_property
    def mean(self) -> np.ndarray:
        """E[x] of every node."""
        u, weights = self.nodes
        means = [weights @ self.factor(u, delay) for delay in range(self.length)]
        return np.prod(means, axis=0).real

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the readouts, from that of the complex products and their conjugates."""
        u, weights = self.nodes
        plain = conjugate = 1.0
        for delay in range(self.length):
            values = self.factor(u, delay)
            plain = plain * ((values.T * weights) @ values)
            conjugate = conjugate * ((values.T * weights) @ values.conj())
        return (plain + conjugate).real / 2 - np.outer(self.mean, self.mean)

    @cached_property
    def coefficients(self) -> np.ndarray:
        """Products of moments of the factors."""
        u, weights = self.nodes
        degree = max(self.basis.degrees)
        y = infocap.product_basis(self.family, n_inputs=1, max_degree=int(degree))(u[:, None])
        moments = np.array(
            [(y.T * weights) @ self.factor(u, delay) for delay in range(self.length)]
        )
        out = np.zeros((len(self.basis), self.n_nodes), complex)
        for term, factors in enumerate(self.basis.factors):
            used = factors[factors[:, 2] > 0]
            if len(used) and used[:, 1].max() >= self.length:
                continue
            degrees = np.zeros(self.length, dtype=int)
            degrees[used[:, 1]] = used[:, 2]
            out[term] = np.prod([moments[j, k] for j, k in enumerate(degrees)], axis=0)
        return out.real


WITH_EXCURSIONS = [
    Bilinear("bilinear, 4 nodes, noise 10 %", 4, gain=(0.5, 0.75), seed=1),
    Bilinear("bilinear, 10 nodes, no noise", 10, noise=0.0, gain=(0.5, 0.7), seed=2),
    Bilinear("bilinear, 5 nodes, gain 0.5 to 0.6", 5, gain=(0.5, 0.6), seed=42),
    Bilinear("bilinear, normal inputs", 5, gain=(0.3, 0.5), family="hermite", seed=43),
    Bilinear("one bilinear node, slow noise 20 %", 1, noise=0.2, slow=0.8, gain=(0.7, 0.7), seed=8),
    Chain("cascade of 10 gains, noise 3 %", 5, noise=0.03, length=10, size=1.3, seed=3),
    Chain("cascade, exponential inputs", 4, length=6, size=0.5, family="laguerre", seed=4),
    Chain("coincidences, noise 5 %", 6, noise=0.05, kind="coincidence", length=5, size=2.5, seed=5),
    Chain("rare gate, noise 20 %", 6, noise=0.2, kind="gate", length=6, size=6.0, seed=6),
    Chain(
        "interferometer, bursts of noise", 6, noise=0.5, bursts=1.0, kind="phase", size=2.0, seed=7
    ),
]
WITHOUT_EXCURSIONS = [
    Chain("interferometer, noise 20 %", 6, noise=0.2, kind="phase", size=2.0, seed=11),
    Chain("interferometer, half outside", 8, noise=0.0, kind="phase", size=3.5, seed=12),
    Chain(
        "interferometer, slow noise 50 %", 4, noise=0.5, slow=0.9, kind="phase", size=1.5, seed=13
    ),
    Bilinear("bilinear, small gain, noise 30 %", 6, noise=0.3, gain=(0.2, 0.4), seed=14),
    Chain("one interferometer, noise 30 %", 1, noise=0.3, kind="phase", size=2.0, seed=15),
    Bilinear(
        "linear, 8 nodes, slow noise 40 %",
        8,
        noise=0.4,
        slow=0.95,
        gain=(0.5, 0.9),
        linear=True,
        seed=16,
    ),
]
