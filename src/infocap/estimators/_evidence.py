"""Evidence: what the data say about the capacities, before any estimator has its say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_like, contiguous, on_host, to_numpy
from ..basis._family import DiscreteFamily
from ..basis._product import ProductBasis, lowest
from ..errors import Check
from ..kernels._summary import (
    GOOD_CONDITION,
    Frame,
    Moments,
    Span,
    Summary,
    combine,
    coordinates,
    frame_of,
    span,
    squares,
    summarise,
    triangle_of_gram,
    zero_capacity_bound,
)
from ..samples._engine import Engine
from ..samples._look import Look
from ..samples._samples import Samples, row_shares
from ..typing import Floats, Integers

# Readouts on a device up to which small matrices are handled faster by the processor than by the card.
FEW_READOUTS = 256
# Functions of low degree whose sample means tell independent points from low-discrepancy ones.
LOW_FUNCTIONS = 24
# Mean square of those means, relative to independent points, below which a design is of low discrepancy: Sobol and
# Halton points stay below 0.1, independent ones scatter around 1 by 0.3.
BALANCED = 0.3
# Groups of independent samples, enough to know their scatter to a fifth; of inputs that have a few levels only; and
# the most blocks of a design that are looked for, with the least samples of one.
GROUPS, FEW_GROUPS, MOST_GROUPS, LEAST_STRETCH = 16, 8, 32, 16
# Stretches of a sequence, left out one at a time: with 24 of them 95 % intervals of totals held in 88 % and more of
# the data sets of benchmarks/sequences.py, and each is still long against the memory.
STRETCHES = 24
# Points that are put in order to find the blocks of a design, and the variance of the steps from one point of a block
# to the next in that order, relative to their mean: at most 0.26 for blocks, with a few rows missing or not, and at
# least 0.28 for shorter stretches and for independent points (1256 designs).
ORDERED, EVEN_STEPS = 16_384, 0.27


@dataclass(frozen=True, eq=False)
class Evidence:
    """Summaries of the whole and of its two ordered halves, and the way back to the data.

    Estimators are functions of this. What needs another pass over the data is computed when first asked for.
    `infocap.estimators.gather_evidence(u, x, basis)` gives one.

    >>> basis = infocap.product_basis("legendre", n_inputs=1, max_degree=2)
    >>> def mine(evidence):
    ...     print(evidence.n_samples, evidence.n_readouts, evidence.maximum, evidence.rank, evidence.raw.shape)
    ...     return evidence.extrapolated.clip(0, 1)
    >>> infocap.probe(lambda u: u, basis, 64, seed=1, method=mine).capacity.round(2)
    64 1 2 2 (3,)
    array([1., 1., 0.])
    """

    samples: Samples
    engine: Engine
    look: Look
    frame: Frame | None
    whole: Summary
    halves: tuple[Summary, Summary]
    mistakes: Callable[[], dict[str, list[Check]]] = (
        dict  # in the data, by their cause; looked for when asked
    )

    @property
    def basis(self) -> ProductBasis:
        """The functions whose capacities are wanted."""
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
        return self.space.whitening.shape[1] + self.samples.constant

    @property
    def fourth_moments(self) -> Floats:
        """E[y^4] of every target, exactly."""
        return self.basis.fourth_moments

    @cached_property
    def space(self) -> Span:
        """The space that the readouts span."""
        return span(self.whole)

    @cached_property
    def coordinates(self) -> Any:
        """The targets in an orthonormal frame of that space, (rank, terms)."""
        return coordinates(self.whole, self.space)

    @cached_property
    def half_coordinates(self) -> tuple[Any, Any]:
        """Coordinates of the targets from the first half of the samples alone, and from the second."""
        first, second = (coordinates(half, span(half)) for half in self.halves)
        return first, second

    @property
    def readout_weights(self) -> Floats:
        """W* = G⁻¹R of every target, in units of the channels: (readouts + 1, terms), the constant's weight first."""
        samples, inside = self.samples, self.coordinates
        slopes = to_numpy(self.whitener["whitening"] @ inside[int(samples.constant) :, :])
        out = np.zeros((samples.x.shape[1] + 1, inside.shape[1]))
        with np.errstate(
            over="ignore"
        ):  # readouts near the smallest numbers have weights beyond the largest
            out[1 + samples.channels] = samples.scale[:, None] * slopes
        out[0] = (
            samples.constant * to_numpy(inside[0, :])
            - (samples.shift * samples.scale + self.space.mean) @ slopes
        )
        return out

    @cached_property
    def raw(self) -> Floats:
        """C_N of every target, with the exact E[y²] = 1."""
        return squares(self.coordinates)

    @cached_property
    def raw_half(self) -> Floats:
        """The mean of C_{N/2} over the two ordered halves."""
        first, second = (squares(part) for part in self.half_coordinates)
        return (first + second) / 2

    @property
    def extrapolated(self) -> Floats:
        """Richardson's 2 C_N - C_{N/2}; the part of the bias that falls as 1/N is gone."""
        return 2 * self.raw - self.raw_half

    @cached_property
    def n_groups(self) -> int:
        """Into how many stretches of equal length the samples can be cut that are independent of each other.

        That is 16 for independent points and the number of blocks for a design of independent blocks, which are told
        by one input: in the order of size, every block of a low-discrepancy design holds one in so many points.
        It is 0 where fewer than four blocks are found, or none although the means of low-degree functions
        are too small for independent points: then the samples are one low-discrepancy design.
        """
        n, families = self.n_samples, self.basis.families
        if self.basis.memory:  # contiguous stretches of a sequence
            return min(STRETCHES, max(n // 4, 2))
        column = next(
            (k for k, one in enumerate(families) if not isinstance(one, DiscreteFamily)), None
        )
        if column is None or n < 4 * LEAST_STRETCH:
            return min(FEW_GROUPS, max(n // 4, 2))
        most = float(families[column].quantile(np.array([min(ORDERED / n, 1.0)]))[0])
        found = self.engine.fold(self.samples, partial(_below, column=column, most=most))
        rows, u = (np.concatenate(part) for part in zip(*found, strict=True))
        rows = rows[np.argsort(u)]
        even = [
            k
            for k in range(2, min(MOST_GROUPS, n // LEAST_STRETCH) + 1)
            if _evenness(rows, n, k) < EVEN_STEPS
        ]
        if even:
            in_order = _evenness(rows, n, len(u) // LEAST_STRETCH) < 2 * EVEN_STEPS  # not shuffled
            count = min(even) if in_order else max(even)
            return count if count > 3 else 0
        low = lowest(self.basis, LOW_FUNCTIONS)
        total, square = self.engine.fold(self.samples, partial(_low_sums, basis=low))
        balanced = len(low) > 1 and float(np.mean(total[1:] ** 2 / square[1:])) < BALANCED
        return 0 if balanced else GROUPS

    @property
    def group_edges(self) -> Integers:
        """The rows at which the groups of samples begin, and the number of samples; half of them are one half.

        Groups do not cross from one run to the next, unless there are so many runs that several make a group.
        """
        n, count, edges = self.n_samples, self.n_groups or GROUPS, list[int]()
        runs = [0] if self.samples.runs is None else self.samples.runs.tolist()
        if len(runs) >= count:
            return np.array([*(runs[len(runs) * g // count] for g in range(count)), n])
        for start, stop in pairwise([*runs, n]):
            cuts = max(round(count * (stop - start) / n), 1)
            edges += [start + (stop - start) * g // cuts for g in range(cuts)]
        return np.array([*edges, n])

    @cached_property
    def leverage(self) -> Floats:
        """sum_i X~_i² of every sample, the constant included; its mean is the rank."""
        return np.concatenate(self.engine.fold(self.samples, partial(_leverages, **self.whitener)))

    @cached_property
    def leverage_power(self) -> float:
        """S_N, the mean of leverage² (paper, eq. SN)."""
        return (
            float(self.engine.fold(self.samples, partial(_leverage_power, **self.whitener)))
            / self.n_samples
        )

    @cached_property
    def zero_capacity_bound(self) -> Floats:
        """sqrt(S_N E[y^4]) / N of every target (paper, Prop. 5.3)."""
        return zero_capacity_bound(self.fourth_moments, self.leverage_power, self.n_samples)

    @cached_property
    def leverage_bound(self) -> Floats:
        """mean(leverage y²) / N, the expected C_N of a target whose capacity is zero, read off the data."""
        return (
            self.engine.fold(self.samples, partial(_leverage_squares, **self.whitener))
            / self.n_samples**2
        )

    @cached_property
    def whitener(self) -> dict[str, Any]:
        """What `Samples.readouts` needs to give X~, of sample covariance 1: the mean to subtract, and a matrix."""
        whitening = as_like(self.space.whitening * float(np.sqrt(self.n_samples)), self.coordinates)
        return {"mean": self.space.mean, "whitening": whitening}

    @cached_property
    def target_power(self) -> Floats:
        """The sample mean of y² of every target; 1 in expectation."""
        return self.engine.fold(self.samples, square_sums) / self.n_samples


def gather(samples: Samples, engine: Engine, look: Look) -> Evidence:
    """One pass over prepared samples: both ordered halves, and the whole from them."""
    frame = frame_for(samples, look)
    n = samples.n_samples
    first, second, whole = summaries(samples, engine, frame, (0, n // 2, n))
    return Evidence(samples, engine, look, frame, whole, (first, second))


def summaries(
    samples: Samples, engine: Engine, frame: Frame | None, edges: Sequence[int]
) -> list[Summary]:
    """Summaries of the rows between consecutive edges, and last that of all of them."""
    if (
        frame is not None
        and min(stop - start for start, stop in pairwise(edges)) >= 2 * samples.n_columns
    ):
        sums: list[Moments] = engine.fold(
            samples, partial(_moments, matrix=frame.matrix), edges=edges
        )
        sums.append(sums[0] if len(sums) == 1 else reduce(add, sums))
        found, bounds = zip(*(one.summary(frame, samples.constant) for one in sums), strict=True)
        if all(float(bound) < GOOD_CONDITION for bound in bounds):
            return list(found)
    parts: list[Summary] = engine.fold(samples, _summary, combine, edges)
    return [*parts, combine(*parts)]


def frame_for(samples: Samples, look: Look) -> Frame | None:
    """Coordinates in which the readouts are nearly uncorrelated, as far as some of the rows tell."""
    if look.sample.shape[0] < 2 * samples.n_columns:
        return None
    x = samples.centred(look.sample)
    xp = array_namespace(x)
    x = xp.concat([xp.ones_like(x[:, :1]), x], axis=1) if samples.constant else x
    return frame_of(np.linalg.qr(x, mode="r") if on_host(x) else triangle_of_gram(_small(x.T @ x)))


def _small(matrix: Any) -> Any:
    """A square matrix where it is handled fastest."""
    return to_numpy(matrix) if matrix.shape[0] < FEW_READOUTS else matrix


def _moments(samples: Samples, start: int, stop: int, *, matrix: Any) -> Moments:
    """Sums of products of some rows, in coordinates x @ matrix of the readouts, as many at a time as stay in cache."""
    step = stop - start if samples.x.on_device else samples.basis.tile_samples
    gram: Any = 0.0

    def pieces() -> Iterator[tuple[Any, Any]]:
        nonlocal gram
        for first in range(start, stop, step):
            last = min(first + step, stop)
            z = samples.readouts(first, last)
            z = z if matrix is None else z @ as_like(matrix, z)
            z = (
                z if on_host(z) else contiguous(z.T).T
            )  # the order in which a card multiplies fastest
            gram = gram + z.T @ z
            yield samples.inputs(first, last), samples.weighted(z, first)

    projection = samples.basis.project(pieces())
    return Moments(gram if on_host(gram) else _small(gram), projection, stop - start)


def _summary(samples: Samples, start: int, stop: int) -> Summary:
    """Readouts factored, block by block, and the targets seen from there."""
    blocks = [(start, stop)] if samples.x.on_device else row_shares(start, stop, samples.n_columns)
    return combine(
        *(
            summarise(samples.readouts(*rows), samples.targets(*rows), samples.constant)
            for rows in blocks
        )
    )


def _evenness(rows: Integers, n: int, count: int) -> float:
    """Variance of the steps between points of one stretch among all points in order of size, relative to their mean."""
    stretch = (rows * count // n).astype(np.int16)  # short numbers are sorted many times as fast
    place = np.argsort(stretch, kind="stable")
    steps = np.diff(place)[np.diff(stretch[place]) == 0]
    return float(np.var(steps)) / count**2


def _below(
    samples: Samples, start: int, stop: int, *, column: int, most: float
) -> list[tuple[Integers, Floats]]:
    """The rows in which one input is below some value, and its values, as a list of one pair."""
    u = to_numpy(samples.u.read(start, stop)[:, column])
    rows = np.flatnonzero(u <= most)
    return [(rows + samples.first_row + start, u[rows])]


def _low_sums(samples: Samples, start: int, stop: int, *, basis: ProductBasis) -> Floats:
    """The sums of y and of y² over some rows, with weights w and w²: (2, terms)."""
    u, weights = samples.inputs(start, stop), samples.weights(start, stop)
    square = None if weights is None else weights**2
    return np.array([basis.sum_over(u, weights), basis.sum_over(u, square, power=2)])


def square_sums(samples: Samples, start: int, stop: int) -> Floats:
    """The sum of y² of every target over some rows, (terms,)."""
    return samples.basis.sum_over(
        samples.inputs(start, stop), samples.weights(start, stop), power=2
    )


def _leverages(samples: Samples, start: int, stop: int, **frame: Any) -> list[Floats]:
    """sum_i X~_i² of each of some rows, the constant included, as a list of one array."""
    parts = [(start, stop)] if samples.x.on_device else row_shares(start, stop, samples.n_columns)
    return [np.concatenate([squares(samples.readouts(*rows, **frame).T) for rows in parts])]


def _leverage_power(samples: Samples, start: int, stop: int, **whitened: Any) -> float:
    """The sum of leverage² over some rows."""
    if not samples.x.on_device:
        return float(np.sum(_leverages(samples, start, stop, **whitened)[0] ** 2))
    z = samples.readouts(start, stop, **whitened)
    xp = array_namespace(z)
    return float(xp.sum(xp.sum(z**2, axis=1) ** 2))  # one number is fetched in place of one per row


def _leverage_squares(samples: Samples, start: int, stop: int, **whitened: Any) -> Floats:
    """The sum of leverage times y² of every target over some rows, (terms,)."""
    (leverage,) = _leverages(samples, start, stop, **whitened)
    weights = samples.weights(start, stop)
    leverage = leverage if weights is None else leverage * weights
    return samples.basis.sum_over(samples.inputs(start, stop), leverage, power=2)
