"""Text tables of any make: where the numbers begin and how they are written is found, then pandas reads them."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._files import blame, read_text
from ...errors import DataError
from ...typing import Floats

if TYPE_CHECKING:
    import pandas as pd

COMMENT = ("#", "%")
MISSING = ("", "nan", "na", "n/a", "null", "none", "#n/a")
LONGEST = 100_000  # Characters of a comment that may hold names; Python's csv takes no cells above 131,072.
SAMPLED = 50  # Lines that are looked at to find the separator and the columns of numbers; more tell the same.
LONG = 100_000  # Characters from which on pandas may read a table at once; shorter ones take less than 0.1 s anyway.
# What a number looks like, to find where they are; pandas reads them. Groups are of three digits, as in 1,234.5.
PLAIN = r"[+-]?(?:\d+(?:{0}\d*)?|{0}\d+)(?:[eE][+-]?\d+)?"
GROUPED = r"[+-]?[1-9]\d{{0,2}}(?:{1}\d{{3}})+(?:{0}\d*)?"
COMPLEX = rf"\(?{PLAIN}{PLAIN}[ij]\)?"
WORDS = "[+-]?nan|[+-]?inf(?:inity)?|na|n/a"
NUMBER = re.compile(f"{PLAIN}|{GROUPED}|{COMPLEX}|{WORDS}".format("[.,]", "[., ']"), re.IGNORECASE)
# Decimal sign and thousands separator, the usual ones first.
SIGNS = ((".", ""), (",", ""), (".", ","), (",", "."), (".", "'"), (",", "'"), (",", " "))
SYMBOL = r"[fpnuµμmcdkMGT]?(?:V|A|W|Hz|s|m|K|J|F|H|T|Pa|N|g|eV|rad|Ohm|Ω|bar)(?:\^?-?\d)?"
UNIT = re.compile(
    rf"[\[(]?\s*(?:{SYMBOL}(?:[/·* ]{SYMBOL})*|%|°C?|dBm?|(?i:deg(?:rees?)?|a\.?\s?u\.?|arb\.?|counts?|cts|volts?|"
    r"amps?|amperes?|sec(?:onds?)?|kelvin|hertz|watts?|bits?|-|1))\s*[\])]?"
)
NEXT_NAME = re.compile(r"\s+(?![\[(][^\d+.-])")  # white space, but not before the unit of a name
IN_NAME = re.compile(r"[\[(]([^\[\]()]*)[\])]\s*$")  # the unit in a name such as Voltage A [V]


@dataclass
class Sheet:
    """The columns of a table, each a pandas.Series with the numbers of its lines, and how they were found."""

    path: Path
    labels: list[str]  # names, with units if there are
    columns: list[pd.Series[Any]]
    has_names: bool
    decimal: str
    comments: list[str]
    dialect: str  # in words
    checks: tuple[str, ...] = ()

    def words(self, start: str) -> dict[str, Any]:
        """The data in a comment that starts so; empty when there is none."""
        text = next((line[len(start) :] for line in self.comments if line.startswith(start)), "{}")
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as problem:
            said = f"{self.path} starts with {start!r} and then something damaged ({problem})"
            raise DataError(f"{said}; without that line the table can still be read.") from None

    def is_text(self, column: int) -> bool:
        """Whether fewer than half of the cells are numbers; a column with more is one of numbers with mistakes."""
        cells = self.columns[column].dropna()
        return len(cells) > 0 and 2 * len(self._wrong(column)) > len(cells)

    def numbers(self, columns: list[int], real: str = "") -> np.ndarray:
        """Columns of numbers side by side, those of what must be `real` without complex ones; others are named."""
        for column in columns:
            for line, cell in self._wrong(column).items():
                said = (
                    f"{self.path} has {cell!r:.60} in line {line}, column {self.labels[column]!r}"
                )
                raise DataError(
                    f"{said}; give numbers only, or nothing, or name columns without it (--u, --x)."
                )
        values = np.column_stack([self.columns[column] for column in columns])
        if real and values.dtype.kind == "c":
            raise DataError(f"{self.path} has complex numbers among its {real}; give real ones.")
        return values

    def seconds(self, column: int, date: int | None = None) -> Floats | None:
        """Times in seconds, numbers as they are and dates since 1970, perhaps with the day apart; None for others."""
        import pandas as pd

        cells = self.columns[column]
        if not self.is_text(column):
            return np.asarray(cells) if cells.dtype.kind == "f" else None
        cells = cells if date is None else self.columns[date].astype(str) + " " + cells
        cells = cells.str.replace(",", ".")
        if not cells.dropna().str.contains(r"\d").all():
            return None  # pandas takes "now" for a date
        in_europe = bool(
            cells.dropna().str.match(r"\d{1,2}\.\d{1,2}\.\d").all()
        )  # the day comes first
        for form in ("ISO8601", None):  # or all as the first one is written
            with warnings.catch_warnings(action="ignore"):
                when = pd.to_datetime(
                    cells, utc=True, errors="coerce", format=form, dayfirst=in_europe and not form
                )
            if when.notna().sum() == cells.notna().sum():
                return np.asarray(
                    (when - pd.Timestamp(0, tz="UTC")).dt.total_seconds(), dtype=float
                )
        return None

    def described(self, column: int) -> str:
        """What a column holds: its range, or the first of its words."""
        cells = self.columns[column].dropna()
        for line, cell in self._wrong(column).items():
            return f"{'text such as' if self.is_text(column) else 'numbers, and'} {cell!r:.40} in line {line}"
        real = cells.dtype.kind == "f" and len(cells)
        return (
            f"{cells.min():.6g} to {cells.max():.6g}"
            if real
            else "complex numbers"
            if len(cells)
            else "empty"
        )

    def turned(self) -> Sheet:
        """Exchange rows and columns: where the first column is of words, those are names, another one units."""
        import pandas as pd

        text = [k for k in range(len(self.columns)) if self.is_text(k)]
        rows = self.numbers([k for k in range(len(self.columns)) if k not in text])
        words = [[str(self.columns[k].iloc[row]) for k in text[:2]] for row in range(len(rows))]
        labels = [_labelled(*one) if one else str(k + 1) for k, one in enumerate(words)]
        columns, said = [pd.Series(row) for row in rows], f"{self.dialect}, one line per channel"
        return replace(self, labels=labels, columns=columns, has_names=bool(text), dialect=said)

    def _wrong(self, column: int) -> pd.Series[Any]:
        """The cells that are neither numbers nor empty."""
        import pandas as pd

        cells = self.columns[column].dropna()
        if cells.dtype.kind in "fc":
            return cells[:0]
        return cells[pd.to_numeric(cells.str.replace(self.decimal, "."), errors="coerce").isna()]


def _labelled(name: str = "", unit: str = "") -> str:
    return (
        f"{name} [{unit.strip('[]() ')}]"
        if unit and UNIT.fullmatch(unit) and not IN_NAME.search(name)
        else name
    )


def unit_of(name: str) -> str:
    """The unit in the last brackets of a name, if there is one.

    >>> unit_of("Voltage A [V]"), unit_of("power (µW)"), unit_of("sensor (left)")
    ('V', 'µW', '')
    """
    found = IN_NAME.search(name)
    return found[1].strip() if found and UNIT.fullmatch(found[1].strip()) else ""


def load_sheet(path: Path) -> Sheet:
    """Read a table; lines before it, names and units are told apart from it, a line of another length is named."""
    import pandas as pd

    text = _decoded(path).replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    lines = text.split("\n")
    plain = [line for line in lines if line.strip() and not line.startswith(COMMENT)]
    separator = _separator(plain[len(plain) // 2 :][:SAMPLED])
    columns, most = list["pd.Series[Any]"](), 0 if separator is None else 1
    if len(text) > LONG:
        with suppress(DataError, ValueError):  # found again below, with the line that is wrong
            records = _records(path, lines[: 2 * SAMPLED], separator)
            start, names, said = _find_rows(path, records, most)
            columns = _read_at_once(lines, records[start], separator)
            columns = columns if len(names) in (0, len(columns)) else []
    decimal, thousands, doubt = ".", "", ""
    if not columns:
        records = _records(path, lines, separator)
        start, names, said = _find_rows(path, records, most)
        rows = {one.line: one.cells for one in records[start:] if not one.is_comment}
        width = len(next(iter(rows.values())))
        for line, cells in rows.items():
            if len(cells) not in (width, len(names)):
                said = f"{path} has {len(cells)} cells in line {line} and {width} in line {records[start].line}"
                raise DataError(f"{said}; repair the line that is wrong.")
        words = pd.DataFrame(list(rows.values()), list(rows), dtype=object)
        words = words.reindex(columns=range(max(width, len(names))), fill_value="").fillna("")
        columns = [_parsed(words[k], decimal, thousands) for k in words]
        others = {
            cell for one in columns if one.dtype.kind not in "fc" for cell in one.dropna().unique()
        }
        if any(map(_looks_like_number, others)):
            decimal, thousands, doubt = _signs(path, words)
            columns = [_parsed(words[k], decimal, thousands) for k in words]
    labels = names or [str(k + 1) for k in range(len(columns))]
    while len(columns) > 1 and columns[-1].isna().all() and not (names and labels[-1]):
        del columns[-1], labels[-1]  # every line ended in a separator
    between = {None: "white space", "\t": "tabs"}.get(separator, repr(separator))
    signs = f"{', decimal comma' if decimal == ',' else ''}{f', {thousands!r} between thousands' if thousands else ''}"
    dialect = (
        f"text separated by {between}{signs}, {said}, numbers from line {records[start].line} on"
    )
    comments = [line for line in lines if line.startswith(COMMENT)]
    return Sheet(
        path, labels, columns, bool(names), decimal, comments, dialect, (doubt,) if doubt else ()
    )


def _read_at_once(lines: list[str], first: Record, separator: str | None) -> list[pd.Series[Any]]:
    """Let pandas read a long table if all from its first row on are numbers; return nothing where that is in doubt."""
    import pandas as pd

    # Versions of pandas before 3.1 lose the last digit without it; later ones give a warning where it is there.
    is_old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    exact: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    table = pd.read_csv(
        io.BytesIO("\n".join(lines[first.line - 1 :]).encode()),
        sep=separator or r"\s+",
        header=None,
        dtype=float,
        keep_default_na=False,
        na_values=["", "nan", "NaN"],
        skip_blank_lines=False,
        **exact,
    )
    # A line that is too short, or empty, ends in a missing value; one that is too long is an error of pandas.
    if table.shape[1] != len(first.cells) or table.iloc[:, -1].isna().any():
        return []
    table.index = table.index + first.line
    return [table[k] for k in table]


def _decoded(path: Path) -> str:
    """The text of a file in UTF-8, UTF-16 or Latin-1, which is that of older instruments and never fails."""
    data = read_text(path)
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
        rows = (
            [line.split() for line in sample]
            if separator is None
            else csv.reader(sample, delimiter=separator)
        )
        cells = [cell for row in rows for cell in row if cell.strip()]
        return sum(map(_looks_like_number, cells)) / max(len(cells), 1)

    there = [one for one in ("\t", ";", ",") if any(one in line for line in sample)]
    return max([*there, None], key=share)


def _looks_like_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


class Record(NamedTuple):
    """The cells of one line, or of several where a cell between quotes goes over lines."""

    line: int
    cells: list[str]
    is_comment: bool


def _records(path: Path, lines: list[str], separator: str | None) -> list[Record]:
    """Split all lines that are not empty; comments, too, which may have the names of the columns."""
    records: list[Record] = []
    bare = [
        line.lstrip("#% ")[:LONGEST].replace('"', "") if line.startswith(COMMENT) else line
        for line in lines
    ]
    if separator is None:
        split = [NEXT_NAME.split(line.strip()) if line.strip() else [] for line in bare]
        return [
            Record(k + 1, cells, lines[k].startswith(COMMENT))
            for k, cells in enumerate(split)
            if cells
        ]
    reader = csv.reader(
        (f"{line}\n" for line in bare), delimiter=separator, skipinitialspace=True, strict=True
    )
    start = 0
    try:
        for cells in reader:
            if any(cells) and not (start == 0 and re.fullmatch("sep=.?", lines[0], re.IGNORECASE)):
                records.append(Record(start + 1, cells, lines[start].startswith(COMMENT)))
            start = reader.line_num
    except csv.Error as problem:
        raise DataError(
            f"{path} has quotes that do not match in line {start + 1} ({problem})."
        ) from None
    return records


def _find_rows(path: Path, records: list[Record], most: int) -> tuple[int, list[str], str]:
    """Find the first row like those in the middle of the file, and above it names and perhaps units.

    So many names at most may be there beyond the cells, as of the comments that LabVIEW leaves out.
    """
    middle = [one.cells for one in records[len(records) // 2 :] if not one.is_comment][:SAMPLED]
    width = Counter(map(len, middle)).most_common(1)[0][0] if middle else 0
    numeric = []  # the columns that are numbers in at least half of these rows
    for k, column in enumerate(zip(*(row for row in middle if len(row) == width), strict=True)):
        there = [cell for cell in column if cell]
        if there and 2 * sum(map(_looks_like_number, there)) >= len(there):
            numeric.append(k)

    def numbers_in(one: Record) -> list[bool]:
        return (
            [_looks_like_number(one.cells[k]) for k in numeric if one.cells[k]]
            if len(one.cells) >= width
            else []
        )

    rows = (
        k
        for k, one in enumerate(records)
        if not one.is_comment and numbers_in(one) and all(numbers_in(one))
    )
    start = next(rows, None)
    if start is None:
        only = f", only the names of {width} columns" if len(records) == 1 and width > 1 else ""
        raise DataError(f"{path} holds no rows of numbers{only}.")
    while start and not records[start - 1].is_comment and any(numbers_in(records[start - 1])):
        start -= 1  # a row with a mistake in it is a row of numbers, too
    heads = [one for one in records[:start] if not one.is_comment or len(one.cells) == width]
    heads = [one for one in heads if 2 * sum(map(bool, one.cells)) >= width][
        -2:
    ]  # not comments below the units
    if (
        not heads
        or not max(width - 1, 2) <= len(heads[-1].cells) <= width + most
        or any(numbers_in(heads[-1]))
    ):
        return start, [], "no names of columns"
    units, below = list[str](), [heads[-1].cells[k] for k in numeric if k < len(heads[-1].cells)]
    if (
        len(heads) == 2
        and len(heads[0].cells) >= width
        and 2 * sum(map(bool, map(UNIT.fullmatch, below))) > len(below)
    ):
        units = heads.pop().cells
    line, names, _ = heads[-1]
    names = [" ".join(name.split()) for name in names]
    if len(names) < width:
        said = f"{path} has {width} cells in line {records[start].line} and {len(names)} in line {line} above it"
        raise DataError(f"{said}; give every column a name.")
    labels = [
        _labelled(name, unit)
        for name, unit in zip_longest(names, units[: len(names)], fillvalue="")
    ]
    return start, labels, f"names in line {line}{' and units below them' if units else ''}"


def _signs(path: Path, words: pd.DataFrame) -> tuple[str, str, str]:
    """Find the decimal sign, the thousands separator, and what remains in doubt, from all cells that hold either."""
    cells = {one.strip() for k in words for one in words[k].unique() if _looks_like_number(one)}
    cells = {one for one in cells if not re.search(r"[^\d., '+eE-]", one)}
    fits = {}
    for decimal, thousands in SIGNS:
        grouped = f"|{GROUPED}" if thousands else ""
        pattern = re.compile(
            f"{PLAIN}{grouped}".format(re.escape(decimal), thousands and re.escape(thousands))
        )
        fits[decimal, thousands] = all(map(pattern.fullmatch, cells))
    found = next((one for one in SIGNS if fits[one]), (".", ""))
    if found != (",", "") or not fits[".", ","]:
        return *found, ""
    for k in words:  # every comma is before three digits
        if words[k].str.contains(",").any() and words[k].str.fullmatch(r"[+-]?\d{1,3}").any():
            return ".", ",", ""
    said = f"commas in {path.name} were taken for decimal signs, though all of them stand before three digits"
    return ",", "", f"{said}; if they separate thousands, write the numbers without them."


def _parsed(words: pd.Series[Any], decimal: str, thousands: str) -> pd.Series[Any]:
    """The cells as pandas reads them, or as complex numbers, which it does not; otherwise the words as they are."""
    import pandas as pd

    plain = words
    if thousands:
        plain = plain.str.replace(
            rf"(?<=\d){re.escape(thousands)}(?=\d{{3}}(?!\d))", "", regex=True
        )
    if decimal != ".":
        plain = plain.str.replace(decimal, ".")
    numbers = pd.to_numeric(plain, errors="coerce")
    if numbers.notna().all():
        return plain.astype(float)  # with the last digit, which older versions of pandas lose
    words = words.str.split().str.join(" ")
    missing = numbers.isna() & words.str.lower().isin(MISSING)
    if (numbers.notna() | missing).all():
        return plain.mask(missing, "nan").astype(float)
    with suppress(ValueError):
        values = (
            plain.str.replace("i$", "j", regex=True)
            .mask(missing, "nan")
            .map(complex)
            .astype(complex)
        )
        return values if values.to_numpy().imag.any() else values.map(lambda one: one.real)
    return words.mask(missing)
