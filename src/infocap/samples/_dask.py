"""Everything about Dask: its arrays as rows, its clusters as executors.

Shares of the rows are delayed tasks, which are merged in a tree where they were computed. Rows of a
dask array stay on the cluster: Dask brings each task to the worker that has them, and repeats what
is lost with a worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING, Any

from .._formatting import join_names
from ..errors import ParameterError
from ._rows import Segment

if TYPE_CHECKING:
    from ._samples import Samples

# Seconds to wait for the first worker: batch queues start one within a minute or not soon.
WORKER_WAIT_S = 60.0
# Seconds between two looks at whether the cluster goes on.
HEALTH_CHECK_INTERVAL_S = 10.0
# Seconds without a heartbeat after which a worker hangs; workers send one every second or two.
MAX_SILENCE_S = 30.0
# How often, within `MAX_SILENCE_S`, a cluster whose workers do nothing is asked again before it is
# given up: they may only pause.
MAX_IDLE_ANSWERS = 10
# Workers that a message names.
MAX_WORKERS_NAMED = 5


class DaskRows:
    """The rows of a lazy dask array, computed by whoever reads them, in that thread."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = array.shape
        self.chunks = array.chunks

    def __getitem__(self, rows: slice) -> Any:
        return self.array[rows].compute(scheduler="synchronous")


def is_dask(source: Any) -> bool:
    """Return whether a source is a dask array, with labels (xarray) or without."""
    if is_labelled(source):
        return source.chunks is not None
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "dask")


def is_labelled(source: Any) -> bool:
    """Return whether a source is a DataArray of xarray."""
    return type(source).__module__.split(".")[0] == "xarray" and hasattr(source, "variable")


def is_dask_client(executor: Any) -> bool:
    """Return whether an executor is the client of a Dask cluster."""
    library = type(executor).__module__.split(".")[0]
    return library == "distributed" and hasattr(executor, "get_executor")


def find_client(*sources: Any) -> Any | None:
    """Return the default client if a source is a dask array; None where there is no such client."""
    if "distributed" not in sys.modules or not any(is_dask(source) for source in sources):
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


def count_threads_of_cluster(client: Any) -> int:
    """Return how many threads all workers have together, after a wait for the first worker."""
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=WORKER_WAIT_S)
        except TimeoutError:
            address = client.scheduler.address
            raise ParameterError(
                f"Dask cluster {address} has no workers; run `dask worker {address}`."
            ) from None
    return sum(client.nthreads().values())


def fold_on_cluster(
    client: Any,
    samples: Samples,
    shares: Sequence[Segment],
    *,
    fold_share: Callable[..., Any],
    work: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
) -> list[Any]:
    """Return the outcome of each interval, from shares that are computed and merged on a cluster.

    Parameters
    ----------
    fold_share
        Function of samples, work, and perhaps of `u` and `x`, the rows of these samples.
    work, merge
        As in `Engine.fold`.
    """
    from dask.delayed import delayed

    _refuse_idle_cluster(client)
    work_there = client.scatter(work, hash=False, broadcast=True)
    shares_of_interval: dict[int, list[Any]] = {}
    for share in shares:
        rows, dask_rows = _separate_dask_rows(samples.slice_rows(share.start, share.stop))
        if rows.in_memory:
            rows = client.scatter(rows, hash=False)
        outcome = delayed(fold_share, pure=False)(rows, work_there, **dask_rows)
        shares_of_interval.setdefault(share.interval, []).append(outcome)
    merged = [_merge_in_pairs(outcomes, merge) for outcomes in shares_of_interval.values()]
    return _wait_for(client, client.compute(merged))


def _separate_dask_rows(samples: Samples) -> tuple[Samples, dict[str, Any]]:
    """Return samples without the tables that are dask arrays, and these arrays by name."""
    dask_rows = {}
    for name in ("u", "x"):
        array = getattr(samples, name).as_dask()
        if array is not None:
            dask_rows[name] = array
    tables: dict[str, Any] = {name: getattr(samples, name).without_source() for name in dask_rows}
    return replace(samples, **tables), dask_rows


def _merge_in_pairs(outcomes: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge neighbours until a single outcome is left, in the order of the rows."""
    from dask.delayed import delayed

    merge_later = delayed(merge, pure=False)
    while len(outcomes) > 1:
        merged = []
        for first, second in zip(outcomes[0::2], outcomes[1::2], strict=False):
            merged.append(merge_later(first, second))
        if len(outcomes) % 2:
            merged.append(outcomes[-1])
        outcomes = merged
    return outcomes[0]


def _wait_for(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures; a cluster that does not go on is an error."""
    from distributed import wait

    while any(future.status == "pending" for future in futures):
        with suppress(TimeoutError):
            wait(futures, timeout=HEALTH_CHECK_INTERVAL_S)  # type: ignore[no-untyped-call]
        _refuse_idle_cluster(client)
    return list(client.gather(futures))


def _refuse_idle_cluster(client: Any) -> None:
    """Refuse to wait when none of the workers that have tasks, or of all workers, is at work."""
    max_silence_s = MAX_SILENCE_S  # a local variable, which travels with the nested function

    # The scheduler may lack this package. A nested function is sent as code, not by its name.
    def list_idle_workers(dask_scheduler: Any) -> list[str]:
        import time

        workers = list(dask_scheduler.workers.values())
        with_tasks = [worker for worker in workers if worker.processing] or workers
        now = time.time()
        for worker in with_tasks:
            if worker.status.name == "running" and now - worker.last_seen < max_silence_s:
                return []
        return [f"{worker.address} ({worker.status.name})" for worker in with_tasks]

    idle_workers: list[str] = []
    for _ in range(MAX_IDLE_ANSWERS):
        idle_workers = client.run_on_scheduler(list_idle_workers)
        if not idle_workers:
            return
        sleep(max_silence_s / MAX_IDLE_ANSWERS)
    raise ParameterError(
        "the Dask workers that have the work do nothing: "
        f"{join_names(idle_workers, MAX_WORKERS_NAMED)}; a worker pauses when its memory is full: "
        "free memory, or start the worker again."
    )
