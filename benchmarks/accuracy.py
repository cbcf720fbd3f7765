"""How close the estimates come to the truth, to the least error possible, and how honest their error bars are.

``python benchmarks/accuracy.py --jobs 16 --write`` keeps the tables in RESULTS.md; without ``--write`` it prints them.
``--quick`` takes two data sets each and leaves the large systems out; ``--only "6 bits,speckle"`` picks systems by parts of their names.
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
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import infocap
from _common import run_tables
from _devices import SYSTEMS
from _truth import Array, Bound, Known

METHODS = {
    "control variate": {"method": "control-variate"},
    "Algorithm 1": {"method": "threshold-richardson"},
}
OURS, PAPERS = METHODS
DESIGNS = ("8 blocks", "random", "one net")
LEVELS = (0.68, 0.95)
ACTIVE = 1e-3  # capacities above it count in the coverage of intervals
ZERO, SEEN = 1e-7, 1e-2  # shown below the first is false, not shown above the second is missed
ROUNDING = 1e-9  # what intervals may miss by where there is no noise
SMALLEST_BLOCK = 64
SHARES = (
    "covered_68",
    "covered_95",
    "total_68",
    "total_95",
    "false",
    "missed",
    "warned",
    "silent",
    "seconds",
)
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


@dataclass(frozen=True)
class Score:
    """One data set: errors as mean squares, intervals as 68 and 95 % shares; NaN where the truth is not exact enough."""

    square: float  # of the capacities as shown
    square_of_paper: float
    total: float  # error
    total_of_paper: float
    error_bar: float  # of the total
    covered_68: float
    covered_95: float
    total_68: float
    total_95: float
    false: float
    missed: float
    warned: float
    silent: float
    seconds: float


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
    """Inputs; blocks hold at least 64 points, and all states of binary inputs."""
    if design == "random":
        return infocap.draw(basis, n, design="random", seed=seed, blocks=1)
    binary = sum(family.largest_degree == 1 for family in basis.families)
    blocks = min(8, n // max(SMALLEST_BLOCK, 2**binary)) if design == "8 blocks" else 1
    return infocap.draw(basis, n, seed=seed, blocks=max(blocks, 1))


def scores(task: Task, truth: Truth) -> list[Score]:
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
        out.append(score(ours, paper, truth, seconds))
    return out


def score(ours: infocap.CapacityResult, paper: infocap.CapacityResult, truth: Truth, seconds: float) -> Score:
    """Both results against the truth."""
    exact, total = truth.capacity, float(truth.capacity.sum())
    active, shown = exact > ACTIVE, ours.capacity > 0
    each, whole = [], []
    for level in LEVELS:
        interval, (low, high) = ours.interval(level)[active], ours.total_interval(level)
        inside = (interval[:, 0] - ROUNDING <= exact[active]) & (exact[active] <= interval[:, 1] + ROUNDING)
        each.append(float(np.mean(inside)))
        whole.append(float(low - ROUNDING <= total <= high + ROUNDING))
    zeros = exact < ZERO
    return Score(
        square=float(np.mean((ours.capacity - exact) ** 2)),
        square_of_paper=float(np.mean((paper.capacity - exact) ** 2)),
        total=ours.total - total,
        total_of_paper=paper.total - total,
        error_bar=ours.total_standard_error,
        covered_68=each[0],
        covered_95=each[1],
        total_68=whole[0],
        total_95=whole[1],
        false=float(np.sum(shown & zeros) / max(shown.sum(), 1)) if truth.exact and zeros.any() else np.nan,
        missed=float(np.mean(~shown[exact > SEEN])),
        warned=float(bool(ours.warnings)),
        silent=float(not whole[1] and not ours.warnings),
        seconds=seconds,
    )


@dataclass(frozen=True)
class Cell:
    """One line of the table: means over the data sets of a system, size and design."""

    system: str
    n: int
    design: str
    count: int
    rms: float
    rms_over_bound: float  # NaN without noise, where the bound is zero, and where it is infinite
    rms_ratio: float
    total_bias: float
    total_rms: float
    total_bar: float
    total_over_bound: float
    total_ratio: float
    covered_68: float
    covered_95: float
    total_68: float
    total_95: float
    false: float
    missed: float
    warned: float
    silent: float
    seconds: float


def cell_of(system: str, n: int, design: str, found: list[Score], truth: Truth) -> Cell:
    """Means of the scores, and their ratios to the bound."""
    column = {key: np.array([getattr(one, key) for one in found]) for key in asdict(found[0])}
    each, whole = truth.bound.at(n)
    least = float(np.sqrt(np.mean(each**2)))
    rms, paper = (float(np.sqrt(np.mean(column[key]))) for key in ("square", "square_of_paper"))
    total, papers = (float(np.sqrt(np.mean(column[key] ** 2))) for key in ("total", "total_of_paper"))
    return Cell(
        system,
        n,
        design,
        len(found),
        rms=rms,
        rms_over_bound=rms / least if least else np.nan,
        rms_ratio=rms / paper,
        total_bias=float(column["total"].mean()),
        total_rms=total,
        total_bar=float(column["error_bar"].mean()),
        total_over_bound=total / whole if whole else np.nan,
        total_ratio=total / papers,
        **{key: float(column[key].mean()) for key in SHARES},
    )


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
        self.cells: list[Cell] = []

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
            cells = [name, SYSTEMS[name].kind, truth.terms, truth.readouts, f"{truth.capacity.sum():.3f}"]
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
                        out.append(Task(name, n, design, tuple(self.first_seed + seed for seed in seeds)))
        return sorted(out, key=lambda task: -task.n * self.truths[task.system].terms)

    def run(self) -> None:
        """Work through all tasks."""
        found: dict[tuple[str, int, str], list[Score]] = defaultdict(list)
        with processes(self.jobs) as pool:
            waiting = {pool.submit(scores, task, self.truths[task.system]): task for task in self.tasks()}
            for finished, done in enumerate(as_completed(waiting), 1):
                task = waiting[done]
                print(f"\r{finished} of {len(waiting)} tasks", end="", file=sys.stderr, flush=True)
                found[task.system, task.n, task.design] += done.result()
        self.cells = [
            cell_of(name, n, design, found[name, n, design], self.truths[name])
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
        for cell in self.cells:
            lines.append(_row(cell, "" if cell.system == last else cell.system))
            last = cell.system
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
            parts = [text([cell for cell in self.cells if cell.design == design]) for design in self.designs]
            lines.append(f"| {label} | " + " | ".join(parts) + " |")
        return lines

    def save(self, path: Path) -> None:
        """All numbers, as JSON."""
        path.write_text(json.dumps([asdict(cell) for cell in self.cells], indent=1), encoding="utf-8")


def average(key: str, extreme: Callable = max) -> Callable[[list[Cell]], str]:
    """A mean share in per cent, and its extreme."""

    def text(cells: list[Cell]) -> str:
        known = [cell for cell in cells if np.isfinite(getattr(cell, key))]
        if not known:
            return "–"
        worst = extreme(known, key=lambda cell: getattr(cell, key))
        mean = np.average([getattr(cell, key) for cell in known], weights=[cell.count for cell in known])
        return f"{100 * mean:.1f} ({100 * getattr(worst, key):.0f}: {worst.system}, {worst.n})"

    return text


def median(key: str) -> Callable[[list[Cell]], str]:
    """The median of a ratio, and the largest."""

    def text(cells: list[Cell]) -> str:
        known = [cell for cell in cells if np.isfinite(getattr(cell, key))]
        if not known:
            return "–"
        worst = max(known, key=lambda cell: getattr(cell, key))
        middle = np.median([getattr(cell, key) for cell in known])
        return f"{middle:.2f} ({getattr(worst, key):.2f}: {worst.system}, {worst.n})"

    return text


SUMMARY = {
    "95 % intervals of capacities hold, average (least); should: 93 to 98 (88)": average("covered_95", min),
    "95 % intervals of totals hold, average (least); should: 91 to 99 (75)": average("total_95", min),
    "68 % intervals of capacities hold": average("covered_68", min),
    "68 % intervals of totals hold": average("total_68", min),
    "silent misses of the total, average (most); should: at most 5": average("silent"),
    "false discoveries, average (most); should: at most 5": average("false"),
    "missed, average (most)": average("missed"),
    "warned, average (most)": average("warned"),
    "rms of capacities / bound, median (largest); should: at most 1.3": median("rms_over_bound"),
    "rms of totals / bound, median (largest); should: at most 2": median("total_over_bound"),
    "rms of capacities / Algorithm 1, median (largest)": median("rms_ratio"),
    "rms of totals / Algorithm 1, median (largest)": median("total_ratio"),
    "seconds, median (largest)": median("seconds"),
}


def _row(cell: Cell, name: str) -> str:
    cells = [
        name,
        cell.n,
        cell.design,
        f"{cell.rms:.1e} / {cell.rms_over_bound:.2f}",
        f"{cell.rms_ratio:.2f}",
    ]
    cells += [
        f"{cell.total_bias:+.3f} ({cell.total_rms:.3f}) ± {cell.total_bar:.3f}",
        f"{cell.total_over_bound:.2f}",
    ]
    cells += [f"{100 * cell.covered_68:.0f} / {100 * cell.covered_95:.0f}"]
    cells += [f"{100 * cell.total_68:.0f} / {100 * cell.total_95:.0f}", f"{100 * cell.false:.1f}"]
    cells += [f"{100 * share:.0f}" for share in (cell.missed, cell.warned, cell.silent)]
    return "| " + " | ".join(map(str, [*cells, f"{cell.seconds:.2f}"])).replace("nan", "–") + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="two data sets each, without the large systems")
    parser.add_argument(
        "--count", type=int, default=16, help="data sets of each line; a quarter for large systems"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first data set: take another for fresh ones"
    )
    parser.add_argument("--only", help="names of systems, or parts of them, separated by commas")
    parser.add_argument("--designs", default=",".join(DESIGNS), help="designs, separated by commas")
    parser.add_argument("--save", type=Path, help="a file for all numbers, as JSON")
    options = parser.parse_args()
    parts = options.only.split(",") if options.only else [""]
    names = [name for name in SYSTEMS if any(part in name for part in parts)]
    if options.quick:
        names = [name for name in names if not SYSTEMS[name].large]
    count = 2 if options.quick else options.count
    accuracy = Accuracy(names, count, options.designs.split(","), options.jobs, options.seed)
    tables = {"Systems": accuracy.systems, "Against the truth": accuracy.table, "In short": accuracy.summary}
    run_tables("Accuracy", "python benchmarks/accuracy.py", tables, options.write)
    if options.save:
        accuracy.save(options.save)


if __name__ == "__main__":
    main()
