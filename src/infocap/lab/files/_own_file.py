"""Recordings that `Recording.save` wrote, read back."""

import json
from typing import Any

from ..._files import ArrayFile, blame
from ...errors import Check, DataError
from ...recording import DIMENSIONS, FORMAT, NAMES, UNITS, Recording, whole_numbers

REQUIRED_ARRAYS = ("inputs", "readouts", "design_index")


def load_own(file: ArrayFile, in_memory: bool) -> Recording | None:
    """Restore what `Recording.save` wrote; return None for other people's files."""
    path = file.path
    file_format = str(file.attributes.get("format", ""))
    if not file_format.startswith("infocap "):
        return None
    if file_format != FORMAT:
        raise DataError(f"{path} is not an {FORMAT!r} file but {file_format!r}; it holds {file}.")
    lost = [name for name in REQUIRED_ARRAYS if name not in file]
    if lost:
        raise DataError(
            f"{path} is damaged or cut short: it has no {', '.join(lost)}, and holds {file}."
        )

    fields: dict[str, Any] = {}
    for name in DIMENSIONS:
        if name in file:
            stays_in_file = name in UNITS and not in_memory  # inputs and readouts
            fields[name] = file.rows(name) if stays_in_file else file.numbers(name)
    fields["design_index"] = whole_numbers(path, fields["design_index"])
    for name, unit in UNITS.items():
        fields[unit] = file.arrays[name].unit
    for name, axis, _ in NAMES:
        fields[name] = tuple(file.text(axis)) if axis in file else ()
    fields["metadata"] = _plain_data(file, "metadata", {})
    with blame(path, FORMAT):
        checks = [_as_check(saved) for saved in _plain_data(file, "checks", [])]
        return Recording(**fields, checks=tuple(checks))


def _as_check(saved: Any) -> Check:
    """Restore a check; a plain sentence, as users may give a recording, is a warning."""
    return Check.from_dict(saved) if isinstance(saved, dict) else Check(str(saved))


def _plain_data(file: ArrayFile, name: str, empty: Any) -> Any:
    """Restore data kept as JSON; data of another kind than `empty` are an error."""
    if name not in file:
        return empty
    text = "".join(file.text(name))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        value = problem
    if not isinstance(value, type(empty)):
        raise DataError(
            f"{name} in {file.path} is {value!r:.60}; it is damaged: "
            "read the arrays by u=..., x=...."
        )
    return value
