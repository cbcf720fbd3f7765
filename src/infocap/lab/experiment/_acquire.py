"""acquire: measure what a plan asks for, one safe step after the other."""

import inspect
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from ..._validation import (
    checks_arguments,
    require_number,
    require_one_of,
    require_positive,
    require_whole_number,
)
from ...errors import DataError, InfocapError, ParameterError
from ...recording import Recording
from ...systems import is_instrument, parameter_names
from ._instrument import DRIVER_MISTAKES, Instrument, error_in_one_line
from ._lock import acquisition_lock
from ._measurement import Kind, Measurement
from ._plan import Plan
from ._retrying_instrument import RetryingInstrument
from ._status import NAN_POLICIES, estimate_now, interval_width
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
    nan_policy: str = "raise",
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
        What to measure. A plan with a sweep is for `acquire_sweep`.
    instrument
        Any object with ``measure(u) -> readouts``; see `Instrument`. Or a function that makes one
        (it gets the plan if it has a parameter ``plan``). The function is called when all else is
        found to be in order, so that no mistake in the plan disturbs a device, and not at all when
        everything is measured already.
    path
        The store, a file that is made if it does not exist.
    retries, wait_s
        How often to ask again when the instrument raises an error, or gives no finite number in a
        channel, and the pause before, in seconds. Channels that stay without a number are stored as
        missing values, and noted. A mistake in the driver's own code (TypeError, NameError, ...) is
        raised at once.
    timeout_s
        How long to wait for an answer, in seconds; None waits for ever.
    until
        Stop early, once the 95 % interval of the total capacity is narrower than this.
    nan_policy
        As for `estimate`, which `until` needs.
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
    if plan.sweep:
        raise ParameterError(
            f"the plan has a sweep of {len(plan.settings)} settings; `lab.acquire_sweep` measures "
            "them, each into a store of its own, and `plan.at(...)` is the plan for one of them."
        )
    options = AcquisitionOptions(
        retries=retries,
        wait_s=wait_s,
        timeout_s=timeout_s,
        until=until,
        nan_policy=nan_policy,
        other_instrument=other_instrument,
        progress=progress,
    )
    path = Path(path)
    with acquisition_lock(path.resolve()), Store(path, plan) as store, stop_event() as stop:
        if store.complete and not store.crashed and not is_instrument(instrument):
            return store.recording()  # without disturbing any device
        device = instrument if is_instrument(instrument) else make_instrument(instrument, plan)
        retrying = options.instrument_for(store, device, stop)
        reason = measure_into_store(retrying, options)
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


@dataclass(frozen=True)
class AcquisitionOptions:
    """How an acquisition treats failures, when it stops, and what it shows; see `acquire`."""

    retries: int
    wait_s: float
    timeout_s: float | None
    until: float | None
    nan_policy: str
    other_instrument: bool
    progress: bool
    title: str = "Acquiring"

    def __post_init__(self) -> None:
        if self.timeout_s is not None:
            require_positive("timeout_s", self.timeout_s)
        if self.until is not None:
            require_positive("until", self.until)
        require_whole_number("retries", self.retries, 0)
        require_number("wait_s", self.wait_s, 0.0)
        require_one_of("nan_policy", self.nan_policy, NAN_POLICIES)

    def instrument_for(self, store: Store, device: Any, stop: Event) -> RetryingInstrument:
        """Return a device as it is asked for the measurements of a store."""
        return RetryingInstrument(
            instrument=device,
            store=store,
            stop=stop,
            retries=self.retries,
            wait_s=self.wait_s,
            timeout_s=self.timeout_s,
        )


def measure_into_store(
    instrument: RetryingInstrument, options: AcquisitionOptions, *, stays_open: bool = False
) -> str | None:
    """Measure and store all that remains; return why it ended before that, or None.

    The instrument is made safe and closed however this ends, unless it `stays_open` for more.
    """
    store = instrument.store
    has_begun = False
    try:
        _refuse_other_instrument(instrument, options.other_instrument)
        instrument.refuse_impossible_plan()
        if store.crashed:
            instrument.call("safe")
            instrument.call("recover")
        if options.until is not None and not store.complete and _is_narrow_enough(store, options):
            return _narrow_enough(options)  # an earlier acquisition ended for this reason
        store.note(BEGUN, instrument=instrument.name)
        has_begun = True
        instrument.set_device()
        return _measure_all(instrument, options)
    finally:
        instrument.end_thread()
        if not stays_open:
            instrument.close()
        if has_begun:
            with suppress(DataError):  # the disk is full: the first error is the one to show
                store.note(ENDED)


def _measure_all(instrument: RetryingInstrument, options: AcquisitionOptions) -> str | None:
    """Measure and store all that remains; return why it ended before that, or None."""
    from tqdm.auto import tqdm

    store = instrument.store
    n_planned = len(store.schedule)
    # A single row must not decide on the number of channels; the rows of a batch agree.
    if not store.knows_n_readouts and instrument.batch == 1 and n_planned > 1:
        _measure_first_rows(instrument)
    n_at_estimate = len(store)
    disable = None if options.progress else True  # None: shown on a terminal only
    with tqdm(
        total=n_planned,
        initial=len(store),
        desc=options.title,
        unit="measurement",
        disable=disable,
    ) as bar:
        for batch in _batches(store.remaining(), instrument.batch):
            if instrument.stop.is_set():
                return INTERRUPTED
            store.record_many(instrument.measure(batch))
            if instrument.n_failures:
                bar.set_postfix_str(f"asked again {instrument.n_failures} times", refresh=False)
            bar.update(len(batch))
            is_due = len(store) >= n_at_estimate + n_planned // N_ESTIMATES
            if options.until is not None and is_due and not store.complete:
                n_at_estimate = len(store)
                if _is_narrow_enough(store, options):
                    return _narrow_enough(options)
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


def _is_narrow_enough(store: Store, options: AcquisitionOptions) -> bool:
    """Return whether the 95 % interval of the total is narrower than wanted, and reliable."""
    assert options.until is not None
    result = estimate_now(store.recording(), store.plan, options.nan_policy).result
    return result is not None and not result.unreliable and interval_width(result) < options.until


def _narrow_enough(options: AcquisitionOptions) -> str:
    return f"the 95 % interval of the total was narrower than {options.until:g}"


# The instrument.


def make_instrument(maker: Any, plan: Plan) -> Any:
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
def stop_event() -> Iterator[Event]:
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
