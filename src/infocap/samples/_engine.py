"""Engine.fold: one way through the rows, on this machine's cores, any executor, a Dask cluster or a device."""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import gcd
from operator import add
from os import cpu_count
from time import sleep
from typing import Any

from .._threads import all_cores, thread_pool
from ..errors import ParameterError
from ._samples import Samples, row_shares
from ._sources import is_dask

# Bytes of rows read from disk at a time where `memory_limit` does not say otherwise: long enough for a disk to run at
# full speed, short enough that reading, computing and one chunk ahead stay below 0.5 GB.
CHUNK_BYTES = 64_000_000
# Readouts and values of functions of a share at least: fewer cost more in Python than spreading them over cores spares.
LEAST_NUMBERS = 2_500_000
# A share adds up at most this many pieces of about 4 MB, so that progress can be seen.
LONGEST_SHARE = 16
# Seconds after which a progress bar appears: whoever waits longer likes to know how long.
BAR_DELAY_S = 2.0
# Seconds to wait for the first worker of a Dask cluster; batch queues start one within a minute or not soon.
WORKER_WAIT_S = 60.0

# Seconds between two looks at whether a Dask cluster goes on; and without a sign of life, which workers give every
# second or two, after which one hangs.
LOOK_S, SILENT_S = 10.0, 30.0

Rows = tuple[int, int]
Parts = list[tuple[int, Rows]]  # the number of the whole that is asked for, and some of its rows
Calls = Iterator[tuple[int, int, Callable[[], Any]]]
Work = Callable[[Samples, int, int], Any]
Merge = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Engine:
    """Who goes through the rows of a data set, and how much of them is read at a time.

    `executor` is a `concurrent.futures.Executor`, a `dask.distributed.Client`, or None for the threads of this process.
    `memory_limit` is the number of bytes that the user allows, of which `chunk_bytes` is read at a time by `threads` threads.
    """

    executor: Any = None
    memory_limit: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    threads: int | None = None
    share_rows: int | None = None  # None: as many rows as keep all cores busy

    def fold(
        self, samples: Samples, work: Work, merge: Merge = add, edges: Sequence[int] | None = None
    ) -> Any:
        """Do `work(samples, start, stop)` on shares of the rows, and merge what they give in the order of the rows.

        With `edges` there is one outcome for the rows between each two of them. `work` and `merge` are plain functions;
        to run in other processes both must be picklable, as functions of a module and `functools.partial` of them are.
        """
        wholes = [(0, samples.n_samples)] if edges is None else list(pairwise(edges))
        runs = (
            [] if samples.runs is None else samples.runs.tolist()
        )  # no share crosses from one run to the next
        cuts = [
            [start, *(edge for edge in runs if start < edge < stop), stop] for start, stop in wholes
        ]
        parts = [(number, rows) for number, one in enumerate(cuts) for rows in pairwise(one)]
        if self.executor is not None and is_client(self.executor):
            outcomes = self._on_dask(samples, work, merge, parts)
            return outcomes[0] if edges is None else outcomes
        outcomes = [None] * len(wholes)
        bar = _bar(wholes[-1][1] - wholes[0][0]) if sys.stderr.isatty() else nullcontext(int)
        with bar as done, all_cores() as cores:
            threads = 1 if samples.x.on_device else self.threads or cores
            calls = self._calls(samples, work, parts, threads)
            if self.executor is not None:
                calls = self._elsewhere(samples, work, merge, parts)
            elif threads > 1:
                calls = _on_pool(thread_pool(threads), calls, ahead=2 * threads)
            for number, rows, call in calls:
                outcome = call()
                outcomes[number] = (
                    outcome if outcomes[number] is None else merge(outcomes[number], outcome)
                )
                done(rows)
        return outcomes[0] if edges is None else outcomes

    @property
    def _alone(self) -> Engine:
        """The engine of one worker, which has a single thread."""
        return Engine(chunk_bytes=self.chunk_bytes, threads=1, share_rows=self.share_rows)

    def _cuts(self, samples: Samples, start: int, stop: int) -> Iterator[Rows]:
        """Chunks that end where the file's own chunks end, so that none of those is read twice."""
        first = next(row_shares(start, stop, samples.n_columns))
        rows = self.chunk_bytes // (samples.u.row_bytes + samples.x.row_bytes)
        rows = max(rows, self.share_rows or first[1] - first[0])
        stored = max(samples.u.chunk_rows, samples.x.chunk_rows)
        rows -= rows % stored if rows >= stored else 0
        offset = samples.x.source_rows(0, 1)[0] % rows
        return pairwise([start, *range(start - (start + offset) % rows + rows, stop, rows), stop])

    def _calls(self, samples: Samples, work: Work, parts: Parts, threads: int) -> Calls:
        """What to do, share by share: the number of the whole, of rows, and a call that does the work.

        Rows that are in memory are one chunk per part; of others the next chunk is read while one is worked on. A chunk
        is cut into equal shares, a multiple of what keeps all threads equally busy, or fewer where they would not be
        worth a task.
        """
        busy = threads // gcd(threads, len(parts) if samples.in_memory else 1)
        least = LEAST_NUMBERS // (samples.n_columns + len(samples.basis)) + 1
        if samples.basis.memory:  # the history in front of each share is read and transformed again
            least = max(least, samples.basis.tile_samples)
        chunks: Calls = ((number, 0, partial(samples.part, *rows)) for number, rows in parts)
        if not samples.in_memory:
            cuts = [(number, rows) for number, part in parts for rows in self._cuts(samples, *part)]
            reads = ((number, 0, samples.part(*rows).held) for number, rows in cuts)
            reader = ThreadPoolExecutor(
                1, thread_name_prefix="infocap-read"
            )  # ends when nobody refers to it
            chunks = _on_pool(reader, reads, ahead=2)
        for number, _, held in chunks:
            chunk = held()
            n = chunk.n_samples
            longest = LONGEST_SHARE * next(row_shares(0, n, chunk.n_columns))[1]
            count = min(-(-n // (busy * longest)) * busy, max(n // least, 1))
            if chunk.x.on_device:  # which wants few and large steps
                count = 1
            elif self.share_rows is not None:
                count = -(-n // self.share_rows)
            for start, stop in pairwise(n * share // count for share in range(count + 1)):
                yield number, stop - start, partial(work, chunk, start, stop)

    def _elsewhere(self, samples: Samples, work: Work, merge: Merge, parts: Parts) -> Calls:
        """One contiguous share per worker of an executor; a file travels as its name."""
        tasks = _equal(parts, n_slots(self.executor))
        if not isinstance(self.executor, ThreadPoolExecutor):
            _refuse_unpicklable(work, merge, samples.part(0, 1))
        futures: list[Future[Any]] = []
        try:
            for _, rows in tasks:
                futures.append(
                    self.executor.submit(_share, samples.part(*rows), work, merge, self._alone)
                )
            for (number, (start, stop)), future in zip(tasks, futures, strict=True):
                future.result()  # waits for it, and raises here what went wrong there
                yield number, stop - start, future.result
        except BrokenExecutor as problem:
            problem.add_note("A worker ended before its work was done, perhaps for want of memory.")
            raise
        except RuntimeError as problem:
            if "shutdown" in str(problem):
                raise ParameterError(
                    "the executor was shut down, perhaps by its with block; make a new one."
                ) from None
            raise
        finally:
            for future in futures:
                future.cancel()

    def _on_dask(self, samples: Samples, work: Work, merge: Merge, parts: Parts) -> list[Any]:
        """Shares as delayed tasks, merged in a tree where they were computed; dask arrays stay on the cluster.

        Dask brings each task to the worker that holds its rows, and repeats what is lost with a worker.
        """
        from dask.delayed import delayed
        from distributed import wait

        client, wholes = self.executor, dict[int, list[Any]]()
        _refuse_idle(client)
        sent_work = client.scatter(work, hash=False, broadcast=True)
        for number, rows in _equal(parts, n_slots(client)):
            part = samples.part(*rows)
            lazy = {name: getattr(part, name).lazy for name in ("u", "x")}
            there = {name: array for name, array in lazy.items() if array is not None}
            part = replace(part, **{name: getattr(part, name).without_rows() for name in there})
            sent = client.scatter(part, hash=False) if part.in_memory else part
            share = delayed(_share, pure=False)(sent, sent_work, merge, self._alone, **there)
            wholes.setdefault(number, []).append(share)
        for shares in wholes.values():
            while len(shares) > 1:
                pairs = [shares[place : place + 2] for place in range(0, len(shares), 2)]
                shares[:] = [
                    delayed(merge, pure=False)(*pair) if len(pair) == 2 else pair[0]
                    for pair in pairs
                ]
        futures = client.compute([root for (root,) in wholes.values()])
        while any(future.status == "pending" for future in futures):
            with suppress(TimeoutError):
                wait(futures, timeout=LOOK_S)  # type: ignore[no-untyped-call]
            _refuse_idle(client)
        return list(client.gather(futures))


def _refuse_idle(client: Any) -> None:
    """Refuse to wait for a Dask cluster when of the workers that have tasks, or of all, none is at work."""

    def idle(dask_scheduler: Any) -> list[str]:
        import time

        workers = list(dask_scheduler.workers.values())
        busy = [one for one in workers if one.processing] or workers
        now = time.time()
        at_work = [
            one for one in busy if one.status.name == "running" and now - one.last_seen < silent_s
        ]
        return [] if at_work else [f"{one.address} ({one.status.name})" for one in busy]

    silent_s = SILENT_S  # a variable of this function travels to the scheduler with it
    found: list[str] = []
    for _ in range(10):  # a worker may pause for a moment
        found = client.run_on_scheduler(idle)
        if not found:
            return
        sleep(silent_s / 10)
    said = (
        f"the workers of the Dask cluster that have the work do not go on: {', '.join(found[:5])}"
    )
    raise ParameterError(
        f"{said}; a worker pauses when its memory is full: free it, or start the worker again."
    )


def _share(part: Samples, work: Work, merge: Merge, engine: Engine, **rows: Any) -> Any:
    """Do a share of the work in a worker, with the rows that a cluster computed for it, if there are any."""
    return engine.fold(part.held(**rows) if rows else part, work, merge)


def _on_pool(pool: ThreadPoolExecutor, calls: Calls, ahead: int) -> Calls:
    """Calls made by threads of this process, in order, never more than so many under way."""
    waiting = deque[tuple[int, int, Future[Any]]]()
    try:
        for number, rows, call in calls:
            waiting.append((number, rows, pool.submit(call)))
            if len(waiting) >= ahead:
                number, rows, future = waiting.popleft()
                yield number, rows, future.result
        while waiting:
            number, rows, future = waiting.popleft()
            yield number, rows, future.result
    finally:
        for _, _, future in waiting:
            future.cancel()


def _equal(parts: Parts, slots: int) -> Parts:
    """Shares of all parts, so many that together they keep every worker equally busy."""
    count = slots // gcd(slots, len(parts))
    edges = [
        (k, sorted({a + (b - a) * share // count for share in range(count + 1)}))
        for k, (a, b) in parts
    ]
    return [(number, rows) for number, cuts in edges for rows in pairwise(cuts)]


def _refuse_unpicklable(work: Work, merge: Merge, row: Samples) -> None:
    """Try with one row what will be sent: an executor that fails to pickle says little."""
    try:
        pickle.dumps((work, merge, row))
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        raise ParameterError(
            f"this job cannot be sent to other processes ({' '.join(str(problem).split())}); use a "
            "ThreadPoolExecutor, or a basis and data that can be pickled."
        ) from None


def chosen_executor(executor: Any, *sources: Any) -> Any:
    """The executor or Dask client that was given, or the client of the cluster that computes the sources, if any."""
    if executor is not None:
        if isinstance(executor, Executor) or is_client(executor):
            return executor
        raise ParameterError(
            f"`executor={executor!r}` must be a concurrent.futures.Executor or a dask.distributed.Client."
        )
    if "distributed" not in sys.modules or not any(is_dask(source) for source in sources):
        return None
    try:
        return sys.modules["distributed"].default_client()
    except ValueError:
        return None


def is_client(executor: Any) -> bool:
    """Whether an executor is the client of a Dask cluster."""
    return type(executor).__module__.split(".")[0] == "distributed" and hasattr(
        executor, "get_executor"
    )


def n_slots(executor: Any) -> int:
    """How many tasks an executor works on at a time."""
    if is_client(executor):
        if not executor.nthreads():
            try:
                executor.wait_for_workers(1, timeout=WORKER_WAIT_S)
            except TimeoutError:
                address = executor.scheduler.address
                raise ParameterError(
                    f"Dask cluster {address} has no workers; run `dask worker {address}`."
                ) from None
        return sum(executor.nthreads().values())
    known = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None)
    return int(known or cpu_count() or 1)


@contextmanager
def _bar(rows: int) -> Iterator[Callable[[int], object]]:
    """A progress bar on a terminal, for passes that turn out to be long; gives what counts rows."""
    from tqdm.auto import tqdm

    with tqdm(total=rows, unit=" rows", unit_scale=True, delay=BAR_DELAY_S, leave=False) as bar:
        yield bar.update
