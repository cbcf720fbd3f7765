"""Figure 5: capacity bars of five inputs over powers and lengths, by the plain model and by the twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from ._common import QUICK as QUICK_SWEEP
from ._common import (
    SWEEP,
    Line,
    bars,
    beyond,
    by_length,
    canvas,
    compared,
    grows,
    line,
    listed,
    result_at,
    styled,
    swept,
)
from ._measured import BY_DEGREE, LENGTH_M, OWN, POWER_DBM, TOTAL
from ._work import Work

TITLE = "Capacity bars of five inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of five inputs at every power and length."""
    return swept(work or Work(), PARAMETERS | changes, inputs=[5])


@styled
def draw(data: xr.Dataset) -> Figure:
    """A row for each power, a column for each model and length, with what was measured and the user's own as dots."""
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    figure = canvas(12 + 38 * len(powers))
    columns = [(model, length) for model in ("plain", "twin") for length in lengths]
    grid = figure.subplots(len(powers), len(columns), sharex=True, sharey=True, squeeze=False)
    degrees = data["degree_q5"].values
    for row, power in zip(grid, powers, strict=True):
        for ax, (model, length) in zip(row, columns, strict=True):
            result = result_at(data, 5, model=model, power_dbm=power, length_m=length)
            bars(result, ax, "", f"{model}, {power:g} dBm, {length:g} m")
            if (power, length) == (POWER_DBM, LENGTH_M):
                ax.plot(degrees, BY_DEGREE, "ko", markersize=3, label=f"measured, {TOTAL[5]:g}")
            for own, *where in OWN:
                if own.basis.n_inputs == 5 and where == [power, length]:
                    own_bars = np.bincount(own.basis.degrees, own.capacity)
                    label = f"your data, {own.total:.1f}"
                    ax.plot(range(len(own_bars)), own_bars, "r^", markersize=3, label=label)
            ax.get_legend().remove()
            if len(ax.get_lines()):
                ax.legend(handles=ax.get_lines(), loc="upper left", fontsize=6)
            ax.label_outer()
    first = grid[0, 0]
    first.legend(
        *first.get_legend_handles_labels(),
        loc="upper left",
        fontsize=6,
        labelspacing=0.2,
        handlelength=1.0,
    )
    first.set_ylim(0, 2.0 * data["by_degree_q5"].max().item())
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
