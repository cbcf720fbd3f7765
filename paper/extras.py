"""Extras: the sweeps of figures 4 to 6 with error bars, and the total that noise allows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.photonics import FibreSystem

from ._common import QUICK as QUICK_SWEEP
from ._common import (
    SWEEP,
    Line,
    bars,
    by_length,
    canvas,
    finished,
    joined,
    lettered,
    line,
    listed,
    points,
    result_at,
    styled,
    swept,
)
from ._work import Work

TITLE = "The twin's sweeps with error bars, and the total that noise allows"
PARAMETERS: dict[str, Any] = SWEEP | {
    "method": "control-variate",
    "models": ["twin"],
    "seeds": [1],  # its own error bars say the rest
    "n_repeated": {2: 8192, 5: 8192},  # inputs measured twice
}
QUICK: dict[str, Any] = QUICK_SWEEP | {
    "powers_dbm": [-9.1, 4.5],
    "n_samples": {2: 4096, 5: 2048},  # with fewer, what lies beyond degree 14 passes for capacity
    "max_degree": {2: 14, 5: 6},
    "n_repeated": {2: 2048, 5: 2048},
}


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals by the control-variate estimator and by Algorithm 1, and from repeats."""
    work, parameters = work or Work(), PARAMETERS | changes
    data = swept(work, parameters)
    plain = swept(work, parameters | {"method": SWEEP["method"]})
    jobs = {}
    for q in (2, 5):
        for power, length in points(parameters):
            jobs[f"extras_q{q}_{power:+g}dBm_{length:g}m_repeats"] = functools.partial(
                noise_limit,
                power,
                length,
                n_inputs=q,
                n_repeated=parameters["n_repeated"][q],
                tolerance=parameters["tolerance"],
                seed=parameters["seeds"][0],
            )
    limits = joined(work.do(jobs).values(), parameters)
    data = xr.merge([data, limits], combine_attrs="drop")
    for q in (2, 5):
        data[f"algorithm_1_q{q}"] = plain[f"total_q{q}"]
    data.attrs = limits.attrs
    return data


def noise_limit(
    power_dbm: float,
    length_m: float,
    *,
    n_inputs: int,
    n_repeated: int,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """The total over a complete basis, from two measurements at the same random inputs."""
    system = FibreSystem.published(
        power_dbm=power_dbm, length_m=length_m, n_inputs=n_inputs, tolerance=tolerance
    )
    u = infocap.draw(
        infocap.product_basis("legendre", n_inputs, 1), n_repeated, design="random", seed=seed
    )
    found = infocap.dimension.from_repeats(*(system(u, seed=seed + repeat) for repeat in (1, 2)))
    return xr.Dataset(
        {
            f"noise_limit_q{n_inputs}": (("power_dbm", "length_m"), [[found.total]]),
            f"noise_limit_error_q{n_inputs}": (("power_dbm", "length_m"), [[found.standard_error]]),
        },
        coords={"power_dbm": [power_dbm], "length_m": [length_m]},
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """Totals of the twin over power for each number of inputs (a, b), and bars at the highest power (c, d)."""
    figure = canvas(135)
    whole, data = data, data.isel(model=0, seed=0)
    axes = figure.subplots(2, 2)
    for ax, letter, q in zip(axes[0], "ab", (2, 5), strict=True):
        for length, colour in zip(
            data["length_m"].values, (infocap.plot.COLOURS[k] for k in (0, 5)), strict=True
        ):
            here = data.sel(length_m=length)
            power = here["power_dbm"]
            ax.errorbar(
                power,
                here[f"total_q{q}"],
                1.96 * here[f"total_standard_error_q{q}"],
                fmt="o-",
                color=colour,
                markersize=4,
                capsize=2,
                label=f"control-variate, {length:g} m",
            )
            ax.plot(
                power, here[f"algorithm_1_q{q}"], "s:", color=colour, markersize=4, markerfacecolor="white",
                label=f"Algorithm 1, {length:g} m",
            )  # fmt: skip
            ax.errorbar(
                power, here[f"noise_limit_q{q}"], 1.96 * here[f"noise_limit_error_q{q}"], fmt="_--",
                color=colour, markersize=7, linewidth=0.8, label=f"noise allows, {length:g} m",
            )  # fmt: skip
        ax.set_xlabel("average power (dBm)")
        ax.set_ylabel("total capacity (of 72)")
        ax.set_ylim(0, None)
        lettered(ax, letter, f"{q} inputs, 95 % error bars")
    axes[0, 1].legend(loc="lower right", ncols=2, handlelength=1.8)
    power, length = data["power_dbm"].values[-1], data["length_m"].values[-1]
    for ax, letter, q in zip(axes[1], "cd", (2, 5), strict=True):
        title = f"{q} inputs, {power:g} dBm, {length:g} m, control-variate"
        bars(result_at(whole, q, model="twin", power_dbm=power, length_m=length), ax, letter, title)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """What the estimators agree on, and how much the noise leaves to find."""
    lines, whole, data = [], data, data.isel(model=0, seed=0)
    for q in (2, 5):
        total, error = data[f"total_q{q}"], data[f"total_standard_error_q{q}"]
        limit, limit_error = data[f"noise_limit_q{q}"], data[f"noise_limit_error_q{q}"]
        plain = data[f"algorithm_1_q{q}"]
        excess = ((total - limit) / np.hypot(error, limit_error)).max().item()
        lines += [
            line(
                f"Noise strictly reduces the bound of 72, {q} inputs (paper, theory)",
                "For a noisy ELM, the sum of the capacities ... is strictly less than the total number of readouts",
                "what noise allows is below 72 by more than 3 standard errors",
                by_length(limit),
                bool(np.all(limit + 3 * limit_error < 72)),
                kind="identity",
            ),
            line(
                f"The total stays below what noise allows, {q} inputs",
                "- (two measurements of ours, which must not contradict each other)",
                "exceeds it nowhere by more than 3 standard errors",
                f"{by_length(total)} (standard errors {listed([error.min(), error.max()], 2)}); largest excess "
                f"{excess:+.1f} standard errors",
                excess < 3,
            ),
            line(
                f"Algorithm 1 beside the control-variate total, {q} inputs",
                "-",
                "-",
                f"Algorithm 1 {by_length(plain)}; lower by {listed([(total - plain).min(), (total - plain).max()])}",
                None,
            ),
        ]
    return finished(whole, lines)
