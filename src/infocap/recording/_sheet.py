"""Tables of numbers in text files of any dialect: separator, decimal sign, header, comments and encoding."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .._files import readable, refuse_too_large
from ..errors import DataError
from ._names import TIMES

MISSING = {"", "nan", "na", "n/a", "null", "none"}
COMMENT = ("#", "%")
EXPANSION = 8  # bytes of memory for each byte of text, at most


@dataclass
class Sheet:
    """Numbers (rows, columns), the names of the columns if there is a header, and the comments before them."""

    path: Path
    names: list[str] | None
    values: np.ndarray
    comments: list[str] = field(default_factory=list)


@dataclass
class Dialect:
    """How the cells of a line are told apart."""

    separator: str | None  # None is white space
    decimal_comma: bool = False

    def cells(self, line: str) -> list[str]:
        """The cells of one line."""
        if self.separator is None:
            return line.split()
        if '"' not in line:
            return line.split(self.separator)
        return next(csv.reader([line], delimiter=self.separator), [])


def load_sheet(path: Path) -> Sheet:
    """Read a table; a cell that is no number or a line of another length is named."""
    readable(path)
    refuse_too_large(path, "text", (path.stat().st_size,), EXPANSION)
    with path.open("rb") as file:
        start = file.read(4096)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\0" in start:
        raise DataError(f"{path} is binary, not text; give it the suffix of its own format.")
    else:
        encodings = ["utf-8-sig", "latin-1"]  # the second is that of older instruments, and never fails
    for encoding in encodings:
        try:
            with path.open(encoding=encoding) as lines:
                return _parse(path, lines)
        except UnicodeError as problem:
            if encoding == encodings[-1]:
                raise DataError(
                    f"{path} is no text in {encoding} ({problem}); write it as UTF-8."
                ) from problem
        except csv.Error as problem:
            raise DataError(
                f"{path} has quotes that do not match ({problem}); repair that line."
            ) from problem
    raise AssertionError("unreachable")


def _parse(path: Path, lines: Any) -> Sheet:
    comments: list[str] = []
    content = _content(lines, comments)
    number, first = next(content, (0, ""))
    if first.lower().startswith("sep=") and len(first) == 5:  # as spreadsheets write
        number, first = next(content, (0, ""))
    if not number:
        raise DataError(f"{path} holds no rows of numbers.")
    following = next(content, None)
    dialect = _dialect(first, following[1] if following else first)
    head = [cell.strip() for cell in dialect.cells(first)]
    header = any(_value(cell, dialect) is None for cell in head)
    names = head if header else None
    if header and following is None:
        raise DataError(f"{path} holds no rows of numbers, only the names of {len(head)} columns.")
    reader = _Reader(path, dialect, len(head), names)
    for place, line in ([] if header else [(number, first)]) + ([following] if following else []):
        reader.take(place, line)
    for place, line in content:
        reader.take(place, line)
    values = reader.values()
    if values.shape[1] > 1 and (names is None or not names[-1]) and np.isnan(values[:, -1]).all():
        values, names = values[:, :-1], names and names[:-1]  # every line ended in a separator
    return Sheet(path, names, values, comments)


def _content(lines: Any, comments: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that are neither empty nor comments, with their numbers in the file."""
    for number, line in enumerate(lines, 1):
        if line.startswith(COMMENT):
            if len(comments) < 100:
                comments.append(line.rstrip("\n"))
        elif not line.isspace():
            yield number, line.rstrip("\n")


def _dialect(first: str, second: str) -> Dialect:
    """The separator that both lines have equally often, the rarer ones in numbers first."""
    for separator in ("\t", ";", ","):
        if separator in second and second.count(separator) == first.count(separator):
            break
        if separator in second and '"' in first:
            break
    else:
        separator = next((one for one in ("\t", ";", ",") if one in second), "")
    return Dialect(separator or None, decimal_comma=separator != ",")


def _value(cell: str, dialect: Dialect) -> float | complex | None:
    """A number, NaN for a missing one, None for anything else."""
    cell = cell.strip()
    if cell.lower() in MISSING:
        return float("nan")
    if dialect.decimal_comma and "." not in cell:
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        pass
    try:
        return complex(cell.replace("i", "j") if cell.endswith("i") else cell)
    except ValueError:
        return None


class _Reader:
    """Numbers of one line after the other, in as little memory as they need."""

    def __init__(self, path: Path, dialect: Dialect, width: int, names: list[str] | None) -> None:
        self.path, self.dialect, self.width, self.names = path, dialect, width, names
        self.real, self.imaginary = (
            array("d"),
            array("d"),
        )  # the second stays empty until a complex number comes

    def take(self, place: int, line: str) -> None:
        cells = self.dialect.cells(line)
        if len(cells) != self.width:
            raise DataError(
                f"{self.path} has {len(cells)} cells in line {place} and {self.width} in its first line; repair "
                "that line (those before it are whole)."
            )
        try:
            row: list[Any] = list(map(float, cells))
        except ValueError:
            row = [self._cell(place, column, cell) for column, cell in enumerate(cells)]
        if any(isinstance(one, complex) for one in row) and not self.imaginary:
            self.imaginary.frombytes(bytes(8 * len(self.real)))
        if self.imaginary or any(isinstance(one, complex) for one in row):
            self.imaginary.extend(complex(one).imag for one in row)
            row = [one.real for one in row]
        self.real.extend(row)

    def values(self) -> np.ndarray:
        out: np.ndarray = np.frombuffer(self.real, dtype=float)
        if self.imaginary:
            parts, out = out, np.empty(len(self.real), dtype=complex)
            out.real, out.imag = parts, np.frombuffer(self.imaginary, dtype=float)
        return out.reshape(-1, self.width)

    def _cell(self, place: int, column: int, cell: str) -> float | complex:
        value = _value(cell, self.dialect)
        name = self.names[column] if self.names else str(column + 1)
        if value is None and name.lower() in TIMES:
            value = _seconds(cell)
        if value is None:
            raise DataError(
                f"{self.path} has {cell.strip()!r:.60} in line {place}, column {name!r}; give numbers only."
            )
        return value


def _seconds(cell: str) -> float | None:
    """A date and time such as 2026-01-31T23:59:58 as seconds since 1970, in UTC unless it says otherwise."""
    try:
        when = datetime.fromisoformat(cell.strip())
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
