"""Systems by name: what a command line or a plan writes in place of a Python object."""

from collections.abc import Callable

from .._plugins import find_by_name
from .._validation import checks_arguments
from ..typing import System
from ._networks import FeedForward, RandomFeatures
from ._reservoirs import DelayLine, DelayReservoir, EchoState

SYSTEMS: dict[str, Callable[..., System]] = {
    "RandomFeatures": RandomFeatures,
    "FeedForward": FeedForward,
    "EchoState": EchoState,
    "DelayLine": DelayLine,
    "DelayReservoir": DelayReservoir,
}


@checks_arguments
def find(name: str) -> Callable[..., System]:
    """Return what makes the systems of a name.

    Parameters
    ----------
    name
        The name of a class in `infocap.systems`, or of an entry point of the group
        ``infocap.systems`` of an installed package.

    Returns
    -------
    Callable
        A class, or a function that returns a system.

    Raises
    ------
    ParameterError
        When nobody offers the name.

    Examples
    --------
    >>> find("DelayLine")(3)
    DelayLine(n_nodes=3, noise=0.0)
    """
    maker: Callable[..., System] = find_by_name("system", name, SYSTEMS, "infocap.systems")
    return maker
