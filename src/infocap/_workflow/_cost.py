"""How long an estimation will take, told beforehand when it is long."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ..basis import ProductBasis
from ..estimators import DICTIONARY_BYTES, MOST_CONTROLS, dictionary_size
from ..kernels import Walk

SLOW_RATE = 2e10  # floating-point operations a second that any machine in use can do
DEVICE_RATE = 5e11  # and any graphics card for computing
LONG = 30.0  # seconds


@dataclass(frozen=True)
class Cost:
    """What an estimation takes, at most."""

    operations: float
    n_bytes: float

    @property
    def seconds(self) -> float:
        """On a slow machine."""
        return self.operations / SLOW_RATE


def cost(basis: ProductBasis, n_samples: int, n_readouts: int, method: str) -> Cost:
    """Operations and memory of an estimation; `n_readouts` counts the constant."""
    n, k, terms = n_samples, n_readouts, len(basis)
    work, n_bytes = 6.0 * n * k * (k + terms), 8.0 * (4 * k * terms + basis.block_rows * terms)
    if method == "control-variate":
        dictionary = min(dictionary_size(n, terms), DICTIONARY_BYTES // (8 * n))
        controls = min(dictionary, n, MOST_CONTROLS)
        work += 3.0 * n * terms * min(terms, dictionary) + 12.0 * n * k * terms
        work += 4 * (2.0 * n * controls**2 + 30.0 * controls**3) + 30.0 * n * controls * k
        n_bytes += 8.0 * n * (6 * k + 4 * dictionary)
    return Cost(work, n_bytes)


def announce(walk: Walk, method: str) -> None:
    """One line on the terminal for what takes longer than half a minute."""
    n, k = walk.n_samples, walk.n_readouts
    expected = cost(walk.basis, n, k, method)
    seconds = expected.operations / slow_rate(walk)
    if seconds > LONG:
        print(
            f"infocap: {n:,} samples, {k} readouts, {len(walk.basis):,} functions, method {method!r}: up to "
            f"{duration(seconds)} and {expected.n_bytes / 1e9:.1f} GB.",
            file=sys.stderr,
            flush=True,
        )


def slow_rate(walk: Walk) -> float:
    """Operations a second, at least, where the data are."""
    return DEVICE_RATE if walk.x.on_device else SLOW_RATE


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
