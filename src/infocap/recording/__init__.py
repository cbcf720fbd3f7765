"""A measured or simulated data set, and the files it comes from and goes to."""

from ._entries import MEASURED, PAGE_BYTES, SCHEMA, Entry, StoreContents, pack, pack_schedule, unpack
from ._numpy_file import open_npz
from ._read import read
from ._recording import Recording
from ._schedule_names import NOISE, REFERENCE, names_of
from ._store_file import read_entries, to_recording
from ._write import WRITERS

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
    "open_npz",
    "pack",
    "pack_schedule",
    "read",
    "read_entries",
    "to_recording",
    "unpack",
]
