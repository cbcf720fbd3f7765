"""Figure 1: the two ways to show capacities, as measured, by the plain model, and by the twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import (
    MOST,
    SWEEP,
    Line,
    as_result,
    canvas,
    finished,
    lettered,
    line,
    listed,
    result_at,
    spread,
    styled,
    swept,
)
from ._common import QUICK as QUICK_SWEEP
from ._measured import BY_DEGREE, LENGTH_M, OWN, POWER_DBM, TOTAL, matrix_values
from ._work import Work

TITLE = "Capacity matrix and capacity bars, -1.9 dBm, 40 m: measured, plain model, twin"
PARAMETERS: dict[str, Any] = SWEEP | {"powers_dbm": [POWER_DBM], "lengths_m": [LENGTH_M]}
QUICK = {name: value for name, value in QUICK_SWEEP.items() if name != "powers_dbm"}
MODELS = {
    "plain": "phase noise per 1 GHz cell, as in the authors' program",
    "bin": "phase noise per encoding bin, as in the paper's text",
    "twin": "the twin",
}
CELLS = matrix_values(infocap.product_basis("legendre", 2, SWEEP["max_degree"][2]).indices)


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """The capacities of both conventions of phase noise and of the twin."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters)
    other = swept(work, parameters | {"phase_noise": "bin", "models": ["plain"]}).assign_coords(
        model=["bin"]
    )
    attributes = data.attrs
    return xr.concat([data, other], "model").assign_attrs(attributes)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Matrices of two inputs (a) and bars of five (b): measured, plain model, twin, and data of the user's own."""
    basis = infocap.product_basis("legendre", 2, SWEEP["max_degree"][2])
    twos = {"measured": as_result(CELLS, basis, SWEEP["n_samples"][2], total=TOTAL[2])}
    bars = {"measured": (BY_DEGREE, TOTAL[5])}
    for model, title in (("plain", "plain model"), ("twin", "twin")):
        point = {"model": model, "power_dbm": POWER_DBM, "length_m": LENGTH_M}
        twos[title] = result_at(data, 2, **point)
        here = data.sel(point).mean("seed")
        bars[title] = (here["by_degree_q5"].values, here["total_q5"].item())
    for result, *_ in OWN:
        if result.basis.n_inputs == 2:
            twos["your data"] = result
        else:
            bars["your data"] = (np.bincount(result.basis.degrees, result.capacity), result.total)
    figure = canvas(130)
    tops, bottoms = figure.subplots(
        2, max(len(twos), len(bars)), sharey="row", height_ratios=[1.1, 1]
    )
    for ax, (title, result) in zip(tops, twos.items(), strict=False):
        infocap.plot.capacity_matrix(result, ax, colourbar=False)
        lettered(ax, "a", f"two inputs, {title}")
        ax.set_ylabel("degree in $u_2$" if title == "measured" else "")
    for ax, (title, (values, total)) in zip(bottoms, bars.items(), strict=False):
        ax.bar(range(len(values)), values, color=infocap.plot.COLOURS[0], width=0.75)
        for degree, value in enumerate(values):
            ax.text(degree, value + 0.2, f"{value:.1f}", ha="center", fontsize=6)
        ax.set(xticks=range(len(values)), xlabel="total degree")
        ax.text(0.95, 0.9, f"total {total:.1f} of {MOST}", transform=ax.transAxes, ha="right")
        lettered(ax, "b", f"five inputs, {title}")
    for unused in (*tops[len(twos) :], *bottoms[len(bars) :]):
        unused.set_axis_off()
    bottoms[0].set_ylabel("capacity")
    bottoms[0].set_ylim(0, 1.25 * max(values.max() for values, _ in bars.values()))
    figure.colorbar(tops[0].collections[0], ax=tops, label="capacity", pad=0.01, aspect=30)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """Sizes, totals and profiles next to those of the experiment."""
    functions = [data.sizes[f"term_q{q}"] for q in (2, 5)]
    most = [len(infocap.photonics.FibreSystem(n_inputs=q).wavelength_nm) + 1 for q in (2, 5)]
    lines = [
        line(
            "The basis has 120 functions of 2 inputs (degree 14) and 1287 of 5 (degree 8)",
            "This corresponds to 120 basis terms for 2-dimensional, and 1287 terms for 5-dimensional inputs.",
            "120, 1287",
            listed(functions, 0),
            functions == [120, 1287],
            kind="identity",
        ),
        line(
            "At most 72: 71 spectral readouts and the constant",
            "this gives us 71 spectral bins as readouts ... we append an additional constant readout",
            str(MOST),
            listed(most, 0),
            most == [MOST, MOST],
            kind="identity",
        ),
    ]
    for q in (2, 5):
        for model, said in MODELS.items():
            total = data[f"total_q{q}"].sel(model=model)
            lines.append(
                line(
                    f"Total capacity of the experiment, {q} inputs: {said}",
                    f"{TOTAL[q]} of 72 (Fig. 1)",
                    f"{TOTAL[q]} within 10 %",
                    spread(total),
                    bool(abs(total.mean() / TOTAL[q] - 1) < 0.1),
                    kind="calibrated" if model == "twin" else "agrees",
                    full=True,
                )
            )
    for model, said in MODELS.items():
        here = data.sel(model=model)
        rms = np.sqrt(
            ((here["capacity_q2"] - xr.DataArray(CELLS, dims="term_q2")) ** 2).mean("term_q2")
        )
        by_degree = here["by_degree_q5"].mean("seed").values.ravel()
        common = np.minimum(by_degree / by_degree.sum(), BY_DEGREE / BY_DEGREE.sum()).sum()
        kind = "calibrated" if model == "twin" else "agrees"
        lines += [
            line(
                f"Each capacity of the matrix as measured, 2 inputs: {said}",
                "Fig. 1(a), read from its colours",
                "root mean square difference below 0.05",
                f"{spread(rms, 3)}",
                bool(rms.mean() < 0.05),
                kind=kind,
                full=True,
            ),
            line(
                f"Share of the capacity in each degree as measured, 5 inputs: {said}",
                f"Fig. 1(b), by degree {listed(BY_DEGREE, 2)}",
                "90 % in the same degree",
                f"{common:.0%}; by degree {listed(by_degree, 2)}",
                common >= 0.9,
                kind=kind,
                full=True,
            ),
        ]
    return finished(data, lines)
