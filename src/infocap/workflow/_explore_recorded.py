"""The search of `explore` under the law of the recorded inputs.

Where inputs depend on each other, a function is tested for what it says beyond those before it in
the graded order. So whole windows are estimated at once, and not one function after the other:
windows in which something is found near the end become wider, until nothing new is found or the
rows allow no more functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..basis import DelayedBasis, Family, count_terms, list_terms, sort_terms
from ..result import CapacityResult

# Rows for each function at least, so that coloured noise makes totals too high by no more than
# half an error bar.
MIN_ROWS_PER_FUNCTION = 10
# Functions of a window at most: more take minutes.
MAX_FUNCTIONS = 600
# Windows that are tried at most.
MAX_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class WindowRound:
    """The capacities of all functions of some windows."""

    windows: dict[int, int]
    result: CapacityResult

    @property
    def found(self) -> dict[int, int]:
        """The largest delay of each degree at which a capacity is not zero."""
        basis = self.result.delayed_basis
        largest: dict[int, int] = {}
        for term in np.flatnonzero(self.result.capacity > 0).tolist():
            degree = int(basis.degrees[term])
            if degree > 0:
                delay = int(basis.largest_delays[term])
                largest[degree] = max(largest.get(degree, 0), delay)
        return dict(sorted(largest.items()))

    @property
    def n_found(self) -> int:
        """The number of functions whose capacity is not zero, without the constant."""
        return int(np.count_nonzero(self.result.capacity[1:] > 0))


def search_windows(
    families: Sequence[Family],
    first_windows: dict[int, int],
    estimate_basis: Callable[[DelayedBasis], CapacityResult],
    *,
    most_functions: int,
    longest_delay: int,
    begin_of_outer_part: float,
    widening: float,
) -> list[WindowRound]:
    """Estimate wider and wider windows; the last round is that of the windows that were found.

    Parameters
    ----------
    families
        The distributions of the inputs, of which only the number counts.
    first_windows
        The largest delay of each degree to begin with.
    estimate_basis
        Returns the capacities of a basis under the law of the recorded inputs.
    most_functions, longest_delay
        The most functions of all windows together, and the longest delay of any.
    begin_of_outer_part, widening
        The part of a window beyond which a function that is found makes the window wider, and by
        how much.
    """
    windows = first_windows
    rounds: list[WindowRound] = []
    while True:
        last = WindowRound(windows, estimate_basis(_basis_of(families, windows)))
        rounds.append(last)
        wider = dict(windows)
        for degree, delay in last.found.items():
            if delay >= begin_of_outer_part * windows[degree]:
                candidate = min(int(widening * windows[degree]) + 1, longest_delay)
                if count_terms(families, wider | {degree: candidate}) <= most_functions:
                    wider[degree] = candidate
        if wider == windows or len(rounds) == MAX_ROUNDS:
            break
        windows = wider
    if last.found and last.found != windows:
        result = estimate_basis(_basis_of(families, last.found))
        rounds.append(WindowRound(last.found, result))
    return rounds


def _basis_of(families: Sequence[Family], windows: dict[int, int]) -> DelayedBasis:
    """Return all functions of some windows."""
    return DelayedBasis(families, sort_terms(families, list_terms(families, windows)))
