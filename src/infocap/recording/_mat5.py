"""Arrays in MATLAB files of version 5 to 7.

SciPy's reader is not used: on many a flipped byte (an unknown type, a missing imaginary part) it ends the whole
process, where a DataError is wanted. This one knows arrays of numbers, text, and such fields of structures.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import Variable, refuse_too_large
from ..errors import DataError

MATRIX, PACKED = 14, 15  # types of elements
STRUCTURE, CHARACTERS, OPAQUE = 2, 4, 17  # classes of matrices
COMPLEX = 0x800  # a flag of matrices
CLASSES = dict(zip(range(6, 16), ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), strict=True))
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
# Structures in structures; deeper ones are listed but not looked into, so that no file can exhaust the stack.
DEEPEST = 8


class Element(NamedTuple):
    """A piece of the file: its type and its bytes."""

    kind: int
    data: memoryview


def mat5_variables(path: Path) -> dict[str, Variable]:
    """Describe the variables of a file, by name; fields of structures as ``data.u``."""
    data = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    if len(data) < 128 or bytes(data[126:128]) not in (b"IM", b"MI"):
        raise DataError(
            f"{path} is no MATLAB file of version 5 or later; in MATLAB or Octave, save with -v7."
        )
    order = "<" if bytes(data[126:128]) == b"IM" else ">"
    variables: dict[str, Variable] = {}
    for element in _elements(path, data[128:], order):
        if element.kind == PACKED:
            found = _unpacked(path, element.data, order)
            for name, one in found.items():
                found[name] = replace(one, load=partial(_load_packed, path, element.data, order, name))
        else:
            found = _matrix(path, element.data, order) if element.kind == MATRIX else {}
        variables |= {name: one for name, one in found.items() if name not in variables}
    return variables


def _elements(path: Path, data: memoryview, order: str) -> Iterator[Element]:
    """Take apart pieces that lie one behind the other, each with a tag of its type and size."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        start, after = at + 8, at + 8 + size + (0 if kind == PACKED else -size % 8)
        if kind >> 16:  # up to four bytes, within the tag
            kind, size, start, after = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        if start + size > len(data) or (start == at + 4 and size > 4):
            raise DataError(
                f"{path} is damaged or cut short: an element of {size:,} bytes cannot be in {len(data) - start:,}."
            )
        yield Element(kind, data[start : start + size])
        at = after


def _unpacked(path: Path, data: memoryview, order: str) -> dict[str, Variable]:
    """Describe a compressed variable, once its size is known to fit and its checksum to agree."""
    stream = zlib.decompressobj()
    head = stream.decompress(data, 8)
    _, size = struct.unpack(order + "II", head)
    refuse_too_large(path, "a variable", (size,), 1)
    content = stream.decompress(stream.unconsumed_tail, size + 8)
    if not stream.eof:
        raise DataError(
            f"{path} is damaged or cut short: a packed variable of {size:,} bytes does not end there."
        )
    (element,) = _elements(path, memoryview(head + content), order)
    return _matrix(path, element.data, order)


def _load_packed(path: Path, data: memoryview, order: str, name: str) -> Any:
    """Read a compressed variable: it is unpacked again, so that only what is asked for stays in memory."""
    return _unpacked(path, data, order)[name].load()


def _matrix(path: Path, data: memoryview, order: str, outer: str = "") -> dict[str, Variable]:
    """Describe a matrix, or the fields of a structure; nothing for MATLAB's own objects."""
    parts = list(_elements(path, data, order))
    if not parts:
        return {}
    (flags,) = struct.unpack_from(order + "I", parts[0].data)
    kind = flags & 0xFF
    if kind == OPAQUE:
        return {}
    shape = tuple(np.frombuffer(parts[1].data, order + "i4").tolist())
    name = outer or bytes(parts[2].data).decode("latin-1")
    if not name or name.startswith("__"):
        return {}
    if not name.replace(".", "_").isidentifier() or min(shape, default=-1) < 0:
        raise DataError(f"{path} is damaged: a matrix has the name {name!r:.60} and the shape {shape}.")
    if kind == STRUCTURE and math.prod(shape) == 1 and name.count(".") < DEEPEST:
        return _fields(path, parts, order, name)
    if kind == CHARACTERS:
        return {name: Variable(shape, np.dtype("U"), partial(_text, parts[3], order))}
    if kind not in CLASSES:
        return {name: Variable(shape, np.dtype(object), partial(list, ()))}
    numbers = parts[3:5] if flags & COMPLEX else parts[3:4]
    for part in numbers:
        if part.kind not in STORED or math.prod(shape) * np.dtype(STORED[part.kind]).itemsize != len(
            part.data
        ):
            raise DataError(
                f"{path} is damaged: {name} of shape {shape} cannot be in {len(part.data):,} bytes of type {part.kind}."
            )
    dtype = np.result_type(CLASSES[kind], np.complex64) if flags & COMPLEX else np.dtype(CLASSES[kind])
    return {name: Variable(shape, dtype, partial(_numbers, numbers, order, shape, dtype))}


def _fields(path: Path, parts: list[Element], order: str, outer: str) -> dict[str, Variable]:
    """Describe the fields of a structure."""
    (width,) = struct.unpack(order + "i", parts[3].data)
    text = bytes(parts[4].data)
    names = [text[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(text), width)]
    found: dict[str, Variable] = {}
    for name, part in zip(names, parts[5:], strict=True):
        found |= _matrix(path, part.data, order, f"{outer}.{name}")
    return found


def _numbers(parts: list[Element], order: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Read numbers, which MATLAB keeps column after column and in the smallest type that holds them."""
    real, *imaginary = (np.frombuffer(part.data, order + STORED[part.kind]) for part in parts)
    values = real.astype(dtype)
    for one in imaginary:
        values.imag = one
    return np.ascontiguousarray(values.reshape(shape, order="F"))


def _text(part: Element, order: str) -> str:
    """Read characters."""
    coding = TEXTS.get(part.kind, "latin-1")
    sign = "" if coding in ("latin-1", "utf-8") else "-le" if order == "<" else "-be"
    return bytes(part.data).decode(coding + sign)
