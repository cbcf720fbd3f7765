"""The numbers that the page carries, as JSON that cannot end its script element."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..result import PER_TERM, CapacityResult, attributes

DEEPEST = 60  # entries within entries; more are an accident or an attack
EXACT = 2**53  # whole numbers beyond it are text: browsers would round them


def embedded(result: CapacityResult, title: str) -> str:
    """The result as JSON; ``<``, ``>`` and ``&`` are written as escapes, so no text in it can become markup."""
    basis = result.basis
    counts = basis.indices.max(axis=0, initial=0) + 1
    data = {
        "title": title,
        "attributes": _attributes(result),
        "inputs": [
            {
                "family": family.name,
                "domain": family.domain,
                "names": ["", *(family.label(index, f"u{k + 1}") for index in range(1, count))],
            }
            for k, (family, count) in enumerate(zip(basis.families, counts.tolist(), strict=True))
        ],
        "functions": {
            "degree": basis.degrees,
            "variables": basis.interactions,
            "index": basis.indices.T,
            **{name: getattr(result, name) for name in PER_TERM if getattr(result, name) is not None},
        },
        "metadata": result.metadata,
    }
    text = json.dumps(_plain(data), separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _attributes(result: CapacityResult) -> dict[str, Any]:
    """What files hold about a result; a user's own family cannot be saved, but its numbers can be shown."""
    try:
        return attributes(result)
    except ParameterError:
        return {
            "method": result.method,
            "total": result.total,
            "total_standard_error": result.total_standard_error,
            "n_samples": result.n_samples,
            "n_readouts": result.maximum,
            "rank": result.rank,
            "checks": json.dumps(result.checks),
        }


def _plain(value: Any, depth: int = 0) -> Any:
    """Only what JSON knows: numbers that are none become null, objects become their text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict | list | tuple) and depth > DEEPEST:
        return "nested too deeply"
    if isinstance(value, dict):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= EXACT else str(value)
    return value if value is None or isinstance(value, bool | str) else str(value)
