"""Digital twins: the simulator fitted to the published experiment, what each piece of physics brings, how surely.

The fit needs hundreds of simulated experiments, each with the mean of what Algorithm 1 would find. So the light is
simulated without noise, the spectrometer's noise enters as the covariance that it adds to the readouts (paper, section
4), and the threshold as the probability that Algorithm 1 lets a capacity pass. The outcome is then simulated in full.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import ndtr

import infocap
from infocap.photonics import Encoder, Fibre, FibreSystem

from ._common import (
    HALVES,
    MOST,
    SWEEP,
    TWINS,
    Line,
    canvas,
    finished,
    joined,
    lettered,
    line,
    listed,
    parameters_of,
    spread,
    styled,
    swept,
)
from ._measured import BY_DEGREE, LENGTH_M, POWER_DBM, SOURCE, TOTAL, matrix_values
from ._work import Work

TITLE = "Digital twins of the experiment: five parameters, their uncertainty, and what each brings"
NAMES = (
    "prechirp_length_m",
    "exponent_spread",
    "phase_spread_rad",
    "relative",
    "additive_fraction",
)
# Model and measurement differ by more than chance: no twin knows everything about a laboratory. So much is allowed for,
# in a capacity, in the sum of a degree and in a total. These numbers were tuned until chi² was about as large as its
# degrees of freedom, so that chi² cannot tell whether the model is right; it can only compare fits.
DISCREPANCY = {"cell": 0.025, "degree": 0.3, "total": 0.3}
READING = 0.01  # error of a capacity that is read from a colour
NOTHING = 1e-9  # a parameter that is varied by factors, but does nothing
PARAMETERS: dict[str, Any] = {
    "start": {
        "prechirp_length_m": 100.0,
        "exponent_spread": 0.01,
        "phase_spread_rad": 0.02,
        "relative": 2e-3,
        "additive_fraction": 2e-6,
    },
    "n_fitted": {2: 2048, 5: 4096},  # samples of the fit
    "n_starts": 8,  # of fits with all parameters
    "n_further_starts": 3,  # of fits with fewer parameters
    "patterns": [0, 1, 2],  # seeds of the encoder's calibration, which the experiment does not tell
    "lengths": [
        0.0,
        30.0,
        60.0,
        90.0,
        120.0,
        150.0,
        200.0,
        250.0,
    ],  # before the amplifier, for the profile
    "verified": SWEEP | {"powers_dbm": [POWER_DBM], "lengths_m": [LENGTH_M]},
    "quick": False,
}
QUICK: dict[str, Any] = {
    "n_fitted": {2: 1024, 5: 2048},
    "n_starts": 2,
    "n_further_starts": 1,
    "patterns": [0],
    "lengths": [0.0, 150.0],
    "verified": PARAMETERS["verified"] | {"seeds": [1]},
    "quick": True,
}
LADDER = {  # which parameters are fitted; the others do nothing
    "noise of the spectrometer alone": ("relative", "additive_fraction"),
    "and dispersion before the amplifier": ("prechirp_length_m", "relative", "additive_fraction"),
    "and bins that differ": NAMES,
}
FULL = list(LADDER)[-1]
GOOD = 6.0  # a fit is as good as the best when its chi² is larger by no more than this


class Light:
    """The spectra of one encoder and one dispersion without noise, and the capacities that noise leaves of them."""

    def __init__(
        self,
        n_inputs: int,
        n_samples: int,
        pattern: int,
        length: float,
        exponent: float,
        phase: float,
    ):
        self.n_experiment = SWEEP["n_samples"][n_inputs]
        self.basis, u, y, inverse = designed(n_inputs, n_samples)
        system = FibreSystem(
            power_dbm=POWER_DBM,
            length_m=LENGTH_M,
            tolerance=1e-3,
            fibre=Fibre(prechirp_length_m=length),
            encoder=Encoder(n_inputs, phase_noise=None, exponent_spread=exponent, phase_spread_rad=phase,
                            calibration_seed=pattern),
        )  # fmt: skip
        x = system(u) / float(
            system.pulse.amplitude(np.zeros(1))[0] ** 2 * system.pulse.density_unit
        )
        self.scale, self.square = x.std(axis=0), np.mean(x**2, axis=0)
        self.x = np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / self.scale])
        self.correlation = inverse @ y.T @ self.x  # R, by regression
        self.own_bias = np.diag(inverse)
        rest = self.x - y @ self.correlation
        self.rest = rest.T @ rest / (len(y) - y.shape[1])

    def capacities(self, relative: float, additive: float) -> Any:
        """What Algorithm 1 finds on average, with noise of the spectrometer in fractions of reading and of peak."""
        n = self.n_experiment
        noise = (additive**2 + relative**2 * self.square) / self.scale**2
        noise = np.concatenate([[0.0], noise])  # the constant has none
        gram = self.correlation.T @ self.correlation + self.rest + np.diag(noise)
        inverse = np.linalg.inv(gram)

        # R' G⁻¹ R of the regressed R, without what the regression's own errors add.
        capacity = np.sum(self.correlation @ inverse * self.correlation, axis=1)
        regression_bias = np.trace(inverse @ self.rest) * self.own_bias
        capacity = np.clip(capacity - regression_bias, 0.0, 1.0)

        # The share of experiments whose raw capacity passes the threshold of Algorithm 1.
        leverage = np.sum(self.x @ inverse * self.x, axis=1) + np.diag(inverse) @ noise
        threshold = np.sqrt(np.mean(leverage**2) * self.basis.fourth_moments) / n
        raw = capacity + MOST * (1 - capacity) / n
        deviation = np.sqrt(2 * MOST / n**2 + 4 * capacity * (1 - capacity) / n)
        return capacity * ndtr((raw - threshold) / deviation)


@functools.cache
def designed(n_inputs: int, n_samples: int) -> tuple[Any, ...]:
    """Basis, inputs, its values there and the inverse of their products, the same for every simulated experiment."""
    basis = infocap.product_basis("legendre", n_inputs, SWEEP["max_degree"][n_inputs])
    u = infocap.draw(basis, n_samples, seed=1, blocks=HALVES)
    y = basis(u)
    return basis, u, y, np.linalg.inv(y.T @ y)


light = functools.lru_cache(maxsize=16)(Light)


def predicted(given: dict[str, float], n_fitted: dict[int, int], pattern: int) -> Any:
    """What the experiment measured, simulated: 120 capacities, nine sums over degrees, two totals."""
    optics = tuple(given.get(name, NOTHING) for name in NAMES[:3])
    noise = tuple(given.get(name, NOTHING) for name in NAMES[3:])
    two, five = (light(q, n_fitted[q], pattern, *optics).capacities(*noise) for q in (2, 5))
    return np.concatenate(
        [two, np.bincount(designed(5, n_fitted[5])[0].degrees, five), [two.sum(), five.sum()]]
    )


def measured() -> tuple[Any, Any]:
    """The published numbers and their errors."""
    cells = matrix_values(infocap.product_basis("legendre", 2, SWEEP["max_degree"][2]).indices)
    chance = 4 * cells * (1 - cells) / SWEEP["n_samples"][2]
    errors = [np.sqrt(chance + READING**2 + DISCREPANCY["cell"] ** 2)]
    errors += [np.full(len(BY_DEGREE), DISCREPANCY["degree"]), np.full(2, DISCREPANCY["total"])]
    return np.concatenate([cells, BY_DEGREE, list(TOTAL.values())]), np.concatenate(errors)


def fitted(
    label: str,
    start: dict[str, float],
    *,
    n_fitted: dict[int, int],
    pattern: int,
    fixed: dict[str, float],
    n_starts: int,
) -> xr.Dataset:
    """The best parameters of one variant, with errors, and how close they come: for each of its minima."""
    n_fitted = {int(q): n for q, n in n_fitted.items()}
    found = infocap.calibrate(
        lambda **given: predicted(given | fixed, n_fitted, pattern),
        start,
        *measured(),
        n_starts=n_starts,
    )
    minima = []
    for number, minimum in enumerate(found.minima, start=1):
        name = label if number == 1 else f"{label}, minimum {number}"
        numbers = predicted(minimum.parameters | fixed, n_fitted, pattern)
        minima.append(as_variant(name, minimum, fixed, numbers))
    starts = xr.DataArray(found.chi2_of_starts[None], dims=("variant", "start"))
    starts = starts.assign_coords(variant=[label], start=np.arange(n_starts))
    return xr.concat(minima, "variant").assign(chi2_of_starts=starts)


def as_variant(
    label: str, found: infocap.workflow.Minimum, fixed: dict[str, float], numbers: Any
) -> xr.Dataset:
    """One minimum as a data set."""
    cells = numbers[:-11] - measured()[0][:-11]
    tells = {
        "chi2": found.chi2,
        "rms": float(np.sqrt(np.mean(cells**2))),
        "by_degree_apart": float(np.abs(numbers[-11:-2] - BY_DEGREE).sum()),
    }
    columns = {"value": found.parameters | fixed, "error": found.standard_error}
    return xr.Dataset(
        {name: ("variant", [number]) for name, number in tells.items()}
        | {
            name: (("variant", "parameter"), [[one.get(key, np.nan) for key in NAMES]])
            for name, one in columns.items()
        }
        | {"predicted": (("variant", "number"), [numbers])},
        coords={"variant": [label], "parameter": list(NAMES)},
    )


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """The ladder of physics, other patterns of the encoder, the profile over dispersion, and full simulations."""
    work, parameters = work or Work(), PARAMETERS | changes
    start = parameters["start"]
    n_further = parameters["n_further_starts"]
    fit = functools.partial(fitted, n_fitted=parameters["n_fitted"], fixed={}, n_starts=n_further)
    jobs = {}
    for step, (label, names) in enumerate(LADDER.items()):
        jobs[f"twin_ladder{step}"] = functools.partial(
            fit,
            label,
            {name: start[name] for name in names},
            pattern=0,
            n_starts=parameters["n_starts"] if label == FULL else n_further,
        )
    for pattern in parameters["patterns"][1:]:
        jobs[f"twin_pattern{pattern}"] = functools.partial(
            fit, f"pattern {pattern}", start, pattern=pattern, n_starts=parameters["n_starts"]
        )
    noise = {name: start[name] for name in NAMES[3:]}
    for length in parameters["lengths"]:
        fixed = {"prechirp_length_m": length, "exponent_spread": 0.015, "phase_spread_rad": 0.02}
        jobs[f"twin_profile{length:g}"] = functools.partial(
            fit, f"{length:g} m", noise, pattern=0, fixed=fixed, n_starts=1
        )
    fits = [part.drop_attrs() for part in work.do(jobs).values()]
    data = xr.merge(
        [xr.concat(fits, "variant", join="outer"), swept(work, parameters["verified"]).drop_attrs()]
    )
    return joined(
        [data], parameters | {"n_samples": SWEEP["n_samples"], "max_degree": SWEEP["max_degree"]}
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """Cells against measurement (a), the profile over the dispersion before the amplifier (b)."""
    figure = canvas(74)
    left, right = figure.subplots(1, 2)
    basis = infocap.product_basis("legendre", 2, SWEEP["max_degree"][2])
    cells = matrix_values(basis.indices)
    for model, colour, marker in (("plain", "0.6", "s"), ("twin", infocap.plot.COLOURS[5], "o")):
        here = data["capacity_q2"].sel(model=model).mean("seed").values.ravel()
        rms = np.sqrt(np.mean((here - cells) ** 2))
        left.plot(cells, here, marker, color=colour, markersize=3.5, label=f"{model}: rms difference {rms:.3f}",
                  markerfacecolor="white" if model == "plain" else colour)  # fmt: skip
    left.plot([0, 1], [0, 1], color="0.8", linewidth=0.8, zorder=0)
    left.set_xlabel("capacity measured, two inputs")
    left.set_ylabel("capacity simulated")
    left.legend(loc="upper left")
    lettered(left, "a", "120 functions, -1.9 dBm, 40 m")
    lengths = parameters_of(data)["lengths"]
    profile = data["chi2"].sel(variant=[f"{length:g} m" for length in lengths])
    right.plot(lengths, profile, "o-", color=infocap.plot.COLOURS[0], markersize=4)
    colours = [infocap.plot.COLOURS[k] for k in (5, 1, 2, 3, 4)] * len(data["variant"])
    for name, colour in zip(good(data), colours, strict=False):
        here = data.sel(variant=name, parameter=NAMES[0])
        length, error = here["value"].item(), here["error"].item()
        words = f"{length:.0f} ± {error:.0f} m, $\\chi^2$ {here['chi2'].item():.0f}"
        right.axvspan(length - error, length + error, color=colour, alpha=0.25, label=words)
    right.set_ylim(0, None)
    right.set_xlabel("fibre before the amplifier (m)")
    right.set_ylabel(r"$\chi^2$ of 131 measured numbers")
    right.legend(loc="upper right")
    lettered(right, "b", "pattern 0, bins kept, noise fitted at each length")
    return figure


def check(data: xr.Dataset) -> list[Line]:
    """How close the twins come by the targets that were set before, their parameters, and what each of them brings."""
    lines = []
    for name in TWINS:
        lines += closeness(name, data.sel(model=name))
    best = good(data)
    patterns = [name for name in variants(data, FULL, "pattern") if "minimum" not in name]
    starts = [data["chi2_of_starts"].sel(variant=name).dropna("start") for name in patterns]
    ends = "; ".join(
        f"{name.replace(FULL, 'pattern 0')}: {listed(chi2)}"
        for name, chi2 in zip(patterns, starts, strict=True)
    )
    lines.append(
        line(
            f"Fits within {GOOD:g} of the best chi², from several starts with each pattern of the bins",
            "-",
            "-",
            f"{len(best)} from {len(starts[0])} starts of each: chi² {listed(data['chi2'].sel(variant=best))}; the starts end at chi² {ends}",
            None,
        )
    )
    n_compared = min(FibreSystem.n_published, len(best))
    apart = [errors_apart(data.sel(variant=best[k]), k) for k in range(n_compared)]
    lines.append(
        line(
            "The twins that infocap ships are these fits",
            "- (infocap.photonics.FibreSystem.published)",
            "as many, and each parameter within half a standard error",
            f"{FibreSystem.n_published} shipped, {len(best)} found; largest distance {listed(apart, 2)} standard errors",
            len(best) == FibreSystem.n_published and max(apart) < 0.5,
            kind="identity",
            full=True,
        )
    )
    return finished(data, lines + reported(data))


def good(data: xr.Dataset) -> list[str]:
    """The fits with all parameters that are about as good as the best of all patterns, the best first."""
    chi2 = data["chi2"].sel(variant=variants(data, FULL, "pattern"))
    chi2 = chi2.where(chi2 <= chi2.min() + GOOD, drop=True).sortby(chi2)
    return [str(name) for name in chi2["variant"].values]


def errors_apart(found: xr.Dataset, member: int) -> float:
    """How far a shipped twin lies from the fit found, in standard errors of its worst parameter."""
    system = FibreSystem.published(member=member)
    peak = FibreSystem(power_dbm=POWER_DBM).pulse
    unit = float(peak.amplitude(np.zeros(1))[0] ** 2 * peak.density_unit)
    shipped = [
        system.fibre.prechirp_length_m,
        system.encoder.exponent_spread,
        system.encoder.phase_spread_rad,
        system.detector.relative,
        system.detector.additive_mw_per_nm / unit,
    ]
    found = found.sel(parameter=list(NAMES))
    distance = abs(found["value"] - xr.DataArray(shipped, dims="parameter")) / found["error"]
    return distance.max().item()


def closeness(name: str, twin: xr.Dataset) -> list[Line]:
    """How close one twin, simulated in full, comes to what was measured."""
    cells = matrix_values(infocap.product_basis("legendre", 2, SWEEP["max_degree"][2]).indices)
    lines = []
    for q in (2, 5):
        total = twin[f"total_q{q}"]
        lines.append(
            line(
                f"Total capacity, {q} inputs: {name}",
                f"{TOTAL[q]} of 72 ({SOURCE})",
                "within 5 %",
                spread(total),
                bool(abs(total.mean() / TOTAL[q] - 1) < 0.05),
                kind="calibrated",
                full=True,
            )
        )
    rms = np.sqrt(
        ((twin["capacity_q2"] - xr.DataArray(cells, dims="term_q2")) ** 2).mean("term_q2")
    )
    apart = abs(twin["by_degree_q5"] - xr.DataArray(BY_DEGREE, dims="degree_q5")).sum("degree_q5")
    lines += [
        line(
            f"Each of 120 functions of two inputs: {name}",
            SOURCE,
            "root mean square difference at most 0.045",
            spread(rms, 3),
            bool(rms.mean() <= 0.045),
            kind="calibrated",
            full=True,
        ),
        line(
            f"Each degree of five inputs: {name}",
            SOURCE,
            "absolute differences add up to at most 2.5",
            spread(apart, 2),
            bool(apart.mean() <= 2.5),
            kind="calibrated",
            full=True,
        ),
    ]
    return lines


def reported(data: xr.Dataset) -> list[Line]:
    """The parameters of all good fits, and what explains how much."""
    lines = []
    for name in NAMES:
        values = []
        for variant in good(data):
            here = data.sel(variant=variant, parameter=name)
            values.append(f"{here['value'].item():.3g} ± {here['error'].item():.1g}")
        lines.append(line(f"Fitted: {name}", "-", "-", ", or ".join(values), None))
    for step, label in enumerate(LADDER, start=1):
        here = data.sel(variant=label)
        two, five = here["predicted"].values[-2:]
        found = f"chi² {here['chi2'].item():.0f}, root mean square difference {here['rms'].item():.3f}, differences by "
        found += f"degree {here['by_degree_apart'].item():.1f}, totals {two:.1f} and {five:.1f}"
        lines.append(line(f"What explains how much, step {step}: {label}", "-", "-", found, None))
    return lines


def variants(data: xr.Dataset, *words: str) -> list[str]:
    """Names of the variants that begin with one of the words."""
    return [str(name) for name in data["variant"].values if str(name).startswith(words)]
