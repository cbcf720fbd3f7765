"""Further devices without a fault, which stay unseen while checks of the data are developed.

They were written by somebody who has not read the checks, and before any check had run on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.signal import lfilter

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
    reservoir,
    sine_units,
)
from infocap.systems import DelayLine

# Inputs give readouts before noise.
Respond = Callable[[Array], Array]
SIZES = (512, 2048, 8192)
# Causes that are true of channels without noise that follow the input of their own row.
EXACT_FUNCTIONS = ("monitor", "computed")


def with_noise(respond: Respond, noise: float) -> Device:
    def device(u: Array, generator: Generator) -> Array:
        x = respond(u)
        return x + noise * generator.standard_normal(x.shape)

    return device


# ---------------------------------------------------------------------------------------------
# Statistics of readouts
# ---------------------------------------------------------------------------------------------


def bunched_light(x: Array, generator: Generator) -> Array:
    """Return counts of thermal light, whose variance exceeds its mean."""
    intensity = 40 * np.exp(x) * generator.gamma(4, 1 / 4, x.shape)
    return generator.poisson(intensity).astype(float)


def dead_time(x: Array, generator: Generator) -> Array:
    """Return counts of a detector that saturates because it is blind for a while after each photon."""
    counts = generator.poisson(400 * np.exp(1.5 * x))
    return np.round(counts / (1 + counts / 1500))


def nearly_dark(x: Array, generator: Generator) -> Array:
    """Return counts of which most are zero."""
    return generator.poisson(0.15 * np.exp(x)).astype(float)


def contact_noise(x: Array, generator: Generator) -> Array:
    """Return readouts with Student noise that is proportional to the signal."""
    return x * (1 + 0.03 * generator.standard_t(4, x.shape)) + 0.02


def unsteady_power(x: Array, generator: Generator) -> Array:
    """Return readouts of a laser whose power varies by a fifth from shot to shot."""
    return (2 + x) * generator.lognormal(sigma=0.2, size=(len(x), 1))


def sum_of_bits(x: Array, generator: Generator) -> Array:
    """Return the mean of 64 decisions of a comparator."""
    probability = 1 / (1 + np.exp(-3 * x))
    return generator.binomial(64, probability) / 64


def mostly_idle(x: Array, generator: Generator) -> Array:
    """Return readouts of which half the channels see nothing but noise."""
    idle = x.copy()
    idle[:, ::2] = generator.standard_normal(idle[:, ::2].shape)
    return idle


def saturating_converter(x: Array, generator: Generator) -> Array:
    """Return readouts of a converter of 10 bits whose range is exceeded now and then."""
    return np.clip(np.round(x * 900 + 512), 0, 1023)


def millions(x: Array, generator: Generator) -> Array:
    """Return small signals on a large background."""
    return 1e6 + 20 * x + 0.5 * generator.standard_normal(x.shape)


# ---------------------------------------------------------------------------------------------
# Responses
# ---------------------------------------------------------------------------------------------


def phase_meters(seed: int) -> Device:
    """Return phases that jump by a turn, as the instrument gives them."""
    weights = np.random.default_rng(seed)
    w = 3 * weights.standard_normal((2, 16))
    start = weights.uniform(-np.pi, np.pi, 16)

    def device(u: Array, generator: Generator) -> Array:
        phase = u @ w + start + 0.02 * generator.standard_normal((len(u), 16))
        return np.angle(np.exp(1j * phase), deg=True)

    return device


def photodiodes(k: int) -> MakeDevice:
    """Return currents that depend exponentially on the inputs, over three decades."""

    def make(seed: int) -> Device:
        w = np.random.default_rng(seed).standard_normal((2, k))

        def device(u: Array, generator: Generator) -> Array:
            current = np.exp(2 * u @ w)
            return current * (1 + 5e-3 * generator.standard_normal(current.shape)) + 0.01

        return device

    return make


def logarithmic_amplifiers(seed: int) -> Device:
    """Return powers in decibel of interference with deep and narrow minima."""
    weights = np.random.default_rng(seed)
    w = 2 * weights.standard_normal((2, 18))
    phase = weights.uniform(0, 2 * np.pi, 18)

    def device(u: Array, generator: Generator) -> Array:
        power = 1 + np.cos(u @ w + phase) + 1e-3
        return 10 * np.log10(power) + 0.05 * generator.standard_normal(power.shape)

    return device


def order_statistics(seed: int) -> Device:
    """Return smallest, middle and largest of weighted inputs: kinks without a step."""
    scale = np.random.default_rng(seed).uniform(0.3, 1, (7, 4))
    return with_noise(
        lambda u: np.hstack([np.sort(u * weights, axis=1)[:, [0, 1, -1]] for weights in scale]),
        5e-3,
    )


def parity_of_thresholds(seed: int) -> Device:
    """Return exclusive ors of comparators, with the noise of the logic levels."""
    weights = np.random.default_rng(seed)
    threshold = weights.uniform(-0.6, 0.6, (3, 14))

    def respond(u: Array) -> Array:
        above = u[:, :, None] > threshold
        return (above.sum(axis=1) % 2).astype(float)

    return with_noise(respond, 0.05)


def iterated_map(seed: int) -> Device:
    """Return values of a logistic map after one to twelve steps, which get ever rougher."""
    growth = np.random.default_rng(seed).uniform(3.5, 3.7, 12)

    def respond(u: Array) -> Array:
        state = 0.5 + 0.45 * u[:, :1] * np.ones(12)
        columns = []
        for step in range(12):
            state = growth * state * (1 - state)
            columns.append(state[:, step])
        return np.column_stack(columns)

    return with_noise(respond, 0.01)


def bistable(seed: int) -> Device:
    """Return elements that choose one of two states by chance where both are stable."""
    weights = np.random.default_rng(seed)
    w = weights.standard_normal((2, 16))
    offset = 0.5 * weights.standard_normal(16)

    def device(u: Array, generator: Generator) -> Array:
        force = u @ w + offset
        is_up = force + 0.3 * generator.uniform(-1, 1, force.shape) > 0
        branch = np.where(is_up, 1.0, -1.0) + 0.2 * force
        return branch + 0.01 * generator.standard_normal(force.shape)

    return device


def square_waves(seed: int) -> Device:
    """Return slightly rounded square waves of two phases."""
    weights = np.random.default_rng(seed)
    turns = weights.integers(1, 4, (2, 15))
    start = weights.uniform(0, 2 * np.pi, 15)
    return with_noise(lambda u: np.tanh(15 * np.sin(u @ turns + start)), 0.01)


def lookup_tables(seed: int) -> Device:
    """Return the random entries of tables with eight rows and eight columns of unequal width."""
    weights = np.random.default_rng(seed)
    tables = weights.standard_normal((8, 8, 20))
    edges = np.sort(weights.uniform(-0.9, 0.9, (2, 7)), axis=1)

    def respond(u: Array) -> Array:
        row = np.searchsorted(edges[0], u[:, 0])
        column = np.searchsorted(edges[1], u[:, 1])
        return tables[row, column]

    return with_noise(respond, 0.02)


# ---------------------------------------------------------------------------------------------
# Devices with memory
# ---------------------------------------------------------------------------------------------


def volterra(seed: int) -> Device:
    """Return products of filtered inputs, the slowest filter of 40 rows."""
    weights = np.random.default_rng(seed)
    remembered = np.exp(-1 / np.geomspace(1, 40, 8))
    mixing = weights.standard_normal((8, 2, 16))

    def respond(u: Array) -> Array:
        filtered = [lfilter([np.sqrt(1 - a**2)], [1, -a], u[:, 0]) for a in remembered]
        first, second = np.einsum("nf,fsk->snk", np.column_stack(filtered), mixing)
        return first + 0.3 * first * second

    return with_noise(respond, 0.05)


def parities_of_bits(seed: int) -> Device:
    """Return exclusive ors of up to four of the last six bits, without noise."""
    weights = np.random.default_rng(seed)
    chosen = [weights.choice(6, weights.integers(1, 5), replace=False) for _ in range(12)]

    def respond(u: Array) -> Array:
        delayed_bits = np.column_stack([np.roll(u[:, 0], delay) for delay in range(6)])
        return np.column_stack([delayed_bits[:, bits].sum(axis=1) % 2 for bits in chosen])

    return with_noise(respond, 0.0)


def counted(x: Array, generator: Generator) -> Array:
    return generator.poisson(30 * np.exp(x)).astype(float)


def heavy_tails(x: Array, generator: Generator) -> Array:
    return x + 0.03 * generator.standard_t(3, x.shape)


def three_slow_cells(seed: int) -> Device:
    """Return three cells that forget within two, six and 18 rows, behind a logarithm."""
    gain = np.random.default_rng(seed).uniform(0.5, 1.5, 3)
    remembered = np.exp(-1 / np.array([2.0, 6.0, 18.0]))

    def respond(u: Array) -> Array:
        charge = [lfilter([1 - a], [1, -a], (1 + u[:, 0]) ** 2) for a in remembered]
        return np.log1p(gain * np.column_stack(charge))

    return with_noise(respond, 2e-3)


@cache
def held_out_kinds() -> dict[str, Kind]:
    """Return the kinds of this module by their names."""
    bits = infocap.product_basis("bernoulli", 6, 3)
    phases = infocap.product_basis("fourier", 2, 4)
    waiting_times = infocap.product_basis("laguerre", 2, 3)
    four_normals = infocap.product_basis("hermite", 4, 3)
    binomial_levels = infocap.product_basis(infocap.basis.binomial(10, 0.5), 3, 3)
    sizes_of_sequences = (500, 2000, 8000)
    delayed_uniform = delayed("legendre")
    echo_100 = echo_state(100, 1e-2, n_inputs=2)
    shift_register = reservoir(lambda seed: DelayLine(10), 0.0)
    clipped = Kind(legendre(3), sine_units(saturating_converter), SIZES, ("clipped",))
    return {
        "K = 200, four inputs": Kind(
            legendre(4), features(4, 200, 0.05, activation="sin", gain=1.5), (2048, 8192)
        ),
        "N = 50 000, K = 6": Kind(legendre(2), features(2, 6, 0.02, gain=2.0), (50_000,)),
        "N = 200, K = 20": Kind(legendre(2), features(2, 20, 0.05), (200, 250, 400)),
        "thermal light": Kind(legendre(3), sine_units(bunched_light), SIZES),
        "dead time": Kind(legendre(3), sine_units(dead_time), SIZES),
        "nearly dark": Kind(legendre(3), sine_units(nearly_dark), SIZES),
        "contact noise": Kind(legendre(3), sine_units(contact_noise), SIZES),
        "unsteady power": Kind(legendre(3), sine_units(unsteady_power), SIZES),
        "mean of 64 bits": Kind(legendre(3), sine_units(sum_of_bits), SIZES),
        "half the channels idle": Kind(legendre(3), sine_units(mostly_idle), SIZES),
        "converter that saturates": clipped,
        "large background": Kind(legendre(3), sine_units(millions), SIZES),
        "phase meters": Kind(legendre(2), phase_meters, SIZES),
        "exponential, K = 20": Kind(legendre(2), photodiodes(20), SIZES),
        "exponential, K = 3": Kind(legendre(2), photodiodes(3), (200, 1024, 20_000)),
        "logarithmic amplifiers": Kind(legendre(2), logarithmic_amplifiers, SIZES),
        "order statistics": Kind(legendre(4), order_statistics, SIZES),
        "parity of thresholds": Kind(legendre(3), parity_of_thresholds, SIZES),
        "iterated map": Kind(legendre(1), iterated_map, SIZES),
        "bistable": Kind(legendre(2), bistable, SIZES),
        "square waves": Kind(phases, square_waves, SIZES),
        "tables of 8 x 8": Kind(legendre(2), lookup_tables, SIZES),
        "6 bits with noise": Kind(bits, features(6, 20, 0.1), (300, 4096)),
        "binomial inputs": Kind(binomial_levels, features(3, 24, 1e-2, gain=0.3), (512, 4096)),
        "exponential inputs": Kind(waiting_times, features(2, 20, 1e-2, gain=0.5), SIZES),
        "4 normal inputs, counts": Kind(four_normals, changed(features(4, 16), counted), SIZES),
        "volterra": Kind(delayed_uniform, volterra, sizes_of_sequences),
        "parities of bits": Kind(
            delayed("bernoulli"), parities_of_bits, sizes_of_sequences, EXACT_FUNCTIONS
        ),
        "shift register of normal numbers": Kind(
            delayed("hermite"), shift_register, sizes_of_sequences, EXACT_FUNCTIONS
        ),
        "echo state network, K = 100": Kind(delayed("legendre", 2), echo_100, (2000, 8000, 30_000)),
        "echo state network, counts": Kind(
            delayed_uniform, changed(echo_state(25, 0.0), counted), sizes_of_sequences
        ),
        "echo state network, t3 noise": Kind(
            delayed_uniform, changed(echo_state(25, 0.0), heavy_tails), sizes_of_sequences
        ),
        "three slow cells": Kind(delayed_uniform, three_slow_cells, sizes_of_sequences),
    }
