"""The acquisition store as a file to read: while it is written, or when it is damaged."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ..errors import DataError
from ..typing import Floats
from ._entries import MEASURED, StoreContents, accept, unpack
from ._recording import Recording
from ._salvage import salvage

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
UNREADY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def read_entries(path: Path) -> StoreContents:
    """Everything that can be read; a damaged file is searched page by page."""
    if not path.is_file():
        raise DataError(f"{path} does not exist.")
    try:
        return _read_in_place_or_copied(path)
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # SQLite's own words may be damaged too
        if _code(problem) in BUSY:
            raise DataError(f"{path} is held by another process ({problem}); try again.") from None
        found = salvage(path, " ".join(str(problem).split()))
    if not found.entries:
        raise DataError(
            f"{path} is not an acquisition store of infocap, or nothing of it can be recovered ({found.problem})."
        )
    return found


def _read_in_place_or_copied(path: Path) -> StoreContents:
    """After a loss of power the log must be worked in first, which only a writer can do: then in a copy."""
    try:
        with closing(open_read_only(path)) as connection:
            return _select(connection)
    except sqlite3.Error as problem:
        if _code(problem) not in UNREADY:
            raise
    with TemporaryDirectory() as folder:
        for suffix in ("", "-wal", "-journal"):
            if path.with_name(path.name + suffix).is_file():
                shutil.copy(path.with_name(path.name + suffix), Path(folder, "copy.db" + suffix))
        with closing(sqlite3.connect(Path(folder, "copy.db"))) as connection:
            connection.text_factory = bytes
            return _select(connection)


def _code(problem: Exception) -> int:
    """SQLite's own number of an error, without its details."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, while another process may write."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)
    connection.text_factory = bytes  # damaged text must not stop the reading of the rest
    return connection


def _select(connection: sqlite3.Connection) -> StoreContents:
    connection.execute("BEGIN")  # one moment for the check and the entries
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        return StoreContents()  # the process was ended before anything was in it
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != b"ok":
        last = said.decode(errors="replace").split("\n")[-1]
        raise sqlite3.DatabaseError(f"malformed: {last}")
    found = StoreContents()
    for row in connection.execute("SELECT id, kind, number, time, data, crc FROM entry ORDER BY id"):
        if not isinstance(row[0], int):
            raise sqlite3.DatabaseError("malformed: an entry without a number")
        accept(found, *row)
    return found


def load_store(path: str | Path) -> Recording:
    """What has been measured so far, in design order."""
    path = Path(path)
    found = read_entries(path)
    if not found.entries:
        raise DataError(f"{path} holds nothing yet; an acquisition was ended before its first step.")
    return to_recording(found, path)


def to_recording(found: StoreContents, path: Path) -> Recording:
    """Entries sorted into the parts of a recording."""
    parts: dict[str, dict[int, tuple[float, Floats, Floats]]] = {kind: {} for kind in MEASURED}
    for entry in found.entries.values():
        if entry.kind in parts:
            parts[entry.kind][entry.number] = (entry.time, *unpack(entry.data))
    samples = dict(sorted(parts["sample"].items()))
    story = found.story
    plan = story.get("plan", {})
    n_inputs = plan.get("n_inputs", 0)
    width = next(
        (len(x) for part in parts.values() for _, _, x in part.values()), len(plan.get("channel", ()))
    )
    readouts = _stack([x for _, _, x in samples.values()], width)
    repeats = None
    if parts["repeat"]:
        repeats = np.full(readouts.shape, np.nan, dtype=readouts.dtype)
        for row, index in enumerate(samples):
            if index in parts["repeat"]:
                repeats[row] = parts["repeat"][index][2]
    times = [entry.time for entry in found.entries.values() if entry.kind in MEASURED]
    if times:
        story["measured"] = [
            datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
            for time in (min(times), max(times))
        ]
    return Recording(
        _stack([u for _, u, _ in samples.values()], n_inputs),
        readouts,
        np.array(list(samples), dtype=int),
        plan.get("readout_unit", ""),
        tuple(plan.get("channel", ())),
        story,
        plan.get("input_unit", ""),
        acquired=np.array([time for time, _, _ in samples.values()]),
        repeats=repeats,
        noise=_ordered(parts["noise"]),
        reference=_ordered(parts["reference"]),
        reference_acquired=_times(parts["reference"]),
        checks=found.check(path),
    )


def _stack(rows: list[Floats], width: int) -> Floats:
    return np.vstack(rows) if rows else np.empty((0, width))


def _ordered(part: dict[int, tuple[float, Floats, Floats]]) -> Floats | None:
    return np.vstack([part[number][2] for number in sorted(part)]) if part else None


def _times(part: dict[int, tuple[float, Floats, Floats]]) -> Floats | None:
    return np.array([part[number][0] for number in sorted(part)]) if part else None
