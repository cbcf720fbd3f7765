"""acquire: measure what a plan asks for, one safe step after the other."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

from .._check import number, positive, whole_number
from .._recording import MEASURED, Recording
from .._workflow import analyse
from ..errors import DataError, DataWarning, InfocapError
from ._instrument import Careful, Instrument
from ._plan import Plan
from ._store import Store

LOOKS = 32  # how often a run that may stop early is looked at


def acquire(
    plan: Plan,
    instrument: Instrument,
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
        Any object with ``measure(u) -> readouts``; see `Instrument`.
    retries, wait_s
        How often to ask again when it raises an error or gives no finite number, and the pause before.
    timeout_s
        How long to wait for an answer; None waits for ever.
    until
        Stop early, once the 95 % interval of the total capacity is narrower than this.

    >>> import tempfile
    >>> from infocap.experiment import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 64 samples, 2 inputs, 2 readouts
    """
    limit = None if timeout_s is None else positive("timeout_s", timeout_s)
    narrow = None if until is None else positive("until", until)
    wait_s = number("wait_s", wait_s, 0.0)
    careful = Careful(instrument, whole_number("retries", retries, 0), wait_s, limit)
    path = Path(path)
    with _alone(path), Store(path, plan) as store, closing(careful), _until_stopped() as stopped:
        step = max(len(store.schedule) // LOOKS, 1)
        with _bar(store, progress) as tick:
            for one in store.remaining():
                if stopped():
                    break
                seed = [plan.seed, MEASURED.index(one.kind), one.number]
                name = f"{one.kind} {one.number}"
                store.record(one.number, careful.measure(one.u, name, seed, stopped), one.kind)
                tick(careful.failures)
                if narrow is not None and len(store) % step == 0 and _width(store) < narrow:
                    break
        return store.recording()


def _width(store: Store) -> float:
    """The width of the 95 % interval of the total so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            low, high = analyse(store.recording(), store.plan.basis, growth=False).total_interval()
        except InfocapError:  # too few rows yet
            return float("inf")
    return high - low


@contextmanager
def _bar(store: Store, progress: bool) -> Iterator[Callable[[int], None]]:
    """A line on the terminal with the rate and the time left."""
    from tqdm import tqdm

    with tqdm(
        total=len(store.schedule),
        initial=len(store),
        desc="Acquiring",
        unit="row",
        disable=None if progress else True,
        file=sys.stderr,
    ) as bar:

        def tick(failures: int) -> None:
            if failures:
                bar.set_postfix_str(f"asked again {failures} times", refresh=False)
            bar.update()

        yield tick


@contextmanager
def _until_stopped() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or a request to end has come; the second Ctrl-C interrupts at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        print(
            "\ninfocap: stopping after this measurement (Ctrl-C again: at once)", file=sys.stderr, flush=True
        )

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # signals reach only the main thread
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number_, handler in before.items():
            signal.signal(number_, handler)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One acquisition at a time: two would send their inputs to the same instrument."""
    try:
        import fcntl
    except (
        ImportError
    ):  # Windows, where the file of a running process cannot be opened a second time to be locked
        yield
        return
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    lock = path.with_name(f".{path.name}.lock")
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"another process is acquiring into {path}; wait for it, or end it first."
            ) from None
        yield
        lock.unlink(missing_ok=True)
    finally:
        os.close(handle)
