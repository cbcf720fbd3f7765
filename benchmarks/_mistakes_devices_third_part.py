"""A third part of devices, unseen while checks of the data are developed: devices that forget every input at once.

They were written by somebody who has not read the checks, nor what they find. Those with memory stand in
`_mistakes_devices_with_memory_third_part`. They are put into the table DEVICES when this module is imported.
"""

from __future__ import annotations

import numpy as np

import infocap
from _mistakes_devices import (
    DEVICES,
    THIRD,
    Array,
    Device,
    Generator,
    Parameters,
    Response,
    legendre,
    white,
)


def gas_sensors(parameters: Parameters) -> Response:
    """Return the resistances in kiloohm of ten metal oxides in a mixture of two gases."""
    resistance = np.exp(parameters.normal(10))
    sensitivity = np.exp(1 + 0.8 * parameters.normal(2, 10))
    exponent = parameters.uniform(0.3, 0.9, 10)

    def response(u: Array, generator: Generator) -> Array:
        mean = 20 * resistance * (1 + np.maximum(u, 0) @ sensitivity) ** -exponent
        return mean * (1 + 5e-3 * generator.standard_normal(mean.shape))

    return response


def scattering_cavity(parameters: Parameters) -> Response:
    """Return the powers at 30 antennas of a chaotic cavity with three phase shifters, some passes of which count."""
    incoming = parameters.normal(9) + 1j * parameters.normal(9)
    passing = 0.11 * (parameters.normal(9, 9) + 1j * parameters.normal(9, 9))
    outgoing = parameters.normal(9, 30) + 1j * parameters.normal(9, 30)

    def response(u: Array, generator: Generator) -> Array:
        shifters = np.exp(1j * np.repeat(u, 3, axis=1))
        wave = incoming * shifters
        total = wave
        for _ in range(4):
            wave = wave @ passing * shifters
            total = total + wave
        return white(generator, np.abs(total @ outgoing) ** 2, 0.3)

    return response


def superconducting_junctions(parameters: Parameters) -> Response:
    """Return the voltages of 28 junctions, which are zero below their critical currents."""
    bias = 0.8 * parameters.normal(3, 28)
    critical = parameters.uniform(0.2, 0.9, 28)

    def response(u: Array, generator: Generator) -> Array:
        current = u @ bias + 0.5
        voltage = np.sign(current) * np.sqrt(np.maximum(current**2 - critical**2, 0))
        return white(generator, 300 * voltage, 4.0)

    return response


def photon_array(parameters: Parameters) -> Response:
    """Return in how many of 256 gates each of 48 detectors clicked, behind interference of two inputs."""
    weights = 1.5 * parameters.normal(2, 48)
    phases = parameters.uniform(0, 2 * np.pi, 48)
    brightness = parameters.uniform(0.3, 1.5, 48)

    def response(u: Array, generator: Generator) -> Array:
        photons = 0.05 + brightness * (1 + np.sin(u @ weights + phases))
        return generator.binomial(256, 1 - np.exp(-photons)).astype(float)

    return response


def pulse_shapers(parameters: Parameters) -> Response:
    """Return the heights in volts of pulses behind 18 shapers; inputs are two waiting times."""
    rate = parameters.uniform(0.3, 1.5, 2, 18)
    gain = parameters.uniform(0.5, 3, 2, 18)

    def response(u: Array, generator: Generator) -> Array:
        decayed = np.exp(-u[:, :, None] * rate)
        height = (gain * decayed).sum(axis=1)
        return white(generator, np.tanh(height - 1.5) + 0.2 * decayed[:, 0] * decayed[:, 1], 0.01)

    return response


def ringing_bells(parameters: Parameters) -> Response:
    """Return the level in decibel in 90 bands of the sound of coupled bells, tuned by three inputs."""
    bands = np.linspace(0, 6, 90)
    centre = np.linspace(0.5, 5.5, 8) + parameters.uniform(-0.2, 0.2, 8)
    tuning = 0.35 * parameters.normal(3, 8)
    amplitude = np.exp(0.5 * parameters.normal(8))

    def response(u: Array, generator: Generator) -> Array:
        frequency = centre + u @ tuning
        detuning = (bands - frequency[:, :, None]) / 0.25
        power = np.einsum("m,nmb->nb", amplitude, 1 / (1 + detuning**2)) + 0.02
        return white(generator, 10 * np.log10(power), 0.4)

    return response


def two_ports(parameters: Parameters) -> Response:
    """Return the currents in milliampere of the two ports of an unbalanced modulator, of one input."""
    turns = parameters.uniform(2.6, 3.2, 1)
    balance = parameters.uniform(0.4, 0.6, 2)

    def response(u: Array, generator: Generator) -> Array:
        fringe = np.cos(turns * u + 0.4)
        light = np.hstack([balance[0] * (1 + 0.95 * fringe), balance[1] * (1 - 0.95 * fringe)])
        absorbed = np.exp(-0.3 * (1 + u))
        current = np.column_stack([light[:, 0], light[:, 1] * absorbed[:, 0]])
        return white(generator, 2 * current, 0.004)

    return response


def third_part() -> tuple[Device, ...]:
    """Return the devices of this module."""
    phases = infocap.product_basis("fourier", 3, 3)
    waiting_times = infocap.product_basis("laguerre", 2, 2)
    concentrations = legendre(2, 6, domain=(0, 1))
    return (
        Device("gas sensors", concentrations, gas_sensors, 600, 171, part=THIRD),
        Device("scattering cavity", phases, scattering_cavity, 12_000, 172, part=THIRD),
        Device("junctions", legendre(3, 6), superconducting_junctions, 20_000, 173, part=THIRD),
        Device("photon array", legendre(2, 8), photon_array, 1000, 174, part=THIRD),
        Device("pulse shapers", waiting_times, pulse_shapers, 5000, 175, part=THIRD),
        Device("ringing bells", legendre(3, 6), ringing_bells, 6000, 176, part=THIRD),
        Device("two ports", legendre(1, 10), two_ports, 1500, 177, part=THIRD),
    )


DEVICES.update({device.name: device for device in third_part()})
