"""Helper processes for long simulations, which threads of one process would compute one by one.

Simulations in many small steps keep Python's interpreter lock busy, so that sixteen threads are
hardly faster than four. Helper processes have a lock each. They are started without a question
where that pays: on a machine with several cores, for work of some seconds, by a program that is not
itself a worker of another one.

A helper is a new Python that imports infocap alone. It never imports the script that runs, so that
a script needs no ``if __name__ == "__main__"``, and a notebook works as a script does. Work whose
functions live in the script can therefore not be sent, and is done here.
"""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.spawn
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Timer
from typing import Any

from ._threads import all_cores
from .errors import DataWarning, warn

# Cores from which on helpers pay: with fewer, threads are as fast.
MIN_CORES_FOR_HELPERS = 4
# Seconds of work on one core, this call's and earlier ones', from which on helpers are started. To
# start them takes each half a second.
MIN_SECONDS_FOR_HELPERS = 4.0
# Seconds after the last work when helpers end: each of them takes about 100 MB.
IDLE_SECONDS = 60.0
# The first thing that a helper does. It finds modules where this process finds them.
BOOTSTRAP = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from infocap._processes import serve; serve()"
)
# What limits the matrix libraries to one thread each.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Environment variable that marks a helper, which has no helpers of its own.
HELPER_VARIABLE = "INFOCAP_HELPER"


def helpers_can_pay() -> bool:
    """Return whether this process may have helpers, and has cores for them."""
    if HELPER_VARIABLE in os.environ or multiprocessing.parent_process() is not None:
        return False
    if not multiprocessing.spawn.get_executable():  # Python inside another program
        return False
    with all_cores() as n_cores:
        return n_cores >= MIN_CORES_FOR_HELPERS


def can_be_sent(work: Any) -> bool:
    """Return whether work can be pickled and does not need anything of the script that runs."""
    try:
        return b"__main__" not in pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def map_on_helpers(
    function: Callable[[Any], Any], items: Sequence[Any], seconds: float
) -> list[Any] | None:
    """Return ``function(item)`` for every item, in order, from helpers; None without helpers.

    `seconds` is about the time that all items together take on one core.
    """
    helpers = helpers_for(function, seconds)
    if helpers is None:
        return None
    futures = [helpers.submit(function, item) for item in items]
    try:
        return [future.result() for future in futures]
    except HelperError:
        return None
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def helpers_for(work: Any, seconds: float) -> Helpers | None:
    """Return the helpers, which are started when there was enough work; None without them."""
    if not helpers_can_pay() or not can_be_sent(work):
        return None
    with _State.lock:
        _State.seconds_of_work += seconds
        if _State.helpers is None:
            if _State.seconds_of_work < MIN_SECONDS_FOR_HELPERS:
                return None
            with all_cores() as n_cores:
                _State.helpers = Helpers(n_cores)
        return _State.helpers


class _State:
    """The helpers of this process, and how many seconds of work there were for them so far."""

    lock = Lock()
    helpers: Helpers | None = None
    seconds_of_work = 0.0


class HelperError(Exception):
    """A helper ended before its work was done."""


class Helpers:
    """Processes that compute, and a thread of this process for each, which waits for it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free: SimpleQueue[_Helper] = SimpleQueue()
        self._all = [_Helper() for _ in range(count)]
        for helper in self._all:
            self._free.put(helper)
        # The prefix is another than that of `parallel_map`, whose threads compute.
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="helper")
        self._lock = Lock()
        self._n_under_way = 0
        self._timer: Timer | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Start ``function(*arguments)`` on the next helper that is free."""
        task = pickle.dumps((function, arguments))
        with self._lock:
            self._n_under_way += 1
            if self._timer is not None:
                self._timer.cancel()
        future = self._threads.submit(self._run, task)
        future.add_done_callback(self._count_done)
        return future

    def _run(self, task: bytes) -> Any:
        helper = self._free.get()
        try:
            return helper.run(task)
        except HelperError:
            stop_helpers(self)
            raise
        finally:
            self._free.put(helper)

    def _count_done(self, future: Future[Any]) -> None:
        with self._lock:
            self._n_under_way -= 1
            if self._n_under_way == 0:
                self._timer = Timer(IDLE_SECONDS, self._stop_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def _stop_if_idle(self) -> None:
        with self._lock:
            is_idle = self._n_under_way == 0
        if is_idle:
            stop_helpers(self)

    def stop(self) -> None:
        """End all processes."""
        if self._timer is not None:
            self._timer.cancel()
        for helper in self._all:
            helper.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Helper:
    """One process, which gets its tasks and returns their outcomes through pipes."""

    def __init__(self) -> None:
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1") | {HELPER_VARIABLE: "1"}
        self.process = subprocess.Popen(
            [os.fsdecode(multiprocessing.spawn.get_executable()), "-c", BOOTSTRAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._send(pickle.dumps(sys.path))

    def _send(self, message: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(message)
            self.process.stdin.flush()
        except (OSError, ValueError) as error:  # ended, or closed here
            raise HelperError from error

    def run(self, task: bytes) -> Any:
        """Do a task, pass its warnings on, and return its outcome or raise its error."""
        self._send(task)
        assert self.process.stdout is not None
        try:
            outcome, error, messages = pickle.load(self.process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as problem:
            raise HelperError from problem
        for category, message in messages:
            if issubclass(category, DataWarning):
                warn(message)
            else:
                warnings.warn(message, category, stacklevel=2)
        if error is not None:
            raise error
        return outcome

    def end(self) -> None:
        """End the process; a thread that waits for it gets an error."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def stop_helpers(helpers: Helpers | None = None) -> None:
    """End the helpers, if they are still these; without an argument, whichever there are."""
    with _State.lock:
        running = _State.helpers
        if running is None or (helpers is not None and helpers is not running):
            return
        _State.helpers = None
        _State.seconds_of_work = 0.0
    running.stop()


def serve() -> None:
    """Do tasks from the standard input until it ends: the main program of a helper."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The process that sends the tasks decides.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # What a task prints must not get among the answers.
        while True:
            try:
                function, arguments = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            answers.write(_answer(function, arguments))
            answers.flush()


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Return the outcome of a task, its error and its warnings, pickled."""
    outcome = None
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = function(*arguments)
        except Exception as problem:
            error = problem
    messages = [(warning.category, str(warning.message)) for warning in caught]
    try:
        answer = pickle.dumps((outcome, error, messages))
        if error is not None:
            pickle.loads(answer)  # Some errors can only be pickled one way.
        return answer
    except Exception as problem:
        in_words = RuntimeError(f"{error or type(outcome)!r:.200} cannot be sent: {problem}")
        return pickle.dumps((None, in_words, messages))


def _forget_helpers_of_the_parent() -> None:
    """Make a forked process forget helpers, which answer its parent."""
    _State.lock = Lock()
    _State.helpers = None


atexit.register(stop_helpers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers_of_the_parent)
