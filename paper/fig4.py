"""Figure 4: capacity matrices of two inputs over powers and lengths, by the plain model and by the twin."""

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
    as_result,
    beyond,
    by_length,
    canvas,
    compared,
    grows,
    line,
    result_at,
    rises,
    styled,
    swept,
)
from ._measured import LENGTH_M, POWER_DBM, TOTAL, matrix_values
from ._work import Work

TITLE = "Capacity matrices of two inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of two inputs at every power and length."""
    return swept(work or Work(), PARAMETERS | changes, inputs=[2])


@styled
def draw(data: xr.Dataset) -> Figure:
    """A row of matrices for each model and length, a column for each power; the measured one beside its own."""
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    figure = canvas(146)
    rows = [(model, length) for model in ("plain", "twin") for length in lengths]
    grid = figure.subplots(len(rows), len(powers) + 1, sharex=True, sharey=True, squeeze=False)
    for row, (model, length) in zip(grid, rows, strict=True):
        for ax, power in zip(row, powers, strict=False):
            result = result_at(data, 2, model=model, power_dbm=power, length_m=length)
            infocap.plot.capacity_matrix(result, ax, colourbar=False)
            ax.set_title(f"{model}, {length:g} m\n{power:g} dBm", fontsize=7)
            ax.label_outer()
        row[-1].set_axis_off()
    measured = grid[-1, -1]
    measured.set_axis_on()
    basis = infocap.product_basis("legendre", 2, SWEEP["max_degree"][2])
    known = as_result(matrix_values(basis.indices), basis, SWEEP["n_samples"][2], total=TOTAL[2])
    infocap.plot.capacity_matrix(known, measured, colourbar=False)
    measured.set_title(f"measured, {LENGTH_M:g} m\n{POWER_DBM:g} dBm", fontsize=7)
    measured.label_outer()
    for ax in grid.flat:
        ax.set_xticks(range(0, 15, 4))
        ax.set_yticks(range(0, 15, 4))
    figure.colorbar(grid[0, 0].collections[0], ax=grid, label="capacity", pad=0.01, aspect=60)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Which degrees are there at which power, for both models."""
    return compared(data, statements)


def statements(data: xr.Dataset) -> list[Line]:
    """The paper's sentences for one model."""
    high, total = beyond(data, 2, 6), data["total_q2"]
    lowest = 100 * (high / total).isel(power_dbm=[0])
    second = data["capacity_q2"].isel(
        term_q2=slice(3, 6)
    )  # functions come by degree: 1, then 2, then 3 of them
    return [
        line(
            f"At low power ({data['power_dbm'].values[0]:g} dBm) there are only low degrees",
            "At low powers, the capacity matrices contain only low-degree terms.",
            "less than 5 % of the total in degrees 6 and above",
            by_length(lowest) + " %",
            bool(np.all(lowest.mean("seed") < 5)),
            full=True,
        ),
        line(
            "Second-degree terms are always at their maximum, even at small powers",
            "the second-degree terms are always maximum even at small powers",
            "all three above 0.9 at every setting",
            f"smallest {second.min().item():.3f}",
            second.min().item() > 0.9,
        ),
        line(
            "Higher-order terms emerge and grow as the power increases",
            "As the power increases, higher-order terms emerge and grow in magnitude",
            "capacity in degrees 6 and above rises with power, at both lengths",
            by_length(high, 2),
            rises(high.mean("seed").transpose("power_dbm", "length_m").values),
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
