"""A feed-forward network with random weights, read out after each of its three layers.

Depth composes nonlinearities: layer by layer capacity moves from degree three to higher degrees.
The second layer also holds more in total, because functions that are weak in the first are lost in
its noise; the third adds nothing but degree. A layer's profile says what a linear readout trained
there can learn, before any training.

A network of torch is probed in the same way, as
``lambda u: net(torch.tensor(u, dtype=torch.float32)).numpy()``.
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
    for depth in (1, 2, 3):  # The same seed gives one network, cut after each layer.
        network = infocap.systems.FeedForward(3, [WIDTH] * depth, gain=1.5, bias=0.5, noise=0.01)
        x = network(u, seed=1)
        repeats = network(u, seed=2)  # What differs between the two is noise.
        result = infocap.estimate(u, x, basis, repeats=repeats)
        results[f"layer {depth}"] = result
        of_all_inputs = result.by_degree()[">2"].sum()
        print(f"\nlayer {depth}: {of_all_inputs:.1f} in functions of all three inputs\n{result}")
    if plot is not None:
        axes = infocap.plot.compare(*results.values(), names=list(results))
        title = "Three layers of 40 tanh units with random weights, three inputs"
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
