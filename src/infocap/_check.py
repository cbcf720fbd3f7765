"""Checks of plain arguments, in one wording: what was wrong, the value found, what to give instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsInt

import numpy as np

from .errors import ParameterError


def one_of(name: str, value: Any, options: Iterable[str]) -> None:
    """Refuse a name that is not on the list."""
    options = list(options)
    if value not in options:
        raise ParameterError(f"{name}={value!r} is not one of {', '.join(map(repr, options))}.")


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number, at least `least`."""
    if (
        not isinstance(value, SupportsInt)
        or isinstance(value, str)
        or value != int(value)
        or int(value) < least
    ):
        raise ParameterError(f"{name}={value!r} must be a whole number, {least} or more.")
    return int(value)


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if not (np.isfinite(value) and value > 0):
        raise ParameterError(f"{name}={value!r} must be a positive number.")
    return float(value)


def probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ParameterError(f"{name}={value!r} must lie strictly between 0 and 1.")
    return float(value)
