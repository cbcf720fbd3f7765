"""Which inputs the functions of a result contain: sums by input and by pair of inputs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..basis import FUNCTION, INPUT, DelayedBasis, ProductBasis
from ..typing import Booleans, Floats
from ._target import sum_over

if TYPE_CHECKING:
    import pandas as pd

    from ._capacity_result import CapacityResult


def contains_input(basis: ProductBasis) -> Booleans:
    """Return which functions contain which inputs, (inputs, terms)."""
    numbers = np.arange(basis.n_inputs)[:, None, None]
    if not isinstance(basis, DelayedBasis):
        contains: Booleans = basis.indices.T > 0
        return contains
    is_factor = basis.factors[:, :, FUNCTION] > 0
    of_input: Booleans = np.any(is_factor & (basis.factors[:, :, INPUT] == numbers), axis=2)
    return of_input


def by_input(result: "CapacityResult") -> "pd.DataFrame":
    """Return sums over the functions that contain each input, and over those of it alone."""
    import pandas as pd

    contains = contains_input(result.basis)
    n_inputs_of_function = contains.sum(axis=0)
    rows: list[dict[str, Any]] = []
    for of_input in contains:
        all_functions = sum_over(result, of_input)
        alone = sum_over(result, of_input & (n_inputs_of_function == 1))
        rows.append(
            {
                "capacity": float(all_functions),
                "standard_error": all_functions.standard_error,
                "alone": float(alone),
                "alone_standard_error": alone.standard_error,
                "functions": int(np.count_nonzero(of_input)),
            }
        )
    index = pd.Index(result.basis.names, name="input")
    table = pd.DataFrame(rows, index)
    errors = ["standard_error", "alone_standard_error"]
    table[errors] = table[errors].astype(float)  # an error of None becomes NaN
    return table


def input_matrix(result: "CapacityResult") -> Floats:
    """Return capacities by pairs of inputs, (inputs, inputs)."""
    contains = contains_input(result.basis)
    n_inputs_of_function = contains.sum(axis=0)
    n_inputs = len(contains)
    matrix = np.zeros((n_inputs, n_inputs))
    for row in range(n_inputs):
        for column in range(row + 1):
            chosen = contains[row] & contains[column]
            if row == column:
                chosen = chosen & (n_inputs_of_function == 1)
            value = float(result.capacity[chosen].sum()) if chosen.any() else np.nan
            matrix[row, column] = value
            matrix[column, row] = value
    return matrix
