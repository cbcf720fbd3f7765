"""Text tables of any make, and sheets of a spreadsheet, as a `Sheet` of named columns.

How a table is laid out is found from its lines, in this order:

1. its encoding (`_decode`),
2. what separates its cells: the separator that makes most cells numbers (`_find_separator`),
3. where its numbers begin: the first row like those in the middle of the file (`_find_layout`),
4. the names of its columns, and perhaps their units, in the lines above (`_named_layout`),
5. how its numbers are written: decimal sign and thousands separator (`_find_number_style`).

Then pandas reads the numbers: a long table without mistakes at once, any other cell by cell, so
that a cell that is wrong can be named with its line. A sheet of a spreadsheet is a grid of cells
already, and goes the same way from step 3 on.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import as_data_error
from ..._formatting import one_line
from ...errors import Check, DataError
from ._cells import (
    GROUPED_NUMBER,
    PLAIN_NUMBER,
    Column,
    MissingWords,
    NumberStyle,
    looks_like_number,
    looks_like_quantity,
    number_of_quantity,
    read_cells,
)
from ._names import UNIT, with_unit
from ._options import ReadOptions
from ._sheet import Sheet, check_missing_words

COMMENT_SIGNS = ("#", "%")
# Characters of a comment that may hold names; Python's csv module takes no cells above 131,072.
MAX_COMMENT_LENGTH = 100_000
# Lines that are looked at to find the separator and the columns of numbers; more of them tell the
# same.
N_SAMPLED_LINES = 50
# Cells that are looked at to find the separator: a table may have 50,000 columns.
MAX_SAMPLED_CELLS = 20_000
# Characters from which on pandas may read a table at once; a shorter table takes less than 0.1 s
# cell by cell.
MIN_LENGTH_READ_AT_ONCE = 100_000
# Columns up to which pandas does so: it takes 0.1 ms for each, however few rows there are.
MAX_COLUMNS_READ_AT_ONCE = 1000
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Bytes at the start of a file in which a zero byte tells that it is no text.
N_BYTES_CHECKED = 4096
SEPARATORS = ("\t", ";", "|", ",")  # rarer in numbers and names first; white space comes last
SEPARATOR_NAMES = {None: "white space", "\t": "tabs"}
# White space between two names, but not between a name and the unit in brackets behind it.
BETWEEN_NAMES = re.compile(r"\s+(?![\[(][^\d+.-])")
# Lines above the numbers among which the names are: name, unit and comment, as Origin writes them.
MAX_HEADER_LINES = 4
# Rows from which on first cells 1, 2, 3, ... are taken for the names of rows.
MIN_COUNTED_ROWS = 3

# Spaces that do not break a line, which some countries put between thousands.
THOUSANDS_SPACE = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
# The exponent of Fortran's double precision, 1.234D-02.
FORTRAN_EXPONENT = re.compile(r"(?<=\d)(\.\d*)[dD](?=[+-]\d{2,3}(?!\d))")
# A line that is drawn below the names, as in ---+---.
RULE = re.compile(r"[-=+:|\s]+")

NOT_IN_PLAIN_NUMBERS = re.compile(r"[^\d., '+eE-]")
UP_TO_THREE_DIGITS = r"[+-]?\d{1,3}"

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


def load_text(path: Path, data: bytes, options: ReadOptions) -> Sheet:
    """Read a table of text."""
    missing = options.missing
    text = _decode(path, data).replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    text = THOUSANDS_SPACE.sub("'", text)
    text = FORTRAN_EXPONENT.sub(r"\1e", text)
    lines = text.split("\n")
    separator = _find_separator(lines)

    columns: list[Column] = []
    style = NumberStyle()
    if len(text) > MIN_LENGTH_READ_AT_ONCE:
        # What fails here fails again below, where the line that is wrong is found.
        with suppress(DataError, ValueError):
            records = _split(path, lines[: 2 * N_SAMPLED_LINES], separator)
            layout = _find_layout(path, records, separator)
            _, style = _read_cell_by_cell(path, layout, missing)
            columns = _read_at_once(lines, layout, separator, style, missing)
            rows = layout.rows[0].line + np.arange(len(columns[0].cells) if columns else 0)
    if not columns:
        records = _split(path, lines, separator)
        layout = _find_layout(path, records, separator)
        columns, style = _read_cell_by_cell(path, layout, missing)
        rows = np.array([record.line for record in layout.rows])
    separator_name = SEPARATOR_NAMES.get(separator, repr(separator))
    sheet = _named_sheet(path, layout, columns, style)
    sheet.lines = rows
    sheet.comments = [line for line in lines if line.startswith(COMMENT_SIGNS)]
    sheet.layout = f"text separated by {separator_name}{style}, {sheet.layout}"
    return sheet


def sheet_of_grid(path: Path, grid: Sequence[Sequence[str]], missing: MissingWords) -> Sheet:
    """Read a table from a grid of cells as text, such as a sheet of a spreadsheet."""
    records = []
    for number, cells in enumerate(grid, start=1):
        if any(cells):
            is_comment = cells[0].startswith(COMMENT_SIGNS)
            records.append(Record(number, list(cells), is_comment))
    layout = _find_layout(path, records, separator="")
    columns, style = _read_cell_by_cell(path, layout, missing)
    sheet = _named_sheet(path, layout, columns, style)
    sheet.lines = np.array([record.line for record in layout.rows])
    sheet.comments = [record.cells[0] for record in records if record.is_comment]
    return sheet


def _named_sheet(path: Path, layout: Layout, columns: list[Column], style: NumberStyle) -> Sheet:
    """Return the columns with their names, without those that only a separator at the end makes."""
    while len(columns) > 1 and columns[-1].is_empty:
        has_name = layout.labels and columns[-1].label
        if has_name:
            break
        del columns[-1]
    checks = [Check(style.doubt)] if style.doubt else []
    return Sheet(
        path=path,
        columns=columns,
        lines=np.arange(0),
        has_names=bool(layout.labels),
        layout=f"{layout.heading}, numbers from line {layout.rows[0].line} on",
        checks=(*checks, *check_missing_words(path, columns)),
    )


# Lines and cells


def _decode(path: Path, data: bytes) -> str:
    """Return the text of a file in UTF-16, UTF-8 or, which never fails, Latin-1."""
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
                if n_cells >= MAX_SAMPLED_CELLS:
                    break
                if cell.strip():
                    n_cells += 1
                    n_numbers += looks_like_number(cell) or looks_like_quantity(cell)
        return n_numbers / max(n_cells, 1)

    text = "\n".join(sample)
    present = [sign for sign in SEPARATORS if sign in text]
    return max([*present, None], key=share_of_numbers)


def _cells_of(lines: list[str], separator: str | None) -> Any:
    if separator is None:
        return [line.split() for line in lines]
    return csv.reader(lines, delimiter=separator)


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
                records.append(Record(k + 1, _words_of(line), is_comment[k]))
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


def _words_of(line: str) -> list[str]:
    """Return what stands between white space; a text between quotes is one word."""
    if '"' in line:
        with suppress(csv.Error):
            (cells,) = csv.reader([line.strip()], delimiter=" ", skipinitialspace=True, strict=True)
            return cells
    return BETWEEN_NAMES.split(line.strip())


# Where the numbers begin, and what stands above them


@dataclass(frozen=True)
class Layout:
    """The rows of numbers of a table, and the names of its columns."""

    rows: list[Record]
    labels: list[str]  # empty where the columns have no names
    heading: str  # where the names stand, in words
    numeric: list[int]  # columns of numbers

    def label(self, position: int) -> str:
        """Return the name of a column; without names it is its number, counted from 1."""
        if not self.labels:
            return str(position + 1)
        return self.labels[position] if position < len(self.labels) else ""


@dataclass(frozen=True)
class RowShape:
    """What the rows of numbers of a table look like: how many cells, and which are numbers."""

    n_cells: int
    numeric: list[int]  # columns in which at least half of the filled cells are numbers
    quantities: list[int]  # columns in which they are numbers with a unit

    @classmethod
    def of(cls, rows: list[list[str]]) -> RowShape:
        """Return what most of these rows look like."""
        n_cells = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
        columns = zip(*(row for row in rows if len(row) == n_cells), strict=True)
        numeric = []
        quantities = []
        for k, column in enumerate(columns):
            filled = [cell for cell in column if cell]
            if filled and 2 * sum(map(looks_like_number, filled)) >= len(filled):
                numeric.append(k)
            elif filled and 2 * sum(map(looks_like_quantity, filled)) >= len(filled):
                quantities.append(k)
        return cls(n_cells, numeric, quantities)

    def are_numbers(self, record: Record) -> list[bool]:
        """Return which of the filled cells in columns of numbers are numbers."""
        if len(record.cells) < self.n_cells:
            return []
        found = []
        for columns, looks_right in (
            (self.numeric, looks_like_number),
            (self.quantities, looks_like_quantity),
        ):
            found += [looks_right(record.cells[k]) for k in columns if record.cells[k]]
        return found

    def are_units(self, record: Record) -> bool:
        """Return whether most of the cells above columns of numbers are units."""
        cells = [record.cells[k] for k in self.numeric if k < len(record.cells)]
        n_units = sum(UNIT.fullmatch(cell) is not None for cell in cells)
        return 2 * n_units > len(cells)


def _find_layout(path: Path, records: list[Record], separator: str | None) -> Layout:
    """Find the first row like those in the middle of the file, and the names above it."""
    middle = [record.cells for record in records[len(records) // 2 :] if not record.is_comment]
    shape = RowShape.of(middle[:N_SAMPLED_LINES])
    start = _first_row_of_numbers(path, records, shape)
    rows = [record for record in records[start:] if not record.is_comment]
    rows = _without_footer(rows, shape)
    heads = []
    for record in records[:start]:
        if all(RULE.fullmatch(cell) for cell in record.cells if cell):
            continue
        may_be_names = not record.is_comment or len(record.cells) == shape.n_cells
        if may_be_names and 2 * sum(map(bool, record.cells)) >= shape.n_cells:
            heads.append(record)
    # LabVIEW writes a name for comments, and no cells below it.
    max_names = shape.n_cells if separator is None else shape.n_cells + 1
    min_names = 1 if shape.n_cells == 1 else max(shape.n_cells - 1, 2)
    is_second_level = len(heads) > 1 and _is_second_level(heads[-2], heads[-1], shape)
    has_names = (
        bool(heads)
        and min_names <= len(heads[-1].cells) <= max_names
        and (is_second_level or not any(shape.are_numbers(heads[-1])))
    )
    if not has_names:
        return Layout(rows, [], "no names of columns", shape.numeric)
    return _named_layout(path, heads[-MAX_HEADER_LINES:], rows, shape)


def _without_footer(rows: list[Record], shape: RowShape) -> list[Record]:
    """Return rows without lines of text at the end, such as ">>>>> End of data <<<<<"."""
    end = len(rows)
    while end > 1:
        cells = rows[end - 1].cells
        if len(cells) >= shape.n_cells or any(map(looks_like_number, cells)):
            break
        end -= 1
    return rows[:end]


def _first_row_of_numbers(path: Path, records: list[Record], shape: RowShape) -> int:
    """Return the position of the first row of numbers; refuse a file that has none."""
    start = None
    half_numbers = None  # the first row of which half are numbers, where each row has a mistake
    for k, record in enumerate(records):
        are_numbers = [] if record.is_comment else shape.are_numbers(record)
        if are_numbers and all(are_numbers):
            start = k
            break
        if half_numbers is None and are_numbers and 2 * sum(are_numbers) >= len(are_numbers):
            half_numbers = k
    if start is None:
        start = half_numbers
    if start is None:
        only_names = len(records) == 1 and shape.n_cells > 1
        content = f", only the names of {shape.n_cells} columns" if only_names else ""
        if records and "Created by Octave" in " ".join(records[0].cells):
            raise _octave_text(path)
        raise DataError(
            f"{path} holds no rows of numbers{content}; save it as a table with one row per "
            "sample, such as .csv, or load it in Python and call infocap.estimate(u, x)."
        )
    if "Created by Octave" in " ".join(records[0].cells):
        raise _octave_text(path)
    # A row with a mistake in it is a row of numbers, too.
    while start and not records[start - 1].is_comment:
        if not any(shape.are_numbers(records[start - 1])):
            break
        if start > 1 and _is_second_level(records[start - 2], records[start - 1], shape):
            break
        start -= 1
    return start


def _octave_text(path: Path) -> DataError:
    return DataError(
        f"{path} is in Octave's text format, which is not read; in Octave, save -v7 {path.stem}.mat"
    )


def _is_second_level(above: Record, below: Record, shape: RowShape) -> bool:
    """Return whether a row holds the second part of names, of which the first part repeats.

    So pandas writes columns of two levels: set, set, det, det above A, B, 1, 2.
    """
    first = above.cells[: shape.n_cells]
    second = below.cells[: shape.n_cells]
    if len(first) != shape.n_cells or len(second) != shape.n_cells or above.is_comment:
        return False
    if any(shape.are_numbers(above)) or all(shape.are_numbers(below)) or shape.are_units(above):
        return False
    repeats = len(set(first)) < len(first)
    return repeats and len(set(zip(first, second, strict=True))) == len(first)


def _named_layout(path: Path, heads: list[Record], rows: list[Record], shape: RowShape) -> Layout:
    """Take the names from above the line of units, or from the last line above the numbers.

    Below the units there may be a line of comments, as Origin writes it. Without units, a line in
    which names are repeated or missing is one of comments where all names in the line above differ.
    """
    names = heads[-1]
    if len(heads) > 1 and _is_second_level(heads[-2], names, shape):
        pairs_of_parts = zip(heads[-2].cells, names.cells, strict=False)
        labels = [" ".join(filter(None, parts)) for parts in pairs_of_parts]
        heading = f"names in lines {heads[-2].line} and {names.line}"
        return Layout(rows, labels, heading, shape.numeric)
    units: list[str] = []
    for above, below in reversed(list(pairwise(heads))):
        if len(above.cells) >= shape.n_cells and shape.are_units(below):
            names = above
            units = below.cells
            break
        is_next = below is heads[-1] and below.line == above.line + 1
        if is_next and _are_all_different(above, shape) and not _are_all_different(below, shape):
            names = above
    if len(names.cells) == shape.n_cells - 1 and _are_names_of_rows(rows):
        names = Record(names.line, ["", *names.cells], names.is_comment)
    if len(names.cells) < shape.n_cells:
        raise DataError(
            f"{path} has {shape.n_cells} cells in line {rows[0].line} and {len(names.cells)} in "
            f"line {names.line} above it; give every column a name."
        )
    pairs = zip_longest(names.cells, units[: len(names.cells)], fillvalue="")
    labels = [with_unit(one_line(name), unit) for name, unit in pairs]
    below_names = " and units below them" if units else ""
    return Layout(rows, labels, f"names in line {names.line}{below_names}", shape.numeric)


def _are_names_of_rows(rows: list[Record]) -> bool:
    """Return whether the first cells count the rows, as R writes them, without a name above."""
    first_cells = [row.cells[0] for row in rows[:N_SAMPLED_LINES]]
    if len(first_cells) < MIN_COUNTED_ROWS:
        return False
    start = 0 if first_cells[0] == "0" else 1
    return first_cells == [str(number) for number in range(start, start + len(first_cells))]


def _are_all_different(record: Record, shape: RowShape) -> bool:
    """Return whether all cells of a row of names are filled and different."""
    names = record.cells[: shape.n_cells]
    return len(names) == shape.n_cells and all(names) and len(set(names)) == len(names)


# Numbers


def _read_at_once(
    lines: list[str],
    layout: Layout,
    separator: str | None,
    style: NumberStyle,
    missing: MissingWords,
) -> list[Column]:
    """Let pandas read a long table of numbers; return nothing where a cell is in doubt."""
    import pandas as pd

    first_line = layout.rows[0].line
    n_columns = len(layout.rows[0].cells)
    if len(layout.labels) not in (0, n_columns) or n_columns > MAX_COLUMNS_READ_AT_ONCE:
        return []
    if style.thousands or style.doubt:
        return []
    numeric = set(layout.numeric)
    text = [k for k in range(n_columns) if k not in numeric]
    dtype: Any = float
    if text:
        dtype = {k: float if k in numeric else str for k in range(n_columns)}
    # Versions of pandas before 3.1 lose the last digit without this option; later ones warn where
    # it is given.
    is_old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    options: dict[str, Any] = {"float_precision": "round_trip"} if is_old else {}
    table = pd.read_csv(
        io.BytesIO("\n".join(lines[first_line - 1 :]).encode()),
        sep=separator or r"\s+",
        header=None,
        dtype=dtype,
        keep_default_na=False,
        na_values=["", "nan", "NaN"],
        skip_blank_lines=False,
        decimal=style.decimal,
        **options,
    )
    # A line that is too short, or empty, ends in a missing value; one that is too long is an error
    # of pandas. A cell between quotes that goes over lines makes fewer rows.
    is_ragged = table.shape[1] != n_columns or (not text and table.iloc[:, -1].isna().any())
    if is_ragged or len(table) != len(lines) - first_line + 1:
        return []
    if text and table[layout.numeric].isna().any(axis=None):
        return []
    values = table.to_numpy(float) if not text else None
    columns = []
    for k in range(n_columns):
        label = layout.label(k)
        if values is not None:
            columns.append(Column(label, missing.blank(values[:, k])))
        elif k in numeric:
            columns.append(Column(label, missing.blank(table[k].to_numpy(float))))
        else:
            column = _read_repeated_cells(label, table[k], style, missing)
            if any(map(looks_like_number, set(column.cells[column.words]))):
                return []  # perhaps in another style
            columns.append(column)
    return columns


def _read_repeated_cells(
    label: str, cells: Any, style: NumberStyle, missing: MissingWords
) -> Column:
    """Read each different cell of a column once; columns of words repeat a few."""
    codes, different = cells.fillna("").factorize()
    if 2 * len(different) > len(codes):
        return read_cells(label, cells.fillna(""), style, missing)
    column = read_cells(label, different, style, missing)
    counts = np.bincount(codes, minlength=len(different))
    times = dict(zip(different, counts.tolist(), strict=True))
    return Column(
        column.label,
        column.cells[codes],
        np.flatnonzero(np.isin(codes, column.words)),
        Counter({word: times.get(word, 1) for word in column.missing}),
    )


def _read_cell_by_cell(
    path: Path, layout: Layout, missing: MissingWords
) -> tuple[list[Column], NumberStyle]:
    """Read a table cell by cell, in the style of its numbers."""
    grid = _columns_of_cells(path, layout)
    style = NumberStyle()
    columns = [read_cells(layout.label(k), cells, style, missing) for k, cells in enumerate(grid)]
    unread: set[str] = set()
    for column in columns:
        unread.update(column.cells[column.words])
    if any(map(looks_like_number, unread)) or any(map(looks_like_quantity, unread)):
        style = _find_number_style(path, grid)
        columns = [
            read_cells(layout.label(k), cells, style, missing) for k, cells in enumerate(grid)
        ]
    return columns, style


def _columns_of_cells(path: Path, layout: Layout) -> list[list[str]]:
    """Return the cells of each column as text; a line of another length is named."""
    first = layout.rows[0]
    width = len(first.cells)
    for row in layout.rows:
        if len(row.cells) not in (width, len(layout.labels)):
            raise DataError(
                f"{path} has {len(row.cells)} cells in line {row.line} and {width} in line "
                f"{first.line}; repair the line that is wrong."
            )
    n_columns = max(width, len(layout.labels))
    columns = list(zip_longest(*(row.cells for row in layout.rows), fillvalue=""))
    columns += [("",) * len(layout.rows)] * (n_columns - len(columns))
    return [list(column) for column in columns]


def _find_number_style(path: Path, grid: list[list[str]]) -> NumberStyle:
    """Find the first style in which all numbers can be read, and what remains in doubt."""
    numbers = set()
    for cells in grid:
        for cell in set(cells):
            number = number_of_quantity(cell.strip())
            if looks_like_number(number) and not NOT_IN_PLAIN_NUMBERS.search(number):
                numbers.add(number)
    fitting = [style for style in NUMBER_STYLES if _fits(style, numbers)]
    if not fitting:
        return NumberStyle()
    may_be_thousands = NumberStyle(".", ",")
    if fitting[0] != NumberStyle(",") or may_be_thousands not in fitting:
        return fitting[0]
    # Every comma stands before three digits: 1,234 is either a number near 1 or one above a
    # thousand. It is the latter if the same column holds numbers below a thousand without a comma.
    for cells in grid:
        has_comma = any("," in cell for cell in cells)
        if has_comma and any(re.fullmatch(UP_TO_THREE_DIGITS, cell) for cell in cells):
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
