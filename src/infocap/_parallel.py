"""The same work on many blocks: one thread a core, each with a single-threaded matrix library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def all_cores() -> Iterator[int]:
    """Give the cores to `parallel_map` instead of to the matrix library; yields how many there are.

    A matrix product alone could use all cores by itself, but not what surrounds it (evaluating the basis,
    factoring), so whole blocks run side by side. The matrix library must keep still meanwhile, also between
    the parallel parts: its idle threads go on spinning for a while and take the cores away. It is limited
    to one thread here; the number it had, which its environment variables set, is the number used.
    """
    known = _threads.get()
    if known is not None:
        yield known
        return
    controller = _controller()
    count = max((pool["num_threads"] for pool in controller.info()), default=1)
    token = _threads.set(count)
    try:
        with controller.limit(limits=1):
            yield count
    finally:
        _threads.reset(token)


def parallel_map(function: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """function(item) for every item, in order, on all cores."""
    with all_cores() as cores:
        threads = min(cores, len(items))
        if threads <= 1:
            return [function(item) for item in items]
        return list(_pool(threads).map(function, items))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: new ones would ask the system for new memory at every call."""
    return ThreadPoolExecutor(threads, thread_name_prefix="infocap")
