"""How the raw capacities fall with the number of samples: the picture behind the finite-sample bias."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from .._check import yes_or_no
from ..basis import ProductBasis
from ..errors import DataError
from ..kernels import capacities, combine
from ..typing import ArrayLike, Floats, Integers
from ._estimate import prepare
from ._survey import survey, tables


@dataclass(frozen=True, eq=False)
class Convergence:
    """Raw capacities (sizes, terms) from the first n_samples[i] rows, with the empirical mean of y²."""

    n_samples: Integers
    raw: Floats
    n_readouts: int
    basis: ProductBasis


def convergence(
    u: ArrayLike, x: ArrayLike, basis: ProductBasis, sizes: ArrayLike | None = None, *, constant: bool = True
) -> Convergence:
    """Raw capacities against the number of samples, from one pass over the data.

    They start at 1 for N = K, where K readouts fit any K values exactly, and fall like C + Delta / N
    (paper, Propositions 5.1 and 5.2). `sizes` defaults to 40 steps from K to N.

    >>> import infocap
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=0)
    >>> curve = convergence(u, u, basis, [2, 64])
    >>> bool(abs(curve.raw[0] - 1).max() < 1e-12)
    True
    """
    inputs, readouts, _ = tables(u, x, basis, None, "raise")
    n_rows = readouts.shape[0]
    found = survey(inputs, readouts, basis, np.zeros(n_rows, int))
    walk = prepare(inputs, readouts, basis, found, yes_or_no("constant", constant))
    if sizes is None:
        steps = np.unique(np.round(np.geomspace(min(walk.n_readouts, n_rows), n_rows, 40)).astype(int))
    else:
        steps = np.unique(np.asarray(sizes, dtype=int))
    if not len(steps) or len(walk.channels) == 0:
        raise DataError("there is nothing to follow: sizes is empty, or no channel of x ever changes.")
    if steps[0] < 1 or steps[-1] > n_rows:
        raise DataError(f"sizes run from {steps[0]} to {steps[-1]}; there are {n_rows} samples.")
    edges = [0, *steps.tolist()]
    parts = walk.summaries(*edges)
    wholes = accumulate(parts, combine)
    powers = accumulate(basis.sum_over(inputs.read(a, b), power=2) for a, b in pairwise(edges))
    raw = [capacities(whole) * whole.n_samples / power for whole, power in zip(wholes, powers, strict=True)]
    return Convergence(steps, np.array(raw), walk.n_readouts, basis)
