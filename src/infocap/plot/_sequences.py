"""Sequences in pictures: what is remembered how long, and how memory is traded for nonlinearity."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ..result._capacity_result import CapacityResult
from ._style import COLOURS, GREY, SOFT, axes, stack

MOST_LINES = 4  # Lines of higher degrees of one delayed input lie on each other near zero.
VISIBLE = 0.005  # The share of the highest bar that is one pixel high; the axis ends where bars become lower.
SMALL = (
    0.02  # The end of a scale of capacities at least: smaller ones are not worth a bright colour.
)


def memory_function(result: CapacityResult, ax: Axes | None = None, *, input: int = 1) -> Axes:  # noqa: A002
    """Capacity of one delayed input by its delay, one line per degree, with bands of two standard errors.

    Cosine and sine of a phase have a line each. Points of functions that are not significant are empty.

    >>> result = infocap.probe(infocap.systems.EchoState(4), infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.memory_function(result).get_xlabel()
    'delay'
    """
    basis = result.basis
    alone = (basis.interactions == 1) & (basis.indices[:, 0] == input - 1)
    kinds = sorted(
        {*zip(basis.degrees[alone].tolist(), basis.indices[alone, 2].tolist(), strict=True)}
    )
    longest, name = 0, basis.names[input - 1]
    with axes(ax) as ax:
        for (degree, index), colour in zip(kinds[:MOST_LINES], COLOURS, strict=False):
            alike = [one for of_degree, one in kinds if of_degree == degree]  # cosine and sine
            table = result.memory_function(degree, input).iloc[alike.index(index) :: len(alike)]
            delays, values = table.index.to_numpy(), table["capacity"].to_numpy()
            if degree > 1 and not values.any():
                continue
            longest = max(longest, *delays[values > VISIBLE].tolist(), 0)
            called = (
                f"degree {degree}"
                if len(alike) == 1
                else basis.families[input - 1].label(index, name)
            )
            look: Any = {"color": colour, "markersize": 2.5, "markeredgewidth": 0.6}
            ax.plot(delays, values, "o-", markerfacecolor="white", label=called, **look)
            ax.plot(delays[values > 0], values[values > 0], "o", **look)
            if "standard_error" in table:
                width = 2 * table["standard_error"].to_numpy()
                low, high = np.clip(values - width, 0, 1), np.clip(values + width, 0, 1)
                ax.fill_between(delays, low, high, color=colour, alpha=0.25, linewidth=0)
        end = (
            min(basis.memory, 1.5 * longest + 3) + 0.5
        )  # where nothing is remembered any more, nothing is to be seen
        ax.set(ylabel="capacity", ylim=(0, 1.05), xlim=(-0.5, end))
        ax.set_xlabel("delay" if basis.n_inputs == 1 else f"delay of {name}")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
    return ax


def degree_bars(results: Any, ax: Axes | None = None) -> Axes:
    """Capacity stacked by degree, one bar per result, the rank as a line; without the constant, as is usual.

    `results` is what `infocap.sweep` gave, a mapping from what was changed, such as the spectral radius, to the result,
    a list of results, or one.

    >>> result = infocap.probe(infocap.systems.EchoState(4), infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.degree_bars({0.8: result, 0.9: result}).get_ylabel()
    'capacity without the constant'
    """
    settings = getattr(results, "settings", {})  # of a sweep, which gives pairs of them and results
    named = dict(results) if isinstance(results, Mapping) else {}
    for k, one in enumerate(
        [results] if isinstance(results, CapacityResult) else () if named else results
    ):
        named |= {", ".join(map(str, one[0].values())): one[1]} if settings else {k + 1: one}
    places, every = np.arange(len(named)), list(named.values())
    with axes(ax) as ax:
        sums = pd.DataFrame([np.bincount(one.basis.degrees, one.capacity) for one in every]).fillna(
            0.0
        )
        base = stack(ax, sums.loc[:, 1:].rename(columns="degree {}".format), COLOURS, 0.8)
        errors = [one.total_standard_error for one in every if one.total_standard_error is not None]
        if len(errors) == len(every):
            ax.errorbar(places, base, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        rank = [one.rank - (one.maximum > one.n_readouts) for one in every]
        ax.hlines(
            rank,
            places - 0.5,
            places + 0.5,
            color=SOFT,
            linestyle="--",
            label="rank of the readouts",
        )
        ax.set(xticks=places, ylabel="capacity without the constant", xlim=(-0.7, len(every) - 0.3))
        ax.set_xlabel(", ".join(settings).replace("_", " "))
        ax.set_xticklabels([str(name) for name in named] if len(every) > 1 else [""])
        ax.set_ylim(0, 1.05 * max(*rank, *base))
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def delay_matrix(result: CapacityResult, ax: Axes | None = None, *, input: int = 1) -> Axes:  # noqa: A002
    """Capacities of degree 2 by both delays, squares of one delay on the diagonal; each pair is shown once.

    >>> result = infocap.probe(infocap.systems.EchoState(4), infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.delay_matrix(result).get_xlabel()
    'longer delay'
    """
    values = result.delay_matrix(input)
    values[np.triu_indices(len(values), 1)] = np.nan
    with axes(ax, aspect=0.8) as ax:
        colours = mpl.colormaps["viridis"].with_extremes(bad="white")
        largest = max(float(np.nanmax(values)), SMALL)
        image = ax.imshow(values.T, origin="lower", cmap=colours, vmin=0.0, vmax=largest)
        ax.set(xlabel="longer delay", ylabel="shorter delay")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        ax.figure.colorbar(image, ax=ax, label="capacity", pad=0.03, fraction=0.046)
    return ax


def capacity_by_delay(result: CapacityResult, ax: Axes | None = None) -> Axes:
    """Capacity by the largest delay of a function, stacked by degree: where memory is traded for nonlinearity.

    >>> result = infocap.probe(infocap.systems.EchoState(4), infocap.delayed_basis(max_delay={1: 8, 2: 3}), 600, seed=1)
    >>> infocap.plot.capacity_by_delay(result).get_xlabel()
    'largest delay'
    """
    table = result.by_delay()
    with axes(ax) as ax:
        base = stack(ax, table.rename(columns="degree {}".format), COLOURS, 1.0)
        shown = np.flatnonzero(base > VISIBLE * base.max())
        ax.set(
            xlabel="largest delay",
            ylabel="capacity",
            xlim=(-0.6, (shown[-1] if len(shown) else 0) + 0.6),
        )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
        ax.grid(axis="y", color=GREY, linewidth=0.4)
        ax.set_axisbelow(True)
    return ax
