"""What infocap raises and warns: every message names the value it found and what to do next."""

import sys
import warnings


class InfocapError(Exception):
    """The base of every error that infocap raises on purpose.

    >>> import infocap
    >>> try:
    ...     infocap.product_basis("legendary", n_inputs=2, max_degree=3)
    ... except InfocapError as problem:
    ...     print(type(problem).__name__)
    ParameterError
    """


class ParameterError(InfocapError, ValueError):
    """An argument has no meaning as given: a name, a size, a combination of options.

    >>> import infocap
    >>> infocap.product_basis("legendre", n_inputs=2, max_degree=-1)
    Traceback (most recent call last):
    infocap.errors.ParameterError: max_degree=-1 must be a whole number, 0 or more.
    """


class DataError(InfocapError, ValueError):
    """The data cannot be used as they are: their shape, their type or their values.

    >>> import numpy as np
    >>> import infocap
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> infocap.estimate(np.zeros((5, 1)), np.zeros(5), basis)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    infocap.errors.DataError: x has shape (5,); give two dimensions, ...: x.reshape(-1, 1) makes one channel of it.
    """


class DataWarning(UserWarning):
    """The answer is usable but weaker than it looks; ``-W error`` makes it an error.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("the lamp flickers")
    >>> caught[0].category.__name__
    'DataWarning'
    """


def warn(message: str) -> None:
    """Raise a DataWarning that points at the line outside the package that caused it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("channel 3 is saturated")
    >>> str(caught[0].message)
    'channel 3 is saturated'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "infocap":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DataWarning, stacklevel=level)
