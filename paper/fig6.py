"""Figure 6: total capacity against the nonlinear phase, two and five inputs, both lengths, both models."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.photonics import FibreSystem

from ._common import (
    MOST,
    SWEEP,
    Line,
    by_length,
    canvas,
    compared,
    grows,
    lettered,
    line,
    made,
    of_seed,
    spread,
    styled,
    swept,
)
from ._common import QUICK as QUICK_SWEEP
from ._measured import LENGTH_M, OWN, POWER_DBM, TOTAL
from ._work import Work

TITLE = "Total capacity against the nonlinear phase"
PARAMETERS: dict[str, Any] = SWEEP | {
    "powers_dbm": [-9.1, -5.5, -1.9, 1.0, 4.5, 7.1]
}  # -5.5 fills a gap
QUICK = QUICK_SWEEP | {"powers_dbm": [-9.1, -1.9, 1.0, 7.1]}
SHOWN = ("plain", "twin")
OVERLAP = 0.05  # what we let pass for "the curves overlap"


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals with their nonlinear phases and peak powers, and what dispersion and the amplifier's fibre change."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters)
    powers, lengths = data["power_dbm"].values, data["length_m"].values
    systems = [[FibreSystem(power_dbm=p, length_m=length) for length in lengths] for p in powers]
    data["nonlinear_phase"] = (
        ("power_dbm", "length_m"),
        np.array([[system.nonlinear_phase for system in row] for row in systems]),
        {"units": "rad"},
    )
    data["peak_power"] = (
        "power_dbm",
        np.array([row[0].peak_power_w for row in systems]),
        {"units": "W"},
    )
    jobs = {}
    for q in (2, 5):
        same = {
            "n_inputs": q,
            "max_degree": parameters["max_degree"][q],
            "n_samples": parameters["n_samples"][q],
        }
        for model, seed in product(parameters["models"], parameters["seeds"]):
            for change, (power, length) in CHANGES.items():
                jobs[f"fig6_{change}_q{q}_{model}{seed}"] = functools.partial(
                    changed,
                    change,
                    power,
                    length,
                    model=model,
                    seed=seed,
                    tolerance=parameters["tolerance"],
                    **same,
                )
    others = [part.drop_attrs() for part in work.do(jobs).values()]
    attributes = data.attrs
    return xr.merge([data, *others], compat="no_conflicts", join="outer").assign_attrs(attributes)


# What is changed, and where it matters most: dispersion in the long fibre, the amplifier's fibre beside the short one.
CHANGES = {"no_dispersion": (POWER_DBM, 40.0), "with_amplifier": (7.1, 5.0)}


def changed(
    change: str, power_dbm: float, length_m: float, *, model: str, seed: int, n_inputs: int, max_degree: int,
    n_samples: int, tolerance: float,
) -> xr.Dataset:  # fmt: skip
    """The total with the fibre's dispersion switched off, or with the longest effective length of the amplifier."""
    usual = made(model, n_inputs=n_inputs, tolerance=tolerance)(
        power_dbm=power_dbm, length_m=length_m
    )
    new = {"amplifier_length_m": 0.88}
    if (
        change == "no_dispersion"
    ):  # a thousandth of it, and as much as before ahead of the amplifier
        new = {"beta2_ps2_per_km": usual.fibre.beta2_ps2_per_km / 1000,
               "prechirp_length_m": usual.fibre.prechirp_length_m * 1000}  # fmt: skip
    basis = infocap.product_basis("legendre", n_inputs, max_degree)
    found = [
        infocap.probe(system, basis, n_samples, seed=seed, blocks=2, method=SWEEP["method"]).total
        for system in (usual, replace(usual, fibre=replace(usual.fibre, **new)))
    ]
    return of_seed(xr.Dataset({f"{change}_q{n_inputs}": ("which", found)}), model, seed)


@styled
def draw(data: xr.Dataset) -> Figure:
    """One curve for each number of inputs and length; plain model (a) and twin (b), with the measured totals."""
    figure = canvas(78)
    axes = figure.subplots(1, len(SHOWN), sharey=True)
    at = data["nonlinear_phase"].sel(power_dbm=POWER_DBM, length_m=LENGTH_M).item()
    for ax, letter, model in zip(axes, "ab", SHOWN, strict=True):
        for q, colour in zip((5, 2), infocap.plot.COLOURS, strict=False):
            for length, marker, style in zip(
                data["length_m"].values, "os", ("-", "--"), strict=True
            ):
                here = data.sel(length_m=length, model=model)
                total = here[f"total_q{q}"]
                ax.errorbar(
                    here["nonlinear_phase"].values,
                    total.mean("seed").values,
                    total.std("seed").values,
                    marker=marker,
                    linestyle=style,
                    color=colour,
                    markersize=4,
                    markerfacecolor="white" if marker == "s" else colour,
                    label=f"{q} inputs, {length:g} m",
                )
            ax.plot(
                at, TOTAL[q], "*", color="black", markersize=8, label="measured" if q == 2 else None
            )
        for own, power, length in OWN:
            if np.isfinite(power + length):
                phase = FibreSystem(power_dbm=power, length_m=length).nonlinear_phase
                ax.plot(
                    phase,
                    own.total,
                    "P",
                    color="black",
                    markersize=7,
                    label=f"your data, {own.basis.n_inputs} inputs",
                )
        ax.set_xscale("log")
        ax.set_xlabel(r"nonlinear phase $\phi_{NL} = \gamma P_{peak} L$ (rad)")
        lettered(ax, letter, f"{model} model" if model == "plain" else "twin")
    axes[0].set_ylabel(f"total capacity (of {MOST})")
    axes[0].set_ylim(0, None)
    axes[0].legend(loc="upper left")
    return figure


def gap(data: xr.Dataset, n_inputs: int) -> float:
    """Largest difference of the two lengths' totals at equal phase, relative to the mean of both."""
    log_phases = np.log(np.geomspace(*common_phases(data), 50))
    totals = []
    for length in data["length_m"].values:
        at_length = data.sel(length_m=length)
        phase = at_length["nonlinear_phase"].values
        total = at_length[f"total_q{n_inputs}"].mean("seed").values
        totals.append(np.interp(log_phases, np.log(phase), total))
    near, far = totals
    mean = 0.5 * (far + near)
    return float(np.max(np.abs(far - near) / mean))


def check(data: xr.Dataset) -> list[Line]:
    """Peak powers, growth, and whether the nonlinear phase alone decides, for both models."""
    return compared(data, statements)


def statements(data: xr.Dataset) -> list[Line]:
    """The paper's sentences for one model."""
    peak = data["peak_power"].values[[0, -1]]
    lines = [
        line(
            "Peak powers between 2.6 W and 107 W",
            "The peak powers used are in the range 2.6 W - 107 W",
            "2.6 W, 107 W",
            f"{peak[0]:.1f} W, {peak[1]:.0f} W",
            abs(peak[0] - 2.6) < 0.05 and abs(peak[1] - 107) < 1,
            kind="identity",
        )
    ]
    for q in (2, 5):
        total = data[f"total_q{q}"]
        lines.append(
            line(
                f"More power or a longer fibre gives more capacity, {q} inputs",
                "increasing either power or fiber length increases the effective nonlinear phase",
                "total rises with power and with length",
                by_length(total),
                grows(total),
                full=True,
            )
        )
    least = (data["total_q5"] / data["total_q2"]).min().item()
    lines.append(
        line(
            "Two and five inputs follow different curves",
            "the experimental points for 2D and 5D inputs follow different curves",
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
                "the curves for 5m and 40m fiber lengths overlap, suggesting a universal behaviour",
                f"largest gap at equal phase below {OVERLAP:.0%}",
                f"largest gap {found:.0%}, between {common_phases(data)[0]:.2f} and {common_phases(data)[1]:.2f} rad",
                found < OVERLAP,
                full=True,
            )
        )
    for change, said, sentence in (
        ("no_dispersion", "Dispersion has only a small effect", "the dispersion has only a small effect"),
        ("with_amplifier", "The fibre in the amplifier can be ignored",
         "Due to this comparatively small value, EDFA is ignored in simulations"),
    ):  # fmt: skip
        power, length = CHANGES[change]
        shift = [data[f"{change}_q{q}"].diff("which") for q in (2, 5)]
        share = [
            abs(s.mean() / data[f"{change}_q{q}"].isel(which=0).mean()).item()
            for s, q in zip(shift, (2, 5), strict=True)
        ]
        lines.append(
            line(
                f"{said} (total at {power:g} dBm, {length:g} m)",
                sentence,
                "changes both totals by less than 5 %",
                f"2 inputs {spread(shift[0], 2)} ({share[0]:.0%}), 5 inputs {spread(shift[1], 2)} ({share[1]:.0%})",
                max(share) < OVERLAP,
                full=True,
            )
        )
    return lines


def common_phases(data: xr.Dataset) -> tuple[float, float]:
    """From the smallest phase of the longer to the largest of the shorter fibre."""
    phase = data["nonlinear_phase"]
    return phase.isel(length_m=1).min().item(), phase.isel(length_m=0).max().item()
