"""The store that `lab.Store` writes, to be read: while it is written, damaged or whole."""

import json
import re
import shutil
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ..._files import blame, refuse_too_large
from ..._formatting import listed
from ...errors import Check, DataError
from ...recording._assemble import by_index
from ...recording._recording import DARK, Recording
from ...typing import Floats
from ._schedule import CONSTANT, Schedule, joined

PAGE_BYTES = 4096  # of the stores we write; that of most file systems, so that a page is written in one piece
WAL_HEADER, FRAME_HEADER = 32, 24
SALT = slice(16, 24)  # of the log's head
MAGIC = b"SQLite format 3\0"
SCHEMA = """CREATE TABLE entry (
    id INTEGER PRIMARY KEY,  -- counts what is stored, without gaps
    kind TEXT NOT NULL,  -- plan, schedule, sample, repeat, noise, reference, dark or event
    number INTEGER NOT NULL,  -- the design index of a sample and of its repeat
    time REAL NOT NULL,  -- seconds since 1970
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    UNIQUE (kind, number)
)"""
MEASURED = ("sample", "repeat", "noise", "reference", "dark")
KINDS = (*MEASURED, "plan", "schedule", "event")
BEGUN, ENDED, FAILURE = "begun", "ended", "failure"  # events of an acquisition
# The latest time that a measurement can have, in the year 5138: milliseconds since 1970 are later by far.
LATEST_S = 1e11
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
UNREADY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class Entry(NamedTuple):
    """One line of the store."""

    kind: str
    number: int
    time: float
    data: bytes

    @property
    def crc(self) -> int:
        """The checksum of all the rest."""
        head = f"{self.kind}\0{self.number}\0".encode() + struct.pack("<d", self.time)
        return zlib.crc32(self.data, zlib.crc32(head))

    @property
    def content(self) -> Any:
        """What the data mean; a ValueError, or one of its kind, where they mean nothing."""
        if self.kind in MEASURED:
            return unpack(self.data)
        if self.kind == "schedule":
            return unpack_schedule(self.data)
        found = json.loads(self.data)
        if self.kind not in KINDS or not isinstance(found, dict):
            raise ValueError(f"{self.kind} {found!r:.60}")
        return found


@dataclass
class StoreContents:
    """What a store holds, by identity; and what it once held."""

    entries: dict[int, Entry] = field(default_factory=dict)
    damaged: dict[int, str] = field(default_factory=dict)  # what can still be read of their names
    problem: str = ""  # what the database itself has to say

    @property
    def left_out(self) -> list[str]:
        """The names, as far as they are known, of entries that are damaged or of which nothing is left."""
        told = {1: "plan", 2: "schedule"} | {
            one: name for one, name in self.damaged.items() if name
        }
        last = max([*self.entries, *self.damaged], default=0)
        missing = {*range(1, last + 1), *self.damaged} - self.entries.keys()
        return [told.get(one, f"entry {one}") for one in sorted(missing)]

    @property
    def sound(self) -> bool:
        """Whether nothing is amiss."""
        return not (self.problem or self.left_out)

    def contents(self, kind: str) -> list[Any]:
        """What all entries of a kind mean, in the order in which they were stored."""
        return [entry.content for _, entry in sorted(self.entries.items()) if entry.kind == kind]

    @property
    def story(self) -> dict[str, Any]:
        """The plan as plain data, its fingerprint, and how the store began; the latest, where it was extended."""
        return next(iter(self.contents("plan")[::-1]), {})

    @property
    def schedule(self) -> Schedule | None:
        """Every measurement planned, if that is still there: what each plan added to the one before it."""
        parts = self.contents("schedule")
        return joined(parts) if parts and len(parts) == len(self.contents("plan")) else None

    @property
    def times(self) -> dict[int, float]:
        """When each entry that is a measurement was stored, in that order."""
        return {
            one: entry.time for one, entry in sorted(self.entries.items()) if entry.kind in MEASURED
        }

    @property
    def clock_is_right(self) -> bool:
        """Whether times are seconds since 1970, and never go back."""
        times = np.array(list(self.times.values()))
        return bool((np.diff(times) >= 0).all() and (times < LATEST_S).all())

    def accept(self, identity: int, kind: Any, number: Any, time: Any, data: Any, crc: Any) -> None:
        """Take an entry in if it is whole; otherwise keep what its name looks like."""
        name = ""
        with suppress(
            AttributeError, TypeError, ValueError, OverflowError, RecursionError, struct.error
        ):
            entry = Entry(kind.decode(), int(number), float(time), bytes(data))
            if entry.kind in KINDS:
                name = f"{entry.kind} {entry.number}"
            if entry.crc == crc and np.isfinite(entry.time) and entry.content is not None:
                self.entries[identity] = entry
                self.damaged.pop(identity, None)
        if identity not in self.entries:
            self.damaged[identity] = name

    def checks(self, path: Path) -> tuple[str, ...]:
        """What is damaged, how often the instrument failed, and whether the clock was set back, in a sentence each."""
        found = [] if self.sound else [Check(self.damage(path))]
        failures = [one for one in self.contents("event") if one.get("what") == FAILURE]
        if failures:
            reasons = Counter(str(one.get("reason")) for one in failures).most_common()
            said = listed([f"{reason}, {count} times" for reason, count in reasons], 3)
            places = listed(list(dict.fromkeys(str(one.get("at")) for one in failures)), 5)
            text = f"the instrument failed {len(failures)} times and was asked again ({said}), at {places}."
            found.append(Check(text, "note", failures=len(failures), reasons=dict(reasons)))
        if not self.clock_is_right:
            text = "the clock jumped back during the run, or did not tell seconds: rows are in the order stored."
            found.append(Check(text, "note"))
        return tuple(found)

    def damage(self, path: Path) -> str:
        """Say in one sentence what is damaged and what to do."""
        names = self.left_out
        said = f"{len(names)} entries are left out" + (f" ({listed(names, 12)})" if names else "")
        if self.problem:
            said += ", entries after the last one found are lost"
        why, count = self.problem or "checksums do not agree", len(self.times)
        return (
            f"{path.name} is damaged ({why}): {said}, {count} measurements are whole; make a new store "
            "of them with `infocap export` to another .db file, and go on there."
        )


def pack(u: Floats, x: Floats, extra: dict[str, float] | None = None) -> bytes:
    """One measurement: what was sent and what came back, real or complex; a capital announces extra values as JSON."""
    kind = b"c" if np.iscomplexobj(x) else b"f"
    values = np.asarray(x, dtype="<c16" if kind == b"c" else "<f8")
    words = json.dumps(extra).encode() if extra else b""
    told = struct.pack("<I", len(words)) + words if extra else b""
    head = struct.pack("<cI", kind.upper() if extra else kind, len(u))
    return head + told + np.asarray(u, dtype="<f8").tobytes() + values.tobytes()


def unpack(data: bytes) -> tuple[Floats, Floats, dict[str, float]]:
    """The inputs, the readouts and the extra values of one measurement, from what `pack` made."""
    kind, n_inputs = struct.unpack_from("<cI", data)
    start, extra = 5, {}
    if kind.isupper():
        start = 9 + struct.unpack_from("<I", data, 5)[0]
        extra = {str(name): float(value) for name, value in json.loads(data[9:start]).items()}
    middle = start + 8 * n_inputs
    if len(data) <= middle:
        raise ValueError(f"{n_inputs} inputs in {len(data)} bytes")
    u = np.frombuffer(data[start:middle], dtype="<f8").astype(float)
    return (
        u,
        np.frombuffer(data[middle:], dtype="<c16" if kind.lower() == b"c" else "<f8").copy(),
        extra,
    )


def pack_schedule(schedule: Schedule) -> bytes:
    """All measurements planned: their number, codes, then inputs."""
    codes, inputs = np.asarray(schedule.codes, "<i8"), np.asarray(schedule.inputs, "<f8")
    return struct.pack("<I", len(codes)) + codes.tobytes() + inputs.tobytes()


def unpack_schedule(data: bytes) -> Schedule:
    """All measurements planned, from what `pack_schedule` made."""
    (n,) = struct.unpack_from("<I", data)
    inputs = np.frombuffer(data[4 + 8 * n :], dtype="<f8").astype(float)
    codes = np.frombuffer(data[4 : 4 + 8 * n], dtype="<i8").astype(int)
    if len(codes) < n or not inputs.size:
        raise ValueError(f"{n} measurements in {len(data)} bytes")
    return Schedule(codes, inputs.reshape(n, -1))


def read_entries(path: Path) -> StoreContents:
    """Read everything that can be read; a damaged file is searched page by page."""
    if not path.is_file():
        raise DataError(f"{path} does not exist.")
    try:
        return _select(path)
    except (sqlite3.Error, UnicodeDecodeError) as problem:  # SQLite's own words may be damaged too
        if _code(problem) in BUSY:
            raise DataError(f"{path} is held by another process ({problem}); try again.") from None
        found = StoreContents(problem=" ".join(str(problem).split()))
    for record in records(path):
        found.accept(*record)
    if not found.entries:
        raise DataError(
            f"{path} is not an acquisition store, or nothing of it is left ({found.problem})."
        )
    return found


def _select(path: Path, mode: str = "ro") -> StoreContents:
    """All entries, after SQLite's own check of the file, both at one moment."""
    found = StoreContents()
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=30.0)) as connection:
            connection.text_factory = bytes  # damaged text must not stop the reading of the rest
            connection.execute("BEGIN")
            made = connection.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL").fetchall()
            if not made:
                return found  # the process was ended before anything was in it
            # A view, or columns that are computed, could take for ever.
            if [_plain_sql(sql.decode(errors="replace")) for (sql,) in made] != [
                _plain_sql(SCHEMA)
            ]:
                raise sqlite3.DatabaseError("malformed: its table is not that of a store")
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if said != b"ok":
                raise sqlite3.DatabaseError(
                    "malformed: " + said.decode(errors="replace").split("\n")[-1]
                )
            for row in connection.execute(
                "SELECT id, kind, number, time, data, crc FROM entry ORDER BY id"
            ):
                if not isinstance(row[0], int):
                    raise sqlite3.DatabaseError("malformed: an entry without a number")
                found.accept(*row)
            return found
    except sqlite3.Error as problem:
        if mode != "ro" or _code(problem) not in UNREADY:
            raise
    # After a loss of power the log must be worked in first, which only a writer can do: then in a copy.
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        return _select(copy, "rw")


def _plain_sql(sql: str) -> str:
    return "".join(re.sub("--.*", "", sql).split())


def _code(problem: Exception) -> int:
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF  # without the details


def to_recording(found: StoreContents, path: Path) -> Recording:
    """What has been measured so far, in design order."""
    if not found.entries:
        raise DataError(
            f"{path} holds nothing yet; an acquisition was ended before its first step."
        )
    times, story, checks = found.times, found.story, found.checks(path)
    plan, codes = story.get("plan", {}), {kind: code for code, kind in CONSTANT.items()}
    when: dict[int, Any] = (
        times if found.clock_is_right else {one: rank for rank, one in enumerate(times)}
    )
    sampled = {entry.number for entry in found.entries.values() if entry.kind == "sample"}
    rows: list[tuple[int, Any, Floats, Floats, dict[str, float]]] = []
    with blame(path, "an acquisition store"):
        for one in sorted(
            times, key=lambda one: (found.entries[one].kind == "repeat", found.entries[one].number)
        ):
            kind, number, _, _ = entry = found.entries[one]
            if kind == "repeat" and number not in sampled:
                continue  # the sample is damaged
            u, x, extra = entry.content
            steps = (
                len(u) // plan["n_inputs"] if plan.get("runs") else 1
            )  # a run of a sequence is one entry
            pairs = zip(u.reshape(steps, -1), x.reshape(steps, -1), strict=True)
            first = number * steps
            rows += [
                (codes.get(kind, first + step), when[one], *pair, extra)
                for step, pair in enumerate(pairs)
            ]
        for what, counts in (
            ("inputs", {len(row[2]) for row in rows}),
            ("channels", {len(row[3]) for row in rows}),
        ):
            if len(counts) > 1:
                sizes = listed(sorted(map(str, counts)))
                raise DataError(f"{path} has measurements of {sizes} {what}; it is no store.")
        if times and found.clock_is_right:
            ends = [
                datetime.fromtimestamp(time, UTC)
                for time in (min(times.values()), max(times.values()))
            ]
            story["measured"] = [end.isoformat(timespec="seconds") for end in ends]
        index = np.array([row[0] for row in rows], dtype=int)
        if n_dark := int(np.sum(index == DARK)):
            said = f"{n_dark} measurements with the source off: from each other one, the latest before it"
            checks += (Check(f"{said} was subtracted.", "note", dark=n_dark),)
        names = tuple(dict.fromkeys(name for row in rows if row[0] >= 0 for name in row[4]))
        return by_index(
            path,
            np.array([row[2] for row in rows]) if rows else np.empty((0, plan.get("n_inputs", 0))),
            np.array([row[3] for row in rows])
            if rows
            else np.empty((0, len(plan.get("channel", ())))),
            index,
            np.array([row[1] for row in rows]),
            np.array([[row[4].get(name, np.nan) for name in names] for row in rows])
            if names
            else None,
            extra_names=names,
            readout_unit=str(plan.get("readout_unit", "")),
            channel=tuple(map(str, plan.get("channel", ()))),
            metadata=story,
            input_unit=str(plan.get("input_unit", "")),
            checks=checks,
        )


def records(path: Path) -> Iterator[tuple[Any, ...]]:
    """Find (id, kind, number, time, data, crc) of whatever looks like an entry, in the file and the log beside it.

    Without SQLite (sqlite.org/fileformat2.html): a leaf page of a table lists its cells, a cell holds a record,
    and what does not fit goes to a chain of overflow pages. The checksum says whether to believe what is found.
    """
    beside = path.with_name(path.name + "-wal")
    for file in (path, beside):
        if file.is_file():
            refuse_too_large(file, "a store", (file.stat().st_size,), 2)
    data, log = path.read_bytes(), beside.read_bytes() if beside.is_file() else b""
    size = int.from_bytes(data[16:18], "big") if data.startswith(MAGIC) else PAGE_BYTES
    size = 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else PAGE_BYTES
    main = {k + 1: data[k * size : (k + 1) * size] for k in range(-(-len(data) // size))}
    # The log is written from its beginning again and again; frames now in use carry the salt of its head.
    current, stale = dict[int, bytes](), dict[int, bytes]()
    for start in range(WAL_HEADER, len(log) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        logged = current if log[start + 8 : start + 16] == log[SALT] else stale
        number = int.from_bytes(log[start : start + 4], "big")
        logged[number] = log[start + FRAME_HEADER : start + FRAME_HEADER + size]
    for pages in (main | current, main, main | stale):
        for number, page in pages.items():
            start = 100 if number == 1 else 0
            # Not all pages list cells here; what is read of others is nonsense that no checksum passes.
            for k in range(min(int.from_bytes(page[start + 3 : start + 5], "big"), len(page) // 8)):
                place = start + 8 + 2 * k
                with suppress(IndexError, KeyError, ValueError, struct.error):
                    yield _record(page, int.from_bytes(page[place : place + 2], "big"), pages, size)


def _record(page: bytes, cell: int, pages: dict[int, bytes], size: int) -> tuple[Any, ...]:
    length, place = _varint(page, cell)
    identity, place = _varint(page, place)
    payload = _payload(page, place, length, pages, size)
    head, place = _varint(payload, 0)
    types = []
    while place < head:
        kind, place = _varint(payload, place)
        types.append(kind)
    if place != head or len(types) != 6 or types[0] != 0 or types[4] < 12 or types[4] % 2:
        raise ValueError(types)
    values: list[Any] = []
    for kind in types:
        length = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind]
        part, place = payload[place : place + length], place + length
        if kind >= 12:
            values.append(part)
        elif kind == 7:
            values.append(struct.unpack(">d", part)[0])
        else:
            values.append(kind - 8 if kind >= 8 else int.from_bytes(part, "big", signed=True))
    return (identity, *values[1:])


def _payload(page: bytes, place: int, length: int, pages: dict[int, bytes], size: int) -> bytes:
    """The record, gathered from its page and the chain of pages it overflows to."""
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if length > size * len(pages):
        raise IndexError(length)
    local = length
    if length > most:
        local = least + (length - least) % (size - 4)
        local = local if local <= most else least
    parts = [page[place : place + local]]
    following = int.from_bytes(page[place + local : place + local + 4], "big")
    while local < length:
        part = pages[following][4 : 4 + length - local]
        if not part:
            raise IndexError(following)
        following = int.from_bytes(pages[following][:4], "big")
        parts.append(part)
        local += len(part)
    return b"".join(parts)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the place after it."""
    value = 0
    for k in range(8):
        byte = data[place + k]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + k + 1
    return value << 8 | data[place + 8], place + 9
