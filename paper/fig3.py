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
    TWINS,
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
# Functions of second degree that take two inputs at once, which only a filter can bring together.
PRODUCT = "P1(u1)·P1(u2)"
PARAMETERS: dict[str, Any] = SWEEP | {
    "powers_dbm": [6.6],
    "lengths_m": [0.0, 5.0],
    "shown": [0.9, 0.5],
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
    basis = infocap.product_basis("legendre", 2, 4)
    for name, used in (("without_filter", None), ("with_filter", "flat-top")):
        encoder = infocap.photonics.Encoder(n_inputs=2, filter=used, phase_noise=None)
        system = infocap.photonics.FibreSystem(power_dbm=6.6, length_m=0.0, encoder=encoder)
        found = infocap.probe(system, basis, 1024, seed=parameters["seeds"][0])
        data[name] = float(found.capacity[list(basis.labels).index(PRODUCT)])
    return data.assign_coords(wavelength_nm=SHOWN.wavelength_nm)


@styled
def draw(data: xr.Dataset) -> Figure:
    """The stages (a), capacities before (b) and after propagation (c), and after it by the twin, in place of (d)."""
    figure = canvas(172)
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.55, 1])
    panels = infocap.photonics.plot.stages(
        SHOWN, PARAMETERS["shown"], seed=PARAMETERS["seeds"][0], figure=top
    ).axes
    lettered(panels[0], "a", "spectra for $u_1$ = 0.9, $u_2$ = 0.5")
    panels[1].set_title("pulses in time", loc="left")
    panels[2].set_title("what the encoder does", loc="left")
    panels[3].set_title("the same pulses, logarithmic", loc="left")
    axes = bottom.subplots(1, 3, sharey=True)
    panels = (("plain", 0.0, "before the fibre"), ("plain", 5.0, "after 5 m"))
    panels += (("twin", 5.0, "after 5 m, twin"),)
    for ax, letter, (model, length, title) in zip(axes, "bcd", panels, strict=True):
        bars(result_at(data, 5, model=model, power_dbm=6.6, length_m=length), ax, letter, title)
        ax.set_ylabel("capacity" if letter == "b" else "")
    for ax in axes[1:]:
        ax.get_legend().remove()
    axes[0].set_ylim(0, 1.8 * data["by_degree_q5"].max().item())
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """The laser's numbers, and what propagation adds."""
    width, laser = SHOWN.pulse.duration_ps, 61.0
    average_dbm = 10 * np.log10(laser / infocap.photonics.Pulse(power_dbm=0.0).peak_power_w)
    twins = data.sel(length_m=5.0)
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
            full=True,
        ),
        line(
            "Second degree is there without the fibre",
            "the second-degree terms are always maximum even at small powers ... without propagating",
            "largest bar at degree 2",
            f"by degree {listed(before, 2)}",
            int(np.argmax(before)) == 2,
        ),
        line(
            "The second-degree terms that join two inputs are due to detection and filter",
            "due to the quadratic detection nonlinearity and the convolution with the instrument filter of the PSF",
            f"without noise and fibre, {PRODUCT} is above 0.9 with the filter and below 0.01 without it",
            f"{data['with_filter'].item():.3f} with, {data['without_filter'].item():.3f} without",
            data["with_filter"].item() > 0.9 and data["without_filter"].item() < 0.01,
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
    for name in TWINS:
        twin = twins.sel(model=name)
        degrees = twin["by_degree_q5"].mean("seed").values.ravel()
        lines.append(
            line(
                f"The same by the fit to another measurement: {name} (no number in the text)",
                "Fig. 3(d), measured",
                "-",
                f"total {spread(twin['total_q5'])}; by degree {listed(degrees, 2)}",
                None,
            )
        )
    return finished(data, lines)
