"""One path for all passes over the data: blocks on threads, stretches on an executor, the same answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Self, TypeVar

from ._heap import kept_memory
from ._parallel import all_cores, thread_pool
from ._spread import Stretch, spread
from ._table import Table

SLAB_BYTES = 64_000_000  # of rows read at a time, where memory= does not say otherwise
BLOCKS_A_TASK = 16  # at most; each thread adds up so many before it hands over the sum
TASKS_A_THREAD = 4  # at least, where there are blocks enough
BAR_DELAY_S = 2.0


class Job(ABC):
    """Work on the rows of some tables that can be done block by block and added up."""

    @property
    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Inputs and readouts, of equally many rows."""

    @abstractmethod
    def part(self, start: int, stop: int) -> Self:
        """The job for these rows alone, numbered from 0."""

    @abstractmethod
    def held(self) -> Self:
        """The job with its rows in memory."""

    @abstractmethod
    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of rows."""

    @abstractmethod
    def run(self, rows: tuple[int, int]) -> Any:
        """What one block adds."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """Two outcomes as one; the first may be used up."""

    def total(self, blocks: list[tuple[int, int]]) -> Any:
        """What several blocks add."""
        return reduce(self.merge, map(self.run, blocks))


J = TypeVar("J", bound=Job)


@dataclass(frozen=True)
class Passes:
    """How passes over the data are made: by whom, how much is read at a time, and whether a bar is shown."""

    executor: Any = None
    slab_bytes: int | None = None  # None: SLAB_BYTES
    threads: int | None = None  # None: all cores
    progress: bool = False
    memory: int | None = None  # bytes that the user allows, of which all this is a part

    def fold(self, job: Job, edges: Sequence[int]) -> list[Any]:
        """The outcome of the job for the rows between consecutive edges."""
        with _bar(self.progress, edges[-1] - edges[0]) as done:
            if self.executor is None:
                return self._here(job, edges, done)
            return spread(
                self.executor,
                job,
                edges,
                here=lambda stretch: self._here(job, stretch, done)[0],
                there=_Elsewhere(self.slab_bytes),
                done=done,
            )

    def slabs(self, job: J) -> Iterator[J]:
        """The job in stretches that are in memory, one after the other, for what cannot be added up."""
        if all(table.in_memory for table in job.tables):
            yield job
            return
        slabs = [(0, slab) for slab in self._slabs(job, 0, job.tables[0].shape[0])]
        yield from (held for _, held in _read_ahead(job, slabs))

    def _here(self, job: Job, edges: Sequence[int], done: Callable[[int], object]) -> list[Any]:
        """Threads take groups of blocks; outcomes are added up in the order of the rows."""
        stretches = list(pairwise(edges))
        totals: list[Any] = [None] * len(stretches)
        with all_cores() as cores:
            threads = self.threads or cores
            tasks = self._tasks(job, stretches, threads)
            for number, rows, outcome in _in_order(tasks, threads):
                whole = totals[number]
                totals[number] = outcome if whole is None else job.merge(whole, outcome)
                done(rows)
        return totals

    def _tasks(self, job: Job, stretches: list[Stretch], threads: int) -> Iterator[_Task]:
        """Groups of blocks, read ahead where they are not in memory."""
        if all(table.in_memory for table in job.tables):
            pieces = [(number, list(job.pieces(*rows))) for number, rows in enumerate(stretches)]
            size = _group(sum(len(blocks) for _, blocks in pieces), threads)
            for number, blocks in pieces:
                yield from (_Task(number, job, group) for group in _groups(blocks, size))
            return
        slabs = [(number, slab) for number, rows in enumerate(stretches) for slab in self._slabs(job, *rows)]
        for number, held in _read_ahead(job, slabs):
            blocks = list(held.pieces(0, held.tables[0].shape[0]))
            size = max(1, min(BLOCKS_A_TASK, -(-len(blocks) // threads)))
            yield from (_Task(number, held, group) for group in _groups(blocks, size))

    def _slabs(self, job: Job, start: int, stop: int) -> Iterator[Stretch]:
        """Stretches to read at once, cut where the files are cut into chunks, so that none is read twice."""
        row_bytes = sum(table.row_bytes for table in job.tables)
        block = next(iter(job.pieces(start, stop)))
        rows = max((self.slab_bytes or SLAB_BYTES) // row_bytes, block[1] - block[0])
        chunk = max(table.chunk_rows for table in job.tables)
        rows -= rows % chunk if rows >= chunk else 0
        offset = job.tables[-1].source_rows(0, 1)[0] % rows
        edges = [start, *range(start - (start + offset) % rows + rows, stop, rows), stop]
        return pairwise(edges)


@dataclass(frozen=True)
class _Task:
    """Some blocks of one stretch."""

    number: int
    job: Job
    blocks: list[tuple[int, int]]

    def __call__(self) -> tuple[int, int, Any]:
        rows = self.blocks[-1][1] - self.blocks[0][0]
        return self.number, rows, self.job.total(self.blocks)


@dataclass(frozen=True)
class _Elsewhere:
    """A pass over one stretch in a worker, which has a single core for it."""

    slab_bytes: int | None

    def __call__(self, job: Job) -> Any:
        edges = (0, job.tables[0].shape[0])
        with kept_memory():
            return Passes(slab_bytes=self.slab_bytes, threads=1).fold(job, edges)[0]


def _in_order(tasks: Iterator[_Task], threads: int) -> Iterator[tuple[int, int, Any]]:
    """The tasks' outcomes in order, with never more than two tasks a thread under way."""
    if threads <= 1:
        yield from (task() for task in tasks)
        return
    pool = thread_pool(threads)
    waiting: deque[Future[tuple[int, int, Any]]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(task))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in waiting:
            one.cancel()


def _read_ahead(job: J, slabs: Sequence[tuple[int, Stretch]]) -> Iterator[tuple[int, J]]:
    """Each stretch with its rows in memory; the next one is read while this one is computed."""
    reader = ThreadPoolExecutor(1, thread_name_prefix="infocap-read")

    def begin(number: int) -> Future[J]:
        return reader.submit(lambda: job.part(*slabs[number][1]).held())

    try:
        coming = begin(0)
        for place, (number, _) in enumerate(slabs):
            held = coming.result()
            if place + 1 < len(slabs):
                coming = begin(place + 1)
            yield number, held
            del held
    finally:
        reader.shutdown(wait=False, cancel_futures=True)


def _group(n_blocks: int, threads: int) -> int:
    """Blocks that one task adds up: enough to spare sums, few enough to keep all threads busy."""
    return max(1, min(BLOCKS_A_TASK, n_blocks // (TASKS_A_THREAD * threads)))


def _groups(blocks: list[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    return (blocks[begin : begin + size] for begin in range(0, len(blocks), size))


@contextmanager
def _bar(wanted: bool, rows: int) -> Iterator[Callable[[int], object]]:
    """A progress bar on a terminal, for passes that turn out to be long; gives what counts rows."""
    if not wanted:
        yield partial(int)
        return
    from tqdm import tqdm

    with tqdm(total=rows, unit=" rows", unit_scale=True, delay=BAR_DELAY_S, leave=False, disable=None) as bar:
        yield bar.update
