"""The acquisition store read in blocks: its rows stay in the file until they are asked for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..typing import Floats, Integers
from ._entries import Entry, StoreContents, unpack
from ._recording import Recording
from ._store_file import load_store, open_read_only

SMALL = ("plan", "noise", "reference")


class StoreRows:
    """The inputs or the readouts of a store's samples, by design index; every row's checksum is looked at."""

    sent_by_name = True  # its file is opened again wherever it is read

    def __init__(self, path: str, role: str, index: Integers, width: int, dtype: Any) -> None:
        self.path, self._role, self._index = path, role, index
        self.shape, self.dtype = (len(index), width), np.dtype(dtype)

    def __getitem__(self, rows: slice) -> Floats:
        wanted = self._index[rows]
        out = np.empty((len(wanted), self.shape[1]), self.dtype)
        if not len(wanted):
            return out
        with closing(open_read_only(Path(self.path))) as connection:
            found = connection.execute(
                "SELECT number, time, data, crc FROM entry WHERE kind = 'sample' AND number BETWEEN ? AND ? "
                "ORDER BY number",
                (int(wanted[0]), int(wanted[-1])),
            )
            count = 0
            for number, time, data, crc in found:
                if Entry("sample", number, time, bytes(data)).crc != crc or count == len(wanted):
                    raise DataError(f"sample {number} of {self.path} changed or is damaged; read it whole.")
                out[count] = unpack(bytes(data))["ux".index(self._role)]
                count += 1
        if count < len(wanted):
            raise DataError(f"{len(wanted) - count} samples of {self.path} are gone; read it whole.")
        return out


def store_in_place(path: Path) -> Recording:
    """A store as a recording whose samples stay in it; one with repeats, or a damaged one, is read whole."""
    try:
        with closing(open_read_only(path)) as connection:
            (repeats,) = connection.execute("SELECT count(*) FROM entry WHERE kind = 'repeat'").fetchone()
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if repeats or said != b"ok":
                return load_store(path)
            rows = connection.execute(
                "SELECT number, time FROM entry WHERE kind = 'sample' ORDER BY number"
            ).fetchall()
            first = connection.execute(
                "SELECT data FROM entry WHERE kind = 'sample' ORDER BY number LIMIT 1"
            ).fetchone()
    except sqlite3.Error:
        return load_store(path)
    if not rows:
        return load_store(path)
    small = _small(path)
    index, times = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    u, x = unpack(bytes(first[0]))
    held: dict[str, Any] = {
        name: StoreRows(str(path.resolve()), role, index, len(values), values.dtype)
        for name, role, values in (("inputs", "u", u), ("readouts", "x", x))
    }
    return Recording(
        **held,
        index=index,
        acquired=times,
        **{
            name: getattr(small, name)
            for name in (
                "readout_unit",
                "channel",
                "metadata",
                "input_unit",
                "noise",
                "reference",
                "reference_acquired",
            )
        },
    )


def _small(path: Path) -> Recording:
    """All that is not a sample."""
    from ._entries import accept
    from ._store_file import to_recording

    found = StoreContents()
    with closing(open_read_only(path)) as connection:
        query = f"SELECT id, kind, number, time, data, crc FROM entry WHERE kind IN {SMALL}"
        for row in connection.execute(query):
            accept(found, *row)
        sample = "SELECT id, kind, number, time, data, crc FROM entry WHERE kind = 'sample' ORDER BY number LIMIT 1"
        for row in connection.execute(sample):
            accept(found, *row)
    return to_recording(found, path)
