"""What an estimation costs: time and memory foretold, and the share of a memory budget that each part gets."""

import re
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from .._threads import all_cores
from ..basis._product import ProductBasis
from ..diagnostics._stretch import FUNCTIONS, LONGEST, SHORT
from ..errors import ParameterError
from ..samples._engine import Engine, n_slots
from ..samples._samples import Samples, row_shares
from ._method import Method

# Floating-point operations per second that any machine in use can do.
SLOW_RATE = 2e10
# Bytes beside the data that go with every sample, as measured for a million of them (benchmarks/core.py).
BYTES_PER_SAMPLE = 10.0
UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
# Arrays of (readouts, terms) that are kept: summaries of the whole and of both halves, and coordinates made of them.
KEPT = 6
# The same for each thread: two sums that wait to be added up, one under way and what it is made of.
PER_THREAD = 6
# Copies of a share of the readouts: as read, as numbers, as prepared, and what is made of it on the way.
COPIES = 5
# Chunks of rows as read: one under way, one just done, the next one, one being unpacked, one not yet reused.
CHUNKS = 5
# Bytes of the longest chunk; longer ones are not read faster.
LARGEST_CHUNK = 256_000_000
# Bytes of the basis's values that are made at a time.
VALUES_BYTES = 12_000_000


def cost(
    basis: ProductBasis, n_samples: int, n_columns: int, method: Method
) -> tuple[float, float]:
    """Seconds on a slow machine and bytes that an estimation takes at most; the constant is one of the columns."""
    n, k, terms = n_samples, n_columns, len(basis)
    n_bytes = (
        8.0 * 4 * k * terms
        + VALUES_BYTES
        + BYTES_PER_SAMPLE * n
        + method.extra_bytes(n, k, terms, 1)
    )
    return (6.0 * n * k * (k + terms) + method.extra_work(n, k, terms)) / SLOW_RATE, n_bytes


def byte_count(memory: Any) -> int:
    """A number of bytes from "1GB", "512 MiB" or a number."""
    text = str(memory).strip().upper().replace(" ", "")
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:E\+?\d+)?)([KMGT]?I?B)?", text)
    if isinstance(memory, bool) or found is None or (found[2] or "") not in UNITS:
        raise ParameterError(
            f"`memory_limit={memory!r}` is no amount of memory; give bytes, or a text, '512MB' or '2GiB'."
        )
    n_bytes = int(float(found[1]) * UNITS[found[2] or ""])
    if n_bytes < 1_000_000:
        raise ParameterError(
            f"`memory_limit={memory!r}` is less than 1 MB, too little for anything; give more."
        )
    return n_bytes


def within_memory(
    engine: Engine, samples: Samples, constant: bool, method: Method | None
) -> Engine:
    """The engine with threads and chunks that keep its memory budget; an error says what would do."""
    memory, executor = engine.memory_limit, engine.executor
    assert memory is not None
    n, k, all_terms = samples.n_samples, samples.x.shape[1] + constant, len(samples.basis)
    start, stop = next(row_shares(0, n, k))
    row_bytes = samples.u.row_bytes + samples.x.row_bytes
    chunks = 0.0 if samples.in_memory else CHUNKS * (stop - start) * row_bytes
    held = 3.0 * sum(one.nbytes for one in (samples.time, samples.root_weights) if one is not None)
    held += 0.0 if samples.repeats is None else 6 * 8.0 * n * samples.x.shape[1]
    held += BYTES_PER_SAMPLE * n * bool(samples.n_dropped)

    def needed(threads: int, terms: int = all_terms) -> float:
        one = 8.0 * k * (k + terms)  # array of readouts and terms
        per_thread = PER_THREAD * one + VALUES_BYTES + COPIES * 8.0 * k * (stop - start)
        extra = 0.0 if method is None else method.extra_bytes(n, k, terms, threads)
        checks = (
            12.0 * min(LONGEST if samples.in_memory else SHORT, n) * (k + FUNCTIONS)
        )  # when all else is done
        return KEPT * one + held + max(threads * per_thread + chunks + extra, checks)

    shared = isinstance(executor, ThreadPoolExecutor)  # one memory for all its workers
    with all_cores() as cores:
        most = n_slots(executor) if shared else 1 if executor is not None else cores
    fitting = [count for count in range(1, most + 1) if needed(count) <= memory]
    if not fitting or (fitting[-1] < most and shared):
        room = bisect_left(
            range(1, all_terms + 1), True, key=lambda terms: needed(1, terms) > memory
        )
        advice = (
            f"the first {room:,} functions would fit: lower the degree, or cut with `max_interactions` or "
            "`index_set='hyperbolic'`, or allow that much memory"
            if room
            else "no basis would fit: allow that much memory"
        )
        raise ParameterError(
            f"`memory_limit={memory / 1e6:,.0f} MB` is too little for {k} readouts and {all_terms:,} functions, "
            f"which take {needed(most if shared else 1) / 1e6:,.0f} MB; {advice}."
        )
    left = memory - needed(fitting[-1]) + chunks
    chunk = left / (CHUNKS * (fitting[-1] if shared else 1))
    return replace(engine, chunk_bytes=int(min(chunk, LARGEST_CHUNK)), threads=fitting[-1])
