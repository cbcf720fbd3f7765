"""Figure 6: total capacity against the nonlinear phase, two and five inputs, both lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.systems import FibreSystem

from ._common import MOST, SWEEP, Line, by_length, canvas, grows, line, styled, swept
from ._common import QUICK as QUICK_SWEEP
from ._work import Work

TITLE = "Total capacity against the nonlinear phase"
PARAMETERS: dict[str, Any] = SWEEP | {"powers_dbm": [-9.1, -5.5, -1.9, 1.0, 4.5, 7.1]}  # -5.5 fills a gap
QUICK = QUICK_SWEEP | {"powers_dbm": [-9.1, -1.9, 1.0, 7.1]}
OVERLAP = 0.05  # what we let pass for "the curves overlap"


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals with their nonlinear phases and peak powers."""
    data = swept(work or Work(), PARAMETERS | changes)
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    systems = [[FibreSystem(power_dbm=p, length_m=length) for length in lengths] for p in powers]
    data["nonlinear_phase"] = (
        ("power_dbm", "length_m"),
        np.array([[system.nonlinear_phase for system in row] for row in systems]),
        {"units": "rad"},
    )
    data["peak_power"] = ("power_dbm", np.array([row[0].peak_power_w for row in systems]), {"units": "W"})
    return data


@styled
def draw(data: xr.Dataset) -> Figure:
    """One curve for each number of inputs and length."""
    figure = canvas(82, 120)
    ax = figure.subplots()
    for q, colour in zip((5, 2), infocap.plot.COLOURS, strict=False):
        for length, marker, style in zip(data["length_m"].values, "os", ("-", "--"), strict=True):
            here = data.sel(length_m=length)
            ax.plot(
                here["nonlinear_phase"],
                here[f"total_q{q}"],
                marker=marker,
                linestyle=style,
                color=colour,
                markersize=4,
                markerfacecolor="white" if marker == "s" else colour,
                label=f"{q} inputs, {length:g} m",
            )
    ax.set_xscale("log")
    ax.set_xlabel(r"nonlinear phase $\phi_{NL} = \gamma P_{peak} L$ (rad)")
    ax.set_ylabel(f"total capacity (of {MOST})")
    ax.set_ylim(0, None)
    ax.legend(loc="upper left")
    return figure


def gap(data: xr.Dataset, n_inputs: int) -> float:
    """Largest difference of the two lengths' totals at equal phase, relative to the mean of both."""
    (phase, total), (far_phase, far_total) = (
        (data["nonlinear_phase"].sel(length_m=length), data[f"total_q{n_inputs}"].sel(length_m=length))
        for length in data["length_m"].values
    )
    at = np.geomspace(*common_phases(data), 50)
    near, far = (np.interp(np.log(at), np.log(p.values), t.values) for p, t in ((phase, total), (far_phase, far_total)))
    return float(np.max(np.abs(far - near) / (0.5 * (far + near))))


def check(data: xr.Dataset) -> list[Line]:
    """Peak powers, growth, and whether the nonlinear phase alone decides."""
    peak = data["peak_power"].values[[0, -1]]
    lines = [
        line(
            "Peak powers between 2.6 W and 107 W",
            "2.6 W, 107 W",
            f"{peak[0]:.1f} W, {peak[1]:.0f} W",
            abs(peak[0] - 2.6) < 0.05 and abs(peak[1] - 107) < 1,
        )
    ]
    for q in (2, 5):
        total = data[f"total_q{q}"]
        lines.append(
            line(
                f"More power or a longer fibre gives more capacity, {q} inputs",
                "total rises with power and with length",
                by_length(total),
                grows(total),
            )
        )
    least = (data["total_q5"] / data["total_q2"]).min().item()
    lines.append(
        line(
            "Two and five inputs follow different curves",
            "five inputs above two everywhere",
            f"at least {least:.2f} times as much",
            least > 1,
        )
    )
    for q in (2, 5):
        found = gap(data, q)
        lines.append(
            line(
                f"The curves for 5 m and 40 m overlap, {q} inputs",
                f"largest gap at equal phase below {OVERLAP:.0%}",
                f"largest gap {found:.0%}, between {common_phases(data)[0]:.2f} and {common_phases(data)[1]:.2f} rad",
                found < OVERLAP,
            )
        )
    return lines


def common_phases(data: xr.Dataset) -> tuple[float, float]:
    """From the smallest phase of the longer to the largest of the shorter fibre."""
    phase = data["nonlinear_phase"]
    return phase.isel(length_m=1).min().item(), phase.isel(length_m=0).max().item()
