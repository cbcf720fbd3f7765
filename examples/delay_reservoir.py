"""A delay reservoir: one nonlinear node with feedback, electronic (Mackey-Glass) and opto-electronic (Ikeda).

The more feedback, the longer inputs stay in the loop; with too much of it the Ikeda node oscillates by itself and
forgets nothing: there `check_fading` refuses, and the curve ends. A linear readout of as many past inputs as NARMA10
remembers does better than 100 virtual nodes: the task is mostly linear memory (see `infocap.tasks.demand`).
"""

import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
FEEDBACK = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


def main(n_nodes: int = 100, n_steps: int = 4000) -> None:
    """NRMSE of NARMA10 over the strength of the feedback."""
    OUTPUT.mkdir(exist_ok=True)
    task = infocap.tasks.narma(10, n_steps, domain=(-1, 1))
    with plt.rc_context(infocap.plot.STYLE):
        figure, ax = plt.subplots(figsize=(3.5, 2.4), layout="constrained")
        for name, colour in zip(("mackey-glass", "ikeda"), infocap.plot.COLOURS, strict=False):
            found = {}
            for feedback in FEEDBACK:
                node = infocap.systems.DelayReservoir(n_nodes, name, feedback=feedback, input_scale=0.05)
                try:
                    washout = infocap.systems.check_fading(node, task.inputs, n_steps=n_steps // 2)
                except infocap.errors.DataError as problem:
                    print(f"{name}, feedback {feedback}: {problem}")
                    break
                found[feedback] = infocap.tasks.accuracy(node, task, washout=washout)
                print(f"{name}, feedback {feedback}: forgets its start in {washout} steps\n{found[feedback]}")
            ax.plot(
                list(found), [one.nrmse for one in found.values()], "o-", color=colour, markersize=4, label=name.title()
            )
        linear = infocap.tasks.accuracy(infocap.systems.DelayLine(task.memory + 1), task)
        ax.axhline(linear.nrmse, color="0.4", linestyle="--", linewidth=0.8, label="linear memory alone")
        ax.set(xlabel="feedback", ylabel="NRMSE of NARMA10, held out", ylim=(0, 1.05), xlim=(0, 2.1))
        ax.legend(loc="lower left")
        figure.savefig(OUTPUT / "delay-reservoir.png")
    print(f"Written: {OUTPUT / 'delay-reservoir.png'}")


if __name__ == "__main__":
    main(*(20, 1000) if "--quick" in sys.argv else ())
