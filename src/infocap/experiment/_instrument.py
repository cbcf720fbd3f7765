"""What an instrument is, and how to ask it again when it does not answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..errors import DataError, ParameterError, warn
from ..systems._measure import takes_seed
from ..typing import ArrayLike, Floats


@runtime_checkable
class Instrument(Protocol):
    """Anything that can be sent inputs and read out: a driver of your own, of any library.

    `measure` takes the inputs (inputs,) and gives the readouts (channels,). Two more methods are called where they are
    there: ``recover()`` before a failed measurement is tried again, ``close()`` at the end. If `measure` has a
    parameter ``seed``, it gets one that belongs to the measurement: simulated noise is then the same after a restart.

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

    def __init__(self, instrument: Instrument, retries: int, wait_s: float, timeout_s: float | None) -> None:
        if not callable(getattr(instrument, "measure", None)):
            raise ParameterError(
                f"instrument={instrument!r} has no method measure(u); give one, or wrap a simulator: "
                "experiment.SimulatedBench(system)."
            )
        self.instrument, self.retries, self.wait_s, self.timeout_s = instrument, retries, wait_s, timeout_s
        self.failures = 0
        self._seeded = takes_seed(instrument.measure)
        self._worker = None if timeout_s is None else Worker()
        self._call: Future | None = None

    def measure(
        self, u: Floats, name: str, seed: list[int], fit: Callable[[Any], Floats], stop: threading.Event
    ) -> Floats:
        """Readouts, after as many attempts as allowed; the last failure is an error that names the measurement.

        `fit` makes a vector of what came, or raises an error: part of a spectrum is a failure like any other.
        """
        options: dict[str, Any] = {"seed": np.random.SeedSequence(seed)} if self._seeded else {}
        for attempt in range(self.retries + 1):
            try:
                if attempt:
                    self._recover()
                readouts = fit(self._ask(u.copy(), options))
                if not np.isfinite(readouts).any():
                    raise OSError("it gave no finite number")
                return readouts
            except Exception as problem:  # a driver may raise anything; it is told, with its cause
                self.failures += 1
                said = " ".join(str(problem).split())
                last = DataError(
                    f"the instrument failed {attempt + 1} times at {name} ({type(problem).__name__}: {said}); "
                    "everything before is safe. Set it right, then give the same command again: it goes on from there."
                )
                last.__cause__ = problem
            if attempt == self.retries or stop.wait(self.wait_s):
                break
        raise last

    def close(self) -> None:
        """Let the instrument go, if it wants to be told."""
        if self._worker is not None:
            self._worker.close()
        if callable(getattr(self.instrument, "close", None)):
            try:
                self.instrument.close()  # type: ignore[attr-defined]
            except Exception as problem:  # all is measured and safe; the run has not failed
                said = " ".join(str(problem).split())
                warn(f"the instrument could not be closed ({type(problem).__name__}: {said}).")

    def _recover(self) -> None:
        if callable(getattr(self.instrument, "recover", None)):
            self.instrument.recover()  # type: ignore[attr-defined]

    def _ask(self, u: Floats, options: dict[str, Any]) -> Any:
        if self._worker is None:
            return self.instrument.measure(u, **options)
        if self._call is None:  # else an earlier call for this very input has not come back yet: wait on
            self._call = self._worker.submit(lambda: self.instrument.measure(u, **options))
        try:
            answer = self._call.result(self.timeout_s)
        except TimeoutError:
            if not self._call.done():
                raise TimeoutError(f"no answer within {self.timeout_s:g} s") from None
            self._call = None  # it was the driver's own
            raise
        except Exception:
            self._call = None
            raise
        self._call = None
        return answer


class Worker:
    """One thread in which all calls are made, one after the other; it does not keep Python from ending."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future, Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="infocap-instrument", daemon=True).start()

    def submit(self, function: Callable[[], Any]) -> Future:
        """Ask for a call, and get what it will give."""
        call: Future = Future()
        self._calls.put((call, function))
        return call

    def close(self) -> None:
        """End after the call under way."""
        self._calls.put(None)

    def _work(self) -> None:
        for call, function in iter(self._calls.get, None):
            try:
                call.set_result(function())
            except Exception as problem:  # told to whoever waits for the call
                call.set_exception(problem)
