"""Checks of arguments, in one wording: the value that was given, and what to give instead.

Here and in every message of infocap the name of a parameter stands in backticks, with its value or
without. The command line then writes it as an option: `max_degree=-1` becomes --max-degree -1.

`checks_arguments` decorates what is public: it reads the kinds of the arguments from the signature.
The functions named `require_...` check what a signature does not say, such as the lowest number.
"""

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, partial, wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

import numpy as np

from ._formatting import join_names, one_line
from ._kinds import ANYTHING, SEED, Kind, is_number, is_path, is_whole_number, kind_of
from .errors import DataError, ParameterError

# How alike two names must be, from 0 to 1 as difflib measures it, for one to be taken for a
# mistyped form of the other.
MIN_SIMILARITY = 0.6
# Longer lists of names are cut short in messages, such as the labels of a thousand functions.
MAX_NAMES_IN_MESSAGE = 20
# Characters of a value that a message repeats: enough to find it, and still one line.
MAX_SHOWN_CHARACTERS = 80


def shown(value: Any) -> str:
    """Return a value as a message repeats it: in one line, arrays by their shape.

    >>> shown("nono"), shown(np.zeros((3, 2)))
    ("'nono'", 'an array of shape (3, 2)')
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    try:
        text = one_line(repr(value))
    except Exception:  # the value's own __repr__ fails, as that of a number of 5000 digits
        text = f"<{type(value).__name__}>"
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    half = MAX_SHOWN_CHARACTERS // 2
    return f"{text[:half]}...{text[-half:]}"


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
    raise ParameterError(
        f"`{name}={shown(value)}` is not one of {names}{did_you_mean(value, options)}"
    )


def did_you_mean(name: Any, known_names: Iterable[Any]) -> str:
    """Return the end of a sentence about an unknown name: the nearest name, or a full stop.

    >>> did_you_mean("estmate", ["estimate", "explore"])
    "; did you mean 'estimate'?"
    >>> did_you_mean("banana", ["estimate", "explore"])
    '.'
    """
    nearest = nearest_name(str(name), known_names) if isinstance(name, str) else None
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
        raise ParameterError(f"`{name}={shown(value)}` must come from {maker}.")


def require_whole_number(name: str, value: Any, minimum: int) -> int:
    """Return a whole number; refuse anything else, and numbers below `minimum`."""
    if not is_whole_number(value) or value < minimum:
        raise ParameterError(f"`{name}={shown(value)}` must be a whole number, {minimum} or more.")
    return int(value)


def require_number(name: str, value: Any, minimum: float = -np.inf) -> float:
    """Return a finite number; refuse anything else, and numbers below `minimum`."""
    if not is_number(value) or value < minimum:
        bound = "" if np.isinf(minimum) else f", {minimum:g} or more"
        raise ParameterError(f"`{name}={shown(value)}` must be a finite number{bound}.")
    return float(value)


def require_positive(name: str, value: Any) -> float:
    """Return a finite number above zero; refuse anything else."""
    if not is_number(value) or value <= 0:
        raise ParameterError(f"`{name}={shown(value)}` must be a positive number.")
    return float(value)


def require_probability(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; refuse anything else."""
    if not is_number(value) or not 0 < float(value) < 1:
        raise ParameterError(f"`{name}={shown(value)}` must lie strictly between 0 and 1.")
    return float(value)


def require_boolean(name: str, value: Any) -> bool:
    """Return True or False; refuse everything else, also 0, 1 and texts."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"`{name}={shown(value)}` must be True or False.")
    return bool(value)


def require_function_of(name: str, value: Any, argument: str, **keywords: Any) -> None:
    """Refuse what cannot be called with one argument, which the message calls `argument`.

    `keywords` are passed besides.

    A function whose parameters Python does not know is left to fail by itself.
    """
    if not callable(value):
        raise ParameterError(f"`{name}={shown(value)}` must be a function of {argument}.")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, **keywords)
    except TypeError as problem:
        raise ParameterError(
            f"`{name}={shown(value)}` must be a function of {argument} ({problem})."
        ) from None


def require_path(name: str, value: Any) -> Path:
    """Return the path of a file or folder; refuse anything that cannot be one."""
    if not is_path(value):
        raise ParameterError(f"`{name}={shown(value)}` must be the path of a file.")
    return Path(value)


def require_numbers(name: str, value: Any, dimensions: str = "", finite: bool = True) -> Any:
    """Return an array of floats; refuse all else, and other shapes than those of `dimensions`.

    `dimensions` names them as in ``"samples, channels"``. Arrays of other libraries become NumPy's.
    """
    values = _as_floats(name, value)
    n_dimensions = len(dimensions.split(","))
    if dimensions and values.ndim != n_dimensions:
        raise DataError(f"`{name}` has shape {values.shape}; it must be ({dimensions}).")
    if finite and not np.isfinite(values).all():
        raise DataError(f"`{name}` has NaN or infinite values; leave them out.")
    return values


def require_limits(name: str, value: Any) -> tuple[float, float]:
    """Return (low, high), of which either may be infinite; refuse all else."""
    limits = require_numbers(name, value, "low and high", finite=False)
    if len(limits) != 2 or not limits[0] < limits[1]:
        raise ParameterError(f"`{name}={shown(value)}` must be (low, high) with low below high.")
    return float(limits[0]), float(limits[1])


def require_whole_numbers(
    name: str, value: Any, dimensions: str, minimum: int, maximum: int
) -> Any:
    """Return an array of whole numbers between two limits; refuse all else."""
    values = require_numbers(name, value, dimensions)
    if not np.all((values >= minimum) & (values <= maximum) & (values == np.floor(values))):
        raise ParameterError(
            f"`{name}={shown(value)}` must be whole numbers from {minimum} to {maximum}."
        )
    return values.astype(int)


def _as_floats(name: str, value: Any) -> Any:
    """Return anything that holds real numbers as an array of floats."""
    try:
        if hasattr(value, "detach") and hasattr(value, "shape"):
            value = value.detach()  # a tensor of a model that could still be trained
        values = np.asarray(value)
        if values.dtype.kind in "biuf":
            return values.astype(float)
    except Exception as problem:  # every library has errors of its own
        raise DataError(f"`{name}={shown(value)}` is no array of numbers ({problem}).") from None
    raise DataError(f"`{name}={shown(value)}` holds {values.dtype}; give real numbers.")


# Types for the fields of a `Checked` dataclass, which say how a value is checked. Signatures show
# their names.
Finite = Annotated[float, require_number]
Positive = Annotated[float, require_positive]
NotNegative = Annotated[float, partial(require_number, minimum=0.0)]
Count = Annotated[int, partial(require_whole_number, minimum=1)]


class Checked:
    """A base of dataclasses whose fields are checked by their types.

    A type also says which values fit, where it is one such as ``length_m: NotNegative``.
    """

    def __post_init__(self) -> None:
        check_fields(self)
        for name, field_type in get_type_hints(type(self), include_extras=True).items():
            for check in getattr(field_type, "__metadata__", ()):
                check(name, getattr(self, name))


Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def checks_arguments(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Decorate a public function or method so that its arguments are checked by its signature.

    What is not of the kind that the signature says is refused before any work, and an unknown
    keyword is answered with the nearest name. A parameter without a type, or of a type that is not
    known when the module is imported, is checked by the function itself.

    >>> @checks_arguments
    ... def area(width: float, height: float = 1.0) -> float:
    ...     return width * height
    >>> area("wide")
    Traceback (most recent call last):
    infocap.errors.ParameterError: `width='wide'` must be a finite number.
    >>> area(2.0, hight=3.0)
    Traceback (most recent call last):
    infocap.errors.ParameterError: `hight` is not a parameter of area; did you mean `height`?
    """
    parameters = inspect.signature(function).parameters.values()
    in_place = [entry for entry in parameters if entry.kind == entry.POSITIONAL_OR_KEYWORD]
    by_keyword = [entry for entry in parameters if entry.kind == entry.KEYWORD_ONLY]
    names_in_place = [entry.name for entry in in_place]
    names = [entry.name for entry in (*in_place, *by_keyword) if entry.name not in ("self", "cls")]
    further = next((entry.name for entry in parameters if entry.kind == entry.VAR_POSITIONAL), "")
    takes_any_keyword = any(entry.kind == entry.VAR_KEYWORD for entry in parameters)
    defaults = {entry.name: entry.default for entry in parameters}
    public_name = function.__qualname__.removesuffix(".__init__")

    @cache  # types are looked up at the first call: a class may be defined after its methods
    def kinds() -> dict[str, Kind]:
        return _kinds_of_parameters(function)

    @wraps(function)
    def checking(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Answer:
        kind_by_name = kinds()
        for name, value in zip(names_in_place, arguments, strict=False):
            if name in kind_by_name and value is not defaults[name]:
                _require_kind(name, value, kind_by_name[name])
        if further in kind_by_name:
            for value in arguments[len(names_in_place) :]:
                _require_kind(further, value, kind_by_name[further])
        for name, value in keywords.items():
            if name not in names:
                if takes_any_keyword:
                    continue
                raise ParameterError(
                    f"`{name}` is not a parameter of {public_name}; {_nearest(name, names)}"
                )
            if name in kind_by_name and value is not defaults[name]:
                _require_kind(name, value, kind_by_name[name])
        return function(*arguments, **keywords)

    return checking


def _kinds_of_parameters(function: Callable[..., Any]) -> dict[str, Kind]:
    """Return the kind of each parameter whose type is known."""
    kinds = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation is parameter.empty or parameter.kind == parameter.VAR_KEYWORD:
            continue
        kind = _kind_of_annotation(parameter.annotation, function.__globals__)
        if parameter.name == "seed" and kind.fits(0):
            kind = SEED
        if kind is not ANYTHING:
            kinds[parameter.name] = kind
    return kinds


@cache
def _kinds_of_fields(checked_class: type) -> dict[str, Kind]:
    """Return the kind of each field of a dataclass whose type is known."""
    kinds = {}
    for entry in fields(checked_class):
        owner = next(base for base in checked_class.__mro__ if entry.name in base.__annotations__)
        kind = _kind_of_annotation(entry.type, vars(sys.modules[owner.__module__]))
        if entry.name == "seed" and kind.fits(0):
            kind = SEED
        kinds[entry.name] = kind
    return kinds


def _kind_of_annotation(annotation: Any, names: dict[str, Any]) -> Kind:
    """Return the kind of a type, which may be written as a text."""
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, names)
        except NameError:  # a name that is imported for type checkers only
            return ANYTHING
    return kind_of(annotation)


def check_fields(instance: Any) -> None:
    """Refuse values of a dataclass that are not of the kinds of its fields."""
    checked_class: Any = type(instance)
    for name, kind in _kinds_of_fields(checked_class).items():
        value = getattr(instance, name)
        if value is not getattr(checked_class, name, kind):  # a default need not fit
            _require_kind(name, value, kind)


def _require_kind(name: str, value: Any, kind: Kind) -> None:
    """Refuse a value that is not of a kind."""
    if not kind.fits(value):
        raise ParameterError(f"`{name}={shown(value)}` must be {kind.words}.")


def _nearest(unknown: str, names: list[str]) -> str:
    """Return the question, or the list of names, that a message about an unknown one ends with."""
    nearest = nearest_name(unknown, names)
    if nearest is not None:
        return f"did you mean `{nearest}`?"
    return f"it takes {', '.join(f'`{name}`' for name in names)}."
