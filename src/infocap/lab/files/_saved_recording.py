"""Recordings that `Recording.save` wrote, read back."""

import json
from typing import Any

from ..._files import ArrayFile, as_data_error
from ...errors import Check, DataError
from ...recording import (
    ARRAY_DIMENSIONS,
    NAMED_COLUMNS,
    RECORDING_FORMAT,
    UNIT_FIELDS,
    Recording,
    integer_index,
)

REQUIRED_ARRAYS = ("inputs", "readouts", "design_index")


def load_saved_recording(file: ArrayFile, in_memory: bool) -> Recording | None:
    """Restore what `Recording.save` wrote; return None for other people's files."""
    path = file.path
    file_format = str(file.attributes.get("format", ""))
    if not file_format.startswith("infocap "):
        return None
    if file_format != RECORDING_FORMAT:
        raise DataError(
            f"{path} is not an {RECORDING_FORMAT!r} file but {file_format!r}; it holds {file}."
        )
    lost = [name for name in REQUIRED_ARRAYS if name not in file]
    if lost:
        raise DataError(
            f"{path} is damaged or cut short: it has no {', '.join(lost)}, and holds {file}."
        )

    fields: dict[str, Any] = {}
    for name in ARRAY_DIMENSIONS:
        if name in file:
            stays_in_file = name in UNIT_FIELDS and not in_memory  # inputs and readouts
            fields[name] = file.rows(name) if stays_in_file else file.numbers(name)
    fields["design_index"] = integer_index(path, fields["design_index"])
    for name, unit in UNIT_FIELDS.items():
        fields[unit] = file.arrays[name].unit
    for columns in NAMED_COLUMNS:
        has_names = columns.dimension in file
        fields[columns.field] = tuple(file.text(columns.dimension)) if has_names else ()
    fields["metadata"] = _plain_data(file, "metadata", {})
    with as_data_error(path, RECORDING_FORMAT):
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
