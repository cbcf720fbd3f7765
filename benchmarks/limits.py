"""How near the one pass comes to one matrix product: python benchmarks/limits.py 1 2 16 gpu.

Each number is a number of threads, with a process of its own; `gpu` is a CUDA device with torch. Large job: q=8, degree 6,
K=200, N = 32,768 per thread up to 262,144, and on the card q=10, degree 8, K=500, N=131,072, as a share of the rate of a
product of square matrices. 5-D job: the paper's q=5, degree 8, K=71, N=8192, in times of its own product. The best of a few
calls counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

METHODS = ("raw", "threshold-richardson")


def best(work: Callable[[], object], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(where: str) -> None:
    """Print the lines of one place."""
    import infocap

    warnings.simplefilter("ignore")
    rng, on_card = np.random.default_rng(0), where == "gpu"

    def there(array: Any) -> Any:
        if not on_card:
            return array
        import torch

        return torch.asarray(array, device="cuda")

    def finished(work: Callable[[], Any]) -> Callable[[], object]:
        """The work, waited for: a number of its result is fetched."""
        return lambda: float(work()[0, 0])

    large = (10, 8, 131_072, 500, 3) if on_card else (8, 6, 32_768 * min(int(where), 8), 200, 3)
    side = 8192 if on_card else 4096
    square = there(rng.standard_normal((side, side)))
    rate = 2 * side**3 / best(finished(lambda: square @ square), 3)
    for q, degree, n, k, rounds in (large, (5, 8, 8192, 71, 15)):
        basis, u = infocap.product_basis("legendre", q, degree), rng.uniform(-1, 1, (n, q))
        x = there(np.tanh(u @ rng.standard_normal((q, k))) + 0.1 * rng.standard_normal((n, k)))
        inputs = there(u)
        for method in METHODS:
            seconds = best(lambda b=basis, u=inputs, x=x, m=method: infocap.estimate(u, x, b, method=m), rounds)
            share = f"{2.0 * n * (k + 1) * (k + 1 + len(basis)) / seconds / rate:.2f} of the product's rate"
            if q == 5:
                y, z = there(np.ascontiguousarray(basis(u))), there(rng.standard_normal((n, k + 1)))
                share = f"{seconds / best(finished(lambda z=z, y=y: z.T @ y), rounds):.1f} times its product"
            job = f"q={q}, degree {degree}, N={n:,}, K={k}, {method}"
            print(f"| {where} | {job} | {seconds * 1e3:.1f} ms | {share} |", flush=True)


def main() -> None:
    print("| threads | job | time | against the product |\n|---|---|---|---|", flush=True)
    for where in sys.argv[1:]:
        limits = {} if where == "gpu" else {"OMP_NUM_THREADS": where, "OPENBLAS_NUM_THREADS": where}
        subprocess.run([sys.executable, __file__, "--measure", where], check=True, env=os.environ | limits)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(sys.argv[2])
    else:
        main()
