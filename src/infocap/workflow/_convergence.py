"""How the raw capacities fall with the number of samples: the picture behind the finite-sample bias."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from .._validation import yes_or_no
from ..basis._product import ProductBasis
from ..errors import DataError
from ..estimators._evidence import frame_for, square_sums, summaries
from ..kernels._summary import capacities, combine
from ..samples._engine import Engine
from ..samples._look import first_look
from ..samples._samples import Samples
from ..typing import ArrayLike, Floats, Integers


@dataclass(frozen=True, eq=False)
class Convergence:
    """Raw capacities (sizes, terms) from the first n_samples[i] rows."""

    n_samples: Integers
    raw: Floats
    maximum: int  # the readouts and the constant, K
    basis: ProductBasis


def convergence(
    u: ArrayLike,
    x: ArrayLike,
    basis: ProductBasis,
    sizes: ArrayLike | None = None,
    *,
    constant: bool = True,
    exact: bool = False,
) -> Convergence:
    """Raw capacities against the number of samples, from one pass over the data.

    They are divided by the sample mean of y². So they start at exactly 1 for N = K, where K readouts fit any K values,
    and fall like C + Delta / N (paper, Propositions 5.1 and 5.2). With `exact` they are divided by E[y²] = 1, as in
    the paper's algorithms, and start at the sample mean of y² instead. `sizes` defaults to 40 steps from K to N. Rows
    that `draw` gave come in random order inside a block, so that any number of them is a fair sample, and whole blocks
    are even ones.

    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=0)
    >>> curve = convergence(u, u, basis, [2, 64])
    >>> bool(abs(curve.raw[0] - 1).max() < 1e-12)
    True
    """
    engine, samples = Engine(), Samples.of(u, x, basis)
    look = first_look(samples, engine)
    samples = samples.prepared(look, yes_or_no("constant", constant))
    n, maximum = samples.n_samples, samples.n_columns
    wanted = np.round(np.geomspace(min(maximum, n), n, 40)) if sizes is None else sizes
    steps = np.unique(np.asarray(wanted, dtype=int))
    if not len(steps) or steps[0] < 1 or steps[-1] > n:
        raise DataError(f"`sizes={sizes!r}` must be numbers of samples from 1 to {n}.")
    edges = [0, *steps.tolist()]
    *parts, _ = summaries(samples, engine, frame_for(samples, look), edges)
    powers = accumulate(engine.fold(samples, square_sums, edges=edges))
    wholes = zip(accumulate(parts, combine), powers, strict=True)
    raw = [
        capacities(whole) * (1.0 if exact else whole.n_samples / power) for whole, power in wholes
    ]
    return Convergence(steps, np.array(raw), maximum, basis)
