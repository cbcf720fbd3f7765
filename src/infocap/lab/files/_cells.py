"""What the cells of a column mean: numbers, missing values, numbers with units, or words.

`read_cells` makes a `Column` of text, in this order:

1. numbers, in the style of the table (decimal sign, thousands);
2. missing values: empty cells, the words that instruments write for them, and those that the user
   names;
3. complex numbers;
4. numbers with their unit, such as ``1.23 uA``, all of one kind;
5. otherwise the cells stay text. Where most of them are numbers, the others are mistakes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...typing import Floats, Integers
from ._names import SI_PREFIXES, SYMBOL_WITH_PREFIX, UNIT, with_unit

if TYPE_CHECKING:
    import pandas as pd

# Cells without a value; they need no mention.
EMPTY_CELLS = ("", "nan", "na", "n/a", "null", "none", "nil", "nul", "#n/a", "nat")
# What instruments and spreadsheets write where they have no value. It is mentioned, because the
# value may be missing for a reason that depends on the inputs.
WORDS_FOR_MISSING = (
    "overflow", "ovrflw", "ovfl", "ovf", "ovld", "overld", "overload", "over", "overrange",
    "over range", "underflow", "underrange", "under range", "ol", "o.l", "o.l.", "+ol", "-ol",
    "out of range", "saturated", "missing", "invalid", "error", "err", "fail", "failed", "timeout",
    "time out", "no data", "no value", "-", "--", "---", "----", "-----", "*", "**", "***", "****",
    "?", ".", "#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!", "#error", "1.#qnan",
    "-1.#ind", "1.#inf", "-1.#inf", "1.#ind", "∞", "+∞", "-∞",
)  # fmt: skip
# The kinds of NumPy types of columns in which all cells are numbers, real or complex.
PARSED_KINDS = "fc"

# What a number looks like, to find where numbers are; pandas reads them. {0} is the decimal sign,
# {1} the separator of thousands; groups are of three digits, as in 1,234.5.
PLAIN_NUMBER = r"[+-]?(?:\d+(?:{0}\d*)?|{0}\d+)(?:[eE][+-]?\d+)?"
GROUPED_NUMBER = r"[+-]?[1-9]\d{{0,2}}(?:{1}\d{{3}})+(?:{0}\d*)?"
COMPLEX_NUMBER = rf"\(?{PLAIN_NUMBER}{PLAIN_NUMBER}[ij]\)?"
NUMBER_WORDS = "[+-]?nan|[+-]?inf(?:inity)?|na|n/a"
HEXADECIMAL = "0x[0-9a-f]+"
NUMBER = re.compile(
    f"{PLAIN_NUMBER}|{GROUPED_NUMBER}|{COMPLEX_NUMBER}|{NUMBER_WORDS}|{HEXADECIMAL}".format(
        "[.,]", "[., ']"
    ),
    re.IGNORECASE,
)
HEXADECIMAL_CELL = re.compile(HEXADECIMAL, re.IGNORECASE)
# A number and its unit, as in 1.23 uA.
QUANTITY = rf"^({PLAIN_NUMBER.format('[.]')})\s*([^\d\s.,+-].*)$"
QUANTITY_CELL = re.compile(rf"({PLAIN_NUMBER.format('[.,]')})\s*([^\d\s.,+-].*)")


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

    def as_python_writes(self, cell: str) -> str:
        """Return a cell with its number as Python writes it.

        >>> NumberStyle(",", ".").as_python_writes("1.234,5")
        '1234.5'
        """
        if self.thousands:
            between_groups = rf"(?<=\d){re.escape(self.thousands)}(?=\d{{3}}(?!\d))"
            cell = re.sub(between_groups, "", cell)
        return cell.replace(self.decimal, ".")


@dataclass(frozen=True)
class MissingWords:
    """The cells that the user takes for missing values: words and numbers."""

    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()

    @classmethod
    def of(cls, missing: Sequence[str]) -> MissingWords:
        """Tell words from numbers, such as -999, which may be written in several ways."""
        words = []
        numbers = []
        for word in missing:
            words.append(word.strip().lower())
            with suppress(ValueError):
                numbers.append(float(word))
        return cls(tuple(words), tuple(numbers))

    def blank(self, values: np.ndarray) -> np.ndarray:
        """Return numbers with NaN in place of those that stand for a missing value."""
        if not self.numbers or values.dtype.kind not in "iufc":
            return values
        stands_for_missing = np.isin(values, self.numbers)
        if not stands_for_missing.any():
            return values
        return np.where(stands_for_missing, np.nan, values)


@dataclass(eq=False)
class Column:
    """A column of a table.

    Parameters
    ----------
    label
        Its name, with the unit where the table tells it.
    cells
        Real or complex numbers; or objects, text and None, where a cell is no number.
    words
        The positions of the cells that are neither numbers nor empty.
    missing
        How often each word stands for a missing value.
    unit
        The unit of the cells, where the label has none.
    may_be_readout
        False where the column is the same throughout each sample of a long table.
    """

    label: str
    cells: np.ndarray
    words: Integers = field(default_factory=lambda: np.arange(0))
    missing: Counter[str] = field(default_factory=Counter)
    unit: str = ""
    may_be_readout: bool = True

    @property
    def is_parsed(self) -> bool:
        """Whether all cells are numbers, or empty."""
        return self.cells.dtype.kind in PARSED_KINDS

    @property
    def is_filled(self) -> np.ndarray:
        """Which of the cells are filled."""
        if self.is_parsed:
            return ~np.isnan(self.cells)
        return np.array([cell is not None for cell in self.cells], dtype=bool)

    @property
    def is_empty(self) -> bool:
        """Whether no cell is filled."""
        return not self.is_filled.any()

    @property
    def is_text(self) -> bool:
        """Whether fewer than half of the cells are numbers; else the others are mistakes."""
        if self.is_parsed:
            return False
        return len(self.words) > 0 and 2 * len(self.words) > int(self.is_filled.sum())


def looks_like_number(cell: str) -> bool:
    """Return whether a cell is a number, in whatever style it is written."""
    return NUMBER.fullmatch(cell.strip()) is not None


def looks_like_quantity(cell: str) -> bool:
    """Return whether a cell is a number with its unit, such as ``1.23 uA``."""
    match = QUANTITY_CELL.fullmatch(cell.strip())
    return match is not None and UNIT.fullmatch(match[2]) is not None


def number_of_quantity(cell: str) -> str:
    """Return the number of a cell without the unit behind it.

    >>> number_of_quantity("1,23 uA"), number_of_quantity("relocked")
    ('1,23', 'relocked')
    """
    return QUANTITY_CELL.sub(r"\1", cell) if looks_like_quantity(cell) else cell


def read_cells(
    label: str, cells: Sequence[str], style: NumberStyle, missing: MissingWords
) -> Column:
    """Return a column of text as numbers where all its cells are numbers or empty."""
    import pandas as pd

    plain = [style.as_python_writes(cell) for cell in cells]
    values = np.full(len(plain), np.nan)
    counts: Counter[str] = Counter()
    others = []
    for row, cell in enumerate(plain):
        number = _number(cell)
        if number is not None:
            values[row] = number
            continue
        word = " ".join(cell.split())
        lower = word.lower()
        if lower in EMPTY_CELLS:
            continue
        if lower in WORDS_FOR_MISSING or lower in missing.words:
            counts[word] += 1
        else:
            others.append(row)
    if len(others) > 1 and np.isnan(values).all():
        others = _read_hexadecimal(plain, others, values)
    if not others:
        return Column(label, missing.blank(values), missing=counts)

    is_gap = np.isnan(values)
    is_gap[others] = False
    filled = pd.Series(plain, dtype=object).mask(is_gap, "nan")
    complex_values = _complex_numbers(filled)
    if complex_values is not None:
        return Column(label, complex_values, missing=counts)
    column = _quantities(label, filled, counts)
    if column is not None:
        return column
    words = [" ".join(cell.split()) for cell in cells]
    objects = np.array(
        [word if word.lower() not in EMPTY_CELLS else None for word in words], object
    )
    is_word = np.zeros(len(words), dtype=bool)
    is_word[others] = True
    n_filled = sum(word is not None for word in objects)
    if 2 * (is_word.sum() + counts.total()) > n_filled:
        # In a column of words, those that stand for a missing value elsewhere are words, too.
        is_word |= is_gap & np.array([word is not None for word in objects])
    return Column(label, objects, np.flatnonzero(is_word))


def _read_hexadecimal(cells: Sequence[str], others: list[int], values: Floats) -> list[int]:
    """Read counts such as 0x1F3A where all cells are such; return the rows that are none.

    Among decimal numbers such a cell is a mistake.
    """
    if not all(HEXADECIMAL_CELL.fullmatch(cells[row].strip()) for row in others):
        return others
    for row in others:
        values[row] = int(cells[row], 16)
    return []


def _number(cell: str) -> float | None:
    """Return a cell as a number; None where it is none."""
    if "_" in cell:  # Python takes 1_000 for a number
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _complex_numbers(filled: pd.Series[Any]) -> np.ndarray | None:
    """Read complex numbers, which pandas does not; None where a cell is something else."""
    with suppress(ValueError):
        values = filled.str.replace("i$", "j", regex=True).map(complex).to_numpy(complex)
        return values if values.imag.any() else values.real
    return None


def _quantities(label: str, filled: pd.Series[Any], counts: Counter[str]) -> Column | None:
    """Read numbers with units; None where a cell is something else, or units do not agree.

    Cells that agree but for the prefix, such as 800 nA and 1.2 uA, are brought to the unit without
    a prefix.
    """
    import pandas as pd

    is_nan = filled == "nan"
    parts = filled.str.strip().str.extract(QUANTITY)
    numbers = pd.to_numeric(parts[0].where(parts[0].notna(), filled), errors="coerce")
    units = parts[1].str.strip().where(~is_nan)
    has_unit = units.notna()
    is_zero = numbers == 0  # needs no unit
    if not has_unit.any() or not (has_unit | is_nan | is_zero).all():
        return None
    different = set(units[has_unit])
    if not all(map(UNIT.fullmatch, different)):
        return None
    values = numbers.to_numpy(float)
    if len(different) == 1:
        return Column(with_unit(label, different.pop()), values, missing=counts)
    symbols = {}
    for unit in different:
        match = SYMBOL_WITH_PREFIX.fullmatch(unit)
        if match is None:
            return None
        symbols[unit] = match
    if len({match["symbol"] for match in symbols.values()}) > 1:
        return None
    factors = {unit: SI_PREFIXES[match["prefix"]] for unit, match in symbols.items()}
    factor = units.map(factors).fillna(1.0).to_numpy(float)
    unit = next(iter(symbols.values()))["symbol"]
    return Column(with_unit(label, unit), values * factor, missing=counts)
