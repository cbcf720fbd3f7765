"""Reading the store that `Store` writes: while it is written, whole or damaged."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..._files import as_data_error
from ..._formatting import counted, join_names, one_line
from ...errors import Check, DataError
from ...recording import Measurements, Recording, assemble_recording
from ._measurement import Kind, Measurement
from ._schedule import Schedule, join_schedules
from ._store_row import (
    COLUMNS,
    DAMAGE,
    EVENT_ROW,
    FAILURE,
    INCOMPLETE,
    MIN_ROW_BYTES,
    PLAN_ROW,
    ROW_KINDS,
    SCHEDULE_ROW,
    SCHEMA,
    StoreRow,
)

# The first bytes of every SQLite file.
SQLITE_MAGIC = b"SQLite format 3\0"
# The latest time that a measurement can have, in seconds since 1970: the year 5138. A time in
# milliseconds is later by far.
MAX_TIME_S = 1e11
# How long a reader waits for a process that holds the file, in seconds: longer than any step takes.
READ_TIMEOUT_S = 30.0
# The first two rows of every store, whose names are clear even where nothing of them is left.
FIRST_ROWS = {1: "plan", 2: "schedule"}
# How many names a message lists.
MAX_NAMES = 12
MAX_REASONS = 3
MAX_PLACES = 5

# SQLite's codes for a file that another process holds, and for one that only a writer can open.
IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NEEDS_WRITER = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


@dataclass
class StoreContents:
    """What a store holds, each in the order in which it was stored, and what is damaged."""

    plans: list[dict[str, Any]] = field(default_factory=list)  # as planned, then as extended
    schedules: list[Schedule] = field(default_factory=list)  # what each plan added
    measurements: list[Measurement] = field(default_factory=list)
    event_rows: list[StoreRow] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # names of rows that are damaged or missing
    problem: str = ""  # what SQLite says of the file, if it is damaged
    last_id: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is no row, because the process ended before it wrote any."""
        return self.last_id == 0

    @property
    def is_sound(self) -> bool:
        """Whether no row is damaged or missing."""
        return not self.problem and not self.left_out

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened: acquisitions that began and ended, and failures of the instrument."""
        return [row.table() for row in self.event_rows]

    @property
    def provenance(self) -> dict[str, Any]:
        """The latest plan as plain data, its fingerprint, and how the store began."""
        return self.plans[-1] if self.plans else {}

    @property
    def schedule(self) -> Schedule | None:
        """Every measurement planned; None where a part of it is lost."""
        if not self.schedules or len(self.schedules) != len(self.plans):
            return None
        return join_schedules(self.schedules)

    @property
    def times(self) -> np.ndarray:
        """When each measurement was stored, in seconds since 1970."""
        return np.array([measurement.time for measurement in self.measurements], dtype=float)

    @property
    def clock_is_right(self) -> bool:
        """Whether times are seconds since 1970 that never go back."""
        times = self.times
        return bool((np.diff(times) >= 0).all() and (times < MAX_TIME_S).all())

    def add(self, row_id: int, columns: Sequence[Any]) -> None:
        """Take in a row of the table if it is whole; otherwise keep its name."""
        for missing in range(self.last_id + 1, row_id):
            self.left_out.append(FIRST_ROWS.get(missing, f"row {missing}"))
        self.last_id = row_id
        try:
            self._add_whole(StoreRow.from_columns(columns))
        except DAMAGE:
            self.left_out.append(_damaged_name(row_id, columns))

    def _add_whole(self, row: StoreRow) -> None:
        """Take in an undamaged row, by its kind."""
        if row.kind == PLAN_ROW:
            self.plans.append(row.table())
        elif row.kind == SCHEDULE_ROW:
            self.schedules.append(row.schedule())
        elif row.kind == EVENT_ROW:
            row.table()  # raises an error where the content makes no sense
            self.event_rows.append(row)
        else:
            self.measurements.append(row.measurement())

    def checks(self, path: Path) -> tuple[Check, ...]:
        """Return what is amiss: damage, failures of the instrument, a clock that was set back."""
        checks = []
        if not self.is_sound:
            checks.append(Check(self.damage(path)))
        failures = [event for event in self.events if event.get("what") == FAILURE]
        if failures:
            checks.append(_failure_note(failures))
        incomplete = [event for event in self.events if event.get("what") == INCOMPLETE]
        if incomplete:
            checks.append(_incomplete_note(incomplete))
        if not self.clock_is_right:
            checks.append(
                Check(
                    "the clock jumped back during the run, or did not tell seconds: rows are in "
                    "the order stored.",
                    kind="note",
                )
            )
        return tuple(checks)

    def damage(self, path: Path) -> str:
        """Return in one sentence what is damaged and what to do."""
        reason = self.problem or "checksums do not agree"
        names = f" ({join_names(self.left_out, MAX_NAMES)})" if self.left_out else ""
        lost_end = ", rows after the last one that can be read are lost" if self.problem else ""
        return (
            f"{path.name} is damaged ({reason}): {len(self.left_out)} rows are left out{names}"
            f"{lost_end}, {len(self.measurements)} measurements are whole; make a new store of "
            "them with `infocap export` to another .db file, and go on there."
        )


def _damaged_name(row_id: int, columns: Sequence[Any]) -> str:
    """Return the name of a damaged row, as far as it can still be read."""
    kind, number, *_ = columns
    with suppress(*DAMAGE):
        kind = bytes(kind).decode()
        if kind in ROW_KINDS:
            return f"{kind} {int(number)}"
    return FIRST_ROWS.get(row_id, f"row {row_id}")


def _failure_note(failures: list[dict[str, Any]]) -> Check:
    """Return how often the instrument failed, why and where."""
    reasons = Counter(str(event.get("reason")) for event in failures)
    reasons_in_words = [
        f"{reason.rstrip('.')}, {counted(count, 'time')}" for reason, count in reasons.most_common()
    ]
    places = list(dict.fromkeys(str(event.get("at")) for event in failures))
    return Check(
        f"the instrument failed {counted(len(failures), 'time')} and was asked again "
        f"({join_names(reasons_in_words, MAX_REASONS)}), at {join_names(places, MAX_PLACES)}.",
        kind="note",
        failures=len(failures),
        reasons=dict(reasons.most_common()),
    )


def _incomplete_note(incomplete: list[dict[str, Any]]) -> Check:
    """Return which measurements were stored although channels had no number."""
    places = []
    for event in incomplete:
        channels = join_names([str(channel) for channel in event.get("channels", ())], MAX_PLACES)
        places.append(f"{event.get('at')} (channel {channels})")
    return Check(
        f"{counted(len(places), 'measurement')} stayed without a number in some channels, however "
        f"often the instrument was asked: {join_names(places, MAX_PLACES)}. They are stored as "
        "missing values; `nan_policy='omit'` leaves such rows out.",
        kind="note",
        incomplete=places,
    )


# From the file to its contents.


def read_store(path: Path) -> StoreContents:
    """Read a store.

    A row whose checksum does not agree is left out and named. If SQLite finds the file damaged,
    the rows that it can still read are there.

    Raises
    ------
    DataError
        If the file is no store, if SQLite can read nothing of it, or if another process holds it.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist.")
    try:
        with _opened(path) as connection:
            return _read(path, connection)
    # The text of SQLite's own message may be damaged, too.
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        if _error_code(problem) in IN_USE:
            raise DataError(f"{path} is held by another process ({problem}); try again.") from None
        raise DataError(
            f"{path} is not an acquisition store, or nothing of it can be read "
            f"({one_line(problem)}); take another copy of it. If another program wrote this "
            "database, save its table as .csv, or load it by pandas.read_sql and call "
            "infocap.estimate(u, x)."
        ) from None


def _read(path: Path, connection: sqlite3.Connection) -> StoreContents:
    """Read all rows, one state of the file."""
    definitions = connection.execute("SELECT sql FROM sqlite_schema WHERE sql NOT NULL").fetchall()
    if not definitions:
        return StoreContents()
    # A view, or columns that are computed, could take for ever.
    schema = [_without_comments(sql.decode(errors="replace")) for (sql,) in definitions]
    if schema != [_without_comments(SCHEMA)]:
        raise sqlite3.DatabaseError("its table is not that of a store")
    max_rows = _n_bytes(path) // MIN_ROW_BYTES
    try:
        return _read_whole(connection, max_rows)
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        if _error_code(problem) in IN_USE:
            raise
        contents = _read_row_by_row(connection, max_rows)
        contents.problem = one_line(problem)
        if contents.is_empty:
            raise
        return contents


def _read_whole(connection: sqlite3.Connection, max_rows: int) -> StoreContents:
    """Read all rows of a file that SQLite finds in order."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != b"ok":
        last_line = verdict.decode(errors="replace").split("\n")[-1]
        raise sqlite3.DatabaseError(f"malformed: {last_line}")
    contents = StoreContents()
    for row_id, *columns in connection.execute(f"SELECT id, {COLUMNS} FROM entry ORDER BY id"):
        if not isinstance(row_id, int) or not contents.last_id < row_id <= max_rows:
            raise sqlite3.DatabaseError("malformed: the numbers of its rows make no sense")
        contents.add(row_id, columns)
    return contents


def _read_row_by_row(connection: sqlite3.Connection, max_rows: int) -> StoreContents:
    """Read each row by its number, so that a damaged page costs only the rows on it."""
    contents = StoreContents()
    query = f"SELECT {COLUMNS} FROM entry WHERE id = ?"
    for row_id in range(1, max_rows + 1):
        with suppress(sqlite3.Error, UnicodeDecodeError):  # `add` sees the gap and names the row
            columns = connection.execute(query, (row_id,)).fetchone()
            if columns is not None:
                contents.add(row_id, columns)
    return contents


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a store for reading, at one moment of it.

    After a loss of power the log beside the file must be worked in first, which only a writer can
    do. That happens in a copy, so that reading changes nothing.
    """
    with closing(_connect(path, "ro")) as connection:
        try:
            _begin_reading(connection)
        except sqlite3.Error as problem:
            if _error_code(problem) not in NEEDS_WRITER:
                raise
        else:
            yield connection
            return
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        for suffix in ("", "-wal", "-journal"):
            with suppress(FileNotFoundError):
                shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        with closing(_connect(copy, "rw")) as connection:
            _begin_reading(connection)
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open a SQLite file in a mode of its URI, so that damaged parts do not end the reading."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=READ_TIMEOUT_S)
    connection.text_factory = bytes  # text that is damaged must not end the reading of the rest
    # Without this SQLite refuses a file that was cut as a whole. Nothing is ever written.
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def _begin_reading(connection: sqlite3.Connection) -> None:
    """Hold the present state of the file, until the connection is closed."""
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _n_bytes(path: Path) -> int:
    """Return the size of a store and of the log beside it."""
    n_bytes = path.stat().st_size
    log = path.with_name(f"{path.name}-wal")
    with suppress(FileNotFoundError):
        n_bytes += log.stat().st_size
    return n_bytes


def _without_comments(sql: str) -> str:
    """Return the definition of a table without comments and white space."""
    code = [line.partition("--")[0] for line in sql.splitlines()]
    return "".join("".join(code).split())


def _error_code(problem: Exception) -> int:
    """Return the primary result code of SQLite, without the details in its higher bits."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


# From the contents to a recording.


def recording_of_store(contents: StoreContents, path: Path) -> Recording:
    """Return what has been measured so far, in design order."""
    if contents.is_empty:
        raise DataError(
            f"{path} holds nothing yet; an acquisition was ended before its first step."
        )
    with as_data_error(path, "an acquisition store"):
        return _to_recording(contents, path)


def _to_recording(contents: StoreContents, path: Path) -> Recording:
    """Return the measurements of a store as a recording with their provenance."""
    provenance = _provenance_with_times(contents) | {"file": path.name}
    plan = provenance.get("plan", {})
    measurements = _in_design_order(contents)
    rows = Measurements(
        path,
        readout_unit=str(plan.get("readout_unit", "")),
        channel=tuple(map(str, plan.get("channel", ()))),
        metadata=provenance,
        input_unit=str(plan.get("input_unit", "")),
        checks=[*contents.checks(path), *_dark_notes(measurements)],
    )
    if measurements:
        _fill(rows, measurements, plan)
    else:
        rows.u = np.empty((0, plan.get("n_inputs", 0)))
        rows.x = np.empty((0, len(rows.channel)))
        rows.index = np.empty(0, dtype=int)
        rows.time = np.empty(0)
    return assemble_recording(rows)


def _provenance_with_times(contents: StoreContents) -> dict[str, Any]:
    """Return the plan and how the store began, with the times of the first and last measurement."""
    provenance = dict(contents.provenance)
    if contents.measurements and contents.clock_is_right:
        first = datetime.fromtimestamp(contents.times.min(), UTC)
        last = datetime.fromtimestamp(contents.times.max(), UTC)
        provenance["measured"] = [end.isoformat(timespec="seconds") for end in (first, last)]
    return provenance


def _in_design_order(contents: StoreContents) -> list[Measurement]:
    """Return the measurements, repeats after the samples that they repeat.

    A repeat whose sample is damaged is left out. Where the clock was wrong, the time of a
    measurement is its rank in the order of storing.
    """
    measurements = contents.measurements
    if not contents.clock_is_right:
        measurements = [
            replace(measurement, time=rank) for rank, measurement in enumerate(measurements)
        ]
    samples = {
        measurement.number for measurement in measurements if measurement.kind == Kind.SAMPLE
    }

    def is_usable(measurement: Measurement) -> bool:
        return measurement.kind != Kind.REPEAT or measurement.number in samples

    def place(measurement: Measurement) -> tuple[bool, int]:
        return measurement.kind == Kind.REPEAT, measurement.number

    return sorted(filter(is_usable, measurements), key=place)


def _dark_notes(measurements: list[Measurement]) -> list[Check]:
    """Return a note on dark levels, if there are any; `assemble_recording` subtracts them."""
    n_dark = sum(measurement.kind == Kind.DARK for measurement in measurements)
    if n_dark == 0:
        return []
    text = (
        f"{n_dark} dark measurements (source off): from every other measurement the latest dark "
        "one was subtracted."
    )
    return [Check(text, kind="note", dark=n_dark)]


def _fill(rows: Measurements, measurements: list[Measurement], plan: dict[str, Any]) -> None:
    """Put measurements into the arrays of `rows`, one row for each time step."""
    inputs = []
    readouts = []
    index = []
    n_steps = []
    for measurement in measurements:
        steps = 1
        if plan.get("runs"):  # then a measurement is a run of a sequence, of many time steps
            steps = len(measurement.u) // plan["n_inputs"]
        inputs.append(measurement.u.reshape(steps, -1))
        readouts.append(np.reshape(measurement.readouts, (steps, -1)))
        if measurement.kind.code is None:
            index.append(measurement.number * steps + np.arange(steps))
        else:
            index.append(np.full(steps, measurement.kind.code))
        n_steps.append(steps)
    _refuse_unequal(rows.path, "inputs", inputs)
    _refuse_unequal(rows.path, "channels", readouts)
    rows.u = np.concatenate(inputs)
    rows.x = np.concatenate(readouts)
    rows.index = np.concatenate(index)
    rows.time = np.repeat([measurement.time for measurement in measurements], n_steps)
    rows.extra_names = _names_of_extra_values(measurements)
    if rows.extra_names:
        extra = []
        for measurement in measurements:
            extra.append([measurement.extra.get(name, np.nan) for name in rows.extra_names])
        rows.extra = np.repeat(np.array(extra), n_steps, axis=0)


def _names_of_extra_values(measurements: list[Measurement]) -> tuple[str, ...]:
    """Return the names of the extra values of samples and repeats, each once."""
    names: dict[str, None] = {}  # in place of a set, to keep the order
    for measurement in measurements:
        if measurement.kind.code is None:
            names |= dict.fromkeys(measurement.extra)
    return tuple(names)


def _refuse_unequal(path: Path, name: str, blocks: list[np.ndarray]) -> None:
    """Refuse a store whose measurements differ in the number of inputs or channels."""
    widths = {block.shape[1] for block in blocks}
    if len(widths) > 1:
        widths_in_words = join_names([str(width) for width in sorted(widths)])
        raise DataError(f"{path} has measurements of {widths_in_words} {name}; it is no store.")
