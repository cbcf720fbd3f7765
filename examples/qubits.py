"""Four qubits: two angles as rotations, a fixed random entangling circuit, <Z> and <ZZ> from a number of shots.

Each angle turns two qubits, so an expectation value is a trigonometric polynomial of degree two at most in each
angle: 25 functions, and the circuit chooses which combinations the ten readouts hold. The Fourier basis is complete
here; what is missing from the maximum of 11 is shot noise. The capacity says how many shots a run is worth.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import infocap

QUBITS, LAYERS = 4, 3
SIGNS = 1 - 2 * (
    (np.arange(2**QUBITS)[:, None] >> np.arange(QUBITS)[::-1]) & 1
)  # Z of each qubit, per outcome
OBSERVABLES = np.column_stack(
    [SIGNS, *(SIGNS[:, a] * SIGNS[:, b] for a, b in combinations(range(QUBITS), 2))]
)
CZ = np.prod(
    [np.where((SIGNS[:, a] < 0) & (SIGNS[:, a - 1] < 0), -1, 1) for a in range(QUBITS)], axis=0
)


def kron(matrices: list[np.ndarray]) -> np.ndarray:
    """One matrix on each qubit."""
    out = np.ones((1, 1))
    for matrix in matrices:
        out = np.kron(out, matrix)
    return out


def circuit(seed: int = 3) -> np.ndarray:
    """Random rotations of each qubit and controlled-Z gates around the ring, three times."""
    generator, unitary = np.random.default_rng(seed), np.eye(2**QUBITS)
    for _ in range(LAYERS):
        random = generator.normal(size=(QUBITS, 2, 2)) + 1j * generator.normal(size=(QUBITS, 2, 2))
        unitary = CZ[:, None] * (kron([np.linalg.qr(one)[0] for one in random]) @ unitary)
    return unitary


class Qubits:
    """Angles (samples, 2) in, ten estimated expectation values out."""

    def __init__(self, shots: int) -> None:
        self.shots, self.unitary = shots, circuit()

    def __call__(self, u: np.ndarray, seed: int | None = None) -> np.ndarray:
        """Each row is a fresh run of `shots` preparations and measurements of all qubits."""
        state = np.ones((len(u), 1))
        for qubit in range(QUBITS):  # R_Y(u) on |0>, the angles in turn
            half = u[:, [qubit % 2]] / 2
            turned = np.concatenate([np.cos(half), np.sin(half)], axis=1)
            state = (state[:, :, None] * turned[:, None, :]).reshape(len(u), -1)
        chance = np.abs(state @ self.unitary.T) ** 2
        counts = np.random.default_rng(seed).multinomial(
            self.shots, chance / chance.sum(axis=1, keepdims=True)
        )
        return counts @ OBSERVABLES / self.shots


def main(n_samples: int = 4096, plot: str | None = None) -> None:
    """Print the profile for few and many shots, and draw them side by side."""
    basis = infocap.product_basis("fourier", n_inputs=2, max_degree=4)
    u = infocap.draw(basis, n_samples, seed=1)
    results = {}
    for name, qubits in {f"{shots} shots": Qubits(shots) for shots in (30, 300, 3000)}.items():
        results[name] = infocap.estimate(u, qubits(u, seed=1), basis, repeats=qubits(u, seed=2))
        print(f"\n{name}\n{results[name]}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        axes.set_title(
            "Four qubits, two angles, ten expectation values", loc="left", fontsize="medium"
        )
        axes.figure.savefig(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    chosen = parser.parse_args()
    main(512 if chosen.quick else 4096, plot=chosen.plot)
