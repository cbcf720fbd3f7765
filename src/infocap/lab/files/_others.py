"""Inputs and readouts in files that somebody else wrote, found by their names: arrays, text tables, folders."""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import NUMBERS, Contents, Variable, blame, readable
from ..._formatting import listed
from ..._validation import one_of
from ...errors import Check, DataError
from ...recording._assemble import whole_numbers
from ...recording._save import FORMAT, PLAN, PLANNED
from ..experiment._store_file import LATEST_S
from ._arrange import Rows, along
from ._array_files import OPENERS, numbers_of
from ._own_file import from_json
from ._tables import IN_NAME, Sheet, load_sheet, unit_of

TEXTS = (".csv", ".txt", ".tsv", ".dat", ".lvm", ".asc")
INPUTS = ("u", "inputs", "input")
READOUTS = ("x", "readouts", "readout", "outputs", "output")
TIMES = (
    "acquired",
    "time",
    "timestamp",
    "time stamp",
    "datetime",
    "date/time",
    "uhrzeit",
    "zeit",
    "x_value",
)
SECONDS = ("s", "sec", "second", "seconds")
# Names such as u1, u_1, u[0], input 1, u1 [V], and u1: Voltage A [V] in our own tables.
NUMBERED = re.compile(
    r"(?:u|inputs?)[ _]*[\[(]?(\d{1,6})[\])]?(?::\s*(.+)|(\s+[\[(].+))?", re.IGNORECASE
)
DIGITS = re.compile(r"\d+")  # in the names of files
OLD = f"# {FORMAT} "  # the first words of recordings that older versions wrote as tables
OLD_END = "# end"  # their last line


def rows_in(path: Path, wanted: dict[str, str | None], axes: str | None, in_memory: bool) -> Rows:
    """Read inputs, readouts or both from a file that another program wrote."""
    suffix = path.suffix.lower()
    one_of("path suffix" if "u" in wanted else "readouts suffix", suffix, (*OPENERS, *TEXTS))
    if suffix in TEXTS:
        return table_rows(path, wanted, axes)
    with OPENERS[suffix](path) as contents:
        return rows_of(contents, wanted, axes, in_memory)


def rows_of(
    contents: Contents, wanted: dict[str, str | None], axes: str | None, in_memory: bool
) -> Rows:
    """Find u and x, or one of them, by the names wanted or the usual ones; and index and times if there are."""
    rows, variables = Rows(contents.path, axes=axes), contents.variables
    try:
        found = {
            role: _chosen(contents, role, asked, alone=len(wanted) == 1)
            for role, asked in wanted.items()
        }
    except DataError as problem:
        problem.add_note(
            "\n".join(f"  {name:<24} {_described(one)}" for name, one in variables.items())
        )
        raise
    for role, own in found.items():
        values = _joined(contents, role, own, in_memory)
        values = values if axes is None or role == "u" else along(contents.path, values, axes)
        setattr(rows, role, values)
        if len(own) > 1 and values.shape[1] == len(own):
            rows.told |= {"channel": tuple(own)} if role == "x" else _input_names(own)
        units = {str(variables[name].attributes.get("units", "")) for name in own}
        if len(units) == 1 and "" not in units:
            rows.told["input_unit" if role == "u" else "readout_unit"] = units.pop()
    chosen = {"inputs" if role == "u" else "readouts": own for role, own in found.items()}
    taken = [name for own in found.values() for name in own]
    said = listed([f"{name} {variables[name].shape}" for name in taken], 6)
    free = [
        name for name, one in variables.items() if name not in taken and one.dtype.kind in "iuf"
    ]
    sizes = {n for one in (rows.u, rows.x) if one is not None for n in one.shape}
    timed = [
        name for name in free if math.prod(variables[name].shape) in sizes
    ]  # not an axis of something else
    for name in (free[k] for k in one_of_these(free, ("design_index", "index"))):
        rows.index, chosen["index"] = contents.numbers(name), [name]
    for name in (timed[k] for k in one_of_these(timed, TIMES)):
        unit = str(variables[name].attributes.get("units", ""))
        rows.time, chosen["time"] = _in_seconds(contents.numbers(name), unit), [name]
    taken += [*chosen.get("index", []), *chosen.get("time", [])]
    left_out = {name: _described(one) for name, one in variables.items() if name not in taken}
    rows.keep_choice(f"{contents.kind}, from {said}", chosen, left_out)
    return rows


def _in_seconds(values: np.ndarray, unit: str = "") -> np.ndarray:
    """Times in seconds, where they are milliseconds or less, or the unit is such as ``hours since 2026-01-31``."""
    with suppress(ValueError):  # a unit that xarray does not know
        if " since " in unit:
            import xarray as xr

            times = xr.decode_cf(xr.Dataset({"time": ("sample", values.ravel(), {"units": unit})}))[
                "time"
            ].to_numpy()
            return (times - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    while np.max(values, initial=0, where=np.isfinite(values)) > LATEST_S:
        values = values / 1000
    return values


def _described(variable: Variable) -> str:
    unit = variable.attributes.get("units", "")
    kind = str(variable.dtype) if variable.dtype.kind in NUMBERS else "text"
    return f"{variable.shape} {kind}{unit and f' in {unit}'}"


def matching(path: Path, names: Sequence[str], wanted: str, role: str, held: str) -> list[int]:
    """Find the positions of names asked for: one name, or names and patterns such as ``u*`` with commas between."""
    chosen: list[int] = []
    for part in [wanted] if wanted in names else [one.strip() for one in wanted.split(",")]:
        dotted = part.replace("/", ".")
        found = [k for k, name in enumerate(names) if name == part]
        found = found or [k for k, name in enumerate(names) if name.replace("/", ".") == dotted]
        found = found or [k for k, name in enumerate(names) if fnmatchcase(name, part)]
        found = found or [
            k for k, name in enumerate(names) if part.lower() in (name.lower(), _plain(name))
        ]
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
    plain = [_plain(name) for name in names]
    return next(([plain.index(one)] for one in known if one in plain), [])


def _plain(name: str) -> str:
    """A name in small letters, without the unit behind it."""
    return IN_NAME.sub("", name).strip().lower()


def _chosen(contents: Contents, role: str, asked: str | None, alone: bool) -> list[str]:
    names = list(contents.variables)
    if asked is not None:
        return [names[k] for k in matching(contents.path, names, asked, role, str(contents))]
    found = (
        one_of_these(names, INPUTS) or numbered(names)
        if role == "u"
        else one_of_these(names, READOUTS)
    )
    if not found and alone:
        numeric = [
            k for k, name in enumerate(names) if contents.variables[name].dtype.kind in NUMBERS
        ]
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
        return numbers_of(contents, names[0], in_memory)
    parts = [contents.numbers(name) for name in names]
    columns = [part.reshape(-1, 1) if part.ndim < 2 or 1 in part.shape else part for part in parts]
    if len({len(part) for part in columns}) > 1 or any(part.ndim != 2 for part in columns):
        said = ", ".join(f"{name} {part.shape}" for name, part in zip(names, parts, strict=True))
        raise DataError(
            f"{role} in {contents.path} is made of variables of unequal lengths: {said}."
        )
    return np.hstack(columns)


def table_rows(path: Path, wanted: dict[str, str | None], axes: str | None = None) -> Rows:
    """Take the columns of u and x, or of one, by their names; all other columns of numbers are readouts."""
    with blame(path, "a table"):
        sheet = load_sheet(path)
    if axes is not None and "x" in wanted and axes.replace(" ", "") == "channels,samples":
        sheet, axes = sheet.turned(), None
    try:
        return _assigned(sheet, wanted, axes)
    except DataError as problem:
        columns = [f"  {name:<24} {sheet.described(k)}" for k, name in enumerate(sheet.labels)]
        problem.add_note("\n".join([f"{path}: {sheet.dialect}", *columns]))
        raise


def _assigned(sheet: Sheet, wanted: dict[str, str | None], axes: str | None) -> Rows:
    """Decide for every column what it is, and keep the decision."""
    path, names, held = sheet.path, sheet.labels, listed(sheet.labels, 20)
    text = [k for k in range(len(names)) if sheet.is_text(k)]
    index = [k for k in one_of_these(names, ("design_index", "index")) if k not in text]
    named = {
        role: matching(path, names, one, role, held)
        for role, one in wanted.items()
        if one is not None
    }
    asked = {k for chosen in named.values() for k in chosen}
    if both := [names[k] for k in named.get("u", []) if k in named.get("x", [])]:
        raise DataError(
            f"{both[0]!r} of {path} is named as an input and as a readout; it can be one of them."
        )
    times = _times(sheet, {*index, *asked})
    empty = [k for k, one in enumerate(sheet.columns) if one.isna().all()]
    nameless = [k for k in range(len(names)) if not names[k] and k not in (*text, *empty)]
    empty += [
        k for k in nameless if (sheet.columns[k].diff()[1:] == 1).all()
    ]  # as pandas numbers its rows
    usable = [k for k in range(len(names)) if k not in (*index, *times, *asked, *text, *empty)]
    inputs = named.get("u") or numbered(names) or one_of_these(names, INPUTS)
    if not inputs and "x" not in wanted:
        inputs = usable
    if not inputs and "u" in wanted:
        said = f"{path} has no columns named u1, u2, ...; it holds {held}: name the inputs by u='a,b' (--u)"
        said += "" if sheet.has_names else "; without a header line columns are numbered from 1"
        raise DataError(f"{said}.")
    readouts = named.get("x", [k for k in usable if k not in inputs]) if "x" in wanted else []
    taken = {*inputs, *readouts, *index, *times}
    left = [k for k in range(len(names)) if k not in taken]
    left_out = {
        names[k] or "(no name)": sheet.described(k) + (", not asked for" if k in usable else "")
        for k in left
    }
    rows = Rows(path, told=_told(sheet), axes=axes)
    rows.words = [list(sheet.columns[k].astype(str)) for k in left if k in text]
    checks = [*rows.told.get("checks", ()), *sheet.checks]
    rows.index = whole_numbers(path, sheet.numbers(index, real="index")[:, 0]) if index else None
    rows.time = next(iter(times.values()), None)
    rows.u = sheet.numbers(inputs, real="inputs") if inputs else None
    rows.told |= _input_names([names[k] for k in inputs]) if sheet.has_names else {}
    if "x" in wanted:
        said = listed([f"{name} ({one})" for name, one in left_out.items()], 6)
        if not readouts:
            raise DataError(
                f"{path} has no column of readouts; it holds {held}{said and f'; left out: {said}'}."
            )
        rows.x = sheet.numbers(readouts)
        rows.told["channel"] = tuple(names[k] for k in readouts) if sheet.has_names else ()
        units = {unit_of(names[k]) for k in readouts}
        rows.told |= {"readout_unit": units.pop()} if len(units) == 1 and "" not in units else {}
        if left_out and "x" not in named:
            checks.append(
                Check(
                    f"columns of {path.name} were left out: {said}.",
                    "note",
                    left_out=list(left_out),
                )
            )
    rows.told["checks"] = tuple(checks)
    if sheet.words(OLD):
        return rows
    roles = {"inputs": inputs, "readouts": readouts, "time": times, "index": index}
    rows.keep_choice(
        sheet.dialect,
        {role: [names[k] for k in own] for role, own in roles.items() if own},
        left_out,
    )
    return rows


def _times(sheet: Sheet, taken: set[int]) -> dict[int, Any]:
    """Find the column that tells when rows were measured: by its name, by dates in it, or as seconds that only grow."""
    plain = [_plain(one) for one in sheet.labels]
    date = next((k for k, name in enumerate(plain) if name in ("date", "datum")), None)
    known = [plain.index(name) for name in TIMES if name in plain]
    for k in [one for one in (*known, *range(len(plain))) if one not in taken]:
        found = sheet.seconds(k, date if k in known else None)
        grows = (
            unit_of(sheet.labels[k]).lower() in SECONDS
            and found is not None
            and (np.diff(found) > 0).all()
        )
        if found is not None and (k in known or sheet.is_text(k) or (grows and len(found) > 2)):
            return {k: _in_seconds(found)}
    return {}


def _input_names(columns: list[str]) -> dict[str, tuple[str, ...]]:
    """The names of inputs, from those of their columns; plain numbers such as u1 are none."""
    found = [NUMBERED.fullmatch(one.strip()) for one in columns]
    names = tuple(
        name if one is None or one[3] else one[2] or ""
        for one, name in zip(found, columns, strict=True)
    )
    return (
        {"input_names": tuple(name or f"u{k + 1}" for k, name in enumerate(names))}
        if any(names)
        else {}
    )


def _told(sheet: Sheet) -> dict[str, Any]:
    """What the comments tell: the plan that `infocap draw` wrote, or all words of a recording of an older version."""
    old = sheet.words(OLD)
    if not old:
        found = sheet.words(PLAN)
        return {"metadata": {name: found[name] for name in PLANNED if name in found}}
    if sheet.comments[-1] != OLD_END:
        said = f"{sheet.path} is cut short after {len(sheet.columns[0])} rows"
        raise DataError(f"{said}; without its first line those can be read.")
    units = {name: str(old.get(name, "")) for name in ("readout_unit", "input_unit")}
    checks = tuple(map(str, from_json(sheet.path, "checks", old, [])))
    return units | {"metadata": from_json(sheet.path, "metadata", old, {}), "checks": checks}


def is_folder(path: Path) -> bool:
    """Whether readouts are in a folder of many files, rather than in a zarr folder."""
    return path.is_dir() and path.suffix.lower() != ".zarr"


def folder_rows(folder: Path, words: list[list[str]], x: str | None) -> Rows:
    """Read every file as one row: in the order that a column of words in the table tells, or of their numbers."""
    there = sorted(
        one
        for one in readable(folder, folder=True).iterdir()
        if one.is_file() and one.name[0] != "."
    )
    files = _in_order(folder, there, words)
    shots = [rows_in(file, {"x": x}, None, in_memory=True) for file in files]
    tables = [np.asarray(one.x) for one in shots]
    labels, axis = shots[0].told.get("channel", ()), shots[0].time
    if tables[0].shape[1:] == (2,) and all(
        np.array_equal(one[:, 0], tables[0][:, 0]) for one in tables
    ):
        axis, tables = (
            tables[0][:, 0],
            [one[:, 1:] for one in tables],
        )  # such as wavelengths, the same in all files
    for file, one in zip(files, tables, strict=True):
        if one.shape != tables[0].shape or one.size != max(one.shape):
            said = f"{file} has readouts of shape {one.shape}, and {files[0].name} of {tables[0].shape}"
            raise DataError(
                f"{said}; name the column of readouts by x=... (--x), or take the file out."
            )
    rows = Rows(folder, x=np.stack([one.ravel() for one in tables]))
    if axis is not None and len(axis) == tables[0].size:
        unit = unit_of(labels[0]) if len(labels) == 2 else ""
        rows.told["channel"] = tuple(f"{one:.10g} {unit}".strip() for one in axis)
    rows.told["readout_unit"] = unit_of(labels[-1]) if labels else ""
    left_out = {one.name: "not named in the table" for one in there if one not in files}
    kind = f"one file per sample, {files[0].name} to {files[-1].name}, {len(files)} files"
    rows.keep_choice(kind, {"readouts": list(labels[-1:])}, left_out)
    return rows


def _in_order(folder: Path, there: list[Path], words: list[list[str]]) -> list[Path]:
    """Sort files as a column of the table names them, or by the numbers in their names, which must leave none out."""
    known = {one.stem: one for one in there} | {one.name: one for one in there}
    for names in ([Path(cell).name for cell in cells] for cells in words):
        lost = [name for name in names if name not in known]
        if lost and 2 * len(lost) < len(names):
            raise DataError(
                f"{folder} has no {listed(lost, 3)}, of {len(names)} files that the table names."
            )
        if not lost and len(set(names)) == len(names):
            return [known[name] for name in names]
    numbers = {int(DIGITS.findall(one.stem)[-1]): one for one in there if DIGITS.search(one.stem)}
    files = [one for _, one in sorted(numbers.items())]
    if not files or len(files) < len(there) or max(numbers) - min(numbers) >= len(files):
        said = f"{folder} has {len(there)} files, and their names are not numbered without gaps"
        raise DataError(
            f"{said}: name the files in a column of the table of inputs, and take others out."
        )
    return files
