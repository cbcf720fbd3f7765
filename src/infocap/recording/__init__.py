"""A measured or simulated data set, and the files it comes from and goes to."""

from ._own_file import WRITERS
from ._read import read
from ._recording import NOISE, REFERENCE, Recording, names_of
from ._salvage import PAGE_BYTES
from ._store import (
    MEASURED,
    SCHEMA,
    Entry,
    StoreContents,
    pack,
    pack_schedule,
    read_entries,
    to_recording,
    unpack,
)

__all__ = [
    "MEASURED",
    "NOISE",
    "PAGE_BYTES",
    "REFERENCE",
    "SCHEMA",
    "WRITERS",
    "Entry",
    "Recording",
    "StoreContents",
    "names_of",
    "pack",
    "pack_schedule",
    "read",
    "read_entries",
    "to_recording",
    "unpack",
]
