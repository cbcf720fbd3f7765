"""What infocap raises and warns: every message names the value it found and what to do next."""

import sys
import warnings


class InfocapError(Exception):
    """The base of every error that infocap raises on purpose."""


class ParameterError(InfocapError, ValueError):
    """An argument has no meaning as given: a name, a size, a combination of options."""


class DataError(InfocapError, ValueError):
    """The data cannot be used as they are: their shape, their type or their values."""


class DataWarning(UserWarning):
    """The answer is usable but weaker than it looks; ``-W error`` makes it an error."""


def warn(message: str) -> None:
    """Raise a DataWarning that points at the line outside the package that caused it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "infocap":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DataWarning, stacklevel=level)
