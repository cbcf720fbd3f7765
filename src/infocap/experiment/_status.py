"""How a run stands, from its store, while it is being written."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .._check import positive
from ..errors import DataError, DataWarning, InfocapError
from ..recording import MEASURED, Recording, StoreContents, names_of, read_entries, to_recording
from ..result import CapacityResult
from ..workflow import analyse
from ._plan import Plan

RECENT = 200  # measurements from which the rate is taken
MORE = 1.05  # estimate again when there are so many times more samples
ENOUGH = 2  # samples a readout, below which no capacity means anything
LATE = 10.0  # times the usual pause, after which a run looks stopped
LEAST_LATE_S = 30.0


@dataclass(frozen=True, eq=False)
class Status:
    """What is stored of a plan, how fast it grows, and what the capacities look like by now.

    `result` is the latest estimate, or None with the reason in `problem`.

    >>> import tempfile
    >>> from infocap.experiment import Plan, SimulatedBench, acquire
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    ...     now = status(f"{folder}/run.db")
    >>> now.stored, now.planned, now.complete
    (64, 64, True)
    >>> now.counts
    {'sample': (64, 64)}
    """

    path: Path
    plan: Plan
    counts: dict[str, tuple[int, int]]  # stored and planned, by kind
    rate_hz: float | None
    seconds_left: float | None
    last_row_age_s: float | None
    result: CapacityResult | None
    problem: str
    advice: str
    checks: tuple[str, ...]

    @property
    def stored(self) -> int:
        """Measurements on the disk."""
        return sum(have for have, _ in self.counts.values())

    @property
    def planned(self) -> int:
        """Measurements in the plan."""
        return sum(wanted for _, wanted in self.counts.values())

    @property
    def complete(self) -> bool:
        """Whether nothing is left to measure."""
        return self.stored == self.planned

    @property
    def width(self) -> float | None:
        """Of the 95 % interval of the total, when the method gives one."""
        return None if self.result is None else width(self.result)


def status(path: str | Path, *, until: float = 0.5, earlier: Status | None = None) -> Status:
    """How the run in this store stands; readable while another process writes it.

    `until` is the width of the 95 % interval of the total at which to stop. With an `earlier` status the capacities
    are estimated again only when there are 5 % more samples.

    >>> import tempfile
    >>> from infocap.experiment import Plan, SimulatedBench, acquire
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    ...     now = status(f"{folder}/run.db")
    >>> now.advice
    'complete: all that was planned is stored.'
    """
    path, until = Path(path), positive("until", until)
    found = read_entries(path)
    if "plan" not in found.story:
        what = "its plan is lost" if found.entries else "it holds nothing yet"
        raise DataError(f"{path} cannot be watched: {what}.")
    plan = Plan.from_dict(found.story["plan"])
    names = names_of(plan.schedule.codes if found.schedule is None else found.schedule[0])
    have = [entry.kind for entry in found.entries.values()]
    counts = {kind: (have.count(kind), sum(one == kind for one, _ in names)) for kind in MEASURED}
    result, problem = _result(found, path, plan, counts["sample"][0], earlier)
    rate, age = _pace(found)
    left = sum(wanted - got for got, wanted in counts.values())
    checks = result.checks if result is not None else found.check(path)
    status = Status(
        path,
        plan,
        {kind: pair for kind, pair in counts.items() if pair[1]},
        rate,
        None if not rate else left / rate,
        age,
        result,
        problem,
        "",
        checks,
    )
    return _advised(status, until)


def _result(
    found: StoreContents, path: Path, plan: Plan, n_samples: int, earlier: Status | None
) -> tuple[CapacityResult | None, str]:
    """Capacities from what is there, or why there are none yet."""
    known = None if earlier is None else earlier.result
    if known is not None:
        last = n_samples == plan.n_samples and known.n_samples < n_samples  # the final answer uses them all
        if n_samples < MORE * known.n_samples and not last:
            return known, ""
    return estimate_now(to_recording(found, path), plan)


def width(result: CapacityResult) -> float:
    """Of the 95 % interval of the total; without end when the method gives none."""
    if result.total_standard_error is None:
        return float("inf")
    low, high = result.total_interval()
    return high - low


def estimate_now(recording: Recording, plan: Plan, growth: bool = True) -> tuple[CapacityResult | None, str]:
    """Capacities from what there is, with gaps left out and complex readouts split; or why there are none yet."""
    n_samples = len(recording.index)
    least = ENOUGH * (recording.readouts.shape[1] + 1)
    if n_samples < min(least, plan.n_samples) or n_samples == 0:
        return (
            None,
            f"{n_samples} samples are stored; {min(least, plan.n_samples)} are the least that tell something.",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # they are kept in the result's checks
        try:
            split = "split" if np.iscomplexobj(recording.readouts) else None
            return analyse(recording, plan.basis, nan="drop", complex_as=split, growth=growth), ""
        except InfocapError as reason:
            return None, str(reason)


def _pace(found: StoreContents) -> tuple[float | None, float | None]:
    """Measurements a second, and how long ago the last one was."""
    times = np.sort([entry.time for entry in found.entries.values() if entry.kind in MEASURED])
    if not len(times):
        return None, None
    recent = times[-RECENT:]
    span = float(recent[-1] - recent[0])
    # A pause (the night, a restart) is no part of the pace.
    pauses = np.diff(recent)
    usual = float(np.median(pauses)) if len(pauses) else 0.0
    span -= float(pauses[pauses > LATE * max(usual, 1e-3) + LEAST_LATE_S].sum())
    rate = (len(recent) - 1) / span if span > 0 else None
    return rate, time.time() - float(times[-1])


def _advised(status: Status, until: float) -> Status:
    """The same with one sentence on what to do now."""
    width, age, rate = status.width, status.last_row_age_s, status.rate_hz
    if status.complete:
        advice = "complete: all that was planned is stored."
    elif width is not None and width < until:
        advice = f"stop now: interval below {until:g}."
    elif age is not None and age > LEAST_LATE_S + LATE / max(rate or 1.0, 1e-9):
        advice = f"no new row for {age:.0f} s: is the acquisition still running?"
    elif width is not None:
        advice = f"go on: the interval is {width:.2f} wide, {until:g} is wanted."
    else:
        advice = "go on."
    return replace(status, advice=advice)
