"""How near infocap comes to the limit of a machine, in one table: python benchmarks/limits.py 16 8 2 1 gpu.

Each number is a number of threads, with a process of its own; `gpu` is a CUDA device with torch. A job is compared with what
limits it, measured in the same process: an estimation with a product of large square matrices, the paper's 5-D job with the
product of its own size, the default method with Algorithm 1, functions of delayed inputs with the product of all of them, a
fibre with the number of spectra. The best of a few calls counts. Last, some of the jobs are compared between the places.

Many readouts are compared with the Gram product and one factorisation. What must hold stands in `MAX_RATIOS` and `COMPARED`:
python benchmarks/limits.py --parts readouts,cores,fibre_sweep 16 2 1 takes about three minutes on 16 cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import infocap
from _common import machine

POWERS_DBM = (-9.1, -6.4, -1.9, 1.0, 4.5, 6.6, 7.1)
ALGORITHM_1 = "threshold-richardson"
# Jobs of many threads whose time is compared with that of few, and by what factor they must be faster; None: any.
COMPARED = (
    ("16", "2", "5-D, Algorithm 1", None),
    ("16", "1", "5-D, default", 1 / 0.6),
    ("16", "1", "fibre, -1.9 dBm", None),
    ("16", "1", "fibre, 7.1 dBm", None),
    ("16", "1", "fibre, spectra of the paper's sweep", 8.0),
    ("16", "1", "fibre, sweep of 28 points with estimates", 8.0),
)
# Many readouts: samples, readouts, inputs and degree, which make 84 functions.
MANY_READOUTS = (16_384, 2000, 3, 6)
# Largest time of a method there, in units of the Gram product and one factorisation.
MAX_RATIOS = {"raw": 5.0, "control-variate": 20.0}
# Seconds within which more readouts than samples must be refused.
MAX_SECONDS_OF_REFUSAL = 1.0
Row = tuple[str, float, str]  # the job, its seconds, and what they are in terms of its limit


def best(work: Callable[[], Any], rounds: int) -> float:
    """The least time of some calls after a first one; a result on a card is waited for by fetching a number of it."""

    def finished() -> None:
        found = work()
        if hasattr(found, "device"):
            float(found.reshape(-1)[0])

    finished()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        finished()
        times.append(time.perf_counter() - start)
    return min(times)


def noisy_network(
    q: int, n: int, k: int, there: Callable[[Any], Any]
) -> tuple[np.ndarray, Any, Any]:
    """Inputs on the processor; inputs and readouts of a random network where the job is done."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, (n, q))
    return (
        u,
        there(u),
        there(np.tanh(u @ rng.standard_normal((q, k))) + 0.1 * rng.standard_normal((n, k))),
    )


def estimations(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """A large job beside the product of square matrices, the 5-D job beside its own product, the default method."""
    on_card = where == "gpu"
    q, degree, n, k = (10, 8, 131_072, 500) if on_card else (8, 6, 32_768 * min(int(where), 8), 200)
    side = 8192 if on_card else 4096
    square = there(np.random.default_rng(0).standard_normal((side, side)))
    rate = 2 * side**3 / best(lambda: square @ square, 3)
    _, u, x = noisy_network(q, n, k, there)
    basis = infocap.product_basis("legendre", q, degree)
    for name, method in (("raw", "raw"), ("Algorithm 1", ALGORITHM_1)):
        seconds = best(partial(infocap.estimate, u, x, basis, method=method), 3)
        share = 2.0 * n * (k + 1) * (k + 1 + len(basis)) / seconds / rate
        yield (
            f"N = {n:,}, K = {k}, L = {len(basis):,}, {name}",
            seconds,
            f"{share:.2f} of the product's rate",
        )
    if on_card:
        base, seconds = seconds, best(partial(infocap.estimate, u, x, basis), 2)
        yield (
            f"N = {n:,}, K = {k}, L = {len(basis):,}, default",
            seconds,
            f"{seconds / base:.1f} times Algorithm 1",
        )
        (_, u, x), basis = (
            noisy_network(8, 65_536, 199, there),
            infocap.product_basis("legendre", 8, 6),
        )
        base, seconds = (
            best(partial(infocap.estimate, u, x, basis, **one), 3)
            for one in ({"method": ALGORITHM_1}, {})
        )
        yield (
            f"N = 65,536, K = 199, L = {len(basis):,}, default",
            seconds,
            f"{seconds / base:.1f} times Algorithm 1",
        )


def cores(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """The paper's 5-D job beside its own product."""
    (values, u, x), basis = (
        noisy_network(5, 8192, 71, there),
        infocap.product_basis("legendre", 5, 8),
    )
    y, z = there(np.ascontiguousarray(basis(values))), there(np.ones((8192, 72)))
    product = best(lambda: z.T @ y, 15)
    for name, method in (("raw", "raw"), ("Algorithm 1", ALGORITHM_1)):
        base = best(partial(infocap.estimate, u, x, basis, method=method), 15)
        yield f"5-D, {name}", base, f"{base / product:.1f} times its product"
    seconds = best(partial(infocap.estimate, u, x, basis), 3)
    yield "5-D, default", seconds, f"{seconds / base:.1f} times Algorithm 1"


def readouts(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """Many readouts beside the Gram product and one factorisation, with and without the checks of data."""
    n, k, q, degree = MANY_READOUTS
    if where == "1":
        return  # nothing is asked for there, and it would take a minute
    _, u, x = noisy_network(q, n, k, there)
    basis = infocap.product_basis("legendre", q, degree)
    infocap.estimate(u[:512], x[:512, :5], basis)  # starts threads
    gram = x.T @ x
    unit = best(lambda: x.T @ x, 3) + best(lambda: np.linalg.cholesky(gram), 3)
    job = f"N = {n:,}, K = {k}, L = {len(basis)}"
    yield f"{job}, Gram product and factorisation", unit, "1"
    for method, limit in MAX_RATIOS.items():
        for with_checks in (False, True):
            start = time.perf_counter()
            _estimate(u, x, basis, method, with_checks)
            seconds = time.perf_counter() - start
            verdict = "holds" if seconds <= limit * unit else "FAILS"
            said = f"{seconds / unit:.1f} times these, at most {limit:g}: {verdict}"
            checks = "with" if with_checks else "without"
            yield f"{job}, {method}, {checks} checks of the data", seconds, said
    del x
    u = np.random.default_rng(1).uniform(-1, 1, (1000, q))
    x = np.random.default_rng(2).standard_normal((1000, 3000))

    def refuse() -> None:
        try:
            infocap.estimate(u, x, basis)
        except infocap.errors.DataError:
            return
        raise AssertionError("1000 samples of 3000 readouts were not refused")

    seconds = best(refuse, 2)
    verdict = "holds" if seconds <= MAX_SECONDS_OF_REFUSAL else "FAILS"
    yield (
        "N = 1000, K = 3000, refused",
        seconds,
        f"at most {MAX_SECONDS_OF_REFUSAL:g} s: {verdict}",
    )


def _estimate(u: Any, x: Any, basis: infocap.ProductBasis, method: str, with_checks: bool) -> None:
    """Estimate as users do, or only what the method needs."""
    if with_checks:
        infocap.estimate(u, x, basis, method=method)
        return
    start_checks = infocap.estimators._pipeline._start_data_checks
    infocap.estimators._pipeline._start_data_checks = lambda *_: dict
    try:
        evidence = infocap.estimators.gather_evidence(u, x, basis)
        infocap.estimators._pipeline._run_method(infocap.estimators.METHODS[method], evidence, {})
    finally:
        infocap.estimators._pipeline._start_data_checks = start_checks


def fibre_sweep(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """The paper's sweep: spectra alone, and measured and estimated point by point."""
    if where in ("gpu", "2"):
        return  # nothing is asked for there
    fibre = infocap.photonics.FibreSystem
    bases = {q: infocap.product_basis("legendre", q, degree) for q, degree in ((2, 14), (5, 8))}
    sizes = {2: 4096, 5: 8192}
    inputs = {q: infocap.draw(basis, sizes[q], seed=1) for q, basis in bases.items()}

    def spectra() -> None:
        for q, u in inputs.items():
            fibre(n_inputs=q).readouts(u, [5.0, 40.0], seed=0, powers_dbm=POWERS_DBM)

    count = 2 * len(POWERS_DBM) * sum(sizes.values())
    seconds = best(spectra, 1)
    yield (
        "fibre, spectra of the paper's sweep",
        seconds,
        f"{seconds / count * 1e6:.1f} µs per spectrum",
    )
    start = time.perf_counter()
    for q, basis in bases.items():
        infocap.sweep(
            partial(fibre, n_inputs=q),
            {"power_dbm": POWERS_DBM, "length_m": [5.0, 40.0]},
            basis,
            sizes[q],
            seed=1,
            progress=False,
        )
    seconds = time.perf_counter() - start
    yield "fibre, sweep of 28 points with estimates", seconds, f"{seconds / 28:.2f} s per point"


def sequences(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """Raw capacities of delayed inputs beside the product of all functions, given, with all readouts."""
    n, k, windows = 50_000, 100, {1: 200, 2: 100}
    if where == "gpu":  # the example of kubota's program
        n, k, windows = 1_000_000, 50, {1: 2000, 2: 300, 3: 50, 4: 30, 5: 15}
    basis, rng = infocap.delayed_basis(max_delay=windows), np.random.default_rng(0)
    u, x = (
        there(rng.uniform(-1, 1, (n + basis.memory, 1))),
        there(rng.standard_normal((n + basis.memory, k))),
    )
    seconds = best(partial(infocap.estimate, u, x, basis, method="raw"), 2)
    part = len(basis) // 10
    some, length = there(rng.standard_normal((part, 10_000))), n // 10_000
    product = best(lambda: some @ x[:10_000, :], 3) * len(basis) / part * length
    job = f"delays {windows}, N = {n:,}, K = {k}, L = {len(basis):,}, raw"
    yield job, seconds, f"{seconds / product:.2f} times its product"


def fibres(where: str, there: Callable[[Any], Any]) -> Iterator[Row]:
    """Spectra of the photonic experiment at 40 m with five inputs; on a card all settings of the paper."""
    fibre = infocap.photonics.FibreSystem
    if where == "gpu":
        sizes = ((2, 14, 4096), (5, 8, 8192))
        inputs = {
            q: infocap.draw(infocap.product_basis("legendre", q, degree), n, seed=1)
            for q, degree, n in sizes
        }
        inputs = {q: there(u) for q, u in inputs.items()}

        def sweep() -> Any:
            for q, u in inputs.items():
                out = fibre(n_inputs=q).readouts(u, [5.0, 40.0], seed=0, powers_dbm=POWERS_DBM)
            return out[-1][-1]

        count = 2 * len(POWERS_DBM) * sum(u.shape[0] for u in inputs.values())
        seconds = best(sweep, 2)
        yield (
            f"fibre, the paper's sweep, {count:,} spectra",
            seconds,
            f"{seconds / count * 1e6:.1f} µs per spectrum",
        )
        return
    u = infocap.draw(infocap.product_basis("legendre", 5, 8), 8192, seed=1)
    for power in (-1.9, 7.1):
        system = fibre(power_dbm=power, length_m=40.0, n_inputs=5)
        seconds = best(partial(system, u, seed=0), 3)
        yield f"fibre, {power} dBm", seconds, f"{seconds / len(u) * 1e6:.0f} µs per spectrum"


PARTS = {
    part.__name__: part for part in (estimations, cores, readouts, sequences, fibres, fibre_sweep)
}


def measure(where: str, parts: list[str]) -> None:
    """Print the rows of one place, a line of JSON each."""
    warnings.simplefilter("ignore")

    def there(array: Any) -> Any:
        if where != "gpu":
            return array
        import torch

        return torch.asarray(array, device="cuda")

    for part in parts:
        if where == "gpu" and part == "readouts":
            continue
        for row in PARTS[part](where, there):
            print(json.dumps(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="+", help="numbers of threads, or gpu")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.places[0], arguments.parts.split(","))
        return
    print(
        f"{machine()}\n\n| threads | job | time | against its limit |\n|---|---|---|---|",
        flush=True,
    )
    times = {}
    for where in arguments.places:
        limits = {} if where == "gpu" else {"OMP_NUM_THREADS": where, "OPENBLAS_NUM_THREADS": where}
        child = subprocess.Popen(
            [sys.executable, __file__, where, "--parts", arguments.parts, "--measure"],
            env=os.environ | limits,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in child.stdout or ():
            job, seconds, said = json.loads(line)
            times[where, job] = seconds
            print(f"| {where} | {job} | {seconds * 1e3:,.1f} ms | {said} |", flush=True)
        if child.wait():
            sys.exit(child.returncode)
    for many, few, job, min_ratio in COMPARED:
        if (many, job) in times and (few, job) in times:
            ratio = times[few, job] / times[many, job]
            verdict = ""
            if min_ratio is not None:
                verdict = (
                    f"; at least {min_ratio:.2f}: {'holds' if ratio >= min_ratio else 'FAILS'}"
                )
            print(
                f"\n{job}: {many} threads are {ratio:.1f} times as fast as {few} "
                f"({1 / ratio:.2f} of its time){verdict}."
            )


if __name__ == "__main__":
    main()
