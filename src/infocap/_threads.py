"""Threads for blocks of work: one per core, while the matrix library uses a single thread.

A matrix product alone could use all cores by itself, but what surrounds it could not: evaluating a
basis, factoring a small matrix. So whole blocks of work run side by side, and the matrix library
is limited to one thread meanwhile. The limit also holds between two parallel steps, because idle
threads of the matrix library go on spinning for a while and take the cores away.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from threading import Lock, RLock, current_thread, local
from typing import Any, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

THREAD_NAME_PREFIX = "infocap"
# Rows of a square matrix from which on its factorisation is faster on all cores, although the
# threads of the matrix library take some of them away for a while afterwards.
MIN_ROWS_FOR_ALL_CORES = 1000


_steps_of_thread = local()


class _Cores:
    """The state of `all_cores`, shared by all threads of the process."""

    lock = Lock()
    n_calls_under_way = 0
    n_matrix_steps = 0  # of `cores_for_matrices`
    n_cores = 1
    matrix_library_limit: Any = None


@contextmanager
def all_cores() -> Iterator[int]:
    """Limit the matrix library to one thread, and yield how many cores there are for our threads.

    The number of cores is the number of threads that the matrix library had, which users set by
    environment variables such as ``OMP_NUM_THREADS``. Calls may overlap: the first sets the limit
    and the last one lifts it.
    """
    with _Cores.lock:
        if _Cores.n_calls_under_way == 0:
            controller = _matrix_library_controller()
            numbers_of_threads = [library["num_threads"] for library in controller.info()]
            _Cores.n_cores = max(numbers_of_threads, default=1)
            _Cores.matrix_library_limit = controller.limit(limits=1)
        _Cores.n_calls_under_way += 1
    try:
        yield _Cores.n_cores
    finally:
        with _Cores.lock:
            _Cores.n_calls_under_way -= 1
            if _Cores.n_calls_under_way == 0:
                _Cores.matrix_library_limit.restore_original_limits()


@contextmanager
def cores_for_matrices(n_rows: int) -> Iterator[None]:
    """Lift the limit of `all_cores` for steps on large square matrices, with so many rows.

    Such a step cannot be shared among threads of ours. On a thread of `parallel_map`, and for small
    matrices, nothing changes.
    """
    is_worker = current_thread().name.startswith(THREAD_NAME_PREFIX)
    if n_rows < MIN_ROWS_FOR_ALL_CORES or is_worker:
        yield
        return
    with _matrix_steps(1):
        yield


@contextmanager
def _matrix_steps(count: int) -> Iterator[None]:
    """Count steps of this thread that may use all cores, or fewer where `count` is negative."""
    _change_matrix_steps(count)
    try:
        yield
    finally:
        _change_matrix_steps(-count)


def _change_matrix_steps(change: int) -> None:
    if change == 0:
        return
    _steps_of_thread.count = _matrix_steps_of_thread() + change
    with _Cores.lock:
        _Cores.n_matrix_steps += change
        if _Cores.n_calls_under_way:
            n_threads = _Cores.n_cores if _Cores.n_matrix_steps else 1
            _matrix_library_controller().limit(limits=n_threads)


def _matrix_steps_of_thread() -> int:
    """Return how many of the steps that may use all cores are those of this thread."""
    return getattr(_steps_of_thread, "count", 0)


@cache
def _matrix_library_controller() -> Any:
    """Return what limits the threads of the matrix libraries, of NumPy and of SciPy."""
    # SciPy brings a matrix library of its own, which must be loaded before it can be limited.
    import scipy.linalg.blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def parallel_map(
    function: Callable[[Item], Outcome], items: Sequence[Item], cores_per_thread: int = 1
) -> list[Outcome]:
    """Return ``function(item)`` for every item, in order, computed on all cores.

    With `cores_per_thread=8` one core in eight is used. Inside another call the items are computed
    one after the other, because threads that wait for threads of the same pool would wait forever.
    """
    with all_cores() as n_cores:
        n_threads = min(max(n_cores // cores_per_thread, 1), len(items))
        is_nested = current_thread().name.startswith(THREAD_NAME_PREFIX)
        if n_threads <= 1 or is_nested:
            return [function(item) for item in items]
        # A large step that consists of parallel ones leaves the cores to these.
        with _matrix_steps(-_matrix_steps_of_thread()):
            return list(thread_pool(n_threads).map(function, items))


@cache
def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads that stays: new threads would allocate new memory at every call."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix=THREAD_NAME_PREFIX)


def _forget_threads_of_the_parent() -> None:
    """Make a forked process forget threads and locks, which do not survive the fork."""
    _Cores.lock = Lock()
    _Cores.n_calls_under_way = 0
    _Cores.n_matrix_steps = 0
    thread_pool.cache_clear()
    for attribute in _attributes_of_our_classes():
        # Before Python 3.12 a cached property is computed under a lock of its own.
        if isinstance(attribute, cached_property) and hasattr(attribute, "lock"):
            attribute.lock = RLock()


def _attributes_of_our_classes() -> Iterator[Any]:
    """Yield the attributes of every class of infocap that was imported."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "infocap":
            continue
        for value in vars(module).values():
            if isinstance(value, type):
                yield from vars(value).values()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads_of_the_parent)
