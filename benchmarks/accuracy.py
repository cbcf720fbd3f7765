"""How close the estimates come to the truth, to the least error possible, and how honest their error bars are.

``python benchmarks/accuracy.py --jobs 16 --write`` keeps the tables in RESULTS.md; without ``--write`` it prints them.
``--quick`` takes two data sets each and leaves the large systems out; ``--only "6 bits,speckle"`` picks systems by parts of their names.
``--systems further`` takes systems that served to choose nothing, at six kinds of points; the criteria stand in `SUMMARY` and in
`PAIR_CRITERIA`, and were written down before the run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import infocap
from _common import is_about_data, run_tables
from _devices import SYSTEMS as FIRST
from _further_devices import FURTHER, PAIRS
from _truth import Array, Bound, Known

Numbers = dict[str, Any]  # by name
METHODS = {
    "control variate": {"method": "control-variate"},
    "Algorithm 1": {"method": "threshold-richardson"},
}
OURS, PAPERS = METHODS
SYSTEMS = FIRST | FURTHER
DESIGNS = {
    "first": ("8 blocks", "random", "one net"),
    "further": ("8 blocks", "random", "one net", "permuted", "sorted", "part-way"),
}
PART_OF_DESIGN = 1.37  # of N samples, out of a design of 2 N
# Systems some of whose shots are bad indeed, so that a finding about them is right.
FAULTY = ("2 % garbage",)
# A line counts as reliable if so many of its data sets are not flagged.
MIN_RELIABLE_SHARE = 0.5
PAIR_CRITERIA = "should: hold in 92 to 100 %, degrees as well, and bars at most 5 % longer than for independent runs"
ACTIVE = 1e-3  # capacities above it count in the coverage of intervals
ZERO, SEEN = 1e-7, 1e-2  # shown below the first is false, not shown above the second is missed
ROUNDING = 1e-9  # what intervals may miss by where there is no noise
SMALLEST_BLOCK = 64
CHUNK = 4  # data sets of one task, so that the large systems spread over the processes


@dataclass(frozen=True)
class Truth:
    """What is known about a system, small enough to be sent to other processes."""

    terms: int
    readouts: int
    capacity: Array
    exact: bool
    bound: Bound


@dataclass(frozen=True)
class Task:
    """Some data sets of one line of the table."""

    system: str
    n: int
    design: str
    seeds: tuple[int, ...]


@cache
def system_of(name: str) -> Known:
    """The system, made once in each process."""
    return SYSTEMS[name].make(name)


def truth_of(name: str) -> Truth:
    """Capacities and bound of a system."""
    system = system_of(name)
    readouts = system._vectors[0].shape[1] - 1
    return Truth(len(system.basis), readouts, system.capacity, system.exact, system.bound)


def points(basis: infocap.ProductBasis, n: int, design: str, seed: int) -> Array:
    """Inputs; blocks hold at least 64 points, and all states of binary inputs.

    Permuted and sorted are the rows of the blocks in another order; part-way is a design of 2 N samples that was
    stopped after 1.37 N of them.
    """
    if design == "random":
        return infocap.draw(basis, n, design="random", seed=seed, blocks=1)
    if design == "part-way":
        return points(basis, 2 * n, "8 blocks", seed)[: int(PART_OF_DESIGN * n)]
    binary = sum(family.largest_degree == 1 for family in basis.families)
    blocks = 1 if design == "one net" else min(8, n // max(SMALLEST_BLOCK, 2**binary))
    u = infocap.draw(basis, n, seed=seed, blocks=max(blocks, 1))
    if design == "permuted":
        return np.random.default_rng(seed).permutation(u)
    if design == "sorted":
        return u[np.argsort(u[:, 0], kind="stable")]
    return u


def scores(task: Task, truth: Truth) -> list[Numbers]:
    """All methods on some data sets."""
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    system, out = system_of(task.system), []
    for seed in task.seeds:
        u = points(system.basis, task.n, task.design, 7000 + seed)
        x = system(u, seed=[task.n, seed])
        start = time.perf_counter()
        ours = infocap.estimate(u, x, system.basis, **METHODS[OURS])
        seconds = time.perf_counter() - start
        paper = infocap.estimate(u, x, system.basis, **METHODS[PAPERS])
        out.append(score(ours, paper, truth, seconds, task.system))
    return out


def score(
    ours: infocap.CapacityResult,
    paper: infocap.CapacityResult,
    truth: Truth,
    seconds: float,
    system: str,
) -> Numbers:
    """One data set: errors of both methods, and shares of intervals, discoveries and warnings of ours."""
    exact, total = truth.capacity, float(truth.capacity.sum())
    active, zeros, shown = exact > ACTIVE, exact < ZERO, ours.capacity > 0
    found: Numbers = {
        "square": np.mean((ours.capacity - exact) ** 2),
        "paper_square": np.mean((paper.capacity - exact) ** 2),
        "total_bias": ours.total - total,
        "total_square": (ours.total - total) ** 2,
        "paper_total_square": (paper.total - total) ** 2,
        "total_bar": ours.total_standard_error,
        "false": np.sum(shown & zeros) / max(shown.sum(), 1)
        if truth.exact and zeros.any()
        else np.nan,
        "missed": np.mean(~shown[exact > SEEN]),
        "warned": bool(ours.warnings),
        "flagged": bool(ours.unreliable),
        # The data are clean and fairly drawn, so that a finding about them or their order is false.
        "accused": np.nan
        if system in FAULTY
        else any(is_about_data(check) for check in ours.warnings),
        "seconds": seconds,
    }
    by_degree = np.bincount(ours.basis.degrees, ours.unbiased)[1:]
    miss = np.abs(by_degree - np.bincount(ours.basis.degrees, exact)[1:])
    found["degrees"] = np.mean(miss <= 1.96 * infocap.result.errors_by_degree(ours)[1:] + ROUNDING)
    for level in (68, 95):
        (low, high), (least, most) = (
            ours.interval(level / 100)[active].T,
            ours.total_interval(level / 100),
        )
        inside = (low - ROUNDING <= exact[active]) & (exact[active] <= high + ROUNDING)
        found[f"covered_{level}"] = np.mean(inside)
        found[f"total_{level}"] = least - ROUNDING <= total <= most + ROUNDING
    found["silent"] = not found["total_95"] and not ours.warnings
    return {key: float(value) for key, value in found.items()}


@dataclass(frozen=True)
class PairTask:
    """Some comparisons of two devices at the same inputs."""

    pair: str
    n: int
    seeds: tuple[int, ...]


@cache
def pair_of(name: str) -> tuple[Known, Known]:
    """Both devices, made once in each process."""
    return PAIRS[name].make(name)


def pair_scores(task: PairTask) -> list[Numbers]:
    """Errors of the difference of two totals, and its error bars."""
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    devices, out = pair_of(task.pair), []
    basis = devices[0].basis
    exact = devices[1].capacity - devices[0].capacity
    exact_degrees = np.bincount(basis.degrees, exact)
    for seed in task.seeds:
        u = infocap.draw(basis, task.n, seed=9000 + seed)
        results = [
            infocap.estimate(u, device(u, seed=[task.n, seed, k]), basis)
            for k, device in enumerate(devices)
        ]
        comparison = infocap.compare(results)
        row = comparison.totals().iloc[1]
        degrees = comparison.by_degree().query("device == 'device 2'").iloc[1:]
        miss = np.abs(degrees.difference.to_numpy() - exact_degrees[1:])
        reach = 1.96 * degrees.difference_standard_error.to_numpy() + ROUNDING
        error = row.difference - exact.sum()
        out.append(
            {
                "square": error**2,
                "bar": row.difference_standard_error,
                "independent": np.hypot(*(one.total_standard_error for one in results)),
                "holds": abs(error) <= 1.96 * row.difference_standard_error + ROUNDING,
                "degrees": np.mean(miss <= reach),
            }
        )
    return out


def line_of(system: str, n: int, design: str, found: list[Numbers], truth: Truth) -> Numbers:
    """One line of the table: means over data sets, and ratios; NaN where the bound is zero or infinite."""
    line: Numbers = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    each, whole = truth.bound.at(n)
    square = float(np.mean(each**2))
    line["rms"], line["total_rms"] = np.sqrt(line["square"]), np.sqrt(line["total_square"])
    line["rms_over_bound"] = np.sqrt(line["square"] / square) if square else np.nan
    line["total_over_bound"] = line["total_rms"] / whole if whole else np.nan
    line["rms_ratio"] = np.sqrt(line["square"] / line["paper_square"])
    line["total_over_bar"] = line["total_rms"] / max(line["total_bar"], ROUNDING)
    is_reliable = line["flagged"] <= 1 - MIN_RELIABLE_SHARE
    line["reliable_over_bar"] = line["total_over_bar"] if is_reliable else np.nan
    line["total_ratio"] = np.sqrt(line["total_square"] / line["paper_total_square"])
    return {"system": system, "n": n, "design": design, "count": len(found)} | line


def processes(count: int) -> ProcessPoolExecutor:
    """Fresh processes, whose matrix library will use one thread each."""
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


class Accuracy:
    """The runs, in as many processes as there are jobs, and the tables made of them."""

    def __init__(
        self, names: list[str], count: int, designs: Iterable[str], jobs: int, first_seed: int
    ) -> None:
        self.names, self.count, self.designs = names, count, tuple(designs)
        self.jobs, self.first_seed = jobs, first_seed
        self.truths: dict[str, Truth] = {}
        self.lines: list[Numbers] = []

    def systems(self) -> list[str]:
        """Sizes, true totals and bounds of the systems."""
        with processes(self.jobs) as pool:
            self.truths = dict(zip(self.names, pool.map(truth_of, self.names), strict=True))
        lines = [
            "L functions, K readouts; bound: the least root mean square error of a capacity, and of the total, that any "
            "estimate can have with these numbers of samples (none without noise; infinite with Student's t3).",
            "",
            "| system | kind | L | K | true total | N | bound | of the total |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name, truth in self.truths.items():
            sizes, bounds = SYSTEMS[name].sizes, [truth.bound.at(n) for n in SYSTEMS[name].sizes]
            cells = [
                name,
                SYSTEMS[name].kind,
                truth.terms,
                truth.readouts,
                f"{truth.capacity.sum():.3f}",
            ]
            cells.append(", ".join(map(str, sizes)))
            cells.append(", ".join(f"{np.sqrt(np.mean(each**2)):.1e}" for each, _ in bounds))
            cells.append(", ".join(f"{total:.3f}" for _, total in bounds))
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        return lines

    def tasks(self) -> list[Task]:
        """All tasks, the longest first."""
        out = []
        for name in self.names:
            entry = SYSTEMS[name]
            count, chunk = (max(self.count // 4, 1), 1) if entry.large else (self.count, CHUNK)
            for n in entry.sizes:
                for design in self.designs:
                    for start in range(0, count, chunk):
                        seeds = range(start, min(start + chunk, count))
                        out.append(
                            Task(name, n, design, tuple(self.first_seed + seed for seed in seeds))
                        )
        return sorted(out, key=lambda task: -task.n * self.truths[task.system].terms)

    def run(self) -> None:
        """Work through all tasks."""
        found: dict[tuple[str, int, str], list[Numbers]] = defaultdict(list)
        with processes(self.jobs) as pool:
            waiting = {
                pool.submit(scores, task, self.truths[task.system]): task for task in self.tasks()
            }
            for finished, done in enumerate(as_completed(waiting), 1):
                task = waiting[done]
                print(f"\r{finished} of {len(waiting)} tasks", end="", file=sys.stderr, flush=True)
                found[task.system, task.n, task.design] += done.result()
        self.lines = [
            line_of(name, n, design, found[name, n, design], self.truths[name])
            for name in self.names
            for n in SYSTEMS[name].sizes
            for design in self.designs
        ]

    def table(self) -> list[str]:
        """One line for each system, size and design."""
        self.run()
        lines = [
            "Root mean square errors of capacities as shown, over the bound and over Algorithm 1's on the same data; total: "
            "bias (root mean square) ± mean error bar, and over the bound; intervals that hold, 68 / 95 %, of capacities above "
            "1e-3 and of the total; false: share of those shown whose truth is below 1e-7; missed: share of those above 0.01 "
            "that are not shown; silent: the total's 95 % interval misses and nothing is warned of. All shares in %.",
            "",
            "| system | N | points | rms / bound | / Algorithm 1 | total | / bound | capacities | total | false | missed | warned | silent | s |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        last = ""
        for line in self.lines:
            lines.append(_row(line, "" if line["system"] == last else line["system"]))
            last = line["system"]
        return lines

    def summary(self) -> list[str]:
        """What the estimator promises: one column for each design."""
        lines = [
            "Averages, medians and extremes over systems and sizes; where the extreme is, in brackets.",
            "",
            "| | " + " | ".join(self.designs) + " |",
            "|---|" + "---|" * len(self.designs),
        ]
        for label, text in SUMMARY.items():
            parts = [
                text([one for one in self.lines if one["design"] == design])
                for design in self.designs
            ]
            lines.append(f"| {label} | " + " | ".join(parts) + " |")
        return lines

    def differences(self) -> list[str]:
        """One line for each pair of devices and size."""
        tasks = []
        for name, pair in PAIRS.items():
            for n in pair.sizes:
                for start in range(0, self.count, CHUNK):
                    seeds = range(start, min(start + CHUNK, self.count))
                    tasks.append(PairTask(name, n, tuple(self.first_seed + seed for seed in seeds)))
        found: dict[tuple[str, int], list[Numbers]] = defaultdict(list)
        with processes(self.jobs) as pool:
            for task, scored in zip(tasks, pool.map(pair_scores, tasks), strict=True):
                found[task.pair, task.n] += scored
        lines = [
            f"Differences of two devices at the same inputs; {PAIR_CRITERIA}.",
            "",
            "| pair | N | root mean square error | bar | bar of independent runs | total holds | degrees hold |",
            "|---|---|---|---|---|---|---|",
        ]
        for (name, n), scored in found.items():
            mean = {key: float(np.mean([one[key] for one in scored])) for key in scored[0]}
            cells = [name, str(n), f"{np.sqrt(mean['square']):.4f}"]
            cells += [f"{mean[key]:.4f}" for key in ("bar", "independent")]
            cells += [f"{100 * mean[key]:.0f}" for key in ("holds", "degrees")]
            lines.append("| " + " | ".join(cells) + " |")
        return lines

    def save(self, path: Path) -> None:
        """All numbers, as JSON."""
        path.write_text(json.dumps(self.lines, indent=1), encoding="utf-8")


def average(key: str, extreme: Callable = max) -> Callable[[list[Numbers]], str]:
    """A mean share in per cent, and its extreme."""
    return lambda lines: _with_extreme(lines, key, np.mean, extreme, "{:.1f} ({:.0f}: {}, {})", 100)


def median(key: str, extreme: Callable = max) -> Callable[[list[Numbers]], str]:
    """The median of a ratio, and its extreme."""
    return lambda lines: _with_extreme(lines, key, np.median, extreme, "{:.2f} ({:.2f}: {}, {})", 1)


def _with_extreme(
    lines: list[Numbers], key: str, centre: Callable, extreme: Callable, text: str, unit: float
) -> str:
    known = [line for line in lines if np.isfinite(line[key])]
    if not known:
        return "–"
    worst = extreme(known, key=lambda line: line[key])
    middle = centre([line[key] for line in known])
    return text.format(unit * middle, unit * worst[key], worst["system"], worst["n"])


SUMMARY = {
    "95 % intervals of capacities hold, average (least); should: 93 to 98": average(
        "covered_95", min
    ),
    "95 % intervals of totals hold, average (least); should: 92 to 99": average("total_95", min),
    "95 % intervals of degrees hold, average (least)": average("degrees", min),
    "68 % intervals of capacities hold": average("covered_68", min),
    "68 % intervals of totals hold": average("total_68", min),
    "silent misses of the total, average (most); should: at most 2": average("silent"),
    "clean data accused, average (most); should: 0": average("accused"),
    "rms of totals / mean bar, median (least); should: at least 0.5": median("total_over_bar", min),
    "the same where most totals are reliable (least); should: (at least 0.3)": median(
        "reliable_over_bar", min
    ),
    "false discoveries, average (most); should: at most 5": average("false"),
    "missed, average (most)": average("missed"),
    "warned, average (most)": average("warned"),
    "rms of capacities / bound, median (largest); should: at most 1.3": median("rms_over_bound"),
    "rms of totals / bound, median (largest); should: at most 2": median("total_over_bound"),
    "rms of capacities / Algorithm 1, median (largest)": median("rms_ratio"),
    "rms of totals / Algorithm 1, median (largest)": median("total_ratio"),
    "seconds, median (largest)": median("seconds"),
}


def _row(line: Numbers, name: str) -> str:
    shares = {key: f"{100 * value:.0f}" for key, value in line.items() if isinstance(value, float)}
    cells = [
        name,
        str(line["n"]),
        line["design"],
        "{rms:.1e} / {rms_over_bound:.2f}".format(**line),
        "{rms_ratio:.2f}".format(**line),
        "{total_bias:+.3f} ({total_rms:.3f}) ± {total_bar:.3f}".format(**line),
        "{total_over_bound:.2f}".format(**line),
        "{covered_68} / {covered_95}".format(**shares),
        "{total_68} / {total_95}".format(**shares),
        f"{100 * line['false']:.1f}",
        *(shares[key] for key in ("missed", "warned", "silent")),
        f"{line['seconds']:.2f}",
    ]
    return "| " + " | ".join(cells).replace("nan", "–") + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument(
        "--quick", action="store_true", help="two data sets each, without the large systems"
    )
    parser.add_argument(
        "--count", type=int, default=16, help="data sets of each line; a quarter for large systems"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first data set: take another for fresh ones"
    )
    parser.add_argument("--only", help="names of systems, or parts of them, separated by commas")
    parser.add_argument(
        "--systems", choices=list(DESIGNS), default="first", help="which set of systems"
    )
    parser.add_argument("--designs", help="designs, separated by commas; all of the set by default")
    parser.add_argument("--save", type=Path, help="a file for all numbers, as JSON")
    options = parser.parse_args()
    parts = options.only.split(",") if options.only else [""]
    known = FURTHER if options.systems == "further" else FIRST
    names = [name for name in known if any(part in name for part in parts)]
    if options.quick:
        names = [name for name in names if not SYSTEMS[name].large]
    count = 2 if options.quick else options.count
    designs = options.designs.split(",") if options.designs else DESIGNS[options.systems]
    accuracy = Accuracy(names, count, designs, options.jobs, options.seed)
    tables = {
        "Systems": accuracy.systems,
        "Against the truth": accuracy.table,
        "In short": accuracy.summary,
    }
    title, command = "Accuracy", "python benchmarks/accuracy.py"
    if options.systems == "further":
        tables["Differences"] = accuracy.differences
        title, command = "Accuracy, further systems", f"{command} --systems further"
    run_tables(title, command, tables, options.write)
    if options.save:
        accuracy.save(options.save)


if __name__ == "__main__":
    main()
