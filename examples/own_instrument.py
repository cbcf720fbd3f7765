"""Drive your own instruments: infocap asks for one method, measure(u).

A source and a camera stand in for your own drivers, of whatever library. Nearly the same from
the command line, in the folder of this script:

    infocap plan --n-inputs 2 --max-degree 6 --n-samples 512 --repeat-every 2 -o plan.toml
    infocap acquire plan.toml --instrument own_instrument:make -o run.db
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import infocap
from infocap.lab import Plan, acquire

OUTPUT = Path("example-output")


class VoltageSource:
    """A source with two channels."""

    def __init__(self) -> None:
        self.channels = [0.0, 0.0]

    def set_voltage(self, channel: int, volt: float) -> None:
        """Send one voltage to one channel."""
        if not -1 <= volt <= 1:
            raise ValueError(f"{volt} V is outside the range of the source")
        self.channels[channel] = volt


class Camera:
    """A camera that looks at a device which the source drives."""

    def __init__(self, source: VoltageSource) -> None:
        self.source = source
        generator = np.random.default_rng(0)
        self.weights = generator.standard_normal((2, 24)) * 2
        self.noise = np.random.default_rng(1)

    def frame(self) -> np.ndarray:
        """Return one picture of 24 pixels, in volt."""
        light = np.array(self.source.channels) @ self.weights + 0.5
        return np.tanh(light) + 0.01 * self.noise.standard_normal(24)


class Setup:
    """The laboratory as infocap sees it."""

    def __init__(self) -> None:
        self.source = VoltageSource()
        self.camera = Camera(self.source)

    def measure(self, u: np.ndarray) -> np.ndarray:
        """Send the inputs and return the readouts; a real device may need time to settle."""
        for channel, volt in enumerate(u):
            self.source.set_voltage(channel, volt)
        return self.camera.frame()

    def recover(self) -> None:
        """Open the connections anew, before a failed measurement is tried again."""
        self.source = VoltageSource()
        self.camera.source = self.source


def make() -> Setup:
    """Return the instrument, for the command line."""
    return Setup()


def main() -> None:
    """Plan a measurement, acquire it and estimate the capacities."""
    plan = Plan(
        n_inputs=2,
        max_degree=6,
        n_samples=512,
        seed=1,
        repeat_every=2,
        input_unit="V",
        readout_unit="V",
        title="two voltages, a camera of 24 pixels",
    )
    OUTPUT.mkdir(exist_ok=True)
    # If the script is stopped, the next call goes on where this one ended.
    recording = acquire(plan, make(), OUTPUT / "run.db")
    print(recording)
    print(infocap.estimate(recording, basis=plan.basis))


if __name__ == "__main__":
    main()
