"""Figure 5: capacity bars of five inputs over powers and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import QUICK as QUICK_SWEEP
from ._common import SWEEP, Line, beyond, by_length, canvas, grows, line, listed, result_at, styled, swept
from ._work import Work

TITLE = "Capacity bars of five inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of five inputs at every power and length."""
    return swept(work or Work(), PARAMETERS | changes, inputs=[5])


@styled
def draw(data: xr.Dataset) -> Figure:
    """A row of bars for each power, a column for each length, all on one scale."""
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    figure = canvas(12 + 40 * len(powers))
    grid = figure.subplots(len(powers), len(lengths), sharex=True, sharey=True, squeeze=False)
    for row, power in zip(grid, powers, strict=True):
        for ax, length in zip(row, lengths, strict=True):
            infocap.plot.capacity_bars(result_at(data, 5, power_dbm=power, length_m=length), ax)
            ax.set_title(f"{power:g} dBm, {length:g} m")
            ax.label_outer()
            if ax is not grid[0, 0]:
                ax.get_legend().remove()
    grid[0, 0].set_ylim(0, 1.35 * data["by_degree_q5"].max().item())
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Where the capacity lies at low power, and how it spreads."""
    by_degree, total = data["by_degree_q5"], data["total_q5"]
    lowest = by_degree.isel(power_dbm=0)
    mean_degree = (by_degree * data["degree_q5"]).sum("degree_q5") / by_degree.sum("degree_q5")
    largest = lowest.argmax("degree_q5").values
    return [
        line(
            f"At low power ({data['power_dbm'].values[0]:g} dBm) capacity is concentrated in degree 2",
            "degree 2 is the highest bar at both lengths",
            f"highest at degree {listed(largest, 0)}; degree 2 holds "
            + listed(100 * (lowest.sel(degree_q5=2) / lowest.sum("degree_q5")), 0)
            + " % (5 m, 40 m)",
            bool(np.all(largest == 2)),
        ),
        line(
            "With more power and a longer fibre the distribution broadens toward higher degrees",
            "mean degree of the capacity rises with power and with length",
            by_length(mean_degree, 2),
            grows(mean_degree),
        ),
        line(
            "A richer set of nonlinear interactions",
            "capacity in degrees 4 and above rises with power and with length",
            by_length(beyond(data, 5, 4)),
            grows(beyond(data, 5, 4)),
        ),
        line(
            "More power or a longer fibre gives more capacity",
            "total rises with power and with length",
            by_length(total),
            grows(total),
        ),
    ]
