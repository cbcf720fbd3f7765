"""Entries of a damaged store, found in the pages of the file without SQLite (sqlite.org/fileformat2.html).

A leaf page of a table lists its cells, a cell holds a record, and what does not fit goes to a chain of
overflow pages. The reader's checksum says whether to believe what is found.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._files import refuse_too_large

PAGE_BYTES = 4096  # of the stores we write; that of most file systems, so that a page is written in one piece
WAL_HEADER, FRAME_HEADER = 32, 24
SALT = slice(16, 24)  # of the log's head
MAGIC = b"SQLite format 3\0"


def records(path: Path) -> Iterator[tuple[Any, ...]]:
    """Find (id, kind, number, time, data, crc) of whatever looks like an entry, in the file and the log beside it."""
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
