"""acquire: measure what a plan asks for, one safe step after the other."""

import inspect
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from ..._validation import (
    checks_arguments,
    require_number,
    require_positive,
    require_whole_number,
)
from ...errors import DataError, InfocapError
from ...recording import Recording
from ...systems import parameter_names
from ._instrument import DRIVER_MISTAKES, Instrument, error_in_one_line
from ._lock import acquisition_lock
from ._measurement import Kind, Measurement
from ._plan import Plan
from ._retrying_instrument import RetryingInstrument
from ._status import estimate_now, interval_width
from ._store import Store
from ._store_row import BEGUN, ENDED

# What ``recording.metadata["stopped"]`` says after Ctrl-C.
INTERRUPTED = "interrupted"
# A run that may stop early is estimated this many times: often enough to save most of the beam time
# that is left over, seldom enough that estimating takes less time than measuring.
N_ESTIMATES = 32
# Where the plan does not tell the number of readouts, two rows that agree do, among this many.
# The first spectrum after switching on may be cut short.
MAX_FIRST_ROWS = 5
# The signals that end a run after the measurement under way, on the systems that have them.
STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


@checks_arguments
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
    """Measure everything in the plan that the store does not hold yet; return what it then holds.

    Each measurement is on the disk before the next begins: after a crash, a power cut or Ctrl-C the
    same call goes on from there. Ctrl-C ends the run after the measurement under way, as SIGTERM
    and SIGHUP do.

    Parameters
    ----------
    plan
        What to measure.
    instrument
        Any object with ``measure(u) -> readouts``; see `Instrument`. Or a function that makes one
        (it gets the plan if it has a parameter ``plan``). The function is called when all else is
        found to be in order, so that no mistake in the plan disturbs a device, and not at all when
        everything is measured already.
    path
        The store, a file that is made if it does not exist.
    retries, wait_s
        How often to ask again when the instrument raises an error or gives no finite number, and
        the pause before, in seconds. A mistake in the driver's own code (TypeError, NameError, ...)
        is raised at once.
    timeout_s
        How long to wait for an answer, in seconds; None waits for ever.
    until
        Stop early, once the 95 % interval of the total capacity is narrower than this.
    other_instrument
        True goes on with a store that another instrument began, which is otherwise refused.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Recording
        All that is stored. If the run ended before all was measured, ``metadata["stopped"]`` says
        why.

    Raises
    ------
    DataError
        If the store belongs to another plan, is in use or cannot be written, or if the instrument
        failed too often. What was measured before is safe.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 64 samples, 2 inputs, 2 readouts
    """
    if timeout_s is not None:
        require_positive("timeout_s", timeout_s)
    if until is not None:
        require_positive("until", until)
    retries = require_whole_number("retries", retries, 0)
    wait_s = require_number("wait_s", wait_s, 0.0)
    path = Path(path)
    with acquisition_lock(path.resolve()), Store(path, plan) as store, _stop_event() as stop:
        is_instrument = _is_instrument(instrument)
        if store.complete and not store.crashed and not is_instrument:
            return store.recording()  # without disturbing any device
        device = instrument if is_instrument else _make(instrument, store.plan)
        retrying = RetryingInstrument(
            instrument=device,
            store=store,
            stop=stop,
            retries=retries,
            wait_s=wait_s,
            timeout_s=timeout_s,
        )
        with _in_use(retrying, other_instrument):
            reason = _measure_all(retrying, until, progress)
        recording = store.recording()
    if reason is None:
        return recording
    return replace(recording, metadata=recording.metadata | {"stopped": reason})


@checks_arguments
def extend(path: str | Path, n_samples: int) -> Plan:
    """Let a store plan more samples, and return the longer plan, for `acquire`.

    What was planned and measured stays as it is, also where the acquisition was interrupted: in the
    end there are the same measurements as in one run of that length.

    Parameters
    ----------
    path
        The store.
    n_samples
        The number of samples in all, rounded up as `Plan.extended` does.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan, SimulatedBench
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = acquire(plan, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    ...     longer = extend(f"{folder}/run.db", 128)
    ...     acquire(longer, SimulatedBench(lambda u: u), f"{folder}/run.db", progress=False)
    Recording: 128 samples, 2 inputs, 2 readouts
    """
    with acquisition_lock(Path(path).resolve()), Store(path) as store:
        store.extend(require_whole_number("n_samples", n_samples, 1))
        return store.plan


# Measuring.


def _measure_all(instrument: RetryingInstrument, until: float | None, progress: bool) -> str | None:
    """Measure and store all that remains; return why it ended before that, or None."""
    from tqdm.auto import tqdm

    store = instrument.store
    n_planned = len(store.schedule)
    # A single row must not decide on the number of channels; the rows of a batch agree.
    if not store.knows_n_readouts and instrument.batch == 1 and n_planned > 1:
        _measure_first_rows(instrument)
    n_at_estimate = len(store)
    disable = None if progress else True  # None: shown on a terminal only
    with tqdm(
        total=n_planned, initial=len(store), desc="Acquiring", unit="measurement", disable=disable
    ) as bar:
        for batch in _batches(store.remaining(), instrument.batch):
            if instrument.stop.is_set():
                return INTERRUPTED
            store.record_many(instrument.measure(batch))
            if instrument.n_failures:
                bar.set_postfix_str(f"asked again {instrument.n_failures} times", refresh=False)
            bar.update(len(batch))
            is_due = len(store) >= n_at_estimate + n_planned // N_ESTIMATES
            if until is not None and is_due and not store.complete:
                n_at_estimate = len(store)
                if _is_narrow_enough(store, until):
                    return f"the 95 % interval of the total was narrower than {until:g}"
    return None


def _batches(measurements: Iterator[Measurement], size: int) -> Iterator[list[Measurement]]:
    """Return lists of at most `size` measurements; one with the source off comes by itself."""
    for is_dark, group in itertools.groupby(
        measurements, key=lambda measurement: measurement.kind == Kind.DARK
    ):
        while batch := list(itertools.islice(group, 1 if is_dark else size)):
            yield batch


def _measure_first_rows(instrument: RetryingInstrument) -> None:
    """Measure until a row has as many channels as the one before; store these two.

    Their number is then that of all rows.
    """
    store = instrument.store
    measured: list[Measurement] = []
    widths: list[int] = []
    for measurement in itertools.islice(store.remaining(), MAX_FIRST_ROWS):
        if instrument.stop.is_set():
            return
        measured += instrument.measure([measurement])
        widths.append(measured[-1].n_values)
        if len(widths) > 1 and widths[-1] == widths[-2]:
            store.record_many(measured[-2:])
            return
    raise DataError(
        f"the instrument gave {', '.join(map(str, widths))} channels in its first answers; "
        "say in the plan how many there are: n_readouts = ...."
    )


def _is_narrow_enough(store: Store, until: float) -> bool:
    """Return whether the 95 % interval of the total is narrower than wanted, and reliable."""
    result = estimate_now(store.recording(), store.plan).result
    return result is not None and not result.unreliable and interval_width(result) < until


# The instrument.


def _is_instrument(instrument: Any) -> bool:
    """Return whether this is an instrument, rather than what makes one."""
    if isinstance(instrument, type):
        return False
    return bool(getattr(instrument, "measure", None) or getattr(instrument, "measure_many", None))


def _make(maker: Any, plan: Plan) -> Any:
    """Call what makes an instrument; it gets the plan if it has a parameter of that name."""
    options = {"plan": plan} if "plan" in parameter_names(maker) else {}
    try:
        inspect.signature(maker).bind(**options)
    except (TypeError, ValueError):
        # This is no function, or one that needs other arguments: RetryingInstrument refuses it, and
        # says what an instrument needs.
        return maker
    try:
        return maker(**options)
    except (InfocapError, *DRIVER_MISTAKES):
        raise
    except (Exception, SystemExit) as problem:  # the user's own code may raise anything
        raise DataError(
            f"the instrument could not be made ({error_in_one_line(problem)})."
        ) from problem


@contextmanager
def _in_use(instrument: RetryingInstrument, other_instrument: bool) -> Iterator[None]:
    """Note in the store that an acquisition begins; make the instrument safe however it ends."""
    store = instrument.store
    has_begun = False
    try:
        _refuse_other_instrument(instrument, other_instrument)
        instrument.refuse_impossible_plan()
        if store.crashed:
            instrument.call("safe")
            instrument.call("recover")
        store.note(BEGUN, instrument=instrument.name)
        has_begun = True
        yield
    finally:
        instrument.close()
        if has_begun:
            with suppress(DataError):  # the disk is full: the first error is the one to show
                store.note(ENDED)


def _refuse_other_instrument(instrument: RetryingInstrument, other_instrument: bool) -> None:
    """Refuse to go on with another instrument than before, unless that is meant."""
    store = instrument.store
    last = store.last_instrument
    if last not in (None, instrument.name) and not other_instrument:
        raise DataError(
            f"{store.path} was measured with the instrument {last!r} so far, and this is "
            f"{instrument.name!r}; take that one, another store, or say that it is meant: "
            "`other_instrument=True`."
        )


# Ctrl-C.


@contextmanager
def _stop_event() -> Iterator[Event]:
    """Give an event that is set by Ctrl-C, by a request to end, or when the terminal is gone.

    If one of these comes a second time, it interrupts at once.
    """
    stop = Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        with suppress(OSError):  # the terminal is gone
            print(
                "\ninfocap: stopping after this measurement (Ctrl-C again: at once)",
                file=sys.stderr,
            )

    former_handlers = {}
    if threading.current_thread() is threading.main_thread():  # signals reach no other thread
        for name in STOP_SIGNALS:
            number = getattr(signal, name, None)
            # What is ignored stays so: `nohup` wants the run to outlive its terminal.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                former_handlers[number] = signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
