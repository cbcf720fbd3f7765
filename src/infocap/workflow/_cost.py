"""How long an estimation will take and how much memory, told beforehand when it is long."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from .._array import array_namespace, to_numpy
from .._parallel import all_cores
from .._passes import SLAB_BYTES, Passes
from .._spread import in_this_process, is_client, n_slots
from .._words import duration, size
from ..basis import ProductBasis
from ..estimators import MOST_CONTROLS, dictionary_size
from ..estimators._cross_fit import search_bytes
from ..estimators._least_squares import squares_bytes
from ..kernels import Walk
from ._memory import SLABS, Shapes

SLOW_RATE = 2e10  # floating-point operations a second that any machine in use can do
SLOW_CORE = 1e10  # and one core of it, as a worker has
DEVICE_RATE = 5e11  # and any graphics card for computing
SLOW_DISK = 3e8  # bytes a second that any disk in use gives
PASSES = 3  # over the data: a look, the summaries, the leverages
A_SAMPLE = 10.0  # bytes that go with every sample besides the data, as measured
LONG = 30.0  # seconds
MARGIN = 1.5  # the work is counted three times what it is, and done at half the rate of a large product
HERE_SIZE, THERE_SIZE = 384, 2048  # of the product that measures the rate: milliseconds


@dataclass(frozen=True)
class Cost:
    """What an estimation takes, at most: operations in passes over the data and besides, and memory."""

    in_passes: float
    besides: float
    n_bytes: float

    @property
    def seconds(self) -> float:
        """On a slow machine."""
        return (self.in_passes + self.besides) / SLOW_RATE


def cost(
    basis: ProductBasis, n_samples: int, n_readouts: int, method: str, memory: int | None = None
) -> Cost:
    """Operations and memory of an estimation; `n_readouts` counts the constant, `memory` is what is allowed."""
    n, k, terms = n_samples, n_readouts, len(basis)
    besides, n_bytes = 0.0, 8.0 * (4 * k * terms + basis.block_rows * terms) + A_SAMPLE * n
    if method == "control-variate":
        dictionary = dictionary_size(n, terms)
        controls = min(dictionary, n, MOST_CONTROLS)
        besides = 3.0 * n * terms * min(terms, dictionary) + 12.0 * n * k * terms
        besides += 4 * (2.0 * n * controls**2 + 30.0 * controls**3) + 30.0 * n * controls * k
        search = search_bytes(n, k, terms)
        fits = memory is None or search <= memory
        n_bytes += search if fits else squares_bytes(n, k, terms, basis.block_rows)
    return Cost(6.0 * n * k * (k + terms), besides, n_bytes)


def announce(walk: Walk, method: str) -> None:
    """One line on the terminal for what takes longer than half a minute."""
    n, k, terms = walk.n_samples, walk.n_readouts, len(walk.basis)
    passes, row_bytes = walk.passes, 0 if walk.x.in_memory else walk.x.row_bytes
    expected = cost(walk.basis, n, k, method, passes.memory)
    n_bytes = expected.n_bytes + (SLABS * (passes.slab_bytes or SLAB_BYTES) if row_bytes else 0)
    if passes.memory is not None:
        n_bytes = min(n_bytes, passes.memory)
    reading = PASSES * n * row_bytes / SLOW_DISK
    seconds, roughly = _seconds(expected, passes, slow_rate(walk)), "up to"
    if seconds + reading > LONG and passes.executor is None:
        seconds, roughly = _seconds(expected, passes, MARGIN * measured_rate(walk)), "about"
    if seconds + reading > LONG:
        print(
            f"infocap: {n:,} samples, {k} readouts, {terms:,} functions, method {method!r}{_by(passes)}: {roughly} "
            f"{duration(seconds + reading)} and {size(n_bytes)}{_each(passes)}.",
            file=sys.stderr,
            flush=True,
        )


def is_long(shapes: Shapes, passes: Passes, method: str) -> bool:
    """Whether a person would like to see how far it is."""
    reading = PASSES * shapes.n_samples * shapes.row_bytes / SLOW_DISK if shapes.on_disk else 0.0
    expected = cost(shapes.basis, shapes.n_samples, shapes.n_readouts, method, passes.memory)
    return _seconds(expected, passes, SLOW_RATE) + reading > LONG


def slow_rate(walk: Walk) -> float:
    """Operations a second, at least, where the data are."""
    return DEVICE_RATE if walk.x.on_device else SLOW_RATE


def measured_rate(walk: Walk) -> float:
    """Operations a second of a matrix product where the data are."""
    here = not walk.x.on_device
    size = HERE_SIZE if here else THERE_SIZE
    like = walk.x.read(0, 1)
    a = array_namespace(like).full((size, size), 1e-3, dtype=like.dtype, device=like.device)
    with all_cores() as cores:  # the product then runs on one of them
        times = []
        for _ in range(3):
            start = time.perf_counter()
            to_numpy((a @ a)[:1, :1])  # waits for it
            times.append(time.perf_counter() - start)
    return 2.0 * size**3 / min(times) * (cores if here else 1)


def _seconds(expected: Cost, passes: Passes, rate: float) -> float:
    """Passes share the work; what a method does besides is done here."""
    shared = rate if passes.executor is None else SLOW_CORE * n_slots(passes.executor)
    return expected.in_passes / shared + expected.besides / rate


def _by(passes: Passes) -> str:
    """Who works, in words."""
    if passes.executor is None:
        return ""
    what = "threads of a Dask cluster" if is_client(passes.executor) else "workers"
    return f", {n_slots(passes.executor)} {what}"


def _each(passes: Passes) -> str:
    return "" if passes.executor is None or in_this_process(passes.executor) else " in each process"
