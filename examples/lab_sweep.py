"""Sweep the settings of an instrument: one plan at every pump power and every gain.

A simulated amplifier stands in for your own driver; now and then it does not answer. The same from
the command line, in the folder of this script:

    infocap plan --n-inputs 2 --max-degree 6 --n-samples 512 \\
        --sweep pump_mw=1,3 --sweep gain=0.5,2 -o plan.toml
    infocap acquire plan.toml --instrument lab_sweep:make -o night
    infocap sweep night -o results --plot degrees.png
    infocap report results -o sweep.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np

import infocap
from infocap.lab import Plan, acquire_sweep, estimate_sweep

matplotlib.use("Agg")

OUTPUT = Path("example-output")


class Amplifier:
    """An optical amplifier behind two modulators, read by 16 photodiodes."""

    def __init__(self, dropout: float = 0.01) -> None:
        self.dropout = dropout
        self.weights = np.random.default_rng(0).standard_normal((2, 16))
        self.offset = np.random.default_rng(1).uniform(0, 1, 16)
        self.random = np.random.default_rng(2)

    def set(self, pump_mw: float, gain: float) -> None:
        """Go to a setting; infocap calls this before it measures there."""
        self.pump_mw = pump_mw
        self.gain = gain

    def measure(self, u: np.ndarray) -> np.ndarray:
        """Send two inputs and return what the photodiodes see."""
        if self.random.random() < self.dropout:
            raise OSError("the amplifier did not answer")
        light = self.gain * u @ self.weights + self.offset
        noise = 0.02 * self.random.standard_normal(16)
        return self.pump_mw * np.tanh(light) + noise

    def recover(self) -> None:
        """Reset the amplifier, which then forgets its settings; infocap calls set() again."""
        self.pump_mw = self.gain = 0.0


def make() -> Amplifier:
    """Return the instrument, for the command line."""
    return Amplifier()


def main(n_samples: int = 512) -> None:
    """Acquire the sweep, estimate it, and compare capacities with the accuracy on a task."""
    plan = Plan(
        n_inputs=2,
        max_degree=6,
        n_samples=n_samples,
        seed=1,
        sweep={"pump_mw": [1.0, 3.0], "gain": [0.5, 2.0]},
        title="an amplifier and 16 photodiodes",
    )
    OUTPUT.mkdir(exist_ok=True)
    # If the script is stopped, the next call goes on where this one ended.
    night = acquire_sweep(plan, make(), OUTPUT / "night", wait_s=0.0)
    print(f"{night.n_complete} of {len(night.settings)} settings, {night.stored} measurements")

    sweep = estimate_sweep(OUTPUT / "night")
    print(sweep)
    sweep.save(OUTPUT / "results")
    infocap.plot.save(infocap.plot.degree_bars(sweep), OUTPUT / "degrees.png")
    infocap.report.save(sweep, OUTPUT / "sweep.html")

    # A task of two classes: is a point in one of four fields of a chessboard, or not?
    inputs = np.random.default_rng(3).uniform(-1, 1, (600, 2))
    fields = np.sign(np.sin(2 * np.pi * inputs[:, 0]) * np.sin(np.pi * inputs[:, 1]))
    task = infocap.tasks.Task(inputs, fields, name="chessboard")
    scores = [infocap.tasks.accuracy(tuned(point), task) for point in sweep.points]
    print(infocap.tasks.capacity_accuracy(sweep, scores))


def tuned(point: dict[str, float]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the instrument at one setting as a function of many inputs."""
    amplifier = Amplifier(dropout=0.0)
    amplifier.set(**point)
    return lambda u: np.array([amplifier.measure(row) for row in u])


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main(n_samples=256)
    else:
        main()
