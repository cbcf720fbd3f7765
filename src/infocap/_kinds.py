"""Kinds of arguments, read from the types in a signature.

`kind_of` turns a type such as ``int | None`` into a `Kind`: which values fit, and in which words a
message asks for one. `checks_arguments` of `_validation` uses them at the door of every public
function.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

# How users get an object of a class.
MAKERS = {
    "CapacityAccuracy": "infocap.tasks.capacity_accuracy(...)",
    "CapacityResult": "estimate(...), probe(...) or load_result(path)",
    "Convergence": "infocap.convergence(...)",
    "DelayedBasis": "delayed_basis(...)",
    "Demand": "infocap.tasks.demand(...)",
    "Evidence": "gather_evidence(...)",
    "Family": "infocap.basis, such as legendre()",
    "Fibre": "infocap.photonics.Fibre(...)",
    "FibreSystem": "infocap.photonics.FibreSystem(...)",
    "Grid": "infocap.photonics.Grid(...)",
    "Plan": "infocap.lab.Plan(...) or Plan.load(path)",
    "ProductBasis": "product_basis(...) or delayed_basis(...)",
    "Recording": "infocap.read(path) or infocap.Recording(...)",
    "Store": "infocap.lab.Store(path)",
    "Task": "infocap.tasks, such as two_spirals(), or Task(inputs, labels)",
}
# The kinds of NumPy types that are numbers: Boolean, signed, unsigned, float, complex.
NUMBER_KINDS = "biufc"
# Bytes of the longest name of a file that systems allow.
MAX_NAME_BYTES = 255
# The largest whole number that arrays and files hold; no size is larger.
MAX_WHOLE_NUMBER = 2**63 - 1


@dataclass(frozen=True)
class Kind:
    """Which values an argument may have, and in which words a message asks for one."""

    words: str
    plural: str
    fits: Callable[[Any], bool]


def is_whole_number(value: Any) -> bool:
    """Return whether a value is a whole number of at most 63 bits; 3.0 counts, too."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float | np.floating):
        return float(value).is_integer() and abs(float(value)) <= MAX_WHOLE_NUMBER
    return isinstance(value, Integral) and -MAX_WHOLE_NUMBER <= int(value) <= MAX_WHOLE_NUMBER


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, neither NaN nor infinite, that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False


def is_seed(value: Any) -> bool:
    """Return whether a value is a seed of NumPy: whole numbers, 0 or more, of any length, or "
    "None."""
    if value is None or isinstance(value, np.random.SeedSequence):
        return True
    if isinstance(value, list | tuple):
        return all(isinstance(part, Integral) and int(part) >= 0 for part in value)
    return isinstance(value, Integral) and int(value) >= 0


def is_path(value: Any) -> bool:
    """Return whether a value can be the path of a file: text without NUL, or a path."""
    if isinstance(value, str | PathLike) and not isinstance(value, bytes):
        parts = Path(value).parts
        return len(str(value)) > 0 and all(_is_name(part) for part in parts)
    return False


def _is_name(part: str) -> bool:
    """Return whether a system can have a file of this name."""
    return "\0" not in part and len(part.encode(errors="replace")) <= MAX_NAME_BYTES


def can_be_array(value: Any) -> bool:
    """Return whether a value is an array of any library, a list, a tuple or a number."""
    if hasattr(value, "shape") and hasattr(value, "__getitem__"):
        return True
    return isinstance(value, list | tuple | range | Real)


def are_numbers(value: Any) -> bool:
    """Return whether a value is an array of numbers, or can become one."""
    if not isinstance(value, np.ndarray):
        if hasattr(value, "shape") and hasattr(value, "__getitem__"):
            return True  # an array of another library
        if not isinstance(value, Sequence | Real) or isinstance(value, str | bytes):
            return False
        try:
            value = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            return False
    return value.dtype.kind in NUMBER_KINDS


def is_sequence(value: Any) -> bool:
    """Return whether a value holds others in an order; a text and a table by name are none."""
    if isinstance(value, str | bytes | Mapping | AbstractSet) or getattr(value, "ndim", 1) != 1:
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


ANYTHING = Kind("anything", "values", lambda value: True)
NONE = Kind("None", "None", lambda value: value is None)
BOOLEAN = Kind("True or False", "True or False", lambda value: isinstance(value, bool | np.bool_))
WHOLE_NUMBER = Kind("a whole number", "whole numbers", is_whole_number)
NUMBER = Kind("a finite number", "finite numbers", is_number)
SEED = Kind("a whole number, 0 or more, or None", "seeds", is_seed)
TEXT = Kind("a text", "texts", lambda value: isinstance(value, str))
PATH = Kind("the path of a file", "paths of files", is_path)
NUMBERS = Kind("an array of numbers", "arrays of numbers", are_numbers)
ARRAY = Kind(NUMBERS.words, NUMBERS.plural, can_be_array)
FUNCTION = Kind("a function", "functions", callable)
SIMPLE_KINDS = {
    None: NONE,
    NoneType: NONE,
    bool: BOOLEAN,
    int: WHOLE_NUMBER,
    float: NUMBER,
    str: TEXT,
    Path: PATH,
}


@cache
def kind_of(annotation: Any) -> Kind:
    """Return the kind that a type in a signature stands for; `ANYTHING` for types not known here.

    >>> kind_of(int | None).words
    'a whole number or None'
    >>> kind_of(Mapping[str, float]).fits({"a": "b"})
    False
    """
    if annotation is Any or annotation is object:
        return ANYTHING
    if annotation in SIMPLE_KINDS:
        return SIMPLE_KINDS[annotation]
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        is_array = arguments[0] is Any and arguments[1] == NUMBERS.words
        return ARRAY if is_array else kind_of(arguments[0])
    if origin in (Union, UnionType):
        return _one_of_kinds(arguments)
    if origin is Literal:
        names = ", ".join(repr(choice) for choice in arguments)
        return Kind(f"one of {names}", f"of {names}", lambda value: _is_one_of(value, arguments))
    if origin is np.ndarray:
        return NUMBERS
    if origin is Callable:
        return FUNCTION
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*map(kind_of, arguments))
    if origin is not None and issubclass(origin, Sequence):
        return _sequence(arguments)
    if origin is not None and issubclass(origin, Iterable):
        return Kind("a list", "lists", lambda value: hasattr(value, "__iter__"))
    is_checkable = isinstance(annotation, type) and not getattr(annotation, "_is_protocol", False)
    if not is_checkable:
        return ANYTHING
    name = annotation.__name__
    maker = f" from {MAKERS[name]}" if name in MAKERS else ""
    words = f"{_article(name)} {name}{maker}"
    return Kind(words, f"{name} objects{maker}", lambda value: isinstance(value, annotation))


def _article(name: str) -> str:
    return "an" if name[0] in "AEIO" else "a"


def _one_of_kinds(annotations: tuple[Any, ...]) -> Kind:
    """Return the kind of a value that may be of several."""
    kinds = [kind_of(annotation) for annotation in annotations]
    if ANYTHING in kinds:
        return ANYTHING
    if PATH in kinds:  # then a text is a path, too
        kinds = [kind for kind in kinds if kind is not TEXT]
    words = _joined([kind.words for kind in kinds])
    plural = _joined([kind.plural for kind in kinds])
    return Kind(words, plural, lambda value: any(kind.fits(value) for kind in kinds))


def _joined(alternatives: list[str]) -> str:
    """Return alternatives as a sentence has them.

    >>> _joined(["a text", "a list", "None"])
    'a text, a list or None'
    """
    *others, last = alternatives
    return f"{', '.join(others)} or {last}" if others else last


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(
        value is choice or (isinstance(value, str) and value == choice) for choice in choices
    )


def _mapping(keys: Kind, values: Kind) -> Kind:
    """Return the kind of a table from keys of one kind to values of another."""

    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(keys.fits(key) and values.fits(entry) for key, entry in value.items())

    return Kind(f"a dictionary of {values.plural} by name", "dictionaries", fits)


def _sequence(arguments: tuple[Any, ...]) -> Kind:
    """Return the kind of a list or tuple whose items are of one kind."""
    of_fixed_length = len(arguments) > 1 and arguments[1] is not Ellipsis
    items = [kind_of(argument) for argument in arguments if argument is not Ellipsis]

    def fits(value: Any) -> bool:
        if not is_sequence(value):
            return False
        if of_fixed_length:
            return len(value) == len(items) and all(
                kind.fits(item) for kind, item in zip(items, value, strict=True)
            )
        return items[0] is ANYTHING or all(items[0].fits(item) for item in value)

    if of_fixed_length:
        words = ", ".join(kind.words for kind in items)
        return Kind(f"{len(items)} values, ({words})", "lists", fits)
    return Kind(f"a list of {items[0].plural}", "lists", fits)
