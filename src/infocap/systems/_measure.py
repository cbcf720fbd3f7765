"""One way to ask any system for its readouts: with a seed where it takes one, and a look at what came back."""

import inspect
from collections.abc import Collection
from typing import Any

from ..errors import DataError, ParameterError
from ..typing import Floats, System


def measure(system: System, u: Floats, seed: Any = None) -> Any:
    """Readouts (samples, readouts) at the inputs `u`; the seed goes to systems that take one."""
    if not callable(system):
        raise ParameterError(f"`system={system!r}` must be a callable from inputs to readouts.")
    x = system(u, seed=seed) if seed is not None and "seed" in parameters(system) else system(u)
    if tuple(getattr(x, "shape", ()))[:1] != (len(u),):
        found = getattr(x, "shape", type(x).__name__)
        raise DataError(
            f"the system gave {found} for {len(u)} samples; it must give an array (samples, readouts)."
        )
    return x


def parameters(function: Any) -> Collection[str]:
    """The names of a function's parameters; none of a built-in function, which has no signature."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
