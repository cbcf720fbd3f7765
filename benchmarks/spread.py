"""Two Dask workers against one process over the same zarr array: processor time of all processes, and the answer.

``python benchmarks/spread.py --write`` takes a few minutes; it needs the extras dask and zarr.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import infocap
from _common import run_tables

INPUTS, READOUTS, DEGREE, CHUNK = 5, 72, 8, 20_000
METHOD = "control-variate"
BASIS = infocap.product_basis("legendre", INPUTS, DEGREE)
TICK = os.sysconf("SC_CLK_TCK")


def write(folder: Path, n_samples: int) -> tuple[object, object]:
    """Inputs and readouts of a noisy tanh network, in zarr."""
    import zarr

    rng = np.random.default_rng(0)
    weights = rng.standard_normal((INPUTS, READOUTS))
    arrays = [
        zarr.create_array(
            str(folder / name), shape=(n_samples, width), chunks=(CHUNK, width), dtype=float
        )
        for name, width in (("u.zarr", INPUTS), ("x.zarr", READOUTS))
    ]
    for start in range(0, n_samples, CHUNK):
        u = rng.uniform(-1, 1, (min(CHUNK, n_samples - start), INPUTS))
        x = np.tanh(u @ weights) + 0.1 * rng.standard_normal((len(u), READOUTS))
        for array, values in zip(arrays, (u, x), strict=True):
            array[start : start + len(u)] = values
    return arrays[0], arrays[1]


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time of some processes, all their threads."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(") ", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def measured(
    job: Callable[[], infocap.CapacityResult], pids: Iterable[int]
) -> tuple[float, float, object]:
    """Wall time and processor time of a job, and its result."""
    pids = list(pids)
    before, start = cpu_seconds(pids), time.perf_counter()
    result = job()
    return time.perf_counter() - start, cpu_seconds(pids) - before, result


def rows(n_samples: int, rounds: int) -> list[str]:
    from distributed import Client, LocalCluster

    lines = [
        f"{n_samples:,} samples, {READOUTS} readouts, {len(BASIS)} functions, {METHOD}, zarr in chunks of {CHUNK:,} rows. Processor "
        "time is user and system time of all processes (this one, which is the scheduler too, and the workers) during the call; "
        f"the median of {rounds} rounds, taken in turns.",
        "",
        "| how | wall time | processor time | relative | largest difference |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        u, x = write(Path(folder), n_samples)

        def plain() -> infocap.CapacityResult:
            return infocap.estimate(u, x, BASIS, method=METHOD)

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            workers = list(client.run(os.getpid).values())

            def spread() -> infocap.CapacityResult:
                return infocap.estimate(u, x, BASIS, method=METHOD, executor=client)

            first = measured(
                spread, [os.getpid(), *workers]
            )  # with all that a worker imports in its life
            one, two = [], []
            for _ in range(rounds):
                one.append(measured(plain, [os.getpid()]))
                two.append(measured(spread, [os.getpid(), *workers]))
            wall, cpu = (float(np.median([found[k] for found in one])) for k in (0, 1))
            reference = one[0][2]
            lines.append(f"| one process | {wall:.1f} s | {cpu:.1f} s | 1 | |")
            wall_two, cpu_two = (float(np.median([found[k] for found in two])) for k in (0, 1))
            lines.append(
                f"| Dask, 2 workers | {wall_two:.1f} s | {cpu_two:.1f} s | {cpu_two / cpu:.2f} | {off(two[0][2], reference)} |"
            )
            lines.append(
                f"| the same, the workers' first job | {first[0]:.1f} s | {first[1]:.1f} s | {first[1] / cpu:.2f} | "
                f"{off(first[2], reference)} |"
            )
            threading.Timer(wall_two / 2, os.kill, (workers[0], signal.SIGKILL)).start()
            start = time.perf_counter()
            result = spread()
            lines.append(
                f"| the same, a worker killed in the middle | {time.perf_counter() - start:.1f} s | not measured | | "
                f"{off(result, reference)} |"
            )
    return lines


def off(a: object, b: object) -> str:
    return f"{np.abs(a.capacity - b.capacity).max():.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--n-samples", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    tables = {"Processor time on a Dask cluster": lambda: rows(options.samples, options.rounds)}
    run_tables("Spread out", "python benchmarks/spread.py", tables, options.write)


if __name__ == "__main__":
    main()
