"""The graded order of functions, in which they are orthonormalised under a law of the inputs."""

from __future__ import annotations

import numpy as np

from ..typing import Integers
from ._delayed import DelayedBasis
from ._product import ProductBasis
from ._shifts import DELAY, FUNCTION


def graded_order(basis: ProductBasis, first_by: str = "degree") -> Integers:
    """Return the functions in order: by degree and then by delay, or the other way round.

    Functions of one degree and delay are in the order of their windows. Without delays there is one
    level for each degree.
    """
    numbers = np.arange(len(basis))
    if not isinstance(basis, DelayedBasis):
        return np.lexsort((numbers, basis.interactions, basis.degrees))
    largest = basis.largest_delays
    windows = largest - _smallest_delays(basis)
    levels = (largest, basis.degrees) if first_by == "degree" else (basis.degrees, largest)
    return np.lexsort((numbers, basis.interactions, windows, *levels))


def _smallest_delays(basis: DelayedBasis) -> Integers:
    is_empty = basis.factors[:, :, FUNCTION] == 0
    delays = np.where(is_empty, np.iinfo(np.int16).max, basis.factors[:, :, DELAY])
    return np.where(is_empty.all(axis=1), 0, delays.min(axis=1))
