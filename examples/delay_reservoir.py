"""A delay reservoir: one nonlinear node with feedback, electronic (Mackey-Glass) and opto-electronic (Ikeda).

The more feedback, the longer inputs stay in the loop; with too much of it the Ikeda node oscillates by itself and
forgets nothing: there `check_fading` refuses, and the curves end. Capacities tell memory (of degree 1) from nonlinear
functions of the past. A linear readout of as many past inputs as NARMA10
remembers does better than 100 virtual nodes: the task is mostly linear memory (see `infocap.tasks.demand`).
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
FEEDBACK = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


def main(n_nodes: int = 100, n_steps: int = 4000) -> None:
    """NRMSE of NARMA10 and capacities over the strength of the feedback."""
    OUTPUT.mkdir(exist_ok=True)
    task = infocap.tasks.narma(10, n_steps, domain=(-1, 1))
    basis = infocap.delayed_basis(
        max_delay={1: n_steps // 100, 2: 12, 3: 5}
    )  # far fewer than the steps
    with plt.rc_context(infocap.plot.STYLE):
        figure, (ax, below) = plt.subplots(
            2, 1, figsize=(3.5, 4.6), layout="constrained", sharex=True
        )
        for name, colour in zip(("mackey-glass", "ikeda"), infocap.plot.COLOURS, strict=False):
            found, parts = {}, []
            for feedback in FEEDBACK:
                node = infocap.systems.DelayReservoir(
                    n_nodes, name, feedback=feedback, input_scale=0.05
                )
                try:
                    washout = infocap.systems.check_fading(node, task.inputs, n_steps=n_steps // 2)
                except infocap.errors.DataError as problem:
                    print(f"{name}, feedback {feedback}: {problem}")
                    break
                found[feedback] = infocap.tasks.accuracy(node, task, washout=washout)
                print(
                    f"{name}, feedback {feedback}: forgets its start in {washout} steps\n{found[feedback]}"
                )
                x = node(task.inputs) + 1e-4 * np.random.default_rng(1).standard_normal(
                    (n_steps, n_nodes)
                )
                result = infocap.estimate(task.inputs, x, basis, washout=n_steps // 4)
                parts.append((result.memory_capacity, result.nonlinear_capacity))
                print(f"memory capacity {parts[-1][0]!r}, nonlinear capacity {parts[-1][1]!r}")
            ax.plot(
                list(found),
                [one.nrmse for one in found.values()],
                "o-",
                color=colour,
                markersize=4,
                label=name.title(),
            )
            for values, style in zip(np.transpose(parts), ("o-", "o--"), strict=True):
                below.plot(list(found), values, style, color=colour, markersize=4)
        linear = infocap.tasks.accuracy(infocap.systems.DelayLine(task.memory + 1), task)
        ax.axhline(
            linear.nrmse, color="0.4", linestyle="--", linewidth=0.8, label="linear memory alone"
        )
        ax.set(ylabel="NRMSE of NARMA10, held out", ylim=(0, 1.05), xlim=(0, 2.1))
        for style, label in (("-", "memory"), ("--", "nonlinear")):
            below.plot([], [], style, color="0.4", label=label)
        below.set(xlabel="feedback", ylabel="capacity")
        below.legend(loc="upper left")
        ax.legend(loc="lower left")
        figure.savefig(OUTPUT / "delay-reservoir.png")
    print(f"Written: {OUTPUT / 'delay-reservoir.png'}")


if __name__ == "__main__":
    main(*(20, 1000) if "--quick" in sys.argv else ())
