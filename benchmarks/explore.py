"""Functions found by search: how many are false, what is missed, how much is found, and how long it takes.

``python benchmarks/explore.py --write`` takes about ten minutes on one busy core and keeps the tables in RESULTS.md;
without ``--write`` it prints them; ``--quick`` takes few data sets. ``--coloured`` asks instead whether the total, with the
functions too small to be found one by one, holds under slow noise (``--processes 16``: two minutes).
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

import infocap
from _common import run_tables
from _excursions import Bilinear, Chain, Device
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
    Hidden(
        "three functions of degrees 3 and 4 alone, 6 readouts",
        6,
        noise=0.3,
        max_delay=((3, 9), (4, 3)),
    ),
]


def searched(system: Linear, sets: int, n: int, seed: int) -> list[float]:
    """Means over data sets: functions found and false, the largest missed, errors of totals, in bars, tested, seconds."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (sets, WASHOUT + n))
    truth = dict(zip(system.basis.labels, system.exact, strict=True))
    rows, missed = [], 0.0
    for inputs, x in zip(u, system(u, rng), strict=True):
        start = time.process_time()
        found = infocap.explore(inputs, x, washout=WASHOUT)
        took = time.process_time() - start
        held = {found.basis.labels[place] for place in np.flatnonzero(found.result.capacity)} - {
            "1"
        }
        false = [label for label in held if truth.get(label, 0.0) < 1e-6]
        missed = max(
            [missed, *(value for label, value in truth.items() if label not in {*held, "1"})]
        )
        off = found.result.total - system.exact.sum()
        bar = np.hypot(found.result.total_standard_error, found.undetected_standard_error)
        every = off + found.undetected
        rows.append(
            [len(held), len(false), missed, off, every, every / bar, found.rounds[-1].tested, took]
        )
    means = np.mean(rows, axis=0).tolist()
    means[2], means[5] = missed, float(np.sqrt(np.mean(np.array(rows)[:, 5] ** 2)))
    return means


def known_systems(sets: int, n: int = 2000) -> list[str]:
    """False and missed functions of systems whose capacities are known exactly."""
    lines = [
        f"N = {n}, {sets} data sets, means. False: share of the functions found that have no capacity. Missed: the "
        "largest capacity that was not found in some data set. Totals: of the functions found, and with all those too "
        "small to be found alone, minus the truth; root mean square of the latter in error bars. Seconds of one core.",
        "",
        "| system | truth | tested | found | false | missed | total | with the faint | in bars | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for place, system in enumerate(KNOWN):
        found, false, missed, off, every, bars, tested, took = searched(system, sets, n, place)
        cells = [
            system.name,
            f"{system.exact.sum():.2f}",
            f"{tested:.0f}",
            f"{found:.1f}",
            f"{false / found:.2%}",
        ]
        cells += [f"{missed:.4f}", f"{off:+.3f}", f"{every:+.3f}", f"{bars:.2f}", f"{took:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def unknown_systems(fresh: int) -> list[str]:
    """A reservoir and a task: how much is found of what noise allows, and whether fresh samples confirm it."""
    lines = [
        f"Found in 5000 steps (the task: 20,000); what {fresh:,} fresh steps say about the same functions; and what noise "
        "allows, from a second play of the same inputs.",
        "",
        "| system | tested | found | not confirmed at 5 % | largest delays | total | by fresh steps | with the faint | "
        "noise allows | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    network = infocap.systems.EchoState(50, radius=0.9, input_scale=0.5, bias=0.2, seed=1)
    for noise in (0.05, 0.01):
        rng = np.random.default_rng(1)
        u = rng.uniform(-1, 1, 500 + 5000)
        x = network(u)
        size = noise * x[500:].std(axis=0)
        lines.append(
            _row(
                f"echo-state network, 50 nodes, noise {noise:.0%}", u, x, size, rng, network, fresh
            )
        )
        print(lines[-1], flush=True)
    task = infocap.tasks.narma(10, 20_500, domain=(-1, 1), seed=3)
    start = time.process_time()
    found = infocap.explore(task.inputs, task.targets, washout=500)
    took, result = time.process_time() - start, found.result
    held, every = np.count_nonzero(result.capacity[1:]), result.total + found.undetected
    cells = [
        "NARMA10, the target as a readout",
        str(found.rounds[-1].tested),
        str(held),
        "",
        str(found.windows),
    ]
    cells += [
        f"{result.total:.4f} ± {result.total_standard_error:.4f}",
        "",
        f"{every:.4f}",
        "2",
        f"{took:.1f}",
    ]
    lines.append("| " + " | ".join(cells) + " |")
    return lines


def _row(
    name: str, u: np.ndarray, x: np.ndarray, size: np.ndarray, rng: Any, system: Any, fresh: int
) -> str:
    once, twice = x + size * rng.standard_normal((2, *x.shape))
    start = time.process_time()
    found = infocap.explore(u, once, washout=500, repeats=twice)
    took, result = time.process_time() - start, found.result
    basis = found.basis.subset(np.flatnonzero(result.capacity))
    u = rng.uniform(-1, 1, 500 + fresh)
    x = system(u)
    again = infocap.estimate(u, x + size * rng.standard_normal(x.shape), basis, washout=500)
    doubtful = np.count_nonzero(again.p_value > 0.05)
    cells = [
        name,
        str(found.rounds[-1].tested),
        str(len(basis) - 1),
        str(doubtful),
        str(found.windows),
    ]
    cells += [f"{result.total:.2f} ± {result.total_standard_error:.2f}", f"{again.total:.2f}"]
    cells += [
        f"{result.total + found.undetected:.2f} ± {np.hypot(result.total_standard_error, found.undetected_standard_error):.2f}"
    ]
    cells += [
        f"{result.noise_limited_total:.2f} ± {result.noise_limited_standard_error:.2f}",
        f"{took:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


# Readouts whose capacity lies in functions that `explore` tests, and noise alone.
SHORT = [
    Chain(
        "interferometer, 4 nodes, noise 50 %",
        4,
        noise=0.5,
        kind="phase",
        length=4,
        size=1.0,
        seed=51,
    ),
    Chain("cascade of small gains, noise 30 %", 5, noise=0.3, length=5, size=0.4, seed=52),
    Bilinear("bilinear, small gain, noise 100 %", 3, noise=1.0, gain=(0.1, 0.3), seed=53),
    Bilinear("noise alone, 5 readouts", 5, noise=1e6, gain=(0.1, 0.2), seed=54),
]
COLOURS = (0.0, 0.8, 0.97)
# What the table has to show; set before it was first run.
LEAST_HELD = 0.90


def one_search(device: Device, n: int, seed: int) -> tuple[float, ...]:
    """Error of the total with the faint part and its bar; the faint part and its bar."""
    rng = np.random.default_rng([seed, n])
    washout = 50
    u = device.draw(rng, 1, washout + n)
    x = device(u, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = infocap.explore(u[0], x[0], washout=washout, most_tested=10_000)
    # All that the readouts compute of the inputs: the share of their power that is not noise.
    power = np.diag(device.covariance)
    with_noise = device.covariance + np.diag(device.noise**2 * power)
    truth = 1 + np.trace(np.linalg.solve(with_noise, device.covariance))
    bar = np.hypot(found.result.total_standard_error, found.undetected_standard_error)
    error = found.result.total + found.undetected - truth
    flagged = bool(found.result.unreliable)
    return error, bar, found.undetected, found.undetected_standard_error, flagged


def coloured(sets: int, processes: int, n: int = 2000) -> list[str]:
    """Whether totals hold where noise is slow."""
    lines = [
        f"N = {n}, {sets} sequences. Total of the functions found and of those too small to be found one by one: bias, rms "
        "error, mean error bar, 95 % intervals that hold; the faint part alone: standard deviation and mean error bar.",
        "",
        "| device | AR of the noise | bias | rms | bar | hold | faint: sd | bar | unreliable |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    shares = []
    with ProcessPoolExecutor(processes) as pool:
        for device in SHORT:
            for slow in COLOURS:
                job = partial(one_search, replace(device, slow=slow), n)
                rows = np.array(list(pool.map(job, range(sets), chunksize=2)), dtype=float)
                error, bar, faint, faint_bar, flagged = rows.T
                shares.append(np.mean(np.abs(error) < 1.96 * bar))
                cells = [device.name, f"{slow}", f"{error.mean():+.3f}"]
                cells += [f"{np.sqrt(np.mean(error**2)):.3f}", f"{bar.mean():.3f}"]
                cells += [f"{shares[-1]:.2f}", f"{faint.std():.3f}", f"{faint_bar.mean():.3f}"]
                lines.append("| " + " | ".join([*cells, f"{flagged.mean():.2f}"]) + " |")
                print(lines[-1], flush=True)
    lines += ["", f"Totals hold in at least {min(shares):.2f} (asked {LEAST_HELD})."]
    return lines


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--coloured", action="store_true", help="totals under slow noise instead")
    parser.add_argument("--sets", type=int, help="number of sequences for --coloured")
    parser.add_argument("--processes", type=int, default=1, help="for --coloured")
    given = parser.parse_args()
    title, command = "Explore", "python benchmarks/explore.py"
    tables = {"Known truth": partial(known_systems, 3 if given.quick else 24)}
    tables["Reservoirs and tasks"] = partial(unknown_systems, 30_000 if given.quick else 120_000)
    if given.coloured:
        title, command = "Explore under slow noise", f"{command} --coloured"
        n_sets = given.sets or (8 if given.quick else 100)
        tables = {"Totals": partial(coloured, n_sets, given.processes)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", infocap.errors.DataWarning)
        run_tables(title, command, tables, given.write)


if __name__ == "__main__":
    main()
