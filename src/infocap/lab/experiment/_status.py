"""status: how an acquisition stands while it runs, what its capacities look like by now, and what to do."""

import sqlite3
import time
import warnings
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..._files import blame
from ..._formatting import duration
from ..._validation import positive
from ...errors import DataError, DataWarning, InfocapError
from ...recording._recording import Recording
from ...result._capacity_result import CapacityResult
from ...workflow._from_recording import estimate_recording
from ._plan import Plan
from ._store_file import BEGUN, ENDED, MEASURED, StoreContents, read_entries, to_recording

# The rate is that of so many measurements, the last ones: a run slows down and speeds up.
RECENT = 200
# Capacities are estimated again when there are so many times more samples: fewer would hardly change them.
MORE = 1.05
# With fewer samples per readout no capacity means anything.
ENOUGH = 2
# A run looks stopped when nothing came for so many times the usual pause, and for so many seconds more.
LATE, LEAST_LATE_S = 10.0, 30.0


@dataclass(frozen=True, eq=False)
class Status:
    """What is stored of a plan, how fast it grows, and what the capacities look like by now.

    `result` is the latest estimate, or None with the reason in `problem`.

    >>> import tempfile
    >>> from infocap.lab import Store
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, noise_repeats=10)
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/run.db", plan) as store:
    ...     now = status(store.path)
    >>> now.stored, now.planned, now.counts
    (0, 74, {'sample': (0, 64), 'noise': (0, 10)})
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
        """The width of the 95 % interval of the total; None without a result."""
        return None if self.result is None else width(self.result)


def status(path: str | Path, *, until: float = 0.5, earlier: Status | None = None) -> Status:
    """How the run in this store stands; readable while another process writes it.

    `until` is the width of the 95 % interval of the total at which to stop. With an `earlier` status the capacities
    are estimated again only when there are 5 % more samples.

    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench, acquire
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
    with blame(path, "an acquisition store"):
        plan = Plan.from_dict(found.story["plan"])
    wanted = Counter(kind for kind, _ in (found.schedule or plan.schedule).names)
    have = Counter(entry.kind for entry in found.entries.values())
    counts = {kind: (have[kind], wanted[kind]) for kind in MEASURED if wanted[kind]}
    result, problem = None if earlier is None else earlier.result, ""
    n_samples = counts["sample"][0] * (plan.steps - plan.washout)
    # An estimate is kept until there are a few samples more; the final answer uses them all.
    enough = 0.0 if result is None else MORE * result.n_samples
    if n_samples >= min(enough, plan.n_samples) and (
        result is None or result.n_samples < n_samples
    ):
        result, problem = estimate_now(to_recording(found, path), plan)
    rate, age = _pace(found)
    left = sum(wanted - got for got, wanted in counts.values())
    ends = [one["what"] for one in found.contents("event") if one.get("what") in (BEGUN, ENDED)]
    # A loop of the user's own notes neither beginning nor end, and holds no lock.
    last = "" if not ends or _is_acquiring(path.resolve()) else ends[-1]
    advice = _advice(left, result, age, rate, until, last)
    checks = found.checks(path) if result is None else result.checks
    return Status(
        path,
        plan,
        counts,
        rate,
        left / rate if rate else None,
        age,
        result,
        problem,
        advice,
        checks,
    )


def _is_acquiring(path: Path) -> bool:
    """Whether some process holds the lock of a store; nothing is locked or written by asking."""
    try:
        lock = path.with_name(f".{path.name}.lock").as_uri()
        with closing(sqlite3.connect(f"{lock}?mode=ro", timeout=0, uri=True)) as asked:
            asked.execute("SELECT * FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as problem:
        return problem.sqlite_errorcode == sqlite3.SQLITE_BUSY
    return False


def width(result: CapacityResult) -> float:
    """The width of the 95 % interval of the total; infinite when the method gives none."""
    if result.total_standard_error is None:
        return float("inf")
    low, high = result.total_interval()
    return high - low


def estimate_now(
    recording: Recording, plan: Plan, growth: bool = True
) -> tuple[CapacityResult | None, str]:
    """Capacities from what there is, with gaps left out and complex readouts split; or why there are none yet."""
    n_samples = len(recording.design_index)
    least = min(ENOUGH * (recording.readouts.shape[1] + 1), plan.n_samples)
    if n_samples < least or n_samples == 0:
        return None, f"{n_samples} samples are stored; {least} are the least that tell something."
    again = recording.repeats
    if again is not None and np.isfinite(again).all(axis=1).sum() <= again.shape[1] + 1:
        recording = replace(
            recording, repeats=None
        )  # too few to tell the noise yet, and no reason to tell nothing
    with warnings.catch_warnings(
        action="ignore", category=DataWarning
    ):  # kept in the result's checks
        try:
            split = "split" if np.iscomplexobj(recording.readouts) else None
            nan = "raise" if plan.runs else "omit"
            return estimate_recording(
                recording, basis=plan.basis, nan_policy=nan, complex_as=split, growth=growth
            ), ""
        except InfocapError as reason:
            return None, str(reason)


def _pace(found: StoreContents) -> tuple[float | None, float | None]:
    """Measurements per second, and how many seconds ago the last one was."""
    times = np.array(list(found.times.values()))
    if not len(times):
        return None, None
    pauses = np.diff(times[-RECENT:])
    pauses = pauses[pauses >= 0]  # the clock may have been set back
    usual = float(np.median(pauses)) if len(pauses) else 0.0
    # A long pause (the night, a restart) is no part of the pace.
    span = float(pauses[pauses <= LATE * max(usual, 1e-3) + LEAST_LATE_S].sum())
    return len(pauses) / span if span > 0 else None, max(time.time() - float(times[-1]), 0.0)


def _advice(
    left: int,
    result: CapacityResult | None,
    age: float | None,
    rate: float | None,
    until: float,
    last: str,
) -> str:
    """One sentence on what to do now; `last` is what was noted last of an acquisition that runs no more."""
    if not left:
        return "complete: all that was planned is stored."
    if last == BEGUN:
        return "the acquisition was killed or has crashed: look at the device, then give the same command again."
    if result is not None and not result.unreliable and width(result) < until:
        return f"stop now: interval below {until:g}."
    if last == ENDED:
        return "no acquisition is running: the same `infocap acquire` as before measures what is missing."
    if age is not None and age > LEAST_LATE_S + LATE / max(rate or 1.0, 1e-9):
        return f"no new row for {age:.0f} s: is the acquisition still running?"
    if result is None:
        return "go on."
    if result.unreliable:
        return f"the total is unreliable: {result.unreliable}."
    return f"go on: the interval is {width(result):.2f} wide, {until:g} is wanted."


def counts(now: Status) -> str:
    """What is stored and planned of each kind of measurement, in words."""
    names = {"noise": "noise"} | (
        {"sample": "runs", "repeat": "repeated runs"} if now.plan.runs else {}
    )
    return ", ".join(
        f"{have}/{wanted} {names.get(kind, f'{kind}s')}"
        for kind, (have, wanted) in now.counts.items()
    )


def pace(now: Status) -> str:
    """How fast a run goes, how long it will take, and when something came last, in words."""
    what = "run" if now.plan.runs else "row"
    said = "no rate yet" if now.rate_hz is None else f"{now.rate_hz:.3g} {what}s/s"
    if not now.complete and now.seconds_left is not None:
        said += f", {duration(now.seconds_left)} left"
    if now.last_row_age_s is not None:
        said += f", last {what} {duration(now.last_row_age_s)} ago"
    return said
