"""What an instrument is, how to ask it again when it does not answer, and a simulated one to try it on."""

import threading
import time
from collections.abc import Callable
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._check import number
from ..errors import DataError, ParameterError, warn
from ..systems._measure import measure, takes_seed
from ..systems._reservoirs import EchoState
from ..systems.fibre._system import FibreSystem
from ..typing import ArrayLike, Floats, System
from ._plan import BENCH, Plan

FAULTS = ("latency_s", "dropout", "drift")
# Mistakes in a driver's own code, which asking again does not mend.
MISTAKES = (TypeError, AttributeError, NameError, ImportError, SyntaxError, NotImplementedError)


@runtime_checkable
class Instrument(Protocol):
    """Anything that can be sent inputs and read out: a driver of your own, of any library.

    `measure` takes the inputs (inputs,) and gives the readouts (channels,); of a device with memory, those of a whole
    run: (steps, inputs) and (steps, channels). More methods are called where they are there: ``recover()`` before a
    failed measurement is tried again; ``safe()``, which should switch off what may do harm, and then ``close()``, at
    the end of an acquisition, however it ends. After a crash, which calls nothing, the next acquisition begins with
    ``safe()`` and ``recover()``. A text ``identity``, such as a serial number, tells one instrument from another;
    without it the name of the class does. If `measure` has a parameter ``seed``, it gets one that belongs to the
    measurement: simulated noise is then the same after a restart.

    >>> class Wire:
    ...     def measure(self, u):
    ...         return 2 * u
    >>> isinstance(Wire(), Instrument)
    True
    """

    def measure(self, u: Floats) -> ArrayLike:
        """Readouts (channels,) at the inputs (inputs,)."""


class Careful:
    """An instrument that is asked again when it fails, and not waited for longer than a time-out."""

    def __init__(
        self,
        instrument: Instrument,
        retries: int,
        wait_s: float,
        timeout_s: float | None,
        failed: Callable[[str, str], None],
    ) -> None:
        if not callable(getattr(instrument, "measure", None)):
            raise ParameterError(
                f"`instrument={instrument!r}` has no method measure(u); give one, or wrap a simulator: "
                "experiment.SimulatedBench(system)."
            )
        self.instrument, self.retries, self.wait_s, self.timeout_s = instrument, retries, wait_s, timeout_s
        self.failures, self.failed = 0, failed
        self.name = str(getattr(instrument, "identity", None) or type(instrument).__name__)
        self._seeded = takes_seed(instrument.measure)
        # One thread makes all calls, one after the other; as a daemon it does not keep Python from ending.
        self._thread = None if timeout_s is None else ThreadPool(1)
        self._call: AsyncResult | None = None

    def measure(
        self, u: Floats, name: str, seed: list[int], fit: Callable[[Any], Floats], stop: threading.Event
    ) -> Floats:
        """Readouts, after as many attempts as allowed; the last failure is an error that names the measurement.

        `fit` makes a vector of what came, or raises an error: part of a spectrum is a failure like any other.
        """
        options = {"seed": np.random.SeedSequence(seed)} if self._seeded else {}
        failures = 0
        while True:
            try:
                if failures:
                    self.call("recover")
                readouts = fit(self._ask(u.copy(), options))
                if np.isfinite(readouts).any():
                    return readouts
                raise OSError("it gave no finite number")
            except MISTAKES as problem:
                problem.add_note(
                    f"This is a mistake in the instrument's driver, met at {name}; everything before is safe."
                )
                raise
            except SystemExit as problem:
                said = f"the instrument's driver ended the program at {name} (sys.exit({problem.code!r}))"
                raise DataError(f"{said}; everything before is safe. Let it raise an error instead.") from problem
            except Exception as problem:  # a driver may raise anything; it is told, with its cause
                failures += 1
                self.failures += 1
                self.failed(name, in_one_line(problem))
                if failures > self.retries or stop.wait(self.wait_s):
                    raise DataError(
                        f"the instrument failed {failures} times at {name} ({in_one_line(problem)}); everything before "
                        "is safe. Set it right, then give the same command again: it goes on from there."
                    ) from problem

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
        for name in ("safe", "close"):
            try:
                self.call(name)
            except (Exception, SystemExit) as problem:  # all is measured and stored; the run has not failed
                warn(f"`{name}()` of the instrument failed ({in_one_line(problem)}); check by hand what it left on.")

    def call(self, name: str) -> None:
        """Call a method of the instrument, if it has one of this name."""
        method = getattr(self.instrument, name, None)
        if callable(method):
            method()

    def _ask(self, u: Floats, options: dict[str, Any]) -> Any:
        if self._thread is None:
            return self.instrument.measure(u, **options)

        def measure() -> Any:  # a thread would end of a SystemExit, and nobody would hear of it
            try:
                return self.instrument.measure(u, **options)
            except SystemExit as problem:
                return problem

        if self._call is None:  # else an earlier call for this very input has not come back yet: wait on
            self._call = self._thread.apply_async(measure)
        self._call.wait(self.timeout_s)
        if not self._call.ready():
            raise TimeoutError(f"no answer within {self.timeout_s:g} s")
        call, self._call = self._call, None
        answer = call.get()
        if isinstance(answer, SystemExit):
            raise answer
        return answer


def in_one_line(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


class SimulatedBench:
    """Any system as an instrument that takes its time, sometimes fails to answer, and drifts.

    `system` is a callable (samples, inputs) -> (samples, readouts), the photonic experiment by default. Every
    measurement takes `latency_s`, fails with an OSError with the probability `dropout`, and all readouts change by
    the share `drift` over 1000 measurements. `seed` is that of the failures.

    >>> bench = SimulatedBench(lambda u: u**2)
    >>> bench.measure(np.array([1.0, 2.0]))
    array([1., 4.])
    """

    def __init__(
        self,
        system: System | None = None,
        *,
        latency_s: float = 0.0,
        dropout: float = 0.0,
        drift: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.system = FibreSystem() if system is None else system
        self.latency_s = number("latency_s", latency_s, 0.0)
        self.dropout = number("dropout", dropout, 0.0)
        self.drift = number("drift", drift)
        self._random = np.random.default_rng(seed)
        self._count = 0

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
        raise ParameterError(f"the simulated bench takes inputs from -1 to 1, not from {low:g} to {high:g}.")
    try:
        system = (EchoState if plan.runs else FibreSystem)(n_inputs=plan.n_inputs, **settings)
    except TypeError as problem:
        raise ParameterError(f"metadata.bench of the plan: {problem}.") from None
    return SimulatedBench(system, **faults)
