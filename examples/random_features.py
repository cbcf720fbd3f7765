"""Random features, an extreme learning machine: 50 tanh units with fixed random weights, two inputs, noisy readouts.

The gain of the units decides which functions the 50 readouts hold. At low gain tanh is almost linear: high degrees are
there, but smaller than the noise, and most of the 50 dimensions are lost. At high gain the total grows, and part of
it lies beyond any degree one lists: the gap between what is found and what noise allows.
"""

from __future__ import annotations

import argparse

import infocap

GAINS = (0.3, 1.0, 3.0)


def main(n_samples: int = 4096, max_degree: int = 12, plot: str | None = None) -> None:
    """Print the profile at each gain, and draw them side by side."""
    basis = infocap.product_basis("legendre", n_inputs=2, max_degree=max_degree)
    results = {f"gain {gain:g}": profile(gain, basis, n_samples) for gain in GAINS}
    for name, result in results.items():
        print(f"\n{name}\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        axes.set_title(
            "50 random tanh features of two inputs, noise 0.01", loc="left", fontsize="medium"
        )
        axes.figure.savefig(plot)


def profile(gain: float, basis: infocap.ProductBasis, n_samples: int) -> infocap.CapacityResult:
    """Measure every input twice: what differs is noise."""
    system = infocap.systems.RandomFeatures(n_inputs=2, n_readouts=50, gain=gain, noise=0.01)
    u = infocap.draw(basis, n_samples, seed=1)
    return infocap.estimate(u, system(u, seed=1), basis, repeats=system(u, seed=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples and functions")
    parser.add_argument("--plot", metavar="FILE", help="draw the profiles, .png, .pdf or .svg")
    chosen = parser.parse_args()
    sizes = {"n_samples": 512, "max_degree": 6} if chosen.quick else {}
    main(**sizes, plot=chosen.plot)
