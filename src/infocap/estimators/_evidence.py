"""Evidence: the sums over all samples from which every method starts.

`gather` makes the pass over the rows. It adds up products of readouts and functions over each half
of the samples; a `Summary` of each half and of the whole is all that raw capacities need. Methods
that need more go through the rows again, with `evidence.engine.fold(evidence.samples, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from .._arrays import (
    array_namespace,
    contiguous,
    is_on_host,
    multiply_by_triangle,
    to_library_of,
    to_numpy,
)
from .._threads import cores_for_matrices, parallel_map
from ..basis import ProductBasis
from ..errors import Check
from ..kernels import (
    NO_PRECONDITIONER,
    Moments,
    Preconditioner,
    Span,
    Summary,
    combine,
    coordinates,
    preconditioner_from_gram,
    span,
    sum_of_squares,
    summarise,
    zero_capacity_bound,
)
from ..samples import ColumnStatistics, Engine, Samples, cut_into_blocks
from ..typing import Floats, Integers
from ._groups import Groups, InputOrder, choose_groups, find_input_order

# Readouts on a device below which square matrices of them go to the processor, which handles small
# matrices faster than the card.
MIN_READOUTS_FOR_DEVICE_MATRICES = 256
# Samples per readout that a summary by sums of products, or the choice of a preconditioner for
# them, needs.
MIN_SAMPLES_PER_READOUT_FOR_SUMS = 2


@dataclass(frozen=True, eq=False)
class Evidence:
    """Summaries of all samples and of their two ordered halves, with the samples themselves.

    A method is a function of it. Properties that need another pass over the data are computed when
    they are first used. `infocap.estimators.gather_evidence(u, x, basis)` makes an object of this
    class.

    Parameters
    ----------
    samples, engine
        The rows, and the engine with which sums over them are computed.
    column_statistics
        What the scan of all rows found: the range of every channel and input.
    preconditioner
        The matrix that makes the readouts nearly uncorrelated, so that sums of their products keep
        enough digits; None where some readouts are nearly dependent.
    whole, halves
        Summaries of all samples, and of the first and the second half.
    data_findings
        A function that returns what the data checks found, by cause.

    Examples
    --------
    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> def extrapolated(evidence):
    ...     print(evidence.n_samples, evidence.n_readouts, evidence.maximum, evidence.rank)
    ...     return evidence.extrapolated.clip(0, 1)
    >>> infocap.probe(lambda u: u, basis, 64, seed=1, method=extrapolated).capacity.round(2)
    64 1 2 2
    array([1., 1., 0.])
    """

    samples: Samples
    engine: Engine
    column_statistics: ColumnStatistics
    preconditioner: Preconditioner | None
    whole: Summary
    halves: tuple[Summary, Summary]
    data_findings: Callable[[], dict[str, list[Check]]] = dict  # no findings

    @property
    def basis(self) -> ProductBasis:
        """The functions whose capacities are estimated."""
        return self.samples.basis

    @property
    def n_samples(self) -> int:
        """Number of samples, N."""
        return self.whole.n_samples

    @property
    def n_readouts(self) -> int:
        """Number of channels that were given."""
        return self.samples.x.shape[1]

    @property
    def maximum(self) -> int:
        """The maximum capacity: the number of channels that change, and the constant readout."""
        return self.samples.n_columns

    @property
    def rank(self) -> int:
        """Number of linearly independent readouts, the constant included."""
        return self.space.rank + self.samples.constant

    @property
    def fourth_moments(self) -> Floats:
        """E[y^4] of every function, exactly."""
        return self.basis.fourth_moments

    @cached_property
    def space(self) -> Span:
        """The space that the readouts span."""
        return span(self.whole)

    @property
    def is_well_conditioned(self) -> bool:
        """Whether the readouts are so little correlated that plain sums of products keep digits."""
        return self.whole.invert is not None and self.whole.right_triangle is None

    @cached_property
    def coordinates(self) -> Any:
        """Coordinates of the functions along orthonormal directions of that space, (rank, terms).

        The sum of squares of a column is the raw capacity of a function.
        """
        return coordinates(self.whole, self.space)

    @cached_property
    def half_coordinates(self) -> tuple[Any, Any]:
        """Coordinates from the first half of the samples alone, and from the second.

        Each half has orthonormal directions of its own.
        """
        first, second = (coordinates(half, span(half)) for half in self.halves)
        return first, second

    @property
    def readout_weights(self) -> Floats:
        """W* = G⁻¹c of every function (the paper writes R for c), (readouts + 1, terms).

        The weights are in units of the channels. That of the constant comes first.
        """
        samples = self.samples
        slopes_of_rank = self.coordinates[int(samples.constant) :, :]
        slopes = to_numpy(self.whitener["whitening"] @ slopes_of_rank)
        offset = samples.shift * samples.scale + self.space.mean
        weights = np.zeros((self.n_readouts + 1, slopes.shape[1]))
        # Readouts near the smallest numbers have weights beyond the largest.
        with np.errstate(over="ignore"):
            weights[1 + samples.channels] = samples.scale[:, None] * slopes
        weights[0] = samples.constant * to_numpy(self.coordinates[0, :]) - offset @ slopes
        return weights

    @cached_property
    def raw(self) -> Floats:
        """C_N of every function, with the exact E[y²] = 1."""
        return sum_of_squares(self.coordinates)

    @cached_property
    def raw_half(self) -> Floats:
        """The mean of C_{N/2} over the two ordered halves."""
        first, second = (sum_of_squares(half) for half in self.half_coordinates)
        return (first + second) / 2

    @property
    def extrapolated(self) -> Floats:
        """Richardson's extrapolation 2 C_N - C_{N/2}, without the bias that falls as 1/N."""
        return 2 * self.raw - self.raw_half

    @cached_property
    def input_order(self) -> InputOrder | None:
        """In which order the inputs come; None for a sequence, whose order is given."""
        if self.basis.of_sequences:
            return None
        return find_input_order(self.samples, self.engine)

    @cached_property
    def groups(self) -> Groups:
        """The groups of samples that are left out one at a time."""
        return choose_groups(self.samples, self.input_order)

    @property
    def group_edges(self) -> Integers:
        """Where the groups of samples begin, and the number of samples."""
        return self.groups.edges

    @cached_property
    def leverage(self) -> Floats:
        """sum_i X~_i² of every sample, the constant included; its mean is the rank."""
        return np.concatenate(self.engine.fold(self.samples, partial(_leverages, **self.whitener)))

    @cached_property
    def leverage_power(self) -> float:
        """S_N, the mean of leverage² (paper, eq. SN)."""
        power = self.engine.fold(self.samples, partial(_leverage_power, **self.whitener))
        return float(power) / self.n_samples

    @cached_property
    def zero_capacity_bound(self) -> Floats:
        """sqrt(S_N E[y^4]) / N of every function (paper, Prop. 5.3)."""
        return zero_capacity_bound(self.fourth_moments, self.leverage_power, self.n_samples)

    @cached_property
    def leverage_bound(self) -> Floats:
        """mean(leverage y²) / N from the data: the expected C_N of a function without capacity."""
        sums = self.engine.fold(self.samples, partial(_leverage_squares, **self.whitener))
        return sums / self.n_samples**2

    @cached_property
    def whitener(self) -> dict[str, Any]:
        """Options with which `Samples.readouts` returns whitened readouts X~.

        Their sample covariance is 1.
        """
        with cores_for_matrices(self.rank):
            whitening = self.space.whitening * float(np.sqrt(self.n_samples))
        return {
            "mean": self.space.mean,
            "whitening": to_library_of(whitening, self.coordinates),
            "is_triangular": self.space.directions is None,
        }

    @cached_property
    def mean_squares(self) -> Floats:
        """The sample mean of y² of every function; 1 in expectation."""
        return self.engine.fold(self.samples, square_sums) / self.n_samples


def gather(samples: Samples, engine: Engine, column_statistics: ColumnStatistics) -> Evidence:
    """Go once through prepared samples, and summarise both ordered halves and the whole."""
    preconditioner = choose_preconditioner(samples, column_statistics)
    n = samples.n_samples
    first, second, whole = summarise_between(samples, engine, preconditioner, (0, n // 2, n))
    return Evidence(
        samples=samples,
        engine=engine,
        column_statistics=column_statistics,
        preconditioner=preconditioner,
        whole=whole,
        halves=(first, second),
    )


def summarise_between(
    samples: Samples, engine: Engine, preconditioner: Preconditioner | None, edges: Sequence[int]
) -> list[Summary]:
    """Return summaries of the rows between consecutive edges, and last that of all of them.

    Sums of products are the fast way. Where they would lose too many digits, or there are few
    rows, the readouts themselves are factored.
    """
    fewest_rows = min(stop - start for start, stop in pairwise(edges))
    has_enough_rows = fewest_rows >= MIN_SAMPLES_PER_READOUT_FOR_SUMS * samples.n_columns
    if preconditioner is not None and has_enough_rows:
        summaries_from_sums = _summaries_from_sums(samples, engine, preconditioner, edges)
        if summaries_from_sums is not None:
            return summaries_from_sums
    summaries: list[Summary] = engine.fold(samples, _factor_rows, combine, edges)
    return [*summaries, combine(*summaries)]


def _summaries_from_sums(
    samples: Samples, engine: Engine, preconditioner: Preconditioner, edges: Sequence[int]
) -> list[Summary] | None:
    """Return the summaries from sums of products; None where these have lost too many digits."""
    sum_products = partial(_moments, matrix=preconditioner.matrix)
    merge = Moments.absorb if engine.merges_here else add
    moments: list[Moments] = engine.fold(samples, sum_products, merge, edges)
    moments.append(reduce(add, moments))

    # Each factorisation is a task of its own, because there are more cores than summaries.
    constant = samples.constant
    tasks: list[Callable[[], Any]] = []
    tasks += [partial(sums.summary, preconditioner, constant) for sums in moments]
    tasks += [partial(sums.margin, constant) for sums in moments]
    map_tasks = map if samples.x.on_device else parallel_map
    outcomes = list(map_tasks(lambda task: task(), tasks))
    summaries = outcomes[: len(moments)]
    margins = outcomes[len(moments) :]
    # A margin is fetched from a device when all of them are under way.
    if all(float(margin) > 0 for margin in margins):
        return summaries
    if preconditioner.matrix is None:
        # The rows that the choice rests on, if any, said that none is needed; all rows say more.
        better = preconditioner_from_gram(moments[-1].gram, samples.constant)
        if better is not None and better.matrix is not None:
            return _summaries_from_sums(samples, engine, better, edges)
    return None


def choose_preconditioner(
    samples: Samples, column_statistics: ColumnStatistics
) -> Preconditioner | None:
    """Return the matrix that makes the readouts nearly uncorrelated, from rows chosen at random.

    None where some readouts are nearly dependent, or there are too few rows to tell. Where no rows
    were chosen, no matrix is needed at first: the sums over all rows say whether one is.
    """
    sample = column_statistics.sample
    if sample is None:
        return NO_PRECONDITIONER
    if sample.shape[0] < MIN_SAMPLES_PER_READOUT_FOR_SUMS * samples.n_columns:
        return None
    x = samples.prepare(sample)
    xp = array_namespace(x)
    if samples.constant:
        x = xp.concat([xp.ones_like(x[:, :1]), x], axis=1)
    with cores_for_matrices(samples.n_columns):
        gram = x.T @ x
        if not is_on_host(gram):
            gram = _to_host_if_small(gram)
        return preconditioner_from_gram(gram, samples.constant)


def _to_host_if_small(matrix: Any) -> Any:
    """Move a square matrix of a device to the processor if it is small."""
    if matrix.shape[0] < MIN_READOUTS_FOR_DEVICE_MATRICES:
        return to_numpy(matrix)
    return matrix


def _moments(samples: Samples, start: int, stop: int, *, matrix: Any) -> Moments:
    """Return sums of products of some rows, of preconditioned readouts x @ matrix.

    As many rows are multiplied at a time as stay in the processor's cache, but no fewer than there
    are readouts: adding to the sum would then take as long as the product.
    """
    step = max(samples.basis.tile_samples, samples.n_columns)
    if samples.x.on_device:
        step = stop - start
    gram: Any = 0.0  # `tiles` adds to it while `project` goes through the tiles.

    def tiles() -> Iterator[tuple[Any, Any]]:
        nonlocal gram
        for first in range(start, stop, step):
            last = min(first + step, stop)
            z = samples.readouts(first, last)
            if matrix is not None:
                z = multiply_by_triangle(z, to_library_of(matrix, z))
            if not is_on_host(z):
                z = contiguous(z.T).T  # the order in which a card multiplies fastest
            gram += z.T @ z
            yield samples.inputs(first, last), samples.apply_weights(z, first)

    projection = samples.basis.project(tiles())
    if not is_on_host(gram):
        gram = _to_host_if_small(gram)
    return Moments(gram, projection, stop - start)


def _factor_rows(samples: Samples, start: int, stop: int) -> Summary:
    """Factor the readouts of some rows, block by block, and project the functions on them."""
    summaries = []
    for rows in row_blocks(samples, start, stop):
        readouts = samples.readouts(*rows)
        functions = samples.function_values(*rows)
        summaries.append(summarise(readouts, functions, samples.constant))
    return combine(*summaries)


def square_sums(samples: Samples, start: int, stop: int) -> Floats:
    """Return the sum of y² of every function over some rows, (terms,)."""
    u = samples.inputs(start, stop)
    return samples.basis.sum_over_samples(u, samples.sample_weight(start, stop), power=2)


def _leverages(samples: Samples, start: int, stop: int, **whitener: Any) -> list[Floats]:
    """Return sum_i X~_i² of each of some rows, the constant included, as a list of one array."""
    leverages = []
    for rows in row_blocks(samples, start, stop):
        z = samples.readouts(*rows, **whitener)
        leverages.append(sum_of_squares(z.T))
    return [np.concatenate(leverages)]


def _leverage_power(samples: Samples, start: int, stop: int, **whitener: Any) -> float:
    """Return the sum of leverage² over some rows."""
    if not samples.x.on_device:
        (leverage,) = _leverages(samples, start, stop, **whitener)
        return float(np.sum(leverage**2))
    # On a device, one number is fetched in place of one per row.
    z = samples.readouts(start, stop, **whitener)
    xp = array_namespace(z)
    return float(xp.sum(xp.sum(z**2, axis=1) ** 2))


def _leverage_squares(samples: Samples, start: int, stop: int, **whitener: Any) -> Floats:
    """Return the sum of leverage times y² of every function over some rows, (terms,)."""
    (leverage,) = _leverages(samples, start, stop, **whitener)
    weights = samples.sample_weight(start, stop)
    if weights is not None:
        leverage = leverage * weights
    return samples.basis.sum_over_samples(samples.inputs(start, stop), leverage, power=2)


def row_blocks(samples: Samples, start: int, stop: int) -> list[tuple[int, int]]:
    """Cut rows into blocks that stay in cache; a device takes all rows at once."""
    if samples.x.on_device:
        return [(start, stop)]
    return list(cut_into_blocks(start, stop, samples.n_columns))
