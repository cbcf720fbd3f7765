"""A fourth part of devices, unseen while checks of the data are developed: devices with memory.

They were written by somebody who has not read the checks, nor what they find. They are put into the table DEVICES
when this module is imported.
"""

from __future__ import annotations

import numpy as np

import infocap
from _mistakes_devices import (
    DEVICES,
    FOURTH,
    Array,
    Device,
    Generator,
    Parameters,
    Response,
    delayed,
    white,
)

# Flip-flops of the register that feeds the gates.
REGISTER_LENGTH = 9
# Volts of a logic one.
HIGH_LEVEL = 3.3


def loop_of_speckle(parameters: Parameters) -> Response:
    """Return 40 pixels behind a scattering loop of fibre in which coherent light goes round."""
    real = parameters.normal(40, 40)
    scattering, _ = np.linalg.qr(real + 1j * parameters.normal(40, 40))
    mask = parameters.uniform(0, 1, 40) * np.exp(1j * parameters.uniform(0, 2 * np.pi, 40))

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 40))
        field = np.zeros(40, dtype=complex)
        for step, value in enumerate(u[:, 0]):
            field = 0.72 * field @ scattering + mask * np.exp(1j * 1.2 * value)
            field = field / np.sqrt(1 + 0.1 * np.abs(field) ** 2)
            states[step] = np.abs(field) ** 2
        electrons = 400 * states
        noisy = electrons + np.sqrt(electrons + 16) * generator.standard_normal(electrons.shape)
        return np.round(noisy / 4 + 10)

    return response


def battery_cells(parameters: Parameters) -> Response:
    """Return the voltages in millivolt of five cells that a current charges and discharges."""
    resistance = parameters.uniform(0.05, 0.12, 5)
    fast = parameters.uniform(0.3, 0.6, 5)
    slow = parameters.uniform(0.75, 0.9, 5)
    bend = parameters.uniform(1, 2.5, 5)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 5))
        double_layer = np.zeros(5)
        charge = np.zeros(5)
        for step, current in enumerate(u[:, 0]):
            double_layer = fast * double_layer + (1 - fast) * np.arcsinh(2 * current)
            charge = slow * charge + (1 - slow) * current * (1 - 0.3 * charge)
            open_circuit = 3.7 + 0.2 * np.tanh(bend * charge + 0.3) + 0.1 * charge**2
            states[step] = open_circuit + resistance * current + 0.06 * double_layer
        return np.round(white(generator, 1000 * states, 1.5))

    return response


def gene_cascade(parameters: Parameters) -> Response:
    """Return the fluorescence of eight proteins that two inducers switch on, one gene after the other."""
    affinity = parameters.uniform(0.2, 0.6, 8)
    decay = parameters.uniform(0.25, 0.6, 8)
    weights = parameters.uniform(0.2, 1, 2, 8)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 8))
        message = np.zeros(8)
        protein = np.full(8, 0.3)
        for step, inducers in enumerate(np.maximum(u, 0)):
            activator = 0.5 * np.roll(protein, 1) + 0.5 * inducers @ weights
            activation = activator**2 / (affinity**2 + activator**2)
            message = 0.5 * message + 0.5 * activation / (1 + np.roll(protein, 3))
            protein = (1 - decay) * protein + decay * message
            states[step] = protein
        return (20 + 500 * states) * (1 + 0.01 * generator.standard_normal(states.shape))

    return response


def gate_array(parameters: Parameters) -> Response:
    """Return the voltages of 16 look-up tables of three taps of a register of bits; 1 % of them flip."""
    taps = np.argsort(parameters.normal(REGISTER_LENGTH, 16), axis=0)[:3]
    tables = parameters.normal(8, 16) > 0

    def response(u: Array, generator: Generator) -> Array:
        bit = (u[:, 0] > 0.5).astype(int)
        register = np.column_stack([np.roll(bit, delay) for delay in range(REGISTER_LENGTH)])
        address = register[:, taps[0]] + 2 * register[:, taps[1]] + 4 * register[:, taps[2]]
        answer = np.take_along_axis(tables, address, axis=0)
        flipped = generator.random(answer.shape) < 0.01
        return white(generator, HIGH_LEVEL * (answer ^ flipped), 0.15)

    return response


def bucket_brigade(parameters: Parameters) -> Response:
    """Return the electrons in ten buckets, which pass their charge on, but not all, and overflow."""
    passed = parameters.uniform(0.7, 0.95, 10)
    full = parameters.uniform(0.6, 1.0, 10)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 10))
        charge = np.zeros(10)
        for step, value in enumerate(np.maximum(u[:, 0], 0)):
            moving = passed * charge
            arriving = np.concatenate([[value], moving[:-1]])
            charge = charge - moving + arriving
            charge = full * np.tanh(charge / full)
            states[step] = charge
        return generator.poisson(3000 * states + 5).astype(float)

    return response


def rain_tanks(parameters: Parameters) -> Response:
    """Return the levels in centimetre of seven tanks below each other; the input is the rain of a day."""
    outlet = parameters.uniform(0.25, 0.6, 7)
    area = parameters.uniform(0.5, 1, 7)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 7))
        level = np.ones(7)
        for step, rain in enumerate(np.maximum(u[:, 0], 0)):
            draining = np.minimum(outlet * level**1.3, 0.9 * level)
            falling = 0.5 * np.concatenate([[0.0], draining[:-1]])
            level = level - draining + falling + 0.5 * area * rain
            states[step] = np.sqrt(level)
        return 30 * states * (1 + 5e-3 * generator.standard_normal(states.shape))

    return response


def coupled_rotors(parameters: Parameters) -> Response:
    """Return cosines and sines of twelve rotors in oil that follow a turning field and each other."""
    lag = parameters.uniform(0, 2 * np.pi, 12)
    following = parameters.uniform(0.4, 0.9, 12)
    coupling = parameters.uniform(0.1, 0.4, 12)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 24))
        angle = np.zeros(12)
        for step, field in enumerate(u[:, 0]):
            pull = following * np.sin(field + lag - angle)
            pull += coupling * np.sin(np.roll(angle, 1) - angle) - 0.4 * np.sin(angle - lag)
            angle = angle + pull
            states[step] = np.concatenate([np.cos(angle), np.sin(angle)])
        return white(generator, states, 0.02)

    return response


def phase_change_cells(parameters: Parameters) -> Response:
    """Return the resistances, as logarithms, of 28 cells that three pulses crystallise or melt."""
    wiring = 0.9 * parameters.normal(3, 28)
    warmth = parameters.uniform(-0.5, 0.5, 28)
    kept = parameters.uniform(0.5, 0.85, 28)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 28))
        crystalline = np.full(28, 0.4)
        for step, heat in enumerate(u @ wiring + warmth):
            growth = 0.5 * np.exp(-(heat**2))
            melting = 0.7 / (1 + np.exp(-5 * (heat - 0.9)))
            crystalline = kept * crystalline + (1 - kept) * 0.4
            crystalline = crystalline + growth * (1 - crystalline) - melting * crystalline
            states[step] = 6 - 2.5 * crystalline
        return white(generator, states, 0.02)

    return response


def fourth_part() -> tuple[Device, ...]:
    """Return the devices of this module."""
    bits = infocap.delayed_basis("bernoulli", 1, {1: 12, 2: 9, 3: 8})
    rain = infocap.delayed_basis("laguerre", 1, {1: 14, 2: 7})
    angles = infocap.delayed_basis("fourier", 1, {1: 10, 2: 5})
    currents = delayed(1)
    charges = delayed(1, domain=(0, 1))
    inducers = delayed(2, domain=(0, 1))
    pulses = infocap.delayed_basis("legendre", 3, {1: 7, 2: 3})
    return (
        Device("loop of speckle", delayed(1), loop_of_speckle, 5000, 291, part=FOURTH),
        Device("battery cells", currents, battery_cells, 3000, 292, part=FOURTH),
        Device("gene cascade", inducers, gene_cascade, 4000, 293, part=FOURTH),
        Device("gate array", bits, gate_array, 2000, 294, part=FOURTH),
        Device("bucket brigade", charges, bucket_brigade, 2500, 295, part=FOURTH),
        Device("rain tanks", rain, rain_tanks, 4000, 296, part=FOURTH),
        Device("coupled rotors", angles, coupled_rotors, 6000, 297, part=FOURTH),
        Device("phase-change cells", pulses, phase_change_cells, 3500, 298, part=FOURTH),
    )


DEVICES.update({device.name: device for device in fourth_part()})
