"""The same work on many blocks: one thread per core, each with a single-threaded matrix library."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from threading import Lock, RLock, current_thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
POOL = "infocap"  # The names of its threads begin so.


class _Cores:
    """Who uses the cores: how many calls are under way, and the matrix library's limit while they are."""

    lock = Lock()
    calls = 0
    count = 1
    limit: Any = None


@contextmanager
def all_cores() -> Iterator[int]:
    """Give the cores to `parallel_map` instead of to the matrix library; yields how many there are.

    A matrix product alone could use all cores by itself, but not what surrounds it (evaluating the basis,
    factoring), so whole blocks run side by side. The matrix library must keep still meanwhile, also between
    the parallel parts: its idle threads go on spinning for a while and take the cores away. It is limited
    to one thread here; the number it had, which its environment variables set, is the number used.
    """
    with (
        _Cores.lock
    ):  # the first call silences the matrix library and notes how many threads it had
        if _Cores.calls == 0:
            controller = _controller()
            _Cores.count = max((library["num_threads"] for library in controller.info()), default=1)
            _Cores.limit = controller.limit(limits=1)
        _Cores.calls += 1
    try:
        yield _Cores.count
    finally:
        with _Cores.lock:  # the last call lets the matrix library have its threads again
            _Cores.calls -= 1
            if _Cores.calls == 0:
                _Cores.limit.restore_original_limits()


def parallel_map(
    function: Callable[[Item], Outcome], items: Sequence[Item], one_in: int = 1
) -> list[Outcome]:
    """function(item) for every item, in order, on all cores; with `one_in=8` on one core in eight.

    Inside another such call the items come one after the other.
    """
    with all_cores() as cores:
        threads = min(max(cores // one_in, 1), len(items))
        if threads <= 1 or current_thread().name.startswith(
            POOL
        ):  # threads that wait for each other wait for ever
            return list(map(function, items))
        return list(thread_pool(threads).map(function, items))


@cache
def _controller() -> Any:
    import scipy.linalg.blas  # noqa: F401 -- comes with a matrix library of its own, which must keep still as well
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@cache
def thread_pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones would ask the system for new memory at every call."""
    return ThreadPoolExecutor(threads, thread_name_prefix=POOL)


def _start_anew() -> None:
    """A forked process has none of its parent's threads, and must not wait for them, nor for locks that they held."""
    _Cores.lock, _Cores.calls = Lock(), 0
    thread_pool.cache_clear()
    # Before Python 3.12 a cached property is computed under a lock.
    modules = [
        module for name, module in sys.modules.items() if name.partition(".")[0] == "infocap"
    ]
    classes = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    for one in (
        entry for kind in classes for entry in vars(kind).values() if hasattr(entry, "lock")
    ):
        if isinstance(one, cached_property):
            one.lock = RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
