"""Arrays in MATLAB files of version 5 to 7, described before they are read.

SciPy's reader allocates what a header declares and follows nested cells as deep as they go; this one checks sizes
first, and skips what is not an array of numbers, text, or such a field of a structure.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._files import Variable, refuse_too_large
from ..errors import DataError

MATRIX, PACKED = 14, 15  # types of elements
STRUCTURE, CHARACTERS, OPAQUE = 2, 4, 17  # classes of matrices
CLASSES = dict(zip(range(6, 16), ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), strict=True))
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
NAME = re.compile(r"\w{1,255}", re.ASCII)  # of a variable; MATLAB allows 63 characters, SciPy writes more
HEAD = 1 << 16  # bytes that hold the shape and the name
DEEPEST = 8  # structures in structures


@dataclass(frozen=True)
class Element:
    """A variable of the file: its bytes, perhaps packed, and their order."""

    path: Path
    raw: memoryview
    packed: bool
    order: str

    def content(self, most: int | None = None) -> tuple[memoryview, int]:
        """The bytes of the matrix (at most so many of them), and how many there should be."""
        if not self.packed:
            return self.raw, len(self.raw)
        stream = zlib.decompressobj()
        kind, size = struct.unpack(self.order + "II", stream.decompress(self.raw, 8))
        if kind != MATRIX:
            raise self.damaged("a packed variable is no matrix")
        refuse_too_large(self.path, "a variable", (size,), 1)
        wanted = size if most is None else min(size, most)
        parts = b"" if not wanted else stream.decompress(stream.unconsumed_tail, wanted)
        if len(parts) < wanted:
            raise self.damaged(f"a packed variable ends after {len(parts):,} of {size:,} bytes")
        return memoryview(parts), size

    def damaged(self, what: str) -> DataError:
        """The error about this file."""
        return DataError(f"{self.path} is damaged or cut short: {what}.")


@dataclass(frozen=True)
class Header:
    """Class, shape and name of a matrix, and where what follows them starts."""

    kind: int
    shape: tuple[int, ...]
    is_complex: bool
    name: str
    after: int


def scan(path: Path, data: memoryview) -> dict[str, Variable]:
    """The variables of a file by name; fields of structures as ``data.u``."""
    if len(data) < 128 or bytes(data[126:128]) not in (b"IM", b"MI"):
        raise DataError(
            f"{path} is no MATLAB file of version 5 or later; in MATLAB or Octave, save with -v7."
        )
    order = "<" if bytes(data[126:128]) == b"IM" else ">"
    variables: dict[str, Variable] = {}
    at = 128
    whole = Element(path, data, False, order)
    while at + 8 <= len(data):
        kind, start, size, following = _tag(whole, data, at, len(data))
        if kind in (MATRIX, PACKED) and size:
            element = Element(path, data[start : start + size], kind == PACKED, order)
            for name, variable in _describe(element):
                variables.setdefault(name, variable)
        at = start + size if kind == PACKED else following
    return variables


def _describe(
    element: Element, at: int = 0, end: int | None = None, outer: str = ""
) -> Iterator[tuple[str, Variable]]:
    """A matrix, or the fields of a structure."""
    content, size = element.content(HEAD if end is None else None)
    end = size if end is None else end
    head = _header(element, content, at, end)
    name = outer or head.name
    if not name or name.startswith("__"):
        return
    if head.kind == STRUCTURE and math.prod(head.shape) == 1 and name.count(".") < DEEPEST:
        content, _ = element.content()
        for field, start, stop in _fields(element, content, head.after, end):
            yield from _describe(element, start, stop, f"{name}.{field}")
        return
    dtype, load = np.dtype(object), partial(_refuse, element, name)
    if head.kind in CLASSES or head.kind == CHARACTERS:
        if math.prod(head.shape) > end - head.after:  # a number takes at least one byte
            raise element.damaged(f"{name} of shape {head.shape} cannot be in {end - head.after:,} bytes")
        load = partial(_load, element, at, end)
        dtype = np.dtype(CLASSES.get(head.kind, "U"))
        dtype = np.result_type(dtype, np.complex64) if head.is_complex else dtype
    yield name, Variable(head.shape, dtype, load)


def _load(element: Element, at: int, end: int) -> Any:
    """The numbers, column after column as MATLAB keeps them, or text."""
    content, _ = element.content()
    head = _header(element, content, at, end)
    kind, start, size, at = _tag(element, content, head.after, end)
    if head.kind == CHARACTERS:
        coding = TEXTS.get(kind, "latin-1")
        sign = "" if kind in (1, 2, 16) else "-le" if element.order == "<" else "-be"
        return bytes(content[start : start + size]).decode(coding + sign)
    parts = [_stored(element, head, content, kind, start, size)]
    if head.is_complex:
        kind, start, size, _ = _tag(element, content, at, end)
        parts.append(_stored(element, head, content, kind, start, size))
    real = parts[0].astype(CLASSES[head.kind])
    values = real if len(parts) == 1 else _complex(real, parts[1])
    return np.ascontiguousarray(values.reshape(head.shape, order="F"))


def _stored(
    element: Element, head: Header, content: memoryview, kind: int, start: int, size: int
) -> np.ndarray:
    dtype = np.dtype(element.order + STORED.get(kind, "V0"))
    if dtype.itemsize * math.prod(head.shape) != size or kind not in STORED:
        raise element.damaged(f"{head.name} of shape {head.shape} has {size:,} bytes of type {kind}")
    return np.frombuffer(content, dtype, math.prod(head.shape), start)


def _complex(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imaginary
    return out


def _refuse(element: Element, name: str) -> Any:
    raise DataError(f"{name} in {element.path} is no array of numbers; give one.")


def _header(element: Element, content: memoryview, at: int, end: int) -> Header:
    _, start, size, at = _tag(element, content, at, end)
    if size < 8:
        raise element.damaged("a matrix has no flags")
    (flags,) = struct.unpack_from(element.order + "I", content, start)
    shape: tuple[int, ...] = ()
    if flags & 0xFF != OPAQUE:
        _, start, size, at = _tag(element, content, at, end)
        if not 8 <= size <= 4 * 32:
            raise element.damaged(f"a matrix has {size // 4} dimensions")
        shape = struct.unpack_from(f"{element.order}{size // 4}i", content, start)
        if min(shape) < 0:
            raise element.damaged(f"a matrix has the shape {shape}")
    _, start, size, at = _tag(element, content, at, end)
    name = bytes(content[start : start + size]).decode("latin-1")
    if name and not NAME.fullmatch(name):
        raise element.damaged("the name of a variable is none")
    return Header(flags & 0xFF, shape, bool(flags & 0x800), name, at)


def _fields(element: Element, content: memoryview, at: int, end: int) -> Iterator[tuple[str, int, int]]:
    """The names of the fields of a structure, and where their matrices start and stop."""
    _, start, size, at = _tag(element, content, at, end)
    (width,) = struct.unpack_from(element.order + "i", content, start) if size == 4 else (0,)
    _, start, size, at = _tag(element, content, at, end)
    if width < 1 or size % width:
        raise element.damaged("a structure has no names of fields")
    names = [
        bytes(content[k : k + width]).split(b"\0")[0].decode("latin-1")
        for k in range(start, start + size, width)
    ]
    if not all(map(NAME.fullmatch, names)):
        raise element.damaged("the name of a field is none")
    for name in names:
        kind, start, size, at = _tag(element, content, at, end)
        if kind != MATRIX:
            raise element.damaged(f"the field {name} is no matrix")
        if size:
            yield name, start, start + size


def _tag(element: Element, content: memoryview, at: int, end: int) -> tuple[int, int, int, int]:
    """Type, start and size of an element, and where the next one is."""
    if at + 8 > min(end, len(content)):
        raise element.damaged(f"an element at byte {at:,} is not there")
    word, size = struct.unpack_from(element.order + "II", content, at)
    if word >> 16:  # up to four bytes, within the tag
        word, size, start, following = word & 0xFFFF, word >> 16, at + 4, at + 8
    else:
        start, following = at + 8, at + 8 + size + -size % 8
    if start + size > end or (following == at + 8 and size > 4 and start == at + 4):
        raise element.damaged(f"an element at byte {at:,} of {size:,} bytes ends behind byte {end:,}")
    return word, start, size, following
