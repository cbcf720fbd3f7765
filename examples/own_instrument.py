"""Drive your own instruments: whatever library they come from, infocap asks for one method, measure(u).

The two stand-ins below are called as drivers of PyMeasure and of QCoDeS are: the first by attributes that talk to the
device when they are set or read, the second by parameters that are called. Put your own drivers in their place. The
same from the command line:

    infocap acquire plan.toml --instrument own_instrument:make -o run.db
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import infocap
from infocap.lab import Plan, acquire

OUTPUT = Path("example-output")


class VoltageSource:
    """As in PyMeasure: setting an attribute sends a command."""

    def __init__(self) -> None:
        self.channels = [0.0, 0.0]

    def set_voltage(self, channel: int, volt: float) -> None:
        """Send one voltage to one channel."""
        if not -1 <= volt <= 1:
            raise ValueError(f"{volt} V is outside the range of the source")
        self.channels[channel] = volt


class Camera:
    """As in QCoDeS: a parameter is called to read it."""

    def __init__(self, source: VoltageSource) -> None:
        self.source = source
        generator = np.random.default_rng(0)
        self.weights = generator.standard_normal((2, 24)) * 2
        self.noise = np.random.default_rng(1)

    def frame(self) -> np.ndarray:
        """One picture, 24 pixels, in volt."""
        light = np.array(self.source.channels) @ self.weights + 0.5
        return np.tanh(light) + 0.01 * self.noise.standard_normal(24)


class Setup:
    """What infocap sees of the laboratory."""

    def __init__(self) -> None:
        self.source = VoltageSource()
        self.camera = Camera(self.source)

    def measure(self, u: np.ndarray) -> np.ndarray:
        """Send the inputs, wait for the device to settle if it needs that, read the outputs."""
        for channel, volt in enumerate(u):
            self.source.set_voltage(channel, volt)
        return self.camera.frame()

    def recover(self) -> None:
        """Called before a failed measurement is tried again: open the connections anew."""
        self.source = VoltageSource()
        self.camera.source = self.source


def make() -> Setup:
    """For the command line."""
    return Setup()


def main() -> None:
    """Plan, acquire, estimate."""
    plan = Plan(
        n_inputs=2,
        max_degree=6,
        n_samples=512,
        seed=1,
        repeat_every=2,
        reference_every=32,
        input_unit="V",
        readout_unit="V",
        title="two voltages, a camera of 24 pixels",
    )
    OUTPUT.mkdir(exist_ok=True)
    recording = acquire(plan, make(), OUTPUT / "run.db")  # once more, and it goes on where it ended
    print(recording)
    print(infocap.estimate(recording, basis=plan.basis))


if __name__ == "__main__":
    main()
