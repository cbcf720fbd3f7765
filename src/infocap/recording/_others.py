"""Inputs and readouts in files that somebody else wrote: in arrays by their names, in text tables of any dialect."""

import csv
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .._files import NUMBERS, Contents, blame, readable, refuse_too_large
from .._words import listed
from ..errors import DataError
from ..typing import Floats
from ._array_files import in_place
from ._own_file import FORMAT, from_json
from ._recording import Rows, whole_numbers

INPUTS = ("u", "inputs", "input")
READOUTS = ("x", "readouts", "readout", "outputs", "output")
TIMES = ("acquired", "time")
# Names such as u1, u_1, u[0], input 1, and u1: Voltage A [V] in our own tables.
NUMBERED = re.compile(r"(?:u|inputs?)[ _]*[\[(]?(\d{1,6})[\])]?(?::\s*(.+))?", re.IGNORECASE)
MISSING = ("", "nan", "na", "n/a", "null", "none")
COMMENT = ("#", "%")
# Bytes of memory per byte of text, at most: the text itself, its lines, and 8 bytes for each digit and comma.
EXPANSION = 8
PLAN = "# infocap plan "  # the first words of what `infocap draw` writes above the inputs
OLD = f"# {FORMAT} "  # the first words of recordings that older versions wrote as tables
OLD_END = "# end"  # their last line


def rows_of(contents: Contents, wanted: dict[str, str | None], in_memory: bool) -> Rows:
    """Find u and x, or one of them, by the names wanted or the usual ones; and index and times if there are."""
    names = list(contents.variables)
    rows, taken = Rows(contents.path), set[str]()
    for role, asked in wanted.items():
        chosen = _chosen(contents, role, asked, alone=len(wanted) == 1)
        values = _joined(contents, role, chosen, in_memory)
        setattr(rows, role, values)
        taken |= set(chosen)
        if len(chosen) > 1 and values.shape[1] == len(chosen):
            rows.told |= {"channel": tuple(chosen)} if role == "x" else _input_names(chosen)
    for field, known in (("index", ("index",)), ("acquired", TIMES)):
        for name in (names[k] for k in one_of_these(names, known)):
            if name not in taken and contents.variables[name].dtype.kind in "iuf":
                setattr(rows, field, contents.numbers(name))
    return rows


def matching(path: Path, names: Sequence[str], wanted: str, role: str, held: str) -> list[int]:
    """Find the positions of names asked for: one name, or names and patterns such as ``u*`` with commas between."""
    chosen: list[int] = []
    for part in [wanted] if wanted in names else [one.strip() for one in wanted.split(",")]:
        dotted = part.replace("/", ".")
        found = [k for k, name in enumerate(names) if name == part]
        found = found or [k for k, name in enumerate(names) if name.replace("/", ".") == dotted]
        found = found or [k for k, name in enumerate(names) if fnmatchcase(name, part)]
        found = found or [k for k, name in enumerate(names) if name.lower() == part.lower()]
        if not found:
            raise DataError(f"{role}={part!r} is not in {path}; it holds {held}.")
        chosen += [k for k in found if k not in chosen]
    return chosen


def numbered(names: Sequence[str]) -> list[int]:
    """Find the positions of names such as u1, u2, ..., in the order of their numbers."""
    matches = {k: NUMBERED.fullmatch(name.strip()) for k, name in enumerate(names)}
    return [k for _, k in sorted((int(match[1]), k) for k, match in matches.items() if match)]


def one_of_these(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """Find the first known name that is there, in capitals or not: its position, as a list of at most one."""
    lower = [name.strip().lower() for name in names]
    return next(([lower.index(one)] for one in known if one in lower), [])


def _chosen(contents: Contents, role: str, asked: str | None, alone: bool) -> list[str]:
    names = list(contents.variables)
    if asked is not None:
        return [names[k] for k in matching(contents.path, names, asked, role, str(contents))]
    found = one_of_these(names, INPUTS if role == "u" else READOUTS)
    if not found and role == "u":
        found = numbered(names)
    if not found and alone:
        numeric = [k for k, name in enumerate(names) if contents.variables[name].dtype.kind in NUMBERS]
        found = numeric if len(numeric) == 1 else []
    if not found:
        what = "inputs (u)" if role == "u" else "readouts (x)"
        raise DataError(
            f"{contents.path} has no variable that is obviously the {what}; it holds {contents}: "
            f"name it by {role}=... (--{role} on the command line)."
        )
    return [names[k] for k in found]


def _joined(contents: Contents, role: str, names: list[str], in_memory: bool) -> Any:
    if len(names) == 1:
        lazy = None if in_memory else in_place(contents, names[0])
        return contents.numbers(names[0]) if lazy is None else lazy
    parts = [contents.numbers(name) for name in names]
    columns = [part.reshape(-1, 1) if part.ndim < 2 or 1 in part.shape else part for part in parts]
    if len({len(part) for part in columns}) > 1 or any(part.ndim != 2 for part in columns):
        said = ", ".join(f"{name} {part.shape}" for name, part in zip(names, parts, strict=True))
        raise DataError(f"{role} in {contents.path} is made of variables of unequal lengths: {said}.")
    return np.hstack(columns)


@dataclass
class Sheet:
    """Numbers (rows, columns), the names of the columns if there is a header, and the comment lines."""

    path: Path
    names: list[str] | None
    values: np.ndarray
    comments: list[str]

    def words(self, start: str) -> dict[str, Any]:
        """The data in a comment that starts so; empty when there is none."""
        text = next((line[len(start) :] for line in self.comments if line.startswith(start)), "{}")
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as problem:
            said = f"{self.path} starts with {start!r} and then something damaged ({problem})"
            raise DataError(f"{said}; without that line the table can still be read.") from None

    def real(self, columns: Any, what: str) -> Floats:
        """Columns that must be real numbers."""
        values = self.values[:, columns]
        if values.dtype.kind == "c" and values.imag.any():
            raise DataError(f"{self.path} has complex numbers among its {what}; give real ones.")
        return values.real


def table_rows(path: Path, wanted: dict[str, str | None]) -> Rows:
    """Take the columns of u and x, or of one, by their names; all that is nothing else are readouts."""
    sheet = load_sheet(path)
    names = sheet.names or [str(column + 1) for column in range(sheet.values.shape[1])]
    held = listed(names, 20)
    index, times = one_of_these(names, ("index",)), one_of_these(names, TIMES)
    named = {role: matching(path, names, one, role, held) for role, one in wanted.items() if one is not None}
    inputs = named.get("u") or numbered(names) or one_of_these(names, INPUTS)
    if not inputs and "x" not in wanted:
        inputs = [k for k in range(len(names)) if k not in (*index, *times)]
    if not inputs and "u" in wanted:
        said = f"{path} has no columns named u1, u2, ...; it holds {held}: name the inputs by u='a,b' (--u)"
        said += "" if sheet.names else "; without a header line columns are numbered from 1"
        raise DataError(f"{said}.")
    readouts = named.get("x", [k for k in range(len(names)) if k not in (*index, *times, *inputs)])
    rows = Rows(path, told=_told(sheet))
    rows.index = whole_numbers(path, sheet.real(index[0], "index")) if index else None
    rows.acquired = sheet.real(times[0], names[times[0]]) if times else None
    rows.u = sheet.real(inputs, "inputs") if inputs else None
    rows.told |= _input_names([names[k] for k in inputs]) if sheet.names else {}
    if "x" in wanted:
        if not readouts:
            raise DataError(f"{path} has no column of readouts; it holds {held}.")
        rows.x = sheet.values[:, readouts]
        if rows.x.dtype.kind == "c" and not rows.x.imag.any():
            rows.x = rows.x.real
        rows.told["channel"] = tuple(names[k] for k in readouts) if sheet.names else ()
    return rows


def _input_names(columns: list[str]) -> dict[str, tuple[str, ...]]:
    """The names of inputs, from those of their columns; plain numbers such as u1 are none."""
    found = [NUMBERED.fullmatch(one.strip()) for one in columns]
    names = tuple(one[2] or "" if one else name for one, name in zip(found, columns, strict=True))
    return {"input_names": tuple(name or f"u{k + 1}" for k, name in enumerate(names))} if any(names) else {}


def _told(sheet: Sheet) -> dict[str, Any]:
    """What the comments tell: the plan that `infocap draw` wrote, or all words of a recording of an older version."""
    old = sheet.words(OLD)
    if not old:
        found = sheet.words(PLAN)
        return {"metadata": {name: found[name] for name in ("plan", "fingerprint", "design") if name in found}}
    if sheet.comments[-1] != OLD_END:
        said = f"{sheet.path} is cut short after {len(sheet.values)} rows"
        raise DataError(f"{said}; without its first line those can be read.")
    units = {name: str(old.get(name, "")) for name in ("readout_unit", "input_unit")}
    checks = tuple(map(str, from_json(sheet.path, "checks", old, [])))
    return units | {"metadata": from_json(sheet.path, "metadata", old, {}), "checks": checks}


def load_sheet(path: Path) -> Sheet:
    """Read a table; a cell that is no number or a line of another length is named."""
    readable(path)
    refuse_too_large(path, "text", (path.stat().st_size,), EXPANSION)
    comments: list[str] = []
    lines: list[tuple[int, str]] = []  # with their numbers in the file
    for number, line in enumerate(io.StringIO(_decoded(path), newline=None), 1):
        if line.startswith(COMMENT):
            comments.append(line.rstrip("\n"))
        elif not line.isspace():
            lines.append((number, line.rstrip("\n")))
    if lines and lines[0][1].lower().startswith("sep=") and len(lines[0][1]) == 5:
        del lines[0]  # as spreadsheets write
    if not lines:
        raise DataError(f"{path} holds no rows of numbers.")
    separator = _separator(lines[0][1], lines[min(1, len(lines) - 1)][1])
    head = [cell.strip() for cell in _cells(path, *lines[0], separator)]
    names = head if any(_value(cell, separator) is None for cell in head) else None
    if names and len(lines) == 1:
        raise DataError(f"{path} holds no rows of numbers, only the names of {len(head)} columns.")
    lines = lines[1:] if names else lines
    text = (line if separator == "," else line.replace(",", ".") for _, line in lines)
    if separator:  # nothing before, and nothing up to the next separator
        text = (re.sub(f"(?<![^{separator}])(?={separator}|$)", "nan", line) for line in text)
    try:
        values = np.loadtxt(text, delimiter=separator, comments=None, quotechar='"', ndmin=2)
    except ValueError:
        values = np.empty((0, 0))
    if values.shape != (len(lines), len(head)):  # a date, a complex number, or a mistake
        columns = names or [str(column + 1) for column in range(len(head))]
        values = np.array([_one_by_one(path, *line, separator, columns) for line in lines])
    if len(head) > 1 and (names is None or not names[-1]) and np.isnan(values[:, -1]).all():
        values, names = values[:, :-1], names and names[:-1]  # every line ended in a separator
    return Sheet(path, names, values, comments)


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


def _separator(first: str, second: str) -> str | None:
    """Find the separator that both lines have equally often, the rarer ones in numbers first; None is white space."""
    there = [one for one in ("\t", ";", ",") if one in second]
    alike = [one for one in there if second.count(one) == first.count(one) or '"' in first]
    return next(iter(alike + there), None)


def _cells(path: Path, number: int, line: str, separator: str | None) -> list[str]:
    if separator is None or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as problem:
        raise DataError(f"{path} has quotes that do not match in line {number} ({problem}).") from None


def _one_by_one(path: Path, number: int, line: str, separator: str | None, names: list[str]) -> list[complex]:
    """Read one line that may hold gaps, complex numbers and, in columns of times, dates."""
    cells = _cells(path, number, line, separator)
    if len(cells) != len(names):
        said = f"{path} has {len(cells)} cells in line {number} and {len(names)} in its first line"
        raise DataError(f"{said}; repair that line.")
    values = []
    for name, cell in zip(names, cells, strict=True):
        value = _value(cell, separator)
        if value is None and name.lower() in TIMES:
            with suppress(ValueError):
                when = datetime.fromisoformat(cell.strip())
                value = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        if value is None:
            said = f"{path} has {cell.strip()!r:.60} in line {number}, column {name!r}"
            raise DataError(f"{said}; give numbers only.")
        values.append(value)
    return values


def _value(cell: str, separator: str | None) -> complex | None:
    """A number, NaN for a missing one, None for anything else; a comma is a decimal sign where nothing else is."""
    cell = cell.strip()
    if cell.lower() in MISSING:
        return float("nan")
    if separator != "," and "." not in cell:
        cell = cell.replace(",", ".")
    for kind in (float, complex):
        with suppress(ValueError):
            return kind(cell.replace("i", "j") if kind is complex and cell.endswith("i") else cell)
    return None
