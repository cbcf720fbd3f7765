"""Families from their names and parameters: what files and pickles hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ParameterError
from ._classical import FAMILIES
from ._custom import table, tabulated
from ._family import Family

MAKERS: dict[str, Callable[..., Family]] = {**FAMILIES, "table": table, "tabulated": tabulated}


def describe(family: Family) -> dict[str, Any]:
    """A family as plain data.

    >>> from infocap.basis import jacobi
    >>> describe(jacobi(2, 3))
    {'name': 'jacobi', 'parameters': {'a': 2.0, 'b': 3.0}, 'domain': [-1.0, 1.0]}
    """
    if not family.built_in:
        raise ParameterError(
            f"the family {family.name!r} is your own and cannot be saved; make it with basis.density(...), "
            "basis.table(...) or basis.samples(...), which can."
        )
    return {"name": family.name, "parameters": dict(family.parameters), "domain": list(family.domain)}


def restore(
    name: str, parameters: dict[str, Any] | None = None, domain: Sequence[float] | None = None
) -> Family:
    """The inverse of `describe`.

    >>> restore("jacobi", {"a": 2, "b": 3}, (0, 1)).bounds
    (0.0, 1.0)
    """
    if name not in MAKERS:
        raise ParameterError(f"the family {name!r} is not one that infocap {sorted(MAKERS)} can make.")
    try:
        family = MAKERS[name](**(parameters or {}))
    except TypeError as problem:
        raise ParameterError(
            f"the family {name!r} needs other parameters than {parameters}: {problem}."
        ) from None
    return family if domain is None else family.on(tuple(domain))  # type: ignore[arg-type]
