"""Executors: which of them computes, how many tasks it takes at a time, and tasks on threads."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .._validation import shown
from ..errors import ParameterError
from ._dask import count_threads_of_cluster, find_client, is_dask_client


@dataclass(frozen=True)
class RowTask:
    """A piece of work on some rows.

    `result` does the work, or waits for the thread or process that does it, and returns the
    outcome.
    """

    interval: int
    n_rows: int
    result: Callable[[], Any]


def run_ahead(
    pool: ThreadPoolExecutor, tasks: Iterator[RowTask], n_ahead: int
) -> Iterator[RowTask]:
    """Start tasks on threads and yield them in order; at most `n_ahead` are under way."""
    under_way = deque[tuple[RowTask, Future[Any]]]()

    def oldest() -> RowTask:
        task, future = under_way.popleft()
        return RowTask(task.interval, task.n_rows, future.result)

    try:
        for task in tasks:
            under_way.append((task, pool.submit(task.result)))
            if len(under_way) >= n_ahead:
                yield oldest()
        while under_way:
            yield oldest()
    finally:
        for _, future in under_way:
            future.cancel()


def choose_executor(executor: Any, *sources: Any) -> Any:
    """Return the executor or Dask client that a user passed, after a check of its type.

    Without any, return the default client of Dask if one of the `sources` is a dask array, else
    None, which stands for the threads of this process.
    """
    if executor is None:
        return find_client(*sources)
    if isinstance(executor, Executor) or is_dask_client(executor):
        return executor
    raise ParameterError(
        f"`executor={shown(executor)}` must be a concurrent.futures.Executor or a "
        "dask.distributed.Client."
    )


def plain_executor(executor: Any) -> Any:
    """Return an executor of `concurrent.futures`: that of the cluster if a Dask client is given."""
    return executor.get_executor(pure=False) if is_dask_client(executor) else executor


def count_task_slots(executor: Any) -> int:
    """Return how many tasks an executor works on at a time."""
    if is_dask_client(executor):
        return count_threads_of_cluster(executor)
    # Executors of the standard library have the first attribute, some others the second.
    for name in ("_max_workers", "num_workers"):
        count = getattr(executor, name, None)
        if count:
            return int(count)
    return os.cpu_count() or 1


def refuse_unpicklable(job: Any) -> None:
    """Refuse a job that cannot be pickled: an executor that fails to pickle says little."""
    try:
        pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ParameterError(
            f"this job cannot be sent to other processes ({reason}); use a ThreadPoolExecutor, or "
            "a basis and data that can be pickled."
        ) from None
