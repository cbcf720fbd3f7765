"""Figure 4: capacity matrices of two inputs over powers and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import QUICK as QUICK_SWEEP
from ._common import SWEEP, Line, beyond, by_length, canvas, grows, line, result_at, rises, styled, swept
from ._work import Work

TITLE = "Capacity matrices of two inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of two inputs at every power and length."""
    return swept(work or Work(), PARAMETERS | changes, inputs=[2])


@styled
def draw(data: xr.Dataset) -> Figure:
    """A row of matrices for each length, a column for each power."""
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    figure = canvas(84)
    grid = figure.subplots(len(lengths), len(powers), sharex=True, sharey=True, squeeze=False)
    for row, length in zip(grid, lengths, strict=True):
        for ax, power in zip(row, powers, strict=True):
            result = result_at(data, 2, power_dbm=power, length_m=length)
            infocap.plot.capacity_matrix(result, ax, colourbar=False)
            ax.set_title(f"{power:g} dBm, {length:g} m")
            ax.label_outer()
            ax.set_xticks(range(0, 15, 4))
            ax.set_yticks(range(0, 15, 4))
    figure.colorbar(grid[0, 0].collections[0], ax=grid, label="capacity", pad=0.01, aspect=40)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Which degrees are there at which power."""
    high, total = beyond(data, 2, 6), data["total_q2"]
    lowest = (high / total).isel(power_dbm=0)
    second = data["capacity_q2"].isel(term_q2=slice(3, 6))  # functions come by degree: 1, then 2, then 3 of them
    return [
        line(
            f"At low power ({data['power_dbm'].values[0]:g} dBm) there are only low degrees",
            "less than 5 % of the total in degrees 6 and above",
            by_length(100 * lowest.expand_dims("power_dbm")) + " %",
            bool(np.all(lowest < 0.05)),
        ),
        line(
            "Second-degree terms are always at their maximum, even at small powers",
            "all three above 0.9 at every setting",
            f"smallest {second.min().item():.3f}",
            second.min().item() > 0.9,
        ),
        line(
            "Higher-order terms emerge and grow as the power increases",
            "capacity in degrees 6 and above rises with power, at both lengths",
            by_length(high, 2),
            rises(high.transpose("power_dbm", "length_m").values),
        ),
        line(
            "More power or a longer fibre gives more capacity",
            "total rises with power and with length",
            by_length(total),
            grows(total),
        ),
    ]
