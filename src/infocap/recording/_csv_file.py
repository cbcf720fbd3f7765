"""Rows from text tables: those of ``infocap draw``, and anybody's with or without names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .._words import listed
from ..errors import DataError
from ..typing import Floats
from ._layout import whole_numbers
from ._names import INPUTS, TIMES, matching, numbered, one_of_these
from ._own_csv import OWN, own_rows
from ._rows import Rows
from ._sheet import Sheet, load_sheet

PLAN = "# infocap plan "


def csv_rows(path: Path, u: str | None, x: str | None, roles: str = "ux") -> Rows:
    """The columns of a table by their names; all that is nothing else are readouts."""
    sheet = load_sheet(path)
    own = _words(sheet, OWN)
    if own is not None and u is None and x is None:
        return own_rows(sheet, own)
    names = sheet.names or [str(column + 1) for column in range(sheet.values.shape[1])]
    index = one_of_these(names, ("index",)) if sheet.names else []
    times = one_of_these(names, TIMES) if sheet.names else []
    held = listed(names, 20)
    inputs = (
        numbered(names) or one_of_these(names, INPUTS) if u is None else matching(path, names, u, "u", held)
    )
    if not inputs and roles == "u":
        inputs = [k for k in range(len(names)) if k not in (*index, *times)]
    if not inputs and roles == "ux":
        raise DataError(
            f"{path} has no columns named u1, u2, ...; it holds {held}: name the inputs by u='a,b' (--u on the command "
            f"line){'' if sheet.names else '; without a header line columns are numbered from 1'}."
        )
    readouts = [k for k in range(len(names)) if k not in (*index, *times, *inputs)]
    if x is not None:
        readouts = matching(path, names, x, "x", held)
    rows = Rows(path, metadata=_plan(sheet))
    columns = sheet.values
    rows.index = whole_numbers(path, _real(path, columns[:, index[0]], "index")) if index else None
    rows.acquired = _real(path, columns[:, times[0]], names[times[0]]) if times else None
    if inputs:
        rows.u = _real(path, columns[:, inputs], "inputs")
    if "x" in roles:
        if not readouts:
            raise DataError(f"{path} has no column of readouts; it holds {held}.")
        rows.x = _lean(columns[:, readouts])
        rows.channel = tuple(names[k] for k in readouts) if sheet.names else ()
    return rows


def _plan(sheet: Sheet) -> dict[str, Any]:
    """The plan that ``infocap draw`` wrote above the inputs."""
    found = _words(sheet, PLAN) or {}
    return {name: found[name] for name in ("plan", "fingerprint") if name in found}


def _words(sheet: Sheet, start: str) -> dict[str, Any] | None:
    """The data in a comment that starts so, if there is one."""
    text = next((line[len(start) :] for line in sheet.comments if line.startswith(start)), None)
    if text is None:
        return None
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError, RecursionError) as problem:
        raise DataError(
            f"{sheet.path} starts with {start!r} and then something damaged ({problem}); without that line the "
            "table can still be read."
        ) from None


def _real(path: Path, values: np.ndarray, what: str) -> Floats:
    if values.dtype.kind == "c" and values.imag.any():
        raise DataError(f"{path} has complex numbers among its {what}; give real ones.")
    return values.real


def _lean(values: np.ndarray) -> np.ndarray:
    """Real numbers, if there are no others."""
    return values.real if values.dtype.kind == "c" and not values.imag.any() else values
