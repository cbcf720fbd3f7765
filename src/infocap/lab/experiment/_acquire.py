"""acquire: measure what a plan asks for, one safe step after the other."""

import inspect
import itertools
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from ..._validation import number, positive, whole_number
from ...errors import DataError, InfocapError
from ...recording._recording import Recording
from ...systems._measure import parameters
from ._instrument import MISTAKES, Careful, Instrument, in_one_line
from ._plan import Plan
from ._schedule import Measurement
from ._status import estimate_now, width
from ._store import Store
from ._store_file import BEGUN, ENDED

INTERRUPTED = "interrupted"
# A run that may stop early is estimated so many times: often enough to save most of the beam time that is left over,
# seldom enough that the estimates take less time than the measurements.
LOOKS = 32
# A look at the lock of a store takes less than a millisecond; a new acquisition waits so long for it to end.
LOOK_S = 0.5
# Where the plan does not tell the number of readouts, two rows that agree do, among so many: the first spectrum after
# switching on may be cut short.
FIRST = 5


def acquire(
    plan: Plan,
    instrument: Instrument | Callable[..., Instrument],
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
        Any object with ``measure(u) -> readouts``; see `Instrument`. Or a function that makes one (it gets the plan if
        it has a parameter ``plan``): it is called when all else is found to be in order, so that no mistake in the plan
        disturbs a device, and not at all when everything is measured already.
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
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 64 samples, 2 inputs, 2 readouts
    """
    for name, limit in (("timeout_s", timeout_s), ("until", until)):
        if limit is not None:
            positive(name, limit)
    retries, wait_s, path = (
        whole_number("retries", retries, 0),
        number("wait_s", wait_s, 0.0),
        Path(path),
    )
    with _alone(path.resolve()), Store(path, plan) as store, _until_stopped() as stop:
        methods = [getattr(instrument, name, None) for name in ("measure", "measure_many")]
        is_made = any(methods) and not isinstance(instrument, type)
        if store.complete and not store.crashed and not is_made:
            return store.recording()  # without disturbing any device
        made: Any = instrument if is_made else _made(instrument, store.plan)
        careful = Careful(made, store, stop, retries, wait_s, timeout_s)
        with _in_use(careful, other_instrument):
            why = _measure(careful, until, progress)
        recording = store.recording()
    return (
        recording
        if why is None
        else replace(recording, metadata=recording.metadata | {"stopped": why})
    )


def extend(path: str | Path, n_samples: int) -> Plan:
    """Let the store at `path` plan so many samples in all, or a few more; return that plan, for `acquire`.

    What was planned and measured stays as it is, also where the acquisition was interrupted: in the end there are the
    same measurements as in one run of that length.

    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
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


def _measure(careful: Careful, until: float | None, progress: bool) -> str | None:
    """Return why it ended before all were measured, or None."""
    from tqdm.auto import tqdm

    store, quiet = careful.store, None if progress else True  # None: only on a terminal
    n = len(store.schedule)
    if store.n_readouts is None and careful.batch == 1 < n:
        _first_rows(careful)
    look = len(store)
    with tqdm(total=n, initial=look, desc="Acquiring", unit="row", disable=quiet) as bar:
        for some in _batches(store.remaining(), careful.batch):
            if careful.stop.is_set():
                return INTERRUPTED
            store.record_many(some, *careful.measure(some))
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


def _first_rows(careful: Careful) -> None:
    """Measure until a row has as many channels as the one before, which is then the number of all; store these two."""
    rows: list[Any] = []
    widths: list[int] = []
    for one in itertools.islice(careful.store.remaining(), FIRST):
        if careful.stop.is_set():
            return
        (readouts,), (extra,) = careful.measure([one])
        rows.append((one, readouts, extra))
        widths.append(len(readouts))
        if widths[-2:-1] == widths[-1:]:
            some, values, extras = zip(*rows[-2:], strict=True)
            return careful.store.record_many(some, values, extras)
    said = f"the instrument gave {', '.join(map(str, widths))} channels in its first answers"
    raise DataError(f"{said}; say in the plan how many there are: n_readouts = ....")


@contextmanager
def _in_use(careful: Careful, other_instrument: bool) -> Iterator[None]:
    """Leave the instrument safe and closed in the end, however that comes; note in the store that it was so."""
    store, last, begun = careful.store, careful.store.last_instrument, False
    try:
        if last not in (None, careful.name) and not other_instrument:
            said = f"{store.path} was measured with the instrument {last!r} so far, and this is {careful.name!r}"
            raise DataError(
                f"{said}; take that one, another store, or say that it is meant: `other_instrument=True`."
            )
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


def _made(make: Any, plan: Plan) -> Any:
    """Call what makes an instrument; it gets the plan if it has a parameter of that name."""
    told = {"plan": plan} if "plan" in parameters(make) else {}
    try:
        inspect.signature(make).bind(**told)
    except (
        TypeError,
        ValueError,
    ):  # no function, or one of other arguments: Careful says what an instrument needs
        return make
    try:
        return make(**told)
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
            print(
                "\ninfocap: stopping after this measurement (Ctrl-C again: at once)",
                file=sys.stderr,
            )

    heard = threading.current_thread() is threading.main_thread()  # signals reach no other thread
    kinds = [
        getattr(signal, name)
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
        if hasattr(signal, name)
    ]
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
            lock = sqlite3.connect(
                path.with_name(f".{path.name}.lock"), timeout=LOOK_S, isolation_level=None
            )
            held.enter_context(closing(lock)).execute(
                "PRAGMA journal_mode = OFF"
            )  # nothing is written
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                said = f"another process is acquiring into {path}; wait for it, or end it first"
            else:
                said = f"{path} cannot be written ({problem}); choose another folder"
            raise DataError(f"{said}.") from None
        yield
