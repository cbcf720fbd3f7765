"""One way to ask any system for its readouts.

A system that takes a seed gets one, and the shape of its answer is checked.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from .._validation import require_function_of
from ..errors import DataError
from ..typing import Floats, System


def measure(system: System, u: Floats, seed: Any = None) -> Any:
    """Return the readouts (samples, readouts) of a system at the inputs `u`.

    The seed goes to systems that take one.

    >>> import numpy as np
    >>> measure(lambda u: u**2, np.array([[1.0], [2.0]]))
    array([[1.],
           [4.]])
    """
    takes_seed = seed is not None and "seed" in parameter_names(system)
    keywords = {"seed": seed} if takes_seed else {}
    require_function_of("system", system, "inputs that returns readouts", **keywords)
    x = system(u, seed=seed) if takes_seed else system(u)
    shape = getattr(x, "shape", None)
    if shape is None or tuple(shape)[:1] != (len(u),):
        answer = type(x).__name__ if shape is None else tuple(shape)
        raise DataError(
            f"the system gave {answer} for {len(u)} samples; it must give an array "
            "(samples, readouts)."
        )
    return x


def is_instrument(candidate: Any) -> bool:
    """Return whether this is an instrument, rather than what makes one.

    An instrument is an object with a method `measure` or `measure_many`.

    >>> is_instrument(lambda u: u)
    False
    """
    if isinstance(candidate, type):
        return False
    names = ("measure", "measure_many")
    return any(callable(getattr(candidate, name, None)) for name in names)


def system_of_instrument(instrument: Any, of_sequences: bool) -> Callable[[Floats], Floats]:
    """Return an instrument as a function (samples, inputs) -> (samples, readouts).

    Its method `measure` gets one sample after the other, as in an acquisition; of a device with
    memory the whole sequence. Extra values beside the readouts are left out.

    >>> class Wire:
    ...     def measure(self, u):
    ...         return 2 * u
    >>> system_of_instrument(Wire(), of_sequences=False)(np.array([[1.0], [2.0]]))
    array([[2.],
           [4.]])
    """

    def system(u: Floats) -> Floats:
        if not callable(getattr(instrument, "measure", None)):
            return _readouts_alone(instrument.measure_many(u))
        if of_sequences:
            return _readouts_alone(instrument.measure(u))
        return np.array([_readouts_alone(instrument.measure(row)) for row in u])

    return system


def _readouts_alone(answer: Any) -> Floats:
    """Return the readouts of an answer that may be a pair of them and extra values."""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping):
        answer = answer[0]
    return np.asarray(answer)


def parameter_names(function: Any) -> Collection[str]:
    """Return the names of a function's parameters; none where it has no signature.

    >>> list(parameter_names(lambda u, seed=None: u))
    ['u', 'seed']
    """
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
