"""Further devices of the benchmark of mistakes, which stay unseen while checks of the data are developed.

They were written by somebody who has not read the checks. Six forget each input at once, four have memory. They are
put into the table DEVICES when this module is imported.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

import infocap
from _mistakes_devices import (
    DEVICES,
    HELD_OUT,
    Array,
    Device,
    Generator,
    Parameters,
    Response,
    delayed,
    legendre,
    white,
    with_radius,
)

# Rows per period of the mechanical resonances of a plate, which decide how long it rings.
SHORTEST_RINGING, LONGEST_RINGING = 3.0, 12.0


# Devices that forget every input at once.


def tuned_etalons(parameters: Parameters) -> Response:
    """Return the light behind etalons of finesse 4 to 10; the common power of the laser fluctuates."""
    phase_per_input = parameters.uniform(-2.4, 2.4, 2, 18)
    phase = parameters.uniform(0, 2 * np.pi, 18)
    finesse = parameters.uniform(4, 10, 18)

    def response(u: Array, generator: Generator) -> Array:
        detuning = 2 * finesse / np.pi * np.sin((u @ phase_per_input + phase) / 2)
        power = 1 + 2e-3 * generator.standard_normal((len(u), 1))
        return white(generator, 5 * power / (1 + detuning**2), 0.02)

    return response


def spectrometer(parameters: Parameters) -> Response:
    """Return the counts in 150 pixels of a spectrometer that sees two emission lines.

    Inputs are pressure and current, which shift, broaden and brighten the lines.
    """
    pixels = np.linspace(-3, 3, 150)
    shift = 0.7 * parameters.normal(2, 2)
    broadening = parameters.uniform(0.1, 0.3, 2)
    brightness = parameters.uniform(300, 900, 2)

    def response(u: Array, generator: Generator) -> Array:
        mean = np.full((len(u), 150), 20.0)
        for line in range(2):
            centre = (line - 0.5) + u @ shift[line]
            width = 0.4 + broadening[line] * (1 + u[:, 0])
            height = brightness[line] * np.exp(0.8 * u[:, 1])
            distance = (pixels - centre[:, None]) / width[:, None]
            mean = mean + height[:, None] * np.exp(-(distance**2))
        return generator.poisson(mean).astype(float)

    return response


def three_photodiodes(parameters: Parameters) -> Response:
    """Return the voltages of three photodiodes behind saturating logarithmic amplifiers."""
    strength = parameters.uniform(0.2, 0.8, 2, 3)
    angle = parameters.uniform(0.1, 0.4, 3)

    def response(u: Array, generator: Generator) -> Array:
        power = np.maximum(u, 0)
        amplitude = np.sqrt(power) @ strength
        interference = np.sin(np.outer(u.sum(axis=1), angle))
        light = 0.05 + (amplitude * interference) ** 2
        voltage = np.log1p(3 * light)
        return white(generator, 4 * voltage / (1 + voltage), 5e-3)

    return response


def relays(parameters: Parameters) -> Response:
    """Return the currents through 20 wires that 60 relays switch on and off."""
    weights = parameters.normal(3, 60)
    thresholds = parameters.uniform(-1.6, 1.6, 60)
    wiring = parameters.uniform(0, 1, 60, 20)

    def response(u: Array, generator: Generator) -> Array:
        closed = (u @ weights > thresholds).astype(float)
        return white(generator, 1e-3 * closed @ wiring, 2e-4)

    return response


def plasma_probes(parameters: Parameters) -> Response:
    """Return the currents of 24 probes in a discharge, whose noise has heavy tails."""
    weights = 0.5 * parameters.normal(3, 24)
    saturation = parameters.uniform(0.5, 2, 24)

    def response(u: Array, generator: Generator) -> Array:
        current = saturation * (np.exp(u @ weights) - 1) / (1 + 0.3 * np.exp(u @ weights))
        tails = generator.standard_t(3, current.shape)
        return current + 0.03 * (1 + np.abs(current)) * tails

    return response


def switched_gates(parameters: Parameters) -> Response:
    """Return the delays in nanoseconds of 16 chains of gates that seven switches select."""
    singles = parameters.uniform(-1, 1, 7, 16)
    pairs = 0.5 * parameters.normal(21, 16)
    first, second = np.triu_indices(7, 1)

    def response(u: Array, generator: Generator) -> Array:
        sign = 2 * u - 1
        delay = 40 + 3 * np.tanh(sign @ singles + sign[:, first] * sign[:, second] @ pairs)
        return white(generator, delay, 0.3)

    return response


# Devices with memory.


def magnetic_oscillator(parameters: Parameters) -> Response:
    """Return 18 samples, taken between two inputs, of the power of an oscillator that a current drives.

    The power relaxes towards a value that depends on the current, at a rate that depends on the power.
    """
    current = parameters.uniform(0.5, 1.5, 18)
    damping = parameters.uniform(0.9, 1.3, 18)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 18))
        power = 0.3
        for step, value in enumerate(u[:, 0]):
            for sample in range(18):
                drive = 1.2 + 0.5 * value * current[sample]
                growth = drive * (1 - power) - damping[sample] * (1 + 0.5 * power)
                power = max(power + 0.12 * power * growth + 0.004, 1e-4)
                states[step, sample] = power
        return white(generator, 1e3 * np.sqrt(states), 1.5)

    return response


def counted_loop(parameters: Parameters) -> Response:
    """Return the photons counted in 40 time bins of a loop of fibre with a saturable absorber."""
    coupling = with_radius(np.abs(parameters.normal(40, 40)), 0.6)
    mask = parameters.uniform(0, 1, 40)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 40))
        light = np.zeros(40)
        for step, value in enumerate(np.maximum(u[:, 0], 0)):
            entering = light @ coupling + mask * value
            light = entering * (0.3 + 0.7 * entering / (1 + entering))
            states[step] = light
        return generator.poisson(20 + 1500 * states).astype(float)

    return response


def synaptic_transistors(parameters: Parameters) -> Response:
    """Return the currents of three transistors, whose traps forget slowly and whose noise has heavy tails."""
    remembered = np.array([0.35, 0.7, 0.88]) + parameters.uniform(-0.03, 0.03, 3)
    curvature = parameters.uniform(1, 2, 3)

    def response(u: Array, generator: Generator) -> Array:
        columns = []
        for share, bend in zip(remembered, curvature, strict=True):
            charge = lfilter([1 - share], [1, -share], np.exp(bend * u[:, 0]))
            columns.append(charge / (1 + 0.3 * charge))
        current = np.column_stack(columns)
        return current + 4e-3 * generator.standard_t(4, current.shape)

    return response


def ringing_plate(parameters: Parameters) -> Response:
    """Return the light that 25 spots of a ringing plate reflect; a normal force drives it."""
    period = np.geomspace(SHORTEST_RINGING, LONGEST_RINGING, 6) + parameters.uniform(-0.3, 0.3, 6)
    shapes = parameters.normal(6, 25)
    angle = parameters.uniform(-1, 1, 25)

    def response(u: Array, generator: Generator) -> Array:
        modes = []
        for rows in period:
            pole = np.exp((2j * np.pi - 1.5) / rows)
            modes.append(lfilter([1], [1, -2 * pole.real, abs(pole) ** 2], u[:, 0]) / rows)
        bending = np.column_stack(modes) @ shapes
        return white(generator, 1 + np.sin(0.8 * bending + angle), 0.01)

    return response


def second_part() -> tuple[Device, ...]:
    """Return the devices of this module."""
    switches = infocap.product_basis("bernoulli", 7, 4)
    normal_delays = infocap.delayed_basis("hermite", 1, {1: 14, 2: 8})
    return (
        Device("tuned etalons", legendre(2, 12), tuned_etalons, 3500, 71, part=HELD_OUT),
        Device("spectrometer", legendre(2, 9), spectrometer, 6000, 72, part=HELD_OUT),
        Device(
            "three photodiodes",
            legendre(2, 6, domain=(0, 10)),
            three_photodiodes,
            1200,
            73,
            part=HELD_OUT,
        ),
        Device("relays", legendre(3, 5), relays, 5000, 74, part=HELD_OUT),
        Device("plasma probes", legendre(3, 5), plasma_probes, 4000, 75, part=HELD_OUT),
        Device("switched gates", switches, switched_gates, 3000, 76, part=HELD_OUT),
        Device("magnetic oscillator", delayed(1), magnetic_oscillator, 3000, 91, part=HELD_OUT),
        Device("counted loop", delayed(1, domain=(0, 1)), counted_loop, 4500, 92, part=HELD_OUT),
        Device("synaptic transistors", delayed(1), synaptic_transistors, 2000, 93, part=HELD_OUT),
        Device("ringing plate", normal_delays, ringing_plate, 6000, 94, part=HELD_OUT),
    )


DEVICES.update({device.name: device for device in second_part()})
