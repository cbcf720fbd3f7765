"""An echo state network: the more strongly inputs drive it, the less it remembers and the more nonlinear it is.

NARMA10 needs mostly linear memory, parity products of inputs: each wants another input scale. The capacities by degree
say why. For every setting `check_fading` tells first after how many steps the network has forgotten its start, if it
forgets it at all.
"""

import sys
import warnings
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
SCALES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


def main(n_nodes: int = 100, n_steps: int = 4000) -> None:
    """R² of two tasks over the input scale, and the capacities behind it."""
    OUTPUT.mkdir(exist_ok=True)
    tasks = [infocap.tasks.narma(10, n_steps, domain=(-1, 1)), infocap.tasks.parity(3, 2, n_steps)]
    scores: dict[str, list[infocap.tasks.Accuracy]] = {task.name: [] for task in tasks}
    basis = infocap.delayed_basis(max_delay={1: 40, 2: 15, 3: 6})
    results = {}
    for scale in SCALES:
        network = infocap.systems.EchoState(
            n_nodes, radius=0.95, input_scale=scale, bias=0.2, noise=1e-5
        )
        for task in tasks:
            washout = infocap.systems.check_fading(network, task.inputs, n_steps=n_steps // 2)
            score = infocap.tasks.accuracy(network, task, washout=washout)
            scores[task.name].append(score)
            print(f"\ninput scale {scale}: the start is forgotten after {washout} steps\n{score}")
        u = tasks[0].inputs  # uniform, independent from step to step
        with warnings.catch_warnings():  # some functions lie beyond these windows
            warnings.simplefilter("ignore", infocap.errors.DataWarning)
            results[scale] = infocap.estimate(u, network(u, seed=1), basis, washout=n_steps // 4)
        print(results[scale])

    with plt.rc_context(infocap.plot.STYLE):
        figure, (ax, below) = plt.subplots(2, 1, figsize=(5.0, 4.6), layout="constrained")
        for (name, found), colour in zip(scores.items(), infocap.plot.COLOURS, strict=False):
            values, errors = np.array([(score.mean, score.standard_error) for score in found]).T
            ax.errorbar(
                SCALES,
                values,
                errors,
                color=colour,
                marker="o",
                markersize=4,
                capsize=2,
                label=name,
                zorder=3,
            )
            ax.axhline(found[0].linear_mean, color=colour, linestyle="--", linewidth=0.8)
        ax.plot([], [], color="0.4", linestyle="--", linewidth=0.8, label="linear memory alone")
        ax.set(
            xscale="log",
            xlabel="input scale",
            ylabel="R², held out",
            ylim=(-0.08, 1.05),
            yticks=[0, 0.5, 1],
        )
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        infocap.plot.degree_bars(results, below).set_xlabel("input scale")
        figure.savefig(OUTPUT / "echo-state.png")
    print(f"Written: {OUTPUT / 'echo-state.png'}")


if __name__ == "__main__":
    main(*(30, 1000) if "--quick" in sys.argv else ())
