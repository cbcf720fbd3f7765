"""Tables of any format as a `Sheet` of named columns."""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._formatting import counted, join_names
from ...errors import Check, DataError
from ...typing import Floats, Integers
from ._cells import Column
from ._names import with_unit

if TYPE_CHECKING:
    import pandas as pd

# A day that is written before its month, as in 31.01.2026.
DAY_FIRST = r"\d{1,2}\.\d{1,2}\.\d"
# Columns that are named where words stand for missing values.
MAX_COLUMNS_IN_CHECK = 3


@dataclass
class Sheet:
    """The columns of a table, and how they were found.

    Parameters
    ----------
    path
        The file, for messages.
    columns
        The columns, with their names.
    lines
        The number of each row in the file, for messages.
    has_names
        Whether the table names its columns; without names they are numbered from 1.
    layout
        How the table is laid out, in words.
    comments
        The lines of comments.
    checks
        What is in doubt about it.
    hint
        Where else in the file columns may be, as a sentence; for messages about lost columns.
    """

    path: Path
    columns: list[Column]
    lines: Integers
    has_names: bool
    layout: str
    comments: list[str] = field(default_factory=list)
    checks: tuple[Check, ...] = ()
    hint: str = ""

    @property
    def labels(self) -> list[str]:
        """The names of the columns, with their units where the table tells them."""
        return [column.label for column in self.columns]

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

    def is_text(self, position: int) -> bool:
        """Return whether a column holds words."""
        return self.columns[position].is_text

    def counts_rows(self, position: int) -> bool:
        """Return whether a column counts the rows, 0, 1, 2, ...."""
        column = self.columns[position]
        return column.is_parsed and bool((np.diff(column.cells) == 1).all())

    def numbers(self, positions: Sequence[int], real: str = "") -> np.ndarray:
        """Return columns of numbers side by side; a cell that is no number is named.

        `real` says what the columns are, where complex numbers cannot be.
        """
        columns = [self.columns[position] for position in positions]
        for column in columns:
            if len(column.words):
                row = column.words[0]
                cell = column.cells[row]
                raise DataError(
                    f"{self.path} has {cell!r:.60} in line {self.lines[row]}, column "
                    f"{column.label!r}; give numbers only, or nothing, name columns without it "
                    f"(--u, --x), or say that it stands for a missing value: "
                    f"`missing={cell!r:.60}`."
                )
        values = np.column_stack([column.cells for column in columns])
        if real and values.dtype.kind == "c":
            raise DataError(f"{self.path} has complex numbers among its {real}; give real ones.")
        return values

    def seconds(self, position: int, date_position: int | None = None) -> Floats | None:
        """Return times in seconds, dates since 1970; None where a cell is neither.

        The column of the date holds the day, where the column holds only the time of day.
        """
        import pandas as pd

        column = self.columns[position]
        if not column.is_text:
            return column.cells if column.cells.dtype.kind == "f" else None
        cells = pd.Series(column.cells, dtype=object)
        if date_position is not None:
            days = pd.Series(self.columns[date_position].cells, dtype=object)
            cells = days.astype(str) + " " + cells
        return _seconds_since_1970(cells.str.replace(",", "."))

    def describe(self, position: int) -> str:
        """Say what a column holds: its range, or the first of its cells that is no number."""
        column = self.columns[position]
        if len(column.words):
            kind = "text such as" if column.is_text else "numbers, and"
            row = column.words[0]
            return f"{kind} {column.cells[row]!r:.40} in line {self.lines[row]}"
        cells = column.cells[column.is_filled]
        if not len(cells):
            return "empty"
        if cells.dtype.kind != "f":
            return "complex numbers"
        return f"{cells.min():.6g} to {cells.max():.6g}"

    def transposed(self) -> Sheet:
        """Exchange rows and columns; columns of words become the names and their units."""
        text = [k for k in range(len(self.columns)) if self.is_text(k)]
        numeric = [k for k in range(len(self.columns)) if k not in set(text)]
        rows = self.numbers(numeric)
        columns = []
        for number, row in enumerate(rows):
            words = [str(self.columns[k].cells[number]) for k in text]
            if not words:
                label = str(number + 1)
            else:
                unit = words[1] if len(words) > 1 else ""
                label = with_unit(words[0], unit)
            columns.append(Column(label, row))
        return replace(
            self,
            columns=columns,
            lines=np.arange(1, len(numeric) + 1),
            has_names=bool(text),
            layout=f"{self.layout}, one line per channel",
        )


def check_missing_words(path: Path, columns: Sequence[Column]) -> list[Check]:
    """Say which words were taken for missing values, and in which columns."""
    counts: Counter[str] = Counter()
    labels: dict[str, list[str]] = defaultdict(list)
    for column in columns:
        for word, count in column.missing.items():
            counts[word] += count
            labels[word].append(column.label)
    sentences = []
    for word, count in counts.most_common():
        where = join_names(labels[word], MAX_COLUMNS_IN_CHECK)
        sentences.append(f"{word!r} in {counted(count, 'cell')} of {where}")
    if not sentences:
        return []
    return [
        Check(
            f"words in {path.name} were taken for missing values: {'; '.join(sentences)}; "
            "leave their rows out by `nan_policy='omit'`.",
            "note",
            missing=dict(counts),
        )
    ]


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
