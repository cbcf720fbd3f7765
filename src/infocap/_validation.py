"""Checks of plain arguments, in one wording: the value that was given, and what to give instead.

Here and in every message of infocap the name of a parameter stands in backticks, with its value or
without. The command line then writes it as an option: `max_degree=-1` becomes --max-degree -1.
"""

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial, wraps
from numbers import Integral, Real
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

import numpy as np

from ._formatting import join_names
from .errors import ParameterError

# How alike two names must be, from 0 to 1 as difflib measures it, for one to be taken for a
# mistyped form of the other.
MIN_SIMILARITY = 0.6
# Longer lists of names are cut short in messages, such as the labels of a thousand functions.
MAX_NAMES_IN_MESSAGE = 20


def require_one_of(name: str, value: Any, options: Iterable[Any]) -> None:
    """Refuse a value that is not on the list, and name the one that was probably meant.

    >>> require_one_of("fit", "nono", ["auto", "none"])
    Traceback (most recent call last):
    infocap.errors.ParameterError: `fit='nono'` is not one of 'auto', 'none'; did you mean 'none'?
    """
    options = list(options)
    for option in options:
        # Only texts are compared by value: an array would be compared number by number.
        if value is option or (isinstance(value, str) and value == option):
            return
    names = join_names([repr(option) for option in options], MAX_NAMES_IN_MESSAGE)
    raise ParameterError(f"`{name}={value!r}` is not one of {names}{did_you_mean(value, options)}")


def did_you_mean(name: Any, known_names: Iterable[Any]) -> str:
    """Return the end of a sentence about an unknown name: the nearest name, or a full stop.

    >>> did_you_mean("estmate", ["estimate", "explore"])
    "; did you mean 'estimate'?"
    >>> did_you_mean("banana", ["estimate", "explore"])
    '.'
    """
    nearest = nearest_name(str(name), known_names)
    return "." if nearest is None else f"; did you mean {nearest!r}?"


def nearest_name(name: str, known_names: Iterable[Any]) -> str | None:
    """Return the known name that is most like a name, or None where none is like it.

    Capitals do not count, and a name may be the first word of a known one.

    >>> nearest_name("Legendre", ["legendre", "hermite"])
    'legendre'
    >>> nearest_name("nan", ["nan_policy", "name"])
    'nan_policy'
    """
    name = name.lower()
    as_written = {}  # each known name by its form in small letters
    for known_name in known_names:
        if isinstance(known_name, str):
            as_written[known_name.lower()] = known_name
    first_words = (f"{name}_", f"{name}-")
    matches = [small for small in as_written if small.startswith(first_words)]
    matches += get_close_matches(name, as_written, n=1, cutoff=MIN_SIMILARITY)
    return as_written[matches[0]] if matches else None


def require_type(name: str, value: Any, kind: type, maker: str) -> None:
    """Refuse an object that is not of the class `kind`, which the function named `maker` makes."""
    if not isinstance(value, kind):
        raise ParameterError(f"`{name}={value!r:.60}` must come from {maker}.")


def require_whole_number(name: str, value: Any, minimum: int) -> int:
    """Return a whole number; refuse anything else, and numbers below `minimum`."""
    is_whole_float = isinstance(value, float | np.floating) and value.is_integer()
    if not (isinstance(value, Integral) or is_whole_float) or value < minimum:
        raise ParameterError(f"`{name}={value!r}` must be a whole number, {minimum} or more.")
    return int(value)


def require_number(name: str, value: Any, minimum: float = -np.inf) -> float:
    """Return a finite number; refuse anything else, and numbers below `minimum`."""
    if not _finite(value) or value < minimum:
        bound = "" if np.isinf(minimum) else f", {minimum:g} or more"
        raise ParameterError(f"`{name}={value!r}` must be a finite number{bound}.")
    return float(value)


def require_positive(name: str, value: Any) -> float:
    """Return a finite number above zero; refuse anything else."""
    if not _finite(value) or value <= 0:
        raise ParameterError(f"`{name}={value!r}` must be a positive number.")
    return float(value)


def require_probability(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; refuse anything else."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ParameterError(f"`{name}={value!r}` must lie strictly between 0 and 1.")
    return float(value)


def require_boolean(name: str, value: Any) -> bool:
    """Return True or False; refuse everything else, also 0, 1 and texts."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"`{name}={value!r}` must be True or False.")
    return bool(value)


def _finite(value: Any) -> bool:
    """Return whether a value is a real number, neither NaN nor infinite."""
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


# Types for the fields of a `Checked` dataclass, which say how a value is checked. Signatures show
# their names.
Finite = Annotated[float, require_number]
Positive = Annotated[float, require_positive]
NotNegative = Annotated[float, partial(require_number, minimum=0.0)]
Count = Annotated[int, partial(require_whole_number, minimum=1)]


class Checked:
    """A base of dataclasses that checks each field whose type says how.

    An example is ``length_m: NotNegative``.
    """

    def __post_init__(self) -> None:
        for name, field_type in get_type_hints(type(self), include_extras=True).items():
            for check in getattr(field_type, "__metadata__", ()):
                check(name, getattr(self, name))


Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def answers_unknown_parameters(
    function: Callable[Parameters, Answer],
) -> Callable[Parameters, Answer]:
    """Decorate a public function so that an unknown keyword is answered with the nearest name.

    It also works for `__init__`.

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
    public_name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def answering(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Answer:
        for keyword in keywords:
            if keyword not in names:
                raise ParameterError(
                    f"`{keyword}` is not a parameter of {public_name}; {_nearest(keyword, names)}"
                )
        return function(*arguments, **keywords)

    return answering


def _nearest(unknown: str, names: list[str]) -> str:
    """Return the question, or the list of names, that a message about an unknown one ends with."""
    nearest = nearest_name(unknown, names)
    if nearest is not None:
        return f"did you mean `{nearest}`?"
    return f"it takes {', '.join(f'`{name}`' for name in names)}."
