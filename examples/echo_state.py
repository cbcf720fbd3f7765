"""An echo state network: the more strongly inputs drive it, the more nonlinear it is.

In return it remembers less. NARMA10 needs mostly linear memory, parity needs products of inputs, so
each wants another input scale, and the capacities by degree say why. For every setting
`check_fading` first tells after how many steps the network has forgotten its initial state, if it
forgets it at all.
"""

import sys
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
INPUT_SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def score_of(
    network: infocap.systems.EchoState, task: infocap.tasks.Task, n_steps: int
) -> infocap.tasks.Accuracy:
    """Return how well a readout of the network does a task, and print it."""
    washout = infocap.systems.check_fading(network, task.inputs, n_steps=n_steps // 2)
    score = infocap.tasks.accuracy(network, task, washout=washout)
    print(
        f"\ninput scale {network.input_scale}: "
        f"the start is forgotten after {washout} steps\n{score}"
    )
    return score


def draw_scores(ax: Axes, name: str, scores: list[infocap.tasks.Accuracy], colour: str) -> None:
    """Draw R² of a task over the input scale, and that of past inputs without the network."""
    ax.errorbar(
        INPUT_SCALES,
        [score.mean for score in scores],
        [score.standard_error for score in scores],
        color=colour,
        marker="o",
        markersize=4,
        capsize=2,
        label=name,
        zorder=3,
    )
    ax.axhline(scores[0].linear_mean, color=colour, linestyle="--", linewidth=0.8)


def main(n_nodes: int = 100, n_steps: int = 4000) -> None:
    """Print and draw R² of two tasks over the input scale, and the capacities behind it."""
    OUTPUT.mkdir(exist_ok=True)
    narma = infocap.tasks.narma(10, n_steps, domain=(-1, 1))
    parity = infocap.tasks.parity(3, 2, n_steps)
    scores: dict[str, list[infocap.tasks.Accuracy]] = {narma.name: [], parity.name: []}
    basis = infocap.delayed_basis(max_delay={1: 40, 2: 15, 3: 6})
    results = {}
    for scale in INPUT_SCALES:
        network = infocap.systems.EchoState(
            n_nodes, radius=0.95, input_scale=scale, bias=0.2, noise=1e-5
        )
        for task in (narma, parity):
            scores[task.name].append(score_of(network, task, n_steps))
        u = narma.inputs  # They are uniform, and independent from step to step.
        x = network(u, seed=1)
        with warnings.catch_warnings():
            # The warnings say that some functions lie beyond these windows of delays.
            warnings.simplefilter("ignore", infocap.errors.DataWarning)
            results[scale] = infocap.estimate(u, x, basis, washout=n_steps // 4)
        print(results[scale])

    with plt.rc_context(infocap.plot.STYLE):
        figure, (score_ax, capacity_ax) = plt.subplots(
            2, 1, figsize=(5.0, 4.6), layout="constrained"
        )
        for name, colour in zip(scores, infocap.plot.COLOURS, strict=False):
            draw_scores(score_ax, name, scores[name], colour)
        score_ax.plot(
            [], [], color="0.4", linestyle="--", linewidth=0.8, label="linear memory alone"
        )
        score_ax.set(xscale="log", xlabel="input scale")
        score_ax.set(ylabel="R², held out", ylim=(-0.08, 1.05), yticks=[0, 0.5, 1])
        score_ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        infocap.plot.degree_bars(results, capacity_ax).set_xlabel("input scale")
        figure.savefig(OUTPUT / "echo-state.png")
    print(f"Written: {OUTPUT / 'echo-state.png'}")


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main(n_nodes=30, n_steps=1000)
    else:
        main()
