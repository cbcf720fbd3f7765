"""Work on stretches of rows by executors and Dask clusters: a task for each worker, lost ones made good."""

from __future__ import annotations

import logging
import pickle
import sys
from asyncio import CancelledError as AsyncCancelledError
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from functools import reduce
from itertools import accumulate, pairwise
from math import gcd
from os import cpu_count
from typing import Any, NamedTuple

from ._sources import Chunks, is_dask, travelling
from .errors import InfocapError, ParameterError

WORKER_WAIT_S = 60.0  # for the first worker of a cluster
Stretch = tuple[int, int]


def spread(
    executor: Any,
    job: Any,
    edges: Sequence[int],
    *,
    here: Callable[[Stretch], Any],
    there: Callable[[Any], Any],
    done: Callable[[int], object],
) -> list[Any]:
    """The outcome of the job for the rows between consecutive edges, one contiguous stretch a worker.

    `there` does a part of the job and is sent along with it. What is lost with a worker that a Dask cluster does not
    make good by itself, or with a pool of processes that breaks, `here` does in this process.
    """
    crew = crew_of(executor, job)
    futures: list[Any] = []
    tasks = [
        (number, stretches)
        for number, whole in enumerate(pairwise(edges))
        for stretches in crew.cut(edges, whole)
    ]
    totals: dict[int, Any] = {}
    lost = 0
    try:
        for _, stretches in tasks:
            futures.append(_submitted(crew, there, job, stretches))
        for (number, stretches), future in zip(tasks, futures, strict=True):
            outcome = None if future is None else _result(future)
            if outcome is None:
                lost += 1
                outcome = reduce(job.merge, map(here, stretches))
            else:
                done(sum(stop - start for start, stop in stretches))
            totals[number] = outcome if number not in totals else job.merge(totals[number], outcome)
    finally:
        for future in futures:
            if future is not None:
                future.cancel()
    if lost:
        logging.getLogger("infocap").warning(
            "infocap: workers were lost; %d of %d parts were computed in this process.", lost, len(tasks)
        )
    return [totals[number] for number in range(len(edges) - 1)]


def _submitted(
    crew: Crew, there: Callable[[Any], Any], job: Any, stretches: tuple[Stretch, ...]
) -> Any | None:
    """A future; None when the executor is broken already."""
    try:
        return crew.submit(there, job, stretches)
    except BrokenExecutor:
        return None
    except RuntimeError as problem:
        if "shutdown" in str(problem):
            raise ParameterError(
                "the executor was shut down, perhaps at the end of its with block; make a new one."
            ) from None
        raise


def _result(future: Any) -> Any | None:
    """What a worker found; None when it was lost."""
    try:
        return future.result()
    except InfocapError:
        raise
    except (BrokenExecutor, CancelledError, AsyncCancelledError):
        return None
    except Exception as problem:
        if type(problem).__module__.split(".")[0] == "distributed":  # KilledWorker, lost connections
            return None
        raise


class Crew:
    """The workers of an executor; threads of this process as it is."""

    def __init__(self, executor: Any, n_workers: int) -> None:
        self.executor, self.n_workers = executor, max(n_workers, 1)

    def cut(self, edges: Sequence[int], whole: Stretch) -> list[tuple[Stretch, ...]]:
        """The tasks of one whole, so many that all wholes together keep every worker equally busy."""
        count = self.n_workers // gcd(self.n_workers, len(edges) - 1)
        start, stop = whole
        cuts = sorted({start + (stop - start) * k // count for k in range(count + 1)})
        return [(stretch,) for stretch in pairwise(cuts)]

    def submit(self, there: Callable[[Any], Any], job: Any, stretches: tuple[Stretch, ...]) -> Any:
        """Send the part of a job: its rows, or the name of the file that holds them."""
        (stretch,) = stretches
        return self.executor.submit(there, job.part(*stretch))


class Processes(Crew):
    """Processes of this machine; what cannot be pickled is refused in words."""

    def submit(self, there: Callable[[Any], Any], job: Any, stretches: tuple[Stretch, ...]) -> Any:
        """Pickled here and now: an executor that fails to do it in its own thread says little."""
        (stretch,) = stretches
        try:
            packed = pickle.dumps((there, job.part(*stretch)), protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as problem:
            raise ParameterError(
                f"this job cannot be sent to other processes ({' '.join(str(problem).split())}); use a "
                "ThreadPoolExecutor, or a basis and data that can be pickled."
            ) from None
        return self.executor.submit(_unpacked, packed)


def _unpacked(packed: bytes) -> Any:
    there, job = pickle.loads(packed)
    return there(job)


class Dask(Crew):
    """The workers of a Dask cluster. Rows in memory are put on a worker first; graphs stay small."""

    def __init__(self, client: Any) -> None:
        super().__init__(client.get_executor(pure=False), sum(_threads(client).values()))
        self.client = client

    def submit(self, there: Callable[[Any], Any], job: Any, stretches: tuple[Stretch, ...]) -> Any:
        """A task whose rows are those in files that the worker sees, or those brought to it now."""
        (stretch,) = stretches
        part = _packed(job.part(*stretch))
        if _any_in_memory([part]):
            part = self.client.scatter(part, hash=False)
        return self.executor.submit(there, part)


class DaskHoldings(Dask):
    """Arrays that a Dask cluster has in its memory: each worker reduces the blocks it holds."""

    def __init__(self, client: Any, job: Any, held: list[list[_Block] | None]) -> None:
        super().__init__(client)
        self._tables, self._held = job.tables, held
        self._where = client.who_has([block.future for blocks in held for block in blocks or ()])

    def cut(self, edges: Sequence[int], whole: Stretch) -> list[tuple[Stretch, ...]]:
        """One task for all that a worker holds of a whole; the blocks of the widest table decide."""
        number = max(number for number, blocks in enumerate(self._held) if blocks is not None)
        by_owner: dict[tuple[str, ...], list[Stretch]] = {}
        for block in self._held[number] or ():
            start, stop = self._tables[number].rows_within(block.start, block.stop)
            start, stop = max(start, whole[0]), min(stop, whole[1])
            if start < stop:
                owners = tuple(self._where.get(block.future.key, ()))[:1]
                by_owner.setdefault(owners, []).append((start, stop))
        return [tuple(_joined(stretches)) for stretches in by_owner.values()]

    def submit(self, there: Callable[[Any], Any], job: Any, stretches: tuple[Stretch, ...]) -> Any:
        """Blocks are named, so that Dask brings the task to where they are."""
        parts = [_packed(job.part(*stretch)) for stretch in stretches]
        named = []
        for table, blocks in zip(job.tables, self._held, strict=True):
            wanted = [table.source_rows(*stretch) for stretch in stretches]
            named.append(
                [
                    (block.start, block.future)
                    for block in blocks or ()
                    if any(block.start < stop and block.stop > start for start, stop in wanted)
                ]
            )
        for part in parts:
            for table, blocks in zip(part.tables, self._held, strict=True):
                if blocks is not None:
                    table.source = Chunks(table.source.shape, [])  # filled where the blocks are
        sent = self.client.scatter(parts, hash=False) if _any_in_memory(parts) else parts
        return self.executor.submit(_on_holder, there, sent, named)


def _on_holder(there: Callable[[Any], Any], parts: list[Any], named: list[list[tuple[int, Any]]]) -> Any:
    """Work on blocks in a worker's own memory."""
    total = None
    for part in parts:
        for table, blocks in zip(part.tables, named, strict=True):
            if blocks:
                table.source = Chunks(table.source.shape, blocks)
        outcome = there(part)
        total = outcome if total is None else part.merge(total, outcome)
    return total


class _Block(NamedTuple):
    """Rows start to stop of an array in the memory of a cluster, numbered as in the array."""

    start: int
    stop: int
    future: Any


def crew_of(executor: Any, job: Any) -> Crew:
    """The workers behind whatever was given as executor."""
    if is_client(executor):
        held = [_holdings(executor, table) for table in job.tables]
        nothing = all(blocks is None for blocks in held)
        return Dask(executor) if nothing else DaskHoldings(executor, job, held)
    workers = Crew if in_this_process(executor) else Processes
    return workers(executor, n_slots(executor))


def check_executor(executor: Any) -> Any:
    """An executor, a Dask client, or None; anything else is refused."""
    usable = executor is None or isinstance(executor, Executor) or is_client(executor)
    if not usable:
        raise ParameterError(
            f"executor={executor!r} must be a concurrent.futures.Executor or a dask.distributed.Client."
        )
    return executor


def is_client(executor: Any) -> bool:
    """Whether an executor is the client of a Dask cluster."""
    return type(executor).__module__.split(".")[0] == "distributed" and hasattr(executor, "get_executor")


def as_executor(executor: Any) -> Any:
    """A Dask client as an executor like all others."""
    return executor.get_executor(pure=False) if is_client(executor) else executor


def client_in_use(*sources: Any) -> Any | None:
    """The client of the Dask cluster that would compute these sources, if there is one."""
    if "distributed" not in sys.modules or not any(is_dask(source) for source in sources):
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


def n_slots(executor: Any) -> int:
    """How many tasks an executor works on at a time."""
    if is_client(executor):
        return sum(_threads(executor).values())
    return int(getattr(executor, "_max_workers", None) or cpu_count() or 1)


def in_this_process(executor: Any) -> bool:
    """Whether the executor's workers share this process's memory."""
    return isinstance(executor, ThreadPoolExecutor)


def _threads(client: Any) -> dict[str, int]:
    """The threads of every worker, once there is one."""
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=WORKER_WAIT_S)
        except TimeoutError:
            raise ParameterError(
                f"the Dask cluster at {client.scheduler.address} has no workers; start some with "
                f"`dask worker {client.scheduler.address}`."
            ) from None
    return dict(client.nthreads())


def _holdings(client: Any, table: Any) -> list[_Block] | None:
    """The blocks of a table that a cluster has in its memory; None when it has none.

    What is left to compute on them is computed over there, once for all passes.
    """
    if not is_dask(table.source):
        return None
    from distributed import client as distributed_client

    futures_of: Any = distributed_client.futures_of
    if not futures_of(table.source):
        return None
    array = table.source if table.source.numblocks[1] == 1 else table.source.rechunk({1: -1})
    keys = [row[0] for row in array.__dask_keys__()]
    futures = {future.key: future for future in futures_of(array)}
    if any(key not in futures for key in keys):
        array = client.persist(array)
        futures = {future.key: future for future in futures_of(array)}
        table.source = array
    edges = [0, *accumulate(array.chunks[0])]
    return [
        _Block(start, stop, futures[key]) for (start, stop), key in zip(pairwise(edges), keys, strict=True)
    ]


def _packed(part: Any) -> Any:
    """A part with sources that travel: a worker in this very process gets what others get."""
    for table in part.tables:
        sent = travelling(table.source)
        table.source = table.source if sent is None else sent
    return part


def _any_in_memory(parts: list[Any]) -> bool:
    return any(table.in_memory for part in parts for table in part.tables)


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """Neighbouring stretches as one."""
    out = stretches[:1]
    for start, stop in stretches[1:]:
        if start == out[-1][1]:
            out[-1] = (out[-1][0], stop)
        else:
            out.append((start, stop))
    return out
