"""What the figures share: the fibre's sweep, the lines of a check, and one look."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import infocap
from infocap.photonics import Detector, FibreSystem, Pulse

from ._work import Work

# The fits of the simulator to the published example that are about equally good, the best first.
AUTHORS = "authors' program"  # the system as their program simulates it
TWINS = ["twin", *(f"twin {number}" for number in range(2, FibreSystem.n_published + 1))]
SWEEP: dict[str, Any] = {
    "max_degree": {2: 14, 5: 8},  # for 2 and for 5 inputs: 120 and 1287 functions
    "n_samples": {2: 4096, 5: 8192},
    "powers_dbm": [-9.1, -1.9, 1.0, 4.5, 7.1],
    "lengths_m": [5.0, 40.0],
    "models": ["plain", *TWINS],
    "method": "threshold-richardson",  # the paper's Algorithm 1
    "phase_noise": "bin",  # of the plain model, as in the paper's text
    "detector_noise": 0.0,  # of the plain model, as a fraction of the peak at -1.9 dBm
    "tolerance": 1e-5,
    "seeds": [1, 2, 3],  # of inputs and noise
    "quick": False,
}
QUICK: dict[str, Any] = {
    "n_samples": {2: 1024, 5: 2048},
    "powers_dbm": [-9.1, 1.0, 7.1],
    "tolerance": 1e-3,
    "seeds": [1],
    "quick": True,
}
HALVES = 2  # blocks of the design: Algorithm 1 compares the halves of the samples, and each is then one Sobol net
MOST = 72  # 71 spectral readouts and the constant
Line = dict[str, Any]


def made(
    model: str, *, phase_noise: str | None = "bin", detector_noise: float = 0.0, **settings: Any
) -> Callable[..., FibreSystem]:
    """What makes a system of the paper's plain model, or of the authors' program or a twin, which have their own noise."""
    if model == AUTHORS:
        return functools.partial(FibreSystem.authors_program, **settings)
    if model in TWINS:
        member = TWINS.index(model)
        return functools.partial(FibreSystem.published, member=member, **settings)
    detector = noisy_detector(detector_noise)
    return functools.partial(FibreSystem, phase_noise=phase_noise, detector=detector, **settings)


def setting(
    power_dbm: float,
    length_m: float,
    *,
    n_inputs: int,
    max_degree: int,
    n_samples: int,
    model: str,
    method: str,
    phase_noise: str,
    detector_noise: float,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """Capacities of the fibre at one power and length; the names end in the number of inputs, as in total_q5."""
    noise = {"phase_noise": phase_noise, "detector_noise": detector_noise}
    sweep = infocap.sweep(
        made(model, n_inputs=n_inputs, tolerance=tolerance, **noise),
        {"power_dbm": [power_dbm], "length_m": [length_m]},
        infocap.product_basis("legendre", n_inputs, max_degree),
        n_samples,
        seed=seed,
        blocks=HALVES,
        method=method,
        progress=False,
    )
    data = sweep.to_xarray()
    data = data.drop_vars(["label", "term_degree"])
    kept = {"power_dbm", "length_m"}
    names = {name: f"{name}_q{n_inputs}" for name in {*data.variables, *data.dims} - kept}
    data = data.rename(names)
    data.attrs = {}
    return of_seed(data, model, seed)


def of_seed(data: xr.Dataset, model: str, seed: int) -> xr.Dataset:
    """The same with the model and the seed as further dimensions of everything that was computed."""
    return data.map(lambda one: one.expand_dims(model=[model], seed=[seed]), keep_attrs=True)


SAME = ("method", "phase_noise", "detector_noise", "tolerance")


def swept(work: Work, parameters: dict[str, Any], inputs: Iterable[int] = (2, 5)) -> xr.Dataset:
    """Capacities of every model at every power and length with every seed, each setting a job of its own."""
    jobs = {}
    for q in inputs:
        same = {name: parameters[name] for name in SAME}
        same |= {"n_inputs": q, "max_degree": parameters["max_degree"][q]}
        same |= {"n_samples": parameters["n_samples"][q]}
        for (model, seed), (power, length) in product(runs(parameters), points(parameters)):
            name = f"q{q}_{model}{seed}_{power:+g}dBm_{length:g}m_{parameters['method']}"
            jobs[name] = functools.partial(setting, power, length, model=model, seed=seed, **same)
    return joined(work.do(jobs).values(), parameters)


def runs(parameters: dict[str, Any]) -> list[tuple[str, int]]:
    """Every model with every seed."""
    return list(product(parameters["models"], parameters["seeds"]))


def points(parameters: dict[str, Any]) -> list[tuple[float, float]]:
    """Every power with every length."""
    return list(product(parameters["powers_dbm"], parameters["lengths_m"]))


def noisy_detector(fraction: float) -> Detector:
    """A spectrum analyser with noise of a fraction of the unmasked pulse's peak at -1.9 dBm, at any power."""
    pulse = Pulse(power_dbm=-1.9)
    peak = float(pulse.amplitude(np.zeros(1))[0] ** 2 * pulse.density_unit)
    return Detector(additive_mw_per_nm=fraction * peak)


def joined(parts: Iterable[xr.Dataset], parameters: dict[str, Any]) -> xr.Dataset:
    """Parts of a table put together, with the parameters among its attributes."""
    bare = [part.drop_attrs() for part in parts]
    data = xr.combine_by_coords(bare, combine_attrs="drop", join="outer", compat="no_conflicts")
    data.attrs["parameters"] = json.dumps(parameters)
    return data


def parameters_of(data: xr.Dataset) -> dict[str, Any]:
    """The parameters a data set was computed with; numbers of inputs are numbers again."""
    found = json.loads(data.attrs["parameters"])
    for name in ("max_degree", "n_samples"):
        if isinstance(found.get(name), dict):
            found[name] = {int(q): value for q, value in found[name].items()}
    return found


def result_at(data: xr.Dataset, n_inputs: int, **point: Any) -> infocap.CapacityResult:
    """The mean over seeds at one setting of a sweep, as a result for the functions that draw one.

    The maximum is the number of readouts with the constant, as in the paper, also where they depend on each other.
    """
    here, parameters = data.sel(point).mean("seed"), parameters_of(data)
    found = {name.removesuffix(f"_q{n_inputs}"): here[name].values for name in here.data_vars}
    numbers = {
        "total": float,
        "total_standard_error": float,
        "n_readouts": int,
        "rank": int,
    }
    return as_result(
        found["capacity"],
        infocap.product_basis("legendre", n_inputs, parameters["max_degree"][n_inputs]),
        parameters["n_samples"][n_inputs],
        raw=found["raw"],
        standard_error=found.get("standard_error"),
        method=parameters["method"],
        **{
            name: kind(found[name])
            for name, kind in numbers.items()
            if name in found and not np.isnan(found[name])
        },
    )


def as_result(capacity: Any, basis: Any, n_samples: int, **known: Any) -> infocap.CapacityResult:
    """Capacities as a result; what is not known is that of 71 readouts and the constant, without error bars."""
    missing = dict.fromkeys(("standard_error", "p_value", "threshold", "total_standard_error"))
    usual = {"raw": capacity, "total": float(np.sum(capacity)), "method": ""}
    usual |= {"n_readouts": MOST - 1, "maximum": MOST, "rank": MOST}
    return infocap.CapacityResult(
        capacity=capacity, basis=basis, n_samples=n_samples, **(missing | usual | known)
    )


def beyond(data: xr.Dataset, n_inputs: int, degree: int) -> xr.DataArray:
    """Capacity in `degree` and above."""
    return data[f"by_degree_q{n_inputs}"].sel({f"degree_q{n_inputs}": slice(degree, None)}).sum(
        f"degree_q{n_inputs}"
    )  # fmt: skip


def line(
    statement: str,
    paper: str,
    expected: str,
    found: str,
    holds: bool | None,
    *,
    kind: str = "agrees",
    full: bool = False,
    twin_kind: str | None = None,
    decided: bool = True,
) -> Line:
    """One line of a check, with the paper's own words; None where the paper makes no statement that could hold or fail.

    A statement that holds is called by its `kind`: "agrees" when simulation might have said otherwise, "identity" when
    it could not, "calibrated" when something was adjusted to it, which for the twin may be another kind, `twin_kind`.
    What `full` marks is not judged from a quick run, and nothing is judged that its errors do not decide.
    """
    verdict = "differs"
    if holds is None:
        verdict = "reported"
    elif not decided:
        verdict = "not judged"
    elif holds:
        verdict = kind
    line = {
        "statement": statement,
        "paper": paper,
        "expected": expected,
        "found": found,
        "verdict": verdict,
    }
    return line | {"twin": "", "twin_verdict": "", "full": full, "twin_kind": twin_kind or kind}


def finished(data: xr.Dataset, lines: list[Line]) -> list[Line]:
    """The lines without what only the full run can tell, where the data are those of a quick one."""
    quick = parameters_of(data)["quick"]
    for one in lines:
        one.pop("twin_kind")
        if one.pop("full") and quick:
            for name in ("verdict", "twin_verdict"):
                if one[name] in ("agrees", "differs", "calibrated", "open"):
                    one[name] = "not judged"
    return lines


def compared(data: xr.Dataset, statements: Callable[[xr.Dataset], list[Line]]) -> list[Line]:
    """The same statements for the plain model and for all twins, side by side."""
    lines = statements(data.sel(model="plain"))
    names = [name for name in TWINS if name in data["model"].values]
    of_twins = [statements(data.sel(model=name)) for name in names]
    for one, *others in zip(lines, *of_twins, strict=True):
        one |= joint(names, others)
    return finished(data, lines)


def joint(names: list[str], lines: list[Line]) -> Line:
    """What several twins say of a statement: their common verdict, or "open" where they disagree."""
    verdicts = [
        one["twin_kind"] if one["verdict"] in ("agrees", "calibrated") else one["verdict"]
        for one in lines
    ]
    found = [one["found"] for one in lines]
    if len(set(found)) > 1:
        found = [f"{name}: {text}" for name, text in zip(names, found, strict=True)]
    verdict = verdicts[0] if len(set(verdicts)) == 1 else "open"
    return {"twin": "; ".join(dict.fromkeys(found)), "twin_verdict": verdict}


def listed(values: Any, digits: int = 1) -> str:
    """Numbers with commas."""
    return ", ".join(f"{value:.{digits}f}" for value in np.asarray(values).ravel())


def rises(values: Any, slack: float = 0.0) -> bool:
    """Whether each number is larger than the one before it, give or take `slack`."""
    return bool(np.all(np.diff(np.asarray(values), axis=0) > -slack))


def styled(draw: Callable[[xr.Dataset], Figure]) -> Callable[[xr.Dataset], Figure]:
    """A function that draws in infocap's look."""

    @functools.wraps(draw)
    def in_style(data: xr.Dataset) -> Figure:
        with mpl.rc_context(infocap.plot.STYLE):
            return draw(data)

    return in_style


def canvas(height_mm: float, width_mm: float | None = None) -> Figure:
    """An empty figure, two columns wide unless told."""
    width = infocap.plot.DOUBLE_MM if width_mm is None else width_mm
    return Figure(figsize=(width / 25.4, height_mm / 25.4), layout="constrained", dpi=150)


def lettered(ax: Axes, letter: str, title: str = "") -> None:
    """A letter for the panel, as in the paper, and what it shows."""
    text = f"({letter}) {title}" if letter else title
    ax.set_title(text.strip(), loc="left", fontweight="normal")


def circle(ax: Axes, total: float) -> None:
    """Total over maximum in a circle, as the paper has it."""
    ax.annotate(
        rf"$\frac{{{total:.1f}}}{{{MOST}}}$",
        (1.0, 1.0),
        (-20, -20),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=12,
        bbox={
            "boxstyle": "circle,pad=0.2",
            "facecolor": "white",
            "edgecolor": "black",
            "linewidth": 0.8,
        },
    )


def bars(result: infocap.CapacityResult, ax: Axes, letter: str, title: str) -> None:
    """Capacities by degree, with the legend inside the panel, above the bars: above the panel stands the letter."""
    infocap.plot.capacity_bars(result, ax)
    ax.set_ylim(0, 1.45 * ax.get_ylim()[1])
    ax.legend(loc="upper left", handlelength=1.0, handletextpad=0.5)
    lettered(ax, letter, title)


def spread(values: xr.DataArray, digits: int = 1) -> str:
    """Mean and standard deviation over the seeds, such as 13.9 ± 0.2; the mean alone of one seed."""
    if values.sizes.get("seed", 1) == 1:
        return f"{values.mean().item():.{digits}f}"
    return f"{values.mean().item():.{digits}f} ± {values.std('seed', ddof=1).item():.{max(digits, 2)}f}"


def by_length(values: xr.DataArray, digits: int = 1) -> str:
    """Means over the seeds against power, length by length, and the largest standard deviation over the seeds."""
    mean = values.mean("seed") if "seed" in values.dims else values
    text = "; ".join(
        f"{length:g} m: {listed(mean.sel(length_m=length), digits)}"
        for length in mean["length_m"].values
    )
    if values.sizes.get("seed", 1) > 1:
        text += f" (± {values.std('seed', ddof=1).max().item():.2g} at most)"
    return text


def grows(values: xr.DataArray) -> bool:
    """Whether the mean over seeds rises with every step of power at every length, and from each length to the next."""
    table = values.mean("seed").transpose("power_dbm", "length_m").values
    return rises(table) and rises(table.T)
