"""Devices without a fault, of many kinds; the false-alarm benchmark measures them.

A device maps inputs in their order of acquisition to readouts, with noise from a generator. Every
run has a device of its own, with other weights. Checks may be tuned on these kinds, but not on
those of the second, third and fourth part (`_clean_second_part` and so on), which stay unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.signal import lfilter

import infocap
from _clean_designs import to_inputs
from _devices import SYSTEMS
from infocap.photonics import FibreSystem
from infocap.systems import DelayLine, DelayReservoir, EchoState, RandomFeatures

Array = np.ndarray
Generator = np.random.Generator
Device = Callable[[Array, Generator], Array]
MakeDevice = Callable[[int], Device]

# Highest degree of the functions of devices without memory.
MAX_DEGREE = 4
# Delays of the functions of devices with memory, by degree.
MAX_DELAY = {1: 20, 2: 6}
# Inputs that a device with memory has seen before its recording begins.
WASHOUT = 200
# Keeps the random numbers of noise apart from those of weights, inputs and file order.
NOISE_KEY = 77


@dataclass(frozen=True)
class Kind:
    """One kind of device.

    Parameters
    ----------
    basis
        It tells how the inputs are distributed, and how long the device remembers.
    make
        A device from a seed.
    sizes
        The numbers of samples, which take turns.
    right_words
        Causes that are no false alarms for this kind, because they are true of every such device.
    """

    basis: infocap.ProductBasis
    make: MakeDevice
    sizes: tuple[int, ...]
    right_words: tuple[str, ...] = ()


def legendre(q: int, **options: object) -> infocap.ProductBasis:
    return infocap.product_basis("legendre", q, MAX_DEGREE, **options)


def delayed(family: str, q: int = 1) -> infocap.DelayedBasis:
    families = infocap.product_basis(family, q, 1).families
    return infocap.delayed_basis(families, max_delay=MAX_DELAY)


# ---------------------------------------------------------------------------------------------
# Smooth units, and what changes their readouts
# ---------------------------------------------------------------------------------------------


def features(q: int, k: int, noise: float = 1e-3, **options: object) -> MakeDevice:
    """Return units with random weights and white noise."""

    def make(seed: int) -> Device:
        units = RandomFeatures(q, k, seed=seed, **options)

        def device(u: Array, generator: Generator) -> Array:
            return units(u) + noise * generator.standard_normal((len(u), k))

        return device

    return make


def changed(make_device: MakeDevice, change: Device) -> MakeDevice:
    """Return devices behind something that changes their readouts."""

    def make(seed: int) -> Device:
        device = make_device(seed)

        def whole(u: Array, generator: Generator) -> Array:
            return change(device(u, generator), generator)

        return whole

    return make


def sine_units(change: Device) -> MakeDevice:
    """Return 24 sine units of three inputs whose readouts are changed."""
    return changed(features(3, 24, 3e-3, activation="sin", gain=1.2), change)


def twelve_bits(x: Array, generator: Generator) -> Array:
    step = 2.0 / 2**12
    return np.round(x / step) * step


def sixteen_bit_counts(x: Array, generator: Generator) -> Array:
    return np.floor(2**15 * (x + 1.2) / 1.3)


def photon_counts(x: Array, generator: Generator) -> Array:
    """Return counts between one in a hundred rows and a few in every row."""
    return generator.poisson(np.exp(3 * x - 2)).astype(float)


def slow_gain(x: Array, generator: Generator) -> Array:
    """Return readouts whose gain wanders by a tenth of the noise."""
    walk = np.cumsum(generator.standard_normal(len(x))) / np.sqrt(len(x))
    return x * (1 + 3e-4 * walk[:, None])


def student_noise(degrees_of_freedom: float) -> Device:
    def change(x: Array, generator: Generator) -> Array:
        return x + 0.05 * generator.standard_t(degrees_of_freedom, x.shape)

    return change


def laplace_noise(x: Array, generator: Generator) -> Array:
    return x + 0.1 * generator.laplace(size=x.shape)


def log_normal_gain(x: Array, generator: Generator) -> Array:
    return np.exp(2 * x)


def log_normal_noise(x: Array, generator: Generator) -> Array:
    return x + 0.02 * generator.lognormal(sigma=1.2, size=x.shape)


def dead_channels(x: Array, generator: Generator) -> Array:
    """Return readouts of which three channels are constant, one of them zero."""
    dead = x.copy()
    dead[:, 4] = 0.0
    dead[:, 11] = 1.25
    dead[:, 23] = -7e-3
    return dead


def many_units(x: Array, generator: Generator) -> Array:
    """Return channels from microvolts to kilovolts, some of them with a large offset."""
    k = x.shape[1]
    scale = np.geomspace(1e-6, 1e3, k)
    offset = np.where(np.arange(k) % 3 == 0, 1e4, 0.0)
    return scale * (x + offset)


def eight_bits(x: Array, generator: Generator) -> Array:
    """Return readouts behind a converter of 8 bits, with noise of half a step before it."""
    step = 2.0 / 2**8
    noisy = x + 0.5 * step * generator.standard_normal(x.shape)
    return np.round(noisy / step) * step


# ---------------------------------------------------------------------------------------------
# Noise that depends on the inputs
# ---------------------------------------------------------------------------------------------


def noise_of_first_input(seed: int) -> Device:
    """Return tanh units that are ten times noisier at the ends of u1 than in its middle."""
    units = RandomFeatures(3, 20, seed=seed)

    def device(u: Array, generator: Generator) -> Array:
        size = 0.02 + 0.2 * u[:, :1] ** 2
        return units(u) + size * generator.standard_normal((len(u), 20))

    return device


def common_noise_of_inputs(seed: int) -> Device:
    """Return sine units with common noise where u1 u2 is positive, and nearly none elsewhere."""
    units = RandomFeatures(2, 16, activation="sin", gain=1.5, seed=seed)

    def device(u: Array, generator: Generator) -> Array:
        size = np.where(u[:, :1] * u[:, 1:2] > 0, 0.1, 1e-3)
        common = size * generator.standard_normal((len(u), 1))
        return units(u) + common + 1e-3 * generator.standard_normal((len(u), 16))

    return device


def single_photons(seed: int) -> Device:
    """Return detectors that click or not."""
    units = RandomFeatures(2, 20, activation="sin", gain=1.5, seed=seed)

    def device(u: Array, generator: Generator) -> Array:
        probability = 0.5 + 0.4 * units(u)
        return (generator.random(probability.shape) < probability).astype(float)

    return device


def shots(n_shots: int) -> MakeDevice:
    """Return frequencies of the 16 outcomes of a quantum state of four qubits."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        real = weights.standard_normal((16, 16))
        imaginary = weights.standard_normal((16, 16))
        unitary, _ = np.linalg.qr(real + 1j * imaginary)
        angles = weights.standard_normal((3, 16))

        def device(u: Array, generator: Generator) -> Array:
            probability = np.abs(np.exp(1j * u @ angles) @ unitary.T) ** 2
            probability /= probability.sum(axis=1, keepdims=True)
            return generator.multinomial(n_shots, probability) / n_shots

        return device

    return make


# ---------------------------------------------------------------------------------------------
# Sharp responses, whose few large values are honest
# ---------------------------------------------------------------------------------------------


def narrow_resonances(seed: int) -> Device:
    """Return narrow resonances in the plane, which most inputs miss."""
    centres = np.random.default_rng(seed).uniform(-1, 1, (20, 2))

    def device(u: Array, generator: Generator) -> Array:
        square_distance = np.sum((u[:, None, :] - centres) ** 2, axis=2)
        return 1 / (1 + square_distance / 4e-3) + 1e-3 * generator.standard_normal((len(u), 20))

    return device


def lasers(seed: int) -> Device:
    """Return lasers that are dark below threshold and a thousand times brighter above."""
    weights = np.random.default_rng(seed).standard_normal((3, 16))

    def device(u: Array, generator: Generator) -> Array:
        above_threshold = np.maximum(u @ weights, 0)
        relative_noise = 0.01 * generator.standard_normal(above_threshold.shape)
        return (1e-3 + above_threshold) * (1 + relative_noise)

    return device


def rare_steps(q: int, k: int, share: float) -> MakeDevice:
    """Return tanh units, a quarter of which take a large step in this share of the inputs."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        w = weights.standard_normal((q, k))
        bias = weights.standard_normal(k)
        many_inputs = weights.uniform(-1, 1, (20_000, q))
        threshold = np.quantile(many_inputs @ w, 1 - share, axis=0)
        takes_step = np.arange(k) < -(-k // 4)

        def device(u: Array, generator: Generator) -> Array:
            steps = 5.0 * ((u @ w > threshold) & takes_step)
            return np.tanh(u @ w + bias) + steps + 1e-3 * generator.standard_normal((len(u), k))

        return device

    return make


def comparators(q: int, k: int, rarest: float) -> MakeDevice:
    """Return comparators: the rarest flips in this share of the inputs, the next in twice as many."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        w = weights.standard_normal((q, k))
        many_inputs = weights.uniform(-1, 1, (20_000, q))
        shares = rarest * np.arange(1, k + 1)
        threshold = np.diag(np.quantile(many_inputs @ w, 1 - shares, axis=0))

        def device(u: Array, generator: Generator) -> Array:
            return (u @ w > threshold) + 1e-3 * generator.standard_normal((len(u), k))

        return device

    return make


def threshold_network(q: int, k: int, noise: float) -> MakeDevice:
    """Return sums of thirty steps."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        w = weights.standard_normal((q, 30))
        threshold = weights.uniform(-2, 2, 30)
        out = weights.standard_normal((30, k))

        def device(u: Array, generator: Generator) -> Array:
            return (u @ w > threshold) @ out + noise * generator.standard_normal((len(u), k))

        return device

    return make


def etalons(q: int, k: int, finesse: float, dips: bool = False) -> MakeDevice:
    """Return Fabry-Perot etalons in transmission, or rings with dips, whose phase inputs tune."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        w = 2 * weights.standard_normal((q, k))
        phase = 2 * np.pi * weights.random(k)

        def device(u: Array, generator: Generator) -> Array:
            detuning = 2 * finesse / np.pi * np.sin((u @ w + phase) / 2)
            peak = 1 / (1 + detuning**2)
            signal = 1 - peak if dips else peak
            return signal + 1e-3 * generator.standard_normal(peak.shape)

        return device

    return make


def moving_lines(q: int, k: int, width: float) -> MakeDevice:
    """Return a spectrometer that sees two narrow lines move."""

    def make(seed: int) -> Device:
        w = np.random.default_rng(seed).standard_normal((q, 2))
        pixels = np.linspace(-2, 2, k)

        def device(u: Array, generator: Generator) -> Array:
            first, second = (u @ w).T[:, :, None]
            lorentzian = 1 / (1 + ((pixels - first) / width) ** 2)
            gaussian = 0.5 * np.exp(-(((pixels - second**2) / width) ** 2))
            return lorentzian + gaussian + 1e-3 * generator.standard_normal((len(u), k))

        return device

    return make


def phase_rings(seed: int) -> Device:
    """Return rings of finesse 10 to 60 behind phases, so that the response is periodic in them."""
    weights = np.random.default_rng(seed)
    turns = weights.integers(-1, 2, (3, 24))
    turns[0, ~turns.any(axis=0)] = 1  # every ring sees a phase
    phase = 2 * np.pi * weights.random(24)
    finesse = weights.uniform(10, 60, 24)

    def device(u: Array, generator: Generator) -> Array:
        detuning = 2 * finesse / np.pi * np.sin((u @ turns + phase) / 2)
        return 1 / (1 + detuning**2) + 1e-3 * generator.standard_normal((len(u), 24))

    return device


def fibre(seed: int) -> Device:
    """Return the photonic experiment with the phase noise of its own encoder."""
    system = FibreSystem(power_dbm=3.0, length_m=10.0, n_inputs=2)

    def device(u: Array, generator: Generator) -> Array:
        return system(u, seed=int(generator.integers(2**31)))

    return device


def fewer_directions(seed: int) -> Device:
    """Return ten noisy signals seen through 30 channels: the rank is ten."""
    mixing = np.random.default_rng([seed, 1]).standard_normal((10, 30))
    return changed(features(2, 10, 1e-2, gain=1.3), lambda x, generator: x @ mixing)(seed)


# ---------------------------------------------------------------------------------------------
# Devices with memory
# ---------------------------------------------------------------------------------------------


def reservoir(make_system: Callable[[int], Callable[[Array], Array]], noise: float) -> MakeDevice:
    """Return a system of infocap that remembers, with white noise on its readouts."""

    def make(seed: int) -> Device:
        system = make_system(seed)

        def device(u: Array, generator: Generator) -> Array:
            x = system(u)
            return x + noise * generator.standard_normal(x.shape)

        return device

    return make


def echo_state(n_nodes: int, noise: float = 1e-3, **options: object) -> MakeDevice:
    def make_system(seed: int) -> EchoState:
        return EchoState(n_nodes, input_scale=0.5, bias=0.2, seed=seed, **options)

    return reservoir(make_system, noise)


def leaky_integrators(k: int, slowest: float, noise: float) -> MakeDevice:
    """Return units of the input behind low-pass filters from 1.5 to `slowest` rows."""

    def make(seed: int) -> Device:
        units = RandomFeatures(1, k, gain=1.5, seed=seed)
        remembered = np.exp(-1 / np.geomspace(1.5, slowest, k))

        def device(u: Array, generator: Generator) -> Array:
            entering = units(u)
            columns = []
            for column, a in zip(entering.T, remembered, strict=True):
                columns.append(lfilter([1 - a], [1.0, -a], column))
            x = np.column_stack(columns)
            return x + noise * generator.standard_normal(x.shape)

        return device

    return make


def schmitt_triggers(seed: int) -> Device:
    """Return comparators with hysteresis: they stay until the input passes the other threshold."""
    weights = np.random.default_rng(seed)
    middle = weights.uniform(-0.5, 0.5, 12)
    half_width = weights.uniform(0.1, 0.4, 12)

    def device(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 12))
        state = np.zeros(12)
        for row, value in enumerate(u[:, 0]):
            state = np.where(value > middle + half_width, 1.0, state)
            state = np.where(value < middle - half_width, 0.0, state)
            states[row] = state
        return states + 0.01 * generator.standard_normal(states.shape)

    return device


# ---------------------------------------------------------------------------------------------
# The table of kinds
# ---------------------------------------------------------------------------------------------

SUMS_TO_ONE = ("dependent",)  # frequencies of all outcomes: the last one follows from the others
LOWER_RANK = ("dependent",)


def smooth_kinds() -> dict[str, Kind]:
    few_shots = Kind(legendre(3), shots(30), (512, 4096), SUMS_TO_ONE)
    many_shots = Kind(legendre(3), shots(2000), (512, 4096), SUMS_TO_ONE)
    saturating_72 = features(5, 72, 1e-2, gain=3.0)
    sine_300 = features(3, 300, 0.03, activation="sin", gain=2.0)
    return {
        "tanh, little noise": Kind(legendre(2), features(2, 30), (256, 1024, 4096)),
        "strongly saturating": Kind(legendre(2), features(2, 30, gain=8.0), (1024, 4096)),
        "saturating, K = 72": Kind(legendre(5), saturating_72, (1024, 8192)),
        "K = 300": Kind(legendre(3), sine_300, (2048, 8192)),
        "K = 120, N = 512": Kind(legendre(3), features(3, 120, 0.1), (512,)),
        "rectifiers": Kind(legendre(3), features(3, 40, activation="relu"), (512, 4096)),
        "no noise at all": Kind(legendre(2), features(2, 12, 0.0), (512, 4096)),
        "large N": Kind(legendre(3), features(3, 10), (20_000, 50_000)),
        "30 shots": few_shots,
        "2000 shots": many_shots,
        "12-bit converter": Kind(legendre(3), sine_units(twelve_bits), (1024, 8192)),
        "16-bit counts": Kind(legendre(3), sine_units(sixteen_bit_counts), (1024, 8192)),
        "Poisson, dark channels": Kind(legendre(3), sine_units(photon_counts), (512, 4096)),
        "harmless drift": Kind(legendre(3), sine_units(slow_gain), (1024, 8192)),
        "noise of 100 %": Kind(legendre(3), features(3, 20, 1.0), (1024, 4096)),
        "t3 noise": Kind(legendre(3), sine_units(student_noise(3)), (1024, 4096)),
        "log-normal gain": Kind(legendre(3), sine_units(log_normal_gain), (512, 4096)),
        "narrow resonances": Kind(legendre(2), narrow_resonances, (1024, 4096)),
        "lasers with a threshold": Kind(legendre(3), lasers, (1024, 4096)),
        "fibre": Kind(legendre(2), fibre, (512, 2048)),
    }


def sharp_kinds() -> dict[str, Kind]:
    """Return kinds with rare steps and sharp resonances, each behind one to three inputs."""
    makers = {
        "steps in 0.3 %": partial(rare_steps, k=24, share=0.003),
        "comparators from 0.3 %": partial(comparators, k=16, rarest=0.003),
        "threshold network": partial(threshold_network, k=20, noise=1e-3),
        "threshold network, no noise": partial(threshold_network, k=12, noise=0.0),
        "etalons, finesse 100": partial(etalons, k=20, finesse=100.0),
        "rings, finesse 100": partial(etalons, k=20, finesse=100.0, dips=True),
        "moving lines": partial(moving_lines, k=60, width=0.03),
    }
    table = {}
    for name, make in makers.items():
        for q in (1, 2, 3):
            inputs = "1 input" if q == 1 else f"{q} inputs"
            table[f"{name}, {inputs}"] = Kind(legendre(q), make(q), (512, 2048, 8192))
    return table


def kinds_of_accuracy_benchmark() -> dict[str, Kind]:
    """Return systems of the accuracy benchmark, whose weights are the same in every run."""
    right_words = {"populations": SUMS_TO_ONE, "9 directions in 48 channels": LOWER_RANK}
    names = (
        "photon counts",
        "populations",
        "converter of 4 bits",
        "comparators",
        "intensity noise",
        "speckle",
        "6 bits",
        "switches and knobs",
        "normal inputs",
        "resonators",
        "mixture with 100 % noise",
        "Student t3 noise",
        "two layers",
        "9 directions in 48 channels",
        "150 sine units",
    )
    table = {}
    for name in names:
        entry = SYSTEMS[name]
        system = entry.make(name)
        make = partial(_same_device, system.observe)
        table[name] = Kind(system.basis, make, entry.sizes, right_words.get(name, ()))
    return table


def _same_device(device: Device, seed: int) -> Device:
    return device


def further_kinds() -> dict[str, Kind]:
    normal = infocap.product_basis("hermite", 2, MAX_DEGREE)
    phases = infocap.product_basis("fourier", 3, 3)
    switches = infocap.product_basis("bernoulli", 5, MAX_DEGREE)
    eight_inputs = infocap.product_basis("legendre", 8, 2)
    volts = legendre(1, domain=(0, 5))
    heavy_tails = sine_units(student_noise(2.2))
    return {
        "N = 200": Kind(legendre(2), features(2, 8, 1e-2), (200, 300, 400)),
        "one channel": Kind(legendre(2), features(2, 1, 1e-2, gain=2.0), (300, 2048)),
        "nearly linear": Kind(legendre(3), features(3, 16, 1e-3, gain=0.05), (512, 4096)),
        "dead channels": Kind(legendre(3), sine_units(dead_channels), (512, 4096)),
        "10 directions in 30": Kind(legendre(2), fewer_directions, (512, 4096), LOWER_RANK),
        "noise of u1": Kind(legendre(3), noise_of_first_input, (512, 4096, 20_000)),
        "common noise of u1 u2": Kind(legendre(2), common_noise_of_inputs, (512, 4096)),
        "t2.2 noise": Kind(legendre(3), heavy_tails, (512, 4096)),
        "Laplace noise": Kind(legendre(3), sine_units(laplace_noise), (512, 4096)),
        "log-normal noise": Kind(legendre(3), sine_units(log_normal_noise), (512, 4096)),
        "single photons": Kind(legendre(2), single_photons, (512, 4096)),
        "microvolts and kilovolts": Kind(legendre(3), sine_units(many_units), (512, 4096)),
        "0 to 5 volts": Kind(volts, features(1, 16, 2e-3, gain=0.6), (300, 1024, 4096)),
        "normal inputs, saturating": Kind(normal, features(2, 24, 1e-2, gain=3.0), (512, 4096)),
        "rings behind phases": Kind(phases, phase_rings, (512, 2048, 8192)),
        "5 switches, no noise": Kind(switches, features(5, 12, 0.0), (256, 2048)),
        "8 inputs": Kind(eight_inputs, features(8, 30, 1e-2), (512, 4096)),
    }


def kinds_with_memory() -> dict[str, Kind]:
    sizes = (500, 2000, 8000)
    legendre_1 = delayed("legendre")
    leaky = leaky_integrators(12, 30.0, 0.0)
    delay_line = reservoir(lambda seed: DelayLine(12), 0.05)
    delay_reservoir = reservoir(lambda seed: DelayReservoir(40, seed=seed), 1e-3)
    return {
        "echo state network": Kind(legendre_1, echo_state(30), sizes),
        "echo state network, 8 bits": Kind(
            legendre_1, changed(echo_state(30, 0.0), eight_bits), sizes
        ),
        "echo state network, 2 inputs": Kind(
            delayed("legendre", 2), echo_state(30, n_inputs=2), sizes
        ),
        "echo state network of bits": Kind(delayed("bernoulli"), echo_state(20, 1e-2), sizes),
        "leaky integrators": Kind(legendre_1, leaky_integrators(12, 30.0, 1e-3), sizes),
        "leaky integrators, 8 bits": Kind(legendre_1, changed(leaky, eight_bits), sizes),
        "leaky integrators, normal inputs": Kind(
            delayed("hermite"), leaky_integrators(12, 10.0, 1e-2), sizes
        ),
        "delay line": Kind(legendre_1, delay_line, sizes),
        "delay line, 8 bits": Kind(
            legendre_1, changed(reservoir(lambda seed: DelayLine(12), 0.0), eight_bits), sizes
        ),
        "delay reservoir": Kind(legendre_1, delay_reservoir, sizes),
        "Schmitt triggers": Kind(legendre_1, schmitt_triggers, sizes),
    }


def developed_kinds() -> dict[str, Kind]:
    """Return the kinds of this module by their names."""
    return {
        **smooth_kinds(),
        **sharp_kinds(),
        **kinds_of_accuracy_benchmark(),
        **further_kinds(),
        **kinds_with_memory(),
    }


def readouts(kind: Kind, u: Array, seed: int) -> Array:
    """Return what a device of this kind answers to inputs in their order of acquisition.

    A device with memory has seen independent inputs before.
    """
    generator = np.random.default_rng([seed, NOISE_KEY])
    device = kind.make(seed)
    if not kind.basis.memory:
        return device(u, generator)
    earlier_inputs = to_inputs(kind.basis, generator.random((WASHOUT, kind.basis.n_inputs)))
    return device(np.vstack([earlier_inputs, u]), generator)[WASHOUT:]
