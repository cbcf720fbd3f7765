"""What a file holds: arrays by name, described before they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._words import listed
from ..errors import DataError
from ._before import blame, refuse_too_large

NUMBERS = "biufc"
TEXT_BYTES = 64  # of a string in memory, at least


@dataclass(frozen=True)
class Variable:
    """An array that has not been read: its shape, its type, and how to get it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    load: Callable[[], Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    n_chunks: int = 1


@dataclass(frozen=True)
class Contents:
    """Arrays and attributes of an open file of some kind."""

    path: Path
    kind: str
    variables: dict[str, Variable]
    attributes: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def __str__(self) -> str:
        """The names and shapes, for messages."""
        held = [f"{name} {one.shape}" for name, one in self.variables.items()]
        return listed(held, 20) or "no arrays"

    def numbers(self, name: str) -> np.ndarray:
        """An array of numbers, read now."""
        variable = self._variable(name)
        if variable.dtype.kind not in NUMBERS:
            raise DataError(
                f"{name} in {self.path} holds {variable.dtype} values; give an array of plain numbers."
            )
        refuse_too_large(self.path, name, variable.shape, variable.dtype.itemsize, variable.n_chunks)
        with blame(self.path, self.kind):
            values = np.asarray(variable.load())
        return plain_numbers(values)

    def text(self, name: str) -> list[str]:
        """Strings, read now; a single one is a list of one."""
        variable = self._variable(name)
        refuse_too_large(self.path, name, variable.shape, max(variable.dtype.itemsize, TEXT_BYTES))
        with blame(self.path, self.kind):
            found = np.ravel(np.asarray(variable.load())).tolist()
            return [one.decode() if isinstance(one, bytes) else str(one) for one in found]

    def _variable(self, name: str) -> Variable:
        if name not in self.variables:
            raise DataError(f"{self.path} has no variable {name!r}; it holds {self}.")
        return self.variables[name]


def plain_numbers(values: np.ndarray) -> np.ndarray:
    """In native byte order, and as a type every format has: no Booleans, half or extended precision."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "b":
        return values.astype(np.uint8)
    if kind == "f":
        size = min(max(size, 4), 8)
    if kind == "c":
        size = min(size, 16)
    return values.astype(np.dtype(f"{kind}{size}"), copy=False)
