"""Families by name: how users, files, pickles and other packages refer to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from .._plugins import find_by_name
from .._validation import shown
from ..errors import ParameterError

if TYPE_CHECKING:
    from ._family import Family

P = ParamSpec("P")
Maker = Callable[..., "Family"]

# The functions that make infocap's own families. Files and pickles store these names, with the
# parameters.
BUILT_IN: dict[str, Maker] = {}
# The names that a user may write, ``product_basis("legendre", ...)``. A family that is put in here,
# or that another package offers as an entry point of the group `infocap.families`, can be saved
# like infocap's own.
FAMILIES: dict[str, Maker] = {}
# Distributions by their own names, for those who do not know which functions belong to them.
DISTRIBUTIONS = {
    "uniform": "legendre",
    "normal": "hermite",
    "exponential": "laguerre",
    "arcsine": "chebyshev",
}


def built_in(maker: Callable[P, Family]) -> Callable[P, Family]:
    """Register the function that makes one of infocap's own families, so that files can name it."""

    @wraps(maker)
    def registered(*args: P.args, **options: P.kwargs) -> Family:
        return _mark_restorable(maker(*args, **options))

    BUILT_IN[maker.__name__] = registered
    return registered


def find_maker(name: str) -> Maker:
    """Return the function that makes the families of a name.

    It is infocap's own, one that the user has put into FAMILIES, or that of another package.
    """
    by_distribution = {
        distribution: FAMILIES[family] for distribution, family in DISTRIBUTIONS.items()
    }
    if isinstance(name, str):  # a damaged file may hold anything
        for table in (FAMILIES, BUILT_IN, by_distribution):
            if name in table:
                return table[name]
    maker: Maker = find_by_name("family", name, FAMILIES | by_distribution, "infocap.families")
    FAMILIES[name] = maker  # packages are asked once, although a basis looks up a name per input
    return maker


def describe(family: Family) -> dict[str, Any]:
    """Return a family as plain data: its name, parameters and domain, and what its input is called.

    >>> from infocap.basis import jacobi
    >>> describe(jacobi(2, 3))
    {'name': 'jacobi', 'parameters': {'a': 2.0, 'b': 3.0}, 'domain': [-1.0, 1.0]}
    """
    if not family.restorable:
        raise ParameterError(
            f"the family {family.name!r} is your own and cannot be saved; put the function that "
            "makes it into basis.FAMILIES under this name, with the function's arguments in the "
            "family's `parameters`, and pass the name, or use basis.density(...), basis.table(...) "
            "or basis.samples(...)."
        )
    description = {
        "name": family.name,
        "parameters": dict(family.parameters),
        "domain": list(family.domain),
    }
    if family.variable:
        description["variable"] = family.variable
    return description


def make(name: str, arguments: Sequence[float]) -> Family:
    """Return the family that a name with arguments stands for, such as ``jacobi(1, 1)``.

    It can be saved if its parameters say all of its arguments.

    >>> make("jacobi", [2, 3]).parameters
    (('a', 2.0), ('b', 3.0))
    """
    family = find_maker(name)(*arguments)
    if family.name != name or family.restorable:
        return family
    try:
        restored = restore(name, dict(family.parameters))
    except ValueError:  # the parameters are not those of the function
        return family
    probabilities = np.linspace(0.01, 0.99, 99)
    has_same_distribution = np.allclose(
        restored.quantile(probabilities), family.quantile(probabilities), rtol=1e-12, atol=0
    )
    return restored if has_same_distribution else family


def restore(
    name: str, parameters: dict[str, Any] | None = None, domain: Any = None, variable: str = ""
) -> Family:
    """Return the family that `describe` has described.

    >>> restore("jacobi", {"a": 2, "b": 3}, (0, 1)).bounds
    (0.0, 1.0)
    """
    maker = find_maker(name)
    try:
        family = maker(**(parameters or {}))
    except TypeError as error:
        function = name if name in BUILT_IN else "jacobi"
        raise ParameterError(
            f"`family={shown(name)}` needs other parameters than {parameters}: {error}; pass a "
            f"family such as infocap.basis.{function}(...)."
        ) from None
    if family.name == name and name not in BUILT_IN:
        _mark_restorable(family)
    if domain is not None:
        family = family.on(domain)
    if variable:
        family = family.named(variable)
    return family


def _mark_restorable(family: Family) -> Family:
    """Note that `restore` makes this family again from its name and parameters."""
    object.__setattr__(family, "restorable", True)  # families are frozen
    return family
