"""Figure 8: the number of factors by Malinowski's indicator, next to the total capacity."""

from __future__ import annotations

import functools
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import (
    AUTHORS,
    HALVES,
    SWEEP,
    Line,
    canvas,
    compared,
    finished,
    joined,
    lettered,
    line,
    listed,
    made,
    of_seed,
    parameters_of,
    points,
    runs,
    spread,
    styled,
    swept,
)
from ._common import QUICK as QUICK_SWEEP
from ._work import Work

TITLE = "Factor analysis and total capacity, 40 m"
PARAMETERS: dict[str, Any] = SWEEP | {
    "lengths_m": [40.0],
    "noise_repeats": 100,
    "shown_dbm": 4.5,
    "n_few": 512,
}
QUICK = QUICK_SWEEP | {"powers_dbm": [-9.1, 1.0, 4.5, 7.1]}


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals, indicator functions and numbers of factors over power; and both from a part of the samples."""
    work, parameters = work or Work(), PARAMETERS | changes
    jobs = {}
    for q in (2, 5):
        for (model, seed), (power, length) in product(runs(parameters), points(parameters)):
            jobs[f"fig8_q{q}_{model}{seed}_{power:+g}dBm"] = functools.partial(
                factors,
                power,
                length,
                model=model,
                n_inputs=q,
                n_samples=parameters["n_samples"][q],
                n_few=parameters["n_few"],
                noise_repeats=parameters["noise_repeats"],
                phase_noise=parameters["phase_noise"],
                tolerance=parameters["tolerance"],
                seed=seed,
            )
    found = joined(work.do(jobs).values(), parameters)
    few = swept(
        work,
        parameters
        | {
            "powers_dbm": [parameters["shown_dbm"]],
            "n_samples": dict.fromkeys((2, 5), parameters["n_few"]),
        },
    )
    few = (
        few[["total_q2", "total_q5"]]
        .isel(power_dbm=0)
        .rename({f"total_q{q}": f"total_few_q{q}" for q in (2, 5)})
    )
    data = xr.merge(
        [swept(work, parameters), found, few.drop_vars("power_dbm")],
        combine_attrs="drop",
        compat="override",
    )
    cells = noise_of_cells(work, parameters)
    data = xr.merge([data, cells], combine_attrs="drop", compat="no_conflicts")
    data.attrs = found.attrs
    return data


def noise_of_cells(work: Work, parameters: dict[str, Any]) -> xr.Dataset:
    """Totals and factors over power where the noise is that of the authors' program: other readings, other noise."""
    parameters = parameters | {"models": [AUTHORS], "seeds": parameters["seeds"][:1]}
    jobs = {}
    for q in (2, 5):
        for power, length in points(parameters):
            jobs[f"fig8_q{q}_{AUTHORS}_{power:+g}dBm"] = functools.partial(
                factors,
                power,
                length,
                model=AUTHORS,
                n_inputs=q,
                n_samples=parameters["n_samples"][q],
                n_few=parameters["n_few"],
                noise_repeats=parameters["noise_repeats"],
                phase_noise=parameters["phase_noise"],
                tolerance=parameters["tolerance"],
                seed=parameters["seeds"][0],
            )
    data = xr.merge(
        [swept(work, parameters), joined(work.do(jobs).values(), parameters)],
        combine_attrs="drop",
        compat="override",
    )
    data = data.isel(model=0, seed=0, drop=True)
    kept = {f"{name}_q{q}": f"cells_{name}_q{q}" for name in ("total", "n_factors") for q in (2, 5)}
    return data[list(kept)].rename(kept)


def factors(
    power_dbm: float,
    length_m: float,
    *,
    model: str,
    n_inputs: int,
    n_samples: int,
    n_few: int,
    noise_repeats: int,
    phase_noise: str,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """IND from all and from few samples, the same readouts as those of the capacities.

    They are in units of the noise, which the paper takes from repeats at the input 1, 1, ..., or which a second
    measurement at all inputs tells, on average over these.
    """
    make = made(model, n_inputs=n_inputs, tolerance=tolerance, phase_noise=phase_noise)
    system = make(power_dbm=power_dbm, length_m=length_m)
    basis = infocap.product_basis("legendre", n_inputs, 1)
    u = infocap.draw(basis, n_samples, seed=seed, blocks=HALVES)
    noise_seed, again_seed, repeats_seed = np.random.SeedSequence(seed).spawn(
        3
    )  # `probe` takes the first
    x = system(u, seed=noise_seed)
    repeats = system(np.ones((noise_repeats, n_inputs)), seed=repeats_seed)
    averaged = np.sqrt(0.5 * np.mean((system(u, seed=again_seed) - x) ** 2, axis=0))
    found, few = (infocap.dimension.indicator(x[:n], repeats=repeats) for n in (n_samples, n_few))
    counts = {
        f"n_factors_q{n_inputs}": found.n_factors,
        f"n_factors_few_q{n_inputs}": few.n_factors,
        f"n_factors_averaged_q{n_inputs}": infocap.dimension.indicator(x, averaged).n_factors,
        f"noise_ratio_q{n_inputs}": np.median(infocap.dimension.noise_scale(repeats) / averaged),
    }
    where = ("power_dbm", "length_m")
    data = xr.Dataset(
        {f"indicator_q{n_inputs}": ((*where, "factors"), found.values[None, None])}
        | {
            name: (where, [[np.nan if count is None else float(count)]])
            for name, count in counts.items()
        },
        coords={
            "power_dbm": [power_dbm],
            "length_m": [length_m],
            "factors": np.arange(1, len(found.values) + 1),
        },
    )
    return of_seed(data, model, seed)


@styled
def draw(data: xr.Dataset) -> Figure:
    """IND with its minimum (a), and both dimensions over power (b, c) for the plain model and the twin.

    The number of factors is shown with the noise at the input 1, 1, ..., and with that averaged over inputs.
    """
    shown = PARAMETERS["shown_dbm"]
    data = data.isel(length_m=0)
    figure = canvas(82)
    left, *others = figure.subplots(1, 3, width_ratios=[1.15, 1, 1])
    for model, colour in (("plain", "0.5"), ("twin", infocap.plot.COLOURS[5])):
        here = data.sel(power_dbm=shown, model=model).isel(seed=0)
        left.semilogy(here["factors"], here["indicator_q5"], color=colour, label=model)
        count = here["n_factors_q5"].item()
        if np.isfinite(count):
            left.plot(count, here["indicator_q5"].sel(factors=int(count)), "o", color=colour, markersize=5,
                      label=f"minimum at {count:.0f}")  # fmt: skip
    left.set_xlabel(r"number of factors $\kappa$")
    left.set_ylabel(r"indicator function IND($\kappa$)")
    left.legend(loc="upper center")
    lettered(left, "a", f"five inputs, {shown:g} dBm, 40 m")
    shown_as = (
        ("total", "o", "-", "total capacity"),
        ("n_factors", "s", "--", "factors, noise at u = 1"),
        ("n_factors_averaged", "^", ":", "factors, mean noise"),
    )
    for ax, letter, model in zip(others, "bc", ("plain", "twin"), strict=True):
        for q, colour in zip((5, 2), infocap.plot.COLOURS, strict=False):
            for name, marker, style, words in shown_as:
                values = data[f"{name}_q{q}"].sel(model=model)
                ax.errorbar(
                    data["power_dbm"].values,
                    values.mean("seed").values,
                    values.std("seed").values,
                    fmt=marker + style,
                    color=colour,
                    markersize=4,
                    markerfacecolor=colour if marker == "o" else "white",
                    capsize=2,
                    label=f"{words}, {q} inputs",
                )
        ax.set_xlabel("average power (dBm)")
        ax.set_ylim(0, 110)
        lettered(ax, letter, f"{model}, 40 m")
    others[0].set_ylabel("effective dimension")
    others[0].legend(loc="upper left", fontsize=6, ncols=1, labelspacing=0.25)
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """The minimum, the correlation, the ratio, and how few samples each needs, for both models; and a cause."""
    data = data.isel(length_m=0)
    causes = []
    for q in (2, 5):
        total, factor = (data[f"cells_{name}_q{q}"].values for name in ("total", "n_factors"))
        ratio = factor / total
        causes.append(
            line(
                f"Total and factors with the phase noise of cells, as in the authors' program, {q} inputs",
                "-",
                "-",
                f"total {listed(total)}; factors {listed(factor, 0)}, {ratio.min():.2f} to {ratio.max():.2f} times "
                f"the total; correlation {np.corrcoef(total, factor)[0, 1]:.2f}",
                None,
            )
        )
    return compared(data, statements) + finished(data, causes)


def statements(data: xr.Dataset) -> list[Line]:
    """The paper's sentences for one model."""
    count = data["n_factors_q5"].sel(power_dbm=PARAMETERS["shown_dbm"])
    lines = [
        line(
            "IND has a minimum, five inputs, 4.5 dBm",
            "Experimentally measured indicator function and its minimum for 5D inputs when average power=4.5 dBm.",
            "a minimum between 1 and 70 factors",
            f"at {spread(count, 0)} factors",
            bool(np.isfinite(count).all()),
        )
    ]
    for q in (2, 5):
        total, factor = (
            data[f"{name}_q{q}"].mean("seed").values for name in ("total", "n_factors")
        )
        correlation, ratio = np.corrcoef(total, factor)[0, 1], factor / total
        lines += [
            line(
                f"Clear correlation of total capacity and number of factors, {q} inputs",
                "we observe a clear correlation between the two metrics",
                "correlation over power above 0.8",
                f"{correlation:.2f} (total {listed(total)}; factors {listed(factor, 0)})",
                bool(correlation > 0.8),
                full=True,
            ),
            line(
                f"Good agreement of the two, {q} inputs",
                "We find good agreement between the two approaches.",
                "within 20 % at every power",
                f"factors are {ratio.min():.2f} to {ratio.max():.2f} times the total",
                bool(np.all(np.abs(ratio - 1) < 0.2)),
                full=True,
            ),
        ]
        averaged = data[f"n_factors_averaged_q{q}"].mean("seed").values
        noise = data[f"noise_ratio_q{q}"].mean("seed").values
        lines.append(
            line(
                f"The same with the noise averaged over inputs, {q} inputs",
                "-",
                "-",
                f"factors {listed(averaged, 0)}, {(averaged / total).min():.2f} to {(averaged / total).max():.2f} times "
                f"the total; noise at the input 1, 1, ... is {listed(noise)} times as large (median readout)",
                None,
            )
        )
    few = parameters_of(data)["n_few"]
    shown = data.sel(power_dbm=PARAMETERS["shown_dbm"]).mean("seed")
    moved = [
        abs(shown[f"{name}_few_q5"] / shown[f"{name}_q5"] - 1).item()
        for name in ("n_factors", "total")
    ]
    lines.append(
        line(
            f"The number of factors needs fewer data than the capacity: {few} samples, five inputs, 4.5 dBm",
            "Computing the IPC is more data-intensive ... than computing the factor dimensionality",
            "it changes by less than the total does",
            f"factors change by {moved[0]:.0%}, the total by {moved[1]:.0%}",
            moved[0] < moved[1],
            full=True,
        )
    )
    return lines
