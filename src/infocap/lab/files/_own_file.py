"""Recordings that `Recording.save` wrote, read back."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..._files import Contents
from ...errors import Check, DataError
from ...recording._assemble import whole_numbers
from ...recording._recording import DIMENSIONS, NAMES, Recording
from ...recording._save import FORMAT, UNITS
from ._array_files import numbers_of

MATLAB_NAMES = {"inputs": "u", "readouts": "x"}  # in the .mat files that older versions wrote


def load_own(contents: Contents, in_memory: bool) -> Recording | None:
    """Restore what `Recording.save` wrote, now or in an older version; None for files of others."""
    path, matlab = contents.path, contents.kind == "MATLAB"
    words: Any = dict(contents.attributes)
    if matlab and "metadata" in contents:
        with suppress(DataError, ValueError, RecursionError):  # somebody else's
            words = json.loads("".join(contents.text("metadata")))
    found = str(words.get("format", "")) if isinstance(words, dict) else ""
    if found != FORMAT:
        if found.startswith("infocap "):
            raise DataError(f"{path} is not an {FORMAT!r} file but {found!r}; it holds {contents}.")
        return None
    if not matlab:
        words |= {
            name: "".join(contents.text(name))
            for name in ("metadata", "checks")
            if name in contents
        }
        words |= {axis: json.dumps(contents.text(axis)) for _, axis, _ in NAMES if axis in contents}
    arrays: dict[str, Any] = {}
    for name, dimensions in DIMENSIONS.items():
        here = MATLAB_NAMES.get(name, name) if matlab else name
        if here in contents:
            arrays[name] = numbers_of(contents, here, in_memory or name not in UNITS)
            if matlab and len(dimensions) == 1:
                arrays[name] = arrays[name].ravel()  # MATLAB has nothing below two dimensions
            if name in UNITS and "units" in contents.variables[here].attributes:
                words[UNITS[name]] = contents.variables[here].attributes["units"]
    lost = [name for name in ("inputs", "readouts", "design_index") if name not in arrays]
    told = words.get("arrays")  # of .mat files, which can end after any variable
    lost += (
        [str(name) for name in told if str(name) not in contents] if isinstance(told, list) else []
    )
    if lost:
        raise DataError(
            f"{path} is damaged or cut short: it has no {', '.join(lost)}, and holds {contents}."
        )
    arrays["design_index"], checks = (
        whole_numbers(path, arrays["design_index"]),
        from_json(path, "checks", words, []),
    )
    arrays |= {unit: str(words.get(unit, "")) for unit in UNITS.values()}
    arrays |= {name: tuple(map(str, from_json(path, axis, words, []))) for name, axis, _ in NAMES}
    return Recording(
        **arrays,
        metadata=from_json(path, "metadata", words, {}),
        # Older versions saved plain sentences.
        checks=tuple(
            Check.from_dict(one) if isinstance(one, dict) else Check(str(one)) for one in checks
        ),
    )


def from_json(path: Path, name: str, words: Mapping[str, Any], empty: Any) -> Any:
    """Restore plain data from text; what is damaged, or of another kind than `empty`, is an error."""
    if name not in words:
        return empty
    try:
        value = json.loads(words[name])
    except (TypeError, ValueError, RecursionError) as problem:
        value = problem
    if not isinstance(value, type(empty)):
        raise DataError(
            f"{name} in {path} is {value!r:.60}; it is damaged: read the arrays by u=..., x=...."
        )
    return value
