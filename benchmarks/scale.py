"""Large jobs against one large matrix product, on the processor and (--gpu) on a graphics card.

python benchmarks/scale.py [--gpu] [--write]

The card's job in delayed inputs is also given to ipc-module with its torch backend, where that is installed.
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
DELAYS, DEGREE = 10, 8


def data(q: int, degree: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A basis, random inputs and readouts: the cost does not depend on what they are."""
    basis = infocap.product_basis("legendre", q, degree)
    u = np.random.default_rng(seed).uniform(-1, 1, (n, q))
    return basis, u, readouts(u, k, seed)


def readouts(u: Any, k: int, seed: int) -> Any:
    rng = np.random.default_rng([seed, 1])
    return np.tanh(u @ rng.standard_normal((u.shape[1], k))) + 0.1 * rng.standard_normal(
        (len(u), k)
    )


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
    found = side_by_side(jobs, rounds=9)
    rate = 2 * 4096.0**3 / found["product"]
    lines = ["| job | s | GFLOP/s | of the product's rate |", "|---|---|---|---|"]
    lines.append(f"| float64 product, 4096³ | {found['product']:.2f} | {rate / 1e9:.0f} | 1 |")
    for method in METHODS:
        own = flop(n, k + 1, len(basis)) / found[method]
        lines.append(
            f"| q=8, degree 6, N=65536, K=200, {method} | {found[method]:.2f} | {own / 1e9:.0f} | {own / rate:.2f} |"
        )
    return lines


def model() -> list[str]:
    """Times with N, K and L doubled one at a time, against N K (K + L)."""
    sizes = {"N=65536, K=200, L=3000": (65_536, 200, 3000), "N doubled": (131_072, 200, 3000)}
    sizes |= {"K doubled": (65_536, 400, 3000), "L doubled": (65_536, 200, 6000)}
    full, u, x = data(8, 7, 131_072, 400)
    jobs = {}
    for name, (n, k, terms) in sizes.items():
        basis = infocap.product_basis("legendre", 8, indices=full.indices[:terms])
        jobs[name] = lambda n=n, k=k, basis=basis: infocap.estimate(
            u[:n], x[:n, : k - 1], basis, method="raw"
        )
    found = side_by_side(jobs, rounds=5)
    lines = [
        "| job | s | times the first | by N K (K + L) | measured / model |",
        "|---|---|---|---|---|",
    ]
    start = next(iter(sizes))
    first = found[start], flop(*sizes[start])
    for name, size in sizes.items():
        grown, expected = found[name] / first[0], flop(*size) / first[1]
        lines.append(
            f"| {name} | {found[name]:.2f} | {grown:.2f} | {expected:.2f} | {grown / expected:.2f} |"
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


def there(array: Any) -> Any:
    import torch

    return torch.asarray(array, device="cuda")


def gpu() -> list[str]:
    import torch

    a = there(np.random.default_rng(0).standard_normal((8192, 8192)))
    product = timed(lambda: a @ a)
    rate = 2 * 8192.0**3 / product
    lines = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}.", ""]
    lines += [
        "| job | ms | TFLOP/s | of the product's rate | largest difference from NumPy | card's memory, GB |",
        "|---|---|---|---|---|---|",
    ]
    lines.append(f"| float64 product, 8192³ | {1e3 * product:.1f} | {rate / 1e12:.1f} | 1 | | |")
    for q, degree, n, k in ((10, 8, 131_072, 500), (5, 8, 8192, 71)):
        basis, u, x = data(q, degree, n, k)
        ut, xt = there(u), there(x)
        for method in METHODS:
            torch.cuda.reset_peak_memory_stats()
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
                f"{own / rate:.2f} | {off} | {torch.cuda.max_memory_allocated() / 1e9:.1f} |"
            )
    return lines


def delayed() -> list[str]:
    """The same job for both: one input, ten delays, all products up to degree 8, 131 072 samples, 500 readouts."""
    n, k = 131_072, 500
    basis = infocap.product_basis("legendre", DELAYS, DEGREE)
    series = np.random.default_rng(0).uniform(-1, 1, n + DELAYS - 1)
    u = np.lib.stride_tricks.sliding_window_view(series, DELAYS)[
        :, ::-1
    ].copy()  # column d: delay d
    x = readouts(u, k, 0)
    ut, xt = there(u), there(x)
    own = timed(lambda: infocap.estimate(ut, xt, basis, method="raw"), 3)
    lines = ["| program | s | ratio | largest difference |", "|---|---|---|---|"]
    lines.append(f"| infocap, method raw | {own:.3f} | 1 | |")
    try:
        from ipc_module import config
        from ipc_module.profiler import UnivariateProfiler
    except ImportError:
        return [*lines, "| ipc-module | not installed | | |"]
    config.set_progress_bar(False)
    padded = there(np.vstack([np.zeros((DELAYS - 1, k)), x]))  # its first rows are skipped

    def theirs() -> Any:
        profiler = UnivariateProfiler(
            there(series[:, None]), padded, poly_name="Legendre", surrogate_num=1, offset=DELAYS - 1
        )
        profiler.calc(list(range(1, DEGREE + 1)), DELAYS)
        return profiler

    start = time.perf_counter()
    found = theirs()
    values = {
        tuple(sorted(zip(delay, degrees, strict=True))): float(value)
        for degrees, (delays, base, _) in found.items()
        for delay, value in zip(delays, base.reshape(-1), strict=True)
    }
    seconds = time.perf_counter() - start
    result = infocap.estimate(ut, xt, basis, method="raw", constant=False)
    mean_squares = basis.sum_over_samples(ut, power=2) / n
    off = max(
        abs(
            values[tuple((d, int(e)) for d, e in enumerate(row) if e)]
            - result.raw[term] / mean_squares[term]
        )
        for term, row in enumerate(basis.indices)
        if term
    )
    lines.append(f"| ipc-module, one surrogate | {seconds:.1f} | {seconds / own:.0f} | {off:.0e} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    if arguments.gpu:
        tables = {"Graphics card": gpu, "In delayed inputs, on the card": delayed}
    else:
        tables = {"Processor": cpu, "Cost model": model}
    name = "Scale, on a graphics card" if arguments.gpu else "Scale"
    run_tables(
        name,
        f"python benchmarks/scale.py{' --gpu' if arguments.gpu else ''}",
        tables,
        arguments.write,
    )


if __name__ == "__main__":
    main()
