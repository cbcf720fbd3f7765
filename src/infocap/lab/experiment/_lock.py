"""The lock of a store: one acquisition at a time, because two would drive the same instrument."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ...errors import DataError

# How long a new acquisition waits for the lock, in seconds: a process that only looks whether there
# is a lock holds it for less than a millisecond.
LOCK_TIMEOUT_S = 0.5


@contextmanager
def acquisition_lock(store: Path) -> Iterator[None]:
    """Hold the lock of a store; refuse if another process holds it.

    The lock is that of an empty SQLite database beside the store. The system frees it when the
    process ends, in whatever way.
    """
    if not store.parent.exists():
        raise DataError(f"the folder {store.parent} does not exist; make it first.")
    refuse_second_name(store)
    try:
        connection = sqlite3.connect(
            _lock_file(store), timeout=LOCK_TIMEOUT_S, isolation_level=None
        )
    except sqlite3.OperationalError as problem:
        raise _no_lock(store, problem) from None
    with closing(connection):
        try:
            connection.execute("PRAGMA journal_mode = OFF")  # nothing is ever written
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as problem:
            raise _no_lock(store, problem) from None
        yield


def refuse_second_name(store: Path) -> None:
    """Refuse a store with two names (hard links): each name would have a lock of its own."""
    if store.is_file() and store.stat().st_nlink > 1:
        raise DataError(
            f"{store} has another name, too (a hard link), under which it could be written at the "
            "same time; delete one of the two names, or copy the file."
        )


def is_locked(store: Path) -> bool:
    """Return whether some process holds the lock of a store; asking locks and writes nothing."""
    uri = f"{_lock_file(store).as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, timeout=0, uri=True)) as connection:
            connection.execute("SELECT * FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as problem:
        return problem.sqlite_errorcode == sqlite3.SQLITE_BUSY
    return False


def _lock_file(store: Path) -> Path:
    return store.with_name(f".{store.name}.lock")


def _no_lock(store: Path, problem: sqlite3.OperationalError) -> DataError:
    if problem.sqlite_errorcode == sqlite3.SQLITE_BUSY:
        return DataError(
            f"another process is acquiring into {store}; wait for it, or end it first."
        )
    return DataError(f"{store} cannot be written ({problem}); choose another folder.")
