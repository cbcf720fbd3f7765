"""Extrapolations in the number of samples beside the default method, on systems with known truth.

    python benchmarks/extrapolation.py --processes 16 --data-sets 200 --write

The expectation of the raw capacity is C + Δ/N + ..., so C follows from raw capacities of parts of the data. Shown are
the paper's two algorithms, which use the halves; a weighted least-squares fit of C + Δ/n to the lengths n = N, N/2,
N/4 and N/8; and the default method.

Y. Saito (arXiv:2502.15769) fits the asymptotic expansion by weighted least squares, too. Of that paper we had the
abstract alone. It does not say which lengths are fitted, with which weights, whether capacities on test data enter,
or when a capacity counts as zero. The fit here follows from the expansion and is not called by his name.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

import infocap
from _common import run_tables

Array = np.ndarray
METHODS = {
    "raw": "raw",
    "Algorithm 1": "threshold-richardson",
    "Algorithm 2": "richardson-threshold",
    "default": "control-variate",
}
FIT = "fit in 1/N"
# Lengths of the fit, as parts of N. Each part has several samples per readout.
N_PARTS = (1, 2, 4, 8)
SIZES = (1024, 4096)
WASHOUT = 60


@dataclass(frozen=True)
class Device:
    """Something that gives inputs and readouts, and its exact capacities for the functions of a basis."""

    basis: infocap.ProductBasis
    capacity: Array
    measure: Callable[[int, int], tuple[Array, Array]]  # samples, seed -> inputs, readouts


def mixture(noise: float) -> Device:
    """Noisy mixtures of 25 of 56 functions of three inputs, at random inputs."""
    basis = infocap.product_basis("legendre", 3, 5)
    system = infocap.theory.random_mixture(basis, n_active=25, n_readouts=15, noise=noise, seed=1)

    def measure(n_samples: int, seed: int) -> tuple[Array, Array]:
        u = infocap.draw(basis, n_samples, design="random", seed=seed)
        return u, system(u, seed=seed)

    return Device(basis, system.exact(), measure)


def network(noise: float) -> Device:
    """A linear network of 15 nodes, whose readouts have noise: it remembers single inputs and no products."""
    generator = np.random.default_rng(3)
    a = generator.normal(size=(15, 15))
    a *= 0.8 / np.abs(np.linalg.eigvals(a)).max()
    b = generator.normal(size=15)
    basis = infocap.delayed_basis("legendre", max_delay={1: 40, 2: 6})
    memory = infocap.theory.linear_memory(a, b, noise=noise, max_delay=40, variance=1 / 3)[:, 0]
    capacity = np.zeros(len(basis))
    capacity[basis.degrees == 0] = 1.0
    capacity[basis.degrees == 1] = memory

    def measure(n_samples: int, seed: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        u = rng.uniform(-1, 1, n_samples + WASHOUT)
        states = np.zeros((len(u), 15))
        for step in range(1, len(u)):
            states[step] = a @ states[step - 1] + b * u[step]
        states[0] = b * u[0]
        return u, states + noise * rng.standard_normal(states.shape)

    return Device(basis, capacity, measure)


DEVICES: dict[str, Callable[[], Device]] = {
    "mixture, noise 0.1": partial(mixture, 0.1),
    "mixture, noise 1": partial(mixture, 1.0),
    "linear network, noise 0.1": partial(network, 0.1),
    "linear network, noise 1": partial(network, 1.0),
}


def raw(device: Device, u: Array, x: Array) -> Array:
    """The raw capacities of all functions from some rows."""
    washout = WASHOUT if device.basis.of_sequences else None
    return infocap.estimate(u, x, device.basis, method="raw", washout=washout).raw


def fitted(device: Device, u: Array, x: Array) -> Array:
    """The value at infinite length of a weighted straight line in 1/n, for each function.

    The capacity of each length n is the mean over the N/n disjoint parts. What part of its scatter the lengths do not
    have in common is of second order: 1/n² for one part, hence 1/(n N) for the mean. So the weights are n.
    """
    first = WASHOUT if device.basis.of_sequences else 0
    n_samples = len(u) - first
    means = []
    for n_parts in N_PARTS:
        length = n_samples // n_parts
        parts = []
        for start in range(0, n_parts * length, length):
            rows = slice(start, start + first + length)
            parts.append(raw(device, u[rows], x[rows]))
        means.append(np.mean(parts, axis=0))
    inverse_length = np.array(N_PARTS) / n_samples
    weights = 1 / np.array(N_PARTS)
    line = np.column_stack([np.ones(len(N_PARTS)), inverse_length])
    root = np.sqrt(weights)[:, None]
    solution, *_ = np.linalg.lstsq(root * line, root * np.array(means), rcond=None)
    return solution[0]


def errors(seed: int, name: str, n_samples: int) -> dict[str, tuple[float, float]]:
    """Of one data set, by method: the mean squared error of single capacities, and the error of the total."""
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    device = DEVICES[name]()
    u, x = device.measure(n_samples, seed)
    washout = WASHOUT if device.basis.of_sequences else None
    capacities = {FIT: fitted(device, u, x)}
    totals = {FIT: capacities[FIT].sum()}
    for label, method in METHODS.items():
        result = infocap.estimate(u, x, device.basis, method=method, washout=washout)
        capacities[label] = result.capacity
        totals[label] = result.total
    exact = device.capacity
    return {
        label: (float(np.mean((found - exact) ** 2)), float(totals[label] - exact.sum()))
        for label, found in capacities.items()
    }


def table(processes: int, n_data_sets: int) -> list[str]:
    """A line for each device, size and method."""
    lines = [
        f"{n_data_sets} data sets each at random inputs. Root mean square error of single capacities, and mean error "
        "of the total ± standard deviation. The fit and the raw capacities have no threshold. The fit follows from the "
        "expansion in 1/N alone: of Saito's estimator (arXiv:2502.15769) only the abstract was at hand.",
        "",
        "| system | truth | N | method | one capacity | total |",
        "|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(processes) as executor:
        for name, make in DEVICES.items():
            truth = make().capacity.sum()
            for n_samples in SIZES:
                job = partial(errors, name=name, n_samples=n_samples)
                found = list(executor.map(job, range(n_data_sets)))
                for label in ("raw", "Algorithm 1", "Algorithm 2", FIT, "default"):
                    squares, of_total = np.transpose([one[label] for one in found])
                    one = f"{np.sqrt(squares.mean()):.4f}"
                    total = f"{of_total.mean():+.3f} ± {of_total.std(ddof=1):.3f}"
                    cells = [name, f"{truth:.3f}", str(n_samples), label, one, total]
                    lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Print the table; keep it with ``--write``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data-sets", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    arguments = parser.parse_args()
    make = partial(table, arguments.processes, arguments.data_sets)
    command = f"python benchmarks/extrapolation.py --data-sets {arguments.data_sets}"
    run_tables("Extrapolations", command, {"Known truth": make}, arguments.write)


if __name__ == "__main__":
    main()
