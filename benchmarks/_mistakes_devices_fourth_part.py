"""A fourth part of devices, unseen while checks of the data are developed: devices that forget every input at once.

They were written by somebody who has not read the checks, nor what they find. Those with memory stand in
`_mistakes_devices_with_memory_fourth_part`. They are put into the table DEVICES when this module is imported.
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
    legendre,
    white,
)


def turned(stokes: Array, angle: float, retardance: Array) -> Array:
    """Return Stokes vectors behind a retarder: turned about an axis in the plane of S1 and S2."""
    axis = np.array([np.cos(2 * angle), np.sin(2 * angle), 0.0])
    cosine = np.cos(retardance)[:, None]
    along = (stokes @ axis)[:, None] * axis
    return (
        cosine * stokes
        + np.sin(retardance)[:, None] * np.cross(axis, stokes)
        + (1 - cosine) * along
    )


def polarimeter(parameters: Parameters) -> Response:
    """Return three Stokes parameters at five wavelengths behind two liquid crystals with a threshold."""
    turns = parameters.uniform(3, 5, 2) * np.ones((5, 2)) * np.linspace(1.2, 0.8, 5)[:, None]
    angles = parameters.uniform(0.2, 1.2, 2)
    threshold = parameters.uniform(0.15, 0.3, 2)

    def response(u: Array, generator: Generator) -> Array:
        bent = np.logaddexp(0, 12 * (u - threshold)) / 12
        columns = []
        for colour in range(5):
            stokes = np.tile([1.0, 0.0, 0.0], (len(u), 1))
            for crystal in range(2):
                retardance = turns[colour, crystal] * np.exp(-1.5 * bent[:, crystal])
                stokes = turned(stokes, angles[crystal], retardance)
            columns.append(stokes)
        return white(generator, np.hstack(columns), 0.01)

    return response


def strain_bridges(parameters: Parameters) -> Response:
    """Return the voltages in millivolt of twelve bridges of four gauges on a plate that six forces bend."""
    gauge = 0.18 * parameters.normal(6, 4, 12)

    def response(u: Array, generator: Generator) -> Array:
        resistance = 1 + 0.5 * np.tanh(np.einsum("nq,qgk->ngk", u, gauge))
        left = resistance[:, 0] / (resistance[:, 0] + resistance[:, 1])
        right = resistance[:, 3] / (resistance[:, 2] + resistance[:, 3])
        return white(generator, 1000 * (left - right), 4.0)

    return response


def indicator_dyes(parameters: Parameters) -> Response:
    """Return the absorbances of nine dyes in a titration of two acids and bases."""
    strength = np.linspace(4, 10, 9) + parameters.uniform(-0.4, 0.4, 9)
    absorption = parameters.uniform(0.3, 1.5, 9)
    background = parameters.uniform(0.02, 0.1, 9)
    excess = parameters.uniform(-0.1, 0.1, 1)

    def response(u: Array, generator: Generator) -> Array:
        charge = (u[:, 1] ** 2 + 0.4 * u[:, 1] - u[:, 0] + excess) / 0.12
        acidity = 7 + 1.3 * np.arcsinh(charge)
        bound = 1 / (1 + 10 ** (strength - acidity[:, None]))
        absorbance = background + absorption * bound
        return white(
            generator, absorbance * (1 + 5e-3 * generator.standard_normal(bound.shape)), 2e-3
        )

    return response


def angle_sensors(parameters: Parameters) -> Response:
    """Return the voltages of six magnetic sensors around a turning magnet, which saturate."""
    position = np.arange(6) * np.pi / 3 + parameters.uniform(-0.1, 0.1, 6)
    second = parameters.uniform(0.1, 0.4, 6)
    saturation = parameters.uniform(1, 4, 6)

    def response(u: Array, generator: Generator) -> Array:
        angle = u - position
        field = np.cos(angle) + second * np.cos(2 * angle + 0.5)
        return white(generator, 2.5 + np.tanh(saturation * field), 0.02)

    return response


def geiger_tubes(parameters: Parameters) -> Response:
    """Return the counts of twelve tubes with dead time around a source that two stages move."""
    angle = np.arange(12) * np.pi / 6 + parameters.uniform(-0.1, 0.1, 12)
    position = 1.7 * np.column_stack([np.cos(angle), np.sin(angle)])
    efficiency = parameters.uniform(0.6, 1.2, 12)

    def response(u: Array, generator: Generator) -> Array:
        square_distance = ((u[:, None, :] - position) ** 2).sum(axis=2) + 0.15
        rate = 1500 * efficiency / square_distance
        return generator.poisson(rate / (1 + rate / 4000) + 3).astype(float)

    return response


def cultured_neurons(parameters: Parameters) -> Response:
    """Return spikes at 32 electrodes within a second after four stimuli; cells are in varying moods."""
    excitation = parameters.normal(4, 32)
    threshold = parameters.uniform(-1, 1, 32)
    inhibition = parameters.uniform(0.5, 2, 32)

    def response(u: Array, generator: Generator) -> Array:
        drive = 2 * (u - 0.5) @ excitation + threshold
        mean = 12 * np.exp(drive) / (1 + 0.3 * np.exp(drive))
        mean = mean / (1 + inhibition * u[:, :1] * u[:, 3:])
        mood = generator.gamma(8, 1 / 8, mean.shape)
        return generator.poisson(mood * mean).astype(float)

    return response


def comb_drives(parameters: Parameters) -> Response:
    """Return codes of the capacitances of 22 combs whose springs stiffen under three accelerations."""
    mass = 0.8 * parameters.normal(3, 22)
    stiffening = parameters.uniform(0.2, 2, 22)
    gap = parameters.uniform(2, 4, 22)

    def response(u: Array, generator: Generator) -> Array:
        force = u @ mass
        position = force / (1 + np.abs(force))
        for _ in range(30):
            imbalance = position + stiffening * position**3 - force
            position = position - imbalance / (1 + 3 * stiffening * position**2)
        capacitance = 1 / (1 - 0.5 * np.tanh(position / gap))
        return np.round(4000 * white(generator, capacitance, 2e-3))

    return response


def level_displays(parameters: Parameters) -> Response:
    """Return the light of 16 mixtures of three displays with five levels each, some of which compete."""
    mixing = parameters.uniform(0, 1, 3, 16)
    gamma = parameters.uniform(1.6, 2.6, 3)
    competition = parameters.uniform(0, 1.5, 16)

    def response(u: Array, generator: Generator) -> Array:
        light = np.clip(u / 4, 0, 2) ** gamma
        sum_of_light = light @ mixing
        dimmed = sum_of_light / (1 + competition * light[:, :1] * light[:, 1:2])
        return white(generator, 300 * dimmed + 40 * np.abs(light[:, 1:2] - light[:, 2:]), 3.0)

    return response


def spin_echoes(parameters: Parameters) -> Response:
    """Return 36 amplitudes of echoes behind two pulses, whose angles vary over the sample."""
    inhomogeneity = 1 + 0.25 * parameters.normal(36)
    phase = parameters.uniform(0, 2 * np.pi, 36)

    def response(u: Array, generator: Generator) -> Array:
        first = np.pi / 2 * (1 + 0.25 * u[:, :1]) * inhomogeneity
        second = np.pi * (1 + 0.25 * u[:, 1:]) * inhomogeneity
        echo = np.sin(first) * np.sin(second / 2) ** 2
        rest = 0.3 * np.cos(first) * np.cos(second)
        return white(generator, np.cos(phase) * echo + np.sin(phase) * rest, 0.01)

    return response


def fourth_part() -> tuple[Device, ...]:
    """Return the devices of this module."""
    five_levels = infocap.basis.table([0.0, 1.0, 2.0, 3.0, 4.0])
    levels = infocap.product_basis(five_levels, 3, 5)
    angle = infocap.product_basis("fourier", 1, 12)
    pulses = infocap.product_basis("hermite", 2, 6)
    unit_square = legendre(2, 8, domain=(0, 1))
    stimuli = legendre(4, 4, domain=(0, 1))
    return (
        Device("polarimeter", unit_square, polarimeter, 2500, 271, part=FOURTH),
        Device("strain bridges", legendre(6, 3), strain_bridges, 1600, 272, part=FOURTH),
        Device("indicator dyes", unit_square, indicator_dyes, 3000, 273, part=FOURTH),
        Device("angle sensors", angle, angle_sensors, 1000, 274, part=FOURTH),
        Device("Geiger tubes", legendre(2, 8), geiger_tubes, 4500, 275, part=FOURTH),
        Device("cultured neurons", stimuli, cultured_neurons, 4096, 276, part=FOURTH),
        Device("comb drives", legendre(3, 5), comb_drives, 2048, 277, part=FOURTH),
        Device("level displays", levels, level_displays, 1200, 278, part=FOURTH),
        Device("spin echoes", pulses, spin_echoes, 6000, 279, part=FOURTH),
    )


DEVICES.update({device.name: device for device in fourth_part()})
