"""Error bars for any method that is a smooth function of the data: leave out one block of samples at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

import numpy as np

from .._check import whole_number
from ..errors import DataError, ParameterError
from ..kernels import Summary, combine
from ..typing import Floats
from ._evidence import Evidence, square_sums, summaries
from ._method import Estimate


def with_jackknife(
    evidence: Evidence,
    estimate: Estimate,
    values: Callable[[Evidence], Floats],
    jackknife: int,
    *,
    normalised: bool = False,
) -> Estimate:
    """The estimate with standard errors from `jackknife` blocks; as it is when that is 0.

    `values` are the capacities before any are set to zero. Blocks are stretches of the rows, half of them in
    each half of the data, so that extrapolation from halves stays what it is. On low-discrepancy points
    the error bars are too long: a sequence with a gap is no longer even. Where the method divides by the
    sample mean of y² (`normalised`), so do the values.
    """
    if whole_number("jackknife", jackknife, 0) == 0:
        return estimate
    if jackknife < 4 or jackknife % 2:
        raise ParameterError(f"`jackknife={jackknife}` must be 0, or an even number of blocks from 4 on.")
    n, middle = evidence.n_samples, evidence.n_samples // 2
    each = jackknife // 2
    edges = [middle * b // each for b in range(each)] + [
        middle + (n - middle) * b // each for b in range(each + 1)
    ]
    if min(np.diff(edges)) < evidence.rank:
        raise DataError(
            f"`jackknife={jackknife}` blocks of {n} samples hold fewer than the {evidence.rank} independent readouts; "
            "take fewer blocks, or more samples."
        )
    *parts, _ = summaries(evidence.samples, evidence.engine, evidence.frame, edges)
    first, second = parts[:each], parts[each:]
    left_out = [(part, evidence.halves[1]) for part in _all_but_one(first)]
    left_out += [(evidence.halves[0], part) for part in _all_but_one(second)]
    found = np.array(
        [values(replace(evidence, whole=combine(*halves), halves=halves)) for halves in left_out]
    )
    whole = values(evidence)
    if normalised:
        powers = np.array(evidence.engine.fold(evidence.samples, square_sums, edges=edges))
        left = n - np.diff(edges)
        found *= left[:, None] / (powers.sum(axis=0) - powers)
        whole = whole / evidence.target_power
    shown = estimate.capacity > 0
    return replace(
        estimate,
        unbiased=whole,
        standard_error=_standard_error(found),
        total_standard_error=float(_standard_error(found[:, shown].sum(axis=1))),
    )


def _all_but_one(parts: list[Summary]) -> list[Summary]:
    """The summaries of all parts but each one, from those of beginnings and ends."""
    beginnings = [None, *accumulate(parts[:-1], combine)]
    ends = [*list(accumulate(parts[:0:-1], lambda a, b: combine(b, a)))[::-1], None]
    return [
        combine(*(part for part in pair if part is not None)) for pair in zip(beginnings, ends, strict=True)
    ]


def _standard_error(values: Floats) -> Floats:
    """The jackknife's standard error from values without each block."""
    count = len(values)
    return np.sqrt((count - 1) / count * np.sum((values - values.mean(axis=0)) ** 2, axis=0))
