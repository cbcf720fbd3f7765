"""The table of a store, and how one of its rows is packed and unpacked."""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...typing import Floats
from ._measurement import Kind, Measurement
from ._schedule import Schedule

SCHEMA = """CREATE TABLE entry (
    id INTEGER PRIMARY KEY,  -- counts the rows from 1, without gaps
    kind TEXT NOT NULL,  -- plan, schedule, sample, repeat, noise, reference, dark or event
    number INTEGER NOT NULL,  -- the design index of a sample and of its repeat
    time REAL NOT NULL,  -- seconds since 1970
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,  -- the checksum of the other columns but the id
    UNIQUE (kind, number)
)"""
COLUMNS = "kind, number, time, data, crc"

# The kinds of rows that are no measurements.
PLAN_ROW = "plan"  # the plan as JSON, and how the store began
SCHEDULE_ROW = "schedule"  # the measurements that this plan added
EVENT_ROW = "event"  # something that happened, as JSON
ROW_KINDS = (*Kind, PLAN_ROW, SCHEDULE_ROW, EVENT_ROW)

# What an event is about, under the name "what".
BEGUN = "begun"  # an acquisition began
ENDED = "ended"  # it ended, and its instrument was made safe
FAILURE = "failure"  # the instrument failed, and was asked again
INCOMPLETE = "incomplete"  # channels stayed without a number, however often they were asked for

# No row takes fewer bytes of the file: 12 of the index, 8 of the time, 21 of the data of one input
# and one readout, and the names of columns and kind. It limits how many rows a file can hold.
MIN_ROW_BYTES = 50

# The first byte of a packed measurement tells the type of its readouts. A capital letter says that
# extra values follow as JSON.
REAL = b"f"
COMPLEX = b"c"
NUMPY_TYPES = {REAL: "<f8", COMPLEX: "<c16"}
# The type of the readouts and the number of inputs; with extra values, the bytes of their JSON.
HEADER = struct.Struct("<cI")
EXTRA_LENGTH = struct.Struct("<I")
SCHEDULE_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class StoreRow:
    """One row of the table: what it is, when it was stored, and its content as bytes."""

    kind: str
    number: int
    time: float
    data: bytes

    @property
    def name(self) -> str:
        """Kind and number as text, for messages."""
        return f"{self.kind} {self.number}"

    @property
    def checksum(self) -> int:
        """The CRC-32 of kind, number, time and content."""
        head = f"{self.kind}\0{self.number}\0".encode() + struct.pack("<d", self.time)
        return zlib.crc32(self.data, zlib.crc32(head))

    @property
    def columns(self) -> tuple[Any, ...]:
        """What is written to the table, in the order of `COLUMNS`."""
        return (str(self.kind), self.number, self.time, self.data, self.checksum)

    @classmethod
    def from_columns(cls, columns: Sequence[Any]) -> Self:
        """Return a row of the table; one of `DAMAGE` is raised if its checksum does not agree."""
        kind, number, time, data, checksum = columns
        row = cls(kind.decode(), int(number), float(time), bytes(data))
        if row.checksum != checksum or not np.isfinite(row.time):
            raise ValueError(f"the checksum of {row.name} does not agree")
        return row

    @classmethod
    def of_measurement(cls, measurement: Measurement, time: float) -> Self:
        """Pack the inputs, the readouts and the extra values of a measurement."""
        readouts = np.asarray(measurement.readouts)
        letter = COMPLEX if np.iscomplexobj(readouts) else REAL
        u = np.asarray(measurement.u, dtype="<f8").ravel()
        data = HEADER.pack(letter.upper() if measurement.extra else letter, len(u))
        if measurement.extra:
            extra = json.dumps(measurement.extra).encode()
            data += EXTRA_LENGTH.pack(len(extra)) + extra
        data += u.tobytes() + readouts.astype(NUMPY_TYPES[letter]).tobytes()
        return cls(measurement.kind, measurement.number, time, data)

    def measurement(self) -> Measurement:
        """Unpack what `of_measurement` packed."""
        letter, n_inputs = HEADER.unpack_from(self.data)
        start = HEADER.size
        extra: dict[str, float] = {}
        if letter.isupper():
            (n_bytes,) = EXTRA_LENGTH.unpack_from(self.data, start)
            start += EXTRA_LENGTH.size
            values = json.loads(self.data[start : start + n_bytes])
            extra = {str(name): float(value) for name, value in values.items()}
            start += n_bytes
        middle = start + 8 * n_inputs
        if len(self.data) <= middle:
            raise ValueError(f"{n_inputs} inputs in {len(self.data)} bytes")
        u = np.frombuffer(self.data[start:middle], "<f8").astype(float)
        readouts: Floats = np.frombuffer(self.data[middle:], NUMPY_TYPES[letter.lower()]).copy()
        kind = Kind(self.kind)
        return Measurement(kind, self.number, u, readouts=readouts, extra=extra, time=self.time)

    @classmethod
    def of_schedule(cls, schedule: Schedule, number: int, time: float) -> Self:
        """Pack all measurements planned: how many they are, their codes, then their inputs."""
        codes = np.asarray(schedule.codes, "<i8")
        inputs = np.asarray(schedule.inputs, "<f8")
        data = SCHEDULE_LENGTH.pack(len(codes)) + codes.tobytes() + inputs.tobytes()
        return cls(SCHEDULE_ROW, number, time, data)

    def schedule(self) -> Schedule:
        """Unpack what `of_schedule` packed."""
        (n_measurements,) = SCHEDULE_LENGTH.unpack_from(self.data)
        start = SCHEDULE_LENGTH.size
        middle = start + 8 * n_measurements
        codes = np.frombuffer(self.data[start:middle], "<i8").astype(int)
        inputs = np.frombuffer(self.data[middle:], "<f8").astype(float)
        if len(codes) < n_measurements or not inputs.size:
            raise ValueError(f"{n_measurements} measurements in {len(self.data)} bytes")
        return Schedule(codes, inputs.reshape(n_measurements, -1))

    @classmethod
    def of_table(cls, kind: str, table: dict[str, Any], number: int, time: float) -> Self:
        """Pack the names and values of a plan or an event."""
        return cls(kind, number, time, json.dumps(table).encode())

    def table(self) -> dict[str, Any]:
        """Unpack what `of_table` packed."""
        table = json.loads(self.data)
        if not isinstance(table, dict):
            raise ValueError(f"{self.kind} {table!r:.60}")
        return table


# What `from_columns` and the methods that unpack raise where a row is damaged or forged.
DAMAGE = (
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
