"""An instrument that is asked again when it fails."""

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any

import numpy as np

from ..._formatting import counted
from ..._validation import require_whole_number
from ...errors import DataError, InfocapError, ParameterError, warn
from ...systems import parameter_names
from ...workflow import point_in_words
from ._instrument import DRIVER_MISTAKES, error_in_one_line
from ._measurement import Kind, Measurement
from ._plan import Plan
from ._store import Store
from ._store_row import FAILURE, INCOMPLETE

# How many channels a message names.
MAX_CHANNELS_NAMED = 8
# Rows that `measure_many` gets at once where the instrument does not say: few enough that a crash
# costs seconds.
DEFAULT_BATCH = 64


class IncompleteReadingError(Exception):
    """An answer in which some channels have no finite number."""

    def __init__(self, reading: list[Measurement], channels: Sequence[int]) -> None:
        names = ", ".join(str(channel) for channel in channels[:MAX_CHANNELS_NAMED])
        more = ", ..." if len(channels) > MAX_CHANNELS_NAMED else ""
        super().__init__(f"no finite number in channel {names}{more}")
        self.reading = reading
        self.channels = channels


@dataclass(eq=False)
class RetryingInstrument:
    """An instrument that is asked again when it fails, and not waited for beyond a time-out.

    Parameters
    ----------
    instrument
        The user's object, as `Instrument` describes it.
    store
        Notes every failure, and checks readouts.
    stop
        Set when the user wants the acquisition to end.
    retries
        How often a reading that failed is asked for again.
    wait_s
        The pause before that, in seconds.
    timeout_s
        How long to wait for an answer, in seconds; None waits for ever.
    """

    instrument: Any
    store: Store
    stop: threading.Event
    retries: int
    wait_s: float
    timeout_s: float | None
    n_failures: int = 0

    def __post_init__(self) -> None:
        measure = getattr(self.instrument, "measure", None)
        measure_many = getattr(self.instrument, "measure_many", None)
        if not callable(measure) and not callable(measure_many):
            raise ParameterError(
                f"`instrument={self.instrument!r}` has no method measure(u); give one, or a "
                "function of nothing or of `plan` that makes one, or wrap a simulator: "
                "lab.SimulatedBench(system)."
            )
        identity = getattr(self.instrument, "identity", None)
        self.name = str(identity or type(self.instrument).__name__)
        self.batch = 1
        if callable(measure_many):
            batch = getattr(self.instrument, "batch", DEFAULT_BATCH)
            self.batch = require_whole_number("batch", batch, 1)
        self._measures_many = self.batch > 1 or not callable(measure)
        self._method: Any = measure_many if self._measures_many else measure
        # A single thread makes all calls, one after the other. As a daemon it does not keep Python
        # from ending while a call hangs.
        self._thread = None if self.timeout_s is None else ThreadPool(1)
        self._pending_answer: AsyncResult | None = None
        # Channels that stayed without a number, however often they were asked for.
        self._dead_channels: set[int] = set()

    def refuse_impossible_plan(self) -> None:
        """Refuse an instrument that cannot do what the plan asks for."""
        plan = self.store.plan
        if plan.setting:
            self._refuse_without_set(plan.setting)
        if plan.dark_every and not callable(getattr(self.instrument, "dark", None)):
            raise ParameterError(
                f"`dark_every={plan.dark_every}` needs a method dark() of the instrument "
                f"{self.name!r}, which reads with the source off; write it, or plan without."
            )
        if plan.settle_s and "settle_s" not in parameter_names(self._method):
            raise ParameterError(
                f"`settle_s={plan.settle_s:g}` needs a parameter of that name in "
                f"{self._method.__name__}() of the instrument {self.name!r}; let it wait so long "
                "before it reads."
            )

    def _refuse_without_set(self, setting: Mapping[str, Any]) -> None:
        """Refuse an instrument that cannot be set to a point of a sweep."""
        names = ", ".join(setting)
        method = getattr(self.instrument, "set", None)
        if not callable(method):
            raise ParameterError(
                f"the settings {names} need a method set({names}) of the instrument "
                f"{self.name!r}, which sets the device to them; write it."
            )
        try:
            inspect.signature(method).bind(**setting)
        except TypeError as problem:
            raise ParameterError(
                f"set() of the instrument {self.name!r} does not take the settings {names} of the "
                f"plan ({problem}); give it parameters of these names."
            ) from None
        except ValueError:  # a method without a signature, of an extension module
            return

    def set_device(self) -> None:
        """Set the device to the point of a sweep that the plan is for; ask again if it fails.

        Raises
        ------
        DataError
            If it failed as often as allowed.
        """
        if not self.store.plan.setting:
            return
        n_failures = 0
        while True:
            try:
                if n_failures:
                    self.call("recover")
                self._set()
            except (InfocapError, *DRIVER_MISTAKES):
                raise
            except Exception as problem:  # a driver may raise anything
                n_failures += 1
                self._give_up_or_wait(n_failures, f"set({self._setting_in_words})", problem)
            else:
                return

    def _set(self) -> None:
        setting = self.store.plan.setting
        if setting:
            self.instrument.set(**setting)

    @property
    def _setting_in_words(self) -> str:
        return point_in_words(self.store.plan.setting or {})

    def _give_up_or_wait(self, n_failures: int, place: str, problem: Exception) -> None:
        """Note a failure; wait before the next attempt, or raise an error after the last."""
        self.n_failures += 1
        is_incomplete = isinstance(problem, IncompleteReadingError)
        reason = str(problem) if is_incomplete else error_in_one_line(problem)
        self.store.note(FAILURE, at=place, reason=reason)
        if n_failures > self.retries or self.stop.wait(self.wait_s):
            raise DataError(
                f"the instrument failed {counted(n_failures, 'time')} at {place} ({reason}); "
                "everything before is safe. Set it right, then run the same command again: it goes "
                "on from there."
            ) from problem

    def measure(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Return measurements with readouts: means of as many readings as the plan says.

        Extra values are those of the last reading. Where channels have no finite number, the
        reading is asked for again; channels that stay without one are stored so, and the store
        notes it.

        Raises
        ------
        DataError
            If a reading failed and was asked for again as often as allowed, or if the driver tried
            to end the program. The error names the measurements.
        """
        names = dict.fromkeys([measurements[0].name, measurements[-1].name])
        place = " to ".join(names)
        n_readings = self._n_readings(measurements)
        readings: list[list[Measurement]] = []
        n_failures = 0
        while len(readings) < n_readings:
            try:
                if n_failures:
                    self.call("recover")
                    self._set()  # which recovering may have undone
                reading = self._reading(measurements, readings)
            except IncompleteReadingError as problem:
                n_failures += 1
                may_improve = not self._dead_channels.issuperset(problem.channels)
                if may_improve and n_failures <= self.retries:
                    self._give_up_or_wait(n_failures, place, problem)
                    continue
                self._note_incomplete(place, problem)
                readings.append(problem.reading)
                n_failures = 0
            except DRIVER_MISTAKES as problem:
                problem.add_note(
                    f"This is a mistake in the instrument's driver, met at {place}; "
                    "everything before is safe."
                )
                raise
            except SystemExit as problem:
                raise DataError(
                    f"the instrument's driver ended the program at {place} "
                    f"(sys.exit({problem.code!r})); everything before is safe. Let it raise an "
                    "error instead."
                ) from problem
            except Exception as problem:  # a driver may raise anything
                n_failures += 1
                if len(readings) == 1:
                    # The two readings differ in length, and either may be too short: begin again.
                    readings = []
                self._give_up_or_wait(n_failures, place, problem)
            else:
                if readings:  # a first reading alone does not tell whether its length is right
                    n_failures = 0
                readings.append(reading)
        return _mean(readings)

    def _note_incomplete(self, place: str, problem: IncompleteReadingError) -> None:
        """Note that channels stayed without a number."""
        self._dead_channels = set(problem.channels)
        self.store.note(INCOMPLETE, at=place, channels=list(problem.channels))

    def _n_readings(self, measurements: Sequence[Measurement]) -> int:
        """Return how often to ask: once, where the instrument averages by itself."""
        averages_itself = "averages" in parameter_names(self._method_for(measurements))
        return 1 if averages_itself else self.store.plan.averages

    def _method_for(self, measurements: Sequence[Measurement]) -> Any:
        if measurements[0].kind == Kind.DARK:
            return self.instrument.dark
        return self._method

    def _reading(
        self, measurements: Sequence[Measurement], earlier: Sequence[Sequence[Measurement]]
    ) -> list[Measurement]:
        """Ask the instrument once, and check that its answer is as long as those before."""
        answer = self._within_timeout(partial(self._answer, measurements, len(earlier)))
        n_values = earlier[0][0].n_values if earlier else None
        reading = self.store.checked(answer, n_values)
        n_channels = reading[0].n_values // self.store.plan.steps
        is_missing = np.zeros(n_channels, dtype=bool)
        for measurement in reading:
            is_finite = np.isfinite(np.asarray(measurement.readouts)).reshape(-1, n_channels)
            if not is_finite.any():
                raise DataError("it gave no finite number")
            is_missing |= ~is_finite.all(axis=0)
        if is_missing.any():
            channels = np.flatnonzero(is_missing) + 1
            raise IncompleteReadingError(reading, channels.tolist())
        self._dead_channels = set()
        return reading

    def _answer(self, measurements: Sequence[Measurement], n_earlier: int) -> list[Measurement]:
        """Call the instrument; return the measurements with its readouts and extra values."""
        plan = self.store.plan
        method = self._method_for(measurements)
        is_dark = measurements[0].kind == Kind.DARK
        takes_many = self._measures_many and not is_dark
        seeds = [_noise_seed(plan, measurement, n_earlier) for measurement in measurements]
        options = {
            "settle_s": plan.settle_s,
            "averages": plan.averages,
            "seed": seeds if takes_many else seeds[0],
        }
        accepted = parameter_names(method)
        options = {name: value for name, value in options.items() if name in accepted}
        answer: Any
        if is_dark:
            answer = method(**options)
        elif takes_many:
            answer = method(np.array([measurement.u for measurement in measurements]), **options)
        else:
            answer = method(np.array(measurements[0].u), **options)
        extra: Mapping[str, Any] = {}
        if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
            answer, extra = answer
        readouts = list(answer) if takes_many else [answer]
        if len(readouts) != len(measurements):
            raise DataError(
                f"measure_many gave {len(readouts)} rows for {len(measurements)} inputs"
            )
        extra_by_row = _extra_by_row(extra, len(measurements))
        answered = []
        for measurement, row, values in zip(measurements, readouts, extra_by_row, strict=True):
            answered.append(replace(measurement, readouts=row, extra=values))
        return answered

    def _within_timeout(self, ask: Callable[[], Any]) -> Any:
        """Return the answer; a TimeoutError leaves the call under way, for the next attempt."""
        if self._thread is None:
            return ask()
        # Otherwise an earlier call for the same input is still under way.
        if self._pending_answer is None:
            self._pending_answer = self._thread.apply_async(_catching_exit, (ask,))
        self._pending_answer.wait(self.timeout_s)
        if not self._pending_answer.ready():
            raise TimeoutError(f"no answer within {self.timeout_s:g} s")
        arrived = self._pending_answer
        self._pending_answer = None
        answer = arrived.get()
        if isinstance(answer, SystemExit):
            raise answer
        return answer

    def end_thread(self) -> None:
        """Let the thread of calls end, once the call under way has returned."""
        if self._thread is not None:
            self._thread.close()

    def close(self) -> None:
        """Make the instrument safe and close it; a failure is a warning, for all is stored."""
        close_device(self.instrument)

    def call(self, name: str) -> None:
        """Call a method of the instrument, if it has one of this name."""
        method = getattr(self.instrument, name, None)
        if callable(method):
            method()


def close_device(device: Any) -> None:
    """Make a device safe and close it, by the methods that it has; warn where they fail."""
    for name in ("safe", "close"):
        method = getattr(device, name, None)
        if not callable(method):
            continue
        try:
            method()
        except (Exception, SystemExit) as problem:
            warn(
                f"`{name}()` of the instrument failed ({error_in_one_line(problem)}); "
                "see by hand what is still switched on."
            )


def _catching_exit(ask: Callable[[], Any]) -> Any:
    """Return the answer, or the SystemExit that would end the thread without a trace."""
    try:
        return ask()
    except SystemExit as problem:
        return problem


def _noise_seed(plan: Plan, measurement: Measurement, n_earlier: int) -> np.random.SeedSequence:
    """Return the seed of a reading's simulated noise: the same after a restart."""
    entropy = [plan.seed, measurement.kind.position, measurement.number]
    if n_earlier:
        entropy.append(n_earlier)
    return np.random.SeedSequence(entropy)


def _extra_by_row(extra: Mapping[str, Any], n_rows: int) -> list[dict[str, float]]:
    """Return extra values row by row; a single number is that of all rows."""
    rows: list[dict[str, float]] = [{} for _ in range(n_rows)]
    for name, values in extra.items():
        column = np.broadcast_to(np.asarray(values, float), n_rows)
        for row, value in zip(rows, column.tolist(), strict=True):
            row[str(name)] = value
    return rows


def _mean(readings: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """Return the mean over several readings of the same measurements."""
    rows = []
    for reading in readings:
        rows.append(np.array([measurement.readouts for measurement in reading]))
    means = np.mean(rows, axis=0)
    last = readings[-1]
    return [
        replace(measurement, readouts=mean) for measurement, mean in zip(last, means, strict=True)
    ]
