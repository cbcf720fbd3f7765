"""Cutting rows into consecutive ranges: pure arithmetic, without any data.

Ranges of rows have different names, by their purpose. `Engine.fold` cuts in this order:

- A *run* is one continuous measurement of a sequence; the inputs of one run do not act on another.
- An *interval* lies between two edges that a caller chose. It gets a result of its own.
- A *segment* is the part of an interval that lies in one run.
- A *chunk* is the part of a segment that is read from a file at a time.
- A *share* is the part of a chunk that one call of the work gets.
- A *block* is the part of a share that such a call prepares at a time, so that it stays in cache.

Estimators choose their own edges: a *half* or a *group* of the samples, from whose differences
errors follow. Groups of a sequence are called *stretches*; data checks, too, call the rows that
they look at together a stretch. Where values of functions are needed, estimators compute them for
one *piece* of a share at a time. An *epoch* is one of 32 equal parts of the acquisition in the
order of time. Another block, that of a design, is one of several independent designs of equal size
that follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from ..typing import Integers

# Bytes of prepared readouts in a block. Smaller blocks cost more in Python than they spare by
# staying in cache and spreading over cores (benchmarks/core.py).
BLOCK_BYTES = 4_000_000
# Rows of a block per readout: factoring much taller than wide blocks is efficient.
MIN_ROWS_PER_COLUMN = 32


@dataclass(frozen=True)
class Segment:
    """Rows from `start` up to `stop`, which belong to one interval and to one run."""

    interval: int
    start: int
    stop: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


def divide(start: int, stop: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield `count` consecutive ranges of rows of equal length, to one row.

    >>> list(divide(0, 10, 3))
    [(0, 3), (3, 6), (6, 10)]
    """
    n_rows = stop - start
    return pairwise(start + n_rows * number // count for number in range(count + 1))


def cut_into_blocks(start: int, stop: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Yield blocks: equal ranges of about 4 MB of readouts, always much taller than wide."""
    max_rows = max(BLOCK_BYTES // (8 * n_columns), MIN_ROWS_PER_COLUMN * n_columns)
    return divide(start, stop, ceil_divide(stop - start, max_rows))


def rows_per_block(n_rows: int, n_columns: int) -> int:
    """Return how many rows the first block of so many rows has."""
    start, stop = next(cut_into_blocks(0, n_rows, n_columns))
    return stop - start


def ceil_divide(number: int, divisor: int) -> int:
    """Return number / divisor, rounded up."""
    return -(-number // divisor)


def cut_at_runs(intervals: Sequence[tuple[int, int]], runs: Integers | None) -> list[Segment]:
    """Cut intervals where a run of a sequence begins, because no share may cross runs."""
    run_starts = [] if runs is None else runs.tolist()
    segments = []
    for number, (start, stop) in enumerate(intervals):
        inside = [row for row in run_starts if start < row < stop]
        for low, high in pairwise([start, *inside, stop]):
            segments.append(Segment(number, low, high))
    return segments


def balance(segments: Sequence[Segment], n_workers: int) -> list[Segment]:
    """Cut segments into as few shares as keep all workers equally busy, none of them empty."""
    shares_per_segment = n_workers // gcd(n_workers, len(segments))
    shares = []
    for segment in segments:
        for start, stop in divide(segment.start, segment.stop, shares_per_segment):
            if start < stop:
                shares.append(Segment(segment.interval, start, stop))
    return shares
