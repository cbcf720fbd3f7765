"""Figure 3: the light along the experiment, and the capacities before and after the fibre."""

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
    bars,
    beyond,
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
from ._work import Work

TITLE = "The light at each stage; capacities before and after the fibre, 6.6 dBm, 5 m"
PARAMETERS: dict[str, Any] = SWEEP | {
    "powers_dbm": [6.6],
    "lengths_m": [0.0, 5.0],
    "shown": [0.9, 0.5],
    "models": ["plain"],
}
QUICK = {name: QUICK_SWEEP[name] for name in ("n_samples", "seeds", "quick")}
SHOWN = infocap.photonics.FibreSystem(power_dbm=6.6, length_m=5.0, n_inputs=2)


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Capacities of five inputs after 0 m and 5 m, and the spectra that one pair of inputs gives."""
    parameters = PARAMETERS | changes
    data = swept(work or Work(), parameters, inputs=[5])
    spectra = SHOWN.readouts(
        np.array([parameters["shown"]]), parameters["lengths_m"], seed=parameters["seeds"][0]
    )
    data["spectrum"] = (("length_m", "wavelength_nm"), np.vstack(spectra), {"units": "mW/nm"})
    return data.assign_coords(wavelength_nm=SHOWN.wavelength_nm)


@styled
def draw(data: xr.Dataset) -> Figure:
    """The stages (a), capacities before (b) and after propagation (c)."""
    figure = canvas(172)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.55, 1])
    panels = infocap.photonics.plot.stages(
        SHOWN, PARAMETERS["shown"], seed=PARAMETERS["seeds"][0], figure=top
    ).axes
    lettered(panels[0], "a", "spectra for $u_1$ = 0.9, $u_2$ = 0.5")
    panels[1].set_title("pulses in time", loc="left")
    panels[2].set_title("what the encoder does", loc="left")
    panels[3].set_title("the same pulses, logarithmic", loc="left")
    axes = bottom.subplots(1, 2, sharey=True)
    for ax, letter, length, name in zip(axes, "bc", (0.0, 5.0), ("before", "after"), strict=True):
        title = f"{name} propagation, five inputs, 6.6 dBm" + (", 5 m" if length else "")
        bars(result_at(data, 5, model="plain", power_dbm=6.6, length_m=length), ax, letter, title)
    axes[0].get_legend().remove()
    axes[0].set_ylim(0, 1.75 * data["by_degree_q5"].max().item())
    axes[1].set_ylabel("")
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """The laser's numbers, and what propagation adds."""
    width, laser = SHOWN.pulse.duration_ps, 61.0
    average_dbm = 10 * np.log10(laser / infocap.photonics.Pulse(power_dbm=0.0).peak_power_w)
    data = data.sel(model="plain")
    by_degree = data["by_degree_q5"].mean("seed")
    before, after = (by_degree.sel(length_m=length).values.ravel() for length in (0.0, 5.0))
    higher = [beyond(data, 5, 3).sel(length_m=length) for length in (0.0, 5.0)]
    total = [data["total_q5"].sel(length_m=length) for length in (0.0, 5.0)]
    found = [(data["capacity_q5"].sel(length_m=length) > 0).sum("term_q5") for length in (0.0, 5.0)]
    # Before the fibre the readouts span 1, |u_i| (5), s_i s_(i+1) of neighbouring bins (5), and s at the edges (2).
    lines = [
        line(
            "A spectrum of 0.6 nm makes pulses of 4.2 ps (FWHM)",
            "pulses with a full width at half maximum (FWHM) of 4.2 ps ... spectral width of 0.6 nm",
            "4.2 ps",
            f"{width:.2f} ps",
            abs(width - 4.2) < 0.05,
            kind="identity",
        ),
        line(
            "The laser's peak power of 61 W",
            "peak power 61 W ... repetition rate 10 MHz",
            "-",
            f"an average of {average_dbm:.1f} dBm before the encoder; the paper gives none to compare with",
            None,
        ),
        line(
            "Capacities before propagation come from detection and filter alone",
            "They are present even without propagating through the fiber",
            "total 13, the functions that these give (tests/apps/test_fibre.py); we allow 0.5",
            f"total {spread(total[0], 2)}",
            abs(total[0].mean() - 13) < 0.5,
            kind="identity",
        ),
        line(
            "Second degree is there without the fibre",
            "the second-degree terms are always maximum even at small powers ... without propagating",
            "largest bar at degree 2",
            f"by degree {listed(before, 2)}",
            int(np.argmax(before)) == 2,
        ),
        line(
            "Additional non-zero capacities appear by propagation",
            "The additional nonzero capacities ... can be attributed to propagation through the fiber.",
            "more functions, more capacity in degrees 3 and above",
            f"{spread(found[0], 0)} functions before, {spread(found[1], 0)} after; {spread(higher[0], 2)} before, "
            f"{spread(higher[1], 2)} after",
            bool(found[1].mean() > found[0].mean() and higher[1].mean() > higher[0].mean()),
        ),
        line(
            "Capacities after propagation, 6.6 dBm, 5 m (no number in the text)",
            "Fig. 3(c)",
            "-",
            f"total {spread(total[1])}; by degree {listed(after, 2)}",
            None,
        ),
    ]
    return finished(data, lines)
