"""A delay reservoir: one nonlinear node with delayed feedback, after Mackey and Glass or Ikeda.

The more feedback, the longer inputs stay in the loop. With too much of it the Ikeda node oscillates
by itself and forgets nothing: there `check_fading` refuses, and the curves end. Capacities tell
memory (of degree 1) from nonlinear functions of the past. A linear readout of as many past inputs
as NARMA10 remembers does better than 100 virtual nodes, because the task is mostly linear memory
(see `infocap.tasks.demand`).
"""

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import infocap

matplotlib.use("Agg")

OUTPUT = Path("example-output")
FEEDBACKS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
READOUT_NOISE = 1e-4  # without noise, differences of any size between readouts would count


class Point(NamedTuple):
    """What is drawn for one strength of the feedback."""

    feedback: float
    nrmse: float  # of NARMA10 on held-out steps
    memory_capacity: float
    nonlinear_capacity: float


def measure(
    kind: str, feedback: float, n_nodes: int, task: infocap.tasks.Task, basis: infocap.ProductBasis
) -> Point:
    """Measure accuracy and capacities of one reservoir, and print them.

    A DataError says that the reservoir does not forget its initial state.
    """
    reservoir = infocap.systems.DelayReservoir(n_nodes, kind, feedback=feedback, input_scale=0.05)
    n_steps = len(task.inputs)
    washout = infocap.systems.check_fading(reservoir, task.inputs, n_steps=n_steps // 2)
    score = infocap.tasks.accuracy(reservoir, task, washout=washout)
    print(f"{kind}, feedback {feedback}: forgets its start in {washout} steps\n{score}")

    noise = READOUT_NOISE * np.random.default_rng(1).standard_normal((n_steps, n_nodes))
    x = reservoir(task.inputs) + noise
    result = infocap.estimate(task.inputs, x, basis, washout=n_steps // 4)
    print(
        f"memory capacity {result.memory_capacity!r}, "
        f"nonlinear capacity {result.nonlinear_capacity!r}"
    )
    return Point(
        feedback, score.nrmse, float(result.memory_capacity), float(result.nonlinear_capacity)
    )


def measure_all(
    kind: str, n_nodes: int, task: infocap.tasks.Task, basis: infocap.ProductBasis
) -> list[Point]:
    """Measure with more and more feedback, until the reservoir no longer forgets its start."""
    points: list[Point] = []
    for feedback in FEEDBACKS:
        try:
            points.append(measure(kind, feedback, n_nodes, task, basis))
        except infocap.errors.DataError as problem:
            print(f"{kind}, feedback {feedback}: {problem}")
            break
    return points


def main(n_nodes: int = 100, n_steps: int = 4000) -> None:
    """Print and draw the error of NARMA10 and the capacities over the strength of the feedback."""
    OUTPUT.mkdir(exist_ok=True)
    task = infocap.tasks.narma(10, n_steps, domain=(-1, 1))
    # There must be far fewer functions than steps.
    basis = infocap.delayed_basis(max_delay={1: n_steps // 100, 2: 12, 3: 5})
    with plt.rc_context(infocap.plot.STYLE):
        figure, (error_ax, capacity_ax) = plt.subplots(
            2, 1, figsize=(3.5, 4.6), layout="constrained", sharex=True
        )
        for kind, colour in zip(("mackey-glass", "ikeda"), infocap.plot.COLOURS, strict=False):
            points = measure_all(kind, n_nodes, task, basis)
            feedbacks = [point.feedback for point in points]
            look = {"color": colour, "markersize": 4}
            errors = [point.nrmse for point in points]
            error_ax.plot(feedbacks, errors, "o-", label=kind.title(), **look)
            memory = [point.memory_capacity for point in points]
            capacity_ax.plot(feedbacks, memory, "o-", **look)
            nonlinear = [point.nonlinear_capacity for point in points]
            capacity_ax.plot(feedbacks, nonlinear, "o--", **look)

        past_inputs = infocap.systems.DelayLine(task.memory + 1)
        linear = infocap.tasks.accuracy(past_inputs, task)
        error_ax.axhline(
            linear.nrmse, color="0.4", linestyle="--", linewidth=0.8, label="linear memory alone"
        )
        error_ax.set(ylabel="NRMSE of NARMA10, held out", ylim=(0, 1.05), xlim=(0, 2.1))
        error_ax.legend(loc="lower left")
        for style, label in (("-", "memory"), ("--", "nonlinear")):
            capacity_ax.plot([], [], style, color="0.4", label=label)
        capacity_ax.set(xlabel="feedback", ylabel="capacity")
        capacity_ax.legend(loc="upper left")
        figure.savefig(OUTPUT / "delay-reservoir.png")
    print(f"Written: {OUTPUT / 'delay-reservoir.png'}")


if __name__ == "__main__":
    if "--quick" in sys.argv:
        main(n_nodes=20, n_steps=1000)
    else:
        main()
