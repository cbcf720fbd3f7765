"""Checks of plain arguments, in one wording: what was wrong, the value found, what to give instead.

Names of parameters stand in backticks, here and in every message, for the command line to name its options instead.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import partial, wraps
from numbers import Integral, Real
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

import numpy as np

from .errors import ParameterError


def one_of(name: str, value: Any, options: Iterable[Any]) -> None:
    """Refuse a name that is not on the list."""
    options = list(options)
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in options
    ):
        raise ParameterError(f"`{name}={value!r}` is not one of {', '.join(map(repr, options))}.")


def made_by(name: str, value: Any, kind: type, maker: str) -> None:
    """Refuse an object of another class than that which `maker` makes."""
    if not isinstance(value, kind):
        raise ParameterError(f"`{name}={value!r:.60}` must come from {maker}.")


def whole_number(name: str, value: Any, least: int) -> int:
    """Return a whole number; refuse anything else, and less than `least`."""
    whole = isinstance(value, Integral) or (
        isinstance(value, float | np.floating) and value.is_integer()
    )
    if not whole or value < least:
        raise ParameterError(f"`{name}={value!r}` must be a whole number, {least} or more.")
    return int(value)


def number(name: str, value: Any, least: float = -np.inf) -> float:
    """Return a finite number; refuse anything else, and less than `least`."""
    if not _finite(value) or value < least:
        bound = "" if np.isinf(least) else f", {least:g} or more"
        raise ParameterError(f"`{name}={value!r}` must be a finite number{bound}.")
    return float(value)


def positive(name: str, value: Any) -> float:
    """Return a finite number above zero; refuse anything else."""
    if not _finite(value) or value <= 0:
        raise ParameterError(f"`{name}={value!r}` must be a positive number.")
    return float(value)


def probability(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; refuse anything else."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ParameterError(f"`{name}={value!r}` must lie strictly between 0 and 1.")
    return float(value)


def yes_or_no(name: str, value: Any) -> bool:
    """Return True or False; refuse what merely looks like one of them."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"`{name}={value!r}` must be True or False.")
    return bool(value)


def _finite(value: Any) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


# Types of fields that say how they are checked; signatures show these names.
Finite = Annotated[float, number]
Positive = Annotated[float, positive]
NotNegative = Annotated[float, partial(number, least=0.0)]
Count = Annotated[int, partial(whole_number, least=1)]


class Checked:
    """A dataclass whose fields are checked when it is made, where their types say how: ``length_m: NotNegative``."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            for check in getattr(kind, "__metadata__", ()):
                check(name, getattr(self, name))


Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def answers_unknown_parameters(
    function: Callable[Parameters, Answer],
) -> Callable[Parameters, Answer]:
    """Decorate a public function, or `__init__`, so that an unknown keyword is answered with the nearest name.

    >>> @answers_unknown_parameters
    ... def area(width, height=1.0):
    ...     return width * height
    >>> area(2.0, hight=3.0)
    Traceback (most recent call last):
    infocap.errors.ParameterError: `hight` is not a parameter of area; did you mean `height`?
    """
    signature = inspect.signature(function)
    names = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name != "self"
    ]
    known = frozenset(names)
    public_name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def answering(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Answer:
        if not keywords.keys() <= known:
            unknown = next(name for name in keywords if name not in known)
            raise ParameterError(
                f"`{unknown}` is not a parameter of {public_name}; {_nearest(unknown, names)}"
            )
        return function(*arguments, **keywords)

    return answering


def _nearest(unknown: str, names: list[str]) -> str:
    """The question or the list that a message about an unknown name ends with."""
    beginning = [name for name in names if name.startswith(f"{unknown}_")]
    alike = beginning or difflib.get_close_matches(unknown, names, n=1)
    if alike:
        return f"did you mean `{alike[0]}`?"
    return f"it takes {', '.join(f'`{name}`' for name in names)}."
