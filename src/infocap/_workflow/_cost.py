"""How long an estimation will take, told beforehand when it is long."""

from __future__ import annotations

import sys

from ..estimators import DICTIONARY_BYTES, MOST_CONTROLS, dictionary_size
from ..kernels import Walk

SLOW_RATE = 2e10  # floating-point operations a second that any machine in use can do
DEVICE_RATE = 5e11  # and any graphics card for computing
LONG = 30.0  # seconds


def announce(walk: Walk, method: str) -> None:
    """One line on the terminal for what takes longer than half a minute."""
    n, k, terms = walk.n_samples, walk.n_readouts, len(walk.basis)
    work, n_bytes = 6.0 * n * k * (k + terms), 8.0 * (4 * k * terms + walk.basis.block_rows * terms)
    if method == "control-variate":
        dictionary = min(dictionary_size(n, terms), DICTIONARY_BYTES // (8 * n))
        controls = min(dictionary, n, MOST_CONTROLS)
        work += 3.0 * n * terms * min(terms, dictionary) + 12.0 * n * k * terms
        work += 4 * (2.0 * n * controls**2 + 30.0 * controls**3) + 30.0 * n * controls * k
        n_bytes += 8.0 * n * (6 * k + 4 * dictionary)
    seconds = work / slow_rate(walk)
    if seconds > LONG:
        print(
            f"infocap: {n:,} samples, {k} readouts, {terms:,} functions, method {method!r}: up to "
            f"{_duration(seconds)} and {n_bytes / 1e9:.1f} GB.",
            file=sys.stderr,
            flush=True,
        )


def slow_rate(walk: Walk) -> float:
    """Operations a second, at least, where the data are."""
    return DEVICE_RATE if walk.x.on_device else SLOW_RATE


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
