"""How close every method comes to the truth, and how honest its error bars are.

``python benchmarks/accuracy.py --write`` takes about three quarters of an hour on one core and keeps the tables in
RESULTS.md; without ``--write`` it prints them; ``--quick`` takes one data set each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import infocap
from _common import run_tables
from _truth import Known, collinear, features, fibre, mixture, spectral

METHODS = {
    "raw": {"method": "raw", "jackknife": 16},
    "Algorithm 1": {"method": "threshold-richardson", "jackknife": 16},
    "Algorithm 2": {"method": "richardson-threshold", "jackknife": 16},
    "least squares": {"method": "control-variate", "fit": "least-squares"},
    "control variate": {"method": "control-variate"},
}
DESIGNS = ("random", "sobol")
FIVE = infocap.product_basis("legendre", 5, 8)
TWO = infocap.product_basis("legendre", 2, 14)
THREE = infocap.product_basis("legendre", 3, 7)


@dataclass(frozen=True)
class Job:
    """A system, numbers of samples, and how many data sets."""

    system: Known
    sizes: tuple[int, ...]
    count: int


def jobs(count: int) -> Iterator[Job]:
    """The systems; each is made when its turn comes."""
    few = max(count // 5, 1)
    yield Job(mixture("paper's mixture, no noise", FIVE, 200, 71, 0.0, 0.0, 21), (1024, 4096, 8192), few)
    yield Job(mixture("paper's mixture, 30 % noise", FIVE, 200, 71, 0.3, 0.0, 22), (1024, 4096, 8192), few)
    yield Job(
        mixture("paper's mixture, 3 % noise, 10 % outside", FIVE, 200, 71, 0.03, 0.1, 23),
        (1024, 4096, 8192),
        few,
    )
    yield Job(
        mixture("3 inputs, 40 of 120 functions, 100 % noise", THREE, 40, 24, 1.0, 0.0, 24),
        (256, 1024, 4096),
        count,
    )
    yield Job(
        features("weak tanh, 2 inputs, noise 1e-3", 2, 14, 71, 1.0, 1e-3, 40, 25), (256, 1024, 4096), count
    )
    yield Job(
        features("strong tanh, 2 inputs, noise 1e-2", 2, 14, 71, 3.0, 1e-2, 80, 26), (256, 1024, 4096), count
    )
    yield Job(features("tanh, 4 inputs, no noise", 4, 6, 60, 1.0, 0.0, 18, 27), (256, 1024, 4096), count)
    yield Job(
        features("sine, 3 inputs, noise 1e-4", 3, 7, 40, 1.5, 1e-4, 30, 28, "sin"), (256, 1024, 4096), count
    )
    yield Job(
        collinear("collinear pairs 1e-2, noise 1e-4", 3, 6, 24, 1e-2, 1e-4, 30, 29), (256, 1024, 4096), count
    )
    yield Job(spectral("spectrum, noise 1e-3", 14, 71, 1e-3, 80, 30), (256, 1024, 4096), count)
    yield Job(fibre("fibre, 4.5 dBm, 40 m, noise 1e-3", 14, 1e-3, 32), (256, 1024, 4096), count)


@dataclass(frozen=True, eq=False)
class Score:
    """One method on the data sets of one line of the table."""

    rms: float
    largest: float
    bias: float
    total: float
    false: float
    missed: float
    covered: tuple[float, float]  # 68 % and 95 % intervals of capacities above 1e-3
    total_covered: float
    seconds: float


def score(system: Known, data: list[tuple[np.ndarray, np.ndarray]], options: dict[str, object]) -> Score:
    exact = system.capacity
    active = exact > 1e-3
    start = time.perf_counter()
    found = [infocap.estimate(u, x, system.basis, **options) for u, x in data]
    seconds = (time.perf_counter() - start) / len(data)
    error = np.array([one.capacity - exact for one in found])
    total = np.array([one.total - exact.sum() for one in found])
    covered, levels = [], (0.68, 0.95) if found[0].standard_error is not None else ()
    for level in levels:
        intervals = [one.interval(level) for one in found]
        covered.append(
            np.mean(
                [(i[:, 0] - 1e-9 <= exact)[active] & (exact <= i[:, 1] + 1e-9)[active] for i in intervals]
            )
        )
    hit = (
        []
        if not levels
        else [
            low - 1e-9 <= exact.sum() <= high + 1e-9 for low, high in (one.total_interval() for one in found)
        ]
    )
    return Score(
        rms=float(np.sqrt(np.mean(error**2))),
        largest=float(np.abs(error).max()),
        bias=float(total.mean()),
        total=float(np.sqrt(np.mean(total**2))),
        false=float(np.mean([np.sum((one.capacity > 0) & (exact < 1e-6)) for one in found])),
        missed=float(np.mean([np.sum((one.capacity == 0) & (exact > 0.01)) for one in found])),
        covered=tuple(map(float, covered)) or (np.nan, np.nan),
        total_covered=float(np.mean(hit)) if hit else np.nan,
        seconds=seconds,
    )


def data_sets(system: Known, n: int, design: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    out = []
    for seed in range(count):
        u = infocap.draw(system.basis, n, design=design, seed=7000 + seed)
        out.append((u, system(u, seed=[n, seed])))
    return out


class Accuracy:
    """All methods on all systems; the summary comes from the same runs."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.ratios: list[tuple[str, float, float]] = []

    def table(self) -> list[str]:
        """All methods on all systems."""
        lines = [
            "rms and largest error of the capacities as shown; total: mean and rms error; false: shown where the truth is "
            "below 1e-6; missed: not shown where it is above 0.01; intervals of capacities above 1e-3 that hold (68 %, "
            "95 %), and of the total (95 %); error bars of the first three are the jackknife's (16 blocks).",
            "",
            "| system (functions, true total) | N | points | method | rms | largest | total | false | missed | 68 % | 95 % | total 95 % | s |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for job in jobs(self.count):
            system, name = job.system, ""
            for n in job.sizes:
                for design in DESIGNS:
                    data = data_sets(system, n, design, job.count)
                    scores = {}
                    for method, options in METHODS.items():
                        if method == "least squares" and n < 3 * len(system.basis):
                            continue
                        readouts = data[0][1].shape[1] + 1
                        if "jackknife" in options and n < 16 * readouts:
                            options = options | {"jackknife": 4 if n >= 4 * readouts else 0}
                        scores[method] = score(system, data, options)
                    for method, one in scores.items():
                        label = f"{system.name} ({len(system.basis)}, {system.capacity.sum():.2f})"
                        lines.append(_row(label if label != name else "", n, design, method, one))
                        name = label
                        print(lines[-1], flush=True)
                    if "Algorithm 1" in scores:
                        ours, theirs = scores["control variate"], scores["Algorithm 1"]
                        self.ratios.append(
                            (
                                f"{system.name}, N={n}, {design}",
                                ours.rms / theirs.rms,
                                ours.total / theirs.total,
                            )
                        )
        return lines

    def summary(self) -> list[str]:
        """Ratios to Algorithm 1."""
        rms, total = (np.array([row[k] for row in self.ratios]) for k in (1, 2))
        worst = [max(self.ratios, key=lambda row: row[k]) for k in (1, 2)]
        return [
            "Error of the control-variate estimator divided by that of Algorithm 1 on the same data.",
            "",
            "| | median | worst | where |",
            "|---|---|---|---|",
            f"| rms of a capacity | {np.median(rms):.3f} | {rms.max():.2f} | {worst[0][0]} |",
            f"| rms of the total | {np.median(total):.3f} | {total.max():.2f} | {worst[1][0]} |",
        ]


def _row(name: str, n: int, design: str, method: str, one: Score) -> str:
    cells = [
        name,
        n,
        design,
        method,
        f"{one.rms:.1e}",
        f"{one.largest:.1e}",
        f"{one.bias:+.3f} ({one.total:.3f})",
    ]
    cells += [f"{one.false:.1f}", f"{one.missed:.1f}", *(f"{100 * c:.0f}" for c in one.covered)]
    return (
        "| " + " | ".join(map(str, [*cells, f"{100 * one.total_covered:.0f}", f"{one.seconds:.2f}"])) + " |"
    )


def coverage(count: int) -> list[str]:
    """Many data sets on smaller systems: intervals, and false discoveries."""
    small = infocap.product_basis("legendre", 2, 10)
    systems = [
        mixture("mixture, 30 % noise", small, 30, 15, 0.3, 0.0, 31),
        mixture("mixture, 100 % noise", small, 30, 15, 1.0, 0.0, 32),
        mixture("mixture, 10 % noise, 10 % outside", small, 30, 15, 0.1, 0.1, 33),
        features("weak tanh, noise 1e-2", 2, 10, 20, 1.0, 1e-2, 40, 34),
        features("strong tanh, noise 1e-2", 2, 10, 20, 3.0, 1e-2, 80, 35),
        features("tanh, 4 inputs, noise 3e-2", 4, 6, 40, 1.5, 3e-2, 18, 36),
        spectral("spectrum, noise 1e-2", 10, 30, 1e-2, 60, 37),
        collinear("collinear pairs 1e-2, noise 1e-3", 3, 6, 24, 1e-2, 1e-3, 30, 38),
    ]
    lines = [
        f"{count} data sets each. False discoveries: share of the shown capacities whose truth is below 1e-7.",
        "",
        "| system (functions) | N | points | 68 % | 95 % | total 68 % | total 95 % | bias of the total | its error bar | false discoveries |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for system in systems:
        exact, terms = system.capacity, len(system.basis)
        for per_function in (4, 16):
            n = 2 ** round(np.log2(per_function * terms))
            for design in DESIGNS:
                found = [infocap.estimate(u, x, system.basis) for u, x in data_sets(system, n, design, count)]
                active = exact > 1e-3
                off = np.array([np.abs(one.unbiased - exact)[active] for one in found])
                error = np.array([one.standard_error[active] for one in found])
                totals = np.array([one.total - exact.sum() for one in found])
                errors = np.array([one.total_standard_error for one in found])
                shown = np.array([one.capacity > 0 for one in found])
                false = np.mean(np.sum(shown & (exact < 1e-7), axis=1) / np.maximum(shown.sum(axis=1), 1))
                shares = [np.mean(off <= k * error + 1e-12) for k in (0.994, 1.96)]
                shares += [np.mean(np.abs(totals) < k * errors) for k in (0.994, 1.96)]
                cells = [f"{system.name} ({terms})", n, design, *(f"{100 * share:.0f}" for share in shares)]
                cells += [f"{totals.mean():+.3f}", f"{errors.mean():.3f}", f"{100 * false:.1f} %"]
                lines.append("| " + " | ".join(map(str, cells)) + " |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="one data set of each")
    parser.add_argument("--only", choices=["accuracy", "bars"], help="one of the two parts")
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    bars = {"Error bars of the control-variate estimator": lambda: coverage(5 if options.quick else 200)}
    if options.only != "accuracy":
        run_tables("Error bars", "python benchmarks/accuracy.py --only bars", bars, options.write)
    if options.only == "bars":
        return
    accuracy = Accuracy(1 if options.quick else 10)
    run_tables(
        "Accuracy",
        "python benchmarks/accuracy.py --only accuracy",
        {
            "Every method against the truth": accuracy.table,
            "In short": accuracy.summary,
        },
        options.write,
    )


if __name__ == "__main__":
    main()
