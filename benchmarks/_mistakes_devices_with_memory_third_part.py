"""A third part of devices, unseen while checks of the data are developed: devices with memory.

They were written by somebody who has not read the checks, nor what they find. They are put into the table DEVICES
when this module is imported.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.signal import lfilter

import infocap
from _mistakes_devices import (
    DEVICES,
    THIRD,
    Array,
    Device,
    Generator,
    Parameters,
    Response,
    delayed,
    white,
)

# Measurements of the quantum register per row.
N_SHOTS = 1500
# Rows after which waves have left the tank.
TANK_ROWS = 14


def volatile_memristors(parameters: Parameters) -> Response:
    """Return the conductances in microsiemens of 24 memristors that switch on quickly and relax."""
    threshold = parameters.uniform(-0.4, 0.5, 24)
    steepness = parameters.uniform(2, 6, 24)
    kept = parameters.uniform(0.4, 0.85, 24)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 24))
        state = np.full(24, 0.3)
        for step, value in enumerate(u[:, 0]):
            switching = 1 / (1 + np.exp(-steepness * (value - threshold)))
            state = kept * state + 0.6 * switching * (1 - kept * state)
            states[step] = state
        cycle = 1 + 3e-3 * generator.standard_normal(states.shape)
        return white(generator, 80 * states * cycle, 0.1)

    return response


def warm_microring(parameters: Parameters) -> Response:
    """Return the power at 14 wavelengths behind a ring that absorbed light warms and carriers cool."""
    detuning = np.linspace(-2, 2, 14) + parameters.uniform(-0.1, 0.1, 14)
    absorbed = parameters.uniform(0.8, 1.4, 14)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 14))
        heat = np.zeros(14)
        carriers = np.zeros(14)
        for step, value in enumerate(u[:, 0]):
            power = 1 + 0.8 * value
            energy = power / (1 + (detuning - 0.9 * heat + 0.7 * carriers) ** 2)
            heat = 0.85 * heat + 0.15 * absorbed * energy
            carriers = 0.5 * carriers + 0.5 * energy**2
            states[step] = power - 0.9 * energy
        return white(generator, states, 4e-3)

    return response


def water_tank(parameters: Parameters) -> Response:
    """Return the squared heights of the waves at 26 probes; waves of each length have a speed of their own."""
    rows = np.arange(TANK_ROWS)
    distance = parameters.uniform(0.5, 3, 26)
    wavenumber = np.linspace(0.4, 2.5, 30)
    phase = (
        wavenumber[:, None, None] * distance - np.sqrt(wavenumber)[:, None, None] * rows[:, None]
    )
    impulse = np.cos(1.5 * phase).mean(axis=0) * np.exp(-rows / 5)[:, None]
    level = parameters.uniform(0.1, 0.5, 26)

    def response(u: Array, generator: Generator) -> Array:
        columns = [lfilter(kernel, [1], u[:, 0]) for kernel in impulse.T]
        return white(generator, (level + np.column_stack(columns)) ** 2, 0.01)

    return response


def spiking_neurons(parameters: Parameters) -> Response:
    """Return how often each of 30 leaky neurons fires in 40 time steps per row."""
    gain = parameters.uniform(0.5, 1.2, 30)
    current = parameters.uniform(1.0, 1.8, 30)
    adaptation = parameters.uniform(0.02, 0.08, 30)

    def response(u: Array, generator: Generator) -> Array:
        counts = np.zeros((len(u), 30))
        voltage = np.zeros(30)
        tiredness = np.zeros(30)
        for step, value in enumerate(u[:, 0]):
            drive = current + gain * value
            for noise in 0.25 * generator.standard_normal((40, 30)):
                voltage += 0.12 * (drive - voltage - tiredness) + 0.12 * noise
                fires = voltage > 0.7
                voltage[fires] = 0.0
                tiredness = 0.985 * tiredness + adaptation * fires
                counts[step] += fires
        return counts

    return response


def stiffening_beams(parameters: Parameters) -> Response:
    """Return the bending in micrometre of 18 coupled beams that stiffen; two inputs drive them."""
    angle = parameters.uniform(0.5, 1.6, 18)
    drive = 0.5 * parameters.normal(2, 18)
    coupling = 0.06 * parameters.normal(18, 18)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 18))
        position = np.zeros(18)
        velocity = np.zeros(18)
        for step, force in enumerate(u @ drive):
            for _ in range(4):
                pull = position + position**3
                velocity = 0.86 * velocity + 0.3 * angle * (force - angle * pull)
                velocity += 0.3 * np.tanh(position @ coupling)
                position = position + 0.3 * velocity
            states[step] = position
        return white(generator, 100 * states, 0.8)

    return response


def rope_drives(parameters: Parameters) -> Response:
    """Return the forces on nine ropes with friction, each a sum of elements that stick and slip."""
    half_width = np.linspace(0.05, 0.6, 6)[:, None] * np.ones(9)
    stiffness = parameters.uniform(0.2, 1, 6, 9)
    relaxation = parameters.uniform(0.75, 0.9, 9)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 9))
        stretch = np.zeros((6, 9))
        previous = 0.0
        for step, value in enumerate(u[:, 0]):
            stretch = relaxation * stretch + (value - previous)
            stretch = np.clip(stretch, -half_width, half_width)
            previous = value
            states[step] = (stiffness * stretch).sum(axis=0) + 0.4 * value**2
        return white(generator, 10 * states, 0.05)

    return response


def quantum_register(parameters: Parameters) -> Response:
    """Return frequencies of Z and ZZ of three spins, the first of which each input sets anew."""
    pauli_x = np.array([[0, 1], [1, 0]])
    pauli_z = np.diag([1, -1])
    one = np.eye(2)

    def on_spins(*factors: Array) -> Array:
        return np.kron(np.kron(factors[0], factors[1]), factors[2])

    x = [on_spins(pauli_x, one, one), on_spins(one, pauli_x, one), on_spins(one, one, pauli_x)]
    z = [on_spins(pauli_z, one, one), on_spins(one, pauli_z, one), on_spins(one, one, pauli_z)]
    strength = parameters.uniform(0.4, 1.2, 6)
    energy = strength[0] * x[0] @ x[1] + strength[1] * x[1] @ x[2] + strength[2] * x[0] @ x[2]
    energy = energy + strength[3] * z[0] + strength[4] * z[1] + strength[5] * z[2]
    # Every row is measured at three moments; the last state goes on.
    evolution = [expm(-1j * energy * moment) for moment in (0.6, 1.2, 1.9)]
    observed = [*z, z[0] @ z[1], z[1] @ z[2], z[0] @ z[2]]
    signs = np.column_stack([np.diag(operator) for operator in observed])

    def response(u: Array, generator: Generator) -> Array:
        expected = np.empty((len(u), 18))
        state = np.eye(8) / 8
        for step, value in enumerate(np.clip(u[:, 0], 0, 1)):
            rest = np.trace(state.reshape(2, 4, 2, 4), axis1=0, axis2=2)
            amplitude = np.array([np.sqrt(1 - value), np.sqrt(value)])
            prepared = np.kron(np.outer(amplitude, amplitude), rest)
            for number, unitary in enumerate(evolution):
                state = unitary @ prepared @ unitary.conj().T
                probability = np.real(np.diag(state))
                expected[step, 6 * number : 6 * number + 6] = probability @ signs
        heads = generator.binomial(N_SHOTS, np.clip((1 + expected) / 2, 0, 1))
        return heads / N_SHOTS

    return response


def flow_reactor(parameters: Parameters) -> Response:
    """Return the concentrations of six substances in a stirred reactor; a valve is open or closed."""
    binding = parameters.uniform(0.5, 2, 6)
    washed_out = parameters.uniform(0.2, 0.5, 6)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 6))
        state = np.full(6, 0.5)
        for step, value in enumerate(u[:, 0]):
            for _ in range(3):
                promoted = np.roll(state, 1) / (1 + np.roll(state, 1))
                inhibited = 1 / (1 + binding * np.roll(state, 2) ** 2)
                fed = 0.6 * value * np.array([1, 0, 0.5, 0, 0, 0.3])
                state = state + washed_out * (promoted * inhibited + fed - 0.6 * state)
            states[step] = state
        return states * (1 + 2e-3 * generator.standard_normal(states.shape))

    return response


def echoing_room(parameters: Parameters) -> Response:
    """Return the voltages of 16 microphones in a room with echoes of a loudspeaker that distorts."""
    echoes = parameters.normal(12, 16) * np.exp(-np.arange(12) / 4)[:, None]
    drive = parameters.uniform(0.4, 0.6, 1)

    def response(u: Array, generator: Generator) -> Array:
        sound = np.sin(drive * u[:, 0]) + 0.15 * u[:, 0] ** 2
        columns = [lfilter(echo, [1], sound) for echo in echoes.T]
        pressure = np.column_stack(columns)
        return white(generator, pressure / (1 + 0.1 * np.abs(pressure)), 0.03)

    return response


def heated_rod(parameters: Parameters) -> Response:
    """Return five temperatures along a rod that is heated at one end and radiates."""
    conduction = parameters.uniform(0.25, 0.32, 6)

    def response(u: Array, generator: Generator) -> Array:
        states = np.empty((len(u), 5))
        rod = np.full(6, 0.3)
        for step, value in enumerate(u[:, 0]):
            for _ in range(3):
                flow = conduction[:5] * (rod[:-1] - rod[1:])
                rod = rod - 0.08 * rod - 0.15 * rod**4
                rod[:-1] -= flow
                rod[1:] += flow
                rod[0] += 0.5 * max(value, 0.0) ** 2
            states[step] = rod[:5]
        return white(generator, 20 + 60 * states, 0.05)

    return response


def third_part() -> tuple[Device, ...]:
    """Return the devices of this module."""
    bits = infocap.delayed_basis("bernoulli", 1, {1: 12, 2: 7, 3: 5})
    normal_delays = infocap.delayed_basis("hermite", 1, {1: 16, 2: 9})
    unit_delays = delayed(1, domain=(0, 1))
    return (
        Device("volatile memristors", delayed(1), volatile_memristors, 6000, 191, part=THIRD),
        Device("warm microring", delayed(1), warm_microring, 4000, 192, part=THIRD),
        Device("water tank", delayed(1), water_tank, 10_000, 193, part=THIRD),
        Device("spiking neurons", delayed(1), spiking_neurons, 3000, 194, part=THIRD),
        Device("stiffening beams", delayed(2), stiffening_beams, 4000, 195, part=THIRD),
        Device("rope drives", delayed(1), rope_drives, 2000, 196, part=THIRD),
        Device("quantum register", unit_delays, quantum_register, 2000, 197, part=THIRD),
        Device("flow reactor", bits, flow_reactor, 1500, 198, part=THIRD),
        Device("echoing room", normal_delays, echoing_room, 15_000, 199, part=THIRD),
        Device("heated rod", unit_delays, heated_rod, 700, 200, part=THIRD),
    )


DEVICES.update({device.name: device for device in third_part()})
