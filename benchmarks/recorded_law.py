"""Whether capacities under the law of the recorded inputs are true: totals, single ones, zeros, and what is memory.

``python benchmarks/recorded_law.py --processes 16 --write`` takes about five minutes and keeps the tables in RESULTS.md;
without ``--write`` it prints them; ``--sets 4`` takes few data sets, ``--only telegraph`` the pairs of a drive and a device
with this word in their names. It exits with 1 where a criterion is not met. The criteria were fixed before the first run:

- 95 % intervals of sums (the total, the memory capacity, and what lies beyond the present input) hold in at least `LEAST_SUMS`
  of the data sets of a drive or a device with a noise and a length, or are called unreliable; so they do in a single cell;
- 95 % intervals of single capacities hold in a share between the two of `SINGLES`, by drive, noise and length;
- of the functions found, at most `MOST_FALSE` are false on average, and at most this share of true zeros has p < 0.05;
- a device without memory has nothing beyond the present input, within `BARS_OF_NOTHING` error bars, in at least
  `LEAST_NOTHING` of the data sets of a noise and a length, or is called unreliable;
- where nothing is the matter (a drive that is not slow, a device and noise without heavy tails, `SIZES_OF_DECLARED` samples
  per function), at most `MOST_FALSE_FLAGS` of the totals are called unreliable;
- with independent inputs, totals differ from those of the declared law by at most `MOST_BARS_APART` error bars, root mean square;
- truth from a long run agrees with algebra to `MOST_ERRORS_OF_TRUTH` of its own errors.

A share that is too small or too large counts if right error bars would hardly make it so by chance: with a probability
below `CHANCE_OF_GROUP` in a group of many data sets, below `CHANCE_OF_CELL` in one of the hundreds of cells.

Truth comes by algebra for linear networks with normal inputs, and else from half a million steps whose own error is added
to the error bar. In each data set the truth is that of the functions that could be told apart in this data set.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import binom
from scipy.stats import t as student

import infocap
from _common import run_tables
from _drives import (
    DEVICES,
    DRIVES,
    NOISES,
    NORMAL_DRIVES,
    SETTLING,
    THREE_DEPENDENT,
    TWO_CORRELATED,
    Device,
    Drive,
    LinearNetwork,
    NormalDrive,
    echo_state,
    tanh_units,
)
from _law_truth import Capacities, LawTruth, exact, functions_of, long_run

LEAST_SUMS = 0.90
SINGLES = (0.92, 0.98)
MOST_FALSE = 0.06
LEAST_NOTHING = 0.95
BARS_OF_NOTHING = 2.0
MOST_BARS_APART = 1.0
MOST_FALSE_FLAGS = 0.10
MOST_ERRORS_OF_TRUTH = 4.0
CHANCE_OF_GROUP = 0.01
CHANCE_OF_CELL = 0.001
# Data sets from which shares of functions are judged.
MIN_SETS = 10

# Data sets of each cell.
N_SETS = 50
# Samples per function of the dictionary.
SIZES = (3, 10, 50)
# Sizes at which the declared law is asked as well: with fewer samples it falls back to another method.
SIZES_OF_DECLARED = (10, 50)
# Capacities above which an interval is looked at.
LEAST_SINGLE = 0.02
# Under independent inputs, capacities from a long run that are below this are taken for zero: half a million samples give
# 3e-5 to a function without capacity.
LARGEST_ZERO = 2e-4
NORMAL_INTERVAL = 1.96
NOMINAL = 0.95
N_RUNS = 4
NETWORK_SIZES = (3, 4, 6, 8, 10, 12)
# Worst cells that the summary shows for each criterion.
N_WORST = 5

DICTIONARY = infocap.delayed_basis("legendre", max_delay={1: 10, 2: 5, 3: 1})
OF_LINEAR_NETWORKS = infocap.delayed_basis("legendre", max_delay={1: 12, 2: 4})
OF_TWO_INPUTS = infocap.delayed_basis("legendre", 2, max_delay={1: 5, 2: 2})
WITHOUT_MEMORY = infocap.product_basis("legendre", 3, max_degree=3)

EXACT = "linear networks"
BY_DRIVE = "drives"
SEVERAL = "several inputs and runs"


@dataclass(frozen=True)
class Pair:
    """A drive and a device, which share one truth for all noises and lengths."""

    part: str
    drive: Drive | NormalDrive
    device: Device | LinearNetwork
    basis: infocap.ProductBasis
    n_runs: int = 1

    @property
    def name(self) -> str:
        """Name of the drive, with the number of runs."""
        return self.drive.name if self.n_runs == 1 else f"{self.drive.name}, {self.n_runs} runs"

    @property
    def seed(self) -> int:
        """A number that belongs to this pair alone."""
        return zlib.crc32(f"{self.part}, {self.name}, {self.device.name}".encode())

    def truth(self) -> LawTruth:
        """Return the true capacities."""
        if isinstance(self.device, LinearNetwork):
            return exact(self.drive, self.device, self.basis)
        return long_run(self.drive, self.device, self.basis, self.seed)

    def zeros(self, truth: LawTruth, capacities: Capacities) -> np.ndarray:
        """Return which functions that were asked for have no capacity."""
        n_asked = len(truth.dictionary.asked)
        degrees = truth.dictionary.degrees
        is_zero = np.zeros(n_asked, dtype=bool)
        if self.device.name == "noise alone":
            is_zero[:] = True
        if self.drive.is_symmetric and self.device.is_odd:
            is_zero |= degrees % 2 == 0
        if self.drive.is_independent:
            is_zero |= capacities.value[:n_asked] < LARGEST_ZERO
        return is_zero & (degrees > 0)


def pairs() -> list[Pair]:
    """Return all pairs of a drive and a device."""
    found = []
    for drive in DRIVES:
        for device in DEVICES:
            if not (device.has_gain_above_one and drive.is_slow):
                found.append(Pair(BY_DRIVE, drive, device, DICTIONARY))
    for drive in NORMAL_DRIVES:
        for n_nodes in NETWORK_SIZES:
            found.append(Pair(EXACT, drive, LinearNetwork(n_nodes), OF_LINEAR_NETWORKS))
    network = Device("echo state", echo_state, 0.05)
    units = Device("tanh units, no memory", tanh_units, 0.05, has_memory=False)
    slow = next(drive for drive in DRIVES if drive.name == "AR 0.9")
    found += [
        Pair(SEVERAL, TWO_CORRELATED, network, OF_TWO_INPUTS),
        Pair(SEVERAL, TWO_CORRELATED, units, OF_TWO_INPUTS),
        Pair(SEVERAL, THREE_DEPENDENT, units, WITHOUT_MEMORY),
        Pair(SEVERAL, slow, network, DICTIONARY, n_runs=N_RUNS),
        Pair(SEVERAL, slow, units, DICTIONARY, n_runs=N_RUNS),
    ]
    return found


# ---------------------------------------------------------------------------------------------
# One data set
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deviation:
    """An estimated sum: how far it is from the truth, and the error bar with that of the truth."""

    value: float
    error: float
    bar: float

    @property
    def holds(self) -> bool:
        """Whether the 95 % interval holds."""
        return abs(self.error) <= NORMAL_INTERVAL * self.bar


@dataclass(frozen=True)
class Outcome:
    """What one data set gave."""

    part: str
    drive: str
    device: str
    noise: str
    size: int  # samples per function
    is_unreliable: bool
    sums: dict[str, Deviation]
    has_memory: bool
    n_told_apart: int
    n_singles: int
    n_singles_held: int
    n_zeros: int
    n_zeros_with_low_p: int
    n_found: int
    n_found_false: int
    recall_error: float  # root mean square over delays
    apart_from_declared: float  # difference of totals in error bars; NaN where it was not asked

    @property
    def cell(self) -> tuple[str, str, str, int]:
        """Where it belongs."""
        return self.drive, self.device, self.noise, self.size


def estimated(
    pair: Pair, u: np.ndarray, x: np.ndarray, law: str = "recorded"
) -> infocap.CapacityResult:
    """Return the result of sequences (runs, steps, inputs), or of rows."""
    if not isinstance(pair.basis, infocap.DelayedBasis):
        return infocap.estimate(u[0], x[0], pair.basis, law=law)
    washout = pair.basis.memory
    if len(u) == 1:
        return infocap.estimate(u[0], x[0], pair.basis, law=law, washout=washout)
    return infocap.estimate(list(u), list(x), pair.basis, law=law, washout=washout)


def told_apart_of(result: infocap.CapacityResult, truth: LawTruth) -> tuple[np.ndarray, np.ndarray]:
    """Return which functions that were asked for are told apart, and the place of each in the result.

    Functions that the result does not have, because an input takes too few values, are not told apart.
    """
    places = {function: place for place, function in enumerate(functions_of(result.basis))}
    place_of = np.array([places.get(function, -1) for function in truth.dictionary.asked])
    told_apart = (place_of >= 0) & result.told_apart[place_of]
    return told_apart, place_of


def judged(
    pair: Pair, truth: LawTruth, noise: str, size: int, u: np.ndarray, x: np.ndarray
) -> Outcome:
    """Estimate one data set and compare it with the truth."""
    result = estimated(pair, u, x)
    told_apart, place_of = told_apart_of(result, truth)
    kept = np.flatnonzero(told_apart)
    in_result = place_of[kept]
    true = truth.capacities(told_apart)
    value, error = true.value[kept], true.errors[kept]

    sums = {"total": deviation(result.total, result.total_standard_error, true.sum())}
    of_degree_1 = kept[truth.dictionary.degrees[kept] == 1]
    recall_error = np.nan
    if isinstance(pair.basis, infocap.DelayedBasis):
        memory, beyond = result.memory_capacity, result.beyond_present
        sums["memory"] = deviation(memory, memory.standard_error, true.sum(of_degree_1))
        sums["beyond"] = deviation(beyond, beyond.standard_error, truth.beyond_present(told_apart))
        plain = result.recorded_law.plain[place_of[of_degree_1]]
        true_recall = np.array([truth.recall(place) for place in of_degree_1.tolist()])
        recall_error = float(np.sqrt(np.mean((plain - true_recall) ** 2)))

    is_shown = (value > LEAST_SINGLE) & (truth.dictionary.degrees[kept] > 0)
    bars = np.hypot(result.standard_error[in_result], error)
    held = np.abs(result.unbiased[in_result] - value) <= NORMAL_INTERVAL * bars
    is_zero = pair.zeros(truth, true)[kept]
    is_found = (result.capacity[in_result] > 0) & (truth.dictionary.degrees[kept] > 0)
    apart = np.nan
    if pair.drive.is_independent and size in SIZES_OF_DECLARED:
        declared = estimated(pair, u, x, law="declared")
        longer = max(result.total_standard_error, declared.total_standard_error)
        apart = (result.total - declared.total) / longer
    return Outcome(
        part=pair.part,
        drive=pair.name,
        device=pair.device.name,
        noise=noise,
        size=size,
        is_unreliable=bool(result.unreliable),
        sums=sums,
        has_memory=pair.device.has_memory,
        n_told_apart=len(kept),
        n_singles=int(is_shown.sum()),
        n_singles_held=int(held[is_shown].sum()),
        n_zeros=int(is_zero.sum()),
        n_zeros_with_low_p=int((result.p_value[in_result][is_zero] < 0.05).sum()),
        n_found=int(is_found.sum()),
        n_found_false=int((is_found & is_zero).sum()),
        recall_error=recall_error,
        apart_from_declared=float(apart),
    )


def deviation(value: float, bar: float, truth: tuple[float, float]) -> Deviation:
    """Return how far a sum is from the truth, whose own error counts with the error bar."""
    true_value, true_error = truth
    return Deviation(float(value), float(value) - true_value, float(np.hypot(bar, true_error)))


def outcomes_of(pair: Pair, n_sets: int) -> list[Outcome]:
    """Return what all noises and lengths give for one drive and device."""
    warnings.simplefilter("ignore")
    truth = pair.truth()
    memory = truth.dictionary.memory
    found = []
    for number, (noise, make_noise) in enumerate(NOISES.items()):
        for size in SIZES:
            rng = np.random.default_rng([pair.seed, number, size])
            n_steps = size * len(pair.basis) // pair.n_runs
            n_sequences = n_sets * pair.n_runs
            u = pair.drive.draw(rng, n_sequences, SETTLING + memory + n_steps)
            x = pair.device.respond(u)[:, SETTLING:]
            x = x + truth.noise_sizes * make_noise(rng, x.shape)
            u = u[:, SETTLING:]
            for first in range(0, n_sequences, pair.n_runs):
                runs = slice(first, first + pair.n_runs)
                found.append(judged(pair, truth, noise, size, u[runs], x[runs]))
    return found


# ---------------------------------------------------------------------------------------------
# Many data sets
# ---------------------------------------------------------------------------------------------


def share(values: Iterable[bool]) -> float:
    """Return the share that is true; NaN of none."""
    values = list(values)
    return float(np.mean(values)) if values else np.nan


@dataclass(frozen=True)
class Shares:
    """Shares of each data set, such as that of its intervals that hold."""

    values: list[float]

    @property
    def mean(self) -> float:
        """Mean over data sets; NaN of none."""
        return float(np.mean(self.values)) if self.values else np.nan

    def is_above(self, limit: float, nominal: float) -> bool:
        """Return whether the mean is above a limit, and above its nominal value by more than chance makes it."""
        return self.mean > limit and self.mean - nominal > self._by_chance

    def is_below(self, limit: float, nominal: float) -> bool:
        """Return whether the mean is below a limit, and below its nominal value by more than chance makes it."""
        return self.mean < limit and nominal - self.mean > self._by_chance

    @property
    def _by_chance(self) -> float:
        """What a mean departs by with the probability `CHANCE_OF_GROUP`; infinite for few data sets."""
        n_sets = len(self.values)
        if n_sets < MIN_SETS:
            return np.inf
        error = float(np.std(self.values, ddof=1) / np.sqrt(n_sets))
        return error * float(student.isf(CHANCE_OF_GROUP, n_sets - 1))


@dataclass(frozen=True)
class Scores:
    """How a group of data sets did. Single capacities and zeros count where the total is not called unreliable."""

    outcomes: list[Outcome]

    def held(self, name: str) -> float:
        """Return how often a sum held."""
        return share(o.sums[name].holds for o in self.outcomes if name in o.sums)

    def held_or_flagged(self, name: str) -> float:
        """Return how often a sum held, or was called unreliable."""
        return share(o.sums[name].holds or o.is_unreliable for o in self.outcomes if name in o.sums)

    def holds_too_rarely(self, name: str, chance: float) -> bool:
        """Return whether a sum holds less often than asked, and than right error bars would make it."""
        met = [o.sums[name].holds or o.is_unreliable for o in self.outcomes if name in o.sums]
        if share(met) >= LEAST_SUMS or not met:
            return False
        return bool(binom.cdf(sum(met), len(met), NOMINAL) < chance)

    @property
    def flagged(self) -> float:
        """Share of totals that are called unreliable."""
        return share(o.is_unreliable for o in self.outcomes)

    @property
    def bias_in_bars(self) -> float:
        """Mean error of the total, in mean error bars."""
        return self._mean_of_total("error") / self._mean_of_total("bar")

    @property
    def bar(self) -> float:
        """Mean error bar of the total."""
        return self._mean_of_total("bar")

    @property
    def scatter_in_bars(self) -> float:
        """Root mean square error of the total, in mean error bars."""
        errors = [o.sums["total"].error for o in self.outcomes]
        return float(np.sqrt(np.mean(np.square(errors)))) / self.bar

    def _mean_of_total(self, field: str) -> float:
        return float(np.mean([getattr(o.sums["total"], field) for o in self.outcomes]))

    @property
    def reliable(self) -> list[Outcome]:
        """The data sets whose total is not called unreliable."""
        return [o for o in self.outcomes if not o.is_unreliable]

    @property
    def singles(self) -> Shares:
        """How often intervals of single capacities hold."""
        return Shares([o.n_singles_held / o.n_singles for o in self.reliable if o.n_singles])

    @property
    def low_p(self) -> Shares:
        """True zeros with p < 0.05."""
        return Shares([o.n_zeros_with_low_p / o.n_zeros for o in self.reliable if o.n_zeros])

    @property
    def false(self) -> Shares:
        """False ones among the functions found, where some functions have no capacity."""
        return Shares([o.n_found_false / max(o.n_found, 1) for o in self.reliable if o.n_zeros])

    @property
    def recall_error(self) -> float:
        """Root mean square error of the recall of single inputs."""
        return float(np.sqrt(np.mean([o.recall_error**2 for o in self.outcomes])))

    @property
    def told_apart(self) -> str:
        """How many functions were told apart, from the fewest to the most."""
        counts = [o.n_told_apart for o in self.outcomes]
        fewest, most = min(counts), max(counts)
        return str(most) if fewest == most else f"{fewest} to {most}"

    def nothing_beyond(self) -> list[bool]:
        """Return for each data set whether what lies beyond the present is within some bars of zero."""
        found = []
        for outcome in self.outcomes:
            beyond = outcome.sums["beyond"]
            found.append(abs(beyond.value) <= BARS_OF_NOTHING * beyond.bar)
        return found

    @property
    def apart_from_declared(self) -> float:
        """Root mean square difference from the declared law's totals, in error bars."""
        differences = [o.apart_from_declared for o in self.outcomes]
        return float(np.sqrt(np.mean(np.square(differences))))


class Verdicts:
    """The criteria, and what does not meet them."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes
        self.failures: list[str] = []

    def group(self, **values: object) -> Scores:
        """Return the data sets that have these values in their fields."""
        chosen = []
        for outcome in self.outcomes:
            if all(getattr(outcome, name) == value for name, value in values.items()):
                chosen.append(outcome)
        return Scores(chosen)

    def names(self, part: str, field: str) -> list[str]:
        """Return the names of drives or devices of a part, in their order."""
        return list(dict.fromkeys(getattr(o, field) for o in self.outcomes if o.part == part))

    def judge_sums(self, where: str, scores: Scores, chance: float = CHANCE_OF_GROUP) -> None:
        """Keep the sums that hold too rarely."""
        for name, words in SUM_NAMES.items():
            if scores.holds_too_rarely(name, chance):
                held = scores.held_or_flagged(name)
                self.failures.append(f"{where}: {words} holds in {held:.3f}")

    def judge(self, where: str, scores: Scores) -> None:
        """Keep what a group of data sets does not meet."""
        self.judge_sums(where, scores)
        low, high = SINGLES
        singles = scores.singles
        if singles.is_below(low, NOMINAL) or singles.is_above(high, NOMINAL):
            self.failures.append(f"{where}: single capacities hold in {singles.mean:.3f}")
        if scores.low_p.is_above(MOST_FALSE, 1 - NOMINAL):
            self.failures.append(f"{where}: zeros have p < 0.05 in {scores.low_p.mean:.3f}")
        if scores.false.is_above(MOST_FALSE, 1 - NOMINAL):
            self.failures.append(
                f"{where}: {scores.false.mean:.3f} of the functions found are false"
            )

    # -----------------------------------------------------------------------------------------
    # Tables
    # -----------------------------------------------------------------------------------------

    def truth(self) -> list[str]:
        """Return the table of truth by algebra against truth from a long run."""
        lines = [
            "A network of 6 nodes. Total, and what lies beyond the present, by algebra and from half a million steps, with the "
            f"errors that these have by their own account (criterion: at most {MOST_ERRORS_OF_TRUTH:g} of them apart); the largest "
            "difference of a single capacity.",
            "",
            "| drive | total | from a long run | beyond the present | from a long run | largest difference |",
            "|---|---|---|---|---|---|",
        ]
        network = LinearNetwork(6)
        simulated = Device(network.name, network.respond, network.noise, is_odd=True)
        every = np.ones(len(OF_LINEAR_NETWORKS), dtype=bool)
        for drive in NORMAL_DRIVES:
            by_algebra = Pair(EXACT, drive, network, OF_LINEAR_NETWORKS).truth()
            by_run = Pair(EXACT, drive, simulated, OF_LINEAR_NETWORKS).truth()
            exact_value = by_algebra.capacities(every)
            value = by_run.capacities(every)
            sums = [
                (exact_value.sum(), value.sum()),
                (by_algebra.beyond_present(every), by_run.beyond_present(every)),
            ]
            cells = [drive.name]
            for (right, _), (found, error) in sums:
                cells += [f"{right:.4f}", f"{found:.4f} ± {error:.4f}"]
                if abs(found - right) > MOST_ERRORS_OF_TRUTH * error:
                    self.failures.append(f"{drive.name}: the truth of a long run is {found:.4f}")
            n_functions = len(every)
            difference = np.abs(value.value[:n_functions] - exact_value.value[:n_functions]).max()
            lines.append(_row([*cells, f"{difference:.0e}"]))
        return lines

    def linear_networks(self) -> list[str]:
        """Return the table of devices whose truth is exact."""
        lines = [
            "Truth by algebra; networks of 3 to 12 nodes together. Hold: 95 % intervals of the total, of the memory capacity "
            "and of what lies beyond the present, or called unreliable; bias and root mean square error of the total in mean "
            "error bars; singles: intervals of capacities above "
            f"{LEAST_SINGLE}; zeros: degree 2 with p < 0.05; false: share of the functions found; recall: root mean square error.",
            "",
            "| drive | noise | N / functions | data sets | unreliable | total | memory | beyond | bias | rms | singles | zeros | "
            "false | recall |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for drive in self.names(EXACT, "drive"):
            for noise in NOISES:
                for size in SIZES:
                    scores = self.group(part=EXACT, drive=drive, noise=noise, size=size)
                    self.judge(f"{drive}, {noise} noise, {size} samples per function", scores)
                    cells = [drive, noise, str(size), *_cells(scores)]
                    lines.append(_row([*cells, f"{scores.recall_error:.3f}"]))
        return lines

    def by_drive(self) -> list[str]:
        """Return the table of drives and noises, all devices together."""
        lines = _joined_header("drive", "All devices together.")
        for drive in self.names(BY_DRIVE, "drive"):
            for noise in NOISES:
                groups = []
                for size in SIZES:
                    scores = self.group(part=BY_DRIVE, drive=drive, noise=noise, size=size)
                    self.judge(f"{drive}, {noise} noise, {size} samples per function", scores)
                    groups.append(scores)
                lines.append(_joined_row([drive, noise], groups))
        return lines

    def by_device(self) -> list[str]:
        """Return the table of devices and noises, all drives together."""
        lines = _joined_header("device", "All drives together.")
        for device in self.names(BY_DRIVE, "device"):
            for noise in NOISES:
                groups = []
                for size in SIZES:
                    where = {"part": BY_DRIVE, "device": device, "noise": noise, "size": size}
                    scores = self.group(**where)
                    self.judge_sums(f"{device}, {noise} noise, {size} samples per function", scores)
                    groups.append(scores)
                lines.append(_joined_row([device, noise], groups))
        return lines

    def judge_flags(self) -> None:
        """Keep devices whose totals are called unreliable where nothing is the matter."""
        slow_drives = [drive.name for drive in DRIVES if drive.is_slow]
        heavy_devices = [device.name for device in DEVICES if device.has_gain_above_one]
        for device in self.names(BY_DRIVE, "device"):
            chosen = []
            for outcome in self.group(part=BY_DRIVE, device=device).outcomes:
                is_heavy = device in heavy_devices or outcome.noise == "t(3)"
                is_long = outcome.size in SIZES_OF_DECLARED
                if is_long and not is_heavy and outcome.drive not in slow_drives:
                    chosen.append(outcome)
            flagged = Scores(chosen).flagged
            if flagged > MOST_FALSE_FLAGS:
                self.failures.append(
                    f"{device}, drives that are not slow: {flagged:.2f} unreliable"
                )

    def cells(self) -> dict[tuple[str, str, str, int], Scores]:
        """Return the data sets of each drive, device, noise and length."""
        found: dict[tuple[str, str, str, int], list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.cell, []).append(outcome)
        return {cell: Scores(outcomes) for cell, outcomes in found.items()}

    def without_memory(self) -> list[str]:
        """Return the table of what devices without memory seem to remember."""
        devices = list(dict.fromkeys(o.device for o in self.outcomes if not o.has_memory))
        lines = [
            f"{' and '.join(devices)}. Share of data sets with what lies beyond the present within {BARS_OF_NOTHING:g} error "
            f"bars of zero, or called unreliable (asked: {LEAST_NOTHING}, all drives together); mean value; mean error bar.",
            "",
            "| drive | noise | within, " + _sizes() + " | mean | bar |",
            "|---|---|---|---|---|",
        ]
        without = [o for o in self.outcomes if not o.has_memory and "beyond" in o.sums]
        for noise in NOISES:
            for drive in [*dict.fromkeys(o.drive for o in without), "all"]:
                shares, means, bars = [], [], []
                for size in SIZES:
                    chosen = []
                    for outcome in without:
                        is_here = drive in ("all", outcome.drive)
                        if is_here and (outcome.noise, outcome.size) == (noise, size):
                            chosen.append(outcome)
                    near = _near_or_flagged(Scores(chosen))
                    shares.append(f"{share(near):.2f}")
                    means.append(f"{np.mean([o.sums['beyond'].value for o in chosen]):+.3f}")
                    bars.append(f"{np.mean([o.sums['beyond'].bar for o in chosen]):.3f}")
                    if drive == "all":
                        self._judge_nothing(f"{noise} noise, {size} samples per function", near)
                columns = [" / ".join(values) for values in (shares, means, bars)]
                lines.append(_row([drive, noise, *columns]))
        return lines

    def _judge_nothing(self, where: str, near: list[bool]) -> None:
        if binom.cdf(sum(near), len(near), LEAST_NOTHING) < CHANCE_OF_GROUP:
            self.failures.append(
                f"{where}: devices without memory have nothing beyond the present in only {share(near):.3f}"
            )

    def several(self) -> list[str]:
        """Return the table of several inputs, rows without memory, and several runs."""
        lines = _joined_header("device and drive", "")
        for drive in self.names(SEVERAL, "drive"):
            for device in self.names(SEVERAL, "device"):
                for noise in NOISES:
                    groups = []
                    for size in SIZES:
                        where = {"part": SEVERAL, "drive": drive, "device": device}
                        scores = self.group(**where, noise=noise, size=size)
                        if scores.outcomes:
                            where_in_words = (
                                f"{device}, {drive}, {noise} noise, {size} samples per function"
                            )
                            self.judge(where_in_words, scores)
                            groups.append(scores)
                    if groups:
                        lines.append(_joined_row([f"{device}, {drive}", noise], groups))
        return lines

    def against_declared(self) -> list[str]:
        """Return the table of totals of independent inputs under both laws."""
        lines = [
            "Difference of totals under the recorded and the declared law on the same data with independent inputs, in error bars "
            "(the longer of the two), at "
            + " / ".join(map(str, SIZES_OF_DECLARED))
            + " samples per function.",
            "",
            "| device | noise | root mean square | mean |",
            "|---|---|---|---|",
        ]
        compared = [o for o in self.outcomes if not np.isnan(o.apart_from_declared)]
        for device in dict.fromkeys(o.device for o in compared):
            for noise in NOISES:
                sizes, means = [], []
                for size in SIZES_OF_DECLARED:
                    here = (device, noise, size)
                    scores = Scores([o for o in compared if (o.device, o.noise, o.size) == here])
                    apart = scores.apart_from_declared
                    sizes.append(f"{apart:.2f}")
                    means.append(
                        f"{np.mean([o.apart_from_declared for o in scores.outcomes]):+.2f}"
                    )
                    if apart > MOST_BARS_APART:
                        where = f"{device}, independent, {noise} noise, {size} samples per function"
                        self.failures.append(
                            f"{where}: totals of the two laws are {apart:.2f} bars apart"
                        )
                lines.append(_row([device, noise, " / ".join(sizes), " / ".join(means)]))
        return lines

    def summary(self) -> list[str]:
        """Return the overall shares, the worst cells, and what is not met."""
        every = Scores(self.outcomes)
        lines = [
            f"{len(self.outcomes)} data sets, {every.flagged:.3f} called unreliable. Totals hold in {every.held('total'):.3f}, or "
            f"are called unreliable in {every.held_or_flagged('total'):.3f}; memory capacities in {every.held('memory'):.3f}, beyond "
            f"the present in {every.held('beyond'):.3f}. Where nothing is called unreliable, totals hold in "
            f"{Scores(every.reliable).held('total'):.3f}, single capacities in {every.singles.mean:.3f}, zeros have p < 0.05 in "
            f"{every.low_p.mean:.3f}, and {every.false.mean:.3f} of the functions found are false.",
            "",
            "| worst cells | drive | device | noise | N / functions | share |",
            "|---|---|---|---|---|---|",
        ]
        measures: dict[str, Callable[[Scores], float]] = {
            "total holds or unreliable": lambda scores: scores.held_or_flagged("total"),
            "memory capacity": lambda scores: scores.held_or_flagged("memory"),
            "beyond the present": lambda scores: scores.held_or_flagged("beyond"),
            "singles": lambda scores: scores.singles.mean,
            "zeros with p < 0.05": lambda scores: -scores.low_p.mean,
            "false": lambda scores: -scores.false.mean,
        }
        self.judge_flags()
        cells = self.cells()
        for (drive, device, noise, size), scores in cells.items():
            where = f"{device} under {drive}, {noise} noise, {size} samples per function"
            self.judge_sums(where, scores, CHANCE_OF_CELL)
        for name, measure in measures.items():
            values = {cell: measure(scores) for cell, scores in cells.items()}
            known = [cell for cell, value in values.items() if not np.isnan(value)]
            for cell in sorted(known, key=values.__getitem__)[:N_WORST]:
                lines.append(_row([name, *map(str, cell), f"{abs(values[cell]):.2f}"]))
        lines += ["", f"Not met: {len(self.failures)}.", ""]
        return lines + [f"- {failure}" for failure in self.failures]


SUM_NAMES = {
    "total": "the total",
    "memory": "the memory capacity",
    "beyond": "what is beyond the present",
}


def _near_or_flagged(scores: Scores) -> list[bool]:
    near = scores.nothing_beyond()
    return [is_near or o.is_unreliable for is_near, o in zip(near, scores.outcomes, strict=True)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float, digits: int = 2) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _sizes() -> str:
    return " / ".join(map(str, SIZES))


def _cells(scores: Scores) -> list[str]:
    """Return the columns of a group of data sets."""
    cells = [str(len(scores.outcomes)), _number(scores.flagged)]
    cells += [_number(scores.held_or_flagged(name)) for name in ("total", "memory", "beyond")]
    cells += [f"{scores.bias_in_bars:+.2f}", f"{scores.scatter_in_bars:.2f}"]
    for shares in (scores.singles, scores.low_p, scores.false):
        cells.append(_number(shares.mean, 3))
    return cells


def _joined_header(first: str, which: str) -> list[str]:
    return [
        f"{which} Numbers for {_sizes()} samples per function of the dictionary. Unreliable: share of totals; total, memory and "
        "beyond: share of 95 % intervals that hold or are called unreliable; bias and root mean square error of the total in mean "
        f"error bars; singles: intervals of capacities above {LEAST_SINGLE}; zeros: true zeros with p < 0.05; false: share of the "
        "functions found; told apart: functions.".strip(),
        "",
        f"| {first} | noise | data sets | unreliable | total | memory | beyond | bias | rms | singles | zeros | false | told apart |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]


def _joined_row(names: list[str], groups: list[Scores]) -> str:
    columns = [_cells(scores) for scores in groups]
    joined = [" / ".join(values) for values in zip(*columns, strict=True)]
    joined[0] = columns[0][0]
    return _row([*names, *joined, " / ".join(scores.told_apart for scores in groups)])


def run(chosen: list[Pair], n_sets: int, processes: int) -> list[Outcome]:
    """Return the outcomes of all data sets, in the order of the pairs."""
    outcomes = []
    job = partial(outcomes_of, n_sets=n_sets)
    with ProcessPoolExecutor(processes) as pool:
        for number, found in enumerate(pool.map(job, chosen), start=1):
            outcomes += found
            if number % 10 == 0 or number == len(chosen):
                print(f"{number} of {len(chosen)} drives and devices", flush=True)
    return outcomes


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sets", type=int, default=N_SETS, help="data sets of each cell")
    parser.add_argument("--only", default="", help="pairs with this word in the drive or device")
    arguments = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name) != "1":
            os.environ[name] = "1"
            # The matrix library reads these when it is loaded.
            os.execv(sys.executable, [sys.executable, *sys.argv])
    chosen = []
    for pair in pairs():
        if arguments.only in f"{pair.part}, {pair.name}, {pair.device.name}":
            chosen.append(pair)
    verdicts = Verdicts(run(chosen, arguments.sets, arguments.processes))
    parts = {pair.part for pair in chosen}
    tables: dict[str, Callable[[], list[str]]] = {}
    if EXACT in parts:
        tables |= {"Truth": verdicts.truth, "Linear networks": verdicts.linear_networks}
    if BY_DRIVE in parts:
        tables |= {"By drive": verdicts.by_drive, "By device": verdicts.by_device}
    if SEVERAL in parts:
        tables["Several inputs and runs"] = verdicts.several
    of_sequences = [pair for pair in chosen if pair.basis.of_sequences]
    if not all(pair.device.has_memory for pair in of_sequences):
        tables["Devices without memory"] = verdicts.without_memory
    if any(pair.drive.is_independent for pair in chosen):
        tables["Against the declared law"] = verdicts.against_declared
    tables["Summary"] = verdicts.summary
    command = f"python benchmarks/recorded_law.py --processes {arguments.processes}"
    run_tables("Recorded law", command, tables, arguments.write)
    return 1 if verdicts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
