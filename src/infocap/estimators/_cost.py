"""What an estimation costs: its time, its memory, and how it is kept within a memory limit."""

import re
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from .._formatting import memory_size
from .._threads import all_cores
from .._validation import shown
from ..basis import ProductBasis
from ..diagnostics import MAX_ROWS, MAX_ROWS_FROM_FILES, N_LOW_FUNCTIONS
from ..errors import ParameterError
from ..samples import Engine, Samples, choose_executor, count_task_slots, rows_per_block
from ..typing import ArrayLike
from ._method import Method

# Floating-point operations per second that any machine in use can do.
MIN_FLOPS_PER_SECOND = 2e10
# Bytes besides the data that go with every sample, as measured for a million samples
# (benchmarks/core.py).
BYTES_PER_SAMPLE = 10.0
BYTES_PER_NUMBER = 8.0
# The smallest memory limit that makes sense.
MIN_MEMORY_LIMIT = 1_000_000
# Bytes of each unit that a user may write, in capitals; KB are thousands, KIB powers of two.
BYTES_PER_UNIT = {
    "": 1,
    "B": 1,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
# A number with a decimal point and an exponent, and perhaps a unit: "512MiB", "1.5 GB", "2e9".
MEMORY_PATTERN = r"(\d+(?:\.\d*)?(?:E\+?\d+)?)([KMGT]?I?B)?"

# Arrays of (readouts, functions) that stay: summaries of the whole and of both halves, and
# coordinates that are computed from them.
N_LASTING_ARRAYS = 6
# Arrays of (readouts, functions) for each thread: two sums that wait to be added, one under way,
# and its ingredients.
N_ARRAYS_PER_THREAD = 6
# Arrays of (readouts, functions) in the forecast of `infocap plan`: the summaries alone.
N_SUMMARY_ARRAYS = 4
# Copies of a block of readouts: as read, as numbers, as prepared, and what is computed from it.
N_BLOCK_COPIES = 5
# Chunks of rows as read: one under way, one just done, the next one, one being converted, one that
# Python has not freed yet.
N_CHUNKS = 5
# Longer chunks are not read faster.
MAX_CHUNK_BYTES = 256_000_000
# Bytes of values of the basis that are computed at a time.
BASIS_BLOCK_BYTES = 12_000_000
# Copies of times and of weights.
N_COPIES_PER_ROW = 3.0
# Copies of readouts with repeats: they are compared in memory.
N_COPIES_OF_REPEATS = 6
# Bytes per number of the rows that the data checks look at: double and single precision.
CHECK_BYTES_PER_NUMBER = 12.0


@dataclass(frozen=True)
class Cost:
    """What an estimation takes at most."""

    seconds: float  # on a slow machine
    n_bytes: float  # of memory, besides the data


def forecast_cost(basis: ProductBasis, n_samples: int, n_columns: int, method: Method) -> Cost:
    """Return the time and the memory that an estimation takes at most.

    Parameters
    ----------
    basis
        The functions.
    n_samples
        Number of samples.
    n_columns
        Number of readouts, the constant included.
    method
        The method, which may need more than the passes over the data.
    """
    n_terms = len(basis)
    n_bytes = (
        BYTES_PER_NUMBER * N_SUMMARY_ARRAYS * n_columns * n_terms
        + BASIS_BLOCK_BYTES
        + BYTES_PER_SAMPLE * n_samples
        + method.extra_bytes(n_samples, n_columns, n_terms, 1)
    )
    # Sums of products take two operations for each product; three times that is on the safe side.
    n_operations = 3 * 2.0 * n_samples * n_columns * (n_columns + n_terms)
    n_operations += method.extra_work(n_samples, n_columns, n_terms)
    return Cost(n_operations / MIN_FLOPS_PER_SECOND, n_bytes)


def parse_memory_limit(memory_limit: Any) -> int:
    """Return the number of bytes that a user means by "1GB", "512 MiB" or a number.

    >>> parse_memory_limit("1.5GB")
    1500000000
    """
    text = str(memory_limit).strip().upper().replace(" ", "")
    match = re.fullmatch(MEMORY_PATTERN, text)
    unit = (match[2] or "") if match else ""
    if isinstance(memory_limit, bool) or match is None or unit not in BYTES_PER_UNIT:
        raise ParameterError(
            f"`memory_limit={shown(memory_limit)}` is no amount of memory; give bytes, or a text, "
            "'512MB' or '2GiB'."
        )
    n_bytes = int(float(match[1]) * BYTES_PER_UNIT[unit])
    if n_bytes < MIN_MEMORY_LIMIT:
        raise ParameterError(
            f"`memory_limit={shown(memory_limit)}` is less than 1 MB, too little for anything; "
            "give more."
        )
    return n_bytes


def make_engine(u: ArrayLike, x: ArrayLike, executor: Any, memory_limit: Any) -> Engine:
    """Return the engine that goes through the rows of u and x, as `estimate` was told to do it."""
    chosen_executor = choose_executor(executor, u, x)
    if memory_limit is None:
        return Engine(chosen_executor)
    return Engine(chosen_executor, parse_memory_limit(memory_limit))


@dataclass(frozen=True)
class _MemoryNeeds:
    """The memory that an estimation takes, as far as it can be computed before it begins."""

    samples: Samples
    n_columns: int  # readouts with the constant
    method: Method | None

    @property
    def block_rows(self) -> int:
        """Rows that a thread prepares at a time."""
        return rows_per_block(self.samples.n_samples, self.n_columns)

    @property
    def min_chunk_bytes(self) -> float:
        """Bytes of the smallest chunks of rows that are read from files."""
        if self.samples.in_memory:
            return 0.0
        row_bytes = self.samples.u.row_bytes + self.samples.x.row_bytes
        return float(N_CHUNKS * self.block_rows * row_bytes)

    @property
    def row_values_bytes(self) -> float:
        """Bytes of what belongs to each row and stays in memory."""
        samples = self.samples
        n_bytes = 0.0
        for values in (samples.time, samples.sqrt_sample_weight):
            if values is not None:
                n_bytes += N_COPIES_PER_ROW * values.nbytes
        if samples.repeats is not None:
            n_numbers = samples.n_samples * samples.x.shape[1]
            n_bytes += N_COPIES_OF_REPEATS * BYTES_PER_NUMBER * n_numbers
        if samples.n_omitted_rows:
            n_bytes += BYTES_PER_SAMPLE * samples.n_samples
        return n_bytes

    @property
    def check_bytes(self) -> float:
        """Bytes that the data checks take, after the passes over the rows."""
        n_rows = min(
            MAX_ROWS if self.samples.in_memory else MAX_ROWS_FROM_FILES, self.samples.n_samples
        )
        return CHECK_BYTES_PER_NUMBER * n_rows * (self.n_columns + N_LOW_FUNCTIONS)

    def total(self, n_threads: int, n_terms: int) -> float:
        """Return the bytes of everything together, with the smallest possible chunks."""
        array_bytes = BYTES_PER_NUMBER * self.n_columns * (self.n_columns + n_terms)
        block_bytes = BYTES_PER_NUMBER * self.n_columns * self.block_rows
        thread_bytes = (
            N_ARRAYS_PER_THREAD * array_bytes + BASIS_BLOCK_BYTES + N_BLOCK_COPIES * block_bytes
        )
        method_bytes = 0.0
        if self.method is not None:
            n_samples = self.samples.n_samples
            method_bytes = self.method.extra_bytes(n_samples, self.n_columns, n_terms, n_threads)
        bytes_of_passes = n_threads * thread_bytes + self.min_chunk_bytes + method_bytes
        lasting_bytes = N_LASTING_ARRAYS * array_bytes + self.row_values_bytes
        return lasting_bytes + max(bytes_of_passes, self.check_bytes)


def fit_into_memory(
    engine: Engine, samples: Samples, constant: bool, method: Method | None
) -> Engine:
    """Return the engine with as many threads and as long chunks as its memory limit allows.

    A job that cannot fit is an error, which says how many functions would fit.
    """
    memory_limit = engine.memory_limit
    assert memory_limit is not None
    needs = _MemoryNeeds(samples, samples.x.shape[1] + constant, method)
    n_terms = len(samples.basis)

    # The threads of a pool share one memory and cannot be made fewer; processes have one thread.
    is_thread_pool = isinstance(engine.executor, ThreadPoolExecutor)
    with all_cores() as n_cores:
        max_threads = n_cores
    if is_thread_pool:
        max_threads = count_task_slots(engine.executor)
    elif engine.executor is not None:
        max_threads = 1
    n_threads = max_threads
    while n_threads > 0 and needs.total(n_threads, n_terms) > memory_limit:
        n_threads -= 1
    if n_threads == 0 or (is_thread_pool and n_threads < max_threads):
        raise _too_little_memory(needs, memory_limit, max_threads if is_thread_pool else 1)

    # `needs` counts the smallest chunks; what is left over makes them longer.
    bytes_for_chunks = memory_limit - needs.total(n_threads, n_terms) + needs.min_chunk_bytes
    n_readers = n_threads if is_thread_pool else 1
    chunk_bytes = min(bytes_for_chunks / (N_CHUNKS * n_readers), MAX_CHUNK_BYTES)
    return replace(engine, chunk_bytes=int(chunk_bytes), threads=n_threads)


def _too_little_memory(needs: _MemoryNeeds, memory_limit: int, n_threads: int) -> ParameterError:
    n_terms = len(needs.samples.basis)
    # The largest number of functions that fits on one thread, found by bisection.
    n_that_fit = bisect_left(
        range(1, n_terms + 1), True, key=lambda count: needs.total(1, count) > memory_limit
    )
    advice = "no basis would fit: allow that much memory"
    if n_that_fit:
        advice = (
            f"the first {n_that_fit:,} functions would fit: lower the degree, or cut with "
            "`max_interactions` or `index_set='hyperbolic'`, or allow that much memory"
        )
    return ParameterError(
        f"`memory_limit={memory_size(memory_limit)}` is too little for {needs.n_columns} readouts "
        f"and {n_terms:,} functions, which take {memory_size(needs.total(n_threads, n_terms))}; "
        f"{advice}."
    )
