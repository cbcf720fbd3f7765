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
    np.savetxt(OUTPUT / "design.csv", infocap.draw(basis, n_samples, seed=1), delimiter=",")
    np.savetxt(OUTPUT / "task.csv", task.inputs, delimiter=",")

    # Your laboratory here. Row k of the answers belongs to row k of the inputs.
    for number, name in enumerate(("design", "task")):
        pretend_to_measure(OUTPUT / f"{name}.csv", OUTPUT / f"{name}-readouts.csv", seed=number)

    # What came back: files of inputs and readouts, and nothing else.
    u, x = (np.loadtxt(OUTPUT / f"design{part}.csv", delimiter=",") for part in ("", "-readouts"))
    result = infocap.estimate(u, x, basis)
    print(result)

    readouts = np.loadtxt(OUTPUT / "task-readouts.csv", delimiter=",")
    print(infocap.tasks.accuracy(readouts, task))


def pretend_to_measure(inputs: Path, answers: Path, seed: int) -> None:
    """Stands for the device: 30 readouts with a little noise."""
    device = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=30, gain=3.0, noise=1e-3)
    np.savetxt(answers, device(np.loadtxt(inputs, delimiter=","), seed=seed), delimiter=",")


if __name__ == "__main__":
    main(1024 if "--quick" in sys.argv else 4096)
