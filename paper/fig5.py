"""Figure 5: capacity bars of five inputs over powers and lengths, by the plain model and by the twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import QUICK as QUICK_SWEEP
from ._common import (
    SWEEP,
    Line,
    beyond,
    by_length,
    canvas,
    compared,
    grows,
    line,
    listed,
    styled,
    swept,
)
from ._measured import BY_DEGREE, LENGTH_M, OWN, POWER_DBM
from ._work import Work

TITLE = "Capacity bars of five inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of five inputs at every power and length."""
    return swept(work or Work(), PARAMETERS | changes, inputs=[5])


@styled
def draw(data: xr.Dataset) -> Figure:
    """A row for each power, a column for each length; plain model, twin and, where there is one, measurement."""
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    figure = canvas(12 + 34 * len(powers))
    grid = figure.subplots(len(powers), len(lengths), sharex=True, sharey=True, squeeze=False)
    degrees = data["degree_q5"].values
    for row, power in zip(grid, powers, strict=True):
        for ax, length in zip(row, lengths, strict=True):
            here = data.sel(power_dbm=power, length_m=length).mean("seed")
            bars = {}
            for model in data["model"].values:
                one = here.sel(model=model)
                bars[f"{model}, total {one['total_q5'].item():.1f}"] = one["by_degree_q5"]
            if (power, length) == (POWER_DBM, LENGTH_M):
                bars["measured, total 39.1"] = BY_DEGREE
            for own, *where in OWN:
                if own.basis.n_inputs == 5 and where == [power, length]:
                    bars[f"your data, total {own.total:.1f}"] = np.bincount(
                        own.basis.degrees, own.capacity
                    )
            for place, (label, values) in enumerate(bars.items()):
                colour = ("0.6", infocap.plot.COLOURS[5], "black", infocap.plot.COLOURS[2])[place]
                ax.bar(
                    degrees + 0.8 / len(bars) * (place - (len(bars) - 1) / 2),
                    values,
                    0.78 / len(bars),
                    color=colour,
                    label=label,
                )
            ax.set_title(f"{power:g} dBm, {length:g} m")
            ax.set(xlabel="total degree", ylabel="capacity", xticks=degrees)
            ax.label_outer()
            ax.legend(loc="upper right")
    grid[0, 0].set_ylim(0, 1.1 * data["by_degree_q5"].max().item())
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Where the capacity lies at low power, and how it spreads, for both models."""
    return compared(data, statements)


def statements(data: xr.Dataset) -> list[Line]:
    """The paper's sentences for one model."""
    by_degree, total = data["by_degree_q5"], data["total_q5"]
    lowest = by_degree.isel(power_dbm=0).mean("seed")
    mean_degree = (by_degree * data["degree_q5"]).sum("degree_q5") / by_degree.sum("degree_q5")
    largest = lowest.argmax("degree_q5").values
    sentence = (
        "the distribution broadens toward higher total degrees, "
        "reflecting a richer set of nonlinear interactions"
    )
    return [
        line(
            f"At low power ({data['power_dbm'].values[0]:g} dBm) capacity is concentrated in degree 2",
            "At low power, capacity is again concentrated in degree 2 terms",
            "degree 2 is the highest bar at both lengths",
            f"highest at degree {listed(largest, 0)}; degree 2 holds "
            + listed(100 * (lowest.sel(degree_q5=2) / lowest.sum("degree_q5")), 0)
            + " % (5 m, 40 m)",
            bool(np.all(largest == 2)),
        ),
        line(
            "With more power and a longer fibre the distribution broadens toward higher degrees",
            sentence,
            "mean degree of the capacity rises with power and with length",
            by_length(mean_degree, 2),
            grows(mean_degree),
            full=True,
        ),
        line(
            "A richer set of nonlinear interactions",
            sentence,
            "capacity in degrees 4 and above rises with power and with length",
            by_length(beyond(data, 5, 4)),
            grows(beyond(data, 5, 4)),
            full=True,
        ),
        line(
            "More power or a longer fibre gives more capacity",
            "increasing either power or fiber length ... shifts capacity ... toward a ... higher-order profile",
            "total rises with power and with length",
            by_length(total),
            grows(total),
            full=True,
        ),
    ]
