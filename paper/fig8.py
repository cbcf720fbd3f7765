"""Figure 8: the number of factors by Malinowski's indicator, next to the total capacity."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.systems import FibreSystem

from ._common import QUICK as QUICK_SWEEP
from ._common import SWEEP, Line, canvas, joined, lettered, line, listed, styled, swept
from ._work import Work

TITLE = "Factor analysis and total capacity, 40 m"
PARAMETERS: dict[str, Any] = SWEEP | {"lengths_m": [40.0], "noise_repeats": 100, "shown_dbm": 4.5}
QUICK = QUICK_SWEEP | {"powers_dbm": [-9.1, 1.0, 4.5, 7.1]}


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals, indicator functions and numbers of factors over power."""
    work, parameters = work or Work(), PARAMETERS | changes
    jobs = {}
    for q in (2, 5):
        for power in parameters["powers_dbm"]:
            jobs[f"fig8_q{q}_{power:+g}dBm"] = functools.partial(
                factors,
                power,
                parameters["lengths_m"][0],
                n_inputs=q,
                n_samples=parameters["n_samples"][q],
                noise_repeats=parameters["noise_repeats"],
                phase_noise=parameters["phase_noise"],
                tolerance=parameters["tolerance"],
                seed=parameters["seed"],
            )
    found = joined(work.do(jobs).values(), parameters)
    data = xr.merge([swept(work, parameters), found], combine_attrs="drop")
    data.attrs = found.attrs
    return data


def factors(
    power_dbm: float,
    length_m: float,
    *,
    n_inputs: int,
    n_samples: int,
    noise_repeats: int,
    phase_noise: str,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """IND of the readouts in units of their noise, which repeats at the input 1, 1, ... tell."""
    system = FibreSystem(
        power_dbm=power_dbm,
        length_m=length_m,
        n_inputs=n_inputs,
        phase_noise=phase_noise,
        tolerance=tolerance,
    )
    u = infocap.draw(infocap.product_basis("legendre", n_inputs, 1), n_samples, seed=seed)
    repeats = system(np.ones((noise_repeats, n_inputs)), seed=seed + 1)
    found = infocap.dimension.indicator(system(u, seed=seed), repeats=repeats)
    count = np.nan if found.n_factors is None else float(found.n_factors)
    return xr.Dataset(
        {
            f"indicator_q{n_inputs}": (("power_dbm", "length_m", "factors"), found.values[None, None]),
            f"n_factors_q{n_inputs}": (("power_dbm", "length_m"), [[count]]),
        },
        coords={
            "power_dbm": [power_dbm],
            "length_m": [length_m],
            "factors": np.arange(1, len(found.values) + 1),
        },
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """IND with its minimum (a), and both dimensions over power (b)."""
    shown = PARAMETERS["shown_dbm"]
    data = data.isel(length_m=0)
    figure = canvas(72)
    left, right = figure.subplots(1, 2)
    here = data.sel(power_dbm=shown)
    left.semilogy(here["factors"], here["indicator_q5"], color=infocap.plot.COLOURS[0])
    count = here["n_factors_q5"].item()
    if np.isfinite(count):
        lowest = here["indicator_q5"].sel(factors=int(count)).item()
        left.plot(count, lowest, "o", color=infocap.plot.COLOURS[5], markersize=5)
        left.annotate(
            f"minimum at {count:.0f} factors",
            (count, lowest),
            (0, -14),
            textcoords="offset points",
            ha="center",
            color=infocap.plot.COLOURS[5],
        )
        left.set_ylim(0.4 * lowest, None)
    left.set_xlabel(r"number of factors $\kappa$")
    left.set_ylabel(r"indicator function IND($\kappa$)")
    lettered(left, "a", f"five inputs, {shown:g} dBm, 40 m")
    for q, colour in zip((5, 2), infocap.plot.COLOURS, strict=False):
        right.plot(data["power_dbm"], data[f"total_q{q}"], "o-", color=colour, label=f"total capacity, {q} inputs")
        right.plot(
            data["power_dbm"],
            data[f"n_factors_q{q}"],
            "s--",
            color=colour,
            markerfacecolor="white",
            label=f"factors, {q} inputs",
        )
    for drawn in right.lines:
        drawn.set_markersize(4)
    right.set_xlabel("average power (dBm)")
    right.set_ylabel("effective dimension")
    right.set_ylim(0, 80)
    right.legend(loc="upper left", ncols=2)
    lettered(right, "b", "40 m")
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """The minimum, the correlation and the ratio."""
    data = data.isel(length_m=0)
    count = data["n_factors_q5"].sel(power_dbm=PARAMETERS["shown_dbm"]).item()
    lines = [
        line(
            "IND has a minimum, five inputs, 4.5 dBm",
            "a minimum between 1 and 70 factors",
            f"at {count:.0f} factors",
            bool(np.isfinite(count)),
        )
    ]
    for q in (2, 5):
        total, factor = data[f"total_q{q}"].values, data[f"n_factors_q{q}"].values
        correlation, ratio = np.corrcoef(total, factor)[0, 1], factor / total
        lines += [
            line(
                f"Clear correlation of total capacity and number of factors, {q} inputs",
                "correlation over power above 0.8",
                f"{correlation:.2f} (total {listed(total)}; factors {listed(factor, 0)})",
                bool(correlation > 0.8),
            ),
            line(
                f"Good agreement of the two, {q} inputs",
                "within 20 % at every power",
                f"factors are {ratio.min():.2f} to {ratio.max():.2f} times the total",
                bool(np.all(np.abs(ratio - 1) < 0.2)),
            ),
        ]
    return lines
