"""Eleven gigabytes of readouts on disk under a budget of one: time, and the largest memory of the process.

``python benchmarks/out_of_core.py --write`` makes the data under a temporary folder (``--folder`` says where), which
needs 13 GB of disk, and removes them. ``--n-samples 1000000`` makes it short.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import infocap
from _common import run_tables

INPUTS, READOUTS, DEGREE = 5, 72, 3
BLOCK = 250_000
METHOD = "control-variate"
BASIS = infocap.product_basis("legendre", INPUTS, DEGREE)


def write(folder: Path, n_samples: int) -> None:
    """Inputs and readouts of a noisy tanh network, block by block."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((INPUTS, READOUTS))
    with (folder / "u.bin").open("wb") as inputs, (folder / "x.bin").open("wb") as readouts:
        for start in range(0, n_samples, BLOCK):
            u = rng.uniform(-1, 1, (min(BLOCK, n_samples - start), INPUTS))
            x = np.tanh(u @ weights) + 0.1 * rng.standard_normal((len(u), READOUTS))
            u.tofile(inputs)
            x.tofile(readouts)


def memory() -> dict[str, int]:
    """Kilobytes of this process as the kernel counts them; VmHWM is the largest resident memory ever, mapped pages included."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return {
        name: int(re.search(rf"{name}:\s+(\d+)", status)[1])
        for name in ("VmHWM", "VmRSS", "RssAnon")
    }


def child(folder: Path, n_samples: int, budget: str) -> None:
    """One estimation; then its time, the memory before and the largest memory, and the total."""
    u = np.memmap(folder / "u.bin", float, "r", shape=(n_samples, INPUTS))
    x = np.memmap(folder / "x.bin", float, "r", shape=(n_samples, READOUTS))
    before, start = memory(), time.perf_counter()
    result = infocap.estimate(u, x, BASIS, method=METHOD, memory_limit=budget)
    seconds = time.perf_counter() - start
    print(seconds, before["VmRSS"], memory()["VmHWM"], result.total)


def table(folder: Path, n_samples: int, budgets: list[str]) -> list[str]:
    write(folder, n_samples)
    size = (folder / "x.bin").stat().st_size / 1e9
    lines = [
        f"{n_samples:,} samples, {READOUTS} readouts ({size:.1f} GB in a memmap), {len(BASIS)} functions, {METHOD}: five passes over "
        "the data. Memory is VmHWM of the process, its largest resident memory; mapped pages would be counted.",
        "",
        "| budget | time | memory before | largest memory | total |",
        "|---|---|---|---|---|",
    ]
    for budget in budgets:
        command = [
            sys.executable,
            __file__,
            "--child",
            budget,
            "--folder",
            str(folder),
            "--n-samples",
            str(n_samples),
        ]
        found = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        seconds, before, peak, total = map(float, found)
        lines.append(
            f"| {budget} | {seconds:.0f} s | {before * 1024 / 1e9:.2f} GB | {peak * 1024 / 1e9:.2f} GB | {total:.6f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    parser.add_argument("--n-samples", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, help="where to put the data")
    parser.add_argument("--child", metavar="BUDGET", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    if options.child:
        child(options.folder, options.samples, options.child)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        tables = {"Under a budget": lambda: table(Path(folder), options.samples, ["1GB"])}
        run_tables("Out of core", "python benchmarks/out_of_core.py", tables, options.write)


if __name__ == "__main__":
    main()
