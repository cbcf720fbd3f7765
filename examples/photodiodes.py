"""Photodiodes behind a scattering plate: three modulated beams interfere on 32 detectors.

The plate is linear and a diode measures power, so with little light the readouts are quadratic: ten
functions of three inputs, however many diodes there are. Saturation, a nuisance in a power meter,
is a nonlinearity here: with light at half of it the 32 diodes compute almost 32 different
functions. With far more light all diodes but those in dark fringes are at their limit. Their
functions are sharp, and many of them lie beyond the degrees listed. The repeats reveal that,
because noise would allow more than is found.
"""

from __future__ import annotations

import argparse

import numpy as np

import infocap

N_DETECTORS = 32
N_BEAMS = 3
# Photons per reading at saturation; shot noise is the square root of their number.
PHOTONS = 1e6
# Noise of the amplifier, in units of the saturated current.
AMPLIFIER_NOISE = 3e-5
# Mean powers on a diode, in units of its saturation.
POWERS = (0.001, 0.5, 20.0)


class Photodiodes:
    """Beam amplitudes (samples, 3) in [-1, 1] in, photocurrents out."""

    def __init__(self, power: float, seed: int = 0) -> None:
        n_sources = N_BEAMS + 1  # the beams, and a reference that is not modulated
        rng = np.random.default_rng(seed)
        real_part, imaginary_part = rng.normal(size=(2, n_sources, N_DETECTORS))
        transmission = (real_part + 1j * imaginary_part) / np.sqrt(2)
        self.plate = np.sqrt(power / n_sources) * transmission

    def __call__(self, u: np.ndarray, seed: int | None = None) -> np.ndarray:
        """Return what light goes through: interference, shot noise, saturation, amplifier."""
        rng = np.random.default_rng(seed)
        reference = np.ones(len(u))
        beams = np.sqrt(3) * u  # with the mean power 1
        field = np.column_stack([reference, beams]) @ self.plate
        photons = rng.poisson(PHOTONS * np.abs(field) ** 2)
        power = photons / PHOTONS
        current = power / (1 + power)
        return current + AMPLIFIER_NOISE * rng.standard_normal(power.shape)


def main(n_samples: int = 4096, max_degree: int = 6, plot: str | None = None) -> None:
    """Print the profile at each power of the light, and draw them side by side."""
    basis = infocap.product_basis("legendre", n_inputs=N_BEAMS, max_degree=max_degree)
    u = infocap.draw(basis, n_samples, seed=1)
    results = {}
    for power in POWERS:
        diodes = Photodiodes(power)
        x = diodes(u, seed=1)
        repeats = diodes(u, seed=2)  # What differs between the two is noise.
        result = infocap.estimate(u, x, basis, repeats=repeats)
        results[f"{power:g} of saturation"] = result
    for name, result in results.items():
        print(f"\nmean power {name}\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        title = "32 saturating photodiodes behind a scattering plate, three beams"
        axes.set_title(title, loc="left", fontsize="medium")
        axes.figure.savefig(plot)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and functions")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    options = parser.parse_args()
    sizes = {"n_samples": 512, "max_degree": 4} if options.quick else {}
    main(**sizes, plot=options.plot)
