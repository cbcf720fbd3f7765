"""The acquisition store: every measurement is on the disk before it counts as measured."""

import json
import os
import platform
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np

from ..._files import as_data_error, readable_path, sync, write_whole
from ..._validation import checks_arguments, require_one_of, shown
from ..._version import __version__
from ...errors import DataError, ParameterError, warn
from ...recording import Recording, to_json
from ...typing import ArrayLike, Floats
from ._lock import refuse_second_name
from ._measurement import Kind, Measurement
from ._plan import Plan
from ._schedule import Schedule, join_schedules
from ._store_file import StoreContents, read_store, recording_of_store
from ._store_row import BEGUN, COLUMNS, ENDED, EVENT_ROW, PLAN_ROW, SCHEMA, StoreRow

# How long a writer waits for a process that holds the file, in seconds: longer than any step of a
# reader takes.
WRITE_TIMEOUT_S = 30.0
# The page size of a new store. Most file systems have blocks of this size, so that a page is
# written in one piece.
PAGE_BYTES = 4096
# Measurements that are stored together are this far apart in time, in seconds, so that their order
# does not get lost.
BATCH_SPACING_S = 1e-6


class Store:
    """Measurements of one plan in a SQLite file.

    A crash loses nothing that was stored, an interrupted acquisition goes on where it ended, and
    other processes can read the file meanwhile.

    Parameters
    ----------
    path
        The file, by custom ``.db``.
    plan
        What to measure. A new store needs it. For a store that is there, it must be the plan it was
        begun with, or that plan with more samples, which extends the store.

    Raises
    ------
    DataError
        If the store belongs to another plan, is damaged, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from infocap.lab import Plan
    >>> plan = Plan(n_inputs=2, max_degree=2, n_samples=8, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/run.db", plan) as store:
    ...     for index, u in store.pending():
    ...         store.record(index, [u.sum(), u[0] * u[1]])
    ...     store.recording()
    Recording: 8 samples, 2 inputs, 2 readouts
    """

    @checks_arguments
    def __init__(self, path: str | Path, plan: Plan | None = None) -> None:
        self.path = Path(path)
        self._lock = RLock()
        self._closed = False
        if not self.path.parent.exists():
            raise DataError(f"the folder {self.path.parent} does not exist; make it first.")
        if self.path.exists() and not self.path.is_file():
            readable_path(self.path)  # a folder, a pipe or a device is refused
        refuse_second_name(self.path)
        contents = read_store(self.path) if self.path.exists() else StoreContents()
        if contents.is_empty:
            self._begin(plan)
        else:
            self._open(contents, plan)
        self._file = os.stat(self.path)
        self._planned = {measurement.key: measurement for measurement in self.schedule}
        self._stored = {measurement.key for measurement in contents.measurements}
        self._stored &= self._planned.keys()
        self.events = contents.events
        # Numbers in one measurement: channels, or those of all steps of a run; None if not known.
        self._n_values = self._planned_n_values()
        if contents.measurements:
            self._n_values = contents.measurements[0].n_values
        if plan is not None and plan.is_extension_of(self.plan):
            self.extend(plan.n_samples)

    def _begin(self, plan: Plan | None) -> None:
        """Make a new store."""
        _refuse_log_of_another_store(self.path)
        if plan is None:
            raise DataError(
                f"{self.path} does not exist or holds nothing; give a plan to begin with."
            )
        self.plan = plan
        self.schedule = plan.schedule
        self._provenance = {
            "begun": _now(),
            "acquired_with": f"infocap {__version__}",
            "acquired_on": platform.node(),
            **plan.provenance,
        }
        self._connection = _connect(self.path)
        _write_first_rows(self.path, self._connection, self._provenance, self.schedule)

    def _open(self, contents: StoreContents, plan: Plan | None) -> None:
        """Go on with a store that is there."""
        if not contents.is_sound:
            raise DataError(contents.damage(self.path))
        self._provenance = contents.provenance
        with as_data_error(self.path, "an acquisition store"):
            self.plan = Plan.from_dict(self._provenance["plan"])
        if plan is not None:
            _refuse_other_plan(self.path, plan, self.plan)
        self.schedule = contents.schedule or self.plan.schedule
        self._connection = _connect(self.path)

    def _planned_n_values(self) -> int | None:
        """Return how many numbers a measurement has by the plan, if the plan says so."""
        n_channels = self.plan.n_readouts or len(self.plan.channel)
        return self.plan.steps * n_channels or None

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

    @property
    def knows_n_readouts(self) -> bool:
        """Whether the plan or a stored measurement says how many readouts there are."""
        return self._n_values is not None

    # What is left to measure.

    def pending(self) -> Iterator[tuple[int, Floats]]:
        """Return design index and inputs of the samples not yet stored.

        They come in the order of acquisition. Repeats, noise and references are skipped;
        `remaining` has them too.
        """
        for measurement in self.remaining():
            if measurement.kind == Kind.SAMPLE:
                yield measurement.number, measurement.u

    def remaining(self) -> Iterator[Measurement]:
        """Return everything not yet stored, in the order of acquisition.

        Of a sequence each measurement is a whole run with its washout: `u` is (steps, inputs), and
        `record` takes (steps, readouts).
        """
        for measurement in self.schedule:
            if measurement.key not in self._stored:
                if self.plan.runs:
                    u = measurement.u.reshape(self.plan.steps, -1)
                    measurement = replace(measurement, u=u)
                yield measurement

    # Storing measurements.

    @checks_arguments
    def record(self, index: int, readouts: ArrayLike, kind: str = "sample") -> None:
        """Store what was measured; return when it is safe from a crash and a loss of power.

        Parameters
        ----------
        index
            The design index of the input, or the number of a measurement of another kind.
        readouts
            What came back, (channels,); of a sequence (steps, channels).
        kind
            ``"sample"``, ``"repeat"``, ``"noise"``, ``"reference"`` or ``"dark"``.

        Raises
        ------
        ParameterError
            If the plan has no such measurement, or the store is closed.
        DataError
            If the readouts are no numbers or of another length than before, if other readouts are
            stored there already, or if they cannot be written.
        """
        require_one_of("kind", kind, Kind)
        measurement = self._planned.get((Kind(kind), int(index)))
        if measurement is None:
            raise ParameterError(
                f"`index={shown(index)}` is no {kind} of this plan of {len(self.schedule)} rows."
            )
        self.record_many(self.checked([replace(measurement, readouts=readouts)]))

    @checks_arguments
    def checked(
        self, measurements: Sequence[Measurement], n_values: int | None = None
    ) -> list[Measurement]:
        """Return measurements whose readouts were checked, which is done here and nowhere else.

        Parameters
        ----------
        measurements
            What was measured, of those that `remaining` gives, with its readouts: all of them as
            long as those before.
        n_values
            The length of the readouts where neither the store nor the plan tells it.

        Raises
        ------
        DataError
            If readouts are no vector of numbers, or of another length than before.
        """
        n_values = self._n_values or n_values
        checked = []
        for measurement in measurements:
            vector = self._checked_readouts(measurement, n_values)
            n_values = len(vector)
            checked.append(replace(measurement, readouts=vector))
        return checked

    def _checked_readouts(self, measurement: Measurement, n_values: int | None) -> Floats:
        """Return readouts as one vector of numbers; refuse anything else, and another length."""
        n_steps = self.plan.steps
        readouts = measurement.readouts
        name = f"run {measurement.number}" if self.plan.runs else measurement.name
        if np.ma.isMA(readouts):
            readouts = np.ma.filled(np.ma.asarray(readouts, float), np.nan)
        values = np.asarray(readouts)
        if self.plan.runs:
            if values.size % n_steps or (values.ndim == 2 and len(values) != n_steps):
                raise DataError(
                    f"readouts of {name} have shape {values.shape}; "
                    f"give one row per time step, {n_steps}."
                )
            values = values.ravel()
        if values.ndim == 2 and len(values) == 1:
            values = values[0]
        if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "fiubc":
            raise DataError(
                f"readouts of {name} have shape {values.shape} and type {values.dtype}; "
                "give one vector of numbers."
            )
        if n_values is not None and len(values) != n_values:
            raise DataError(
                f"readouts of {name} have {len(values) // n_steps} channels; this store has "
                f"{n_values // n_steps} (a plan may say how many: n_readouts)."
            )
        return values

    @checks_arguments
    def record_many(self, measurements: Sequence[Measurement]) -> None:
        """Store several measurements as one step: after a crash all of them are there, or none.

        Parameters
        ----------
        measurements
            Measurements as `checked` returns them.
        """
        if self._closed:
            raise ParameterError(
                f"the store {self.path} is closed; open it again with Store(path)."
            )
        if not measurements:
            return
        last = time.time()
        rows = []
        for position, measurement in enumerate(measurements, start=1 - len(measurements)):
            moment = last + BATCH_SPACING_S * position
            rows.append(StoreRow.of_measurement(measurement, moment))
        with self._lock:
            self._refuse_deleted()
            self._write(rows)
            self._stored |= {measurement.key for measurement in measurements}
            self._n_values = measurements[0].n_values

    def _write(self, rows: Sequence[StoreRow]) -> None:
        """Store rows as one step: when it returns all are on the disk, when it raises none."""
        try:
            # Leaving the block by an error undoes everything.
            with self._lock, self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                for row in rows:
                    _insert_once(connection, row)
                connection.execute("COMMIT")
        except sqlite3.Error as problem:
            free_mb = shutil.disk_usage(self.path.parent).free / 1e6
            raise DataError(
                f"{rows[0].name} could not be stored ({problem}; {free_mb:,.0f} MB are free "
                f"there); the {len(self)} measurements before it are safe in {self.path}. Make "
                "room, then run the same command again to go on."
            ) from None

    def _refuse_deleted(self) -> None:
        """Refuse to write to a file that was deleted or moved; copy what it holds to a new file."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), self._file):
                return
        name = f"{self.path.stem}-rescued-{time.time():.0f}{self.path.suffix}"
        new_path = self.path.with_name(name)
        fate = "are lost; begin a new store"
        with suppress(sqlite3.Error):
            self._connection.execute("VACUUM INTO ?", (str(new_path),))
            fate = (
                f"are in {new_path}: give that file the name of the store, then run the same "
                "command again to go on"
            )
        raise DataError(
            f"{self.path} was deleted, moved or replaced while an acquisition wrote to it; the "
            f"{len(self)} measurements that it held {fate}."
        )

    # Events and longer plans.

    @checks_arguments
    def note(self, what: str, **details: Any) -> None:
        """Store that something happened: an acquisition began or ended, a measurement failed.

        Parameters
        ----------
        what
            What happened, in a word.
        **details
            Plain data about it.
        """
        event = json.loads(to_json("details", {"what": what, **details}))
        self._write([StoreRow.of_table(EVENT_ROW, event, len(self.events), time.time())])
        self.events.append(event)

    @property
    def last_instrument(self) -> str | None:
        """The name of the instrument that measured last; None before any did."""
        for event in reversed(self.events):
            if event.get("what") == BEGUN:
                return str(event.get("instrument"))
        return None

    @property
    def crashed(self) -> bool:
        """Whether the last acquisition ended without having made its instrument safe."""
        ends = [event["what"] for event in self.events if event.get("what") in (BEGUN, ENDED)]
        return ends[-1:] == [BEGUN]

    @checks_arguments
    def extend(self, n_samples: int) -> None:
        """Plan more samples; what was planned or measured stays.

        Parameters
        ----------
        n_samples
            The number of samples in all, rounded up as `Plan.extended` does.
        """
        if n_samples < self.plan.n_samples:
            raise ParameterError(
                f"`n_samples={n_samples}` is less than the {self.plan.n_samples} that {self.path} "
                "has planned; a plan can only grow."
            )
        if n_samples == self.plan.n_samples:
            return
        plan = self.plan.extended(n_samples)
        n_planned = len(self.schedule)
        added = Schedule(plan.schedule.codes[n_planned:], plan.schedule.inputs[n_planned:])
        extension = {"at": _now(), "n_samples": plan.n_samples}
        extensions = [*self._provenance.get("extended", []), extension]
        provenance = self._provenance | plan.provenance | {"extended": extensions}
        number = len(extensions)
        moment = time.time()
        self._write(
            [
                StoreRow.of_table(PLAN_ROW, provenance, number, moment),
                StoreRow.of_schedule(added, number, moment),
            ]
        )
        self.plan = plan
        self._provenance = provenance
        self.schedule = join_schedules([self.schedule, added])
        self._planned = {measurement.key: measurement for measurement in self.schedule}

    # What is stored, and the end.

    def recording(self) -> Recording:
        """Return what is stored, in design order."""
        return recording_of_store(read_store(self.path), self.path)

    def close(self) -> None:
        """Close the file; everything is on the disk already."""
        if not self._closed:
            self._closed = True
            _close(self._connection)

    @classmethod
    @checks_arguments
    def rescue(cls, damaged: str | Path, path: str | Path) -> Self:
        """Make a new store of all that can be read of a damaged store, which stays as it is.

        Parameters
        ----------
        damaged
            The damaged store.
        path
            A new file.
        """
        contents = read_store(Path(damaged))
        provenance = contents.provenance
        if "plan" not in provenance:
            raise DataError(f"the plan of {damaged} is lost; export its rows to a .nc file.")
        if Path(path).exists():
            raise DataError(f"{path} is there already; give a new name.")
        # The plan and its extensions are put together as one.
        schedule = contents.schedule or Plan.from_dict(provenance["plan"]).schedule
        rows = []
        for measurement in contents.measurements:
            rows.append(StoreRow.of_measurement(measurement, measurement.time or 0.0))
        rows += contents.event_rows
        with write_whole(Path(path)) as temporary:
            connection = _connect(temporary)
            _write_first_rows(temporary, connection, provenance, schedule)
            with connection:
                connection.execute("BEGIN")
                for row in rows:
                    _insert(connection, row)
            _close(connection)
        return cls(path)


def _refuse_log_of_another_store(path: Path) -> None:
    """Refuse to begin a store beside a log that holds measurements.

    The log belongs to a store that was moved without it; SQLite would throw it away.
    """
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    has_store = path.exists() and path.stat().st_size > 0
    if has_log and not has_store:
        raise DataError(
            f"{log} is part of a store that was moved or renamed; move it along with its store, or "
            "give another name."
        )


def _refuse_other_plan(path: Path, plan: Plan, stored: Plan) -> None:
    """Refuse a plan that measures something else than the store; warn where only words differ."""
    if plan.is_extension_of(stored) or stored.is_extension_of(plan):
        return
    former = {entry.name: getattr(stored, entry.name) for entry in fields(Plan)}
    new = {entry.name: getattr(plan, entry.name) for entry in fields(Plan)}
    different = [name for name in new if new[name] != former[name]]
    if plan.fingerprint != stored.fingerprint:
        in_words = [f"{name} {former[name]!r} there and {new[name]!r} here" for name in different]
        raise DataError(
            f"{path} belongs to another plan: its fingerprint is {stored.fingerprint[:12]}, this "
            f"plan's is {plan.fingerprint[:12]} ({', '.join(in_words)}); give another path, or the "
            "plan it belongs to."
        )
    for name in different:
        warn(
            f"{path} keeps its {name} {former[name]!r}, though the plan says {new[name]!r}; "
            "give another path for that."
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for writing, so that what is committed is on the disk."""
    try:
        connection = sqlite3.connect(
            path, timeout=WRITE_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # A disk that allows no log beside the file, as over a network, needs one more wait.
        synchronous = "FULL" if mode == "wal" else "EXTRA"
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        # Only with these does a Mac wait until the data are on the disk.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    except sqlite3.Error as problem:
        raise _cannot_be_written(path, str(problem)) from None
    return connection


def _write_first_rows(
    path: Path, connection: sqlite3.Connection, provenance: dict[str, Any], schedule: Schedule
) -> None:
    """Begin a store: the table, the plan and what is planned are written in one step."""
    moment = time.time()
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(SCHEMA)
        _insert(connection, StoreRow.of_table(PLAN_ROW, provenance, 0, moment))
        _insert(connection, StoreRow.of_schedule(schedule, 0, moment))
        connection.execute("COMMIT")
        sync(path.parent)
    except sqlite3.Error as problem:
        raise _cannot_be_written(path, f"{problem}; nothing was measured yet") from None


def _cannot_be_written(path: Path, reason: str) -> DataError:
    return DataError(f"{path} cannot be written ({reason}); choose a folder on a local disk.")


def _insert(connection: sqlite3.Connection, row: StoreRow) -> None:
    connection.execute(f"INSERT INTO entry ({COLUMNS}) VALUES (?, ?, ?, ?, ?)", row.columns)


def _insert_once(connection: sqlite3.Connection, row: StoreRow) -> None:
    """Insert a row; storing the same content once more does no harm, other content is refused."""
    query = "SELECT data FROM entry WHERE kind = ? AND number = ?"
    stored = connection.execute(query, (str(row.kind), row.number)).fetchone()
    if stored is None:
        _insert(connection, row)
    elif stored != (row.data,):
        raise DataError(
            f"{row.name} is stored already with other readouts; a measurement is never overwritten."
        )


def _close(connection: sqlite3.Connection) -> None:
    """Leave one file, easy to copy; if somebody is reading, the log stays beside it."""
    connection.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
