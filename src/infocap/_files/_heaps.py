"""The places where HDF5 keeps strings, looked at before it does: on some damaged ones the library never returns."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from ..errors import DataError

COLLECTION = b"GCOL\x01\0\0\0"  # signature, version and reserved bytes
OBJECT = struct.Struct("<HHIQ")  # number, uses, reserved, size; padded to 8 bytes


def refuse_broken_heaps(path: Path, kind: str) -> None:
    """An error unless the objects of every heap fill it exactly (HDF5 file format, III.E)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(COLLECTION)
        while at >= 0:
            if not _is_whole(data, at):
                raise DataError(
                    f"{path} cannot be read as {kind} (the strings at byte {at:,} are damaged); it is truncated or "
                    "damaged, and nothing of it can be recovered."
                )
            at = data.find(COLLECTION, at + 1)


def _is_whole(data: mmap.mmap, at: int) -> bool:
    if at + 16 > len(data):
        return False
    (size,) = struct.unpack_from("<Q", data, at + 8)
    here, end = at + 16, at + size
    if end > len(data):
        return False
    while end - here >= OBJECT.size:
        number, _, _, size = OBJECT.unpack_from(data, here)
        if number == 0:  # free space, up to the end
            return bool(size == end - here)
        here += OBJECT.size + size + -size % 8
    return here <= end
