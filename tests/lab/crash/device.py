"""A noisy device and a plan with every kind of measurement, the same in every process."""

import numpy as np

from infocap.lab import Plan, SimulatedBench
from infocap.lab.experiment import read_store

SIZES = {"small": 256, "half": 512}


def plan(size="small"):
    """Return a plan; the large one is the half one, extended."""
    if size == "large":
        return plan("half").extended(1024)
    return Plan(
        n_inputs=2,
        max_degree=3,
        n_samples=SIZES[size],
        seed=5,
        noise_repeats=10,
        repeat_every=4,
        reference_every=16,
        readout_unit="V",
    )


def system(u, seed=None):
    readouts = np.tanh(u @ np.linspace(-1, 1, 40).reshape(2, 20))
    return readouts + 1e-3 * np.random.default_rng(seed).standard_normal(readouts.shape)


def bench(batch=1):
    return SimulatedBench(system, batch=batch)


def hexadecimal(measurement):
    """Return the readouts of a measurement as text that tells every bit of them."""
    return np.asarray(measurement.readouts).tobytes().hex()


def acknowledgements(measurements):
    """Return a line for each measurement that the store has acknowledged."""
    return "".join(f"{one.kind} {one.number} {hexadecimal(one)}\n" for one in measurements)


def acknowledged(text):
    """Return readouts by name from such lines; the last line may have been cut by a kill."""
    readouts = {}
    for line in text.split("\n")[:-1]:
        kind, number, value = line.split(" ")
        readouts[f"{kind} {number}"] = value
    return readouts


def stored(path):
    """Return the readouts of every measurement in a store by name, as hexadecimal text."""
    measurements = read_store(path).measurements
    return {measurement.name: hexadecimal(measurement) for measurement in measurements}


def sweep_plan(n_settings):
    """Return a plan with a sweep over gain and bias, of two settings of gain or of more."""
    sweep = {"gain": [0.5, 1.0, 2.0, 4.0][:n_settings], "bias": [0.1]}
    return Plan(
        n_inputs=2, max_degree=3, n_samples=64, blocks=2, seed=5, noise_repeats=5, sweep=sweep
    )


def sweep_bench():
    return SimulatedBench(make_system=Tuned)


class Tuned:
    """A noisy device with a gain and a bias."""

    def __init__(self, gain, bias):
        self.gain = gain
        self.bias = bias

    def __call__(self, u, seed=None):
        return self.gain * system(u, seed) + self.bias
