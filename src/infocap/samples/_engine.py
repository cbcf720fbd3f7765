"""Engine.fold: map-reduce over the rows of a data set. All sums over rows are computed with it.

A job is a function `work(samples, start, stop)`, which returns what it computes from some rows, and
a function `merge(a, b)`, which joins what was computed from two ranges of rows that follow each
other. `Engine.fold` applies the work to shares of the rows and merges the outcomes in the order of
the rows. The engine decides where the shares are computed: on the threads of this process, an
executor of `concurrent.futures`, a Dask cluster, or a graphics card that holds the arrays.

A job is the same function in all these cases, and for rows in memory or in files. Rows of files are
read in chunks, ahead of the work, so that data may be larger than memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import gcd
from operator import add
from typing import Any

from .._threads import all_cores, thread_pool
from ..errors import ParameterError
from ._dask import fold_on_cluster, is_dask_client
from ._executors import RowTask, count_task_slots, refuse_unpicklable, run_ahead
from ._rows import Segment, balance, ceil_divide, cut_at_runs, divide, rows_per_block
from ._samples import Samples

# Bytes of rows read from disk at a time where `memory_limit` does not say otherwise: long enough
# for a disk to run at full speed, short enough that reading, computing and a chunk read ahead stay
# below 0.5 GB.
DEFAULT_CHUNK_BYTES = 64_000_000
# Chunks that are being read, or wait to be worked on.
CHUNKS_READ_AHEAD = 2
# Readouts and values of functions in a share, below which starting it costs more in Python than
# spreading the work over cores spares.
MIN_NUMBERS_PER_SHARE = 2_500_000
# Products of a readout with another one or a function, in a share of very many readouts: there
# few rows take long enough.
MIN_PRODUCTS_PER_SHARE = 2_000_000_000
# Blocks in a share: longer ones make the progress bar stand still.
MAX_BLOCKS_PER_SHARE = 16
# Shares that wait or are computed, for each thread.
SHARES_PER_THREAD = 2
# Bytes of a share of rows of very many channels, at most, unless one row is longer.
MAX_BYTES_PER_WIDE_SHARE = 32_000_000
# Seconds after which a progress bar appears.
PROGRESS_BAR_DELAY_S = 2.0

Work = Callable[[Samples, int, int], Any]
Merge = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Engine:
    """How to go through the rows of a data set: who computes, and how much is in memory at a time.

    Parameters
    ----------
    executor
        A `concurrent.futures.Executor`, a `dask.distributed.Client`, or None for the threads of
        this process.
    memory_limit
        Bytes of memory that the user allows, or None. The engine itself only passes it on:
        `estimators` derives `chunk_bytes` and `threads` from it.
    chunk_bytes
        Bytes of rows that are read from a file at a time.
    threads
        Number of threads; None: one for each core.
    share_rows
        Rows of a share; None: as many as keep all cores busy.
    """

    executor: Any = None
    memory_limit: int | None = None
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    threads: int | None = None
    share_rows: int | None = None

    def fold(
        self, samples: Samples, work: Work, merge: Merge = add, edges: Sequence[int] | None = None
    ) -> Any:
        """Apply `work` to shares of the rows, and merge the outcomes in the order of the rows.

        Parameters
        ----------
        samples
            The rows.
        work
            Function of samples and a range of their rows, ``work(samples, start, stop)``. It may
            be called with samples that are only a part of the data set; `samples.first_row` then
            says where that part begins. No range crosses an edge, nor does it cross from one run
            of a sequence to the next. The work must not return None.
        merge
            Function of two outcomes, the first from the rows in front of those of the second; by
            default their sum. It must be associative; it need not be commutative.
        edges
            Strictly increasing row numbers. With them there is one outcome for the rows between
            each two consecutive edges, still from a single pass; rows outside the edges are not
            visited. Sums over the first n rows, for several n, are running totals of these
            outcomes.

        Returns
        -------
        The outcome of all rows; with `edges` a list of outcomes, one fewer than there are edges.

        Notes
        -----
        `work` and `merge` must be picklable where other processes compute: functions of a module
        are, and so is `functools.partial` of such a function.

        Examples
        --------
        >>> import numpy as np
        >>> import infocap
        >>> from infocap.samples import Engine, Samples
        >>> u = np.linspace(-1, 1, 100)[:, None]
        >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
        >>> samples = Samples.of(u, u**2, basis)
        >>> def sum_of_readouts(samples, start, stop):
        ...     return samples.x.read(start, stop).sum()
        >>> print(Engine().fold(samples, sum_of_readouts).round(2))
        34.01
        >>> halves = Engine().fold(samples, sum_of_readouts, edges=[0, 50, 100])
        >>> print(np.cumsum(halves).round(2))
        [17.   34.01]
        """
        intervals = [(0, samples.n_samples)] if edges is None else list(pairwise(edges))
        segments = cut_at_runs(intervals, samples.runs)
        if is_dask_client(self.executor):
            outcomes = self._fold_on_cluster(samples, work, merge, segments)
        else:
            outcomes = self._fold_in_order(samples, work, merge, segments, len(intervals))
        return outcomes[0] if edges is None else outcomes

    def _fold_in_order(
        self,
        samples: Samples,
        work: Work,
        merge: Merge,
        segments: Sequence[Segment],
        n_intervals: int,
    ) -> list[Any]:
        """Merge the outcomes of all tasks, here and in the order of the rows."""
        outcomes: list[Any] = [None] * n_intervals
        n_rows = sum(segment.n_rows for segment in segments)
        with _progress_bar(n_rows) as count_rows, all_cores() as n_cores:
            if self.executor is not None:
                tasks = self._tasks_of_executor(samples, work, merge, segments)
            else:
                tasks = self._tasks_of_threads(samples, work, segments, n_cores)
            for task in tasks:
                outcome = task.result()
                previous = outcomes[task.interval]
                if previous is not None:
                    outcome = merge(previous, outcome)
                outcomes[task.interval] = outcome
                count_rows(task.n_rows)
        return outcomes

    def for_wide_rows(self, n_columns: int) -> Engine:
        """Return an engine whose shares are short enough for rows of very many columns.

        Usually shares are much taller than wide, which makes sums of products efficient. Of more
        channels than samples that would be all rows at once.
        """
        n_bytes = min(MAX_BYTES_PER_WIDE_SHARE, self.chunk_bytes)
        return replace(self, share_rows=max(n_bytes // (8 * n_columns), 1))

    @property
    def merges_here(self) -> bool:
        """Whether outcomes are merged in this process: a merge may then change its arguments."""
        return not is_dask_client(self.executor)

    # On the threads of this process.

    def _tasks_of_threads(
        self, samples: Samples, work: Work, segments: Sequence[Segment], n_cores: int
    ) -> Iterator[RowTask]:
        n_threads = self.threads or n_cores
        if samples.x.on_device:
            n_threads = 1
        tasks = self._shares(samples, work, segments, n_threads)
        if n_threads == 1:
            return tasks
        return run_ahead(thread_pool(n_threads), tasks, SHARES_PER_THREAD * n_threads)

    def _shares(
        self, samples: Samples, work: Work, segments: Sequence[Segment], n_threads: int
    ) -> Iterator[RowTask]:
        """Yield the work on one share of the rows after the other.

        Rows in memory are a single chunk per segment. Each chunk is cut into equal shares.
        """
        if samples.in_memory:
            chunks = _chunks_in_memory(samples, segments)
            # With several segments at hand, fewer shares of each are enough to occupy all threads.
            shares_per_round = n_threads // gcd(n_threads, len(segments))
        else:
            chunks = self._read_chunks(samples, segments)
            shares_per_round = n_threads
        for task in chunks:
            chunk = task.result()
            count = self._n_shares(chunk, shares_per_round)
            for start, stop in divide(0, chunk.n_samples, count):
                yield RowTask(task.interval, stop - start, partial(work, chunk, start, stop))

    def _n_shares(self, chunk: Samples, shares_per_round: int) -> int:
        """Return into how many shares a chunk is cut.

        That is a multiple of what keeps all threads equally busy, such that no share is too long to
        see progress; or fewer where shares would be too short to be worth a task.
        """
        n_rows = chunk.n_samples
        if chunk.x.on_device:
            return 1  # A card wants few and large steps.
        if self.share_rows is not None:
            return ceil_divide(n_rows, self.share_rows)

        numbers_per_row = chunk.n_columns + len(chunk.basis)
        products_per_row = chunk.n_columns * numbers_per_row
        min_rows = 1 + min(
            MIN_NUMBERS_PER_SHARE // numbers_per_row, MIN_PRODUCTS_PER_SHARE // products_per_row
        )
        if chunk.basis.memory:
            # The history in front of each share is read and transformed again.
            min_rows = max(min_rows, chunk.basis.tile_samples)
        max_rows = MAX_BLOCKS_PER_SHARE * rows_per_block(n_rows, chunk.n_columns)
        n_rounds = ceil_divide(n_rows, shares_per_round * max_rows)
        return min(n_rounds * shares_per_round, max(n_rows // min_rows, 1))

    def _read_chunks(self, samples: Samples, segments: Sequence[Segment]) -> Iterator[RowTask]:
        """Yield chunks of rows, whose results are samples in memory, and read ahead of the work."""

        def reads() -> Iterator[RowTask]:
            for segment in segments:
                for start, stop in self._cut_into_chunks(samples, segment):
                    # A task of 0 rows: rows count as done when they were worked on, not when read.
                    yield RowTask(segment.interval, 0, samples.slice_rows(start, stop).load)

        # The thread of the reader ends when nothing refers to it any more.
        reader = ThreadPoolExecutor(1, thread_name_prefix="infocap-read")
        return run_ahead(reader, reads(), CHUNKS_READ_AHEAD)

    def _cut_into_chunks(self, samples: Samples, segment: Segment) -> Iterator[tuple[int, int]]:
        """Cut a segment where the file's own chunks end, so that none of those is read twice."""
        n_rows = self.chunk_bytes // (samples.u.row_bytes + samples.x.row_bytes)
        min_rows = self.share_rows or rows_per_block(segment.n_rows, samples.n_columns)
        n_rows = max(n_rows, min_rows)
        n_stored = max(samples.u.rows_per_stored_chunk, samples.x.rows_per_stored_chunk)
        if n_rows >= n_stored:
            n_rows -= n_rows % n_stored

        first_row_in_file, _ = samples.x.source_range(0, 1)
        rows_into_chunk = (segment.start + first_row_in_file) % n_rows
        second_chunk = segment.start - rows_into_chunk + n_rows
        cuts = range(second_chunk, segment.stop, n_rows)
        return pairwise([segment.start, *cuts, segment.stop])

    # On other workers.

    @property
    def _worker_engine(self) -> Engine:
        """The engine of a single worker, which has one thread."""
        return Engine(chunk_bytes=self.chunk_bytes, threads=1, share_rows=self.share_rows)

    def _tasks_of_executor(
        self, samples: Samples, work: Work, merge: Merge, segments: Sequence[Segment]
    ) -> Iterator[RowTask]:
        """Yield one contiguous share per worker of an executor; a file travels as its name."""
        shares = balance(segments, count_task_slots(self.executor))
        if not isinstance(self.executor, ThreadPoolExecutor):
            refuse_unpicklable((work, merge, samples.slice_rows(0, 1)))
        futures: list[Future[Any]] = []
        try:
            for share in shares:
                rows = samples.slice_rows(share.start, share.stop)
                future = self.executor.submit(_fold_share, rows, work, merge, self._worker_engine)
                futures.append(future)
            for share, future in zip(shares, futures, strict=True):
                future.result()  # Waits; an error of the worker is raised here.
                yield RowTask(share.interval, share.n_rows, future.result)
        except BrokenExecutor as error:
            error.add_note("A worker ended before its work was done, perhaps for want of memory.")
            raise
        except RuntimeError as error:
            if "shutdown" not in str(error):
                raise
            raise ParameterError(
                "the executor was shut down, perhaps by its with block; make a new one."
            ) from None
        finally:
            for future in futures:
                future.cancel()

    def _fold_on_cluster(
        self, samples: Samples, work: Work, merge: Merge, segments: Sequence[Segment]
    ) -> list[Any]:
        shares = balance(segments, count_task_slots(self.executor))
        fold_share = partial(_fold_share, merge=merge, engine=self._worker_engine)
        return fold_on_cluster(
            self.executor, samples, shares, fold_share=fold_share, work=work, merge=merge
        )


def _fold_share(
    samples: Samples, work: Work, merge: Merge, engine: Engine, u: Any = None, x: Any = None
) -> Any:
    """Do a share of the work in a worker.

    `u` and `x` are rows of dask arrays, which the cluster computed for this share.
    """
    if u is not None or x is not None:
        samples = samples.load(u, x)
    return engine.fold(samples, work, merge)


def _chunks_in_memory(samples: Samples, segments: Sequence[Segment]) -> Iterator[RowTask]:
    for segment in segments:
        slice_rows = partial(samples.slice_rows, segment.start, segment.stop)
        # A task of 0 rows, as for chunks that are read.
        yield RowTask(segment.interval, 0, slice_rows)


def _count_nothing(n_rows: int) -> None:
    """Stand for the progress bar where there is none."""


@contextmanager
def _progress_bar(n_rows: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal during a long pass; yields a function that counts rows."""
    if not sys.stderr.isatty():
        yield _count_nothing
        return
    from tqdm.auto import tqdm

    options = {"unit": " rows", "unit_scale": True, "leave": False}
    with tqdm(total=n_rows, delay=PROGRESS_BAR_DELAY_S, **options) as bar:
        yield bar.update
