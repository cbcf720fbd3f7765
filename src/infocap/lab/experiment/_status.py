"""status: how an acquisition stands while it runs, its capacities so far, and what to do."""

import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._files import as_data_error
from ..._formatting import duration
from ..._validation import checks_arguments, require_one_of, require_positive
from ...errors import Check, DataError, DataWarning, InfocapError
from ...recording import Recording
from ...result import CapacityResult
from ...workflow import estimate
from ._lock import is_locked
from ._measurement import Kind
from ._plan import Plan
from ._store_file import StoreContents, read_store, recording_of_store
from ._store_row import BEGUN, ENDED

# The rate is that of this many of the last measurements: a run slows down and speeds up.
N_RECENT = 200
# Capacities are estimated again when there are this many times more samples; fewer would hardly
# change them.
MIN_GROWTH = 1.05
# With fewer samples per readout no capacity means anything.
MIN_STORED_SAMPLES_PER_READOUT = 2
# A run looks stopped when nothing came for this many times the usual pause and this many seconds
# more.
LATE_PAUSES = 10.0
LATE_S = 30.0
# Shorter pauses, in seconds, count as this long when they are compared: clocks tell no less.
MIN_PAUSE_S = 1e-3
# The slowest rate that is believed, in measurements per second.
MIN_RATE_HZ = 1e-9
# What to do with rows in which values are missing, as for `estimate`.
NAN_POLICIES = ("raise", "omit")
# Seconds between two looks at a run in progress: a look reads the store and may estimate, which
# takes less.
REFRESH_INTERVAL_S = 5.0


class Counts(NamedTuple):
    """How many measurements of a kind are stored, and how many are planned."""

    stored: int
    planned: int


@dataclass(frozen=True, eq=False)
class Status:
    """What is stored of a plan, how fast it grows, and its capacities so far.

    Parameters
    ----------
    path, plan
        The store and its plan.
    counts
        How many measurements are stored and how many are planned, by kind.
    rate_hz
        Measurements per second, of late; None before there are two.
    seconds_left
        How long the rest takes at that rate; None without a rate.
    last_row_age_s
        How many seconds ago the last measurement was stored; None before any was.
    result, problem
        The latest estimate, or None and the reason.
    advice
        What to do now, in one sentence.
    advice_kind
        ``"complete"``, ``"stop"``, ``"go on"``, or ``"look"`` where somebody has to look at it.
    checks
        What was noticed about the data.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Store
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, noise_repeats=10)
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/run.db", plan) as store:
    ...     now = status(store.path)
    >>> now.stored, now.planned, now.counts
    (0, 74, {'sample': Counts(stored=0, planned=64), 'noise': Counts(stored=0, planned=10)})
    """

    path: Path
    plan: Plan
    counts: dict[str, Counts]
    rate_hz: float | None
    seconds_left: float | None
    last_row_age_s: float | None
    result: CapacityResult | None
    problem: str
    advice: str
    advice_kind: str
    checks: tuple[Check, ...]

    @property
    def stored(self) -> int:
        """Measurements on the disk."""
        return sum(counts.stored for counts in self.counts.values())

    @property
    def planned(self) -> int:
        """Measurements in the plan."""
        return sum(counts.planned for counts in self.counts.values())

    @property
    def complete(self) -> bool:
        """Whether nothing is left to measure."""
        return self.stored == self.planned

    @property
    def interval_width(self) -> float | None:
        """The width of the 95 % interval of the total; None without a result."""
        return None if self.result is None else interval_width(self.result)

    @checks_arguments
    def refreshed(self, until: float | None = None, nan_policy: str = "raise") -> "Status":
        """Return how the run stands by now.

        Capacities are estimated again only when there are 5 % more samples, or all of them.

        Parameters
        ----------
        until, nan_policy
            As for `status`.
        """
        return _status_of(self.path, until, nan_policy, self.result)


@checks_arguments
def status(
    path: str | Path,
    *,
    until: float | None = None,
    nan_policy: str = "raise",
    capacities: bool = True,
) -> Status:
    """Return how the run in a store stands; another process may write it meanwhile.

    Parameters
    ----------
    path
        The store.
    until
        The width of the 95 % interval of the total at which you may stop. Without it there is no
        such advice.
    nan_policy
        As for `estimate`: ``"raise"``, by which missing values leave no capacities, or ``"omit"``.
    capacities
        Estimate the capacities so far; without them a look is faster.

    Raises
    ------
    DataError
        If the file is no store, or if nothing of a plan is in it.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench, acquire
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    ...     now = status(f"{folder}/run.db")
    >>> now.advice
    'complete: all that was planned is stored.'
    """
    return _status_of(Path(path), until, nan_policy, None, capacities)


def _status_of(
    path: Path,
    until: float | None,
    nan_policy: str,
    earlier_result: CapacityResult | None,
    capacities: bool = True,
) -> Status:
    """Return how a run stands; an earlier result is kept while there are few more samples."""
    if until is not None:
        until = require_positive("until", until)
    require_one_of("nan_policy", nan_policy, NAN_POLICIES)
    contents = read_store(path)
    plan = _plan_of(contents, path)
    counts = _counts(contents, plan)
    n_samples = counts[Kind.SAMPLE].stored * (plan.steps - plan.washout)
    estimated = CurrentEstimate(earlier_result)
    if capacities and _estimate_is_due(n_samples, plan, earlier_result):
        recording = recording_of_store(contents, path)
        estimated = estimate_now(recording, plan, nan_policy)
    result = estimated.result
    rate_hz = _rate_hz(contents.times)
    age_s = None
    if contents.measurements:
        age_s = max(time.time() - float(contents.times[-1]), 0.0)
    n_left = sum(count.planned - count.stored for count in counts.values())
    advice = _advice(
        n_left=n_left,
        last_event=_last_event(contents, path),
        result=result,
        until=until,
        age_s=age_s,
        rate_hz=rate_hz,
    )
    return Status(
        path=path,
        plan=plan,
        counts=counts,
        rate_hz=rate_hz,
        seconds_left=n_left / rate_hz if rate_hz else None,
        last_row_age_s=age_s,
        result=result,
        problem=estimated.problem,
        advice=advice.text,
        advice_kind=advice.kind,
        checks=contents.checks(path) if result is None else result.checks,
    )


def _plan_of(contents: StoreContents, path: Path) -> Plan:
    if "plan" not in contents.provenance:
        reason = "it holds nothing yet" if contents.is_empty else "its plan is lost"
        raise DataError(f"{path} cannot be watched: {reason}.")
    with as_data_error(path, "an acquisition store"):
        return Plan.from_dict(contents.provenance["plan"])


def _counts(contents: StoreContents, plan: Plan) -> dict[str, Counts]:
    """Return how many measurements are stored and planned, of each kind that is planned."""
    schedule = contents.schedule or plan.schedule
    n_planned = Counter(kind for kind, _ in schedule.keys)
    n_stored = Counter(measurement.kind for measurement in contents.measurements)
    return {kind: Counts(n_stored[kind], n_planned[kind]) for kind in Kind if n_planned[kind]}


def _estimate_is_due(n_samples: int, plan: Plan, earlier_result: CapacityResult | None) -> bool:
    """Return whether there are enough new samples; the final answer uses them all."""
    if earlier_result is None:
        return True
    if n_samples <= earlier_result.n_samples:
        return False
    return n_samples >= min(MIN_GROWTH * earlier_result.n_samples, plan.n_samples)


class CurrentEstimate(NamedTuple):
    """The capacities so far, or None and the reason."""

    result: CapacityResult | None
    problem: str = ""


def estimate_now(recording: Recording, plan: Plan, nan_policy: str) -> CurrentEstimate:
    """Return the capacities of what there is; complex readouts are split in two."""
    n_samples = len(recording.design_index)
    n_readouts = recording.readouts.shape[1]
    min_samples = min(MIN_STORED_SAMPLES_PER_READOUT * (n_readouts + 1), plan.n_samples)
    if n_samples < min_samples or n_samples == 0:
        problem = (
            f"{n_samples} samples are stored; {min_samples} are the least that tell something."
        )
        return CurrentEstimate(None, problem)
    repeats = recording.repeats
    if repeats is not None:
        n_repeats = np.isfinite(repeats).all(axis=1).sum()
        if n_repeats <= n_readouts + 1:  # too few to tell the noise, but capacities need none
            recording = replace(recording, repeats=None)
    is_complex = np.iscomplexobj(recording.readouts)
    try:
        with warnings.catch_warnings(action="ignore", category=DataWarning):  # they are in checks
            result = estimate(
                recording,
                basis=plan.basis,
                nan_policy=nan_policy,
                complex_as="split" if is_complex else None,
            )
    except InfocapError as reason:
        return CurrentEstimate(None, str(reason))
    return CurrentEstimate(result)


def interval_width(result: CapacityResult) -> float:
    """Return the width of the 95 % interval of the total; infinite if the method gives none."""
    if result.total_standard_error is None:
        return float("inf")
    low, high = result.total_interval()
    return high - low


def _rate_hz(times: np.ndarray) -> float | None:
    """Return how many measurements were stored per second of late, without long pauses."""
    if not len(times):
        return None
    pauses = np.diff(times[-N_RECENT:])
    pauses = pauses[pauses >= 0]  # the clock may have been set back
    if not len(pauses):
        return None
    usual = max(float(np.median(pauses)), MIN_PAUSE_S)
    # The night, or a restart, is no part of the pace.
    is_regular = pauses <= LATE_PAUSES * usual + LATE_S
    n_regular = int(is_regular.sum())
    seconds = float(pauses[is_regular].sum())
    return n_regular / seconds if seconds > 0 else None


def _last_event(contents: StoreContents, path: Path) -> str:
    """Return whether the last acquisition began or ended: `BEGUN`, `ENDED` or an empty text.

    The text is empty while an acquisition runs, and where none was noted: a loop of the user's own
    around `Store.record` notes nothing, and holds no lock.
    """
    events = [event["what"] for event in contents.events if event.get("what") in (BEGUN, ENDED)]
    if not events or is_locked(path.resolve()):
        return ""
    return events[-1]


class Advice(NamedTuple):
    """What to do now: its kind, as in `Status.advice_kind`, and one sentence."""

    kind: str
    text: str


def _advice(
    *,
    n_left: int,
    last_event: str,
    result: CapacityResult | None,
    until: float | None,
    age_s: float | None,
    rate_hz: float | None,
) -> Advice:
    """Return what to do now."""
    if not n_left:
        return Advice("complete", "complete: all that was planned is stored.")
    if last_event == BEGUN:
        return Advice(
            "look",
            "the acquisition was killed or has crashed: look at the device, then run the same "
            "command again.",
        )
    is_reliable = result is not None and not result.unreliable
    width = interval_width(result) if result is not None else float("inf")
    if until is not None and is_reliable and width < until:
        return Advice("stop", f"you may stop: the interval is {width:.2f} wide.")
    if last_event == ENDED:
        return Advice(
            "look",
            "no acquisition is running: the same `infocap acquire` as before measures what is "
            "missing.",
        )
    usual_pause_s = 1 / max(rate_hz or 1.0, MIN_RATE_HZ)
    if age_s is not None and age_s > LATE_S + LATE_PAUSES * usual_pause_s:
        return Advice(
            "look", f"no new measurement for {age_s:.0f} s: is the acquisition still running?"
        )
    if result is None:
        return Advice("go on", "go on.")
    if result.unreliable:
        return Advice("look", f"the total is unreliable: {result.unreliable}.")
    wanted = "" if until is None else f", {until:g} is wanted"
    return Advice("go on", f"go on: the interval is {width:.2f} wide{wanted}.")


# In words, for the terminal and the page.


def counts_in_words(current: Status) -> str:
    """Return what is stored and planned of each kind of measurement, in words."""
    names = {"noise": "noise"}
    if current.plan.runs:
        names |= {"sample": "runs", "repeat": "repeated runs"}
    parts = []
    for kind, counts in current.counts.items():
        name = names.get(kind, f"{kind}s")
        parts.append(f"{counts.stored}/{counts.planned} {name}")
    return ", ".join(parts)


def pace_in_words(current: Status) -> str:
    """Return how fast a run goes, how long it will take, and when something came last, in words."""
    thing = "run" if current.plan.runs else "measurement"
    rate_hz = current.rate_hz
    parts = ["no rate yet" if rate_hz is None else f"{rate_hz:.3g} {thing}s/s"]
    if not current.complete and current.seconds_left is not None:
        parts.append(f"{duration(current.seconds_left)} left")
    if current.last_row_age_s is not None:
        parts.append(f"last {thing} {duration(current.last_row_age_s)} ago")
    return ", ".join(parts)
