"""Figure 2: what finite samples do to capacities, and what each estimator makes of it."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap
from infocap.workflow import Convergence

from ._common import (
    HALVES,
    SWEEP,
    Line,
    as_result,
    bars,
    canvas,
    finished,
    lettered,
    line,
    parameters_of,
    styled,
)
from ._work import Work

TITLE = "Finite samples: bias, its removal, and the error of every estimator"
PARAMETERS: dict[str, Any] = {
    "n_inputs": 5,
    "max_degree": 8,
    "n_samples": 8192,
    "n_active": 200,
    "n_readouts": 71,
    # Data sets for each design (the paper has 1000); the two slow methods get fewer.
    "repeats": {
        "raw": 100,
        "threshold-richardson": 100,
        "richardson-threshold": 100,
        "chi2": 100,
        "control-variate": 10,
        "surrogate": 2,
    },
    "bin_width": 2e-4,
    "power_dbm": -1.9,
    "length_m": 40.0,
    "seed": 1,
    "fibre_seeds": 10,
    "quick": False,
}
QUICK: dict[str, Any] = {
    "repeats": dict.fromkeys(PARAMETERS["repeats"], 5) | {"control-variate": 1, "surrogate": 1},
    "fibre_seeds": 2,
    "quick": True,
}
CHUNK = {"control-variate": 5, "surrogate": 1}
USUAL_CHUNK = 25
INPUTS_SEED = 1  # of the inputs, the same in every data set: the paper changes basis states and readouts alone
ZERO = 1e-9  # capacities below it are zero
ROUNDING = 1e-9  # of an error at the edge of a bin, in bins
REACH = 0.1  # errors beyond are counted in the outermost bins
DESIGNS = ("sobol", "random")
TRUTH = 72  # the total of 71 mixtures and the constant
NAMES = {
    "raw": "raw",
    "threshold-richardson": "Algorithm 1",
    "richardson-threshold": "Algorithm 2",
    "control-variate": "control-variate (ours)",
    "surrogate": "shuffled surrogates",
    "chi2": "chi-squared rule",
}
COLOURS = {  # raw and Algorithm 1 as in the paper
    ("raw", "sobol"): infocap.plot.COLOURS[1],
    ("raw", "random"): infocap.plot.COLOURS[2],
    ("threshold-richardson", "sobol"): infocap.plot.COLOURS[5],
    ("threshold-richardson", "random"): infocap.plot.COLOURS[0],
    ("control-variate", "sobol"): "black",
}
ALGORITHMS = ("threshold-richardson", "richardson-threshold")
MARKERS = {"sobol": "o", "random": "s"}
CALLED = {"sobol": "Sobol", "random": "random"}


# Jobs that are not to be added up.
SINGLE = ("fig2_convergence", "fig2_example", "fig2_unordered", "fig2_fibre")
SIZES = ("n_inputs", "max_degree", "n_samples")  # parameters of the fibre and of the mixtures
MIXTURE = ("n_active", "n_readouts")  # parameters of the mixtures alone
Jobs = dict[str, Callable[[], xr.Dataset]]


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Raw capacities of the fibre against N; errors over many systems whose capacities are known."""
    work, parameters = work or Work(), PARAMETERS | changes
    done = work.do(_single_jobs(parameters) | _repeated_jobs(parameters))
    singles = [done.pop(name) for name in list(done) if name.startswith(SINGLE)]
    parts = [*singles, *_summed(list(done.values()))]
    data = xr.merge([part.drop_attrs() for part in parts], join="outer", compat="no_conflicts")
    data.attrs["parameters"] = json.dumps(parameters)
    return data


def _single_jobs(parameters: dict[str, Any]) -> Jobs:
    """The jobs whose results stand for themselves."""
    sizes = {name: parameters[name] for name in SIZES}
    mixture = sizes | {name: parameters[name] for name in MIXTURE}
    where = {name: parameters[name] for name in ("power_dbm", "length_m")}
    n_unordered = parameters["repeats"]["raw"] // 5
    jobs = {
        "fig2_convergence": functools.partial(followed, seed=parameters["seed"], **sizes, **where),
        "fig2_example": functools.partial(example, **mixture),
        "fig2_unordered": functools.partial(unordered, n_unordered, **mixture),
    }
    for q, number in product((2, 5), range(parameters["fibre_seeds"])):
        jobs[f"fig2_fibre_q{q}_{number}"] = functools.partial(of_fibre, q, number, **where)
    return jobs


def _repeated_jobs(parameters: dict[str, Any]) -> Jobs:
    """The jobs that repeat the validation. Methods with as many repeats share their data sets."""
    mixture = {name: parameters[name] for name in SIZES + MIXTURE}
    groups: dict[tuple[int, int], list[str]] = {}
    for method, count in parameters["repeats"].items():
        chunk = CHUNK.get(method, USUAL_CHUNK)
        groups.setdefault((count, chunk), []).append(method)
    jobs = {}
    for (count, chunk), methods in groups.items():
        for design, first in product(DESIGNS, range(0, count, chunk)):
            numbers = [first, min(first + chunk, count)]
            jobs[f"fig2_{design}_{len(methods)}x{methods[0]}_{first}"] = functools.partial(
                repeated, design, methods, numbers, parameters["bin_width"], **mixture
            )
    return jobs


def followed(
    *, n_inputs: int, max_degree: int, n_samples: int, power_dbm: float, length_m: float, seed: int
) -> xr.Dataset:
    """Raw capacities of the fibre from the first N samples."""
    basis = infocap.product_basis("legendre", n_inputs, max_degree)
    u = infocap.draw(basis, n_samples, seed=seed, blocks=HALVES)
    x = infocap.photonics.FibreSystem(power_dbm=power_dbm, length_m=length_m, n_inputs=n_inputs)(
        u, seed=seed
    )
    curve = infocap.convergence(u, x, basis)
    return xr.Dataset({"raw_against_n": (("n", "term"), curve.raw)}, coords={"n": curve.n_samples})


def of_fibre(n_inputs: int, seed: int, *, power_dbm: float, length_m: float) -> xr.Dataset:
    """Totals and numbers of functions that both algorithms find in the fibre with one seed: "for our case"."""
    basis = infocap.product_basis("legendre", n_inputs, SWEEP["max_degree"][n_inputs])
    u = infocap.draw(basis, SWEEP["n_samples"][n_inputs], seed=seed, blocks=HALVES)
    x = infocap.photonics.FibreSystem(power_dbm=power_dbm, length_m=length_m, n_inputs=n_inputs)(
        u, seed=1000 + seed
    )
    evidence = infocap.estimators.gather_evidence(u, x, basis)
    found = [infocap.estimators.conclude(evidence, method) for method in ALGORITHMS]
    return xr.Dataset(
        {
            f"fibre_total_q{n_inputs}": (
                ("algorithm", "fibre_seed"),
                [[one.total] for one in found],
            ),
            f"fibre_functions_q{n_inputs}": (
                ("algorithm", "fibre_seed"),
                [[int((one.capacity > 0).sum())] for one in found],
            ),
        },
        coords={"algorithm": list(ALGORITHMS), "fibre_seed": [seed]},
    )


def unordered(count: int, **mixture: int) -> xr.Dataset:
    """Errors of Algorithm 1 with Sobol points whose halves are taken in any order: of capacities, and of the total."""
    squares = []
    total_errors = []
    for number in range(count):
        exact, (result,) = estimates(
            number, "sobol", ["threshold-richardson"], shuffled=True, **mixture
        )
        squares.append(np.mean((result.capacity - exact) ** 2))
        total_errors.append(result.total - exact.sum())
    return xr.Dataset(
        {
            "unordered_spread": float(np.sqrt(np.mean(squares))),
            "unordered_total_error": float(np.mean(total_errors)),
        }
    )


def repeated(
    design: str, methods: list[str], numbers: list[int], bin_width: float, **mixture: int
) -> xr.Dataset:
    """Errors of several methods on the same data, each number a new system at the same inputs."""
    n_bins = round(2 * REACH / bin_width)
    exact_of_repeat = []
    capacity = []  # (repeats, methods, terms)
    total_error = []  # (repeats, methods)
    for number in range(*numbers):
        exact, results = estimates(number, design, methods, **mixture)
        exact_of_repeat.append(exact)
        capacity.append([result.capacity for result in results])
        total_error.append([result.total - exact.sum() for result in results])
    exact = np.array(exact_of_repeat)[:, None]
    errors = np.array(capacity) - exact
    is_false = (np.array(capacity) > 0) & (exact < ZERO)
    false_share = is_false.sum(axis=2) / (exact < ZERO).sum(axis=2)

    bins = np.floor((errors + REACH) / bin_width + ROUNDING)
    bins = np.clip(bins, 0, n_bins - 1).astype(int)
    counts = [
        np.bincount(bins[:, row].ravel(), minlength=n_bins).astype(float)
        for row in range(len(methods))
    ]
    return xr.Dataset(
        {
            "count": (("design", "estimator", "bin"), [counts]),
            "summed_error": (("design", "estimator", "term"), errors.sum(axis=0)[None]),
            "summed_square": (("design", "estimator"), np.sum(errors**2, axis=(0, 2))[None]),
            "total_error": (("design", "estimator", "repeat"), np.transpose(total_error)[None]),
            "false_share": (("design", "estimator", "repeat"), false_share.T[None]),
        },
        coords={"design": [design], "estimator": methods, "repeat": np.arange(*numbers)},
    )


def estimates(
    number: int,
    design: str,
    methods: list[str],
    *,
    n_inputs: int,
    max_degree: int,
    n_samples: int,
    n_active: int,
    n_readouts: int,
    shuffled: bool = False,
) -> tuple[Any, list[infocap.CapacityResult]]:
    """True capacities of a synthetic system, and what each method finds, from one pass over the data."""
    basis = infocap.product_basis("legendre", n_inputs, max_degree)
    system = infocap.theory.random_mixture(
        basis, n_active=n_active, n_readouts=n_readouts, seed=number
    )
    u = infocap.draw(basis, n_samples, design=design, seed=INPUTS_SEED, blocks=HALVES)
    if shuffled:
        u = np.random.default_rng(number).permutation(u)
    with (
        warnings.catch_warnings()
    ):  # that some methods' totals exceed the maximum is what is shown here
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        evidence = infocap.estimators.gather_evidence(u, system(u), basis)
        return system.exact(), [infocap.estimators.conclude(evidence, method) for method in methods]


def example(**mixture: int) -> xr.Dataset:
    """True capacities of one system, and what three methods find with Sobol points."""
    methods = {"before": "raw", "after": "threshold-richardson", "ours": "control-variate"}
    exact, found = estimates(0, "sobol", list(methods.values()), **mixture)
    columns = dict(zip(methods, (result.capacity for result in found), strict=True))
    return xr.Dataset(
        {
            f"example_{name}": ("term", values)
            for name, values in ({"actual": exact} | columns).items()
        }
    )


def _summed(parts: list[xr.Dataset]) -> list[xr.Dataset]:
    """Sums and totals of the chunks, a data set for each method and design."""
    gathered: dict[tuple[str, str], list[xr.Dataset]] = {}
    for part in parts:
        for method in part["estimator"].values.tolist():
            gathered.setdefault((part["design"].item(), method), []).append(
                part.sel(estimator=[method])
            )
    out = []
    for chunks in gathered.values():
        count = sum(chunk.sizes["repeat"] for chunk in chunks)
        terms = chunks[0].sizes["term"]
        sums = {
            name: sum(chunk[name] for chunk in chunks) / count
            for name in ("count", "summed_error", "summed_square")
        }
        whole = xr.concat([chunk[["total_error", "false_share"]] for chunk in chunks], "repeat")
        mean_square = sums["summed_square"] / terms
        out.append(
            whole.assign(
                functions_per_bin=sums["count"],  # of one data set, on average
                mean_error=sums["summed_error"],  # of each function over the data sets
                spread=np.sqrt(mean_square - sums["summed_error"].mean("term") ** 2),
                n_repeats=(("design", "estimator"), [[count]]),
            )
        )
    return out


@styled
def draw(data: xr.Dataset) -> Figure:
    """Against N (a), histograms (b), one system (c), totals (d)."""
    parameters = parameters_of(data)
    basis = infocap.product_basis("legendre", parameters["n_inputs"], parameters["max_degree"])
    figure = canvas(255)
    rows = figure.subfigures(4, 1, height_ratios=[0.8, 1, 1.75, 1.2])
    ax = rows[0].subplots()
    raw = data["raw_against_n"]
    infocap.plot.convergence(Convergence(raw["n"].values, raw.values, TRUTH, basis), ax=ax)
    lettered(ax, "a", "raw capacities of the fibre, -1.9 dBm, 40 m, five inputs")
    _histograms(rows[1].subplots(1, 2), data, parameters["bin_width"])
    axes = rows[2].subplots(2, 2, sharex=True, sharey=True)
    titles = {
        "actual": "one synthetic system: actual",
        "before": "before: raw",
        "after": "after: Algorithm 1",
        "ours": "control-variate (ours)",
    }
    for ax, (name, title) in zip(axes.flat, titles.items(), strict=True):
        capacity = np.maximum(data[f"example_{name}"].values, 0.0)
        bars(as_result(capacity, basis, parameters["n_samples"]), ax, "c", title)
        ax.label_outer()
        if name != "actual":
            ax.get_legend().remove()
    highest = np.bincount(basis.degrees, data["example_before"]).max()
    axes[0, 0].set_ylim(0, 1.7 * highest)  # the circle stands above the bars
    _totals(rows[3].subplots(), data)
    return figure


def _histograms(axes: Any, data: xr.Dataset, width: float) -> None:
    """Errors of single capacities, and of each function's mean over the data sets."""
    edges = np.arange(data.sizes["bin"] + 1) * width - REACH
    for (method, design), colour in COLOURS.items():
        here = data.sel(estimator=method, design=design)
        label = f"{NAMES[method]}, {CALLED[design]}, {here['n_repeats'].item():.0f} sets"
        means = np.histogram(here["mean_error"], edges)[0]
        for ax, counts in zip(axes, (here["functions_per_bin"].values, means), strict=True):
            ax.stairs(np.maximum(counts, 1e-9), edges, color=colour, label=label, linewidth=0.9)
    for ax, reach, name in zip(
        axes,
        ((-0.02, 0.05), (-0.006, 0.04)),
        ("single errors", "mean error of each function"),
        strict=True,
    ):
        ax.set_yscale("log")
        ax.set_xlim(reach)
        ax.set_ylim(0.02 if ax is axes[0] else 0.5, 3000 if ax is axes[0] else 100_000)
        ax.set_xlabel("error of a capacity")
        ax.set_ylabel(f"functions per bin of {width:g}")
        lettered(ax, "b", name)
    axes[1].legend(loc="upper right", handlelength=1.2)


def _totals(ax: Any, data: xr.Dataset) -> None:
    """Mean and spread of the error of the total, by method and design."""
    for row, method in enumerate(reversed(NAMES)):
        for design, shift in (("sobol", 0.17), ("random", -0.17)):
            mean, spread, _ = _total_error(data, method, design)
            colour = infocap.plot.COLOURS[0 if design == "sobol" else 5]
            ax.errorbar(
                mean,
                row + shift,
                xerr=spread,
                fmt=MARKERS[design],
                color=colour,
                markersize=3.5,
                capsize=2,
                label=CALLED[design] if row == 0 else None,
            )
            ax.text(
                1.01,
                row + shift,
                _said(data, method, design),
                transform=ax.get_yaxis_transform(),
                va="center",
                color=colour,
            )
    ax.axvline(0, color="0.6", linewidth=0.8)
    ax.set_yticks(range(len(NAMES)), list(reversed(NAMES.values())))
    ax.set_ylim(-0.6, len(NAMES) - 0.4)
    ax.set_xlabel(
        f"error of the total capacity (truth {TRUTH}): mean and standard deviation over data sets"
    )
    ax.legend(loc="center right")
    lettered(ax, "d", "error of the total")


def _total_error(data: xr.Dataset, method: str, design: str) -> tuple[float, float, int]:
    """Mean, standard deviation and number of the errors of the total."""
    errors = data["total_error"].sel(estimator=method, design=design).dropna("repeat").values
    return float(errors.mean()), float(errors.std(ddof=1)) if len(errors) > 1 else 0.0, len(errors)


def _said(data: xr.Dataset, method: str, design: str) -> str:
    """Mean and spread of the error of the total, in words."""
    mean, spread, count = _total_error(data, method, design)
    mean = round(mean, 2) + 0.0  # no -0.00
    return f"{mean:+.2f} ± {spread:.2f} ({count} sets)" if count > 1 else f"{mean:+.2f} (1 set)"


class Errors(NamedTuple):
    """Errors of single capacities over all functions and data sets."""

    mean: float
    spread: float
    spread_of_means: float  # over the functions, of each one's mean error


def check(data: xr.Dataset) -> list[Line]:
    """The paper's claims about bias, spread and the two algorithms, and the error of the total for every method."""
    lines = [*_against_n(data["raw_against_n"])]
    errors = {
        (method, design): Errors(
            here["mean_error"].mean().item(),
            here["spread"].item(),
            here["mean_error"].std("term").item(),
        )
        for method in NAMES
        for design in DESIGNS
        for here in [data.sel(estimator=method, design=design)]
    }
    bias = "We see that Algorithm 1 removes a systematic positive bias and reduces the dispersion of errors"
    for design in DESIGNS:
        raw, after = errors["raw", design], errors["threshold-richardson", design]
        lines += [
            line(
                f"Raw capacities have a systematic positive bias, {CALLED[design]} points",
                bias,
                "mean error above 0",
                f"{raw.mean:+.5f} per function",
                raw.mean > 0,
            ),
            line(
                f"Algorithm 1 removes it, {CALLED[design]} points",
                bias,
                "less than a tenth is left",
                f"{after.mean:+.5f} per function, {abs(after.mean / raw.mean):.1%} of it",
                abs(after.mean) < 0.1 * raw.mean,
            ),
            *_narrower(
                f"Algorithm 1 reduces the dispersion of errors, {CALLED[design]} points",
                bias,
                after,
                raw,
                "raw",
            ),
        ]
    for method in ("raw", "threshold-richardson"):
        statement, sentence = (
            f"Sobol sampling reduces the variance of the errors, {NAMES[method]}",
            "Sobol sampling reduces the variance of the errors.",
        )
        lines += _narrower(
            statement, sentence, errors[method, "sobol"], errors[method, "random"], "random points"
        )
    ordered, mixed = errors["threshold-richardson", "sobol"].spread, data["unordered_spread"].item()
    random = errors["threshold-richardson", "random"].spread
    lines.append(
        line(
            "Halves of Sobol points in any order lose the advantage",
            "selecting an unordered subset negates the low-discrepancy advantages of Sobol sampling",
            "their errors are nearer to those of random points than to those of ordered halves",
            f"standard deviation {mixed:.4f}; ordered {ordered:.4f}, random points {random:.4f}",
            mixed > (ordered + random) / 2,
            full=True,
        )
    )
    ordered_total = _total_error(data, "threshold-richardson", "sobol")[0]
    mixed_total = data["unordered_total_error"].item()
    lines.append(
        line(
            "Error of the total where halves are taken in any order, Algorithm 1",
            "-",
            "-",
            f"{mixed_total:+.2f}; ordered {ordered_total:+.2f}",
            None,
        )
    )
    for design in DESIGNS:
        before, corrected = (
            _total_error(data, method, design)[0] / TRUTH
            for method in ("raw", "threshold-richardson")
        )
        false = (
            data["false_share"].sel(estimator="threshold-richardson", design=design).mean().item()
        )
        lines += [
            line(
                f"The corrected total is close to the truth where the raw one is not, {CALLED[design]} points",
                "Applying Algorithm 1 makes ... in particular the total capacity ... much closer to the ground truth.",
                "within 2 %, raw off by more than 20 %",
                f"{corrected:+.1%}, raw {before:+.1%}",
                abs(corrected) < 0.02 and before > 0.2,
            ),
            line(
                f"Algorithm 1 performs well in thresholding zero capacities, {CALLED[design]} points",
                "the validation method performs well in thresholding zero capacities",
                "less than 5 % of the zeros are shown",
                f"{false:.1%}",
                false < 0.05,
            ),
        ]
    lines += _algorithms(data)
    for method, name in NAMES.items():
        found = "; ".join(f"{CALLED[design]} {_said(data, method, design)}" for design in DESIGNS)
        lines.append(
            line(f"Error of the total, {name}: mean ± standard deviation", "-", "-", found, None)
        )
    return finished(data, lines)


def _algorithms(data: xr.Dataset) -> list[Line]:
    """What the paper says of its two algorithms "for our case", the fibre at -1.9 dBm and 40 m."""
    lines = []
    for q in (2, 5):
        total, functions = data[f"fibre_total_q{q}"], data[f"fibre_functions_q{q}"]
        first, second = (total.sel(algorithm=name) for name in ALGORITHMS)
        apart = abs(second.mean() / first.mean() - 1).item()
        counts = functions.mean("fibre_seed").values
        lines += [
            line(
                f"Both algorithms give similar totals, {q} inputs",
                "both algorithms work almost equally well and produce very similar capacity profiles",
                "mean totals within 5 %",
                f"Algorithm 1 {first.mean().item():.1f}, Algorithm 2 {second.mean().item():.1f}",
                apart < 0.05,
                full=True,
            ),
            line(
                f"Both algorithms find similar profiles, {q} inputs",
                "both algorithms work almost equally well and produce very similar capacity profiles",
                "as many functions, within 20 %",
                f"Algorithm 1 {counts[0]:.0f} functions, Algorithm 2 {counts[1]:.0f}",
                abs(counts[1] / counts[0] - 1) < 0.2,
                full=True,
            ),
            line(
                f"Algorithm 2 gives stronger fluctuations of the sum than Algorithm 1, {q} inputs",
                "Algorithm 2 gives stronger fluctuations for the sum of the capacities",
                "larger standard deviation of the total",
                f"{second.std(ddof=1).item():.2f}, Algorithm 1 {first.std(ddof=1).item():.2f} ({first.size} seeds)",
                bool(second.std() > first.std()),
                full=True,
            ),
        ]
    return lines


def _against_n(curve: xr.DataArray) -> list[Line]:
    start, mean, sizes = curve.isel(n=0), curve.mean("term").values, curve["n"].values
    sentence = "The curves all start at 1 for N=K=72, and then decrease for larger N"
    return [
        line(
            "Raw capacities all start at 1 for N = K = 72 (divided by the sample mean of y²: an identity)",
            sentence,
            "1",
            f"between {start.min().item():.6f} and {start.max().item():.6f} at N = {sizes[0]}",
            bool(abs(start - 1).max() < 1e-6) and sizes[0] == 72,
            kind="identity",
        ),
        line(
            "Raw capacities decrease with N",
            sentence,
            "their mean falls at every step",
            f"from {mean[0]:.3f} at N = {sizes[0]} to {mean[-1]:.3f} at N = {sizes[-1]} in {len(mean) - 1} steps",
            bool(np.all(np.diff(mean) < 0)),
        ),
    ]


def _narrower(
    statement: str, sentence: str, better: Errors, worse: Errors, than: str
) -> list[Line]:
    """A statement about the spread of errors, in both readings of the paper's histogram."""
    return [
        line(
            f"{statement}: {reading}",
            sentence,
            f"smaller standard deviation than {than}",
            f"{small:.5f}, {than} {large:.5f}",
            small < large,
            full=True,
        )
        for reading, small, large in (
            ("single errors", better.spread, worse.spread),
            ("mean error of each function", better.spread_of_means, worse.spread_of_means),
        )
    ]
