"""A feed-forward network with fixed random weights, read out after each of its three layers of 40 tanh units.

Depth composes nonlinearities: layer by layer capacity moves from degree three to higher degrees. The second layer also
holds more in total, because functions that are weak in the first are lost in its noise; the third adds nothing but
degree. A layer's profile says what a linear readout trained there can learn, before any training.

A network of torch is probed in the same way: ``lambda u: net(torch.tensor(u, dtype=torch.float32)).numpy()``.
"""

from __future__ import annotations

import argparse

import infocap

WIDTH = 40


def main(n_samples: int = 4096, max_degree: int = 8, plot: str | None = None) -> None:
    """Print the profile of each layer, and draw them side by side."""
    basis = infocap.product_basis("legendre", n_inputs=3, max_degree=max_degree)
    u = infocap.draw(basis, n_samples, seed=1)
    results = {}
    for depth in (1, 2, 3):  # one network, cut after each layer
        network = infocap.systems.FeedForward(3, [WIDTH] * depth, gain=1.5, bias=0.5, noise=0.01)
        result = infocap.estimate(u, network(u, seed=1), basis, repeats=network(u, seed=2))
        results[f"layer {depth}"] = result
        shared = result.by_degree()[">2"].sum()
        print(f"\nlayer {depth}: {shared:.1f} in functions of all three inputs\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        axes.set_title(
            "Three layers of 40 tanh units with random weights, three inputs",
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
