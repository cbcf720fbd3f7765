"""Accuracies of tasks: how often 95 % intervals hold, with the plain error over folds and with that of `Accuracy`.

``python benchmarks/tasks.py --processes 16 --write`` takes a minute and keeps the table in RESULTS.md. The truth is the
mean accuracy on fresh samples of readouts that were trained on as many samples as those of a fold.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

import infocap
from _common import run_tables
from infocap.tasks import Task

N_FRESH = 20_000
# What the table has to show; set before it was first run.
LEAST_HELD = 0.93


def drawn(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a task."""
    u = rng.uniform(-1, 1, (n, 2))
    if kind == "product":
        return u, np.prod(u, axis=1) + 0.2 * rng.standard_normal(n)
    if kind == "rings":
        return u, (np.sin(5 * np.hypot(*u.T)) + 0.5 * rng.standard_normal(n) > 0).astype(int)
    return u, (u[:, 0] + u[:, 1] ** 2 + 0.3 * rng.standard_normal(n) > 0.2).astype(int)


def one_data_set(kind: str, n: int, folds: int, seed: int) -> tuple[float, float, float, float]:
    """Accuracy, its error and the plain error over folds; and that of a readout on fresh samples."""
    rng = np.random.default_rng([seed, n, folds])
    system = infocap.systems.RandomFeatures(2, 30, gain=2.0, seed=1)
    regression = kind == "product"
    u, labels = drawn(kind, n, rng)
    found = infocap.tasks.accuracy(system, Task(u, labels, regression=regression), folds, seed=seed)
    plain = np.std(found.per_fold, ddof=1) / np.sqrt(folds)

    n_train = n - n // folds
    train = system(u[:n_train])
    fresh, correct = drawn(kind, N_FRESH, rng)
    targets = labels[:n_train] if regression else 2.0 * labels[:n_train] - 1
    weights, *_ = np.linalg.lstsq(np.column_stack([np.ones(n_train), train]), targets, rcond=None)
    predicted = np.column_stack([np.ones(N_FRESH), system(fresh)]) @ weights
    if regression:
        truth = 1 - np.mean((predicted - correct) ** 2) / np.var(correct)
    else:
        truth = np.mean((predicted > 0) == correct)
    return found.mean, found.standard_error, plain, truth


def table(sets: int, processes: int) -> list[str]:
    """How often intervals hold."""
    lines = [
        f"{sets} data sets, random features with 30 readouts. Share of 95 % intervals that hold the mean accuracy on fresh "
        "samples, by the plain error over folds and by `Accuracy.standard_error`; error, and mean error bar.",
        "",
        "| task | N | folds | accuracy | plain holds | holds | rms error | error bar |",
        "|---|---|---|---|---|---|---|---|",
    ]
    held = []
    with ProcessPoolExecutor(processes) as pool:
        for kind in ("product", "rings", "parabola"):
            for n in (200, 1000):
                for folds in (3, 5, 10):
                    job = partial(one_data_set, kind, n, folds)
                    rows = np.array(list(pool.map(job, range(sets), chunksize=8)))
                    mean, bar, plain, fresh = rows.T
                    truth = fresh.mean()
                    error = np.abs(mean - truth)
                    held.append(np.mean(error < 1.96 * bar))
                    cells = [kind, str(n), str(folds), f"{truth:.3f}"]
                    cells += [f"{np.mean(error < 1.96 * plain):.2f}", f"{held[-1]:.2f}"]
                    cells += [f"{np.sqrt(np.mean(error**2)):.4f}", f"{bar.mean():.4f}"]
                    lines.append("| " + " | ".join(cells) + " |")
                    print(lines[-1], flush=True)
    return [*lines, "", f"Intervals hold in at least {min(held):.2f} (asked {LEAST_HELD})."]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    tables = {"Intervals": partial(table, given.sets, given.processes)}
    run_tables("Tasks", "python benchmarks/tasks.py", tables, given.write)


if __name__ == "__main__":
    main()
