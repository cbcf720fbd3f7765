"""Functions found by search: how many are false, what is missed, how much is found, and how long it takes.

``python benchmarks/explore.py --write`` takes about ten minutes on one busy core and keeps the tables in RESULTS.md;
without ``--write`` it prints them; ``--quick`` takes few data sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cached_property, partial

import numpy as np

import infocap
from _common import run_tables
from sequences import WASHOUT, Linear, Polynomial


class Hidden(Polynomial):
    """Readouts that hold three functions of degrees 3 and 4, and none of degree 1 or 2."""

    LABELS = ("P1(u[t-2])·P2(u[t-7])", "P1(u[t])·P1(u[t-4])·P1(u[t-9])", "P2(u[t-1])·P2(u[t-3])")

    @cached_property
    def mixing(self) -> np.ndarray:
        """Coefficients (functions, readouts)."""
        out = np.zeros((len(self.basis), self.n_nodes))
        places = [self.basis.labels.index(label) for label in self.LABELS]
        out[places] = np.random.default_rng(1).standard_normal((len(places), self.n_nodes))
        return out / np.sqrt(np.sum(out**2, axis=0))


KNOWN = [
    Linear("linear, 20 readouts, noise 3 %", 20, noise=0.03, max_delay=((1, 150),)),
    Polynomial(
        "60 functions of degrees 1 to 3, 20 readouts, noise 30 %",
        20,
        noise=0.3,
        max_delay=((1, 40), (2, 15), (3, 8)),
        active=60,
    ),
    Hidden("three functions of degrees 3 and 4 alone, 6 readouts", 6, noise=0.3, max_delay=((3, 9), (4, 3))),
]


def known_systems(sets: int, n: int = 2000) -> list[str]:
    """False and missed functions of systems whose capacities are known exactly."""
    lines = [
        f"N = {n}, {sets} data sets, means. False: share of the functions found that have no capacity. Missed: the "
        "largest capacity that was not found in any data set. Total: found, and found with all faint functions, minus the "
        "truth, and the root mean square of the second in error bars.",
        "",
        "| system | truth | tested | found | false | missed | total found | with the faint | in bars | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for place, system in enumerate(KNOWN):
        rng = np.random.default_rng(100 + place)
        u = rng.uniform(-1, 1, (sets, WASHOUT + n))
        truth = dict(zip(system.basis.labels, system.exact, strict=True))
        rows, missed = [], 0.0
        for inputs, x in zip(u, system(u, rng), strict=True):
            start = time.perf_counter()
            found = infocap.explore(inputs, x, washout=WASHOUT)
            took = time.perf_counter() - start
            held = {found.basis.labels[k] for k in np.flatnonzero(found.result.capacity)} - {"1"}
            wrong = [label for label in held if truth.get(label, 0.0) < 1e-6]
            missed = max([missed, *(value for label, value in truth.items() if label not in {*held, "1"})])
            off = found.result.total - system.exact.sum()
            bar = np.hypot(found.result.total_standard_error, found.faint_standard_error)
            every = off + found.faint
            rows.append([found.rounds[-1].tested, len(held), len(wrong), off, every, (every / bar) ** 2, took])
        tested, count, wrong, off, every, bars, took = np.mean(rows, axis=0)
        cells = [system.name, f"{system.exact.sum():.2f}", f"{tested:.0f}", f"{count:.1f}", f"{wrong / count:.2%}"]
        cells += [f"{missed:.4f}", f"{off:+.3f}", f"{every:+.3f}", f"{np.sqrt(bars):.2f}", f"{took:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    tables = {"Known truth": partial(known_systems, 3 if given.quick else 24)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        run_tables("Explore", "python benchmarks/explore.py", tables, given.write)


if __name__ == "__main__":
    main()
