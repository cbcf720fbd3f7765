"""Four qubits: two angles in as rotations, <Z> and <ZZ> out, from a limited number of shots.

A fixed random circuit entangles the qubits. Each angle turns two of them, so an expectation value
is a trigonometric polynomial of degree two at most in each angle: 25 functions, and the circuit
decides which combinations of them the ten readouts hold. The Fourier basis is complete here. What
is missing from the maximum of 11 is shot noise, so the capacity says how many shots a run is worth.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations

import numpy as np

import infocap

N_QUBITS = 4
N_LAYERS = 3
SHOTS = (30, 300, 3000)

# The eigenvalue of Z, 1 or -1, of each qubit in each outcome 0000, 0001, ..., 1111.
OUTCOMES = np.arange(2**N_QUBITS)
BITS = np.stack([(OUTCOMES >> qubit) & 1 for qubit in reversed(range(N_QUBITS))], axis=1)
SIGNS = 1 - 2 * BITS

# The values of the observables Z and ZZ in each outcome, (outcomes, observables).
PRODUCTS = [
    SIGNS[:, first] * SIGNS[:, second] for first, second in combinations(range(N_QUBITS), 2)
]
OBSERVABLES = np.column_stack([SIGNS, *PRODUCTS])


def controlled_z_ring() -> np.ndarray:
    """Return the diagonal of controlled-Z gates between neighbours on a ring of qubits."""
    diagonal = np.ones(2**N_QUBITS)
    for qubit in range(N_QUBITS):
        both_are_one = (SIGNS[:, qubit] < 0) & (SIGNS[:, qubit - 1] < 0)
        diagonal = np.where(both_are_one, -diagonal, diagonal)
    return diagonal


def tensor_product(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Return the operator that applies one matrix to each qubit."""
    operator = np.ones((1, 1))
    for matrix in matrices:
        operator = np.kron(operator, matrix)
    return operator


def circuit(seed: int = 3) -> np.ndarray:
    """Return the unitary of the circuit: layers of random rotations and controlled-Z gates."""
    rng = np.random.default_rng(seed)
    entangle = controlled_z_ring()[:, None]
    unitary = np.eye(2**N_QUBITS)
    for _ in range(N_LAYERS):
        real_part = rng.normal(size=(N_QUBITS, 2, 2))
        imaginary_part = rng.normal(size=(N_QUBITS, 2, 2))
        rotations = np.linalg.qr(real_part + 1j * imaginary_part).Q
        unitary = entangle * (tensor_product(rotations) @ unitary)
    return unitary


class Qubits:
    """Angles (samples, 2) in, ten estimated expectation values out."""

    def __init__(self, shots: int) -> None:
        self.shots = shots
        self.unitary = circuit()

    def __call__(self, u: np.ndarray, seed: int | None = None) -> np.ndarray:
        """Return estimates, each row from `shots` preparations and measurements of all qubits."""
        amplitudes = self.encode(u) @ self.unitary.T
        probabilities = np.abs(amplitudes) ** 2
        probabilities /= probabilities.sum(axis=1, keepdims=True)  # Rounding may change the sums.
        counts = np.random.default_rng(seed).multinomial(self.shots, probabilities)
        return counts @ OBSERVABLES / self.shots

    def encode(self, u: np.ndarray) -> np.ndarray:
        """Return the states (samples, outcomes) of qubits that the angles turn in turn: R_Y |0>."""
        states = np.ones((len(u), 1))
        for qubit in range(N_QUBITS):
            half_angle = u[:, [qubit % 2]] / 2
            state_of_qubit = np.concatenate([np.cos(half_angle), np.sin(half_angle)], axis=1)
            products = states[:, :, None] * state_of_qubit[:, None, :]
            states = products.reshape(len(u), -1)
        return states


def main(n_samples: int = 4096, plot: str | None = None) -> None:
    """Print the profile for few and many shots, and draw them side by side."""
    basis = infocap.product_basis("fourier", n_inputs=2, max_degree=4)
    u = infocap.draw(basis, n_samples, seed=1)
    results = {}
    for shots in SHOTS:
        qubits = Qubits(shots)
        x = qubits(u, seed=1)
        repeats = qubits(u, seed=2)  # What differs between the two is noise.
        result = infocap.estimate(u, x, basis, repeats=repeats)
        results[f"{shots} shots"] = result
        print(f"\n{shots} shots\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        title = "Four qubits, two angles, ten expectation values"
        axes.set_title(title, loc="left", fontsize="medium")
        axes.figure.savefig(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    options = parser.parse_args()
    main(512 if options.quick else 4096, plot=options.plot)
