"""A task of your own: which functions does it need, and does a device compute them?"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")


def main(n_samples: int = 4096) -> None:
    """Ask two devices whether a point lies in a ring; one of them lacks the functions for it."""
    OUTPUT.mkdir(exist_ok=True)
    # Your data here: inputs between -1 and 1, and a label for each.
    inputs = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    radius = np.hypot(*inputs.T)
    labels = np.where((radius > 0.4) & (radius < 0.8), "ring", "outside")
    task = infocap.tasks.Task(inputs, labels, name="ring")

    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=8)
    demand = infocap.tasks.demand(task, basis)
    print(demand)

    devices = {
        "squares": lambda u: np.column_stack([u, u**2]),
        "network": infocap.systems.RandomFeatures(n_inputs=2, n_readouts=40, gain=2.0, noise=1e-3),
    }
    for name, device in devices.items():
        result = infocap.probe(device, basis, n_samples, seed=1)
        score = infocap.tasks.accuracy(device, task)
        reachable = demand.reachable(result)
        print(
            f"\n{name}: total capacity {result.total:.1f}, "
            f"{reachable:.0%} of the target is reachable"
        )
        print(score)
        picture = OUTPUT / f"demand-supply-{name}.png"
        infocap.tasks.plot.demand_supply(demand, result).figure.savefig(picture)
        print(f"Written: {picture}")


if __name__ == "__main__":
    main(1024 if "--quick" in sys.argv else 4096)
