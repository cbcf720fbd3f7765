"""Figure 1: the two ways to show capacities, a matrix for two inputs and bars for five."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import MOST, SWEEP, Line, canvas, lettered, line, listed, result_at, styled, swept
from ._common import QUICK as QUICK_SWEEP
from ._work import Work

TITLE = "Capacity matrix and capacity bars, -1.9 dBm, 40 m"
PARAMETERS: dict[str, Any] = SWEEP | {"powers_dbm": [-1.9], "lengths_m": [40.0]}
QUICK = {name: value for name, value in QUICK_SWEEP.items() if name != "powers_dbm"}
# Of the experiment, as the paper's figure shows it.
MEASURED_TOTAL = {2: 18.5, 5: 39.1}
MEASURED_BY_DEGREE = np.array([1, 4.47, 12.76, 7.38, 12.58, 0.12, 0.61, 0, 0.19])


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """The capacities with the phase noise of each 1 GHz cell, and the totals with that of each encoding bin."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters)
    other = swept(work, parameters | {"phase_noise": "bin"})
    for q in (2, 5):
        data[f"total_noise_per_bin_q{q}"] = other[f"total_q{q}"]
    return data


@styled
def draw(data: xr.Dataset) -> Figure:
    """Matrix (a) and bars (b)."""
    power, length = PARAMETERS["powers_dbm"][0], PARAMETERS["lengths_m"][0]
    figure = canvas(74)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    infocap.plot.capacity_matrix(result_at(data, 2, power_dbm=power, length_m=length), left)
    infocap.plot.capacity_bars(result_at(data, 5, power_dbm=power, length_m=length), right)
    right.set_ylim(0, 1.5 * data["by_degree_q5"].max().item())  # the legend stands above the bars
    lettered(left, "a", "two inputs")
    lettered(right, "b", "five inputs")
    figure.suptitle("-1.9 dBm, 40 m of fibre, simulated", fontsize=8)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Sizes, totals and the profile over degrees next to those of the experiment."""
    functions = [data.sizes[f"term_q{q}"] for q in (2, 5)]
    most = [len(infocap.systems.FibreSystem(n_inputs=q).wavelength_nm) + 1 for q in (2, 5)]
    lines = [
        line(
            "The basis has 120 functions of 2 inputs (degree 14) and 1287 of 5 (degree 8)",
            "120, 1287",
            listed(functions, 0),
            functions == [120, 1287],
        ),
        line(
            "At most 72: 71 spectral readouts and the constant",
            str(MOST),
            listed(most, 0),
            most == [MOST, MOST],
        ),
    ]
    for q in (2, 5):
        cell, bins = data[f"total_q{q}"].item(), data[f"total_noise_per_bin_q{q}"].item()
        lines.append(
            line(
                f"Total capacity of the experiment, {q} inputs",
                f"{MEASURED_TOTAL[q]} within 10 %",
                f"{cell:.1f} (phase noise per 1 GHz cell); {bins:.1f} if it is per encoding bin",
                abs(cell / MEASURED_TOTAL[q] - 1) < 0.1,
            )
        )
    by_degree = data["by_degree_q5"].values.ravel()
    common = np.minimum(by_degree / by_degree.sum(), MEASURED_BY_DEGREE / MEASURED_BY_DEGREE.sum()).sum()
    lines.append(
        line(
            "Share of the capacity in each degree as in the experiment, 5 inputs",
            f"by degree {listed(MEASURED_BY_DEGREE, 2)}; 90 % in the same degree",
            f"by degree {listed(by_degree, 2)}; {common:.0%} in the same degree",
            common >= 0.9,
        )
    )
    return lines
