"""What an instrument is, how to ask it again when it does not answer, and a simulated one to try it on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..._validation import Checked, Count, Finite, NotNegative, whole_number
from ...errors import DataError, ParameterError, warn
from ...photonics._system import FibreSystem
from ...systems._measure import measure, parameters
from ...systems._reservoirs import EchoState
from ...typing import ArrayLike, Floats
from ._plan import BENCH, Plan
from ._schedule import Measurement
from ._store import Store
from ._store_file import FAILURE, MEASURED

FAULTS = ("latency_s", "dropout", "drift", "batch")
# Rows that `measure_many` gets at once where the instrument does not say: few enough that a crash costs seconds.
BATCH = 64
# Mistakes in a driver's own code, which asking again does not mend.
MISTAKES = (TypeError, AttributeError, NameError, ImportError, SyntaxError, NotImplementedError)

Rows = tuple[
    list[Any], list[dict[str, float]]
]  # readouts and extra values, one of each per measurement


@runtime_checkable
class Instrument(Protocol):
    """Anything that can be sent inputs and read out: a driver of your own, of any library.

    `measure` takes the inputs (inputs,) and gives the readouts (channels,); of a device with memory, those of a whole
    run: (steps, inputs) and (steps, channels). It may give a pair in place of the readouts: these, and a dictionary of
    extra values of that moment, as ``{"Temperature [K]": 293.1}``, which are kept with the row.

    More methods are called where they are there. ``measure_many(u)``, for a generator that plays a sequence or a scope
    that takes frames, gets (rows, inputs) and gives (rows, channels), as many rows at once as the attribute ``batch``
    says, else 64. ``dark()`` reads with the source off, for plans with `dark_every`. ``recover()`` comes before a
    failed measurement is tried again; ``safe()``, which should switch off what may do harm, and then ``close()``, at
    the end of an acquisition, however it ends. After a crash, which calls nothing, the next acquisition begins with
    ``safe()`` and ``recover()``. A text ``identity``, such as a serial number, tells one instrument from another;
    without it the name of the class does.

    What a method has parameters for, it gets: ``settle_s`` and ``averages`` of the plan, to wait after setting the
    inputs and to average by itself (else it is asked so many times, and the mean is stored); and ``seed``, one that
    belongs to the measurement (for `measure_many`, a list of them): simulated noise is then the same after a restart.

    >>> class Wire:
    ...     def measure(self, u):
    ...         return 2 * u
    >>> isinstance(Wire(), Instrument)
    True
    """

    def measure(self, u: Floats) -> ArrayLike:
        """Readouts (channels,) at the inputs (inputs,)."""


@dataclass(eq=False)
class Careful:
    """An instrument that is asked again when it fails, which the store notes, and not waited for beyond a time-out."""

    instrument: Any
    store: Store
    stop: threading.Event  # set when the user has had enough
    retries: int
    wait_s: float
    timeout_s: float | None
    failures: int = 0

    def __post_init__(self) -> None:
        one, many = (getattr(self.instrument, name, None) for name in ("measure", "measure_many"))
        if not callable(one) and not callable(many):
            said = f"`instrument={self.instrument!r}` has no method measure(u)"
            cure = "give one, or a function of nothing or of `plan` that makes one"
            raise ParameterError(
                f"{said}; {cure}, or wrap a simulator: lab.SimulatedBench(system)."
            )
        self.name = str(
            getattr(self.instrument, "identity", None) or type(self.instrument).__name__
        )
        self.batch = (
            whole_number("batch", getattr(self.instrument, "batch", BATCH), 1)
            if callable(many)
            else 1
        )
        self._many = self.batch > 1 or not callable(one)
        self._method: Any = many if self._many else one
        # One thread makes all calls, one after the other; as a daemon it does not keep Python from ending.
        self._thread = None if self.timeout_s is None else ThreadPool(1)
        self._call: AsyncResult | None = None

    def refuse_lacking(self) -> None:
        """Refuse an instrument that cannot do what the plan asks for."""
        plan = self.store.plan
        if plan.dark_every and not callable(getattr(self.instrument, "dark", None)):
            said = f"`dark_every={plan.dark_every}` needs a method dark() of the instrument {self.name!r}"
            raise ParameterError(
                f"{said}, which reads with the source off; write it, or plan without."
            )
        if plan.settle_s and "settle_s" not in parameters(self._method):
            said = f"`settle_s={plan.settle_s:g}` needs a parameter of that name in {self._method.__name__}()"
            raise ParameterError(
                f"{said} of the instrument {self.name!r}; let it wait so long before it reads."
            )

    def measure(self, some: Sequence[Measurement]) -> Rows:
        """Readouts of each measurement, the mean of as many readings as the plan says; extra values of the last one.

        After as many attempts as allowed for one reading the last failure is an error that names the measurements.
        """
        method = self.instrument.dark if some[0].kind == "dark" else self._method
        times = 1 if "averages" in parameters(method) else self.store.plan.averages
        name = " to ".join(dict.fromkeys(f"{one.kind} {one.number}" for one in (some[0], some[-1])))
        rows, failures = list[Floats](), 0
        while len(rows) < times * len(some):
            try:
                if failures:
                    self.call("recover")
                k, first = len(rows) // len(some), rows[:1]
                found, extra = self._ask(partial(self._reading, method, some, k))
                fit = self.store.checked([*some[: len(first)], *some], [*first, *found])[
                    len(first) :
                ]
                if not all(np.isfinite(one).any() for one in fit):
                    raise OSError("it gave no finite number")
                rows, failures = rows + fit, 0 if rows else failures
            except MISTAKES as problem:
                problem.add_note(
                    f"This is a mistake in the instrument's driver, met at {name}; everything before is safe."
                )
                raise
            except SystemExit as problem:
                said = f"the instrument's driver ended the program at {name} (sys.exit({problem.code!r}))"
                raise DataError(
                    f"{said}; everything before is safe. Let it raise an error instead."
                ) from problem
            except Exception as problem:  # a driver may raise anything; it is told, with its cause
                failures += 1
                self.failures += 1
                rows = (
                    [] if len(rows) == len(some) else rows
                )  # of the first two readings either may be too short
                self.store.note(FAILURE, at=name, reason=in_one_line(problem))
                if failures > self.retries or self.stop.wait(self.wait_s):
                    raise DataError(
                        f"the instrument failed {failures} times at {name} ({in_one_line(problem)}); everything before "
                        "is safe. Set it right, then give the same command again: it goes on from there."
                    ) from problem
        return list(np.mean(np.reshape(rows, (times, len(some), -1)), axis=0)), extra

    def _reading(self, method: Callable[..., Any], some: Sequence[Measurement], k: int) -> Rows:
        """What the instrument gives when it is asked for the k-th time."""
        plan, n, is_dark = self.store.plan, len(some), some[0].kind == "dark"
        names = [
            [plan.seed, MEASURED.index(one.kind), one.number, k][: 4 if k else 3] for one in some
        ]
        seeds = [np.random.SeedSequence(name) for name in names]
        u = np.array([one.u for one in some])
        many = self._many and not is_dark
        told = {
            "settle_s": plan.settle_s,
            "averages": plan.averages,
            "seed": seeds if many else seeds[0],
        }
        told = {name: value for name, value in told.items() if name in parameters(method)}
        found: Any = method(**told) if is_dark else method(u if many else u[0], **told)
        is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)
        found, more = found if is_pair else (found, {})
        readouts = list(found) if many else [found]
        if len(readouts) != n:
            raise DataError(f"measure_many gave {len(readouts)} rows for {n} inputs")
        spread = {
            str(name): np.broadcast_to(np.asarray(one, float), n) for name, one in more.items()
        }
        return readouts, [
            {name: float(one[row]) for name, one in spread.items()} for row in range(n)
        ]

    def _ask(self, ask: Callable[[], Rows]) -> Rows:
        if self._thread is None:
            return ask()

        def heard() -> Any:  # a thread would end of a SystemExit, and nobody would hear of it
            try:
                return ask()
            except SystemExit as problem:
                return problem

        if (
            self._call is None
        ):  # else an earlier call for this very input has not come back yet: wait on
            self._call = self._thread.apply_async(heard)
        self._call.wait(self.timeout_s)
        if not self._call.ready():
            raise TimeoutError(f"no answer within {self.timeout_s:g} s")
        call, self._call = self._call, None
        answer = call.get()
        if isinstance(answer, SystemExit):
            raise answer
        return answer

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
        for name in ("safe", "close"):
            try:
                self.call(name)
            except (
                Exception,
                SystemExit,
            ) as problem:  # all is measured and stored; the run has not failed
                warn(
                    f"`{name}()` of the instrument failed ({in_one_line(problem)}); check by hand what it left on."
                )

    def call(self, name: str) -> None:
        """Call a method of the instrument, if it has one of this name."""
        method = getattr(self.instrument, name, None)
        if callable(method):
            method()


def in_one_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


@dataclass(eq=False)
class SimulatedBench(Checked):
    """Any system as an instrument that takes its time, sometimes fails to answer, and drifts.

    `system` is a callable (samples, inputs) -> (samples, readouts), the photonic experiment by default. Every
    measurement takes `latency_s`, fails with an OSError with the probability `dropout`, and all readouts change by
    the share `drift` over 1000 measurements. `seed` is that of the failures. With a `batch` above 1 it takes so many
    rows at once, as a generator with a memory does.

    >>> bench = SimulatedBench(lambda u: u**2)
    >>> bench.measure(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    system: Any = None
    _: KW_ONLY
    latency_s: NotNegative = 0.0
    dropout: NotNegative = 0.0
    drift: Finite = 0.0
    batch: Count = 1
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.system = FibreSystem() if self.system is None else self.system
        self._random, self._count = np.random.default_rng(self.seed), 0

    def measure(self, u: Floats, seed: Any = None) -> Floats:
        """Readouts at one vector of inputs, or of a sequence of them."""
        time.sleep(self.latency_s)
        if self._random.random() < self.dropout:
            raise OSError("the simulated instrument did not answer")
        self._count += 1
        gain = 1 + self.drift * self._count / 1000
        u = np.asarray(u, dtype=float)
        readouts = gain * np.asarray(measure(self.system, np.atleast_2d(u), seed))
        return readouts if u.ndim == 2 else readouts[0]

    def measure_many(self, u: Floats, seed: Sequence[Any]) -> list[Floats]:
        """Readouts at several vectors of inputs, or of several sequences."""
        return [self.measure(*one) for one in zip(u, seed, strict=True)]


def simulated(plan: Plan) -> SimulatedBench:
    """The photonic experiment for a plan, or an echo-state network for a sequence.

    ``[metadata.bench]`` of the plan may set it, and the faults:
    ``bench = { power_dbm = 4.5, length_m = 40.0, latency_s = 0.01, dropout = 0.01, drift = 0.02 }``.

    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=64, seed=1, metadata={"bench": {"length_m": 40.0}})
    >>> simulated(plan).system.length_m
    40.0
    """
    given = plan.metadata.get(BENCH, {})
    if not isinstance(given, dict):
        raise ParameterError(f"metadata.bench of the plan is {given!r}; give a table of settings.")
    faults = {name: value for name, value in given.items() if name in FAULTS}
    settings = {name: value for name, value in given.items() if name not in FAULTS}
    low, high = plan.basis.families[0].bounds
    if (low, high) != (-1.0, 1.0):
        raise ParameterError(
            f"the simulated bench takes inputs from -1 to 1, not from {low:g} to {high:g}."
        )
    try:
        system = (EchoState if plan.runs else FibreSystem)(n_inputs=plan.n_inputs, **settings)
    except TypeError as problem:
        raise ParameterError(f"metadata.bench of the plan: {problem}.") from None
    return SimulatedBench(system, **faults)
