"""What a task needs next to what a device computes, degree by degree."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..errors import ParameterError
from ..result import CapacityResult
from ..tasks import Demand
from ._style import COLOURS, axes

BAR = 0.4


def demand_supply(demand: Demand, result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Demand and supply by total degree, both between 0 and 1.

    Demand is the share of the target's variance that a degree adds; supply is the capacity of a degree over
    its number of functions, the share of that degree that the device computes.

    >>> import infocap
    >>> import matplotlib.pyplot as plt
    >>> inputs = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> task = infocap.tasks.Task(inputs, inputs[:, 0] * inputs[:, 1] > 0, name="same sign")
    >>> basis = infocap.product_basis("legendre", n_inputs=2, max_degree=4)
    >>> needs = infocap.tasks.demand(task, basis)
    >>> result = infocap.probe(lambda u: u**2, basis, 256, seed=1)
    >>> ax = infocap.plot.demand_supply(needs, result)
    >>> ax.get_xlabel()
    'total degree'
    >>> plt.close(ax.figure)
    """
    if demand.basis.n_inputs != result.basis.n_inputs:
        raise ParameterError(
            f"the task has {demand.basis.n_inputs} inputs and the device {result.basis.n_inputs}; "
            "compare what has as many."
        )
    top = max(demand.basis.max_degree, result.basis.max_degree)
    degrees = np.arange(1, top + 1)
    functions = np.bincount(result.basis.degrees)
    supply = np.bincount(result.basis.degrees, result.capacity) / np.maximum(functions, 1)
    with axes(ax) as ax:
        for shift, values, colour, label in (
            (-BAR / 2, supply, COLOURS[0], "supply: share of the functions computed"),
            (BAR / 2, demand.share, COLOURS[5], "demand: share of the target's variance"),
        ):
            shown = degrees[degrees < len(values)]
            ax.bar(shown + shift, values[shown], width=BAR, color=colour, label=label)
        ax.set_xticks(degrees)
        ax.tick_params(axis="x", length=0)
        ax.set_xlim(0.4, top + 0.6)
        ax.set_ylim(0, 1.28)
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ax.set_xlabel("total degree")
        ax.set_ylabel("share")
        ax.legend(loc="upper right", handlelength=1.0, handletextpad=0.5, borderaxespad=0.1)
        ax.annotate(
            f"{demand.task}: degrees up to {demand.basis.max_degree}\n"
            f"explain {1 - demand.unexplained:.0%} of the target",
            (0.99, 0.74),
            xycoords="axes fraction",
            ha="right",
            va="top",
            color="0.35",
        )
    return ax
