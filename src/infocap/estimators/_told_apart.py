"""Which functions can be told apart under the law of the recorded inputs.

Functions are orthonormalised in a graded order. The pivot of a function is the part of it that
those before it do not explain under the law of the inputs. A function is left out where its pivot
is rounding of the sums, where it is mostly what noise of the recorded inputs makes, or where it
rests on a single stretch of the recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ..typing import Floats, Integers
from ._fit import ControlSums

# Pivot below which sums in double precision say nothing: they agree with a QR factorisation of the
# values to 1e-6 for pivots of this size, and to 7e-3 for pivots of 1e-12.
MIN_PIVOT = 1e-8
# Times that a pivot has to be what the noise of the recorded inputs makes. Otherwise the innovation
# is noise that the device never saw, and would be shown as a false zero.
MIN_PIVOT_TO_INPUT_NOISE = 10.0
# Part of its pivot that a function has to keep whichever stretch is left out.
MIN_PIVOT_WITHOUT_STRETCH = 0.2


@dataclass(frozen=True, eq=False)
class ToldApart:
    """The functions that can be told apart from those before them, in a given order."""

    functions: Integers  # their numbers in that order, ascending
    pivots: Floats  # of every function, also of those that are left out


def tell_apart(
    whole: ControlSums, stretches: Iterable[ControlSums], noise_gram: Floats | None
) -> ToldApart:
    """Return which functions can be told apart, in the order of the sums.

    `stretches` is gone through several times. `noise_gram` holds the mean products of what the
    noise of the inputs adds to the functions, (functions, functions).
    """
    gram = whole.phi_phi / whole.count
    kept, pivots = _kept_in_order(gram, noise_gram)
    while True:
        of_kept = gram[np.ix_(kept, kept)]
        full = _pivots(of_kept)
        smallest = np.ones(len(kept))
        for stretch in stretches:
            rest = (whole.phi_phi - stretch.phi_phi)[np.ix_(kept, kept)]
            without = _pivots(rest / (whole.count - stretch.count))
            smallest = np.minimum(smallest, without / full)
        rests_on_all = smallest >= MIN_PIVOT_WITHOUT_STRETCH
        rests_on_all[0] = True  # the constant
        if rests_on_all.all():
            return ToldApart(kept, pivots)
        kept = kept[rests_on_all]


def _kept_in_order(gram: Floats, noise_gram: Floats | None) -> tuple[Integers, Floats]:
    """Return the functions with large enough pivots, and the pivots of all (Cholesky).

    Rows of the triangle of the functions kept so far are filled in one by one.
    """
    n_functions = len(gram)
    size = np.sqrt(np.diag(gram))
    size[size == 0] = 1.0
    scaled = gram / np.outer(size, size)
    triangle = np.zeros((n_functions, n_functions))
    pivots = np.zeros(n_functions)
    kept: list[int] = []
    for number in range(n_functions):
        n_kept = len(kept)
        of_kept = triangle[:n_kept, :n_kept]
        row = np.zeros(0)
        if n_kept:
            row = solve_triangular(of_kept, scaled[kept, number], lower=True, check_finite=False)
        pivots[number] = max(scaled[number, number] - row @ row, 0.0)
        if pivots[number] < MIN_PIVOT:
            continue
        if noise_gram is not None and number:
            # The innovation as a combination of the function itself and the kept ones.
            innovation = np.zeros(n_functions)
            innovation[number] = 1.0
            if n_kept:
                innovation[kept] = -solve_triangular(
                    of_kept, row, lower=True, trans=1, check_finite=False
                )
            innovation /= size
            noise = innovation @ noise_gram @ innovation
            if pivots[number] < MIN_PIVOT_TO_INPUT_NOISE * noise:
                continue
        triangle[n_kept, :n_kept] = row
        triangle[n_kept, n_kept] = np.sqrt(pivots[number])
        kept.append(number)
    return np.array(kept), pivots


def _pivots(gram: Floats) -> Floats:
    """Return the pivots of functions, in their own units; 0 where they cannot be told apart."""
    try:
        triangle = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        kept, pivots = _kept_in_order(gram, None)
        is_kept = np.zeros(len(gram), dtype=bool)
        is_kept[kept] = True
        return np.where(is_kept, pivots * np.diag(gram), 0.0)
    return np.diag(triangle) ** 2
