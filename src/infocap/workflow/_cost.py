"""What an estimation costs: time and memory foretold, and the share of a memory budget that each part gets."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

from .._parallel import all_cores
from ..basis import ProductBasis
from ..errors import ParameterError
from ..estimators import ESTIMATORS, Method
from ..samples import Engine, Samples, in_this_process, n_slots, row_shares

# Floating-point operations per second that any machine in use can do.
SLOW_RATE = 2e10
# Bytes beside the data that go with every sample, as measured for a million of them (benchmarks/core.py).
BYTES_PER_SAMPLE = 10.0
UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
# Bytes below which nothing at all can be estimated.
LEAST_MEMORY = 1_000_000
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
# Bytes of the basis's values that are made at a time, and of the rows that the search for shifts looks at.
VALUES_BYTES, LAG_ROWS = 12_000_000, 1024


@dataclass(frozen=True)
class Cost:
    """What an estimation takes, at most: operations in passes over the data and besides, and memory."""

    in_passes: float
    besides: float
    n_bytes: float

    @property
    def seconds(self) -> float:
        """Time on a slow machine."""
        return (self.in_passes + self.besides) / SLOW_RATE


def cost(basis: ProductBasis, n_samples: int, n_columns: int, method: str) -> Cost:
    """Operations and memory of an estimation; `n_columns` counts the constant among the readouts."""
    n, k, terms, chosen = n_samples, n_columns, len(basis), ESTIMATORS[method]
    n_bytes = 8.0 * 4 * k * terms + VALUES_BYTES + BYTES_PER_SAMPLE * n + chosen.extra_bytes(n, k, terms)
    return Cost(6.0 * n * k * (k + terms), chosen.extra_work(n, k, terms), n_bytes)


def byte_count(memory: Any) -> int:
    """A number of bytes from "1GB", "512 MiB" or a number."""
    text = str(memory).strip().upper().replace(" ", "")
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:E\+?\d+)?)([KMGT]?I?B)?", text)
    if isinstance(memory, bool) or found is None or (found[2] or "") not in UNITS:
        raise ParameterError(
            f"`memory={memory!r}` is no amount of memory; give bytes, or a text such as '512MB', '1GB' or '2GiB'."
        )
    n_bytes = int(float(found[1]) * UNITS[found[2] or ""])
    if n_bytes < LEAST_MEMORY:
        raise ParameterError(f"`memory={memory!r}` is less than 1 MB, too little for anything; give more.")
    return n_bytes


@dataclass(frozen=True)
class _Needs:
    """Bytes that the passes over some samples take."""

    n_samples: int
    n_columns: int
    terms: int
    row_bytes: int  # of a row as it is stored; 0 for what is in memory already
    extra: float  # of what goes with the samples: weights, times, repeats

    @property
    def fixed(self) -> float:
        """Bytes that are needed whatever the threads and chunks."""
        lags = 16.0 * min(LAG_ROWS, self.n_samples) * self.terms
        return KEPT * self._summary + self.extra + lags

    @property
    def _summary(self) -> float:
        return 8.0 * self.n_columns * (self.n_columns + self.terms)

    @property
    def _share(self) -> int:
        start, stop = next(row_shares(0, self.n_samples, self.n_columns))
        return stop - start

    @property
    def per_thread(self) -> float:
        """Bytes that each thread needs for itself."""
        return PER_THREAD * self._summary + VALUES_BYTES + COPIES * 8.0 * self.n_columns * self._share

    def total(self, threads: int) -> float:
        """The least memory for this many threads."""
        return self.fixed + threads * self.per_thread + CHUNKS * self._share * self.row_bytes


def within_memory(
    engine: Engine, samples: Samples, constant: bool, method: Method | None, options: dict[str, Any]
) -> Engine:
    """The engine with threads and chunks that keep its memory budget; an error says what would do."""
    memory, executor = engine.memory, engine.executor
    assert memory is not None
    held = sum(one.nbytes for one in (samples.acquired, samples.root_weights) if one is not None)
    repeats = 0 if samples.repeats is None else 6 * 8 * samples.n_samples * samples.x.shape[1]
    needs = _Needs(
        samples.n_samples,
        samples.x.shape[1] + constant,
        len(samples.basis),
        0 if samples.in_memory else samples.row_bytes,
        3.0 * held + repeats + BYTES_PER_SAMPLE * bool(samples.n_dropped) * samples.n_samples,
    )
    with all_cores() as cores:
        most = n_slots(executor) if in_this_process(executor) else 1 if executor is not None else cores
    fitting = [count for count in range(1, most + 1) if needs.total(count) <= memory]
    if not fitting or (fitting[-1] < most and in_this_process(executor)):
        _refuse(memory, needs.total(most if in_this_process(executor) else 1), needs)
    if method is not None:
        _refuse_method(memory, needs, method, options)
    left = memory - needs.fixed - fitting[-1] * needs.per_thread
    chunks = CHUNKS * (fitting[-1] if in_this_process(executor) else 1)
    return replace(engine, chunk_bytes=int(min(left / chunks, LARGEST_CHUNK)), threads=fitting[-1])


def _refuse(memory: int, needed: float, needs: _Needs) -> None:
    """Say what the job needs, and how many functions the budget has room for."""
    fits = bisect_left(
        range(1, needs.terms + 1), True, key=lambda terms: replace(needs, terms=terms).total(1) > memory
    )
    advice = (
        f"the first {fits:,} functions would fit: lower the degree, or cut with `max_interactions` or "
        "`index_set='hyperbolic'`, or allow that much memory"
        if fits
        else "no basis would fit: allow that much memory"
    )
    raise ParameterError(
        f"`memory={memory / 1e6:,.0f} MB` is too little for {needs.n_columns} readouts and {needs.terms:,} functions, "
        f"which take {needed / 1e6:,.0f} MB; {advice}."
    )


def _refuse_method(memory: int, needs: _Needs, method: Method, options: dict[str, Any]) -> None:
    """Some methods hold all readouts in memory."""
    n, k, terms = needs.n_samples, needs.n_columns, needs.terms
    needed = needs.fixed + method.extra_bytes(n, k, terms, **options)
    if needed > memory:
        others = ", ".join(repr(other.name) for other in ESTIMATORS.values() if other.in_blocks)
        raise ParameterError(
            f"method {method.name!r} takes {needed / 1e6:,.0f} MB for {n:,} samples, {k} readouts and {terms:,} "
            f"functions, and `memory={memory / 1e6:,.0f} MB`; allow more, or use a method that goes through the "
            f"data in blocks: {others}."
        )
