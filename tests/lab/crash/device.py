"""A noisy device and a plan with every kind of measurement, the same in every process of the crash tests."""

import numpy as np

from infocap.lab import Plan, SimulatedBench

SIZES = {"small": 256, "half": 512}


def plan(size="small"):
    """The large one is the half one, extended; it is what a kill test comes to after several extensions."""
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
    mixed = np.tanh(u @ np.linspace(-1, 1, 40).reshape(2, 20))
    return mixed + 1e-3 * np.random.default_rng(seed).standard_normal(mixed.shape)


def bench(batch=1):
    return SimulatedBench(system, batch=batch)
