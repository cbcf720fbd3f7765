"""What infocap raises and warns: every message names the value it found and what to do next."""

import re
import sys
import warnings
from typing import Any, Self

__all__ = ["Check", "DataError", "DataWarning", "InfocapError", "ParameterError"]

# Characters that a terminal obeys instead of showing them, or that turn the direction of writing.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Longer messages are cut in the middle: the value stands at their beginning, the remedy at the end.
MAX_MESSAGE_CHARACTERS = 900
PACKAGE = __name__.partition(".")[0]


def printable(text: str) -> str:
    """Return a text without control characters.

    Names in files may hold some, and a terminal would obey them.

    >>> printable("power\x1b[31m\x07 in mW")
    'power[31m in mW'
    """
    return CONTROL_CHARACTERS.sub("", text)


class InfocapError(Exception):
    """The base of every error that infocap raises on purpose.

    >>> issubclass(ParameterError, InfocapError), issubclass(DataError, InfocapError)
    (True, True)
    """

    def __str__(self) -> str:
        message = " ".join(printable(super().__str__()).split())
        if len(message) <= MAX_MESSAGE_CHARACTERS:
            return message
        half = MAX_MESSAGE_CHARACTERS // 2
        return f"{message[:half]} ... {message[-half:]}"


class ParameterError(InfocapError, ValueError):
    """An argument has no meaning as given: a name, a size, a combination of options.

    >>> infocap.product_basis("legendre", n_inputs=2, max_degree=-1)
    Traceback (most recent call last):
    infocap.errors.ParameterError: `max_degree=-1` must be a whole number, 0 or more.
    """


class DataError(InfocapError, ValueError):
    """The data cannot be used as they are: their shape, their type or their values.

    >>> import numpy as np
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> infocap.estimate(np.zeros((5, 1)), np.zeros(5), basis)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    infocap.errors.DataError: x has shape (5,); give two dimensions, (samples, channels): ...
    """


class DataWarning(UserWarning):
    """The answer is usable but weaker than it looks; ``-W error`` makes it an error.

    >>> issubclass(DataWarning, UserWarning)
    True
    """


class Check(str):
    """One thing that was noticed about the data: a sentence, and what it is about as plain numbers.

    Parameters
    ----------
    text
        The sentence.
    kind
        ``"warning"`` where the answer is weaker than it looks, ``"note"`` where something was put
        right.
    **found
        What was seen, in numbers and names that a program can use: which rows, which channels. A
        warning that makes the total itself doubtful says why in a few words, ``unreliable="few
        samples for 72 readouts"``; wherever the total is shown, these words then stand in place of
        its error bar.

    Examples
    --------
    >>> check = Check("channel 3 is dead and was left out.", kind="note", channels=["channel 3"])
    >>> print(check, check.kind, check.found)
    channel 3 is dead and was left out. note {'channels': ['channel 3']}
    >>> Check.from_dict(check.to_dict()).found == check.found
    True
    """

    kind: str
    found: dict[str, Any]

    def __new__(cls, text: str, kind: str = "warning", **found: Any) -> Self:
        """Take the sentence, its kind, and what was found, each under a name."""
        if not isinstance(text, str):
            raise ParameterError(f"`text={text!r:.60}` must be a sentence.")
        self = super().__new__(cls, printable(text))
        self.kind = kind
        self.found = found
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return text, kind and findings as plain data, for files and pages."""
        return {"text": str(self), "kind": self.kind, "found": self.found}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a check from what `to_dict` gave."""
        try:
            return cls(data["text"], data["kind"], **data["found"])
        except (KeyError, TypeError, IndexError, ValueError) as problem:
            raise ParameterError(
                f"`data={data!r:.60}` is not what Check.to_dict gives ({problem})."
            ) from None


def warn(message: str) -> None:
    """Raise a DataWarning that points at the line outside the package that caused it."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and _is_inside_package(frame.f_globals):
        level += 1
        frame = frame.f_back
    warnings.warn(printable(message), DataWarning, stacklevel=level)


def _is_inside_package(module: dict[str, Any]) -> bool:
    """Return whether the globals of a frame are those of a module of infocap."""
    return str(module.get("__name__", "")).partition(".")[0] == PACKAGE
