"""A device measured into files: capacities from one file, the accuracy on a task from another."""

import sys
from pathlib import Path

import numpy as np

import infocap

OUTPUT = Path("example-output")


def main(n_samples: int = 4096) -> None:
    """Write what to send to the device, read what it answered, and ask what it can do."""
    OUTPUT.mkdir(exist_ok=True)
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=10)
    task = infocap.tasks.two_spirals(n_points=n_samples // 2)

    # What to send: a design for the capacities, and the inputs of the task.
    u = infocap.draw(basis, n_samples, seed=1)
    np.savetxt(OUTPUT / "design.csv", u, delimiter=",")
    np.savetxt(OUTPUT / "task.csv", task.inputs, delimiter=",")

    # Your laboratory here. Row k of the answers belongs to row k of the inputs.
    pretend_to_measure(OUTPUT / "design.csv", OUTPUT / "design-readouts.csv", seed=0)
    pretend_to_measure(OUTPUT / "task.csv", OUTPUT / "task-readouts.csv", seed=1)

    # What came back: files of inputs and readouts, and nothing else.
    u = np.loadtxt(OUTPUT / "design.csv", delimiter=",")
    x = np.loadtxt(OUTPUT / "design-readouts.csv", delimiter=",")
    print(infocap.estimate(u, x, basis))

    readouts = np.loadtxt(OUTPUT / "task-readouts.csv", delimiter=",")
    print(infocap.tasks.accuracy(readouts, task))


def pretend_to_measure(inputs_file: Path, readouts_file: Path, seed: int) -> None:
    """Stand in for the device, which has 30 readouts with a little noise."""
    device = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=30, gain=3.0, noise=1e-3)
    u = np.loadtxt(inputs_file, delimiter=",")
    x = device(u, seed=seed)
    np.savetxt(readouts_file, x, delimiter=",")


if __name__ == "__main__":
    main(n_samples=1024 if "--quick" in sys.argv else 4096)
