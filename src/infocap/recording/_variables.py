"""Rows from a file of named arrays that somebody else wrote."""

from __future__ import annotations

import numpy as np

from .._files import Contents
from ..errors import DataError
from ..typing import Floats
from ._names import INPUTS, READOUTS, TIMES, matching, numbered, one_of_these
from ._rows import Rows


def rows_of(contents: Contents, u: str | None, x: str | None, roles: str = "ux") -> Rows:
    """Inputs and readouts (or only one of them) by their names; index and times where there are some."""
    names = list(contents.variables)
    chosen = {
        role: _chosen(contents, names, role, asked, alone=len(roles) == 1)
        for role, asked in (("u", u), ("x", x))
        if role in roles
    }
    rows = Rows(contents.path)
    for role, found in chosen.items():
        setattr(rows, role, _joined(contents, role, [names[k] for k in found]))
    channels = chosen.get("x", [])
    if rows.x is not None and len(channels) > 1 and rows.x.shape[1] == len(channels):
        rows.channel = tuple(names[k] for k in channels)
    for field, known in (("index", ("index",)), ("acquired", TIMES)):
        found = [k for k in one_of_these(names, known) if not any(k in taken for taken in chosen.values())]
        if found and contents.variables[names[found[0]]].dtype.kind in "iuf":
            setattr(rows, field, contents.numbers(names[found[0]]))
    return rows


def chosen(contents: Contents, role: str, asked: str | None, alone: bool) -> list[str]:
    """The names of the variables that are the inputs or the readouts."""
    names = list(contents.variables)
    return [names[number] for number in _chosen(contents, names, role, asked, alone)]


def _chosen(contents: Contents, names: list[str], role: str, asked: str | None, alone: bool) -> list[int]:
    if asked is not None:
        return matching(contents.path, names, asked, role, str(contents))
    found = one_of_these(names, INPUTS if role == "u" else READOUTS)
    if not found and role == "u":
        found = numbered(names)
    if not found and alone:
        numeric = [k for k, name in enumerate(names) if contents.variables[name].dtype.kind in "biufc"]
        found = numeric if len(numeric) == 1 else []
    if not found:
        what = "inputs (u)" if role == "u" else "readouts (x)"
        raise DataError(
            f"{contents.path} has no variable that is obviously the {what}; it holds {contents}: "
            f"name it by {role}=... (--{role} on the command line)."
        )
    return found


def _joined(contents: Contents, role: str, names: list[str]) -> Floats:
    """One table; several variables become columns side by side."""
    parts = [contents.numbers(name) for name in names]
    if len(parts) == 1:
        return parts[0]
    columns = [part.reshape(-1, 1) if part.ndim < 2 or 1 in part.shape else part for part in parts]
    if len({len(part) for part in columns}) > 1 or any(part.ndim != 2 for part in columns):
        said = ", ".join(f"{name} {part.shape}" for name, part in zip(names, parts, strict=True))
        raise DataError(f"{role} in {contents.path} is made of variables of unequal lengths: {said}.")
    return np.hstack(columns)
