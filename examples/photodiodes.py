"""Photodiodes behind a scattering plate: three modulated beams interfere on 32 detectors that saturate.

The plate is linear and a diode measures power, so with little light the readouts are quadratic: ten functions of three
inputs, and no more, however many diodes there are. Saturation, a nuisance in a power meter, is a nonlinearity here:
with light at half of it the 32 diodes compute almost 32 different functions. With far more light all sit at their
limit but for dark fringes: sharp functions, many of them beyond the degrees listed. The repeats reveal that, as
noise would allow more than is found.
"""

from __future__ import annotations

import argparse

import numpy as np

import infocap

DETECTORS = 32
PHOTONS = 1e6  # at saturation; shot noise is the root of their number
AMPLIFIER = 3e-5  # its noise, in units of the saturated current
POWERS = (0.001, 0.5, 20.0)  # mean power on a diode, in units of its saturation


class Photodiodes:
    """Beam amplitudes (samples, 3) in [-1, 1] in, photocurrents out."""

    def __init__(self, power: float, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        parts = generator.normal(size=(2, 4, DETECTORS))
        self.plate = (
            np.sqrt(power / 4) * (parts[0] + 1j * parts[1]) / np.sqrt(2)
        )  # three beams and a reference

    def __call__(self, u: np.ndarray, seed: int | None = None) -> np.ndarray:
        """Interference, shot noise, saturation, noise of the amplifier: in the order of the light."""
        generator = np.random.default_rng(seed)
        field = np.column_stack([np.ones(len(u)), np.sqrt(3) * u]) @ self.plate
        power = generator.poisson(PHOTONS * np.abs(field) ** 2) / PHOTONS
        return power / (1 + power) + AMPLIFIER * generator.standard_normal(power.shape)


def main(n_samples: int = 4096, max_degree: int = 6, plot: str | None = None) -> None:
    """Print the profile at each power of the light, and draw them side by side."""
    basis = infocap.product_basis("legendre", n_inputs=3, max_degree=max_degree)
    u = infocap.draw(basis, n_samples, seed=1)
    results = {}
    for power in POWERS:
        diodes = Photodiodes(power)
        results[f"{power:g} of saturation"] = infocap.estimate(
            u, diodes(u, seed=1), basis, repeats=diodes(u, seed=2)
        )
    for name, result in results.items():
        print(f"\nmean power {name}\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        axes.set_title(
            "32 saturating photodiodes behind a scattering plate, three beams",
            loc="left",
            fontsize="medium",
        )
        axes.figure.savefig(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and functions")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    chosen = parser.parse_args()
    sizes = {"n_samples": 512, "max_degree": 4} if chosen.quick else {}
    main(**sizes, plot=chosen.plot)
