"""Text tables of any make: where the numbers begin and how they are written is found, then pandas reads them."""

import csv
import io
import json
import re
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import blame, readable, refuse_too_large
from ..errors import DataError
from ..typing import Floats

COMMENT = ("#", "%")
MISSING = ("na", "NAN", "none", "NONE", "Null")  # beside those that pandas knows
# Bytes of memory per byte of text, at most: the text itself, its lines, and 8 bytes for each digit and comma.
EXPANSION = 8
SAMPLED = 50  # Lines that are looked at to find the separator and the columns of numbers; more tell the same.
# What a number looks like, to find where they are; pandas reads them. Groups are of three digits, as in 1,234.5.
PLAIN = r"[+-]?(?:\d+(?:{0}\d*)?|{0}\d+)(?:[eE][+-]?\d+)?"
GROUPED = r"[+-]?[1-9]\d{{0,2}}(?:{1}\d{{3}})+(?:{0}\d*)?"
NUMBER = re.compile(f"{PLAIN}|{GROUPED}|[+-]?nan|[+-]?inf(?:inity)?|na|n/a".format("[.,]", "[., ']"), re.IGNORECASE)
# Decimal sign and thousands separator, the usual ones first.
SIGNS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", "'"), (",", " "))
SYMBOL = r"[fpnuµμmcdkMGT]?(?:V|A|W|Hz|s|m|K|J|F|H|T|Pa|N|g|eV|rad|Ohm|Ω|bar)(?:\^?-?\d)?"
UNIT = re.compile(
    rf"[\[(]?\s*(?:{SYMBOL}(?:[/·* ]{SYMBOL})*|%|°C?|dBm?|(?i:deg(?:rees?)?|a\.?\s?u\.?|arb\.?|counts?|cts|volts?|"
    r"amps?|amperes?|sec(?:onds?)?|kelvin|hertz|watts?|bits?|-|1))\s*[\])]?"
)
IN_NAME = re.compile(r"[\[(]([^\[\]()]*)[\])]\s*$")  # the unit in a name such as Voltage A [V]


@dataclass
class Column:
    """A column of numbers, or of words: `values` are then the cells as they stand."""

    name: str
    unit: str
    values: np.ndarray
    lines: list[int]  # the number of every row's line in the file
    bad: int | None = None  # the first row that holds something else than a number

    @property
    def label(self) -> str:
        """The name, with the unit that a line of its own tells."""
        return f"{self.name} [{self.unit}]" if self.unit and not IN_NAME.search(self.name) else self.name

    @property
    def is_text(self) -> bool:
        """Whether fewer than half of its cells are numbers; one with more is a column of numbers with mistakes."""
        return self.bad is not None and self.values.dtype.kind == "U"

    @property
    def is_empty(self) -> bool:
        return self.values.dtype.kind in "fc" and bool(np.isnan(self.values).all())

    def seconds(self, date: "Column | None" = None) -> Floats | None:
        """Times in seconds: numbers as they are, dates since 1970; None where other words are. A day may stand apart."""
        import pandas as pd

        if not self.is_text:
            return self.values if self.bad is None and self.values.dtype.kind == "f" else None
        cells = pd.Series(self.values).str.replace(",", ".").replace("", None)
        if date is not None and date.is_text:
            cells = pd.Series(date.values) + " " + cells
        if not cells.dropna().str.contains(r"\d").all():
            return None  # pandas takes "now" for a date
        with_dots = bool(cells.dropna().str.match(r"\d{1,2}\.\d{1,2}\.\d").all())  # as in Europe, the day first
        for form in ("ISO8601", None):
            with warnings.catch_warnings(action="ignore"):
                when = pd.to_datetime(cells, utc=True, errors="coerce", format=form, dayfirst=with_dots and not form)
            if when.notna().sum() == cells.notna().sum():
                return np.asarray((when - pd.Timestamp(0, tz="UTC")).dt.total_seconds(), dtype=float)
        return None

    def __str__(self) -> str:
        if self.is_empty:
            return "empty"
        if self.bad is not None:
            said = f"{str(self.values[self.bad])!r:.40} in line {self.lines[self.bad]}"
            return f"text such as {said}" if self.is_text else f"numbers, and {said}"
        if self.values.dtype.kind == "c":
            return "complex numbers"
        return f"{np.nanmin(self.values):.6g} to {np.nanmax(self.values):.6g}"


@dataclass
class Sheet:
    """The columns of a table, and how they were found in the file."""

    path: Path
    columns: list[Column]
    has_names: bool
    comments: list[str]
    dialect: str  # in words
    checks: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        return [column.label for column in self.columns]

    def words(self, start: str) -> dict[str, Any]:
        """The data in a comment that starts so; empty when there is none."""
        text = next((line[len(start) :] for line in self.comments if line.startswith(start)), "{}")
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as problem:
            said = f"{self.path} starts with {start!r} and then something damaged ({problem})"
            raise DataError(f"{said}; without that line the table can still be read.") from None

    def numbers(self, columns: list[int]) -> np.ndarray:
        """Columns of numbers side by side; a cell that is none is named."""
        for one in (self.columns[k] for k in columns):
            if one.bad is not None:
                said = f"{self.path} has {str(one.values[one.bad])!r:.60} in line {one.lines[one.bad]}"
                said = f"{said}, column {one.label!r}; give numbers only"
                raise DataError(f"{said}, or leave the cell empty and say `nan='drop'`.")
        return np.column_stack([self.columns[k].values for k in columns])

    def real(self, columns: list[int], what: str) -> Floats:
        """Columns that must be real numbers, side by side."""
        values = self.numbers(columns)
        if values.dtype.kind == "c":
            raise DataError(f"{self.path} has complex numbers among its {what}; give real ones.")
        return values

    def turned(self) -> "Sheet":
        """Exchange rows and columns: the first column has the names, and another one of words perhaps the units."""
        first, *others = self.columns
        rows = self.numbers([k for k, one in enumerate(self.columns) if not one.is_text])
        units = [one for one in others if one.is_text and all(map(UNIT.fullmatch, one.values))]
        given = units[0].values if units else [""] * len(rows)
        columns = [
            Column(str(name), str(unit), values, [line] * rows.shape[1])
            for name, unit, values, line in zip(first.values, given, rows, first.lines, strict=True)
        ]
        return Sheet(self.path, columns, True, self.comments, f"{self.dialect}, one line per channel", self.checks)


def unit_of(name: str) -> str:
    """The unit in the last brackets of a name, if there is one.

    >>> unit_of("Voltage A [V]"), unit_of("power (µW)"), unit_of("sensor (left)")
    ('V', 'µW', '')
    """
    found = IN_NAME.search(name)
    return found[1].strip() if found and UNIT.fullmatch(found[1].strip()) else ""


def load_sheet(path: Path) -> Sheet:
    """Read a table; lines before it, names and units are told apart from it, a line of another length is named."""
    readable(path)
    refuse_too_large(path, "text", (path.stat().st_size,), EXPANSION)
    text = list(io.StringIO(_decoded(path), newline=None))
    comments = [line.rstrip("\n") for line in text if line.startswith(COMMENT)]
    lines = [(number, line.rstrip("\n")) for number, line in enumerate(text, 1) if not line.isspace()]
    if lines and re.fullmatch("sep=.", lines[0][1], re.IGNORECASE):
        del lines[0]  # as spreadsheets write
    plain = [line for _, line in lines if not line.startswith(COMMENT)]
    if not plain:
        raise DataError(f"{path} holds no rows of numbers.")
    separator = _separator(plain[len(plain) // 2 :][:SAMPLED])
    records = lines if separator is None else _whole_records(path, lines)
    layout = _find_rows(path, records, separator)
    rows = [one for one in records[layout.start :] if not one[1].startswith(COMMENT)]
    for number, row in rows:
        count = _count(row, separator)
        if count not in (layout.width, len(layout.names)):
            said = f"{path} has {count} cells in line {number} and {layout.width} in the others"
            raise DataError(f"{said}; repair that line.")
    body = "\n".join(row for _, row in rows)
    decimal, thousands, doubt = _signs(path, body, separator, layout.width)
    frame = _parsed(path, body, separator, len(layout.names) or layout.width, decimal, thousands)
    names = layout.names or [str(k + 1) for k in range(frame.shape[1])]
    units = layout.units or [""] * len(names)
    numbers = [number for number, _ in rows]
    columns = [_column(names[k], units[k], frame[k], numbers, decimal) for k in frame]
    while len(columns) > 1 and columns[-1].is_empty and not (layout.names and columns[-1].name):
        del columns[-1]  # every line ended in a separator
    named = {None: "white space", "\t": "tabs"}.get(separator, repr(separator))
    said = [f"text separated by {named}", *(["decimal comma"] if decimal == "," else [])]
    said += [f"{thousands!r} between thousands"] if thousands else []
    said += [f"names in line {layout.name_line}"] if layout.names else ["no names of columns"]
    said += ["units below them"] if layout.units else []
    said += [f"numbers from line {numbers[0]} on"]
    checks = (doubt,) if doubt else ()
    return Sheet(path, columns, bool(layout.names), comments, ", ".join(said), checks)


def _decoded(path: Path) -> str:
    """The text of a file in UTF-8, UTF-16 or Latin-1, which is that of older instruments and never fails."""
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        with blame(path, "text in UTF-16"):
            return data.decode("utf-16")
    if b"\0" in data[:4096]:
        raise DataError(f"{path} is binary, not text; give it the suffix of its own format.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeError:
        return data.decode("latin-1")


def _separator(sample: list[str]) -> str | None:
    """Find the separator that makes the largest share of cells numbers, the rarer ones first; None is white space."""

    def share(separator: str | None) -> float:
        cells = [cell for line in sample for cell in _cells(line, separator) if cell]
        return sum(map(_looks_like_number, cells)) / max(len(cells), 1)

    there = [one for one in ("\t", ";", ",") if any(one in line for line in sample)]
    return max([*there, None], key=share)


def _looks_like_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None or '"' not in line:
        return [cell.strip() for cell in line.split(separator)]
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]


def _count(line: str, separator: str | None) -> int:
    return len(_cells(line, separator)) if separator is None or '"' in line else line.count(separator) + 1


def _whole_records(path: Path, lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Join lines that are parts of one cell between quotes."""
    records: list[tuple[int, str]] = []
    is_open = False
    for number, line in lines:
        if is_open:
            records[-1] = (records[-1][0], f"{records[-1][1]} {line}")
        else:
            records.append((number, line))
        is_open ^= line.count('"') % 2 == 1 and (is_open or not line.startswith(COMMENT))
    if is_open:
        raise DataError(f"{path} has quotes that do not match in line {records[-1][0]}.")
    return records


@dataclass
class _Layout:
    start: int  # the first record of numbers
    width: int  # cells of a row
    names: list[str]
    units: list[str]
    name_line: int = 0


def _find_rows(path: Path, records: list[tuple[int, str]], separator: str | None) -> _Layout:
    """Find the first row that is like those in the middle of the file, and above it names and perhaps units."""
    middle = [one for _, one in records[len(records) // 2 :] if not one.startswith(COMMENT)][:SAMPLED]
    width = Counter(_count(one, separator) for one in middle).most_common(1)[0][0] if middle else 0
    cells = [_cells(one, separator) for one in middle if _count(one, separator) == width]
    numeric = []
    for k, column in enumerate(zip(*cells, strict=True)):
        there = [cell for cell in column if cell]
        if there and 2 * sum(map(_looks_like_number, there)) >= len(there):
            numeric.append(k)

    def numbers_in(line: str) -> list[bool]:
        found = _cells(line, separator)
        return [_looks_like_number(found[k]) for k in numeric if found[k]] if len(found) >= width else []

    there = [bool(numbers_in(one)) and all(numbers_in(one)) and not one.startswith(COMMENT) for _, one in records]
    if not any(there):
        only = f", only the names of {width} columns" if len(records) == 1 and width > 1 else ""
        raise DataError(f"{path} holds no rows of numbers{only}.")
    start = there.index(True)
    above = [one for one in records[:start] if not one[1].startswith(COMMENT) or numbers_in(one[1].lstrip("#% "))]
    while above and any(numbers_in(above[-1][1])) and not above[-1][1].startswith(COMMENT):
        start = records.index(above.pop())  # a row with a mistake in it is a row of numbers, too
    heads = [(number, _cells(line.lstrip("#% "), separator)) for number, line in above]
    if heads and len(heads[-1][1]) == width - 1 > 1:
        said = f"{path} has {width} cells in line {records[start][0]} and {width - 1} in line {heads[-1][0]}"
        raise DataError(f"{said} above it; give every column a name.")
    if not heads or len(heads[-1][1]) < width or any(numbers_in(above[-1][1])):
        return _Layout(start, width, [], [])
    units: list[str] = []
    if len(heads) > 1 and len(heads[-2][1]) >= width and all(UNIT.fullmatch(one) for one in heads[-1][1] if one):
        units = [one.strip("[]() ") for one in heads.pop()[1]]
    number, names = heads[-1]
    return _Layout(start, width, names, units + [""] * (len(names) - len(units)) if units else [], number)


def _signs(path: Path, body: str, separator: str | None, width: int) -> tuple[str, str, str]:
    """Find the decimal sign, the thousands separator, and what remains in doubt, from all cells that hold either."""
    if separator == "," and '"' not in body or not ("," in body or "'" in body):
        return ".", "", ""
    frame = _parsed(path, body, separator, width, ".", "", dtype=str)
    cells = {one.strip() for k in frame for one in frame[k].dropna().unique()}
    cells = {one for one in cells if _looks_like_number(one)}
    fits = {}
    for decimal, thousands in SIGNS:
        grouped = f"|{GROUPED}" if thousands else ""
        pattern = re.compile(f"{PLAIN}{grouped}".format(re.escape(decimal), thousands and re.escape(thousands)))
        fits[decimal, thousands] = all(pattern.fullmatch(one) or one[-1:].isalpha() for one in cells)
    found = next((one for one in SIGNS if fits[one]), (".", ""))
    if found != (",", "") or not fits[".", ","]:
        return *found, ""
    for k in frame:  # every comma is before three digits
        column = frame[k].dropna().str.strip()
        if column.str.contains(",").any() and column.str.fullmatch(r"[+-]?\d{1,3}").any():
            return ".", ",", ""
    said = f"commas in {path.name} were taken for decimal signs, though all of them stand before three digits"
    return ",", "", f"{said}; if they separate thousands, write the numbers without them."


def _parsed(
    path: Path, body: str, separator: str | None, width: int, decimal: str, thousands: str, dtype: Any = None
) -> Any:
    """The rows as pandas reads them, with all digits."""
    import pandas as pd

    before_exact = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)  # the last digit must be asked for
    with blame(path, "a table"):
        return pd.read_csv(
            io.StringIO(body),
            sep=r"\s+" if separator is None else separator,
            header=None,
            names=range(width),
            index_col=False,
            decimal=decimal,
            thousands=thousands or None,
            na_values=MISSING,
            skipinitialspace=True,
            low_memory=False,
            dtype=dtype,
            **({"float_precision": "round_trip"} if before_exact else {}),
        )


def _column(name: str, unit: str, cells: Any, lines: list[int], decimal: str) -> Column:
    """Make numbers of the cells, complex ones too; where fewer than half are some, keep them as words."""
    if cells.dtype.kind in "iuf":
        return Column(name, unit, cells.to_numpy(dtype=float), lines)
    words = np.array(["" if missing else str(one).strip() for one, missing in zip(cells, cells.isna(), strict=True)])
    found = [_complex(word.replace(decimal, ".")) if word else complex("nan") for word in words]
    if None not in found:
        values = np.array(found)
        return Column(name, unit, values if values.imag.any() else values.real, lines)
    right = sum(one is not None and bool(word) for one, word in zip(found, words, strict=True))
    is_text = 2 * right < np.count_nonzero(words)
    return Column(name, unit, words if is_text else words.astype(object), lines, found.index(None))


def _complex(word: str) -> complex | None:
    with suppress(ValueError):
        return complex(f"{word[:-1]}j" if word.endswith("i") else word)
    return None
