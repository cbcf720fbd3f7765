"""Large jobs against one large matrix product, on the processor and (--gpu) on a graphics card.

python benchmarks/scale.py [--gpu] [--write]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import infocap
from _common import run_tables, side_by_side

METHODS = ("raw", "threshold-richardson")


def data(q: int, degree: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A basis, random inputs and readouts: the cost does not depend on what they are."""
    basis = infocap.product_basis("legendre", q, degree)
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (n, q))
    x = np.tanh(u @ rng.standard_normal((q, k))) + 0.1 * rng.standard_normal((n, k))
    return basis, u, x


def flop(n: int, k: int, terms: int) -> float:
    """Of the products that cannot be avoided: readouts with readouts and with all functions."""
    return 2.0 * n * k * (k + terms)


def cpu() -> list[str]:
    n, k = 65_536, 200
    basis, u, x = data(8, 6, n, k)
    a = np.random.default_rng(0).standard_normal((4096, 4096))
    jobs: dict[str, Callable[[], object]] = {"product": lambda: a @ a}
    for method in METHODS:
        jobs[method] = lambda method=method: infocap.estimate(u, x, basis, method=method)
    found = side_by_side(jobs, rounds=5)
    rate = 2 * 4096.0**3 / found["product"]
    lines = ["| job | s | GFLOP/s | of the product's rate |", "|---|---|---|---|"]
    lines.append(f"| float64 product, 4096³ | {found['product']:.2f} | {rate / 1e9:.0f} | 1 |")
    for method in METHODS:
        own = flop(n, k + 1, len(basis)) / found[method]
        lines.append(
            f"| q=8, degree 6, N=65536, K=200, {method} | {found[method]:.2f} | {own / 1e9:.0f} | {own / rate:.2f} |"
        )
    return lines


def timed(function: Callable[[], object], rounds: int = 5) -> float:
    """The best of a few calls, each waited for."""
    import torch

    times = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def gpu() -> list[str]:
    import torch

    def there(array: Any) -> Any:
        return torch.asarray(array, device="cuda")

    a = there(np.random.default_rng(0).standard_normal((8192, 8192)))
    seconds = timed(lambda: a @ a)
    rate = 2 * 8192.0**3 / seconds
    lines = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}.", ""]
    lines += [
        "| job | ms | TFLOP/s | of the product's rate | largest difference from NumPy |",
        "|---|---|---|---|---|",
    ]
    lines.append(f"| float64 product, 8192³ | {1e3 * seconds:.1f} | {rate / 1e12:.1f} | 1 | |")
    for q, degree, n, k in ((10, 8, 131_072, 500), (5, 8, 8192, 71)):
        basis, u, x = data(q, degree, n, k)
        ut, xt = there(u), there(x)
        for method in METHODS:
            seconds = timed(
                lambda basis=basis, ut=ut, xt=xt, method=method: infocap.estimate(
                    ut, xt, basis, method=method
                )
            )
            own = flop(n, k + 1, len(basis)) / seconds
            off = "not compared"
            if n * len(basis) < 1e8:
                plain = infocap.estimate(u, x, basis, method=method)
                off = f"{np.abs(plain.capacity - infocap.estimate(ut, xt, basis, method=method).capacity).max():.0e}"
            lines.append(
                f"| q={q}, degree {degree}, N={n}, K={k}, {method} | {1e3 * seconds:.2f} | {own / 1e12:.2f} | "
                f"{own / rate:.2f} | {off} |"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    tables = {"Graphics card": gpu} if arguments.gpu else {"Processor": cpu}
    name = "Scale, on a graphics card" if arguments.gpu else "Scale"
    run_tables(
        name, f"python benchmarks/scale.py{' --gpu' if arguments.gpu else ''}", tables, arguments.write
    )


if __name__ == "__main__":
    main()
