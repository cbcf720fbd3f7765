"""Memory kept between blocks in workers that are told to give it back at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
KEPT_BYTES, LARGE_BYTES = 256_000_000, 32 << 20
USUAL_BYTES = 128 << 10  # glibc's own
SETTING = "MALLOC_TRIM_THRESHOLD_"

_lock = Lock()
_users = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let the C library keep what is freed while a pass runs, then give it back.

    Dask starts its workers with a setting that returns freed memory to the system at once. A pass makes arrays of the
    same sizes over and over, and asking the system for each costs a third of the processor time. Where nothing
    is set, or the C library is not glibc, nothing is done.
    """
    library = _glibc() if SETTING in os.environ else None
    if library is None:
        yield
        return
    _count(library, +1)
    try:
        yield
    finally:
        _count(library, -1)


def _count(library: Any, change: int) -> None:
    """The first pass under way changes the settings, the last one restores them."""
    global _users
    with _lock:
        before, _users = _users, _users + change
        if before == 0:
            library.mallopt(TRIM_THRESHOLD, KEPT_BYTES)
            library.mallopt(MMAP_THRESHOLD, LARGE_BYTES)
        elif _users == 0:
            library.mallopt(TRIM_THRESHOLD, _setting())
            library.mallopt(MMAP_THRESHOLD, USUAL_BYTES)
            library.malloc_trim(0)


def _setting() -> int:
    """What the worker was told."""
    text = os.environ.get(SETTING, "")
    return int(text) if text.isdigit() else USUAL_BYTES


@cache
def _glibc() -> Any | None:
    import ctypes

    library = ctypes.CDLL(None) if os.name == "posix" else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
