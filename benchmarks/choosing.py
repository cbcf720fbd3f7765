"""Whether the error that is foreseen for N samples is the one that comes.

``python benchmarks/choosing.py --write`` takes about half an hour on one busy core and keeps the tables in RESULTS.md;
without ``--write`` it prints them; ``--quick`` takes few data sets.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

import infocap
from _common import run_tables
from _truth import Known, features, fibre, mixture

FIVE = infocap.product_basis("legendre", 5, 8)
THREE = infocap.product_basis("legendre", 3, 7)
DESIGNS = ("sobol", "random")


def systems() -> Iterator[tuple[Known, tuple[int, ...], int]]:
    """Devices that the model was not made for, numbers of samples, and how many data sets each is worth."""
    few = 512, 2048, 8192
    yield mixture("mixture, 3 inputs, 30 % noise", THREE, 40, 24, 0.3, 0.0, 41), few, 10
    yield mixture("mixture, 3 inputs, 200 % noise", THREE, 40, 24, 2.0, 0.0, 42), few, 10
    yield mixture("mixture, 3 inputs, 10 % outside", THREE, 40, 24, 0.1, 0.1, 43), few, 10
    yield features("tanh, 2 inputs, noise 1e-2", 2, 12, 50, 1.5, 1e-2, 60, 44), few, 10
    yield features("sine, 3 inputs, noise 1e-2", 3, 7, 40, 1.5, 1e-2, 30, 45, "sin"), few, 10
    yield features("tanh, 4 inputs, no noise", 4, 5, 40, 1.0, 0.0, 18, 46), (512, 1024, 8192), 10
    yield fibre("fibre, 4.5 dBm, 40 m, noise 1e-3", 12, 1e-3, 32), few, 10
    yield mixture("paper's mixture, 50 % noise", FIVE, 200, 71, 0.5, 0.0, 47), (4096, 8192), 4


class Check:
    """Errors that came, beside those foreseen."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.inside: list[float] = []
        self.from_pilot: list[float] = []

    def table(self) -> list[str]:
        """One line for each system, size and design."""
        lines = [
            "Foreseen: typical (low to high), from the true total alone; own: the median error bar of the estimates; "
            "pilot: typical error foreseen from results with the smallest N of the system, median. Error: root mean square "
            "of the total's, over the data sets, with its mean (bias).",
            "",
            "| system (functions, total of at most) | N | points | foreseen | error (bias) | own | pilot |",
            "|---|---|---|---|---|---|---|",
        ]
        for system, sizes, count in systems():
            lines += self._lines(system, sizes, max(round(count * self.share), 2))
        return lines

    def _lines(self, system: Known, sizes: tuple[int, ...], count: int) -> list[str]:
        truth, most = float(system.capacity.sum()), system._vectors[0].shape[1]
        expected = infocap.theory.forecast(system.basis, most - 1, unexplained=1 - truth / most)
        name, lines = f"{system.name} ({len(system.basis)}, {truth:.1f} of {most})", []
        pilots: dict[str, list[infocap.theory.Forecast]] = {design: [] for design in DESIGNS}
        for n in sizes:
            for design in DESIGNS:
                ours = self._measured(system, n, design, count)
                if not pilots[design]:
                    pilots[design] = [infocap.theory.forecast_from(one) for one in ours]
                found = _error([one.total - truth for one in ours])
                ahead = expected.at(n)
                again = float(np.median([one.at(n).typical for one in pilots[design]]))
                own = float(np.median([one.total_standard_error for one in ours]))
                self.inside.append(found[0] / ahead.high)
                if n > sizes[0]:
                    self.from_pilot.append(found[0] / again)
                lines.append(
                    f"| {name} | {n} | {design} | {_range(ahead)} | {found[0]:.3f} ({found[1]:+.3f}) | {own:.3f} | {again:.3f} |"
                )
                print(lines[-1], flush=True)
                name = ""
        return lines

    def _measured(self, system: Known, n: int, design: str, count: int) -> list:
        ours = []
        for seed in range(count):
            u = infocap.draw(system.basis, n, design=design, seed=9000 + seed)
            x = system(u, seed=[n, seed])
            ours.append(infocap.estimate(u, x, system.basis))
        return ours

    def summary(self) -> list[str]:
        """In short."""
        lines = [
            "| error that came, over that foreseen | median | largest | settings |",
            "|---|---|---|---|",
        ]
        for name, ratios in (
            ("control-variate, over the high end", self.inside),
            ("control-variate, over the pilot's typical", self.from_pilot),
        ):
            lines.append(
                f"| {name} | {np.median(ratios):.2f} | {max(ratios):.2f} | {len(ratios)} |"
            )
        above = np.mean(np.array(self.inside) > 1)
        return [*lines, "", f"Above the high end: {100 * above:.0f} % of the settings."]


def _error(errors: list[float]) -> tuple[float, float]:
    return float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(errors))


def _range(error: infocap.theory.ExpectedError) -> str:
    return f"{error.typical:.2g} ({error.low:.2g} to {error.high:.2g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="few data sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", infocap.errors.DataWarning)
    check = Check(0.15 if arguments.quick else 1.0)
    tables = {"Foreseen and found": check.table, "In short": check.summary}
    run_tables("Choosing", "python benchmarks/choosing.py", tables, arguments.write)


if __name__ == "__main__":
    main()
