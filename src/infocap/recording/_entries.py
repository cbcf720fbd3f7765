"""What the acquisition store holds: entries with a checksum, in one SQLite table. `experiment.Store` writes it."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._words import listed
from ..typing import Floats, Integers
from ._schedule_names import names_of

PAGE_BYTES = 4096
SCHEMA = """CREATE TABLE entry (
    id INTEGER PRIMARY KEY,  -- counts what is stored, without gaps
    kind TEXT NOT NULL,  -- plan, schedule, sample, repeat, noise or reference
    number INTEGER NOT NULL,  -- the design index of a sample and of its repeat
    time REAL NOT NULL,  -- seconds since 1970
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    UNIQUE (kind, number)
)"""
MEASURED = ("sample", "repeat", "noise", "reference")
BEFORE = 2  # entries before the first measurement: plan and schedule


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


@dataclass
class StoreContents:
    """What a store holds, by identity; and what it once held."""

    entries: dict[int, Entry] = field(default_factory=dict)
    damaged: dict[int, str] = field(default_factory=dict)  # what can still be read of their names
    problem: str = ""  # what the database itself has to say

    @property
    def sound(self) -> bool:
        """Whether nothing is amiss."""
        return not (self.problem or self.damaged or self.lost)

    @property
    def lost(self) -> list[int]:
        """Entries of which nothing is left."""
        last = max([*self.entries, *self.damaged], default=0)
        return [one for one in range(1, last + 1) if one not in self.entries and one not in self.damaged]

    def one(self, kind: str) -> Entry | None:
        """The only entry of its kind."""
        return next((entry for entry in self.entries.values() if entry.kind == kind), None)

    @property
    def story(self) -> dict[str, Any]:
        """The plan as plain data, its fingerprint, and how the store began."""
        entry = self.one("plan")
        return {} if entry is None else json.loads(entry.data)

    @property
    def schedule(self) -> tuple[Integers, Floats] | None:
        """Codes and inputs of every measurement planned, if that is still there."""
        entry = self.one("schedule")
        return None if entry is None else unpack_schedule(entry.data)

    def check(self, path: Path) -> tuple[str, ...]:
        """One sentence on what is damaged, or nothing."""
        if self.sound:
            return ()
        names = [self.damaged.get(one) or self._guess(one) for one in sorted([*self.damaged, *self.lost])]
        left_out = (
            f"{len(names)} entries are left out ({listed(names, 12)})" if names else "no entry is left out"
        )
        if self.problem:
            left_out += ", what came after the last one found cannot be known"
        count = sum(entry.kind in MEASURED for entry in self.entries.values())
        return (
            f"{path.name} is damaged ({self.problem or 'checksums do not agree'}): {left_out}, {count} measurements "
            "are whole. Make a new store of them with `infocap export` to another .db file, and go on there.",
        )

    def _guess(self, identity: int) -> str:
        """The name of a lost entry: measurements are stored in the order of the schedule."""
        schedule = self.schedule
        if identity <= BEFORE or schedule is None or identity - BEFORE > len(schedule[0]):
            return "plan" if identity == 1 else "schedule" if identity == BEFORE else f"entry {identity}"
        names = names_of(schedule[0])
        in_order = all(
            (entry.kind, entry.number) == names[one - BEFORE - 1]
            for one, entry in self.entries.items()
            if BEFORE < one <= len(names) + BEFORE
        )
        return " ".join(map(str, names[identity - BEFORE - 1])) if in_order else f"entry {identity}"


def pack(u: Floats, x: Floats) -> bytes:
    """One measurement: what was sent and what came back, real or complex."""
    kind = b"c" if np.iscomplexobj(x) else b"f"
    values = np.asarray(x, dtype="<c16" if kind == b"c" else "<f8")
    return struct.pack("<cI", kind, len(u)) + np.asarray(u, dtype="<f8").tobytes() + values.tobytes()


def unpack(data: bytes) -> tuple[Floats, Floats]:
    """The inverse of `pack`."""
    kind, n_inputs = struct.unpack_from("<cI", data)
    start, middle = 5, 5 + 8 * n_inputs
    u = np.frombuffer(data[start:middle], dtype="<f8").astype(float)
    return u, np.frombuffer(data[middle:], dtype="<c16" if kind == b"c" else "<f8").copy()


def pack_schedule(codes: Integers, inputs: Floats) -> bytes:
    """All measurements planned: codes, then inputs."""
    return (
        struct.pack("<I", len(codes))
        + np.asarray(codes, "<i8").tobytes()
        + np.asarray(inputs, "<f8").tobytes()
    )


def unpack_schedule(data: bytes) -> tuple[Integers, Floats]:
    """The inverse of `pack_schedule`."""
    (n,) = struct.unpack_from("<I", data)
    inputs = np.frombuffer(data[4 + 8 * n :], dtype="<f8").astype(float)
    return np.frombuffer(data[4 : 4 + 8 * n], dtype="<i8").astype(int), inputs.reshape(n, -1)


def accept(
    found: StoreContents, identity: int, kind: Any, number: Any, time: Any, data: Any, crc: Any
) -> None:
    """Take an entry in if it is whole; otherwise keep what its name looks like."""
    try:
        entry = Entry(kind.decode(), int(number), float(time), bytes(data))
        whole = entry.crc == crc
    except (AttributeError, TypeError, ValueError, OverflowError, struct.error):
        entry, whole = None, False
    if whole and entry is not None:
        found.entries[identity] = entry
        found.damaged.pop(identity, None)
    elif identity not in found.entries:
        named = entry is not None and entry.kind in (*MEASURED, "plan", "schedule")
        found.damaged[identity] = f"{entry.kind} {entry.number}" if named and entry is not None else ""
