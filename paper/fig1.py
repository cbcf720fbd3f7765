"""Figure 1: the two ways to show capacities, as the authors show them, by the plain model, and by the twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import (
    AUTHORS,
    MOST,
    SWEEP,
    TWINS,
    Line,
    as_result,
    bars,
    canvas,
    circle,
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
from ._measured import BY_DEGREE, LENGTH_M, OWN, POWER_DBM, SOURCE, TOTAL, matrix_values
from ._work import Work

TITLE = "Capacity matrix and capacity bars, -1.9 dBm, 40 m: measured, plain model, twin"
PARAMETERS: dict[str, Any] = SWEEP | {"powers_dbm": [POWER_DBM], "lengths_m": [LENGTH_M]}
QUICK = {name: value for name, value in QUICK_SWEEP.items() if name != "powers_dbm"}
MODELS = {
    "plain": "phase noise per encoding bin, as in the paper's text",
    AUTHORS: "the authors' program, with phase noise per 1 GHz cell",
} | {name: name for name in TWINS}
CELLS = matrix_values(infocap.product_basis("legendre", 2, SWEEP["max_degree"][2]).indices)


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """The capacities of the plain model, of the authors' program and of the twins."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters)
    other = swept(work, parameters | {"models": [AUTHORS]})
    attributes = data.attrs
    return xr.concat([data, other], "model").assign_attrs(attributes)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Matrices of two inputs (a) and bars of five (b): measured, plain model, twin, and data of the user's own.

    Of the measured bars only the sums over degrees are known, not the parts of their three categories.
    """
    basis = infocap.product_basis("legendre", 2, SWEEP["max_degree"][2])
    twos = {"measured": as_result(CELLS, basis, SWEEP["n_samples"][2], total=TOTAL[2])}
    fives = {}
    for model, title in (("plain", "plain model"), ("twin", "twin")):
        point = {"model": model, "power_dbm": POWER_DBM, "length_m": LENGTH_M}
        twos[title] = result_at(data, 2, **point)
        fives[title] = result_at(data, 5, **point)
    for result, *_ in OWN:
        if result.basis.n_inputs == 2:
            twos["your data"] = result
        else:
            fives["your data"] = result
    figure = canvas(140)
    n_columns = max(len(twos), 1 + len(fives))
    tops, bottoms = figure.subplots(2, n_columns, sharey="row", height_ratios=[1, 1])
    for ax, (title, result) in zip(tops, twos.items(), strict=False):
        infocap.plot.capacity_matrix(result, ax, colourbar=False)
        lettered(ax, "a", f"two inputs, {title}")
        ax.set_ylabel("degree in $u_2$" if title == "measured" else "")
    for ax, (title, result) in zip(bottoms[1:], fives.items(), strict=False):
        bars(result, ax, "b", f"five inputs, {title}")
        ax.set_ylabel("")
    measured = bottoms[0]
    measured.bar(range(len(BY_DEGREE)), BY_DEGREE, color="0.6", width=0.75)
    for degree, value in enumerate(BY_DEGREE):
        measured.text(degree, value + 0.2, f"{value:.1f}", ha="center", fontsize=6)
    measured.set(xticks=range(len(BY_DEGREE)), xlabel="total degree")
    circle(measured, TOTAL[5])
    lettered(measured, "b", "five inputs, measured")
    for unused in (*tops[len(twos) :], *bottoms[1 + len(fives) :]):
        unused.set_axis_off()
    measured.set_ylabel("capacity")
    highest = max(np.bincount(one.basis.degrees, one.capacity).max() for one in fives.values())
    measured.set_ylim(0, 1.8 * max(highest, BY_DEGREE.max()))
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
                    f"{TOTAL[q]} of 72 ({SOURCE})",
                    f"{TOTAL[q]} within 10 %",
                    spread(total),
                    bool(abs(total.mean() / TOTAL[q] - 1) < 0.1),
                    kind="calibrated" if model in TWINS else "agrees",
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
        kind = "calibrated" if model in TWINS else "agrees"
        lines += [
            line(
                f"Each capacity of the matrix as measured, 2 inputs: {said}",
                f"matrix, read from its colours ({SOURCE})",
                "root mean square difference below 0.05",
                f"{spread(rms, 3)}",
                bool(rms.mean() < 0.05),
                kind=kind,
                full=True,
            ),
            line(
                f"Share of the capacity in each degree as measured, 5 inputs: {said}",
                f"by degree {listed(BY_DEGREE, 2)} ({SOURCE})",
                "90 % in the same degree",
                f"{common:.0%}; by degree {listed(by_degree, 2)}",
                common >= 0.9,
                kind=kind,
                full=True,
            ),
        ]
    return finished(data, lines)
