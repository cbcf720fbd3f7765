"""The linear memory of a delay line and of a random linear network, with and without noise.

Both have 20 nodes, and without noise both hold 20 past inputs in all; the network spreads them over
more delays. Noise takes an equal small part from every delay of the line. From the network it takes
most of the memory, because weak directions of the readouts are lost first. In the figure, lines are
exact (`theory.linear_memory`), and dots with two standard errors are what `estimate` finds in a
simulated run.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
N_NODES = 20
LONGEST_DELAY_DRAWN = 40
DELAYS_WITH_DOTS = np.arange(0, LONGEST_DELAY_DRAWN + 1, 4)
INPUT_VARIANCE = 1 / 3  # of inputs that are uniform on [-1, 1]


class LinearSystem(NamedTuple):
    """A linear network x[t] = A x[t-1] + B u[t], and how it is drawn."""

    name: str
    system: infocap.systems.EchoState | infocap.systems.DelayLine
    recurrent_weights: np.ndarray  # A
    colour: str


def linear_systems(noise: float) -> list[LinearSystem]:
    """Return the delay line and the network."""
    line = infocap.systems.DelayLine(N_NODES, noise)
    shift_by_one_node = np.eye(N_NODES, k=-1)
    network = infocap.systems.EchoState(N_NODES, radius=0.95, activation="linear", noise=noise)
    return [
        LinearSystem("line", line, shift_by_one_node, infocap.plot.COLOURS[0]),
        LinearSystem("network", network, network.recurrent_weights, infocap.plot.COLOURS[5]),
    ]


def exact_memory(linear: LinearSystem, noise: float) -> np.ndarray:
    """Return the capacity of the input of each delay, from theory."""
    memory = infocap.theory.linear_memory(
        linear.recurrent_weights,
        linear.system.input_weights,
        noise=noise,
        variance=INPUT_VARIANCE,
        max_delay=2000,
    )
    return memory[:, 0]  # of the only input


def compare_with_estimate(
    linear: LinearSystem, noise: float, style: str, n_steps: int, ax: Axes
) -> None:
    """Print and draw the exact memory of a system beside the estimated one."""
    basis = infocap.delayed_basis(max_delay={1: 2 * LONGEST_DELAY_DRAWN})
    u = infocap.draw(basis, n_steps, seed=1)
    x = linear.system(u, seed=2)
    result = infocap.estimate(u, x, basis, washout=500)
    estimated = result.memory_function().loc[DELAYS_WITH_DOTS]
    exact = exact_memory(linear, noise)

    largest_difference = np.abs(estimated["capacity"] - exact[DELAYS_WITH_DOTS]).max()
    print(
        f"{linear.name} of {N_NODES} nodes, noise {noise:g}: memory {exact.sum():.2f}, "
        f"simulated and exact differ by {largest_difference:.4f}"
    )
    exact_in_basis = exact[: basis.memory + 1].sum()
    print(
        f"  up to delay {basis.memory}: exactly {exact_in_basis:.3f}, "
        f"found {result.memory_capacity!r}"
    )

    label = f"{linear.name}, noise {noise:g}"
    ax.plot(exact[: LONGEST_DELAY_DRAWN + 1], style, color=linear.colour, label=label)
    ax.errorbar(
        DELAYS_WITH_DOTS,
        estimated["capacity"],
        2 * estimated["standard_error"],
        fmt="o",
        color=linear.colour,
        markersize=3,
    )


def main(n_steps: int = 20_000) -> None:
    """Print the memory of each system, and draw capacity against delay."""
    OUTPUT.mkdir(exist_ok=True)
    with plt.rc_context(infocap.plot.STYLE):
        figure, ax = plt.subplots(figsize=(3.5, 2.4), layout="constrained")
        for noise, style in ((0.0, "-"), (0.1, "--")):
            for linear in linear_systems(noise):
                compare_with_estimate(linear, noise, style, n_steps, ax)
        ax.set(xlabel="delay (steps)", ylabel="capacity of the delayed input", ylim=(-0.03, 1.05))
        ax.legend(loc="upper right", handlelength=1.6)
        figure.savefig(OUTPUT / "delay-line.png")
    print(f"Written: {OUTPUT / 'delay-line.png'}")


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main(n_steps=5000)
    else:
        main()
