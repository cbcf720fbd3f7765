"""Random features, an extreme learning machine: 50 tanh units with fixed random weights.

There are two inputs, and the readouts are noisy. The gain of the units decides which functions the
50 readouts hold. At low gain tanh is almost linear: high degrees are there, but smaller than the
noise, and most of the 50 dimensions are lost. At high gain the total grows, and a part of it lies
beyond any degree that one can list: the gap between what is found and what noise allows.
"""

from __future__ import annotations

import argparse

import infocap

GAINS = (0.3, 1.0, 3.0)


def main(n_samples: int = 4096, max_degree: int = 12, plot: str | None = None) -> None:
    """Print the profile at each gain, and draw them side by side."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=max_degree)
    results = {}
    for gain in GAINS:
        results[f"gain {gain:g}"] = profile(gain, basis, n_samples)
    for name, result in results.items():
        print(f"\n{name}\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        title = "50 random tanh features of two inputs, noise 0.01"
        axes.set_title(title, loc="left", fontsize="medium")
        axes.figure.savefig(plot)


def profile(gain: float, basis: infocap.ProductBasis, n_samples: int) -> infocap.CapacityResult:
    """Return the capacities. Every input is measured twice; what differs is noise."""
    system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=50, gain=gain, noise=0.01)
    u = infocap.draw(basis, n_samples, seed=1)
    x = system(u, seed=1)
    repeats = system(u, seed=2)
    return infocap.estimate(u, x, basis, repeats=repeats)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and functions")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    options = parser.parse_args()
    sizes = {"n_samples": 512, "max_degree": 6} if options.quick else {}
    main(**sizes, plot=options.plot)
