"""A third part of devices without a fault, which stay unseen while checks of the data are developed.

They were written by somebody who has not read the checks, nor what they find. Most of them are the devices of the third
part of the benchmark of mistakes, with other parameters in every run; the others add statistics and responses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.signal import lfilter

import _mistakes_devices_third_part as memoryless
import _mistakes_devices_with_memory_third_part as with_memory
import infocap
from _clean_devices import (
    Array,
    Device,
    Generator,
    Kind,
    MakeDevice,
    changed,
    delayed,
    echo_state,
    features,
    legendre,
    sine_units,
)
from _mistakes_devices import Parameters, Response

# Causes that are true of a converter with few steps, whatever its noise.
FEW_STEPS = ("rounded readouts",)
# True of a device that remembers for longer than the functions that are asked for.
LONGER_MEMORY = ("memory",)
SIZES = (500, 3000, 12_000)
SIZES_OF_SEQUENCES = (500, 2500, 10_000)
# Spiking neurons take forty steps of time per row, so their sequences are shorter.
SHORT_SIZES = (500, 2500)


def built(build: Callable[[Parameters], Response]) -> MakeDevice:
    """Return devices of one sort whose parameters are drawn from the seed."""

    def make(seed: int) -> Device:
        return build(Parameters(seed))

    return make


# ---------------------------------------------------------------------------------------------
# Statistics of readouts
# ---------------------------------------------------------------------------------------------


def waiting_times(x: Array, generator: Generator) -> Array:
    """Return mean waiting times of four photons each, whose noise is half of the signal."""
    return np.exp(-x) * generator.gamma(4, 1 / 4, x.shape)


def ratio_of_two_detectors(x: Array, generator: Generator) -> Array:
    """Return ratios of signal to reference, both with noise."""
    signal = 2 + x + 0.05 * generator.standard_normal(x.shape)
    reference = 1 + 0.1 * generator.standard_normal(x.shape)
    return signal / np.maximum(reference, 0.3)


def magnitude_of_a_noisy_field(x: Array, generator: Generator) -> Array:
    """Return magnitudes of complex fields, which noise keeps above zero."""
    noise = generator.standard_normal(x.shape) + 1j * generator.standard_normal(x.shape)
    return np.abs(x + 0.1 * noise)


def two_modes(x: Array, generator: Generator) -> Array:
    """Return shots of a laser that starts in one of two modes by chance, whatever its inputs are."""
    mode = generator.random((len(x), 1)) < 0.4
    offset = np.where(np.arange(x.shape[1]) % 2, 0.3, -0.2)
    return x + mode * offset + 0.01 * generator.standard_normal(x.shape)


def common_offset(x: Array, generator: Generator) -> Array:
    """Return readouts against a ground that jumps from shot to shot by more than the signal."""
    return x + 3 * generator.standard_normal((len(x), 1))


def median_of_nine(x: Array, generator: Generator) -> Array:
    """Return medians of nine readings with Cauchy noise."""
    readings = x[..., None] + 0.1 * generator.standard_cauchy((*x.shape, 9))
    return np.median(readings, axis=2)


def unequal_channels(x: Array, generator: Generator) -> Array:
    """Return four precise channels, others with more and more noise, and every fifth in steps."""
    size = np.geomspace(1e-3, 3, x.shape[1])
    noisy = x + size * generator.standard_normal(x.shape)
    noisy[:, ::5] = np.round(noisy[:, ::5], 2)
    return noisy


def decibels_with_one_decimal(x: Array, generator: Generator) -> Array:
    """Return levels as a spectrum analyser prints them, with noise that exceeds its step."""
    return np.round(20 * x + 0.3 * generator.standard_normal(x.shape), 1)


def shares(x: Array, generator: Generator) -> Array:
    """Return shares that add up to one, of light that is divided anew for each row."""
    light = generator.gamma(30 * np.exp(x))
    return light / light.sum(axis=1, keepdims=True)


def missing_photons(x: Array, generator: Generator) -> Array:
    """Return the energy of showers, of which a binomial part reaches the detector."""
    produced = generator.poisson(80 * np.exp(0.5 * x))
    return generator.binomial(produced, 0.3).astype(float)


# ---------------------------------------------------------------------------------------------
# Responses
# ---------------------------------------------------------------------------------------------


def rough_function(seed: int) -> Device:
    """Return sums of seven octaves, each with half the amplitude of the one below."""
    weights = np.random.default_rng(seed)
    direction = weights.standard_normal((2, 14))
    phase = weights.uniform(0, 2 * np.pi, (7, 14))

    def device(u: Array, generator: Generator) -> Array:
        along = u @ direction
        octaves = [0.5**k * np.cos(2.0**k * along + phase[k]) for k in range(7)]
        return sum(octaves) + 0.01 * generator.standard_normal(along.shape)

    return device


def steep_walls(seed: int) -> Device:
    """Return exponentials of a force that is finite only within a box of the inputs."""
    weights = np.random.default_rng(seed)
    stiffness = weights.uniform(1, 4, (3, 12))

    def device(u: Array, generator: Generator) -> Array:
        force = (1 / (1.05 - np.abs(u))) @ stiffness
        return force * (1 + 0.01 * generator.standard_normal(force.shape))

    return device


def nearest_memory(seed: int) -> Device:
    """Return what an associative memory of twelve patterns answers: that of the nearest."""
    weights = np.random.default_rng(seed)
    centres = weights.uniform(-1, 1, (12, 3))
    patterns = weights.standard_normal((12, 16))

    def device(u: Array, generator: Generator) -> Array:
        distance = np.linalg.norm(u[:, None, :] - centres, axis=2)
        nearest = patterns[distance.argmin(axis=1)]
        return nearest + 0.05 * generator.standard_normal(nearest.shape)

    return device


def one_input_matters(seed: int) -> Device:
    """Return ten channels of which each follows one of ten inputs mainly, and all others a little."""
    weights = np.random.default_rng(seed)
    w = np.eye(10) + 0.05 * weights.standard_normal((10, 10))

    def device(u: Array, generator: Generator) -> Array:
        return np.tanh(2 * u @ w) + 0.02 * generator.standard_normal((len(u), 10))

    return device


# ---------------------------------------------------------------------------------------------
# Devices with memory
# ---------------------------------------------------------------------------------------------


def long_echoes(seed: int) -> Device:
    """Return a delay of 31 rows, far beyond the functions that are asked for, beside recent inputs."""
    gain = np.random.default_rng(seed).uniform(0.3, 0.8, 8)

    def device(u: Array, generator: Generator) -> Array:
        late = np.concatenate([np.zeros(31), u[:-31, 0]])
        recent = lfilter([1], [1, -0.5], u[:, 0])
        x = np.tanh(np.outer(recent, gain) + np.outer(late, gain[::-1]))
        return x + 0.02 * generator.standard_normal(x.shape)

    return device


def slow_and_coarse(x: Array, generator: Generator) -> Array:
    """Return readouts of a converter with 60 steps of a slow signal and noise of a whole step."""
    step = np.ptp(x) / 60
    return np.round(x / step + generator.standard_normal(x.shape))


def gated_accumulators(seed: int) -> Device:
    """Return sums of inputs that are cleared whenever an input exceeds a threshold of each channel."""
    threshold = np.random.default_rng(seed).uniform(0.2, 0.7, 10)

    def device(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 10))
        state = np.zeros(10)
        for row, value in enumerate(u[:, 0]):
            state = np.where(value > threshold, 0.0, state + value)
            states[row] = state
        return np.tanh(states) + 0.02 * generator.standard_normal(states.shape)

    return device


def two_clocks(seed: int) -> Device:
    """Return a device that answers quickly in half of its channels, and with the last input in others."""
    units = features(1, 16, 0.0, gain=1.5)(seed)

    def device(u: Array, generator: Generator) -> Array:
        x = units(u, generator)
        x[:, ::2] = np.roll(x[:, ::2], 1, axis=0)
        return x + 0.01 * generator.standard_normal(x.shape)

    return device


# ---------------------------------------------------------------------------------------------
# The table of kinds
# ---------------------------------------------------------------------------------------------


def kinds_without_memory() -> dict[str, Kind]:
    concentrations = legendre(2, domain=(0, 1))
    phases = infocap.product_basis("fourier", 3, 3)
    waiting = infocap.product_basis("laguerre", 2, 2)
    mixed = infocap.product_basis(["fourier", "hermite", "legendre", "bernoulli"], max_degree=3)
    ten_inputs = infocap.product_basis("legendre", 10, 2)
    spectrum = sine_units(decibels_with_one_decimal)
    return {
        "gas sensors": Kind(concentrations, built(memoryless.gas_sensors), SIZES),
        "scattering cavity": Kind(phases, built(memoryless.scattering_cavity), SIZES),
        "superconducting junctions": Kind(
            legendre(3), built(memoryless.superconducting_junctions), (500, 3000, 20_000)
        ),
        "photon array": Kind(legendre(2), built(memoryless.photon_array), SIZES),
        "pulse shapers": Kind(waiting, built(memoryless.pulse_shapers), SIZES),
        "ringing bells": Kind(legendre(3), built(memoryless.ringing_bells), (1000, 3000, 12_000)),
        "two ports": Kind(legendre(1), built(memoryless.two_ports), SIZES),
        "waiting times of photons": Kind(legendre(3), sine_units(waiting_times), SIZES),
        "ratio of two detectors": Kind(legendre(3), sine_units(ratio_of_two_detectors), SIZES),
        "magnitude of a noisy field": Kind(
            legendre(3), sine_units(magnitude_of_a_noisy_field), SIZES
        ),
        "one of two modes by chance": Kind(legendre(3), sine_units(two_modes), SIZES),
        "ground that jumps": Kind(legendre(3), sine_units(common_offset), SIZES),
        "median of nine": Kind(legendre(3), sine_units(median_of_nine), SIZES),
        "unequal channels": Kind(legendre(3), sine_units(unequal_channels), SIZES, FEW_STEPS),
        "decibels with one decimal": Kind(legendre(3), spectrum, SIZES, FEW_STEPS),
        "shares of light": Kind(legendre(3), sine_units(shares), SIZES, ("dependent",)),
        "binomial loss": Kind(legendre(3), sine_units(missing_photons), SIZES),
        "seven octaves": Kind(legendre(2), rough_function, SIZES),
        "steep walls": Kind(legendre(3), steep_walls, SIZES),
        "associative memory": Kind(legendre(3), nearest_memory, SIZES),
        "ten inputs": Kind(ten_inputs, one_input_matters, (1100, 5000, 20_000)),
        "phase, noise, knob and switch": Kind(mixed, features(4, 20, 0.02, gain=0.7), SIZES),
    }


def kinds_with_memory() -> dict[str, Kind]:
    uniform = delayed("legendre")
    units = infocap.product_basis("legendre", 1, 1, domain=(0, 1)).families
    from_0_to_1 = infocap.delayed_basis(units, max_delay={1: 20, 2: 6})
    coarse = changed(echo_state(20, 0.0, leak=0.1), slow_and_coarse)
    return {
        "volatile memristors": Kind(
            uniform, built(with_memory.volatile_memristors), SIZES_OF_SEQUENCES
        ),
        "warm microring": Kind(uniform, built(with_memory.warm_microring), SIZES_OF_SEQUENCES),
        "water tank": Kind(uniform, built(with_memory.water_tank), SIZES_OF_SEQUENCES),
        "spiking neurons": Kind(uniform, built(with_memory.spiking_neurons), SHORT_SIZES),
        "stiffening beams": Kind(
            delayed("legendre", 2), built(with_memory.stiffening_beams), SIZES_OF_SEQUENCES
        ),
        "rope drives": Kind(uniform, built(with_memory.rope_drives), SIZES_OF_SEQUENCES),
        "quantum register": Kind(from_0_to_1, built(with_memory.quantum_register), SHORT_SIZES),
        "flow reactor": Kind(
            delayed("bernoulli"), built(with_memory.flow_reactor), SIZES_OF_SEQUENCES
        ),
        "echoing room": Kind(
            delayed("hermite"), built(with_memory.echoing_room), (500, 2500, 20_000)
        ),
        "heated rod": Kind(from_0_to_1, built(with_memory.heated_rod), SIZES_OF_SEQUENCES),
        "echo after 31 rows": Kind(uniform, long_echoes, SIZES_OF_SEQUENCES, LONGER_MEMORY),
        "slow, 60 steps": Kind(uniform, coarse, SIZES_OF_SEQUENCES, FEW_STEPS),
        "accumulators that are cleared": Kind(uniform, gated_accumulators, SIZES_OF_SEQUENCES),
        "half the channels answer a row later": Kind(uniform, two_clocks, SIZES_OF_SEQUENCES),
    }


@cache
def third_kinds() -> dict[str, Kind]:
    """Return the kinds of this module by their names."""
    return {**kinds_without_memory(), **kinds_with_memory()}
