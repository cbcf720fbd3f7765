"""The devices of the benchmark of mistakes, and one clean measurement of each.

A device is a function from the inputs, in the order in which they were sent, to noisy readouts. Twelve devices
forget each input at once, six have memory. Those of `_mistakes_devices_second_part` and of the third and fourth part
are held out: who develops checks of the data does not look at them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.signal import lfilter

import infocap
from infocap.systems import FeedForward, RandomFeatures

Array = np.ndarray
Generator = np.random.Generator
Response = Callable[[Array, Generator], Array]

# Steps for which a device with memory runs before its first row is recorded.
WARM_UP_STEPS = 200
# How far the parameters of the device that is exchanged for another one deviate, in their own spread.
SIMILAR, OTHER = 0.15, 1.0

# Parts of the tables of devices and of kinds of mistakes. Checks are developed with the first; the second, the
# third and the fourth stay unseen until checks are finished.
DEVELOPED = "developed"
HELD_OUT = "held-out"
THIRD = "third"
FOURTH = "fourth"


@dataclass(frozen=True)
class Parameters:
    """Random numbers that a device is built from; those of another one of its series deviate.

    Parameters
    ----------
    seed
        The same seed gives the same device.
    deviation
        How much each number differs from that of the device with deviation 0, in units of its spread.
    """

    seed: int
    deviation: float = 0.0
    common: Generator = field(init=False)
    individual: Generator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "common", np.random.default_rng(self.seed))
        object.__setattr__(self, "individual", np.random.default_rng([self.seed, 1]))

    def normal(self, *shape: int) -> Array:
        """Return normal numbers of variance 1."""
        deviation = self.deviation * self.individual.standard_normal(shape)
        return self.common.standard_normal(shape) + deviation

    def uniform(self, low: float, high: float, *shape: int) -> Array:
        """Return numbers between low and high."""
        values = self.common.uniform(low, high, shape)
        deviation = self.deviation * self.individual.uniform(-1, 1, shape) * (high - low) / 2
        return np.clip(values + deviation, low, high)


@dataclass(frozen=True)
class Device:
    """How a device answers, which functions of its inputs are asked for, and how often it is measured.

    Attributes
    ----------
    build
        Makes the function from inputs and a random generator to readouts.
    n_samples
        Rows of a data set, after the warm-up.
    part
        DEVELOPED, or the part that stays unseen while checks are developed: HELD_OUT, THIRD or FOURTH.
    """

    name: str
    basis: infocap.ProductBasis
    build: Callable[[Parameters], Response]
    n_samples: int
    seed: int
    part: str = DEVELOPED

    @property
    def has_memory(self) -> bool:
        """Whether readouts depend on earlier inputs, too."""
        return self.basis.memory > 0

    def measure(self, u: Array, generator: Generator, deviation: float = 0.0) -> Array:
        """Return readouts at these inputs with fresh noise, of this device or of a deviating one."""
        response = self.build(Parameters(self.seed, deviation))
        if not self.has_memory:
            return response(u, generator)
        before = self.inputs_at(generator.random((WARM_UP_STEPS, u.shape[1])))
        return response(np.vstack([before, u]), generator)[WARM_UP_STEPS:]

    def draw(self, seed: int) -> Array:
        """Return inputs of one data set; that their number is no power of two does not matter here."""
        with warnings.catch_warnings(action="ignore", category=infocap.errors.DataWarning):
            return infocap.draw(self.basis, self.n_samples, seed=seed)

    def inputs_at(self, probabilities: Array) -> Array:
        """Return the inputs whose cumulative probabilities are given, (samples, inputs)."""
        columns = [
            family.quantile(column)
            for family, column in zip(self.basis.families, probabilities.T, strict=True)
        ]
        return np.column_stack(columns)

    def run(self, seed: object) -> Run:
        """Return one clean data set; the same seed gives the same one."""
        sequence = np.random.SeedSequence(seed)
        generator = np.random.default_rng(sequence)
        u = self.draw(int(sequence.generate_state(1)[0]))
        return Run(self, generator, u, self.measure(u, generator))


@dataclass(frozen=True, eq=False)
class Run:
    """One clean data set, and what a mistake needs to measure anew.

    Attributes
    ----------
    u
        Inputs in the order of acquisition, (samples, inputs).
    x
        Readouts, (samples, channels).
    """

    device: Device
    generator: Generator
    u: Array
    x: Array

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.u)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.u.shape[1]

    @property
    def n_channels(self) -> int:
        """Number of readouts."""
        return self.x.shape[1]

    @property
    def spread(self) -> Array:
        """Standard deviation of every channel."""
        return self.x.std(axis=0)

    @property
    def input_range(self) -> tuple[float, float]:
        """The interval that holds all but one in a thousand of the first input's values."""
        low, high = self.device.basis.families[0].quantile(np.array([5e-4, 1 - 5e-4]))
        return float(low), float(high)

    @property
    def input_middle(self) -> float:
        """The middle of the input's interval."""
        low, high = self.input_range
        return (low + high) / 2

    def measure(self, u: Array, deviation: float = 0.0) -> Array:
        """Return readouts at these inputs with fresh noise, of the device or of a deviating one."""
        return self.device.measure(u, self.generator, deviation)

    def fresh_inputs(self) -> Array:
        """Return other inputs of the same distribution."""
        return self.device.draw(int(self.generator.integers(2**31)))

    def driven_by(self, amplitude: Array | float) -> Array:
        """Return the inputs as a driver of another amplitude, which may change along the run, sends them."""
        return self.input_middle + amplitude * (self.u - self.input_middle)

    def rows(self, start: float, stop: float) -> slice:
        """Return the rows between two fractions of the run."""
        return slice(int(start * self.n), int(stop * self.n))

    def some(self, share: float, shape: object = None) -> Array:
        """Return a random mask of rows, or of the given shape, that is True for this share."""
        return self.generator.random(self.n if shape is None else shape) < share

    def time(self) -> Array:
        """Return a column that grows from 0 to 1 along the run."""
        return np.linspace(0, 1, self.n)[:, None]

    def noise(self, size: float) -> Array:
        """Return white noise for every readout, in units of its channel's standard deviation."""
        return size * self.spread * self.generator.standard_normal(self.x.shape)


def white(generator: Generator, x: Array, size: float) -> Array:
    """Return readouts with white noise of this standard deviation."""
    return x + size * generator.standard_normal(x.shape)


def between(clean: Callable, other: Callable, deviation: float, noise: float) -> Response:
    """Return the response of a network whose readouts deviate towards those of another one."""

    def response(u: Array, generator: Generator) -> Array:
        x = clean(u)
        if deviation:
            x = (1 - 0.5 * deviation) * x + 0.5 * deviation * other(u)
        return white(generator, x, noise)

    return response


# Devices that forget every input at once.


def tanh_units(parameters: Parameters) -> Response:
    clean, other = RandomFeatures(2, 30, seed=5), RandomFeatures(2, 30, seed=1005)
    return between(clean, other, parameters.deviation, 1e-3)


def interferometers(parameters: Parameters) -> Response:
    weights = parameters.normal(3, 40)
    phases = parameters.uniform(0, 2 * np.pi, 40)
    return lambda u, generator: white(generator, 1 + np.cos(2.2 * u @ weights + phases), 1e-2)


def two_layers(parameters: Parameters) -> Response:
    clean, other = FeedForward(4, (20, 24), seed=62), FeedForward(4, (20, 24), seed=1062)
    return between(clean, other, parameters.deviation, 3e-3)


def volts(parameters: Parameters) -> Response:
    clean = RandomFeatures(1, 16, gain=0.6, seed=8)
    other = RandomFeatures(1, 16, gain=0.6, seed=1008)
    scaled = between(clean, other, parameters.deviation, 2e-3 / 3)
    return lambda u, generator: 3 * scaled(u, generator) + 4


def ring_resonators(parameters: Parameters) -> Response:
    """Return the power at the drop ports of heated rings whose heaters warm each other."""
    crosstalk = np.eye(2) + 0.15 * parameters.normal(2, 2)
    detuning = parameters.uniform(-2.5, 2.5, 24)
    shift = 1.5 * parameters.normal(2, 24)
    linewidth = parameters.uniform(0.6, 1.4, 24)

    def response(u: Array, generator: Generator) -> Array:
        heat = (u + 0.2 * u**2) @ crosstalk
        drop = 1 / (1 + ((heat @ shift - detuning) / linewidth) ** 2)
        relative_noise = 1 + 2e-3 * generator.standard_normal(drop.shape)
        return white(generator, 0.8 * drop * relative_noise, 1e-3)

    return response


def memristors(parameters: Parameters) -> Response:
    """Return the currents in microampere of a crossbar whose conductances scatter from cycle to cycle."""
    conductance = np.exp(0.5 * parameters.normal(3, 20))
    steepness = parameters.uniform(1.5, 4, 3, 20)
    threshold = parameters.uniform(0.2, 0.8, 3, 20)

    def response(u: Array, generator: Generator) -> Array:
        voltage = u[:, :, None] - threshold
        current = np.sum(conductance * np.sinh(steepness * voltage), axis=1)
        cycle = 1 + 0.01 * generator.standard_normal(current.shape)
        return white(generator, 10 * current * cycle, 0.05)

    return response


def camera(parameters: Parameters) -> Response:
    """Return 100 pixels of a speckle pattern, exposed so that few saturate, from a converter of 10 bits."""
    lines = parameters.normal(100, 6) + 1j * parameters.normal(100, 6)
    angles = 1.6 * parameters.normal(2, 6)

    def response(u: Array, generator: Generator) -> Array:
        field = np.exp(1j * (u @ angles)) @ lines.T
        electrons = 60 * np.abs(field) ** 2
        noisy = electrons + np.sqrt(electrons + 25) * generator.standard_normal(electrons.shape)
        return np.clip(np.round(noisy / 5 + 16), 0, 1023)

    return response


def photon_counts(parameters: Parameters) -> Response:
    """Return photons counted behind 32 interferometers of different brightness."""
    weights = 1.1 * parameters.normal(3, 32)
    phases = parameters.uniform(0, 2 * np.pi, 32)
    brightness = np.geomspace(100, 3000, 32)

    def response(u: Array, generator: Generator) -> Array:
        mean = brightness * (1 + 0.8 * np.cos(u @ weights + phases))
        return generator.poisson(mean).astype(float)

    return response


def amplifiers(parameters: Parameters) -> Response:
    """Return the outputs of saturating amplifiers behind three noise sources, which are normal."""
    weights = 0.18 * parameters.normal(3, 22)
    offsets = 0.6 * parameters.normal(22)

    def response(u: Array, generator: Generator) -> Array:
        return white(generator, np.tanh(u @ weights + offsets), 0.01)

    return response


def phase_modulators(parameters: Parameters) -> Response:
    """Return the powers behind two phase modulators between couplers; inputs are phases."""
    couplers = [parameters.normal(18, 4) + 1j * parameters.normal(18, 4) for _ in range(2)]

    def response(u: Array, generator: Generator) -> Array:
        waves = np.exp(1j * np.column_stack([0 * u[:, 0], u[:, 0], u[:, 1], u[:, 0] + u[:, 1]]))
        first = np.abs(waves @ couplers[0].T) ** 2
        second = np.abs(waves @ couplers[1].T) ** 2
        return white(generator, 1e-3 * first / (1 + 0.1 * second), 2e-5)

    return response


def microphones(parameters: Parameters) -> Response:
    """Return the sound pressure at 120 microphones; inputs are loudspeakers that distort."""
    positions = parameters.uniform(0, 1, 120, 2)
    sources = np.array([[0.1, 0.2], [0.9, 0.3]])
    distance = np.linalg.norm(positions[:, None] - sources, axis=2)
    gains = np.stack([np.cos(k * 9 * distance) / (0.3 + distance) for k in (1, 2, 3)])
    mixed = parameters.normal(120)

    def response(u: Array, generator: Generator) -> Array:
        harmonics = np.stack([u, 0.3 * u**2, 0.1 * u**3])
        pressure = np.einsum("hns,hks->nk", harmonics, gains)
        return white(generator, pressure + 0.3 * np.outer(u[:, 0] * u[:, 1], mixed), 0.02)

    return response


def qubits(parameters: Parameters) -> Response:
    """Return the frequencies of 15 of 16 outcomes in 2000 shots on a state of four qubits."""
    mixing = parameters.normal(16, 16) + 1j * parameters.normal(16, 16)
    unitary, _ = np.linalg.qr(mixing)
    angles = 1.2 * parameters.normal(2, 16)

    def response(u: Array, generator: Generator) -> Array:
        probability = np.abs(np.exp(1j * u @ angles) @ unitary) ** 2
        probability /= probability.sum(axis=1, keepdims=True)
        return generator.multinomial(2000, probability)[:, :-1] / 2000

    return response


# Devices with memory.


def network_states(u: Array, recurrent: Array, of_inputs: Array, bias: Array) -> Array:
    """Return the states of an echo state network that begins at rest."""
    driven = u @ of_inputs + bias
    states = np.empty_like(driven)
    state = np.zeros(driven.shape[1])
    for step, drive in enumerate(driven):
        state = np.tanh(state @ recurrent + drive)
        states[step] = state
    return states


def with_radius(weights: Array, radius: float) -> Array:
    """Return weights scaled to this spectral radius."""
    return weights * radius / np.abs(np.linalg.eigvals(weights)).max()


def echo_state(parameters: Parameters) -> Response:
    recurrent = with_radius(parameters.normal(30, 30), 0.7)
    of_inputs = parameters.uniform(-0.7, 0.7, 1, 30)
    bias = parameters.uniform(-0.4, 0.4, 30)

    def response(u: Array, generator: Generator) -> Array:
        return white(generator, network_states(u, recurrent, of_inputs, bias), 0.01)

    return response


def delay_coupled(parameters: Parameters) -> Response:
    """Return the 25 virtual nodes of one oscillator with delayed feedback, in volts."""
    mask = parameters.uniform(-1, 1, 25)
    phases = 0.6 + parameters.uniform(-0.2, 0.2, 25)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 25))
        state = np.zeros(25)
        for step, value in enumerate(u[:, 0]):
            driven = np.sin(0.9 * np.roll(state, 1) + 0.8 * mask * value + phases) ** 2
            state = lfilter([0.6], [1, -0.4], driven)
            states[step] = state
        return white(generator, 2.5 * states, 0.01)

    return response


def leaky_quantised(parameters: Parameters) -> Response:
    """Return 16 leaky integrators behind a converter of 9 bits."""
    leak = parameters.uniform(0.15, 0.9, 16)
    weights = 2 * parameters.normal(16)
    offsets = parameters.normal(16)

    def response(u: Array, generator: Generator) -> Array:
        driven = np.tanh(u * weights + offsets)
        states = np.column_stack(
            [lfilter([a], [1, a - 1], column) for a, column in zip(leak, driven.T, strict=True)]
        )
        return np.round(white(generator, 250 * states, 1.5))

    return response


def nonlinear_delay_line(parameters: Parameters) -> Response:
    """Return the power behind 20 interferometers fed from seven taps of a delay line."""
    weights = parameters.normal(7, 20) * np.linspace(1, 0.2, 7)[:, None]
    phases = parameters.uniform(0, 2 * np.pi, 20)

    def response(u: Array, generator: Generator) -> Array:
        taps = np.column_stack([np.roll(u[:, 0], delay) for delay in range(7)])
        return white(generator, 1 + np.sin(0.6 * taps @ weights + phases), 0.03)

    return response


def oscillators(parameters: Parameters) -> Response:
    """Return the power of 20 coupled oscillators that two inputs drive."""
    recurrent = with_radius(parameters.normal(20, 20), 0.5)
    of_inputs = parameters.uniform(-0.6, 0.6, 2, 20)
    bias = parameters.uniform(0.2, 0.8, 20)

    def response(u: Array, generator: Generator) -> Array:
        amplitude = network_states(u, recurrent, of_inputs, bias)
        return white(generator, 40 * amplitude**2, 0.3)

    return response


def diode_filters(parameters: Parameters) -> Response:
    """Return 14 resonant filters, each followed by a diode."""
    poles = parameters.uniform(0.3, 0.8, 14)
    angles = parameters.uniform(0.2, 2.8, 14)
    offsets = parameters.normal(14)

    def response(u: Array, generator: Generator) -> Array:
        columns = []
        for pole, angle, offset in zip(poles, angles, offsets, strict=True):
            filtered = lfilter([1], [1, -2 * pole * np.cos(angle), pole**2], u[:, 0])
            columns.append(np.logaddexp(0, 1.5 * filtered / filtered.std() + offset))
        return white(generator, np.column_stack(columns), 0.02)

    return response


def legendre(n_inputs: int, degree: int, **options: object) -> infocap.ProductBasis:
    return infocap.product_basis("legendre", n_inputs, degree, **options)


def delayed(n_inputs: int, **options: object) -> infocap.DelayedBasis:
    windows = {1: 14, 2: 8, 3: 5} if n_inputs == 1 else {1: 10, 2: 5, 3: 2}
    return infocap.delayed_basis("legendre", n_inputs, windows, **options)


DEVICES = {
    device.name: device
    for device in (
        Device("tanh units", legendre(2, 14), tanh_units, 4096, 5),
        Device("interferometers", legendre(3, 7), interferometers, 8000, 3),
        Device("two layers", legendre(4, 5), two_layers, 2048, 62),
        Device("volts", legendre(1, 12, domain=(0, 5)), volts, 1024, 8),
        Device("ring resonators", legendre(2, 10), ring_resonators, 2048, 21),
        Device("memristors", legendre(3, 5, domain=(0, 1)), memristors, 2000, 22),
        Device("camera", legendre(2, 10), camera, 3000, 23),
        Device("photon counts", legendre(3, 6), photon_counts, 4096, 24),
        Device("amplifiers", infocap.product_basis("hermite", 3, 3), amplifiers, 4096, 25),
        Device(
            "phase modulators",
            infocap.product_basis("fourier", 2, 4),
            phase_modulators,
            1500,
            26,
        ),
        Device("microphones", legendre(2, 6), microphones, 5000, 27),
        Device("qubits", legendre(2, 8), qubits, 3000, 28),
        Device("echo state", delayed(1), echo_state, 4000, 41),
        Device("delay-coupled", delayed(1), delay_coupled, 3000, 42),
        Device("leaky, quantised", delayed(1, domain=(0, 1)), leaky_quantised, 4000, 43),
        Device("nonlinear delay line", delayed(1), nonlinear_delay_line, 2500, 44),
        Device("oscillators", delayed(2), oscillators, 5000, 45),
        Device("diode filters", delayed(1), diode_filters, 3000, 46),
    )
}
