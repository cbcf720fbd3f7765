"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import DataError


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A path to write to, beside the one wanted; it takes that place once it is complete and on the disk."""
    if not path.parent.exists():
        raise DataError(f"the folder {path.parent} does not exist; make it first.")
    beside = path.with_name(f".{path.name}.part")
    try:
        yield beside
        sync(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names of a folder, is on the disk."""
    if path.is_dir() and os.name == "nt":
        return  # folders cannot be opened there, and need not be
    handle = os.open(
        path, os.O_RDONLY if path.is_dir() else os.O_RDWR
    )  # Windows syncs only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
