"""A fourth part of devices without a fault, and of orders of inputs, unseen while checks of the data are developed.

They were written by somebody who has not read the checks, nor what they find. Many of the devices are those of the
fourth part of the benchmark of mistakes, with other parameters in every run; the others add statistics, responses,
laws of inputs and sizes. The designs are put into the table DESIGNS when this module is imported.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

import _mistakes_devices_fourth_part as memoryless
import _mistakes_devices_with_memory_fourth_part as with_memory
import infocap
from _clean_designs import (
    DEPENDENT_ROWS,
    DESIGNS,
    FOURTH,
    LEVEL_WORDS,
    Design,
    drawn,
    random_generator,
    to_inputs,
)
from _clean_devices import (
    Array,
    Device,
    Generator,
    Kind,
    MakeDevice,
    changed,
    comparators,
    delayed,
    echo_state,
    features,
    legendre,
    sine_units,
)
from _clean_third_part import built

# Causes that are true of a converter with few steps, of readouts that reach an end of their range, of readouts that
# follow from others, of a device that remembers for longer than the functions that are asked for, of one that
# answers to nothing, and of one that is deaf to an input.
FEW_STEPS = ("rounded readouts",)
REACHES_AN_END = ("clipped",)
SUMS_TO_A_CONSTANT = ("dependent",)
LONGER_MEMORY = ("memory",)
ANSWERS_TO_NOTHING = ("nothing", "no effect")
DEAF_TO_AN_INPUT = ("no effect",)
SIZES = (500, 3000, 12_000)
SIZES_OF_SEQUENCES = (500, 2500, 10_000)

# Rows on average for which inputs stay in one half of their range.
MEAN_ROWS_IN_A_HALF = 50
# Rows per period of narrow-band noise, and its pole's distance from the origin.
NARROW_BAND_PERIOD = 9.0
NARROW_BAND_POLE = 0.93
# Correlation of inputs that change sides from row to row.
CHANGING_SIDES = -0.7


# ---------------------------------------------------------------------------------------------
# Orders of inputs
# ---------------------------------------------------------------------------------------------


def three_times_each(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return random inputs of which each is measured three times, all rows in random order."""
    u = drawn("random")(basis, -(-n // 3), seed)
    return random_generator(seed).permutation(np.repeat(u, 3, axis=0))[:n]


def sorted_by_the_sum(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return random inputs sorted by the sum of their probabilities, as by total power."""
    points = random_generator(seed).random((n, basis.n_inputs))
    return to_inputs(basis, points[np.argsort(points.sum(axis=1))])


def one_half_after_the_other(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return inputs that stay in the lower or upper half of their range for some fifty rows."""
    generator = random_generator(seed)
    changes = generator.random((n, basis.n_inputs)) < 1 / MEAN_ROWS_IN_A_HALF
    start = generator.integers(0, 2, basis.n_inputs)
    half = (start + np.cumsum(changes, axis=0)) % 2
    return to_inputs(basis, (half + generator.random(half.shape)) / 2)


def with_normal_law(basis: infocap.ProductBasis, process: Array) -> Array:
    """Return normal processes of any variance, carried to the distribution of each input."""
    return to_inputs(basis, ndtr(process / process.std(axis=0)))


def narrow_band_noise(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return noise behind a resonance of nine rows."""
    angle = 2 * np.pi / NARROW_BAND_PERIOD
    denominator = [1, -2 * NARROW_BAND_POLE * np.cos(angle), NARROW_BAND_POLE**2]
    white = random_generator(seed).standard_normal((n + 100, basis.n_inputs))
    return with_normal_law(basis, lfilter([1], denominator, white, axis=0)[100:])


def changing_sides(basis: infocap.ProductBasis, n: int, seed: int) -> Array:
    """Return inputs of which a large one is mostly followed by a small one."""
    white = random_generator(seed).standard_normal((n + 100, basis.n_inputs))
    return with_normal_law(basis, lfilter([1], [1, -CHANGING_SIDES], white, axis=0)[100:])


DESIGNS.update(
    {
        "three times each": Design(
            three_times_each,
            right_words=(*LEVEL_WORDS, *DEPENDENT_ROWS),
            part=FOURTH,
            of_sequences=False,
        ),
        "sorted by the sum": Design(
            sorted_by_the_sum, is_random=False, right_words=DEPENDENT_ROWS, part=FOURTH
        ),
        "one half after the other": Design(
            one_half_after_the_other, is_random=False, right_words=DEPENDENT_ROWS, part=FOURTH
        ),
        "narrow-band noise": Design(
            narrow_band_noise, is_random=False, right_words=DEPENDENT_ROWS, part=FOURTH
        ),
        "changing sides": Design(
            changing_sides, is_random=False, right_words=DEPENDENT_ROWS, part=FOURTH
        ),
    }
)


# ---------------------------------------------------------------------------------------------
# Statistics of readouts
# ---------------------------------------------------------------------------------------------


def ternary(x: Array, generator: Generator) -> Array:
    """Return -1, 0 or 1: a comparator with two thresholds, with noise before it."""
    noisy = x + 0.1 * generator.standard_normal(x.shape)
    return np.sign(noisy) * (np.abs(noisy) > 0.3)


def prescaled_counts(x: Array, generator: Generator) -> Array:
    """Return counts behind a divider by 16, which only come in multiples."""
    return 16.0 * (generator.poisson(600 * np.exp(x)) // 16)


def rare_bursts(x: Array, generator: Generator) -> Array:
    """Return numbers of events, most of which are zero because the sample sleeps two thirds of the time."""
    is_awake = generator.random(x.shape) < 0.35
    return (is_awake * generator.poisson(20 * np.exp(x))).astype(float)


def coincidences(x: Array, generator: Generator) -> Array:
    """Return coincidences of two detectors, which are one in thirty rows."""
    return generator.poisson(0.03 * np.exp(1.5 * x)).astype(float)


def stable_noise(x: Array, generator: Generator) -> Array:
    """Return readouts with noise of infinite variance, a stable law of index 1.8."""
    angle = np.pi * (generator.random(x.shape) - 0.5)
    waiting = generator.exponential(size=x.shape)
    noise = np.sin(1.8 * angle) / np.cos(angle) ** (1 / 1.8)
    noise = noise * (np.cos(0.8 * angle) / waiting) ** (-0.8 / 1.8)
    return x + 0.03 * noise


def skewed_where_large(x: Array, generator: Generator) -> Array:
    """Return readouts with exponential noise that grows with the signal."""
    return x + 0.1 * np.exp(1.5 * x) * generator.exponential(size=x.shape)


def stopwatch(x: Array, generator: Generator) -> Array:
    """Return times in milliseconds until a threshold is crossed; the watch stops at 40."""
    time = 12 * np.exp(1.2 * x) * generator.gamma(20, 1 / 20, x.shape)
    return np.minimum(time, 40.0)


def small_floats(x: Array, generator: Generator) -> Array:
    """Return codes of a converter whose steps grow with the value, with noise of a step."""
    companded = np.sign(x) * np.log1p(50 * np.abs(x)) / np.log1p(50)
    return np.round(110 * companded + 0.7 * generator.standard_normal(x.shape))


def single_precision_on_a_pedestal(x: Array, generator: Generator) -> Array:
    """Return signals of a few units on 10 000 in single precision, whose steps are far below the noise."""
    pedestal = 1e4 + 5 * x + 0.2 * generator.standard_normal(x.shape)
    return pedestal.astype(np.float32).astype(float)


def eight_detectors_each(x: Array, generator: Generator) -> Array:
    """Return three signals of which each is seen by eight detectors with noise of their own."""
    signals = np.repeat(x[:, :3], 8, axis=1)
    return signals + 0.2 * generator.standard_normal(signals.shape)


def mean_subtracted(x: Array, generator: Generator) -> Array:
    """Return differences from the mean of all channels."""
    noisy = x + 0.05 * generator.standard_normal(x.shape)
    return noisy - noisy.mean(axis=1, keepdims=True)


def noise_alone(x: Array, generator: Generator) -> Array:
    """Return noise of a device that is not sensitive to what is sent."""
    return generator.standard_normal(x.shape)


def degrees(x: Array, generator: Generator) -> Array:
    """Return angles between 0 and 360 degrees with one decimal."""
    return np.round((200 * x + 3 * generator.standard_normal(x.shape)) % 360, 1)


# ---------------------------------------------------------------------------------------------
# Responses
# ---------------------------------------------------------------------------------------------


def deaf_to_one(seed: int) -> Device:
    """Return sine units of three inputs, the second of which has no effect."""
    units = features(2, 18, 0.01, activation="sin", gain=1.5)(seed)

    def device(u: Array, generator: Generator) -> Array:
        return units(u[:, ::2], generator)

    return device


def fine_fringes(seed: int) -> Device:
    """Return fringes that are much finer than any polynomial that is asked for."""
    weights = np.random.default_rng(seed)
    direction = weights.uniform(30, 80, (2, 20))
    phase = weights.uniform(0, 2 * np.pi, 20)

    def device(u: Array, generator: Generator) -> Array:
        fringe = np.cos(u @ direction + phase)
        return 0.3 * u[:, :1] + fringe + 0.05 * generator.standard_normal(fringe.shape)

    return device


def choice_of_the_largest(seed: int) -> Device:
    """Return competing cells, of which the strongest suppresses all others."""
    weights = np.random.default_rng(seed)
    w = weights.standard_normal((3, 12))
    offset = 0.3 * weights.standard_normal(12)

    def device(u: Array, generator: Generator) -> Array:
        strength = np.exp(6 * (u @ w + offset))
        share = strength / strength.sum(axis=1, keepdims=True)
        return share + 0.01 * generator.standard_normal(share.shape)

    return device


def decaying_transients(k: int) -> MakeDevice:
    """Return many samples of a transient whose rate and frequency two inputs change."""

    def make(seed: int) -> Device:
        weights = np.random.default_rng(seed)
        time = np.linspace(0, 6, k)
        slope = weights.uniform(0.2, 0.6, 2)

        def device(u: Array, generator: Generator) -> Array:
            rate = np.exp(slope[0] * u[:, :1])
            frequency = 2 + slope[1] * u[:, 1:2]
            transient = np.exp(-0.4 * rate * time) * np.cos(frequency * time)
            return transient + 0.02 * generator.standard_normal(transient.shape)

        return device

    return make


# ---------------------------------------------------------------------------------------------
# Devices with memory
# ---------------------------------------------------------------------------------------------


def three_rows_of_latency(seed: int) -> Device:
    """Return units that see nothing but the input of three rows before."""
    units = features(1, 14, 0.02, gain=1.5)(seed)

    def device(u: Array, generator: Generator) -> Array:
        return units(np.roll(u, 3, axis=0), generator)

    return device


def sharp_resonances(seed: int) -> Device:
    """Return the squared amplitudes of resonators that ring for some 25 rows."""
    weights = np.random.default_rng(seed)
    angle = weights.uniform(0.3, 2.5, 9)
    pole = np.exp(-1 / weights.uniform(15, 30, 9))
    offset = weights.uniform(0.5, 1.5, 9)

    def device(u: Array, generator: Generator) -> Array:
        columns = []
        for number in range(9):
            denominator = [1, -2 * pole[number] * np.cos(angle[number]), pole[number] ** 2]
            columns.append(0.15 * lfilter([1], denominator, u[:, 0]) + offset[number])
        x = np.column_stack(columns) ** 2
        return x + 0.03 * generator.standard_normal(x.shape)

    return device


def very_slow_cells(seed: int) -> Device:
    """Return four cells that forget within 60 rows, beside four that follow at once."""
    gain = np.random.default_rng(seed).uniform(0.5, 2, 8)

    def device(u: Array, generator: Generator) -> Array:
        slow = lfilter([0.12], [1, -np.exp(-1 / 60)], u[:, 0])[:, None]
        x = np.hstack([np.tanh(gain[:4] * slow), np.tanh(gain[4:] * u[:, :1])])
        return x + 0.01 * generator.standard_normal(x.shape)

    return device


def difference_detectors(seed: int) -> Device:
    """Return what eyes see: changes of the input, brightening and darkening in channels of their own."""
    gain = np.random.default_rng(seed).uniform(0.5, 3, 12)

    def device(u: Array, generator: Generator) -> Array:
        change = u[:, :1] - np.roll(u[:, :1], 1, axis=0)
        brighter = np.tanh(gain[:6] * np.maximum(change, 0))
        darker = np.tanh(gain[6:] * np.maximum(-change, 0))
        x = np.hstack([brighter, darker])
        return x + 0.02 * generator.standard_normal(x.shape)

    return device


def one_input_is_remembered(seed: int) -> Device:
    """Return products of the first input of now with the second input of the two rows before."""
    weights = np.random.default_rng(seed).standard_normal((4, 15))

    def device(u: Array, generator: Generator) -> Array:
        earlier = np.roll(u[:, 1], 1)
        still_earlier = np.roll(u[:, 1], 2)
        terms = [u[:, 0], earlier, u[:, 0] * earlier, u[:, 0] * still_earlier]
        x = np.column_stack(terms) @ weights
        return x + 0.1 * generator.standard_normal(x.shape)

    return device


def latched(x: Array, generator: Generator) -> Array:
    """Return the two states of latches that follow slow signals, with a few errors."""
    state = x > np.median(x, axis=0)
    return (state ^ (generator.random(x.shape) < 0.02)).astype(float)


# ---------------------------------------------------------------------------------------------
# The table of kinds
# ---------------------------------------------------------------------------------------------


def devices_of_the_benchmark_of_mistakes() -> dict[str, Kind]:
    """Return the devices of the fourth part of the benchmark of mistakes."""
    unit_square = legendre(2, domain=(0, 1))
    stimuli = legendre(4, domain=(0, 1))
    angle = infocap.product_basis("fourier", 1, 12)
    pulses = infocap.product_basis("hermite", 2, 6)
    five_levels = infocap.basis.table([0.0, 1.0, 2.0, 3.0, 4.0])
    levels = infocap.product_basis(five_levels, 3, 5)
    six_forces = infocap.product_basis("legendre", 6, 3)
    unit = infocap.product_basis("legendre", 1, 1, domain=(0, 1)).families
    units = infocap.product_basis("legendre", 2, 1, domain=(0, 1)).families
    charges = infocap.delayed_basis(unit, max_delay={1: 20, 2: 6})
    inducers = infocap.delayed_basis(units, max_delay={1: 12, 2: 4})
    cells = infocap.delayed_basis("legendre", 3, {1: 7, 2: 3})
    angles = infocap.delayed_basis("fourier", 1, {1: 12, 2: 5})
    rain = infocap.delayed_basis("laguerre", 1, {1: 14, 2: 7})
    bits = infocap.delayed_basis("bernoulli", 1, {1: 12, 2: 9, 3: 8})
    uniform = delayed("legendre")
    of_sequences = SIZES_OF_SEQUENCES
    return {
        "polarimeter": Kind(unit_square, built(memoryless.polarimeter), SIZES),
        "strain bridges": Kind(six_forces, built(memoryless.strain_bridges), SIZES),
        "indicator dyes": Kind(unit_square, built(memoryless.indicator_dyes), SIZES),
        "angle sensors": Kind(angle, built(memoryless.angle_sensors), (200, 1000, 12_000)),
        "Geiger tubes": Kind(legendre(2), built(memoryless.geiger_tubes), SIZES),
        "cultured neurons": Kind(stimuli, built(memoryless.cultured_neurons), SIZES),
        "comb drives": Kind(legendre(3), built(memoryless.comb_drives), SIZES),
        "level displays": Kind(levels, built(memoryless.level_displays), SIZES),
        "spin echoes": Kind(pulses, built(memoryless.spin_echoes), SIZES),
        "loop of speckle": Kind(uniform, built(with_memory.loop_of_speckle), of_sequences),
        "battery cells": Kind(uniform, built(with_memory.battery_cells), of_sequences),
        "gene cascade": Kind(inducers, built(with_memory.gene_cascade), of_sequences),
        "gate array": Kind(bits, built(with_memory.gate_array), of_sequences),
        "bucket brigade": Kind(charges, built(with_memory.bucket_brigade), of_sequences),
        "rain tanks": Kind(rain, built(with_memory.rain_tanks), of_sequences),
        "coupled rotors": Kind(angles, built(with_memory.coupled_rotors), of_sequences),
        "phase-change cells": Kind(cells, built(with_memory.phase_change_cells), of_sequences),
    }


def kinds_without_memory() -> dict[str, Kind]:
    """Return further statistics, responses, laws of inputs and sizes."""
    three_levels = infocap.basis.table([-1.0, 0.0, 1.0], weights=[1, 2, 1])
    switches = infocap.product_basis("bernoulli", 9, 3)
    arcsine = infocap.product_basis("chebyshev", 2, 4)
    triangle = infocap.basis.density(lambda u: 1 - abs(u), (-1, 1), breakpoints=[0])
    bell = infocap.product_basis(infocap.basis.jacobi(3, 3), 3, 4)
    twelve_inputs = infocap.product_basis("legendre", 12, 2)
    ends_of_range = (*FEW_STEPS, *REACHES_AN_END)
    return {
        "ternary": Kind(legendre(3), sine_units(ternary), SIZES, ends_of_range),
        "prescaled counts": Kind(legendre(3), sine_units(prescaled_counts), SIZES, FEW_STEPS),
        "rare bursts": Kind(legendre(3), sine_units(rare_bursts), SIZES),
        "coincidences": Kind(legendre(3), sine_units(coincidences), (3000, 20_000)),
        "stable noise": Kind(legendre(3), sine_units(stable_noise), SIZES),
        "skewed noise of large signals": Kind(legendre(3), sine_units(skewed_where_large), SIZES),
        "stopwatch": Kind(legendre(3), sine_units(stopwatch), SIZES, REACHES_AN_END),
        "steps that grow": Kind(legendre(3), sine_units(small_floats), SIZES, FEW_STEPS),
        "single precision on a pedestal": Kind(
            legendre(3), sine_units(single_precision_on_a_pedestal), SIZES
        ),
        "eight detectors each": Kind(legendre(3), sine_units(eight_detectors_each), SIZES),
        "mean of the channels subtracted": Kind(
            legendre(3), sine_units(mean_subtracted), SIZES, SUMS_TO_A_CONSTANT
        ),
        "noise alone": Kind(legendre(3), sine_units(noise_alone), SIZES, ANSWERS_TO_NOTHING),
        "degrees": Kind(legendre(3), sine_units(degrees), SIZES, FEW_STEPS),
        "deaf to one input": Kind(legendre(3), deaf_to_one, SIZES, DEAF_TO_AN_INPUT),
        "fine fringes": Kind(legendre(2), fine_fringes, SIZES),
        "strongest of twelve": Kind(legendre(3), choice_of_the_largest, SIZES),
        "transients, K = 300": Kind(legendre(2), decaying_transients(300), (1500, 6000)),
        "N = 50 000, K = 2": Kind(legendre(1), features(1, 2, 0.05, gain=3.0), (50_000,)),
        "N = 200, K = 3": Kind(legendre(2), features(2, 3, 0.02), (200, 260)),
        "comparators, 4 inputs": Kind(legendre(4), comparators(4, 18, 0.02), SIZES),
        "three levels": Kind(
            infocap.product_basis(three_levels, 4, 4), features(4, 20, 0.03), SIZES
        ),
        "9 switches, counts": Kind(
            switches, changed(features(9, 24), prescaled_counts), SIZES, FEW_STEPS
        ),
        "arcsine inputs": Kind(arcsine, features(2, 16, 0.01, gain=2.0), SIZES),
        "triangular inputs": Kind(
            infocap.product_basis(triangle, 2, 4), features(2, 20, 0.02, activation="relu"), SIZES
        ),
        "bell-shaped inputs": Kind(bell, features(3, 24, 0.02, gain=2.0), SIZES),
        "12 inputs": Kind(twelve_inputs, features(12, 30, 0.05), (1000, 5000)),
    }


def kinds_with_memory() -> dict[str, Kind]:
    """Return further devices with memory."""
    uniform = delayed("legendre")
    two_inputs = delayed("legendre", 2)
    three_levels = infocap.basis.table([-1.0, 0.0, 1.0])
    levels = infocap.delayed_basis(three_levels, 1, {1: 15, 2: 5})
    slow_latches = changed(echo_state(16, 0.0, leak=0.2), latched)
    of_sequences = SIZES_OF_SEQUENCES
    return {
        "latency of three rows": Kind(uniform, three_rows_of_latency, of_sequences),
        "sharp resonances": Kind(uniform, sharp_resonances, of_sequences, LONGER_MEMORY),
        "very slow cells": Kind(uniform, very_slow_cells, of_sequences, LONGER_MEMORY),
        "detectors of changes": Kind(uniform, difference_detectors, of_sequences),
        "one of two inputs is remembered": Kind(two_inputs, one_input_is_remembered, of_sequences),
        "latches": Kind(uniform, slow_latches, of_sequences, FEW_STEPS),
        "echo state network of three levels": Kind(levels, echo_state(24, 0.02), of_sequences),
        "echo state network, stable noise": Kind(
            uniform, changed(echo_state(24, 0.0), stable_noise), of_sequences
        ),
        "echo state network, N = 50 000": Kind(uniform, echo_state(12, 0.05), (50_000,)),
    }


@cache
def fourth_kinds() -> dict[str, Kind]:
    """Return the kinds of this module by their names, which tell them from those of other parts."""
    kinds = {
        **devices_of_the_benchmark_of_mistakes(),
        **kinds_without_memory(),
        **kinds_with_memory(),
    }
    return kinds
