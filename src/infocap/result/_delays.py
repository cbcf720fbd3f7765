"""What a result says about delays: the memory function, capacity by delay, pairs of delays, and sums with errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..basis._delayed import DelayedBasis
from ..errors import ParameterError
from ..kernels._summary import stretch_error
from ..typing import Floats
from ._target import Capacity

if TYPE_CHECKING:
    import pandas as pd

    from ._capacity_result import CapacityResult


def delayed(result: CapacityResult) -> DelayedBasis:
    """The basis of a result about a sequence; any other is refused."""
    if not isinstance(result.basis, DelayedBasis):
        raise ParameterError("this result is not about delayed inputs; estimate with a basis from delayed_basis(...).")
    return result.basis


def sum_over(result: CapacityResult, some: Floats) -> Capacity:
    """The sum of the unbiased capacities of some functions, with its standard error.

    Stretches that were left out tell how far the sum scatters. Without them the squared error of the total is shared
    out as the squared errors of functions are.
    """
    value = float((result.capacity if result.unbiased is None else result.unbiased)[some].sum())
    if result.without_stretches is not None:
        return Capacity(value, stretch_error(result.without_stretches[:, some].sum(axis=1)), result.rank)
    if result.standard_error is None or result.total_standard_error is None:
        return Capacity(value, None, result.rank)
    share = np.linalg.norm(result.standard_error[some]) / max(float(np.linalg.norm(result.standard_error)), 1e-300)
    return Capacity(value, float(share) * result.total_standard_error, result.rank)


def memory_capacity(result: CapacityResult) -> Capacity:
    """The sum of all unbiased capacities of degree 1 of a sequence, with `standard_error`."""
    return sum_over(result, delayed(result).degrees == 1)


def nonlinear_capacity(result: CapacityResult) -> Capacity:
    """The sum of all unbiased capacities of degree 2 and more of a sequence, with `standard_error`."""
    return sum_over(result, delayed(result).degrees > 1)


def memory_function(result: CapacityResult, degree: int = 1, input: int = 1) -> pd.DataFrame:  # noqa: A002
    """Capacity, standard error and p-value of the function of one degree of one input alone, by its delay."""
    import pandas as pd

    basis = delayed(result)
    alone = (basis.interactions == 1) & (basis.degrees == degree) & (basis.factors[:, 0, 0] == input - 1)
    if not alone.any():
        raise ParameterError(f"the basis has no function of degree {degree} of input {input} alone; it is {basis!r}.")
    table = {"delay": basis.largest_delays[alone], "capacity": result.capacity[alone]}
    more = {name: getattr(result, name) for name in ("standard_error", "p_value")}
    table |= {name: values[alone] for name, values in more.items() if values is not None}
    return pd.DataFrame(table).sort_values("delay", kind="stable").set_index("delay")


def by_delay(result: CapacityResult) -> pd.DataFrame:
    """Capacity of a sequence's functions by largest delay (rows) and degree (columns), without the constant."""
    import pandas as pd

    basis = delayed(result)
    table = np.zeros((basis.memory + 1, basis.max_degree + 1))
    np.add.at(table, (basis.largest_delays, basis.degrees), result.capacity)
    degrees = sorted(set(basis.degrees.tolist()) - {0})
    return pd.DataFrame(table[:, degrees], pd.RangeIndex(len(table), name="delay"), pd.Index(degrees, name="degree"))


def delay_matrix(result: CapacityResult, input: int = 1) -> Floats:  # noqa: A002
    """Capacities of degree 2: [i, j] is for P1(u[t-i])·P1(u[t-j]), the diagonal for P2(u[t-i]), NaN where unknown."""
    basis = delayed(result)
    own = np.all((basis.factors[:, :, 0] == input - 1) | (basis.factors[:, :, 2] == 0), axis=1)
    pairs = np.flatnonzero(own & (basis.degrees == 2))
    if not len(pairs):
        raise ParameterError(f"the basis has no function of degree 2 of input {input}; give `max_delay={{2: ...}}`.")
    first, last = basis.factors[pairs, 0, 1], basis.largest_delays[pairs]
    out = np.full((int(last.max()) + 1,) * 2, np.nan)
    out[first, last] = out[last, first] = result.capacity[pairs]
    return out
