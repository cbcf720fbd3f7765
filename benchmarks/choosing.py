"""Whether the error that is foreseen for N samples is the one that comes, and whether weights help.

``python benchmarks/choosing.py --processes 16 --write`` keeps the tables in RESULTS.md; without ``--write`` it prints
them. ``--share 0.2`` takes a fifth of the data sets, and ``--only fibre`` the devices with this word in their names.
It exits with 1 where a criterion is not met. The criteria were fixed before the first run:

- without a pilot, error / high end is at most the second number of `OVER_HIGH_END`, and for README's devices at least the
  first (a device with less noise than assumed has a smaller error: that is what the pilot is for);
- from a pilot, error / typical error foreseen lies in `OVER_PILOT`, but for errors that nobody would notice;
- samples that a pilot asks for, over those needed, are at most `MAX_ASKED` in the median over devices;
- the mixture's errors of totals are in geometric mean below those of plain inputs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy

import infocap
from _common import run_tables
from _truth import features, fibre, mixture

OVER_HIGH_END = (0.3, 1.5)
OVER_PILOT = (0.5, 1.5)
MAX_ASKED = 4.0
# Errors of a total below this, as foreseen and as they come, are not worth planning.
MIN_NOTICEABLE_ERROR = 0.01

# Data sets from which a root mean square error comes: it is known to 14 %.
N_SETS = 24
N_PILOTS = 12
# The truth of devices without a closed form is the mean total of so many data sets, which have so many times the
# samples of the largest size that is looked at.
N_REFERENCES = 4
REFERENCE_FACTOR = 4
# The longest size that is looked at is so many times the pilot.
LONGEST_OVER_PILOT = 4
# Errors that are asked of a plan, as multiples of the error at the longest size: the squares go through a factor of 4,
# so that rounding to powers of two is averaged.
ASKED_ERRORS = (1.0, 1.19, 1.41, 1.68)
# The designs that are compared: the share of `draw_weighted`, or None for `draw`.
SHARES: dict[str, float | None] = {"plain": None, "mixture": 0.3, "functions alone": 1.0}
# Seeds of data sets, of references and of designs are apart.
FIRST_SEED = 9000
FIRST_REFERENCE_SEED = 500


@dataclass(frozen=True)
class Device:
    """A device at the settings of README or of the documentation; the truth where it is known."""

    name: str
    basis: infocap.ProductBasis
    observe: Callable[..., Any]  # (u, seed=...) -> readouts
    n_samples: int
    truth: float | None = None
    washout: int | None = None
    is_of_readme: bool = False

    @property
    def n_readouts(self) -> int:
        """Return how many channels the device has."""
        n_rows = 4 if not self.basis.memory else 4 + self.basis.memory
        return np.shape(self.observe(infocap.draw(self.basis, n_rows, seed=0), seed=0))[1]

    def estimate(self, n_samples: int, seed: int, share: float | None = None) -> Any:
        """Measure and estimate; with a share, inputs have weights."""
        weights = None
        if share is None:
            u = infocap.draw(self.basis, n_samples + (self.washout or 0), seed=seed)
        else:
            u, weights = infocap.draw_weighted(self.basis, n_samples, seed=seed, share=share)
        x = self.observe(u, seed=seed + 1_000_000)
        options = {"washout": self.washout, "sample_weight": weights}
        return infocap.estimate(u, x, self.basis, **options)


@cache
def devices() -> dict[str, Device]:
    """Return all devices by name."""
    return {device.name: device for device in (*built_in(), *others())}


def built_in() -> Iterator[Device]:
    """Yield the devices that come with infocap, at README's and the documentation's settings."""
    systems = infocap.systems
    two = [infocap.product_basis("legendre", 2, degree) for degree in (6, 8, 10, 14)]
    spectrometer = infocap.photonics.FibreSystem(power_dbm=4.5, length_m=40.0, n_inputs=2)
    yield Device("fibre, degree 14 (README)", two[3], spectrometer, 4096, is_of_readme=True)
    yield Device("fibre, degree 10 (README)", two[2], spectrometer, 2048, is_of_readme=True)
    yield Device("random features", two[0], systems.RandomFeatures(2, 20, noise=0.05), 1024)
    yield Device("random features, no noise", two[1], systems.RandomFeatures(2, 24), 2048)
    three = infocap.product_basis("legendre", 3, 6)
    network = systems.FeedForward(3, widths=(40, 40), noise=0.01, seed=1)
    yield Device("feed-forward network", three, network, 2048)
    five = infocap.product_basis("legendre", 5, 8)
    paper = infocap.theory.random_mixture(five, n_active=200, n_readouts=71, noise=0.5, seed=1)
    yield Device("paper's mixture", five, paper, 8192, truth=float(paper.exact().sum()))

    past = infocap.delayed_basis("legendre", max_delay={1: 30, 2: 15, 3: 8})
    echo = systems.EchoState(50, radius=0.8, input_scale=0.3, bias=0.2, noise=0.01, seed=1)
    yield Device("echo state network (README)", past, echo, 4800, washout=200, is_of_readme=True)
    short = infocap.delayed_basis("legendre", max_delay={1: 30, 2: 10})
    yield Device("delay line", short, systems.DelayLine(20, noise=0.1), 5000, washout=200)
    coloured = with_coloured_noise(systems.DelayLine(20), 0.3, 0.95)
    yield Device("delay line, AR 0.95 noise", short, coloured, 5000, washout=200)
    reservoir = systems.DelayReservoir(40, nonlinearity="ikeda", noise=0.01)
    yield Device("delay reservoir", short, reservoir, 5000, washout=200)


def with_coloured_noise(system: Callable, size: float, memory: float) -> Callable[..., Any]:
    """Return a system whose readouts have noise that remembers the noise before it."""

    def observe(u: Any, seed: int) -> Any:
        x = system(u)
        white = np.random.default_rng(seed).standard_normal(x.shape)
        noise = scipy.signal.lfilter([np.sqrt(1 - memory**2)], [1, -memory], white, axis=0)
        return x + size * noise

    return observe


def with_common_gain(system: Callable, size: float) -> Callable[..., Any]:
    """Return a system whose source varies from shot to shot, lognormally."""

    def observe(u: Any, seed: int) -> Any:
        gain = np.random.default_rng(seed).lognormal(sigma=size, size=(len(u), 1))
        return (1 + system(u, seed=seed + 1)) * gain

    return observe


def with_garbage(system: Callable, share: float) -> Callable[..., Any]:
    """Return a system of which a few shots give numbers of their own."""

    def observe(u: Any, seed: int) -> Any:
        generator = np.random.default_rng(seed)
        x = system(u, seed=seed + 1)
        is_garbage = generator.random(len(u)) < share
        x[is_garbage] = 2 * generator.standard_normal((is_garbage.sum(), x.shape[1]))
        return x

    return observe


def others() -> Iterator[Device]:
    """Yield devices with known capacities that the model was not made for."""
    three = infocap.product_basis("legendre", 3, 7)
    two_inputs = infocap.product_basis("legendre", 2, 6)
    small = infocap.systems.RandomFeatures(2, 12, noise=0.02, seed=3)
    known = [
        mixture("mixture, 3 inputs, 30 % noise", three, 40, 24, 0.3, 0.0, 41),
        mixture("mixture, 3 inputs, 200 % noise", three, 40, 24, 2.0, 0.0, 42),
        mixture("mixture, 3 inputs, 10 % outside", three, 40, 24, 0.1, 0.1, 43),
        features("tanh, 2 inputs, noise 1e-2", 2, 12, 50, 1.5, 1e-2, 60, 44),
        features("sine, 3 inputs, noise 1e-2", 3, 7, 40, 1.5, 1e-2, 30, 45, "sin"),
        features("tanh, 4 inputs, no noise", 4, 5, 40, 1.0, 0.0, 18, 46),
        fibre("fibre, steady phase, noise 1e-3", 12, 1e-3, 32),
    ]
    yield Device("common gain, 30 %", two_inputs, with_common_gain(small, 0.3), 1024)
    yield Device("garbage in 2 % of the shots", two_inputs, with_garbage(small, 0.02), 1024)
    for system in known:
        truth = float(system.capacity.sum())
        yield Device(system.name, system.basis, system, 2048, truth=truth)


@dataclass(frozen=True)
class Task:
    """One data set."""

    device: str
    n_samples: int
    seed: int
    share: float | None = None
    is_pilot: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one data set gave."""

    total: float
    error: float
    forecast: infocap.theory.Forecast | None  # of a pilot


def run_task(task: Task) -> Outcome:
    """Measure one data set, in any process."""
    warnings.simplefilter("ignore")
    device = devices()[task.device]
    result = device.estimate(task.n_samples, task.seed, task.share)
    forecast = infocap.theory.forecast_from(result) if task.is_pilot else None
    return Outcome(result.total, result.total_standard_error, forecast)


class Runs:
    """All data sets of all devices, measured in some processes, and the tables made of them."""

    def __init__(self, names: list[str], processes: int, share: float) -> None:
        self.names = names
        self.processes = processes
        self.n_sets = max(round(N_SETS * share), 3)
        self.n_pilots = max(round(N_PILOTS * share), 3)
        self.outcomes: dict[Task, Outcome] = {}
        self.failures: list[str] = []

    def sizes(self, name: str) -> list[int]:
        """Return the sizes of one device: that of the documentation, and a multiple of the pilot."""
        return sorted({devices()[name].n_samples, LONGEST_OVER_PILOT * self.pilot_size(name)})

    def pilot_size(self, name: str) -> int:
        """Return how many samples a pilot has."""
        return self.expected(name).pilot_samples

    @cache  # noqa: B019
    def expected(self, name: str) -> infocap.theory.Forecast:
        """Return what is foreseen without a pilot."""
        device = devices()[name]
        return infocap.theory.forecast(device.basis, device.n_readouts)

    def sets(self, name: str, n_samples: int, share: float | None = None) -> list[Task]:
        """Return the data sets from which an error comes."""
        seeds = range(FIRST_SEED, FIRST_SEED + self.n_sets)
        return [Task(name, n_samples, seed, share) for seed in seeds]

    def pilots(self, name: str) -> list[Task]:
        """Return the pilots of a device."""
        seeds = range(1, 1 + self.n_pilots)
        return [Task(name, self.pilot_size(name), seed, is_pilot=True) for seed in seeds]

    def references(self, name: str) -> list[Task]:
        """Return the data sets from which the truth comes, if it is not known."""
        if devices()[name].truth is not None:
            return []
        n_samples = REFERENCE_FACTOR * self.sizes(name)[-1]
        seeds = range(FIRST_REFERENCE_SEED, FIRST_REFERENCE_SEED + N_REFERENCES)
        return [Task(name, n_samples, seed) for seed in seeds]

    def designs(self, name: str) -> list[Task]:
        """Return the data sets of every design that is compared."""
        if devices()[name].basis.of_sequences:
            return []
        n_samples = self.pilot_size(name)
        return [task for share in SHARES.values() for task in self.sets(name, n_samples, share)]

    def run(self) -> None:
        """Measure everything, the longest data sets first."""
        tasks = []
        for name in self.names:
            tasks += self.references(name) + self.pilots(name) + self.designs(name)
            tasks += self.sets(name, self.pilot_size(name))
            for n_samples in self.sizes(name):
                tasks += self.sets(name, n_samples)
        tasks = sorted(dict.fromkeys(tasks), key=self.cost, reverse=True)
        if self.processes == 1:
            outcomes = map(run_task, tasks)
            self.outcomes = dict(zip(tasks, outcomes, strict=True))
            return
        # The devices, whose truth takes long to compute, are made before the processes fork.
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(self.processes, mp_context=context) as pool:
            self.outcomes = dict(zip(tasks, pool.map(run_task, tasks), strict=True))

    def cost(self, task: Task) -> int:
        """Return a number that grows with the time of a data set."""
        return task.n_samples * len(devices()[task.device].basis)

    @cache  # noqa: B019
    def truth(self, name: str) -> float:
        """Return the total that is known, or the mean of the references."""
        truth = devices()[name].truth
        if truth is not None:
            return truth
        return float(np.mean([self.outcomes[task].total for task in self.references(name)]))

    def error(self, name: str, n_samples: int, share: float | None = None) -> float:
        """Return the root mean square error of the totals."""
        totals = [self.outcomes[task].total for task in self.sets(name, n_samples, share)]
        return float(np.sqrt(np.mean((np.array(totals) - self.truth(name)) ** 2)))

    def bar(self, name: str, n_samples: int) -> float:
        """Return the median error bar."""
        return float(np.median([self.outcomes[task].error for task in self.sets(name, n_samples)]))

    def forecasts(self, name: str) -> list[infocap.theory.Forecast]:
        """Return what each pilot foresees."""
        outcomes = [self.outcomes[task] for task in self.pilots(name)]
        return [outcome.forecast for outcome in outcomes if outcome.forecast is not None]

    def judge(self, is_met: bool, criterion: str) -> str:
        """Keep a criterion that is not met, and return the words for a table."""
        if not is_met:
            self.failures.append(criterion)
        return "" if is_met else " **not met**"

    # The tables.

    def without_pilot(self) -> list[str]:
        """Return a line for each device at the settings of the documentation."""
        low, high = OVER_HIGH_END
        lines = [
            "Half of the readouts are taken for noise, as `infocap plan` does. Criterion: error / high "
            f"end is at most {high:g}, and for README's devices at least {low:g}.",
            "",
            "| device (functions, K) | N | foreseen | error | bar | error / typical | / high end |",
            "|---|---|---|---|---|---|---|",
        ]
        for name in self.names:
            device = devices()[name]
            n = device.n_samples
            expected = self.expected(name)
            foreseen = expected.at(n)
            error = self.error(name, n)
            over_high = error / foreseen.high
            lowest = low if device.is_of_readme else 0.0
            verdict = self.judge(lowest <= over_high <= high, f"without a pilot: {name}")
            lines.append(
                f"| {name} ({len(device.basis)}, {expected.maximum}) | {n} | "
                f"{foreseen.typical:.2g} ({foreseen.low:.2g} to {foreseen.high:.2g}) | "
                f"{error:.3g} | {self.bar(name, n):.3g} | {error / foreseen.typical:.2f} | "
                f"{over_high:.2f}{verdict} |"
            )
        return lines

    def from_pilot(self) -> list[str]:
        """Return a line for each device and size."""
        lines = [
            f"Pilots have 8 samples per function, at least 4 per readout. Foreseen is the median (smallest to largest) of "
            f"{self.n_pilots} pilots' typical errors. Criterion: error / median foreseen in {OVER_PILOT}, or both below {MIN_NOTICEABLE_ERROR}.",
            "",
            "| device | pilot | N | foreseen | error | error / foreseen |",
            "|---|---|---|---|---|---|",
        ]
        low, high = OVER_PILOT
        for name in self.names:
            forecasts = self.forecasts(name)
            for n in self.sizes(name):
                if n < forecasts[0].min_samples:
                    continue
                foreseen = [forecast.at(n).typical for forecast in forecasts]
                error = self.error(name, n)
                ratio = error / float(np.median(foreseen))
                is_noticed = max(error, np.median(foreseen)) >= MIN_NOTICEABLE_ERROR
                is_met = low <= ratio <= high or not is_noticed
                verdict = self.judge(is_met, f"from a pilot: {name}, N = {n}")
                lines.append(
                    f"| {name} | {self.pilot_size(name)} | {n} | {np.median(foreseen):.3g} "
                    f"({min(foreseen):.2g} to {max(foreseen):.2g}) | {error:.3g} | {ratio:.2f}{verdict} |"
                )
        return lines

    def asked(self) -> list[str]:
        """Return a line for each device: samples that pilots ask for, over those needed."""
        lines = [
            "An error is asked for that comes with up to four times the pilot's samples; between, errors are interpolated as a power "
            "of N. Asked over needed: median (smallest to largest) over pilots and errors.",
            "",
            "| device | from a pilot | without |",
            "|---|---|---|",
        ]
        medians = []
        for name in self.names:
            forecasts = self.forecasts(name)
            from_pilot = []
            without = []
            for error, needed in self.wishes(name):
                for forecast in forecasts:
                    from_pilot.append(_samples_needed(forecast, error) / needed)
                without.append(_samples_needed(self.expected(name), error) / needed)
            medians.append(float(np.median(from_pilot)))
            lines.append(
                f"| {name} | {medians[-1]:.2g} ({min(from_pilot):.2g} to {max(from_pilot):.2g}) | "
                f"{np.median(without):.2g} |"
            )
        median = float(np.median(medians))
        verdict = self.judge(median <= MAX_ASKED, "samples asked for")
        lines += ["", f"Median over devices: {median:.2g} (at most {MAX_ASKED:g}).{verdict}"]
        return lines

    def wishes(self, name: str) -> Iterator[tuple[float, float]]:
        """Yield errors, and the number of samples with which each came."""
        first = self.pilot_size(name)
        error_of_first = self.error(name, first)
        error_of_last = self.error(name, LONGEST_OVER_PILOT * first)
        power = np.log(error_of_first / error_of_last) / np.log(LONGEST_OVER_PILOT)
        for factor in ASKED_ERRORS:
            needed = LONGEST_OVER_PILOT * first * factor ** (-1 / max(power, 0.5))
            yield factor * error_of_last, needed

    def compare_designs(self) -> list[str]:
        """Return a line for each memoryless device: errors with weights over those without."""
        lines = [
            "Root mean square errors of totals with N of the pilot, over those of plain inputs. Criterion: the geometric mean of "
            "the mixture is below 1.",
            "",
            "| device | N | plain | mixture | functions alone |",
            "|---|---|---|---|---|",
        ]
        ratios = []
        for name in self.names:
            if not self.designs(name):
                continue
            n = self.pilot_size(name)
            plain, mixed, alone = (self.error(name, n, share) for share in SHARES.values())
            ratios.append((mixed / plain, alone / plain))
            lines.append(
                f"| {name} | {n} | {plain:.3g} | {mixed / plain:.2f} | {alone / plain:.2f} |"
            )
        if ratios:
            means = np.exp(np.mean(np.log(ratios), axis=0))
            verdict = self.judge(means[0] < 1, "errors of the mixture")
            lines.append(f"| geometric mean |  |  | {means[0]:.2f}{verdict} | {means[1]:.2f} |")
        return lines


def _samples_needed(forecast: infocap.theory.Forecast, error: float) -> float:
    """Return how many samples are asked for; infinitely many where the forecast asks for too many."""
    try:
        return forecast.samples_needed(error)
    except infocap.errors.ParameterError:
        return np.inf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the data sets")
    parser.add_argument("--only", default="", help="devices with this word in their names")
    arguments = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name) != "1":
            os.environ[name] = "1"
            # The matrix library reads these when it is loaded.
            os.execv(sys.executable, [sys.executable, *sys.argv])
    names = [name for name in devices() if arguments.only in name]
    runs = Runs(names, arguments.processes, arguments.share)
    runs.run()
    tables = {
        "Without a pilot": runs.without_pilot,
        "From a pilot": runs.from_pilot,
        "Samples asked for": runs.asked,
        "Designs": runs.compare_designs,
    }
    command = f"python benchmarks/choosing.py --processes {arguments.processes}"
    run_tables("Choosing", command, tables, arguments.write)
    for failure in runs.failures:
        print(f"not met: {failure}")
    return 1 if runs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
