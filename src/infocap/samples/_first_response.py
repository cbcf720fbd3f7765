"""The first row of each step in which a trace depends on the input of that step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from ..typing import Floats
from ._table import Table

# Rows of a trace that are looked at: thousands of steps tell enough.
MAX_ROWS = 1 << 20
# Steps of the trace among which the first one is looked for: nobody waits longer for a trigger.
MAX_OFFSET_IN_STEPS = 4
# Powers of the inputs by which the values at one row of each step are fitted, and how many earlier
# inputs are fitted first.
MAX_POWER = 3
N_EARLIER_INPUTS = 3
# Part of the steps that are left out at the beginning.
SHARE_SKIPPED = 0.1
# Steps that such a fit needs for each of its functions.
MIN_STEPS_PER_FUNCTION = 5
# Probability that chance finds a response.
FALSE_ALARM = 1e-6
# Share of its variance that the input explains at the first row, relative to that at the row where
# it is largest. Inputs that depend on each other explain a little in earlier rows.
MIN_SHARE_OF_LARGEST = 0.003
# Size of a function, relative to its range, below which the others make it up.
SMALLEST_SIZE = 1e-6
# Share of its variance below which what a fit leaves of a channel is rounding.
SMALLEST_SHARE_LEFT = 1e-12


@dataclass(frozen=True)
class FirstResponse:
    """The first row that depends on the first input; None where no row does, or none can tell."""

    row: int | None
    is_possible: bool = True  # whether there are enough steps to tell


def find_first_response(
    u: Floats, trace: Table, rows_per_step: int, max_offset: int
) -> FirstResponse:
    """Return the first of the rows 0 to `max_offset` at which a trace depends on the first input.

    A device cannot know an input before it comes. So the first row of the steps at which the trace
    depends on their inputs (steps, inputs), beyond what earlier inputs tell, is where they begin.
    """
    max_offset = min(max_offset, MAX_OFFSET_IN_STEPS * rows_per_step)
    n_rows = min(trace.shape[0], MAX_ROWS)
    n_steps = min(len(u), (n_rows - max_offset) // rows_per_step - 1)
    n_functions = MAX_POWER * u.shape[1]
    n_fitted = 1 + (1 + N_EARLIER_INPUTS) * n_functions
    if n_steps < MIN_STEPS_PER_FUNCTION * n_fitted:
        return FirstResponse(None, is_possible=False)
    values = trace.read(0, n_rows, on_host=True)
    powers = _powers(u[:n_steps])
    # The first steps still depend on the state in which the device began.
    n_skipped = max(N_EARLIER_INPUTS, int(SHARE_SKIPPED * n_steps))
    earlier = [np.ones((n_steps - n_skipped, 1))]
    for delay in range(1, 1 + N_EARLIER_INPUTS):
        earlier.append(powers[n_skipped - delay : n_steps - delay])
    past = _orthonormal(np.hstack(earlier))
    present = powers[n_skipped:]
    innovation = _orthonormal(present - past @ (past.T @ present))

    degrees_of_freedom = n_steps - n_skipped - n_fitted
    n_tests = (max_offset + rows_per_step) * trace.shape[1]
    shares = []
    is_significant = []
    for row in range(max_offset + rows_per_step):
        rows = row + rows_per_step * np.arange(n_skipped, n_steps)
        at_row = values[rows] - values[rows].mean(axis=0)
        power = np.sum(at_row**2, axis=0)
        explained = np.sum((innovation.T @ at_row) ** 2, axis=0)
        left = power - explained - np.sum((past.T @ at_row) ** 2, axis=0)
        variance = np.maximum(left, SMALLEST_SHARE_LEFT * power) / degrees_of_freedom
        ratio = explained / (n_functions * np.where(variance > 0, variance, np.inf))
        p_values = scipy.special.fdtrc(n_functions, degrees_of_freedom, ratio)
        is_significant.append(np.min(p_values) * n_tests < FALSE_ALARM)
        shares.append(np.max(explained / np.where(power > 0, power, np.inf)))
    is_response = np.array(is_significant) & (np.array(shares) > MIN_SHARE_OF_LARGEST * max(shares))
    first_rows = np.flatnonzero(is_response[: max_offset + 1])
    return FirstResponse(int(first_rows[0]) if len(first_rows) else None)


def _orthonormal(columns: Floats) -> Floats:
    """Return orthonormal columns that span these; powers of inputs on two levels are dependent."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return vectors[:, sizes > SMALLEST_SIZE * np.sqrt(len(columns))]


def _powers(u: Floats) -> Floats:
    """Return the first powers of inputs, scaled to a range of 1: (steps, powers times inputs)."""
    scaled = u - u.mean(axis=0)
    scaled = scaled / np.maximum(np.abs(scaled).max(axis=0), np.finfo(float).tiny)
    return np.hstack([scaled**power for power in range(1, MAX_POWER + 1)])
