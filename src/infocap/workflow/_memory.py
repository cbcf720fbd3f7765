"""memory=: a budget of bytes, shared out among blocks, summaries and buffers, or refused with what it would take."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

from .._parallel import all_cores
from .._passes import Passes
from .._spread import in_this_process, n_slots
from ..basis import ProductBasis
from ..errors import ParameterError
from ..estimators._cross_fit import search_bytes
from ..estimators._least_squares import squares_bytes
from ..estimators._surrogate import surrogate_bytes
from ..kernels import block_bytes
from ._diagnose import LAG_ROWS

UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LEAST = 1_000_000
KEPT = 6  # summaries of the whole and of both halves, and the coordinates made of them
A_THREAD = 6  # summaries: two that wait to be added up, one under way and what it is made of
COPIES = 5  # of a block of readouts: as read, as numbers, as prepared, and what is made of it on the way
SLABS = 5  # of rows as read: one under way, one just done, the next one, a chunk being unpacked, one not yet reused
LARGEST_SLAB = 256_000_000
IN_PASSES = ("raw", "threshold-richardson", "richardson-threshold", "chi2")


def byte_count(memory: Any) -> int | None:
    """A number of bytes from "1GB", "512 MiB" or a number; None stays None."""
    if memory is None:
        return None
    text = str(memory).strip().upper().replace(" ", "")
    found = re.fullmatch(r"(\d+(?:\.\d*)?(?:E\+?\d+)?)([KMGT]?I?B)?", text)
    if isinstance(memory, bool) or found is None or (found[2] or "") not in UNITS:
        raise ParameterError(
            f"`memory={memory!r}` is no amount of memory; give bytes, or a text such as '512MB', '1GB' or '2GiB'."
        )
    n_bytes = int(float(found[1]) * UNITS[found[2] or ""])
    if n_bytes < LEAST:
        raise ParameterError(f"`memory={memory!r}` is less than 1 MB, too little for anything; give more.")
    return n_bytes


@dataclass(frozen=True)
class Shapes:
    """What the budget is to be shared out among."""

    n_samples: int
    n_readouts: int
    basis: ProductBasis
    row_bytes: int  # of a row of inputs and readouts as they are stored
    on_disk: bool
    extra_a_row: int = 0  # bytes for each sample, of weights, times and the like

    @property
    def fixed(self) -> float:
        """Bytes that are needed whatever the blocks."""
        terms = len(self.basis)
        lags = 16 * min(LAG_ROWS, self.n_samples) * terms
        return KEPT * self.frame + self.extra_a_row * self.n_samples + lags

    @property
    def frame(self) -> float:
        """Bytes of one summary."""
        return 8.0 * self.n_readouts * (self.n_readouts + len(self.basis))

    @property
    def a_thread(self) -> float:
        """Bytes that each thread needs for itself."""
        values = 8.0 * self.basis.block_rows * len(self.basis)
        return A_THREAD * self.frame + 1.5 * values + COPIES * block_bytes(self.n_readouts)

    @property
    def least_slab(self) -> float:
        """Bytes of the fewest rows that can be read at a time."""
        rows = min(block_bytes(self.n_readouts) // (8 * self.n_readouts), self.n_samples)
        return float(rows * self.row_bytes) if self.on_disk else 0.0

    def needed(self, threads: int) -> float:
        """The least memory for this many threads."""
        return self.fixed + threads * self.a_thread + SLABS * self.least_slab


def share_out(
    memory: int | None, shapes: Shapes, method: str, options: dict[str, Any], executor: Any
) -> Passes:
    """How to make the passes within a budget; an error when it is too small, with what would do."""
    if memory is None:
        return Passes(executor)
    with all_cores() as cores:
        most = n_slots(executor) if in_this_process(executor) else 1 if executor is not None else cores
    threads = most
    while threads > 1 and shapes.needed(threads) > memory:
        threads -= 1
    needed = shapes.needed(threads)
    if needed > memory or (threads < most and in_this_process(executor)):
        _refuse(memory, shapes.needed(most if in_this_process(executor) else 1), shapes)
    _refuse_method(memory, shapes, method, options)
    left = memory - shapes.fixed - threads * shapes.a_thread
    slabs = SLABS * (threads if in_this_process(executor) else 1)
    return Passes(executor, int(min(left / slabs, LARGEST_SLAB)), threads, memory=memory)


def _refuse(memory: int, needed: float, shapes: Shapes) -> None:
    """Say what the job needs, and how many functions the budget has room for."""
    basis, terms = shapes.basis, len(shapes.basis)

    def fits(count: int) -> bool:
        smaller = ProductBasis(basis.families, basis.indices[:count])
        return replace(shapes, basis=smaller).needed(1) <= memory

    room = bisect_left(range(1, terms + 1), True, key=lambda count: not fits(count))
    if room >= 1:
        cut = (
            f"the first {room:,} functions would fit: lower the degree, or cut with `max_interactions` or "
            "`index_set='hyperbolic'`, or allow that much memory"
        )
    else:
        cut = "no basis would fit: allow that much memory"
    raise ParameterError(
        f"`memory={memory / 1e6:,.0f} MB` is too little for {shapes.n_readouts} readouts and {terms:,} functions, "
        f"which take {needed / 1e6:,.0f} MB; {cut}."
    )


def _refuse_method(memory: int, shapes: Shapes, method: str, options: dict[str, Any]) -> None:
    """Some methods hold all readouts in memory."""
    n, k, terms = shapes.n_samples, shapes.n_readouts, len(shapes.basis)
    if method == "surrogate":
        needed = surrogate_bytes(n, k)
    elif method == "control-variate":
        needed = search_bytes(n, k, terms)
        if options.get("fit", "auto") in ("auto", "least-squares"):
            needed = min(needed, squares_bytes(n, k, terms, shapes.basis.block_rows))
    else:
        return
    if shapes.fixed + needed > memory:
        raise ParameterError(
            f"method {method!r} takes {(shapes.fixed + needed) / 1e6:,.0f} MB for {n:,} samples, {k} readouts and "
            f"{terms:,} functions, and `memory={memory / 1e6:,.0f} MB`; allow more, or use a method that goes "
            f"through the data in blocks: {', '.join(map(repr, IN_PASSES))}."
        )
