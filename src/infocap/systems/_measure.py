"""One way to ask any system for its readouts.

A system that takes a seed gets one, and the shape of its answer is checked.
"""

import inspect
from collections.abc import Collection
from typing import Any

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


def parameter_names(function: Any) -> Collection[str]:
    """Return the names of a function's parameters; none where it has no signature.

    >>> list(parameter_names(lambda u, seed=None: u))
    ['u', 'seed']
    """
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
