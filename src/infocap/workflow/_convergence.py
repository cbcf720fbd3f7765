"""How raw capacities fall with the number of samples: the finite-sample bias in a picture."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from .._validation import checks_arguments, require_numbers, shown
from ..basis import ProductBasis
from ..errors import DataError
from ..estimators import choose_preconditioner, square_sums, summarise_between
from ..kernels import capacities, combine
from ..samples import Engine, Samples, scan_columns
from ..typing import ArrayLike, Floats, Integers

# Points of a curve for which no sizes are given.
DEFAULT_POINTS = 40


@dataclass(frozen=True, eq=False)
class Convergence:
    """Raw capacities against the number of samples; `convergence` makes one.

    Attributes
    ----------
    n_samples
        From how many of the first rows capacities were estimated, (sizes,).
    raw
        The raw capacities, (sizes, terms).
    maximum
        The number of readouts with the constant, K.
    basis
        The functions.
    """

    n_samples: Integers
    raw: Floats
    maximum: int
    basis: ProductBasis


@checks_arguments
def convergence(
    u: ArrayLike, x: ArrayLike, basis: ProductBasis, sizes: ArrayLike | None = None
) -> Convergence:
    """Return raw capacities against the number of samples, from sums of one pass over the data.

    They are divided by the sample mean of y². So they start at exactly 1 for N = K, where K
    readouts fit any K values, and fall like C + Delta / N (paper, Propositions 5.1 and 5.2). Rows
    that `draw` gave come in random order inside a block, so that any number of them is a fair
    sample, and whole blocks are even ones.

    Parameters
    ----------
    u, x, basis
        Inputs, readouts and functions, as for `estimate`; the constant readout is added.
    sizes
        Numbers of samples, by default 40 from K to N.

    Returns
    -------
    Convergence
        The curve, which `infocap.plot.convergence` draws.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", 1, 3)
    >>> u = infocap.draw(basis, 64, seed=0)
    >>> curve = convergence(u, u, basis, [2, 64])
    >>> bool(abs(curve.raw[0] - 1).max() < 1e-12)
    True
    """
    engine = Engine()
    samples = Samples.of(u, x, basis)
    statistics = scan_columns(samples, engine)
    samples = samples.choose_preparation(statistics, constant=True)
    n_samples = samples.n_samples
    maximum = samples.n_columns
    if sizes is None:
        unrounded_sizes = np.geomspace(min(maximum, n_samples), n_samples, DEFAULT_POINTS)
        numbers = np.round(unrounded_sizes)
    else:
        numbers = require_numbers("sizes", sizes, "sizes")
    steps = np.unique(numbers.astype(int))
    if not len(steps) or steps[0] < 1 or steps[-1] > n_samples:
        raise DataError(f"`sizes={shown(sizes)}` must be numbers of samples from 1 to {n_samples}.")

    # What is summed up between consecutive sizes adds up to what the first rows hold.
    edges = [0, *steps.tolist()]
    preconditioner = choose_preconditioner(samples, statistics)
    *summaries, _ = summarise_between(samples, engine, preconditioner, edges)
    summaries_of_first_rows = accumulate(summaries, combine)
    square_sums_of_first_rows = accumulate(engine.fold(samples, square_sums, edges=edges))
    raw = [
        capacities(summary) * (summary.n_samples / sums)
        for summary, sums in zip(summaries_of_first_rows, square_sums_of_first_rows, strict=True)
    ]
    return Convergence(steps, np.array(raw), maximum, basis)
