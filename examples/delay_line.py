"""Linear memory, exactly: a delay line and a random linear network of as many nodes, with and without noise.

Without noise both hold 20 past inputs in all, the network spread over more of them. Noise takes a small equal part from
every delay of the line, and from the network most of what it remembers: its weak directions drown first. Lines are
`theory.linear_memory`; dots are the memory function that `estimate` finds in a simulated run, with two error bars.
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
NODES, LONGEST = 20, 40


def main(n_steps: int = 20_000) -> None:
    """Print the memory of each and draw capacity against delay."""
    OUTPUT.mkdir(exist_ok=True)
    basis = infocap.delayed_basis(max_delay={1: 2 * LONGEST})
    u, shown = infocap.draw(basis, n_steps, seed=1), np.arange(0, LONGEST + 1, 4)
    with plt.rc_context(infocap.plot.STYLE):
        figure, ax = plt.subplots(figsize=(3.5, 2.4), layout="constrained")
        for noise, style in ((0.0, "-"), (0.1, "--")):
            network = infocap.systems.EchoState(
                NODES, radius=0.95, activation="linear", noise=noise
            )
            line = infocap.systems.DelayLine(NODES, noise)
            for name, system, a, colour in (
                ("line", line, np.eye(NODES, k=-1), infocap.plot.COLOURS[0]),
                ("network", network, network.recurrent_weights, infocap.plot.COLOURS[5]),
            ):
                options = {"noise": noise, "variance": 1 / 3, "max_delay": 2000}
                exact = infocap.theory.linear_memory(a, system.input_weights, **options)[:, 0]
                result = infocap.estimate(u, system(u, seed=2), basis, washout=500)
                found = result.memory_function().loc[shown]
                apart = np.abs(found["capacity"] - exact[shown]).max()
                said = f"{name} of {NODES} nodes, noise {noise:g}: memory {exact.sum():.2f}"
                print(f"{said}, simulated and exact differ by {apart:.4f}")
                within = exact[: basis.memory + 1].sum()
                print(
                    f"  up to delay {basis.memory}: exactly {within:.3f}, found {result.memory_capacity!r}"
                )
                ax.plot(exact[: LONGEST + 1], style, color=colour, label=f"{name}, noise {noise:g}")
                ax.errorbar(
                    shown,
                    found["capacity"],
                    2 * found["standard_error"],
                    fmt="o",
                    color=colour,
                    markersize=3,
                )
        ax.set(xlabel="delay (steps)", ylabel="capacity of the delayed input", ylim=(-0.03, 1.05))
        ax.legend(loc="upper right", handlelength=1.6)
        figure.savefig(OUTPUT / "delay-line.png")
    print(f"Written: {OUTPUT / 'delay-line.png'}")


if __name__ == "__main__":
    main(*(5000,) if "--quick" in sys.argv else ())
