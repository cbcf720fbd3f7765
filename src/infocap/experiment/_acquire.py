"""acquire: measure what a plan asks for, one safe step after the other."""

import functools
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from .._check import number, positive, whole_number
from ..errors import DataError, InfocapError
from ..recording._recording import Recording
from ..recording._store import MEASURED
from ._instrument import Careful, Instrument, in_one_line
from ._plan import Plan
from ._status import estimate_now, width
from ._store import Store

INTERRUPTED = "interrupted"
# A run that may stop early is estimated so many times: often enough to save most of the beam time that is left over,
# seldom enough that the estimates take less time than the measurements.
LOOKS = 32


def acquire(
    plan: Plan,
    instrument: Instrument | Callable[[], Instrument],
    path: str | Path,
    *,
    retries: int = 3,
    wait_s: float = 1.0,
    timeout_s: float | None = None,
    until: float | None = None,
    progress: bool = True,
) -> Recording:
    """Measure everything in the plan that the store at `path` does not hold yet, and return what it then holds.

    Each measurement is on the disk before the next begins: after a crash, a power cut or Ctrl-C (which ends the
    run after the measurement under way) the same call goes on from there.

    Parameters
    ----------
    instrument
        Any object with ``measure(u) -> readouts``; see `Instrument`. Or a function without arguments that makes one: it
        is called when all else is found to be in order, so that no mistake in the plan disturbs a device.
    retries, wait_s
        How often to ask again when it raises an error or gives no finite number, and the pause before.
    timeout_s
        How long to wait for an answer; None waits for ever.
    until
        Stop early, once the 95 % interval of the total capacity is narrower than this.

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
    with _alone(path), Store(path, plan) as store, _until_stopped() as stop:
        made = instrument if hasattr(instrument, "measure") else _made(instrument)
        with closing(Careful(made, retries, wait_s, timeout_s)) as careful:
            why = _measure(store, careful, until, stop, progress)
        recording = store.recording()
    return recording if why is None else replace(recording, metadata=recording.metadata | {"stopped": why})


def _measure(store: Store, careful: Careful, until: float | None, stop: Event, progress: bool) -> str | None:
    """Return why it ended before all were measured, or None."""
    from tqdm import tqdm

    n, quiet = len(store.schedule), None if progress else True  # None: only on a terminal
    with tqdm(total=n, initial=len(store), desc="Acquiring", unit="row", disable=quiet) as bar:
        for one in store.remaining():
            if stop.is_set():
                return INTERRUPTED
            name, seed = f"{one.kind} {one.number}", [store.plan.seed, MEASURED.index(one.kind), one.number]
            fit = functools.partial(store.checked, index=one.number, kind=one.kind)
            store.record(one.number, careful.measure(one.u, name, seed, fit, stop), one.kind)
            if careful.failures:
                bar.set_postfix_str(f"asked again {careful.failures} times", refresh=False)
            bar.update()
            if until is not None and len(store) % max(n // LOOKS, 1) == 0 and not store.complete:
                result, _ = estimate_now(store.recording(), store.plan, growth=False)
                if result is not None and not result.unreliable and width(result) < until:
                    return f"the 95 % interval of the total was narrower than {until:g}"
    return None


def _made(make: Any) -> Instrument:
    try:
        inspect.signature(make).bind()
    except (TypeError, ValueError):  # no function, or one of arguments: Careful says what an instrument needs
        return make
    try:
        return make()
    except InfocapError:
        raise
    except Exception as problem:  # the user's own code may raise anything
        raise DataError(f"the instrument could not be made ({in_one_line(problem)}).") from problem


@contextmanager
def _until_stopped() -> Iterator[Event]:
    """Whether Ctrl-C or a request to end has come; the second Ctrl-C interrupts at once."""
    asked = Event()

    def ask(kind: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        print("\ninfocap: stopping after this measurement (Ctrl-C again: at once)", file=sys.stderr)

    heard = threading.current_thread() is threading.main_thread()  # signals reach no other thread
    before = {kind: signal.signal(kind, ask) for kind in (signal.SIGINT, signal.SIGTERM) if heard}
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One acquisition at a time: two would send their inputs to the same instrument."""
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    lock = path.with_name(f".{path.name}.lock")
    try:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as problem:
        raise DataError(f"{path} cannot be written ({problem.strerror}); choose another folder.") from None
    try:
        if not _lock(handle) or not lock.exists() or not os.path.samestat(os.fstat(handle), lock.stat()):
            raise DataError(f"another process is acquiring into {path}; wait for it, or end it first.")
        yield
        with suppress(OSError):  # Windows does not remove a file that is open; an old lock holds nothing
            lock.unlink()
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Whether the file is now ours alone; the system frees it when the process ends, in whatever way."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
