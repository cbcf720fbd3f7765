"""The acquisition store: every measurement is on the disk before it counts as measured."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from ..._files import blame, replaced, sync
from ..._validation import one_of
from ..._version import __version__
from ...errors import DataError, ParameterError, warn
from ...recording._recording import Recording
from ...typing import ArrayLike, Floats
from . import _store_file as files
from ._plan import Plan
from ._schedule import Measurement, Schedule, joined
from ._store_file import BEGUN, ENDED, LATEST_S, MEASURED, PAGE_BYTES, Entry, StoreContents

# How long to wait for another process that holds the file: longer than any step of a reader takes.
WAIT_S = 30.0


class Store:
    """Measurements of one plan in a SQLite file: crash-safe, resumable, readable by others meanwhile.

    ``Store(path, plan)`` begins a store or goes on with one of the same plan; ``Store(path)`` opens one that is there.
    `record` returns when the measurement is safe from a crash and from a loss of power.

    >>> import tempfile
    >>> from infocap.lab import Plan
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(f"{folder.name}/run.db", Plan(n_inputs=2, max_degree=2, n_samples=8, seed=1)) as store:
    ...     for index, u in store.pending():
    ...         store.record(index, [u.sum(), u[0] * u[1]])
    ...     store.recording()
    Recording: 8 samples, 2 inputs, 2 readouts
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, plan: Plan | None = None) -> None:
        self.path = Path(path)
        self._lock = RLock()
        self._closed = False
        if not self.path.parent.exists():
            raise DataError(f"the folder {self.path.parent} does not exist; make it first.")
        found, wanted = (
            files.read_entries(self.path) if self.path.exists() else StoreContents(),
            plan,
        )
        log = self.path.with_name(f"{self.path.name}-wal")
        if not found.entries:
            # SQLite would throw away a log without its file, and the measurements in it.
            if (
                log.exists()
                and log.stat().st_size
                and not (self.path.exists() and self.path.stat().st_size)
            ):
                said = f"{log} is part of a store that was moved or renamed"
                raise DataError(f"{said}; move it along with its store, or give another name.")
        elif not found.sound:
            raise DataError(found.damage(self.path))
        else:
            with blame(self.path, "an acquisition store"):
                there = Plan.from_dict(found.story["plan"])
            plan = self._same(plan or there, there)
        if plan is None:
            raise DataError(
                f"{self.path} does not exist or holds nothing; give a plan to begin with."
            )
        self.plan = plan
        self.schedule = found.schedule or plan.schedule
        self._story = (
            found.story or {"begun": _now(), "acquired_with": f"infocap {__version__}"} | plan.story
        )
        self._connection = _connect(
            self.path, None if found.entries else self._story, self.schedule
        )
        measured = [entry for entry in found.entries.values() if entry.kind in MEASURED]
        self._file = os.stat(self.path)
        self._input = {(one.kind, one.number): one.u for one in self.schedule}
        self._stored = {(entry.kind, entry.number) for entry in measured} & self._input.keys()
        self.events: list[dict[str, Any]] = found.contents("event")
        known = (
            len(measured[0].content[1])
            if measured
            else plan.steps * (plan.n_readouts or len(plan.channel))
        )
        self.n_readouts: int | None = known or None
        if wanted is not None and wanted.is_extension_of(plan):
            self.extend(wanted.n_samples)

    def __len__(self) -> int:
        return len(self._stored)

    def __repr__(self) -> str:
        count = f"{len(self)} of {len(self.schedule)} measurements"
        return f"Store: {count}, plan {self.plan.fingerprint[:12]}, {self.path}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def complete(self) -> bool:
        """Whether all that was planned is stored."""
        return len(self) == len(self.schedule)

    def pending(self) -> Iterator[tuple[int, Floats]]:
        """(index, u) of the samples not yet stored, in the order of acquisition; of a sequence, as `remaining` says."""
        return ((one.number, one.u) for one in self.remaining() if one.kind == "sample")

    def remaining(self) -> Iterator[Measurement]:
        """Everything not yet stored, in the order of acquisition: noise, samples, repeats, references, dark.

        Of a sequence each is a whole run with its washout, u is (steps, inputs), and `record` takes (steps, readouts).
        """
        shape = (self.plan.steps, -1) if self.plan.runs else (-1,)
        left = (one for one in self.schedule if (one.kind, one.number) not in self._stored)
        return (one._replace(u=one.u.reshape(shape)) for one in left)

    def record(
        self, index: int, readouts: ArrayLike, kind: str = "sample", measured: float | None = None
    ) -> None:
        """Store what was measured at the input with this design index; return when it is safe.

        `kind` is ``"sample"``, ``"repeat"``, ``"noise"``, ``"reference"`` or ``"dark"``; `measured` the time, now by
        default.
        """
        one_of("kind", kind, MEASURED)
        u = self._input.get((kind, int(index)))
        if u is None:
            raise ParameterError(
                f"`index={index!r}` is no {kind} of this plan of {len(self.schedule)} rows."
            )
        self.record_many([Measurement(kind, int(index), u)], [readouts], measured=measured)

    def record_many(
        self,
        some: Sequence[Measurement],
        readouts: Sequence[ArrayLike],
        extra: Sequence[dict[str, float]] | None = None,
        measured: float | None = None,
    ) -> None:
        """Store several measurements of `remaining` as one step: after a crash all of them are there, or none.

        `extra` has other values of each by their names, such as ``{"Temperature [K]": 293.1}``.
        """
        if self._closed:
            raise ParameterError(
                f"the store {self.path} is closed; open it again with Store(path)."
            )
        values = self.checked(some, readouts)
        moment = time.time() if measured is None else float(measured)
        if not 0 <= moment < LATEST_S:
            raise ParameterError(
                f"`measured={moment:g}` is no time of a measurement; give seconds since 1970."
            )
        rows = zip(
            some, values, extra or [{}] * len(values), range(1 - len(values), 1), strict=True
        )
        # A microsecond apart: the order within a batch must not get lost.
        entries = [
            Entry(*one[:2], moment + 1e-6 * k, files.pack(one.u.ravel(), x, more))
            for one, x, more, k in rows
        ]
        with self._lock:
            self._refuse_deleted()
            self._write(entries)
            self._stored |= {(one.kind, one.number) for one in some}
            self.n_readouts = len(values[0])

    def note(self, what: str, **words: Any) -> None:
        """Store that something happened: an acquisition began or ended, a measurement failed."""
        event = {"what": what, **words}
        self._write([Entry("event", len(self.events), time.time(), json.dumps(event).encode())])
        self.events.append(event)

    def extend(self, n_samples: int) -> None:
        """Plan so many samples in all, or a few more (`Plan.extended`); what was planned or measured stays."""
        if n_samples < self.plan.n_samples:
            said = f"`n_samples={n_samples}` is less than the {self.plan.n_samples} that {self.path} has planned"
            raise ParameterError(f"{said}; a plan can only grow.")
        if n_samples == self.plan.n_samples:
            return
        plan, known = self.plan.extended(n_samples), len(self.schedule)
        added = Schedule(plan.schedule.codes[known:], plan.schedule.inputs[known:])
        grown = [*self._story.get("extended", []), {"at": _now(), "n_samples": plan.n_samples}]
        story, moment = self._story | plan.story | {"extended": grown}, time.time()
        words = Entry("plan", len(grown), moment, json.dumps(story).encode())
        self._write([words, Entry("schedule", len(grown), moment, files.pack_schedule(added))])
        self.plan, self._story, self.schedule = plan, story, joined([self.schedule, added])
        self._input = {(one.kind, one.number): one.u for one in self.schedule}

    def _write(self, entries: Sequence[Entry]) -> None:
        """Store entries as one step: when it returns all of them are on the disk, when it raises none."""
        try:
            with (
                self._lock,
                self._connection as connection,
            ):  # which undoes everything when something is raised
                connection.execute("BEGIN IMMEDIATE")
                for entry in entries:
                    query = "SELECT data FROM entry WHERE kind = ? AND number = ?"
                    there = connection.execute(query, entry[:2]).fetchone()
                    if there is None:
                        _put(connection, entry)
                    elif there != (entry.data,):  # the same once more does no harm
                        said = f"{entry.kind} {entry.number} is stored already with other readouts"
                        raise DataError(f"{said}; a measurement is never overwritten.")
                connection.execute("COMMIT")
        except sqlite3.Error as problem:
            free, first = shutil.disk_usage(self.path.parent).free / 1e6, entries[0]
            raise DataError(
                f"{first.kind} {first.number} could not be stored ({problem}; {free:,.0f} MB are free there); the "
                f"{len(self)} measurements before it are safe in {self.path}. Make room, then give the same command "
                "again to go on."
            ) from None

    @property
    def last_instrument(self) -> str | None:
        """The name of the instrument that measured last; None before any did."""
        return next(
            (
                str(one.get("instrument"))
                for one in reversed(self.events)
                if one.get("what") == BEGUN
            ),
            None,
        )

    @property
    def crashed(self) -> bool:
        """Whether the last acquisition ended without having made its instrument safe."""
        ends = [one["what"] for one in self.events if one.get("what") in (BEGUN, ENDED)]
        return ends[-1:] == [BEGUN]

    def _refuse_deleted(self) -> None:
        """Refuse to write to a file that has no name any more; bring what it holds to a new one."""
        try:
            if os.path.samestat(os.stat(self.path), self._file):
                return
        except FileNotFoundError:
            pass
        new, said = (
            self.path.with_name(f"{self.path.stem}-rescued-{time.time():.0f}{self.path.suffix}"),
            "lost",
        )
        with suppress(sqlite3.Error):
            self._connection.execute("VACUUM INTO ?", (str(new),))
            said = f"in {new}"
        raise DataError(
            f"{self.path} was deleted, moved or replaced while an acquisition wrote to it; the {len(self)} "
            f"measurements that it held are {said}. Give that file the name of "
            "the store, and then the same command again: it goes on from there."
        )

    def recording(self) -> Recording:
        """What is stored, in design order."""
        return files.to_recording(files.read_entries(self.path), self.path)

    def close(self) -> None:
        """Close the file; everything is on the disk already."""
        if not self._closed:
            self._closed = True
            _close(self._connection)

    @classmethod
    def rescue(cls, damaged: str | Path, path: str | Path) -> Self:
        """A new store with all that is whole in a damaged one, which stays as it is."""
        found = files.read_entries(Path(damaged))
        if "plan" not in found.story:
            raise DataError(f"the plan of {damaged} is lost; export its rows to a .nc file.")
        if Path(path).exists():
            raise DataError(f"{path} is there already; give a new name.")
        schedule = (
            found.schedule or Plan.from_dict(found.story["plan"]).schedule
        )  # of extensions, as one
        with replaced(Path(path)) as beside:
            connection = _connect(beside, found.story, schedule)
            with connection:
                connection.execute("BEGIN")
                for entry in found.entries.values():
                    if entry.kind in (*MEASURED, "event"):
                        _put(connection, entry)
            _close(connection)
        return cls(path)

    def _same(self, plan: Plan, there: Plan) -> Plan:
        """The store's plan, if it is the one given but for words, or one extends the other."""
        if plan.is_extension_of(there) or there.is_extension_of(plan):
            return there
        both = {
            one.name: (getattr(there, one.name), getattr(plan, one.name)) for one in fields(Plan)
        }
        pairs = {name: (old, new) for name, (old, new) in both.items() if old != new}
        if plan.fingerprint != there.fingerprint:
            said = ", ".join(
                f"{name} {old!r} there and {new!r} here" for name, (old, new) in pairs.items()
            )
            raise DataError(
                f"{self.path} belongs to another plan: its fingerprint is {there.fingerprint[:12]}, this plan's is "
                f"{plan.fingerprint[:12]} ({said}); give another path, or the plan it belongs to."
            )
        for name, (old, new) in pairs.items():
            warn(
                f"{self.path} keeps its {name} {old!r}, though the plan says {new!r}; give another path for that."
            )
        return there

    def checked(
        self, measurements: Sequence[Measurement], readouts: Sequence[ArrayLike]
    ) -> list[Floats]:
        """One vector of numbers per measurement, all as long as those before, or an error that says what is wrong."""
        out, expected, steps = [], self.n_readouts, self.plan.steps
        for one, given in zip(measurements, readouts, strict=True):
            name = f"readouts of {'run' if self.plan.runs else one.kind} {one.number} have"
            masked = np.ma.isMA(given)
            values = np.asarray(
                np.ma.filled(np.ma.asarray(given, float), np.nan) if masked else given
            )
            if self.plan.runs:
                if values.size % steps or (values.ndim == 2 and len(values) != steps):
                    raise DataError(
                        f"{name} shape {values.shape}; give one row per time step, {steps}."
                    )
                values = values.ravel()
            values = values[0] if values.ndim == 2 and len(values) == 1 else values
            if values.ndim != 1 or not len(values) or values.dtype.kind not in "fiubc":
                raise DataError(
                    f"{name} shape {values.shape} and type {values.dtype}; give one vector of numbers."
                )
            expected = expected or len(values)
            if len(values) != expected:
                known = f"this store has {expected // steps} (a plan may say how many: n_readouts)"
                raise DataError(f"{name} {len(values) // steps} channels; {known}.")
            out.append(values)
        return out


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _connect(path: Path, story: dict[str, Any] | None, schedule: Schedule) -> sqlite3.Connection:
    """Open a store; with a story, begin it: what is planned is written in one step."""
    try:
        connection = sqlite3.connect(
            path, timeout=WAIT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # Where a disk allows no log beside the file, as over a network, each step waits for the disk.
        connection.execute(f"PRAGMA synchronous = {'FULL' if mode == 'wal' else 'EXTRA'}")
        connection.execute("PRAGMA fullfsync = ON")  # a Mac's disk keeps its promises only so
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        if story is not None:
            now = time.time()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(files.SCHEMA)
            _put(connection, Entry("plan", 0, now, json.dumps(story).encode()))
            _put(connection, Entry("schedule", 0, now, files.pack_schedule(schedule)))
            connection.execute("COMMIT")
            sync(path.parent)
    except sqlite3.Error as problem:
        why = str(problem) if story is None else f"{problem}; nothing was measured yet"
        raise DataError(
            f"{path} cannot be written ({why}); choose a folder on a local disk."
        ) from None
    return connection


def _put(connection: sqlite3.Connection, entry: Entry) -> None:
    query = "INSERT INTO entry (kind, number, time, data, crc) VALUES (?, ?, ?, ?, ?)"
    connection.execute(query, (*entry, entry.crc))


def _close(connection: sqlite3.Connection) -> None:
    """Leave one file, easy to copy, unless somebody is reading: then the log stays beside it."""
    connection.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
