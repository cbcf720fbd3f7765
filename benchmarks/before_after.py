"""Two versions of the package side by side, each in processes of its own: python benchmarks/before_after.py OLD/src cpu:1 gpu:8.

OLD/src is the source folder of the earlier version; `cpu:2` means two threads, `gpu` a CUDA device with torch. The best of
three rounds counts, and rounds of the two versions alternate, because machines are shared and noisy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

NEW = os.path.join(os.path.dirname(__file__), "..", "src")


def best(work: Callable[[], object], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(where: str) -> dict[str, float]:
    """Seconds of every job with the version that Python finds."""
    import infocap

    warnings.simplefilter("ignore")
    if where == "cpu":
        jobs = [(5, 8, 8192, 71, 25), (8, 6, 65_536, 200, 5)]
        rng = np.random.default_rng(0)
        uniform, normal = (lambda *shape: rng.uniform(-1, 1, shape)), rng.standard_normal
    else:
        import torch

        jobs = [(5, 8, 8192, 71, 20), (8, 6, 262_144, 200, 8), (10, 8, 131_072, 500, 4)]
        kind = {"dtype": torch.float64, "device": "cuda"}
        uniform, normal = (
            lambda *shape: torch.rand(shape, **kind) * 2 - 1,
            lambda shape: torch.randn(shape, **kind),
        )
    found = {}
    for q, degree, n, k, rounds in jobs:
        basis, u = infocap.product_basis("legendre", q, degree), uniform(n, q)
        # A device that answers its inputs: for readouts that follow nothing, checks search long for what they follow.
        x = (u @ normal((q, k))) ** 2 + 0.1 * normal((n, k))
        for method in ("raw", "threshold-richardson"):
            job = f"{where}: q={q}, degree {degree}, N={n}, K={k}, {method}"
            found[job] = best(
                lambda m=method, b=basis, u=u, x=x: infocap.estimate(u, x, b, method=m), rounds
            )
    return found


def main() -> None:
    old, *places = sys.argv[1:]
    print("| job | threads | before | after | ratio |\n|---|---|---|---|---|")
    for where, threads in (place.split(":") for place in places):
        found: dict[str, dict[str, float]] = {}
        for _ in range(3):
            for version, source in (("before", old), ("after", NEW)):
                path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
                limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
                call = [sys.executable, __file__, "--measure", where]
                env = os.environ | limits | {"PYTHONPATH": path}
                out = subprocess.run(
                    call, check=True, env=env, capture_output=True, text=True
                ).stdout
                for job, seconds in json.loads(out.splitlines()[-1]).items():
                    times = found.setdefault(job, {})
                    times[version] = min(seconds, times.get(version, np.inf))
        for job, times in found.items():
            ratio = times["after"] / times["before"]
            print(
                f"| {job} | {threads} | {times['before'] * 1e3:.1f} ms | {times['after'] * 1e3:.1f} ms | {ratio:.2f} |"
            )


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(json.dumps(measure(sys.argv[2])))
    else:
        main()
