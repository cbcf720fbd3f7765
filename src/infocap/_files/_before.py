"""Before a file is read: whether it is there, whether it fits into memory, and one error for all that may go wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import DataError, InfocapError

FRACTION = 0.8  # of the memory, for what one file declares
MOST_CHUNKS = 1_000_000  # libraries keep a record of some hundred bytes for each
UNKNOWN = 16e9  # bytes of memory, where the system does not tell
GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container


def readable(path: Path, folder: bool = False) -> Path:
    """A file (or folder) that can be opened and is not empty; anything else is refused."""
    try:
        if not path.exists():
            raise DataError(f"{path} does not exist.")
        if folder != path.is_dir() or not (folder or path.is_file()):
            found = "a folder" if path.is_dir() else "a file" if path.is_file() else "no regular file"
            raise DataError(f"{path} is {found}; a {'folder' if folder else 'file'} is needed.")
        if folder:
            next(path.iterdir(), None)
            return path
        with path.open("rb") as file:
            if not file.read(1):
                raise DataError(f"{path} is empty (0 bytes); nothing of it can be recovered.")
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        if isinstance(problem, InfocapError):
            raise
        reason = getattr(problem, "strerror", None) or problem
        raise DataError(f"{path} cannot be opened ({reason}); look at its name and permissions.") from problem
    return path


@contextmanager
def blame(path: Path, kind: str) -> Iterator[None]:
    """Make one DataError of whatever a library raises about a broken file."""
    try:
        yield
    except InfocapError:
        raise
    except MemoryError as problem:
        raise DataError(
            f"{path} asks for more memory than there is; it is damaged, or larger than this machine can read."
        ) from problem
    # On damaged files h5py, zarr, zipfile and SciPy were seen to raise nearly every built-in exception.
    except Exception as problem:
        said = " ".join(str(problem).split()) or type(problem).__name__
        said = said if len(said) <= 200 else said[:197] + "..."
        raise DataError(
            f"{path} cannot be read as {kind} ({said}); it is truncated or of another format, and nothing of "
            "it can be recovered."
        ) from problem


def refuse_too_large(path: Path, what: str, shape: Sequence[int], itemsize: int, n_chunks: int = 1) -> None:
    """An error if an array of this shape would not fit, before anything is allocated."""
    n_bytes = math.prod(shape) * max(itemsize, 1)
    if n_bytes > FRACTION * memory():
        raise DataError(
            f"{path} declares {what} of shape {tuple(shape)}, {n_bytes:,} bytes, more than {FRACTION:.0%} of this "
            "machine's memory; it is damaged, or must be read in parts with its own library and given to "
            "infocap.estimate."
        )
    if n_chunks > MOST_CHUNKS:
        raise DataError(
            f"{path} declares {what} of shape {tuple(shape)} in {n_chunks:,} chunks; at most {MOST_CHUNKS:,} are read: "
            "it is damaged, or should be rewritten in larger chunks."
        )


def memory() -> float:
    """Bytes that this process may use: all of the machine, or the limit of its container or its own."""
    known = []
    if hasattr(os, "sysconf"):
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        import resource

        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        known += [own] if own != resource.RLIM_INFINITY else []
        known.append(int(GROUP_LIMIT.read_text()))
    except (ImportError, OSError, ValueError):  # not Unix; no container; "max"
        pass
    return min(known, default=UNKNOWN)
