"""The grid of a sweep: the values of each parameter, and the points that they make."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np

from ..errors import ParameterError

# Fields of a result that become columns of a sweep's table: one number per function, or one per
# point.
COLUMNS_PER_FUNCTION = ("capacity", "raw", "standard_error")
COLUMNS_PER_POINT = ("total", "total_standard_error", "unreliable")
# Names that no parameter can have, because the table needs them.
RESERVED_NAMES = {
    "by_degree",
    "term",
    "term_degree",
    "degree",
    "label",
    *COLUMNS_PER_POINT,
    *COLUMNS_PER_FUNCTION,
}


def grid_of(settings: Mapping[str, Iterable[Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the values of each parameter as tuples; refuse none, and one that occurs twice.

    >>> grid_of({"gain": [1, 2]})
    {'gain': (1, 2)}
    """
    if not isinstance(settings, Mapping) or not settings:
        raise ParameterError(
            f"`settings={settings!r}` must name parameters and values: {{'gain': [1, 2]}}."
        )
    grid = {}
    for name, values in settings.items():
        if name in RESERVED_NAMES:
            raise ParameterError(
                f"settings has {name!r}, the name of a column of the answer; rename it."
            )
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise ParameterError(f"settings has {name}={values!r}; give a list of values.")
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        occurs_twice = any(value in plain[:place] for place, value in enumerate(plain))
        if not plain or occurs_twice:
            raise ParameterError(
                f"settings has {name}={list(plain)}; give at least one value, none twice."
            )
        grid[str(name)] = plain
    return grid


def points_of(grid: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all points of the grid; the last parameter varies fastest.

    >>> points_of({"gain": (1, 2), "bias": (0,)})
    [{'gain': 1, 'bias': 0}, {'gain': 2, 'bias': 0}]
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def point_in_words(point: Mapping[str, Any], separator: str = ", ") -> str:
    """Return the values at a point as text: ``gain=1, bias=0``."""
    return separator.join(f"{name}={value}" for name, value in point.items())
