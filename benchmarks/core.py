"""What the core costs, as ratios measured side by side in one run: `make bench` prints the tables.

(a) Algorithm 1 end to end against one bare matrix product, (b) against other ways to get capacities,
(c) growth of time and memory with the number of samples. With --write, RESULTS.md is brought up to date.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

import infocap
from _common import run_tables, side_by_side

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def paper_job(n_samples: int) -> tuple[infocap.ProductBasis, np.ndarray, np.ndarray]:
    """The paper's size: five inputs, degree 8 (1287 functions), 71 readouts and the constant."""
    basis = infocap.product_basis("legendre", 5, 8)
    system = infocap.theory.random_mixture(basis, n_active=200, n_readouts=71, seed=0)
    u = infocap.draw(basis, n_samples, design="random", seed=1)
    return basis, u, system(u)


def against_the_product() -> list[str]:
    basis, u, x = paper_job(8192)
    y = np.ascontiguousarray(basis(u))
    q = np.ascontiguousarray(np.linalg.qr(np.column_stack([np.ones(len(x)), x]))[0])
    lines = [
        "| threads | bare `Q.T @ Y`, Y in memory | Algorithm 1, basis included | ratio |",
        "|---|---|---|---|",
    ]
    for threads in sorted({1, os.cpu_count() or 1}):
        with threadpool_limits(threads):
            found = side_by_side(
                {
                    "product": lambda: q.T @ y,
                    "ours": lambda: infocap.estimate(u, x, basis, method="threshold-richardson"),
                },
                rounds=25,
            )
        ratio = found["ours"] / found["product"]
        lines.append(
            f"| {threads} | {found['product'] * 1e3:.1f} ms | {found['ours'] * 1e3:.1f} ms | {ratio:.2f} |"
        )
    return lines


def by_least_squares(basis: infocap.ProductBasis, u: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One least-squares call for each function: what most scripts do."""
    full, y = np.column_stack([np.ones(len(x)), x]), basis(u)
    fits = [full @ np.linalg.lstsq(full, column, rcond=None)[0] for column in y.T]
    return np.array([fit @ fit / len(fit) for fit in fits])


def against_others() -> list[str]:
    """A temporal job that RCbench can do: delays 1 to 10 of one signal, pairs of delays, degree 6."""
    logging.disable(logging.CRITICAL)
    from rcbench.tasks.ipc import IPCEvaluator

    generator = np.random.default_rng(0)
    signal, delays, n = generator.uniform(-1, 1, 8192 + 10), 10, 8192
    u = np.column_stack([np.roll(signal, delay) for delay in range(1, delays + 1)])[delays:]
    x = np.tanh(u @ generator.normal(size=(delays, 72)) + generator.normal(size=72))
    basis = infocap.product_basis("legendre", delays, 6, max_interactions=2)
    padded = np.vstack([np.zeros((delays, 72)), x])
    peer = IPCEvaluator(signal, padded, max_delay=delays, max_degree=6)
    some = infocap.product_basis("legendre", delays, indices=basis.indices[::20])
    peer.basis_functions = dict(list(peer.basis_functions.items())[::20])
    jobs = {
        "infocap, Algorithm 1": (
            lambda: infocap.estimate(u, x, basis, method="threshold-richardson"),
            len(basis),
        ),
        "infocap, raw": (lambda: infocap.estimate(u, x, basis, method="raw"), len(basis)),
        "a least-squares call per function": (lambda: by_least_squares(some, u, x), len(some)),
        "RCbench 1.0 (ridge, one split)": (
            peer.calculate_total_capacity,
            len(peer.basis_functions),
        ),
    }
    with threadpool_limits(1):
        times = side_by_side({name: job for name, (job, _) in jobs.items()}, rounds=3)
    each = {name: times[name] / count for name, (_, count) in jobs.items()}
    lines = [
        f"| {n} samples, 72 readouts, 736 functions | time per function | relative |",
        "|---|---|---|",
    ]
    for name, value in each.items():
        lines.append(
            f"| {name} | {value * 1e6:.0f} µs | {value / each['infocap, Algorithm 1']:.1f} |"
        )
    return lines


def growth() -> list[str]:
    """Each size in a process of its own that only loads its data, so that its peak memory is its own."""
    runs: dict[int, list[list[float]]] = {n: [] for n in SIZES}
    with TemporaryDirectory() as folder:
        for n in SIZES:
            _, u, x = paper_job(n)
            np.savez(Path(folder) / f"{n}.npz", u=u, x=x)
        for _ in range(5):  # the sizes take turns, like all jobs here
            for n in SIZES:
                command = [sys.executable, __file__, "--one-size", str(Path(folder) / f"{n}.npz")]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[n].append([float(word) for word in run.stdout.split()])
    found = [np.median(runs[n], axis=0) for n in SIZES]
    sizes, times = np.array(SIZES), np.array([elapsed for elapsed, _ in found])
    # a straight line through all sizes, each counting by its relative error
    start, slope = np.linalg.lstsq(
        np.column_stack([1 / times, sizes / times]), np.ones(len(sizes)), rcond=None
    )[0]
    lines = [
        f"| samples | time | relative to {start * 1e3:.0f} ms + {slope * 1e6:.2f} µs N | peak memory beyond inputs |",
        "|---|---|---|---|",
    ]
    for n, (elapsed, megabytes) in zip(SIZES, found, strict=True):
        lines.append(
            f"| {n:,} | {elapsed:.3f} s | {elapsed / (start + slope * n):.2f} | {megabytes:.0f} MB |"
        )
    return lines


def one_size(path: str) -> None:
    """Time and peak memory of one estimation of the paper's basis."""
    with np.load(path) as data:
        u, x = data["u"], data["x"]
    basis = infocap.product_basis("legendre", 5, 8)
    infocap.estimate(u[:2048], x[:2048], basis)  # imports and lazy tables are not the question
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading (Linux)
    before = memory("VmRSS")
    times = []
    for _ in range(max(3, 300_000 // len(u))):
        start = time.perf_counter()
        infocap.estimate(u, x, basis, method="threshold-richardson")
        times.append(time.perf_counter() - start)
    after = memory("VmHWM")
    print(np.median(times), after - before)


def memory(what: str) -> float:
    """Memory of this process now (VmRSS) or at its peak (VmHWM), in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update RESULTS.md")
    parser.add_argument("--one-size", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_size:
        one_size(arguments.one_size)
        return
    tables = {
        "(a) Against one bare product: q=5, degree 8, N=8192, K=72, 1287 functions": against_the_product,
        "(b) Against other ways, one thread": against_others,
        "(c) Growth with the number of samples: q=5, degree 8, K=72, 1287 functions": growth,
    }
    run_tables("Core", "python benchmarks/core.py", tables, arguments.write)


if __name__ == "__main__":
    main()
