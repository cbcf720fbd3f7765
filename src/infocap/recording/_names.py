"""Which variables or columns of a file are inputs and which are readouts, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import DataError

INPUTS = ("u", "inputs", "input")
READOUTS = ("x", "readouts", "readout", "outputs", "output")
TIMES = ("acquired", "time")
NUMBERED = re.compile(r"(?:u|inputs?)[ _]*[\[(]?(\d{1,6})[\])]?", re.IGNORECASE)  # u1, u_1, u[0], input 1


def matching(path: Path, names: Sequence[str], wanted: str, role: str, held: str) -> list[int]:
    """Positions of the names asked for: one name, or names and patterns such as ``u*`` with commas between."""
    chosen: list[int] = []
    for part in [wanted] if wanted in names else [one.strip() for one in wanted.split(",")]:
        found = [k for k, name in enumerate(names) if name == part]
        found = found or [
            k for k, name in enumerate(names) if name.replace("/", ".") == part.replace("/", ".")
        ]
        found = found or [k for k, name in enumerate(names) if fnmatchcase(name, part)]
        found = found or [k for k, name in enumerate(names) if name.lower() == part.lower()]
        if not found:
            raise DataError(f"`{role}={part!r}` is not in {path}; it holds {held}.")
        chosen += [k for k in found if k not in chosen]
    return chosen


def numbered(names: Sequence[str]) -> list[int]:
    """Positions of names such as u1, u2, ..., in the order of their numbers."""
    found = [
        (int(match[1]), k) for k, name in enumerate(names) if (match := NUMBERED.fullmatch(name.strip()))
    ]
    return [k for _, k in sorted(found)]


def one_of_these(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """The position of the first of the known names that is there, in capitals or not, as a list of at most one."""
    lower = [name.strip().lower() for name in names]
    return next(([lower.index(one)] for one in known if one in lower), [])
