"""Time-variant capacities: functions of time of a known or found period, on systems with known truth.

    python benchmarks/time_variant.py --processes 16 --data-sets 200

Readouts are mixtures of a wave of time, products of functions of past inputs with waves, and memory, with equal noise
in all: each function has the capacity 1 / (1 + noise²). Shown are, for a known and for a found period, the mean error
of the total with its standard deviation, the share of 95 % intervals of the total that hold, and the error of the
period that was found; beside them what a basis without functions of time finds.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

import infocap

MAX_DELAY = {1: 5, 2: 2}
TIME_DEGREE = 2
WASHOUT = 20


@dataclass(frozen=True)
class Clocked:
    """A device with a clock: six functions, in as many readouts."""

    period: float
    noise: float

    def __call__(self, u: np.ndarray, seed: int) -> np.ndarray:
        """Return readouts, (steps, 6)."""
        generator = np.random.default_rng(seed)
        phase = 2 * np.pi * np.arange(len(u)) / self.period
        wave, second = np.sqrt(2) * np.cos(phase), np.sqrt(2) * np.sin(2 * phase)
        linear = np.sqrt(3) * u
        square = np.sqrt(5) * (1.5 * u**2 - 0.5)
        functions = np.column_stack(
            [
                wave,
                second,
                np.roll(linear, 1) * wave,
                np.roll(square, 2) * second,
                np.roll(linear, 2),
                np.roll(linear, 3) * np.roll(linear, 4),
            ]
        )
        mixing = np.linalg.qr(generator.standard_normal((6, 6)))[0]
        return functions @ mixing + self.noise * generator.standard_normal(functions.shape)

    @property
    def total(self) -> float:
        """The exact total of the functions that the basis has, with the constant.

        The product of two delays up to 4 is not among those of degree 2 up to delay 2.
        """
        return 1 + 5 / (1 + self.noise**2)


def measured(seed: int, device: Clocked, n_steps: int) -> dict[str, float]:
    """One data set: errors with a known period, with one that was found, and without time."""
    u = np.random.default_rng(1000 + seed).uniform(-1, 1, n_steps)
    x = device(u, seed)
    found = infocap.systems.find_period(x, washout=WASHOUT)
    numbers = {"period": found - device.period}
    for name, period in (("known", device.period), ("found", found)):
        basis = infocap.delayed_basis(max_delay=MAX_DELAY, time_degree=TIME_DEGREE, period=period)
        result = infocap.estimate(u, x, basis, washout=WASHOUT)
        low, high = result.total_interval(0.95)
        numbers[f"{name}_error"] = result.total - device.total
        numbers[f"{name}_holds"] = float(low <= device.total <= high)
    blind = infocap.delayed_basis(max_delay=MAX_DELAY)
    numbers["blind_error"] = infocap.estimate(u, x, blind, washout=WASHOUT).total - device.total
    return numbers


def main() -> None:
    """Print a table with a row for each device and length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--data-sets", type=int, default=20)
    arguments = parser.parse_args()
    print("| period | noise | steps | known: error, interval holds | found: error, interval holds |"
          " error of the period | without time |\n|---|---|---|---|---|---|---|")  # fmt: skip
    with ProcessPoolExecutor(arguments.processes) as executor:
        for period in (24.0, 17.3):
            for noise, n_steps in ((0.3, 2000), (0.3, 8000), (1.0, 8000)):
                job = partial(measured, device=Clocked(period, noise), n_steps=n_steps)
                rows = list(executor.map(job, range(arguments.data_sets)))
                column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
                cells = [f"{period:g}", f"{noise:g}", f"{n_steps}"]
                for name in ("known", "found"):
                    error, holds = column[f"{name}_error"], column[f"{name}_holds"].mean()
                    cells.append(f"{error.mean():+.3f} ± {error.std():.3f}, {100 * holds:.0f} %")
                cells.append(f"{np.sqrt(np.mean(column['period'] ** 2)):.1e}")
                cells.append(f"{column['blind_error'].mean():+.3f}")
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
