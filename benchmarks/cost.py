"""What the control-variate estimator costs, relative to Algorithm 1: the paper's five-input job on one core.

``python benchmarks/cost.py --write`` takes two minutes; ``benchmarks/limits.py`` has larger jobs, on a graphics card too.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import infocap
from _common import run_tables, side_by_side

BASIS = infocap.product_basis("legendre", 5, 8)
SYSTEMS = {
    "paper's mixture, no noise": infocap.theory.random_mixture(
        BASIS, n_active=200, n_readouts=71, seed=1
    ),
    "paper's mixture, 30 % noise": infocap.theory.random_mixture(
        BASIS, n_active=200, n_readouts=71, noise=0.3, seed=1
    ),
    "tanh network, noise 1e-2": infocap.systems.RandomFeatures(5, 71, noise=0.01, seed=1),
}
METHODS = {
    "Algorithm 1": {"method": "threshold-richardson"},
    "control variate": {"method": "control-variate"},
    "least squares": {"method": "control-variate", "method_options": {"fit": "least-squares"}},
}


def times() -> list[str]:
    """Median times of three rounds, the methods taking turns."""
    lines = [
        "N = 8192, K = 72, L = 1287.",
        "",
        "| system | points | Algorithm 1 | control variate | ratio | least squares | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, system in SYSTEMS.items():
        for design in ("sobol", "random"):
            u = infocap.draw(BASIS, 8192, design=design, seed=0)
            x = system(u)
            jobs = {
                method: partial(infocap.estimate, u, x, BASIS, **options)
                for method, options in METHODS.items()
            }
            found = side_by_side(jobs, 3)
            base = found["Algorithm 1"]
            cells = [name, design, f"{base:.3f} s"]
            for method in ("control variate", "least squares"):
                cells += [f"{found[method]:.2f} s", f"{found[method] / base:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def memory() -> list[str]:
    """The largest memory of a process that does one job, beside one that only has the data."""
    lines = ["| job | largest memory |", "|---|---|"]
    for method in ("nothing but the data", *METHODS):
        command = [sys.executable, __file__, "--child", method]
        peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        lines.append(f"| {method} | {peak / 1e6:.2f} GB |")
    return lines


def child(method: str) -> None:
    """One job, then the largest resident memory in kilobytes."""
    u = infocap.draw(BASIS, 8192, seed=0)
    x = SYSTEMS["tanh network, noise 1e-2"](u)
    if method in METHODS:
        infocap.estimate(u, x, BASIS, **METHODS[method])
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(re.search(r"VmHWM:\s+(\d+)", status)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.child:
        child(options.child)
        return
    tables = {"Time on one core": times, "Memory": memory}
    run_tables(
        "Cost of the control-variate estimator", "python benchmarks/cost.py", tables, options.write
    )


if __name__ == "__main__":
    main()
