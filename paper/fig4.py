"""Figure 4: capacity matrices of two inputs over powers and lengths, by the plain model and by the twin."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.photonics import FibreSystem

from ._common import (
    HALVES,
    SWEEP,
    TWINS,
    Line,
    as_result,
    beyond,
    by_length,
    canvas,
    compared,
    finished,
    grows,
    line,
    listed,
    made,
    result_at,
    rises,
    styled,
    swept,
)
from ._common import QUICK as QUICK_SWEEP
from ._measured import LENGTH_M, POWER_DBM, TOTAL, matrix_values
from ._work import Work

TITLE = "Capacity matrices of two inputs over power and length"
PARAMETERS: dict[str, Any] = SWEEP
QUICK = QUICK_SWEEP


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of two inputs at every power and length, and what makes degrees 6 and above at the lowest power."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters, inputs=[2])
    jobs = {}
    for change in CHANGES:
        for length in parameters["lengths_m"]:
            jobs[f"fig4_{change}_{length:g}m"] = functools.partial(
                high_degrees,
                change,
                parameters["powers_dbm"][0],
                length,
                max_degree=parameters["max_degree"][2],
                n_samples=parameters["n_samples"][2],
                tolerance=parameters["tolerance"],
                seed=parameters["seeds"][0],
            )
    shares = [part.drop_attrs() for part in work.do(jobs).values()]
    attributes = data.attrs
    return xr.merge([data, *shares], compat="no_conflicts", join="outer").assign_attrs(attributes)


def without_noise(**settings: Any) -> FibreSystem:
    """The plain model without phase noise."""
    return made("plain", phase_noise=None)(**settings)


def with_noise_of_cells(**settings: Any) -> FibreSystem:
    """The plain model with phase noise in each 1 GHz cell, which disturbs every reading."""
    return made("plain", phase_noise="cell")(**settings)


def with_equal_bins(model: str, **settings: Any) -> FibreSystem:
    """A twin whose encoder is calibrated equally well in all bins."""
    twin = made(model)(**settings)
    encoder = replace(twin.encoder, exponent_spread=0.0, phase_spread_rad=0.0)
    return replace(twin, encoder=encoder)


# What is changed, and what the changed system is called.
CHANGES = {
    "without_noise": without_noise,
    "noise_of_cells": with_noise_of_cells,
} | {f"equal_bins_{name}": functools.partial(with_equal_bins, name) for name in TWINS}


def high_degrees(
    change: str,
    power_dbm: float,
    length_m: float,
    *,
    max_degree: int,
    n_samples: int,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """The share of the total in degrees 6 and above of a changed system."""
    system = CHANGES[change](
        power_dbm=power_dbm, length_m=length_m, n_inputs=2, tolerance=tolerance
    )
    basis = infocap.product_basis("legendre", 2, max_degree)
    method = SWEEP["method"]
    result = infocap.probe(system, basis, n_samples, seed=seed, blocks=HALVES, method=method)
    share = result.capacity[basis.degrees >= 6].sum() / result.total
    return xr.Dataset(
        {f"high_degrees_{change}": ("length_m", [share])}, coords={"length_m": [length_m]}
    )


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
    """Which degrees are there at which power, for both models; and what makes the high ones at low power."""
    shares = {change: 100 * data[f"high_degrees_{change}"].values for change in CHANGES}
    of_twins = [f"{name}: {listed(shares[f'equal_bins_{name}'])} %" for name in TWINS]
    found = {
        "the plain model without phase noise": f"{listed(shares['without_noise'])} %",
        "the plain model with phase noise per 1 GHz cell": f"{listed(shares['noise_of_cells'])} %",
        "the twins with equal bins": "; ".join(of_twins),
    }
    causes = []
    for changed, text in found.items():
        statement = f"Degrees 6 and above at the lowest power, 5 m and 40 m: {changed}"
        causes.append(line(statement, "-", "-", text, None))
    return compared(data, statements) + finished(data, causes)


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
