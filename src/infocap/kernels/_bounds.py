"""The bound below which a capacity may be nothing but chance."""

from __future__ import annotations

import numpy as np

from ..typing import ArrayLike, Floats


def zero_capacity_bound(fourth_moments: ArrayLike, leverage_power: float, n_samples: int) -> Floats:
    """Upper bound on the mean C_N of functions whose capacity is zero: sqrt(S E[y^4]) / N (paper, Prop. 5.3).

    `leverage_power` is S = E[(sum_i X~_i²)²], at least the square of the number of readouts.

    >>> zero_capacity_bound([1.8], leverage_power=100.0, n_samples=1000)
    array([0.01341641])
    """
    return np.sqrt(leverage_power * np.asarray(fourth_moments, dtype=float)) / n_samples
