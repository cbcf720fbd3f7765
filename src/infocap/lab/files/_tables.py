"""Text tables of any make, as a `Sheet` of named columns.

How a table is laid out is found from its lines, in this order:

1. its encoding (`_decode`),
2. what separates its cells: the separator that makes most cells numbers (`_find_separator`),
3. where its numbers begin: the first row like those in the middle of the file (`_find_layout`),
4. the names of its columns, and perhaps their units, in the lines above (`_named_layout`),
5. how its numbers are written: decimal sign and thousands separator (`_find_number_style`).

Then pandas reads the numbers: a long table without mistakes at once, any other cell by cell, so
that a cell that is wrong can be named with its line.
"""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._files import as_data_error, read_text
from ..._formatting import one_line
from ...errors import Check, DataError
from ...typing import Floats
from ._names import UNIT, with_unit

if TYPE_CHECKING:
    import pandas as pd

COMMENT_SIGNS = ("#", "%")
MISSING_CELLS = ("", "nan", "na", "n/a", "null", "none", "#n/a")
# The kinds of NumPy types of columns in which all cells are numbers, real or complex.
PARSED_KINDS = "fc"
# Characters of a comment that may hold names; Python's csv module takes no cells above 131,072.
MAX_COMMENT_LENGTH = 100_000
# Lines that are looked at to find the separator and the columns of numbers; more of them tell the
# same.
N_SAMPLED_LINES = 50
# Characters from which on pandas may read a table at once; a shorter table takes less than 0.1 s
# cell by cell.
MIN_LENGTH_READ_AT_ONCE = 100_000
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Bytes at the start of a file in which a zero byte tells that it is no text.
N_BYTES_CHECKED = 4096
SEPARATORS = ("\t", ";", ",")  # rarer ones in numbers and names first; white space comes last
SEPARATOR_NAMES = {None: "white space", "\t": "tabs"}
# White space between two names, but not between a name and the unit in brackets behind it.
BETWEEN_NAMES = re.compile(r"\s+(?![\[(][^\d+.-])")

# What a number looks like, to find where numbers are; pandas reads them. {0} is the decimal sign,
# {1} the separator of thousands; groups are of three digits, as in 1,234.5.
PLAIN_NUMBER = r"[+-]?(?:\d+(?:{0}\d*)?|{0}\d+)(?:[eE][+-]?\d+)?"
GROUPED_NUMBER = r"[+-]?[1-9]\d{{0,2}}(?:{1}\d{{3}})+(?:{0}\d*)?"
COMPLEX_NUMBER = rf"\(?{PLAIN_NUMBER}{PLAIN_NUMBER}[ij]\)?"
NUMBER_WORDS = "[+-]?nan|[+-]?inf(?:inity)?|na|n/a"
NUMBER = re.compile(
    f"{PLAIN_NUMBER}|{GROUPED_NUMBER}|{COMPLEX_NUMBER}|{NUMBER_WORDS}".format("[.,]", "[., ']"),
    re.IGNORECASE,
)
NOT_IN_PLAIN_NUMBERS = re.compile(r"[^\d., '+eE-]")
UP_TO_THREE_DIGITS = r"[+-]?\d{1,3}"
# A day that is written before its month, as in 31.01.2026.
DAY_FIRST = r"\d{1,2}\.\d{1,2}\.\d"


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a table are written."""

    decimal: str = "."
    thousands: str = ""
    doubt: str = ""  # what else they could mean, as a sentence for the user

    def __str__(self) -> str:
        decimal = ", decimal comma" if self.decimal == "," else ""
        thousands = f", {self.thousands!r} between thousands" if self.thousands else ""
        return decimal + thousands


# The usual styles first.
NUMBER_STYLES = (
    NumberStyle(".", ""),
    NumberStyle(",", ""),
    NumberStyle(".", ","),
    NumberStyle(",", "."),
    NumberStyle(".", "'"),
    NumberStyle(",", "'"),
    NumberStyle(",", " "),
)


@dataclass
class Sheet:
    """The columns of a table, and how they were found.

    Parameters
    ----------
    path
        The file, for messages.
    labels
        The names of the columns, with their units where the table tells them.
    columns
        The cells of each column, by the numbers of their lines: numbers, or text where a cell is no
        number.
    has_names
        Whether the table names its columns; without names they are numbered from 1.
    decimal
        The decimal sign of its numbers.
    comments
        The lines of comments.
    layout
        How the table is laid out, in words.
    checks
        What is in doubt about it.
    """

    path: Path
    labels: list[str]
    columns: list[pd.Series[Any]]
    has_names: bool
    decimal: str
    comments: list[str]
    layout: str
    checks: tuple[Check, ...] = ()

    def data_in_comment(self, start: str) -> dict[str, Any]:
        """Return the JSON data in the comment that starts so; empty without such a comment."""
        for line in self.comments:
            if line.startswith(start):
                break
        else:
            return {}
        try:
            return dict(json.loads(line.removeprefix(start)))
        except (TypeError, ValueError, RecursionError) as problem:
            raise DataError(
                f"{self.path} starts with {start!r} and then something damaged ({problem}); "
                "without that line the table can still be read."
            ) from None

    def is_empty(self, column: int) -> bool:
        """Return whether no cell of a column is filled."""
        return bool(self.columns[column].isna().all())

    def is_text(self, column: int) -> bool:
        """Return whether fewer than half of the cells are numbers; else the rest are mistakes."""
        if self.columns[column].dtype.kind in PARSED_KINDS:
            return False
        n_cells = len(self.columns[column].dropna())
        return n_cells > 0 and 2 * len(self._cells_of_text(column)) > n_cells

    def counts_rows(self, column: int) -> bool:
        """Return whether a column counts the rows, 0, 1, 2, ...."""
        if self.is_text(column):
            return False
        steps = self.columns[column].diff()[1:]
        return bool((steps == 1).all())

    def numbers(self, columns: Sequence[int], real: str = "") -> np.ndarray:
        """Return columns of numbers side by side; a cell that is no number is named.

        `real` says what the columns are, where complex numbers cannot be.
        """
        for column in columns:
            for line, cell in self._cells_of_text(column).items():
                raise DataError(
                    f"{self.path} has {cell!r:.60} in line {line}, column {self.labels[column]!r}; "
                    "give numbers only, or nothing, or name columns without it (--u, --x)."
                )
        values = np.column_stack([self.columns[column] for column in columns])
        if real and values.dtype.kind == "c":
            raise DataError(f"{self.path} has complex numbers among its {real}; give real ones.")
        return values

    def seconds(self, column: int, date_column: int | None = None) -> Floats | None:
        """Return times in seconds, dates since 1970; None where a cell is neither.

        `date_column` holds the day, where the column holds only the time of day.
        """
        cells = self.columns[column]
        if not self.is_text(column):
            return np.asarray(cells) if cells.dtype.kind == "f" else None
        if date_column is not None:
            cells = self.columns[date_column].astype(str) + " " + cells
        return _seconds_since_1970(cells.str.replace(",", "."))

    def describe(self, column: int) -> str:
        """Say what a column holds: its range, or the first of its cells that is no number."""
        for line, cell in self._cells_of_text(column).items():
            kind = "text such as" if self.is_text(column) else "numbers, and"
            return f"{kind} {cell!r:.40} in line {line}"
        cells = self.columns[column].dropna()
        if not len(cells):
            return "empty"
        if cells.dtype.kind != "f":
            return "complex numbers"
        return f"{cells.min():.6g} to {cells.max():.6g}"

    def transposed(self) -> Sheet:
        """Exchange rows and columns; columns of words become the names and their units."""
        import pandas as pd

        text = [k for k in range(len(self.columns)) if self.is_text(k)]
        numeric = [k for k in range(len(self.columns)) if k not in text]
        rows = self.numbers(numeric)
        labels = []
        for row in range(len(rows)):
            words = [str(self.columns[k].iloc[row]) for k in text]
            if not words:
                labels.append(str(row + 1))
            else:
                unit = words[1] if len(words) > 1 else ""
                labels.append(with_unit(words[0], unit))
        return replace(
            self,
            labels=labels,
            columns=[pd.Series(row) for row in rows],
            has_names=bool(text),
            layout=f"{self.layout}, one line per channel",
        )

    def _cells_of_text(self, column: int) -> pd.Series[Any]:
        """Return the cells that are neither numbers nor empty."""
        import pandas as pd

        cells = self.columns[column].dropna()
        if cells.dtype.kind in PARSED_KINDS:
            return cells[:0]
        numbers = pd.to_numeric(cells.str.replace(self.decimal, "."), errors="coerce")
        return cells[numbers.isna()]


def _seconds_since_1970(cells: pd.Series[Any]) -> Floats | None:
    """Read dates in ISO 8601, or all of them as the first one is written; None where that fails."""
    import pandas as pd

    filled = cells.dropna()
    if not filled.str.contains(r"\d").all():
        return None  # pandas takes "now" for a date
    is_day_first = bool(filled.str.match(DAY_FIRST).all())
    for form, day_first in (("ISO8601", False), (None, is_day_first)):
        with warnings.catch_warnings(action="ignore"):
            dates = pd.to_datetime(
                cells, utc=True, errors="coerce", format=form, dayfirst=day_first
            )
        if dates.notna().sum() == len(filled):
            since_1970 = dates - pd.Timestamp(0, tz="UTC")
            return np.asarray(since_1970.dt.total_seconds(), dtype=float)
    return None


def load_sheet(path: Path) -> Sheet:
    """Read a table of text."""
    text = _decode(path).replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    lines = text.split("\n")
    separator = _find_separator(lines)

    columns: list[pd.Series[Any]] = []
    style = NumberStyle()
    if len(text) > MIN_LENGTH_READ_AT_ONCE:
        # What fails here fails again below, where the line that is wrong is found.
        with suppress(DataError, ValueError):
            records = _split(path, lines[: 2 * N_SAMPLED_LINES], separator)
            layout = _find_layout(path, records, separator)
            columns = _read_at_once(lines, layout, separator)
    if not columns:
        records = _split(path, lines, separator)
        layout = _find_layout(path, records, separator)
        columns, style = _read_cells(path, layout)

    labels = layout.labels or [str(k + 1) for k in range(len(columns))]
    while len(columns) > 1 and columns[-1].isna().all():
        has_name = layout.labels and labels[-1]
        if has_name:
            break
        del columns[-1], labels[-1]  # every line ended in a separator
    separator_name = SEPARATOR_NAMES.get(separator, repr(separator))
    return Sheet(
        path=path,
        labels=labels,
        columns=columns,
        has_names=bool(layout.labels),
        decimal=style.decimal,
        comments=[line for line in lines if line.startswith(COMMENT_SIGNS)],
        layout=(
            f"text separated by {separator_name}{style}, {layout.heading}, "
            f"numbers from line {layout.rows[0].line} on"
        ),
        checks=(Check(style.doubt),) if style.doubt else (),
    )


# Lines and cells


def _decode(path: Path) -> str:
    """Return the text of a file in UTF-16, UTF-8 or, which never fails, Latin-1."""
    data = read_text(path)
    if data.startswith(UTF16_MARKS):
        with as_data_error(path, "text in UTF-16"):
            return data.decode("utf-16")
    if b"\0" in data[:N_BYTES_CHECKED]:
        raise DataError(f"{path} is binary, not text; give it the suffix of its own format.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeError:
        return data.decode("latin-1")


def _find_separator(lines: list[str]) -> str | None:
    """Find the separator that makes the largest share of cells numbers; None is white space."""
    filled = [line for line in lines if line.strip() and not line.startswith(COMMENT_SIGNS)]
    sample = filled[len(filled) // 2 :][:N_SAMPLED_LINES]

    def share_of_numbers(separator: str | None) -> float:
        n_cells = 0
        n_numbers = 0
        for cells in _cells_of(sample, separator):
            for cell in cells:
                if cell.strip():
                    n_cells += 1
                    n_numbers += _looks_like_number(cell)
        return n_numbers / max(n_cells, 1)

    text = "\n".join(sample)
    present = [sign for sign in SEPARATORS if sign in text]
    return max([*present, None], key=share_of_numbers)


def _cells_of(lines: list[str], separator: str | None) -> Any:
    if separator is None:
        return [line.split() for line in lines]
    return csv.reader(lines, delimiter=separator)


def _looks_like_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell.strip()) is not None


@dataclass(frozen=True)
class Record:
    """The cells of one line, or of several where a cell between quotes goes over lines."""

    line: int  # counted from 1
    cells: list[str]
    is_comment: bool


def _split(path: Path, lines: list[str], separator: str | None) -> list[Record]:
    """Split all filled lines into cells; also comments, which may hold the names of columns."""
    is_comment = [line.startswith(COMMENT_SIGNS) for line in lines]
    bare_lines = []
    for line, commented in zip(lines, is_comment, strict=True):
        if commented:
            line = line.lstrip("#% ")[:MAX_COMMENT_LENGTH].replace('"', "")
        bare_lines.append(line)

    records: list[Record] = []
    if separator is None:
        for k, line in enumerate(bare_lines):
            if line.strip():
                records.append(Record(k + 1, BETWEEN_NAMES.split(line.strip()), is_comment[k]))
        return records

    reader = csv.reader(
        (f"{line}\n" for line in bare_lines),
        delimiter=separator,
        skipinitialspace=True,
        strict=True,
    )
    start = 0  # of the record, in lines from 0
    try:
        for cells in reader:
            names_separator = start == 0 and re.fullmatch("sep=.?", lines[0], re.IGNORECASE)
            if any(cells) and not names_separator:
                records.append(Record(start + 1, cells, is_comment[start]))
            start = reader.line_num
    except csv.Error as problem:
        raise DataError(
            f"{path} has quotes that do not match in line {start + 1} ({problem})."
        ) from None
    return records


# Where the numbers begin, and what stands above them


@dataclass(frozen=True)
class Layout:
    """The rows of numbers of a table, and the names of its columns."""

    rows: list[Record]
    labels: list[str]  # empty where the columns have no names
    heading: str  # where the names stand, in words


@dataclass(frozen=True)
class RowShape:
    """What the rows of numbers of a table look like: how many cells, and which are numbers."""

    n_cells: int
    numeric: list[int]  # columns in which at least half of the filled cells are numbers

    @classmethod
    def of(cls, rows: list[list[str]]) -> RowShape:
        """Return what most of these rows look like."""
        n_cells = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
        columns = zip(*(row for row in rows if len(row) == n_cells), strict=True)
        numeric = []
        for k, column in enumerate(columns):
            filled = [cell for cell in column if cell]
            if filled and 2 * sum(map(_looks_like_number, filled)) >= len(filled):
                numeric.append(k)
        return cls(n_cells, numeric)

    def are_numbers(self, record: Record) -> list[bool]:
        """Return which of the filled cells in columns of numbers are numbers."""
        if len(record.cells) < self.n_cells:
            return []
        cells = [record.cells[k] for k in self.numeric]
        return [_looks_like_number(cell) for cell in cells if cell]


def _find_layout(path: Path, records: list[Record], separator: str | None) -> Layout:
    """Find the first row like those in the middle of the file, and the names above it."""
    middle = [record.cells for record in records[len(records) // 2 :] if not record.is_comment]
    shape = RowShape.of(middle[:N_SAMPLED_LINES])
    start = _first_row_of_numbers(path, records, shape)
    rows = [record for record in records[start:] if not record.is_comment]
    heads = []
    for record in records[:start]:
        may_be_names = not record.is_comment or len(record.cells) == shape.n_cells
        if may_be_names and 2 * sum(map(bool, record.cells)) >= shape.n_cells:
            heads.append(record)
    # LabVIEW writes a name for comments, and no cells below it.
    max_names = shape.n_cells if separator is None else shape.n_cells + 1
    min_names = max(shape.n_cells - 1, 2)
    has_names = (
        bool(heads)
        and min_names <= len(heads[-1].cells) <= max_names
        and not any(shape.are_numbers(heads[-1]))
    )
    if not has_names:
        return Layout(rows, [], "no names of columns")
    return _named_layout(path, heads[-2:], rows, shape)


def _first_row_of_numbers(path: Path, records: list[Record], shape: RowShape) -> int:
    """Return the position of the first row of numbers; refuse a file that has none."""
    start = None
    for k, record in enumerate(records):
        are_numbers = [] if record.is_comment else shape.are_numbers(record)
        if are_numbers and all(are_numbers):
            start = k
            break
    if start is None:
        only_names = len(records) == 1 and shape.n_cells > 1
        content = f", only the names of {shape.n_cells} columns" if only_names else ""
        raise DataError(f"{path} holds no rows of numbers{content}.")
    # A row with a mistake in it is a row of numbers, too.
    while start and not records[start - 1].is_comment:
        if not any(shape.are_numbers(records[start - 1])):
            break
        start -= 1
    return start


def _named_layout(path: Path, heads: list[Record], rows: list[Record], shape: RowShape) -> Layout:
    """Take the names from the last line above the numbers, or from above the line of units."""
    names = heads[-1]
    units: list[str] = []
    if len(heads) == 2 and len(heads[0].cells) >= shape.n_cells:
        cells = [names.cells[k] for k in shape.numeric if k < len(names.cells)]
        n_units = sum(UNIT.fullmatch(cell) is not None for cell in cells)
        if 2 * n_units > len(cells):
            units = names.cells
            names = heads[0]
    if len(names.cells) < shape.n_cells:
        raise DataError(
            f"{path} has {shape.n_cells} cells in line {rows[0].line} and {len(names.cells)} in "
            f"line {names.line} above it; give every column a name."
        )
    pairs = zip_longest(names.cells, units[: len(names.cells)], fillvalue="")
    labels = [with_unit(one_line(name), unit) for name, unit in pairs]
    below = " and units below them" if units else ""
    return Layout(rows, labels, f"names in line {names.line}{below}")


# Numbers


def _read_at_once(lines: list[str], layout: Layout, separator: str | None) -> list[pd.Series[Any]]:
    """Let pandas read a long table of numbers; return nothing where a cell is in doubt."""
    import pandas as pd

    first_line = layout.rows[0].line
    n_columns = len(layout.rows[0].cells)
    # Versions of pandas before 3.1 lose the last digit without this option; later ones warn where
    # it is given.
    is_old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    options: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    table = pd.read_csv(
        io.BytesIO("\n".join(lines[first_line - 1 :]).encode()),
        sep=separator or r"\s+",
        header=None,
        dtype=float,
        keep_default_na=False,
        na_values=["", "nan", "NaN"],
        skip_blank_lines=False,
        **options,
    )
    # A line that is too short, or empty, ends in a missing value; one that is too long is an error
    # of pandas.
    is_ragged = table.shape[1] != n_columns or table.iloc[:, -1].isna().any()
    if is_ragged or len(layout.labels) not in (0, n_columns):
        return []
    table.index = table.index + first_line
    return [table[k] for k in table]


def _read_cells(path: Path, layout: Layout) -> tuple[list[pd.Series[Any]], NumberStyle]:
    """Read a table cell by cell, in the style of its numbers."""
    cells = _table_of_cells(path, layout)
    style = NumberStyle()
    columns = [_parse(cells[k], style) for k in cells]
    unread: set[str] = set()
    for column in columns:
        if column.dtype.kind not in PARSED_KINDS:
            unread.update(column.dropna().unique())
    if any(map(_looks_like_number, unread)):
        style = _find_number_style(path, cells)
        columns = [_parse(cells[k], style) for k in cells]
    return columns, style


def _table_of_cells(path: Path, layout: Layout) -> pd.DataFrame:
    """Return all cells as text, by line; a line of another length is named."""
    import pandas as pd

    first = layout.rows[0]
    width = len(first.cells)
    for row in layout.rows:
        if len(row.cells) not in (width, len(layout.labels)):
            raise DataError(
                f"{path} has {len(row.cells)} cells in line {row.line} and {width} in line "
                f"{first.line}; repair the line that is wrong."
            )
    lines = [row.line for row in layout.rows]
    cells = pd.DataFrame([row.cells for row in layout.rows], lines, dtype=object)
    all_columns = range(max(width, len(layout.labels)))
    return cells.reindex(columns=all_columns, fill_value="").fillna("")


def _find_number_style(path: Path, cells: pd.DataFrame) -> NumberStyle:
    """Find the first style in which all numbers can be read, and what remains in doubt."""
    numbers = set()
    for k in cells:
        for cell in cells[k].unique():
            if _looks_like_number(cell) and not NOT_IN_PLAIN_NUMBERS.search(cell.strip()):
                numbers.add(cell.strip())
    fitting = [style for style in NUMBER_STYLES if _fits(style, numbers)]
    if not fitting:
        return NumberStyle()
    may_be_thousands = NumberStyle(".", ",")
    if fitting[0] != NumberStyle(",") or may_be_thousands not in fitting:
        return fitting[0]
    # Every comma stands before three digits: 1,234 is either a number near 1 or one above a
    # thousand. It is the latter if the same column holds numbers below a thousand without a comma.
    for k in cells:
        has_comma = cells[k].str.contains(",").any()
        if has_comma and cells[k].str.fullmatch(UP_TO_THREE_DIGITS).any():
            return may_be_thousands
    doubt = (
        f"commas in {path.name} were taken for decimal signs, though all of them stand before "
        "three digits; if they separate thousands, write the numbers without them."
    )
    return NumberStyle(",", doubt=doubt)


def _fits(style: NumberStyle, numbers: set[str]) -> bool:
    """Return whether all numbers can be read in this style."""
    pattern = PLAIN_NUMBER
    if style.thousands:
        pattern = f"{pattern}|{GROUPED_NUMBER}"
    compiled = re.compile(pattern.format(re.escape(style.decimal), re.escape(style.thousands)))
    return all(map(compiled.fullmatch, numbers))


def _parse(cells: pd.Series[Any], style: NumberStyle) -> pd.Series[Any]:
    """Return a column as real or complex numbers where all its cells are numbers."""
    import pandas as pd

    plain = cells
    if style.thousands:
        between_groups = rf"(?<=\d){re.escape(style.thousands)}(?=\d{{3}}(?!\d))"
        plain = plain.str.replace(between_groups, "", regex=True)
    if style.decimal != ".":
        plain = plain.str.replace(style.decimal, ".")
    numbers = pd.to_numeric(plain, errors="coerce")
    if numbers.notna().all():
        return plain.astype(float)  # with the last digit, which older versions of pandas lose

    words = cells.str.split().str.join(" ")
    is_missing = numbers.isna() & words.str.lower().isin(MISSING_CELLS)
    filled = plain.mask(is_missing, "nan")
    if (numbers.notna() | is_missing).all():
        return filled.astype(float)
    with suppress(ValueError):  # not complex numbers, which pandas does not read
        values = filled.str.replace("i$", "j", regex=True).map(complex).astype(complex)
        if values.to_numpy().imag.any():
            return values
        return values.map(lambda value: value.real)
    return words.mask(is_missing)
