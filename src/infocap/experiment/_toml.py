"""Plain data written as TOML, which Python reads by itself but does not write."""

from __future__ import annotations

import json
import math
from typing import Any

from ..errors import ParameterError


def toml_line(key: str, value: Any, comment: str = "") -> str:
    """One entry; nested tables are written inline."""
    name = key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _text(key)
    return f"{name} = {toml_value(value)}" + (f"  # {comment}" if comment else "")


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # inf and nan are the same words
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(toml_line(str(key), one) for key, one in value.items())} }}"
    raise ParameterError(
        f"{value!r} of type {type(value).__name__} cannot be kept in a plan; give numbers, text, lists or tables."
    )


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
