"""acquire: measure what a plan asks for, one safe step after the other; status: how that stands meanwhile."""

import inspect
import itertools
import signal
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import numpy as np

from .._check import number, positive, whole_number
from .._files import blame
from ..errors import DataError, DataWarning, InfocapError
from ..recording._recording import Measurement, Recording
from ..recording._store import BEGUN, ENDED, FAILURE, MEASURED, StoreContents, read_entries, to_recording
from ..result._capacity_result import CapacityResult
from ..workflow._analyse import analyse
from ._instrument import MISTAKES, Careful, Instrument, in_one_line
from ._plan import Plan
from ._store import Store

INTERRUPTED = "interrupted"
# A run that may stop early is estimated so many times: often enough to save most of the beam time that is left over,
# seldom enough that the estimates take less time than the measurements.
LOOKS = 32
# The rate is that of so many measurements, the last ones: a run slows down and speeds up.
RECENT = 200
# Capacities are estimated again when there are so many times more samples: fewer would hardly change them.
MORE = 1.05
# With fewer samples per readout no capacity means anything.
ENOUGH = 2
# A run looks stopped when nothing came for so many times the usual pause, and for so many seconds more.
LATE, LEAST_LATE_S = 10.0, 30.0
# A look at the lock of a store takes less than a millisecond; a new acquisition waits so long for it to end.
LOOK_S = 0.5
# Where the plan does not tell the number of readouts, two rows that agree do, among so many: the first spectrum after
# switching on may be cut short.
FIRST = 5


def acquire(
    plan: Plan,
    instrument: Instrument | Callable[[], Instrument],
    path: str | Path,
    *,
    retries: int = 3,
    wait_s: float = 1.0,
    timeout_s: float | None = None,
    until: float | None = None,
    other_instrument: bool = False,
    progress: bool = True,
) -> Recording:
    """Measure everything in the plan that the store at `path` does not hold yet, and return what it then holds.

    Each measurement is on the disk before the next begins: after a crash, a power cut or Ctrl-C (which ends the
    run after the measurement under way, as SIGTERM and SIGHUP do) the same call goes on from there.

    Parameters
    ----------
    instrument
        Any object with ``measure(u) -> readouts``; see `Instrument`. Or a function without arguments that makes one: it
        is called when all else is found to be in order, so that no mistake in the plan disturbs a device, and not at
        all when everything is measured already.
    retries, wait_s
        How often to ask again when it raises an error or gives no finite number, and the pause before. A mistake in the
        driver's own code (TypeError, NameError, ...) is raised at once.
    timeout_s
        How long to wait for an answer; None waits for ever.
    until
        Stop early, once the 95 % interval of the total capacity is narrower than this.
    other_instrument
        True goes on with a store that another instrument began, which is otherwise refused.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.experiment import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 64 samples, 2 inputs, 2 readouts
    """
    for name, limit in (("timeout_s", timeout_s), ("until", until)):
        if limit is not None:
            positive(name, limit)
    retries, wait_s, path = whole_number("retries", retries, 0), number("wait_s", wait_s, 0.0), Path(path)
    with _alone(path.resolve()), Store(path, plan) as store, _until_stopped() as stop:
        methods = [getattr(instrument, name, None) for name in ("measure", "measure_many")]
        is_made = any(methods) and not isinstance(instrument, type)
        if store.complete and not store.crashed and not is_made:
            return store.recording()  # without disturbing any device
        made: Any = instrument if is_made else _made(instrument)
        careful = Careful(made, store.plan, retries, wait_s, timeout_s, partial(store.note, FAILURE))
        with _in_use(store, careful, other_instrument):
            why = _measure(store, careful, until, stop, progress)
        recording = store.recording()
    return recording if why is None else replace(recording, metadata=recording.metadata | {"stopped": why})


def extend(path: str | Path, n_samples: int) -> Plan:
    """Let the store at `path` plan so many samples in all, or a few more; return that plan, for `acquire`.

    What was planned and measured stays as it is, also where the acquisition was interrupted: in the end there are the
    same measurements as in one run of that length.

    >>> import tempfile
    >>> from infocap.experiment import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    ...     longer = extend(f"{folder}/run.db", 128)
    ...     acquire(longer, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 128 samples, 2 inputs, 2 readouts
    """
    with _alone(Path(path).resolve()), Store(path) as store:
        store.extend(whole_number("n_samples", n_samples, 1))
        return store.plan


def _measure(store: Store, careful: Careful, until: float | None, stop: Event, progress: bool) -> str | None:
    """Return why it ended before all were measured, or None."""
    from tqdm.auto import tqdm

    n, quiet = len(store.schedule), None if progress else True  # None: only on a terminal
    if store.n_readouts is None and careful.batch == 1 < n:
        _first_rows(store, careful, stop)
    look = len(store)
    with tqdm(total=n, initial=look, desc="Acquiring", unit="row", disable=quiet) as bar:
        for some in _batches(store.remaining(), careful.batch):
            if stop.is_set():
                return INTERRUPTED
            store.record_many(some, *careful.measure(some, store.checked, stop))
            if careful.failures:
                bar.set_postfix_str(f"asked again {careful.failures} times", refresh=False)
            bar.update(len(some))
            if until is not None and len(store) >= look + n // LOOKS and not store.complete:
                look = len(store)
                result, _ = estimate_now(store.recording(), store.plan, growth=False)
                if result is not None and not result.unreliable and width(result) < until:
                    return f"the 95 % interval of the total was narrower than {until:g}"
    return None


def _batches(wanted: Iterator[Measurement], size: int) -> Iterator[list[Measurement]]:
    """So many measurements at a time; one with the source off by itself."""
    for is_dark, group in itertools.groupby(wanted, key=lambda one: one.kind == "dark"):
        while some := list(itertools.islice(group, 1 if is_dark else size)):
            yield some


def _first_rows(store: Store, careful: Careful, stop: Event) -> None:
    """Measure until a row has as many channels as the one before, which is then the number of all; store these two."""
    before: Any = ()
    widths: list[int] = []
    for one in itertools.islice(store.remaining(), FIRST):
        if stop.is_set():
            return
        (readouts,), (extra,) = careful.measure([one], store.checked, stop)
        widths.append(len(readouts))
        if widths[-2:-1] == widths[-1:]:
            store.record_many([before[0], one], [before[1], readouts], [before[2], extra])
            return
        before = one, readouts, extra
    said = f"the instrument gave {', '.join(map(str, widths))} channels in its first answers"
    raise DataError(f"{said}; say in the plan how many there are: n_readouts = ....")


@contextmanager
def _in_use(store: Store, careful: Careful, other_instrument: bool) -> Iterator[None]:
    """Leave the instrument safe and closed in the end, however that comes; note in the store that it was so."""
    last, begun = store.last_instrument, False
    try:
        if last not in (None, careful.name) and not other_instrument:
            said = f"{store.path} was measured with the instrument {last!r} so far, and this is {careful.name!r}"
            raise DataError(f"{said}; take that one, another store, or say that it is meant: `other_instrument=True`.")
        careful.refuse_lacking()
        if store.crashed:
            for name in ("safe", "recover"):
                careful.call(name)
        store.note(BEGUN, instrument=careful.name)
        begun = True
        yield
    finally:
        careful.close()
        with suppress(DataError):  # the disk is full: what went wrong first is told
            if begun:
                store.note(ENDED)


def _made(make: Any) -> Instrument:
    try:
        inspect.signature(make).bind()
    except (TypeError, ValueError):  # no function, or one of arguments: Careful says what an instrument needs
        return make
    try:
        return make()
    except (InfocapError, *MISTAKES):
        raise
    except (Exception, SystemExit) as problem:  # the user's own code may raise anything
        raise DataError(f"the instrument could not be made ({in_one_line(problem)}).") from problem


@contextmanager
def _until_stopped() -> Iterator[Event]:
    """Whether Ctrl-C or a request to end has come, or the terminal is gone; the second Ctrl-C interrupts at once."""
    asked = Event()

    def ask(kind: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        with suppress(OSError):  # nobody is there to read it
            print("\ninfocap: stopping after this measurement (Ctrl-C again: at once)", file=sys.stderr)

    heard = threading.current_thread() is threading.main_thread()  # signals reach no other thread
    kinds = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    # What is ignored stays so: `nohup` wants the run to outlive its terminal.
    kinds = [kind for kind in kinds if heard and signal.getsignal(kind) is not signal.SIG_IGN]
    before = {kind: signal.signal(kind, ask) for kind in kinds}
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One acquisition at a time: two would send their inputs to the same instrument.

    An empty database beside the store is locked; the system frees it when the process ends, in whatever way.
    """
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    with ExitStack() as held:
        try:
            lock = sqlite3.connect(path.with_name(f".{path.name}.lock"), timeout=LOOK_S, isolation_level=None)
            held.enter_context(closing(lock)).execute("PRAGMA journal_mode = OFF")  # nothing is written
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                said = f"another process is acquiring into {path}; wait for it, or end it first"
            else:
                said = f"{path} cannot be written ({problem}); choose another folder"
            raise DataError(f"{said}.") from None
        yield


def _is_acquiring(path: Path) -> bool:
    """Whether some process holds the lock of a store; nothing is locked or written by asking."""
    try:
        lock = path.with_name(f".{path.name}.lock").as_uri()
        with closing(sqlite3.connect(f"{lock}?mode=ro", timeout=0, uri=True)) as asked:
            asked.execute("SELECT * FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as problem:
        return problem.sqlite_errorcode == sqlite3.SQLITE_BUSY
    return False


@dataclass(frozen=True, eq=False)
class Status:
    """What is stored of a plan, how fast it grows, and what the capacities look like by now.

    `result` is the latest estimate, or None with the reason in `problem`.

    >>> import tempfile
    >>> from infocap.experiment import Store
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
    with blame(path, "an acquisition store"):
        plan = Plan.from_dict(found.story["plan"])
    wanted = [kind for kind, _ in (found.schedule or plan.schedule).names]
    have = [entry.kind for entry in found.entries.values()]
    counts = {kind: (have.count(kind), wanted.count(kind)) for kind in MEASURED}
    result, problem = None if earlier is None else earlier.result, ""
    n_samples = counts["sample"][0] * (plan.steps - plan.washout)
    # An estimate is kept until there are a few samples more; the final answer uses them all.
    enough = 0.0 if result is None else MORE * result.n_samples
    if n_samples >= min(enough, plan.n_samples) and (result is None or result.n_samples < n_samples):
        result, problem = estimate_now(to_recording(found, path), plan)
    rate, age = _pace(found)
    left = sum(wanted - got for got, wanted in counts.values())
    planned = {kind: pair for kind, pair in counts.items() if pair[1]}
    ends = [one["what"] for one in found.contents("event") if one.get("what") in (BEGUN, ENDED)]
    # A loop of the user's own notes neither beginning nor end, and holds no lock.
    last = "" if not ends or _is_acquiring(path.resolve()) else ends[-1]
    advice = _advice(left, result, age, rate, until, last)
    checks = found.checks(path) if result is None else result.checks
    seconds = left / rate if rate else None
    return Status(path, plan, planned, rate, seconds, age, result, problem, advice, checks)


def width(result: CapacityResult) -> float:
    """The width of the 95 % interval of the total; infinite when the method gives none."""
    if result.total_standard_error is None:
        return float("inf")
    low, high = result.total_interval()
    return high - low


def estimate_now(recording: Recording, plan: Plan, growth: bool = True) -> tuple[CapacityResult | None, str]:
    """Capacities from what there is, with gaps left out and complex readouts split; or why there are none yet."""
    n_samples = len(recording.index)
    least = min(ENOUGH * (recording.readouts.shape[1] + 1), plan.n_samples)
    if n_samples < least or n_samples == 0:
        return None, f"{n_samples} samples are stored; {least} are the least that tell something."
    again = recording.repeats
    if again is not None and np.isfinite(again).all(axis=1).sum() <= again.shape[1] + 1:
        recording = replace(recording, repeats=None)  # too few to tell the noise yet, and no reason to tell nothing
    with warnings.catch_warnings(action="ignore", category=DataWarning):  # kept in the result's checks
        try:
            split = "split" if np.iscomplexobj(recording.readouts) else None
            nan = "raise" if plan.runs else "drop"
            return analyse(recording, plan.basis, nan=nan, complex_as=split, growth=growth), ""
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
    left: int, result: CapacityResult | None, age: float | None, rate: float | None, until: float, last: str
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
