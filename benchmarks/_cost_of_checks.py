"""What the checks of the data cost: the same estimation with and without them, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import infocap
from infocap.diagnostics import CHECKS
from infocap.systems import RandomFeatures

Array = np.ndarray
ALGORITHM_1 = "threshold-richardson"


@dataclass(frozen=True)
class Job:
    """An estimation with five inputs up to degree 8, L = 1287.

    Parameters
    ----------
    method
        The method of `estimate`; None is the default.
    n_readouts
        Readouts of the device; the constant is one more.
    n_rounds
        How often it runs, with and without checks in turn.
    """

    name: str
    method: str | None
    n_samples: int
    n_readouts: int
    n_rounds: int


JOBS = (
    Job("5-D, Algorithm 1", ALGORITHM_1, 8192, 71, 101),
    Job("5-D, default method", None, 8192, 71, 7),
    Job("K = 300, Algorithm 1", ALGORITHM_1, 8192, 299, 15),
    Job("N = 100,000, Algorithm 1", ALGORITHM_1, 100_000, 29, 15),
)


def devices(basis: infocap.ProductBasis, n_readouts: int) -> dict[str, Callable[[Array], Array]]:
    return {
        "tanh, noise 1e-2": RandomFeatures(5, n_readouts, noise=0.01, seed=1),
        "paper's mixture, 30 % noise": infocap.theory.random_mixture(
            basis, n_active=max(200, n_readouts), n_readouts=n_readouts, noise=0.3, seed=1
        ),
    }


@contextmanager
def without_checks() -> Iterator[None]:
    """Empty the table of checks for a while."""
    all_checks = dict(CHECKS)
    CHECKS.clear()
    try:
        yield
    finally:
        CHECKS.update(all_checks)


def cost_of_checks(rounds: float = 1.0) -> list[str]:
    """Return the table of processor times; `rounds` multiplies how often each job runs."""
    basis = infocap.product_basis("legendre", 5, 8)
    lines = [
        "Processor time, median; the ratio is the median of ratios of neighbouring runs. L = 1287.",
        "",
        "| job | device | N | K | without checks | with | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for job in JOBS:
        u = infocap.draw(basis, job.n_samples, seed=0)
        for name, device in devices(basis, job.n_readouts).items():
            x = device(u)

            def seconds(x: Array = x, u: Array = u, job: Job = job) -> float:
                start = time.process_time()
                if job.method is None:
                    infocap.estimate(u, x, basis)
                else:
                    infocap.estimate(u, x, basis, method=job.method)
                return time.process_time() - start

            bare = []
            checked = []
            for _ in range(max(round(rounds * job.n_rounds), 2)):
                with without_checks():
                    bare.append(seconds())
                checked.append(seconds())
            ratio = np.median(np.array(checked) / np.array(bare))
            lines.append(
                f"| {job.name} | {name} | {job.n_samples} | {job.n_readouts + 1} "
                f"| {np.median(bare):.3f} s | {np.median(checked):.3f} s | {ratio:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines
